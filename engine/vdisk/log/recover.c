/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the drives back to the state, and the end of the epoch before.
 *
 *   LEARN    superblocks of the metadata group
 *   CLAIM    promised = epoch on m + 1, contents left as they are
 *   SNAP     the highest accepted content whose snapshot is intact
 *   HEADERS  zones of its log_epoch from its log_zone on
 *   SCAN     which LSNs stand on any member of their zone
 *   REPLAY   in order, to the first LSN that stands on none
 *   COMMIT   a new content under the new epoch: the old log is void
 *
 * h, the first LSN found nowhere: if anything claims that h was durable, more
 * is damaged than the policy covers and the open is refused. Otherwise what
 * lies beyond is a torn tail that nobody was told of.
 *
 * Nothing but `promised` and inactive areas is written before COMMIT is
 * through, so this may die anywhere, any number of times.
 */
#include "engine/vdisk/log/recover.h"

#include <stdlib.h>
#include <string.h>

static void recover_free(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	lbuf_put(rv->buf);
	free(rv->zone);
	free(rv->rec);
	free(rv);
	v->recovery = NULL;
}

void recover_abandon(struct vlog *v)
{
	if (v->recovery)
		recover_free(v);
}

static void recover_end(struct vlog *v, int result)
{
	struct recovery *rv = v->recovery;
	void (*done)(struct vlog * v, int result, const struct err *err) =
		rv->done;
	struct err err = rv->err;

	recover_free(v);
	done(v, result, &err);
}

void recover_fail(struct vlog *v, int code)
{
	v->recovery->phase = OVER;
	v->recovery->err.code = code;
	v->state = VLOG_STOPPED;
	/* Nothing may be in flight when the members are given back. */
	vlog_kick(v);
}

void recover_read(struct vlog *v, unsigned member, uint64_t off, uint32_t len)
{
	recover_read_to(v, member, off, 0, len);
}

void recover_read_to(struct vlog *v, unsigned member, uint64_t off,
		     uint32_t buf_off, uint32_t len)
{
	struct recovery *rv = v->recovery;

	if (rv->buf->refs > 1) { /* a stuck drive may still write to it */
		lbuf_put(rv->buf);
		rv->buf = lbuf_get(&v->window_pool);
		if (!rv->buf) {
			err_set(&rv->err, -EAGAIN, "%s: drives are stuck",
				v->label.name);
			recover_fail(v, -EAGAIN);
			return;
		}
	}
	batch_begin(&rv->batch, NULL);
	batch_io(v, &rv->batch, member, BDEV_READ, 0, off, rv->buf, buf_off,
		 len);
	batch_end(v, &rv->batch);
	rv->waiting = true;
}

/* ---- superblocks --------------------------------------------------- */

static void group_learned(struct vlog *v)
{
	unsigned found = 0;

	/* A slot that was never written means no accepted content there. */
	for (unsigned i = 0; i < meta_group(v); i++)
		found += v->member[i].alive && v->member[i].learned &&
			 v->member[i].super.serial > 0;
	if (found < meta_quorum(v)) {
		err_set(&v->recovery->err, -EAGAIN,
			"%s: %u of the %u metadata components are readable, "
			"%u are needed; bring back what is missing",
			v->label.name, found, meta_group(v), meta_quorum(v));
		recover_fail(v, -EAGAIN);
		return;
	}
	v->recovery->phase = CLAIM;
	vlog_kick(v);
}

static void group_claimed(struct vlog *v, int result)
{
	if (result) {
		err_set(&v->recovery->err, result,
			"%s: too few metadata components take the claim of a "
			"new owner",
			v->label.name);
		recover_fail(v, result);
		return;
	}
	v->recovery->phase = SNAP;
	vlog_kick(v);
}

/* ---- snapshot ------------------------------------------------------ */

static int content_cmp(const struct fmt_content *a, const struct fmt_content *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return 0;
}

/* Back to nothing known of map and segments. */
static int state_reset(struct vlog *v)
{
	map_fini(v);
	memset(v->seg, 0, v->segs * sizeof(*v->seg));
	v->live_grans = 0;
	v->segs_used = 0;
	v->snap.blocks = 0;
	v->snap.count = (struct fmt_item_end) { 0 };
	for (unsigned i = 0; i < v->n; i++) {
		struct member *m = &v->member[i];

		memset(m->slot_used, 0, (v->label.slots + 63) / 64 * 8);
		m->slots_free = v->label.slots;
	}
	return map_init(v);
}

static bool content_sane(const struct vlog *v, const struct fmt_content *c)
{
	return c->seq && c->snap_len % FMT_PIECE == 0 &&
	       c->snap_len <= v->label.snap_bytes && c->area < 2 &&
	       c->m == v->m && c->k && c->k + c->m <= (int)v->n &&
	       c->codec < CODEC_COUNT && c->lsn < 1ull << 44;
}

/* A higher content that is on nobody intact: could it have been committed? */
static bool passed_over_ok(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	for (unsigned i = 0; i < meta_group(v); i++) {
		const struct fmt_content *c = &v->member[i].super.content;
		unsigned holders = 0, away = 0;

		if (!(rv->tried & 1u << i) || content_cmp(c, &rv->content) <= 0)
			continue;
		for (unsigned j = 0; j < meta_group(v); j++) {
			const struct member *m = &v->member[j];

			if (rv->tried & 1u << j &&
			    !content_cmp(&m->super.content, c))
				holders++;
			else if (!m->alive)
				away++;
		}
		if (holders + away > v->m)
			return false;
	}
	return true;
}

