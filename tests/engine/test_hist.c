/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/hist.h"
#include "engine/rng.h"

static void buckets_tile_the_range(void **state)
{
	uint64_t edge = 0;

	(void)state;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		assert_int_equal(hist_bucket_low_ns(i), edge);
		assert_int_equal(hist_index(edge), i);
		edge += hist_bucket_width_ns(i);
		assert_int_equal(hist_index(edge - 1), i);
		assert_true(hist_bucket_width_ns(i) == 1 ||
			    hist_bucket_width_ns(i) * HIST_SUB <=
				    hist_bucket_low_ns(i));
	}
	assert_int_equal(edge, 1ull << HIST_MAX_BITS);
	assert_int_equal(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void quantiles_are_within_one_percent(void **state)
{
	enum { N = 20000 };
	static const double fraction[] = { 0.001, 0.5, 0.9, 0.99, 0.999, 1.0 };
	uint64_t *v = malloc(N * sizeof(*v));
	struct hist *h = malloc(sizeof(*h));
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	hist_reset(h);
	for (int i = 0; i < N; i++) {
		v[i] = rng_u64(&rng) >> (24 + rng_below(&rng, 38));
		hist_add(h, v[i]);
	}
	qsort(v, N, sizeof(*v), by_value);
	for (size_t i = 0; i < array_len(fraction); i++) {
		const double rank = fraction[i] * N;
		const uint64_t exact = v[(uint64_t)(rank + 0.999999) - 1];
		uint64_t got;

		assert_int_equal(hist_quantile(h, fraction[i], &got), 0);
		assert_true(got >= exact);
		assert_true((double)(got - exact) <= (double)exact / 127.0);
	}
	free(h);
	free(v);
}

static void edges_and_errors(void **state)
{
	struct hist *h = malloc(2 * sizeof(*h));
	uint64_t ns;

	(void)state;
	hist_reset(&h[0]);
	hist_reset(&h[1]);
	assert_int_equal(hist_quantile(h, 0.5, &ns), -ENODATA);
	assert_int_equal(hist_quantile(h, 0.0, &ns), -EINVAL);
	assert_int_equal(hist_quantile(h, 1.1, &ns), -EINVAL);
	hist_add(&h[0], 1000);
	assert_int_equal(hist_quantile(h, 1e-9, &ns), 0);
	assert_int_equal(ns, 1000);
	hist_add(&h[1], 1ull << 50);
	hist_merge(&h[0], &h[1]);
	assert_int_equal(h[0].count, 2);
	assert_int_equal(h[0].clipped, 1);
	assert_int_equal(hist_quantile(h, 1.0, &ns), 0);
	assert_int_equal(ns, 1ull << 50);
	assert_int_equal(h[0].min_ns, 1000);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_tile_the_range),
		cmocka_unit_test(quantiles_are_within_one_percent),
		cmocka_unit_test(edges_and_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
