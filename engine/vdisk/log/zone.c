/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Zones: where records lie, each on m + 1 members.
 *
 *   OPENING (its header is being written; checkpoints know it already)
 *   -> READY -> SEALED (full, or a member lost) -> freed by log_trim()
 *
 * Several are open at once, one a lane: with one, the log of n drives would be
 * as fast as one of them. A record goes to the lane whose members have least
 * to do, destage and checkpoints counted, so that the log evens out what those
 * leave uneven. Records of a zone are in LSN order but not without gaps;
 * recovery goes by their LSNs and never minded.
 *
 * A zone is needed while it is open, its header is on its way, or it holds an
 * LSN that no checkpoint covers.
 * Lanes are used in turn, so the open ones are the youngest; one that was left
 * behind would hold back the log's tail, and is sealed when a checkpoint
 * begins.
 */
#include "engine/vdisk/log/impl.h"

#include <string.h>

#define LANE_AGE 3 /* rounds of all lanes before one is left behind */

uint64_t zone_slot_off(const struct vlog *v, uint32_t slot)
{
	return FMT_LOG_OFF + (uint64_t)slot * v->label.zone_bytes;
}

/* One a member, but never more than a third of what the log can hold. */
unsigned zone_lanes(const struct vlog *v)
{
	const unsigned alive = member_alive_count(v);
	const uint64_t third =
		(uint64_t)alive * v->label.zones / (v->m + 1) / 3;
	const unsigned most = alive < LANES_MAX ? alive : LANES_MAX;

	if (third < 1)
		return 1;
	return third < most ? (unsigned)third : most;
}

/* ---- opening ------------------------------------------------------- */

static uint32_t zone_slot_find(struct vlog *v, unsigned comp)
{
	const uint32_t zones = v->label.zones;
	uint32_t at = (uint32_t)rng_below(reactor_rng(v->r), zones);

	for (uint32_t i = 0; i < zones; i++, at = (at + 1) % zones)
		if (!bit_get(v->member[comp].zone_used, at))
			return at;
	id_assert(!"zones_free is wrong");
	return 0;
}

static unsigned lanes_on(const struct vlog *v, unsigned comp)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LANES_MAX; i++)
		for (unsigned c = 0; v->lane[i] && c < v->lane[i]->copies; c++)
			count += v->lane[i]->comp[c] == comp;
	return count;
}

/* Those with fewest open zones, then with most free slots. */
static bool zone_members_pick(struct vlog *v, struct zone *z)
{
	const unsigned turn = (unsigned)rng_below(reactor_rng(v->r), v->n);
	uint32_t taken = 0;

	for (unsigned got = 0; got < z->copies; got++) {
		unsigned fewest = 0;
		int best = -1;

		for (unsigned i = 0; i < v->n; i++) {
			const unsigned c = (i + turn) % v->n;
			const struct member *m = &v->member[c];
			const unsigned on = lanes_on(v, c);

			if (!m->alive || taken & 1u << c || !m->zones_free)
				continue;
			if (best < 0 || on < fewest ||
			    (on == fewest &&
			     m->zones_free > v->member[best].zones_free)) {
				best = (int)c;
				fewest = on;
			}
		}
		if (best < 0)
			return false;
		taken |= 1u << best;
		z->comp[got] = (uint8_t)best;
	}
	return true;
}

static void zone_list_add(struct vlog *v, struct zone *z)
{
	struct zone **at = &v->zones;

	while (*at)
		at = &(*at)->next;
	*at = z;
}

