/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log-structured vDisk under test. It promises more than the in-place one:
 * what is acknowledged is durable, a block is never torn, damage anywhere is
 * found out, and a crash needs no resync. So nothing is excused: any drive may
 * go, rot or crash at any time within the budget.
 *
 * Every member is of use until it fails a write; then the vDisk gives it up,
 * and management gives it back as soon as its drive opens, or an empty one in
 * its place. After a crash in between either may be the member. There is
 * nothing to resync, so what counts against the budget is what is away or
 * damaged just now, with one exception: a superblock that was damaged is not
 * made good by being written over, as it says less from then on than it did;
 * the next content that is committed makes up for it.
 *
 * In some seeds the policy changes, too. From the asking on only what both
 * policies tolerate is counted on, until the vDisk says that all is well.
 *
 * What is written lies in chunks far apart: many leaves of the map, few bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/format.h"
#include "engine/vdisk/log/log.h"
#include "engine/vdisk/log/mut.h"
#include "tests/sim/sim.h"

#define DROP_TURNS_MAX 400000u
#define FRONT_BYTES 16384u /* labels and superblocks */
#define SPARES 2u
#define CRASH_FACTOR 4u /* a crash costs little here */
#define CHANGE_CHANCE 2000u

struct logstruct {
	struct sim_client c;
	struct vlog_spec spec;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX]; /* by drive */
	unsigned n, m;                     /* members; of them that may go */
	unsigned drive[VDISK_MEMBERS_MAX]; /* by member */
	uint32_t members; /* drives that are, or may be, members */
	uint32_t exposed; /* of them that do not hold yet what they should */
	int replacing;    /* member, -1: none */
	bool changes;     /* of policy and codec, now and then */
	bool changing;
	struct bdev *vdisk;
	bool opening, closing, returning;
	uint64_t return_ns; /* not before */
	uint32_t last_sick;
	uint32_t front;      /* superblocks damaged, not yet made up for */
	uint32_t front_new;  /* of them, since it began to open */
	uint32_t front_ever; /* since it was made */
	uint64_t off_data;   /* on each of them; 0: no label was seen yet */
	uint64_t front_until[VDISK_MEMBERS_MAX]; /* checkpoints */
};

static const struct {
	unsigned k, m, spare;
} shapes[] = {
	{ 1, 1, 0 }, { 2, 1, 0 }, { 2, 1, 1 }, { 4, 1, 0 }, { 4, 1, 1 },
	{ 1, 2, 0 }, { 4, 2, 0 }, { 4, 2, 1 }, { 1, 3, 0 }, { 2, 2, 0 },
	{ 1, 1, 1 }, { 2, 0, 0 }, { 3, 0, 1 },
};

static struct logstruct *log_of(struct sim_client *c)
{
	return container_of(c, struct logstruct, c);
}

static unsigned members_least(unsigned k, unsigned m)
{
	return k + m > 2 * m + 1 ? k + m : 2 * m + 1;
}

/* What the policy may become on n members: the most of each. */
static void shape_most(unsigned n, unsigned *k, unsigned *m)
{
	for (size_t i = 0; i < array_len(shapes); i++) {
		if (members_least(shapes[i].k, shapes[i].m) > n)
			continue;
		if (shapes[i].k > *k)
			*k = shapes[i].k;
		if (shapes[i].m > *m)
			*m = shapes[i].m;
	}
}

/* Segments of a few blocks, and hardly a slot more than it takes: what is freed
 * is soon taken again. share: bytes on each member, about. */
static void tune_cramp(struct sim *sim, struct vlog_tune *t, unsigned k,
		       uint64_t share)
{
	t->unit_bytes = 2 * SIM_BLOCK; /* of which half is of use */
	t->stripes = 1 + (uint32_t)sim_below(sim, 2);
	t->buffer_bytes = 4 * k * t->unit_bytes;
	if (t->buffer_bytes < 64 << 10)
		t->buffer_bytes = 64 << 10;
	t->slots = (uint32_t)(share / SIM_BLOCK / t->stripes + 4 +
			      sim_below(sim, 4));
}

