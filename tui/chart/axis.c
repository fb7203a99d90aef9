/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/chart/axis.h"

#include <math.h>

/* Below this share of the axis the data look lost, and it is fitted anew. */
#define FILL_LEAST 0.35
/* A step up leaves this much room. */
#define GROW 1.1

static const double round_step[] = { 1, 2, 2.5, 5, 10 };

double axis_round(double v)
{
	double unit = pow(10, floor(log10(v)));

	for (size_t i = 0; i < array_len(round_step); i++)
		if (round_step[i] * unit >= v * (1 - 1e-9))
			return round_step[i] * unit;
	return 10 * unit;
}

static double log_down(double v)
{
	double unit = pow(10, floor(log10(v) + 1e-9));

	return v >= 5 * unit ? 5 * unit : v >= 2 * unit ? 2 * unit : unit;
}

static double log_up(double v)
{
	double low = log_down(v), unit = pow(10, floor(log10(low) + 1e-9));

	if (low >= v * (1 - 1e-9))
		return low;
	return low < 1.5 * unit ? 2 * unit
	       : low < 3 * unit ? 5 * unit
				: 10 * unit;
}

static bool axis_holds(const struct axis *a, bool log, double lo, double hi)
{
	if (a->hi <= 0 || a->log != log || hi > a->hi)
		return false;
	if (!log)
		return hi >= a->hi * FILL_LEAST;
	return lo >= a->lo &&
	       log10(hi / lo) >= log10(a->hi / a->lo) * FILL_LEAST * 0.7;
}

static void fit_log(struct axis *a, double lo, double hi)
{
	a->lo = log_down(lo);
	a->hi = log_up(hi);
	if (a->hi <= a->lo * 1.5)
		a->hi = log_up(a->lo * 2.5);
	a->step = 0;
}

void axis_fit(struct axis *axis, bool log, double lo, double hi, unsigned ticks)
{
	bool grown;

	if (!isfinite(hi) || hi <= 0)
		hi = 1, lo = 0.1;
	if (!isfinite(lo) || lo <= 0 || lo > hi)
		lo = hi / 10;
	if (axis_holds(axis, log, lo, hi))
		return;
	if (log) {
		axis->log = true;
		fit_log(axis, lo, hi);
		return;
	}
	ticks = ticks < 2 ? 2 : ticks;
	grown = axis->hi > 0 && !axis->log && hi > axis->hi;
	axis->log = false;
	axis->lo = 0;
	axis->step = axis_round(hi / ticks);
	/* What outgrew its axis will grow on. */
	axis->hi =
		axis->step * ceil((grown ? hi * GROW : hi) / axis->step - 1e-9);
}

double axis_at(const struct axis *axis, double v)
{
	if (!axis->log)
		return (v - axis->lo) / (axis->hi - axis->lo);
	if (v <= 0)
		return -1;
	return log(v / axis->lo) / log(axis->hi / axis->lo);
}

static size_t ticks_log(const struct axis *a, size_t max, double *tick,
			bool decades)
{
	static const double in[] = { 1, 2, 5 };
	size_t n = 0;

	for (double d = pow(10, floor(log10(a->lo) + 1e-9));
	     d <= a->hi * 1.0001; d *= 10)
		for (size_t i = 0; i < (decades ? 1 : array_len(in)); i++) {
			double v = d * in[i];

			if (v < a->lo * 0.9999 || v > a->hi * 1.0001)
				continue;
			if (n == max)
				return max + 1;
			tick[n++] = v;
		}
	return n;
}

size_t axis_ticks(const struct axis *axis, size_t max, double *tick)
{
	size_t n = 0, every = 1, steps;

	if (axis->log) {
		n = ticks_log(axis, max, tick, false);
		if (n > max)
			n = ticks_log(axis, max, tick, true);
		return n > max ? max : n;
	}
	steps = (size_t)lround((axis->hi - axis->lo) / axis->step);
	while (steps / every + 1 > max)
		every *= 2;
	for (size_t i = 0; i <= steps && n < max; i += every)
		tick[n++] = axis->lo + (double)i * axis->step;
	return n;
}