static void zone_header_write(struct vlog *v, struct zone *z)
{
	struct fmt_zone h = { .zseq = z->zseq,
			      .first_lsn = z->first_lsn,
			      .durable_lsn = v->durable,
			      .copies = z->copies };

	for (unsigned i = 0; i < z->copies; i++) {
		h.comp[i] = z->comp[i];
		h.slot[i] = z->slot[i];
	}
	memset(z->buf->data, 0, FMT_BLOCK);
	memcpy(z->buf->data, &h, sizeof(h));
	fmt_seal(z->buf->data, FMT_ZONE, v->uuid, FMT_COMP_ANY, 0, v->log_epoch,
		 sizeof(h));
	batch_begin(&z->batch, NULL);
	for (unsigned i = 0; i < z->copies; i++) {
		batch_io(v, &z->batch, z->comp[i], BDEV_WRITE, BDEV_FUA,
			 zone_slot_off(v, z->slot[i]), z->buf, 0, FMT_BLOCK);
		v->stat.log_bytes += FMT_BLOCK;
	}
	batch_end(v, &z->batch);
}

/* False: no slots, or no members; a checkpoint or a return will help. */
static bool zone_open(struct vlog *v, unsigned lane, uint64_t first_lsn)
{
	struct zone pick = { .copies = (uint8_t)(v->m + 1) };
	struct zone *z;

	if (MUT(LOG_M) && v->m)
		pick.copies = (uint8_t)v->m;
	if (!zone_members_pick(v, &pick))
		return false;
	pick.buf = lbuf_get(&v->page_pool);
	if (!pick.buf)
		return false;
	z = slab_get(&v->zone_slab);
	id_assert(z); /* there are no more than slots */
	*z = pick;
	z->zseq = ++v->zseq;
	z->first_lsn = first_lsn;
	z->pos = FMT_BLOCK;
	z->state = ZONE_OPENING;
	z->known = !MUT(ZONE_LATE); /* before its first write */
	for (unsigned i = 0; i < z->copies; i++) {
		z->slot[i] = zone_slot_find(v, z->comp[i]);
		bit_set(v->member[z->comp[i]].zone_used, z->slot[i]);
		v->member[z->comp[i]].zones_free--;
	}
	zone_list_add(v, z);
	v->lane[lane] = z;
	zone_header_write(v, z);
	return true;
}

static void lane_seal(struct vlog *v, unsigned lane)
{
	if (v->lane[lane])
		v->lane[lane]->state = ZONE_SEALED;
	v->lane[lane] = NULL;
}

void zone_retire(struct vlog *v, const struct zone *z)
{
	for (unsigned i = 0; i < LANES_MAX; i++)
		if (v->lane[i] == z && z->state == ZONE_READY) {
			lane_seal(v, i);
			return;
		}
}

void zones_seal(struct vlog *v)
{
	for (unsigned i = 0; i < LANES_MAX; i++)
		lane_seal(v, i);
}

void log_renew(struct vlog *v)
{
	zones_seal(v);
	v->renew_lsn = v->next_lsn;
}

bool log_settled(const struct vlog *v)
{
	return v->durable + 1 >= v->renew_lsn;
}

bool zones_step(struct vlog *v)
{
	bool moved = false;

	for (unsigned i = 0; i < LANES_MAX; i++) {
		struct zone *z = v->lane[i];

		if (!z || z->state != ZONE_OPENING || !batch_over(&z->batch))
			continue;
		lbuf_put(z->buf);
		z->buf = NULL;
		moved = true;
		if (z->batch.failed) {
			lane_seal(v, i);
			continue;
		}
		z->state = ZONE_READY;
		z->known = true;
	}
	return moved;
}

bool zones_broken(const struct vlog *v)
{
	for (unsigned i = 0; i < LANES_MAX; i++) {
		const struct zone *z = v->lane[i];

		if (!z || z->state != ZONE_READY)
			continue;
		for (unsigned c = 0; c < z->copies; c++)
			if (!v->member[z->comp[c]].alive)
				return true;
	}
	return false;
}

/* ---- choosing ------------------------------------------------------ */

/* The longest queue among its members: the record waits for all. */
static uint64_t zone_queue(const struct vlog *v, const struct zone *z)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < z->copies; i++) {
		const struct member *m = &v->member[z->comp[i]];

		longest = m->out_bytes > longest ? m->out_bytes : longest;
	}
	return longest;
}

