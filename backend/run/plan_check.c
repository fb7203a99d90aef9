/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A plan is input: it comes from a suite of the operator's, or over a socket.
 * Everything the conductor and its host rely on is checked here, once, with
 * the place in the plan.
 */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLAN_PHASES_MAX 10000
#define PLAN_SERIES_MAX 256
#define PLAN_OUTSTANDING_MAX 4096.0
#define PLAN_SECONDS_MAX (30.0 * 24 * 3600)

struct place {
	struct err *err;
	char at[64]; /* "phases[3]" */
};

static int bad(const struct place *p, const char *name, const char *want)
{
	return err_set(p->err, -EINVAL, "plan: %s%s%s: expected %s", p->at,
		       *name ? "." : "", name, want);
}

/* A number within limits; `need` or absent. */
static int check_number(const struct place *p, const json_t *object,
			const char *name, bool need, double min, double max)
{
	const json_t *j = json_object_get(object, name);
	char want[96];
	double v;

	if ((!j || json_is_null(j)) && !need)
		return 0;
	v = json_is_number(j) ? json_number_value(j) : NAN;
	if (v >= min && v <= max)
		return 0;
	snprintf(want, sizeof(want), "a number from %g to %g", min, max);
	return bad(p, name, want);
}

static int check_string(const struct place *p, const json_t *object,
			const char *name, bool need)
{
	const json_t *j = json_object_get(object, name);

	if ((!j || json_is_null(j)) && !need)
		return 0;
	if (json_is_string(j) && json_string_length(j) > 0 &&
	    json_string_length(j) < 1024)
		return 0;
	return bad(p, name, "a text");
}

/* ---- series ---------------------------------------------------------------
 */

static int check_sizes(const struct place *p, const json_t *workload,
		       const char *name, bool need)
{
	const json_t *list = json_object_get(workload, name), *pair;
	double bytes, weight, sum = 0.0;
	size_t i;

	if (!list && !need)
		return 0;
	if (!json_is_array(list) || (need && !json_array_size(list)) ||
	    json_array_size(list) > 16)
		return bad(p, name, "1 to 16 pairs of [bytes, weight]");
	json_array_foreach(list, i, pair) {
		bytes = json_number_value(json_array_get(pair, 0));
		weight = json_number_value(json_array_get(pair, 1));
		if (!(bytes >= 512 && bytes <= 8 << 20) ||
		    fmod(bytes, 512) != 0 || !(weight >= 0 && weight < 1e9))
			return bad(p, name,
				   "pairs of [bytes, weight]: 512 B to 8 MiB "
				   "in steps of 512, a weight from 0");
		sum += weight;
	}
	if (json_array_size(list) && sum <= 0)
		return bad(p, name, "one weight above 0");
	return 0;
}

static int check_workload(const struct place *series, const json_t *w)
{
	struct place p = { .err = series->err };

	snprintf(p.at, sizeof(p.at), "%.40s.workload", series->at);
	if (!json_is_object(w))
		return bad(&p, "", "an object");
	if (check_string(&p, w, "name", true) ||
	    check_number(&p, w, "read_share", true, 0, 1) ||
	    check_number(&p, w, "random_share", true, 0, 1) ||
	    check_sizes(&p, w, "read_sizes", true) ||
	    check_sizes(&p, w, "write_sizes", false) ||
	    check_number(&p, w, "footprint_bytes", false, 0, 1e18) ||
	    check_number(&p, w, "footprint_share", false, 0, 1) ||
	    check_number(&p, w, "compress_ratio", false, 1, 16) ||
	    check_number(&p, w, "flush_every", false, 0, 1e9) ||
	    check_number(&p, w, "streams", false, 0, 4096))
		return -EINVAL;
	return 0;
}

/* Names, each once. */
static int check_names(const struct place *p, const json_t *object,
		       const char *name, size_t min, size_t max)
{
	const json_t *list = json_object_get(object, name), *j;
	size_t i, k;

	if (!json_is_array(list) || json_array_size(list) < min ||
	    json_array_size(list) > max)
		return bad(p, name, "a list of names");
	json_array_foreach(list, i, j) {
		if (!json_is_string(j) || !json_string_length(j) ||
		    json_string_length(j) > 63)
			return bad(p, name, "names of 1 to 63 bytes");
		for (k = 0; k < i; k++)
			if (json_equal(j, json_array_get(list, k)))
				return bad(p, name, "each name once");
	}
	return 0;
}

static int check_vdisks(const struct place *p, const json_t *series)
{
	if (!json_object_get(series, "vdisks"))
		return check_string(p, series, "vdisk", true);
	if (json_object_get(series, "vdisk"))
		return bad(p, "vdisk", "either vdisk or vdisks");
	return check_names(p, series, "vdisks", 1, PLAN_VDISKS_MAX);
}

