/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Drawn in this order, because text is never covered: axes, strokes as dots,
 * markers, marks and legends as text, and bound and limits where nothing else
 * is.
 */
#include "tui/chart/line.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/fmt.h"

#define LIMITS_MAX 32

struct plot {
	struct canvas *c;
	const struct line_chart *chart;
	struct rect in; /* between the axes */
};

/* Dots on and off, in turns; a solid one has no off. */
static const unsigned char stroke[6][4] = {
	{ 1, 0, 1, 0 }, { 5, 3, 5, 3 }, { 1, 2, 1, 2 },
	{ 6, 2, 1, 2 }, { 3, 3, 3, 3 }, { 8, 4, 2, 4 },
};

static const uint32_t marker_done[] = { 0x25cf, 0x25a0, 0x25b2,
					0x25c6, 0x25bc, '*' };
static const uint32_t marker_growing[] = { 0x25cb, 0x25a1, 0x25b3,
					   0x25c7, 0x25bd, '+' };

char series_letter(unsigned index)
{
	return (char)('a' + index % 26);
}

unsigned series_role(unsigned index)
{
	return ROLE_S1 + index % 6;
}

uint32_t series_marker(unsigned index, unsigned flags)
{
	if (flags & LINE_SATURATED)
		return 0x00d7;
	return (flags & LINE_GROWING ? marker_growing : marker_done)[index % 6];
}

/* ---- axes ---------------------------------------------------------------- */

static int gutter(const struct line_chart *chart, int rows)
{
	double tick[AXIS_TICKS_MAX];
	size_t n = axis_ticks(chart->y, rows < 4 ? 2 : AXIS_TICKS_MAX, tick);
	char buf[FMT_MAX];
	int w = 3;

	for (size_t i = 0; i < n; i++) {
		int cols = text_columns(fmt_tick(buf, tick[i]));

		w = cols > w ? cols : w;
	}
	return w + 1;
}

static int row_of(const struct plot *p, double v)
{
	double at = axis_at(p->chart->y, v);

	return p->in.y + p->in.h - 1 -
	       (int)floor(at * (p->in.h * 4 - 1) / 4 + 1e-9);
}

static int column_of(const struct plot *p, double v)
{
	double at = axis_at(p->chart->x, v);

	return p->in.x + (int)floor(at * (p->in.w * 2 - 1) / 2 + 1e-9);
}

static void draw_y(const struct plot *p)
{
	double tick[AXIS_TICKS_MAX];
	size_t most = p->in.h > 3 ? (size_t)p->in.h / 2 + 1 : 2, n;
	char buf[FMT_MAX];

	canvas_vline(p->c, p->in.x - 1, p->in.y, p->in.h, ROLE_AXIS);
	most = most > AXIS_TICKS_MAX ? AXIS_TICKS_MAX : most;
	n = axis_ticks(p->chart->y, most, tick);
	for (size_t i = 0; i < n; i++) {
		int y = row_of(p, tick[i]);

		if (y < p->in.y || y >= p->in.y + p->in.h)
			continue;
		canvas_put(p->c, p->in.x - 1, y, ROLE_AXIS, 0x2524);
		canvas_right(p->c, p->in.x - 1, y, ROLE_AXIS,
			     fmt_tick(buf, tick[i]));
	}
}

