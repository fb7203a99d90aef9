/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One vDisk, line by line: what it is, where it stands, what it holds, what a
 * write costs and why, what goes on in the background. What is unknown or does
 * not apply takes no line.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"
#include "tui/screen/form.h"
#include "tui/screen/vdisk_parts.h"

#define RECENT_US 10000000
#define TEXT_AT 10 /* where a line's text begins */

bool vdisk_is_log(const struct m_vdisk *v)
{
	return !strcmp(v->layout, "log");
}

bool vdisk_moving(const struct m_vdisk *v)
{
	return !strcmp(v->state, "rebuilding") ||
	       !strcmp(v->state, "migrating");
}

void vdisk_now(const struct m_vdisk *v, int64_t now_us, struct vdisk_now *now)
{
	struct m_written w;
	const double seconds = vdisk_written(v, now_us, RECENT_US, &w);

	*now = (struct vdisk_now) { .clean_s = NAN, .rebuild_s = NAN };
	if (seconds > 0) {
		now->clean_s = (double)w.clean / seconds;
		now->rebuild_s = (double)w.rebuild / seconds;
	}
	model_amp(&w, &now->amp);
	if (isfinite(now->amp.all))
		return;
	now->unasked = seconds > 0 && w.clean + w.rebuild > 0;
	now->since_open = true;
	model_amp(&v->log.written, &now->amp);
}

char *vdisk_amp_text(char *buf, const struct vdisk_now *now)
{
	if (isfinite(now->amp.all) || !now->unasked)
		return fmt_3(buf, now->amp.all);
	snprintf(buf, FMT_MAX, "inf");
	return buf;
}

/* ---- lines --------------------------------------------------------------- */

struct lines {
	const struct scene *scene;
	struct canvas *c;
	struct rect r;
	int y; /* the next, from r.y */
};

static bool more(const struct lines *l)
{
	return l->y < l->r.h;
}

/* The column where the text goes on. */
static int line_begin(struct lines *l, const char *label)
{
	canvas_text(l->c, l->r.x + 1, l->r.y + l->y, ROLE_DIM, label);
	return l->r.x + TEXT_AT;
}

static void line_text(struct lines *l, const char *label, unsigned role,
		      const char *text)
{
	int x;

	if (!more(l))
		return;
	x = line_begin(l, label);
	canvas_fit(l->c, x, l->r.y + l->y++, l->r.x + l->r.w - 1 - x, role,
		   text);
}

static const char *known(int64_t v, char *buf)
{
	return fmt_count(buf, v < 0 ? NAN : (double)v);
}

static const char *size_of(int64_t bytes, char *buf)
{
	return fmt_bytes(buf, bytes < 0 ? NAN : (double)bytes);
}

/* ---- what it is ---------------------------------------------------------- */

static void draw_policy(struct lines *l, const struct m_vdisk *v)
{
	const bool packs = v->compression[0] && strcmp(v->compression, "none");
	char text[256], a[FMT_MAX], b[FMT_MAX], left[32] = "";

	if (v->failures_left >= 0 && v->failures_left < v->ftt)
		snprintf(left, sizeof(left), ", now %d", v->failures_left);
	snprintf(text, sizeof(text), "%s%s%s, %s%s%s, may lose %d%s, stripe %s",
		 v->policy, v->policy[0] ? ": " : "",
		 raid_text(a, v->raid, v->k, v->m),
		 v->layout[0] ? v->layout : "layout -", packs ? " " : "",
		 packs ? v->compression : "", v->ftt, left,
		 size_of(v->stripe_unit_bytes, b));
	line_text(l, "policy", ROLE_TEXT, text);
}

/* While an older policy's data is being rewritten. */
static void draw_compliance(struct lines *l, const struct m_vdisk *v)
{
	const double share = v->log.compliance;
	char a[FMT_MAX];
	int x;

	if (!(share < 0.9999) || !more(l))
		return;
	x = line_begin(l, "complies");
	bar_draw(l->c, x, l->r.y + l->y, 24, share, ROLE_WARN);
	canvas_printf(l->c, x + 25, l->r.y + l->y++, ROLE_TEXT,
		      "%s of what is stored is as the policy says",
		      fmt_pct(a, share));
}

