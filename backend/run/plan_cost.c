/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <string.h>

/* Mean size of one I/O of a list of [bytes, weight]. */
static double mean_bytes(const json_t *sizes)
{
	double sum = 0.0, weights = 0.0, weight;
	const json_t *pair;
	size_t i;

	json_array_foreach(sizes, i, pair) {
		weight = json_number_value(json_array_get(pair, 1));
		sum += weight * json_number_value(json_array_get(pair, 0));
		weights += weight;
	}
	return weights > 0.0 ? sum / weights : 0.0;
}

/* The share of bytes that a workload writes. */
static double write_share(const json_t *workload)
{
	const json_t *reads = json_object_get(workload, "read_sizes");
	const json_t *writes = json_object_get(workload, "write_sizes");
	double share = plan_number(workload, "read_share", 1.0), r, w;

	r = mean_bytes(reads) * share;
	w = mean_bytes(json_array_size(writes) ? writes : reads) *
	    (1.0 - share);
	return r + w > 0.0 ? w / (r + w) : 0.0;
}

/* Levels of a search, the last of them twice: at least two are run. */
static double search_levels(const json_t *phase)
{
	double from = plan_number(phase, "outstanding_min", 1);
	double to = plan_number(phase, "outstanding_max", 256);

	return to > from ? ceil(log2(to / from)) + 2 : 2;
}

/* How long a point that may end early is at least: ten intervals. */
static double early_seconds(const json_t *plan, double length)
{
	return fmin(length, plan_number(plan, "interval_ms", 1000) / 100);
}

static void phase_seconds(const json_t *plan, const json_t *phase,
			  struct plan_cost *cost)
{
	double warm = plan_number(phase, "warmup_us", 0) / 1e6;
	double length = plan_number(phase, "length_us", 0) / 1e6;
	double step = plan_number(phase, "step_us", 0) / 1e6;
	const char *kind = plan_kind(phase);
	double least = length, most = length;
	uint64_t slot_us;

	if (plan_timed(plan) && plan_slot_us(plan, phase, &slot_us)) {
		warm = 0;
		least = most = (double)slot_us / 1e6;
	} else if (!strcmp(kind, "max")) {
		least = warm + 2 * step;
		most = search_levels(phase) * (warm + step) - warm;
	} else if (!strcmp(kind, "wait")) {
		least = 0;
	} else if (plan_number(phase, "early_ci", 0) > 0) {
		least = early_seconds(plan, length);
	}
	cost->seconds += warm + least;
	cost->most_seconds += warm + most;
}

static bool is_measured(const char *kind)
{
	return !strcmp(kind, "point") || !strcmp(kind, "ramp");
}

int plan_cost(const json_t *plan, const json_t *sizes, struct plan_cost *cost,
	      struct err *err)
{
	const json_t *series = json_object_get(plan, "series"), *phase;
	double seconds, measured = 0.0, written = 0.0;
	size_t i;
	int r;

	memset(cost, 0, sizeof(*cost));
	r = plan_check(plan, err);
	if (r)
		return r;
	json_array_foreach(json_object_get(plan, "phases"), i, phase) {
		phase_seconds(plan, phase, cost);
		cost->phases++;
		if (!strcmp(plan_kind(phase), "prefill"))
			cost->prefill_bytes +=
				plan_number(sizes,
					    json_string_value(json_object_get(
						    phase, "vdisk")),
					    NAN);
		if (!is_measured(plan_kind(phase)))
			continue;
		cost->points++;
		seconds = (plan_number(phase, "warmup_us", 0) +
			   plan_number(phase, "length_us", 0)) /
			  1e6;
		measured += seconds;
		written += seconds *
			   write_share(json_object_get(
				   json_array_get(series,
						  (size_t)plan_number(
							  phase, "series", 0)),
				   "workload"));
	}
	cost->write_share = measured > 0.0 ? written / measured : 0.0;
	return 0;
}
