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

static bool run_over(const struct m_run *run)
{
	return !strcmp(run->state, "done") || !strcmp(run->state, "failed") ||
	       !strcmp(run->state, "stopped");
}

/* Label left, value right-aligned at a column, unit behind. */
static void field(struct canvas *c, struct rect r, int y, const char *label,
		  const char *value, const char *unit)
{
	if (y >= r.h)
		return;
	canvas_text(c, r.x + 1, r.y + y, ROLE_DIM, label);
	canvas_right(c, r.x + 19, r.y + y, ROLE_TEXT, value);
	canvas_text(c, r.x + 20, r.y + y, ROLE_DIM, unit);
}

static void point_title(const struct m_run *run, const struct m_point *p,
			size_t series, char *text, size_t len)
{
	const char *name = run->series[series].name;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < run->series[series].points; i++) {
		total += strcmp(run->series[series].point[i].kind, "max") != 0;
		at = &run->series[series].point[i] == p ? total : at;
	}
	if (!strcmp(p->kind, "max"))
		snprintf(text, len, "%c %.20s  finding max",
			 series_letter((unsigned)series), name);
	else if (isfinite(p->percent))
		snprintf(text, len, "%c %.20s  %.0f %% of max",
			 series_letter((unsigned)series), name, p->percent);
	else
		snprintf(text, len, "%c %.20s  point %zu",
			 series_letter((unsigned)series), name, at);
}

static void draw_latency_row(struct canvas *c, struct rect r, int y,
			     const char *label, double p50, double p99,
			     double p999)
{
	char a[FMT_MAX], b[FMT_MAX], d[FMT_MAX];

	if (y >= r.h)
		return;
	canvas_text(c, r.x + 1, r.y + y, ROLE_DIM, label);
	canvas_right(c, r.x + 12, r.y + y, ROLE_TEXT, fmt_ms(a, p50));
	canvas_right(c, r.x + 18, r.y + y, ROLE_TEXT, fmt_ms(b, p99));
	canvas_right(c, r.x + 24, r.y + y, ROLE_TEXT, fmt_ms(d, p999));
}

static void draw_latency(struct canvas *c, struct rect r, int y,
			 const struct point_stats *st)
{
	const struct lat_stats *svc = &st->latency.all;
	const struct lat_stats *rsp = &st->response.all;

	if (y >= r.h)
		return;
	canvas_text(c, r.x + 1, r.y + y, ROLE_DIM, "ms");
	canvas_right(c, r.x + 12, r.y + y, ROLE_DIM, "p50");
	canvas_right(c, r.x + 18, r.y + y, ROLE_DIM, "p99");
	canvas_right(c, r.x + 24, r.y + y, ROLE_DIM, "p99.9");
	draw_latency_row(c, r, y + 1, "service", svc->p50, svc->p99,
			 svc->p99_9);
	if (st->saturated) {
		if (y + 2 < r.h) {
			canvas_text(c, r.x + 1, r.y + y + 2, ROLE_DIM,
				    "response");
			canvas_text(c, r.x + 12, r.y + y + 2, ROLE_WARN,
				    "growing");
		}
		return;
	}
	draw_latency_row(c, r, y + 2, "response", rsp->p50, rsp->p99,
			 rsp->p99_9);
}

static void draw_steady(struct canvas *c, struct rect r, int y,
			const struct m_point *p, const struct point_stats *st)
{
	char ci[FMT_MAX + 8] = "";

	if (y >= r.h)
		return;
	canvas_text(c, r.x + 1, r.y + y, ROLE_DIM, "steady");
	if (p->state == POINT_WARM) {
		canvas_text(c, r.x + 12, r.y + y, ROLE_DIM, "warming up");
		return;
	}
	if (!isfinite(st->iops_ci)) {
		canvas_text(c, r.x + 12, r.y + y, ROLE_DIM, "-");
		return;
	}
	snprintf(ci, sizeof(ci), "\xc2\xb1%.1f %%", st->iops_ci * 100);
	canvas_text(c, r.x + 12, r.y + y, st->steady ? ROLE_OK : ROLE_WARN,
		    st->steady ? "yes" : "no");
	canvas_text(c, r.x + 17, r.y + y, ROLE_TEXT, ci);
}

