/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One phase of a suite becomes one or many of the plan: a curve its search and
 * its points, a peak matrix a series and a step for each cell, `prefill` one
 * for each vDisk.
 */
#include "backend/run/suite_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/run/plan.h"

static const char *text_of(const json_t *given, const char *name)
{
	return json_string_value(json_object_get(given, name));
}

/* The phase's own value, else the suite's, else NULL. */
static json_t *value_of(const struct suite *s, const json_t *given,
			const char *name)
{
	json_t *value = json_object_get(given, name);

	return value ? value : json_object_get(s->root, name);
}

static void copy(const struct suite *s, const json_t *given, json_t *phase,
		 const char *name)
{
	json_t *value = value_of(s, given, name);

	if (value)
		json_object_set(phase, name, value);
}

/* Times of a load: seconds on the command line win over the phase's own. */
static void copy_time(const struct suite *s, const json_t *given, json_t *phase,
		      const char *name)
{
	bool suite_wins = !isnan(s->params->seconds) ||
			  (!strcmp(name, "warmup_us") &&
			   !isnan(s->params->warmup_seconds));

	copy(s, suite_wins ? NULL : given, phase, name);
}

static json_t *phase_new(const char *kind)
{
	json_t *phase = json_object();

	json_object_set_new(phase, "kind", json_string(kind));
	return phase;
}

static void phase_add(struct suite *s, json_t *phase)
{
	json_array_append_new(s->phases, phase);
}

static const config_setting_t *member(const config_setting_t *at,
				      const char *name)
{
	const config_setting_t *m = config_setting_get_member(at, name);

	return m ? m : at;
}

/* ---- series of a phase ----------------------------------------------------
 */

static bool series_is(const json_t *series, const char *name)
{
	return !strcmp(name, text_of(series, "name")) ||
	       !strcmp(name, text_of(series, "template"));
}

/* Indices of the series that a phase names; all of them when it names none. */
static int series_of(const struct suite *s, const config_setting_t *at,
		     const json_t *given, json_t **list, struct err *err)
{
	const json_t *names = json_object_get(given, "series"), *name, *series;
	size_t i, j, before;

	*list = json_array();
	json_array_foreach(s->series, j, series)
		if (!names)
			json_array_append_new(*list,
					      json_integer((json_int_t)j));
	json_array_foreach(names, i, name) {
		before = json_array_size(*list);
		json_array_foreach(s->series, j, series)
			if (series_is(series, json_string_value(name)))
				json_array_append_new(
					*list, json_integer((json_int_t)j));
		if (json_array_size(*list) == before) {
			json_decref(*list);
			return conf_bad(member(at, "series"), err,
					"series \"%s\": expected one of the "
					"suite's series",
					json_string_value(name));
		}
	}
	return 0;
}

/* ---- during ---------------------------------------------------------------
 */

static int during_one(const json_t *given, double length_us, json_t *act,
		      const config_setting_t *at, struct err *err)
{
	const json_t *share = json_object_get(given, "at_share");

	json_object_update(act, (json_t *)given);
	json_object_del(act, "at_share");
	if (share && json_object_get(given, "at_us"))
		return conf_bad(at, err, "expected either at or at_share");
	if (share)
		json_object_set_new(
			act, "at_us",
			json_integer((json_int_t)(length_us *
						  json_number_value(share))));
	if (!json_object_get(act, "at_us"))
		return conf_bad(at, err, "expected at or at_share here");
	return 0;
}

static int during_copy(const json_t *given, json_t *phase,
		       const config_setting_t *at, struct err *err)
{
	const json_t *list = json_object_get(given, "during");
	const config_setting_t *where = config_setting_get_member(at, "during");
	double length = json_number_value(json_object_get(phase, "length_us")) +
			json_number_value(json_object_get(phase, "warmup_us"));
	json_t *out, *act;
	size_t i;
	int r = 0;

	if (!list)
		return 0;
	out = json_array();
	for (i = 0; !r && i < json_array_size(list); i++) {
		act = json_object();
		json_array_append_new(out, act);
		r = during_one(json_array_get(list, i), length, act,
			       config_setting_get_elem(where, (unsigned)i),
			       err);
	}
	json_object_set_new(phase, "during", out);
	return r;
}

