/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A drive of the simulator: a durable image, and for each sector written since
 * the last flush the chain of what was written, the newest of which is read.
 *
 *   sector --> newest --> older --> older     volatile
 *     \------> durable
 *
 * A power cut leaves any of them, sector by sector, and may shear one. A handle
 * (bdev) is a connection: it dies when the drive goes or the owner crashes, and
 * never touches the drive again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/oracle.h"

struct version {
	struct version *older;
	uint64_t seq; /* order of landing */
	uint8_t data[SIM_SECTOR];
};

/* A sector that does not durably hold what it should. */
struct rot {
	struct rot *next;
	uint64_t sector;
	uint8_t right[SIM_SECTOR];
};

enum { BAD = 1, SHORN };

struct sim_media {
	uint8_t *durable;
	struct version **newest; /* by sector */
	uint64_t *dirty;         /* sectors with a chain */
	size_t dirties, dirty_room;
	uint8_t *bad; /* by sector: reads fail */
	struct version *spare;
	struct rot *rot;
	uint64_t seq;
};

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

/* ---- the media ----------------------------------------------------------- */

int sim_drive_init(struct sim_drive *d, struct sim *sim, unsigned index,
		   uint64_t bytes)
{
	struct sim_media *m = calloc(1, sizeof(*m));

	*d = (struct sim_drive) { .sim = sim,
				  .index = index,
				  .bytes = bytes,
				  .slow = 1,
				  .media = m };
	m->durable = calloc(1, bytes);
	m->newest = calloc(bytes / SIM_SECTOR, sizeof(struct version *));
	m->bad = calloc(bytes / SIM_SECTOR, 1);
	return m->durable && m->newest && m->bad ? 0 : -ENOMEM;
}

static struct version *version_get(struct sim_media *m)
{
	struct version *v = m->spare;

	if (v)
		m->spare = v->older;
	else
		v = malloc(sizeof(*v));
	id_assert(v);
	return v;
}

/* This one and all older ones. */
static void versions_put(struct sim_media *m, struct version *v)
{
	while (v) {
		struct version *older = v->older;

		v->older = m->spare;
		m->spare = v;
		v = older;
	}
}

static void chain_free(struct sim_media *m, uint64_t s)
{
	versions_put(m, m->newest[s]);
	m->newest[s] = NULL;
}

static void dirty_all_free(struct sim_media *m)
{
	for (size_t i = 0; i < m->dirties; i++)
		chain_free(m, m->dirty[i]);
	m->dirties = 0;
}

static void rot_free(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	while (m->rot) {
		struct rot *rot = m->rot;

		m->rot = rot->next;
		free(rot);
	}
	d->rotten = 0;
}

void sim_drive_fini(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	if (!m)
		return;
	dirty_all_free(m);
	rot_free(d);
	while (m->spare) {
		struct version *v = m->spare;

		m->spare = v->older;
		free(v);
	}
	free(m->dirty);
	free(m->durable);
	free(m->newest);
	free(m->bad);
	free(m);
	d->media = NULL;
}

static uint8_t *durable(struct sim_media *m, uint64_t s)
{
	return m->durable + s * SIM_SECTOR;
}

static const uint8_t *visible(struct sim_media *m, uint64_t s)
{
	return m->newest[s] ? m->newest[s]->data : durable(m, s);
}

static struct rot **rot_find(struct sim_media *m, uint64_t s)
{
	struct rot **at = &m->rot;

	while (*at && (*at)->sector != s)
		at = &(*at)->next;
	return at;
}

/* Whatever was wrong with a sector is gone once it is durably written. */
static void damage_clear(struct sim_drive *d, uint64_t s)
{
	struct sim_media *m = d->media;
	struct rot **at, *rot;

	d->bad -= m->bad[s] == BAD;
	m->bad[s] = 0;
	if (!d->rotten)
		return;
	at = rot_find(m, s);
	rot = *at;
	if (rot) {
		*at = rot->next;
		free(rot);
		d->rotten--;
	}
}

static void dirty_add(struct sim_media *m, uint64_t s)
{
	if (m->dirties == m->dirty_room) {
		m->dirty_room = m->dirty_room ? 2 * m->dirty_room : 64;
		m->dirty = realloc(m->dirty, m->dirty_room * sizeof(*m->dirty));
		id_assert(m->dirty);
	}
	m->dirty[m->dirties++] = s;
}

/* data NULL: zeros */
static void land(struct sim_drive *d, uint64_t s, const uint8_t *data)
{
	struct sim_media *m = d->media;
	struct version *v = version_get(m);

	if (data)
		memcpy(v->data, data, SIM_SECTOR);
	else
		memset(v->data, 0, SIM_SECTOR);
	v->seq = ++m->seq;
	if (!m->newest[s])
		dirty_add(m, s);
	v->older = m->newest[s];
	m->newest[s] = v;
}

