/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which drives the components of a vDisk go to: each on a fault domain of its
 * own, the emptiest first, data before witnesses. As free room falls with
 * each component, vDisks spread by themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/provider/provider_priv.h"

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
		component_remove(d, slot->component, bytes);
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

static void undone_add(struct provider *p, const struct vdisk_slot *slot)
{
	struct p_undone *more =
		realloc(p->undone, (p->undones + 1) * sizeof(*more));

	if (!more)
		return; /* it stays until the next opening */
	p->undone = more;
	more += p->undones++;
	more->drive = drive_find(p, slot->domain, slot->drive);
	memcpy(more->component, slot->component, sizeof(more->component));
}

/* They close as the reactor turns; then they are tidied away. */
void place_undo(struct provider *p, const struct vdisk_slot *slot,
		unsigned slots)
{
	place_drop(p, slot, slots);
	for (unsigned k = 0; k < slots; k++)
		undone_add(p, &slot[k]);
	p->tidy = true;
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
		       "%s needs %llu MiB on each of %u fault domains, and "
		       "fewer have that much left",
		       name, (unsigned long long)((bytes + MIB - 1) / MIB),
		       needed);
}

int place_slots(struct provider *p, const char *vdisk,
		const struct vdisk_policy *policy, uint64_t size_bytes,
		struct vdisk_slot *slot, unsigned *slots, struct err *err)
{
	struct vdisk_policy fit = *policy;
	unsigned needed, k;
	int rc = vdisk_policy_fit(&fit, (unsigned)p->domains, &needed, err);

	for (k = 0; k < needed && !rc; k++) {
		uint64_t bytes =
			vdisk_slot_bytes(policy, size_bytes, needed, k);
		struct p_drive *d =
			drive_choose(p, slot, k, UINT32_MAX, NULL, bytes);

		rc = d ? slot_make(p, d, vdisk, k, bytes, &slot[k], err)
		       : no_room(p, policy, needed, bytes, err);
		if (rc)
			break;
	}
	if (rc) {
		place_undo(p, slot, k);
		return rc;
	}
	*slots = needed;
	return 0;
}

int place_spare(struct provider *p, const struct vdisk_info *info,
		unsigned index, struct vdisk_slot *slot, struct err *err)
{
	uint64_t bytes = vdisk_slot_bytes(&info->policy, info->size_bytes,
					  info->slots, index);
	/* not the very drive it failed on */
	struct p_drive *d = drive_choose(p, info->slot, info->slots, index,
					 drive_find(p, info->slot[index].domain,
						    info->slot[index].drive),
					 bytes);

	if (!d)
		return err_set(err, -ENOSPC,
			       "no spare drive for member %u of %s: it takes "
			       "%llu MiB on a fault domain without another "
			       "member",
			       index, info->name,
			       (unsigned long long)((bytes + MIB - 1) / MIB));
	return slot_make(p, d, info->name, index, bytes, slot, err);
}
