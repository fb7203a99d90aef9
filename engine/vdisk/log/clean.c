/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cleaner: everything in the background is moving the live blocks of a
 * segment into new stripes under the policy of today. Rebuild after a loss,
 * room for new data, wider stripes once members are back: only the reason why
 * a segment is a victim differs.
 *
 * A few victims at a time, each stripe by stripe, all into one cold stripe:
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
 * Which and how much: victim.c.
 */
#include "engine/vdisk/log/clean.h"

#include <stdlib.h>
#include <string.h>

int cleaner_init(struct vlog *v)
{
	struct cleaner *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	v->cleaner = c;
	c->u_victims = 0.5;
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *j = &c->job[i];

		j->victim = SEG_NONE;
		j->entry = calloc((size_t)FMT_COMPS_MAX * unit_grans(v),
				  sizeof(*j->entry));
		if (!j->entry)
			return -ENOMEM;
	}
	return 0;
}

void cleaner_fini(struct vlog *v)
{
	if (!v->cleaner)
		return;
	for (unsigned i = 0; i < JOBS; i++)
		free(v->cleaner->job[i].entry);
	free(v->cleaner);
	v->cleaner = NULL;
}

/* ---- one stripe ---------------------------------------------------- */

static void bufs_put(struct job *j)
{
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(j->buf[i]);
		j->buf[i] = NULL;
	}
}

static bool stripe_read(struct vlog *v, struct job *j)
{
	const struct seg *s = &v->seg[j->victim];
	bool whole = true;
	unsigned turn;

	for (unsigned i = 0; i < seg_width(s); i++) {
		j->buf[i] = lbuf_get(&v->unit_pool);
		if (!j->buf[i]) {
			bufs_put(j);
			return false;
		}
		if (i < s->k)
			whole &= seg_unit_there(v, s, i);
	}
	/* Copies are read in turn, so that no drive reads all. */
	turn = s->k == 1 ? j->stripe % seg_width(s) : 0;
	if (!seg_unit_there(v, s, turn))
		turn = 0;
	j->have = 0;
	batch_begin(&j->batch, NULL);
	for (unsigned i = 0; i < seg_width(s); i++) {
		/* Parity too, where a data unit is away. */
		if (!seg_unit_there(v, s, i) ||
		    (whole && (s->k == 1 ? i != turn : i >= s->k)))
			continue;
		j->have |= 1u << i;
		batch_io(v, &j->batch, s->comp[i], BDEV_READ, 0,
			 seg_unit_off(v, s, i, j->stripe), j->buf[i], 0,
			 v->label.unit_bytes);
		v->stat.clean_read_bytes += v->label.unit_bytes;
	}
	batch_end(v, &j->batch);
	j->phase = CLEAN_READ;
	return true;
}

static unsigned bits(uint32_t x)
{
	return (unsigned)__builtin_popcount(x);
}

static void units_decode(struct vlog *v, struct job *j)
{
	const struct seg *s = &v->seg[j->victim];
	uint8_t *unit[FMT_COMPS_MAX];
	uint32_t from = j->have;

	if (!s->m || bits(j->have) < s->k)
		return;
	while (bits(from) > s->k)
		from &= from - 1;
	for (unsigned i = 0; i < seg_width(s); i++)
		unit[i] = j->buf[i]->data;
	for (unsigned i = 0; i < s->k; i++) {
		if (j->have & 1u << i)
			continue;
		if (j->buf[i]->refs > 1) /* a stuck drive may write to it */
			continue;
		ec_decode(seg_ec(v, s->k, s->m), v->label.unit_bytes, from, i,
			  unit, unit[i]);
		j->have |= 1u << i;
	}
}

/* Without a sound summary the map itself says what is in the stripe. */
static void entries_from_map(struct vlog *v, struct job *j)
{

	j->entries = 0;
	for (uint64_t i = 0; i < v->map.leaves; i++) {
		const struct leaf *l = v->map.leaf[i];

		for (unsigned at = 0; l && at < FMT_LEAF; at++) {
			const uint64_t loc = l->loc[at];

			if (loc_kind(loc) != LOC_SEG ||
			    loc_seg_index(loc) != j->victim ||
			    loc_stripe(loc) != j->stripe)
				continue;
			j->entry[j->entries++] = (struct fmt_sum_entry) {
				.lba = i * FMT_LEAF + at,
			};
		}
	}
}

static void entries_find(struct vlog *v, struct job *j)
{
	const struct seg *s = &v->seg[j->victim];
	const struct fmt_sum *sum = NULL;

	j->at = 0;
	if (j->have & 1u << (s->k - 1))
		sum = fmt_sum_find(j->buf[s->k - 1]->data, v->label.unit_bytes,
				   v->uuid);
	if (!sum || sum->seg_id != s->id || sum->stripe != j->stripe) {
		entries_from_map(v, j);
		return;
	}
	j->entries = sum->entries;
	memcpy(j->entry,
	       (const uint8_t *)sum - sum->entries * sizeof(*j->entry),
	       sum->entries * sizeof(*j->entry));
}

/* ---- one block ----------------------------------------------------- */

