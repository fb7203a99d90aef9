/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Columns over time: a spark line one row high, or a strip of several.
 */
#ifndef TUI_CHART_SPARK_H
#define TUI_CHART_SPARK_H

#include "tui/chart/canvas.h"

/*
 * The last r.w of n values, the newest at the right edge. max: what fills the
 * height. NAN and what lies left of the first value stay empty.
 */
void spark_draw(struct canvas *c, struct rect r, const double *value, size_t n,
		double max, unsigned style);

#endif