static void tune_pick(struct sim *sim, uint64_t bytes, struct vlog_spec *spec,
		      unsigned n, bool changes)
{
	struct vlog_tune *t = &spec->tune;
	unsigned k = spec->policy.k, m = spec->policy.m;
	uint64_t chunk, worst;

	if (changes)
		shape_most(n, &k, &m);

	t->unit_bytes = 16384u << sim_below(sim, 2);
	t->stripes = 2 + (uint32_t)sim_below(sim, 3);
	t->zone_bytes = (272u << 10) + 4096 * (uint32_t)sim_below(sim, 40);
	t->zones = 4 + (uint32_t)sim_below(sim, 3);
	t->buffer_bytes = 4 * k * t->unit_bytes;
	if (t->buffer_bytes < 128 << 10)
		t->buffer_bytes = 128 << 10;
	/* Fits even while k' is 1: all live, the buffer, and what is open. */
	chunk = (uint64_t)(t->unit_bytes - 8192) * t->stripes;
	worst = (bytes + 2 * t->buffer_bytes) / chunk + 4;
	t->slots = (uint32_t)(worst * (1 + m) / (n - m) + 10);
	if (sim->profile->cramped)
		tune_cramp(sim, t, k,
			   bytes * (spec->policy.k + m) / spec->policy.k / n);
}

/* So that what takes minutes or a month happens within a run. */
static void pace_pick(struct sim *sim, struct vlog_pace *pace)
{
	pace->absent_ms = 1u << sim_below(sim, 14);
	pace->punch_ms = 1u << sim_below(sim, 14);
	pace->scrub_ms = 20u << sim_below(sim, 14);
}

/* Chunks apart, so that the map has many leaves; sizes are never round. */
static void size_pick(struct sim *sim, struct sim_client *c, bool dense)
{
	static const uint64_t strides[] = { 300, 512, 700 };

	c->bytes = sim->profile->vdisk_bytes / SIM_BLOCK * SIM_BLOCK;
	c->bytes -= sim_below(sim, 8) * SIM_BLOCK;
	if (!sim->profile->chunk_bytes && (sim_below(sim, 4) == 0 || dense))
		return;
	c->chunk_bytes = sim->profile->chunk_bytes;
	if (!c->chunk_bytes)
		c->chunk_bytes = SIM_BLOCK << (2 + sim_below(sim, 4));
	c->stride_bytes = strides[sim_below(sim, 3)] * SIM_BLOCK;
}

/* Of the vDisk, with what is never written. */
static uint64_t size_bytes(const struct sim_client *c)
{
	if (!c->chunk_bytes)
		return c->bytes;
	return (c->bytes / c->chunk_bytes + 1) * c->stride_bytes;
}

static struct sim_client *log_make(struct sim *sim)
{
	struct logstruct *ls = calloc(1, sizeof(*ls));
	struct sim_client *c = &ls->c;
	const size_t s =
		sim_below(sim, array_len(shapes) - (sim_below(sim, 4) ? 2 : 0));

