/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads: from the buffer, from a unit, or from the others of its stripe.
 *
 * A read is cut into runs that lie next to each other in one unit; each run is
 * one I/O. Every block's stored bytes are held against the crc in the map, as
 * it was when the read began; the segment is pinned until the run is over, so
 * what is read is what the map meant even if it has moved on since.
 *
 * What is away, fails or does not fit its crc is fetched: the same range of
 * all other units, and every choice of k of them until the crc fits. A unit
 * that was there and wrong is then rewritten in place: the data is immutable,
 * so the bytes are the same as ever. If no choice fits the block is lost: EIO,
 * never a guess.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

#define RUN_BLOCKS 32
#define RUNS 256
#define SMALL_BYTES (2 * FMT_BLOCK)
#define BIGS 16
#define FETCHES 4 /* at a time */

struct run {
	struct ureq *u;
	struct batch batch;
	struct lbuf *buf;
	struct run *next;
	uint64_t loc[RUN_BLOCKS]; /* of its blocks */
	uint32_t crc[RUN_BLOCKS];
	uint32_t first, blocks; /* in the request */
	uint32_t seg;
	uint32_t skip; /* bytes of buf before the first block */
	uint32_t bad;  /* bits of blocks to be fetched */
	uint8_t member;
	bool was_bad; /* there, and wrong */
	int result;
	struct fetch fetch;
	uint8_t stored[FMT_BLOCK];
};

struct fetcher {
	struct fetch *f;
	struct batch batch;
	struct lbuf *buf[FMT_COMPS_MAX];
	uint64_t off; /* on each member, from its unit's start */
	uint32_t len, skip;
	uint32_t units; /* bits that were asked for */
	unsigned tries;
	bool repairing;
};
#define TRIES 3 /* where a read failed: it may have been the moment */

struct reads {
	struct slab run_slab;
	struct bufpool small, big, range;
	struct ureq *wait_first, *wait_last; /* no run left */
	struct fetch *fetch_first, *fetch_last;
	struct fetcher fetcher[FETCHES];
	unsigned runs, fetches;
};

int reads_init(struct vlog *v)
{
	struct reads *rd = calloc(1, sizeof(*rd));
	int rc;

	if (!rd)
		return -ENOMEM;
	v->reads = rd;
	rc = slab_init(&rd->run_slab, sizeof(struct run), RUNS);
	if (!rc)
		rc = bufpool_init(&rd->small, v->r, SMALL_BYTES, RUNS);
	if (!rc)
		rc = bufpool_init(&rd->big, v->r, (RUN_BLOCKS + 2) * FMT_BLOCK,
				  BIGS);
	if (!rc)
		rc = bufpool_init(&rd->range, v->r, SMALL_BYTES,
				  FETCHES * FMT_COMPS_MAX * 2);
	return rc;
}

void reads_fini(struct vlog *v)
{
	struct reads *rd = v->reads;

	if (!rd)
		return;
	bufpool_fini(&rd->small);
	bufpool_fini(&rd->big);
	bufpool_fini(&rd->range);
	slab_fini(&rd->run_slab);
	free(rd);
	v->reads = NULL;
}

bool reads_idle(const struct vlog *v)
{
	return !v->reads->runs && !v->reads->fetches && !v->reads->wait_first &&
	       !v->reads->fetch_first;
}

static uint8_t *user_block(const struct ureq *u, uint32_t i)
{
	return (uint8_t *)u->io->buf + (size_t)i * FMT_BLOCK;
}

static bool crc_fits(const struct vlog *v, uint64_t lba, uint64_t loc,
		     uint32_t crc, const uint8_t *stored)
{
	if (MUT(NO_CRC))
		return true;
	return codec_block_crc(v->crc_seed, lba, stored,
			       (size_t)loc_grans(loc) * FMT_GRAN) == crc;
}

static void read_end(struct vlog *v, struct ureq *u)
{
	struct io *io = u->io;
	const int result = u->result;

	slab_put(&v->req_slab, u);
	v->users--;
	vlog_kick(v);
	bdev_complete(io, result);
}

static void part_done(struct vlog *v, struct ureq *u, int result)
{
	if (result && !u->result)
		u->result = result;
	if (!--u->parts && u->placed == u->blocks)
		read_end(v, u);
}

