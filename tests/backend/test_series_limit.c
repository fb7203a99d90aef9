/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The most a series can come to, against values worked out by hand from the
 * formulas of iodeck-vdisk(5). Why: a limit drawn in the wrong place makes a
 * fast drive of a slow one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/analysis/analysis.h"

#define LOG_HEAD (1.0 / 32) /* of a record of 32 blocks, a block */
#define STRIPED (1 + 24.0 / 4096)

struct made {
	struct model model;
	struct m_vdisk vdisk;
	struct m_series series;
	struct m_point point[2];
};

/* Six drives of 3,000 IOPS and 150 MB/s; one point of 8 KiB, 70/30. */
static void make(struct made *m, const char *layout, int k, int parity)
{
	*m = (struct made) {
		.series = { .k = k,
			    .m = parity,
			    .drives = 6,
			    .size_bytes = 100ll << 30,
			    .stripe_unit_bytes = 65536,
			    .drive_shape = { .set = true,
					     .rate_bytes_s = 150e6,
					     .rate_iops = 3000,
					     .latency_us = 50 } },
		.point = { { .read = { .ops = 700, .bytes = 700 * 8192 },
			     .write = { .ops = 300, .bytes = 300 * 8192 },
			     .ratio = NAN } },
	};
	strcpy(m->series.layout, layout);
	strcpy(m->series.vdisk, "db");
	strcpy(m->vdisk.name, "db");
	m->vdisk.log.victim_live = NAN;
	m->model.vdisk = &m->vdisk;
	m->model.vdisks = 1;
	m->series.point = m->point;
	m->series.points = 1;
}

static struct series_limit limit_of(struct made *m)
{
	struct series_limit l;

	series_limit(&m->model, &m->series, &l);
	return l;
}

static void near(double is, double should)
{
	if (!(fabs(is / should - 1) < 1e-6))
		fail_msg("%.6f is not %.6f", is, should);
}

/* Each I/O takes a turn of 1/3000 s: 0.7 reads, and 0.3 writes of six. */
static void test_inplace_iops(void **state)
{
	struct made m;
	struct series_limit l;

	(void)state;
	make(&m, "inplace", 4, 2);
	l = limit_of(&m);
	near(l.iops, 6 * 3000 / (0.7 + 0.3 * 6));
	near(l.ios, 6);
	assert_true(isnan(l.amp));
	assert_false(l.by_links);
	make(&m, "inplace", 1, 1); /* copies: nothing is read */
	m.series.drives = 2;
	near(limit_of(&m).iops, 2 * 3000 / (0.7 + 0.3 * 2));
}

/* Where bytes take longer than a turn; and what whole stripes spare. */
static void test_inplace_bytes(void **state)
{
	const double unit_s = 65536 / 150e6;
	struct made m;
	struct series_limit l;

	(void)state;
	make(&m, "inplace", 4, 2);
	m.point[0].read = (struct m_dir) { 0 };
	m.point[0].write.bytes = 300ll * 2 * 65536; /* two units: the other
						       two are read */
	l = limit_of(&m);
	near(l.iops, 6 / ((2 + 4) * unit_s));
	near(l.ios, 6);
	m.point[0].write.bytes = 300ll * 4 * 65536;
	l = limit_of(&m);
	near(l.iops, 6 / (6 * unit_s));
	near(l.ios, 6);
}

/* Nothing counted yet: the formula, W of RAID-5 4+1 without cleaning. */
static void test_log_expected(void **state)
{
	struct made m;
	struct series_limit l;
	double w;

	(void)state;
	make(&m, "log", 4, 1);
	m.series.drive_shape.rate_iops = NAN;
	m.point[0].read = (struct m_dir) { 0 };
	m.point[0].write.bytes = 300 * 4096;
	l = limit_of(&m);
	w = 2 * (1 + LOG_HEAD) * (1 + 12.0 / 4096 / 0.02) + 1.25 * STRIPED;
	near(l.amp, w);
	near(l.iops, 6 * 150e6 / (4096 * w));
	assert_false(l.counted);
	/* A vDisk of 1 GiB or less has a log of an eighth of it. */
	m.series.size_bytes = 1ll << 28;
	w = 2 * (1 + LOG_HEAD) * (1 + 12.0 / 4096 * 8) + 1.25 * STRIPED;
	near(limit_of(&m).amp, w);
	/* Whole stripes go past the log. */
	m.point[0].write.bytes = 300ll << 20;
	l = limit_of(&m);
	near(l.amp, 1.25 * STRIPED);
	near(l.iops, 6 * 150e6 / (1048576 * 1.25 * STRIPED));
}

