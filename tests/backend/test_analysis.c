/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formulas by worked values, and the published readings from their points. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/analysis/analysis_priv.h"
#include "synth.h"

#define assert_near(a, b, off) assert_true(fabs((a) - (b)) <= (off))

static char *data_path(const char *name, char *out, size_t size)
{
	const char *dir = getenv("SOURCE_DIR");

	snprintf(out, size, "%s/tests/data/%s", dir ? dir : ".", name);
	return out;
}

/* ---- formulas ----------------------------------------------------------- */

static void student(void **state)
{
	(void)state;
	/* Printed tables, two-sided 5 %. */
	assert_near(stats_t975(5), 2.5706, 0.003);
	assert_near(stats_t975(10), 2.2281, 0.0005);
	assert_near(stats_t975(19), 2.0930, 0.0002);
	assert_near(stats_t975(100), 1.9840, 0.0001);
}

static void batch_means(void **state)
{
	const double v[] = { 98, 101, 99, 102, 100, 100 };
	const double one[] = { 1, 1, 1, 1, 1, 1 };
	double many[45], w[45];

	(void)state;
	/* mean 100, s^2 = 10 / 5 = 2, t(5) = 2.5706: 2.5706 sqrt(2 / 6) =
	 * 1.4841 of 100 */
	assert_near(stats_batch_ci(v, one, 6), 0.014841, 0.00002);
	assert_true(isnan(stats_batch_ci(v, one, 5)));
	/* 45 in 15 batches of 3: each a 90, 100, 110. */
	for (int i = 0; i < 45; i++) {
		many[i] = 90 + i % 3 * 10;
		w[i] = 1;
	}
	assert_near(stats_batch_ci(many, w, 45), 0, 1e-12);
	/* 39 in 19 batches of 2: one is left out, not nineteen. So a first
	 * third that was off is seen. */
	for (int i = 0; i < 39; i++)
		many[i] = i < 13 ? 90 : 100;
	assert_true(stats_batch_ci(many, w, 39) > 0.01);
	many[0] = 1000;
	assert_true(stats_batch_ci(many, w, 39) < 0.05);
	/* Weights: an idle interval says nothing. */
	for (int i = 0; i < 45; i++) {
		many[i] = i % 2 ? 7 : 100;
		w[i] = i % 2 ? 0 : 3;
	}
	assert_near(stats_batch_ci(many, w, 45), 0, 1e-12);
}

static void trend(void **state)
{
	const double rise[] = { 95, 97.5, 100, 102.5, 105 };
	const double hole[] = { 95, NAN, 100, 102.5, 105 };
	const double bent[] = { 100, 90, 80, 90, 100 };

	(void)state;
	assert_near(stats_trend(rise, 5), 0.10, 1e-12);
	assert_near(stats_trend(hole, 5), 10 / 100.625, 1e-12);
	assert_near(stats_trend(bent, 5), 0, 1e-12);
	assert_true(isnan(stats_trend(rise, 1)));
}

static void figures(void **state)
{
	static const struct {
		double v;
		const char *count, *three;
	} t[] = {
		{ 0, "0", "0.000" },
		{ 7.25, "7", "7.25" },
		{ 999.4, "999", "999" },
		{ 999.6, "1,000", "1,000" },
		{ 186204, "186,204", "186,204" },
		{ 1234567, "1,234,567", "1,234,567" },
		{ 0.9996, "1", "1.00" },
		{ 0.0912, "0", "0.0912" },
		{ 0.09964, "0", "0.0996" },
		{ 0.09996, "0", "0.100" },
		{ 0.00912, "0", "0.00912" },
		{ 45.67, "46", "45.7" },
		{ NAN, "-", "-" },
		{ -123456, "-123,456", "-123,456" },
	};
	char out[32];

	(void)state;
	for (size_t i = 0; i < array_len(t); i++) {
		assert_string_equal(figure_count(t[i].v, out, sizeof(out)),
				    t[i].count);
		assert_string_equal(figure_three(t[i].v, out, sizeof(out)),
				    t[i].three);
	}
}

/* ---- points ------------------------------------------------------------- */

