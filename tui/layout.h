/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a size to rectangles; pure, so that tests can walk thousands of sizes.
 * A rectangle without height or width is not shown at this size.
 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include "tui/chart/canvas.h"

#define LAYOUT_W_MIN 60
#define LAYOUT_H_MIN 15

/* What stands around every screen. */
struct layout_frame {
	struct rect head, tabs, body, guide, replay, message, keys;
};
bool layout_frame(int w, int h, bool guide, bool replay,
		  struct layout_frame *f);

/* Run: small has chart, point, strip, nodes, bound; large all. */
struct layout_run {
	bool large;
	struct rect chart, point, strip, nodes, bound, heat, table, drives;
	struct rect figures;
};
struct layout_run_of {
	size_t domains, drives, series;
	int figures;        /* rows of the vDisk's; 0 there are none */
	bool figures_first; /* before the heat map, where both have no room */
};
void layout_run(struct rect body, const struct layout_run_of *of,
		struct layout_run *l);

/* A list above, what is under the cursor below (or beside it when wide). */
struct layout_list {
	struct rect list, detail;
};
void layout_list(struct rect body, size_t rows, struct layout_list *l);

/* First row to show so that `at` is among `rows` of `count`; `top` as it was:
 * it moves no further than it must. */
int layout_scroll(int count, int at, int rows, int top);

#endif