/*
 * Counted bytes decide the more the more there are: half a log of 1 GiB, as a
 * vDisk of 100 GiB has it, counts as expected. Records are full ones.
 */
static void test_log_counted(void **state)
{
	const double half = 1 << 30, log = 2 * (1 + LOG_HEAD);
	const double snap = log * 12.0 / 4096 / 0.02;
	struct made m;
	struct series_limit l;
	double w;

	(void)state;
	make(&m, "log", 4, 1);
	m.series.drive_shape.rate_iops = NAN;
	m.point[0].read = (struct m_dir) { 0 };
	m.point[0].write.bytes = 300 * 4096;
	m.point[0].written_s = 4;
	m.point[0].written = (struct m_written) {
		.user = 3ll << 30,
		.stored = 3ll << 30,
		.log = 99ll << 30, /* records of a block, at depth 1 */
		.destage = 5ll << 30,
		.checkpoint = 1ll << 30,
	};
	l = limit_of(&m);
	assert_true(l.counted);
	w = log + (1.25 * STRIPED * half + 5 * half) / (4 * half) +
	    (snap * half + half) / (4 * half);
	near(l.amp, w);
	near(l.iops, 6 * 150e6 / (4096 * w));
	/* what the cleaner moves it reads, with what is dead beside it */
	m.point[0].written.clean = 5ll << 30;
	m.vdisk.log.victim_live = 0.5;
	w += 1.25;
	near(limit_of(&m).amp, w);
	near(limit_of(&m).iops, 6 * 150e6 / (4096 * (w + 2)));
	/* a rebuild is no user's */
	m.point[0].written.rebuild = 9ll << 30;
	near(limit_of(&m).amp, w);
	/* half a log is not yet full */
	m.point[0].written.user = (1 << 30) - 4096;
	assert_false(limit_of(&m).counted);
}

/* Drives of few I/Os a second: a full record is one turn of each of m + 1. */
static void test_log_turns(void **state)
{
	struct made m;
	double write_s, turn = 1.0 / 100;

	(void)state;
	make(&m, "log", 4, 1);
	m.series.drive_shape.rate_iops = 100;
	m.point[0].read = (struct m_dir) { 0 };
	m.point[0].write.bytes = 300 * 4096;
	write_s = 2 * turn / 32 + 1.25 * STRIPED / 32 * turn +
		  2 * (1 + LOG_HEAD) * 12.0 / 4096 / 0.02 / 64 * turn;
	near(limit_of(&m).iops, 6 / write_s);
}

/* What compresses takes fewer bytes, also read. */
static void test_log_read(void **state)
{
	struct made m;

	(void)state;
	make(&m, "log", 4, 2);
	m.series.drive_shape.rate_iops = NAN;
	m.point[0].write = (struct m_dir) { 0 };
	near(limit_of(&m).iops, 6 * 150e6 / 8192);
	m.point[0].ratio = 2;
	near(limit_of(&m).iops, 6 * 150e6 / 4096);
	assert_true(isnan(limit_of(&m).amp)); /* nobody wrote */
}

/* Each direction of a link for itself. */
/* The example that the page works out. */
static void test_page(void **state)
{
	static char page[256 * 1024];
	unsigned k = 0, rest = 0;
	struct made m;
	char path[512];
	const char *at;
	double us = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/man/iodeck-vdisk.5",
		 getenv("SOURCE_DIR") ? getenv("SOURCE_DIR") : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	at = strstr(page, "limit IOPS = 6 / ");
	assert_non_null(at);
	assert_int_equal(
		sscanf(at, "limit IOPS = 6 / %lf us = %u,%u", &us, &k, &rest),
		3);
	make(&m, "log", 4, 2);
	assert_float_equal(limit_of(&m).iops, k * 1000.0 + rest, 15);
	assert_float_equal(6e6 / us, k * 1000.0 + rest, 15);
}

