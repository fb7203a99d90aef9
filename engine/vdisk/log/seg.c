/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Segments: which slots of which members, how much of it is live, and when it
 * may be given back.
 *
 *   FREE -> OPEN -> CLOSED -> SEALED -> FREE
 *             |        |         when nothing in it is live and nobody has a
 *             |        |         hand on it; needs no record, it follows
 *             |        SEAL record, once no stripe is outstanding; one that was
 *             |        never committed goes back to FREE without
 *             all stripes begun, or a member lost
 *
 * What the log knows of (committed: id, place, live, sealed) is a function of
 * the log's prefix; the rest is of this run alone and does not survive.
 * k' = min(k, alive - m): stripes narrow, redundancy does not.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

#define RESERVE_SLOTS 2 /* of each member, for the cleaner alone */
#define HOT_QUEUE 8     /* units on a member before destage waits */
#define OPEN_SLOTS 4    /* of a difference that an open one outweighs */
#define LANE_SLOTS 5    /* free on each, for more than one open segment */

int segs_init(struct vlog *v)
{
	v->segs = v->label.segs;
	v->seg = calloc(v->segs, sizeof(*v->seg));
	for (unsigned i = 0; i < STREAMS; i++)
		for (unsigned j = 0; j < SEG_LANES; j++)
			v->open_seg[i][j] = SEG_NONE;
	return v->seg ? 0 : -ENOMEM;
}

void segs_fini(struct vlog *v)
{
	free(v->seg);
	v->seg = NULL;
	for (unsigned m = 0; m < array_len(v->ec); m++)
		for (unsigned k = 0; k < array_len(v->ec[m]); k++)
			ec_free(v->ec[m][k]);
}

const struct ec *seg_ec(const struct vlog *v, unsigned k, unsigned m)
{
	id_assert(m < array_len(v->ec) && k < array_len(v->ec[m]) &&
		  v->ec[m][k]);
	return v->ec[m][k];
}

int seg_ec_need(struct vlog *v, unsigned k, unsigned m)
{
	if (!m || v->ec[m][k])
		return 0;
	return ec_new(k, m, &v->ec[m][k]);
}

uint64_t seg_unit_off(const struct vlog *v, const struct seg *s, unsigned unit,
		      unsigned stripe)
{
	const uint64_t u = v->label.unit_bytes;

	return v->label.off_data +
	       (uint64_t)s->slot[unit] * u * v->label.stripes + stripe * u;
}

unsigned seg_k_now(const struct vlog *v)
{
	const unsigned alive = member_alive_count(v);

	if (alive <= v->m)
		return 0;
	return alive - v->m < v->k ? alive - v->m : v->k;
}

/* ---- space --------------------------------------------------------- */

uint32_t seg_slots_ordinary(const struct vlog *v)
{
	const unsigned alive = member_alive_count(v);

	return alive > v->m ? geo_slots_ordinary(&v->label, v->k, v->m, alive)
			    : UINT32_MAX;
}

double seg_free_share(const struct vlog *v)
{
	const uint32_t most = seg_slots_ordinary(v);
	int64_t free = 0, all = 0;

	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];
		const uint32_t slots = m->slots < most ? m->slots : most;

		if (!m->alive)
			continue;
		free += (int64_t)m->slots_free + slots - m->slots;
		all += slots;
	}
	return all ? (double)free / (double)all : 0;
}

double seg_room_share(const struct vlog *v)
{
	uint64_t free = 0, all = 0;

	for (unsigned i = 0; i < v->n; i++) {
		if (!v->member[i].alive)
			continue;
		free += v->member[i].slots_free;
		all += v->member[i].slots;
	}
	return all ? (double)free / (double)all : 0;
}

static unsigned members_with(const struct vlog *v, uint32_t slots)
{
	unsigned count = 0;

	for (unsigned i = 0; i < v->n; i++)
		count += v->member[i].alive && v->member[i].slots_free >= slots;
	return count;
}

