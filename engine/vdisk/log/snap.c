/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a content is: the segment table, the map and the bytes of all blocks
 * that only the log holds, as at one LSN. As it carries those bytes, a
 * checkpoint frees the log up to that LSN without destaging anything.
 *
 *   SEGS -> LEAVES -> BLOCKS -> END, as items in pieces of FMT_PIECE
 *
 * The table and the list of blocks are copied (held) when it begins; leaves
 * are kept by map.c as they change.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>

int snap_init(struct vlog *v)
{
	v->snap.seg = malloc(v->segs * sizeof(struct seg));
	v->snap.block = malloc(v->map.grans * sizeof(struct block *));
	return v->snap.seg && v->snap.block ? 0 : -ENOMEM;
}

void snap_fini(struct vlog *v)
{
	free(v->snap.seg);
	free(v->snap.block);
}

uint64_t snap_bytes(const struct vlog *v)
{
	const struct map *m = &v->map;
	const uint64_t leaves = m->leaf_slab.used;

	return leaves * sizeof(struct fmt_item_leaf) +
	       v->segs_used * sizeof(struct fmt_item_seg) +
	       m->linked_grans * (uint64_t)FMT_GRAN;
}

void snap_begin(struct vlog *v)
{
	struct snap *s = &v->snap;

	id_assert(!s->active);
	memcpy(s->seg, v->seg, v->segs * sizeof(struct seg));
	s->blocks = 0;
	for (struct block *b = v->map.oldest; b; b = b->next) {
		b->refs++;
		s->block[s->blocks++] = b;
	}
	s->phase = SNAP_SEGS;
	s->cursor = 0;
	s->at = 0;
	s->crc = codec_crc_start();
	s->count = (struct fmt_item_end) { 0 };
	s->active = true;
}

void snap_end(struct vlog *v)
{
	struct snap *s = &v->snap;

	if (!s->active)
		return;
	s->active = false;
	for (; s->cursor < v->map.leaves; s->cursor++)
		map_snapshot_leaf_done(v, s->cursor);
	for (uint32_t i = 0; i < s->blocks; i++)
		block_put(v, s->block[i]);
	s->blocks = 0;
}

/* ---- out ----------------------------------------------------------- */

struct out {
	uint8_t *p;
	uint32_t used, room;
};

static void *item_add(struct out *out, enum fmt_item_type type, uint32_t len)
{
	struct fmt_item item = { .type = type, .len = len };
	uint8_t *at = out->p + out->used;

	if (out->used + sizeof(item) + len > out->room)
		return NULL;
	memcpy(at, &item, sizeof(item));
	out->used += (uint32_t)sizeof(item) + len;
	return at + sizeof(item);
}

/* Each returns false when the piece is full. */
static bool fill_segs(struct vlog *v, struct out *out)
{
	struct snap *s = &v->snap;

	for (; s->at < v->segs; s->at++) {
		const struct seg *seg = &s->seg[s->at];
		struct fmt_item_seg item = {
			.where = { .seg_id = seg->id,
				   .seg = s->at,
				   .k = seg->k,
				   .m = seg->m },
			.lsn = seg->lsn,
			.live = seg->live,
			.sealed = seg->state == SEG_SEALED,
			.stripes = seg->stripes,
		};
		void *at;

		/* Nothing live and sealed is free, whoever pins it now: a
		 * recovery must see its slots and its index as free too. */
		if (seg->state == SEG_FREE || !seg->committed ||
		    (seg->state == SEG_SEALED && !seg->live))
			continue;
		memcpy(item.where.comp, seg->comp, sizeof(seg->comp));
		memcpy(item.where.slot, seg->slot, sizeof(seg->slot));
		at = item_add(out, ITEM_SEG, sizeof(item));
		if (!at)
			return false;
		memcpy(at, &item, sizeof(item));
		s->count.segs++;
	}
	return true;
}

static bool fill_leaves(struct vlog *v, struct out *out)
{
	struct snap *s = &v->snap;

	for (; s->cursor < v->map.leaves; s->cursor++) {
		const struct leaf *l = map_snapshot_leaf(v, s->cursor);
		struct fmt_item_leaf *at;

		if (l) {
			at = item_add(out, ITEM_LEAF, sizeof(*at));
			if (!at)
				return false;
			memcpy(&at->index, &s->cursor, sizeof(at->index));
			memcpy(at->loc, l->loc, sizeof(l->loc));
			memcpy(at->crc, l->crc, sizeof(l->crc));
			s->count.leaves++;
		}
		map_snapshot_leaf_done(v, s->cursor);
	}
	return true;
}

static bool fill_blocks(struct vlog *v, struct out *out)
{
	struct snap *s = &v->snap;

	for (; s->at < s->blocks; s->at++) {
		const struct block *b = s->block[s->at];
		struct fmt_item_block item = { .lba = b->lba, .loc = b->loc };
		uint8_t *at;

		at = item_add(out, ITEM_BLOCK,
			      (uint32_t)sizeof(item) + b->grans * FMT_GRAN);
		if (!at)
			return false;
		memcpy(at, &item, sizeof(item));
		block_copy(v, b, at + sizeof(item));
		s->count.blocks++;
	}
	return true;
}

uint32_t snap_fill(struct vlog *v, uint8_t *p, uint32_t room)
{
	struct snap *s = &v->snap;
	struct out out = { .p = p, .room = room };
	void *at;

	if (s->phase == SNAP_SEGS && fill_segs(v, &out)) {
		s->phase = SNAP_LEAVES;
		s->at = 0;
	}
	if (s->phase == SNAP_LEAVES && fill_leaves(v, &out))
		s->phase = SNAP_BLOCKS;
	if (s->phase == SNAP_BLOCKS && fill_blocks(v, &out))
		s->phase = SNAP_END;
	if (s->phase == SNAP_END) {
		at = item_add(&out, ITEM_END, sizeof(s->count));
		if (at) {
			memcpy(at, &s->count, sizeof(s->count));
			s->phase = SNAP_OVER;
		}
	}
	return out.used;
}

