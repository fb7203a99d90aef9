/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/base.h"
#include "engine/vdisk/limit.h"

static void near(double got, double want, double within)
{
	if (fabs(got - want) > within)
		fail_msg("%f instead of %f", got, want);
}

static struct limit_layout layout(unsigned k, unsigned m, double cleaning)
{
	return (struct limit_layout) { .k = k,
				       .m = m,
				       .stored = 1,
				       .group = 32,
				       .cleaning = cleaning,
				       .log_share = 0.02 };
}

static double random_w(unsigned k, unsigned m, double cleaning)
{
	const struct limit_layout l = layout(k, m, cleaning);
	struct limit_bytes w;

	limit_random(&l, &w);
	return limit_written(&w);
}

static double sequential_w(unsigned k, unsigned m)
{
	const struct limit_layout l = layout(k, m, 1);
	struct limit_bytes w;

	limit_sequential(&l, &w);
	return limit_written(&w);
}

/* W without cleaning, with w = 2.75, sequential; worked by hand. */
static void theory_is_the_table(void **state)
{
	static const struct {
		unsigned k, m;
		double w1, w275, seq;
	} table[] = {
		{ 1, 1, 4.38, 7.90, 2.01 },  { 1, 2, 6.56, 11.85, 3.02 },
		{ 1, 3, 8.75, 15.79, 4.02 }, { 2, 1, 3.87, 6.51, 1.51 },
		{ 4, 1, 3.62, 5.82, 1.26 },  { 4, 2, 5.06, 7.70, 1.51 },
	};

	(void)state;
	for (size_t i = 0; i < array_len(table); i++) {
		const unsigned k = table[i].k, m = table[i].m;

		near(random_w(k, m, 1), table[i].w1, 0.0051);
		near(random_w(k, m, 2.75), table[i].w275, 0.0051);
		near(sequential_w(k, m), table[i].seq, 0.0051);
	}
	near(random_w(1, 1, 1) / random_w(2, 1, 1), 1.13, 0.005);
	near(random_w(1, 1, 1) / random_w(4, 1, 1), 1.21, 0.005);
	near(random_w(1, 2, 1) / random_w(4, 2, 1), 1.30, 0.005);
	near(sequential_w(1, 1) / sequential_w(4, 1), 1.60, 0.005);
}

/* Sixteen drives of 1,050 MB/s and 38,000 small writes a second. */
static void sixteen_drives(void **state)
{
	const struct limit_drives d = { .write_bytes_s = 16 * 1050e6,
					.write_iops = 16 * 38e3,
					.read_bytes_s = 16 * 3200e6,
					.read_iops = 16 * 580e3 };
	const struct limit_layout mirror = layout(1, 1, 1);
	const struct limit_layout raid5 = layout(2, 1, 2.75);
	struct limit_bytes w;

	(void)state;
	limit_random(&mirror, &w);
	near(limit_write_iops(&d, &w, 4096), 937e3, 1e3);
	limit_random(&raid5, &w);
	near(limit_write_iops(&d, &w, 4096), 630e3, 1e3);
	near(limit_inplace_iops(&d, 1, 1, false, 4096), 304e3, 1);
	near(limit_inplace_iops(&d, 4, 1, false, 4096), 304e3, 1);
	near(limit_inplace_iops(&d, 4, 2, false, 4096), 202.7e3, 100);
	near(limit_read_iops(&d, 4096), 9.28e6, 1);
	near(limit_read_iops(&d, 1 << 20), 16 * 3200e6 / (1 << 20), 1);
}

static void in_place_takes_the_fewer_reads(void **state)
{
	static const struct {
		unsigned k, m, reads, writes;
	} table[] = {
		{ 1, 1, 0, 2 }, { 1, 3, 0, 4 }, { 4, 0, 0, 1 },
		{ 2, 1, 1, 2 }, { 4, 1, 2, 2 }, { 4, 2, 3, 3 },
	};

	(void)state;
	for (size_t i = 0; i < array_len(table); i++) {
		const struct limit_ios ios =
			limit_inplace_ios(table[i].k, table[i].m, false);

		assert_int_equal(ios.reads, table[i].reads);
		assert_int_equal(ios.writes, table[i].writes);
	}
	assert_int_equal(limit_inplace_ios(4, 2, true).writes, 6);
}

static void shared_drives_pay_for_reads_too(void **state)
{
	struct limit_drives d = { .write_bytes_s = 4096e3,
				  .read_bytes_s = 4096e3 };
	const struct limit_bytes w = { .log = 1, .clean = 1, .clean_read = 1 };

	(void)state;
	near(limit_write_iops(&d, &w, 4096), 500, 1e-6);
	d.shared = true;
	near(limit_write_iops(&d, &w, 4096), 1000.0 / 3, 1e-6);
	d.write_bytes_s = d.read_bytes_s = 0;
	near(limit_write_iops(&d, &w, 4096), 0, 0);
}

static void counters_are_taken_apart(void **state)
{
	const struct limit_counts from = { .user = 1000,
					   .log = 2000,
					   .clean = 5 };
	const struct limit_counts to = { .user = 2000,
					 .log = 4200,
					 .destage = 1500,
					 .clean = 505,
					 .snap = 300,
					 .clean_read = 400 };
	struct limit_bytes w;

	(void)state;
	assert_int_equal(limit_counted(&from, &to, &w), 0);
	near(w.log, 2.2, 1e-9);
	near(w.destage, 1.5, 1e-9);
	near(w.clean, 0.5, 1e-9);
	near(w.clean_read, 0.4, 1e-9);
	near(limit_written(&w), 4.5, 1e-9);
	assert_int_equal(limit_counted(&to, &to, &w), -EAGAIN);
	assert_int_equal(limit_counted(&to, &from, &w), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(theory_is_the_table),
		cmocka_unit_test(sixteen_drives),
		cmocka_unit_test(in_place_takes_the_fewer_reads),
		cmocka_unit_test(shared_drives_pay_for_reads_too),
		cmocka_unit_test(counters_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
