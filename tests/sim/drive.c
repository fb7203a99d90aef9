/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A drive of the simulator: what it holds is media.c's; here is what may be
 * asked of it and what becomes of that. A handle (bdev) is a connection: it
 * dies when the drive goes or the owner crashes, and never touches the drive
 * again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/media.h"
#include "tests/sim/oracle.h"

struct handle {
	struct bdev bdev;
	struct sim_drive *drive; /* NULL: dead */
	struct sim_drive *was;
	struct flight *flights;
};

struct flight {
	struct io *io;
	struct handle *handle;
	struct flight *next;
	struct timer timer;
	uint64_t seq; /* FLUSH: what landed before */
	bool stuck;
};

/* ---- one I/O ------------------------------------------------------------- */

static const uint8_t *io_sector(const struct io *io, uint64_t i)
{
	return io->op == BDEV_TRIM ? NULL
				   : (const uint8_t *)io->buf + i * SIM_SECTOR;
}

static void write_land(struct sim_drive *d, const struct io *io,
		       unsigned percent)
{
	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++)
		if (percent == 100 || sim_below(d->sim, 100) < percent)
			media_land(d, io->off / SIM_SECTOR + i,
				   io_sector(io, i));
}

static void write_durable(struct sim_drive *d, const struct io *io)
{
	struct sim_media *m = d->media;
	bool sweep = false;

	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++) {
		const uint64_t s = io->off / SIM_SECTOR + i;

		sweep |= m->newest[s] != NULL;
		media_forget(m, s);
		media_set(d, s, io_sector(io, i));
	}
	if (sweep)
		media_sweep(m);
}

/* Acknowledged, and not there; or there, at another place. */
static void write_astray(struct sim_drive *d, const struct io *io, bool lost)
{
	struct sim_client *c = d->sim->client;
	uint64_t to = sim_below(d->sim, d->bytes / SIM_SECTOR);
	const uint64_t from = io->off / SIM_SECTOR;
	uint8_t old[SIM_SECTOR];

	media_damage_tell(d, io->off);
	if (!lost && c->promise.checksums) {
		/* Rather onto something of use, and as it is laid out. */
		if (sim_below(d->sim, 2))
			to = sim_drive_recent(d);
		if (sim_below(d->sim, 4) == 0)
			to = sim_below(d->sim, 32);
		to = to / 8 * 8;
		media_damage_tell(d, to * SIM_SECTOR);
	}
	if (!c->promise.checksums) /* stays near, within what is checked */
		to = from ^ (uint64_t)(16 + sim_below(d->sim, 2) * 16);
	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++) {
		if (!lost && to + i < d->bytes / SIM_SECTOR &&
		    c->ops->damage_ok(c, (to + i) * SIM_SECTOR, true)) {
			memcpy(old, media_visible(d->media, to + i),
			       SIM_SECTOR);
			media_rot(d, to + i, old, io_sector(io, i));
		}
		memcpy(old, media_visible(d->media, from + i), SIM_SECTOR);
		media_rot(d, from + i, io_sector(io, i), old);
	}
}

static bool once_fits(const struct sim_drive *d, const struct io *io)
{
	struct sim_client *c = d->sim->client;

	switch (d->once) {
	case SIM_READ_ERROR:
		return io->op == BDEV_READ;
	case SIM_WRITE_ERROR:
	case SIM_WRITE_FULL:
		return io->op == BDEV_WRITE;
	case SIM_WRITE_LOST:
	case SIM_WRITE_ASTRAY:
		return io->op == BDEV_WRITE &&
		       c->ops->damage_ok(c, io->off, true) &&
		       c->ops->damage_ok(c, io->off + io->len - 1, true);
	case SIM_FLUSH_ERROR:
		return io->op == BDEV_FLUSH;
	default:
		return false;
	}
}

static const char *const once_name[] = {
	"none",        "read error", "write error",  "full",
	"flush error", "lost write", "write astray", "stuck",
};

/* What was armed happens. */
static int once_do(struct sim_drive *d, const struct io *io)
{
	const enum sim_once once = d->once;

	d->once = SIM_ONCE_NONE;
	d->struck = true;
	d->sim->stats.once[once]++;
	sim_note(d->sim, "drive %u: %s at %llu+%u", d->index, once_name[once],
		 (unsigned long long)io->off, io->len);
	switch (once) {
	case SIM_WRITE_ERROR:
	case SIM_WRITE_FULL:
		d->hurt = true;
		write_land(d, io, (unsigned)sim_below(d->sim, 3) * 50);
		return once == SIM_WRITE_FULL ? -ENOSPC : -EIO;
	case SIM_FLUSH_ERROR:
		d->hurt = true;
		media_cut(d);
		return -EIO;
	case SIM_WRITE_LOST:
	case SIM_WRITE_ASTRAY:
		write_astray(d, io, once == SIM_WRITE_LOST);
		return 0;
	default:
		d->read_clock = oracle_clock(d->sim->oracle);
		return -EIO;
	}
}

