/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The run by node: links and drives, the host's CPU once, and what limits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"
#include "tui/screen/run_parts.h"

static const struct m_drive *busiest(const struct m_domain *d)
{
	const struct m_drive *most = NULL;

	for (size_t i = 0; i < d->drives; i++)
		if (isfinite(d->drive[i].busy) &&
		    (!most || d->drive[i].busy > most->busy))
			most = &d->drive[i];
	return most;
}

static bool node_bad(const struct m_domain *d)
{
	for (size_t i = 0; i < d->drives; i++)
		if (d->drive[i].state[0] &&
		    strcmp(d->drive[i].state, "ok") != 0)
			return true;
	return false;
}

static void node_flag(struct canvas *c, int x, int y, bool bad,
		      const struct m_drive *drive)
{
	if (bad)
		canvas_text(c, x, y, ROLE_BAD | STYLE_BOLD, "!");
	else if (drive && drive->busy >= 0.95)
		canvas_put(c, x, y, ROLE_BAD, 0x25c0);
}

/* The large screen's: link with rate, busiest drive. */
static void node_row(struct canvas *c, struct rect r, int y,
		     const struct m_domain *d, int bar)
{
	const struct m_drive *drive = busiest(d);
	double rate = d->link_read_bytes_s + d->link_write_bytes_s;
	double busy = drive ? drive->busy : NAN;
	int x = r.x + 7;
	char a[FMT_MAX];

	canvas_fit(c, r.x + 1, y, 5, node_bad(d) ? ROLE_BAD : ROLE_TEXT,
		   d->name);
	bar_draw(c, x, y, bar, d->link_busy, bar_load_role(d->link_busy));
	canvas_right(c, x + bar + 10, y, ROLE_TEXT, fmt_rate(a, rate));
	x += bar + 12;
	bar_draw(c, x, y, bar, busy, bar_load_role(busy));
	canvas_right(c, x + bar + 6, y, ROLE_TEXT, fmt_pct(a, busy));
	canvas_right(c, x + bar + 12, y, ROLE_TEXT,
		     fmt_ms(a, drive ? drive->latency_us : NAN));
	canvas_text(c, x + bar + 13, y, ROLE_DIM, "ms");
	node_flag(c, x + bar + 16, y, node_bad(d), drive);
}

/* Half a row of the small screen. */
#define CELL_W 26
static void node_cell(struct canvas *c, int x, int y, const struct m_domain *d)
{
	const struct m_drive *drive = busiest(d);
	double busy = drive ? drive->busy : NAN;
	char a[FMT_MAX];

	canvas_fit(c, x, y, 3, node_bad(d) ? ROLE_BAD : ROLE_TEXT, d->name);
	bar_draw(c, x + 4, y, 4, d->link_busy, bar_load_role(d->link_busy));
	bar_draw(c, x + 9, y, 4, busy, bar_load_role(busy));
	canvas_right(c, x + 19, y, ROLE_TEXT, fmt_pct(a, busy));
	canvas_right(c, x + 25, y, ROLE_TEXT,
		     fmt_ms(a, drive ? drive->latency_us : NAN));
	node_flag(c, x + 13, y, node_bad(d), drive);
}

static void host_row(struct canvas *c, struct rect r, int y,
		     const struct m_host *h, int bar)
{
	char a[FMT_MAX], b[FMT_MAX];
	int x = r.x + 7;

	canvas_fit(c, r.x + 1, y, 5, ROLE_DIM, "host");
	bar_draw(c, x, y, bar, h->cpu_busy, bar_load_role(h->cpu_busy));
	canvas_right(c, x + bar + 10, y, ROLE_TEXT, fmt_pct(a, h->cpu_busy));
	x += canvas_printf(c, x + bar + 12, y, ROLE_DIM, "CPU of %s",
			   fmt_count(a, (double)h->cores)) +
	     bar + 12;
	x += canvas_text(c, x, y, ROLE_DIM, h->cores == 1 ? " core" : " cores");
	if (h->cpu_steal >= 0.02)
		canvas_printf(c, x, y, ROLE_WARN, ", %s stolen",
			      fmt_pct(b, h->cpu_steal));
}

