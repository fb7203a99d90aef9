/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Full stripes: packed, given parity, written to all k + m members, then made
 * true by a COMMIT record. One that fails is dropped as if it had never been;
 * whoever filled it still has the data (in the log, in the victim, with the
 * user) and fills another.
 *
 *   IDLE -> FILLING -> WRITING -> WRITTEN -> COMMITTING -> IDLE
 *                         '--> IDLE (a member failed)
 *
 * Its bytes go as soon as they are durable; only what the COMMIT says is kept
 * until that is applied.
 *
 * A block never crosses a unit. The last data unit ends with a summary of what
 * the stripe holds, for the cleaner.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

static const unsigned stream_max[STREAMS] = {
	[STREAM_HOT] = 32,
	[STREAM_COLD] = 24,
	[STREAM_BYPASS] = 32,
};

int stripes_init(struct vlog *v)
{
	const unsigned max = FMT_COMPS_MAX * unit_grans(v);

	for (unsigned i = 0; i < STRIPES; i++) {
		v->stripe[i].entry = calloc(max, sizeof(struct stripe_entry));
		v->stripe[i].entries_max = max;
		if (!v->stripe[i].entry)
			return -ENOMEM;
	}
	return 0;
}

void stripes_fini(struct vlog *v)
{
	for (unsigned i = 0; i < STRIPES; i++)
		free(v->stripe[i].entry);
}

static struct stripe *stripe_find(struct vlog *v, enum stream stream)
{
	struct stripe *idle = NULL;
	unsigned used = 0;

	for (unsigned i = 0; i < STRIPES; i++) {
		if (v->stripe[i].state == STRIPE_IDLE)
			idle = &v->stripe[i];
		else
			used += v->stripe[i].stream == stream;
	}
	return used < stream_max[stream] ? idle : NULL;
}

static void bufs_put(struct stripe *s)
{
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(s->buf[i]);
		s->buf[i] = NULL;
	}
}

static bool bufs_get(struct vlog *v, struct stripe *s)
{
	for (unsigned i = 0; i < s->k + s->m; i++) {
		s->buf[i] = lbuf_get(&v->unit_pool);
		if (!s->buf[i]) {
			bufs_put(s);
			return false;
		}
	}
	return true;
}

struct stripe *stripe_begin(struct vlog *v, enum stream stream)
{
	struct stripe *s = stripe_find(v, stream);
	const unsigned k = seg_k_now(v);
	/* The cleaner makes the room that others wait for. */
	const unsigned left = stream == STREAM_COLD ? 0 : 2 * (v->k + v->m) + 4;

	if (!s || !k ||
	    v->unit_pool.count - v->unit_pool.used < k + v->m + left)
		return NULL;
	if (seg_stripe_begin(v, stream, &s->seg, &s->stripe))
		return NULL;
	s->k = v->seg[s->seg].k;
	s->m = v->seg[s->seg].m;
	if (!bufs_get(v, s)) {
		seg_stripe_cancel(v, s->seg, s->stripe);
		return NULL;
	}
	s->state = STRIPE_FILLING;
	s->stream = stream;
	s->unit = s->gran = s->entries = 0;
	s->grans = 0;
	s->req = NULL;
	return s;
}

void stored_recode(struct vlog *v, uint64_t lba, const uint8_t **stored,
		   unsigned *grans, unsigned *codec, uint32_t *crc,
		   uint8_t *scratch)
{
	uint8_t plain[FMT_BLOCK];
	unsigned by, count;

	if (!codec_load(v->coder, *codec, *stored, *grans, plain))
		return; /* its reader will say so */
	count = codec_store(v->coder, v->codec, plain, scratch, &by);
	if (!count)
		return;
	*stored = scratch;
	*grans = count;
	*codec = by;
	*crc = codec_block_crc(v->crc_seed, lba, scratch,
			       (size_t)count * FMT_GRAN);
}

