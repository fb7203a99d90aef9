/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log, read back: which zones count, which LSNs stand on any member of
 * theirs, and their records applied in order to the first that stands on none.
 * A record is taken if it fits on one member; copies that are torn, rotten or
 * away do not matter while one is whole. So of each zone one copy is read, and
 * of the others what follows the first place where no record was found.
 */
#include "engine/vdisk/log/recover.h"

#include <stdlib.h>
#include <string.h>

static void replay_begin(struct vlog *v);

/* ---- zones --------------------------------------------------------- */

static bool zone_place_ok(const struct vlog *v, const struct fmt_zone *h)
{
	bool here = false;

	if (!h->copies || h->copies > FMT_COPIES_MAX)
		return false;
	for (unsigned i = 0; i < h->copies; i++) {
		if (h->comp[i] >= v->n || h->slot[i] >= v->label.zones)
			return false;
		here |= h->comp[i] == v->recovery->member &&
			h->slot[i] == v->recovery->slot;
	}
	return here;
}

static int zone_add(struct vlog *v, const struct fmt_zone *h)
{
	struct recovery *rv = v->recovery;
	uint32_t at = rv->zones;

	if (h->durable_lsn > rv->claimed_durable)
		rv->claimed_durable = h->durable_lsn;
	for (uint32_t i = 0; i < rv->zones; i++)
		if (rv->zone[i].h.zseq == h->zseq)
			return 0;
	if (rv->zones == rv->zones_room) {
		const uint32_t room = rv->zones_room ? rv->zones_room * 2 : 64;
		void *p = realloc(rv->zone, room * sizeof(*rv->zone));

		if (!p)
			return -ENOMEM;
		rv->zone = p;
		rv->zones_room = room;
	}
	while (at && rv->zone[at - 1].h.zseq > h->zseq) {
		rv->zone[at] = rv->zone[at - 1];
		at--;
	}
	rv->zone[at] = (struct found_zone) { .h = *h,
					     .whole = FMT_BLOCK,
					     .from = FMT_BLOCK };
	rv->zones++;
	return 0;
}

static int header_take(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	struct fmt_zone h;

	if (rv->now->batch.failed ||
	    fmt_check(rv->now->buf->data, FMT_ZONE, v->uuid, FMT_COMP_ANY, 0,
		      sizeof(h), FMT_BLOCK))
		return 0;
	memcpy(&h, rv->now->buf->data, sizeof(h));
	if ((h.head.epoch != v->log_epoch && !MUT(NO_ZONE_EPOCH)) ||
	    h.zseq < v->log_zone || h.zseq > 1ull << 60 ||
	    !zone_place_ok(v, &h))
		return 0;
	return zone_add(v, &h);
}

/* LSNs that the zones can hold at most: a record is a block or more. */
static int scan_begin(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	rv->recs_room = (uint64_t)rv->zones * v->label.zone_bytes / FMT_BLOCK;
	rv->rec = calloc(rv->recs_room + 1, sizeof(*rv->rec));
	if (!rv->rec)
		return -ENOMEM;
	for (unsigned i = 0; i < LANES; i++) {
		if (!rv->tail[i])
			rv->tail[i] = malloc(CARRY);
		if (!rv->tail[i])
			return -ENOMEM;
	}
	rv->phase = SCAN;
	rv->at = (struct scan_at) { 0 };
	return 0;
}

/*
 * A sector that cannot be read says nothing of what stands beside it, and may
 * be the one that was written when the power went. A member that is gone says
 * nothing at all, and to go on as if what it holds did not exist would be to
 * lose it. So where a read fails the label is asked for.
 */
static void probe(struct vlog *v, unsigned member)
{
	recover_read(v, member, FMT_LABEL_A, 0, FMT_BLOCK);
	v->recovery->probing = true;
}

static void probed(struct vlog *v, unsigned member)
{
	v->recovery->probing = false;
	if (v->recovery->now->batch.failed && !MUT(TOO_FEW))
		member_lost(v, member, -EIO);
}

/* Not read: once more; then, is the member still there? */
static bool header_again(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (!rv->now->batch.failed || !v->member[rv->member].alive)
		return false;
	if (rv->retried)
		probe(v, rv->member);
	else
		recover_read(v, rv->member, zone_slot_off(v, rv->slot), 0,
			     FMT_BLOCK);
	rv->retried = true;
	return true;
}

