/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <string.h>

/* ---- the search for the maximum -------------------------------------------
 */

void max_search_init(struct max_search *s, unsigned from, unsigned limit,
		     double gain)
{
	memset(s, 0, sizeof(*s));
	s->outstanding = from ? from : 1;
	s->limit = limit < s->outstanding ? s->outstanding : limit;
	s->gain = gain;
}

void max_search_sample(struct max_search *s,
		       const struct conductor_sample *sample)
{
	s->ops += sample->ops;
	s->len_us += sample->len_us;
	if (sample->bound)
		s->bound = true;
}

static double level_iops(struct max_search *s)
{
	double iops = 0.0;

	if (s->len_us)
		iops = (double)s->ops * 1e6 / (double)s->len_us;
	s->ops = 0;
	s->len_us = 0;
	if (s->again && s->first_iops > iops)
		iops = s->first_iops;
	return iops;
}

static bool level_gained(const struct max_search *s, double iops)
{
	return !s->kept || iops >= s->kept_iops * (1.0 + s->gain);
}

enum max_verdict max_search_level(struct max_search *s, double *iops)
{
	*iops = level_iops(s);
	if (*iops <= 0.0 && !s->kept)
		return MAX_NOTHING;
	if (!level_gained(s, *iops)) {
		if (s->again || s->bound)
			return MAX_FOUND;
		s->again = true;
		s->first_iops = *iops;
		return MAX_AGAIN;
	}
	s->kept = s->outstanding;
	s->kept_iops = *iops;
	s->again = false;
	if (s->bound || s->outstanding >= s->limit)
		return MAX_FOUND;
	s->outstanding *= 2;
	if (s->outstanding > s->limit)
		s->outstanding = s->limit;
	return MAX_DEEPER;
}

/* ---- early end ------------------------------------------------------------
 */

void early_reset(struct early *e)
{
	memset(e, 0, sizeof(*e));
	e->per_cell = 1;
}

static void early_fold(struct early *e)
{
	unsigned i;

	for (i = 0; i < EARLY_CELLS / 2; i++) {
		e->iops[i] = (e->iops[2 * i] + e->iops[2 * i + 1]) / 2.0;
		e->mean_us[i] =
			(e->mean_us[2 * i] + e->mean_us[2 * i + 1]) / 2.0;
	}
	e->cells = EARLY_CELLS / 2;
	e->per_cell *= 2;
}

void early_add(struct early *e, double iops, double mean_us)
{
	e->iops_sum += iops;
	e->mean_sum += mean_us;
	if (++e->in_cell < e->per_cell)
		return;
	if (e->cells == EARLY_CELLS)
		early_fold(e);
	e->iops[e->cells] = e->iops_sum / e->in_cell;
	e->mean_us[e->cells] = e->mean_sum / e->in_cell;
	e->cells++;
	e->in_cell = 0;
	e->iops_sum = 0.0;
	e->mean_sum = 0.0;
}

/*
 * Batch means: the cells in ten batches of neighbours, so that what carries
 * over from one interval to the next does not pass for certainty. 2.262 is
 * Student's t for nine degrees of freedom, 95 %, two-sided.
 */
#define EARLY_BATCHES 10u
#define EARLY_T 2.262

static double batch_ci(const double *cell, unsigned cells)
{
	unsigned per = cells / EARLY_BATCHES, skip, b, i;
	double mean[EARLY_BATCHES], all = 0.0, var = 0.0;

	skip = cells - per * EARLY_BATCHES;
	for (b = 0; b < EARLY_BATCHES; b++) {
		mean[b] = 0.0;
		for (i = 0; i < per; i++)
			mean[b] += cell[skip + b * per + i] / per;
		all += mean[b] / EARLY_BATCHES;
	}
	if (all <= 0.0)
		return NAN;
	for (b = 0; b < EARLY_BATCHES; b++)
		var += (mean[b] - all) * (mean[b] - all) / (EARLY_BATCHES - 1);
	return EARLY_T * sqrt(var / EARLY_BATCHES) / all;
}

double early_ci(const struct early *e)
{
	double iops, mean;

	if (e->cells < EARLY_BATCHES)
		return NAN;
	iops = batch_ci(e->iops, e->cells);
	mean = batch_ci(e->mean_us, e->cells);
	if (isnan(iops) || isnan(mean))
		return NAN;
	return iops > mean ? iops : mean;
}
