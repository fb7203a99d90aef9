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
#define FOREIGN_TURNS_MAX 4000u
#define READS_AGAIN 20u

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

/* ---- crashes ------------------------------------------------------------- */

static bool any_hot(struct sim *sim)
{
	for (unsigned i = 0; i < sim->client->drives; i++)
		if (sim_drive_hot(&sim->drive[i]))
			return true;
	return false;
}

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
	sim->stats.close_crashes += sim->phase == SIM_CLOSING;
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
	if (!sim->calm && sim_chance(sim, sim->profile->swizzle))
		sim_swizzle(sim);
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
	if (c->chunk_bytes && len > c->chunk_bytes - at % c->chunk_bytes)
		len = c->chunk_bytes - at % c->chunk_bytes;
	if (sim_below(sim, 40) == 0) {
		sim->flushing = true;
		oracle_flush(sim->oracle);
	} else if (sim_below(sim, 100) >= p->write_share) {
		oracle_read(sim->oracle, at, (uint32_t)len);
	} else if (c->promise.trim && sim_below(sim, c->full ? 4 : 16) == 0) {
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
	sim->forgive = sim->beyond;
	sim->stats.opens++;
	if (!sim->calm && sim_below(sim, 2))
		oracle_read_all(sim->oracle);
}

void sim_refused(struct sim *sim)
{
	sim->stats.refused++;
	sim->phase = SIM_DOWN;
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

void sim_stopped(struct sim *sim)
{
	close_start(sim);
}

static void step(struct sim *sim)
{
	const struct sim_profile *p = sim->profile;
	const bool hot = any_hot(sim);
	const unsigned crash =
		p->crash * (hot ? HOT_FACTOR : 1) *
		(sim->client->crash_factor ? sim->client->crash_factor : 1);

	sim_turn(sim);
	sim_faults(sim, hot);
	if (sim->phase == SIM_DOWN && sim_below(sim, 4) == 0)
		open_start(sim);
	if (sim->phase == SIM_RUNNING) {
		load(sim);
		sim->client->ops->tick(sim->client, false);
	}
	if (sim->quiesce)
		quiesce_step(sim);
	else if (sim->phase != SIM_DOWN && sim_chance(sim, crash))
		crash_decide(sim);
	else if (sim->phase == SIM_RUNNING && sim_chance(sim, p->shut))
		close_start(sim);
}

/* ---- the end ------------------------------------------------------------- */

static void all_back(struct sim *sim)
{
	sim_note(sim, "all drives are back");
	for (unsigned i = 0; i < sim->client->drives; i++) {
		struct sim_drive *d = &sim->drive[i];

		sim_drive_return(d);
		d->once = SIM_ONCE_NONE;
		d->slow = 1;
		sim_drive_free_stuck(d);
	}
}

static void all_well(struct sim *sim)
{
	all_back(sim);
	for (unsigned i = 0; i < sim->client->drives; i++)
		sim_drive_heal(&sim->drive[i]);
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

static void never(struct sim *sim, const char *what)
{
	const struct sim_client_ops *ops = sim->client->ops;
	char text[400] = "not open";

	if (sim->phase == SIM_RUNNING && ops->tell)
		ops->tell(sim->client, text, sizeof(text));
	sim_violation(sim, "with all drives well: %s (%s)", what, text);
}

static void until(struct sim *sim, bool (*done)(struct sim *sim),
		  const char *what)
{
	for (unsigned i = 0; !done(sim); i++) {
		if (i == REST_TURNS_MAX)
			never(sim, what);
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

/*
 * What is whole stands without any drives it can do without. Not said of
 * layouts whose members are not all in use.
 */
static void read_without(struct sim *sim)
{
	const unsigned n = sim->client->drives;

	if (!sim->client->promise.failsafe)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct sim_drive *d = &sim->drive[sim_below(sim, n)];
		const uint32_t gone = sim_budget_used(sim) | 1u << d->index;

		if (!d->away && sim->client->ops->tolerates(sim->client, gone))
			sim_drive_leave(d, false);
	}
	read_through(sim);
	all_well(sim);
	until(sim, all_rests, "it never comes to rest without some drives");
}

/* What a read put right is right when it is read again. */
static void read_again(struct sim *sim)
{
	struct sim_client *c = sim->client;
	uint64_t before, after = 0;
	unsigned reads = 0;

	/* Beyond the budget nothing was damaged. */
	if (!c->ops->repairs || sim->forgive)
		return;
	all_back(sim);
	do {
		until(sim, phase_is_running, "it never opens with damage left");
		before = c->ops->repairs(c);
		read_through(sim);
		after = c->ops->repairs(c);
		/* Of mirrors, not the same is read each time. */
	} while (before != after && ++reads < READS_AGAIN);
	if (before != after)
		sim_violation(sim, "what was repaired is wrong again");
}

static void end(struct sim *sim)
{
	sim->calm = true;
	sim->quiesce = false;
	sim->fuse = 0;
	sim->beyond = false;
	read_again(sim);
	all_well(sim);
	/* Too many have died under it, and it has not noticed yet. */
	if (sim->forgive && sim_budget_overdrawn(sim))
		crash_now(sim);
	until(sim, all_rests, "it never comes to rest");
	sim->forgive = false;
	read_through(sim);
	sim->client->ops->check(sim->client);
	read_without(sim);
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

/* ---- the beginning ------------------------------------------------------- */

/*
 * Dies while it creates, once or more, maybe with drives that fail; what that
 * left behind is either a whole vDisk, then it opens, or none.
 */
static void create_in_vain(struct sim *sim)
{
	struct sim_client *c = sim->client;
	struct sim_drive *d = &sim->drive[sim_below(sim, c->drives)];
	const unsigned fuse = (unsigned)sim_below(sim, 60);

	sim_note(sim, "to be created in vain");
	sim->phase = SIM_NEW;
	if (sim_below(sim, 2))
		d->once = (enum sim_once)(1 + sim_below(sim, SIM_FLUSH_ERROR));
	c->ops->create(c);
	for (unsigned i = 0; i < fuse && sim->phase == SIM_NEW; i++)
		sim_turn(sim);
	d->once = SIM_ONCE_NONE;
	sim->stats.create_crashes++;
	crash_now(sim);
	sim_drive_heal(d);
	sim->phase = SIM_NEW;
	c->ops->open_half(c);
	for (unsigned i = 0; sim->phase == SIM_NEW; i++) {
		if (i == FOREIGN_TURNS_MAX)
			sim_violation(sim, "what was created in vain neither "
					   "opens nor is refused");
		sim_turn(sim);
	}
	if (sim->phase == SIM_RUNNING)
		read_through(sim);
	crash_now(sim);
}

static void begin(struct sim *sim)
{
	sim->calm = true;
	if (sim->client->ops->open_half)
		while (sim_below(sim, 6) == 0)
			create_in_vain(sim);
	sim->phase = SIM_OPENING;
	sim->client->ops->create(sim->client);
	until(sim, phase_is_running, "it is never created");
	sim->calm = false;
	sim->beyond = sim->client->promise.failsafe && sim_below(sim, 8) == 0;
	sim->forgive = sim->beyond;
	sim->stats.beyond += sim->beyond;
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
	begin(&sim);
	for (unsigned i = 0; i < profile->turns; i++)
		step(&sim);
	end(&sim);
	sim.stats.seeds = 1;
	stats_add(stats, &sim.stats);
	sim_fini(&sim);
}