static void point_figures(void **state)
{
	struct m_point *p = calloc(1, sizeof(*p));
	struct m_interval iv[6];
	struct point_stats st;

	(void)state;
	hist_reset(&p->read.svc);
	hist_reset(&p->read.rsp);
	hist_reset(&p->write.svc);
	hist_reset(&p->write.rsp);
	/* 90 reads of 100 us, 10 writes of 1000 us in 2 s. */
	for (int i = 0; i < 90; i++)
		hist_add(&p->read.svc, 100000);
	for (int i = 0; i < 10; i++)
		hist_add(&p->write.svc, 1000000);
	p->read.ops = 90;
	p->read.bytes = 90 * 32768;
	p->write.ops = 10;
	p->write.bytes = 10 * 32768;
	p->write.errors = 3;
	p->measured_s = 2;
	p->asked_iops = p->percent = NAN;
	p->scheduled = -1;
	p->state = POINT_DONE;
	for (int i = 0; i < 6; i++)
		iv[i] = (struct m_interval) { .iops = 50, .mean_us = 190 };
	p->interval = iv;
	p->intervals = 6;
	point_stats(p, &st);
	assert_near(st.iops, 50, 1e-9);
	assert_near(st.read_iops, 45, 1e-9);
	assert_near(st.write_iops, 5, 1e-9);
	assert_near(st.mb_s, 1.6384, 1e-9);
	assert_int_equal(st.errors, 3);
	assert_near(st.latency.all.mean, 190, 1e-9);
	assert_near(st.latency.all.p50, 100, 0.8);
	assert_near(st.latency.all.p95, 1000, 8);
	assert_near(st.latency.all.max, 1000, 1e-9);
	assert_near(st.latency.read.p99_9, 100, 0.8);
	/* Closed loop: response is service. */
	assert_near(st.response.write.mean, 1000, 1e-9);
	assert_true(st.steady);
	assert_false(st.saturated || st.partial);
	/* A quarter of the time is borne, more is said. */
	p->host_s = 4;
	p->host_full_s = 1;
	point_stats(p, &st);
	assert_false(st.host_bound);
	p->host_full_s = 1.2;
	point_stats(p, &st);
	assert_true(st.host_bound);
	assert_false(st.net_bound);
	p->net_full = 0.6;
	p->net_share = 0.9;
	point_stats(p, &st);
	assert_true(st.net_bound && st.net_share == 0.9);
	/* Full of others' work that the load went before. */
	p->wait_of_s = 2;
	p->wait_s = 0.08;
	point_stats(p, &st);
	assert_false(st.host_bound);
	p->wait_s = 0.12;
	point_stats(p, &st);
	assert_true(st.host_bound);
	/* A quota: the host is idle and the load waits. */
	p->host_full_s = 0;
	point_stats(p, &st);
	assert_false(st.host_bound);
	p->wait_s = 0.6;
	point_stats(p, &st);
	assert_true(st.host_bound);
	iv[5].iops = 70; /* one in six is off */
	point_stats(p, &st);
	assert_false(st.steady);
	p->intervals = 5;
	point_stats(p, &st);
	assert_true(isnan(st.iops_ci) && !st.steady);
	free(p);
}

/* Points are shares of a maximum: one that the host held is told. */
static void held_search(void **state)
{
	struct m_point *p = calloc(2, sizeof(*p));
	struct m_series se = { .point = p, .points = 2 };

	(void)state;
	strcpy(p[0].kind, "max");
	strcpy(p[1].kind, "point");
	p[0].host_s = p[1].host_s = p[1].host_full_s = 2;
	assert_false(series_max_bound(&se));
	p[0].host_full_s = 1;
	assert_true(series_max_bound(&se));
	p[0].wait_of_s = 2;
	p[0].wait_s = 0.01;
	assert_false(series_max_bound(&se));
	p[0].generator_bound = true;
	assert_true(series_max_bound(&se));
	free(p);
}