void recover_headers_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	int rc = 0;

	if (rv->waiting) {
		rv->waiting = false;
		if (rv->probing)
			probed(v, rv->member);
		else if (header_again(v))
			return;
		else
			rc = header_take(v);
		rv->retried = false;
		rv->slot++;
	}
	while (rv->member < v->n &&
	       (rv->slot == v->label.zones || !v->member[rv->member].alive)) {
		rv->slot = 0;
		rv->member++;
	}
	if (!rc && rv->member < v->n) {
		recover_read(v, rv->member, zone_slot_off(v, rv->slot), 0,
			     FMT_BLOCK);
		for (uint32_t i = rv->slot + 1; i < v->label.zones; i++)
			if (!recover_ahead(v, rv->member, zone_slot_off(v, i),
					   0, FMT_BLOCK))
				break;
		return;
	}
	if (!rc)
		rc = scan_begin(v);
	if (rc) {
		err_set(&rv->err, rc, "%s: no memory to read the log",
			v->label.name);
		recover_fail(v, rc);
	}
}

/* ---- records ------------------------------------------------------- */

static uint32_t scan_zone(const struct scan_at *at)
{
	return at->group * LANES + at->lane;
}

/* Zones begin with different ones of their members. */
static unsigned scan_copy(const struct vlog *v, const struct scan_at *at)
{
	const uint32_t zone = scan_zone(at);

	return (at->copy + zone) % v->recovery->zone[zone].h.copies;
}

static unsigned scan_comp(const struct vlog *v, const struct scan_at *at)
{
	return v->recovery->zone[scan_zone(at)].h.comp[scan_copy(v, at)];
}

static uint64_t scan_pos(const struct vlog *v, const struct scan_at *at)
{
	const struct recovery *rv = v->recovery;

	return rv->zone[scan_zone(at)].from + (uint64_t)at->step * rv->window;
}

static bool rec_of_zone(const struct fmt_record *r, const struct found_zone *z)
{
	return (r->head.epoch == z->h.head.epoch || MUT(NO_ZONE_EPOCH)) &&
	       r->zseq == z->h.zseq;
}

static void rec_note(struct vlog *v, const struct fmt_record *r, uint64_t pos)
{
	struct recovery *rv = v->recovery;
	struct found_rec *f;

	if (r->durable_lsn > rv->claimed_durable) {
		rv->claimed_durable = r->durable_lsn;
		rv->claimed_at = r->lsn;
	}
	if (r->lsn <= v->durable || r->lsn - v->durable > rv->recs_room)
		return;
	f = &rv->rec[r->lsn - v->durable - 1];
	/* The same record in a later zone: the first place will do. */
	if (f->zone)
		return;
	f->zone = scan_zone(&rv->at) + 1;
	f->pos_blocks = (uint32_t)(pos / FMT_BLOCK);
	f->len = r->hdr_len + r->pay_len;
}

/* Returns how much is left: a record cut off by the window's end. */
static uint32_t window_parse(struct vlog *v, const uint8_t *p, uint64_t pos)
{
	struct recovery *rv = v->recovery;
	struct found_zone *z = &rv->zone[scan_zone(&rv->at)];
	const uint64_t end = scan_pos(v, &rv->at) + rv->window_len;
	const bool last = end == v->label.zone_bytes;

	while (pos < end) {
		const uint32_t left = (uint32_t)(end - pos);
		uint32_t len = FMT_BLOCK;
		struct fmt_record r;

		if (left < FMT_RECORD_MAX && !last)
			break;
		memcpy(&r, p, sizeof(r));
		if (!fmt_record_check(p, v->uuid, pos, left, left) &&
		    rec_of_zone(&r, z) && fmt_payload_ok((const void *)p)) {
			rec_note(v, &r, pos);
			len = r.hdr_len + r.pay_len;
			if (z->whole == pos)
				z->whole += len;
		}
		pos += len;
		p += len;
	}
	return (uint32_t)(end - pos);
}

static void window_take(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	uint32_t *carry = &rv->carry[rv->at.lane];
	uint8_t *tail = rv->tail[rv->at.lane];
	uint8_t *p = rv->now->buf->data + CARRY;

	if (!rv->at.step)
		*carry = 0;
	memcpy(p - *carry, tail, *carry);
	*carry = window_parse(v, p - *carry, scan_pos(v, &rv->at) - *carry);
	memcpy(tail, p + rv->window_len - *carry, *carry);
}

/* There is such a window, and somebody to ask for it. */
static bool scan_there(const struct vlog *v, const struct scan_at *at)
{
	const struct recovery *rv = v->recovery;

	return scan_zone(at) < rv->zones &&
	       at->copy < rv->zone[scan_zone(at)].h.copies &&
	       scan_pos(v, at) < v->label.zone_bytes &&
	       v->member[scan_comp(v, at)].alive;
}

