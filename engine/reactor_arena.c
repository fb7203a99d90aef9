/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Buffers: a bit a page of one arena, first fit, so that freed neighbours
 * join by themselves. Made for buffers that live long; a ring slot or a job
 * takes its buffers once. Huge pages where they are to be had: one entry of
 * the translation cache instead of hundreds.
 */
#include "engine/reactor_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 * MIB)

static bool page_used(const struct arena *arena, size_t page)
{
	return arena->used[page / 64] >> (page % 64) & 1;
}

static void pages_mark(struct arena *arena, size_t page, size_t count,
		       bool used)
{
	for (size_t i = page; i < page + count; i++) {
		const uint64_t bit = 1ull << (i % 64);

		if (used)
			arena->used[i / 64] |= bit;
		else
			arena->used[i / 64] &= ~bit;
	}
}

/* Returns the first of `count` free pages at or after `from`, or pages. */
static size_t pages_find(const struct arena *arena, size_t from, size_t count)
{
	size_t run = 0;

	for (size_t i = from; i < arena->pages; i++) {
		run = page_used(arena, i) ? 0 : run + 1;
		if (run == count)
			return i + 1 - count;
	}
	return arena->pages;
}

int reactor_arena_init(struct reactor *r, size_t bytes, struct err *err)
{
	struct arena *arena = &r->arena;

	if (!bytes)
		return 0;
	bytes = (bytes + HUGE - 1) / HUGE * HUGE;
	arena->base = aligned_alloc(HUGE, bytes);
	arena->pages = bytes / PAGE;
	arena->used = calloc((arena->pages + 63) / 64, sizeof(uint64_t));
	if (!arena->base || !arena->used)
		return err_set(err, -ENOMEM,
			       "no memory for %zu MiB of I/O buffers",
			       bytes >> 20);
	arena->bytes = bytes;
	madvise(arena->base, bytes, MADV_HUGEPAGE);
	memset(arena->base, 0, bytes);
	return 0;
}

void reactor_arena_fini(struct reactor *r)
{
	free(r->arena.base);
	free(r->arena.used);
}

static void *arena_alloc(struct arena *arena, size_t len)
{
	const size_t count = (len + PAGE - 1) / PAGE;
	size_t page;

	if (!arena->bytes || count > arena->pages)
		return NULL;
	page = pages_find(arena, arena->hint, count);
	if (page == arena->pages)
		page = pages_find(arena, 0, count);
	if (page == arena->pages)
		return NULL;
	pages_mark(arena, page, count, true);
	arena->hint = page + count;
	return arena->base + page * PAGE;
}

void *reactor_buf_alloc_raw(struct reactor *r, size_t len)
{
	void *buf = arena_alloc(&r->arena, len);

	if (!buf)
		buf = aligned_alloc(PAGE, (len + PAGE - 1) / PAGE * PAGE);
	return buf;
}

void *reactor_buf_alloc(struct reactor *r, size_t len)
{
	void *buf = reactor_buf_alloc_raw(r, len);

	if (buf)
		memset(buf, 0, len);
	return buf;
}

void reactor_buf_free(struct reactor *r, void *buf, size_t len)
{
	struct arena *arena = &r->arena;
	const uintptr_t at = (uintptr_t)buf, base = (uintptr_t)arena->base;
	size_t page;

	if (!buf)
		return;
	if (!arena->bytes || at < base || at >= base + arena->bytes) {
		free(buf);
		return;
	}
	page = (at - base) / PAGE;
	id_assert(at % PAGE == 0 && page_used(arena, page));
	pages_mark(arena, page, (len + PAGE - 1) / PAGE, false);
	if (page < arena->hint)
		arena->hint = page;
}
