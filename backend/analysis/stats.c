/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A point's figures, with what they are worth.
 *
 * Intervals: the counted intervals are cut into 10 to 20 batches of equal
 * length (fewer of fewer than ten), so that less than a batch is left over; the
 * half-width is t(0.975, batches - 1) * s / sqrt(batches), s the
 * standard deviation of the batches' means. Batches rather than intervals,
 * since intervals next to each other are alike.
 * Source: Schmeiser (1982), batch size effects in the analysis of simulation
 * output: 10 to 30 batches do.
 *
 * Steady: the line of least squares through the intervals rises or falls by
 * less than 10 % of the mean over the whole measurement, of IOPS and of mean
 * latency, and both half-widths are below 5 %. The first is the slope rule of
 * SNIA's Solid State Storage Performance Test Specification 2.0.1, section
 * 2.1.24.
 *
 * Saturated: less than 98 % of what was due was done. Due is what the schedule
 * had; of a Poisson schedule that differs from rate times time by chance.
 */
#include <math.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"

#define BATCHES_MIN 6
#define BATCHES_MAX 20
#define STEADY_SLOPE 0.10
#define SATURATED_SHARE 0.98
#define HOST_SHARE 0.25
/* of a point's time, with an interface at its line rate */
#define NET_TIME 0.5
#define WAIT_SOME 0.05
#define WAIT_MUCH 0.25

/*
 * Quantile 0.975 of Student's t.
 * Source: Abramowitz and Stegun (1964), 26.7.5; within 0.1 % from 5 degrees of
 * freedom on.
 */
double stats_t975(unsigned freedom)
{
	const double x = 1.959963985, v = freedom;
	const double x3 = x * x * x, x5 = x3 * x * x, x7 = x5 * x * x;
	const double x9 = x7 * x * x;

	return x + (x3 + x) / (4 * v) +
	       (5 * x5 + 16 * x3 + 3 * x) / (96 * v * v) +
	       (3 * x7 + 19 * x5 + 17 * x3 - 15 * x) / (384 * v * v * v) +
	       (79 * x9 + 776 * x7 + 1482 * x5 - 1920 * x3 - 945 * x) /
		       (92160 * v * v * v * v);
}

double stats_batch_ci(const double *value, const double *weight, size_t n)
{
	size_t size = (n + BATCHES_MAX - 1) / BATCHES_MAX, batches, skip;
	double mean[BATCHES_MAX], sum = 0, square = 0, all;

	if (n < BATCHES_MIN)
		return NAN;
	batches = n / size;
	/* What does not fill a batch is left out where the load was youngest.
	 */
	skip = n - size * batches;
	for (size_t b = 0; b < batches; b++) {
		double w = 0, v = 0;

		for (size_t i = 0; i < size; i++) {
			size_t at = skip + b * size + i;

			if (!(weight[at] > 0) || isnan(value[at]))
				continue;
			w += weight[at];
			v += weight[at] * value[at];
		}
		if (!(w > 0))
			return NAN;
		mean[b] = v / w;
		sum += mean[b];
	}
	all = sum / (double)batches;
	if (!(all > 0))
		return NAN;
	for (size_t b = 0; b < batches; b++)
		square += (mean[b] - all) * (mean[b] - all);
	return stats_t975((unsigned)batches - 1) *
	       sqrt(square / (double)(batches - 1) / (double)batches) / all;
}

double stats_trend(const double *value, size_t n)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, k = 0;

	for (size_t i = 0; i < n; i++) {
		double x = (double)i;

		if (isnan(value[i]))
			continue;
		k++;
		sx += x;
		sy += value[i];
		sxx += x * x;
		sxy += x * value[i];
	}
	if (k < 2 || !(sy > 0))
		return NAN;
	return (k * sxy - sx * sy) / (k * sxx - sx * sx) * (double)(n - 1) /
	       (sy / k);
}

/* ---- latency ------------------------------------------------------------ */

static double quantile_us(const struct hist *h, double q)
{
	uint64_t ns;

	return hist_quantile(h, q, &ns) ? NAN : (double)ns / 1000;
}

