/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Blocks from the other units of their stripe.
 *
 *   READ the same range of all units that are there (of the others alone where
 *        the own one is only late) -> as soon as k are there, every choice of k
 *        of them until the crc fits
 *   WRITE a unit that was there and wrong, in place: data is immutable, so the
 *        bytes are the same as ever
 *   CHECK read it back: a member that does not hold what it took is lost, if
 *        that is not the end of all
 *
 * If no choice fits the block is lost: EIO, never a guess. Whether that is for
 * good is for the cleaner to say: a member that is away may bring it back.
 *
 * Late is what takes longer than four times the p99 of the other members'
 * small reads: then the others are asked, and the first good answer counts.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>

#define RANGE_BYTES (2 * FMT_BLOCK)
#define FETCHES 16 /* at a time */
#define TRIES 3    /* where a read failed: it may have been the moment */
#define HEDGE_FACTOR 4
#define HEDGE_MIN_NS (MSEC_NS / 2)
#define HEDGE_MAX_NS (SEC_NS)
#define HEDGE_UNKNOWN_NS (50 * MSEC_NS)
#define HEDGE_SAMPLES 64 /* of the others, before their p99 says anything */
#define REFRESH_NS (100 * MSEC_NS)
#define FADE_SAMPLES 4096
#define PROBE 32 /* one in so many goes where it may look slow */

enum fetcher_state { FETCH_IDLE, FETCH_READ, FETCH_WRITE, FETCH_CHECK };

struct fetcher {
	enum fetcher_state state;
	struct fetch *f;
	struct batch batch;
	struct lbuf *buf[FMT_COMPS_MAX];
	struct lbuf *check;
	uint64_t off; /* on each member, from its unit's start */
	uint32_t len, skip;
	uint32_t units; /* bits that were asked for */
	uint32_t tried; /* members whose answers were tried */
	unsigned tries;
};

struct fetches {
	struct fetch *first, *last;
	struct fetcher fetcher[FETCHES];
	unsigned busy;
	struct bufpool range;
	struct hedge *oldest, *newest;
	struct timer timer;
	uint64_t refreshed_ns;
	unsigned samples; /* until their p99 is known */
	unsigned picks;
	struct vlog *v;
};

int fetches_init(struct vlog *v)
{
	struct fetches *fs = calloc(1, sizeof(*fs));

	if (!fs)
		return -ENOMEM;
	v->fetches = fs;
	fs->v = v;
	for (unsigned i = 0; i < v->n; i++)
		v->member[i].hedge_ns = HEDGE_UNKNOWN_NS;
	/* Twice what can be in use: slow drives hold on to some. */
	return bufpool_init(&fs->range, v->r, RANGE_BYTES,
			    FETCHES * (FMT_COMPS_MAX + 1) * 2);
}

void fetches_fini(struct vlog *v)
{
	struct fetches *fs = v->fetches;

	if (!fs)
		return;
	timer_cancel(v->r, &fs->timer);
	bufpool_fini(&fs->range);
	free(fs);
	v->fetches = NULL;
}

bool fetches_idle(const struct vlog *v)
{
	return !v->fetches->busy && !v->fetches->first;
}

bool block_fits(const struct vlog *v, uint64_t lba, uint64_t loc, uint32_t crc,
		const uint8_t *stored)
{
	if (MUT(NO_CRC))
		return true;
	return codec_block_crc(v->crc_seed, lba, stored,
			       (size_t)loc_grans(loc) * FMT_GRAN) == crc;
}

void fetch_submit(struct vlog *v, struct fetch *f)
{
	struct fetches *fs = v->fetches;

	f->v = v;
	f->next = NULL;
	if (fs->last)
		fs->last->next = f;
	else
		fs->first = f;
	fs->last = f;
	vlog_kick(v);
}

/* ---- reading ------------------------------------------------------- */

static struct seg *seg_of(const struct vlog *v, const struct fetch *f)
{
	return &v->seg[loc_seg_index(f->loc)];
}

void loc_range(const struct vlog *v, uint64_t loc, uint64_t *off, uint32_t *len,
	       uint32_t *skip)
{
	const uint64_t from = (uint64_t)loc_gran(loc) * FMT_GRAN;
	const uint64_t to = from + (uint64_t)loc_grans(loc) * FMT_GRAN;
	const uint64_t mask = v->align - 1;

	*off = from & ~mask;
	*skip = (uint32_t)(from - *off);
	*len = (uint32_t)(((to + mask) & ~mask) - *off);
}

static uint64_t unit_off(const struct vlog *v, const struct fetcher *fr,
			 unsigned unit)
{
	return seg_unit_off(v, seg_of(v, fr->f), unit, loc_stripe(fr->f->loc)) +
	       fr->off;
}

