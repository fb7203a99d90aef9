/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a job is made of, each part alone: no reactor, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include <zstd.h>
#ifdef HAVE_LZ4
#include <lz4.h>
#endif

#include "engine/load/content.h"
#include "engine/load/pacer.h"
#include "engine/load/pattern.h"
#include "engine/load/sampler.h"

static const struct bdev_limits limits = {
	.size_bytes = 1 * GIB,
	.block_bytes = 4096,
	.align_bytes = 4096,
	.io_max_bytes = 1 * MIB,
	.can_flush = true,
	.can_fua = true,
};

static struct workload oltp(void)
{
	return (struct workload) {
		.read_share = 0.7,
		.random_share = 1.0,
		.read_sizes = { { 8192, 1.0 } },
		.read_size_count = 1,
		.compress_ratio = 1.0,
	};
}

/* ---- pattern ------------------------------------------------------------ */

static void shares_and_sizes_come_out_as_asked(void **state)
{
	enum { N = 200000 };
	struct workload w = oltp();
	struct pattern p;
	unsigned reads = 0, large = 0;

	(void)state;
	w.read_sizes[0].weight = 3.0;
	w.read_sizes[1] = (struct load_size) { 65536, 1.0 };
	w.read_size_count = 2;
	w.write_sizes[0] = (struct load_size) { 4096, 1.0 };
	w.write_size_count = 1;
	assert_int_equal(pattern_init(&p, &w, &limits, 1), 0);
	for (unsigned i = 0; i < N; i++) {
		const struct access a = pattern_next(&p);

		assert_int_equal(a.off % a.len, 0);
		assert_true(a.off + a.len <= limits.size_bytes);
		if (a.op == BDEV_WRITE) {
			assert_int_equal(a.len, 4096);
			continue;
		}
		reads++;
		large += a.len == 65536;
	}
	/* Six standard deviations of a binomial. */
	assert_true(fabs(reads - 0.7 * N) < 6 * sqrt(N * 0.7 * 0.3));
	assert_true(fabs(large - 0.25 * reads) < 6 * sqrt(reads * 0.1875));
	pattern_fini(&p);
}

static void random_reaches_every_place_alike(void **state)
{
	enum { PLACES = 64, N = 64000 };
	struct workload w = oltp();
	unsigned hits[PLACES] = { 0 };
	struct pattern p;
	double chi = 0.0;

	(void)state;
	w.footprint_bytes = PLACES * 8192;
	assert_int_equal(pattern_init(&p, &w, &limits, 5), 0);
	for (unsigned i = 0; i < N; i++)
		hits[pattern_next(&p).off / 8192]++;
	for (unsigned i = 0; i < PLACES; i++)
		chi += pow(hits[i] - (double)N / PLACES, 2) /
		       ((double)N / PLACES);
	assert_true(chi > 20 && chi < 130); /* 63 degrees of freedom */
	pattern_fini(&p);
}

static void streams_split_the_footprint_and_wrap(void **state)
{
	struct workload w = oltp();
	struct pattern p;

	(void)state;
	w.random_share = 0.0;
	w.streams = 4;
	w.footprint_bytes = 4ull * 3 * 8192;
	assert_int_equal(pattern_init(&p, &w, &limits, 1), 0);
	for (unsigned i = 0; i < 4 * 7; i++) {
		const unsigned stream = i % 4, step = i / 4 % 3;

		assert_int_equal(pattern_next(&p).off,
				 (stream * 3 + step) * 8192);
	}
	pattern_fini(&p);
}

static void mixed_sizes_stay_in_their_stream(void **state)
{
	struct workload w = oltp();
	struct pattern p;

	(void)state;
	w.random_share = 0.3;
	w.read_sizes[1] = (struct load_size) { 53248, 2.0 };
	w.read_size_count = 2;
	w.streams = 3;
	w.footprint_bytes = 3ull * 131072 + 4096;
	assert_int_equal(pattern_init(&p, &w, &limits, 1), 0);
	for (unsigned i = 0; i < 10000; i++) {
		const struct access a = pattern_next(&p);

		assert_int_equal(a.off % 4096, 0);
		assert_true(a.off + a.len <= w.footprint_bytes);
	}
	pattern_fini(&p);
}

