/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which drives the components of a vDisk go to: each on a fault domain of its
 * own, the emptiest first, data before witnesses. As free room falls with
 * each component, vDisks spread by themselves.
 *
 * In place, as many as the policy needs. In the log layout, one on every fault
 * domain that has room: load spreads over all of them, and a rebuild finds
 * places without a spare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/provider/provider_priv.h"

static uint64_t mib_up(uint64_t bytes)
{
	return (bytes + MIB - 1) / MIB;
}

/* The emptiest drive of a domain that has room; NULL: none. */
static struct p_drive *domain_drive(const struct p_domain *dom, uint64_t bytes,
				    const struct p_drive *but)
{
	struct p_drive *best = NULL;

	for (size_t k = 0; k < dom->drives; k++) {
		struct p_drive *d = &dom->drive[k];

		if (d != but && drive_is_there(d) && drive_free(d) >= bytes &&
		    (!best || drive_free(d) > drive_free(best)))
			best = d;
	}
	return best;
}

static bool domain_taken(const struct vdisk_slot *slot, unsigned slots,
			 unsigned except, const char *domain)
{
	for (unsigned k = 0; k < slots; k++)
		if (k != except && !strcmp(slot[k].domain, domain))
			return true;
	return false;
}

/* The emptiest drive in a domain that no slot but `except` is in; never the
 * drive `but`. */
static struct p_drive *drive_choose(const struct provider *p,
				    const struct vdisk_slot *slot,
				    unsigned slots, unsigned except,
				    const struct p_drive *but, uint64_t bytes)
{
	struct p_drive *best = NULL;

	for (size_t k = 0; k < p->domains; k++) {
		struct p_drive *d;

		if (domain_taken(slot, slots, except, p->domain[k].name))
			continue;
		d = domain_drive(&p->domain[k], bytes, but);
		if (d && (!best || drive_free(d) > drive_free(best)))
			best = d;
	}
	return best;
}

static int slot_make(struct provider *p, struct p_drive *d, const char *vdisk,
		     unsigned index, uint64_t bytes, struct vdisk_slot *slot,
		     struct err *err)
{
	int rc;

	*slot = (struct vdisk_slot) { 0 };
	snprintf(slot->component, sizeof(slot->component), "%.40s.%llx.%u",
		 vdisk,
		 ((unsigned long long)event_now_us() << 4) + (p->naming++ & 15),
		 index);
	rc = component_make(d, slot->component, bytes, err);
	if (rc)
		return rc;
	rc = stack_open(d, slot->component, &slot->bdev, err);
	if (rc) {
		component_remove(d, slot->component);
		return rc;
	}
	snprintf(slot->domain, sizeof(slot->domain), "%s", d->domain->name);
	snprintf(slot->drive, sizeof(slot->drive), "%s", d->name);
	return 0;
}

void place_drop(struct provider *p, const struct vdisk_slot *slot,
		unsigned slots)
{
	for (unsigned k = 0; k < slots; k++) {
		struct p_drive *d =
			drive_find(p, slot[k].domain, slot[k].drive);

		if (d)
			stack_drop(d, slot[k].component);
	}
}

void undone_add(struct provider *p, struct p_drive *d, const char *component,
		const char *of)
{
	struct p_undone *more =
		realloc(p->undone, (p->undones + 1) * sizeof(*more));

	if (!more)
		return; /* it stays until the next opening */
	p->undone = more;
	more += p->undones++;
	more->drive = d;
	snprintf(more->component, sizeof(more->component), "%s", component);
	snprintf(more->of, sizeof(more->of), "%s", of);
	p->tidy = true;
}

/* They close as the reactor turns; then they are tidied away. */
void place_undo(struct provider *p, const struct vdisk_slot *slot,
		unsigned slots)
{
	place_drop(p, slot, slots);
	for (unsigned k = 0; k < slots; k++)
		undone_add(p, drive_find(p, slot[k].domain, slot[k].drive),
			   slot[k].component, "");
}

/* Domains with a drive that has so much left, of those no slot is in. */
static unsigned domains_roomy(const struct provider *p,
			      const struct vdisk_slot *slot, unsigned slots,
			      uint64_t bytes)
{
	unsigned count = 0;

	for (size_t k = 0; k < p->domains; k++)
		count += !domain_taken(slot, slots, UINT32_MAX,
				       p->domain[k].name) &&
			 domain_drive(&p->domain[k], bytes, NULL);
	return count;
}

static int no_room(const struct provider *p, const struct vdisk_policy *policy,
		   unsigned needed, uint64_t bytes, struct err *err)
{
	unsigned there = domains_there(p);
	char name[32];

	vdisk_policy_name(policy, name, sizeof(name));
	if (there < needed)
		return err_set(err, -ENOSPC,
			       "%s needs %u fault domains, %u of %zu are there",
			       name, needed, there, p->domains);
	return err_set(err, -ENOSPC,
		       "%s needs %llu MiB on a drive of each of %u fault "
		       "domains, and %u have that much left",
		       name, (unsigned long long)mib_up(bytes), needed,
		       domains_roomy(p, NULL, 0, bytes));
}

/* On how many domains: the fewer, the more each component takes. */
static unsigned slots_choose(const struct provider *p,
			     const struct vdisk_policy *policy,
			     uint64_t size_bytes, unsigned needed)
{
	unsigned n = domains_there(p);

	if (policy->layout != VDISK_LOG)
		return needed;
	if (n > VDISK_MEMBERS_MAX)
		n = VDISK_MEMBERS_MAX;
	while (n > needed &&
	       domains_roomy(p, NULL, 0,
			     vdisk_slot_bytes(policy, size_bytes, n, 0)) < n)
		n--;
	return n > needed ? n : needed;
}

