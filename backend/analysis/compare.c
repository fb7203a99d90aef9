/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Two curves beside each other, reading by reading, in the words of published
 * reviews. A change is only called higher or lower when it is larger than what
 * the two intervals together explain: |b - a| > FAMILY * sqrt(da^2 + db^2).
 *
 * Seven verdicts at 95 % each would find a change in every fourth pair of equal
 * runs. FAMILY widens the intervals so that all seven together err once in
 * twenty (Bonferroni): t(1 - 0.025 / 7) / t(1 - 0.025) is 1.37 for many
 * batches, 1.42 for 20 and 1.53 for ten.
 *
 * The intervals come from within a run. What differs from run to run (a cache
 * left warm, another load on the machine) they do not know.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"

#define FAMILY 1.45

static const char *verdict(double a, double a_ci, double b, double b_ci)
{
	double noise = sqrt(a * a_ci * a * a_ci + b * b_ci * b * b_ci);

	if (isnan(noise) || isnan(a) || isnan(b))
		return NULL;
	if (fabs(b - a) <= FAMILY * noise)
		return "not distinguishable";
	return b > a ? "higher" : "lower";
}

static void fill(struct compared *c, const char *name, double a, double a_ci,
		 double b, double b_ci)
{
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->a = a;
	c->b = b;
	c->a_ci = a_ci;
	c->b_ci = b_ci;
	c->change_percent = a > 0 ? (b / a - 1) * 100 : NAN;
	c->a_interpolated = c->b_interpolated = false;
	c->a_least = c->b_least = false;
	c->verdict = verdict(a, a_ci, b, b_ci);
}

/* IOPS and latency of one reading. */
static void fill_two(struct compared *c, int percent, const struct reading *a,
		     const struct reading *b)
{
	char name[32];

	snprintf(name, sizeof(name), "IOPS at %d %%", percent);
	fill(&c[0], name, a->iops, a->iops_ci, b->iops, b->iops_ci);
	snprintf(name, sizeof(name), "latency at %d %% (ms)", percent);
	fill(&c[1], name, a->latency_us / 1000, a->latency_ci,
	     b->latency_us / 1000, b->latency_ci);
	for (int i = 0; i < 2; i++) {
		c[i].a_interpolated = a->interpolated;
		c[i].b_interpolated = b->interpolated;
	}
}

void curves_compare(const struct curve *a, const struct curve *b,
		    double bound_us, struct compared list[READINGS])
{
	struct series_summary x, y;
	char name[32];

	curve_summary(a, bound_us, &x);
	curve_summary(b, bound_us, &y);
	fill(&list[0], "peak IOPS", x.peak_iops, x.peak_iops_ci, y.peak_iops,
	     y.peak_iops_ci);
	fill(&list[1], "latency at peak (ms)", x.peak_latency_us / 1000,
	     x.peak_latency_ci, y.peak_latency_us / 1000, y.peak_latency_ci);
	fill_two(&list[2], 70, &x.at_70, &y.at_70);
	fill_two(&list[4], 80, &x.at_80, &y.at_80);
	snprintf(name, sizeof(name), "IOPS under %g ms", bound_us / 1000);
	fill(&list[6], name, x.under.iops, x.under.iops_ci, y.under.iops,
	     y.under.iops_ci);
	list[0].a_least = list[1].a_least = x.peak_open;
	list[0].b_least = list[1].b_least = y.peak_open;
	list[6].a_least = x.under_open;
	list[6].b_least = y.under_open;
	/* "At least" cannot be compared. */
	for (int i = 0; i < READINGS; i++)
		if (list[i].a_least || list[i].b_least)
			list[i].verdict = NULL;
	list[6].a_interpolated = x.under.interpolated;
	list[6].b_interpolated = y.under.interpolated;
}
