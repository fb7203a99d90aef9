/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compare: the curves over each other, and their readings side by side. One of
 * them is what the others are compared with: the base.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/chart/line.h"
#include "tui/fmt.h"
#include "tui/screen/screen.h"

#define COLUMNS 12
#define NAMES 23 /* columns of the readings' names */
#define NARROW 19
#define WIDE 38 /* with the verdict in words */

struct column {
	int drives;                   /* it lies on; -1 not known */
	struct curve curve;           /* points and facts are its own */
	struct compared of[READINGS]; /* b is this one, a the base */
};

static int curve_copy(const struct curve *from, struct curve *to)
{
	*to = *from;
	to->point = calloc(from->points + 1, sizeof(*to->point));
	if (!to->point)
		return -ENOMEM;
	if (from->points)
		memcpy(to->point, from->point,
		       from->points * sizeof(*to->point));
	json_incref(to->facts);
	return 0;
}

static size_t columns_fill(struct ui *ui, const struct scene *scene,
			   struct column *col)
{
	const struct m_run *run = ui_run(ui, scene);
	size_t n = 0;

	for (size_t i = 0; run && i < run->series_count && n < COLUMNS; i++)
		if (!curve_of_series(&run->series[i], &col[n].curve))
			col[n++].drives = run->series[i].drives;
	for (size_t i = 0; i < scene->overlays && n < COLUMNS; i++)
		if (!curve_copy(&scene->overlay[i].curve, &col[n].curve))
			col[n++].drives = -1;
	return n;
}

static void columns_compare(struct column *col, size_t n, size_t base)
{
	for (size_t i = 0; i < n; i++)
		curves_compare(&col[base].curve, &col[i].curve, 1000,
			       col[i].of);
}

/* Facts are worth their cost for the two that are spoken of alone. */
static json_t *facts_of(const struct ui *ui, const struct scene *scene,
			const struct column *col, size_t at)
{
	const struct m_run *run = ui_run(ui, scene);
	size_t series = run ? run->series_count : 0;

	if (at < series)
		return facts_of_series(scene->model, run, &run->series[at]);
	return json_incref(col[at].curve.facts);
}

static bool is_ms(const struct compared *c)
{
	return strstr(c->name, "(ms)") != NULL;
}

static void draw_value(struct canvas *c, int right, int y,
		       const struct compared *of)
{
	char a[FMT_MAX];

	canvas_right(c, right, y, ROLE_TEXT,
		     is_ms(of) ? fmt_ms(a, of->b * 1000) : fmt_count(a, of->b));
	/* How sure it is: drawn from neighbours, or only "at least". */
	if (isfinite(of->b))
		canvas_text(c, right, y, ROLE_DIM,
			    of->b_least          ? ">"
			    : of->b_interpolated ? "*"
						 : "");
}

static bool is_same(const struct compared *of)
{
	return of->verdict && strcmp(of->verdict, "higher") != 0 &&
	       strcmp(of->verdict, "lower") != 0;
}

/* Good, bad, or not to be said. */
static unsigned change_role(const struct compared *of)
{
	if (!of->verdict || is_same(of))
		return ROLE_DIM;
	return !strcmp(of->verdict, "higher") != is_ms(of) ? ROLE_OK
							   : ROLE_WARN;
}

/* In brackets where it is not distinguishable. */
static void draw_change(struct canvas *c, int right, int y,
			const struct compared *of)
{
	bool same = is_same(of);
	char text[FMT_MAX];

	if (!isfinite(of->change_percent) || fabs(of->change_percent) >= 1e6)
		return;
	snprintf(text, sizeof(text), same ? "(%+.0f %%)" : "%+.0f %%",
		 of->change_percent);
	canvas_right(c, right + same, y, change_role(of), text);
}

static void draw_interval(struct canvas *c, int right, int y,
			  const struct compared *of)
{
	char text[FMT_MAX];

	if (!isfinite(of->b_ci))
		snprintf(text, sizeof(text), "-");
	else
		snprintf(text, sizeof(text), "\xc2\xb1%.1f %%", of->b_ci * 100);
	canvas_right(c, right, y, ROLE_DIM, text);
}