/* ---- memory -------------------------------------------------------------- */

#define MEMORY_SHARE 75 /* percent of the machine's, for all vDisks' maps */

/* What a vDisk needs once all of it is written is promised when it is made:
 * later it would be too late to refuse. */
static int memory_check(const struct provider *p, const char *vdisk,
			const struct vdisk_policy *policy, uint64_t size_bytes,
			unsigned slots, struct err *err)
{
	const uint64_t most = p->host.mem_bytes / 100 * MEMORY_SHARE;
	const uint64_t need = vdisk_memory_bytes(policy, size_bytes, slots);
	uint64_t others = 0;

	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->owned && v->info.slots && strcmp(v->name, vdisk) != 0)
			others += vdisk_memory_bytes(&v->info.policy,
						     v->info.size_bytes,
						     v->info.slots);
	if (!p->host.mem_bytes || !need || need + others <= most)
		return 0;
	return err_set(err, -ENOMEM,
		       "%s needs %llu MiB of memory once all of it is written, "
		       "the other vDisks %llu MiB, and this machine gives them "
		       "%llu of its %llu MiB: make it smaller, or say layout "
		       "inplace",
		       vdisk, (unsigned long long)mib_up(need),
		       (unsigned long long)mib_up(others),
		       (unsigned long long)(most / MIB),
		       (unsigned long long)(p->host.mem_bytes / MIB));
}

/* ---- a set of them --------------------------------------------------------
 */

int place_slots(struct provider *p, const char *vdisk,
		const struct vdisk_policy *policy, uint64_t size_bytes,
		struct vdisk_slot *slot, unsigned *slots, struct err *err)
{
	struct vdisk_policy fit = *policy;
	unsigned needed, n = 0, k = 0;
	int rc = vdisk_policy_fit(&fit, (unsigned)p->domains, &needed, err);

	if (!rc) {
		n = slots_choose(p, policy, size_bytes, needed);
		rc = memory_check(p, vdisk, policy, size_bytes, n, err);
	}
	for (; k < n && !rc; k++) {
		uint64_t bytes = vdisk_slot_bytes(policy, size_bytes, n, k);
		struct p_drive *d =
			drive_choose(p, slot, k, UINT32_MAX, NULL, bytes);

		rc = d ? slot_make(p, d, vdisk, k, bytes, &slot[k], err)
		       : no_room(p, policy, n, bytes, err);
		if (rc)
			break;
	}
	if (rc) {
		place_undo(p, slot, k);
		return rc;
	}
	*slots = n;
	return 0;
}

/* As large as the others are: its label says how, not its policy, which may
 * have changed. */
static uint64_t member_bytes(const struct vdisk_info *info, unsigned index)
{
	if (info->policy.layout == VDISK_LOG)
		for (unsigned k = 0; k < info->slots; k++)
			if (info->slot[k].bdev)
				return info->slot[k].bdev->limits.size_bytes;
	return vdisk_slot_bytes(&info->policy, info->size_bytes, info->slots,
				index);
}

int place_more(struct provider *p, const struct vdisk_info *info,
	       const struct vdisk_policy *policy, struct vdisk_slot *slot,
	       unsigned *slots, struct err *err)
{
	const uint64_t bytes = member_bytes(info, 0);
	struct vdisk_slot all[2 * VDISK_MEMBERS_MAX];
	struct vdisk_policy fit = *policy;
	unsigned needed, n = info->slots;
	int rc = vdisk_policy_fit(&fit, (unsigned)p->domains, &needed, err);

	memcpy(all, info->slot, n * sizeof(*all));
	for (; !rc && n < needed; n++) {
		struct p_drive *d =
			drive_choose(p, all, n, UINT32_MAX, NULL, bytes);

		rc = d ? slot_make(p, d, info->name, n, bytes, &all[n], err)
		       : err_set(err, -ENOSPC,
				 "%s takes %u more components of %llu MiB, on "
				 "fault domains that have none of it",
				 info->name, needed - n,
				 (unsigned long long)mib_up(bytes));
		if (rc)
			break;
	}
	if (rc)
		place_undo(p, &all[info->slots], n - info->slots);
	*slots = rc ? 0 : n - info->slots;
	memcpy(slot, &all[info->slots], *slots * sizeof(*slot));
	return rc;
}

static bool has_component(const struct p_drive *d, const char *component)
{
	struct drive_component *list = NULL;
	bool has = false;
	size_t count = 0;

	if (!d->store || d->store->ops->list(d->store, &list, &count, NULL))
		return true; /* as far as can be known */
	for (size_t k = 0; k < count; k++)
		has = has || !strcmp(list[k].id, component);
	free(list);
	return has;
}

int place_spare(struct provider *p, const struct vdisk_info *info,
		unsigned index, struct vdisk_slot *slot, struct err *err)
{
	const struct vdisk_slot *own = &info->slot[index];
	const uint64_t bytes = member_bytes(info, index);
	struct p_drive *d = drive_find(p, own->domain, own->drive);

	/* Not the very drive it failed on; but a new one in its place, which
	 * has nothing of it, will do. */
	if (d && !has_component(d, own->component))
		d = NULL;
	d = drive_choose(p, info->slot, info->slots, index, d, bytes);
	if (!d)
		return err_set(err, -ENOSPC,
			       "no spare drive for member %u of %s: it takes "
			       "%llu MiB on a fault domain without another "
			       "member",
			       index, info->name,
			       (unsigned long long)mib_up(bytes));
	return slot_make(p, d, info->name, index, bytes, slot, err);
}