bool seg_space_low(const struct vlog *v)
{
	return members_with(v, RESERVE_SLOTS + 2) < seg_k_now(v) + v->m;
}

unsigned seg_room_segs(const struct vlog *v, unsigned most)
{
	const unsigned width = seg_k_now(v) + v->m;
	unsigned segs = 0;

	for (uint32_t slots = width; segs < most; segs++, slots += width) {
		uint32_t there = 0;

		for (unsigned i = 0; i < v->n; i++) {
			const struct member *m = &v->member[i];
			const uint32_t free = m->alive ? m->slots_free : 0;

			there += free < segs + 1 ? free : segs + 1;
		}
		if (there < slots)
			break;
	}
	return segs;
}

static uint64_t slots_grans(const struct vlog *v, uint64_t slots)
{
	const unsigned k = seg_k_now(v);

	if (!k)
		return 0;
	return slots / (k + v->m) * v->label.stripes *
	       geo_stripe_grans(&v->label, k);
}

static uint32_t beyond_reserve(uint32_t slots)
{
	return slots > RESERVE_SLOTS + 1 ? slots - RESERVE_SLOTS - 1 : 0;
}

/* In the first `most` slots of each member that is there. */
static uint64_t space_grans(const struct vlog *v, uint32_t most)
{
	uint64_t slots = 0;

	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];

		if (m->alive)
			slots += beyond_reserve(m->slots < most ? m->slots
								: most);
	}
	return slots_grans(v, slots);
}

uint64_t seg_space_grans(const struct vlog *v)
{
	return space_grans(v, UINT32_MAX);
}

uint64_t seg_ordinary_grans(const struct vlog *v)
{
	return space_grans(v, seg_slots_ordinary(v));
}

static void slots_take(struct vlog *v, const struct seg *s)
{
	for (unsigned i = 0; i < seg_width(s); i++) {
		struct member *m = &v->member[s->comp[i]];

		id_assert(!bit_get(m->slot_used, s->slot[i]));
		bit_set(m->slot_used, s->slot[i]);
		m->slots_free--;
		m->slots_data += i < s->k;
		punch_taken(v, s->comp[i], s->slot[i]);
	}
}

static void slots_give(struct vlog *v, const struct seg *s)
{
	for (unsigned i = 0; i < seg_width(s); i++) {
		struct member *m = &v->member[s->comp[i]];

		id_assert(bit_get(m->slot_used, s->slot[i]));
		bit_clear(m->slot_used, s->slot[i]);
		m->slots_free++;
		m->slots_data -= i < s->k;
		punch_freed(v, s->comp[i], s->slot[i]);
	}
}

/* Any one, from a random place on, so that reuse is spread. */
static uint32_t slot_find(struct vlog *v, unsigned comp)
{
	const uint32_t slots = v->member[comp].slots;
	uint32_t at = (uint32_t)rng_below(reactor_rng(v->r), slots);

	for (uint32_t i = 0; i < slots; i++, at = (at + 1) % slots)
		if (!bit_get(v->member[comp].slot_used, at))
			return at;
	id_assert(!"slots_free is wrong");
	return 0;
}

static unsigned opens_on(const struct vlog *v, unsigned comp)
{
	unsigned count = 0;

	for (unsigned i = 0; i < STREAMS * SEG_LANES; i++) {
		const uint32_t index =
			v->open_seg[i / SEG_LANES][i % SEG_LANES];

		for (unsigned u = 0;
		     index != SEG_NONE && u < seg_width(&v->seg[index]); u++)
			count += v->seg[index].comp[u] == comp;
	}
	return count;
}

/*
 * Fills comp[] with `want` members that have most free slots; an open segment
 * counts as some more of them, so that those open together lie apart.
 */