static void nodes_large(const struct model *m, struct canvas *c, struct rect r)
{
	int bar = (r.w - 38) / 2 > 12 ? 12 : (r.w - 38) / 2, y;

	canvas_vline(c, r.x, r.y, r.h, ROLE_AXIS);
	r.x++;
	r.w--;
	r = canvas_head(c, r, "nodes");
	canvas_text(c, r.x + 1, r.y, ROLE_DIM, "node");
	canvas_text(c, r.x + 7, r.y, ROLE_DIM, "link");
	canvas_text(c, r.x + bar + 19, r.y, ROLE_DIM, "busiest drive");
	y = r.y + 1;
	for (size_t i = 0; i < m->domains && y < r.y + r.h - (m->hosts > 0);
	     i++)
		node_row(c, r, y++, &m->domain[i], bar);
	for (size_t i = 0; i < m->hosts && y < r.y + r.h; i++)
		host_row(c, r, y++, &m->host[i], bar);
}

static void nodes_small(const struct model *m, struct canvas *c, struct rect r)
{
	int rows = r.h - 1 - (m->hosts > 0);

	for (int x = 0; x < 2; x++) {
		int at = r.x + 1 + x * CELL_W;

		canvas_text(c, at, r.y, ROLE_DIM, "node");
		canvas_text(c, at + 4, r.y, ROLE_DIM, " link drive");
		canvas_right(c, at + 25, r.y, ROLE_DIM, "ms");
	}
	for (int i = 0; i < (int)m->domains && i < rows * 2; i++)
		node_cell(c, r.x + 1 + i / rows * CELL_W, r.y + 1 + i % rows,
			  &m->domain[i]);
	if (m->hosts)
		host_row(c, r, r.y + r.h - 1, &m->host[0], 6);
}

void run_nodes_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	(void)ui;
	if (r.h < 2)
		return;
	if (r.h >= (int)scene->model->domains + 2)
		nodes_large(scene->model, c, r);
	else
		nodes_small(scene->model, c, r);
}

void run_drives_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		     struct rect r)
{
	const struct model *m = scene->model;
	char a[FMT_MAX];
	int y;

	(void)ui;
	if (r.h < 3)
		return;
	canvas_vline(c, r.x, r.y, r.h, ROLE_AXIS);
	r.x++;
	r.w--;
	r = canvas_head(c, r, "drives");
	canvas_right(c, r.x + 27, r.y, ROLE_DIM, "read");
	canvas_right(c, r.x + 35, r.y, ROLE_DIM, "write");
	canvas_right(c, r.x + 43, r.y, ROLE_DIM, "queue");
	canvas_right(c, r.x + 51, r.y, ROLE_DIM, "ms");
	y = r.y + 1;
	for (size_t i = 0; i < m->domains; i++)
		for (size_t j = 0; j < m->domain[i].drives; j++, y++) {
			const struct m_drive *d = &m->domain[i].drive[j];
			bool ok = !d->state[0] || !strcmp(d->state, "ok");

			if (y >= r.y + r.h)
				return;
			canvas_printf(c, r.x + 1, y, ok ? ROLE_TEXT : ROLE_BAD,
				      "%.8s:%.6s", m->domain[i].name, d->name);
			if (!ok) {
				canvas_fit(c, r.x + 10, y, r.w - 11, ROLE_BAD,
					   d->state);
				continue;
			}
			bar_draw(c, r.x + 10, y, 8, d->busy,
				 bar_load_role(d->busy));
			canvas_right(c, r.x + 27, y, ROLE_TEXT,
				     fmt_k(a, d->read_iops));
			canvas_right(c, r.x + 35, y, ROLE_TEXT,
				     fmt_k(a, d->write_iops));
			canvas_right(c, r.x + 43, y, ROLE_TEXT,
				     fmt_3(a, d->queue));
			canvas_right(c, r.x + 51, y, ROLE_TEXT,
				     fmt_ms(a, d->latency_us));
		}
}

