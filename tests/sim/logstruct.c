/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log-structured vDisk under test. It promises more than the in-place one:
 * what is acknowledged is durable, a block is never torn, damage anywhere is
 * found out, and a crash needs no resync. So nothing is excused: any drive may
 * go, rot or crash at any time within the budget.
 *
 * Every member is of use until it fails a write; then the vDisk gives it up,
 * and management gives it back as soon as its drive opens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/log.h"
#include "engine/vdisk/log/mut.h"
#include "tests/sim/sim.h"

#define DROP_TURNS_MAX 400000u
#define FRONT_BYTES 16384u /* labels and superblocks */

struct logstruct {
	struct sim_client c;
	struct vlog_spec spec;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	unsigned n, m;
	struct bdev *vdisk;
	bool opening, closing, returning;
	uint64_t return_ns; /* not before */
	uint32_t last_sick;
};

static const struct {
	unsigned k, m, spare;
} shapes[] = {
	{ 1, 1, 0 }, { 2, 1, 0 }, { 2, 1, 1 }, { 4, 1, 0 }, { 4, 1, 1 },
	{ 1, 2, 0 }, { 4, 2, 0 }, { 4, 2, 1 }, { 1, 3, 0 }, { 2, 2, 0 }
};

static struct logstruct *log_of(struct sim_client *c)
{
	return container_of(c, struct logstruct, c);
}

static void tune_pick(struct sim *sim, struct vlog_spec *spec, unsigned n)
{
	struct vlog_tune *t = &spec->tune;
	const unsigned k = spec->policy.k, m = spec->policy.m;
	uint64_t chunk, worst;

	t->unit_bytes = 16384u << sim_below(sim, 2);
	t->stripes = 2 + (uint32_t)sim_below(sim, 3);
	t->zone_bytes = (272u << 10) + 4096 * (uint32_t)sim_below(sim, 40);
	t->zones = 4 + (uint32_t)sim_below(sim, 3);
	t->buffer_bytes = 4 * k * t->unit_bytes;
	if (t->buffer_bytes < 128 << 10)
		t->buffer_bytes = 128 << 10;
	/* Fits even while k' is 1: all live, the buffer, and what is open. */
	chunk = (uint64_t)(t->unit_bytes - 8192) * t->stripes;
	worst = (spec->size_bytes + 2 * t->buffer_bytes) / chunk + 4;
	t->slots = (uint32_t)(worst * (1 + m) / (n - m) + 10);
}

static struct sim_client *log_make(struct sim *sim)
{
	struct logstruct *ls = calloc(1, sizeof(*ls));
	struct sim_client *c = &ls->c;
	const size_t s = sim_below(sim, array_len(shapes));
	unsigned n;

	id_assert(ls);
	ls->m = shapes[s].m;
	n = shapes[s].k + ls->m;
	if (n < 2 * ls->m + 1)
		n = 2 * ls->m + 1;
	ls->n = n + shapes[s].spare;
	c->ops = &sim_log_ops;
	c->sim = sim;
	c->promise = (struct sim_promise) { .durable_ack = true,
					    .atomic = true,
					    .checksums = true,
					    .trim = true,
					    .failsafe = true };
	c->io_bytes = SIM_BLOCK;
	c->bytes = sim->profile->vdisk_bytes / SIM_BLOCK * SIM_BLOCK;
	c->drives = ls->n;
	ls->spec = (struct vlog_spec) {
		.cluster = "lab",
		.name = "v",
		.size_bytes = c->bytes,
		.policy = { .raid = RAID_5,
			    .k = (uint8_t)shapes[s].k,
			    .m = (uint8_t)shapes[s].m },
		.codec = (enum vlog_codec)sim_below(sim, 3),
		.slot = ls->slot,
		.slots = ls->n,
	};
	tune_pick(sim, &ls->spec, ls->n);
	c->drive_bytes = vlog_member_bytes(&ls->spec);
	id_assert(c->drive_bytes);
#ifdef IODECK_MUTATIONS
	if (getenv("LOG_FAULT"))
		vlog_mut = (enum vlog_mut)atoi(getenv("LOG_FAULT"));
#endif
	return c;
}