/* ---- fetching from the others -------------------------------------- */

void fetch_submit(struct vlog *v, struct fetch *f)
{
	struct reads *rd = v->reads;

	f->v = v;
	f->next = NULL;
	if (rd->fetch_last)
		rd->fetch_last->next = f;
	else
		rd->fetch_first = f;
	rd->fetch_last = f;
	vlog_kick(v);
}

static void fetcher_done(struct batch *b)
{
	/* reads_step() goes on: nothing deep in a completion. */
	struct fetcher *fr = container_of(b, struct fetcher, batch);

	vlog_kick(fr->f->v);
}

/* The enclosing range that members can read, within the unit. */
static void range_of(const struct vlog *v, uint64_t loc, uint64_t *off,
		     uint32_t *len, uint32_t *skip)
{
	const uint64_t from = (uint64_t)loc_gran(loc) * FMT_GRAN;
	const uint64_t to = from + (uint64_t)loc_grans(loc) * FMT_GRAN;
	const uint64_t mask = v->align - 1;

	*off = from & ~mask;
	*skip = (uint32_t)(from - *off);
	*len = (uint32_t)(((to + mask) & ~mask) - *off);
}

static void fetcher_read(struct vlog *v, struct fetcher *fr)
{
	const struct fetch *f = fr->f;
	const struct seg *s = &v->seg[loc_seg_index(f->loc)];

	fr->units = 0;
	fr->tries++;
	batch_begin(&fr->batch, fetcher_done);
	/* Its own too: it may do this time, and what surrounds the block is
	 * kept when it is repaired. */
	for (unsigned i = 0; i < seg_width(s); i++) {
		if (!v->member[s->comp[i]].alive)
			continue;
		fr->units |= 1u << i;
		batch_io(v, &fr->batch, s->comp[i], BDEV_READ, 0,
			 seg_unit_off(v, s, i, loc_stripe(f->loc)) + fr->off,
			 fr->buf[i], 0, fr->len);
	}
	batch_end(v, &fr->batch);
}

static bool fetcher_start(struct vlog *v, struct fetcher *fr, struct fetch *f)
{
	if (v->reads->range.count - v->reads->range.used < FMT_COMPS_MAX)
		return false;
	fr->f = f;
	fr->tries = 0;
	fr->repairing = false;
	range_of(v, f->loc, &fr->off, &fr->len, &fr->skip);
	for (unsigned i = 0; i < seg_width(&v->seg[loc_seg_index(f->loc)]); i++)
		fr->buf[i] = lbuf_get(&v->reads->range);
	fetcher_read(v, fr);
	return true;
}

static void fetcher_end(struct vlog *v, struct fetcher *fr, int result)
{
	struct fetch *f = fr->f;

	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(fr->buf[i]);
		fr->buf[i] = NULL;
	}
	fr->f = NULL;
	v->reads->fetches--;
	f->done(f, result);
}

/* Bits of units that were read, by unit, without the wrong one. */
static uint32_t units_read(const struct vlog *v, const struct fetcher *fr)
{
	const struct seg *s = &v->seg[loc_seg_index(fr->f->loc)];
	uint32_t have = 0;

	for (unsigned i = 0; i < seg_width(s); i++)
		if (fr->units & 1u << i &&
		    !(fr->batch.failed & 1u << s->comp[i]) &&
		    i != loc_unit(fr->f->loc))
			have |= 1u << i;
	return have;
}

static bool own_fits(const struct vlog *v, const struct fetcher *fr)
{
	const struct fetch *f = fr->f;
	const unsigned own = loc_unit(f->loc);
	const struct seg *s = &v->seg[loc_seg_index(f->loc)];

	return fr->units & 1u << own &&
	       !(fr->batch.failed & 1u << s->comp[own]) &&
	       crc_fits(v, f->lba, f->loc, f->crc,
			fr->buf[own]->data + fr->skip);
}

