/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Users' writes and discards, in order of arrival.
 *
 * Small: blocks are compressed into the open group, which becomes a record as
 * soon as fewer than log_depth() are on their way: alone at depth 1, many
 * together when there are many, without a timer. A request is answered when
 * all records it went into are applied.
 *
 * Large: what fills whole stripes goes straight to segments; the COMMIT makes
 * it true. What is left over goes the small way, so no answer waits for other
 * requests. A stripe that failed sends the whole request the small way: it was
 * not answered, and writing it twice is writing it.
 */
#include "engine/vdisk/log/impl.h"

#include <string.h>

/* More would save little of the header and make all wait for the longest. */
#define GROUP_BLOCKS 32
#define DISCARD_BLOCKS (64ull * FMT_LEAF)

static const uint8_t *block_at(const struct ureq *u, uint32_t i)
{
	return (const uint8_t *)u->io->buf + (size_t)i * FMT_BLOCK;
}

/* ---- requests ------------------------------------------------------ */

static void ureq_queue(struct vlog *v, struct ureq *u)
{
	u->next = NULL;
	if (v->write_last)
		v->write_last->next = u;
	else
		v->write_first = u;
	v->write_last = u;
}

static void ureq_pop(struct vlog *v)
{
	v->write_first = v->write_first->next;
	if (!v->write_first)
		v->write_last = NULL;
}

static void ureq_end(struct vlog *v, struct ureq *u)
{
	struct io *io = u->io;
	const int result = u->result;

	if (!result && io->op == BDEV_WRITE)
		resync_user_write(v, reactor_turn_now(v->r) - u->start_ns);
	slab_put(&v->req_slab, u);
	v->users--;
	vlog_kick(v);
	bdev_complete(io, result);
}

static bool ureq_placed(const struct ureq *u)
{
	return u->placed == u->blocks;
}

/* May answer it. */
void ureq_part_done(struct vlog *v, struct ureq *u, int result)
{
	id_assert(u->parts);
	u->parts--;
	if (result && !u->result)
		u->result = result;
	if (u->parts || !ureq_placed(u))
		return;
	if (u->redo && !u->result && v->state != VLOG_STOPPED) {
		u->redo = false;
		u->small = true;
		u->placed = 0;
		ureq_queue(v, u);
		vlog_kick(v);
		return;
	}
	if (u->redo && !u->result)
		u->result = -EIO;
	ureq_end(v, u);
}

static struct ureq *ureq_get(struct vlog *v, struct io *io)
{
	struct ureq *u = slab_get(&v->req_slab);

	if (!u)
		return NULL;
	u->v = v;
	u->io = io;
	u->lba = io->off / FMT_BLOCK;
	u->blocks = io->len / FMT_BLOCK;
	u->start_ns = reactor_turn_now(v->r);
	v->users++;
	resync_user_io(v);
	return u;
}

void write_submit(struct vlog *v, struct io *io)
{
	struct ureq *u = ureq_get(v, io);

	id_assert(u); /* the front has asked */
	ureq_queue(v, u);
	vlog_kick(v);
}

/* ---- the open group ------------------------------------------------ */

static void group_close(struct vlog *v)
{
	struct rec *g = v->group;
	const uint32_t len =
		(g->pay_len + FMT_BLOCK - 1) / FMT_BLOCK * FMT_BLOCK;

	memset(g->buf->data + FMT_BLOCK + g->pay_len, 0, len - g->pay_len);
	g->pay_crc = codec_crc_zeros(v->coder, g->pay_crc,
				     (len - g->pay_len) / FMT_GRAN);
	g->pay_len = len;
	v->group = NULL;
	rec_append(v, g);
}

static struct rec *group_room(struct vlog *v)
{
	struct rec *g = v->group;

	if (g && (g->entries == GROUP_BLOCKS ||
		  g->pay_len + FMT_BLOCK > FMT_PAYLOAD_MAX)) {
		if (log_inflight(v) >= log_depth(v))
			return NULL;
		group_close(v);
	}
	if (!v->group)
		v->group = rec_get(v, REC_WRITE, true);
	return v->group;
}

static void group_req_add(struct rec *g, struct ureq *u)
{
	if (g->reqs && g->req[g->reqs - 1] == u)
		return;
	g->req[g->reqs++] = u;
	u->parts++;
}

/* False: no room now. */
static bool place_small(struct vlog *v, struct ureq *u)
{
	struct rec *g = group_room(v);
	struct fmt_write w = { .lba = u->lba + u->placed };
	struct block *b = NULL;
	uint8_t *to;
	unsigned grans, codec;

	if (!g || v->map.grans_left < FMT_BLOCK_GRANS || !admit_may(v))
		return false;
	to = g->buf->data + FMT_BLOCK + g->pay_len;
	grans = codec_store(v->coder, v->codec, block_at(u, u->placed), to,
			    &codec);
	w.flags = (uint8_t)(codec << ENT_CODEC_SHIFT);
	if (grans) {
		b = block_get(v, grans);
		if (!b)
			return false;
		block_fill(v, b, to);
		w.crc = codec_block_crc_in(v->coder, v->crc_seed, w.lba, to,
					   grans, &g->pay_crc);
		w.gran = (uint16_t)(g->pay_len / FMT_GRAN);
		w.grans = (uint8_t)grans;
		g->pay_len += grans * FMT_GRAN;
	} else {
		w.flags = ENT_ZERO;
		v->stat.zero_blocks++;
	}
	memcpy((struct fmt_write *)rec_entries(g) + g->entries, &w, sizeof(w));
	g->block[g->entries++] = b;
	admit_took(v, grans);
	/* both now: their ratio is of the same blocks at any moment */
	v->stat.user_bytes += FMT_BLOCK;
	v->stat.user_stored_bytes += grans * FMT_GRAN;
	group_req_add(g, u);
	u->placed++;
	return true;
}

