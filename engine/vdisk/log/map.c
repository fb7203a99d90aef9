/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where every block is, and the bytes of those that only the log holds.
 *
 * The map has two levels; a leaf (512 blocks, 2 MiB of addresses) appears with
 * its first block and goes with its last. While a checkpoint runs, the first
 * change of a leaf it has not yet written leaves a copy behind, so that what
 * is written is the state at one LSN. The number of copies is capped:
 * map_room() makes the log wait for the checkpoint instead.
 *
 * Undestaged blocks lie in granules of 512 bytes, chained by index, so the
 * buffer never fragments and its cap is exact.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t leaves_of(const struct vlog *v)
{
	return (v->label.size_blocks + FMT_LEAF - 1) / FMT_LEAF;
}

static int grans_init(struct vlog *v)
{
	struct map *m = &v->map;

	m->grans = v->label.buffer_bytes / FMT_GRAN;
	m->grans_left = m->grans;
	m->gran_free = malloc(m->grans * sizeof(*m->gran_free));
	m->gran_mem = mmap(NULL, v->label.buffer_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->gran_mem == MAP_FAILED)
		m->gran_mem = NULL;
	if (!m->gran_free || !m->gran_mem)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->grans; i++)
		m->gran_free[i] = m->grans - 1 - i;
	return 0;
}

int map_init(struct vlog *v)
{
	struct map *m = &v->map;
	uint64_t cow;
	uint32_t hash = 1024;
	int rc;

	m->leaves = leaves_of(v);
	cow = m->leaves / 8 < COW_LEAVES_MIN ? COW_LEAVES_MIN : m->leaves / 8;
	cow = cow < m->leaves ? cow : m->leaves;
	m->cow_all = cow == m->leaves;
	m->leaf = calloc(m->leaves, sizeof(struct leaf *));
	m->cow = calloc(m->leaves, sizeof(struct leaf *));
	rc = grans_init(v);
	while (hash < m->grans)
		hash *= 2;
	m->hash_mask = hash - 1;
	m->hash = calloc(hash, sizeof(struct block *));
	if (rc || !m->leaf || !m->cow || !m->hash)
		return -ENOMEM;
	rc = slab_init(&m->leaf_slab, sizeof(struct leaf),
		       (uint32_t)(m->leaves + cow));
	if (!rc)
		rc = slab_init(&m->block_slab, sizeof(struct block), m->grans);
	return rc;
}

void map_fini(struct vlog *v)
{
	struct map *m = &v->map;

	free(m->leaf);
	free(m->cow);
	free(m->hash);
	free(m->gran_free);
	if (m->gran_mem)
		munmap(m->gran_mem, v->label.buffer_bytes);
	slab_fini(&m->leaf_slab);
	slab_fini(&m->block_slab);
	memset(m, 0, sizeof(*m));
}

/* ---- undestaged blocks --------------------------------------------- */

static uint32_t hash_of(const struct vlog *v, uint64_t loc)
{
	uint64_t x = loc >> 7; /* LSN and entry */

	x *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(x >> 32) & v->map.hash_mask;
}

struct block *block_find(const struct vlog *v, uint64_t loc)
{
	struct block *b = v->map.hash[hash_of(v, loc)];

	while (b && b->loc != loc)
		b = b->hash_next;
	return b;
}

struct block *block_get(struct vlog *v, unsigned grans)
{
	struct map *m = &v->map;
	struct block *b;

	id_assert(grans >= 1 && grans <= FMT_BLOCK_GRANS);
	if (m->grans_left < grans)
		return NULL;
	b = slab_get(&m->block_slab);
	if (!b)
		return NULL;
	b->refs = 1;
	b->grans = (uint8_t)grans;
	for (unsigned i = 0; i < grans; i++)
		b->gran[i] = m->gran_free[--m->grans_left];
	return b;
}

void block_put(struct vlog *v, struct block *b)
{
	struct map *m = &v->map;

	id_assert(b->refs);
	if (--b->refs)
		return;
	id_assert(!b->linked);
	/* Last first, so that they come out again side by side. */
	for (unsigned i = b->grans; i-- > 0;)
		m->gran_free[m->grans_left++] = b->gran[i];
	slab_put(&m->block_slab, b);
}

/* Granules from i on that lie side by side. */
static unsigned grans_together(const struct block *b, unsigned i)
{
	unsigned n = 1;

	while (i + n < b->grans && b->gran[i + n] == b->gran[i] + n)
		n++;
	return n;
}

void block_fill(struct vlog *v, struct block *b, const uint8_t *stored)
{
	for (unsigned i = 0, n; i < b->grans; i += n) {
		n = grans_together(b, i);
		memcpy(v->map.gran_mem + (size_t)b->gran[i] * FMT_GRAN,
		       stored + (size_t)i * FMT_GRAN, (size_t)n * FMT_GRAN);
	}
}

void block_copy(const struct vlog *v, const struct block *b, uint8_t *stored)
{
	for (unsigned i = 0, n; i < b->grans; i += n) {
		n = grans_together(b, i);
		memcpy(stored + (size_t)i * FMT_GRAN,
		       v->map.gran_mem + (size_t)b->gran[i] * FMT_GRAN,
		       (size_t)n * FMT_GRAN);
	}
}

uint8_t *block_stored(const struct vlog *v, const struct block *b,
		      uint8_t *room)
{
	if (grans_together(b, 0) == b->grans)
		return v->map.gran_mem + (size_t)b->gran[0] * FMT_GRAN;
	block_copy(v, b, room);
	return room;
}

