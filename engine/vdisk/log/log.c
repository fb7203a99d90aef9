/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log: records in LSN order, zones on m + 1 members.
 *
 *   rec: FILLING -> WAITING -> ISSUED -> (durable) applied, acknowledged, freed
 *                      ^          |
 *                      '----------'  a member failed: the zone is sealed, and
 *                                    all that is not durable goes into a new
 *                                    one on other members, LSNs unchanged
 *
 *   zone: OPENING (its header is being written; checkpoints know it already)
 *         -> READY -> SEALED (full, or a member lost) -> freed by log_trim()
 *
 * Nothing is reissued before every write of the old zone has ended, so no slot
 * can be given to a new zone with an old write still to land.
 */
#include "engine/vdisk/log/impl.h"

#include <string.h>

/* ---- zones --------------------------------------------------------- */

static uint64_t zone_off(const struct vlog *v, uint32_t slot)
{
	return FMT_LOG_OFF + (uint64_t)slot * v->label.zone_bytes;
}

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

static bool zone_members_pick(struct vlog *v, struct zone *z)
{
	const unsigned turn = (unsigned)rng_below(reactor_rng(v->r), v->n);
	uint32_t taken = 0;

	for (unsigned got = 0; got < z->copies; got++) {
		int best = -1;

		for (unsigned i = 0; i < v->n; i++) {
			const unsigned c = (i + turn) % v->n;
			const struct member *m = &v->member[c];

			if (!m->alive || taken & 1u << c || !m->zones_free)
				continue;
			if (best < 0 ||
			    m->zones_free > v->member[best].zones_free)
				best = (int)c;
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
			 zone_off(v, z->slot[i]), z->buf, 0, FMT_BLOCK);
		v->stat.log_bytes += FMT_BLOCK;
	}
	batch_end(v, &z->batch);
}

/* False: no slots, or no members; a checkpoint or a return will help. */
static bool zone_open(struct vlog *v, uint64_t first_lsn)
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
	v->zone = z;
	zone_header_write(v, z);
	return true;
}

static void zone_seal(struct vlog *v)
{
	if (v->zone)
		v->zone->state = ZONE_SEALED;
	v->zone = NULL;
}

static bool zone_whole(const struct vlog *v, const struct zone *z)
{
	for (unsigned i = 0; i < z->copies; i++)
		if (!v->member[z->comp[i]].alive)
			return false;
	return true;
}

