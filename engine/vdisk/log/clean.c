/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cleaner: everything in the background is moving the live blocks of a
 * segment into new stripes under the policy of today. Rebuild after a loss,
 * room for new data, wider stripes once members are back: only the reason why
 * a segment is a victim differs.
 *
 * One victim at a time, one stripe at a time:
 *
 *   IDLE -> READ all units within reach -> MOVE block by block, each held
 *   against its crc; one that does not fit is FETCHed from the others; one that
 *   is lost is moved as such, so a damaged segment never blocks cleaning; but
 *   while a member is away that may bring it back, it stays where it is
 *
 * Moves are compare-and-swap in the COMMIT; every entry of a cold stripe pins
 * its victim until then, so its slots (and its index, which `old` names) are
 * not used again before.
 *
 * Pay as you go: user data that goes to segments gives credit, in the measure
 * in which free space is short of F_HI, so that at F_T cleaning keeps exactly
 * pace. There is no threshold at which it starts, hence no cliff.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

#define F_HI 0.10
#define F_T 0.03
#define FULL_PERCENT 97 /* above it there is nothing to gain */
#define CREDIT_SEGS 4   /* never owe more than that many segments */

enum clean_phase { CLEAN_IDLE, CLEAN_READ, CLEAN_MOVE, CLEAN_FETCH };

struct cleaner {
	enum clean_phase phase;
	uint32_t victim;
	unsigned stripe;
	uint64_t victim_lsn;
	struct lbuf *buf[FMT_COMPS_MAX];
	struct batch batch;
	uint32_t have; /* units that are there or were decoded */
	struct fmt_sum_entry *entry;
	unsigned entries, at;
	struct fetch fetch;
	uint8_t stored[FMT_BLOCK], recoded[FMT_BLOCK];
	int fetched;
	bool fetched_over;
	double credit;     /* granules */
	double u_victims;  /* moving average */
	bool urgent_moves; /* the cold stripe holds some that cannot wait */
	enum clean_why why;
};

int cleaner_init(struct vlog *v)
{
	struct cleaner *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	v->cleaner = c;
	c->victim = SEG_NONE;
	c->u_victims = 0.5;
	c->entry = calloc((size_t)FMT_COMPS_MAX * unit_grans(v),
			  sizeof(*c->entry));
	return c->entry ? 0 : -ENOMEM;
}

void cleaner_fini(struct vlog *v)
{
	if (!v->cleaner)
		return;
	free(v->cleaner->entry);
	free(v->cleaner);
	v->cleaner = NULL;
}

/* ---- how much ------------------------------------------------------ */

static double at_least(double x, double y)
{
	return x > y ? x : y;
}

static double slots_least(const struct vlog *v)
{
	uint32_t least = UINT32_MAX;

	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].slots < least)
			least = v->member[i].slots;
	return least;
}

/* Small vDisks count in slots rather than in percent. */
static double f_t(const struct vlog *v)
{
	return at_least(F_T, 3.0 / slots_least(v));
}

static double f_hi(const struct vlog *v)
{
	return f_t(v) + at_least(F_HI - F_T, 2.0 / slots_least(v));
}

void clean_credit(struct vlog *v, uint64_t grans)
{
	struct cleaner *c = v->cleaner;
	const double f = seg_free_share(v), u = c->u_victims;
	const double seg = (double)v->k * v->label.stripes * unit_grans(v);
	double g = (f_hi(v) - f) / (f_hi(v) - f_t(v));

	if (g < 0)
		g = 0;
	if (g > 2)
		g = 2;
	/* At least a little for each: u of 0 would never clean anything. */
	c->credit += g * (double)grans * at_least(u / (1.02 - u), 0.05);
	if (c->credit > CREDIT_SEGS * seg)
		c->credit = CREDIT_SEGS * seg;
}

/* ---- which --------------------------------------------------------- */

static double seg_use(const struct vlog *v, const struct seg *s)
{
	return (double)s->live /
	       ((double)s->k * v->label.stripes * unit_grans(v));
}

/* Room to rewrite for other reasons than room. */
static bool spare(const struct vlog *v, enum clean_why why)
{
	if (why == WHY_POLICY)
		return seg_free_share(v) > f_hi(v);
	return !seg_space_low(v) && seg_free_share(v) > f_t(v) / 2;
}

