/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Readings of a curve of IOPS against latency.
 *
 *	latency            . after the peak: the drop-off
 *	   |             .'
 *	   |            * peak
 *	   |          .'
 *	   | *--*---*'   rising branch, by load
 *	   +------------- IOPS
 *
 * Points are ordered by load: by the percentage asked where every point has
 * one, else as they were measured.
 *
 * The peak is the most that was measured. A series that was never asked for
 * all it can do has no peak but an "at least": its shares are those of the
 * maximum its own search found, or unknown.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"

/* A point this near (in share of the peak) stands for the reading. */
#define READING_TOLERANCE 0.01
/* A point asked for 70 % may say 69.6 or 70.4. */
#define PERCENT_TOLERANCE 0.5
/* And turn out to be this far (in share of the maximum) off, as published ones
 * do; farther off it is no 70 %, whatever was asked. */
#define LABEL_TOLERANCE 0.08
/* Asked for this much, a series was driven to what it can do. */
#define FULL_PERCENT 99.5

void curve_fini(struct curve *curve)
{
	free(curve->point);
	json_decref(curve->facts);
	curve->facts = NULL;
	curve->point = NULL;
	curve->points = 0;
}

static double mean_us(const struct m_point *p)
{
	double ops = (double)p->read.svc.count + (double)p->write.svc.count;
	double sum = (double)p->read.svc.sum_ns + (double)p->write.svc.sum_ns;

	return ops > 0 ? sum / ops / 1000 : NAN;
}

void series_written(const struct m_series *series, struct m_written *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < series->points; i++)
		if (strcmp(series->point[i].kind, "max") != 0)
			model_written_add(sum, &series->point[i].written);
}

int curve_of_series(const struct m_series *series, struct curve *curve)
{
	memset(curve, 0, sizeof(*curve));
	memcpy(curve->name, series->name, sizeof(curve->name));
	curve->max_iops = series->max_iops;
	series_layout_text(series, curve->layout, sizeof(curve->layout));
	series_written(series, &curve->written);
	curve->point = calloc(series->points + 1, sizeof(*curve->point));
	if (!curve->point)
		return -ENOMEM;
	for (size_t i = 0; i < series->points; i++) {
		const struct m_point *p = &series->point[i];
		struct curve_point *c = &curve->point[curve->points];
		struct point_stats st;

		if (p->state != POINT_DONE || !strcmp(p->kind, "max") ||
		    isnan(mean_us(p)) || !(p->measured_s > 0))
			continue;
		point_stats(p, &st);
		c->iops = st.iops;
		c->latency_us = st.latency.all.mean;
		c->percent = st.percent;
		c->iops_ci = st.iops_ci;
		c->latency_ci = st.latency_ci;
		c->saturated = st.saturated;
		curve->points++;
	}
	return 0;
}

/* ---- order -------------------------------------------------------------- */

/* Stable, and curves are short. */
static void sort_by(const struct curve_point **p, size_t n, bool percent)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k; k--) {
			const struct curve_point *a = p[k - 1], *b = p[k];

			if (percent ? a->percent <= b->percent
				    : a->iops <= b->iops)
				break;
			p[k - 1] = b;
			p[k] = a;
		}
}

static size_t by_load(const struct curve *c, const struct curve_point **p)
{
	bool percent = true;
	size_t n = 0;

	for (size_t i = 0; i < c->points; i++) {
		if (!(c->point[i].iops > 0) || !(c->point[i].latency_us > 0))
			continue;
		percent &= !isnan(c->point[i].percent);
		p[n++] = &c->point[i];
	}
	if (percent)
		sort_by(p, n, true);
	return n;
}

static size_t peak_index(const struct curve_point **p, size_t n)
{
	size_t peak = 0;

	for (size_t i = 1; i < n; i++)
		if (p[i]->iops > p[peak]->iops)
			peak = i;
	return peak;
}

/* ---- readings ----------------------------------------------------------- */

static const struct reading unknown = { NAN, NAN, NAN, NAN, false };

static struct reading measured(const struct curve_point *p)
{
	return (struct reading) { p->iops, p->latency_us, p->iops_ci,
				  p->latency_ci, false };
}

