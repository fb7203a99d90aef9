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
#define CREDIT_SEGS 4 /* never owe more than that many segments */

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

	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];
		const uint32_t slots =
			m->alive ? seg_slots_ordinary(v, m) : UINT32_MAX;

		least = slots < least ? slots : least;
	}
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
	const double f = seg_free_share(v);
	const double u = c->u_victims < 1 ? c->u_victims : 1;
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

/* Of the slots it takes, the share that its live blocks take once they are
 * rewritten as today. From 1 on nothing is gained. */
static double seg_use(const struct vlog *v, const struct seg *s)
{
	const unsigned k = seg_k_now(v);
	const double packed =
		v->label.stripes * (double)geo_stripe_grans(&v->label, k);

	return s->live / packed * (k + v->m) / seg_width(s);
}

static double benefit(const struct vlog *v, const struct seg *s)
{
	const double u = seg_use(v, s);
	const double age = (double)(v->durable - s->lsn + 1);

	return (1 - u) * age / (1 + u);
}

static bool space_due(const struct vlog *v)
{
	return v->cleaner->credit > 0 || seg_room_share(v) < f_t(v) ||
	       seg_space_low(v);
}

/* Room to rewrite for other reasons than room. */
static bool spare(const struct vlog *v, enum clean_why why)
{
	if (why == WHY_POLICY)
		return seg_room_share(v) > f_hi(v);
	return !seg_space_low(v) && seg_room_share(v) > f_t(v) / 2;
}

struct best {
	uint32_t seg;
	enum clean_why why;
	double benefit;
};

static const struct best none = { SEG_NONE, WHY_NONE, 0 };

static void best_take(struct best *b, uint32_t seg, enum clean_why why,
		      double benefit)
{
	if (b->seg == SEG_NONE || why > b->why ||
	    (why == b->why && benefit > b->benefit))
		*b = (struct best) { seg, why, benefit };
}

struct scan {
	struct best due;     /* for its reason */
	struct best crowded; /* for a reason, but there is no room for it */
	struct best room;    /* to make some */
	double gain;         /* segments that all of the latter would free */
	bool under_way, rebuild;
};

static void victims_scan(struct vlog *v, bool wanted, struct scan *scan)
{
	const bool spare_for[] = {
		[WHY_POLICY] = spare(v, WHY_POLICY),
		[WHY_BAD] = spare(v, WHY_BAD),
		[WHY_LOST] = spare(v, WHY_LOST),
		[WHY_EXPOSED] = spare(v, WHY_EXPOSED),
	};

	*scan = (struct scan) { .due = none, .room = none, .crowded = none };
	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];
		enum clean_why why;
		double gain;

		if (s->state == SEG_FREE || !s->live || s->held)
			continue;
		why = wanted ? resync_why(v, s) : WHY_NONE;
		scan->rebuild |= why >= WHY_BAD;
		/* Or its entries are on their way already. */
		if (s->state != SEG_SEALED || s->moves) {
			scan->under_way |= why != WHY_NONE;
			continue;
		}
		gain = benefit(v, s);
		if (gain > 0) {
			scan->gain += 1 - seg_use(v, s);
			best_take(&scan->room, i, WHY_SPACE, gain);
		}
		if (why)
			best_take(spare_for[why] ? &scan->due : &scan->crowded,
				  i, why, gain);
	}
}

/*
 * What has a reason first, while there is room for it; else what makes room,
 * because users need it or because those with a reason do; and where nothing
 * makes room any more, the latter in what is left.
 */
static struct best scan_best(const struct vlog *v, const struct scan *scan,
			     bool space)
{
	if (scan->due.seg != SEG_NONE)
		return scan->due;
	/* With less than one to be had, rewriting would go round in circles. */
	if (scan->gain >= 1 && space)
		return scan->room;
	if (scan->gain >= 1 && scan->crowded.seg != SEG_NONE)
		return (struct best) { scan->room.seg, WHY_ROOM, 0 };
	return seg_space_low(v) ? none : scan->crowded;
}

static struct best victim_choose(struct vlog *v)
{
	const bool space = space_due(v), wanted = resync_wanted(v);
	struct scan scan;
	struct best best;
	bool crowded;

	if ((!space && !wanted) || !seg_k_now(v))
		return none;
	victims_scan(v, wanted, &scan);
	best = scan_best(v, &scan, space);
	if (!wanted)
		return best;
	crowded = scan.crowded.seg != SEG_NONE;
	/* Those under way wait for what is in the cold stripe. */
	v->cleaner->urgent_moves |= scan.under_way && best.seg == SEG_NONE;
	resync_scanned(v, &(const struct resync_scan) {
				  .best = best.why,
				  .rebuild = scan.rebuild,
				  .more = scan.under_way || crowded,
				  .starved = crowded && best.seg == SEG_NONE &&
					     !scan.under_way,
			  });
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
	c->urgent_moves |= c->why >= WHY_BAD;
	if (c->why > WHY_SPACE)
		resync_moved(v, grans, v->cold->k);
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
	const struct best best = victim_choose(v);
	const uint32_t victim = best.seg;

	c->why = best.why;
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