static bool members_pick(struct vlog *v, unsigned want, uint32_t slots,
			 uint8_t *comp)
{
	const unsigned turn = (unsigned)rng_below(reactor_rng(v->r), v->n);
	uint32_t taken = 0;

	for (unsigned got = 0; got < want; got++) {
		int64_t most = 0;
		int best = -1;

		for (unsigned i = 0; i < v->n; i++) {
			const unsigned c = (i + turn) % v->n;
			const struct member *m = &v->member[c];
			const int64_t free =
				(int64_t)m->slots_free -
				(int64_t)opens_on(v, c) * OPEN_SLOTS;

			if (!m->alive || taken & 1u << c ||
			    m->slots_free < slots)
				continue;
			if (best < 0 || free > most) {
				best = (int)c;
				most = free;
			}
		}
		if (best < 0)
			return false;
		taken |= 1u << best;
		comp[got] = (uint8_t)best;
	}
	return true;
}

/*
 * The last m of those picked hold parity: who holds most data, as that is what
 * reads go to.
 */
static void parity_place(const struct vlog *v, unsigned width, uint8_t *comp)
{
	for (unsigned last = width - 1; last >= width - v->m; last--) {
		const uint8_t was = comp[last];
		unsigned most = last;

		for (unsigned i = 0; i < last; i++)
			if (v->member[comp[i]].slots_data >
			    v->member[comp[most]].slots_data)
				most = i;
		comp[last] = comp[most];
		comp[most] = was;
	}
}

static uint32_t seg_index_find(struct vlog *v)
{
	for (uint32_t i = 0; i < v->segs; i++) {
		const uint32_t at = (v->seg_hint + i) % v->segs;

		if (v->seg[at].state == SEG_FREE) {
			v->seg_hint = (at + 1) % v->segs;
			return at;
		}
	}
	return SEG_NONE;
}

uint64_t seg_id_next(const struct vlog *v)
{
	return (MUT(SEG_ID_AGAIN) ? 0 : v->epoch << 32) | (v->seg_counter + 1);
}

static uint32_t seg_alloc(struct vlog *v, enum stream stream)
{
	const uint32_t slots = stream == STREAM_COLD ? 1 : RESERVE_SLOTS + 1;
	unsigned k = seg_k_now(v);
	uint8_t comp[FMT_COMPS_MAX] = { 0 };
	uint32_t index;
	struct seg *s;

	if (!k)
		return SEG_NONE;
	/* Only the cleaner narrows for lack of space: it makes some. */
	while (!members_pick(v, k + v->m, slots, comp))
		if (stream != STREAM_COLD || --k == 0)
			return SEG_NONE;
	index = seg_index_find(v);
	if (index == SEG_NONE)
		return SEG_NONE;
	parity_place(v, k + v->m, comp);
	s = &v->seg[index];
	*s = (struct seg) {
		.id = seg_id_next(v),
		.lsn = v->durable,
		.k = (uint8_t)k,
		.m = (uint8_t)v->m,
		.state = SEG_OPEN,
	};
	v->seg_counter++;
	memcpy(s->comp, comp, sizeof(s->comp));
	for (unsigned i = 0; i < k + v->m; i++)
		s->slot[i] = slot_find(v, comp[i]);
	slots_take(v, s);
	v->segs_used++;
	return index;
}

static void seg_free(struct vlog *v, uint32_t index)
{
	struct seg *s = &v->seg[index];

	slots_give(v, s);
	s->state = SEG_FREE;
	s->committed = false;
	v->segs_used--;
	vlog_kick(v);
}

void seg_maybe_free(struct vlog *v, uint32_t index)
{
	struct seg *s = &v->seg[index];

	if (s->state == SEG_SEALED && !s->live && (!s->pins || MUT(SLOT_EARLY)))
		seg_free(v, index);
}

void seg_pin(struct vlog *v, uint32_t index)
{
	id_assert(v->seg[index].state != SEG_FREE);
	v->seg[index].pins++;
}

void seg_unpin(struct vlog *v, uint32_t index)
{
	struct seg *s = &v->seg[index];

	if (MUT(SLOT_EARLY) && !s->pins)
		return;
	id_assert(s->pins);
	s->pins--;
	seg_maybe_free(v, index);
}