/* Its segment may be from before the codec changed. */
static void block_recode(struct vlog *v, struct job *j, uint64_t lba,
			 const uint8_t **stored, unsigned *grans,
			 unsigned *codec, uint32_t *crc)
{
	if (*stored && v->seg[j->victim].id < v->conf.codec_since)
		stored_recode(v, lba, stored, grans, codec, crc, j->recoded);
}

/* False: the cold stripe is full, or there is none to be had. */
static bool cold_add(struct vlog *v, struct job *j, uint64_t lba, uint64_t loc,
		     uint32_t crc, const uint8_t *stored)
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
	block_recode(v, j, lba, &bytes, &grans, &codec, &crc_now);
	p = stripe_add(v, v->cold, bytes ? grans : 1, &e);
	if (!p) {
		stripe_write(v, v->cold);
		v->cold = NULL;
		c->urgent_moves = false;
		return cold_add(v, j, lba, loc, crc, stored);
	}
	if (bytes)
		memcpy(p, bytes, (size_t)grans * FMT_GRAN);
	else
		memset(p, 0, FMT_GRAN);
	e->lba = lba;
	e->old = loc;
	e->crc = crc_now;
	e->flags = bytes ? (uint8_t)(codec << ENT_CODEC_SHIFT) : ENT_BAD;
	e->seg = j->victim;
	seg_pin(v, j->victim);
	v->seg[j->victim].moves++;
	c->urgent_moves |= j->why >= WHY_BAD;
	if (j->why > WHY_SPACE)
		resync_moved(v, grans, v->cold->k);
	c->credit -= grans;
	return true;
}

static void block_fetched(struct fetch *f, int result)
{
	struct job *j = container_of(f, struct job, fetch);

	j->fetched = result;
	j->fetched_over = true;
	vlog_kick(f->v);
}

/* True: on to the next; false: waits. */
static bool block_move(struct vlog *v, struct job *j)
{
	const uint64_t lba = j->entry[j->at].lba;
	uint64_t loc = 0;
	uint32_t crc = 0;
	const uint8_t *p;

	if (lba < v->label.size_blocks)
		loc = map_loc(v, lba, &crc);
	if (loc_kind(loc) != LOC_SEG || loc_seg_index(loc) != j->victim ||
	    loc_stripe(loc) != j->stripe)
		return true; /* dead */
	p = j->buf[loc_unit(loc)]->data + (size_t)loc_gran(loc) * FMT_GRAN;
	if (j->have & 1u << loc_unit(loc) &&
	    (MUT(NO_CRC) ||
	     codec_block_crc(v->crc_seed, lba, p,
			     (size_t)loc_grans(loc) * FMT_GRAN) == crc))
		return cold_add(v, j, lba, loc, crc, p);
	j->fetch = (struct fetch) {
		.lba = lba,
		.loc = loc,
		.crc = crc,
		.bad = seg_unit_there(v, &v->seg[j->victim], loc_unit(loc)),
		.stored = j->stored,
		.done = block_fetched,
	};
	j->fetched_over = false;
	j->phase = CLEAN_FETCH;
	fetch_submit(v, &j->fetch);
	return false;
}

static bool fetch_take(struct vlog *v, struct job *j)
{
	const struct fetch *f = &j->fetch;

	/* What cannot be read now may be when a member is back: one that died
	 * may not have been noticed yet. */
	if (j->fetched && f->partial && !MUT(LOST_EARLY)) {
		v->seg[j->victim].held = true;
		j->at++;
		j->phase = CLEAN_MOVE;
		return true;
	}
	if (!cold_add(v, j, f->lba, f->loc, f->crc,
		      j->fetched ? NULL : j->stored))
		return false;
	j->at++;
	j->phase = CLEAN_MOVE;
	return true;
}

/* ---- one victim ---------------------------------------------------- */

/* What moving a stripe of it writes, about. */
static uint64_t stripe_bytes(const struct vlog *v, const struct job *j)
{
	const struct seg *s = &v->seg[j->victim];
	const unsigned k = seg_k_now(v) ? seg_k_now(v) : 1;

	return (uint64_t)s->live * FMT_GRAN * (k + v->m) / k /
	       (v->label.stripes - j->stripe);
}

static bool budget_take(struct vlog *v, struct job *j)
{
	const uint64_t bytes = stripe_bytes(v, j);

	if (j->why <= WHY_SPACE)
		return true;
	if (!resync_may(v, j->why, bytes))
		return false;
	j->promised = bytes;
	return true;
}

static void budget_settle(struct vlog *v, struct job *j)
{
	resync_settle(v, j->promised);
	j->promised = 0;
}

/*
 * How many at a time: each may take room before it gives some back, those with
 * other reasons than room more than they give.
 */
static unsigned jobs_most(const struct vlog *v, enum clean_why why)
{
	const unsigned takes = why <= WHY_ROOM ? 1 : 4, width = v->k + v->m;
	const unsigned most = JOBS_UNITS / (width < 3 ? 3 : width);
	const unsigned room = seg_room_segs(v, takes * most + 1);

	return room > 2 * takes ? (room - 1) / takes : 1;
}