static void column_head(struct canvas *c, int x, int y, const struct column *of,
			size_t at, bool base, int w)
{
	canvas_printf(c, x + 1, y, series_role((unsigned)at) | STYLE_BOLD, "%c",
		      series_letter((unsigned)at));
	x += 3 + canvas_fit(c, x + 3, y, w - 10, ROLE_TITLE, of->curve.name);
	if (base)
		canvas_fit(c, x, y, 7, ROLE_DIM, " (base)");
}

static void column_draw(const struct ui *ui, struct canvas *c, struct rect r,
			const struct column *col, bool base)
{
	char a[FMT_MAX];

	for (int i = 0; i < READINGS && i + 1 < r.h; i++) {
		const struct compared *of = &col->of[i];
		int y = r.y + 1 + i;

		draw_value(c, r.x + 10, y, of);
		if (ui->intervals)
			draw_interval(c, r.x + 18, y, of);
		else if (!base)
			draw_change(c, r.x + 17, y, of);
		if (!base && r.w >= WIDE)
			canvas_fit(c, r.x + 19, y, WIDE - 19, change_role(of),
				   of->verdict ? of->verdict : "-");
	}
	if (READINGS + 1 < r.h)
		canvas_right(c, r.x + 10, r.y + READINGS + 1, ROLE_TEXT,
			     fmt_count(a, col->drives < 0 ? NAN : col->drives));
}

static void names_draw(struct canvas *c, struct rect r,
		       const struct column *base)
{
	for (int i = 0; i < READINGS && i + 1 < r.h; i++) {
		char name[sizeof(base->of[i].name)];
		char *unit;

		snprintf(name, sizeof(name), "%s", base->of[i].name);
		unit = strstr(name, " (ms)");
		if (unit)
			memcpy(unit, ", ms", 5);
		canvas_text(c, r.x + 1, r.y + 1 + i, ROLE_DIM, name);
	}
	if (READINGS + 1 < r.h)
		canvas_text(c, r.x + 1, r.y + READINGS + 1, ROLE_DIM,
			    "drives it lies on");
}

static void table_draw(const struct ui *ui, struct canvas *c, struct rect r,
		       const struct column *col, size_t n, size_t base)
{
	bool wide = NAMES + NARROW + (int)(n - 1) * WIDE <= r.w;
	int x = r.x + NAMES;

	names_draw(c, r, &col[base]);
	for (size_t i = 0; i < n; i++) {
		int w = wide && i != base ? WIDE : NARROW;

		if (x + w > r.x + r.w && i)
			return;
		column_head(c, x, r.y, &col[i], i, i == base, w);
		column_draw(ui, c, (struct rect) { x, r.y, w, r.h }, &col[i],
			    i == base);
		x += w;
	}
}

/* Too many to stand side by side: a line a series, the change of its peak. */
static void lines_draw(struct canvas *c, struct rect r,
		       const struct column *col, size_t n, size_t base)
{
	static const char *const head[READINGS] = {
		"peak", "ms", "at 70 %", "ms", "at 80 %", "ms", "< 1 ms"
	};
	int name = r.w >= 100 ? 30 : 20;

	canvas_right(c, r.x + name, r.y, ROLE_DIM, "drives");
	for (int j = 0; j < READINGS; j++)
		canvas_right(c, r.x + name + 8 * (j + 1), r.y, ROLE_DIM,
			     head[j]);
	for (size_t i = 0; i < n && (int)i + 1 < r.h; i++) {
		int y = r.y + 1 + (int)i;
		char a[FMT_MAX];

		canvas_printf(c, r.x + 1, y,
			      series_role((unsigned)i) | STYLE_BOLD, "%c",
			      series_letter((unsigned)i));
		canvas_fit(c, r.x + 3, y, name - 6,
			   i == base ? ROLE_TITLE : ROLE_TEXT,
			   col[i].curve.name);
		if (col[i].drives > 0)
			canvas_right(c, r.x + name, y, ROLE_DIM,
				     fmt_count(a, col[i].drives));
		for (int j = 0; j < READINGS; j++) {
			const struct compared *of = &col[i].of[j];

			canvas_right(c, r.x + name + 8 * (j + 1), y, ROLE_TEXT,
				     is_ms(of) ? fmt_ms(a, of->b * 1000)
					       : fmt_k(a, of->b));
		}
		if (i != base && r.w >= 100)
			draw_change(c, r.x + name + 66, y, &col[i].of[0]);
	}
}