/* ---- curves ---------------------------------------------------------------
 */

/* In whole intervals, as it will be run. */
static void time_align(const struct suite *s, json_t *phase, const char *name)
{
	double us = json_number_value(json_object_get(phase, name));
	double interval =
		json_number_value(json_object_get(s->root, "interval_ms")) *
		1000;

	if (us > 0 && interval > 0)
		json_object_set_new(
			phase, name,
			json_integer(
				(json_int_t)(ceil(us / interval) * interval)));
}

static json_t *load_new(const struct suite *s, const json_t *given,
			const char *kind, json_int_t series)
{
	json_t *phase = phase_new(kind);

	json_object_set_new(phase, "series", json_integer(series));
	copy_time(s, given, phase, "length_us");
	copy_time(s, given, phase, "warmup_us");
	time_align(s, phase, "length_us");
	time_align(s, phase, "warmup_us");
	copy(s, given, phase, "early_ci");
	return phase;
}

static void add_max(struct suite *s, const json_t *given, json_int_t series)
{
	json_t *phase = phase_new("max");

	json_object_set_new(phase, "series", json_integer(series));
	copy_time(s, given, phase, "step_us");
	copy_time(s, given, phase, "warmup_us");
	copy(s, given, phase, "outstanding_min");
	copy(s, given, phase, "outstanding_max");
	copy(s, given, phase, "gain");
	phase_add(s, phase);
}

/* Points of `kind` whose `name` takes each of the values. */
static int add_points(struct suite *s, const config_setting_t *at,
		      const json_t *given, const char *kind, const char *name,
		      const json_t *values, json_int_t series, struct err *err)
{
	json_t *phase;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < json_array_size(values); i++) {
		phase = load_new(s, given, kind, series);
		json_object_set_new(phase, "point",
				    json_integer((json_int_t)i));
		json_object_set_new(
			phase, "points",
			json_integer((json_int_t)json_array_size(values)));
		json_object_set(phase, name, json_array_get(values, i));
		if (!strcmp(kind, "point"))
			copy(s, given, phase, "schedule");
		r = during_copy(given, phase, at, err);
		phase_add(s, phase);
	}
	return r;
}

static json_t *ten_percents(void)
{
	json_t *list = json_array();
	int i;

	for (i = 1; i <= 10; i++)
		json_array_append_new(list, json_integer(10 * i));
	return list;
}

static json_t *ramp_default(void)
{
	json_t *list = json_array();
	int depth;

	for (depth = 1; depth <= 128; depth *= 2)
		json_array_append_new(list, json_integer(depth));
	return list;
}

/* The command line's list wins over the phase's, which wins over the suite's.
 */
static json_t *list_of(const struct suite *s, const json_t *given,
		       const char *name, const char *asked,
		       json_t *(*unset)(void))
{
	json_t *list = asked ? json_object_get(s->root, name)
			     : value_of(s, given, name);

	return list ? json_incref(list) : unset();
}

static int phase_points(struct suite *s, const config_setting_t *at,
			const json_t *given, json_int_t series, struct err *err)
{
	json_t *list =
		list_of(s, given, "percent", s->params->percent, ten_percents);
	int r = add_points(s, at, given, "point", "percent", list, series, err);

	json_decref(list);
	return r;
}

static int phase_ramp(struct suite *s, const config_setting_t *at,
		      const json_t *given, json_int_t series, struct err *err)
{
	json_t *list = list_of(s, given, "outstanding", s->params->outstanding,
			       ramp_default);
	int r = add_points(s, at, given, "ramp", "outstanding", list, series,
			   err);

	json_decref(list);
	return r;
}

