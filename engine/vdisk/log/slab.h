/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory with a cap: so many objects of one size, reserved when made and
 * taken from the machine as first used. Nothing else is allocated while a
 * vDisk serves; who finds a slab empty waits until something comes back.
 */
#ifndef ENGINE_VDISK_LOG_SLAB_H
#define ENGINE_VDISK_LOG_SLAB_H

#include "engine/base.h"

struct slab {
	uint8_t *mem;
	size_t size; /* of an object */
	uint32_t count, used, high;
	void *free;
};

int slab_init(struct slab *slab, size_t size, uint32_t count);
void slab_fini(struct slab *slab);
void *slab_get(struct slab *slab);     /* zeroed; NULL: none left */
void *slab_get_raw(struct slab *slab); /* as it was left */
void slab_put(struct slab *slab, void *object);

static inline uint32_t slab_left(const struct slab *slab)
{
	return slab->count - slab->used;
}

static inline uint32_t slab_index(const struct slab *slab, const void *object)
{
	return (uint32_t)((size_t)((const uint8_t *)object - slab->mem) /
			  slab->size);
}

static inline void *slab_at(const struct slab *slab, uint32_t index)
{
	return slab->mem + (size_t)index * slab->size;
}

#endif