static double benefit(const struct vlog *v, const struct seg *s)
{
	const double u = seg_use(v, s);
	const double age = (double)(v->durable - s->lsn + 1);

	if (u * 100 > FULL_PERCENT)
		return -1;
	return (1 - u) * age / (1 + u);
}

static bool space_due(const struct vlog *v)
{
	return v->cleaner->credit > 0 || seg_free_share(v) < f_t(v) ||
	       seg_space_low(v);
}

static uint32_t victim_choose(struct vlog *v, enum clean_why *best_why)
{
	const bool space = space_due(v), wanted = resync_wanted(v);
	uint32_t best = SEG_NONE;
	double best_benefit = 0;
	bool held = false;

	*best_why = WHY_NONE;
	if (!space && !wanted)
		return SEG_NONE;
	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];
		enum clean_why why;
		double gain;

		if (s->state != SEG_SEALED || !s->live || s->held)
			continue;
		why = wanted ? resync_why(v, s) : WHY_NONE;
		/* Its entries are on their way already. */
		if (s->moves || (why && !spare(v, why))) {
			held |= why != WHY_NONE;
			why = WHY_NONE;
		}
		gain = benefit(v, s);
		if (!s->moves && !why && space && gain > 0)
			why = WHY_SPACE;
		if (!why || why < *best_why)
			continue;
		if (why > *best_why || gain > best_benefit) {
			best = i;
			*best_why = why;
			best_benefit = gain;
		}
	}
	if (wanted)
		resync_scanned(v, *best_why == WHY_SPACE ? WHY_NONE : *best_why,
			       held);
	return best;
}

/* ---- one stripe ---------------------------------------------------- */

static void bufs_put(struct cleaner *c)
{
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(c->buf[i]);
		c->buf[i] = NULL;
	}
}

static bool stripe_read(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const struct seg *s = &v->seg[c->victim];
	bool whole = true;

	for (unsigned i = 0; i < seg_width(s); i++) {
		c->buf[i] = lbuf_get(&v->unit_pool);
		if (!c->buf[i]) {
			bufs_put(c);
			return false;
		}
		if (i < s->k)
			whole &= seg_unit_there(v, s, i);
	}
	c->have = 0;
	batch_begin(&c->batch, NULL);
	for (unsigned i = 0; i < seg_width(s); i++) {
		/* Parity too, where a data unit is away. */
		if (!seg_unit_there(v, s, i) || (i >= s->k && whole))
			continue;
		c->have |= 1u << i;
		batch_io(v, &c->batch, s->comp[i], BDEV_READ, 0,
			 seg_unit_off(v, s, i, c->stripe), c->buf[i], 0,
			 v->label.unit_bytes);
		v->stat.clean_read_bytes += v->label.unit_bytes;
	}
	batch_end(v, &c->batch);
	c->phase = CLEAN_READ;
	return true;
}

static unsigned bits(uint32_t x)
{
	return (unsigned)__builtin_popcount(x);
}

static void units_decode(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const struct seg *s = &v->seg[c->victim];
	uint8_t *unit[FMT_COMPS_MAX];
	uint32_t from = c->have;

	if (!s->m || bits(c->have) < s->k)
		return;
	while (bits(from) > s->k)
		from &= from - 1;
	for (unsigned i = 0; i < seg_width(s); i++)
		unit[i] = c->buf[i]->data;
	for (unsigned i = 0; i < s->k; i++) {
		if (c->have & 1u << i)
			continue;
		if (c->buf[i]->refs > 1) /* a stuck drive may write to it */
			continue;
		ec_decode(seg_ec(v, s->k, s->m), v->label.unit_bytes, from, i,
			  unit, unit[i]);
		c->have |= 1u << i;
	}
}

/* Without a sound summary the map itself says what is in the stripe. */
static void entries_from_map(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	c->entries = 0;
	for (uint64_t i = 0; i < v->map.leaves; i++) {
		const struct leaf *l = v->map.leaf[i];

		for (unsigned j = 0; l && j < FMT_LEAF; j++) {
			const uint64_t loc = l->loc[j];

			if (loc_kind(loc) != LOC_SEG ||
			    loc_seg_index(loc) != c->victim ||
			    loc_stripe(loc) != c->stripe)
				continue;
			c->entry[c->entries++] = (struct fmt_sum_entry) {
				.lba = i * FMT_LEAF + j,
			};
		}
	}
}