static void saturation(void **state)
{
	struct m_point *p = calloc(1, sizeof(*p));
	struct point_stats st;

	(void)state;
	p->asked_iops = 1000;
	p->measured_s = 10;
	p->scheduled = 10000;
	p->read.ops = 9801;
	point_stats(p, &st);
	assert_false(st.saturated);
	p->read.ops = 9799;
	point_stats(p, &st);
	assert_true(st.saturated);
	/* Chance gave fewer arrivals: all were served. */
	p->scheduled = 9750;
	p->read.ops = 9750;
	point_stats(p, &st);
	assert_false(st.saturated);
	/* A schedule that stalled is no excuse. */
	p->scheduled = 5000;
	p->read.ops = 5000;
	point_stats(p, &st);
	assert_true(st.saturated);
	/* Closed loop, and nothing measured yet. */
	p->asked_iops = NAN;
	p->scheduled = -1;
	point_stats(p, &st);
	assert_false(st.saturated);
	p->measured_s = 0;
	point_stats(p, &st);
	assert_true(isnan(st.iops));
	free(p);
}

/* ---- curves ------------------------------------------------------------- */

#define P(i, l, pc)                                                        \
	{                                                                  \
		.iops = i, .latency_us = l, .percent = pc, .iops_ci = NAN, \
		.latency_ci = NAN                                          \
	}

static struct series_summary summed(const struct curve_point *p, size_t n,
				    double bound)
{
	struct curve c = { .point = (struct curve_point *)p, .points = n };
	struct series_summary s;

	curve_summary(&c, bound, &s);
	return s;
}

static void readings(void **state)
{
	/* A ramp: more threads, then less IOPS at more latency. */
	const struct curve_point ramp[] = {
		P(200, 100, NAN),   P(600, 300, NAN),  P(900, 700, NAN),
		P(1000, 1500, NAN), P(950, 2500, NAN), P(850, 4000, NAN),
	};
	struct series_summary s = summed(ramp, 6, 1000);

	(void)state;
	assert_near(s.peak_iops, 1000, 0);
	assert_near(s.peak_latency_us, 1500, 0);
	/* 700 is a third of the way from 600 to 900: 300 + 400 / 3. */
	assert_true(s.at_70.interpolated);
	assert_near(s.at_70.iops, 700, 1e-9);
	assert_near(s.at_70.latency_us, 433.333, 0.001);
	assert_near(s.at_80.latency_us, 566.667, 0.001);
	/* 1000 us lies 300 / 800 between 900 and 1000 IOPS. */
	assert_true(s.under.interpolated);
	assert_near(s.under.iops, 937.5, 1e-9);
	assert_near(s.under.latency_us, 1000, 1e-9);
	assert_false(s.under_open);
	assert_near(s.drop_off, 0.15, 1e-12);

	s = summed(ramp, 6, 700); /* a point on the bound */
	assert_near(s.under.iops, 900, 1e-9);
	s = summed(ramp, 6, 50);
	assert_true(isnan(s.under.iops));
	s = summed(ramp, 6, 9000);
	assert_true(s.under_open);
	assert_near(s.under.iops, 1000, 0);
	assert_false(s.under.interpolated);
	s = summed(ramp, 6, 3000); /* crossed behind the peak */
	assert_near(s.under.iops, 1000, 0);
	assert_false(s.under.interpolated);
	/* Measured from high to low with the percentages known, it is the same
	 * curve. */
	{
		const struct curve_point down[] = {
			P(1000, 1500, 100),
			P(900, 700, 90),
			P(600, 300, 60),
			P(200, 100, 20),
		};

		s = summed(down, 4, 1000);
		assert_near(s.at_70.latency_us, 433.333, 0.001);
		assert_near(s.under.iops, 937.5, 1e-9);
		assert_near(s.drop_off, 0, 0);
	}
}