/* `share` of the way from a to b. */
static struct reading between(const struct curve_point *a,
			      const struct curve_point *b, double share)
{
	struct reading r = { .interpolated = true };

	r.iops = a->iops + share * (b->iops - a->iops);
	r.latency_us = a->latency_us + share * (b->latency_us - a->latency_us);
	/* NAN wins: not knowing one is not knowing. */
	r.iops_ci = a->iops_ci > b->iops_ci || isnan(a->iops_ci) ? a->iops_ci
								 : b->iops_ci;
	r.latency_ci = a->latency_ci > b->latency_ci || isnan(a->latency_ci)
			       ? a->latency_ci
			       : b->latency_ci;
	return r;
}

/*
 * Never driven as far as it goes: every point was asked for less, and each kept
 * up.
 */
static bool peak_is_open(const struct curve_point **p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(p[i]->percent) || p[i]->saturated ||
		    p[i]->percent >= FULL_PERCENT)
			return false;
	return n > 0;
}

/* Reading at `percent` of `full`; p: the rising branch, its peak last. */
static struct reading reading_at(const struct curve_point **p, size_t n,
				 double full, double percent)
{
	double want = percent / 100 * full, off, best = INFINITY;
	const struct curve_point *near = NULL;

	if (!(full > 0))
		return unknown;
	for (size_t i = 0; i < n; i++) {
		off = fabs(p[i]->iops - want);
		if (fabs(p[i]->percent - percent) <= PERCENT_TOLERANCE &&
		    off <= LABEL_TOLERANCE * full && !p[i]->saturated)
			return measured(p[i]);
		if (off <= READING_TOLERANCE * full && off < best) {
			best = off;
			near = p[i];
		}
	}
	if (near)
		return measured(near);
	sort_by(p, n, false);
	for (size_t i = 1; i < n; i++)
		if (p[i - 1]->iops < want && want < p[i]->iops)
			return between(p[i - 1], p[i],
				       (want - p[i - 1]->iops) /
					       (p[i]->iops - p[i - 1]->iops));
	return unknown;
}

/* Up to where, by load, latency first goes over the bound. */
static void reading_under(const struct curve_point **p, size_t n,
			  struct series_summary *s)
{
	size_t over = 0;

	while (over < n && p[over]->latency_us <= s->bound_us)
		over++;
	s->under_open = over == n;
	for (size_t i = 0; i < over; i++)
		if (isnan(s->under.iops) || p[i]->iops > s->under.iops)
			s->under = measured(p[i]);
	if (over && over < n && p[over]->iops > s->under.iops) {
		const struct curve_point *a = p[over - 1], *b = p[over];
		struct reading r =
			between(a, b,
				(s->bound_us - a->latency_us) /
					(b->latency_us - a->latency_us));

		if (r.iops > s->under.iops)
			s->under = r;
	}
}

static double drop_off(const struct curve_point **p, size_t n, size_t peak)
{
	double lost = 0;

	for (size_t i = peak + 1; i < n; i++) {
		double share = 1 - p[i]->iops / p[peak]->iops;

		if (p[i]->latency_us > p[peak]->latency_us && share > lost)
			lost = share;
	}
	return lost;
}

void curve_summary(const struct curve *curve, double bound_us,
		   struct series_summary *s)
{
	const struct curve_point **p = NULL;
	size_t n = 0, peak;
	double full;

	memset(s, 0, sizeof(*s));
	s->bound_us = bound_us;
	s->peak_iops = s->peak_latency_us = NAN;
	s->peak_iops_ci = s->peak_latency_ci = s->drop_off = NAN;
	s->full_iops = NAN;
	s->at_70 = s->at_80 = s->under = unknown;
	if (curve->points)
		p = calloc(curve->points, sizeof(*p));
	if (p)
		n = by_load(curve, p);
	if (n) {
		peak = peak_index(p, n);
		s->peak_iops = p[peak]->iops;
		s->peak_latency_us = p[peak]->latency_us;
		s->peak_iops_ci = p[peak]->iops_ci;
		s->peak_latency_ci = p[peak]->latency_ci;
		s->peak_open = peak_is_open(p, n);
		full = s->peak_open ? curve->max_iops : s->peak_iops;
		s->full_iops = full;
		if (!s->peak_open)
			s->drop_off = drop_off(p, n, peak);
		reading_under(p, n, s);
		s->at_70 = reading_at(p, peak + 1, full, 70);
		s->at_80 = reading_at(p, peak + 1, full, 80);
	}
	free(p);
}
