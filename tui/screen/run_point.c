/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the run is: the point being measured with its figures, or what else
 * is going on, and how long still.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/chart/line.h"
#include "tui/fmt.h"
#include "tui/screen/run_parts.h"

const struct m_point *run_point(const struct m_run *run, size_t *series)
{
	const struct m_point *newest = NULL;

	for (size_t s = 0; s < run->series_count; s++)
		for (size_t i = 0; i < run->series[s].points; i++) {
			const struct m_point *p = &run->series[s].point[i];

			if (newest && p->phase <= newest->phase)
				continue;
			newest = p;
			*series = s;
		}
	return newest;
}

/* Columns of the panel, by its width: where values end, and whether there is
 * room for every percentile. */
struct grid {
	struct rect r;
	int value; /* right edge of single values */
	bool wide;
};

static void label(struct canvas *c, const struct grid *g, int y,
		  const char *text)
{
	if (y < g->r.h)
		canvas_fit(c, g->r.x + 1, g->r.y + y, 10, ROLE_DIM, text);
}

static void field(struct canvas *c, const struct grid *g, int y,
		  const char *name, const char *value, const char *unit)
{
	if (y >= g->r.h)
		return;
	label(c, g, y, name);
	canvas_right(c, g->r.x + g->value, g->r.y + y, ROLE_TEXT, value);
	canvas_text(c, g->r.x + g->value + 1, g->r.y + y, ROLE_DIM, unit);
}

static void point_title(const struct m_run *run, const struct m_point *p,
			size_t series, int w, char *text, size_t len)
{
	char letter = series_letter((unsigned)series), what[32], brief[16];
	size_t total = 0, at = 0;

	for (size_t i = 0; i < run->series[series].points; i++) {
		total += strcmp(run->series[series].point[i].kind, "max") != 0;
		at = &run->series[series].point[i] == p ? total : at;
	}
	if (!strcmp(p->kind, "max")) {
		snprintf(what, sizeof(what), "finding max");
		snprintf(brief, sizeof(brief), "max");
	} else if (isfinite(p->percent)) {
		snprintf(what, sizeof(what), "%.0f %% of max", p->percent);
		snprintf(brief, sizeof(brief), "%.0f %%", p->percent);
	} else {
		snprintf(what, sizeof(what), "point %zu", at);
		snprintf(brief, sizeof(brief), "%zu", at);
	}
	snprintf(text, len, "%c %s  %s", letter, run->series[series].name,
		 what);
	if (text_columns(text) > w - 4)
		snprintf(text, len, "%c %s  %s", letter,
			 run->series[series].name, brief);
	/* Where not all fits, the letter stands for the name. */
	if (text_columns(text) > w - 4)
		snprintf(text, len, "%c  %s", letter, what);
}

static void latency_row(struct canvas *c, const struct grid *g, int y,
			const char *name, const struct lat_stats *l)
{
	const double narrow[] = { l->p50, l->p99, l->p99_9 };
	const double wide[] = { l->mean, l->p50,   l->p95,
				l->p99,  l->p99_9, l->max };
	const double *v = g->wide ? wide : narrow;
	size_t n = g->wide ? array_len(wide) : array_len(narrow);
	char a[FMT_MAX];

	if (y >= g->r.h)
		return;
	label(c, g, y, name);
	for (size_t i = 0; i < n; i++)
		canvas_right(c, g->r.x + 13 + 6 * (int)i + (int)g->wide * 4,
			     g->r.y + y, ROLE_TEXT, fmt_ms(a, v[i]));
}

static void latency_heads(struct canvas *c, const struct grid *g, int y)
{
	static const char *const narrow[] = { "p50", "p99", "p99.9" };
	static const char *const wide[] = { "mean", "p50",   "p95",
					    "p99",  "p99.9", "max" };
	const char *const *v = g->wide ? wide : narrow;
	size_t n = g->wide ? array_len(wide) : array_len(narrow);

	if (y >= g->r.h)
		return;
	label(c, g, y, "ms");
	for (size_t i = 0; i < n; i++)
		canvas_right(c, g->r.x + 13 + 6 * (int)i + (int)g->wide * 4,
			     g->r.y + y, ROLE_DIM, v[i]);
}

