/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Horizontal bars of shares.
 */
#ifndef TUI_CHART_BARS_H
#define TUI_CHART_BARS_H

#include "tui/chart/canvas.h"

/* share 0..1 of w columns, half columns counted; NAN draws the track alone. */
void bar_draw(struct canvas *c, int x, int y, int w, double share,
	      unsigned style);

struct bar_part {
	double share;
	unsigned style;
};
/* Parts side by side; what they leave of 1 is track. */
void bar_stack_draw(struct canvas *c, int x, int y, int w,
		    const struct bar_part *part, size_t parts);

/* The role of a load: quiet below 0.8, warn from there, bad from 0.95. */
unsigned bar_load_role(double share);

#endif
