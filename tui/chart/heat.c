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

static void heat_column(struct canvas *c, struct rect r,
			const struct heat *heat, size_t col, int x, size_t lo,
			int tall)
{
	const uint32_t *count = &heat->count[col * heat->rows];
	uint64_t sum = 0;

	for (size_t y = 0; y < heat->rows; y++)
		sum += count[y];
	for (int y = 0; y < r.h && sum; y++) {
		size_t row = lo + (size_t)(y / tall);

		if (row < heat->rows && count[row])
			heat_cell(c, x, r.y + r.h - 1 - y,
				  heat_step(count[row], sum));
	}
	if (heat->line && isfinite(heat->line[col])) {
		int y = (int)floor((heat->line[col] - (double)lo) * tall);

		if (y >= 0 && y < r.h)
			canvas_put(c, x, r.y + r.h - 1 - y, ROLE_TEXT, 0x2500);
	}
}

void heat_draw(struct canvas *c, struct rect r, const struct heat *heat)
{
	struct rect in = { r.x + LABEL_W, r.y, r.w - LABEL_W, r.h };
	size_t first, lo, hi;
	char buf[FMT_MAX];
	int tall, x;

	if (in.w < 1 || r.h < 2)
		return;
	first = heat->columns > (size_t)in.w ? heat->columns - (size_t)in.w : 0;
	heat_span(heat, first, &lo, &hi);
	tall = r.h / (int)(hi - lo + 1);
	tall = tall < 1 ? 1 : tall > 3 ? 3 : tall;
	canvas_vline(c, in.x - 1, r.y, r.h, ROLE_AXIS);
	for (int y = 0; y < r.h; y += tall) {
		size_t row = lo + (size_t)(y / tall);

		if (row >= heat->rows || (tall == 1 && (row - lo) % 2))
			continue;
		canvas_right(c, in.x - 1, r.y + r.h - 1 - y, ROLE_AXIS,
			     heat->label(row, buf));
	}
	x = in.x + in.w - (int)(heat->columns - first);
	for (size_t col = first; col < heat->columns; col++, x++)
		heat_column(c, in, heat, col, x, lo, tall);
}
