/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The run over time: strips of IOPS and latency, the heat map, the table of
 * what each series came to.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/heat.h"
#include "tui/chart/line.h"
#include "tui/chart/spark.h"
#include "tui/fmt.h"
#include "tui/screen/vdisk_parts.h"

#define COLUMNS_MAX 512

/*
 * Intervals in columns: `per` of them to one, counted from the start of the
 * session so that columns move only when a new one begins.
 */
struct columns {
	double iops[COLUMNS_MAX], p99[COLUMNS_MAX], mean[COLUMNS_MAX];
	uint32_t heat[COLUMNS_MAX * MODEL_HEAT_ROWS];
	size_t count;
	double iops_max, p99_max;
};

static void column_add(struct columns *cs, size_t at, const struct m_strip *s)
{
	cs->iops[at] = fmax(isfinite(cs->iops[at]) ? cs->iops[at] : 0, s->iops);
	if (!(cs->p99[at] >= s->p99_us))
		cs->p99[at] = s->p99_us;
	cs->mean[at] = s->mean_us;
	for (size_t i = 0; i < MODEL_HEAT_ROWS; i++)
		cs->heat[at * MODEL_HEAT_ROWS + i] += s->heat[i];
}

static int64_t column_length_us(const struct model *m)
{
	int64_t len = 1000000, n = (int64_t)m->strips;

	if (n > 1) {
		int64_t all = m->strip[n - 1].t_us - m->strip[0].t_us;

		while (len > 100000 && all / (n - 1) < len * 3 / 4)
			len /= 2;
	}
	return len < 500000 ? 500000 : len;
}

void time_axis(const struct model *m, int64_t now_us, int columns,
	       struct time_axis *axis)
{
	const int64_t len = column_length_us(m);
	int64_t last = now_us / len - 2;

	/* Columns move as samples come, and between runs with the clock. */
	if (m->strips && m->strip[m->strips - 1].t_us / len >= last)
		last = m->strip[m->strips - 1].t_us / len;
	*axis = (struct time_axis) { .len_us = len,
				     .first = last - columns + 1,
				     .count = columns };
}

static void columns_fill(const struct model *m, int64_t now_us, size_t want,
			 struct columns *cs)
{
	struct time_axis axis;

	memset(cs, 0, sizeof(*cs));
	cs->count = want > COLUMNS_MAX ? COLUMNS_MAX : want;
	for (size_t i = 0; i < cs->count; i++)
		cs->iops[i] = cs->p99[i] = cs->mean[i] = NAN;
	if (!m->strips)
		return;
	time_axis(m, now_us, (int)cs->count, &axis);
	for (size_t i = 0; i < m->strips; i++) {
		int64_t at = m->strip[i].t_us / axis.len_us - axis.first;

		if (at >= 0 && at < (int64_t)cs->count)
			column_add(cs, (size_t)at, &m->strip[i]);
	}
	for (size_t i = 0; i < cs->count; i++) {
		cs->iops_max = fmax(cs->iops_max, cs->iops[i]);
		cs->p99_max = fmax(cs->p99_max, cs->p99[i]);
	}
}

static void strip_line(struct canvas *c, struct rect r, const char *label,
		       const char *of, const double *value, size_t count,
		       double max, unsigned style, const char *text)
{
	int w = r.w - 15 - (int)strlen(of);

	canvas_text(c, r.x, r.y, ROLE_DIM, label);
	spark_draw(c, (struct rect) { r.x + 5, r.y, w, r.h },
		   value + (count > (size_t)w ? count - (size_t)w : 0),
		   count > (size_t)w ? (size_t)w : count, max, style);
	canvas_text(c, r.x + 6 + w, r.y, ROLE_DIM, "max");
	canvas_right(c, r.x + 15 + w, r.y, ROLE_TEXT, text);
	canvas_text(c, r.x + 15 + w, r.y, ROLE_DIM, of);
}

static void strip_small(const struct columns *cs, struct canvas *c,
			struct rect r)
{
	struct rect left = { r.x + 1, r.y, r.w / 2 - 2, 1 };
	struct rect right = { r.x + r.w / 2, r.y, r.w - r.w / 2, 1 };
	char a[FMT_MAX];

	strip_line(c, left, "IOPS", "", cs->iops, cs->count, cs->iops_max,
		   ROLE_BAR, fmt_k(a, cs->iops_max > 0 ? cs->iops_max : NAN));
	strip_line(c, right, "p99", " ms", cs->p99, cs->count, cs->p99_max,
		   ROLE_S4, fmt_ms(a, cs->p99_max > 0 ? cs->p99_max : NAN));
}

static void strip_tall(const struct columns *cs, struct canvas *c,
		       struct rect r)
{
	struct rect in = canvas_head(c, r, "IOPS, and p99 in ms, over time");
	int top = in.h - in.h / 3, low = in.h / 3;
	struct axis iops = { 0 }, p99 = { 0 };
	char a[FMT_MAX];