static void lat_of_hist(const struct hist *h, struct lat_stats *l)
{
	l->mean = h->count ? hist_mean_ns(h) / 1000 : NAN;
	l->p50 = quantile_us(h, 0.5);
	l->p95 = quantile_us(h, 0.95);
	l->p99 = quantile_us(h, 0.99);
	l->p99_9 = quantile_us(h, 0.999);
	l->max = h->count ? (double)h->max_ns / 1000 : NAN;
}

static void lat_of_dirs(const struct hist *read, const struct hist *write,
			struct lat_set *set)
{
	struct hist all = *read;

	hist_merge(&all, write);
	lat_of_hist(&all, &set->all);
	lat_of_hist(read, &set->read);
	lat_of_hist(write, &set->write);
}

/* ---- points ------------------------------------------------------------- */

static bool saturated(const struct m_point *p, double ops)
{
	double asked = p->asked_iops * p->measured_s, due;

	if (isnan(asked) || !(asked > 0))
		return false;
	/* Chance alone takes a Poisson schedule this far down, not farther;
	 * should the schedule itself have stalled, it says too little. */
	due = asked - 4 * sqrt(asked);
	if (p->scheduled > due)
		due = (double)p->scheduled;
	return ops < SATURATED_SHARE * due;
}

/*
 * The CPUs of the host were full for a quarter of the time, and the load itself
 * had to wait for one; or it waited that much for another reason (a quota, a
 * neighbour). Without the latter known the former does.
 */
static bool host_bound(const struct m_point *p)
{
	double wait = p->wait_of_s > 0 ? p->wait_s / p->wait_of_s : NAN;

	if (wait > WAIT_MUCH)
		return true;
	return p->host_full_s > HOST_SHARE * p->host_s && !(wait < WAIT_SOME);
}

bool series_max_bound(const struct m_series *se)
{
	for (size_t i = 0; i < se->points; i++)
		if (!strcmp(se->point[i].kind, "max"))
			return se->point[i].generator_bound ||
			       host_bound(&se->point[i]);
	return false;
}

/* At most this many intervals are looked at, evenly over the point. */
#define INTERVALS_MAX 4096

static void point_worth(const struct m_point *p, struct point_stats *st)
{
	double iops[INTERVALS_MAX], us[INTERVALS_MAX], one[INTERVALS_MAX];
	size_t step = p->intervals / INTERVALS_MAX + 1, n = 0;
	double trend_iops, trend_us;

	for (size_t i = 0; i < p->intervals; i += step, n++) {
		iops[n] = p->interval[i].iops;
		us[n] = p->interval[i].mean_us;
		one[n] = 1;
	}
	st->iops_ci = stats_batch_ci(iops, one, n);
	st->latency_ci = stats_batch_ci(us, iops, n);
	trend_iops = stats_trend(iops, n);
	trend_us = stats_trend(us, n);
	/* A comparison with NAN is false: unknown is not steady. */
	st->steady = st->iops_ci < STEADY_CI && st->latency_ci < STEADY_CI &&
		     fabs(trend_iops) < STEADY_SLOPE &&
		     fabs(trend_us) < STEADY_SLOPE;
}

void point_stats(const struct m_point *p, struct point_stats *st)
{
	double s = p->measured_s > 0 ? p->measured_s : NAN;
	double ops = (double)p->read.ops + (double)p->write.ops;

	memset(st, 0, sizeof(*st));
	st->asked_iops = p->asked_iops;
	st->percent = p->percent;
	st->read_iops = (double)p->read.ops / s;
	st->write_iops = (double)p->write.ops / s;
	st->iops = ops / s;
	st->mb_s = ((double)p->read.bytes + (double)p->write.bytes) / s / 1e6;
	st->errors = p->read.errors + p->write.errors;
	st->outstanding = p->outstanding;
	st->measured_s = p->measured_s;
	st->generator_bound = p->generator_bound;
	st->host_bound = host_bound(p);
	st->net_bound = p->net_full > NET_TIME;
	st->net_share = p->net_share;
	st->partial = p->state != POINT_DONE;
	st->saturated = saturated(p, ops);
	point_worth(p, st);
	lat_of_dirs(&p->read.svc, &p->write.svc, &st->latency);
	if (p->read.rsp.count || p->write.rsp.count)
		lat_of_dirs(&p->read.rsp, &p->write.rsp, &st->response);
	else
		st->response = st->latency;
}
