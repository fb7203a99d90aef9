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

	recover_readers_free(rv);
	for (unsigned i = 0; i < LANES; i++)
		free(rv->tail[i]);
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

/* ---- superblocks --------------------------------------------------- */

static void group_learned(struct vlog *v, void *arg)
{
	uint32_t voters = 0;

	(void)arg;
	for (unsigned i = 0; i < v->n; i++) {
		struct member *m = &v->member[i];

		m->admitted = meta_votes(v, i) ||
			      (m->alive && m->learned &&
			       fmt_group_fresh(&v->conf, i, &m->super));
		if (m->admitted)
			voters |= 1u << i;
	}
	if (!fmt_group_quorum(&v->conf, voters)) {
		voters &= (1u << meta_group(v)) - 1;
		err_set(&v->recovery->err, -EAGAIN,
			"%s: %d of the %u metadata components are readable, "
			"%u are needed; bring back what is missing",
			v->label.name, __builtin_popcount(voters),
			meta_group(v), meta_group(v) / 2 + 1);
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

		memset(m->slot_used, 0, (m->slots + 63) / 64 * 8);
		m->slots_free = m->slots;
		m->slots_data = 0;
	}
	return map_init(v);
}

static bool content_fits(const struct vlog *v, const struct fmt_content *c)
{
	return c->seq && c->snap_len <= v->label.snap_bytes &&
	       fmt_config_same(c, &v->conf);
}

/*
 * Between what was opened and this one stands a content of other members or of
 * another policy: it comes first, and the opener has to begin anew for it. With
 * what is above the opener is through already.
 */
static bool stale(const struct vlog *v, const struct fmt_content *than)
{
	for (unsigned i = 0; i < meta_group(v); i++) {
		const struct fmt_content *c = &v->member[i].super.content;

		if (meta_votes(v, i) && !fmt_config_same(c, &v->conf) &&
		    fmt_content_compare(c, than) > 0 &&
		    fmt_content_compare(c, &v->conf) < 0)
			return true;
	}
	return false;
}

/*
 * A higher content that is on nobody intact: could it have been committed?
 * Whoever is away, or whose superblocks cannot be read, may have it.
 */
static bool passed_over_ok(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	for (unsigned i = 0; i < meta_group(v); i++) {
		const struct fmt_content *c = &v->member[i].super.content;
		uint32_t holders = 0;

		if (!(rv->tried & 1u << i) ||
		    fmt_content_compare(c, &rv->content) <= 0)
			continue;
		for (unsigned j = 0; j < meta_group(v); j++) {
			const struct member *m = &v->member[j];

			if (rv->tried & 1u << j
				    ? !fmt_content_compare(&m->super.content, c)
				    : !m->alive || !m->super.serial)
				holders |= 1u << j;
		}
		if (fmt_group_quorum(c, holders))
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

		if (!meta_votes(v, i) || rv->tried & 1u << i ||
		    !content_fits(v, &m->super.content))
			continue;
		if (best < 0 ||
		    fmt_content_compare(&m->super.content,
					&v->member[best].super.content) > 0)
			best = (int)i;
	}
	if (best < 0 || stale(v, &v->member[best].super.content))
		return false;
	rv->source = (unsigned)best;
	rv->content = v->member[best].super.content;
	rv->pieces = (uint32_t)(rv->content.snap_len / FMT_PIECE);
	rv->piece = rv->piece_len = 0;
	rv->snap_crc = codec_crc_start();
	rv->snap_over = rv->pieces == 0; /* as created */
	rv->refused = !passed_over_ok(v);
	return !rv->refused;
}

static void content_take(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const struct fmt_content *c = &rv->content;

	v->conf = *c;
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

	if (rv->now->batch.failed ||
	    fmt_check(rv->now->buf->data, FMT_SNAP, v->uuid, rv->source, off,
		      sizeof(h), FMT_PIECE))
		return false;
	memcpy(&h, rv->now->buf->data, sizeof(h));
	if (h.head.epoch != rv->content.epoch || h.seq != rv->content.seq ||
	    h.index != rv->piece || h.used + sizeof(h) != h.head.len)
		return false;
	rv->snap_crc = codec_crc_add(rv->snap_crc,
				     rv->now->buf->data + sizeof(h), h.used);
	return !snap_load(v, rv->now->buf->data + sizeof(h), h.used,
			  &rv->snap_over);
}