/* Bits of units that can be asked for. */
static uint32_t units_there(const struct vlog *v, const struct fetcher *fr)
{
	const struct fetch *f = fr->f;
	const struct seg *s = seg_of(v, f);
	uint32_t there = 0;

	for (unsigned i = 0; i < seg_width(s); i++)
		if (seg_unit_there(v, s, i) &&
		    !(f->late && i == loc_unit(f->loc)))
			there |= 1u << i;
	return there;
}

static void fetcher_read(struct vlog *v, struct fetcher *fr)
{
	const struct seg *s = seg_of(v, fr->f);

	fr->state = FETCH_READ;
	fr->units = units_there(v, fr);
	fr->tried = 0;
	fr->tries++;
	batch_begin(&fr->batch, NULL);
	fr->batch.each = true;
	/* Its own too: it may do this time, and what surrounds the block is
	 * kept when it is repaired. */
	for (unsigned i = 0; i < seg_width(s); i++)
		if (fr->units & 1u << i)
			batch_io(v, &fr->batch, s->comp[i], BDEV_READ, 0,
				 unit_off(v, fr, i), fr->buf[i], 0, fr->len);
	batch_end(v, &fr->batch);
}

static bool fetcher_start(struct vlog *v, struct fetcher *fr, struct fetch *f)
{
	struct bufpool *pool = &v->fetches->range;

	if (pool->count - pool->used < FMT_COMPS_MAX + 1)
		return false;
	fr->f = f;
	fr->tries = 0;
	loc_range(v, f->loc, &fr->off, &fr->len, &fr->skip);
	for (unsigned i = 0; i < seg_width(seg_of(v, f)); i++)
		fr->buf[i] = lbuf_get(pool);
	fr->check = lbuf_get(pool);
	fetcher_read(v, fr);
	return true;
}

static void fetcher_end(struct vlog *v, struct fetcher *fr, int result)
{
	struct fetch *f = fr->f;

	batch_leave(v, &fr->batch);
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(fr->buf[i]);
		fr->buf[i] = NULL;
	}
	lbuf_put(fr->check);
	fr->check = NULL;
	fr->f = NULL;
	fr->state = FETCH_IDLE;
	v->fetches->busy--;
	vlog_kick(v);
	f->done(f, result);
}

/* ---- decoding ------------------------------------------------------ */

/* Bits of units that have been read, by unit. */
static uint32_t units_read(const struct vlog *v, const struct fetcher *fr)
{
	const struct seg *s = seg_of(v, fr->f);
	uint32_t have = 0;

	for (unsigned i = 0; i < seg_width(s); i++)
		if (fr->units & 1u << i && fr->batch.ok & 1u << s->comp[i])
			have |= 1u << i;
	return have;
}

static bool own_answered(const struct vlog *v, const struct fetcher *fr)
{
	const unsigned own = loc_unit(fr->f->loc);
	const unsigned member = seg_of(v, fr->f)->comp[own];

	return !(fr->units & 1u << own) ||
	       (fr->batch.ok | fr->batch.failed) & 1u << member;
}

static bool own_fits(const struct vlog *v, const struct fetcher *fr)
{
	const struct fetch *f = fr->f;
	const unsigned own = loc_unit(f->loc);

	return units_read(v, fr) & 1u << own &&
	       block_fits(v, f->lba, f->loc, f->crc,
			  fr->buf[own]->data + fr->skip);
}

/* Tries every choice of k of those that were read. */
static bool fetch_decode(struct vlog *v, struct fetcher *fr, uint8_t *out)
{
	struct fetch *f = fr->f;
	const struct seg *s = seg_of(v, f);
	const uint32_t have = units_read(v, fr) & ~(1u << loc_unit(f->loc));
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
		if (block_fits(v, f->lba, f->loc, f->crc, out + fr->skip))
			return true;
	}
	return false;
}

/* ---- repair -------------------------------------------------------- */

/* In place: around the block what stands there, if that could be read. */
static bool repair(struct vlog *v, struct fetcher *fr, const uint8_t *decoded)
{
	const struct fetch *f = fr->f;
	const struct seg *s = seg_of(v, f);
	const unsigned own = loc_unit(f->loc);
	uint8_t *to = fr->buf[own]->data;

	if (!f->bad || !seg_unit_there(v, s, own) || fr->buf[own]->refs > 1)
		return false;
	if (!(units_read(v, fr) & 1u << own))
		memcpy(to, decoded, fr->len);
	else if (!MUT(STALE_REPAIR))
		memcpy(to + fr->skip, decoded + fr->skip,
		       (size_t)loc_grans(f->loc) * FMT_GRAN);
	batch_leave(v, &fr->batch); /* a slow one of the others */
	fr->state = FETCH_WRITE;
	batch_begin(&fr->batch, NULL);
	batch_io(v, &fr->batch, s->comp[own], BDEV_WRITE, BDEV_FUA,
		 unit_off(v, fr, own), fr->buf[own], 0, fr->len);
	batch_end(v, &fr->batch);
	return true;
}

