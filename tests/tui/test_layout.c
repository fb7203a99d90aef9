/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Layout over thousands of sizes: everything inside, nothing over another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tui/layout.h"

static bool inside(struct rect a, struct rect b)
{
	if (a.w == 0 || a.h == 0)
		return true;
	return a.w > 0 && a.h > 0 && a.x >= b.x && a.y >= b.y &&
	       a.x + a.w <= b.x + b.w && a.y + a.h <= b.y + b.h;
}

static bool apart(struct rect a, struct rect b)
{
	if (!a.w || !a.h || !b.w || !b.h)
		return true;
	return a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y ||
	       b.y + b.h <= a.y;
}

static void check(struct rect all, const struct rect *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(inside(r[i], all));
		for (size_t j = 0; j < i; j++)
			assert_true(apart(r[i], r[j]));
	}
}

static void test_frame(void **state)
{
	struct layout_frame f;

	(void)state;
	for (int w = 1; w < 300; w += 2)
		for (int h = 1; h < 120; h++)
			for (int kind = 0; kind < 4; kind++) {
				struct rect all = { 0, 0, w, h };
				bool ok = layout_frame(w, h, kind & 1, kind & 2,
						       &f);
				struct rect r[] = { f.head,   f.tabs,
						    f.body,   f.guide,
						    f.replay, f.message,
						    f.keys };

				assert_int_equal(ok, w >= LAYOUT_W_MIN &&
							     h >= LAYOUT_H_MIN);
				check(all, r, array_len(r));
				if (ok)
					assert_true(f.body.h >= 6);
			}
}

static void test_run(void **state)
{
	struct layout_run l;

	(void)state;
	for (int w = LAYOUT_W_MIN; w < 320; w += 3)
		for (int h = 6; h < 120; h++)
			for (size_t nodes = 0; nodes < 70; nodes += 23) {
				struct rect body = { 0, 2, w, h };
				struct rect r[9];

				const struct layout_run_of of = {
					nodes, nodes * 4, nodes / 3,
					h % 3 ? h % 7 : 0, h % 3 == 2
				};

				layout_run(body, &of, &l);
				r[0] = l.chart;
				r[1] = l.point;
				r[2] = l.strip;
				r[3] = l.nodes;
				r[4] = l.bound;
				r[5] = l.heat;
				r[6] = l.table;
				r[7] = l.drives;
				r[8] = l.figures;
				check(body, r, array_len(r));
				/* the curve is the screen */
				assert_true(l.chart.h * 2 >= h ||
					    l.chart.h >= 4);
				assert_true(l.chart.w * 2 >= w);
				if (!of.figures || !l.large)
					assert_int_equal(l.figures.h, 0);
				else if (of.figures_first)
					assert_true(l.figures.h > 0);
			}
}

static void test_list(void **state)
{
	struct layout_list l;

	(void)state;
	for (int h = 6; h < 120; h++)
		for (size_t rows = 0; rows < 200; rows += 13) {
			struct rect body = { 0, 2, 80, h };
			struct rect r[2];

			layout_list(body, rows, &l);
			r[0] = l.list;
			r[1] = l.detail;
			check(body, r, 2);
			assert_true(l.list.h >= 2);
		}
}

/* The cursor is always in sight, and the list moves no further than needed. */
static void test_scroll(void **state)
{
	(void)state;
	for (int count = 0; count < 40; count += 3)
		for (int rows = 1; rows < 30; rows += 4)
			for (int top = -3; top < 45; top += 5)
				for (int at = 0; at < count; at++) {
					int t = layout_scroll(count, at, rows,
							      top);

					assert_true(t >= 0);
					assert_true(at >= t && at < t + rows);
					assert_true(t == 0 ||
						    t + rows <= count);
					if (top >= 0 && at >= top &&
					    at < top + rows &&
					    top + rows <= count)
						assert_int_equal(t, top);
				}
	assert_int_equal(layout_scroll(0, 0, 5, 3), 0);
	assert_int_equal(layout_scroll(9, 3, 0, 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_scroll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