/* Returns the rows used. */
static int draw_latency(struct canvas *c, const struct grid *g, int y,
			const struct point_stats *st)
{
	int from = y;

	latency_heads(c, g, y++);
	latency_row(c, g, y++, g->wide ? "service" : "svc", &st->latency.all);
	if (g->wide) {
		latency_row(c, g, y++, "  reads", &st->latency.read);
		latency_row(c, g, y++, "  writes", &st->latency.write);
	}
	if (!st->saturated) {
		latency_row(c, g, y++, g->wide ? "response" : "resp",
			    &st->response.all);
	} else if (y < g->r.h) {
		label(c, g, y, g->wide ? "response" : "resp");
		canvas_text(c, g->r.x + (g->wide ? 13 : 9), g->r.y + y++,
			    ROLE_WARN,
			    g->wide ? "growing: saturated" : "growing");
	}
	return y - from;
}

/* What moves: IOPS, latency, or both by less than their trend. */
static void draw_unsteady(struct canvas *c, int x, int y,
			  const struct point_stats *st)
{
	bool ms = st->latency_ci > st->iops_ci;
	double ci = ms ? st->latency_ci : st->iops_ci;

	canvas_text(c, x, y, ROLE_WARN, "no");
	if (ci < STEADY_CI)
		canvas_text(c, x + 5, y, ROLE_TEXT, "drifts");
	else
		canvas_printf(c, x + 5, y, ROLE_TEXT, "%s\xc2\xb1%.1f %%",
			      ms ? "ms " : "", ci * 100);
}

static void draw_steady(struct canvas *c, const struct grid *g, int y,
			const struct m_point *p, const struct point_stats *st)
{
	int x = g->r.x + (g->wide ? 14 : 9);

	if (y >= g->r.h)
		return;
	y += g->r.y;
	label(c, g, y - g->r.y, "steady");
	if (p->state == POINT_WARM)
		canvas_text(c, x, y, ROLE_DIM, "warming up");
	else if (!isfinite(st->iops_ci))
		canvas_text(c, x, y, ROLE_DIM, "-");
	else if (st->steady)
		canvas_printf(c, x + canvas_text(c, x, y, ROLE_OK, "yes"), y,
			      ROLE_TEXT, "  \xc2\xb1%.1f %%",
			      st->iops_ci * 100);
	else
		draw_unsteady(c, x, y, st);
}

static void draw_left(const struct scene *scene, struct canvas *c,
		      const struct grid *g, int y, const struct m_run *run,
		      const struct m_point *p)
{
	double length = (double)(p->warmup_us + p->length_us) / 1e6;
	int64_t now = p->paused_t_us ? p->paused_t_us : scene->now_us;
	double gone = (double)(now - p->begun_t_us - p->held_us) / 1e6;
	int x = g->r.x + (g->wide ? 14 : 9);
	char a[FMT_MAX], b[FMT_MAX];

	if (model_run_over(run))
		return;
	label(c, g, y, "left");
	if (y < g->r.h && (p->state == POINT_DONE || p->state == POINT_CUT))
		canvas_text(c, x, g->r.y + y, ROLE_DIM, "done");
	else if (y < g->r.h && length > 0)
		canvas_printf(c, x, g->r.y + y, ROLE_TEXT, "%s of %s",
			      fmt_span(a, fmax(0, length - gone)),
			      fmt_span(b, length));
	if (++y >= g->r.h)
		return;
	label(c, g, y, "run");
	canvas_printf(c, x, g->r.y + y, ROLE_TEXT, "%s, %s left",
		      fmt_pct(a, run->done_share), fmt_span(b, run->left_s));
	if (g->wide)
		bar_draw(c, x + 20, g->r.y + y, g->r.w - 22 - x + g->r.x,
			 run->done_share, ROLE_BAR);
}

static int draw_rates(struct canvas *c, const struct grid *g,
		      const struct m_point *p, const struct point_stats *st,
		      double newest)
{
	char a[FMT_MAX], b[FMT_MAX], rw[2 * FMT_MAX + 2];
	int y = 0;

	if (isfinite(p->asked_iops))
		field(c, g, y++, "asked", fmt_count(a, p->asked_iops), "IOPS");
	else
		field(c, g, y++, "in flight",
		      fmt_count(a, (double)p->outstanding), "I/Os");
	/* Before the first counted interval: what goes through just now. */
	if (isfinite(st->iops))
		field(c, g, y++, "achieved", fmt_count(a, st->iops), "IOPS");
	else
		field(c, g, y++, "now", fmt_count(a, newest), "IOPS");
	if (st->saturated && g->wide)
		canvas_text(c, g->r.x + g->value + 6, g->r.y + y - 1, ROLE_WARN,
			    "saturated");
	snprintf(rw, sizeof(rw), "%s / %s", fmt_k(a, st->read_iops),
		 fmt_k(b, st->write_iops));
	field(c, g, y++, "r/w", rw, "");
	field(c, g, y++, "through", fmt_count(a, st->mb_s), "MB/s");
	return y;
}

