/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Axes: round numbers (1, 2, 2.5, 5 times a power of ten), linear or log. An
 * axis steps, it does not breathe: once fitted it stays until the data leave
 * it or fill little of it.
 */
#ifndef TUI_CHART_AXIS_H
#define TUI_CHART_AXIS_H

#include "engine/base.h"

#define AXIS_TICKS_MAX 24

struct axis {
	double lo, hi; /* hi 0: not fitted yet */
	double step;   /* linear */
	bool log;
};

/* Smallest of 1, 2, 2.5, 5 times a power of ten that is >= v; v > 0. */
double axis_round(double v);

/*
 * Makes the axis hold lo..hi with at most `ticks` steps. Linear axes begin at
 * 0. Not finite or not positive: an axis of 0..1 (log 0.1..1).
 */
void axis_fit(struct axis *axis, bool log, double lo, double hi,
	      unsigned ticks);
/* Where v lies: 0 at lo, 1 at hi; outside for what is outside. */
double axis_at(const struct axis *axis, double v);
/* Values of the ticks, at most `max`, rising. Returns how many. */
size_t axis_ticks(const struct axis *axis, size_t max, double *tick);

#endif