/* In what the base and the first of the others differ. */
static void facts_draw(const struct ui *ui, const struct scene *scene,
		       struct canvas *c, struct rect r,
		       const struct column *col, size_t base)
{
	size_t other = base ? 0 : 1;
	json_t *a = facts_of(ui, scene, col, base);
	json_t *b = facts_of(ui, scene, col, other);
	json_t *facts = facts_compare(a, b);
	size_t room = (size_t)(r.w - 2) * (size_t)r.h;
	char what[1024], text[1100];

	if (facts)
		snprintf(text, sizeof(text), "%c, %c: %s",
			 series_letter((unsigned)base),
			 series_letter((unsigned)other),
			 facts_text(facts, room > 18 ? room - 18 : 0, what,
				    sizeof(what)));
	else
		snprintf(text, sizeof(text),
			 "What a published series was measured on is not known "
			 "here, nor in what it differs.");
	canvas_wrap(c, (struct rect) { r.x + 1, r.y, r.w - 2, r.h }, ROLE_DIM,
		    text);
	json_decref(facts);
	json_decref(a);
	json_decref(b);
}

static void readings_draw(struct ui *ui, const struct scene *scene,
			  struct canvas *c, struct rect r, struct column *col,
			  size_t n)
{
	bool lines = n > (size_t)((r.w - NAMES) / NARROW);
	size_t base = (size_t)ui->compare.at;
	struct rect low = { r.x, r.y + r.h - 2, r.w, 2 };
	bool facts = n > 1 && r.h >= READINGS + 3;

	columns_compare(col, n, base);
	if (facts) {
		r.h -= 2;
		facts_draw(ui, scene, c, low, col, base);
	}
	if (lines)
		lines_draw(c, r, col, n, base);
	else
		table_draw(ui, c, r, col, n, base);
}

static void compare_draw(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect body)
{
	struct column col[COLUMNS] = { 0 };
	size_t n = columns_fill(ui, scene, col);
	bool lines = n > (size_t)((body.w - NAMES) / NARROW);
	int rows = (lines ? (int)n : READINGS + 1) + 2 + 2 * (n > 1);
	struct rect table, chart = body;

	rows = rows > body.h / 2 + 2 ? body.h / 2 + 2 : rows;
	chart.h -= rows;
	table = (struct rect) { body.x, body.y + chart.h, body.w, rows };
	cursor_fit(&ui->compare, (int)n, 1);
	run_chart_draw(ui, scene, c, chart);
	table = canvas_head(c, table,
			    ui->intervals ? "readings, with 95 % intervals"
			    : n > 1       ? "readings; (in brackets: not "
					    "distinguishable)"
					  : "readings");
	if (n)
		readings_draw(ui, scene, c, table, col, n);
	else
		canvas_text(c, table.x + 1, table.y, ROLE_DIM,
			    "nothing to compare: a run's series and what "
			    ":overlay lays over it stand here");
	for (size_t i = 0; i < n; i++)
		curve_fini(&col[i].curve);
}

static struct cursor *compare_cursor(struct ui *ui)
{
	return &ui->compare;
}

const struct screen screen_compare = {
	.name = "compare",
	.title = "Compare",
	.page = "iodeck(1)",
	.draw = compare_draw,
	.cursor = compare_cursor,
};
