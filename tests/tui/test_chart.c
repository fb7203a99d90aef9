/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The canvas and the charts as pure functions.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/chart/axis.h"
#include "tui/chart/bars.h"
#include "tui/chart/heat.h"
#include "tui/chart/line.h"
#include "tui/chart/spark.h"
#include "tui/fmt.h"

static void test_axis_rounds(void **state)
{
	static const double in_out[][2] = {
		{ 0.9, 1 }, { 1, 1 },    { 1.1, 2 },       { 2.1, 2.5 },
		{ 2.6, 5 }, { 5.1, 10 }, { 41600, 50000 }, { 0.03, 0.05 },
	};

	(void)state;
	for (size_t i = 0; i < array_len(in_out); i++)
		assert_float_equal(axis_round(in_out[i][0]), in_out[i][1],
				   in_out[i][1] * 1e-9);
}

/* It holds its data, has round ticks, and does not breathe. */
static void test_axis_steps(void **state)
{
	struct axis a = { 0 };
	double was = 0, tick[AXIS_TICKS_MAX];
	int steps = 0;

	(void)state;
	for (double hi = 1; hi < 50000; hi *= 1.01) {
		size_t n;

		axis_fit(&a, false, 0, hi, 5);
		assert_true(a.hi >= hi);
		assert_true(a.hi <= hi / 0.34);
		/* once round, it grows by a good part */
		assert_true(was == 0 || a.hi == was || a.hi >= was * 1.1);
		steps += a.hi != was;
		was = a.hi;
		n = axis_ticks(&a, 12, tick);
		assert_in_range(n, 2, 12);
		for (size_t i = 0; i < n; i++)
			assert_float_equal(tick[i] / a.step,
					   round(tick[i] / a.step), 1e-6);
	}
	/* 1087 fits over four and a half decades: some steps a decade */
	assert_in_range(steps, 8, 50);
}

static void test_axis_log(void **state)
{
	struct axis a = { 0 };
	double tick[AXIS_TICKS_MAX];
	size_t n;

	(void)state;
	axis_fit(&a, true, 0.43, 3.9, 5);
	assert_float_equal(a.lo, 0.2, 1e-9);
	assert_float_equal(a.hi, 5, 1e-9);
	n = axis_ticks(&a, 12, tick);
	assert_int_equal(n, 5); /* 0.2 0.5 1 2 5 */
	assert_float_equal(tick[2], 1, 1e-9);
	assert_float_equal(axis_at(&a, 1), 0.5, 1e-9);
	assert_true(axis_at(&a, 0) < 0);
}

static void test_axis_odd_input(void **state)
{
	static const double odd[] = { 0, -1, NAN, INFINITY, -INFINITY };
	double tick[AXIS_TICKS_MAX];

	(void)state;
	for (size_t i = 0; i < array_len(odd); i++)
		for (int log = 0; log < 2; log++) {
			struct axis a = { 0 };

			axis_fit(&a, log, odd[i], odd[i], 5);
			assert_true(isfinite(a.lo) && isfinite(a.hi));
			assert_true(a.hi > a.lo);
			assert_true(axis_ticks(&a, 5, tick) <= 5);
		}
}

static void test_canvas_clips(void **state)
{
	struct canvas c = { 0 };
	struct rect old;
	char *text;

	(void)state;
	assert_int_equal(canvas_resize(&c, 10, 3), 0);
	old = canvas_clip(&c, (struct rect) { 2, 1, 4, 1 });
	canvas_fill(&c, (struct rect) { -5, -5, 100, 100 }, ROLE_TEXT, 'x');
	canvas_dot(&c, -3, -3, ROLE_TEXT);
	canvas_dot(&c, 1000, 1000, ROLE_TEXT);
	c.clip = old;
	text = canvas_dump(&c);
	assert_string_equal(text, "\n  xxxx\n\n");
	free(text);
	canvas_fini(&c);
}