static void reading_stands(void **state)
{
	/* "70 %" that is 72.7 % of the maximum is the measured reading. */
	struct curve_point p[] = { P(727, 400, 70), P(812, 600, 80),
				   P(1000, 900, 100) };
	const struct curve_point near[] = { P(500, 1, NAN), P(705, 7, NAN),
					    P(1000, 9, NAN) };
	struct series_summary s = summed(p, 3, 1000);

	(void)state;
	assert_near(s.at_70.iops, 727, 0);
	assert_false(s.at_70.interpolated);
	assert_near(s.at_80.iops, 812, 0);
	/* Not if it was saturated: then it is no 70 %. */
	p[0].saturated = true;
	s = summed(p, 3, 1000);
	assert_true(isnan(s.at_70.iops)); /* nothing below to draw from */
	/* Within 1 % of the peak it is measured, too. */
	s = summed(near, 3, 1000);
	assert_near(s.at_70.iops, 705, 0);
	assert_false(s.at_70.interpolated);
	assert_true(s.at_80.interpolated);
	/* Nothing, one, and hostile points. */
	s = summed(NULL, 0, 1000);
	assert_true(isnan(s.peak_iops) && isnan(s.drop_off));
	s = summed(near, 1, 1000);
	assert_near(s.peak_iops, 500, 0);
	assert_true(isnan(s.at_70.iops));
	p[0] = p[1] = (struct curve_point)P(NAN, NAN, NAN);
	s = summed(p, 3, 1000);
	assert_near(s.peak_iops, 1000, 0);
}

/* Worked from a run whose search found 3,095 where points reached 2,790. */
static void reading_label(void **state)
{
	const struct curve_point p[] = {
		P(1548, 4940, 50),
		P(1874, 5680, 60),
		P(2318, 6540, 70),
		P(2604, 5520, 80),
		P(2790, 3490, 90),
		{ .iops = 2238,
		  .latency_us = 6767,
		  .percent = 100,
		  .saturated = true },
	};
	struct series_summary s = summed(p, 6, 1000);

	(void)state;
	/* 70 % of 2,790 is 1,953: 2,318 is 83 % and stands for nothing.
	 * (1953 - 1874) / (2318 - 1874) of the way from 5,680 to 6,540. */
	assert_true(s.at_70.interpolated);
	assert_near(s.at_70.iops, 1953, 1e-6);
	assert_near(s.at_70.latency_us, 5833.0, 0.1);
	assert_true(s.at_80.interpolated);
	assert_near(s.at_80.iops, 2232, 1e-6);
	assert_false(s.peak_open);
	assert_near(s.drop_off, 1 - 2238 / 2790.0, 1e-12);
}

static void peak_unknown(void **state)
{
	struct curve_point half[] = { P(1525, 5470, 50), P(1564, 2930, 50) };
	struct curve_point part[] = { P(500, 300, 50), P(702, 400, 70) };
	struct curve c = { .point = half, .points = 2, .max_iops = NAN };
	struct series_summary s;

	(void)state;
	/* Half of another series' maximum: most measured, and no more. */
	curve_summary(&c, 1000, &s);
	assert_true(s.peak_open);
	assert_near(s.peak_iops, 1564, 0);
	assert_true(isnan(s.at_70.iops) && isnan(s.drop_off));
	/* Its own search says what 70 % is. */
	c = (struct curve) { .point = part, .points = 2, .max_iops = 1000 };
	curve_summary(&c, 1000, &s);
	assert_true(s.peak_open);
	assert_near(s.at_70.iops, 702, 0);
	assert_false(s.at_70.interpolated);
	assert_true(isnan(s.at_80.iops));
	/* A point that did not keep up is the peak, whatever was asked. */
	part[1].saturated = true;
	curve_summary(&c, 1000, &s);
	assert_false(s.peak_open);
	assert_near(s.drop_off, 0, 0);
}

