/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The in-place vDisk under test. What it promises today: acknowledged writes
 * are durable after FLUSH or with FUA; a crash may tear; damaged data is not
 * found out (labels are); a crash with writes under way is put right by a
 * resync while all members are there, so until that has run no member may go,
 * and with parity none may be missing at the crash (the write hole).
 *
 * Besides: members replaced, rebuilt on spares, taken out, policies migrated,
 * stripes verified, all of it under faults and crashes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/label.h"
#include "engine/vdisk/mutation.h"
#include "tests/sim/sim.h"

#define LABELS_BYTES 16384u /* both copies */
#define DROP_TURNS_MAX 400000u

struct inplace {
	struct sim_client c;
	struct vdisk_policy policy;
	struct bdev *vdisk;
	struct vdisk_slot slot[SIM_DRIVES_MAX];
	unsigned slots;
	bool opening, closing, replacing, moving, verifying;
	uint32_t members; /* drives of the set that is the vDisk */
	unsigned m;
	uint32_t target;      /* of a migration, as long as it may go on */
	uint32_t target_last; /* of the last one begun: labels may stand */
	uint32_t target_sick;
	unsigned target_m;
	uint32_t left; /* the set it moved from, while I/O there goes on */
	unsigned left_m;
	bool target_hole;
	bool unsound; /* crashed with writes under way, not yet resynced */
	uint32_t last_sick;   /* when last seen */
	unsigned last_doubts; /* members in service that do not count yet */
	bool verify_counts;
	uint64_t mismatches;
	uint64_t replace_ns; /* not before */
};

static uint32_t inplace_sick(struct sim_client *c);
static bool inplace_tolerates(struct sim_client *c, uint32_t mask);

static const struct vdisk_policy policies[] = {
	{ .raid = RAID_1, .k = 1, .m = 1 }, { .raid = RAID_5, .k = 2, .m = 1 },
	{ .raid = RAID_1, .k = 1, .m = 2 }, { .raid = RAID_6, .k = 4, .m = 2 },
	{ .raid = RAID_5, .k = 4, .m = 1 }, { .raid = RAID_0, .k = 2, .m = 0 },
};

static struct inplace *inplace_of(struct sim_client *c)
{
	return container_of(c, struct inplace, c);
}

static unsigned policy_slots(const struct vdisk_policy *p)
{
	const unsigned a = p->k + p->m, b = 2u * p->m + 1;

	return a > b ? a : b;
}

static void policy_pick(struct sim *sim, struct vdisk_policy *p)
{
	*p = policies[sim_below(sim, sim_below(sim, 8) ? array_len(policies) - 1
						       : array_len(policies))];
	p->stripe_unit_bytes = 4096u << sim_below(sim, 4);
}

static unsigned drive_of(const struct vdisk_slot *slot)
{
	return (unsigned)strtoul(slot->drive + 1, NULL, 10);
}

static struct sim_client *inplace_make(struct sim *sim)
{
	struct inplace *ip = calloc(1, sizeof(*ip));
	struct sim_client *c = &ip->c;

	id_assert(ip);
	c->ops = &sim_inplace_ops;
	c->sim = sim;
	policy_pick(sim, &ip->policy);
	ip->m = ip->policy.m;
	c->io_bytes = SIM_SECTOR;
	c->bytes = sim->profile->vdisk_bytes;
	if (sim_below(sim, 4) == 0)
		c->bytes = c->bytes * 5 / 2; /* windows of a migration */
	c->bytes = c->bytes / SIM_BLOCK * SIM_BLOCK;
	c->drives = policy_slots(&ip->policy) + 7;
	c->drive_bytes = VDISK_LABEL_BYTES + c->bytes + 256 * KIB;
	return c;
}

static void inplace_free(struct sim_client *c)
{
	free(inplace_of(c));
}

static void inplace_describe(struct sim_client *c, char *buf, size_t len)
{
	const struct inplace *ip = inplace_of(c);
	char name[32];

	vdisk_policy_name(&ip->policy, name, sizeof(name));
	snprintf(buf, len, "%s, unit %u, %llu KiB, members %x of %u drives",
		 name, ip->policy.stripe_unit_bytes,
		 (unsigned long long)(c->bytes / KIB), ip->members, c->drives);
}