static void draw_x(const struct plot *p)
{
	double tick[AXIS_TICKS_MAX];
	int y = p->in.y + p->in.h, right = p->in.x + p->in.w;
	int unit = text_columns(p->chart->x_unit), taken = p->in.x - 3;
	size_t most = (size_t)p->in.w / 8 + 2, n;
	char buf[FMT_MAX];

	canvas_put(p->c, p->in.x - 1, y, ROLE_AXIS, 0x2514);
	canvas_hline(p->c, p->in.x, y, p->in.w, ROLE_AXIS);
	canvas_right(p->c, right, y + 1, ROLE_AXIS, p->chart->x_unit);
	most = most > AXIS_TICKS_MAX ? AXIS_TICKS_MAX : most;
	n = axis_ticks(p->chart->x, most, tick);
	for (size_t i = 0; i < n; i++) {
		int x = column_of(p, tick[i]), cols, from;

		cols = text_columns(fmt_tick(buf, tick[i]));
		from = x - cols / 2;
		if (x >= right)
			x = right - 1;
		canvas_put(p->c, x, y, ROLE_AXIS, 0x252c);
		if (from <= taken || from + cols >= right - unit)
			continue;
		canvas_text(p->c, from, y + 1, ROLE_AXIS, buf);
		taken = from + cols;
	}
}

/* ---- strokes and markers ------------------------------------------------- */

struct pen {
	unsigned style, kind, slot, left;
};

static bool pen_down(struct pen *pen)
{
	if (!stroke[pen->kind][1])
		return true;
	while (!pen->left) {
		pen->slot = (pen->slot + 1) % 4;
		pen->left = stroke[pen->kind][pen->slot];
	}
	pen->left--;
	return pen->slot % 2 == 0;
}

static void draw_stroke(const struct plot *p, struct pen *pen, int x0, int y0,
			int x1, int y1)
{
	int dx = abs(x1 - x0), dy = -abs(y1 - y0), e = dx + dy;
	int sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1;

	for (;;) {
		if (pen_down(pen))
			canvas_dot(p->c, p->in.x * 2 + x0, p->in.y * 4 + y0,
				   pen->style);
		if (x0 == x1 && y0 == y1)
			return;
		if (2 * e >= dy) {
			e += dy;
			x0 += sx;
		} else {
			e += dx;
			y0 += sy;
		}
	}
}

static int clamp(double v, int hi)
{
	return v < 0 ? 0 : v > hi ? hi : (int)v;
}

static void point_dots(const struct plot *p, const struct line_point *at,
		       int *x, int *y)
{
	double px = axis_at(p->chart->x, at->x) * (p->in.w * 2 - 1);
	double py = axis_at(p->chart->y, at->y) * (p->in.h * 4 - 1);

	*x = clamp(px + 1e-6, p->in.w * 2 - 1);
	*y = p->in.h * 4 - 1 - clamp(py + 1e-6, p->in.h * 4 - 1);
}

static bool point_known(const struct line_point *at)
{
	return isfinite(at->x) && isfinite(at->y);
}

static void draw_strokes(const struct plot *p, const struct line_series *s)
{
	struct pen pen = { series_role(s->index), s->index % 6, 0,
			   stroke[s->index % 6][0] };
	bool begun = false;
	int px = 0, py = 0, x, y;

	for (size_t i = 0; i < s->points; i++) {
		if (!point_known(&s->point[i]))
			continue;
		point_dots(p, &s->point[i], &x, &y);
		if (begun)
			draw_stroke(p, &pen, px, py, x, y);
		px = x, py = y;
		begun = true;
	}
}

static void draw_markers(const struct plot *p, const struct line_series *s)
{
	for (size_t i = 0; i < s->points; i++) {
		const struct line_point *at = &s->point[i];
		unsigned style = series_role(s->index);
		uint32_t ch = series_marker(s->index, at->flags);
		int x, y;

		if (!point_known(at))
			continue;
		point_dots(p, at, &x, &y);
		if (axis_at(p->chart->y, at->y) > 1.0001)
			ch = 0x2191;
		if (at->flags & LINE_GROWING)
			style |= STYLE_BOLD;
		canvas_put(p->c, p->in.x + x / 2, p->in.y + y / 4, style, ch);
	}
}

/* ---- labels -------------------------------------------------------------- */

