/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisks and their policies: a line a vDisk; below it the one under the cursor
 * with what it holds, costs and does, and the policy editor.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"
#include "tui/screen/form.h"
#include "tui/screen/vdisk_parts.h"

#define WIDE 120 /* from here on there are columns for more */
#define WIDEST 170

static void heads(struct canvas *c, struct rect r)
{
	canvas_text(c, r.x + 2, r.y, ROLE_DIM, "vDisk");
	if (r.w < WIDE) {
		canvas_right(c, r.x + 17, r.y, ROLE_DIM, "size");
		canvas_text(c, r.x + 18, r.y, ROLE_DIM, "RAID");
		canvas_text(c, r.x + 29, r.y, ROLE_DIM, "layout");
		canvas_text(c, r.x + 37, r.y, ROLE_DIM, "state");
		canvas_right(c, r.x + 60, r.y, ROLE_DIM, "used");
		canvas_right(c, r.x + 66, r.y, ROLE_DIM, "ratio");
		canvas_right(c, r.x + 71, r.y, ROLE_DIM, "W");
		canvas_right(c, r.x + 79, r.y, ROLE_DIM, "p99 ms");
		return;
	}
	canvas_right(c, r.x + 24, r.y, ROLE_DIM, "size");
	canvas_text(c, r.x + 26, r.y, ROLE_DIM, "policy");
	canvas_text(c, r.x + 38, r.y, ROLE_DIM, "RAID");
	canvas_text(c, r.x + 50, r.y, ROLE_DIM, "layout");
	canvas_text(c, r.x + 64, r.y, ROLE_DIM, "state");
	canvas_right(c, r.x + 93, r.y, ROLE_DIM, "used");
	canvas_right(c, r.x + 99, r.y, ROLE_DIM, "free");
	canvas_right(c, r.x + 105, r.y, ROLE_DIM, "ratio");
	canvas_right(c, r.x + 110, r.y, ROLE_DIM, "W");
	canvas_right(c, r.x + 119, r.y, ROLE_DIM, "p99 ms");
	if (r.w < WIDEST)
		return;
	canvas_right(c, r.x + 129, r.y, ROLE_DIM, "may lose");
	canvas_right(c, r.x + 138, r.y, ROLE_DIM, "log full");
	canvas_right(c, r.x + 148, r.y, ROLE_DIM, "memory");
	canvas_right(c, r.x + 158, r.y, ROLE_DIM, "stripe");
	canvas_right(c, r.x + 166, r.y, ROLE_DIM, "epoch");
}

/* State is one word and one number. */
static void draw_state(struct canvas *c, int x, int y, const struct m_vdisk *v,
		       bool wide)
{
	unsigned role = state_role(v->state);
	char a[FMT_MAX];

	canvas_put(c, x, y, role, 0x25cf);
	x += 2 +
	     canvas_fit(c, x + 2, y, 11, role, v->state[0] ? v->state : "-") +
	     1;
	if (v->log.blocks_lost > 0 && !vdisk_moving(v)) {
		canvas_text(c, x, y, ROLE_BAD | STYLE_BOLD, "LOST");
	} else if (vdisk_moving(v) && isfinite(v->progress)) {
		if (wide) {
			bar_draw(c, x, y, 5, v->progress, role);
			x += 6;
		}
		canvas_text(c, x, y, ROLE_TEXT, fmt_pct(a, v->progress));
	} else if (!strcmp(v->state, "degraded")) {
		int out = 0;

		for (size_t i = 0; i < v->members; i++)
			out += strcmp(v->member[i].state, "ok") != 0;
		canvas_printf(c, x, y, ROLE_TEXT, "%d out", out);
	}
}

/* Of the newest point that was measured on it; NAN none. */
static double p99_us(struct ui *ui, const struct model *m,
		     const struct m_vdisk *v)
{
	for (size_t r = m->runs; r-- > 0;)
		for (size_t s = m->run[r].series_count; s-- > 0;) {
			const struct m_series *se = &m->run[r].series[s];

			/* Of several at once it is not this one's own. */
			if (strcmp(se->vdisk, v->name) != 0 || se->vdisks > 1)
				continue;
			for (size_t p = se->points; p-- > 0;) {
				const struct point_stats *st =
					ui_stats(ui, &m->run[r], &se->point[p]);

				if (st && isfinite(st->latency.all.p99))
					return st->latency.all.p99;
			}
		}
	return NAN;
}

static double share_used(const struct m_vdisk *v)
{
	return v->log.blocks_mapped >= 0 && v->size_bytes > 0
		       ? (double)v->log.blocks_mapped * 4096 /
				 (double)v->size_bytes
		       : NAN;
}