/* ---- components ---------------------------------------------------------- */

static bool component_open(struct inplace *ip, unsigned i,
			   struct vdisk_slot *slot)
{
	memset(slot, 0, sizeof(*slot));
	if (sim_drive_open(&ip->c.sim->drive[i], &slot->bdev))
		return false;
	snprintf(slot->domain, sizeof(slot->domain), "f%u", i);
	snprintf(slot->drive, sizeof(slot->drive), "d%u", i);
	snprintf(slot->component, sizeof(slot->component), "c%u", i);
	return true;
}

static void component_closed(void *arg)
{
	(void)arg;
}

static void components_close(struct inplace *ip)
{
	for (unsigned i = 0; i < ip->slots; i++)
		bdev_close(ip->slot[i].bdev, component_closed, NULL);
}

/* A drive nobody uses, blank; -1: none. */
static int spare_find(struct inplace *ip, uint32_t taken)
{
	const unsigned n = ip->c.drives;
	const unsigned from = (unsigned)sim_below(ip->c.sim, n);

	for (unsigned j = 0; j < n; j++) {
		const unsigned i = (from + j) % n;
		const struct sim_drive *d = &ip->c.sim->drive[i];

		if (!((ip->members | taken) & 1u << i) && !d->away &&
		    !d->handle && !d->bad && !d->rotten && !d->once)
			return (int)i;
	}
	return -1;
}

/* ---- life ---------------------------------------------------------------- */

/* What stands in the labels, for the history. */
static void labels_note(struct inplace *ip)
{
	static uint8_t buf[LABELS_BYTES];
	struct label l;

	for (unsigned i = 0; i < ip->c.drives && ip->c.sim->verbose; i++) {
		sim_drive_peek(&ip->c.sim->drive[i], 0, buf, sizeof(buf));
		for (unsigned k = 0; k < LABEL_COPIES; k++)
			if (!label_decode(buf + k * LABEL_BYTES, &l))
				sim_note(ip->c.sim,
					 "label d%u.%u: set %02x peer %02x "
					 "state %u promised %llu content "
					 "%llu.%llu serial %llu self %d",
					 i, k, l.set[0], l.peer[0], l.set_state,
					 (unsigned long long)l.promised,
					 (unsigned long long)l.claim,
					 (unsigned long long)l.epoch,
					 (unsigned long long)l.serial,
					 label_member_find(&l, l.self));
	}
}

static void slots_note(struct inplace *ip)
{
	struct vdisk_info info;

	vdisk_info(ip->vdisk, &info);
	for (unsigned i = 0; i < info.slots; i++)
		sim_note(ip->c.sim, "member %u on %s: %s", i,
			 info.slot[i].drive,
			 member_state_name(info.slot[i].state));
}

static void opened(int result, const struct err *err, struct bdev *vdisk,
		   void *arg)
{
	struct inplace *ip = arg;

	ip->opening = false;
	ip->vdisk = vdisk;
	if (result)
		components_close(ip);
	if (!result)
		slots_note(ip);
	if (ip->c.sim->phase == SIM_OPENING)
		sim_up(ip->c.sim, vdisk, err);
}

static void inplace_create(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);
	const struct vdisk_spec spec = { .cluster = "lab",
					 .name = "v",
					 .size_bytes = c->bytes,
					 .policy = ip->policy,
					 .slot = ip->slot,
					 .slots = policy_slots(&ip->policy) };

	ip->slots = spec.slots;
	for (unsigned i = 0; i < spec.slots; i++) {
		id_assert(component_open(ip, i, &ip->slot[i]));
		ip->members |= 1u << i;
	}
	ip->opening = true;
	vdisk_create(c->sim->r, &spec, opened, ip);
}

static void inplace_open(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "v",
				   .slot = ip->slot };

	inplace_sick(c); /* before handles are opened anew */
	labels_note(ip);
	for (unsigned i = 0; i < c->drives; i++)
		if (component_open(ip, i, &ip->slot[spec.slots]))
			spec.slots++;
		else
			ip->last_sick |= 1u << i & ip->members;
	ip->slots = spec.slots;
	ip->target = ip->target_last;
	ip->opening = true;
	vdisk_open(c->sim->r, &spec, opened, ip);
}

