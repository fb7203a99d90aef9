/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/chart/heat.h"

#include <math.h>

#include "tui/fmt.h"

#define STEPS 8
#define LABEL_W 7

/* Rows that hold anything, with one to spare on either side. */
static void heat_span(const struct heat *heat, size_t first, size_t *lo,
		      size_t *hi)
{
	*lo = heat->rows;
	*hi = 0;
	for (size_t x = first; x < heat->columns; x++)
		for (size_t y = 0; y < heat->rows; y++)
			if (heat->count[x * heat->rows + y]) {
				*lo = y < *lo ? y : *lo;
				*hi = y > *hi ? y : *hi;
			}
	if (*lo > *hi)
		*lo = *hi = 0;
	*lo -= *lo > 0;
	*hi += *hi + 1 < heat->rows;
}

/* Steps are powers of four of a column's share, so that a tail of one in ten
 * thousand can still be seen beside the bulk. */
static unsigned heat_step(uint32_t count, uint64_t sum)
{
	double share = (double)count / (double)sum;
	int step = STEPS + (int)ceil(log2(share) / 1.7);

	return step < 1 ? 1 : step > STEPS ? STEPS : (unsigned)step;
}

static void heat_cell(struct canvas *c, int x, int y, unsigned step)
{
	static const uint32_t shade[STEPS] = { 0x00b7, 0x2591, 0x2591, 0x2592,
					       0x2592, 0x2593, 0x2593, 0x2588 };

	canvas_put(c, x, y, ROLE_HEAT0 + step - 1, shade[step - 1]);
}

/* The first bucket that a row of the picture shows. All `span` buckets share
 * its height: where it is higher, some by a row more than others; where it is
 * lower, a row shows all from its own first to the next row's. */
static size_t row_bucket(int from_low, int h, size_t lo, size_t span)
{
	return lo + (size_t)from_low * span / (size_t)h;
}

struct view {
	struct canvas *c;
	const struct heat *heat;
	struct rect in;
	size_t lo, span;
};

static uint32_t row_count(const struct view *v, const uint32_t *count, int y)
{
	const size_t from = row_bucket(y, v->in.h, v->lo, v->span);
	const size_t to = row_bucket(y + 1, v->in.h, v->lo, v->span);
	uint32_t sum = from < v->heat->rows ? count[from] : 0;

	for (size_t row = from + 1; row < to && row < v->heat->rows; row++)
		sum += count[row];
	return sum;
}

static void heat_column(const struct view *v, size_t col, int x)
{
	const struct heat *heat = v->heat;
	const uint32_t *count = &heat->count[col * heat->rows];
	int low = v->in.y + v->in.h - 1;
	uint64_t sum = 0;

	for (size_t y = 0; y < heat->rows; y++)
		sum += count[y];
	for (int y = 0; y < v->in.h && sum; y++) {
		const uint32_t here = row_count(v, count, y);

		if (here)
			heat_cell(v->c, x, low - y, heat_step(here, sum));
	}
	if (heat->line && isfinite(heat->line[col])) {
		double at = (heat->line[col] - (double)v->lo) /
			    (double)v->span * v->in.h;

		if (at >= 0 && at < v->in.h)
			canvas_put(v->c, x, low - (int)at, ROLE_TEXT, 0x2501);
	}
}

static void heat_labels(const struct view *v)
{
	size_t last = SIZE_MAX;
	char buf[FMT_MAX];
	int gap = 2;

	canvas_vline(v->c, v->in.x - 1, v->in.y, v->in.h, ROLE_AXIS);
	for (int y = 0; y < v->in.h; y++, gap++) {
		size_t row = row_bucket(y, v->in.h, v->lo, v->span);

		if (row == last || row >= v->heat->rows || gap < 2)
			continue;
		canvas_right(v->c, v->in.x - 1, v->in.y + v->in.h - 1 - y,
			     ROLE_AXIS, v->heat->label(row, buf));
		last = row;
		gap = 0;
	}
}

void heat_draw(struct canvas *c, struct rect r, const struct heat *heat)
{
	struct view v = {
		c, heat, { r.x + LABEL_W, r.y, r.w - LABEL_W, r.h }, 0, 0
	};
	size_t first, hi;
	int x;

	if (v.in.w < 1 || r.h < 2)
		return;
	first = heat->columns > (size_t)v.in.w ? heat->columns - (size_t)v.in.w
					       : 0;
	heat_span(heat, first, &v.lo, &hi);
	v.span = hi - v.lo + 1;
	heat_labels(&v);
	x = v.in.x + v.in.w - (int)(heat->columns - first);
	for (size_t col = first; col < heat->columns; col++, x++)
		heat_column(&v, col, x);
}