static int phase_curve(struct suite *s, const config_setting_t *at,
		       const json_t *given, json_int_t series, struct err *err)
{
	const json_t *value = s->params->mode ? json_object_get(s->root, "mode")
					      : value_of(s, given, "mode");
	const char *mode = json_string_value(value);

	if (mode && !strcmp(mode, "ramp"))
		return phase_ramp(s, at, given, series, err);
	if (mode && strcmp(mode, "percent") != 0)
		return conf_bad(member(at, "mode"), err,
				"mode: expected percent or ramp");
	add_max(s, given, series);
	return phase_points(s, at, given, series, err);
}

static int phase_max(struct suite *s, const config_setting_t *at,
		     const json_t *given, json_int_t series, struct err *err)
{
	(void)at;
	(void)err;
	add_max(s, given, series);
	return 0;
}

static int
each_series(struct suite *s, const config_setting_t *at, const json_t *given,
	    int (*one)(struct suite *s, const config_setting_t *at,
		       const json_t *given, json_int_t series, struct err *err),
	    struct err *err)
{
	json_t *list, *index;
	size_t i;
	int r;

	r = series_of(s, at, given, &list, err);
	if (r)
		return r;
	if (!json_array_size(list))
		r = conf_bad(at, err, "expected a series for this phase");
	json_array_foreach(list, i, index)
		if (!r)
			r = one(s, at, given, json_integer_value(index), err);
	json_decref(list);
	return r;
}

/* ---- the peak matrix ------------------------------------------------------
 */

static int add_cell(struct suite *s, const config_setting_t *at,
		    const json_t *given, const char *vdisk, const char *pattern,
		    double bytes, struct err *err)
{
	json_t *workload = workload_peak(pattern, bytes), *series;
	char name[128];

	if (!workload)
		return conf_bad(member(at, "patterns"), err,
				"pattern \"%s\": expected RR, RW, SR or SW",
				pattern);
	snprintf(name, sizeof(name), "%s %s", vdisk,
		 text_of(workload, "title"));
	series = json_pack("{s:s,s:s,s:o,s:s}", "name", name, "vdisk", vdisk,
			   "workload", workload, "template", name);
	json_array_append_new(s->series, series);
	return phase_ramp(s, at, given,
			  (json_int_t)json_array_size(s->series) - 1, err);
}

static int peak_vdisk(struct suite *s, const config_setting_t *at,
		      const json_t *given, const char *vdisk, struct err *err)
{
	const json_t *patterns = json_object_get(given, "patterns"), *pattern;
	const json_t *sizes = json_object_get(given, "sizes"), *size;
	size_t i, j;
	int r = 0;

	json_array_foreach(patterns, i, pattern) {
		json_array_foreach(sizes, j, size) {
			if (r)
				continue;
			r = add_cell(s, at, given, vdisk,
				     json_string_value(pattern),
				     json_number_value(json_array_get(size, 0)),
				     err);
		}
	}
	return r;
}

static int phase_peak(struct suite *s, const config_setting_t *at,
		      const json_t *given, struct err *err)
{
	const char *vdisk = text_of(given, "vdisk");
	size_t i;
	int r = 0;

	if (!json_object_get(given, "patterns") ||
	    !json_object_get(given, "sizes"))
		return conf_bad(at, err, "expected patterns and sizes here");
	if (vdisk)
		return peak_vdisk(s, at, given, vdisk, err);
	if (!s->params->vdisks)
		return conf_bad(at, err, "no vDisk: say vdisk=NAME");
	for (i = 0; !r && i < s->params->vdisks; i++)
		r = peak_vdisk(s, at, given, s->params->vdisk[i], err);
	return r;
}

/* ---- phases without a load ------------------------------------------------
 */

static int add_simple(struct suite *s, const char *kind, const json_t *given,
		      const char *const *names)
{
	json_t *phase = phase_new(kind);
	size_t i;

	for (i = 0; names[i]; i++)
		if (json_object_get(given, names[i]))
			json_object_set(phase, names[i],
					json_object_get(given, names[i]));
	phase_add(s, phase);
	return 0;
}

static bool is_before(const json_t *list, size_t index, const char *vdisk)
{
	size_t i;

	for (i = 0; i < index; i++)
		if (plan_loads(json_array_get(list, i), vdisk))
			return true;
	return false;
}

