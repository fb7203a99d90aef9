/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Policies: what may be asked for, what it needs, what it is called.
 */
#include "engine/vdisk/vdisk.h"

#include <stdio.h>
#include <string.h>

#include "engine/vdisk/priv.h"

#define LOG_UNIT_BYTES (128 * KIB)

static unsigned policy_domains(const struct vdisk_policy *p)
{
	const unsigned width = p->k + p->m, labels = 2u * p->m + 1;

	return width > labels ? width : labels;
}

/* Where k was asked for and nothing is tied to it: 8+1, 8+2. */
static bool wider(const struct vdisk_policy *p, unsigned least)
{
	const unsigned m = p->raid == RAID_6 ? 2 : 1;

	return p->layout == VDISK_LOG && p->k >= least &&
	       p->k + m <= VDISK_MEMBERS_MAX;
}

/* k and m by level; 0 or an error with the reason. */
static int policy_fill(struct vdisk_policy *p, unsigned domains,
		       struct err *err)
{
	switch (p->raid) {
	case RAID_0:
		p->m = 0;
		if (!p->k)
			p->k = (uint8_t)(domains < VDISK_MEMBERS_MAX
						 ? domains
						 : VDISK_MEMBERS_MAX);
		if (!p->k || p->k > VDISK_MEMBERS_MAX)
			return err_set(err, -EINVAL,
				       "RAID-0 takes 1 to %d members, not %u",
				       VDISK_MEMBERS_MAX, p->k);
		return 0;
	case RAID_1:
		p->k = 1;
		if (p->m < 1 || p->m > 3)
			return err_set(err, -EINVAL,
				       "RAID-1 tolerates 1 to 3 failures (2 to "
				       "4 copies), not %u",
				       p->m);
		return 0;
	case RAID_5:
		if (p->m != 0 && p->m != 1)
			return err_set(err, -EINVAL,
				       "RAID-5 tolerates 1 failure, not %u; "
				       "RAID-6 tolerates 2",
				       p->m);
		p->m = 1;
		if (!p->k)
			p->k = domains >= 6 ? 4 : 2;
		if (p->k != 2 && p->k != 4 && !wider(p, 2))
			return err_set(err, -EINVAL,
				       "RAID-5 comes as 2+1 and 4+1, in the "
				       "log layout also as wider ones to 15+1, "
				       "not %u+1",
				       p->k);
		return 0;
	case RAID_6:
		if (!p->k)
			p->k = 4;
		if ((p->m != 0 && p->m != 2) || (p->k != 4 && !wider(p, 3)))
			return err_set(err, -EINVAL,
				       "RAID-6 comes as 4+2, in the log layout "
				       "also as 3+2 and wider ones to 14+2, "
				       "not %u+%u",
				       p->k, p->m);
		p->m = 2;
		return 0;
	}
	return err_set(err, -EINVAL, "RAID-%d is not known: 0, 1, 5 or 6",
		       (int)p->raid);
}

int vdisk_policy_check(const struct vdisk_policy *policy, struct err *err)
{
	struct vdisk_policy copy = *policy;
	const uint32_t unit = policy->stripe_unit_bytes;
	int rc;

	if (!policy->k)
		return err_set(err, -EINVAL, "a policy without data members");
	rc = policy_fill(&copy, policy->k + policy->m, err);
	if (rc)
		return rc;
	if (copy.k != policy->k || copy.m != policy->m)
		return err_set(err, -EINVAL, "RAID-%d is not %u+%u",
			       (int)policy->raid, policy->k, policy->m);
	if (policy->layout > VDISK_LOG || policy->codec > VDISK_ZSTD)
		return err_set(err, -EINVAL,
			       "the layout is log or inplace, compression "
			       "none, lz4 or zstd");
	if (policy->layout == VDISK_INPLACE && policy->codec != VDISK_RAW)
		return err_set(err, -EINVAL,
			       "the in-place layout cannot compress; use "
			       "layout log");
	if (unit < 4 * KIB || unit > MIB || (unit & (unit - 1)))
		return err_set(err, -EINVAL,
			       "a stripe unit of %u bytes: it is a power of "
			       "two from 4 KiB to 1 MiB",
			       unit);
	return 0;
}

int vdisk_policy_fit(struct vdisk_policy *policy, unsigned domains,
		     unsigned *domains_needed, struct err *err)
{
	char name[32];
	unsigned needed;
	int rc;

	if (policy->layout == VDISK_LOG)
		policy->stripe_unit_bytes = LOG_UNIT_BYTES;
	else if (!policy->stripe_unit_bytes)
		policy->stripe_unit_bytes = 64 * KIB;
	rc = policy_fill(policy, domains, err);
	if (rc)
		return rc;
	rc = vdisk_policy_check(policy, err);
	if (rc)
		return rc;
	needed = policy_domains(policy);
	if (domains_needed)
		*domains_needed = needed;
	if (domains >= needed)
		return 0;
	vdisk_policy_name(policy, name, sizeof(name));
	return err_set(err, -ENOSPC, "%s needs %u fault domains, there %s %u",
		       name, needed, domains == 1 ? "is" : "are", domains);
}

unsigned vdisk_policy_slots(const struct vdisk_policy *policy)
{
	return policy_domains(policy);
}

/*
 * Copies are not striped: their unit is only what one lock and one transfer
 * span, and does not show in the mapping.
 */
uint32_t vdisk_policy_unit(const struct vdisk_policy *policy)
{
	return policy->raid == RAID_1 ? 256 * KIB : policy->stripe_unit_bytes;
}

uint64_t inplace_member_bytes(const struct vdisk_policy *policy,
			      uint64_t size_bytes)
{
	const uint64_t unit = vdisk_policy_unit(policy);
	const uint64_t row = unit * policy->k;

	return VDISK_LABEL_BYTES + (size_bytes + row - 1) / row * unit;
}

void vdisk_policy_name(const struct vdisk_policy *policy, char *buf, size_t len)
{
	if (policy->raid == RAID_0)
		snprintf(buf, len, "RAID-0 of %u", policy->k);
	else if (policy->raid == RAID_1)
		snprintf(buf, len, "RAID-1 %u copies", policy->m + 1u);
	else
		snprintf(buf, len, "RAID-%d %u+%u", (int)policy->raid,
			 policy->k, policy->m);
}

const char *member_state_name(enum member_state state)
{
	static const char *const names[] = { "ok", "missing", "stale",
					     "rebuilding" };

	return (size_t)state < array_len(names) ? names[state] : "-";
}

const char *vdisk_state_name(enum vdisk_state state)
{
	static const char *const names[] = { "healthy", "degraded",
					     "rebuilding", "migrating",
					     "failed" };

	return (size_t)state < array_len(names) ? names[state] : "-";
}