static void repair_check(struct vlog *v, struct fetcher *fr)
{
	const unsigned own = loc_unit(fr->f->loc);

	if (fr->batch.failed) { /* and so its member is lost */
		fetcher_end(v, fr, 0);
		return;
	}
	fr->state = FETCH_CHECK;
	batch_begin(&fr->batch, NULL);
	batch_io(v, &fr->batch, seg_of(v, fr->f)->comp[own], BDEV_READ, 0,
		 unit_off(v, fr, own), fr->check, 0, fr->len);
	batch_end(v, &fr->batch);
}

static void repair_over(struct vlog *v, struct fetcher *fr)
{
	const unsigned own = loc_unit(fr->f->loc);
	struct seg *s = seg_of(v, fr->f);
	const unsigned member = s->comp[own];

	if (!fr->batch.failed &&
	    !memcmp(fr->check->data, fr->buf[own]->data, fr->len))
		v->stat.reads_repaired++;
	else if (member_dispensable(v, member))
		member_lost(v, member, -EIO);
	if (s->bad < UINT8_MAX)
		s->bad++;
	resync_look(v);
	fetcher_end(v, fr, 0);
}

/* ---- steps --------------------------------------------------------- */

static void fetch_failed(struct vlog *v, struct fetcher *fr)
{
	struct fetch *f = fr->f;

	if (f->late) { /* then its own, slow as it may be */
		f->late = false;
		fetcher_read(v, fr);
		return;
	}
	if ((fr->batch.failed && fr->tries < TRIES) ||
	    units_there(v, fr) & ~fr->units) {
		fetcher_read(v, fr);
		return;
	}
	f->partial = fr->batch.failed ||
		     fr->units != (1u << seg_width(seg_of(v, f))) - 1;
	fetcher_end(v, fr, -EIO);
}

/* Answers have come, maybe not all. */
static bool read_step(struct vlog *v, struct fetcher *fr)
{
	uint8_t decoded[RANGE_BYTES];
	struct fetch *f = fr->f;
	const uint32_t heard = fr->batch.ok | fr->batch.failed;
	const bool over = batch_over(&fr->batch);

	if (!over && (heard == fr->tried || (f->bad && !own_answered(v, fr))))
		return false;
	fr->tried = heard;
	if (own_fits(v, fr)) {
		memcpy(f->stored, fr->buf[loc_unit(f->loc)]->data + fr->skip,
		       (size_t)loc_grans(f->loc) * FMT_GRAN);
		fetcher_end(v, fr, 0);
		return true;
	}
	if (!fetch_decode(v, fr, decoded)) {
		if (over)
			fetch_failed(v, fr);
		return over;
	}
	v->stat.reads_degraded++;
	memcpy(f->stored, decoded + fr->skip,
	       (size_t)loc_grans(f->loc) * FMT_GRAN);
	if (!repair(v, fr, decoded))
		fetcher_end(v, fr, 0);
	return true;
}

static bool fetcher_step(struct vlog *v, struct fetcher *fr)
{
	if (fr->state == FETCH_IDLE)
		return false;
	if (fr->state == FETCH_READ)
		return read_step(v, fr);
	if (!batch_over(&fr->batch))
		return false;
	if (fr->state == FETCH_WRITE)
		repair_check(v, fr);
	else
		repair_over(v, fr);
	return true;
}

/* A repair writes what it read around its block: one at a time there. */
static bool fetch_waits(const struct vlog *v, const struct fetch *f)
{
	uint64_t off;
	uint32_t len, skip;

	loc_range(v, f->loc, &off, &len, &skip);
	for (unsigned i = 0; i < FETCHES; i++) {
		const struct fetcher *fr = &v->fetches->fetcher[i];

		if (!fr->f ||
		    loc_seg_index(fr->f->loc) != loc_seg_index(f->loc) ||
		    loc_stripe(fr->f->loc) != loc_stripe(f->loc) ||
		    loc_unit(fr->f->loc) != loc_unit(f->loc))
			continue;
		if (off < fr->off + fr->len && fr->off < off + len)
			return true;
	}
	return false;
}

