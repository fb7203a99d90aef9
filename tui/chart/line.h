/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The line chart: IOPS across, latency up. Series differ by marker, letter and
 * stroke as well as colour; the legend sits at each line's end.
 */
#ifndef TUI_CHART_LINE_H
#define TUI_CHART_LINE_H

#include "tui/chart/axis.h"
#include "tui/chart/canvas.h"

enum {
	LINE_GROWING = 1,   /* still being measured */
	LINE_SATURATED = 2, /* achieved less than asked */
};

struct line_point {
	double x, y; /* NAN: left out, the line goes on */
	unsigned flags;
};

struct line_mark {
	double x, y;
	const char *label;
};

struct line_series {
	const char *label;
	const char *note; /* behind the label where there is room; or NULL */
	unsigned index;   /* gives letter, marker, stroke and colour */
	const struct line_point *point;
	size_t points;
	const struct line_mark *mark;
	size_t marks;
};

/* The most a series can come to: a line up at this x. */
struct line_limit {
	double x;
	const char *label;
	unsigned index; /* of its series */
};

struct line_chart {
	const struct axis *x, *y;
	const char *x_unit;
	double bound; /* a line across at this y; NAN none */
	const char *bound_label;
	const struct line_series *series;
	size_t count;
	size_t focus;                   /* drawn last, on top; SIZE_MAX none */
	const struct line_limit *limit; /* 32 of them at most are drawn */
	size_t limits;
};

void line_chart_draw(struct canvas *c, struct rect r,
		     const struct line_chart *chart);

/* What tells series `index` apart. */
char series_letter(unsigned index);
unsigned series_role(unsigned index);
/* flags as of a point */
uint32_t series_marker(unsigned index, unsigned flags);

#endif
