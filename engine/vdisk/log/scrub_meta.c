/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The end of a pass: what no map points to.
 *
 *   FRONT  of each member: a label that is damaged is written from the other
 *          copy; a superblock that is, is written by a checkpoint that takes
 *          this member in
 *   SNAP   each piece of the newest content; in the background of one member
 *   ZONE   each record that counts; in the background of one copy
 *
 * Damage to a snapshot or to the log brings the next checkpoint forward: it
 * holds all of both, and goes elsewhere. Other work goes on meanwhile: what
 * changed while it was read is read again, or is no longer of interest.
 */
#include "engine/vdisk/log/scrub.h"

#include <string.h>

#define ROUNDS 4

static bool window_fill(struct vlog *v, uint32_t len)
{
	struct scrub *sc = v->scrub;

	lbuf_put(sc->window);
	sc->window = lbuf_get(&sc->windows);
	if (!sc->window) /* stuck drives hold them */
		return false;
	batch_begin(&sc->batch, NULL);
	batch_io(v, &sc->batch, sc->place.member, BDEV_READ, 0, sc->place.off,
		 sc->window, 0, len);
	batch_end(v, &sc->batch);
	v->stat.scrub_bytes += len;
	sc->waiting = true;
	return true;
}

static bool window_read(struct vlog *v, unsigned member, uint64_t off,
			uint32_t len)
{
	struct scrub *sc = v->scrub;

	sc->place.member = member;
	sc->place.off = off;
	sc->place.most = len;
	sc->place.tries = 0;
	return window_fill(v, len);
}

/* Of the piece or record whose first block was read. */
static uint64_t window_says(const struct scrub *sc)
{
	struct fmt_record r;

	memcpy(&r, sc->window->data, sizeof(r));
	if (r.head.magic == FMT_RECORD)
		return (uint64_t)r.hdr_len + r.pay_len;
	return ((uint64_t)r.head.len + FMT_BLOCK - 1) / FMT_BLOCK * FMT_BLOCK;
}

/*
 * What lies behind a piece or a record is not of it, and need not be readable:
 * once more, its first block, then as much as that says. False: there is no
 * more to be had.
 */
static bool window_again(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const bool read = sc->batch.ok & 1u << sc->place.member;
	uint64_t len = 0;

	if (!read && !sc->place.tries && sc->place.most > FMT_BLOCK &&
	    v->member[sc->place.member].alive)
		len = FMT_BLOCK;
	else if (read && sc->place.tries == 1)
		len = window_says(sc);
	if (!len || len > sc->place.most || len % FMT_BLOCK ||
	    (len == FMT_BLOCK && sc->place.tries))
		return false;
	sc->place.tries++;
	return window_fill(v, (uint32_t)len);
}

static void mend_by_checkpoint(struct vlog *v, unsigned member)
{
	scrub_wrong(v);
	v->stat.scrub_repaired++;
	if (member < meta_group(v))
		v->meta.prefer |= 1u << member;
	v->meta.wanted = true;
	/* One that is under way may have passed the place. */
	v->scrub->mended_by =
		v->stat.checkpoints + 1 + (v->meta.phase != META_IDLE);
}

/* ---- labels and superblocks ---------------------------------------- */

/* Where the blocks at the front stand; the window holds them in this order. */
static const uint32_t front_off[] = { FMT_LABEL_A, FMT_LABEL_B, FMT_SUPER(0),
				      FMT_SUPER(1) };
#define FRONTS 4

static uint8_t *front_data(const struct scrub *sc, unsigned i)
{
	return sc->window->data + (size_t)i * FMT_BLOCK;
}

static bool front_read(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (!sc->piece) {
		if (v->meta.phase == META_SUPER) /* one may be on its way */
			return false;
		sc->serial = v->member[sc->member].super.serial;
		sc->sound = 0;
		return window_read(v, sc->member, front_off[0], FMT_BLOCK);
	}
	batch_begin(&sc->batch, NULL);
	batch_io(v, &sc->batch, sc->member, BDEV_READ, 0, front_off[sc->piece],
		 sc->window, sc->piece * FMT_BLOCK, FMT_BLOCK);
	batch_end(v, &sc->batch);
	v->stat.scrub_bytes += FMT_BLOCK;
	sc->waiting = true;
	return true;
}