bool fetches_step(struct vlog *v)
{
	struct fetches *fs = v->fetches;
	bool moved = false;

	for (unsigned i = 0; i < FETCHES && (fs->busy || fs->first); i++) {
		struct fetcher *fr = &fs->fetcher[i];
		struct fetch *f = fs->first;

		moved |= fetcher_step(v, fr);
		f = fs->first;
		if (fr->state != FETCH_IDLE || !f)
			continue;
		/* Out of the list first: fetches may be asked for in between.
		 */
		if ((fetch_waits(v, f) && !MUT(REPAIR_RACE)) ||
		    !fetcher_start(v, fr, f))
			continue;
		fs->busy++;
		fs->first = f->next;
		if (!fs->first)
			fs->last = NULL;
		moved = true;
	}
	return moved;
}

/* ---- late ---------------------------------------------------------- */

void member_read_took(struct vlog *v, unsigned index, uint64_t ns)
{
	struct member *m = &v->member[index];

	lat_add(&m->reads, ns);
	if (v->fetches->samples < 2 * HEDGE_SAMPLES &&
	    ++v->fetches->samples == 2 * HEDGE_SAMPLES)
		v->fetches->refreshed_ns = 0;
	m->read_ns += (uint64_t)((int64_t)(ns - m->read_ns) / 8);
}

bool member_probe(struct vlog *v)
{
	return v->fetches->picks++ % PROBE == 0;
}

uint64_t member_load(const struct vlog *v, unsigned index)
{
	const struct member *m = &v->member[index];

	return (m->out + 1) * (m->read_ns + 1);
}

static void hedges_refresh(struct vlog *v)
{
	for (unsigned i = 0; i < v->n; i++) {
		struct lat others = { 0 };
		uint64_t ns = HEDGE_UNKNOWN_NS;

		for (unsigned j = 0; j < v->n; j++) {
			if (j == i || !v->member[j].alive)
				continue;
			for (unsigned b = 0; b < LAT_BUCKETS; b++)
				others.n[b] += v->member[j].reads.n[b];
			others.count += v->member[j].reads.count;
		}
		if (others.count >= HEDGE_SAMPLES)
			ns = HEDGE_FACTOR * lat_quantile(&others, 0.99);
		if (ns < HEDGE_MIN_NS)
			ns = HEDGE_MIN_NS;
		v->member[i].hedge_ns = ns < HEDGE_MAX_NS ? ns : HEDGE_MAX_NS;
	}
	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].reads.count > FADE_SAMPLES)
			lat_fade(&v->member[i].reads);
	v->fetches->refreshed_ns = reactor_turn_now(v->r);
}

static void hedge_timer_arm(struct fetches *fs);

static void hedge_fired(struct timer *t)
{
	struct fetches *fs = container_of(t, struct fetches, timer);
	struct vlog *v = fs->v;
	const uint64_t now = reactor_turn_now(v->r);
	struct hedge *h = fs->oldest, *next;

	for (; h; h = next) {
		next = h->next;
		if (now - h->start_ns < v->member[h->member].hedge_ns)
			continue;
		hedge_end(v, h);
		v->stat.reads_hedged++;
		h->late(h);
	}
	hedge_timer_arm(fs);
}

/* For the oldest: of others whose time is shorter the timer comes soon. */
static void hedge_timer_arm(struct fetches *fs)
{
	const struct hedge *h = fs->oldest;
	uint64_t at;

	if (!h)
		return;
	at = h->start_ns + fs->v->member[h->member].hedge_ns;
	if (at <= reactor_turn_now(fs->v->r))
		at = reactor_turn_now(fs->v->r) + HEDGE_MIN_NS;
	if (timer_armed(&fs->timer) && fs->timer.deadline_ns <= at)
		return;
	fs->timer.fn = hedge_fired;
	timer_arm(fs->v->r, &fs->timer, at);
}

void hedge_begin(struct vlog *v, struct hedge *h, unsigned member,
		 void (*late)(struct hedge *h))
{
	struct fetches *fs = v->fetches;

	if (reactor_turn_now(v->r) - fs->refreshed_ns >= REFRESH_NS)
		hedges_refresh(v);
	*h = (struct hedge) { .v = v,
			      .member = (uint8_t)member,
			      .late = late,
			      .start_ns = reactor_turn_now(v->r),
			      .prev = fs->newest,
			      .watched = true };
	if (fs->newest)
		fs->newest->next = h;
	else
		fs->oldest = h;
	fs->newest = h;
	hedge_timer_arm(fs);
}

void hedge_end(struct vlog *v, struct hedge *h)
{
	struct fetches *fs = v->fetches;

	if (!h->watched)
		return;
	h->watched = false;
	if (h->prev)
		h->prev->next = h->next;
	else
		fs->oldest = h->next;
	if (h->next)
		h->next->prev = h->prev;
	else
		fs->newest = h->prev;
}