static void durable_set(struct sim_drive *d, uint64_t s, const uint8_t *data)
{
	damage_clear(d, s);
	if (data)
		memcpy(durable(d->media, s), data, SIM_SECTOR);
	else
		memset(durable(d->media, s), 0, SIM_SECTOR);
}

/* The chain's newest of at most seq becomes durable. */
static void sector_flush(struct sim_drive *d, uint64_t s, uint64_t seq)
{
	struct version **at = &d->media->newest[s];

	while (*at && (*at)->seq > seq)
		at = &(*at)->older;
	if (*at)
		durable_set(d, s, (*at)->data);
	versions_put(d->media, *at);
	*at = NULL;
}

static void dirty_sweep(struct sim_media *m)
{
	size_t keep = 0;

	for (size_t i = 0; i < m->dirties; i++)
		if (m->newest[m->dirty[i]])
			m->dirty[keep++] = m->dirty[i];
	m->dirties = keep;
}

static void media_flush(struct sim_drive *d, uint64_t seq)
{
	struct sim_media *m = d->media;

	for (size_t i = 0; i < m->dirties; i++)
		sector_flush(d, m->dirty[i], seq);
	dirty_sweep(m);
}

/*
 * A sector that was being written when the power went: the one half new, the
 * other old, or unreadable, until it is written again. That was never
 * acknowledged, so it costs nothing of the budget. What is there already stays
 * whole where the same is written over it: a repair of what lies around.
 */
static void sector_shear(struct sim_drive *d, uint64_t s)
{
	struct sim_media *m = d->media;
	const struct version *v = m->newest[s];

	if (m->bad[s] || (d->rotten && *rot_find(m, s)) ||
	    !memcmp(v->data, durable(m, s), SIM_SECTOR))
		return;
	d->sim->stats.shorn++;
	if (sim_below(d->sim, 3) == 0 &&
	    !d->sim->client->ops->hot(d->sim->client, s * SIM_SECTOR, 1))
		m->bad[s] = SHORN;
	else
		memcpy(durable(m, s), v->data, SIM_SECTOR / 2);
	chain_free(m, s);
}

/* One or two, rather among the first: what stands there matters most. */
static void media_shear(struct sim_drive *d)
{
	struct sim_media *m = d->media;
	uint64_t first = 0;

	if (!d->sim->client->promise.checksums || !m->dirties ||
	    sim_below(d->sim, 2))
		return;
	for (size_t i = 1; i < m->dirties; i++)
		if (m->dirty[i] < m->dirty[first])
			first = i;
	if (sim_below(d->sim, 2))
		sector_shear(d, m->dirty[first]);
	first = sim_below(d->sim, m->dirties);
	if (m->newest[m->dirty[first]])
		sector_shear(d, m->dirty[first]);
}

/*
 * What is not durable is any of its versions from now on, and that durably.
 * kind 0: all of it is lost; 1: none; 2: each sector by itself.
 */
static void media_cut(struct sim_drive *d)
{
	struct sim_media *m = d->media;
	const unsigned kind = (unsigned)sim_below(d->sim, 4);

	for (size_t i = 0; i < m->dirties; i++) {
		const uint64_t s = m->dirty[i];
		unsigned depth = 0, pick;
		struct version *v;

		for (v = m->newest[s]; v; v = v->older)
			depth++;
		pick = kind == 0   ? depth
		       : kind == 1 ? 0
				   : (unsigned)sim_below(d->sim, depth + 1);
		v = m->newest[s];
		while (v && pick--)
			v = v->older;
		if (v)
			durable_set(d, s, v->data);
		chain_free(m, s);
	}
	m->dirties = 0;
}

static void power_cut(struct sim_drive *d)
{
	media_shear(d);
	media_cut(d);
}

/* ---- damage -------------------------------------------------------------- */

/* Makes a sector hold data though it should hold what is seen there. */
static void sector_rot(struct sim_drive *d, uint64_t s, const uint8_t *right,
		       const uint8_t *data)
{
	struct sim_media *m = d->media;
	struct rot *rot = *rot_find(m, s);

	if (!rot) {
		rot = calloc(1, sizeof(*rot));
		id_assert(rot);
		rot->sector = s;
		rot->next = m->rot;
		m->rot = rot;
		d->rotten++;
	}
	memcpy(rot->right, right, SIM_SECTOR);
	if (m->newest[s]) {
		chain_free(m, s);
		dirty_sweep(m);
	}
	memmove(durable(m, s), data, SIM_SECTOR);
}