static bool label_ok(const struct vlog *v, unsigned i)
{
	const struct scrub *sc = v->scrub;
	const struct fmt_label *l = (const void *)front_data(sc, i);

	return sc->sound & 1u << i &&
	       !fmt_label_check(l, sc->member, front_off[i]) &&
	       !memcmp(l->head.vdisk, v->uuid, 16) &&
	       !memcmp(l->comp_uuid, v->conf.seat[sc->member].uuid, 16);
}

/* From the other copy. */
static void label_write(struct vlog *v, unsigned i)
{
	struct scrub *sc = v->scrub;
	uint8_t *to = front_data(sc, i);
	struct fmt_head h;

	memcpy(to, front_data(sc, 1 - i), FMT_BLOCK);
	memcpy(&h, to, sizeof(h));
	fmt_seal(to, FMT_LABEL, v->uuid, sc->member, front_off[i], h.epoch,
		 h.len);
	batch_begin(&sc->batch, NULL);
	batch_io(v, &sc->batch, sc->member, BDEV_WRITE, BDEV_FUA, front_off[i],
		 sc->window, i * FMT_BLOCK, FMT_BLOCK);
	batch_end(v, &sc->batch);
	scrub_wrong(v);
	v->stat.scrub_repaired++;
}

/* The newest as it is known; the other as it may be: older, or never written.
 */
static bool super_ok(const struct vlog *v, unsigned slot)
{
	const struct scrub *sc = v->scrub;
	const struct member *m = &v->member[sc->member];
	struct fmt_super s;

	if (m->super.serial < 2 && slot != m->super_slot)
		return true;
	if (!(sc->sound & 4u << slot) ||
	    fmt_check(front_data(sc, 2 + slot), FMT_SUPERBLOCK, v->uuid,
		      sc->member, FMT_SUPER(slot), sizeof(s), FMT_BLOCK))
		return false;
	memcpy(&s, front_data(sc, 2 + slot), sizeof(s));
	return slot == m->super_slot ? s.serial == m->super.serial
				     : s.serial < m->super.serial;
}

static void front_next(struct scrub *sc)
{
	sc->member++;
	sc->piece = 0;
	sc->rounds = 0;
	sc->mending = false;
}

/* All four are there. */
static void front_judge(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct member *m = &v->member[sc->member];
	const bool a = label_ok(v, 0), b = label_ok(v, 1);

	sc->piece = 0;
	if (!m->alive || sc->rounds++ == ROUNDS) {
		front_next(sc);
		return;
	}
	if (a != b) {
		label_write(v, a ? 1 : 0);
		return;
	}
	if (!a && sc->rounds == 1)
		scrub_wrong(v); /* both: there is nothing to mend it by */
	if (sc->member >= meta_group(v)) {
		front_next(sc);
		return;
	}
	/* One that was written meanwhile was not read. */
	if (sc->serial != m->super.serial || v->meta.phase == META_SUPER) {
		sc->rounds--;
		return;
	}
	if (super_ok(v, 0) && super_ok(v, 1)) {
		front_next(sc);
		return;
	}
	sc->mending = true;
	mend_by_checkpoint(v, sc->member);
}

static bool front_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct member *m;

	if (sc->waiting) {
		sc->waiting = false;
		if (sc->batch.ok & 1u << sc->member)
			sc->sound |= 1u << sc->piece;
		if (++sc->piece == FRONTS)
			front_judge(v);
		return true;
	}
	while (sc->member < v->n && !v->member[sc->member].alive)
		front_next(sc);
	if (sc->member >= v->n) {
		sc->phase = SCRUB_SNAP;
		sc->member = sc->verify ? 0 : (unsigned)(sc->passes % v->n);
		sc->piece = 0;
		return true;
	}
	m = &v->member[sc->member];
	if (sc->mending && m->super.serial == sc->serial &&
	    (v->meta.wanted || v->meta.phase != META_IDLE))
		return false; /* it is on its way */
	sc->mending = false;
	return front_read(v);
}