	id_assert(ls);
	ls->m = shapes[s].m;
	ls->n = members_least(shapes[s].k, ls->m) + shapes[s].spare;
	ls->changes = sim_below(sim, 3) == 0;
	c->ops = &sim_log_ops;
	c->sim = sim;
	c->promise = (struct sim_promise) { .durable_ack = true,
					    .atomic = true,
					    .checksums = true,
					    .trim = true,
					    .failsafe = true };
	c->io_bytes = SIM_BLOCK;
	c->crash_factor = sim->profile->crash < 200 ? CRASH_FACTOR : 1;
	size_pick(sim, c, ls->changes); /* another policy wants room for all */
	c->drives = ls->n + SPARES;
	ls->replacing = -1;
	for (unsigned i = 0; i < ls->n; i++) {
		ls->drive[i] = i;
		ls->members |= 1u << i;
	}
	ls->spec = (struct vlog_spec) {
		.cluster = "lab",
		.name = "v",
		.size_bytes = size_bytes(c),
		.policy = { .raid = RAID_5,
			    .k = (uint8_t)shapes[s].k,
			    .m = (uint8_t)shapes[s].m,
			    .codec = (uint8_t)sim_below(sim, 3) },
		.slot = ls->slot,
		.slots = ls->n,
	};
	tune_pick(sim, c->bytes, &ls->spec, ls->n, ls->changes);
	pace_pick(sim, &ls->spec.pace);
	c->full = sim_below(sim, 10) == 0 || sim->profile->cramped;
	if (c->full && !sim->profile->cramped)
		ls->spec.tune.slots = ls->spec.tune.slots * 2 / 3;
	c->drive_bytes = vlog_member_bytes(&ls->spec);
	id_assert(c->drive_bytes);
	return c;
}

static void log_free(struct sim_client *c)
{
	free(log_of(c));
}

static void log_describe(struct sim_client *c, char *buf, size_t len)
{
	const struct logstruct *ls = log_of(c);

	snprintf(buf, len, "log %u+%u on %u, unit %u, %llu KiB%s%s",
		 ls->spec.policy.k, ls->m, ls->n, ls->spec.tune.unit_bytes,
		 (unsigned long long)(c->bytes / KIB),
		 c->full ? ", may be full" : "",
		 c->sim->stats.beyond ? ", beyond the budget" : "");
}

/* ---- life ---------------------------------------------------------------- */

static void component_closed(void *arg)
{
	(void)arg;
}

static void components_close(struct logstruct *ls)
{
	for (unsigned i = 0; i < ls->c.drives; i++)
		if (ls->slot[i].bdev)
			bdev_close(ls->slot[i].bdev, component_closed, NULL);
}

static void component_name(struct vdisk_slot *s, unsigned i)
{
	snprintf(s->domain, sizeof(s->domain), "f%u", i);
	snprintf(s->drive, sizeof(s->drive), "d%u", i);
	snprintf(s->component, sizeof(s->component), "c%u", i);
}

static void components_open(struct logstruct *ls, unsigned drives)
{
	memset(ls->slot, 0, sizeof(ls->slot));
	for (unsigned i = 0; i < drives; i++) {
		struct vdisk_slot *s = &ls->slot[i];

		if (sim_drive_open(&ls->c.sim->drive[i], &s->bdev))
			s->bdev = NULL;
		if (!s->bdev)
			ls->last_sick |= 1u << i;
		component_name(s, i);
	}
}

/* Which drives they are. */
static void members_learn(struct logstruct *ls)
{
	struct vlog_info info;

	vlog_info(ls->vdisk, &info);
	ls->members = 0;
	for (unsigned i = 0; i < ls->n; i++) {
		ls->drive[i] =
			(unsigned)strtoul(info.slot[i].drive + 1, NULL, 10);
		ls->members |= 1u << ls->drive[i];
	}
}

static void opened(int result, const struct err *err, struct bdev *vdisk,
		   void *arg)
{
	struct logstruct *ls = arg;
	struct sim *sim = ls->c.sim;

	ls->opening = false;
	ls->vdisk = vdisk;
	if (result)
		components_close(ls);
	if (sim->phase == SIM_NEW && result) { /* created in vain */
		sim_note(sim, "none: %s", err->text);
		sim->phase = SIM_DOWN;
		return;
	}
	if (sim->phase != SIM_OPENING && sim->phase != SIM_NEW)
		return;
	/* Too few just then, or none at all: once more, later. */
	if (result == -EAGAIN ||
	    (sim->forgive && (result == -ENOENT || result == -EIO))) {
		sim_note(sim, "not yet: %s", err->text);
		sim_refused(sim);
		return;
	}
	ls->front &= ls->front_new;
	for (unsigned i = 0; i < ls->c.drives; i++)
		ls->front_until[i] = 2;
	if (vdisk)
		members_learn(ls);
	sim_up(sim, vdisk, err);
}