static void draw_left(const struct scene *scene, struct canvas *c,
		      struct rect r, int y, const struct m_run *run,
		      const struct m_point *p)
{
	double length = (double)(p->warmup_us + p->length_us) / 1e6;
	double gone = (double)(scene->now_us - p->begun_t_us) / 1e6;
	char a[FMT_MAX], b[FMT_MAX];

	if (y >= r.h || run_over(run))
		return;
	canvas_text(c, r.x + 1, r.y + y, ROLE_DIM, "left");
	if (p->state == POINT_DONE || p->state == POINT_CUT)
		canvas_text(c, r.x + 12, r.y + y, ROLE_DIM, "done");
	else if (length <= 0)
		canvas_text(c, r.x + 12, r.y + y, ROLE_DIM, "-");
	else
		canvas_printf(c, r.x + 12, r.y + y, ROLE_TEXT, "%s of %s",
			      fmt_span(a, fmax(0, length - gone)),
			      fmt_span(b, length));
	if (y + 1 >= r.h)
		return;
	canvas_text(c, r.x + 1, r.y + y + 1, ROLE_DIM, "run");
	canvas_printf(c, r.x + 12, r.y + y + 1, ROLE_TEXT, "%s  %s left",
		      fmt_pct(a, run->done_share), fmt_span(b, run->left_s));
}

static void draw_figures(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect r,
			 const struct m_run *run, const struct m_point *p)
{
	const struct point_stats *st = ui_stats(ui, run, p);
	char a[FMT_MAX], b[FMT_MAX], rw[2 * FMT_MAX + 2];
	int y = 0;

	if (!st)
		return;
	if (isfinite(p->asked_iops))
		field(c, r, y++, "asked", fmt_count(a, p->asked_iops), "IOPS");
	else
		field(c, r, y++, "at once", fmt_count(a, (double)p->outstanding),
		      "I/Os");
	field(c, r, y++, "achieved", fmt_count(a, st->iops),
	      st->saturated ? "short" : "IOPS");
	snprintf(rw, sizeof(rw), "%s/%s", fmt_k(a, st->read_iops),
		 fmt_k(b, st->write_iops));
	field(c, r, y++, "read/write", rw, "");
	field(c, r, y++, "through", fmt_count(a, st->mb_s), "MB/s");
	y += r.h > 11;
	draw_latency(c, r, y, st);
	y += 3 + (r.h > 11);
	draw_steady(c, r, y++, p, st);
	draw_left(scene, c, r, y, run, p);
	y += 2;
	if (st->errors && y < r.h)
		canvas_printf(c, r.x + 1, r.y + y, ROLE_BAD, "%s I/O errors",
			      fmt_count(a, (double)st->errors));
}

/* ---- phases that measure nothing ----------------------------------------- */

static const struct {
	const char *kind, *title, *why;
} phase_text[] = {
	{ "prefill", "prefill", "writes every block once, so that no read "
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

	return run_over(run) || run->phase.phase < 0 || !strcmp(k, "max") ||
	       !strcmp(k, "point") || !strcmp(k, "ramp");
}

static unsigned run_state_role(const char *state)
{
	return !strcmp(state, "failed")					? ROLE_BAD :
	       !strcmp(state, "paused") || !strcmp(state, "stopping") ||
			       !strcmp(state, "stopped")			? ROLE_WARN :
								  ROLE_OK;
}

void run_point_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);
	const struct m_point *p;
	size_t series = 0;
	char title[80];

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
	point_title(run, p, series, title, sizeof(title));
	draw_figures(ui, scene, c, canvas_head(c, r, title), run, p);
}