static int check_series(const json_t *plan, struct err *err)
{
	const json_t *list = json_object_get(plan, "series"), *s;
	struct place p = { .err = err, .at = "series" };
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > PLAN_SERIES_MAX)
		return bad(&p, "", "an array of at most 256");
	json_array_foreach(list, i, s) {
		snprintf(p.at, sizeof(p.at), "series[%zu]", i);
		if (!json_is_object(s))
			return bad(&p, "", "an object");
		if (check_string(&p, s, "name", true) || check_vdisks(&p, s) ||
		    check_string(&p, s, "setup", false) ||
		    check_number(&p, s, "max_iops", false, 1, 1e9) ||
		    check_number(&p, s, "max_from", false, 0,
				 (double)json_array_size(list) - 1) ||
		    check_workload(&p, json_object_get(s, "workload")))
			return -EINVAL;
	}
	return 0;
}

/* ---- phases ---------------------------------------------------------------
 */

struct check {
	const json_t *series;
	bool *found; /* by series: its maximum is known by now */
	struct place p;
};

static int check_time(struct check *k, const json_t *phase, const char *name,
		      bool need, double min_us)
{
	return check_number(&k->p, phase, name, need, min_us,
			    PLAN_SECONDS_MAX * 1e6);
}

static int check_phase_series(struct check *k, const json_t *phase)
{
	return check_number(&k->p, phase, "series", true, 0,
			    (double)json_array_size(k->series) - 1);
}

static int check_prefill(struct check *k, const json_t *phase)
{
	if (check_string(&k->p, phase, "vdisk", true))
		return -EINVAL;
	return check_number(&k->p, phase, "compress_ratio", false, 1, 16);
}

static int check_rest(struct check *k, const json_t *phase)
{
	return check_time(k, phase, "length_us", true, 0);
}

static int check_max(struct check *k, const json_t *phase)
{
	double min = plan_number(phase, "outstanding_min", 1);

	if (check_phase_series(k, phase) ||
	    check_time(k, phase, "step_us", true, 1000) ||
	    check_time(k, phase, "warmup_us", false, 0) ||
	    check_number(&k->p, phase, "outstanding_min", false, 1,
			 PLAN_OUTSTANDING_MAX) ||
	    check_number(&k->p, phase, "outstanding_max", false, min,
			 PLAN_OUTSTANDING_MAX) ||
	    check_number(&k->p, phase, "gain", false, 0.001, 1))
		return -EINVAL;
	k->found[(size_t)plan_number(phase, "series", 0)] = true;
	return 0;
}

static int check_during(struct check *k, const json_t *phase);

static int check_job(struct check *k, const json_t *phase)
{
	const char *schedule =
		json_string_value(json_object_get(phase, "schedule"));

	if (check_phase_series(k, phase) ||
	    check_time(k, phase, "length_us", true, 1000) ||
	    check_time(k, phase, "warmup_us", false, 0) ||
	    check_number(&k->p, phase, "early_ci", false, 0, 1) ||
	    check_number(&k->p, phase, "point", false, 0, 1e6) ||
	    check_number(&k->p, phase, "points", false, 1, 1e6))
		return -EINVAL;
	if (schedule && strcmp(schedule, "poisson") != 0 &&
	    strcmp(schedule, "uniform") != 0)
		return bad(&k->p, "schedule", "poisson or uniform");
	return check_during(k, phase);
}

static int check_point(struct check *k, const json_t *phase)
{
	size_t series;

	if (check_job(k, phase) ||
	    check_number(&k->p, phase, "percent", true, 0.1, 1000) ||
	    check_number(&k->p, phase, "outstanding", false, 1,
			 PLAN_OUTSTANDING_MAX))
		return -EINVAL;
	series =
		plan_max_of(k->series, (size_t)plan_number(phase, "series", 0));
	if (!k->found[series])
		return bad(&k->p, "series",
			   "a series whose maximum a phase before found");
	return 0;
}

static int check_ramp(struct check *k, const json_t *phase)
{
	if (check_job(k, phase))
		return -EINVAL;
	return check_number(&k->p, phase, "outstanding", true, 1,
			    PLAN_OUTSTANDING_MAX);
}

static int check_text(struct check *k, const json_t *phase)
{
	return check_string(&k->p, phase, "text", true);
}

static int check_shape(struct check *k, const json_t *phase)
{
	if (check_string(&k->p, phase, "domain", true) ||
	    check_string(&k->p, phase, "drive", false) ||
	    check_number(&k->p, phase, "rate_bytes_s", false, 0, 1e15) ||
	    check_number(&k->p, phase, "rate_iops", false, 0, 1e12) ||
	    check_number(&k->p, phase, "latency_us", false, 0, 1e9))
		return -EINVAL;
	return 0;
}