static bool snap_choose(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	int best = -1;

	for (unsigned i = 0; i < meta_group(v); i++) {
		const struct member *m = &v->member[i];

		if (!m->alive || !m->learned || rv->tried & 1u << i ||
		    !content_sane(v, &m->super.content))
			continue;
		if (best < 0 || content_cmp(&m->super.content,
					    &v->member[best].super.content) > 0)
			best = (int)i;
	}
	if (best < 0)
		return false;
	rv->source = (unsigned)best;
	rv->content = v->member[best].super.content;
	rv->pieces = (uint32_t)(rv->content.snap_len / FMT_PIECE);
	rv->piece = 0;
	rv->snap_crc = codec_crc_start();
	rv->snap_over = rv->pieces == 0; /* as created */
	return passed_over_ok(v);
}

static void content_take(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const struct fmt_content *c = &rv->content;

	v->k = c->k;
	v->raid = c->raid;
	v->codec = c->codec;
	v->log_epoch = c->log_epoch;
	v->log_zone = c->log_zone;
	v->durable = c->lsn;
	v->seg_counter = c->seg_next;
	rv->phase = HEADERS;
	rv->member = 0;
	rv->slot = 0;
	rv->claimed_durable = 0;
	if (c->clean)
		rv->member = v->n; /* there is no log */
}

static bool snap_piece_ok(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const uint64_t off = v->label.off_snap[rv->content.area] +
			     (uint64_t)rv->piece * FMT_PIECE;
	struct fmt_piece h;

	if (rv->batch.failed ||
	    fmt_check(rv->buf->data, FMT_SNAP, v->uuid, rv->source, off,
		      sizeof(h), FMT_PIECE))
		return false;
	memcpy(&h, rv->buf->data, sizeof(h));
	if (h.head.epoch != rv->content.epoch || h.seq != rv->content.seq ||
	    h.index != rv->piece || h.used + sizeof(h) != h.head.len)
		return false;
	rv->snap_crc =
		codec_crc_add(rv->snap_crc, rv->buf->data + sizeof(h), h.used);
	return !snap_load(v, rv->buf->data + sizeof(h), h.used, &rv->snap_over);
}

static void snap_next(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (rv->piece < rv->pieces) {
		recover_read(v, rv->source,
			     v->label.off_snap[rv->content.area] +
				     (uint64_t)rv->piece * FMT_PIECE,
			     FMT_PIECE);
		return;
	}
	content_take(v);
}

static void snap_bad(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	rv->tried |= 1u << rv->source;
	rv->pieces = 0;
}

static void snap_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (rv->pieces && rv->waiting) {
		rv->waiting = false;
		if (snap_piece_ok(v)) {
			rv->piece++;
			if (rv->piece < rv->pieces ||
			    (rv->snap_over &&
			     rv->snap_crc == rv->content.snap_crc)) {
				snap_next(v);
				return;
			}
		}
		snap_bad(v);
	}
	if (state_reset(v)) {
		recover_fail(v, -ENOMEM);
		return;
	}
	if (snap_choose(v)) {
		snap_next(v);
		return;
	}
	err_set(&rv->err, -EIO,
		"%s: no metadata component within reach holds an intact copy "
		"of the newest state; bring back what is missing",
		v->label.name);
	recover_fail(v, -EIO);
}

/* ---- the whole ----------------------------------------------------- */

void recover_content_committed(struct vlog *v)
{
	if (v->recovery && v->recovery->phase == COMMIT)
		recover_end(v, 0);
}

bool recover_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (!rv || !batch_over(&rv->batch))
		return false;
	switch (rv->phase) {
	case LEARN:
		return false;
	case CLAIM:
		if (!rv->waiting) {
			rv->waiting = true;
			meta_claim(v, group_claimed);
		}
		return false;
	case SNAP:
		if (rv->waiting && !rv->pieces)
			rv->waiting = false;
		snap_step(v);
		return true;
	case HEADERS:
		recover_headers_step(v);
		return true;
	case SCAN:
		recover_scan_step(v);
		return true;
	case REPLAY:
		recover_replay_step(v);
		return true;
	case COMMIT:
		if (meta_stuck(v) ||
		    (meta_idle(v) && member_alive_count(v) < v->n - v->m)) {
			err_set(&rv->err, -EAGAIN,
				"%s: too many members failed while opening",
				v->label.name);
			recover_fail(v, -EAGAIN);
			return true;
		}
		return false;
	case OVER:
		if (v->lios_out)
			return false;
		recover_end(v, rv->err.code);
		return false;
	}
	return false;
}

static void learn_start(struct vlog *v)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].alive)
			mask |= 1u << i;
	v->recovery->phase = LEARN;
	meta_learn(v, mask, group_learned);
}

bool recover_again(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (member_alive_count(v) + v->m < v->n || rv->restarts++ > v->n)
		return false;
	free(rv->zone);
	free(rv->rec);
	rv->zone = NULL;
	rv->rec = NULL;
	rv->zones = rv->zones_room = 0;
	rv->tried = 0;
	rv->pieces = 0;
	learn_start(v);
	return true;
}

void recover_start(struct vlog *v, void (*done)(struct vlog *v, int result,
						const struct err *err))
{
	struct recovery *rv = calloc(1, sizeof(*rv));

	id_assert(rv);
	v->recovery = rv;
	rv->done = done;
	/* Freed with the vDisk: a stuck drive may hold on to some. */
	if (bufpool_init(&v->window_pool, v->r, WINDOW, v->m + 2)) {
		err_set(&rv->err, -ENOMEM, "%s: no memory to open",
			v->label.name);
		recover_fail(v, -ENOMEM);
		return;
	}
	rv->buf = lbuf_get(&v->window_pool);
	learn_start(v);
}