static int drive_read(struct sim_drive *d, const struct io *io)
{
	struct sim_media *m = d->media;
	const uint64_t first = io->off / SIM_SECTOR;

	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++) {
		if (m->bad[first + i] && !m->newest[first + i]) {
			if (m->bad[first + i] == BAD) {
				d->struck = true;
				d->read_clock = oracle_clock(d->sim->oracle);
			}
			return -EIO;
		}
		media_read(d, first + i, (uint8_t *)io->buf + i * SIM_SECTOR);
	}
	return 0;
}

static int drive_do(struct sim_drive *d, const struct flight *f)
{
	const struct io *io = f->io;

	if (once_fits(d, io))
		return once_do(d, io);
	switch (io->op) {
	case BDEV_READ:
		return drive_read(d, io);
	case BDEV_FLUSH:
		media_flush(d, f->seq);
		return 0;
	default:
		if (io->flags & BDEV_FUA)
			write_durable(d, io);
		else
			write_land(d, io, 100);
		return 0;
	}
}

/* ---- handles ------------------------------------------------------------- */

static void flight_remove(struct flight *f)
{
	struct flight **at = &f->handle->flights;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
}

static void flight_end(struct timer *timer)
{
	struct flight *f = container_of(timer, struct flight, timer);
	struct sim_drive *d = f->handle->drive;
	struct io *io = f->io;
	const int rc = d ? drive_do(d, f) : -ENODEV;

	flight_remove(f);
	free(f);
	bdev_complete(io, rc);
}

static uint64_t latency_ns(struct sim_drive *d, enum bdev_op op)
{
	double mean = (double)d->sim->profile->latency_ns * d->slow;

	/* Some reads are still under way when all else has moved on; but not
	 * for so long that their drive is given up. */
	if (op == BDEV_READ && d->slow <= 10 &&
	    d->sim->client->promise.checksums && sim_below(d->sim, 48) == 0)
		mean *= 40;
	return (uint64_t)(mean * (0.2 - log(rng_unit(&d->sim->rng)))) + 1;
}

static void handle_submit(struct bdev *bdev, struct io *io)
{
	struct handle *h = (struct handle *)bdev;
	struct flight *f = calloc(1, sizeof(*f));
	struct sim_drive *d = h->drive;

	id_assert(f);
	f->io = io;
	f->handle = h;
	f->next = h->flights;
	h->flights = f;
	f->timer.fn = flight_end;
	if (d && io->op == BDEV_WRITE && d->sim->client->ops->writing)
		d->sim->client->ops->writing(d->sim->client, d->index, io->off);
	if (d && io->op == BDEV_FLUSH)
		f->seq = d->media->seq;
	if (d && d->once == SIM_STUCK) {
		d->once = SIM_ONCE_NONE;
		d->sim->stats.once[SIM_STUCK]++;
		f->stuck = true;
		sim_note(d->sim, "drive %u: stuck at %llu+%u", d->index,
			 (unsigned long long)io->off, io->len);
		return;
	}
	/* A write in flight may be seen, sector by sector. */
	if (d && io->op == BDEV_WRITE && !d->once && sim_chance(d->sim, 4096))
		write_land(d, io, 50);
	timer_arm(bdev->reactor, &f->timer,
		  reactor_now(bdev->reactor) +
			  (d ? latency_ns(d, (enum bdev_op)io->op) : 1000));
}

static void handle_close(struct bdev *bdev)
{
	struct handle *h = (struct handle *)bdev;

	id_assert(!h->flights);
	if (h->was->handle == bdev) {
		h->was->handle = NULL;
		h->was->hurt = false;
		media_unsee(h->was);
	}
	h->was->sim->handles--;
	bdev_closed(bdev);
}

static const struct bdev_ops handle_ops = {
	.kind = "sim",
	.submit = handle_submit,
	.close = handle_close,
};

int sim_drive_open(struct sim_drive *d, struct bdev **bdev)
{
	struct handle *h;
	char name[16];

	if (d->away)
		return -ENODEV;
	if (d->handle)
		return -EBUSY;
	h = calloc(1, sizeof(*h));
	id_assert(h);
	snprintf(name, sizeof(name), "d%u", d->index);
	bdev_init(&h->bdev, &handle_ops, d->sim->r, name);
	h->bdev.limits = (struct bdev_limits) {
		.size_bytes = d->bytes,
		.block_bytes = d->sim->client->io_bytes,
		.phys_bytes = SIM_BLOCK,
		.align_bytes = SIM_SECTOR,
		.io_max_bytes = 1u << 20,
		.can_flush = true,
		/* in some runs, some have FLUSH alone */
		.can_fua = d->sim->seed % 4 || d->index % 3 != 2,
		.can_trim = d->sim->client->promise.trim,
		.trim_zeroes = d->sim->client->promise.trim,
	};
	h->drive = h->was = d;
	d->handle = *bdev = &h->bdev;
	d->struck = false;
	d->sim->handles++;
	return 0;
}

