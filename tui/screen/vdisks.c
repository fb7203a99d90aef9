/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisks and their policies: a line a vDisk; below it the one under the cursor
 * with its members, and the policy editor.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"
#include "tui/screen/form.h"
#include "tui/screen/screen.h"

static void heads(struct canvas *c, struct rect r)
{
	canvas_text(c, r.x + 2, r.y, ROLE_DIM, "vDisk");
	canvas_right(c, r.x + 21, r.y, ROLE_DIM, "size");
	canvas_text(c, r.x + 24, r.y, ROLE_DIM, "policy");
	canvas_text(c, r.x + 34, r.y, ROLE_DIM, "RAID");
	canvas_text(c, r.x + 46, r.y, ROLE_DIM, "state");
	canvas_right(c, r.x + 74, r.y, ROLE_DIM, "may lose");
	if (r.w >= 110) {
		canvas_right(c, r.x + 85, r.y, ROLE_DIM, "stripe");
		canvas_right(c, r.x + 94, r.y, ROLE_DIM, "space");
		canvas_right(c, r.x + 107, r.y, ROLE_DIM, "write I/Os");
		canvas_text(c, r.x + 111, r.y, ROLE_DIM, "layout");
		canvas_right(c, r.x + 130, r.y, ROLE_DIM, "epoch");
	}
}

static bool moving(const struct m_vdisk *v)
{
	return !strcmp(v->state, "rebuilding") ||
	       !strcmp(v->state, "migrating");
}

/* State is one word and one number. */
static void draw_state(struct canvas *c, int x, int y, const struct m_vdisk *v)
{
	unsigned role = state_role(v->state);
	char a[FMT_MAX];

	canvas_put(c, x, y, role, 0x25cf);
	x += 2 +
	     canvas_fit(c, x + 2, y, 11, role, v->state[0] ? v->state : "-") +
	     1;
	if (moving(v) && isfinite(v->progress)) {
		bar_draw(c, x, y, 5, v->progress, role);
		canvas_printf(c, x + 5, y, ROLE_TEXT, " %s",
			      fmt_pct(a, v->progress));
	} else if (!strcmp(v->state, "degraded")) {
		int out = 0;

		for (size_t i = 0; i < v->members; i++)
			out += strcmp(v->member[i].state, "ok") != 0;
		canvas_printf(c, x, y, ROLE_TEXT, "%d out", out);
	}
}

static void line(struct canvas *c, struct rect r, const struct m_vdisk *v,
		 size_t domains)
{
	struct policy_cost cost;
	unsigned role;
	char a[FMT_MAX];

	canvas_fit(c, r.x + 2, r.y, 10, ROLE_TEXT, v->name);
	canvas_right(c, r.x + 21, r.y, ROLE_TEXT,
		     fmt_bytes(a, (double)v->size_bytes));
	canvas_fit(c, r.x + 24, r.y, 9, ROLE_TEXT,
		   v->policy[0] ? v->policy : "-");
	canvas_fit(c, r.x + 34, r.y, 11, ROLE_TEXT,
		   raid_text(a, v->raid, v->k, v->m));
	draw_state(c, r.x + 46, r.y, v);
	role = v->failures_left > 0 ? ROLE_TEXT : ROLE_WARN;
	canvas_right(c, r.x + 74, r.y, role,
		     v->failures_left < 0
			     ? "-"
			     : fmt_count(a, (double)v->failures_left));
	if (r.w < 110)
		return;
	policy_cost(v->raid, v->ftt, domains, &cost);
	canvas_right(c, r.x + 85, r.y, ROLE_DIM,
		     fmt_bytes(a, (double)v->stripe_unit_bytes));
	snprintf(a, sizeof(a), "%.2fx", cost.space);
	canvas_right(c, r.x + 94, r.y, ROLE_DIM, a);
	canvas_right(c, r.x + 107, r.y, ROLE_DIM, fmt_count(a, cost.write_ios));
	canvas_fit(c, r.x + 111, r.y, 10, ROLE_DIM, v->layout);
	canvas_right(c, r.x + 130, r.y, ROLE_DIM,
		     v->epoch < 0 ? "-" : fmt_count(a, (double)v->epoch));
}