static void the_seed_decides(void **state)
{
	const struct workload w = oltp();
	struct pattern p[3];
	unsigned same = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pattern_init(&p[i], &w, &limits, i / 2), 0);
	for (unsigned i = 0; i < 1000; i++) {
		const struct access a = pattern_next(&p[0]);

		assert_int_equal(pattern_next(&p[1]).off, a.off);
		same += pattern_next(&p[2]).off == a.off;
	}
	assert_true(same < 5);
	for (unsigned i = 0; i < 3; i++)
		pattern_fini(&p[i]);
}

/* ---- workload checks ---------------------------------------------------- */

static void refused(const struct workload *w, const char *what)
{
	struct bdev b = { .limits = limits, .name = "db1" };
	struct err err = { 0 };

	assert_int_equal(workload_fits(w, &b, &err), -EINVAL);
	if (!strstr(err.text, what))
		fail_msg("\"%s\" does not say \"%s\"", err.text, what);
}

#define REFUSED(what, ...)                  \
	do {                                \
		struct workload w = oltp(); \
		__VA_ARGS__;                \
		refused(&w, what);          \
	} while (0)

static void bad_workloads_are_named(void **state)
{
	struct bdev b = { .limits = limits, .name = "db1" };
	const struct workload good = oltp();
	struct err err;

	(void)state;
	assert_int_equal(workload_fits(&good, &b, &err), 0);
	REFUSED("read_share: nan", w.read_share = NAN);
	REFUSED("read_share: -0.1", w.read_share = -0.1);
	REFUSED("random_share: 1.5", w.random_share = 1.5);
	REFUSED("footprint_share: 2", w.footprint_share = 2.0);
	REFUSED("read_sizes: 17 sizes", w.read_size_count = 17);
	REFUSED("read_sizes: empty", w.read_size_count = 0);
	REFUSED("read_sizes[0]: 256 bytes", w.read_sizes[0].bytes = 256);
	REFUSED("read_sizes[0]: 6144 bytes is not a multiple of db1's block",
		w.read_sizes[0].bytes = 6144);
	REFUSED("read_sizes[0]: 2097152 bytes, db1 takes at most 1048576",
		w.read_sizes[0].bytes = 2097152);
	REFUSED("read_sizes[0]: weight 0", w.read_sizes[0].weight = 0.0);
	REFUSED("read_sizes[0]: weight inf", w.read_sizes[0].weight = INFINITY);
	REFUSED("write_sizes[0]: 1 bytes", w.write_size_count = 1;
		w.write_sizes[0] = (struct load_size) { 1, 1.0 });
	REFUSED("compress_ratio: 0.5", w.compress_ratio = 0.5);
	REFUSED("compress_ratio: nan", w.compress_ratio = NAN);
	REFUSED("footprint of 2147483648 bytes, db1 has 1073741824",
		w.footprint_bytes = 2 * GIB);
	REFUSED("does not hold one I/O", w.footprint_bytes = 4096);
	REFUSED("streams: 64 streams on db1", w.random_share = 0.5;
		w.footprint_bytes = MIB; w.streams = 64;
		w.read_sizes[0].bytes = 65536);
}

