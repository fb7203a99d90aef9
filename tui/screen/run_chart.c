/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The curve: every series of the shown run, and what is laid over it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/line.h"
#include "tui/fmt.h"
#include "tui/screen/run_parts.h"

#define SERIES_MAX 16
#define POINTS_MAX 64
/* On a linear axis a latency of so many times the lowest leaves the chart by
 * its top edge (an arrow shows it), or the rest would lie flat. */
#define TIMES_LOWEST 12
#define DECADE 10
#define LIMIT_REACH 1.35
#define LIMITS_WIDE 100 /* columns from which all are drawn */

struct curves {
	struct line_series series[SERIES_MAX];
	struct line_point point[SERIES_MAX][POINTS_MAX];
	struct line_mark mark[SERIES_MAX][3];
	char note[SERIES_MAX][24];
	struct line_limit limit[SERIES_MAX];
	char limit_text[SERIES_MAX][64];
	size_t limits;
	size_t count, focus;
	double max[SERIES_MAX]; /* of each series, for shares */
	double x_max, y_min, y_max;
};

static void curves_reach(struct curves *cs, const struct line_point *p)
{
	if (p->x > cs->x_max)
		cs->x_max = p->x;
	if (isfinite(p->y) && p->y > 0 && !(p->y >= cs->y_min))
		cs->y_min = p->y;
	if (!(p->flags & LINE_SATURATED) && !(p->y <= cs->y_max) &&
	    isfinite(p->y))
		cs->y_max = p->y;
}

/* A point that was cut short and measured again later is not drawn twice. */
static bool point_repeated(const struct m_series *s, size_t at)
{
	for (size_t i = at + 1; i < s->points; i++)
		if (s->point[i].phase == s->point[at].phase)
			return true;
	return false;
}

static bool point_shown(const struct m_series *s, size_t at)
{
	const struct m_point *p = &s->point[at];

	if (p->state == POINT_CUT && point_repeated(s, at))
		return false;
	return strcmp(p->kind, "max") != 0 &&
	       (p->state == POINT_RUN || p->state == POINT_DONE ||
		(p->state == POINT_CUT && p->intervals > 0));
}

static void add_marks(struct curves *cs, size_t at, const struct m_series *s)
{
	struct line_series *ls = &cs->series[at];
	struct line_mark *m = cs->mark[at];
	struct series_summary sum;
	struct curve curve;

	if (curve_of_series(s, &curve))
		return;
	curve_summary(&curve, 1000, &sum);
	curve_fini(&curve);
	m[0] = (struct line_mark) { sum.at_70.iops, sum.at_70.latency_us / 1000,
				    "70" };
	m[1] = (struct line_mark) { sum.at_80.iops, sum.at_80.latency_us / 1000,
				    "80" };
	m[2] = (struct line_mark) { sum.peak_iops, sum.peak_latency_us / 1000,
				    "peak" };
	ls->mark = m;
	ls->marks = 3;
}

/* "limit 41.2k (drives, W 5.06)": where it ends, and what follows it. */
static void add_limit(const struct scene *scene, struct curves *cs, size_t at,
		      const struct m_series *s)
{
	struct line_limit *ll = &cs->limit[cs->limits];
	char *text = cs->limit_text[at], a[FMT_MAX], b[FMT_MAX];
	struct series_limit l;
	int n;

	series_limit(scene->model, s, &l);
	if (!isfinite(l.iops))
		return;
	n = snprintf(text, sizeof(cs->limit_text[at]), "limit %s (%s",
		     fmt_k(a, l.iops), l.by_links ? "links" : "drives");
	if (isfinite(l.amp))
		snprintf(text + n, sizeof(cs->limit_text[at]) - (size_t)n,
			 ", W %s%s)", fmt_3(b, l.amp),
			 l.counted ? "" : " expected");
	else if (isfinite(l.ios))
		snprintf(text + n, sizeof(cs->limit_text[at]) - (size_t)n,
			 ", %.3g I/Os a write)", l.ios);
	else
		snprintf(text + n, sizeof(cs->limit_text[at]) - (size_t)n, ")");
	*ll = (struct line_limit) { l.iops, text, (unsigned)at };
	cs->limits++;
}

/* Where there is little room, the newest and the one to hold it against. */
static void limits_thin(struct curves *cs, int w)
{
	const size_t drop =
		w < LIMITS_WIDE && cs->limits > 2 ? cs->limits - 2 : 0;

	cs->limits -= drop;
	memmove(cs->limit, cs->limit + drop, cs->limits * sizeof(*cs->limit));
}

