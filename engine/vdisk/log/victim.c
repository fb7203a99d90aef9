/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which segments the cleaner moves, and how much for the sake of room.
 *
 * Pay as you go: user data that goes to segments gives credit, in the measure
 * in which free space is short of F_HI, so that at F_T cleaning keeps exactly
 * pace. There is no threshold at which it starts, hence no cliff.
 */
#include "engine/vdisk/log/clean.h"

#define F_HI 0.10
#define F_T 0.03
#define LOW_SLOTS 4.0 /* of a member: above where users wait, */
#define F_CLEAR 0.08  /* if that is no more than this share */
#define CREDIT_SEGS 4 /* never owe more than that many segments */

/* ---- how much ------------------------------------------------------ */

static double at_least(double x, double y)
{
	return x > y ? x : y;
}

/* Of the member that has fewest, in ordinary use. */
static double slots_least(const struct vlog *v)
{
	uint32_t least = seg_slots_ordinary(v);

	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].alive && v->member[i].slots < least)
			least = v->member[i].slots;
	return least;
}

/* More than users must leave free, or they would wait before it acts: where no
 * slots are kept for when members are away. */
static double f_clear(const struct vlog *v, double least)
{
	const uint32_t most = seg_slots_ordinary(v);
	double beyond = LOW_SLOTS, clear = 0;

	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];
		const uint32_t more = m->slots > most ? m->slots - most : 0;

		if (m->alive && more < beyond)
			beyond = more;
	}
	clear = (LOW_SLOTS - beyond) / least;
	return clear < F_CLEAR ? clear : F_CLEAR;
}

/* Small vDisks count in slots rather than in percent. */
static double f_t(const struct vlog *v)
{
	const double least = slots_least(v);

	return at_least(at_least(F_T, 3.0 / least), f_clear(v, least));
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
double victim_use(const struct vlog *v, const struct seg *s)
{
	const unsigned k = seg_k_now(v);
	const double packed =
		v->label.stripes * (double)geo_stripe_grans(&v->label, k);

	return s->live / packed * (k + v->m) / seg_width(s);
}

static double benefit(const struct vlog *v, const struct seg *s)
{
	const double u = victim_use(v, s);
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

static const struct victim none = { SEG_NONE, WHY_NONE, 0 };

static void best_take(struct victim *b, uint32_t seg, enum clean_why why,
		      double benefit)
{
	if (b->seg == SEG_NONE || why > b->why ||
	    (why == b->why && benefit > b->benefit))
		*b = (struct victim) { seg, why, benefit };
}

struct scan {
	struct victim due;     /* for its reason */
	struct victim crowded; /* for a reason, but there is no room for it */
	struct victim room;    /* to make some */
	double gain;           /* segments that all of the latter would free */
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

		if (s->state == SEG_FREE || s->held)
			continue;
		why = wanted ? resync_why(v, s) : WHY_NONE;
		/* What would be written to it would only be moved again. */
		if (why != WHY_NONE)
			seg_close(v, i);
		if (!s->live)
			continue;
		scan->rebuild |= why >= WHY_BAD;
		/* Or its entries are on their way already. */
		if (s->state != SEG_SEALED || s->moves || s->cleaning) {
			scan->under_way |= why != WHY_NONE;
			continue;
		}
		gain = benefit(v, s);
		if (gain > 0) {
			scan->gain += 1 - victim_use(v, s);
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
static struct victim scan_best(const struct vlog *v, const struct scan *scan,
			       bool space)
{
	if (scan->due.seg != SEG_NONE)
		return scan->due;
	/* With less than one to be had, rewriting would go round in circles. */
	if (scan->gain >= 1 && space)
		return scan->room;
	if (scan->gain >= 1 && scan->crowded.seg != SEG_NONE)
		return (struct victim) { scan->room.seg, WHY_ROOM, 0 };
	return seg_space_low(v) ? none : scan->crowded;
}

struct victim victim_choose(struct vlog *v)
{
	const bool space = space_due(v), wanted = resync_wanted(v);
	struct scan scan;
	struct victim best;
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
