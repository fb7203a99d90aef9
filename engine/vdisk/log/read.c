/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads: from the buffer, from a unit, or from the others of its stripe.
 *
 * A read is cut into runs that lie next to each other in one unit; each run is
 * one I/O. Every block's stored bytes are held against the crc in the map, as
 * it was when the read began; the segment is pinned until the run is over, so
 * what is read is what the map meant even if it has moved on since.
 *
 * What is away, fails or does not fit its crc is fetched (fetch.c). What is
 * late is fetched too, and whoever is first answers: own buffers on both ways,
 * so what comes last finds nothing to overwrite. Never the user's: a drive that
 * hangs would hold it for as long as it does. Who allows it (BDEV_LEND) is lent
 * ours instead, where all that was asked for lies in one piece as it is stored,
 * and nothing is copied.
 *
 * A segment whose blocks have moved on is nobody's care: its members may be
 * replaced or go, one after another, as if it were not there. So what cannot
 * be had from where it was is looked up again, and read where it is now.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

#define RUN_BLOCKS 32
#define RUNS 256
#define SMALL_BYTES (2 * FMT_BLOCK)
#define BIGS 16

struct run {
	struct ureq *u;
	struct batch batch;
	struct lbuf *buf;
	uint32_t first, blocks; /* in the request */
	uint32_t seg;
	uint32_t skip; /* bytes of buf before the first block */
	uint32_t bad;  /* bits of blocks to be fetched */
	uint8_t member;
	bool there;    /* its unit is */
	bool was_bad;  /* there, and wrong */
	bool hedged;   /* its member is late; the others are asked too */
	bool answered; /* by it after all: what is fetched is not needed */
	int result;
	uint32_t moved; /* segment pinned for the block that is fetched */
	struct hedge hedge;
	struct fetch fetch;
	/* Written before they are read: not zeroed for each. */
	uint64_t loc[RUN_BLOCKS]; /* of its blocks */
	uint32_t crc[RUN_BLOCKS];
	uint8_t stored[FMT_BLOCK];
};

struct reads {
	struct slab run_slab;
	struct bufpool small, big;
	struct ureq *wait_first, *wait_last; /* no run left */
	unsigned runs;
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
	return rc;
}

void reads_fini(struct vlog *v)
{
	struct reads *rd = v->reads;

	if (!rd)
		return;
	bufpool_fini(&rd->small);
	bufpool_fini(&rd->big);
	slab_fini(&rd->run_slab);
	free(rd);
	v->reads = NULL;
}

bool reads_idle(const struct vlog *v)
{
	return !v->reads->runs && !v->reads->wait_first && fetches_idle(v);
}