static int check_wait(struct check *k, const json_t *phase)
{
	if (check_string(&k->p, phase, "vdisk", true) ||
	    check_string(&k->p, phase, "state", true))
		return -EINVAL;
	return check_time(k, phase, "length_us", true, 1000);
}

static const struct {
	const char *kind;
	int (*check)(struct check *k, const json_t *phase);
	bool act; /* may stand in `during` */
} kinds[] = {
	{ "prefill", check_prefill, false }, { "rest", check_rest, false },
	{ "max", check_max, false },         { "point", check_point, false },
	{ "ramp", check_ramp, false },       { "fault", check_text, true },
	{ "link", check_shape, true },       { "drive", check_shape, true },
	{ "wait", check_wait, false },       { "note", check_text, true },
};

static int check_one(struct check *k, const json_t *phase, bool during)
{
	size_t i;

	if (!json_is_object(phase))
		return bad(&k->p, "", "an object");
	for (i = 0; i < array_len(kinds); i++)
		if (!strcmp(kinds[i].kind, plan_kind(phase)) &&
		    (!during || kinds[i].act))
			return kinds[i].check(k, phase);
	return bad(&k->p, "kind",
		   during ? "fault, link, drive or note"
			  : "prefill, rest, max, point, ramp, fault, link, "
			    "drive, wait or note");
}

/* Actions while a point runs: {"at_us": since it began, ...a phase}, in order
 * of time. */
static int check_during(struct check *k, const json_t *phase)
{
	const json_t *list = json_object_get(phase, "during"), *act;
	struct check inner = *k;
	double from = 0.0;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return bad(&k->p, "during", "an array");
	json_array_foreach(list, i, act) {
		snprintf(inner.p.at, sizeof(inner.p.at), "%.30s.during[%zu]",
			 k->p.at, i);
		if (check_one(&inner, act, true) ||
		    check_time(&inner, act, "at_us", true, from))
			return -EINVAL;
		from = plan_number(act, "at_us", 0);
	}
	return 0;
}

static int check_phases(const json_t *plan, bool *found, struct err *err)
{
	const json_t *list = json_object_get(plan, "phases"), *phase;
	struct check k = { .series = json_object_get(plan, "series"),
			   .found = found,
			   .p = { .err = err, .at = "phases" } };
	size_t i;

	if (!json_is_array(list) || !json_array_size(list) ||
	    json_array_size(list) > PLAN_PHASES_MAX)
		return bad(&k.p, "", "an array of 1 to 10000");
	json_array_foreach(list, i, phase) {
		snprintf(k.p.at, sizeof(k.p.at), "phases[%zu]", i);
		if (check_one(&k, phase, false))
			return -EINVAL;
	}
	return 0;
}

/* ---- nodes ----------------------------------------------------------------
 */

/* How many of the nodes have it. */
static unsigned owners(const json_t *plan, const char *vdisk)
{
	const json_t *node, *name;
	unsigned n = 0;
	size_t i, k;

	json_array_foreach(json_object_get(plan, "nodes"), i, node) {
		json_array_foreach(json_object_get(node, "vdisks"), k, name)
			n += !strcmp(json_string_value(name), vdisk);
	}
	return n;
}

/* Each vDisk that is loaded or filled has one owner. */
static int check_owners(const json_t *plan, struct err *err)
{
	const json_t *s, *phase;
	const char *vdisk;
	size_t i, k;

	json_array_foreach(json_object_get(plan, "series"), i, s) {
		for (k = 0; k < plan_vdisks(s); k++)
			if (owners(plan, plan_vdisk(s, k)) != 1)
				return err_set(err, -EINVAL,
					       "plan: series[%zu]: expected "
					       "one node that has %s",
					       i, plan_vdisk(s, k));
	}
	json_array_foreach(json_object_get(plan, "phases"), i, phase) {
		vdisk = json_string_value(json_object_get(phase, "vdisk"));
		if (vdisk && owners(plan, vdisk) != 1)
			return err_set(err, -EINVAL,
				       "plan: phases[%zu].vdisk: expected one "
				       "node that has %s",
				       i, vdisk);
	}
	return 0;
}

/* Over nodes a share of a maximum is a share of what each node itself found,
 * on the same vDisks. */
static int check_max_from(const json_t *plan, struct err *err)
{
	const json_t *list = json_object_get(plan, "series"), *s, *from;
	size_t i, k;

	json_array_foreach(list, i, s) {
		from = json_array_get(list, plan_max_of(list, i));
		for (k = 0; k < plan_vdisks(s); k++)
			if (!plan_loads(from, plan_vdisk(s, k)) ||
			    plan_vdisks(from) != plan_vdisks(s))
				return err_set(err, -EINVAL,
					       "plan: series[%zu].max_from: "
					       "expected a series on the same "
					       "vDisks, as several nodes run "
					       "them",
					       i);
	}
	return 0;
}