static void entries_find(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const struct seg *s = &v->seg[c->victim];
	const struct fmt_sum *sum = NULL;

	c->at = 0;
	if (c->have & 1u << (s->k - 1))
		sum = fmt_sum_find(c->buf[s->k - 1]->data, v->label.unit_bytes,
				   v->uuid);
	if (!sum || sum->seg_id != s->id || sum->stripe != c->stripe) {
		entries_from_map(v);
		return;
	}
	c->entries = sum->entries;
	memcpy(c->entry,
	       (const uint8_t *)sum - sum->entries * sizeof(*c->entry),
	       sum->entries * sizeof(*c->entry));
}

/* ---- one block ----------------------------------------------------- */

/* Its segment may be from before the codec changed. */
static void block_recode(struct vlog *v, uint64_t lba, const uint8_t **stored,
			 unsigned *grans, unsigned *codec, uint32_t *crc)
{
	struct cleaner *c = v->cleaner;

	if (*stored && v->seg[c->victim].id < v->conf.codec_since)
		stored_recode(v, lba, stored, grans, codec, crc, c->recoded);
}

/* False: the cold stripe is full, or there is none to be had. */
static bool cold_add(struct vlog *v, uint64_t lba, uint64_t loc, uint32_t crc,
		     const uint8_t *stored)
{
	struct cleaner *c = v->cleaner;
	unsigned grans = loc_grans(loc), codec = loc_codec(loc);
	const uint8_t *bytes = stored;
	uint32_t crc_now = crc;
	struct stripe_entry *e;
	uint8_t *p;

	if (!v->cold)
		v->cold = stripe_begin(v, STREAM_COLD);
	if (!v->cold)
		return false;
	block_recode(v, lba, &bytes, &grans, &codec, &crc_now);
	p = stripe_add(v, v->cold, bytes ? grans : 1, &e);
	if (!p) {
		stripe_write(v, v->cold);
		v->cold = NULL;
		c->urgent_moves = false;
		return cold_add(v, lba, loc, crc, stored);
	}
	if (bytes)
		memcpy(p, bytes, (size_t)grans * FMT_GRAN);
	else
		memset(p, 0, FMT_GRAN);
	e->lba = lba;
	e->old = loc;
	e->crc = crc_now;
	e->flags = bytes ? (uint8_t)(codec << ENT_CODEC_SHIFT) : ENT_BAD;
	e->seg = c->victim;
	seg_pin(v, c->victim);
	v->seg[c->victim].moves++;
	if (c->why > WHY_SPACE) {
		c->urgent_moves = true;
		resync_moved(v, grans, v->cold->k);
	}
	c->credit -= grans;
	return true;
}

static void block_fetched(struct fetch *f, int result)
{
	struct cleaner *c = container_of(f, struct cleaner, fetch);

	c->fetched = result;
	c->fetched_over = true;
	vlog_kick(f->v);
}

/* True: on to the next; false: waits. */
static bool block_move(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const uint64_t lba = c->entry[c->at].lba;
	uint64_t loc = 0;
	uint32_t crc = 0;
	const uint8_t *p;

	if (lba < v->label.size_blocks)
		loc = map_loc(v, lba, &crc);
	if (loc_kind(loc) != LOC_SEG || loc_seg_index(loc) != c->victim ||
	    loc_stripe(loc) != c->stripe)
		return true; /* dead */
	p = c->buf[loc_unit(loc)]->data + (size_t)loc_gran(loc) * FMT_GRAN;
	if (c->have & 1u << loc_unit(loc) &&
	    (MUT(NO_CRC) ||
	     codec_block_crc(v->crc_seed, lba, p,
			     (size_t)loc_grans(loc) * FMT_GRAN) == crc))
		return cold_add(v, lba, loc, crc, p);
	c->fetch = (struct fetch) {
		.lba = lba,
		.loc = loc,
		.crc = crc,
		.bad = seg_unit_there(v, &v->seg[c->victim], loc_unit(loc)),
		.stored = c->stored,
		.done = block_fetched,
	};
	c->fetched_over = false;
	c->phase = CLEAN_FETCH;
	fetch_submit(v, &c->fetch);
	return false;
}

static bool fetch_take(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const struct fetch *f = &c->fetch;

	/* What cannot be read now may be when a member is back: one that died
	 * may not have been noticed yet. */
	if (c->fetched && f->partial) {
		v->seg[c->victim].held = true;
		c->at++;
		c->phase = CLEAN_MOVE;
		return true;
	}
	if (!cold_add(v, f->lba, f->loc, f->crc, c->fetched ? NULL : c->stored))
		return false;
	c->at++;
	c->phase = CLEAN_MOVE;
	return true;
}