/* Where the next window of this copy is, from there on. False: there are no
 * more. */
static bool scan_settle(const struct vlog *v, struct scan_at *at)
{
	const struct recovery *rv = v->recovery;

	while (at->group * LANES < rv->zones) {
		if (at->lane < LANES) {
			if (scan_there(v, at))
				return true;
			at->lane++;
		} else if ((at->step + 1) * (uint64_t)rv->window <
			   v->label.zone_bytes) {
			at->lane = 0;
			at->step++;
		} else {
			at->lane = at->step = 0;
			at->group++;
		}
	}
	return false;
}

static uint64_t scan_off(const struct vlog *v, const struct scan_at *at)
{
	const struct fmt_zone *h = &v->recovery->zone[scan_zone(at)].h;

	return zone_slot_off(v, h->slot[scan_copy(v, at)]) + scan_pos(v, at);
}

static uint32_t scan_len(const struct vlog *v, const struct scan_at *at)
{
	const uint64_t left = v->label.zone_bytes - scan_pos(v, at);

	return left < v->recovery->window ? (uint32_t)left
					  : v->recovery->window;
}

static void scan_block_read(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	recover_read(v, scan_comp(v, &rv->at), scan_off(v, &rv->at) + rv->block,
		     CARRY + rv->block, FMT_BLOCK);
}

/*
 * One sector that cannot be read, where the power went while it was written,
 * must not hide the records around it: it may be the same on every member.
 * What is not read, twice, is as if it were empty. False: the window is over.
 */
static bool scan_by_block(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const unsigned comp = scan_comp(v, &rv->at);

	if (rv->probing) {
		probed(v, comp);
		return false;
	}
	if (!v->member[comp].alive) {
		rv->by_block = rv->retried = false;
		return false;
	}
	if (!rv->by_block) {
		if (!rv->now->batch.failed)
			return false;
		if (MUT(SCAN_WINDOW)) {
			memset(rv->now->buf->data + CARRY, 0, rv->window_len);
			return false;
		}
		rv->by_block = true;
		rv->some_failed = false;
		rv->block = 0;
		memset(rv->now->buf->data + CARRY, 0, rv->window_len);
	} else if (rv->now->batch.failed && !rv->retried) {
		rv->retried = true;
		scan_block_read(v);
		return true;
	} else {
		rv->retried = false;
		if (rv->now->batch.failed) {
			rv->some_failed = true;
			memset(rv->now->buf->data + CARRY + rv->block, 0,
			       FMT_BLOCK);
		}
		rv->block += FMT_BLOCK;
	}
	if (rv->block < rv->window_len) {
		scan_block_read(v);
		return true;
	}
	rv->by_block = false;
	if (!rv->some_failed)
		return false;
	probe(v, comp);
	return true;
}

/* The other copies, one after another, from where the ones before left off. */
static bool scan_next(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	while (!scan_settle(v, &rv->at)) {
		if (rv->at.copy + 1 == FMT_COPIES_MAX)
			return false;
		for (uint32_t i = 0; i < rv->zones; i++)
			rv->zone[i].from = rv->zone[i].whole;
		rv->at = (struct scan_at) { .copy = rv->at.copy + 1 };
	}
	return true;
}

void recover_scan_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	struct scan_at at;

	if (rv->waiting) {
		rv->waiting = false;
		if (scan_by_block(v))
			return;
		if (v->member[scan_comp(v, &rv->at)].alive)
			window_take(v);
		rv->at.lane++;
	}
	if (!scan_next(v)) {
		replay_begin(v);
		return;
	}
	rv->window_len = scan_len(v, &rv->at);
	recover_read(v, scan_comp(v, &rv->at), scan_off(v, &rv->at), CARRY,
		     rv->window_len);
	for (at = rv->at, at.lane++; scan_settle(v, &at); at.lane++)
		if (!recover_ahead(v, scan_comp(v, &at), scan_off(v, &at),
				   CARRY, scan_len(v, &at)))
			break;
}

/* ---- replay -------------------------------------------------------- */

static void replay_begin(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (!recover_enough(v))
		return;
	rv->lsn = v->durable + 1;
	rv->end = rv->lsn;
	while (rv->end - rv->lsn < rv->recs_room &&
	       rv->rec[rv->end - rv->lsn].zone)
		rv->end++;
	if (rv->claimed_durable >= rv->end) {
		err_set(&rv->err, -EIO,
			"%s: records %llu to %llu of the log were "
			"acknowledged but stand on no member within reach; "
			"bring back what is missing",
			v->label.name, (unsigned long long)rv->end,
			(unsigned long long)rv->claimed_durable);
		recover_fail(v, -EIO);
		return;
	}
	rv->phase = REPLAY;
	rv->copy_tried = 0;
	vlog_kick(v);
}