static int check_silent(const json_t *plan, struct err *err)
{
	const struct place p = { .err = err, .at = "plan" };
	const char *silent = json_string_value(json_object_get(plan, "silent"));

	if (!json_object_get(plan, "silent") ||
	    (silent &&
	     (!strcmp(silent, "wait") || !strcmp(silent, "continue") ||
	      !strcmp(silent, "stop"))))
		return 0;
	return bad(&p, "silent", "wait, continue or stop");
}

static int check_nodes(const json_t *plan, struct err *err)
{
	const json_t *list = json_object_get(plan, "nodes"), *node;
	struct place p = { .err = err, .at = "nodes" };
	size_t i;

	if (!list)
		return check_silent(plan, err);
	if (!json_is_array(list) || !json_array_size(list) ||
	    json_array_size(list) > PLAN_NODES_MAX)
		return bad(&p, "", "a list of 1 to 256 nodes");
	json_array_foreach(list, i, node) {
		snprintf(p.at, sizeof(p.at), "nodes[%zu]", i);
		if (!json_is_object(node))
			return bad(&p, "", "an object");
		if (check_string(&p, node, "name", true) ||
		    check_string(&p, node, "agent", true) ||
		    check_names(&p, node, "vdisks", 0, 1024))
			return -EINVAL;
	}
	if (check_owners(plan, err) || check_silent(plan, err))
		return -EINVAL;
	return plan_timed(plan) ? check_max_from(plan, err) : 0;
}

int plan_check(const json_t *plan, struct err *err)
{
	struct place p = { .err = err, .at = "plan" };
	bool found[PLAN_SERIES_MAX];
	const json_t *series;
	size_t i;

	if (!json_is_object(plan))
		return bad(&p, "", "an object");
	if (check_string(&p, plan, "title", true) ||
	    check_number(&p, plan, "interval_ms", true, 100, 60000) ||
	    check_number(&p, plan, "seed", false, 0, 1e15) ||
	    check_series(plan, err))
		return -EINVAL;
	series = json_object_get(plan, "series");
	for (i = 0; i < json_array_size(series); i++)
		found[i] = json_object_get(json_array_get(series, i),
					   "max_iops") != NULL;
	if (check_phases(plan, found, err))
		return -EINVAL;
	return check_nodes(plan, err);
}

/* ---- what still holds -----------------------------------------------------
 */

/* "drive n2:d1 offline": what it is about is the first two words. */
static bool same_target(const json_t *a, const json_t *b)
{
	const char *x = json_string_value(json_object_get(a, "text"));
	const char *y = json_string_value(json_object_get(b, "text"));
	size_t n;

	if (strcmp(plan_kind(a), "fault") != 0 ||
	    strcmp(plan_kind(b), "fault") != 0 || !x || !y)
		return false;
	n = strcspn(x, " ");
	if (x[n])
		n += 1 + strcspn(x + n + 1, " ");
	return !strncmp(x, y, n) && (!y[n] || y[n] == ' ');
}

static bool is_recovery(const json_t *act)
{
	const char *text = json_string_value(json_object_get(act, "text"));
	const char *last = text ? strrchr(text, ' ') : NULL;

	return !strcmp(plan_kind(act), "fault") && last &&
	       (!strcmp(last, " online") || !strcmp(last, " normal"));
}

static void standing_add(json_t *list, const json_t *act)
{
	const char *text = json_string_value(json_object_get(act, "text"));
	size_t i;

	if (!strcmp(plan_kind(act), "note") ||
	    (text && strstr(text, " stall "))) /* is over by itself */
		return;
	for (i = json_array_size(list); i-- > 0;)
		if (same_target(json_array_get(list, i), act))
			json_array_remove(list, i);
	if (!is_recovery(act))
		json_array_append(list, (json_t *)act);
}

json_t *plan_standing_acts(const json_t *plan, unsigned resume_from)
{
	const json_t *phases = json_object_get(plan, "phases"), *phase, *act;
	json_t *list = json_array();
	size_t i, j;

	json_array_foreach(phases, i, phase) {
		if (i >= resume_from)
			break;
		json_array_foreach(json_object_get(phase, "during"), j, act)
			standing_add(list, act);
		if (!strcmp(plan_kind(phase), "fault") ||
		    !strcmp(plan_kind(phase), "link") ||
		    !strcmp(plan_kind(phase), "drive"))
			standing_add(list, phase);
	}
	return list;
}