/* Tries every choice of k of those that were read. */
static bool fetch_decode(struct vlog *v, struct fetcher *fr, uint8_t *out)
{
	struct fetch *f = fr->f;
	const struct seg *s = &v->seg[loc_seg_index(f->loc)];
	const uint32_t have = units_read(v, fr);
	uint8_t *unit[FMT_COMPS_MAX];

	if (!s->m)
		return false;
	for (unsigned i = 0; i < seg_width(s); i++)
		unit[i] = fr->buf[i]->data;
	for (uint32_t set = 1; set < 1u << seg_width(s); set++) {
		if (set & ~have || (unsigned)__builtin_popcount(set) != s->k)
			continue;
		ec_decode(seg_ec(v, s->k, s->m), fr->len, set, loc_unit(f->loc),
			  unit, out);
		if (crc_fits(v, f->lba, f->loc, f->crc, out + fr->skip))
			return true;
	}
	return false;
}

/* In place: around the block what stands there, if that could be read. */
static bool repair(struct vlog *v, struct fetcher *fr, const uint8_t *decoded)
{
	const struct fetch *f = fr->f;
	const struct seg *s = &v->seg[loc_seg_index(f->loc)];
	const unsigned own = loc_unit(f->loc);
	const unsigned member = s->comp[own];
	uint8_t *to = fr->buf[own]->data;

	if (!f->bad || !v->member[member].alive)
		return false;
	if (fr->batch.failed & 1u << member || !(fr->units & 1u << own))
		memcpy(to, decoded, fr->len);
	else if (!MUT(STALE_REPAIR))
		memcpy(to + fr->skip, decoded + fr->skip,
		       (size_t)loc_grans(f->loc) * FMT_GRAN);
	fr->repairing = true;
	batch_begin(&fr->batch, fetcher_done);
	batch_io(v, &fr->batch, member, BDEV_WRITE, BDEV_FUA,
		 seg_unit_off(v, s, own, loc_stripe(f->loc)) + fr->off,
		 fr->buf[own], 0, fr->len);
	batch_end(v, &fr->batch);
	v->stat.reads_repaired++;
	v->seg[loc_seg_index(f->loc)].bad++;
	resync_look(v);
	return true;
}

static void fetcher_step(struct vlog *v, struct fetcher *fr)
{
	uint8_t decoded[SMALL_BYTES];
	struct fetch *f = fr->f;

	if (fr->repairing) {
		fetcher_end(v, fr, 0);
		return;
	}
	if (own_fits(v, fr)) {
		memcpy(f->stored, fr->buf[loc_unit(f->loc)]->data + fr->skip,
		       (size_t)loc_grans(f->loc) * FMT_GRAN);
		fetcher_end(v, fr, 0);
		return;
	}
	if (!fetch_decode(v, fr, decoded)) {
		if (fr->batch.failed && fr->tries < TRIES) {
			fetcher_read(v, fr);
			return;
		}
		v->stat.blocks_lost++;
		fetcher_end(v, fr, -EIO);
		return;
	}
	v->stat.reads_degraded++;
	memcpy(f->stored, decoded + fr->skip,
	       (size_t)loc_grans(f->loc) * FMT_GRAN);
	if (!repair(v, fr, decoded))
		fetcher_end(v, fr, 0);
}

static bool fetches_step(struct vlog *v)
{
	struct reads *rd = v->reads;
	bool moved = false;

	for (unsigned i = 0; i < FETCHES; i++) {
		struct fetcher *fr = &rd->fetcher[i];

		if (fr->f && batch_over(&fr->batch)) {
			fetcher_step(v, fr);
			moved = true;
		}
		if (!fr->f && rd->fetch_first) {
			struct fetch *f = rd->fetch_first;

			if (!fetcher_start(v, fr, f))
				continue;
			rd->fetches++;
			rd->fetch_first = f->next;
			if (!rd->fetch_first)
				rd->fetch_last = NULL;
			moved = true;
		}
	}
	return moved;
}

/* ---- runs ---------------------------------------------------------- */

static void run_fetched(struct fetch *f, int result);

static void run_end(struct vlog *v, struct run *run)
{
	struct ureq *u = run->u;
	const int result = run->result;

	seg_unpin(v, run->seg);
	lbuf_put(run->buf);
	slab_put(&v->reads->run_slab, run);
	v->reads->runs--;
	part_done(v, u, result);
	vlog_kick(v);
}