static bool victim_begin(struct vlog *v, struct job *j, unsigned busy)
{
	struct cleaner *c = v->cleaner;
	const struct victim next = victim_choose(v);

	if (next.seg == SEG_NONE || busy >= jobs_most(v, next.why))
		return false;
	j->why = next.why;
	j->victim = next.seg;
	j->stripe = 0;
	if (!budget_take(v, j) || !stripe_read(v, j)) {
		budget_settle(v, j);
		j->victim = SEG_NONE;
		return false;
	}
	if (j->why <= WHY_SPACE)
		c->u_victims +=
			(victim_use(v, &v->seg[j->victim]) - c->u_victims) / 10;
	seg_pin(v, j->victim);
	v->seg[j->victim].cleaning = true;
	return true;
}

static void job_end(struct vlog *v, struct job *j)
{
	const uint32_t victim = j->victim;

	budget_settle(v, j);
	bufs_put(j);
	j->victim = SEG_NONE;
	j->phase = CLEAN_IDLE;
	v->seg[victim].cleaning = false;
	seg_unpin(v, victim);
}

static void victim_end(struct vlog *v, struct job *j)
{
	v->stat.cleaned_segs++;
	if (MUT(FREE_EARLY)) {
		v->seg[j->victim].live = 0;
		v->seg[j->victim].pins = 1;
	}
	job_end(v, j);
}

static bool stripe_moved(struct vlog *v, struct job *j)
{
	const struct seg *s = &v->seg[j->victim];

	budget_settle(v, j);
	bufs_put(j);
	/* A member that is back makes its segments whole. */
	if (j->stripe + 1 == v->label.stripes || !s->live ||
	    (j->why >= WHY_LOST && resync_why(v, s) < j->why)) {
		victim_end(v, j);
		return true;
	}
	j->stripe++;
	if (budget_take(v, j) && stripe_read(v, j))
		return true;
	budget_settle(v, j);
	j->stripe--; /* not now: this one again, harmlessly */
	j->entries = j->at = 0;
	return false;
}

static bool move_step(struct vlog *v, struct job *j)
{
	while (j->at < j->entries) {
		if (!block_move(v, j))
			return false;
		j->at++;
	}
	return stripe_moved(v, j);
}

static bool job_step(struct vlog *v, struct job *j, unsigned busy)
{
	const struct seg *s;

	switch (j->phase) {
	case CLEAN_IDLE:
		return victim_begin(v, j, busy);
	case CLEAN_READ:
		if (!batch_over(&j->batch))
			return false;
		s = &v->seg[j->victim];
		for (unsigned i = 0; i < seg_width(s); i++)
			if (j->batch.failed & 1u << s->comp[i])
				j->have &= ~(1u << i);
		units_decode(v, j);
		entries_find(v, j);
		j->phase = CLEAN_MOVE;
		return true;
	case CLEAN_MOVE:
		return move_step(v, j);
	case CLEAN_FETCH:
		return j->fetched_over && fetch_take(v, j);
	}
	return false;
}

/* ---- all of them --------------------------------------------------- */

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

static void cold_drop(struct vlog *v)
{
	if (v->cold)
		stripe_drop(v, v->cold);
	v->cold = NULL;
}

/* The vDisk closes: what is half done is as if it had not begun. */
static bool wind_up(struct vlog *v)
{
	bool moved = false;

	cold_drop(v);
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *j = &v->cleaner->job[i];

		if (j->phase == CLEAN_IDLE || !batch_over(&j->batch) ||
		    (j->phase == CLEAN_FETCH && !j->fetched_over))
			continue;
		job_end(v, j);
		moved = true;
	}
	return moved;
}

static unsigned jobs_busy(const struct vlog *v)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < JOBS; i++)
		busy += v->cleaner->job[i].phase != CLEAN_IDLE;
	return busy;
}

bool clean_step(struct vlog *v)
{
	bool moved = false, none = false;
	unsigned going = 0, most;

	if (v->state != VLOG_SERVING)
		return v->state == VLOG_OPENING ? false : wind_up(v);
	/* A cold stripe on a member that was lost would only fail. */
	if (v->cold && v->seg[v->cold->seg].state != SEG_OPEN &&
	    v->seg[v->cold->seg].next < v->label.stripes)
		cold_drop(v);
	/* With none busy the first that begins is asked anyway. */
	most = jobs_busy(v) ? jobs_most(v, WHY_ROOM) : JOBS;
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *j = &v->cleaner->job[i];
		const unsigned busy = jobs_busy(v);
		const bool idle = j->phase == CLEAN_IDLE;

		if (idle && (none || busy >= most))
			continue;
		moved |= job_step(v, j, busy);
		none = idle && j->phase == CLEAN_IDLE;
		/* Some are done before the others go on. */
		going += j->phase != CLEAN_IDLE;
		if (going >= most)
			break;
	}
	return moved || (!jobs_busy(v) && cold_flush(v));
}

bool cleaner_idle(const struct vlog *v)
{
	return !jobs_busy(v) && !v->cold;
}

void cleaner_info(const struct vlog *v, struct vlog_info *info)
{
	info->victim_live = v->cleaner->u_victims;
}
