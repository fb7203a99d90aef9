/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long I/O takes of late: a coarse histogram for decisions, not for
 * people (that is engine/hist.h). Four buckets to a power of two, so a quantile
 * is up to 19 % too high; old samples fade by halving.
 */
#ifndef ENGINE_VDISK_LOG_LAT_H
#define ENGINE_VDISK_LOG_LAT_H

#include <string.h>

#include "engine/base.h"

#define LAT_BUCKETS (4 * 40) /* to 2^40 ns */

struct lat {
	uint32_t count;
	uint32_t n[LAT_BUCKETS];
};

static inline unsigned lat_index(uint64_t ns)
{
	unsigned msb, i;

	if (ns < 4)
		return (unsigned)ns;
	msb = 63u - (unsigned)__builtin_clzll(ns);
	i = 4 * (msb - 1) + (unsigned)(ns >> (msb - 2) & 3);
	return i < LAT_BUCKETS ? i : LAT_BUCKETS - 1;
}

/* The upper edge of a bucket. */
static inline uint64_t lat_edge(unsigned i)
{
	const unsigned msb = i / 4 + 1;

	if (i < 4)
		return i + 1;
	return (1ull << msb) + ((uint64_t)(i % 4 + 1) << (msb - 2));
}

static inline void lat_add(struct lat *l, uint64_t ns)
{
	l->n[lat_index(ns)]++;
	l->count++;
}

/* 0: there are no samples. */
static inline uint64_t lat_quantile(const struct lat *l, double q)
{
	const uint64_t want = (uint64_t)((double)l->count * q);
	uint64_t seen = 0;

	for (unsigned i = 0; i < LAT_BUCKETS && l->count; i++) {
		seen += l->n[i];
		if (seen > want || seen == l->count)
			return lat_edge(i);
	}
	return 0;
}

static inline void lat_fade(struct lat *l)
{
	l->count = 0;
	for (unsigned i = 0; i < LAT_BUCKETS; i++)
		l->count += l->n[i] /= 2;
}

static inline void lat_reset(struct lat *l)
{
	memset(l, 0, sizeof(*l));
}

#endif