static void log_create(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);

	components_open(ls, ls->n);
	ls->opening = true;
	vlog_create(c->sim->r, &ls->spec, opened, ls);
}

static uint32_t log_sick(struct sim_client *c);

static void log_open(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);
	struct vlog_spec spec = ls->spec;

	log_sick(c);
	if (c->sim->handles) { /* of the try before; soon */
		c->sim->phase = SIM_DOWN;
		return;
	}
	components_open(ls, c->drives);
	spec.slot = ls->slot;
	spec.slots = c->drives;
	ls->opening = true;
	ls->front_new = 0;
	vlog_open(c->sim->r, &spec, opened, ls);
}

static void closed(void *arg)
{
	struct logstruct *ls = arg;

	ls->vdisk = NULL;
	ls->closing = false;
	if (ls->c.sim->phase == SIM_CLOSING)
		sim_down(ls->c.sim);
}

static void log_close(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);

	log_sick(c);
	ls->closing = true;
	bdev_close(ls->vdisk, closed, ls);
}

/* Whether or not there is one: labels as far as they were written. */
static void log_open_half(struct sim_client *c)
{
	log_open(c);
}

static void log_drop(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);

	for (unsigned i = 0; ls->opening || ls->vdisk || c->sim->handles; i++) {
		if (i == DROP_TURNS_MAX)
			sim_violation(c->sim, "an instance whose drives are "
					      "gone never ends");
		if (ls->vdisk && !ls->closing)
			log_close(c);
		sim_turn(c->sim);
	}
	id_assert(!ls->returning && !ls->changing);
	ls->last_sick = ls->exposed;
}

/* ---- management ---------------------------------------------------------- */

static void returned(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct logstruct *ls = arg;

	(void)vdisk;
	ls->returning = false;
	if (result)
		ls->return_ns = reactor_now(ls->c.sim->r) + MSEC_NS;
	sim_note(ls->c.sim, "return: %s", result ? err->text : "done");
	ls->c.sim->stats.rebuilds += !result;
	ls->c.sim->stats.moves += !result && ls->replacing >= 0;
	if (ls->vdisk && !ls->closing) {
		ls->replacing = -1;
		members_learn(ls);
	}
}

static bool log_tolerates(struct sim_client *c, uint32_t mask);

/* A drive nobody uses; -1: none. */
static int spare_find(struct logstruct *ls)
{
	for (unsigned i = 0; i < ls->c.drives; i++) {
		const struct sim_drive *d = &ls->c.sim->drive[i];

		if (!(ls->members & 1u << i) && !d->away && !d->handle &&
		    !d->once)
			return (int)i;
	}
	return -1;
}

/* False: there is no other. */
static bool member_replace(struct logstruct *ls, unsigned member)
{
	const int i = spare_find(ls);
	const uint32_t gone =
		sim_budget_used(ls->c.sim) | 1u << ls->drive[member];
	struct vdisk_slot slot = { 0 };

	/* What the old one held is gone for good. */
	if (i < 0 || ls->c.sim->forgive || !log_tolerates(&ls->c, gone))
		return false;
	sim_drive_wipe(&ls->c.sim->drive[i]);
	ls->front &= ~(1u << i);
	ls->front_ever &= ~(1u << i);
	id_assert(!sim_drive_open(&ls->c.sim->drive[i], &slot.bdev));
	component_name(&slot, (unsigned)i);
	sim_note(ls->c.sim, "drive %d for %u, member %u", i, ls->drive[member],
		 member);
	ls->members |= 1u << i;
	ls->exposed |= 1u << i;
	ls->replacing = (int)member;
	ls->returning = true;
	vlog_replace(ls->vdisk, member, &slot, returned, ls);
	return true;
}

/* ---- another policy ------------------------------------------------------ */