static void verdicts(void **state)
{
	struct curve_point a = P(1000, 500, 100), b = P(1030, 500, 100);
	struct curve ca = { .point = &a, .points = 1 };
	struct curve cb = { .point = &b, .points = 1 };
	struct compared c[READINGS];

	(void)state;
	curves_compare(&ca, &cb, 1000, c);
	assert_near(c[0].change_percent, 3, 1e-9);
	assert_null(c[0].verdict);
	a.iops_ci = b.iops_ci = 0.03; /* 30 and 30.9: 43 together */
	curves_compare(&ca, &cb, 1000, c);
	assert_string_equal(c[0].verdict, "not distinguishable");
	a.iops_ci = b.iops_ci = 0.02; /* 28.7 by one reading, 41.6 by all */
	curves_compare(&ca, &cb, 1000, c);
	assert_string_equal(c[0].verdict, "not distinguishable");
	a.iops_ci = b.iops_ci = 0.014; /* 29.1 */
	curves_compare(&ca, &cb, 1000, c);
	assert_string_equal(c[0].verdict, "higher");
	curves_compare(&cb, &ca, 1000, c);
	assert_string_equal(c[0].verdict, "lower");
	assert_true(isnan(c[2].a) && isnan(c[2].change_percent));
	assert_string_equal(c[6].name, "IOPS under 1 ms");
	/* All are under 1 ms: "at least" against "at least" is no verdict. */
	assert_null(c[6].verdict);
	a.percent = 50;
	curves_compare(&ca, &cb, 1000, c);
	assert_null(c[0].verdict);
}

/* ---- published ---------------------------------------------------------- */

/* Each line of readings.csv that its curves can say, within one point. */
static void published(void **state)
{
	char curves[512], file[512], line[256];
	int checked = 0;
	FILE *f;

	(void)state;
	data_path("curves.csv", curves, sizeof(curves));
	f = fopen(data_path("readings.csv", file, sizeof(file)), "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char workload[64], reading[64], name[128];
		double va, vb, change;
		struct curve a, b;
		struct err err = { 0 };
		json_t *j, *list;
		bool found = false;

		if (sscanf(line, "%*[^,],%63[^,],%63[^,],%lf,%lf,%lf", workload,
			   reading, &va, &vb, &change) != 5 ||
		    !strcmp(reading, "MB/s"))
			continue;
		snprintf(name, sizeof(name), "%s RAID6 25GbE", workload);
		if (curve_of_csv(curves, name, &a, &err))
			fail_msg("%s", err.text);
		snprintf(name, sizeof(name), "%s RAID6 100GbE", workload);
		if (curve_of_csv(curves, name, &b, &err))
			fail_msg("%s", err.text);
		j = analysis_compare_json(&a, &b, 1000);
		list = json_object_get(j, "readings");
		for (size_t i = 0; i < json_array_size(list); i++) {
			json_t *r = json_array_get(list, i);
#define NUM(k) json_number_value(json_object_get(r, k))
			if (strcmp(json_string_value(
					   json_object_get(r, "name")),
				   reading))
				continue;
			found = true;
			assert_near(NUM("a"), va, 1e-6);
			assert_near(NUM("b"), vb, 1e-6);
			assert_near(NUM("change_percent"), change, 1.0);
			assert_false(json_is_true(
				json_object_get(r, "a_interpolated")));
			checked++;
		}
		assert_true(found);
		json_decref(j);
		curve_fini(&a);
		curve_fini(&b);
	}
	fclose(f);
	assert_int_equal(checked, 12);
}

/* ---- CSV ---------------------------------------------------------------- */

static char csv_path[64];