/* ---- life of one --------------------------------------------------- */

void seg_close(struct vlog *v, uint32_t index)
{
	struct seg *s = &v->seg[index];

	if (s->state != SEG_OPEN)
		return;
	s->state = SEG_CLOSED;
	for (unsigned i = 0; i < STREAMS; i++)
		for (unsigned j = 0; j < SEG_LANES; j++)
			if (v->open_seg[i][j] == index)
				v->open_seg[i][j] = SEG_NONE;
	v->seals_due = true;
	vlog_kick(v);
}

/*
 * As many open segments as find members of their own, and only while there is
 * plenty of room: each holds slots that others may need.
 */
static unsigned seg_lanes(const struct vlog *v, enum stream stream)
{
	const unsigned width = seg_k_now(v) + v->m;
	const unsigned alive = member_alive_count(v);
	unsigned lanes = width ? (alive + width - 1) / width : 1;

	/* With one alone, users would wait for its few members. */
	if (stream != STREAM_HOT && members_with(v, LANE_SLOTS) < alive) {
		/* The cleaner gives back what it takes, soon. */
		const unsigned most = stream == STREAM_COLD
					      ? seg_room_segs(v, SEG_LANES + 1)
					      : 2;

		if (most <= lanes)
			lanes = most > 1 ? most - 1 : 1;
	}
	return lanes < SEG_LANES ? lanes : SEG_LANES;
}

/* The longest queue among its members. */
static uint64_t seg_queue(const struct vlog *v, const struct seg *s)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < seg_width(s); i++) {
		const uint64_t out = v->member[s->comp[i]].out_bytes;

		longest = out > longest ? out : longest;
	}
	return longest;
}

/* The open segment whose members have least to do. */
static uint32_t seg_open(struct vlog *v, enum stream stream)
{
	const unsigned lanes = seg_lanes(v, stream);
	uint32_t *open = v->open_seg[stream], best = SEG_NONE;
	uint64_t shortest = 0;

	for (unsigned i = 0; i < SEG_LANES; i++) {
		uint64_t queue;

		if (open[i] == SEG_NONE && i < lanes)
			open[i] = seg_alloc(v, stream);
		if (open[i] == SEG_NONE)
			continue;
		queue = seg_queue(v, &v->seg[open[i]]);
		if (best == SEG_NONE || queue < shortest) {
			best = open[i];
			shortest = queue;
		}
	}
	/* Enough to keep them busy; more would only delay the log. */
	if (stream == STREAM_HOT && best != SEG_NONE &&
	    shortest > (uint64_t)HOT_QUEUE * v->label.unit_bytes)
		return SEG_NONE;
	return best;
}

int seg_stripe_begin(struct vlog *v, enum stream stream, uint32_t *seg,
		     unsigned *stripe)
{
	const uint32_t index = seg_open(v, stream);
	struct seg *s;

	if (index == SEG_NONE)
		return -1;
	s = &v->seg[index];
	id_assert(s->state == SEG_OPEN);
	*seg = index;
	*stripe = s->next++;
	s->out++;
	if (s->next == v->label.stripes)
		seg_close(v, index);
	return 0;
}

void seg_stripe_end(struct vlog *v, uint32_t index, bool committed)
{
	struct seg *s = &v->seg[index];

	id_assert(s->out);
	s->out--;
	s->commits += committed;
	if (!committed)
		seg_close(v, index);
	if (s->state == SEG_CLOSED)
		v->seals_due = true;
	vlog_kick(v);
}

/* Nothing was written: the next may have it. */
void seg_stripe_cancel(struct vlog *v, uint32_t index, unsigned stripe)
{
	struct seg *s = &v->seg[index];

	id_assert(s->out);
	s->out--;
	if (s->state == SEG_OPEN && s->next == stripe + 1)
		s->next--;
	if (s->state == SEG_CLOSED)
		v->seals_due = true;
	vlog_kick(v);
}