static void run_deliver(struct vlog *v, struct run *run, unsigned i,
			const uint8_t *stored)
{
	const uint64_t loc = run->loc[i];

	if (!codec_load(v->coder, loc_codec(loc), stored, loc_grans(loc),
			user_block(run->u, run->first + i)) &&
	    !run->result)
		run->result = -EIO;
}

static void run_fetch_next(struct vlog *v, struct run *run)
{
	unsigned i;

	if (!run->bad) {
		run_end(v, run);
		return;
	}
	i = (unsigned)__builtin_ctz(run->bad);
	run->fetch = (struct fetch) { .lba = run->u->lba + run->first + i,
				      .loc = run->loc[i],
				      .crc = run->crc[i],
				      .bad = run->was_bad,
				      .stored = run->stored,
				      .done = run_fetched };
	fetch_submit(v, &run->fetch);
}

static void run_fetched(struct fetch *f, int result)
{
	struct run *run = container_of(f, struct run, fetch);
	struct vlog *v = f->v;
	const unsigned i = (unsigned)__builtin_ctz(run->bad);

	if (result && !run->result)
		run->result = result;
	if (!result)
		run_deliver(v, run, i, run->stored);
	run->bad &= run->bad - 1;
	run_fetch_next(v, run);
}

static void run_read(struct batch *b)
{
	struct run *run = container_of(b, struct run, batch);
	struct vlog *v = run->u->v;
	const uint8_t *p = run->buf->data + run->skip;

	run->was_bad = true;
	if (b->failed) {
		run->was_bad = v->member[run->member].alive;
		run->bad = run->blocks == 32 ? UINT32_MAX
					     : (1u << run->blocks) - 1;
	}
	for (unsigned i = 0; i < run->blocks && !b->failed; i++) {
		if (crc_fits(v, run->u->lba + run->first + i, run->loc[i],
			     run->crc[i], p))
			run_deliver(v, run, i, p);
		else
			run->bad |= 1u << i;
		p += loc_grans(run->loc[i]) * FMT_GRAN;
	}
	run_fetch_next(v, run);
}

/* Of mirrors the one with least to do. Its unit goes into the locations, so
 * that a wrong copy is known for the wrong one. */
static unsigned source_pick(const struct vlog *v, const struct seg *s,
			    unsigned unit)
{
	unsigned best = unit;

	if (s->k > 1)
		return unit;
	for (unsigned i = 0; i < seg_width(s); i++) {
		const struct member *m = &v->member[s->comp[i]];
		const struct member *b = &v->member[s->comp[best]];

		if (m->alive && (!b->alive || m->out < b->out))
			best = i;
	}
	return best;
}

static uint64_t loc_with_unit(uint64_t loc, unsigned unit)
{
	return (loc & ~(15ull << 15)) | (uint64_t)unit << 15;
}

/* How many blocks from u->placed on lie one after another in a unit. */
static unsigned run_gather(const struct vlog *v, const struct ureq *u,
			   struct run *run, unsigned max)
{
	const uint64_t lba = u->lba + u->placed;
	unsigned n = 1;

	run->loc[0] = map_loc(v, lba, &run->crc[0]);
	while (n < max && u->placed + n < u->blocks) {
		const uint64_t before = run->loc[n - 1];
		const uint64_t loc = map_loc(v, lba + n, &run->crc[n]);

		if (loc_kind(loc) != LOC_SEG ||
		    loc_seg_index(loc) != loc_seg_index(before) ||
		    loc_stripe(loc) != loc_stripe(before) ||
		    loc_unit(loc) != loc_unit(before) ||
		    loc_gran(loc) != loc_gran(before) + loc_grans(before))
			break;
		run->loc[n++] = loc;
	}
	return n;
}