/* The lane with the shortest queue; at a tie the emptiest zone, so that all
 * are used in turn. -1: none is ready. */
static int lane_choose(const struct vlog *v)
{
	uint64_t shortest = 0;
	int best = -1;

	for (unsigned i = 0; i < LANES_MAX; i++) {
		const struct zone *z = v->lane[i];
		uint64_t queue;

		if (!z || z->state != ZONE_READY)
			continue;
		queue = zone_queue(v, z);
		if (best < 0 || queue < shortest ||
		    (queue == shortest && z->pos < v->lane[best]->pos)) {
			best = (int)i;
			shortest = queue;
		}
	}
	return best;
}

/* True: at least one is ready or will be. */
static bool lanes_fill(struct vlog *v, uint64_t lsn)
{
	const unsigned lanes = zone_lanes(v);
	bool any = false;

	for (unsigned i = 0; i < LANES_MAX; i++) {
		if (!v->lane[i] && i < lanes)
			zone_open(v, i, lsn);
		any |= v->lane[i] != NULL;
	}
	return any;
}

struct zone *zone_for(struct vlog *v, uint64_t lsn, uint32_t len)
{
	for (;;) {
		int lane;

		if (!lanes_fill(v, lsn)) {
			v->log_waits = true;
			v->meta.wanted = true;
			return NULL;
		}
		lane = lane_choose(v);
		if (lane < 0)
			return NULL;
		if (v->lane[lane]->pos + len <= v->label.zone_bytes)
			return v->lane[lane];
		lane_seal(v, (unsigned)lane);
	}
}

/* ---- the tail ------------------------------------------------------ */

void zones_superseded(struct vlog *v)
{
	for (struct zone *z = v->zones; z; z = z->next)
		if (z->last_lsn > v->durable) {
			z->last_lsn = v->durable;
			z->cut = true;
		}
}

void zones_checkpoint(struct vlog *v)
{
	const uint64_t round = zone_lanes(v);

	for (unsigned i = 0; i < LANES_MAX; i++)
		if (v->lane[i] && v->lane[i]->state == ZONE_READY &&
		    v->lane[i]->zseq + LANE_AGE * round < v->zseq)
			lane_seal(v, i);
}

void log_trim(struct vlog *v, uint64_t zseq)
{
	struct zone **at = &v->zones, *z;

	while ((z = *at)) {
		if (z->zseq >= zseq) {
			at = &z->next;
			continue;
		}
		/* Under a planted fault anything may still be in flight. */
		for (unsigned i = 0; i < LANES_MAX; i++)
			if (z == v->lane[i])
				v->lane[i] = NULL;
		*at = z->next;
		for (unsigned i = 0; i < z->copies; i++) {
			bit_clear(v->member[z->comp[i]].zone_used, z->slot[i]);
			v->member[z->comp[i]].zones_free++;
		}
		lbuf_put(z->buf);
		slab_put(&v->zone_slab, z);
	}
	v->log_waits = false;
}

uint64_t log_start(const struct vlog *v, uint64_t lsn)
{
	const struct zone *newest = NULL;

	for (const struct zone *z = v->zones; z; z = z->next) {
		if (!z->known)
			continue;
		newest = z;
		if (MUT(TRIM_EARLY))
			continue;
		if (z->state != ZONE_SEALED || z->last_lsn > lsn ||
		    !batch_over(&z->batch))
			return z->zseq;
	}
	return MUT(TRIM_EARLY) && newest ? newest->zseq : v->zseq + 1;
}

double log_fill(const struct vlog *v)
{
	uint64_t used = 0, all = 0;

	for (unsigned i = 0; i < v->n; i++) {
		if (!v->member[i].alive)
			continue;
		used += v->label.zones - v->member[i].zones_free;
		all += v->label.zones;
	}
	return all ? (double)used / (double)all : 0;
}