static void test_canvas_hostile_text(void **state)
{
	struct canvas c = { 0 };
	char *text;

	(void)state;
	assert_int_equal(canvas_resize(&c, 24, 1), 0);
	canvas_text(&c, 0, 0, ROLE_TEXT,
		    "a\033[2Jb\x7f\xff\xc2\x9b"
		    "c\xe6\xbc\xa2"
		    "d\xed\xa0\x80\xc0\xaf");
	text = canvas_dump(&c);
	assert_null(strchr(text, '\033'));
	assert_null(strstr(text, "\xc2\x9b"));
	assert_non_null(strstr(text, "c\xe6\xbc\xa2"
				     "d"));
	free(text);
	canvas_fini(&c);
}

static void test_canvas_fit(void **state)
{
	struct canvas c = { 0 };
	char *text;

	(void)state;
	assert_int_equal(canvas_resize(&c, 12, 3), 0);
	assert_int_equal(canvas_fit(&c, 0, 0, 5, ROLE_TEXT, "abcdefgh"), 5);
	assert_int_equal(canvas_wrap(&c, (struct rect) { 0, 1, 9, 2 },
				     ROLE_TEXT, "one two three four"),
			 2);
	text = canvas_dump(&c);
	assert_string_equal(text, "abcd\xe2\x80\xa6\none two\n"
				  "three\xe2\x80\xa6\n");
	free(text);
	canvas_fini(&c);
}

/* Every drawing has an ASCII form, with nothing else in it. */
static void test_ascii_is_ascii(void **state)
{
	static const struct line_point p[] = {
		{ 1, 0.2, 0 },
		{ 5, 0.4, 0 },
		{ 8, 2.5, LINE_SATURATED },
		{ 9, 4, LINE_GROWING },
	};
	struct line_series s[6] = { 0 };
	struct axis x = { 0 }, y = { 0 };
	struct line_chart chart = { .x = &x,
				    .y = &y,
				    .x_unit = "IOPS",
				    .bound = 1,
				    .bound_label = "1 ms",
				    .series = s,
				    .count = 6,
				    .focus = 2 };
	struct canvas c = { .glyphs = GLYPHS_ASCII };
	char *text;

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		s[i] = (struct line_series) {
			.label = "RAID", .index = i, .point = p, .points = 4
		};
	axis_fit(&x, false, 0, 9, 5);
	axis_fit(&y, false, 0, 4, 5);
	assert_int_equal(canvas_resize(&c, 60, 20), 0);
	line_chart_draw(&c, (struct rect) { 0, 0, 60, 20 }, &chart);
	text = canvas_dump(&c);
	for (char *q = text; *q; q++)
		assert_true((unsigned char)*q < 0x80);
	free(text);
	canvas_fini(&c);
}

/* No size and no data make a chart draw outside its rectangle or fail. */
/* A line where the limit is, its reason beside it; what lies beyond the axis is
 * an arrow; where there is little room the figure alone. */
static void test_line_limits(void **state)
{
	struct line_limit limit[] = { { 5000, "limit 5.00k (drives, W 4)", 0 },
				      { 90000, "limit 90.0k (links)", 1 },
				      { NAN, "unknown", 2 } };
	struct line_point p[2] = { { 1000, 1, 0 }, { 4000, 2, 0 } };
	struct line_series s = { .label = "one", .point = p, .points = 2 };
	struct axis x = { 0 }, y = { 0 };
	struct line_chart chart = { .x = &x,
				    .y = &y,
				    .x_unit = "IOPS",
				    .bound = NAN,
				    .series = &s,
				    .count = 1,
				    .limit = limit,
				    .limits = 3 };
	struct canvas c = { 0 };
	char *text;

	(void)state;
	axis_fit(&x, false, 0, 6000, 5);
	axis_fit(&y, false, 0, 3, 5);
	assert_int_equal(canvas_resize(&c, 60, 20), 0);
	line_chart_draw(&c, (struct rect) { 0, 0, 60, 20 }, &chart);
	text = canvas_dump(&c);
	assert_non_null(
		strstr(text, "a limit 5.00k (drives, W 4) \xe2\x94\x8a"));
	assert_non_null(strstr(text, "b limit 90.0k (links) \xe2\x86\x92\n"));
	assert_null(strstr(text, "unknown"));
	free(text);
	assert_int_equal(canvas_resize(&c, 26, 12), 0);
	line_chart_draw(&c, (struct rect) { 0, 0, 26, 12 }, &chart);
	text = canvas_dump(&c);
	assert_non_null(strstr(text, "a limit 5.00k"));
	assert_null(strstr(text, "drives"));
	free(text);
	canvas_fini(&c);
}

