/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/layout.h"

static int at_least(int v, int least)
{
	return v < least ? least : v;
}

static int at_most(int v, int most)
{
	return v > most ? most : v;
}

/* Takes n rows off the bottom of r, as many as there are. */
static struct rect cut_low(struct rect *r, int n)
{
	n = at_most(at_least(n, 0), r->h);
	r->h -= n;
	return (struct rect) { r->x, r->y + r->h, r->w, n };
}

static struct rect cut_top(struct rect *r, int n)
{
	struct rect top;

	n = at_most(at_least(n, 0), r->h);
	top = (struct rect) { r->x, r->y, r->w, n };
	r->y += n;
	r->h -= n;
	return top;
}

static struct rect cut_right(struct rect *r, int n)
{
	n = at_most(at_least(n, 0), r->w);
	r->w -= n;
	return (struct rect) { r->x + r->w, r->y, n, r->h };
}

bool layout_frame(int w, int h, bool guide, bool replay, struct layout_frame *f)
{
	struct rect all = { 0, 0, w, h };

	*f = (struct layout_frame) { 0 };
	if (w < LAYOUT_W_MIN || h < LAYOUT_H_MIN)
		return false;
	f->head = cut_top(&all, 1);
	f->tabs = cut_top(&all, 1);
	f->keys = cut_low(&all, 1);
	f->message = cut_low(&all, 1);
	if (replay)
		f->replay = cut_low(&all, h >= 40 ? 2 : 1);
	if (guide)
		f->guide = cut_low(&all, h >= 40 ? 4 : h >= 22 ? 3 : 2);
	f->body = all;
	return true;
}

#define HEAT_ROWS 9 /* less of a heat map says little */

static void run_large(struct rect body, const struct layout_run_of *of,
		      struct layout_run *l)
{
	struct rect right = cut_right(&body, at_most(body.w / 3, 58));

	l->large = true;
	l->point = cut_top(&right, 15);
	l->table = cut_top(
		&right, at_most((int)of->series + 3, at_least(right.h / 3, 4)));
	l->bound = cut_low(&right, 4);
	l->nodes = cut_top(&right, at_most((int)of->domains + 3, right.h));
	l->drives = cut_top(&right, at_most((int)of->drives + 2, right.h));
	l->chart = cut_top(&body, body.h * 11 / 20);
	l->strip = cut_top(&body, 6);
	if (of->figures &&
	    (of->figures_first || body.h >= of->figures + 1 + HEAT_ROWS))
		l->figures = cut_top(&body, of->figures + 1);
	if (body.h >= HEAT_ROWS || !l->figures.h)
		l->heat = body;
}

void layout_run(struct rect body, const struct layout_run_of *of,
		struct layout_run *l)
{
	struct rect low;
	int rows;

	*l = (struct layout_run) { 0 };
	if (body.w >= 120 && body.h >= 32) {
		run_large(body, of, l);
		return;
	}
	/* two nodes a row, a heading, the host */
	rows = at_most(((int)of->domains + 1) / 2 + 2, body.h / 3);
	low = cut_low(&body, rows);
	if (body.h >= 10)
		l->strip = cut_low(&body, 1);
	l->bound = cut_right(&low, 27);
	l->nodes = low;
	l->point = cut_right(&body, 27);
	l->chart = body;
}

void layout_list(struct rect body, size_t rows, struct layout_list *l)
{
	int want = (int)(rows > 1000 ? 1000 : rows) + 1;

	*l = (struct layout_list) { 0 };
	l->list = cut_top(&body, at_most(at_least(want, 4),
					 at_least(body.h * 9 / 20, 4)));
	l->detail = body;
}

int layout_scroll(int count, int at, int rows, int top)
{
	if (rows < 1)
		return 0;
	if (at < top)
		top = at;
	if (at >= top + rows)
		top = at - rows + 1;
	return at_least(at_most(top, count - rows), 0);
}
