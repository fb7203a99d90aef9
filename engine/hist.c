/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/hist.h"

#include <math.h>
#include <string.h>

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min_ns = UINT64_MAX;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->clipped += from->clipped;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t hist_bucket_width_ns(unsigned index)
{
	return index < HIST_SUB ? 1 : 1ull << (index / HIST_SUB - 1);
}

uint64_t hist_bucket_low_ns(unsigned index)
{
	if (index < HIST_SUB)
		return index;
	return (uint64_t)(HIST_SUB + index % HIST_SUB)
	       << (index / HIST_SUB - 1);
}

int hist_quantile(const struct hist *h, double fraction, uint64_t *latency_ns)
{
	uint64_t want, seen = 0;

	if (!(fraction > 0.0 && fraction <= 1.0))
		return -EINVAL;
	if (!h->count)
		return -ENODATA;
	want = (uint64_t)ceil(fraction * (double)h->count);
	if (want == 0)
		want = 1;
	if (want > h->count)
		want = h->count;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t upper;

		seen += h->bucket[i];
		if (seen < want)
			continue;
		upper = hist_bucket_low_ns(i) + hist_bucket_width_ns(i) - 1;
		/* The last bucket holds what is longer, too. */
		if (i == HIST_BUCKETS - 1 || upper > h->max_ns)
			upper = h->max_ns;
		*latency_ns = upper;
		return 0;
	}
	return -ENODATA;
}

double hist_mean_ns(const struct hist *h)
{
	return h->count ? (double)h->sum_ns / (double)h->count : 0.0;
}