static void draw_members(struct canvas *c, struct rect r,
			 const struct m_vdisk *v)
{
	int x = r.x + 10, y = r.y;

	canvas_text(c, r.x + 1, y, ROLE_DIM, "placed");
	for (size_t i = 0; i < v->members && y < r.y + r.h; i++) {
		const struct m_member *m = &v->member[i];
		bool ok = !strcmp(m->state, "ok");
		char text[192];
		int w;

		if (!strcmp(m->role, "witness"))
			snprintf(text, sizeof(text), "%.16s:%.16s witness",
				 m->domain, m->drive);
		else
			snprintf(text, sizeof(text), "%.16s:%.16s %s%d",
				 m->domain, m->drive,
				 v->raid == 1 ? "copy " : "member ", m->slot);
		w = text_columns(text) + (ok ? 0 : text_columns(m->state) + 1);
		if (x + w > r.x + r.w - 1) {
			x = r.x + 10;
			if (++y >= r.y + r.h)
				return;
		}
		x += canvas_text(c, x, y, ok ? ROLE_TEXT : ROLE_DIM, text);
		if (!ok)
			x += canvas_printf(c, x, y, state_role(m->state), " %s",
					   m->state);
		x += 3;
	}
}

static void draw_progress(struct canvas *c, struct rect r,
			  const struct m_vdisk *v)
{
	char a[FMT_MAX], b[FMT_MAX], d[FMT_MAX];
	double left = v->left_bytes / v->rate_bytes_s;

	canvas_text(c, r.x + 1, r.y, ROLE_DIM,
		    !strcmp(v->state, "migrating") ? "moving" : "rebuild");
	bar_draw(c, r.x + 10, r.y, 24, v->progress, ROLE_WARN);
	canvas_printf(c, r.x + 35, r.y, ROLE_TEXT, "%s",
		      fmt_pct(a, v->progress));
	canvas_printf(c, r.x + 42, r.y, ROLE_DIM, "%s at %s, %s left",
		      fmt_bytes(a, v->left_bytes), fmt_rate(b, v->rate_bytes_s),
		      fmt_span(d, left));
}

static void draw_detail(const struct scene *scene, struct canvas *c,
			struct rect r, const struct m_vdisk *v)
{
	struct policy_cost cost;
	char a[FMT_MAX], b[FMT_MAX];
	int rows = (int)v->members * 18 / (r.w - 11) + 1;

	r = canvas_head(c, r, v->name);
	policy_cost(v->raid, v->ftt, scene->model->domains, &cost);
	canvas_text(c, r.x + 1, r.y, ROLE_DIM, "policy");
	canvas_printf(c, r.x + 10, r.y++, ROLE_TEXT,
		      "%s%s%s, may lose %d, stripe %s", v->policy,
		      v->policy[0] ? ": " : "",
		      raid_text(a, v->raid, v->k, v->m), v->ftt,
		      fmt_bytes(b, (double)v->stripe_unit_bytes));
	canvas_text(c, r.x + 1, r.y, ROLE_DIM, "costs");
	canvas_printf(c, r.x + 10, r.y++, ROLE_TEXT,
		      "%.2f bytes on drives a byte, %.0f drive I/Os a small "
		      "write",
		      cost.space, cost.write_ios);
	rows = rows > 4 ? 4 : rows;
	draw_members(c, (struct rect) { r.x, r.y, r.w, rows }, v);
	r.y += rows;
	if (moving(v))
		draw_progress(c, r, v), r.y++;
	if (v->reason[0]) {
		canvas_text(c, r.x + 1, r.y, ROLE_DIM, "because");
		canvas_fit(c, r.x + 10, r.y, r.w - 11, state_role(v->state),
			   v->reason);
	}
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

		line(c, row, &m->vdisk[cur->top + i], m->domains);
		row_mark(c, row, cur->top + i == cur->at);
	}
	if (!cur->count)
		canvas_text(c, body.x + 2, l.list.y + 2, ROLE_DIM,
			    "no vDisk yet: [n] makes one");
	detail = form = l.detail;
	if (ui->form.open) {
		form.h = detail.h < 10 ? detail.h : 10;
		form.y += detail.h - form.h;
		detail.h -= form.h;
		form_draw(ui, scene, c, form);
	}
	canvas_clip(c, detail);
	if (cur->count)
		draw_detail(scene, c, detail, &m->vdisk[cur->at]);
	if (cur->count && detail.h > 18)
		draw_large(ui, scene, c,
			   (struct rect) { detail.x, detail.y + 8, detail.w,
					   detail.h - 8 });
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
	.page = "iodeck-policy(7)",
	.draw = vdisks_draw,
	.cursor = vdisks_cursor,
	.key = form_key,
	.selected = vdisks_selected,
};