/* W: of the log layout counted; in place it has none, I/Os bind it. */
static char *amp_text(char *buf, const struct m_vdisk *v, int64_t now_us)
{
	struct vdisk_now now;

	vdisk_now(v, now_us, &now);
	return vdisk_amp_text(buf, &now);
}

static void line_wide(struct ui *ui, const struct scene *scene,
		      struct canvas *c, struct rect r, const struct m_vdisk *v)
{
	const bool packs = v->compression[0] && strcmp(v->compression, "none");
	char a[FMT_MAX];

	canvas_fit(c, r.x + 26, r.y, 11, ROLE_TEXT,
		   v->policy[0] ? v->policy : "-");
	canvas_fit(c, r.x + 38, r.y, 11, ROLE_TEXT,
		   raid_text(a, v->raid, v->k, v->m));
	canvas_printf(c, r.x + 50, r.y, ROLE_TEXT, "%s %s",
		      v->layout[0] ? v->layout : "-",
		      packs ? v->compression : "");
	draw_state(c, r.x + 64, r.y, v, true);
	canvas_right(c, r.x + 93, r.y, ROLE_TEXT, fmt_pct(a, share_used(v)));
	canvas_right(c, r.x + 99, r.y,
		     v->log.free_share < 0.01 ? ROLE_WARN : ROLE_TEXT,
		     fmt_pct(a, v->log.free_share));
	canvas_right(c, r.x + 105, r.y, ROLE_TEXT, fmt_3(a, v->log.ratio));
	canvas_right(c, r.x + 110, r.y, ROLE_TEXT,
		     amp_text(a, v, scene->now_us));
	canvas_right(c, r.x + 119, r.y, ROLE_TEXT,
		     fmt_ms(a, p99_us(ui, scene->model, v)));
	if (r.w < WIDEST)
		return;
	canvas_right(
		c, r.x + 129, r.y, v->failures_left > 0 ? ROLE_TEXT : ROLE_WARN,
		v->failures_left < 0 ? "-"
				     : fmt_count(a, (double)v->failures_left));
	canvas_right(c, r.x + 138, r.y, ROLE_DIM, fmt_pct(a, v->log.log_fill));
	canvas_right(c, r.x + 148, r.y, ROLE_DIM,
		     fmt_bytes(a, v->memory_bytes < 0
					  ? NAN
					  : (double)v->memory_bytes));
	canvas_right(c, r.x + 158, r.y, ROLE_DIM,
		     fmt_bytes(a, (double)v->stripe_unit_bytes));
	canvas_right(c, r.x + 166, r.y, ROLE_DIM,
		     v->epoch < 0 ? "-" : fmt_count(a, (double)v->epoch));
}

static void line(struct ui *ui, const struct scene *scene, struct canvas *c,
		 struct rect r, const struct m_vdisk *v)
{
	char a[FMT_MAX];

	if (r.w >= WIDE) {
		canvas_fit(c, r.x + 2, r.y, 13, ROLE_TEXT, v->name);
		canvas_right(c, r.x + 24, r.y, ROLE_TEXT,
			     fmt_bytes(a, (double)v->size_bytes));
		line_wide(ui, scene, c, r, v);
		return;
	}
	canvas_fit(c, r.x + 2, r.y, 7, ROLE_TEXT, v->name);
	canvas_right(c, r.x + 17, r.y, ROLE_TEXT,
		     fmt_bytes(a, (double)v->size_bytes));
	canvas_fit(c, r.x + 18, r.y, 10, ROLE_TEXT,
		   raid_text(a, v->raid, v->k, v->m));
	canvas_fit(c, r.x + 29, r.y, 7, ROLE_TEXT,
		   v->layout[0] ? v->layout : "-");
	draw_state(c, r.x + 37, r.y, v, false);
	canvas_right(c, r.x + 60, r.y, ROLE_TEXT, fmt_pct(a, share_used(v)));
	canvas_right(c, r.x + 66, r.y, ROLE_TEXT, fmt_3(a, v->log.ratio));
	canvas_right(c, r.x + 71, r.y, ROLE_TEXT,
		     amp_text(a, v, scene->now_us));
	canvas_right(c, r.x + 79, r.y, ROLE_TEXT,
		     fmt_ms(a, p99_us(ui, scene->model, v)));
}

/* ---- the large screen: where everything stands --------------------------- */