static void test_links(void **state)
{
	struct made m;
	struct series_limit l;

	(void)state;
	make(&m, "inplace", 4, 2);
	m.series.link = (struct m_shape) { .set = true,
					   .rate_bytes_s = 10e6,
					   .rate_iops = NAN };
	l = limit_of(&m);
	assert_true(l.by_links);
	/* 0.7 reads and three of 0.3 writes come; three of 0.3 go */
	near(l.iops, 6 * 10e6 / ((0.7 + 0.9) * 8192));
}

static void test_unknown(void **state)
{
	struct made m;

	(void)state;
	make(&m, "inplace", 4, 2);
	m.series.drives_differ = true;
	assert_true(isnan(limit_of(&m).iops));
	make(&m, "inplace", 4, 2);
	m.series.drive_shape.set = false;
	assert_true(isnan(limit_of(&m).iops));
	make(&m, "inplace", 4, 2);
	m.series.points = 0;
	assert_true(isnan(limit_of(&m).iops));
	make(&m, "", 4, 2); /* a session of before layouts had names */
	assert_true(isnan(limit_of(&m).iops));
	make(&m, "inplace", 4, 2);
	m.series.drives = -1;
	assert_true(isnan(limit_of(&m).iops));
}

/* All points decide, the mix as well as what is counted. */
static void test_points(void **state)
{
	struct made m;
	double one;

	(void)state;
	make(&m, "log", 4, 1);
	m.point[0].read = (struct m_dir) { 0 };
	m.point[0].written_s = 1;
	m.point[0].written = (struct m_written) { .user = 1ll << 30,
						  .stored = 1ll << 30,
						  .destage = 5ll << 30 };
	one = limit_of(&m).amp;
	m.series.points = 2;
	m.point[1] = m.point[0];
	assert_true(limit_of(&m).amp > one);
	m.point[1].written = (struct m_written) { 0 };
	near(limit_of(&m).amp, one);
	make(&m, "inplace", 4, 2);
	m.series.points = 2;
	m.point[1] = m.point[0];
	m.point[1].read.ops = 0;
	m.point[1].read.bytes = 0;
	near(limit_of(&m).iops, 6 * 3000 / (0.7 / 1.3 + 0.6 / 1.3 * 6));
}

static void test_policy(void **state)
{
	struct series_limit l;

	(void)state;
	policy_limit("log", 4, 2, &l);
	assert_float_equal(l.amp, 5.06, 0.005);
	assert_true(isnan(l.ios));
	policy_limit("inplace", 4, 2, &l);
	near(l.ios, 6);
	assert_true(isnan(l.amp));
	policy_limit("log", 0, -1, &l);
	assert_true(isnan(l.amp) && isnan(l.ios));
}

static void test_written(void **state)
{
	struct m_vdisk_strip strip[4] = { 0 };
	struct m_vdisk v = { .strip = strip, .strips = 4 };
	struct m_written w;

	(void)state;
	for (int i = 0; i < 4; i++) {
		strip[i].t_us = (i + 1) * 1000000;
		strip[i].len_us = 1000000;
		strip[i].written.clean = 100;
		strip[i].written.user = i;
	}
	near(vdisk_written(&v, 4000000, 3000000, &w), 3);
	assert_int_equal(w.clean, 300);
	assert_int_equal(w.user, 6);
	/* quiet since: the rest of the span is known too */
	near(vdisk_written(&v, 13000000, 10000000, &w), 10);
	assert_int_equal(w.clean, 100);
	assert_true(vdisk_written(&v, 100000000, 10000000, &w) == 0);
	v.strips = 0;
	assert_true(vdisk_written(&v, 4000000, 3000000, &w) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inplace_iops),
		cmocka_unit_test(test_inplace_bytes),
		cmocka_unit_test(test_log_expected),
		cmocka_unit_test(test_log_counted),
		cmocka_unit_test(test_log_turns),
		cmocka_unit_test(test_log_read),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