static void draw_costs(struct lines *l, const struct m_vdisk *v)
{
	const size_t domains = l->scene->model->domains;
	struct policy_cost cost;
	char text[160];

	policy_cost(v->layout, v->raid, v->ftt, domains, &cost);
	snprintf(text, sizeof(text),
		 "%.2f bytes on drives a byte, %.0f drive I/O%s a small write",
		 cost.space, cost.write_ios, cost.write_ios > 1 ? "s" : "");
	line_text(l, "costs", ROLE_TEXT, text);
}

static void draw_members(struct lines *l, const struct m_vdisk *v)
{
	const struct rect r = l->r;
	int x = r.x + TEXT_AT;

	if (!more(l))
		return;
	line_begin(l, "placed");
	for (size_t i = 0; i < v->members; i++) {
		const struct m_member *m = &v->member[i];
		const bool ok = !strcmp(m->state, "ok");
		const char *role = v->raid == 1 ? "copy" : "member";
		char text[192];
		int w;

		if (vdisk_is_log(v))
			snprintf(text, sizeof(text), "%.16s:%.16s", m->domain,
				 m->drive);
		else if (!strcmp(m->role, "witness"))
			snprintf(text, sizeof(text), "%.16s:%.16s witness",
				 m->domain, m->drive);
		else
			snprintf(text, sizeof(text), "%.16s:%.16s %s %d",
				 m->domain, m->drive, role, m->slot);
		w = text_columns(text) + (ok ? 0 : text_columns(m->state) + 1);
		if (x + w > r.x + r.w - 1) {
			x = r.x + TEXT_AT;
			l->y++;
			if (!more(l))
				return;
		}
		x += canvas_text(l->c, x, r.y + l->y, ok ? ROLE_TEXT : ROLE_DIM,
				 text);
		if (!ok)
			x += canvas_printf(l->c, x, r.y + l->y,
					   state_role(m->state), " %s",
					   m->state);
		x += 3;
	}
	l->y++;
}

/* ---- what it holds ------------------------------------------------------- */

/* Loud: this is data that is gone. */
static void draw_lost(struct lines *l, const struct m_vdisk *v)
{
	char text[96], a[FMT_MAX];

	if (v->log.blocks_lost <= 0)
		return;
	snprintf(text, sizeof(text),
		 "%s BLOCK%s OF 4 KiB LOST: reads of %s fail",
		 fmt_count(a, (double)v->log.blocks_lost),
		 v->log.blocks_lost > 1 ? "S" : "",
		 v->log.blocks_lost > 1 ? "them" : "it");
	line_text(l, "lost", ROLE_BAD | STYLE_BOLD, text);
}

static void draw_data(struct lines *l, const struct m_vdisk *v)
{
	const struct m_vdisk_log *f = &v->log;
	char text[256], a[FMT_MAX], b[FMT_MAX], d[FMT_MAX], e[FMT_MAX];
	size_t at;

	at = (size_t)snprintf(
		text, sizeof(text), "%s of %s written, stored in %s",
		size_of(f->blocks_mapped < 0 ? -1 : f->blocks_mapped * 4096, a),
		size_of(v->size_bytes, b), size_of(f->stored_bytes, d));
	if (isfinite(f->ratio))
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       ", ratio %s:1", fmt_3(e, f->ratio));
	if (f->zero_blocks > 0)
		snprintf(text + at, sizeof(text) - at, "; %s zero blocks came",
			 fmt_count(e, (double)f->zero_blocks));
	line_text(l, "data", ROLE_TEXT, text);
}

