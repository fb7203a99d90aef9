/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a record does to map and segments: the one function that both the run
 * and a recovery use, so that the state is a function of the log's prefix.
 * At run time a record comes from this very process; in a recovery it is
 * input, and what it says is held against what can be.
 */
#include <string.h>

#include "engine/vdisk/log/impl.h"

#define AHEAD 4 /* entries: leaves are seldom in the cache */

/* Undestaged bytes from the payload of a record that is replayed. */
static struct block *block_replay(struct vlog *v, const struct fmt_record *rec,
				  const struct fmt_write *w)
{
	const uint8_t *payload = (const uint8_t *)rec + rec->hdr_len;
	struct block *b;

	if (w->grans < 1 || w->grans > FMT_BLOCK_GRANS ||
	    (w->gran + w->grans) * FMT_GRAN > rec->pay_len)
		return NULL;
	b = block_get(v, w->grans);
	if (!b)
		return NULL;
	block_fill(v, b, payload + (size_t)w->gran * FMT_GRAN);
	return b;
}

static int apply_write(struct vlog *v, const struct fmt_record *rec,
		       struct block **block)
{
	const struct fmt_write *w = (const void *)(rec + 1);

	for (unsigned i = 0; i < rec->entries; i++, w++) {
		struct block *b = block ? block[i] : NULL;

		if (i + AHEAD < rec->entries)
			map_prefetch(v, w[AHEAD].lba);
		if (w->lba >= v->label.size_blocks)
			return -EBADMSG;
		if (w->flags & ENT_ZERO) {
			map_set(v, w->lba, LOC_ZERO, 0);
			continue;
		}
		if (!b)
			b = block_replay(v, rec, w);
		if (!b)
			return -EBADMSG;
		b->lba = w->lba;
		b->crc = w->crc;
		b->codec = w->flags >> ENT_CODEC_SHIFT & 3;
		b->loc = loc_log(rec->lsn, i, b->grans, b->codec);
		block_link(v, b);
		if (block)
			block[i] = NULL; /* the map's now */
		map_set(v, w->lba, b->loc, w->crc);
	}
	return 0;
}

static int apply_discard(struct vlog *v, const struct fmt_record *rec)
{
	const struct fmt_discard *d = (const void *)(rec + 1);

	for (unsigned i = 0; i < rec->entries; i++, d++) {
		if (d->lba > v->label.size_blocks ||
		    d->blocks > v->label.size_blocks - d->lba)
			return -EBADMSG;
		for (uint64_t lba = d->lba; lba < d->lba + d->blocks; lba++) {
			if (!v->map.leaf[lba / FMT_LEAF])
				lba |= FMT_LEAF - 1; /* the rest of it too */
			else
				map_set(v, lba, 0, 0);
		}
	}
	return 0;
}

static bool move_ok(const struct vlog *v, const struct seg *s,
		    const struct fmt_move *m)
{
	return m->lba < v->label.size_blocks && m->unit < s->k && m->grans &&
	       m->grans <= FMT_BLOCK_GRANS &&
	       m->gran + m->grans <= (int)unit_grans(v);
}

static int apply_commit(struct vlog *v, const struct fmt_record *rec)
{
	struct fmt_commit c;
	const struct fmt_move *m;
	struct seg *s;
	int rc;

	memcpy(&c, rec + 1, sizeof(c));
	m = (const void *)((const uint8_t *)(rec + 1) + sizeof(c));
	rc = seg_adopt(v, &c, false);
	if (rc)
		return rc;
	if (c.stripe >= v->label.stripes)
		return -EBADMSG;
	s = &v->seg[c.seg];
	if (s->state == SEG_SEALED && !MUT(SEAL_EARLY))
		return -EBADMSG;
	s->committed = true;
	s->stripes |= 1u << c.stripe;
	s->lsn = rec->lsn;
	for (unsigned i = 0; i < rec->entries; i++, m++) {
		const uint64_t now =
			loc_seg(c.seg, c.stripe, m->unit, m->gran, m->grans,
				m->flags >> ENT_CODEC_SHIFT & 3);
		uint32_t crc = 0;
		uint64_t loc;

		if (i + AHEAD < rec->entries)
			map_prefetch(v, m[AHEAD].lba);
		if (m->flags & ENT_BAD ? m->lba >= v->label.size_blocks
				       : !move_ok(v, s, m))
			return -EBADMSG;
		loc = map_loc(v, m->lba, &crc);
		if (m->flags & ENT_BYPASS || loc == m->old ||
		    (MUT(NO_CAS) && loc))
			map_set(v, m->lba, m->flags & ENT_BAD ? LOC_BAD : now,
				m->crc);
	}
	return 0;
}

static int apply_seal(struct vlog *v, const struct fmt_record *rec)
{
	struct fmt_commit c;
	struct seg *s;

	memcpy(&c, rec + 1, sizeof(c));
	if (c.seg >= v->segs)
		return -EBADMSG;
	s = &v->seg[c.seg];
	if (s->state == SEG_FREE || s->id != c.seg_id)
		return MUT(SEAL_EARLY) ? 0 : -EBADMSG;
	s->state = SEG_SEALED;
	/* It may have lost a member, or its policy, since it was begun. */
	if (resync_why(v, s) != WHY_NONE)
		resync_look(v);
	seg_maybe_free(v, c.seg);
	return 0;
}

int apply_record(struct vlog *v, const struct fmt_record *rec,
		 struct block **block)
{
	switch (rec->type) {
	case REC_WRITE:
		return apply_write(v, rec, block);
	case REC_DISCARD:
		return apply_discard(v, rec);
	case REC_COMMIT:
		return apply_commit(v, rec);
	case REC_SEAL:
		return apply_seal(v, rec);
	default:
		return -EBADMSG;
	}
}

uint64_t apply_changes(const struct fmt_record *rec)
{
	const struct fmt_discard *d = (const void *)(rec + 1);
	uint64_t sum = 0;

	if (rec->type != REC_DISCARD)
		return rec->entries;
	for (unsigned i = 0; i < rec->entries; i++)
		sum += d[i].blocks / FMT_LEAF + 2;
	return sum;
}