static const struct found_rec *replay_rec(const struct vlog *v, uint64_t lsn)
{
	return &v->recovery->rec[lsn - v->durable - 1];
}

/* A copy that was not tried, of each record another one first; it was seen on
 * one, and is on all that did not fail since. -1: none. */
static int replay_copy(const struct vlog *v, uint64_t lsn, uint32_t tried)
{
	const struct found_rec *f = replay_rec(v, lsn);
	const struct fmt_zone *h = &v->recovery->zone[f->zone - 1].h;

	for (unsigned i = 0; i < h->copies; i++) {
		const unsigned c = (unsigned)((lsn + i) % h->copies);

		if (!(tried & 1u << c) && v->member[h->comp[c]].alive)
			return (int)c;
	}
	return -1;
}

static uint64_t replay_off(const struct vlog *v, uint64_t lsn, int copy)
{
	const struct found_rec *f = replay_rec(v, lsn);
	const struct fmt_zone *h = &v->recovery->zone[f->zone - 1].h;

	return zone_slot_off(v, h->slot[copy]) +
	       (uint64_t)f->pos_blocks * FMT_BLOCK;
}

static unsigned replay_comp(const struct vlog *v, uint64_t lsn, int copy)
{
	return v->recovery->zone[replay_rec(v, lsn)->zone - 1].h.comp[copy];
}

static bool replay_read(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const int copy = replay_copy(v, rv->lsn, rv->copy_tried);

	if (copy < 0)
		return false;
	rv->copy_tried |= 1u << copy;
	rv->window_len = replay_rec(v, rv->lsn)->len;
	recover_read(v, replay_comp(v, rv->lsn, copy),
		     replay_off(v, rv->lsn, copy), 0, rv->window_len);
	for (uint64_t lsn = rv->lsn + 1; lsn < rv->end; lsn++) {
		const int c = replay_copy(v, lsn, 0);

		if (c < 0 || !recover_ahead(v, replay_comp(v, lsn, c),
					    replay_off(v, lsn, c), 0,
					    replay_rec(v, lsn)->len))
			break;
	}
	return true;
}

static int replay_take(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const struct found_rec *f = replay_rec(v, rv->lsn);
	const struct found_zone *z = &rv->zone[f->zone - 1];
	const struct fmt_record *r = (const void *)rv->now->buf->data;

	if (rv->now->batch.failed ||
	    fmt_record_check(r, v->uuid, (uint64_t)f->pos_blocks * FMT_BLOCK,
			     rv->window_len, rv->window_len) ||
	    r->lsn != rv->lsn || !rec_of_zone(r, z) || !fmt_payload_ok(r))
		return -EAGAIN;
	return apply_record(v, r, NULL);
}

static void commit_begin(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	v->stat.replayed = rv->end - 1 - v->durable;
	v->durable = rv->end - 1;
	v->next_lsn = rv->end;
	v->zseq = v->log_zone ? v->log_zone - 1 : 0;
	if (rv->zones && rv->zone[rv->zones - 1].h.zseq > v->zseq)
		v->zseq = rv->zone[rv->zones - 1].h.zseq;
	for (uint32_t i = 0; i < v->segs; i++) {
		if (v->seg[i].state == SEG_FREE)
			continue;
		v->seg[i].state = SEG_SEALED;
		seg_maybe_free(v, i);
	}
	rv->phase = COMMIT;
	if (MUT(NO_EPOCH_CKPT)) {
		v->epoch = v->log_epoch;
		recover_content_committed(v);
		return;
	}
	v->log_epoch = v->epoch;
	meta_commit(v, false);
}

void recover_replay_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	int rc;

	if (rv->waiting) {
		rv->waiting = false;
		rc = replay_take(v);
		if (!rc) {
			rv->lsn++;
			rv->copy_tried = 0;
		} else if (rc != -EAGAIN) {
			err_set(&rv->err, -EIO,
				"%s: record %llu of the log contradicts the "
				"state before it",
				v->label.name, (unsigned long long)rv->lsn);
			recover_fail(v, -EIO);
			return;
		}
	}
	if (rv->lsn == rv->end) {
		if (recover_readers_idle(rv) && recover_enough(v))
			commit_begin(v);
	} else if (!replay_read(v) && !recover_again(v)) {
		err_set(&rv->err, -EAGAIN,
			"%s: a member failed while its log was read; open "
			"again",
			v->label.name);
		recover_fail(v, -EAGAIN);
	}
}
