/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compare: the curves over each other, and their readings side by side. The
 * first column is what the others are compared with; Enter chooses it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/chart/line.h"
#include "tui/fmt.h"
#include "tui/screen/screen.h"

#define COLUMNS 12

struct column {
	char name[MODEL_NAME];
	int drives; /* it lies on; -1 not known */
	struct series_summary sum;
};

static void column_add(struct column *col, size_t *n, const char *name,
		       int drives, const struct curve *curve)
{
	if (*n == COLUMNS)
		return;
	snprintf(col[*n].name, sizeof(col[*n].name), "%s", name);
	col[*n].drives = drives;
	curve_summary(curve, 1000, &col[*n].sum);
	(*n)++;
}

static void overlay_add(struct column *col, size_t *n,
			const struct deck_overlay *o)
{
	const struct curve curve = { .point = o->point,
				     .points = o->points,
				     .max_iops = o->max_iops };

	column_add(col, n, o->name, -1, &curve);
}

static size_t columns_fill(struct ui *ui, const struct scene *scene,
			   struct column *col)
{
	const struct m_run *run = ui_run(ui, scene);
	struct curve curve;
	size_t n = 0;

	for (size_t i = 0; run && i < run->series_count; i++) {
		if (curve_of_series(&run->series[i], &curve))
			continue;
		column_add(col, &n, run->series[i].name, run->series[i].drives,
			   &curve);
		curve_fini(&curve);
	}
	for (size_t i = 0; i < scene->overlays; i++)
		overlay_add(col, &n, &scene->overlay[i]);
	return n;
}

static const struct {
	const char *name;
	size_t offset;
	bool ms; /* lower is better */
} reading[] = {
	{ "peak IOPS", offsetof(struct series_summary, peak_iops), false },
	{ "latency at peak, ms",
	  offsetof(struct series_summary, peak_latency_us), true },
	{ "IOPS at 70 %", offsetof(struct series_summary, at_70.iops), false },
	{ "latency at 70 %, ms",
	  offsetof(struct series_summary, at_70.latency_us), true },
	{ "IOPS at 80 %", offsetof(struct series_summary, at_80.iops), false },
	{ "latency at 80 %, ms",
	  offsetof(struct series_summary, at_80.latency_us), true },
	{ "IOPS under 1 ms", offsetof(struct series_summary, under.iops),
	  false },
};

static double value_of(const struct series_summary *sum, size_t row)
{
	double v;

	memcpy(&v, (const char *)sum + reading[row].offset, sizeof(v));
	return v;
}

/* How sure a reading is: drawn from neighbours, or only "at least". */
static const char *value_note(const struct series_summary *sum, size_t row)
{
	const struct reading *r = row < 4   ? &sum->at_70
				  : row < 6 ? &sum->at_80
					    : &sum->under;

	if (row < 2)
		return sum->peak_open ? ">" : "";
	if (row == 6 && sum->under_open)
		return ">";
	return r->interpolated ? "*" : "";
}

static void draw_value(struct canvas *c, int right, int y,
		       const struct series_summary *sum, size_t row)
{
	const char *note = value_note(sum, row);
	double v = value_of(sum, row);
	char a[FMT_MAX];

	canvas_right(c, right, y, ROLE_TEXT,
		     reading[row].ms ? fmt_ms(a, v) : fmt_count(a, v));
	if (isfinite(v))
		canvas_text(c, right, y, ROLE_DIM, note);
}

/* What was measured on two and on six drives is not to be read as alike. */
static void drives_draw(struct canvas *c, struct rect r, int y,
			const struct column *col, size_t n, int first, int w)
{
	char a[FMT_MAX];

	if (y >= r.y + r.h)
		return;
	canvas_text(c, r.x + 1, y, ROLE_DIM, "drives it lies on");
	for (size_t i = 0; i < n; i++)
		canvas_right(
			c, first + (int)i * w + 10, y, ROLE_TEXT,
			fmt_count(a, col[i].drives < 0 ? NAN : col[i].drives));
}

static void draw_change(struct canvas *c, int x, int y, double from, double to,
			bool ms)
{
	double change = to / from - 1;
	unsigned role = ROLE_DIM;
	char text[FMT_MAX];

	if (!isfinite(change))
		return;
	if (fabs(change) >= 0.02)
		role = (change > 0) != ms ? ROLE_OK : ROLE_WARN;
	snprintf(text, sizeof(text), "%+.0f %%", change * 100);
	canvas_right(c, x, y, role, text);
}