/* What a label would cover here; INT_MAX where it must not stand. */
static int label_cost(const struct plot *p, int x, int y, int cols)
{
	int cost = 0;

	if (x < p->in.x || x + cols > p->in.x + p->in.w || y < p->in.y ||
	    y >= p->in.y + p->in.h)
		return INT_MAX;
	for (int i = -1; i <= cols; i++) {
		const struct cell *cell;

		if (x + i < p->in.x || x + i >= p->in.x + p->in.w)
			continue;
		cell = canvas_cell(p->c, x + i, y);
		if (cell->ch && i >= 0 && i < cols)
			return INT_MAX;
		cost += cell->ch ? 6 : cell->dots ? 4 : 0;
	}
	return cost;
}

/* Finds the cheapest place near (x, y), nearest first. */
static bool label_place(const struct plot *p, int *x, int *y, int cols)
{
	int best = INT_MAX, bx = 0, by = 0;

	for (int far = 0; far < 7; far++)
		for (int side = 0; side < 3; side++)
			for (int up = 1; up >= -1; up -= 2) {
				int lx = side == 0   ? *x + 2
					 : side == 1 ? *x - cols - 1
						     : *x - cols / 2;
				int ly = *y - up * far, cost;

				if (side == 2 && far == 0)
					continue;
				cost = label_cost(p, lx, ly, cols);
				if (cost == INT_MAX)
					continue;
				cost += far * 3 + side;
				if (cost < best)
					best = cost, bx = lx, by = ly;
			}
	*x = bx;
	*y = by;
	return best < INT_MAX;
}

/* As much of it as there is room for: all, without the note, the letter. */
static void draw_legend(const struct plot *p, const struct line_series *s)
{
	char text[3][128];
	size_t last = s->points;
	char letter = series_letter(s->index);

	while (last && !point_known(&s->point[last - 1]))
		last--;
	if (!last)
		return;
	snprintf(text[0], sizeof(text[0]), "%c %s, %s", letter, s->label,
		 s->note ? s->note : "");
	snprintf(text[1], sizeof(text[1]), "%c %s", letter, s->label);
	snprintf(text[2], sizeof(text[2]), "%c", letter);
	for (int i = s->note ? 0 : 1; i < 3; i++) {
		int x = 0, y = 0;

		point_dots(p, &s->point[last - 1], &x, &y);
		x = p->in.x + x / 2;
		y = p->in.y + y / 4;
		if (!label_place(p, &x, &y, text_columns(text[i])))
			continue;
		canvas_text(p->c, x, y, series_role(s->index) | STYLE_BOLD,
			    text[i]);
		return;
	}
}

static void draw_marks(const struct plot *p, const struct line_series *s)
{
	for (size_t i = 0; i < s->marks; i++) {
		const struct line_mark *m = &s->mark[i];
		struct line_point at = { m->x, m->y, 0 };
		int x, y;

		if (!point_known(&at))
			continue;
		point_dots(p, &at, &x, &y);
		x = p->in.x + x / 2;
		y = p->in.y + y / 4;
		if (!canvas_cell(p->c, x, y)->ch)
			canvas_put(p->c, x, y, series_role(s->index), '+');
		if (label_place(p, &x, &y, text_columns(m->label)))
			canvas_text(p->c, x, y, series_role(s->index),
				    m->label);
	}
}

static void draw_bound(const struct plot *p)
{
	int y, right = p->in.x + p->in.w, cols;
	double at = axis_at(p->chart->y, p->chart->bound);

	if (!isfinite(p->chart->bound) || at <= 0 || at > 1)
		return;
	y = row_of(p, p->chart->bound);
	cols = text_columns(p->chart->bound_label);
	if (label_cost(p, right - cols, y, cols) == 0)
		canvas_text(p->c, right - cols, y, ROLE_AXIS,
			    p->chart->bound_label);
	for (int x = p->in.x; x < right; x++)
		/* In ASCII a dashed line has to have gaps to look like one. */
		if (!canvas_used(p->c, x, y) &&
		    (p->c->glyphs == GLYPHS_UTF8 || x % 2))
			canvas_put(p->c, x, y, ROLE_AXIS, 0x254c);
}