/* What is a little beyond the curves is drawn, what is far an arrow. */
static void limits_reach(struct curves *cs)
{
	const double most = cs->x_max * LIMIT_REACH;

	for (size_t i = 0; i < cs->limits; i++)
		if (cs->limit[i].x < most && cs->limit[i].x > cs->x_max)
			cs->x_max = cs->limit[i].x;
}

static void add_series(struct ui *ui, const struct scene *scene,
		       const struct m_run *run, const struct m_series *s,
		       struct curves *cs)
{
	size_t at = cs->count++;
	struct line_series *ls = &cs->series[at];

	ls->label = s->name;
	if (s->drives > 0) {
		snprintf(cs->note[at], sizeof(cs->note[at]), "%d drive%s",
			 s->drives, s->drives == 1 ? "" : "s");
		ls->note = cs->note[at];
	}
	ls->index = (unsigned)at;
	ls->point = cs->point[at];
	for (size_t i = 0; i < s->points && ls->points < POINTS_MAX; i++) {
		const struct m_point *mp = &s->point[i];
		struct line_point *lp = &cs->point[at][ls->points];
		const struct point_stats *st;

		if (!point_shown(s, i))
			continue;
		st = ui_stats(ui, run, mp);
		if (!st || !isfinite(st->iops))
			continue;
		lp->x = st->iops;
		lp->y = (ui->response ? st->response : st->latency).all.mean /
			1000;
		lp->flags = (mp->state == POINT_RUN ? LINE_GROWING : 0) |
			    (st->saturated ? LINE_SATURATED : 0);
		if (mp->state == POINT_RUN)
			cs->focus = at;
		ls->points++;
		curves_reach(cs, lp);
	}
	if (s->max_iops > cs->x_max)
		cs->x_max = s->max_iops;
	cs->max[at] = s->max_iops > 0 ? s->max_iops : 0;
	if (ui->marks)
		add_marks(cs, at, s);
	add_limit(scene, cs, at, s);
}

static void add_overlay(const struct deck_overlay *o, struct curves *cs)
{
	size_t at = cs->count++;
	struct line_series *ls = &cs->series[at];

	cs->max[at] = o->curve.max_iops > 0 ? o->curve.max_iops : 0;
	ls->label = o->curve.name;
	ls->index = (unsigned)at;
	ls->point = cs->point[at];
	for (size_t i = 0; i < o->curve.points && ls->points < POINTS_MAX;
	     i++) {
		struct line_point *lp = &cs->point[at][ls->points++];
		const struct curve_point *p = &o->curve.point[i];

		*lp = (struct line_point) { p->iops, p->latency_us / 1000, 0 };
		curves_reach(cs, lp);
	}
}

/* Across, each series by its own maximum. */
static void shares(struct curves *cs, size_t at)
{
	struct line_series *ls = &cs->series[at];
	double max = cs->max[at];

	for (size_t i = 0; i < ls->points; i++)
		max = fmax(max, cs->point[at][i].x);
	for (size_t i = 0; i < ls->points && max > 0; i++)
		cs->point[at][i].x *= 100 / max;
	for (size_t i = 0; i < ls->marks && max > 0; i++)
		cs->mark[at][i].x *= 100 / max;
	for (size_t i = 0; i < cs->limits && max > 0; i++)
		if (cs->limit[i].index == at)
			cs->limit[i].x *= 100 / max;
}

static void collect(struct ui *ui, const struct scene *scene, int w,
		    struct curves *cs)
{
	const struct m_run *run = ui_run(ui, scene);

	memset(cs, 0, sizeof(*cs));
	cs->y_min = cs->y_max = NAN;
	cs->focus = SIZE_MAX;
	for (size_t i = 0; run && i < run->series_count; i++)
		if (cs->count < SERIES_MAX)
			add_series(ui, scene, run, &run->series[i], cs);
	for (size_t i = 0; i < scene->overlays; i++)
		if (cs->count < SERIES_MAX)
			add_overlay(&scene->overlay[i], cs);
	limits_thin(cs, w);
	limits_reach(cs);
	for (size_t i = 0; ui->share && i < cs->count; i++)
		shares(cs, i);
}

/* Auto turns to log where a linear axis would lay most points flat, and back
 * only well below that, so that it does not flip to and fro. */