static void changed(int result, const struct err *err, struct bdev *vdisk,
		    void *arg)
{
	struct logstruct *ls = arg;

	(void)vdisk;
	ls->changing = false;
	ls->c.sim->stats.changes += !result;
	sim_note(ls->c.sim, "policy: %s", result ? err->text : "done");
}

/* Any that is possible with the members there are; or another codec alone. */
static void policy_change(struct logstruct *ls)
{
	struct sim *sim = ls->c.sim;
	const size_t s = sim_below(sim, array_len(shapes));
	struct vdisk_spec target = { .policy = { .layout = VDISK_LOG,
						 .raid = RAID_5 } };
	struct vdisk_policy *p = &target.policy;

	p->k = ls->spec.policy.k;
	p->m = ls->spec.policy.m;
	p->codec = (enum vdisk_codec)sim_below(sim, 3);
	/* What is away or damaged now is so under the new one, too. */
	if (members_least(shapes[s].k, shapes[s].m) <= ls->n &&
	    (unsigned)__builtin_popcount(sim_budget_used(sim) & ls->members) <=
		    shapes[s].m) {
		p->k = (uint8_t)shapes[s].k;
		p->m = (uint8_t)shapes[s].m;
	}
	sim_note(sim, "policy %u+%u, codec %u", p->k, p->m, p->codec);
	/* Until it is through, only what both tolerate. */
	if (p->m < ls->m)
		ls->m = p->m;
	ls->spec.policy.k = p->k;
	ls->spec.policy.m = p->m;
	ls->changing = true;
	vlog_policy_change(ls->vdisk, &target, changed, ls);
}

/* What it says once nothing is under way any more. */
static void policy_learn(struct logstruct *ls, const struct vlog_info *info)
{
	if (info->state != VDISK_HEALTHY || ls->changing)
		return;
	ls->m = info->policy.m;
	ls->spec.policy.k = info->policy.k;
	ls->spec.policy.m = info->policy.m;
}

/* If not, it will be taken for an empty one. */
static bool label_stands(struct sim_drive *d)
{
	uint8_t front[FRONT_BYTES];

	sim_drive_peek(d, 0, front, sizeof(front));
	return !fmt_label_check(front + FMT_LABEL_A, FMT_COMP_ANY,
				FMT_LABEL_A) ||
	       !fmt_label_check(front + FMT_LABEL_B, FMT_COMP_ANY, FMT_LABEL_B);
}

static void log_check(struct sim_client *c);

/* No drive was ever damaged, so nobody may have found that one was. */
static void false_alarm_check(struct sim *sim, const struct vlog_info *info)
{
	const struct sim_stats *s = &sim->stats;
	uint64_t struck = s->bad + s->rot + s->shorn + s->ghosts;

	for (unsigned i = SIM_ONCE_NONE + 1; i < SIM_ONCES; i++)
		struck += s->once[i];
	if (!struck && info->scrub_found + info->reads_repaired)
		sim_violation(sim,
			      "damage was found where there is none, %" PRIu64
			      " by scrubs, %" PRIu64 " by reads",
			      info->scrub_found, info->reads_repaired);
}