static void test_line_sizes(void **state)
{
	struct line_point p[3] = { { NAN, 1, 0 },
				   { 1e12, 1e9, 0 },
				   { 3, NAN, 0 } };
	struct line_series s = { .label = "a long name of a series",
				 .point = p,
				 .points = 3 };
	struct axis x = { 0 }, y = { 0 };
	struct line_chart chart = { .x = &x,
				    .y = &y,
				    .x_unit = "IOPS",
				    .bound = 1,
				    .bound_label = "1 ms",
				    .series = &s,
				    .count = 1 };
	struct canvas c = { 0 };

	(void)state;
	axis_fit(&x, false, 0, 10, 5);
	axis_fit(&y, true, 0.1, 10, 5);
	for (int w = 1; w < 70; w += 3)
		for (int h = 1; h < 30; h++) {
			assert_int_equal(canvas_resize(&c, w + 4, h + 4), 0);
			line_chart_draw(&c, (struct rect) { 2, 2, w, h },
					&chart);
			for (int i = 0; i < w + 4; i++) {
				assert_false(canvas_used(&c, i, 1));
				assert_false(canvas_used(&c, i, h + 2));
			}
			for (int i = 0; i < h + 4; i++)
				assert_false(canvas_used(&c, w + 2, i));
		}
	canvas_fini(&c);
}

/* Letters, markers, and strokes differ: told apart without colour. */
static void test_series_differ(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < i; j++) {
			assert_int_not_equal(series_letter(i),
					     series_letter(j));
			assert_int_not_equal(series_marker(i, 0),
					     series_marker(j, 0));
			assert_int_not_equal(series_role(i), series_role(j));
		}
	for (unsigned i = 0; i < 6; i++)
		assert_int_not_equal(series_marker(i, 0),
				     series_marker(i, LINE_GROWING));
}

static void test_spark(void **state)
{
	static const double v[] = { NAN, 0, 4, 8, 100 };
	struct canvas c = { 0 };
	char *text;

	(void)state;
	assert_int_equal(canvas_resize(&c, 6, 1), 0);
	spark_draw(&c, (struct rect) { 0, 0, 6, 1 }, v, 5, 8, ROLE_BAR);
	text = canvas_dump(&c);
	assert_string_equal(text, "  \xe2\x96\x81\xe2\x96\x84\xe2\x96\x88"
				  "\xe2\x96\x88\n");
	free(text);
	canvas_fini(&c);
}

static void test_bar(void **state)
{
	struct canvas c = { .glyphs = GLYPHS_ASCII };
	char *text;

	(void)state;
	assert_int_equal(canvas_resize(&c, 8, 3), 0);
	bar_draw(&c, 0, 0, 8, 0.5, ROLE_BAR);
	bar_draw(&c, 0, 1, 8, NAN, ROLE_BAR);
	bar_draw(&c, 0, 2, 8, 7, ROLE_BAR);
	text = canvas_dump(&c);
	assert_string_equal(text, "####----\n--------\n########\n");
	free(text);
	canvas_fini(&c);
}

static const char *row_label(size_t row, char *buf)
{
	snprintf(buf, FMT_MAX, "%zu", row);
	return buf;
}

