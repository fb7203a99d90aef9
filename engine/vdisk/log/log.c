/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log: records in LSN order, each in one of the open zones (zone.c).
 *
 *   rec: FILLING -> WAITING -> ISSUED -> (durable) applied, acknowledged, freed
 *                      ^          |
 *                      '----------'  a member failed: the zones are sealed, and
 *                                    all that is not durable goes into new
 *                                    ones on other members, LSNs unchanged
 *
 * Nothing is reissued before every write of the old zones has ended, so no
 * slot can be given to a new zone with an old write still to land.
 */
#include "engine/vdisk/log/impl.h"

#include <string.h>

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
			      .pay_crc = codec_crc_start(),
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
	h->pay_crc = codec_crc_end(rec->pay_crc);
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

/* COMMITs and SEALs are not held back by users' records, nor these by them. */
unsigned log_inflight(const struct vlog *v)
{
	unsigned count = 0;

	for (const struct rec *r = v->rec_first; r; r = r->next)
		count += r->type == REC_WRITE || r->type == REC_DISCARD;
	return count;
}

/* Every zone has something to do; few, so that each carries much. */
unsigned log_depth(const struct vlog *v)
{
	const unsigned lanes = zone_lanes(v);

	return lanes > RECS_INFLIGHT ? lanes : RECS_INFLIGHT;
}

static void rec_issue(struct vlog *v, struct rec *rec, struct zone *z)
{
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
			 zone_slot_off(v, z->slot[i]) + z->pos, rec->buf, 0,
			 len);
		v->stat.log_bytes += len;
	}
	batch_end(v, &rec->batch);
	z->pos += len;
	if (rec->lsn > z->last_lsn)
		z->last_lsn = rec->lsn;
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
	zones_superseded(v);
	v->log_relog = false;
	return true;
}

static bool log_failures(struct vlog *v)
{
	bool failed = zones_broken(v);

	for (struct rec *r = v->rec_first; r; r = r->next)
		failed |= r->state == REC_ISSUED && batch_over(&r->batch) &&
			  r->batch.failed;
	if (!failed || v->log_relog)
		return false;
	zones_seal(v);
	v->log_relog = true;
	return true;
}

static bool log_issue(struct vlog *v)
{
	bool moved = false;

	for (struct rec *r = v->rec_first; r; r = r->next) {
		struct zone *z;

		if (r->state == REC_ISSUED)
			continue;
		z = zone_for(v, r->lsn, r->hdr_len + r->pay_len);
		if (!z)
			break;
		rec_issue(v, r, z);
		moved = true;
	}
	return moved;
}

bool log_step(struct vlog *v)
{
	bool moved;

	if (v->state != VLOG_SERVING && v->state != VLOG_CLOSING)
		return false;
	moved = zones_step(v);
	moved |= log_advance(v);
	moved |= log_failures(v);
	if (v->log_relog)
		return log_relog(v) || moved;
	moved |= log_issue(v);
	return moved;
}