/* ---- the snapshot -------------------------------------------------- */

/* It holds the newest that any does. */
static bool snap_holder(const struct vlog *v, unsigned i)
{
	const struct member *m = &v->member[i];

	if (i >= meta_group(v) || !m->alive || !m->learned ||
	    !m->super.content.snap_len)
		return false;
	for (unsigned j = 0; j < meta_group(v); j++)
		if (fmt_content_compare(&v->member[j].super.content,
					&m->super.content) > 0)
			return false;
	return true;
}

static bool piece_ok(const struct vlog *v, uint64_t off)
{
	struct scrub *sc = v->scrub;
	struct fmt_piece h;

	if (!(sc->batch.ok & 1u << sc->member) ||
	    fmt_check(sc->window->data, FMT_SNAP, v->uuid, sc->member, off,
		      sizeof(h), FMT_PIECE))
		return false;
	memcpy(&h, sc->window->data, sizeof(h));
	if (h.head.epoch != sc->content.epoch || h.seq != sc->content.seq ||
	    h.index != sc->piece || h.used + sizeof(h) != h.head.len)
		return false;
	sc->crc = codec_crc_add(sc->crc, sc->window->data + sizeof(h), h.used);
	return true;
}

static uint64_t piece_off(const struct vlog *v)
{
	const struct scrub *sc = v->scrub;

	return v->label.off_snap[sc->content.area] +
	       (uint64_t)sc->piece * FMT_PIECE;
}

static void snap_next(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	/* In the background each pass reads that of another member. */
	sc->member = sc->verify ? sc->member + 1 : v->n;
	sc->piece = 0;
}

static void snap_take(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct member *m = &v->member[sc->member];

	if (!m->alive || fmt_content_compare(&m->super.content, &sc->content)) {
		sc->piece = 0; /* it has a newer one */
		return;
	}
	if (!piece_ok(v, piece_off(v))) {
		mend_by_checkpoint(v, sc->member);
		snap_next(v);
		return;
	}
	sc->piece++;
	if ((uint64_t)sc->piece * FMT_PIECE < sc->content.snap_len)
		return;
	if (sc->crc != sc->content.snap_crc)
		mend_by_checkpoint(v, sc->member);
	snap_next(v);
}

static bool snap_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (sc->waiting) {
		sc->waiting = false;
		if (!window_again(v))
			snap_take(v);
		return true;
	}
	for (unsigned i = 0;
	     !sc->piece && sc->member < v->n && !snap_holder(v, sc->member);
	     i++) {
		sc->member++;
		if (!sc->verify && i < v->n)
			sc->member %= v->n;
	}
	if (sc->member >= v->n) {
		sc->phase = SCRUB_ZONE;
		sc->zseq = 0;
		sc->copy = FMT_COPIES_MAX;
		return true;
	}
	if (!sc->piece) {
		sc->content = v->member[sc->member].super.content;
		sc->crc = codec_crc_start();
	}
	return window_read(v, sc->member, piece_off(v), FMT_PIECE);
}

/* ---- the log ------------------------------------------------------- */

static const struct zone *zone_find(const struct vlog *v, uint64_t zseq)
{
	const struct zone *z = v->zones;

	while (z && z->zseq < zseq)
		z = z->next;
	return z;
}

static bool header_ok(const struct vlog *v, const struct zone *z)
{
	const struct scrub *sc = v->scrub;
	struct fmt_zone h;

	if (fmt_check(sc->window->data, FMT_ZONE, v->uuid, FMT_COMP_ANY, 0,
		      sizeof(h), FMT_BLOCK))
		return false;
	memcpy(&h, sc->window->data, sizeof(h));
	return h.zseq == z->zseq && h.head.epoch == v->log_epoch;
}