/* A tail of one in ten thousand is still seen. */
static void test_heat_tail(void **state)
{
	static const uint32_t count[4] = { 0, 10000, 0, 1 };
	struct heat heat = {
		.count = count, .rows = 4, .columns = 1, .label = row_label
	};
	struct canvas c = { 0 };

	(void)state;
	assert_int_equal(canvas_resize(&c, 10, 4), 0);
	heat_draw(&c, (struct rect) { 0, 0, 10, 4 }, &heat);
	assert_int_equal(canvas_cell(&c, 9, 0)->ch, 0xb7);
	assert_int_equal(canvas_cell(&c, 9, 2)->ch, 0x2588);
	assert_int_equal(canvas_cell(&c, 9, 1)->ch, 0);
	canvas_fini(&c);
}

/* Fewer rows than buckets: none is cut off, and the line stands where the
 * counts around it do. */
static void test_heat_low(void **state)
{
	static const uint32_t count[8] = { 0, 1, 0, 0, 0, 0, 100000, 1 };
	static const double line[1] = { 6.2 };
	struct heat heat = { .count = count,
			     .rows = 8,
			     .columns = 1,
			     .line = line,
			     .label = row_label };
	struct canvas c = { 0 };

	(void)state;
	assert_int_equal(canvas_resize(&c, 8, 4), 0);
	heat_draw(&c, (struct rect) { 0, 0, 8, 4 }, &heat);
	assert_int_equal(canvas_cell(&c, 7, 0)->ch, 0x2501); /* 6 and 7 */
	assert_int_equal(canvas_cell(&c, 7, 1)->ch, 0);
	assert_int_equal(canvas_cell(&c, 7, 2)->ch, 0);
	assert_int_equal(canvas_cell(&c, 7, 3)->ch, 0xb7); /* 0 and 1 */
	heat.line = NULL;
	heat_draw(&c, (struct rect) { 0, 0, 8, 4 }, &heat);
	assert_int_equal(canvas_cell(&c, 7, 0)->ch, 0x2588);
	canvas_fini(&c);
}

static void test_fmt(void **state)
{
	char b[FMT_MAX];

	(void)state;
	assert_string_equal(fmt_3(b, 0.99949), "0.999");
	assert_string_equal(fmt_3(b, 0.9996), "1.00");
	assert_string_equal(fmt_3(b, 9.996), "10.0");
	assert_string_equal(fmt_3(b, 99.96), "100");
	assert_string_equal(fmt_3(b, NAN), "-");
	assert_string_equal(fmt_k(b, 999.6), "1.00k");
	assert_string_equal(fmt_k(b, 41571), "41.6k");
	assert_string_equal(fmt_k(b, 7), "7");
	assert_string_equal(fmt_count(b, 1362041), "1,362,041");
	assert_string_equal(fmt_count(b, 0.2), "0");
	assert_string_equal(fmt_bytes(b, 64.0 * GIB), "64 GiB");
	assert_string_equal(fmt_bytes(b, -1), "-");
	assert_string_equal(fmt_link(b, 3125e6), "25 GbE");
	assert_string_equal(fmt_link(b, 94e6), "94.0 MB/s");
	assert_string_equal(fmt_span(b, 3723), "1:02:03");
	assert_string_equal(fmt_span(b, NAN), "-");
	assert_string_equal(fmt_clock(b, -1), "-");
	assert_string_equal(fmt_tick(b, 2500), "2.5k");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_axis_rounds),
		cmocka_unit_test(test_axis_steps),
		cmocka_unit_test(test_axis_log),
		cmocka_unit_test(test_axis_odd_input),
		cmocka_unit_test(test_canvas_clips),
		cmocka_unit_test(test_canvas_hostile_text),
		cmocka_unit_test(test_canvas_fit),
		cmocka_unit_test(test_ascii_is_ascii),
		cmocka_unit_test(test_line_limits),
		cmocka_unit_test(test_line_sizes),
		cmocka_unit_test(test_series_differ),
		cmocka_unit_test(test_spark),
		cmocka_unit_test(test_bar),
		cmocka_unit_test(test_heat_tail),
		cmocka_unit_test(test_heat_low),
		cmocka_unit_test(test_fmt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
