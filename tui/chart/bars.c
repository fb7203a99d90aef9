/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/chart/bars.h"

#include <math.h>

static void track(struct canvas *c, int x, int y, int w)
{
	for (int i = 0; i < w; i++)
		canvas_put(c, x + i, y, ROLE_AXIS, 0x2504);
}

void bar_draw(struct canvas *c, int x, int y, int w, double share,
	      unsigned style)
{
	int halves;

	track(c, x, y, w);
	if (!isfinite(share) || share <= 0)
		return;
	halves = (int)lround((share > 1 ? 1 : share) * w * 2);
	halves = halves < 1 ? 1 : halves;
	for (int i = 0; i < halves / 2; i++)
		canvas_put(c, x + i, y, style, 0x2501);
	if (halves & 1)
		canvas_put(c, x + halves / 2, y, style, 0x2578);
}

void bar_stack_draw(struct canvas *c, int x, int y, int w,
		    const struct bar_part *part, size_t parts)
{
	double sum = 0;
	int from = 0;

	track(c, x, y, w);
	for (size_t i = 0; i < parts; i++) {
		int to;

		if (!isfinite(part[i].share) || part[i].share <= 0)
			continue;
		sum += part[i].share;
		to = (int)lround((sum > 1 ? 1 : sum) * w);
		for (; from < to; from++)
			canvas_put(c, x + from, y, part[i].style, 0x2501);
	}
}

unsigned bar_load_role(double share)
{
	if (!isfinite(share))
		return ROLE_DIM;
	return share >= 0.95 ? ROLE_BAD : share >= 0.8 ? ROLE_WARN : ROLE_BAR;
}