/* ---- the search for the maximum ------------------------------------------ */

/* Means over the newest intervals of the search, a second of them. */
struct level {
	double iops, read_iops, write_iops, mb_s, mean_us, p99_us;
	int64_t inflight;
};

#define LEVEL_US 1000000

static struct level level_now(const struct model *m, const struct m_point *p)
{
	struct level l = { NAN, NAN, NAN, NAN, NAN, NAN, -1 };
	const struct m_strip *last = NULL, *s;
	double n = 0, sum[4] = { 0 };

	for (size_t i = m->strips; i-- > 0; n++) {
		s = &m->strip[i];
		last = last ? last : s;
		if (s->t_us <= p->begun_t_us || s->inflight != last->inflight ||
		    last->t_us - s->t_us >= LEVEL_US)
			break;
		sum[0] += s->iops;
		sum[1] += s->read_iops;
		sum[2] += s->write_iops;
		sum[3] += s->bytes_s;
	}
	if (n > 0)
		l = (struct level) { sum[0] / n,    sum[1] / n,
				     sum[2] / n,    sum[3] / n / 1e6,
				     last->mean_us, last->p99_us,
				     last->inflight };
	return l;
}

static void draw_level(struct canvas *c, const struct grid *g,
		       const struct level *l)
{
	char a[FMT_MAX], b[FMT_MAX], rw[2 * FMT_MAX + 4];
	int y = 0;

	field(c, g, y++, "in flight",
	      fmt_count(a, l->inflight < 0 ? NAN : (double)l->inflight),
	      "I/Os");
	field(c, g, y++, "now", fmt_count(a, l->iops), "IOPS");
	snprintf(rw, sizeof(rw), "%s / %s", fmt_k(a, l->read_iops),
		 fmt_k(b, l->write_iops));
	field(c, g, y++, "r/w", rw, "");
	field(c, g, y++, "through", fmt_count(a, l->mb_s), "MB/s");
	y += g->r.h > 11;
	field(c, g, y++, "mean", fmt_ms(a, l->mean_us), "ms");
	field(c, g, y++, "p99", fmt_ms(a, l->p99_us), "ms");
}

/* A search is no measurement: its level now, or what it found. */
static void draw_search(const struct scene *scene, struct canvas *c,
			struct rect r, const struct m_run *run,
			const struct m_point *p, size_t series)
{
	const struct m_series *se = &run->series[series];
	struct grid g = { r, r.w >= 50 ? 24 : 20, r.w >= 50 };
	const char *why = "search: doubles what is in flight until the IOPS "
			  "stop growing; not counted";
	int y = r.h > 11 ? 8 : 6;
	char a[FMT_MAX], b[FMT_MAX];
	struct level level;

	if (p->state == POINT_DONE) {
		field(c, &g, 0, "found", fmt_count(a, se->max_iops), "IOPS");
		field(c, &g, 1, "in flight",
		      fmt_count(a, (double)se->max_outstanding), "I/Os");
	} else {
		level = level_now(scene->model, p);
		draw_level(c, &g, &level);
		if (y + 1 < r.h)
			canvas_wrap(c,
				    (struct rect) { r.x + 1, r.y + y, r.w - 2,
						    r.h - y - 1 },
				    ROLE_DIM, why);
	}
	if (model_run_over(run))
		return;
	label(c, &g, r.h - 1, "run");
	canvas_printf(c, r.x + (g.wide ? 14 : 9), r.y + r.h - 1, ROLE_TEXT,
		      "%s, %s left", fmt_pct(a, run->done_share),
		      fmt_span(b, run->left_s));
}

static void draw_figures(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect r,
			 const struct m_run *run, const struct m_point *p)
{
	const struct point_stats *st = ui_stats(ui, run, p);
	const struct model *m = scene->model;
	struct grid g = { r, r.w >= 50 ? 24 : 20, r.w >= 50 };
	char a[FMT_MAX];
	int y;

	if (!st)
		return;
	y = draw_rates(c, &g, p, st,
		       m->strips ? m->strip[m->strips - 1].iops : NAN);
	y += r.h > 11;
	y += draw_latency(c, &g, y, st);
	y += r.h > 11;
	draw_steady(c, &g, y++, p, st);
	draw_left(scene, c, &g, y, run, p);
	y += 2;
	if (st->errors && y < r.h)
		canvas_printf(c, r.x + 1, r.y + y, ROLE_BAD, "%s I/O errors",
			      fmt_count(a, (double)st->errors));
}