void sim_drive_damage(struct sim_drive *d, struct sim_range range, bool rot)
{
	struct sim_media *m = d->media;
	uint8_t rubbish[SIM_SECTOR], right[SIM_SECTOR];

	for (uint64_t s = range.off / SIM_SECTOR;
	     s < (range.off + range.len) / SIM_SECTOR; s++) {
		if (!rot) {
			d->bad += m->bad[s] != BAD;
			m->bad[s] = BAD;
			continue;
		}
		memcpy(right, visible(m, s), SIM_SECTOR);
		memcpy(rubbish, right, SIM_SECTOR);
		rubbish[sim_below(d->sim, SIM_SECTOR)] ^=
			(uint8_t)(1 + sim_below(d->sim, 255));
		if (!*rot_find(m, s))
			sector_rot(d, s, right, rubbish);
	}
}

void sim_drive_heal(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	if (d->bad)
		memset(m->bad, 0, d->bytes / SIM_SECTOR);
	d->bad = 0;
	for (struct rot *rot = m->rot; rot; rot = rot->next)
		memcpy(durable(m, rot->sector), rot->right, SIM_SECTOR);
	rot_free(d);
}

void sim_drive_peek(struct sim_drive *d, uint64_t off, uint8_t *buf,
		    uint32_t len)
{
	for (uint32_t i = 0; i < len / SIM_SECTOR; i++)
		memcpy(buf + i * SIM_SECTOR,
		       visible(d->media, off / SIM_SECTOR + i), SIM_SECTOR);
}

void sim_drive_wipe(struct sim_drive *d)
{
	sim_drive_heal(d);
	dirty_all_free(d->media);
	memset(d->media->durable, 0, d->bytes);
}

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
			land(d, io->off / SIM_SECTOR + i, io_sector(io, i));
}

static void write_durable(struct sim_drive *d, const struct io *io)
{
	struct sim_media *m = d->media;
	bool sweep = false;

	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++) {
		const uint64_t s = io->off / SIM_SECTOR + i;

		sweep |= m->newest[s] != NULL;
		chain_free(m, s);
		durable_set(d, s, io_sector(io, i));
	}
	if (sweep)
		dirty_sweep(m);
}

/* Acknowledged, and not there; or there, at another place. */
static void write_astray(struct sim_drive *d, const struct io *io, bool lost)
{
	struct sim_client *c = d->sim->client;
	uint64_t to = sim_below(d->sim, d->bytes / SIM_SECTOR);
	const uint64_t from = io->off / SIM_SECTOR;
	uint8_t old[SIM_SECTOR];

	if (!c->promise.checksums) /* stays near, within what is checked */
		to = from ^ (uint64_t)(16 + sim_below(d->sim, 2) * 16);
	for (uint64_t i = 0; i < io->len / SIM_SECTOR; i++) {
		if (!lost && to + i < d->bytes / SIM_SECTOR &&
		    c->ops->damage_ok(c, (to + i) * SIM_SECTOR, true)) {
			memcpy(old, visible(d->media, to + i), SIM_SECTOR);
			sector_rot(d, to + i, old, io_sector(io, i));
		}
		memcpy(old, visible(d->media, from + i), SIM_SECTOR);
		sector_rot(d, from + i, io_sector(io, i), old);
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
	d->sim->stats.onces++;
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
		memcpy((uint8_t *)io->buf + i * SIM_SECTOR,
		       visible(m, first + i), SIM_SECTOR);
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

static uint64_t latency_ns(struct sim_drive *d)
{
	const double mean = (double)d->sim->profile->latency_ns * d->slow;

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
	if (d && d->once == SIM_STUCK) {
		d->once = SIM_ONCE_NONE;
		f->stuck = true;
		sim_note(d->sim, "drive %u: stuck at %llu+%u", d->index,
			 (unsigned long long)io->off, io->len);
		return;
	}
	if (d && io->op == BDEV_FLUSH)
		f->seq = d->media->seq;
	/* A write in flight may be seen, sector by sector. */
	if (d && io->op == BDEV_WRITE && !d->once && sim_chance(d->sim, 4096))
		write_land(d, io, 50);
	timer_arm(bdev->reactor, &f->timer,
		  reactor_now(bdev->reactor) + (d ? latency_ns(d) : 1000));
}

static void handle_close(struct bdev *bdev)
{
	struct handle *h = (struct handle *)bdev;

	id_assert(!h->flights);
	if (h->was->handle == bdev) {
		h->was->handle = NULL;
		h->was->hurt = false;
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
		f->stuck = false;
		timer_arm(r, &f->timer,
			  reactor_now(r) + sim_below(d->sim, 200000));
	}
	h->drive = NULL;
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
		power_cut(d);
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
		power_cut(d);
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

bool sim_drive_hot(const struct sim_drive *d)
{
	const struct handle *h = (const struct handle *)d->handle;
	struct sim_client *c = d->sim->client;

	for (const struct flight *f = h ? h->flights : NULL; f; f = f->next)
		if (f->io->op == BDEV_WRITE &&
		    c->ops->hot(c, f->io->off, f->io->len))
			return true;
	return false;
}