/* Its segments get no more stripes: what comes goes to others at full m. */
void seg_member_lost(struct vlog *v, unsigned member)
{
	for (unsigned i = 0; i < STREAMS * SEG_LANES; i++) {
		const uint32_t index =
			v->open_seg[i / SEG_LANES][i % SEG_LANES];

		if (index == SEG_NONE)
			continue;
		for (unsigned u = 0; u < seg_width(&v->seg[index]); u++)
			if (v->seg[index].comp[u] == member) {
				seg_close(v, index);
				break;
			}
	}
}

void seg_streams_close(struct vlog *v)
{
	for (unsigned i = 0; i < STREAMS; i++)
		for (unsigned j = 0; j < SEG_LANES; j++)
			if (v->open_seg[i][j] != SEG_NONE)
				seg_close(v, v->open_seg[i][j]);
}

bool seg_as_policy(const struct vlog *v, const struct seg *s)
{
	if (s->m != v->m || s->id < v->conf.codec_since)
		return false;
	/* Narrow is right while members are away. */
	return s->k == v->k || seg_k_now(v) != v->k;
}

static bool seal(struct vlog *v, uint32_t index)
{
	struct seg *s = &v->seg[index];
	struct fmt_commit c = {
		.seg_id = s->id, .seg = index, .k = s->k, .m = s->m
	};
	struct rec *rec;

	if (!s->commits) {
		seg_free(v, index);
		return true;
	}
	rec = rec_get(v, REC_SEAL, false);
	if (!rec)
		return false;
	memcpy(c.comp, s->comp, sizeof(c.comp));
	memcpy(c.slot, s->slot, sizeof(c.slot));
	memcpy(rec_entries(rec), &c, sizeof(c));
	rec->seg = index;
	s->sealing = true;
	rec_append(v, rec);
	return true;
}

bool seg_step(struct vlog *v)
{
	bool moved = false, left = false;

	if (!v->seals_due)
		return false;
	for (uint32_t i = 0; i < v->segs; i++) {
		struct seg *s = &v->seg[i];

		if (s->state != SEG_CLOSED || s->sealing ||
		    (s->out && !MUT(SEAL_EARLY)))
			continue;
		if (seal(v, i))
			moved = true;
		else
			left = true;
	}
	v->seals_due = left;
	return moved;
}

/* ---- from the log, or a snapshot ----------------------------------- */

static bool place_ok(const struct vlog *v, const struct fmt_commit *c)
{
	uint32_t seen = 0;

	if (c->seg >= v->segs || c->m >= FMT_COPIES_MAX || !c->k ||
	    c->k + c->m > (int)v->n || c->stripe > v->label.stripes)
		return false;
	for (unsigned i = 0; i < c->k + c->m; i++) {
		if (c->comp[i] >= v->n || seen & 1u << c->comp[i] ||
		    c->slot[i] >= v->member[c->comp[i]].slots)
			return false;
		seen |= 1u << c->comp[i];
	}
	return true;
}

int seg_adopt(struct vlog *v, const struct fmt_commit *c, bool sealed)
{
	struct seg *s;

	if (!place_ok(v, c))
		return -EBADMSG;
	s = &v->seg[c->seg];
	if (s->state != SEG_FREE)
		return s->id == c->seg_id && s->k == c->k && s->m == c->m
			       ? 0
			       : -EBADMSG;
	for (unsigned i = 0; i < c->k + c->m; i++)
		if (bit_get(v->member[c->comp[i]].slot_used, c->slot[i]))
			return -EBADMSG;
	if (seg_ec_need(v, c->k, c->m))
		return -ENOMEM;
	*s = (struct seg) {
		.id = c->seg_id,
		.k = c->k,
		.m = c->m,
		.state = sealed ? SEG_SEALED : SEG_CLOSED,
		.sealing = true, /* by the epoch's end, or a record to come */
	};
	memcpy(s->comp, c->comp, sizeof(s->comp));
	memcpy(s->slot, c->slot, sizeof(s->slot));
	slots_take(v, s);
	v->segs_used++;
	return 0;
}