/* ---- phases that measure nothing ----------------------------------------- */

static const struct {
	const char *kind, *title, *why;
} phase_text[] = {
	{ "prefill", "prefill",
	  "writes every block once, so that no read "
	  "hits a hole" },
	{ "rest", "rest", "lets caches and drives settle" },
	{ "fault", "fault", "a fault is being made" },
	{ "link", "link", "the links are being set" },
	{ "drive", "drives", "the drives are being set" },
	{ "wait", "wait", "waits for a vDisk to reach its state" },
	{ "note", "note", "" },
};

static void draw_phase(const struct scene *scene, struct canvas *c,
		       struct rect r, const struct m_run *run)
{
	const struct m_phase *ph = &run->phase;
	const char *title = ph->kind, *why = "";
	double share = NAN, left = NAN;
	char a[FMT_MAX], b[FMT_MAX], head[64];

	for (size_t i = 0; i < array_len(phase_text); i++)
		if (!strcmp(ph->kind, phase_text[i].kind)) {
			title = phase_text[i].title;
			why = phase_text[i].why;
		}
	snprintf(head, sizeof(head), "step %d of %d  %.20s", ph->phase + 1,
		 run->phases, title);
	r = canvas_head(c, r, head);
	if (ph->total_bytes > 0)
		share = (double)ph->done_bytes / (double)ph->total_bytes;
	else if (ph->length_us > 0)
		share = fmin(1, (double)(scene->now_us - ph->begun_t_us) /
					(double)ph->length_us);
	if (ph->length_us > 0)
		left = (double)ph->length_us / 1e6 * (1 - share);
	bar_draw(c, r.x + 1, r.y + 1, r.w - 8, share, ROLE_BAR);
	canvas_right(c, r.x + r.w - 1, r.y + 1, ROLE_TEXT, fmt_pct(a, share));
	if (ph->total_bytes > 0)
		canvas_printf(c, r.x + 1, r.y + 2, ROLE_TEXT, "%s of %s",
			      fmt_bytes(a, (double)ph->done_bytes),
			      fmt_bytes(b, (double)ph->total_bytes));
	else if (isfinite(left))
		canvas_printf(c, r.x + 1, r.y + 2, ROLE_TEXT, "%s left",
			      fmt_span(a, left));
	canvas_wrap(c, (struct rect) { r.x + 1, r.y + 4, r.w - 2, 3 }, ROLE_DIM,
		    why);
	canvas_printf(c, r.x + 1, r.y + r.h - 1, ROLE_DIM, "run  %s  %s left",
		      fmt_pct(a, run->done_share), fmt_span(b, run->left_s));
}

static bool phase_measures(const struct m_run *run)
{
	const char *k = run->phase.kind;

	return model_run_over(run) || run->phase.phase < 0 ||
	       !strcmp(k, "max") || !strcmp(k, "point") || !strcmp(k, "ramp");
}

static unsigned run_state_role(const char *state)
{
	return !strcmp(state, "failed") ? ROLE_BAD
	       : !strcmp(state, "paused") || !strcmp(state, "stopping") ||
			       !strcmp(state, "stopped")
		       ? ROLE_WARN
		       : ROLE_OK;
}

void run_point_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);
	const struct m_point *p;
	size_t series = 0;
	char title[128];

	canvas_vline(c, r.x, r.y, r.h, ROLE_AXIS);
	r.x++;
	r.w--;
	if (!run) {
		canvas_head(c, r, "no run");
		return;
	}
	if (strcmp(run->state, "running") != 0 && r.h > 2) {
		canvas_printf(c, r.x + 1, r.y + r.h - 1,
			      run_state_role(run->state) | STYLE_BOLD, "%.20s",
			      run->state);
		r.h--;
	}
	if (!phase_measures(run)) {
		draw_phase(scene, c, r, run);
		return;
	}
	p = run_point(run, &series);
	if (!p) {
		canvas_head(c, r, run->state);
		return;
	}
	point_title(run, p, series, r.w, title, sizeof(title));
	r = canvas_head(c, r, title);
	if (!strcmp(p->kind, "max"))
		draw_search(scene, c, r, run, p, series);
	else
		draw_figures(ui, scene, c, r, run, p);
}