static void snap_next(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const uint64_t area = v->label.off_snap[rv->content.area];

	if (rv->piece < rv->pieces) {
		recover_read(v, rv->source,
			     area + (uint64_t)rv->piece * FMT_PIECE, 0,
			     FMT_PIECE);
		for (uint32_t i = rv->piece + 1; i < rv->pieces; i++)
			if (!recover_ahead(v, rv->source,
					   area + (uint64_t)i * FMT_PIECE, 0,
					   FMT_PIECE))
				break;
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

/*
 * What lies behind a piece is not of it, and a write that was cut off may have
 * left it unreadable: once more, its header, then as much as that says. False:
 * there is no more to be had.
 */
static bool piece_again(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const uint32_t was = rv->piece_len;
	struct fmt_head h;
	uint32_t len = 0;

	memcpy(&h, rv->now->buf->data, sizeof(h));
	if (!was && rv->now->batch.failed && v->member[rv->source].alive)
		len = FMT_BLOCK;
	else if (was == FMT_BLOCK && !rv->now->batch.failed &&
		 h.len > FMT_BLOCK && h.len <= FMT_PIECE)
		len = (h.len + FMT_BLOCK - 1) / FMT_BLOCK * FMT_BLOCK;
	rv->piece_len = len;
	if (len)
		recover_read(v, rv->source,
			     v->label.off_snap[rv->content.area] +
				     (uint64_t)rv->piece * FMT_PIECE,
			     0, len);
	return len != 0;
}

static void snap_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	int rc;

	if (rv->pieces && rv->waiting) {
		rv->waiting = false;
		if (piece_again(v))
			return;
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
	if (!recover_enough(v))
		return;
	/* Not refused: there may be one of the members there were before. */
	rc = rv->refused ? -EIO : -EUCLEAN;
	err_set(&rv->err, rc,
		"%s: no metadata component within reach holds an intact copy "
		"of the newest state; bring back what is missing",
		v->label.name);
	recover_fail(v, rc);
}

/* ---- the whole ----------------------------------------------------- */

bool recover_enough(struct vlog *v)
{
	if (member_alive_count(v) + v->conf.tolerates >= v->n || MUT(TOO_FEW))
		return true;
	err_set(&v->recovery->err, -EAGAIN,
		"%s: too many members failed while opening", v->label.name);
	recover_fail(v, -EAGAIN);
	return false;
}

void recover_content_committed(struct vlog *v)
{
	if (v->recovery && v->recovery->phase == COMMIT)
		recover_end(v, 0);
}

bool recover_step(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (!rv || !batch_over(&rv->now->batch))
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
		/* Nothing may be in flight when the recovery is over. */
		if (rv->lsn == rv->end && !rv->waiting &&
		    !recover_readers_idle(rv))
			return false;
		recover_replay_step(v);
		return true;
	case COMMIT:
		if (!meta_idle(v))
			return false;
		if (!meta_stuck(v))
			return !recover_enough(v);
		err_set(&rv->err, -EAGAIN,
			"%s: too many members failed while opening",
			v->label.name);
		recover_fail(v, -EAGAIN);
		return true;
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
	meta_learn(v, mask, group_learned, NULL);
}

bool recover_again(struct vlog *v)
{
	struct recovery *rv = v->recovery;

	if (member_alive_count(v) + v->conf.tolerates < v->n ||
	    rv->restarts++ > v->n)
		return false;
	free(rv->zone);
	free(rv->rec);
	rv->zone = NULL;
	rv->rec = NULL;
	rv->zones = rv->zones_room = 0;
	rv->tried = 0;
	rv->pieces = 0;
	recover_ahead_drop(rv);
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
	rv->now = &rv->reader[0];
	if (recover_readers_init(v)) {
		err_set(&rv->err, -ENOMEM, "%s: no memory to open",
			v->label.name);
		recover_fail(v, -ENOMEM);
		return;
	}
	learn_start(v);
}