static void targets_that_cannot_flush_are_named(void **state)
{
	struct bdev b = { .limits = limits, .name = "db1" };
	struct workload w = oltp();
	struct err err;

	(void)state;
	b.limits.can_flush = b.limits.can_fua = false;
	assert_int_equal(workload_fits(&w, &b, &err), 0);
	w.flush_every = 8;
	assert_int_equal(workload_fits(&w, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "flush_every: db1 has no flush"));
	w.flush_every = 0;
	w.fua = true;
	assert_int_equal(workload_fits(&w, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fua: db1"));
	w.read_share = 1.0; /* nothing is written */
	assert_int_equal(workload_fits(&w, &b, &err), 0);
}

/* ---- pacer -------------------------------------------------------------- */

static void uniform_arrivals_never_drift(void **state)
{
	static const double iops[] = { 1, 3, 1000, 10000, 49999, 1e6 / 7, 1e6 };

	(void)state;
	for (size_t i = 0; i < array_len(iops); i++) {
		const uint64_t start = 123456789;
		struct pacer p;

		pacer_init(&p, iops[i], LOAD_UNIFORM, start, 1);
		for (uint64_t n = 0; n < 1000000; n++) {
			const double exact = (double)n * 1e9 / iops[i];

			assert_int_equal(p.count, n);
			assert_true(fabs((double)(p.due_ns - start) - exact) <=
				    1.0);
			pacer_next(&p);
		}
	}
}

static void poisson_gaps_are_exponential(void **state)
{
	enum { N = 400000 };
	struct pacer p;
	double sum = 0.0, squares = 0.0;
	unsigned above = 0;
	uint64_t last = 0;

	(void)state;
	pacer_init(&p, 10000, LOAD_POISSON, 0, 3);
	for (unsigned i = 0; i < N; i++) {
		const double gap = (double)(p.due_ns - last);

		sum += gap;
		squares += gap * gap;
		above += gap > 100000.0;
		last = p.due_ns;
		pacer_next(&p);
	}
	/* Mean and deviation are both 100 us; exp(-1) of all are longer. */
	assert_true(fabs(sum / N - 1e5) < 6 * 1e5 / sqrt(N));
	assert_true(fabs(sqrt(squares / N - pow(sum / N, 2)) - 1e5) < 2e3);
	assert_true(fabs((double)above / N - exp(-1)) < 0.005);
}

static void skipping_equals_stepping(void **state)
{
	struct pacer a, b;

	(void)state;
	pacer_init(&a, 7777, LOAD_POISSON, 50, 9);
	b = a;
	pacer_skip_to(&a, SEC_NS);
	while (b.due_ns < SEC_NS)
		pacer_next(&b);
	assert_memory_equal(&a.due_ns, &b.due_ns, sizeof(a.due_ns));
	assert_int_equal(a.count, b.count);
	assert_in_range(a.count, 7000, 8600);
}

/* ---- content ------------------------------------------------------------ */

static double zstd_ratio(const void *buf, size_t len)
{
	const size_t room = ZSTD_compressBound(len);
	void *out = malloc(room);
	const size_t n = ZSTD_compress(out, room, buf, len, 1);

	assert_false(ZSTD_isError(n));
	free(out);
	return (double)len / (double)n;
}

static void near(double got, double ratio)
{
	if (got < ratio * 0.97 || got > ratio * 1.08)
		fail_msg("asked for %.2f, got %.3f", ratio, got);
}

static void content_compresses_as_asked(void **state)
{
	static const double ratio[] = { 1.0, 1.2, 1.5, 2.0, 3.0, 4.0 };
	static const size_t len[] = { 4096, 8192, 32768, 131072, 1048576 };
	char *buf = malloc(1048576);

	(void)state;
	for (size_t i = 0; i < array_len(ratio); i++) {
		struct content c;

		content_init(&c, ratio[i], 7);
		for (size_t k = 0; k < array_len(len); k++) {
			content_fill(&c, k, buf, len[k]);
			content_stamp(&c, buf, len[k]);
			near(zstd_ratio(buf, len[k]), ratio[i]);
#ifdef HAVE_LZ4
			const int n = (int)len[k];
			char *out = malloc((size_t)LZ4_compressBound(n));

			near((double)n /
				     LZ4_compress_default(buf, out, n,
							  LZ4_compressBound(n)),
			     ratio[i]);
			free(out);
#endif
		}
	}
	free(buf);
}

static void incompressible_means_larger(void **state)
{
	char *buf = malloc(65536);
	struct content c;

	(void)state;
	content_init(&c, 1.0, 7);
	content_fill(&c, 0, buf, 65536);
	content_stamp(&c, buf, 65536);
	assert_true(zstd_ratio(buf, 65536) <= 1.0);
	free(buf);
}

static int by_words(const void *a, const void *b)
{
	return memcmp(a, b, CONTENT_SECTOR);
}

/* Two buffers, written sixteen times over: no sector comes twice. */
static void no_sector_is_written_twice(void **state)
{
	enum { LEN = 32768, TURNS = 16, SECTORS = 2 * TURNS * LEN / 512 };
	char *buf = malloc(2 * LEN), *all = malloc(2 * TURNS * LEN);
	char *at = all;
	struct content c;

	(void)state;
	content_init(&c, 16.0, 7);
	content_fill(&c, 0, buf, LEN);
	content_fill(&c, 1, buf + LEN, LEN);
	for (int i = 0; i < 2 * TURNS; i++) {
		content_stamp(&c, buf + i % 2 * LEN, LEN);
		memcpy(at, buf + i % 2 * LEN, LEN);
		at += LEN;
	}
	qsort(all, SECTORS, CONTENT_SECTOR, by_words);
	for (size_t i = 1; i < SECTORS; i++)
		assert_memory_not_equal(all + (i - 1) * CONTENT_SECTOR,
					all + i * CONTENT_SECTOR,
					CONTENT_SECTOR);
	free(all);
	free(buf);
}

static void odd_lengths_are_not_overrun(void **state)
{
	struct content c;

	(void)state;
	content_init(&c, 2.0, 7);
	for (size_t len = 0; len < 1100; len++) {
		char *buf = malloc(len ? len : 1);

		content_fill(&c, 0, buf, len); /* the sanitizer looks */
		content_stamp(&c, buf, len);
		free(buf);
	}
}

/* ---- what bounded an interval ------------------------------------------- */

static void only_the_generators_own_delay_is_a_bound(void **state)
{
	const struct bound_facts bound = {
		.open_loop = true,
		.busy_share = 0.99,
		.interval_ns = 1e9,
		.scheduled = 1000000,
		.submitted = 900000,
		.late_sum_ns = 900000 * 600.0,
	};
	struct bound_facts f = bound;

	(void)state;
	assert_int_equal(load_bound(&f), LOAD_BOUND_CPU);
	f.busy_share = 0.5; /* it waited: for the target */
	assert_int_equal(load_bound(&f), 0);
	f = bound;
	f.submitted = 999999; /* it kept up */
	assert_int_equal(load_bound(&f), 0);
	f = bound;
	f.late_sum_ns = 900000 * 10.0; /* slots were what was missing */
	assert_int_equal(load_bound(&f), 0);
	f = (struct bound_facts) { .busy_share = 0.99, .interval_ns = 1e9 };
	assert_int_equal(load_bound(&f), LOAD_BOUND_CPU);
	f.busy_share = 0.6;
	assert_int_equal(load_bound(&f), 0);
}

static void waiting_for_a_cpu_is_a_share_of_the_interval(void **state)
{
	static struct sampler s;
	struct sampler_mark at = { .wait_known = true };

	(void)state;
	sampler_init(&s, 0, SEC_NS, false, &at);
	at.busy_ns = 600 * MSEC_NS;
	at.idle_ns = 400 * MSEC_NS;
	at.wait_ns = 250 * MSEC_NS;
	sampler_close(&s, SEC_NS, &at);
	assert_true(s.sample.cpu_wait > 0.2499 && s.sample.cpu_wait < 0.2501);
	sampler_next(&s);
	at.busy_ns += SEC_NS; /* no more waiting, only work */
	sampler_close(&s, 2 * SEC_NS, &at);
	assert_true(s.sample.cpu_wait == 0.0);
	sampler_next(&s);
	at.idle_ns += SEC_NS;
	at.wait_known = false;
	sampler_close(&s, 3 * SEC_NS, &at);
	assert_true(isnan(s.sample.cpu_wait));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_and_sizes_come_out_as_asked),
		cmocka_unit_test(waiting_for_a_cpu_is_a_share_of_the_interval),
		cmocka_unit_test(random_reaches_every_place_alike),
		cmocka_unit_test(streams_split_the_footprint_and_wrap),
		cmocka_unit_test(mixed_sizes_stay_in_their_stream),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(bad_workloads_are_named),
		cmocka_unit_test(targets_that_cannot_flush_are_named),
		cmocka_unit_test(uniform_arrivals_never_drift),
		cmocka_unit_test(poisson_gaps_are_exponential),
		cmocka_unit_test(skipping_equals_stepping),
		cmocka_unit_test(content_compresses_as_asked),
		cmocka_unit_test(incompressible_means_larger),
		cmocka_unit_test(no_sector_is_written_twice),
		cmocka_unit_test(odd_lengths_are_not_overrun),
		cmocka_unit_test(only_the_generators_own_delay_is_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