static void table_draw(struct canvas *c, struct rect r,
		       const struct column *col, size_t n, size_t base)
{
	int first = r.x + 23, w = 19;
	size_t fit = r.w > first + w ? (size_t)((r.w - first) / w) : 1;

	n = n > fit ? fit : n;
	for (size_t i = 0; i < n; i++) {
		int x = first + (int)i * w;

		canvas_printf(c, x + 1, r.y,
			      series_role((unsigned)i) | STYLE_BOLD, "%c",
			      series_letter((unsigned)i));
		canvas_fit(c,
			   x + 3 +
				   canvas_fit(c, x + 3, r.y, w - 10, ROLE_TITLE,
					      col[i].name),
			   r.y, 7, ROLE_DIM, i == base ? " (base)" : "");
	}
	for (size_t row = 0; row < array_len(reading); row++) {
		int y = r.y + 1 + (int)row;

		if (y >= r.y + r.h)
			return;
		canvas_text(c, r.x + 1, y, ROLE_DIM, reading[row].name);
		for (size_t i = 0; i < n; i++) {
			int x = first + (int)i * w;
			double v = value_of(&col[i].sum, row);

			draw_value(c, x + 10, y, &col[i].sum, row);
			if (i != base)
				draw_change(c, x + 18, y,
					    value_of(&col[base].sum, row), v,
					    reading[row].ms);
		}
	}
	drives_draw(c, r, r.y + 1 + (int)array_len(reading), col, n, first, w);
}

/* Too many to stand side by side: a line a series, the change of its peak. */
static void lines_draw(struct canvas *c, struct rect r,
		       const struct column *col, size_t n, size_t base)
{
	static const char *const head[] = { "peak",    "ms", "at 70 %", "ms",
					    "at 80 %", "ms", "< 1 ms" };
	int name = r.w >= 100 ? 30 : 20;

	canvas_right(c, r.x + name, r.y, ROLE_DIM, "drives");
	for (size_t j = 0; j < array_len(head); j++)
		canvas_right(c, r.x + name + 8 * (int)(j + 1), r.y, ROLE_DIM,
			     head[j]);
	for (size_t i = 0; i < n && (int)i + 1 < r.h; i++) {
		int y = r.y + 1 + (int)i;
		char a[FMT_MAX];

		canvas_printf(c, r.x + 1, y,
			      series_role((unsigned)i) | STYLE_BOLD, "%c",
			      series_letter((unsigned)i));
		canvas_fit(c, r.x + 3, y, name - 6,
			   i == base ? ROLE_TITLE : ROLE_TEXT, col[i].name);
		if (col[i].drives > 0)
			canvas_right(c, r.x + name, y, ROLE_DIM,
				     fmt_count(a, col[i].drives));
		for (size_t j = 0; j < array_len(head); j++) {
			double v = value_of(&col[i].sum, j);

			canvas_right(
				c, r.x + name + 8 * (int)(j + 1), y, ROLE_TEXT,
				reading[j].ms ? fmt_ms(a, v) : fmt_k(a, v));
		}
		if (i != base && r.w >= 100)
			draw_change(c, r.x + name + 66, y,
				    value_of(&col[base].sum, 0),
				    value_of(&col[i].sum, 0), false);
	}
}

static void compare_draw(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect body)
{
	struct column col[COLUMNS];
	size_t n = columns_fill(ui, scene, col);
	bool lines = n > (size_t)((body.w - 23) / 19);
	int rows = (lines ? (int)n : (int)array_len(reading) + 1) + 2;
	struct rect table, chart = body;

	rows = rows > body.h / 2 + 1 ? body.h / 2 + 1 : rows;
	chart.h -= rows;
	table = (struct rect) { body.x, body.y + chart.h, body.w, rows };
	cursor_fit(&ui->compare, (int)n, 1);
	run_chart_draw(ui, scene, c, chart);
	table = canvas_head(c, table, "readings");
	if (!n)
		canvas_text(c, table.x + 1, table.y, ROLE_DIM,
			    "nothing to compare: a run's series and what "
			    ":overlay lays over it stand here");
	else if (lines)
		lines_draw(c, table, col, n, (size_t)ui->compare.at);
	else
		table_draw(c, table, col, n, (size_t)ui->compare.at);
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
