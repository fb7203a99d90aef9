/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One mapping, MAP_NORESERVE: pages appear as objects are first handed out,
 * lowest first. What was handed out once is kept for the next.
 */
#include "engine/vdisk/log/slab.h"

#include <string.h>
#include <sys/mman.h>

int slab_init(struct slab *slab, size_t size, uint32_t count)
{
	size = (size + 15) & ~(size_t)15;
	memset(slab, 0, sizeof(*slab));
	slab->size = size;
	slab->count = count;
	slab->mem = mmap(NULL, size * count, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slab->mem == MAP_FAILED) {
		slab->mem = NULL;
		return -ENOMEM;
	}
	return 0;
}

void slab_fini(struct slab *slab)
{
	if (slab->mem)
		munmap(slab->mem, slab->size * slab->count);
	memset(slab, 0, sizeof(*slab));
}

void *slab_get_raw(struct slab *slab)
{
	void *object = slab->free;

	if (object)
		memcpy(&slab->free, object, sizeof(slab->free));
	else if (slab->high < slab->count)
		object = slab_at(slab, slab->high++);
	else
		return NULL;
	slab->used++;
	return object;
}

void *slab_get(struct slab *slab)
{
	void *object = slab_get_raw(slab);

	if (object)
		memset(object, 0, slab->size);
	return object;
}

void slab_put(struct slab *slab, void *object)
{
	id_assert(slab->used);
	slab->used--;
	memcpy(object, &slab->free, sizeof(slab->free));
	slab->free = object;
}