/* ---- what limits --------------------------------------------------------- */

struct most {
	double busy, latency_us, sum_busy, others_us;
	size_t count;
	char name[2 * MODEL_NAME + 2];
};

static void most_add(struct most *m, double busy, double latency_us,
		     const char *a, const char *b)
{
	if (!isfinite(busy))
		return;
	m->sum_busy += busy;
	m->count++;
	if (busy <= m->busy)
		return;
	m->busy = busy;
	m->latency_us = latency_us;
	snprintf(m->name, sizeof(m->name), "%s%s%s", a, *b ? ":" : "", b);
}

static void most_find(const struct model *model, struct most *link,
		      struct most *drive)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < model->domains; i++) {
		const struct m_domain *d = &model->domain[i];

		most_add(link, d->link_busy, NAN, d->name, "");
		for (size_t j = 0; j < d->drives; j++) {
			most_add(drive, d->drive[j].busy,
				 d->drive[j].latency_us, d->name,
				 d->drive[j].name);
			if (isfinite(d->drive[j].latency_us)) {
				sum += d->drive[j].latency_us;
				n++;
			}
		}
	}
	drive->others_us = n > 1 && isfinite(drive->latency_us)
				   ? (sum - drive->latency_us) / (double)(n - 1)
				   : NAN;
}

void run_bound_text(const struct model *model, const struct m_run *run,
		    char *buf, size_t len)
{
	struct most link = { 0 }, drive = { 0 };
	const struct m_point *p = NULL;
	char a[FMT_MAX], b[FMT_MAX], d[FMT_MAX];
	size_t series;

	if (run)
		p = run_point(run, &series);
	most_find(model, &link, &drive);
	for (size_t i = 0; i < model->hosts; i++)
		if (model->host[i].cpu_busy +
			    fmax(0, model->host[i].cpu_steal) >=
		    0.95) {
			snprintf(buf, len,
				 "this host's CPU, %s busy: latencies hold the "
				 "wait for it",
				 fmt_pct(a, model->host[i].cpu_busy));
			return;
		}
	if (p && p->generator_bound)
		snprintf(buf, len,
			 "the load generator itself: the target can "
			 "do more");
	else if (link.busy >= 0.9 && link.busy >= drive.busy)
		snprintf(buf, len, "the link of %s, %s of its rate", link.name,
			 fmt_pct(a, link.busy));
	else if (drive.busy >= 0.9)
		snprintf(buf, len, "drives: %s %s busy, %s ms, others %s ms",
			 drive.name, fmt_pct(a, drive.busy),
			 fmt_ms(b, drive.latency_us),
			 fmt_ms(d, drive.others_us));
	else if ((link.count || drive.count) && link.busy < 0.02 &&
		 drive.busy < 0.02)
		snprintf(buf, len, "nothing: no I/O just now");
	else if (link.count || drive.count)
		snprintf(buf, len, "nothing full: drives to %s, links to %s",
			 fmt_pct(a, drive.count ? drive.busy : NAN),
			 fmt_pct(b, link.count ? link.busy : NAN));
	else
		snprintf(buf, len, "-");
}

void run_bound_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r)
{
	const struct m_run *run = ui_run(ui, scene);
	char text[192];

	if (r.h < 2)
		return;
	canvas_vline(c, r.x, r.y, r.h, ROLE_AXIS);
	r.x++;
	r.w--;
	r = canvas_head(c, r, "bound by");
	run_bound_text(scene->model, run, text, sizeof(text));
	canvas_wrap(c, (struct rect) { r.x + 1, r.y, r.w - 2, r.h }, ROLE_TEXT,
		    text);
}