/* ---- space --------------------------------------------------------- */

static bool space_for(const struct vlog *v, uint64_t blocks)
{
	const uint64_t buffered = v->map.grans - v->map.grans_left;

	return v->live_grans + buffered + blocks * FMT_BLOCK_GRANS <=
	       seg_space_grans(v);
}

/* ---- large ones ---------------------------------------------------- */

static bool fill_bypass(struct vlog *v, struct ureq *u, struct stripe *s,
			uint32_t *at)
{
	for (; *at < u->blocks; (*at)++) {
		const uint64_t lba = u->lba + *at;
		struct stripe_entry *e;
		unsigned codec, grans;
		uint8_t *p;

		grans = codec_store(v->coder, v->codec, block_at(u, *at),
				    v->scratch, &codec);
		if (!grans)
			return false; /* zeros take no stripe */
		p = stripe_add(v, s, grans, &e);
		if (!p)
			return true;
		memcpy(p, v->scratch, (size_t)grans * FMT_GRAN);
		e->lba = lba;
		e->crc = codec_block_crc(v->crc_seed, lba, p,
					 (size_t)grans * FMT_GRAN);
		e->flags = (uint8_t)(ENT_BYPASS | codec << ENT_CODEC_SHIFT);
	}
	/* Nearly full is full. */
	return s->grans * 8 >= (uint64_t)s->k * unit_grans(v) * 7;
}

/* One stripe's worth. False: by the small way, or later. */
static bool place_bypass(struct vlog *v, struct ureq *u, bool *later)
{
	const uint64_t stripe = (uint64_t)seg_k_now(v) * v->label.unit_bytes;
	uint32_t at = u->placed;
	struct stripe *s;

	*later = false;
	if (u->small || !stripe ||
	    (uint64_t)(u->blocks - u->placed) * FMT_BLOCK * 8 < stripe * 7)
		return false;
	s = stripe_begin(v, STREAM_BYPASS);
	if (!s) {
		*later = true;
		return false;
	}
	if (!fill_bypass(v, u, s, &at)) {
		u->small = true; /* compresses below a stripe */
		stripe_drop(v, s);
		return false;
	}
	v->stat.user_bytes += (uint64_t)(at - u->placed) * FMT_BLOCK;
	v->stat.user_stored_bytes += s->grans * FMT_GRAN;
	clean_credit(v, s->grans);
	s->req = u;
	u->parts++;
	u->placed = at;
	stripe_write(v, s);
	return true;
}

/* ---- discards ------------------------------------------------------ */

static bool place_discard(struct vlog *v, struct ureq *u)
{
	const uint64_t left = u->blocks - u->placed;
	struct fmt_discard d = {
		.lba = u->lba + u->placed,
		.blocks = left < DISCARD_BLOCKS ? left : DISCARD_BLOCKS,
	};
	struct rec *rec = rec_get(v, REC_DISCARD, true);

	if (!rec)
		return false;
	memcpy(rec_entries(rec), &d, sizeof(d));
	rec->entries = 1;
	rec->req[rec->reqs++] = u;
	u->parts++;
	u->placed += (uint32_t)d.blocks;
	rec_append(v, rec);
	return true;
}

/* ---- the queue ----------------------------------------------------- */

/* True: all of it has a place, or it failed. */
static bool place(struct vlog *v, struct ureq *u)
{
	bool later;

	if (u->io->op == BDEV_WRITE && !u->placed && !u->small &&
	    !space_for(v, u->blocks)) {
		u->result = -ENOSPC;
		u->placed = u->blocks;
		return true;
	}
	while (!ureq_placed(u)) {
		if (u->io->op == BDEV_TRIM) {
			if (!place_discard(v, u))
				return false;
			continue;
		}
		if (place_bypass(v, u, &later))
			continue;
		if (later && !seg_space_low(v))
			return false;
		if (!place_small(v, u))
			return false;
	}
	return true;
}

bool writes_step(struct vlog *v)
{
	bool moved = false;
	struct ureq *u;

	if (v->state != VLOG_SERVING && v->state != VLOG_CLOSING)
		return false;
	while ((u = v->write_first)) {
		const uint32_t before = u->placed;

		if (!place(v, u)) {
			moved |= u->placed != before;
			break;
		}
		moved = true;
		ureq_pop(v);
		if (!u->parts)
			ureq_end(v, u);
	}
	if (v->group && v->group->entries && log_inflight(v) < log_depth(v)) {
		group_close(v);
		moved = true;
	}
	return moved;
}

/* The vDisk has stopped: nobody is left without an answer. */
void writes_fail(struct vlog *v)
{
	struct ureq *u;

	while ((u = v->write_first)) {
		ureq_pop(v);
		u->result = -EIO;
		u->placed = u->blocks;
		if (!u->parts)
			ureq_end(v, u);
	}
	for (unsigned i = 0; i < RECS; i++) {
		struct rec *r = &v->rec[i];

		if (r->state == REC_FREE)
			continue;
		while (r->reqs)
			ureq_part_done(v, r->req[--r->reqs], -EIO);
	}
	for (unsigned i = 0; i < STRIPES; i++) {
		u = v->stripe[i].req;
		v->stripe[i].req = NULL;
		if (u && v->stripe[i].state != STRIPE_IDLE)
			ureq_part_done(v, u, -EIO);
	}
}