static void placement_cell(struct canvas *c, int x, int y, int w,
			   const struct m_vdisk *v, const char *domain)
{
	for (size_t i = 0; i < v->members; i++) {
		const struct m_member *m = &v->member[i];
		bool ok = !strcmp(m->state, "ok");
		char text[64];

		if (strcmp(m->domain, domain) != 0)
			continue;
		if (!strcmp(m->role, "witness"))
			snprintf(text, sizeof(text), "%.8s witness", m->drive);
		else
			snprintf(text, sizeof(text), "%.8s #%d%s%.12s",
				 m->drive, m->slot, ok ? "" : " ",
				 ok ? "" : m->state);
		canvas_fit(c, x, y, w - 1,
			   ok ? ROLE_TEXT : state_role(m->state), text);
		return;
	}
	canvas_text(c, x, y, ROLE_AXIS, "\xc2\xb7");
}

static struct rect draw_placement(const struct model *m, struct canvas *c,
				  struct rect r)
{
	int w = m->domains ? (r.w - 14) / (int)m->domains : 20, y;

	w = w > 20 ? 20 : w;
	r = canvas_head(c, r, "where members stand");
	for (size_t d = 0; d < m->domains; d++)
		canvas_fit(c, r.x + 14 + (int)d * w, r.y, w - 1, ROLE_DIM,
			   m->domain[d].name);
	y = r.y + 1;
	for (size_t i = 0; i < m->vdisks && y < r.y + r.h; i++, y++) {
		canvas_fit(c, r.x + 2, y, 11, ROLE_TEXT, m->vdisk[i].name);
		for (size_t d = 0; d < m->domains; d++)
			placement_cell(c, r.x + 14 + (int)d * w, y, w,
				       &m->vdisk[i], m->domain[d].name);
	}
	r.h -= y + 1 - r.y;
	r.y = y + 1;
	return r;
}

static void draw_large(struct ui *ui, const struct scene *scene,
		       struct canvas *c, struct rect r)
{
	if (r.h < (int)scene->model->vdisks + 4)
		return;
	r = draw_placement(scene->model, c, r);
	if (r.h < 12 || !scene->model->runs)
		return;
	r = canvas_head(c, r, "what was measured on them");
	run_chart_draw(ui, scene, c, r);
}

/* Its lines, its figures over time, and what there is room for besides. */
static void draw_chosen(struct ui *ui, const struct scene *scene,
			struct canvas *c, struct rect r,
			const struct m_vdisk *v)
{
	int rows = vdisk_detail_draw(scene, c, r, v);

	r.y += rows;
	r.h -= rows;
	if (vdisk_is_log(v) && (v->strips || v->spans) && r.h > 2) {
		rows = 1 + vdisk_time_rows(v);
		rows = r.h < rows ? r.h : rows;
		vdisk_time_draw(
			scene, c,
			canvas_head(c, (struct rect) { r.x, r.y, r.w, rows },
				    "over time"),
			v);
		r.y += rows;
		r.h -= rows;
	}
	if (r.h > 10)
		draw_large(ui, scene, c, r);
}

static void vdisks_draw(struct ui *ui, const struct scene *scene,
			struct canvas *c, struct rect body)
{
	const struct model *m = scene->model;
	struct cursor *cur = &ui->vdisk;
	struct rect old = c->clip, detail, form;
	struct layout_list l;

	layout_list(body, m->vdisks, &l);
	cursor_fit(cur, (int)m->vdisks, l.list.h - 1);
	heads(c, l.list);
	for (int i = 0; i < cur->rows && cur->top + i < cur->count; i++) {
		struct rect row = { body.x, l.list.y + 1 + i, body.w, 1 };

		line(ui, scene, c, row, &m->vdisk[cur->top + i]);
		row_mark(c, row, cur->top + i == cur->at);
	}
	if (!cur->count)
		canvas_text(c, body.x + 2, l.list.y + 2, ROLE_DIM,
			    "no vDisk yet: [n] makes one");
	detail = form = l.detail;
	if (ui->form.open) {
		form.h = detail.h < 11 ? detail.h : 11;
		form.y += detail.h - form.h;
		detail.h -= form.h;
		form_draw(ui, scene, c, form);
	}
	canvas_clip(c, detail);
	if (cur->count)
		draw_chosen(ui, scene, c, detail, &m->vdisk[cur->at]);
	c->clip = old;
}

static struct cursor *vdisks_cursor(struct ui *ui)
{
	return &ui->vdisk;
}

static const char *vdisks_selected(const struct ui *ui,
				   const struct scene *scene)
{
	return (size_t)ui->vdisk.at < scene->model->vdisks
		       ? scene->model->vdisk[ui->vdisk.at].name
		       : NULL;
}

const struct screen screen_vdisks = {
	.name = "vdisks",
	.title = "vDisks",
	.page = "iodeck-vdisk(5)",
	.draw = vdisks_draw,
	.cursor = vdisks_cursor,
	.key = form_key,
	.selected = vdisks_selected,
};
