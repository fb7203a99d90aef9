/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEARCH_INTERVAL_MIN_US 100000u

const char *plan_kind(const json_t *phase)
{
	const char *kind = json_string_value(json_object_get(phase, "kind"));

	return kind ? kind : "";
}

double plan_number(const json_t *object, const char *name, double unset)
{
	const json_t *j = json_object_get(object, name);

	return json_is_number(j) ? json_number_value(j) : unset;
}

uint64_t plan_us(const json_t *object, const char *name)
{
	double v = plan_number(object, name, 0.0);

	return v > 0.0 ? (uint64_t)v : 0;
}

size_t plan_max_of(const json_t *series, size_t index)
{
	const json_t *s = json_array_get(series, index);

	return (size_t)plan_number(s, "max_from", (double)index);
}

/* ---- what a series loads ------------------------------------------------ */

size_t plan_vdisks(const json_t *series)
{
	const json_t *list = json_object_get(series, "vdisks");

	return list ? json_array_size(list)
		    : json_object_get(series, "vdisk") != NULL;
}

const char *plan_vdisk(const json_t *series, size_t index)
{
	const json_t *list = json_object_get(series, "vdisks");
	const json_t *name = list    ? json_array_get(list, index)
			     : index ? NULL
				     : json_object_get(series, "vdisk");

	return json_string_value(name);
}

bool plan_owns(const json_t *owned, const char *vdisk)
{
	const json_t *j;
	size_t i;

	json_array_foreach(owned, i, j) {
		if (vdisk && json_is_string(j) &&
		    !strcmp(json_string_value(j), vdisk))
			return true;
	}
	return !owned;
}

bool plan_loads(const json_t *series, const char *vdisk)
{
	const char *name;
	size_t i;

	for (i = 0; i < plan_vdisks(series); i++) {
		name = plan_vdisk(series, i);
		if (name && !strcmp(name, vdisk))
			return true;
	}
	return false;
}

const char *plan_vdisks_text(const json_t *series, char *out, size_t size)
{
	size_t count = plan_vdisks(series), i, n = 0;
	size_t named = count > 3 ? 2 : count;

	out[0] = '\0';
	for (i = 0; i < named && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s",
				      !i                            ? ""
				      : i + 1 == named && count < 4 ? " and "
								    : ", ",
				      plan_vdisk(series, i));
	if (count > named && n < size)
		snprintf(out + n, size - n, " and %zu more", count - named);
	return out;
}

unsigned plan_share(const json_t *series, const json_t *owned, unsigned count)
{
	unsigned all = (unsigned)plan_vdisks(series), share = 0, one;
	unsigned i;

	for (i = 0; i < all; i++) {
		if (!plan_owns(owned, plan_vdisk(series, i)))
			continue;
		one = count / all + (i < count % all);
		share += one ? one : 1;
	}
	return share;
}

size_t plan_owned(const json_t *series, const json_t *owned)
{
	size_t i, n = 0;

	for (i = 0; i < plan_vdisks(series); i++)
		n += plan_owns(owned, plan_vdisk(series, i));
	return n;
}

/* ---- who runs it -------------------------------------------------------- */

size_t plan_nodes(const json_t *plan)
{
	return json_array_size(json_object_get(plan, "nodes"));
}

const json_t *plan_node(const json_t *plan, size_t index)
{
	return json_array_get(json_object_get(plan, "nodes"), index);
}

int plan_node_index(const json_t *plan, const char *agent)
{
	const char *name;
	size_t i;

	for (i = 0; i < plan_nodes(plan); i++) {
		name = json_string_value(
			json_object_get(plan_node(plan, i), "agent"));
		if (name && !strcmp(name, agent))
			return (int)i;
	}
	return -1;
}

bool plan_node_runs(const json_t *plan, size_t node, size_t series)
{
	return plan_owned(
		       json_array_get(json_object_get(plan, "series"), series),
		       json_object_get(plan_node(plan, node), "vdisks")) > 0;
}

bool plan_timed(const json_t *plan)
{
	return plan_nodes(plan) > 1;
}

/* ---- the timetable ------------------------------------------------------ */

static uint64_t interval_us(const json_t *plan)
{
	return plan_us(plan, "interval_ms") * 1000;
}

/* A level of the search is short: at least two samples should fit. */
static uint64_t search_interval_us(const json_t *plan, uint64_t step_us)
{
	uint64_t us = step_us / 2, most = interval_us(plan);

	if (us < SEARCH_INTERVAL_MIN_US)
		us = SEARCH_INTERVAL_MIN_US;
	return us > most ? most : us;
}

/* Warm-up and measured time in whole intervals, so that none is half of it and
 * half of what comes before or after. */
static uint64_t whole(uint64_t us, uint64_t interval)
{
	return (us + interval - 1) / interval * interval;
}

/* A level for each doubling, one of them twice, and one more in which all
 * agents hold what they found. */
static unsigned search_levels(const json_t *phase)
{
	double from = plan_number(phase, "outstanding_min", 1);
	double to = plan_number(phase, "outstanding_max", 256);

	return 3 + (to > from ? (unsigned)ceil(log2(to / from)) : 0);
}

void plan_load(const json_t *plan, const json_t *phase, struct plan_load *load)
{
	bool search = !strcmp(plan_kind(phase), "max");
	uint64_t us = plan_us(phase, search ? "step_us" : "length_us");

	*load = (struct plan_load) { .levels = 1 };
	load->interval_us =
		search ? search_interval_us(plan, us) : interval_us(plan);
	load->warm_us = whole(plan_us(phase, "warmup_us"), load->interval_us);
	load->len_us = us;
	if (!search || plan_timed(plan))
		load->len_us = whole(us, load->interval_us);
	if (plan_timed(plan))
		load->gap_us = load->interval_us;
	if (search)
		load->levels = search_levels(phase);
}

bool plan_slot_us(const json_t *plan, const json_t *phase, uint64_t *us)
{
	const char *kind = plan_kind(phase);
	struct plan_load load;

	*us = 0;
	if (!strcmp(kind, "prefill") || !strcmp(kind, "wait"))
		return false;
	if (!strcmp(kind, "max") || !strcmp(kind, "point") ||
	    !strcmp(kind, "ramp")) {
		plan_load(plan, phase, &load);
		*us = load.levels * (load.warm_us + load.len_us + load.gap_us);
	} else if (!strcmp(kind, "rest")) {
		*us = plan_us(phase, "length_us");
	} else if (strcmp(kind, "note") != 0) {
		*us = interval_us(plan); /* for a fault to be done everywhere */
	}
	return true;
}

bool plan_barrier(const json_t *plan, size_t phase, size_t first)
{
	const json_t *phases = json_object_get(plan, "phases");
	uint64_t us;

	if (phase == first)
		return true;
	return plan_slot_us(plan, json_array_get(phases, phase), &us) &&
	       !plan_slot_us(plan, json_array_get(phases, phase - 1), &us);
}