static int csv_try(const char *text, struct curve *c, struct err *err)
{
	FILE *f = fopen(csv_path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return curve_of_csv(csv_path, "A", c, err);
}

static void csv_good(void **state)
{
	struct curve c;
	struct err err;
	char **names;

	(void)state;
	assert_int_equal(csv_try("\xef\xbb\xbflatency_ms,extra,series,iops\r\n"
				 "0.5,\"a, \"\"b\"\"\",A,1.5e3\r\n\r\n"
				 "1,x,B,7\r\n2.25,,\"A\",2000",
				 &c, &err),
			 0);
	assert_int_equal(c.points, 2);
	assert_string_equal(c.name, "A");
	assert_near(c.point[0].iops, 1500, 1e-9);
	assert_near(c.point[0].latency_us, 500, 1e-9);
	assert_true(isnan(c.point[0].percent));
	assert_near(c.point[1].latency_us, 2250, 1e-9);
	curve_fini(&c);
	assert_int_equal(curve_csv_series(csv_path, &names, &err), 0);
	assert_string_equal(names[0], "A");
	assert_string_equal(names[1], "B");
	assert_null(names[2]);
	free(names[0]);
	free(names[1]);
	free(names);
}

static void csv_bad(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{ "", "is empty" },
		{ "iops,latency_ms\n", ":1: expected a column \"series\"" },
		{ "series,iops,latency_ms\nA,fast,1\n",
		  ":2: iops: expected a number" },
		{ "series,iops,latency_ms\nA,5,0,92\nA,5,-1\n",
		  ":2: latency_ms" },
		{ "series,iops,latency_ms\nA,5\n", ":2: latency_ms" },
		{ "series,iops,latency_ms\nA,nan,1\n", "found \"nan\"" },
		{ "series,iops,latency_ms\nA,1e99,1\n", "iops" },
		{ "series,iops,latency_ms\n\n\n,5,1\n", ":4: series" },
		{ "series,iops,latency_ms\n\"A,5,1\n", ":2: column 1" },
		{ "series,iops,latency_ms\n\"A\"x,5,1\n", ":2: column 1" },
		{ "series,iops,latency_ms\nB,5,1\nC,5,1\n", "it has: B, C" },
		{ "series,iops,latency_ms\nA,\x1b[2J,1\n", "found \"[2J\"" },
	};

	(void)state;
	for (size_t i = 0; i < array_len(t); i++) {
		struct err err = { 0 };
		struct curve c;

		assert_true(csv_try(t[i].text, &c, &err) < 0);
		if (!strstr(err.text, t[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err.text, t[i].says);
		assert_null(c.point);
	}
}

static int csv_setup(void **state)
{
	int fd;

	(void)state;
	strcpy(csv_path, "/tmp/iodeck-test-csv-XXXXXX");
	fd = mkstemp(csv_path);
	return fd < 0 ? -1 : close(fd);
}

static int csv_teardown(void **state)
{
	(void)state;
	return unlink(csv_path);
}

/* ---- documents ---------------------------------------------------------- */

static json_t *get(json_t *j, const char *path)
{
	char key[64];

	while (*path) {
		size_t n = strcspn(path, ".");

		snprintf(key, sizeof(key), "%.*s", (int)n, path);
		j = key[0] >= '0' && key[0] <= '9'
			    ? json_array_get(j, (size_t)atoi(key))
			    : json_object_get(j, key);
		if (!j)
			fail_msg("no %s", path);
		path += n + (path[n] == '.');
	}
	return j;
}

static void run_document(void **state)
{
	struct synth_opts o;
	struct model *m;
	char *text, *line, *save = NULL;
	json_t *j;

	(void)state;
	synth_defaults(&o);
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(synth_model(&o, m), 0);
	j = analysis_run_json(model_run(m), 1000);
	assert_non_null(j);
	assert_int_equal(json_array_size(get(j, "series")), 3);
	assert_int_equal(json_array_size(get(j, "series.0.points")), 10);
	assert_near(json_number_value(get(j, "series.0.points.4.asked_iops")),
		    24000, 1e-6);
	assert_near(json_number_value(get(j, "series.0.points.4.iops")), 24000,
		    240);
	assert_near(json_number_value(
			    get(j, "series.0.points.4.latency_us.all.mean")),
		    synth_latency_us(0, 0.5) * 1.06, 12);
	assert_true(json_number_value(get(
			    j, "series.2.points.3.response_us.write.p99_9")) >
		    json_number_value(get(
			    j, "series.2.points.3.latency_us.write.p99_9")));
	assert_true(json_is_false(get(j, "series.0.points.9.saturated")));
	assert_true(json_is_true(get(j, "series.2.points.9.saturated")));
	assert_true(json_is_true(get(j, "series.0.points.9.steady")));
	assert_string_equal(
		json_string_value(get(j, "series.2.points.8.marks")),
		"drive n4:d1 offline");
	assert_near(json_number_value(get(j, "series.1.summary.peak_iops")),
		    36000, 360);
	assert_true(json_is_false(get(j, "series.1.summary.peak_open")));
	assert_near(json_number_value(get(j, "series.1.summary.at_70.share")),
		    0.7, 0.01);
	/* Two drives against five against six of the same twelve. */
	assert_int_equal(json_integer_value(get(j, "series.0.drives")), 2);
	assert_int_equal(json_integer_value(get(j, "series.1.drives")), 5);
	assert_int_equal(json_integer_value(get(j, "series.2.drives")), 6);
	assert_int_equal(json_integer_value(get(j, "series.2.drives_all")), 12);
	assert_int_equal(json_integer_value(get(j, "series.2.data")), 4);
	assert_true(
		json_is_false(get(j, "series.1.summary.at_70.interpolated")));
	assert_near(json_number_value(get(j, "series.1.summary.at_80.iops")),
		    28800, 288);
	assert_near(json_number_value(
			    get(j, "series.1.summary.max_iops_under.bound_us")),
		    1000, 0);
	assert_true(json_number_value(
			    get(j, "series.1.summary.max_iops_under.iops")) >
		    30000);
	json_decref(j);

	assert_int_equal(analysis_run_text(model_run(m), 1000, &text), 0);
	if (getenv("SHOW"))
		puts(text);
	assert_non_null(strstr(text, "RAID-6: OLTP 32K 70/30 on db3, 25 GbE"));
	assert_non_null(strstr(text, "RAID-1, 2 copies on 2 of 12 drives"));
	assert_non_null(strstr(text, "RAID-5 4+1 on 5 of 12 drives"));
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		assert_true(strlen(line) <= 80);
	free(text);
	model_free(m);
}

/* A run that only began has a document, too; unknown is null. */
static void early_document(void **state)
{
	struct synth_opts o;
	struct model *m;
	char *text;
	json_t *j;

	(void)state;
	synth_defaults(&o);
	o.close = false;
	for (o.limit = 14; o.limit < 60; o.limit += 3) {
		assert_int_equal(model_new(&m), 0);
		assert_int_equal(synth_model(&o, m), 0);
		assert_non_null(model_run(m));
		j = analysis_run_json(model_run(m), 1000);
		assert_non_null(j);
		assert_int_equal(json_array_size(get(j, "series")), 3);
		assert_true(json_is_null(get(j, "series.2.summary.peak_iops")));
		json_decref(j);
		assert_int_equal(analysis_run_text(model_run(m), 1000, &text),
				 0);
		free(text);
		model_free(m);
	}
}

static void compare_text(void **state)
{
	char path[512], *text;
	struct curve a, b;

	(void)state;
	data_path("curves.csv", path, sizeof(path));
	assert_int_equal(curve_of_csv(path, "OLTP 32K RAID6 25GbE", &a, NULL),
			 0);
	assert_int_equal(curve_of_csv(path, "OLTP 32K RAID6 100GbE", &b, NULL),
			 0);
	assert_int_equal(analysis_compare_text(&a, &b, 1000, &text), 0);
	if (getenv("SHOW"))
		puts(text);
	assert_non_null(strstr(text, "256,000"));
	assert_non_null(strstr(text, "+78 %"));
	assert_non_null(strstr(text, "0.730 ms"));
	assert_non_null(strstr(text, "IOPS under 1 ms"));
	free(text);
	strcpy(b.layout, "RAID-6 4+2 on 6 of 12 drives");
	assert_int_equal(analysis_compare_text(&a, &b, 1000, &text), 0);
	assert_non_null(strstr(text, "100GbE\n    RAID-6 4+2 on 6 of 12"));
	free(text);
	curve_fini(&a);
	curve_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student),
		cmocka_unit_test(batch_means),
		cmocka_unit_test(trend),
		cmocka_unit_test(figures),
		cmocka_unit_test(point_figures),
		cmocka_unit_test(held_search),
		cmocka_unit_test(saturation),
		cmocka_unit_test(readings),
		cmocka_unit_test(reading_stands),
		cmocka_unit_test(reading_label),
		cmocka_unit_test(peak_unknown),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(published),
		cmocka_unit_test_setup_teardown(csv_good, csv_setup,
						csv_teardown),
		cmocka_unit_test_setup_teardown(csv_bad, csv_setup,
						csv_teardown),
		cmocka_unit_test(run_document),
		cmocka_unit_test(early_document),
		cmocka_unit_test(compare_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