static unsigned sum_grans(unsigned entries)
{
	return (unsigned)((sizeof(struct fmt_sum) +
			   entries * sizeof(struct fmt_sum_entry) + FMT_GRAN -
			   1) /
			  FMT_GRAN);
}

static unsigned unit_room(const struct vlog *v, const struct stripe *s)
{
	const unsigned all = unit_grans(v);

	if (s->unit + 1 < s->k)
		return all;
	return all - sum_grans(s->entries + 1);
}

static void unit_pad(const struct vlog *v, struct stripe *s)
{
	const size_t from = (size_t)s->gran * FMT_GRAN;

	memset(s->buf[s->unit]->data + from, 0, v->label.unit_bytes - from);
}

uint8_t *stripe_add(struct vlog *v, struct stripe *s, unsigned grans,
		    struct stripe_entry **entry)
{
	struct stripe_entry *e;

	while (s->gran + grans > unit_room(v, s)) {
		if (s->unit + 1 == s->k)
			return NULL;
		unit_pad(v, s);
		s->unit++;
		s->gran = 0;
	}
	if (s->entries == s->entries_max)
		return NULL;
	e = &s->entry[s->entries++];
	*e = (struct stripe_entry) { .gran = (uint8_t)s->gran,
				     .unit = (uint8_t)s->unit,
				     .grans = (uint8_t)grans,
				     .seg = SEG_NONE };
	s->gran += grans;
	s->grans += grans;
	*entry = e;
	return s->buf[s->unit]->data + (size_t)e->gran * FMT_GRAN;
}

/* ---- writing ------------------------------------------------------- */

static void summary_write(struct vlog *v, struct stripe *s)
{
	const struct seg *seg = &v->seg[s->seg];
	uint8_t *unit = s->buf[s->k - 1]->data;
	uint8_t *end = unit + v->label.unit_bytes - sizeof(struct fmt_sum);
	struct fmt_sum_entry *out;
	struct fmt_sum sum = { .seg_id = seg->id,
			       .epoch = v->epoch,
			       .stripe = (uint16_t)s->stripe,
			       .entries = (uint16_t)s->entries,
			       .k = (uint8_t)s->k,
			       .m = (uint8_t)s->m };

	out = (void *)(end - s->entries * sizeof(*out));
	for (unsigned i = 0; i < s->entries; i++) {
		const struct stripe_entry *e = &s->entry[i];
		struct fmt_sum_entry x = { .lba = e->lba,
					   .crc = e->crc,
					   .gran = e->gran,
					   .unit = e->unit,
					   .grans = e->grans,
					   .flags = e->flags };

		memcpy(&out[i], &x, sizeof(x));
	}
	memcpy(sum.vdisk, v->uuid, 16);
	fmt_sum_write(unit, v->label.unit_bytes, &sum, out);
}

static void parity_write(struct vlog *v, struct stripe *s)
{
	uint8_t *p[FMT_COMPS_MAX];

	if (!s->m)
		return;
	for (unsigned i = 0; i < s->k + s->m; i++)
		p[i] = s->buf[i]->data;
	ec_encode(seg_ec(v, s->k, s->m), v->label.unit_bytes, p, p + s->k);
}

static uint64_t *stream_bytes(struct vlog *v, enum stream stream)
{
	switch (stream) {
	case STREAM_COLD:
		return &v->stat.clean_bytes;
	case STREAM_BYPASS:
		return &v->stat.bypass_bytes;
	default:
		return &v->stat.destage_bytes;
	}
}

void stripe_write(struct vlog *v, struct stripe *s)
{
	const struct seg *seg = &v->seg[s->seg];

	id_assert(s->state == STRIPE_FILLING && s->entries);
	unit_pad(v, s);
	while (++s->unit < s->k) {
		s->gran = 0;
		unit_pad(v, s);
	}
	summary_write(v, s);
	parity_write(v, s);
	s->state = STRIPE_WRITING;
	batch_begin(&s->batch, NULL);
	for (unsigned i = 0; i < s->k + s->m; i++) {
		batch_io(v, &s->batch, seg->comp[i], BDEV_WRITE, BDEV_FUA,
			 seg_unit_off(v, seg, i, s->stripe), s->buf[i], 0,
			 v->label.unit_bytes);
		*stream_bytes(v, s->stream) += v->label.unit_bytes;
	}
	batch_end(v, &s->batch);
}