static void closed(void *arg)
{
	struct inplace *ip = arg;

	ip->vdisk = NULL;
	ip->closing = false;
	if (ip->c.sim->phase == SIM_CLOSING)
		sim_down(ip->c.sim);
}

static void inplace_close(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);

	inplace_sick(c);
	ip->closing = true;
	bdev_close(ip->vdisk, closed, ip);
}

static void inplace_drop(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);

	for (unsigned i = 0; ip->opening || ip->vdisk || c->sim->handles; i++) {
		if (i == DROP_TURNS_MAX)
			sim_violation(c->sim, "an instance whose drives are "
					      "gone never ends");
		if (ip->vdisk && !ip->closing)
			inplace_close(c);
		sim_turn(c->sim);
	}
	id_assert(!ip->replacing && !ip->moving && !ip->verifying);
}

/* ---- management ---------------------------------------------------------- */

static void replaced(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct inplace *ip = arg;

	(void)vdisk;
	ip->replacing = false;
	if (result) /* no use to try again at once */
		ip->replace_ns = reactor_now(ip->c.sim->r) + MSEC_NS;
	sim_note(ip->c.sim, "replace: %s", result ? err->text : "begun");
	ip->c.sim->stats.rebuilds += !result;
}

static void member_replace(struct inplace *ip, const struct vdisk_info *info,
			   unsigned index)
{
	struct sim *sim = ip->c.sim;
	const unsigned own = drive_of(&info->slot[index]);
	struct vdisk_slot slot = info->slot[index];
	int drive = (int)own;

	if (info->slot[index].bdev && sim_below(sim, 2)) {
		slot.bdev = NULL; /* the stale one that stands there */
	} else {
		if (sim->drive[own].away || sim->drive[own].handle ||
		    sim_below(sim, 4) == 0)
			drive = spare_find(ip, ip->target);
		if (drive < 0 || !component_open(ip, (unsigned)drive, &slot))
			return;
	}
	sim_note(sim, "replacing member %u by drive %d", index, drive);
	ip->replacing = true;
	vdisk_replace(ip->vdisk, index, &slot, replaced, ip);
}

static void moved(int result, const struct err *err, struct bdev *vdisk,
		  void *arg)
{
	struct inplace *ip = arg;

	(void)vdisk;
	ip->moving = false;
	sim_note(ip->c.sim, "move: %s", result ? err->text : "done");
	ip->c.sim->stats.moves += !result;
}

static void move_start(struct inplace *ip)
{
	struct sim *sim = ip->c.sim;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	struct vdisk_spec spec = { .slot = slot };
	uint32_t taken = 0;

	policy_pick(sim, &spec.policy);
	for (unsigned i = 0; i < policy_slots(&spec.policy); i++) {
		const int d = spare_find(ip, taken);

		if (d < 0)
			break;
		sim_drive_wipe(&sim->drive[d]);
		taken |= 1u << d;
	}
	if ((unsigned)__builtin_popcount(taken) < policy_slots(&spec.policy))
		return;
	for (unsigned i = 0; i < ip->c.drives; i++)
		if (taken & 1u << i)
			component_open(ip, i, &slot[spec.slots++]);
	ip->target = ip->target_last = taken;
	ip->target_sick = 0;
	ip->target_m = spec.policy.m;
	ip->target_hole = spec.policy.m && spec.policy.k > 1;
	ip->moving = true;
	sim_note(sim, "moving to %u+%u, unit %u, drives %x", spec.policy.k,
		 spec.policy.m, spec.policy.stripe_unit_bytes, taken);
	vdisk_migrate(ip->vdisk, &spec, moved, ip);
}

static bool whole(const struct vdisk_info *info)
{
	for (unsigned i = 0; i < info->slots; i++)
		if (info->slot[i].state != MEMBER_OK)
			return false;
	return true;
}

static void verified(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct inplace *ip = arg;
	struct vdisk_info info;

	(void)err;
	ip->verifying = false;
	vdisk_info(vdisk, &info);
	if (!result && ip->mismatches && ip->verify_counts && whole(&info))
		sim_violation(ip->c.sim, "%llu stripes do not agree",
			      (unsigned long long)ip->mismatches);
}

static void verify_start(struct inplace *ip, const struct vdisk_info *info)
{
	ip->verifying = true;
	ip->verify_counts = info->state == VDISK_HEALTHY;
	vdisk_verify(ip->vdisk, &ip->mismatches, verified, ip);
}