static void log_free(struct sim_client *c)
{
	free(log_of(c));
}

static void log_describe(struct sim_client *c, char *buf, size_t len)
{
	const struct logstruct *ls = log_of(c);

	snprintf(buf, len, "log %u+%u on %u, unit %u, %llu KiB",
		 ls->spec.policy.k, ls->m, ls->n, ls->spec.tune.unit_bytes,
		 (unsigned long long)(c->bytes / KIB));
}

/* ---- life ---------------------------------------------------------------- */

static void component_closed(void *arg)
{
	(void)arg;
}

static void components_close(struct logstruct *ls)
{
	for (unsigned i = 0; i < ls->n; i++)
		if (ls->slot[i].bdev)
			bdev_close(ls->slot[i].bdev, component_closed, NULL);
}

static void components_open(struct logstruct *ls)
{
	for (unsigned i = 0; i < ls->n; i++) {
		struct vdisk_slot *s = &ls->slot[i];

		memset(s, 0, sizeof(*s));
		if (sim_drive_open(&ls->c.sim->drive[i], &s->bdev))
			s->bdev = NULL;
		if (!s->bdev)
			ls->last_sick |= 1u << i;
		snprintf(s->domain, sizeof(s->domain), "f%u", i);
		snprintf(s->drive, sizeof(s->drive), "d%u", i);
		snprintf(s->component, sizeof(s->component), "c%u", i);
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
	if (sim->phase != SIM_OPENING)
		return;
	if (result == -EAGAIN) { /* too few just then: once more, later */
		sim_note(sim, "not yet: %s", err->text);
		sim->phase = SIM_DOWN;
		return;
	}
	sim_up(sim, vdisk, err);
}

static void log_create(struct sim_client *c)
{
	struct logstruct *ls = log_of(c);

	components_open(ls);
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
	components_open(ls);
	spec.slot = ls->slot;
	ls->opening = true;
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
	id_assert(!ls->returning);
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
}

static void log_tick(struct sim_client *c, bool calm)
{
	struct logstruct *ls = log_of(c);
	struct vlog_info info;

	vlog_info(ls->vdisk, &info);
	if (info.state == VDISK_FAILED)
		sim_violation(c->sim, "the vDisk has failed: %s", info.reason);
	if (ls->returning || reactor_now(c->sim->r) < ls->return_ns ||
	    (!calm && sim_below(c->sim, 8)))
		return;
	for (unsigned i = 0; i < ls->n; i++) {
		struct bdev *bdev;

		if (info.slot[i].bdev ||
		    sim_drive_open(&c->sim->drive[i], &bdev))
			continue;
		sim_note(c->sim, "giving back %u", i);
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
	for (unsigned i = 0; i < ls->n; i++)
		if (sim_drive_stuck(&c->sim->drive[i]))
			stuck |= 1u << i;
	if (!ls->vdisk || ls->closing) {
		for (unsigned i = 0; i < ls->n; i++)
			if (c->sim->drive[i].struck)
				ls->last_sick |= 1u << i;
		return ls->last_sick | stuck;
	}
	vlog_info(ls->vdisk, &info);
	ls->last_sick = stuck;
	for (unsigned i = 0; i < ls->n; i++)
		if (info.slot[i].state != MEMBER_OK)
			ls->last_sick |= 1u << i;
	return ls->last_sick;
}

static bool log_tolerates(struct sim_client *c, uint32_t mask)
{
	return (unsigned)__builtin_popcount(mask) <= log_of(c)->m;
}

static bool log_crash_ok(struct sim_client *c)
{
	(void)c;
	return true;
}

static void log_crashed(struct sim_client *c, bool busy)
{
	(void)busy;
	log_sick(c);
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

static void log_check(struct sim_client *c)
{
	struct err err = { 0 };

	if (vlog_check(log_of(c)->vdisk, &err))
		sim_violation(c->sim, "invariant: %s", err.text);
}

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
	.rested = log_rested,
	.check = log_check,
	.describe = log_describe,
};