	axis_fit(&iops, false, 0, cs->iops_max, 4);
	axis_fit(&p99, false, 0, cs->p99_max / 1000, 4);
	canvas_right(c, in.x + 6, in.y, ROLE_AXIS, fmt_tick(a, iops.hi));
	canvas_right(c, in.x + 6, in.y + top, ROLE_AXIS, fmt_tick(a, p99.hi));
	canvas_vline(c, in.x + 6, in.y, in.h, ROLE_AXIS);
	spark_draw(c, (struct rect) { in.x + 7, in.y, in.w - 7, top }, cs->iops,
		   cs->count, iops.hi, ROLE_BAR);
	spark_draw(c, (struct rect) { in.x + 7, in.y + top, in.w - 7, low },
		   cs->p99, cs->count, p99.hi * 1000, ROLE_S4);
}

const struct m_vdisk *run_figures(const struct scene *scene,
				  const struct m_run *run)
{
	const struct m_vdisk *v = NULL;
	size_t series;

	if (run && run_point(run, &series))
		v = model_vdisk(scene->model, run->series[series].vdisk);
	return v && vdisk_is_log(v) && v->strips ? v : NULL;
}

void run_figures_draw(struct ui *ui, const struct scene *scene,
		      struct canvas *c, struct rect r)
{
	const struct m_vdisk *v = run_figures(scene, ui_run(ui, scene));
	char title[MODEL_NAME + 16];

	snprintf(title, sizeof(title), "%s over time", v->name);
	vdisk_time_draw(scene, c, canvas_head(c, r, title), v);
}

void run_strip_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	const struct m_vdisk *v = run_figures(scene, ui_run(ui, scene));
	static struct columns cs;

	if (r.h < 1 || r.w < 30)
		return;
	if (r.h == 1 && ui->figures && v) {
		vdisk_time_line(scene, c, r, v);
		return;
	}
	columns_fill(scene->model, scene->now_us,
		     r.h > 1 ? (size_t)r.w - 7 : (size_t)r.w / 2 - 20, &cs);
	if (r.h > 1)
		strip_tall(&cs, c, r);
	else
		strip_small(&cs, c, r);
}

static const char *heat_label(size_t row, char *buf)
{
	if (row < 10)
		snprintf(buf, FMT_MAX, "%u us", 1u << row);
	else if (row < 20)
		snprintf(buf, FMT_MAX, "%u ms", 1u << (row - 10));
	else
		snprintf(buf, FMT_MAX, "%u s", 1u << (row - 20));
	return buf;
}

void run_heat_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		   struct rect r)
{
	static struct columns cs;
	static double line[COLUMNS_MAX];
	struct heat heat = { .rows = MODEL_HEAT_ROWS, .label = heat_label };

	(void)ui;
	if (r.h < 4 || r.w < 30)
		return;
	r = canvas_head(c, r, "latency of every I/O over time, and its mean");
	columns_fill(scene->model, scene->now_us, (size_t)r.w - 7, &cs);
	for (size_t i = 0; i < cs.count; i++)
		line[i] = cs.mean[i] > 0 ? log2(cs.mean[i]) : NAN;
	heat.count = cs.heat;
	heat.columns = cs.count;
	heat.line = line;
	heat_draw(c, r, &heat);
}

/* ---- what the series came to --------------------------------------------- */

static void table_row(struct canvas *c, struct rect r, int y, size_t index,
		      const struct m_series *s)
{
	struct series_summary sum;
	struct curve curve;
	char a[FMT_MAX];

	canvas_printf(c, r.x + 1, y, series_role((unsigned)index) | STYLE_BOLD,
		      "%c", series_letter((unsigned)index));
	canvas_fit(c, r.x + 3, y, 12, ROLE_TEXT, s->name);
	canvas_right(c, r.x + 18, y, ROLE_DIM,
		     fmt_count(a, s->drives < 0 ? NAN : s->drives));
	if (curve_of_series(s, &curve))
		return;
	curve_summary(&curve, 1000, &sum);
	fmt_k(a, sum.peak_iops);
	canvas_right(c, r.x + 26, y, ROLE_TEXT, a);
	if (sum.peak_open) /* was never asked for all it can do */
		canvas_text(c, r.x + 25 - (int)strlen(a), y, ROLE_DIM, ">");
	canvas_right(c, r.x + 32, y, ROLE_TEXT, fmt_ms(a, sum.peak_latency_us));
	canvas_right(c, r.x + 40, y, ROLE_TEXT, fmt_k(a, sum.at_70.iops));
	canvas_right(c, r.x + 46, y, ROLE_TEXT,
		     fmt_ms(a, sum.at_70.latency_us));
	canvas_right(c, r.x + 54, y, ROLE_TEXT, fmt_k(a, sum.under.iops));
	curve_fini(&curve);
}

void run_table_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);

	if (r.h < 3 || !run)
		return;
	canvas_vline(c, r.x, r.y, r.h, ROLE_AXIS);
	r.x++;
	r.w--;
	r = canvas_head(c, r, "series so far");
	canvas_right(c, r.x + 18, r.y, ROLE_DIM, "drives");
	canvas_right(c, r.x + 26, r.y, ROLE_DIM, "peak");
	canvas_right(c, r.x + 32, r.y, ROLE_DIM, "ms");
	canvas_right(c, r.x + 40, r.y, ROLE_DIM, "at 70 %");
	canvas_right(c, r.x + 46, r.y, ROLE_DIM, "ms");
	canvas_right(c, r.x + 54, r.y, ROLE_DIM, "< 1 ms");
	for (size_t i = 0; i < run->series_count && (int)i + 1 < r.h; i++)
		table_row(c, r, r.y + 1 + (int)i, i, &run->series[i]);
}