static void member_fail(struct inplace *ip, const struct vdisk_info *info)
{
	struct sim *sim = ip->c.sim;
	const unsigned index = (unsigned)sim_below(sim, info->slots);
	const uint32_t mask =
		sim_budget_used(sim) | 1u << drive_of(&info->slot[index]);

	if (ip->unsound || !inplace_tolerates(&ip->c, mask))
		return;
	sim_note(sim, "taking out member %u", index);
	vdisk_member_fail(ip->vdisk, index, NULL);
}

/* Which drives are of which set, as far as it can be seen. */
static void sets_update(struct inplace *ip, const struct vdisk_info *info)
{
	uint32_t in_use = 0, members = 0;

	for (unsigned i = 0; i < info->slots; i++)
		members |= 1u << drive_of(&info->slot[i]);
	if (members & ip->target && !(members & ip->members)) {
		ip->target_last = 0; /* it has become the vDisk */
		ip->left = ip->members;
		ip->left_m = ip->m;
	}
	ip->target_last &= ~members;
	ip->members = members;
	ip->target &= ip->target_last;
	ip->policy = info->policy;
	ip->m = info->policy.m;
	for (unsigned i = 0; i < ip->c.drives; i++)
		if (ip->c.sim->drive[i].handle)
			in_use |= 1u << i;
	if (!(in_use & ip->target) && !ip->moving)
		ip->target = 0;
	for (uint32_t gone = ip->left & ~in_use; gone; gone &= gone - 1) {
		ip->left &= ~(gone & -gone); /* for good */
		ip->left_m -= ip->left_m != 0;
	}
	ip->target_sick |= ip->target & ~in_use;
}

static void repair(struct inplace *ip, const struct vdisk_info *info, bool calm)
{
	struct sim *sim = ip->c.sim;

	if (reactor_now(sim->r) < ip->replace_ns)
		return;
	for (unsigned i = 0; i < info->slots && !ip->replacing; i++) {
		const struct vdisk_slot *s = &info->slot[i];
		const unsigned d = drive_of(s);

		if (s->state != MEMBER_MISSING && s->state != MEMBER_STALE)
			continue;
		if (sim->drive[d].away && sim_below(sim, 64))
			continue;
		if (calm || sim_below(sim, 16) == 0)
			member_replace(ip, info, i);
	}
}

static void manage(struct inplace *ip, const struct vdisk_info *info)
{
	static const uint64_t limits[] = { 0, 1u << 20, 1u << 24, 1u << 28 };
	struct sim *sim = ip->c.sim;

	switch (sim_below(sim, 4)) {
	case 0:
		if (!ip->verifying)
			verify_start(ip, info);
		break;
	case 1:
		if (!ip->moving && !ip->target)
			move_start(ip);
		break;
	case 2:
		member_fail(ip, info);
		break;
	default:
		vdisk_rebuild_limit(ip->vdisk,
				    limits[sim_below(sim, array_len(limits))]);
		break;
	}
}

static void inplace_tick(struct sim_client *c, bool calm)
{
	struct inplace *ip = inplace_of(c);
	struct vdisk_info info;

	vdisk_info(ip->vdisk, &info);
	if (info.state == VDISK_FAILED)
		sim_violation(c->sim, "the vDisk has failed: %s", info.reason);
	sets_update(ip, &info);
	if (ip->unsound && whole(&info) &&
	    (info.state == VDISK_HEALTHY || info.state == VDISK_MIGRATING)) {
		sim_note(c->sim, "sound again");
		ip->unsound = false;
	}
	repair(ip, &info, calm);
	if (calm)
		vdisk_rebuild_limit(ip->vdisk, 0);
	else if (sim_chance(c->sim, c->sim->profile->admin))
		manage(ip, &info);
}

/* ---- what it can stand --------------------------------------------------- */