static uint8_t *user_block(const struct ureq *u, uint32_t i)
{
	return (uint8_t *)u->io->buf + (size_t)i * FMT_BLOCK;
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

/* What is asked for is one piece of stored bytes, and may be lent. */
static bool lendable(const struct ureq *u, uint32_t blocks)
{
	return u->io->flags & BDEV_LEND && u->blocks == blocks;
}

/* ---- runs ---------------------------------------------------------- */

static void run_fetched(struct fetch *f, int result);

static void run_free(struct vlog *v, struct run *run)
{
	seg_unpin(v, run->seg);
	lbuf_put(run->buf);
	slab_put(&v->reads->run_slab, run);
	v->reads->runs--;
	vlog_kick(v);
}

static void run_end(struct vlog *v, struct run *run)
{
	struct ureq *u = run->u;
	struct lbuf *buf = run->buf;
	const int result = run->result;

	if (run->hedged) /* it may take its time now */
		batch_leave(v, &run->batch);
	buf->refs++; /* it may be lent */
	run_free(v, run);
	part_done(v, u, result);
	lbuf_put(buf);
}

static void run_deliver(struct vlog *v, struct run *run, unsigned i,
			uint64_t loc, const uint8_t *stored)
{
	if (!codec_load(v->coder, loc_codec(loc), stored, loc_grans(loc),
			user_block(run->u, run->first + i)) &&
	    !run->result)
		run->result = -EIO;
}

/* From the buffer. False: it is damaged. */
static bool read_buffered(struct vlog *v, struct ureq *u, const struct block *b,
			  uint8_t *to)
{
	uint8_t *stored;

	id_assert(b);
	stored = block_stored(v, b, v->scratch);
	if (!block_fits(v, b->lba, b->loc, b->crc, stored))
		return false;
	if (b->codec == CODEC_NONE && lendable(u, 1)) {
		u->io->buf = stored;
		return true;
	}
	return codec_load(v->coder, b->codec, stored, b->grans, to);
}

/* A block that needs no I/O; false: it does. */
static bool block_at_once(struct vlog *v, struct ureq *u, uint32_t i, int *rc)
{
	uint8_t *to = user_block(u, i);
	uint32_t crc;
	const uint64_t loc = map_loc(v, u->lba + i, &crc);

	switch (loc_kind(loc)) {
	case LOC_NONE:
		memset(to, 0, FMT_BLOCK);
		break;
	case LOC_ZERO:
		memset(to, 0, FMT_BLOCK);
		if (loc == LOC_BAD)
			*rc = -EIO;
		break;
	case LOC_LOG:
		if (!read_buffered(v, u, block_find(v, loc), to))
			*rc = -EIO;
		break;
	default:
		return false;
	}
	return true;
}

static uint64_t loc_with_unit(uint64_t loc, unsigned unit)
{
	return (loc & ~(15ull << 15)) | (uint64_t)unit << 15;
}

/* The first of those that are bad. */
static void run_fetch(struct vlog *v, struct run *run, uint64_t loc,
		      uint32_t crc)
{
	const unsigned i = (unsigned)__builtin_ctz(run->bad);
	const bool here = run->moved == SEG_NONE; /* what run says is of it */

	run->fetch = (struct fetch) { .lba = run->u->lba + run->first + i,
				      .loc = loc,
				      .crc = crc,
				      .bad = here && run->was_bad,
				      .late = here && run->hedged,
				      .stored = run->stored,
				      .done = run_fetched };
	fetch_submit(v, &run->fetch);
}

static void run_fetch_next(struct vlog *v, struct run *run)
{
	unsigned i;

	if (!run->bad) {
		v->stat.hedges_won += run->hedged;
		run_end(v, run);
		return;
	}
	i = (unsigned)__builtin_ctz(run->bad);
	run_fetch(v, run, run->loc[i], run->crc[i]);
}

/*
 * What could not be had from where it was: from where it is by now. True: it is
 * fetched there.
 */
static bool run_follow(struct vlog *v, struct run *run, const struct fetch *f)
{
	const unsigned i = (unsigned)__builtin_ctz(run->bad);
	uint32_t crc = 0;
	const uint64_t loc = map_loc(v, f->lba, &crc);

	if (block_at_once(v, run->u, run->first + i, &run->result))
		return false;
	if (loc_with_unit(loc, 0) == loc_with_unit(f->loc, 0)) {
		v->stat.reads_failed++;
		run->result = -EIO;
		return false;
	}
	run->moved = loc_seg_index(loc);
	seg_pin(v, run->moved);
	run_fetch(v, run, loc, crc);
	return true;
}

static void run_fetched(struct fetch *f, int result)
{
	struct run *run = container_of(f, struct run, fetch);
	struct vlog *v = f->v;

	if (run->moved != SEG_NONE)
		seg_unpin(v, run->moved);
	run->moved = SEG_NONE;
	if (run->answered) {
		run_free(v, run);
		return;
	}
	if (!result)
		run_deliver(v, run, (unsigned)__builtin_ctz(run->bad), f->loc,
			    run->stored);
	else if (run_follow(v, run, f))
		return;
	run->bad &= run->bad - 1;
	run_fetch_next(v, run);
}

static uint32_t run_all(const struct run *run)
{
	return run->blocks == 32 ? UINT32_MAX : (1u << run->blocks) - 1;
}

/* Bits of blocks that do not fit. */
static uint32_t run_check(const struct vlog *v, const struct run *run)
{
	const uint8_t *p = run->buf->data + run->skip;
	uint32_t bad = 0;

	for (unsigned i = 0; i < run->blocks; i++) {
		if (!block_fits(v, run->u->lba + run->first + i, run->loc[i],
				run->crc[i], p))
			bad |= 1u << i;
		p += loc_grans(run->loc[i]) * FMT_GRAN;
	}
	return bad;
}

/* Its blocks are stored as they are, all of them, and they fit. */
static bool run_lend(struct run *run)
{
	if (run->bad || !lendable(run->u, run->blocks))
		return false;
	for (unsigned i = 0; i < run->blocks; i++)
		if (loc_codec(run->loc[i]) != CODEC_NONE ||
		    loc_grans(run->loc[i]) != FMT_BLOCK_GRANS)
			return false;
	run->u->io->buf = run->buf->data + run->skip;
	return true;
}

static void run_deliver_good(struct vlog *v, struct run *run)
{
	const uint8_t *p = run->buf->data + run->skip;

	if (run_lend(run))
		return;
	for (unsigned i = 0; i < run->blocks; i++) {
		if (!(run->bad & 1u << i))
			run_deliver(v, run, i, run->loc[i], p);
		p += loc_grans(run->loc[i]) * FMT_GRAN;
	}
}

/* Late, but before the others. */
static void run_late(struct vlog *v, struct run *run)
{
	struct ureq *u = run->u;

	if (run->batch.failed || run_check(v, run))
		return;
	run->bad = 0;
	run_deliver_good(v, run);
	run->bad = 1; /* as run_fetched() expects it */
	run->answered = true;
	run->u = NULL;
	part_done(v, u, run->result);
}

static void run_read(struct batch *b)
{
	struct run *run = container_of(b, struct run, batch);
	struct vlog *v = run->hedge.v;

	hedge_end(v, &run->hedge);
	if (run->hedged) {
		run_late(v, run);
		return;
	}
	run->was_bad = true;
	if (b->failed) {
		run->was_bad = run->there && v->member[run->member].alive;
		run->bad = run_all(run);
	} else {
		run->bad = run_check(v, run);
		run_deliver_good(v, run);
	}
	run_fetch_next(v, run);
}

static void run_hedge(struct hedge *h)
{
	struct run *run = container_of(h, struct run, hedge);

	run->hedged = true;
	run->bad = run_all(run);
	run_fetch_next(h->v, run);
}

/* Of mirrors the one that will be soonest. Its unit goes into the locations,
 * so that a wrong copy is known for the wrong one. */
static unsigned source_pick(struct vlog *v, const struct seg *s, unsigned unit)
{
	unsigned best = unit;

	if (s->k > 1 || (seg_unit_there(v, s, unit) && member_probe(v)))
		return unit;
	for (unsigned i = 0; i < seg_width(s); i++)
		if (seg_unit_there(v, s, i) &&
		    (!seg_unit_there(v, s, best) ||
		     member_load(v, s->comp[i]) <
			     member_load(v, s->comp[best])))
			best = i;
	return best;
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
	struct run *run = slab_get_raw(&rd->run_slab);
	const struct seg *s;
	uint64_t off, last_off;
	uint32_t len, skip;
	unsigned unit;

	if (!run)
		return false;
	memset(run, 0, offsetof(struct run, loc));
	run->moved = SEG_NONE;
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
	loc_range(v, run->loc[run->blocks - 1], &last_off, &len, &skip);
	len += (uint32_t)last_off;
	loc_range(v, run->loc[0], &off, &skip, &run->skip);
	len -= (uint32_t)off;
	run->member = s->comp[unit];
	seg_pin(v, run->seg);
	rd->runs++;
	u->parts++;
	u->placed += run->blocks;
	hedge_begin(v, &run->hedge, run->member, run_hedge);
	batch_begin(&run->batch, run_read);
	run->there = seg_unit_there(v, s, unit);
	if (run->there)
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

static bool read_at_once(struct vlog *v, struct ureq *u)
{
	if (!block_at_once(v, u, u->placed, &u->result))
		return false;
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
	map_prefetch(v, u->lba);
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
