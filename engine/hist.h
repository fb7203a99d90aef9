/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Log-linear latency histograms.
 *
 * Values below 128 ns have a bucket each; above, every power of two is cut
 * into 128 equal buckets, so a bucket's width is at most 1/128 (0.79 %) of its
 * lower edge. 33 powers of two above 128 reach 2^40 ns (18 minutes); what is
 * longer lands in the last bucket and is counted in `clipped`. The buckets
 * take 34.8 KB.
 *
 * Histograms merge exactly across threads, nodes and intervals. On the wire
 * they are sparse: pairs of (distance to the last bucket, count).
 */
#ifndef ENGINE_HIST_H
#define ENGINE_HIST_H

#include "engine/base.h"

#define HIST_SUB_BITS 7
#define HIST_SUB (1u << HIST_SUB_BITS)
#define HIST_MAX_BITS 40
#define HIST_BUCKETS ((HIST_MAX_BITS - HIST_SUB_BITS + 1) * HIST_SUB)

struct hist {
	uint64_t count;
	uint64_t sum_ns; /* exact, not from the buckets */
	uint64_t min_ns; /* UINT64_MAX without samples */
	uint64_t max_ns;
	uint64_t clipped; /* samples longer than 2^40 ns */
	uint64_t bucket[HIST_BUCKETS];
};

static inline unsigned hist_index(uint64_t ns)
{
	unsigned msb, shift;

	if (ns < HIST_SUB)
		return (unsigned)ns;
	msb = 63u - (unsigned)__builtin_clzll(ns);
	if (id_unlikely(msb >= HIST_MAX_BITS))
		return HIST_BUCKETS - 1;
	shift = msb - HIST_SUB_BITS;
	return (shift + 1) * HIST_SUB + (unsigned)((ns >> shift) - HIST_SUB);
}

static inline void hist_add(struct hist *h, uint64_t ns)
{
	h->bucket[hist_index(ns)]++;
	h->count++;
	h->sum_ns += ns;
	if (id_unlikely(ns > h->max_ns))
		h->max_ns = ns;
	if (id_unlikely(ns < h->min_ns))
		h->min_ns = ns;
	if (id_unlikely(ns >> HIST_MAX_BITS))
		h->clipped++;
}

void hist_reset(struct hist *h);
void hist_merge(struct hist *into, const struct hist *from);

/* Lower edge and width of a bucket, in nanoseconds. */
uint64_t hist_bucket_low_ns(unsigned index);
uint64_t hist_bucket_width_ns(unsigned index);

/*
 * Smallest recorded latency that at least `fraction` of the samples do not
 * exceed.
 * fraction    0 < fraction <= 1
 * latency_ns  out: upper edge of the bucket, never above max_ns, so at most
 *             1/128 (0.8 %) above the true value
 * Returns 0; -EINVAL for a fraction out of range; -ENODATA without samples.
 * Threads: one at a time; merge per-thread histograms with hist_merge() first.
 * Source: Hyndman and Fan (1996), sample quantile definition 1.
 */
int hist_quantile(const struct hist *h, double fraction, uint64_t *latency_ns);

/* Mean in nanoseconds, exact; 0.0 without samples. */
double hist_mean_ns(const struct hist *h);

#endif