static uint32_t inplace_sick(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);
	struct vdisk_info info;
	unsigned sick;

	/* What the labels say is not known: as when last seen, and whoever
	 * had a fault since may be out. */
	if (!ip->vdisk || ip->closing) {
		for (unsigned i = 0; i < c->drives; i++)
			if (c->sim->drive[i].struck)
				ip->last_sick |= 1u << i & ip->members;
		return ip->last_sick | (ip->target_sick & ip->target);
	}
	vdisk_info(ip->vdisk, &info);
	sets_update(ip, &info);
	ip->last_sick = 0;
	for (unsigned i = 0; i < info.slots; i++)
		if (info.slot[i].state != MEMBER_OK)
			ip->last_sick |= 1u << drive_of(&info.slot[i]);
	/* It may count on fewer: labels that are not written yet. */
	sick = (unsigned)__builtin_popcount(ip->last_sick);
	ip->last_doubts = sick + info.failures_left < ip->m
				  ? ip->m - sick - info.failures_left
				  : 0;
	return ip->last_sick | (ip->target_sick & ip->target);
}

static bool inplace_tolerates(struct sim_client *c, uint32_t mask)
{
	const struct inplace *ip = inplace_of(c);

	return (unsigned)__builtin_popcount(mask & ip->members) +
			       ip->last_doubts <=
		       ip->m &&
	       (unsigned)__builtin_popcount(mask & ip->target) <=
		       ip->target_m &&
	       (unsigned)__builtin_popcount(mask & ip->left) <= ip->left_m;
}

static bool all_there(struct inplace *ip)
{
	for (unsigned i = 0; i < ip->c.drives; i++) {
		const struct sim_drive *d = &ip->c.sim->drive[i];

		if ((ip->members | ip->target) & 1u << i &&
		    (d->away || d->hurt))
			return false;
	}
	return true;
}

static bool inplace_crash_ok(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);

	if (ip->target && ip->target_hole && ip->target_sick)
		return false;
	if (ip->policy.k == 1 || !ip->m)
		return true;
	return !(inplace_sick(c) & ip->members) && all_there(ip);
}

static void inplace_crashed(struct sim_client *c, bool busy)
{
	struct inplace *ip = inplace_of(c);

	inplace_sick(c);
	if (busy)
		ip->unsound = true;
}

static bool inplace_fragile(struct sim_client *c)
{
	return inplace_of(c)->unsound;
}

static bool inplace_hot(struct sim_client *c, uint64_t off, uint64_t len)
{
	(void)c;
	(void)len;
	return off < LABELS_BYTES;
}

static bool inplace_damage_ok(struct sim_client *c, uint64_t off, bool rot)
{
	(void)c;
	return off < LABELS_BYTES || (!rot && off >= VDISK_LABEL_BYTES);
}

static bool inplace_rested(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);
	struct vdisk_info info;

	vdisk_info(ip->vdisk, &info);
	return info.state == VDISK_HEALTHY && !ip->replacing && !ip->moving &&
	       !ip->verifying;
}

static void inplace_check(struct sim_client *c)
{
	struct inplace *ip = inplace_of(c);
	struct vdisk_info info;

	vdisk_info(ip->vdisk, &info);
	verify_start(ip, &info);
	for (unsigned i = 0; ip->verifying; i++) {
		if (i == DROP_TURNS_MAX)
			sim_violation(c->sim, "verifying never ends");
		sim_turn(c->sim);
	}
}

#ifdef IODECK_MUTATIONS
static const char *inplace_fault(unsigned i)
{
	return i < MUTATIONS ? mutation_name[i] : NULL;
}

static void inplace_plant(unsigned i)
{
	mutation = (enum mutation)i;
}
#else
static const char *inplace_fault(unsigned i)
{
	(void)i;
	return NULL;
}

static void inplace_plant(unsigned i)
{
	(void)i;
}
#endif

const struct sim_client_ops sim_inplace_ops = {
	.name = "inplace",
	.make = inplace_make,
	.free = inplace_free,
	.create = inplace_create,
	.open = inplace_open,
	.close = inplace_close,
	.drop = inplace_drop,
	.tick = inplace_tick,
	.sick = inplace_sick,
	.tolerates = inplace_tolerates,
	.crash_ok = inplace_crash_ok,
	.crashed = inplace_crashed,
	.fragile = inplace_fragile,
	.hot = inplace_hot,
	.damage_ok = inplace_damage_ok,
	.rested = inplace_rested,
	.check = inplace_check,
	.describe = inplace_describe,
	.fault = inplace_fault,
	.plant = inplace_plant,
};