/* A free place for a limit's label on either side of its line, from the top
 * down; beyond the axis at its end. */
static bool limit_place(const struct plot *p, int line, int cols, int *x,
			int *y)
{
	for (*y = p->in.y; *y < p->in.y + p->in.h; (*y)++)
		for (int side = 0; side < 2; side++) {
			*x = side ? line + 2 : line - cols - 1;
			if (label_cost(p, *x, *y, cols) == 0)
				return true;
		}
	return false;
}

static bool limit_beyond(const struct plot *p, const struct line_limit *l)
{
	return axis_at(p->chart->x, l->x) > 1;
}

static bool limit_known(const struct plot *p, const struct line_limit *l)
{
	return isfinite(l->x) && axis_at(p->chart->x, l->x) > 0;
}

/* All of it, or the figure alone, or whose it is. False: there is no room. */
static bool limit_label(const struct plot *p, const struct line_limit *l)
{
	const bool beyond = limit_beyond(p, l);
	const char *end = beyond ? " \xe2\x86\x92" : "";
	const char letter = series_letter(l->index);
	const int line = beyond ? p->in.x + p->in.w : column_of(p, l->x);
	const char *why = strstr(l->label, " (");
	const int figure =
		(int)(why ? (size_t)(why - l->label) : strlen(l->label));
	char text[3][96];
	int x, y;

	snprintf(text[0], sizeof(text[0]), "%c %s%s", letter, l->label, end);
	snprintf(text[1], sizeof(text[1]), "%c %.*s%s", letter, figure,
		 l->label, end);
	snprintf(text[2], sizeof(text[2]), "%c%s", letter, end);
	for (int i = 0; i < 3; i++) {
		if (!limit_place(p, line, text_columns(text[i]), &x, &y))
			continue;
		canvas_text(p->c, x, y, series_role(l->index), text[i]);
		return true;
	}
	return false;
}

static void limit_line(const struct plot *p, const struct line_limit *l)
{
	const int x = column_of(p, l->x);

	for (int y = p->in.y; y < p->in.y + p->in.h; y++)
		if (!canvas_used(p->c, x, y))
			canvas_put(p->c, x, y, series_role(l->index), 0x250a);
}

/* Labels first: a line goes around them, and says nothing without its own. */
static void draw_limits(const struct plot *p)
{
	const struct line_limit *l = p->chart->limit;
	bool named[LIMITS_MAX] = { false };
	const size_t n =
		p->chart->limits < LIMITS_MAX ? p->chart->limits : LIMITS_MAX;

	for (size_t i = 0; i < n; i++)
		named[i] = limit_known(p, &l[i]) && limit_label(p, &l[i]);
	for (size_t i = 0; i < n; i++)
		if (named[i] && !limit_beyond(p, &l[i]))
			limit_line(p, &l[i]);
}

/* Each series, the one in focus last. */
static void each(const struct plot *p,
		 void (*draw)(const struct plot *, const struct line_series *))
{
	const struct line_chart *chart = p->chart;

	for (size_t i = 0; i < chart->count; i++)
		if (i != chart->focus)
			draw(p, &chart->series[i]);
	if (chart->focus < chart->count)
		draw(p, &chart->series[chart->focus]);
}

void line_chart_draw(struct canvas *c, struct rect r,
		     const struct line_chart *chart)
{
	struct plot p = { c, chart, r };
	int left = gutter(chart, r.h - 2);
	struct rect old;

	if (r.w < left + 8 || r.h < 5)
		return;
	old = canvas_clip(c, r);
	p.in = (struct rect) { r.x + left, r.y, r.w - left, r.h - 2 };
	draw_y(&p);
	draw_x(&p);
	each(&p, draw_strokes);
	each(&p, draw_markers);
	each(&p, draw_legend);
	each(&p, draw_marks);
	draw_limits(&p);
	draw_bound(&p);
	c->clip = old;
}