/* With data like what the first workload on it writes: what is read is not to
 * shrink better or worse than what is written. */
static void add_prefill(struct suite *s, const char *vdisk)
{
	json_t *phase = phase_new("prefill"), *series, *ratio = NULL;
	size_t i;

	json_object_set_new(phase, "vdisk", json_string(vdisk));
	json_array_foreach(s->series, i, series) {
		if (!ratio && plan_loads(series, vdisk))
			ratio = json_object_get(
				json_object_get(series, "workload"),
				"compress_ratio");
	}
	if (ratio)
		json_object_set(phase, "compress_ratio", ratio);
	phase_add(s, phase);
}

/* Each vDisk once: those of the series, and those given. */
static int phase_prefill(struct suite *s, const config_setting_t *at,
			 const json_t *given, struct err *err)
{
	const char *vdisk = text_of(given, "vdisk");
	json_t *series;
	size_t i, k;

	if (s->params->no_prefill)
		return 0;
	if (vdisk) {
		add_prefill(s, vdisk);
		return 0;
	}
	json_array_foreach(s->series, i, series) {
		for (k = 0; k < plan_vdisks(series); k++)
			if (!is_before(s->series, i, plan_vdisk(series, k)))
				add_prefill(s, plan_vdisk(series, k));
	}
	for (i = 0; !json_array_size(s->series) && i < s->params->vdisks; i++)
		add_prefill(s, s->params->vdisk[i]);
	if (!json_array_size(s->phases))
		return conf_bad(at, err, "no vDisk: say vdisk=NAME");
	return 0;
}

static int phase_simple(struct suite *s, const config_setting_t *at,
			const json_t *given, struct err *err)
{
	static const struct {
		const char *kind, *need;
		const char *names[6];
	} kinds[] = {
		{ "rest", "length_us", { "length_us" } },
		{ "wait", "length_us", { "vdisk", "state", "length_us" } },
		{ "fault", "text", { "text" } },
		{ "note", "text", { "text" } },
		{ "link",
		  "domain",
		  { "domain", "rate_bytes_s", "rate_iops", "latency_us" } },
		{ "drive",
		  "domain",
		  { "domain", "drive", "rate_bytes_s", "rate_iops",
		    "latency_us" } },
	};
	const char *kind = text_of(given, "kind");
	size_t i;

	for (i = 0; i < array_len(kinds); i++)
		if (!strcmp(kinds[i].kind, kind))
			break;
	if (i == array_len(kinds))
		return conf_bad(member(at, "kind"), err,
				"kind \"%s\": expected prefill, rest, curve, "
				"max, points, ramp, peak, fault, link, drive, "
				"wait or note",
				kind);
	if (!json_object_get(given, kinds[i].need))
		return conf_bad(at, err, "%s: expected %s here", kind,
				!strcmp(kinds[i].need, "length_us")
					? "seconds"
					: kinds[i].need);
	if (!strcmp(kind, "wait") && (!json_object_get(given, "vdisk") ||
				      !json_object_get(given, "state")))
		return conf_bad(at, err, "wait: expected vdisk and state here");
	return add_simple(s, kind, given, kinds[i].names);
}

int suite_phase(struct suite *s, const config_setting_t *at,
		const json_t *given, struct err *err)
{
	const char *kind = text_of(given, "kind");

	if (!strcmp(kind, "curve"))
		return each_series(s, at, given, phase_curve, err);
	if (!strcmp(kind, "max"))
		return each_series(s, at, given, phase_max, err);
	if (!strcmp(kind, "points"))
		return each_series(s, at, given, phase_points, err);
	if (!strcmp(kind, "ramp"))
		return each_series(s, at, given, phase_ramp, err);
	if (!strcmp(kind, "peak"))
		return phase_peak(s, at, given, err);
	if (!strcmp(kind, "prefill"))
		return phase_prefill(s, at, given, err);
	return phase_simple(s, at, given, err);
}
