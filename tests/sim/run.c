/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One seed. Each turn of the reactor the dice are thrown: for the load, for
 * faults on drives within the budget, for a crash.
 *
 *   create --> [ load + faults + crashes: open, run, close ] --> calm: all
 *   drives back and well, no load --> everything rests --> read all, check in
 *   depth, crash once more, open, read all, close
 *
 * A crash is the owner's end: its handles die where they are. With power, what
 * drives had not made durable is lost, sector by sector.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/oracle.h"

#define REST_TURNS_MAX 400000u
#define HOT_FACTOR 10u /* likelier while labels are being written */

/* ---- history ------------------------------------------------------------- */

static void stamp_print(struct sim *sim)
{
	const uint64_t ns = reactor_now(sim->r) - 1000 * SEC_NS;

	printf("%8llu.%06llu ms  ", (unsigned long long)(ns / MSEC_NS),
	       (unsigned long long)(ns % MSEC_NS));
}

void sim_note(struct sim *sim, const char *fmt, ...)
{
	va_list ap;

	if (!sim->verbose)
		return;
	stamp_print(sim);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void sim_violation(struct sim *sim, const char *fmt, ...)
{
	char about[160] = "";
	va_list ap;

	stamp_print(sim);
	printf("violation: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (sim->client)
		sim->client->ops->describe(sim->client, about, sizeof(about));
	printf("\n  %s; repeat: sim --layout %s --profile %s --seed %llu -v\n",
	       about, sim->client ? sim->client->ops->name : "-",
	       sim->profile->name, (unsigned long long)sim->seed);
	fflush(stdout);
	_exit(SIM_EXIT_VIOLATION);
}

/* ---- the budget ---------------------------------------------------------- */

uint32_t sim_budget_used(struct sim *sim)
{
	struct sim_client *c = sim->client;
	const uint64_t oldest = oracle_oldest(sim->oracle);
	uint32_t mask = c->ops->sick(c);

	for (unsigned i = 0; i < c->drives; i++) {
		const struct sim_drive *d = &sim->drive[i];

		/* What a failed read is part of may still be under way. */
		if (d->away || d->once || d->hurt || d->bad || d->rotten ||
		    d->read_clock >= oldest)
			mask |= 1u << i;
	}
	return mask;
}

/* One more drive may be struck. */
static bool budget_allows(struct sim *sim, unsigned i)
{
	struct sim_client *c = sim->client;

	return !c->ops->fragile(c) &&
	       c->ops->tolerates(c, sim_budget_used(sim) | 1u << i);
}

/* ---- faults -------------------------------------------------------------- */

static void fault_away(struct sim *sim, struct sim_drive *d)
{
	if (!d->away && budget_allows(sim, d->index))
		sim_drive_leave(d, sim_below(sim, 2));
}

static void fault_slow(struct sim *sim, struct sim_drive *d)
{
	static const double factor[] = { 1, 1, 10, 100, 1000 };

	d->slow = factor[sim_below(sim, array_len(factor))];
	sim_note(sim, "drive %u is %g times slower", d->index, d->slow);
}

static void fault_once(struct sim *sim, struct sim_drive *d)
{
	const enum sim_once once =
		(enum sim_once)(1 + sim_below(sim, SIM_STUCK));

	if (d->once) {
		d->once = SIM_ONCE_NONE; /* it did not come to it */
		return;
	}
	if (d->away || !budget_allows(sim, d->index))
		return;
	d->once = once;
}

static void fault_damage(struct sim *sim, struct sim_drive *d, bool rot)
{
	struct sim_client *c = sim->client;
	struct sim_range range = {
		.off = sim_below(sim, d->bytes / SIM_SECTOR) * SIM_SECTOR,
		.len = (1 + sim_below(sim, 8)) * SIM_SECTOR,
	};

	if (sim_below(sim, 4) == 0) /* labels and their like are at the start */
		range.off = sim_below(sim, 64) * SIM_SECTOR;
	if (range.off + range.len > d->bytes ||
	    !c->ops->damage_ok(c, range.off, rot) ||
	    !c->ops->damage_ok(c, range.off + range.len - 1, rot) ||
	    !budget_allows(sim, d->index))
		return;
	sim_note(sim, "drive %u: %s at %llu+%llu", d->index,
		 rot ? "rot" : "bad sectors", (unsigned long long)range.off,
		 (unsigned long long)range.len);
	sim->stats.damaged++;
	sim_drive_damage(d, range, rot);
}

static bool any_hot(struct sim *sim)
{
	for (unsigned i = 0; i < sim->client->drives; i++)
		if (sim_drive_hot(&sim->drive[i]))
			return true;
	return false;
}

static void faults(struct sim *sim, bool hot)
{
	const struct sim_profile *p = sim->profile;
	const unsigned n = sim->client->drives;
	struct sim_drive *d = &sim->drive[sim_below(sim, n)];

	if (sim_chance(sim, p->away * (hot ? HOT_FACTOR : 1)))
		fault_away(sim, d);
	if (sim_chance(sim, p->back * (hot ? HOT_FACTOR : 1)) ||
	    (d->away && sim_chance(sim, p->back * n)))
		sim_drive_return(d);
	if (sim_chance(sim, p->slow))
		fault_slow(sim, d);
	if (sim_chance(sim, p->once))
		fault_once(sim, d);
	if (sim_chance(sim, p->bad))
		fault_damage(sim, d, false);
	if (sim_chance(sim, p->rot))
		fault_damage(sim, d, true);
	if (sim_chance(sim, p->heal))
		sim_drive_heal(d);
	if (sim_chance(sim, 256))
		sim_drive_free_stuck(d);
}

/* ---- crashes ------------------------------------------------------------- */

/* A drive that failed may have dropped writes, and nobody knows of it yet. */
static bool any_hurt(struct sim *sim)
{
	for (unsigned i = 0; i < sim->client->drives; i++)
		if (sim->drive[i].struck)
			return true;
	return false;
}

static void crash_now(struct sim *sim)
{
	struct sim_client *c = sim->client;
	const bool busy = !oracle_durable(sim->oracle);
	const bool power = sim_below(sim, 3) != 0 || any_hurt(sim);

	sim_note(sim, "CRASH%s%s", power ? ", power" : "",
		 busy ? ", writes under way" : "");
	sim->stats.crashes++;
	sim->stats.power_cuts += power;
	sim->stats.open_crashes += sim->phase == SIM_OPENING;
	c->ops->crashed(c, busy);
	for (unsigned i = 0; i < c->drives; i++) {
		if (busy && !c->promise.failsafe)
			sim_drive_heal(&sim->drive[i]);
		sim_drive_crash(&sim->drive[i], power);
	}
	oracle_crash(sim->oracle, power);
	sim->phase = SIM_DOWN;
	sim->vdisk = NULL;
	sim->quiesce = sim->flushing = false;
	sim->fuse = 0;
	c->ops->drop(c);
}

/*
 * A layout without protection against the write hole crashes with writes under
 * way only while all its members are there; else they come to their end first.
 */
static void crash_decide(struct sim *sim)
{
	struct sim_client *c = sim->client;

	if (c->promise.failsafe || oracle_durable(sim->oracle) ||
	    c->ops->crash_ok(c))
		crash_now(sim);
	else
		sim->quiesce = true;
}

static void quiesce_step(struct sim *sim)
{
	if (sim->fuse) {
		if (--sim->fuse == 0)
			crash_now(sim);
		return;
	}
	if (sim->phase != SIM_RUNNING) {
		sim->quiesce = false;
		return;
	}
	if (oracle_inflight(sim->oracle))
		return;
	if (!oracle_durable(sim->oracle)) {
		sim->flushing = true;
		oracle_flush(sim->oracle);
		return;
	}
	sim->fuse = 1 + (unsigned)sim_below(sim, 40);
}

/* ---- load ---------------------------------------------------------------- */

static void load_one(struct sim *sim)
{
	struct sim_client *c = sim->client;
	const struct sim_profile *p = sim->profile;
	const uint64_t units = c->bytes / c->io_bytes;
	uint64_t at = sim_below(sim, units);
	uint64_t most = p->io_max / c->io_bytes, len;
	const bool fua = sim->vdisk->limits.can_fua && !sim_below(sim, 4);

	if (sim_below(sim, 3)) /* a few places are written often */
		at = at % (units / 8 + 1);
	if (most > units - at)
		most = units - at;
	len = sim_below(sim, 4) ? 1 + sim_below(sim, most < 8 ? most : 8)
				: 1 + sim_below(sim, most);
	at *= c->io_bytes;
	len *= c->io_bytes;
	if (sim_below(sim, 40) == 0) {
		sim->flushing = true;
		oracle_flush(sim->oracle);
	} else if (sim_below(sim, 100) >= p->write_share) {
		oracle_read(sim->oracle, at, (uint32_t)len);
	} else if (c->promise.trim && sim_below(sim, 16) == 0) {
		oracle_trim(sim->oracle, at, (uint32_t)len);
	} else if (!oracle_write(sim->oracle, at, (uint32_t)len,
				 fua ? BDEV_FUA : 0) &&
		   !sim->flushing) {
		sim->flushing = true;
		oracle_flush(sim->oracle);
	}
}

static void load(struct sim *sim)
{
	if (sim->quiesce ||
	    oracle_inflight(sim->oracle) >= sim->profile->depth ||
	    sim_below(sim, 2))
		return;
	load_one(sim);
}

/* ---- phases -------------------------------------------------------------- */

void sim_turn(struct sim *sim)
{
	sim->stats.turns++;
	reactor_run_once(sim->r, SEC_NS);
}

void sim_up(struct sim *sim, struct bdev *vdisk, const struct err *err)
{
	if (err)
		sim_violation(sim, "it does not open: %s", err->text);
	sim_note(sim, "open");
	sim->vdisk = vdisk;
	sim->phase = SIM_RUNNING;
	sim->stats.opens++;
	if (!sim->calm && sim_below(sim, 2))
		oracle_read_all(sim->oracle);
}

void sim_down(struct sim *sim)
{
	sim_note(sim, "closed");
	sim->phase = SIM_DOWN;
	sim->stats.closes++;
}

static void open_start(struct sim *sim)
{
	sim_note(sim, "opening");
	sim->phase = SIM_OPENING;
	sim->client->ops->open(sim->client);
}

static void close_start(struct sim *sim)
{
	if (oracle_inflight(sim->oracle))
		return;
	sim_note(sim, "closing");
	sim->phase = SIM_CLOSING;
	sim->vdisk = NULL;
	sim->quiesce = false;
	sim->fuse = 0;
	/* A clean end makes everything durable, or is none. */
	sim->client->ops->close(sim->client);
}

static void step(struct sim *sim)
{
	const struct sim_profile *p = sim->profile;
	const bool hot = any_hot(sim);

	sim_turn(sim);
	faults(sim, hot);
	if (sim->phase == SIM_DOWN && sim_below(sim, 4) == 0)
		open_start(sim);
	if (sim->phase == SIM_RUNNING) {
		load(sim);
		sim->client->ops->tick(sim->client, false);
	}
	if (sim->quiesce)
		quiesce_step(sim);
	else if (sim->phase != SIM_DOWN &&
		 sim_chance(sim, p->crash * (hot ? HOT_FACTOR : 1)))
		crash_decide(sim);
	else if (sim->phase == SIM_RUNNING && sim_chance(sim, p->shut))
		close_start(sim);
}

/* ---- the end ------------------------------------------------------------- */

static void all_well(struct sim *sim)
{
	sim_note(sim, "all drives are back and well");
	for (unsigned i = 0; i < sim->client->drives; i++) {
		struct sim_drive *d = &sim->drive[i];

		sim_drive_return(d);
		sim_drive_heal(d);
		d->once = SIM_ONCE_NONE;
		d->slow = 1;
		sim_drive_free_stuck(d);
	}
}

static bool phase_is_running(struct sim *sim)
{
	return sim->phase == SIM_RUNNING;
}

static bool phase_is_down(struct sim *sim)
{
	return sim->phase == SIM_DOWN;
}

static bool io_is_over(struct sim *sim)
{
	return !oracle_inflight(sim->oracle);
}

static bool all_rests(struct sim *sim)
{
	return sim->phase == SIM_RUNNING && io_is_over(sim) &&
	       sim->client->ops->rested(sim->client);
}

static void until(struct sim *sim, bool (*done)(struct sim *sim),
		  const char *what)
{
	for (unsigned i = 0; !done(sim); i++) {
		if (i == REST_TURNS_MAX)
			sim_violation(sim, "with all drives well: %s", what);
		if (sim->phase == SIM_DOWN)
			open_start(sim);
		sim_turn(sim);
		if (sim->phase == SIM_RUNNING)
			sim->client->ops->tick(sim->client, true);
	}
}

static void read_through(struct sim *sim)
{
	oracle_read_all(sim->oracle);
	until(sim, io_is_over, "reads never end");
}

static void end(struct sim *sim)
{
	sim->calm = true;
	sim->quiesce = false;
	sim->fuse = 0;
	all_well(sim);
	until(sim, all_rests, "it never comes to rest");
	read_through(sim);
	sim->client->ops->check(sim->client);
	oracle_flush(sim->oracle);
	until(sim, io_is_over, "a flush never ends");
	crash_now(sim);
	until(sim, phase_is_running, "it never opens");
	read_through(sim);
	until(sim, all_rests, "it never comes to rest after a crash");
	sim->phase = SIM_RUNNING;
	close_start(sim);
	for (unsigned i = 0; i < REST_TURNS_MAX && !phase_is_down(sim); i++)
		sim_turn(sim);
	if (!phase_is_down(sim))
		sim_violation(sim, "it never closes");
}

static void sim_init(struct sim *sim)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM,
					   .seed = sim->seed };
	struct err err = { 0 };

	rng_seed(&sim->rng, sim->seed * 1000003 + 17);
	if (reactor_new(&opts, &sim->r, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
}

static void sim_fini(struct sim *sim)
{
	for (unsigned i = 0; i < sim->client->drives; i++)
		sim_drive_fini(&sim->drive[i]);
	sim->client->ops->free(sim->client);
	oracle_free(sim->oracle);
	reactor_free(sim->r);
}

static void stats_add(struct sim_stats *to, const struct sim_stats *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

void sim_run(const struct sim_client_ops *ops,
	     const struct sim_profile *profile, uint64_t seed, bool verbose,
	     struct sim_stats *stats)
{
	struct sim sim = { .seed = seed,
			   .profile = profile,
			   .verbose = verbose };
	char about[160];

	sim_init(&sim);
	sim.client = ops->make(&sim);
	ops->describe(sim.client, about, sizeof(about));
	sim_note(&sim, "%s", about);
	for (unsigned i = 0; i < sim.client->drives; i++)
		id_assert(!sim_drive_init(&sim.drive[i], &sim, i,
					  sim.client->drive_bytes));
	sim.oracle = oracle_new(&sim);
	sim.phase = SIM_OPENING;
	sim.calm = true;
	ops->create(sim.client);
	until(&sim, phase_is_running, "it is never created");
	sim.calm = false;
	for (unsigned i = 0; i < profile->turns; i++)
		step(&sim);
	end(&sim);
	sim.stats.seeds = 1;
	stats_add(stats, &sim.stats);
	sim_fini(&sim);
}