/* ---- in ------------------------------------------------------------ */

static int load_seg(struct vlog *v, const uint8_t *p, uint32_t len)
{
	struct fmt_item_seg item;
	struct seg *s;
	int rc;

	if (len != sizeof(item))
		return -EBADMSG;
	memcpy(&item, p, sizeof(item));
	if (item.where.seg >= v->segs ||
	    v->seg[item.where.seg].state != SEG_FREE ||
	    (uint64_t)item.stripes >> v->label.stripes)
		return -EBADMSG;
	rc = seg_adopt(v, &item.where, item.sealed);
	if (rc)
		return rc;
	s = &v->seg[item.where.seg];
	s->committed = true;
	s->lsn = item.lsn;
	s->stripes = item.stripes;
	v->snap.seg[item.where.seg].live = item.live;
	v->snap.count.segs++;
	return 0;
}

static bool loc_ok(const struct vlog *v, uint64_t loc)
{
	const struct seg *s;

	if (loc_kind(loc) != LOC_SEG)
		return true;
	if (loc_seg_index(loc) >= v->segs)
		return false;
	s = &v->seg[loc_seg_index(loc)];
	return s->state != SEG_FREE && s->stripes & 1u << loc_stripe(loc) &&
	       loc_unit(loc) < s->k &&
	       loc_gran(loc) + loc_grans(loc) <= unit_grans(v);
}

static int load_leaf(struct vlog *v, const uint8_t *p, uint32_t len)
{
	const struct fmt_item_leaf *item = (const void *)p;
	struct map *m = &v->map;
	struct leaf *l;

	if (len != sizeof(*item) || item->index >= m->leaves ||
	    m->leaf[item->index])
		return -EBADMSG;
	l = slab_get(&m->leaf_slab);
	if (!l)
		return -EBADMSG;
	m->leaf[item->index] = l;
	for (unsigned i = 0; i < FMT_LEAF; i++) {
		const uint64_t loc = item->loc[i];

		if (!loc)
			continue;
		if (item->index * FMT_LEAF + i >= v->label.size_blocks ||
		    !loc_ok(v, loc))
			return -EBADMSG;
		l->loc[i] = loc;
		l->crc[i] = item->crc[i];
		l->used++;
		m->mapped++;
		m->bad += loc == LOC_BAD;
		if (loc_kind(loc) == LOC_LOG)
			v->snap.blocks++; /* to come */
		if (loc_kind(loc) == LOC_SEG) {
			v->seg[loc_seg_index(loc)].live += loc_grans(loc);
			v->live_grans += loc_grans(loc);
		}
	}
	v->snap.count.leaves++;
	return l->used ? 0 : -EBADMSG;
}

static int load_block(struct vlog *v, const uint8_t *p, uint32_t len)
{
	struct fmt_item_block item;
	struct block *b;
	uint32_t crc = 0;

	if (len < sizeof(item))
		return -EBADMSG;
	memcpy(&item, p, sizeof(item));
	if (item.lba >= v->label.size_blocks || loc_kind(item.loc) != LOC_LOG ||
	    map_loc(v, item.lba, &crc) != item.loc ||
	    len != sizeof(item) + loc_grans(item.loc) * FMT_GRAN ||
	    block_find(v, item.loc))
		return -EBADMSG;
	b = block_get(v, loc_grans(item.loc));
	if (!b)
		return -EBADMSG;
	b->lba = item.lba;
	b->loc = item.loc;
	b->crc = crc;
	b->codec = (uint8_t)loc_codec(item.loc);
	block_fill(v, b, p + sizeof(item));
	block_link(v, b);
	v->snap.count.blocks++;
	return 0;
}

static int load_end(struct vlog *v, const uint8_t *p, uint32_t len)
{
	struct fmt_item_end end;
	const struct fmt_item_end *c = &v->snap.count;

	if (len != sizeof(end))
		return -EBADMSG;
	memcpy(&end, p, sizeof(end));
	if (memcmp(&end, c, sizeof(end)) || v->snap.blocks != c->blocks)
		return -EBADMSG;
	for (uint32_t i = 0; i < v->segs; i++)
		if (v->seg[i].state != SEG_FREE &&
		    v->seg[i].live != v->snap.seg[i].live)
			return -EBADMSG;
	v->snap.blocks = 0;
	return 0;
}

int snap_load(struct vlog *v, const uint8_t *p, uint32_t used, bool *over)
{
	uint32_t at = 0;
	int rc = 0;

	while (at < used && !rc) {
		struct fmt_item item;

		if (*over || used - at < sizeof(item))
			return -EBADMSG;
		memcpy(&item, p + at, sizeof(item));
		at += (uint32_t)sizeof(item);
		if (item.len > used - at)
			return -EBADMSG;
		if (item.type == ITEM_SEG) {
			rc = load_seg(v, p + at, item.len);
		} else if (item.type == ITEM_LEAF) {
			rc = load_leaf(v, p + at, item.len);
		} else if (item.type == ITEM_BLOCK) {
			rc = load_block(v, p + at, item.len);
		} else if (item.type == ITEM_END) {
			rc = load_end(v, p + at, item.len);
			*over = true;
		} else {
			rc = -EBADMSG;
		}
		at += item.len;
	}
	return rc;
}