/* Its start: the rest of it the processor sees coming. */
void block_prefetch(const struct vlog *v, const struct block *b)
{
	const uint8_t *p = v->map.gran_mem + (size_t)b->gran[0] * FMT_GRAN;

	for (unsigned i = 0; i < FMT_GRAN; i += 64)
		__builtin_prefetch(p + i);
}

/* Takes the caller's hold over. */
void block_link(struct vlog *v, struct block *b)
{
	struct map *m = &v->map;
	struct block **bucket = &m->hash[hash_of(v, b->loc)];

	id_assert(!b->linked);
	b->linked = true;
	m->linked_grans += b->grans;
	b->hash_next = *bucket;
	*bucket = b;
	b->next = NULL;
	b->prev = m->newest;
	if (m->newest)
		m->newest->next = b;
	else
		m->oldest = b;
	m->newest = b;
}

static void block_unlink(struct vlog *v, struct block *b)
{
	struct map *m = &v->map;
	struct block **at = &m->hash[hash_of(v, b->loc)];

	while (*at != b)
		at = &(*at)->hash_next;
	*at = b->hash_next;
	if (b->prev)
		b->prev->next = b->next;
	else
		m->oldest = b->next;
	if (b->next)
		b->next->prev = b->prev;
	else
		m->newest = b->prev;
	b->linked = false;
	m->linked_grans -= b->grans;
	if (b->moving)
		m->moving_grans -= b->grans;
	b->moving = false;
	block_put(v, b);
}

/* ---- the map ------------------------------------------------------- */

uint64_t map_loc(const struct vlog *v, uint64_t lba, uint32_t *crc)
{
	const struct leaf *l = v->map.leaf[lba / FMT_LEAF];

	if (!l)
		return 0;
	*crc = l->crc[lba % FMT_LEAF];
	return l->loc[lba % FMT_LEAF];
}

void map_prefetch(const struct vlog *v, uint64_t lba)
{
	const struct leaf *l;

	if (lba >= v->label.size_blocks)
		return;
	l = v->map.leaf[lba / FMT_LEAF];
	if (!l)
		return;
	__builtin_prefetch(&l->loc[lba % FMT_LEAF], 1);
	__builtin_prefetch(&l->crc[lba % FMT_LEAF], 1);
}

bool map_room(const struct vlog *v, uint64_t changes)
{
	return !v->snap.active || v->map.cow_all ||
	       slab_left(&v->map.leaf_slab) >= 2 * changes;
}

/* The state at the checkpoint stays readable. */
static void leaf_keep(struct vlog *v, uint64_t i)
{
	struct map *m = &v->map;

	if (!v->snap.active || i < v->snap.cursor || m->cow[i] ||
	    MUT(SNAP_NO_COW))
		return;
	if (!m->leaf[i]) {
		m->cow[i] = LEAF_NONE;
		return;
	}
	m->cow[i] = slab_get(&m->leaf_slab);
	id_assert(m->cow[i]);
	memcpy(m->cow[i], m->leaf[i], sizeof(struct leaf));
}

static void loc_dead(struct vlog *v, uint64_t loc)
{
	struct seg *s;

	switch (loc_kind(loc)) {
	case LOC_LOG: {
		struct block *b = block_find(v, loc);

		id_assert(b);
		block_unlink(v, b);
		break;
	}
	case LOC_SEG:
		s = &v->seg[loc_seg_index(loc)];
		id_assert(s->live >= loc_grans(loc));
		s->live -= loc_grans(loc);
		v->live_grans -= loc_grans(loc);
		seg_maybe_free(v, loc_seg_index(loc));
		break;
	default:
		break;
	}
}

void map_set(struct vlog *v, uint64_t lba, uint64_t loc, uint32_t crc)
{
	struct map *m = &v->map;
	const uint64_t i = lba / FMT_LEAF;
	const unsigned at = (unsigned)(lba % FMT_LEAF);
	struct leaf *l = m->leaf[i];
	uint64_t old;

	if (!l && !loc)
		return;
	leaf_keep(v, i);
	if (!l) {
		l = m->leaf[i] = slab_get(&m->leaf_slab);
		id_assert(l);
	}
	old = l->loc[at];
	l->loc[at] = loc;
	l->crc[at] = crc;
	if (loc_kind(loc) == LOC_SEG) {
		v->seg[loc_seg_index(loc)].live += loc_grans(loc);
		v->live_grans += loc_grans(loc);
	}
	l->used += (loc != 0) - (old != 0);
	m->bad += (uint64_t)(loc == LOC_BAD) - (uint64_t)(old == LOC_BAD);
	if (loc == LOC_BAD)
		vlog_changed(v); /* it is to be told */
	m->mapped += (uint64_t)(loc != 0) - (uint64_t)(old != 0);
	loc_dead(v, old);
	if (!l->used) {
		m->leaf[i] = NULL;
		slab_put(&m->leaf_slab, l);
	}
}

struct leaf *map_snapshot_leaf(const struct vlog *v, uint64_t i)
{
	struct leaf *l = v->map.cow[i];

	if (l == LEAF_NONE)
		return NULL;
	return l ? l : v->map.leaf[i];
}

void map_snapshot_leaf_done(struct vlog *v, uint64_t i)
{
	struct leaf *l = v->map.cow[i];

	v->map.cow[i] = NULL;
	if (l && l != LEAF_NONE)
		slab_put(&v->map.leaf_slab, l);
}