/* ---- writes that outlive their connection (planted) -----------------------
 */

bool sim_ghosts;

struct ghost {
	struct timer timer;
	struct ghost *next;
	struct sim_drive *drive;
	uint64_t sector;
	uint32_t sectors;
	uint8_t data[];
};

void sim_ghost_free(struct ghost *g)
{
	struct ghost **at = &g->drive->ghosts;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	timer_cancel(g->drive->sim->r, &g->timer);
	free(g);
}

static void ghost_lands(struct timer *timer)
{
	struct ghost *g = container_of(timer, struct ghost, timer);

	sim_note(g->drive->sim, "drive %u: a late write lands at sector %llu",
		 g->drive->index, (unsigned long long)g->sector);
	g->drive->sim->stats.ghosts++;
	for (uint32_t i = 0; i < g->sectors; i++)
		media_land(g->drive, g->sector + i, g->data + i * SIM_SECTOR);
	sim_ghost_free(g);
}

static void ghost_leave(struct sim_drive *d, const struct io *io)
{
	struct ghost *g = malloc(sizeof(*g) + io->len);

	id_assert(g);
	*g = (struct ghost) { .timer = { .fn = ghost_lands },
			      .next = d->ghosts,
			      .drive = d,
			      .sector = io->off / SIM_SECTOR,
			      .sectors = io->len / SIM_SECTOR };
	memcpy(g->data, io->buf, io->len);
	d->ghosts = g;
	timer_arm(d->sim->r, &g->timer,
		  reactor_now(d->sim->r) + sim_below(d->sim, 20 * MSEC_NS));
}

/* In flight on a handle that dies: each sector may have landed. */
static void handle_kill(struct handle *h)
{
	struct sim_drive *d = h->drive;
	struct reactor *r = h->bdev.reactor;

	if (!d)
		return;
	for (struct flight *f = h->flights; f; f = f->next) {
		const struct io *io = f->io;

		if (io->op == BDEV_WRITE || io->op == BDEV_TRIM)
			write_land(d, io, (unsigned)sim_below(d->sim, 3) * 50);
		if (sim_ghosts && io->op == BDEV_WRITE)
			ghost_leave(d, io);
		f->stuck = false;
		timer_arm(r, &f->timer,
			  reactor_now(r) + sim_below(d->sim, 200000));
	}
	h->drive = NULL;
	media_unsee(d);
}

static void drive_kill(struct sim_drive *d)
{
	if (d->handle)
		handle_kill((struct handle *)d->handle);
}

void sim_drive_leave(struct sim_drive *d, bool power)
{
	sim_note(d->sim, "drive %u goes%s", d->index, power ? ", power" : "");
	d->sim->stats.leaves++;
	d->away = true;
	d->hurt = d->handle != NULL; /* until its owner has noticed */
	d->struck = true;
	d->once = SIM_ONCE_NONE;
	drive_kill(d);
	if (power)
		media_power_cut(d);
}

void sim_drive_return(struct sim_drive *d)
{
	if (!d->away)
		return;
	sim_note(d->sim, "drive %u is back", d->index);
	d->sim->stats.returns++;
	d->away = false;
}

/* The dead owner's handle does not keep the next one out. */
void sim_drive_crash(struct sim_drive *d, bool power)
{
	d->once = SIM_ONCE_NONE;
	drive_kill(d);
	d->handle = NULL;
	d->hurt = false;
	if (power && !d->away)
		media_power_cut(d);
}

bool sim_drive_stuck(const struct sim_drive *d)
{
	const struct handle *h = (const struct handle *)d->handle;

	for (const struct flight *f = h ? h->flights : NULL; f; f = f->next)
		if (f->stuck)
			return true;
	return false;
}

void sim_drive_free_stuck(struct sim_drive *d)
{
	struct handle *h = (struct handle *)d->handle;

	for (struct flight *f = h ? h->flights : NULL; f; f = f->next)
		if (f->stuck) {
			f->stuck = false;
			timer_arm(d->sim->r, &f->timer, reactor_now(d->sim->r));
		}
}

/* Of what is written while it opens all is: it may die anywhere there, and
 * leave no trace. */
bool sim_drive_hot(const struct sim_drive *d)
{
	const struct handle *h = (const struct handle *)d->handle;
	struct sim_client *c = d->sim->client;

	for (const struct flight *f = h ? h->flights : NULL; f; f = f->next)
		if (f->io->op == BDEV_WRITE &&
		    (c->ops->hot(c, f->io->off, f->io->len) ||
		     (c->promise.failsafe && d->sim->phase == SIM_OPENING)))
			return true;
	return false;
}