static void draw_space(struct lines *l, const struct m_vdisk *v)
{
	const struct m_vdisk_log *f = &v->log;
	char text[256], a[FMT_MAX], b[FMT_MAX], d[FMT_MAX], e[FMT_MAX];

	snprintf(text, sizeof(text), "%s free; log %s full; buffer %s of %s",
		 fmt_pct(a, f->free_share), fmt_pct(b, f->log_fill),
		 size_of(f->buffer_bytes, d), size_of(f->buffer_max_bytes, e));
	line_text(l, "space", f->free_share < 0.01 ? ROLE_WARN : ROLE_TEXT,
		  text);
}

/* ---- what a write costs -------------------------------------------------- */

#define CAUSES 6

static const struct {
	const char *name;
	unsigned role;
	size_t at;
} cause_of[CAUSES] = {
	{ "log", ROLE_S1, offsetof(struct m_amp, log) },
	{ "destage", ROLE_S2, offsetof(struct m_amp, destage) },
	{ "bypass", ROLE_S3, offsetof(struct m_amp, bypass) },
	{ "cleaning", ROLE_S4, offsetof(struct m_amp, clean) },
	{ "rebuild", ROLE_S5, offsetof(struct m_amp, rebuild) },
	{ "checkpoint", ROLE_S6, offsetof(struct m_amp, checkpoint) },
};

static double cause(const struct m_amp *amp, size_t i)
{
	return *(const double *)((const char *)amp + cause_of[i].at);
}

/* By cause, each a letter in the bar as well as a colour. */
static void amp_bar(struct canvas *c, int x, int y, int w,
		    const struct m_amp *amp)
{
	double sum = 0;
	int from = 0;

	bar_draw(c, x, y, w, NAN, ROLE_AXIS);
	for (size_t i = 0; i < CAUSES; i++) {
		const double part = cause(amp, i);
		int to;

		if (!(part > 0) || !(amp->all > 0))
			continue;
		sum += part;
		to = (int)lround(sum / amp->all * w);
		for (int at = from; at < to; at++)
			canvas_put(c, x + at, y, cause_of[i].role,
				   at == from && to - from > 1
					   ? (uint32_t)cause_of[i].name[0]
					   : 0x2501);
		from = to > from ? to : from;
	}
}

/* Named in the bar's order; what does not fit goes on below. */
static void draw_causes(struct lines *l, const struct m_amp *amp)
{
	const int from = l->r.x + TEXT_AT + 1, gap = l->r.w > 90 ? 3 : 1;
	int x = from;

	for (size_t i = 0; i < CAUSES && more(l); i++) {
		const double part = cause(amp, i);
		char a[FMT_MAX];
		int w;

		if (part < 0.0005)
			snprintf(a, sizeof(a), "-");
		else
			fmt_3(a, part);
		w = text_columns(cause_of[i].name) + 1 + text_columns(a);
		if (x + w > l->r.x + l->r.w) {
			x = from;
			if (++l->y >= l->r.h)
				return;
		}
		canvas_text(l->c, x, l->r.y + l->y, cause_of[i].role,
			    cause_of[i].name);
		canvas_right(l->c, x + w, l->r.y + l->y, ROLE_TEXT, a);
		x += w + gap;
	}
	l->y++;
}

static void draw_amp(struct lines *l, const struct m_vdisk *v)
{
	struct vdisk_now now;
	char a[FMT_MAX];
	int x, w = l->r.w - TEXT_AT - 30;

	if (!more(l))
		return;
	vdisk_now(v, l->scene->now_us, &now);
	x = line_begin(l, "write amp");
	x += 1 +
	     canvas_text(l->c, x + 1, l->r.y + l->y, ROLE_TEXT | STYLE_BOLD,
			 vdisk_amp_text(a, &now)) +
	     2;
	amp_bar(l->c, x, l->r.y + l->y, w > 60 ? 60 : w, &now.amp);
	canvas_text(l->c, x + (w > 60 ? 60 : w) + 2, l->r.y + l->y++, ROLE_DIM,
		    !isfinite(now.amp.all)
			    ? now.unasked ? "no user writes" : "nothing written"
		    : now.since_open ? "since opened"
				     : "in 10 s");
	if (!more(l))
		return;
	draw_causes(l, &now.amp);
}