static bool zone_step(struct vlog *v)
{
	struct zone *z = v->zone;

	if (!z || z->state != ZONE_OPENING || !batch_over(&z->batch))
		return false;
	lbuf_put(z->buf);
	z->buf = NULL;
	if (z->batch.failed) {
		zone_seal(v);
		return true;
	}
	z->state = ZONE_READY;
	z->known = true;
	return true;
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
		if (z == v->zone)
			v->zone = NULL;
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
	uint64_t start = 0;

	for (const struct zone *z = v->zones; z; z = z->next)
		if (z->known && (z->first_lsn <= lsn + 1 || MUT(TRIM_EARLY)))
			start = z->zseq;
	if (!start || (lsn + 1 == v->next_lsn && !v->zone))
		start = v->zseq + 1;
	return start;
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

/* ---- records ------------------------------------------------------- */

struct rec *rec_get(struct vlog *v, enum fmt_type type, bool user)
{
	struct rec *rec = NULL;
	struct lbuf *buf;

	if (v->recs_used >= (user ? RECS - RECS_RESERVED : RECS))
		return NULL;
	buf = lbuf_get(&v->rec_pool);
	if (!buf)
		return NULL;
	for (unsigned i = 0; i < RECS && !rec; i++)
		if (v->rec[i].state == REC_FREE)
			rec = &v->rec[i];
	id_assert(rec);
	v->recs_used++;
	*rec = (struct rec) { .buf = buf,
			      .type = (uint8_t)type,
			      .state = REC_FILLING,
			      .seg = SEG_NONE };
	memset(buf->data, 0, FMT_BLOCK);
	return rec;
}

void rec_put(struct vlog *v, struct rec *rec)
{
	for (unsigned i = 0; i < rec->entries && rec->type == REC_WRITE; i++)
		if (rec->block[i])
			block_put(v, rec->block[i]);
	lbuf_put(rec->buf);
	rec->buf = NULL;
	rec->state = REC_FREE;
	v->recs_used--;
}

static uint32_t rec_entries_len(const struct rec *rec)
{
	switch (rec->type) {
	case REC_WRITE:
		return rec->entries * (uint32_t)sizeof(struct fmt_write);
	case REC_DISCARD:
		return rec->entries * (uint32_t)sizeof(struct fmt_discard);
	case REC_COMMIT:
		return (uint32_t)sizeof(struct fmt_commit) +
		       rec->entries * (uint32_t)sizeof(struct fmt_move);
	default:
		return (uint32_t)sizeof(struct fmt_commit);
	}
}

/* Gives it the next LSN. From here on the log has it. */
void rec_append(struct vlog *v, struct rec *rec)
{
	struct fmt_record *h = rec_head(rec);
	const uint32_t len = (uint32_t)sizeof(*h) + rec_entries_len(rec);

	rec->hdr_len = (len + FMT_BLOCK - 1) / FMT_BLOCK * FMT_BLOCK;
	memset(rec->buf->data + len, 0, rec->hdr_len - len);
	rec->lsn = v->next_lsn++;
	h->lsn = rec->lsn;
	h->hdr_len = rec->hdr_len;
	h->pay_len = rec->pay_len;
	h->entries = rec->entries;
	h->type = rec->type;
	h->pay_crc = codec_crc(rec->buf->data + rec->hdr_len, rec->pay_len);
	h->head.len = len;
	rec->state = REC_WAITING;
	rec->next = NULL;
	if (v->rec_last)
		v->rec_last->next = rec;
	else
		v->rec_first = rec;
	v->rec_last = rec;
	vlog_kick(v);
}

unsigned log_inflight(const struct vlog *v)
{
	unsigned count = 0;

	for (const struct rec *r = v->rec_first; r; r = r->next)
		count += r->state == REC_ISSUED || r->state == REC_WAITING;
	return count;
}

static void rec_issue(struct vlog *v, struct rec *rec)
{
	struct zone *z = v->zone;
	struct fmt_record *h = rec_head(rec);
	const uint32_t len = rec->hdr_len + rec->pay_len;

	h->zseq = z->zseq;
	h->durable_lsn = v->durable;
	fmt_seal(h, FMT_RECORD, v->uuid, FMT_COMP_ANY, z->pos, v->log_epoch,
		 h->head.len);
	rec->state = REC_ISSUED;
	batch_begin(&rec->batch, NULL);
	for (unsigned i = 0; i < z->copies; i++) {
		batch_io(v, &rec->batch, z->comp[i], BDEV_WRITE,
			 MUT(NO_FUA) ? 0 : BDEV_FUA,
			 zone_off(v, z->slot[i]) + z->pos, rec->buf, 0, len);
		v->stat.log_bytes += len;
	}
	batch_end(v, &rec->batch);
	z->pos += len;
}

/* ---- steps --------------------------------------------------------- */

static void rec_apply(struct vlog *v, struct rec *rec)
{
	const int rc = apply_record(v, rec_head(rec), rec->block);

	id_assert(!rc);
	rec->applied = true;
	if (rec->stripe)
		stripe_committed(v, rec->stripe);
	for (unsigned i = 0; i < rec->reqs; i++)
		ureq_part_done(v, rec->req[i], 0);
	rec->reqs = 0;
}

static bool rec_ok(const struct rec *r)
{
	return r->state == REC_ISSUED && batch_over(&r->batch) &&
	       !r->batch.failed;
}

/* The faults that tests plant here. */
static void advance_mutated(struct vlog *v)
{
	for (struct rec *r = v->rec_first; r; r = r->next) {
		if (r->applied)
			continue;
		if (MUT(ACK_ANY) && !(r->state == REC_ISSUED && r->batch.ok))
			return;
		if (MUT(APPLY_OOO) && !rec_ok(r))
			continue;
		rec_apply(v, r);
	}
}

static bool log_advance(struct vlog *v)
{
	bool moved = false;
	struct rec *r;

	if (MUT(ACK_ANY) || MUT(APPLY_OOO))
		advance_mutated(v);
	while ((r = v->rec_first) && rec_ok(r) &&
	       map_room(v, apply_changes(rec_head(r)))) {
		id_assert(r->lsn == v->durable + 1);
		v->durable++;
		if (!r->applied)
			rec_apply(v, r);
		v->rec_first = r->next;
		if (!v->rec_first)
			v->rec_last = NULL;
		rec_put(v, r);
		moved = true;
	}
	return moved;
}

/* A failure: once all writes of the zone have ended, all goes again. */
static bool log_relog(struct vlog *v)
{
	for (struct rec *r = v->rec_first; r; r = r->next)
		if (r->state == REC_ISSUED && !batch_over(&r->batch))
			return false;
	for (struct zone *z = v->zones; z; z = z->next)
		if (!batch_over(&z->batch))
			return false;
	for (struct rec *r = v->rec_first; r; r = r->next) {
		struct lbuf *copy;

		if (r->state != REC_ISSUED)
			continue;
		if (r->buf->refs > 1) { /* a stuck drive still reads it */
			copy = lbuf_get(&v->rec_pool);
			if (!copy)
				return false;
			memcpy(copy->data, r->buf->data,
			       r->hdr_len + r->pay_len);
			lbuf_put(r->buf);
			r->buf = copy;
		}
		r->state = REC_WAITING;
	}
	v->log_relog = false;
	return true;
}

static bool log_failures(struct vlog *v)
{
	bool failed = v->zone && v->zone->state == ZONE_READY &&
		      !zone_whole(v, v->zone);

	for (struct rec *r = v->rec_first; r; r = r->next)
		failed |= r->state == REC_ISSUED && batch_over(&r->batch) &&
			  r->batch.failed;
	if (!failed || v->log_relog)
		return false;
	zone_seal(v);
	v->log_relog = true;
	return true;
}

static bool log_issue(struct vlog *v)
{
	unsigned inflight = 0;
	bool moved = false;

	for (struct rec *r = v->rec_first; r; r = r->next) {
		if (r->state == REC_ISSUED) {
			inflight++;
			continue;
		}
		if (inflight >= RECS_INFLIGHT)
			break;
		if (v->zone && v->zone->state == ZONE_READY &&
		    v->zone->pos + r->hdr_len + r->pay_len >
			    v->label.zone_bytes)
			zone_seal(v);
		if (!v->zone) {
			if (!zone_open(v, r->lsn)) {
				v->log_waits = true;
				v->meta.wanted = true;
				break;
			}
			moved = true;
		}
		if (v->zone->state != ZONE_READY)
			break;
		rec_issue(v, r);
		inflight++;
		moved = true;
	}
	return moved;
}

bool log_step(struct vlog *v)
{
	bool moved;

	if (v->state != VLOG_SERVING && v->state != VLOG_CLOSING)
		return false;
	moved = zone_step(v);
	moved |= log_advance(v);
	moved |= log_failures(v);
	if (v->log_relog)
		return log_relog(v) || moved;
	moved |= log_issue(v);
	return moved;
}