/* The record at pos, or 0. */
static uint32_t record_len(const struct vlog *v, const struct zone *z,
			   uint32_t len)
{
	const struct scrub *sc = v->scrub;
	const struct fmt_record *r = (const void *)sc->window->data;

	if (fmt_record_check(r, v->uuid, sc->pos, len, len) ||
	    r->head.epoch != v->log_epoch || r->zseq != z->zseq ||
	    !fmt_payload_ok(r))
		return 0;
	return r->hdr_len + r->pay_len;
}

static uint64_t window_lsn(const struct scrub *sc)
{
	return ((const struct fmt_record *)sc->window->data)->lsn;
}

static void copy_next(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->copy = sc->verify ? sc->copy + 1 : FMT_COPIES_MAX;
	sc->pos = 0;
}

static uint32_t zone_window(const struct vlog *v, uint64_t pos)
{
	const uint64_t left = v->label.zone_bytes - pos;

	if (!pos)
		return FMT_BLOCK;
	return left < FMT_RECORD_MAX ? (uint32_t)left : FMT_RECORD_MAX;
}

static void zone_take(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct zone *z = zone_find(v, sc->zseq);
	unsigned member;
	uint32_t len;
	bool read;

	if (!z || z->zseq != sc->zseq) { /* it is free by now */
		sc->copy = FMT_COPIES_MAX;
		return;
	}
	member = z->comp[sc->copy];
	read = sc->batch.ok & 1u << member;
	if (!v->member[member].alive) {
		copy_next(v);
		return;
	}
	if (!sc->pos) {
		len = read && header_ok(v, z) ? FMT_BLOCK : 0;
		sc->lsn = 0;
	} else {
		len = read ? record_len(v, z, zone_window(v, sc->pos)) : 0;
		/* One that was issued again may come after later ones. */
		if (len && window_lsn(sc) > sc->lsn)
			sc->lsn = window_lsn(sc);
	}
	if (len && sc->pos + len < v->label.zone_bytes) {
		sc->pos += len;
		return;
	}
	/* What follows the last record that counts may be anything, and so
	 * may one that is not durable yet. */
	if (!len && (!sc->pos || sc->lsn < sc->last_lsn)) {
		mend_by_checkpoint(v, v->n);
		zone_retire(v, z);
	}
	copy_next(v);
}

static bool zone_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct zone *z;

	if (sc->waiting) {
		sc->waiting = false;
		if (!window_again(v))
			zone_take(v);
		return true;
	}
	z = zone_find(v, sc->zseq);
	if (z && z->zseq == sc->zseq && sc->copy >= z->copies)
		z = z->next;
	if (z && z->zseq != sc->zseq) {
		sc->zseq = z->zseq;
		sc->copy = sc->verify ? 0 : (unsigned)(sc->passes % z->copies);
		sc->pos = 0;
	}
	if (!z) {
		lbuf_put(sc->window);
		sc->window = NULL;
		sc->phase = SCRUB_OVER;
		return true;
	}
	/* What a checkpoint covers is not needed, though its zone may have to
	 * wait for older ones that are. */
	if (z->state == ZONE_OPENING ||
	    (z->state == ZONE_SEALED && z->last_lsn <= v->lsn_snapshot) ||
	    !v->member[z->comp[sc->copy]].alive) {
		copy_next(v);
		return true;
	}
	/* Of one that was cut short it is not known which are there. */
	sc->last_lsn = z->cut || z->last_lsn > v->durable ||
				       z->last_lsn <= v->lsn_snapshot
			       ? 0
			       : z->last_lsn;
	return window_read(v, z->comp[sc->copy],
			   zone_slot_off(v, z->slot[sc->copy]) + sc->pos,
			   zone_window(v, sc->pos));
}

/* ---- all of it ----------------------------------------------------- */

void scrub_meta_begin(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->phase = SCRUB_FRONT;
	sc->member = 0;
	sc->piece = 0;
	sc->rounds = 0;
	sc->mending = false;
	sc->waiting = false;
}

bool scrub_meta_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	switch (sc->phase) {
	case SCRUB_FRONT:
		return front_step(v);
	case SCRUB_SNAP:
		return snap_step(v);
	case SCRUB_ZONE:
		return zone_step(v);
	default:
		return false;
	}
}