static void scale_choose(struct ui *ui, const struct curves *cs)
{
	double span = cs->y_max / cs->y_min;

	if (ui->scale != SCALE_AUTO)
		ui->log_y = ui->scale == SCALE_LOG;
	else if (span > DECADE)
		ui->log_y = true;
	else if (!(span > DECADE / 2))
		ui->log_y = false;
}

static void axes_fit(struct ui *ui, const struct scene *scene,
		     const struct curves *cs, struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);
	double top = cs->y_max;

	scale_choose(ui, cs);
	if (!ui->log_y && top > cs->y_min * TIMES_LOWEST)
		top = cs->y_min * TIMES_LOWEST;
	for (int i = 0; i < ui->zoom; i++)
		top /= 2;
	/* What grows no more is fitted closely. */
	if (ui->zoom || !run || run->ended_t_us >= 0)
		ui->x.hi = ui->y.hi = 0;
	if (ui->share != ui->share_was)
		ui->x.hi = 0;
	ui->share_was = ui->share;
	axis_fit(&ui->x, false, 0, ui->share ? 100 : cs->x_max * 1.02,
		 (unsigned)(r.w > 120 ? 10 : 6));
	axis_fit(&ui->y, ui->log_y, cs->y_min * 0.95, top * 1.05,
		 (unsigned)(r.h > 20 ? 8 : 5));
}

static void chart_title(const struct ui *ui, const struct scene *scene,
			struct canvas *c, struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);
	const char *title = "no run yet";
	char setup[MODEL_NAME + 8];
	size_t series = 0;
	int x = r.x + 1;

	if (run && run->series_count && run->series[0].workload_title[0])
		title = run->series[0].workload_title;
	else if (run && run->title[0])
		title = run->title;
	else if (scene->overlays)
		title = "laid over";
	x += canvas_text(c, x, r.y, ROLE_AXIS, "ms") + 2;
	x += canvas_fit(c, x, r.y, r.w - 30, ROLE_TITLE, title);
	x += canvas_fit(c, x, r.y, r.x + r.w - x, ROLE_DIM,
			ui->response ? ", response time" : ", service time");
	if (!run || !run_point(run, &series))
		return;
	/* What was changed around the newest series: modelled links and such.
	 */
	if (run->series[series].setup[0]) {
		snprintf(setup, sizeof(setup), "  %c: %s",
			 series_letter((unsigned)series),
			 run->series[series].setup);
		canvas_fit(c, x, r.y, r.x + r.w - x, ROLE_DIM, setup);
	}
}

/* Nothing to draw yet: the axes' lines, and what is going to stand there. */
static void chart_empty(const struct scene *scene, struct canvas *c,
			struct rect r)
{
	const struct m_run *run = model_run(scene->model);
	const char *text = run ? "points appear as they are measured"
			       : "nothing was run yet: choose a workload "
				 "with 3, or type :run SUITE";
	int x = r.x + (r.w - text_columns(text)) / 2, left = r.x + 3;

	canvas_vline(c, left, r.y, r.h - 2, ROLE_AXIS);
	canvas_put(c, left, r.y + r.h - 2, ROLE_AXIS, 0x2514);
	canvas_hline(c, left + 1, r.y + r.h - 2, r.w - 4, ROLE_AXIS);
	canvas_right(c, r.x + r.w, r.y + r.h - 1, ROLE_AXIS, "IOPS");
	canvas_fit(c, x < left + 2 ? left + 2 : x, r.y + r.h / 2 - 1, r.w - 6,
		   ROLE_DIM, text);
}

void run_chart_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	static struct curves cs; /* 50 KB: too large for some stacks */
	struct line_chart chart = { .x = &ui->x,
				    .y = &ui->y,
				    .x_unit = "IOPS" };
	struct rect plot = { r.x, r.y + 1, r.w, r.h - 1 };

	collect(ui, scene, r.w, &cs);
	chart_title(ui, scene, c, r);
	axes_fit(ui, scene, &cs, plot);
	if (ui->share)
		chart.x_unit = "% of max";
	chart.bound = 1;
	chart.bound_label = "1 ms";
	chart.series = cs.series;
	chart.count = cs.count;
	chart.focus = cs.focus;
	chart.limit = cs.limit;
	chart.limits = cs.limits;
	if (isfinite(cs.y_min))
		line_chart_draw(c, plot, &chart);
	else
		chart_empty(scene, c, plot);
}
