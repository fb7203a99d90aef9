/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/chart/spark.h"

#include <math.h>

void spark_draw(struct canvas *c, struct rect r, const double *value, size_t n,
		double max, unsigned style)
{
	size_t first = n > (size_t)r.w ? n - (size_t)r.w : 0;
	int x = r.x + r.w - (int)(n - first);

	if (!isfinite(max) || max <= 0 || r.w < 1 || r.h < 1)
		return;
	for (size_t i = first; i < n; i++, x++) {
		int eighths;

		if (!isfinite(value[i]))
			continue;
		eighths = (int)lround(value[i] / max * r.h * 8);
		/* Something is never drawn as nothing, nor beyond the top. */
		eighths = eighths < 1 ? 1 : eighths;
		eighths = eighths > r.h * 8 ? r.h * 8 : eighths;
		for (int y = r.y + r.h - 1; eighths > 0; y--, eighths -= 8)
			canvas_put(c, x, y, style,
				   0x2580u + (unsigned)(eighths > 8 ? 8
								    : eighths));
	}
}