/* ---- one victim ---------------------------------------------------- */

static bool victim_begin(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const uint32_t victim = victim_choose(v, &c->why);

	if (victim == SEG_NONE || !resync_may(v, c->why))
		return false;
	c->victim = victim;
	c->stripe = 0;
	if (!stripe_read(v)) {
		c->victim = SEG_NONE;
		return false;
	}
	c->u_victims = 0.9 * c->u_victims +
		       0.1 * (c->why > WHY_SPACE ? c->u_victims
						 : seg_use(v, &v->seg[victim]));
	seg_pin(v, victim);
	return true;
}

static void victim_end(struct vlog *v)
{
	struct cleaner *c = v->cleaner;
	const uint32_t victim = c->victim;

	bufs_put(c);
	c->victim = SEG_NONE;
	c->phase = CLEAN_IDLE;
	v->stat.cleaned_segs++;
	if (MUT(FREE_EARLY)) {
		v->seg[victim].live = 0;
		v->seg[victim].pins = 1;
	}
	seg_unpin(v, victim);
}

static bool stripe_moved(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	bufs_put(c);
	/* A member that is back makes its segments whole. */
	if (c->stripe + 1 == v->label.stripes || !v->seg[c->victim].live ||
	    (c->why >= WHY_LOST &&
	     resync_why(v, &v->seg[c->victim]) < c->why)) {
		victim_end(v);
		return true;
	}
	if (!resync_may(v, c->why))
		return false;
	c->stripe++;
	if (stripe_read(v))
		return true;
	c->stripe--; /* no buffers now: this one again, harmlessly */
	c->entries = c->at = 0;
	return false;
}

static bool move_step(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	while (c->at < c->entries) {
		if (!block_move(v))
			return false;
		c->at++;
	}
	return stripe_moved(v);
}

/* What cannot wait is not held back for want of company. */
static bool cold_flush(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	if (!v->cold || !v->cold->entries ||
	    (!c->urgent_moves && !seg_space_low(v)))
		return false;
	stripe_write(v, v->cold);
	v->cold = NULL;
	c->urgent_moves = false;
	return true;
}

static bool idle_step(struct vlog *v)
{
	return victim_begin(v) || cold_flush(v);
}

/* The vDisk closes: what is half done is as if it had not begun. */
static bool wind_up(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	if (v->cold) {
		stripe_drop(v, v->cold);
		v->cold = NULL;
	}
	if (c->phase == CLEAN_IDLE || !batch_over(&c->batch) ||
	    (c->phase == CLEAN_FETCH && !c->fetched_over))
		return false;
	bufs_put(c);
	c->phase = CLEAN_IDLE;
	seg_unpin(v, c->victim);
	c->victim = SEG_NONE;
	return true;
}

bool clean_step(struct vlog *v)
{
	struct cleaner *c = v->cleaner;

	if (v->state != VLOG_SERVING)
		return v->state == VLOG_OPENING ? false : wind_up(v);
	/* A cold stripe on a member that was lost would only fail. */
	if (v->cold && v->seg[v->cold->seg].state != SEG_OPEN &&
	    v->seg[v->cold->seg].next < v->label.stripes) {
		stripe_drop(v, v->cold);
		v->cold = NULL;
	}
	switch (c->phase) {
	case CLEAN_IDLE:
		return idle_step(v);
	case CLEAN_READ:
		if (!batch_over(&c->batch))
			return false;
		for (unsigned i = 0; i < seg_width(&v->seg[c->victim]); i++)
			if (c->batch.failed & 1u << v->seg[c->victim].comp[i])
				c->have &= ~(1u << i);
		units_decode(v);
		entries_find(v);
		c->phase = CLEAN_MOVE;
		return true;
	case CLEAN_MOVE:
		return move_step(v);
	case CLEAN_FETCH:
		return c->fetched_over && fetch_take(v);
	}
	return false;
}

bool cleaner_idle(const struct vlog *v)
{
	return v->cleaner->phase == CLEAN_IDLE && !v->cold;
}

void cleaner_info(const struct vlog *v, struct vlog_info *info)
{
	info->victim_live = v->cleaner->u_victims;
}