static void log_tick(struct sim_client *c, bool calm)
{
	struct logstruct *ls = log_of(c);
	struct vlog_info info;

	if (!calm && sim_below(c->sim, 64) == 0)
		log_check(c);
	vlog_info(ls->vdisk, &info);
	false_alarm_check(c->sim, &info);
	if (info.state == VDISK_FAILED) {
		if (!c->sim->forgive)
			sim_violation(c->sim, "the vDisk has failed: %s",
				      info.reason);
		if (calm || sim_below(c->sim, 32) == 0)
			sim_stopped(c->sim);
		return;
	}
	if (info.state == VDISK_HEALTHY && info.failures_left < info.policy.m)
		sim_violation(c->sim,
			      "healthy under a policy of m %u, and %u may fail",
			      info.policy.m, info.failures_left);
	policy_learn(ls, &info);
	for (unsigned i = 0; i < c->drives; i++)
		if (info.checkpoints >= ls->front_until[i])
			ls->front &= ~(1u << i);
	if (!calm && ls->changes && !ls->changing &&
	    info.state == VDISK_HEALTHY && sim_chance(c->sim, CHANGE_CHANCE))
		policy_change(ls);
	if (ls->returning || reactor_now(c->sim->r) < ls->return_ns ||
	    (!calm && sim_below(c->sim, 8)))
		return;
	for (unsigned i = 0; i < ls->n; i++) {
		struct bdev *bdev;

		if (info.slot[i].bdev)
			continue;
		if (!calm && sim_below(c->sim, 12) == 0 &&
		    member_replace(ls, i))
			return;
		if (sim_drive_open(&c->sim->drive[ls->drive[i]], &bdev))
			continue;
		sim_note(c->sim, "giving back %u", i);
		if (!label_stands(&c->sim->drive[ls->drive[i]]))
			ls->exposed |= 1u << ls->drive[i];
		ls->returning = true;
		vlog_member_return(ls->vdisk, i, bdev, returned, ls);
		return;
	}
	if (!calm && sim_chance(c->sim, c->sim->profile->admin))
		vlog_checkpoint(ls->vdisk);
}

/* ---- what it can stand --------------------------------------------------- */

static uint32_t log_sick(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);
	struct vlog_info info;
	uint32_t stuck = 0;

	/* What is stuck is given up after a time. */
	for (unsigned i = 0; i < c->drives; i++)
		if (sim_drive_stuck(&c->sim->drive[i]))
			stuck |= 1u << i;
	if (!ls->vdisk || ls->closing) {
		for (unsigned i = 0; i < c->drives; i++)
			if (c->sim->drive[i].struck)
				ls->last_sick |= 1u << i;
		return ls->last_sick | stuck | ls->front;
	}
	vlog_info(ls->vdisk, &info);
	ls->last_sick = stuck;
	/* One that goes while it is being rebuilt lacks as much when it is back
	 * again. */
	for (unsigned i = 0; i < ls->n; i++) {
		const uint32_t bit = 1u << ls->drive[i];

		if (info.slot[i].state == MEMBER_REBUILDING)
			ls->exposed |= bit;
		if (info.slot[i].state == MEMBER_OK)
			ls->exposed &= ~bit;
		else
			ls->last_sick |= bit;
	}
	return ls->last_sick | ls->front | ls->exposed;
}

static void log_damaged(struct sim_client *c, unsigned drive, uint64_t off)
{
	struct logstruct *ls = log_of(c);
	struct vlog_info info = { 0 };

	if (off >= FRONT_BYTES)
		return;
	ls->front |= 1u << drive;
	ls->front_ever |= 1u << drive;
	ls->front_new |= 1u << drive;
	if (ls->vdisk)
		vlog_info(ls->vdisk, &info);
	ls->front_until[drive] = info.checkpoints + 2;
}

/*
 * What a component's own newest superblock stands on is never written over,
 * neither its slot nor the snapshot it names: the rule that makes each of them
 * whole at any crash. Of one that was damaged, or could not be read, the owner
 * may believe otherwise.
 */