/* ---- in the background --------------------------------------------------- */

static void draw_progress(struct lines *l, const struct m_vdisk *v)
{
	char a[FMT_MAX], b[FMT_MAX], d[FMT_MAX];
	const double left = v->left_bytes / v->rate_bytes_s;
	int x;

	if (!vdisk_moving(v) || !more(l))
		return;
	x = line_begin(l,
		       !strcmp(v->state, "migrating") ? "moving" : "rebuild");
	bar_draw(l->c, x, l->r.y + l->y, 24, v->progress, ROLE_WARN);
	canvas_printf(l->c, x + 25, l->r.y + l->y, ROLE_TEXT, "%s",
		      fmt_pct(a, v->progress));
	canvas_printf(l->c, x + 32, l->r.y + l->y++, ROLE_DIM,
		      "%s at %s, %s left", fmt_bytes(a, v->left_bytes),
		      fmt_rate(b, v->rate_bytes_s), fmt_span(d, left));
}

static void draw_cleaning(struct lines *l, const struct m_vdisk *v)
{
	const struct m_vdisk_log *f = &v->log;
	struct vdisk_now now;
	char text[256], a[FMT_MAX], b[FMT_MAX], d[FMT_MAX];

	vdisk_now(v, l->scene->now_us, &now);
	if (!(f->segments_cleaned > 0) && !(now.clean_s > 0))
		return;
	snprintf(text, sizeof(text),
		 "%s; %s segments cleaned so far, the last %s live",
		 fmt_rate(a, now.clean_s), known(f->segments_cleaned, b),
		 fmt_pct(d, f->victim_live));
	line_text(l, "cleaning", ROLE_TEXT, text);
}

static void draw_opened(struct lines *l, const struct m_vdisk *v)
{
	const struct m_vdisk_log *f = &v->log;
	char text[256], a[FMT_MAX], b[FMT_MAX], d[FMT_MAX], e[FMT_MAX];
	size_t at;

	if (f->opening_us == 0)
		at = (size_t)snprintf(text, sizeof(text), "newly made");
	else
		at = (size_t)snprintf(
			text, sizeof(text), "%s record%s replayed",
			known(f->replayed, a), f->replayed == 1 ? "" : "s");
	if (f->opening_us > 0)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       " in %s ms",
				       fmt_ms(b, (double)f->opening_us));
	if (f->reads_degraded > 0 || f->reads_repaired > 0 ||
	    f->reads_hedged > 0)
		snprintf(text + at, sizeof(text) - at,
			 "; reads: %s from others, %s repaired, %s hedged",
			 known(f->reads_degraded, b),
			 known(f->reads_repaired, d),
			 known(f->reads_hedged, e));
	line_text(l, "opened", ROLE_TEXT, text);
}

static void draw_reason(struct lines *l, const struct m_vdisk *v)
{
	if (v->reason[0])
		line_text(l, "because", state_role(v->state), v->reason);
}

int vdisk_detail_draw(const struct scene *scene, struct canvas *c,
		      struct rect r, const struct m_vdisk *v)
{
	struct lines l = { scene, c, canvas_head(c, r, v->name), 0 };

	draw_lost(&l, v);
	draw_policy(&l, v);
	if (!vdisk_is_log(v))
		draw_costs(&l, v);
	draw_members(&l, v);
	draw_reason(&l, v);
	draw_progress(&l, v);
	draw_compliance(&l, v);
	if (vdisk_is_log(v) && v->log.t_us >= 0) {
		draw_amp(&l, v);
		draw_data(&l, v);
		draw_space(&l, v);
		draw_cleaning(&l, v);
		draw_opened(&l, v);
	}
	return 1 + (l.y < l.r.h ? l.y : l.r.h);
}
