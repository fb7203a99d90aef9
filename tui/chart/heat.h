/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A heat map: latency up in powers of two, time across, how many as shade and
 * colour. Shade alone tells the steps apart, so it works without colour.
 */
#ifndef TUI_CHART_HEAT_H
#define TUI_CHART_HEAT_H

#include "tui/chart/canvas.h"

struct heat {
	const uint32_t *count; /* columns x rows: count[column * rows + row] */
	size_t rows, columns;  /* row 0 is the lowest latency */
	const double *line;    /* a row's value a column to draw over, or NULL;
				  in rows, fractions welcome, NAN none */
	const char *(*label)(size_t row, char *buf); /* of a row's lower edge */
};

/* The newest column at the right edge. */
void heat_draw(struct canvas *c, struct rect r, const struct heat *heat);

#endif