static bool run_start(struct vlog *v, struct ureq *u)
{
	struct reads *rd = v->reads;
	struct run *run = slab_get(&rd->run_slab);
	const struct seg *s;
	uint64_t off, last_off;
	uint32_t len, skip;
	unsigned unit;

	if (!run)
		return false;
	run->blocks = run_gather(v, u, run, RUN_BLOCKS);
	run->buf = run->blocks > 1 ? lbuf_get(&rd->big) : NULL;
	if (!run->buf) {
		run->blocks = 1;
		run->buf = lbuf_get(&rd->small);
	}
	if (!run->buf) {
		slab_put(&rd->run_slab, run);
		return false;
	}
	run->u = u;
	run->first = u->placed;
	run->seg = loc_seg_index(run->loc[0]);
	s = &v->seg[run->seg];
	unit = source_pick(v, s, loc_unit(run->loc[0]));
	for (unsigned i = 0; i < run->blocks; i++)
		run->loc[i] = loc_with_unit(run->loc[i], unit);
	range_of(v, run->loc[run->blocks - 1], &last_off, &len, &skip);
	len += (uint32_t)last_off;
	range_of(v, run->loc[0], &off, &skip, &run->skip);
	len -= (uint32_t)off;
	run->member = s->comp[unit];
	seg_pin(v, run->seg);
	rd->runs++;
	u->parts++;
	u->placed += run->blocks;
	batch_begin(&run->batch, run_read);
	if (v->member[run->member].alive)
		batch_io(v, &run->batch, run->member, BDEV_READ, 0,
			 seg_unit_off(v, s, unit, loc_stripe(run->loc[0])) +
				 off,
			 run->buf, 0, len);
	else
		run->batch.failed = 1u << run->member;
	batch_end(v, &run->batch);
	return true;
}

/* ---- requests ------------------------------------------------------ */

/* A block that needs no I/O; false: it does. */
static bool read_at_once(struct vlog *v, struct ureq *u)
{
	uint8_t *to = user_block(u, u->placed);
	uint32_t crc;
	const uint64_t loc = map_loc(v, u->lba + u->placed, &crc);
	const struct block *b;

	switch (loc_kind(loc)) {
	case LOC_NONE:
		memset(to, 0, FMT_BLOCK);
		break;
	case LOC_ZERO:
		memset(to, 0, FMT_BLOCK);
		if (loc == LOC_BAD)
			u->result = -EIO;
		break;
	case LOC_LOG:
		b = block_find(v, loc);
		id_assert(b);
		block_copy(v, b, v->scratch);
		if (!crc_fits(v, b->lba, loc, b->crc, v->scratch) ||
		    !codec_load(v->coder, b->codec, v->scratch, b->grans, to))
			u->result = -EIO;
		break;
	default:
		return false;
	}
	u->placed++;
	return true;
}

/* False: waits for a run. */
static bool read_place(struct vlog *v, struct ureq *u)
{
	bool placed = true;

	u->parts++; /* a hand on it while it is cut up */
	while (u->placed < u->blocks && placed)
		placed = read_at_once(v, u) || run_start(v, u);
	if (placed) {
		part_done(v, u, 0);
		return true;
	}
	u->parts--;
	return false;
}

void read_submit(struct vlog *v, struct io *io)
{
	struct ureq *u = slab_get(&v->req_slab);
	struct reads *rd = v->reads;

	id_assert(u); /* the front has asked */
	u->v = v;
	u->io = io;
	u->lba = io->off / FMT_BLOCK;
	u->blocks = io->len / FMT_BLOCK;
	v->users++;
	resync_user_io(v);
	if (rd->wait_last)
		rd->wait_last->next = u;
	else
		rd->wait_first = u;
	rd->wait_last = u;
	vlog_kick(v);
}

bool reads_step(struct vlog *v)
{
	struct reads *rd = v->reads;
	bool moved;

	if (v->state == VLOG_OPENING)
		return false;
	moved = fetches_step(v);
	while (rd->wait_first && v->state != VLOG_STOPPED) {
		struct ureq *u = rd->wait_first;

		/* Out of the list first: its answer may bring the next. */
		rd->wait_first = u->next;
		if (!rd->wait_first)
			rd->wait_last = NULL;
		u->next = NULL;
		if (!read_place(v, u)) {
			u->next = rd->wait_first;
			rd->wait_first = u;
			if (!rd->wait_last)
				rd->wait_last = u;
			break;
		}
		moved = true;
	}
	return moved;
}

/* The vDisk has stopped. */
void reads_fail(struct vlog *v)
{
	struct reads *rd = v->reads;
	struct ureq *u;

	while ((u = rd->wait_first)) {
		rd->wait_first = u->next;
		if (!rd->wait_first)
			rd->wait_last = NULL;
		u->result = -EIO;
		u->placed = u->blocks;
		if (!u->parts)
			read_end(v, u);
	}
}