static void log_writing(struct sim_client *c, unsigned drive, uint64_t off)
{
	struct logstruct *ls = log_of(c);
	struct sim_drive *d = &c->sim->drive[drive];
	uint8_t front[FMT_SUPER(2)];
	const void *const block[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	struct fmt_label label;
	struct fmt_super super;
	unsigned slot;

	if (d->struck || d->bad || d->rotten || off < FMT_BLOCK ||
	    (ls->off_data && off >= ls->off_data) ||
	    ls->front_ever & 1u << drive)
		return;
	sim_drive_peek(d, 0, front, sizeof(front));
	memcpy(&label, front + FMT_LABEL_A, sizeof(label));
	if (fmt_label_check(front + FMT_LABEL_A, FMT_COMP_ANY, FMT_LABEL_A))
		return;
	ls->off_data = label.off_data;
	if (fmt_super_newest(block, label.head.vdisk, label.head.comp, &super,
			     &slot))
		return;
	if (off == FMT_SUPER(slot))
		sim_violation(c->sim,
			      "drive %u: its newest superblock is written over",
			      drive);
	if (super.content.seq && super.content.snap_len &&
	    off - label.off_snap[super.content.area] < label.snap_bytes)
		sim_violation(c->sim,
			      "drive %u: the snapshot of its newest superblock "
			      "is written over",
			      drive);
}

static bool log_tolerates(struct sim_client *c, uint32_t mask)
{
	const struct logstruct *ls = log_of(c);

	return (unsigned)__builtin_popcount(mask & ls->members) <= ls->m;
}

static bool log_crash_ok(struct sim_client *c)
{
	(void)c;
	return true;
}

static void log_crashed(struct sim_client *c, bool busy)
{
	(void)c;
	(void)busy;
}

static bool log_fragile(struct sim_client *c)
{
	(void)c;
	return false;
}

static bool log_hot(struct sim_client *c, uint64_t off, uint64_t len)
{
	(void)c;
	(void)len;
	return off < FRONT_BYTES;
}

static bool log_damage_ok(struct sim_client *c, uint64_t off, bool rot)
{
	(void)c;
	(void)off;
	(void)rot;
	return true;
}

static bool log_rested(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);
	struct vlog_info info;

	vlog_info(ls->vdisk, &info);
	return info.state == VDISK_HEALTHY && !ls->returning;
}

static void log_tell(struct sim_client *c, char *text, size_t room)
{
	struct vlog_info i;

	vlog_info(log_of(c)->vdisk, &i);
	snprintf(text, room,
		 "%s%s%s, free %.3f, log %.2f, left %" PRIu64 " of %" PRIu64
		 " in %" PRIu64 " segments (%" PRIu64
		 " exposed), cleaned %" PRIu64,
		 vdisk_state_name(i.state), *i.reason ? ": " : "", i.reason,
		 i.free, i.log_fill, i.rebuild_left_bytes, i.live_bytes, i.segs,
		 i.segs_exposed, i.cleaned_segs);
}

static void log_check(struct sim_client *c)
{
	struct err err = { 0 };

	if (vlog_check(log_of(c)->vdisk, &err))
		sim_violation(c->sim, "invariant: %s", err.text);
}

static uint64_t log_repairs(struct sim_client *c)
{
	struct vlog_info info;

	vlog_info(log_of(c)->vdisk, &info);
	return info.reads_repaired;
}

#ifdef IODECK_MUTATIONS
static const char *log_fault(unsigned i)
{
	if (!i || i > MUT_COUNT)
		return NULL;
	return i < MUT_COUNT ? vlog_mut_name[i] : "ghost";
}

static void log_plant(unsigned i)
{
	vlog_mut = i < MUT_COUNT ? (enum vlog_mut)i : MUT_NONE;
	sim_ghosts = i >= MUT_COUNT;
}
#else /* the world's alone */
static const char *log_fault(unsigned i)
{
	return i == 1 ? "ghost" : NULL;
}

static void log_plant(unsigned i)
{
	sim_ghosts = i == 1;
}
#endif

const struct sim_client_ops sim_log_ops = {
	.name = "log",
	.make = log_make,
	.free = log_free,
	.create = log_create,
	.open = log_open,
	.close = log_close,
	.drop = log_drop,
	.tick = log_tick,
	.sick = log_sick,
	.tolerates = log_tolerates,
	.crash_ok = log_crash_ok,
	.crashed = log_crashed,
	.fragile = log_fragile,
	.hot = log_hot,
	.damage_ok = log_damage_ok,
	.damaged = log_damaged,
	.writing = log_writing,
	.open_half = log_open_half,
	.rested = log_rested,
	.tell = log_tell,
	.check = log_check,
	.describe = log_describe,
	.repairs = log_repairs,
	.fault = log_fault,
	.plant = log_plant,
};