/* ---- the end of one ------------------------------------------------ */

static void stripe_release(struct vlog *v, struct stripe *s)
{
	for (unsigned i = 0; i < s->entries; i++) {
		struct stripe_entry *e = &s->entry[i];

		if (e->block) {
			if (e->block->moving)
				v->map.moving_grans -= e->block->grans;
			e->block->moving = false;
			block_put(v, e->block);
		}
		if (e->seg != SEG_NONE) {
			v->seg[e->seg].moves--;
			seg_unpin(v, e->seg);
		}
	}
	s->entries = 0;
	bufs_put(s);
	s->state = batch_over(&s->batch) ? STRIPE_IDLE : STRIPE_DRAINING;
	vlog_kick(v);
}

void stripe_drop(struct vlog *v, struct stripe *s)
{
	struct ureq *u = s->req;

	if (u)
		u->redo = true;
	if (s->state == STRIPE_FILLING)
		seg_stripe_cancel(v, s->seg, s->stripe);
	else
		seg_stripe_end(v, s->seg, false);
	stripe_release(v, s);
	if (u)
		ureq_part_done(v, u, 0);
}

void stripe_committed(struct vlog *v, struct stripe *s)
{
	struct ureq *u = s->req;

	stripe_release(v, s);
	if (u)
		ureq_part_done(v, u, 0);
}

static bool commit_append(struct vlog *v, struct stripe *s)
{
	const struct seg *seg = &v->seg[s->seg];
	struct fmt_commit c = { .seg_id = seg->id,
				.seg = s->seg,
				.stripe = (uint16_t)s->stripe,
				.k = seg->k,
				.m = seg->m };
	struct rec *rec = rec_get(v, REC_COMMIT, false);
	uint8_t *p;

	if (!rec)
		return false;
	memcpy(c.comp, seg->comp, sizeof(c.comp));
	memcpy(c.slot, seg->slot, sizeof(c.slot));
	p = rec_entries(rec);
	memcpy(p, &c, sizeof(c));
	p += sizeof(c);
	for (unsigned i = 0; i < s->entries;
	     i++, p += sizeof(struct fmt_move)) {
		const struct stripe_entry *e = &s->entry[i];
		struct fmt_move m = { .lba = e->lba,
				      .old = e->old,
				      .crc = e->crc,
				      .gran = e->gran,
				      .unit = e->unit,
				      .grans = e->grans,
				      .flags = e->flags };

		memcpy(p, &m, sizeof(m));
	}
	rec->entries = (uint16_t)s->entries;
	rec->stripe = s;
	s->state = STRIPE_COMMITTING;
	rec_append(v, rec);
	seg_stripe_end(v, s->seg, true);
	return true;
}

static bool one_step(struct vlog *v, struct stripe *s)
{
	switch (s->state) {
	case STRIPE_WRITING:
		if (!batch_over(&s->batch) && !MUT(COMMIT_EARLY))
			return false;
		if (s->batch.failed && !MUT(COMMIT_EARLY)) {
			stripe_drop(v, s);
			return true;
		}
		s->state = STRIPE_WRITTEN;
		bufs_put(s);
		commit_append(v, s);
		return true;
	case STRIPE_WRITTEN:
		return commit_append(v, s);
	case STRIPE_DRAINING:
		if (!batch_over(&s->batch))
			return false;
		s->state = STRIPE_IDLE;
		return true;
	default:
		return false;
	}
}

bool stripe_step(struct vlog *v)
{
	bool moved = false;

	if (v->state == VLOG_STOPPED || v->state == VLOG_OPENING)
		return false;
	for (unsigned i = 0; i < STRIPES; i++)
		moved |= one_step(v, &v->stripe[i]);
	return moved;
}
