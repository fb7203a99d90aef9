/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Phases that load a vDisk: a search for the maximum is a job a level, a point
 * or a step of a ramp is one job.
 */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/units.h"

void conductor_job_end(struct conductor *c)
{
	if (c->step != STEP_JOB)
		return;
	c->step = STEP_ENDING;
	conductor_wake_at(c, UINT64_MAX);
	c->host.job_stop(c->host.arg);
}

/* This agent's part of what is in flight in all. */
unsigned conductor_share(const struct conductor *c, unsigned outstanding)
{
	return plan_share(json_array_get(c->series, conductor_series(c)),
			  c->owned, outstanding);
}

/* Its time is over before it began: what was in flight took that long. */
static void job_too_late(struct conductor *c)
{
	c->status = "late";
	if (!c->phase_open)
		conductor_emit_phase(c);
	conductor_emit_log(c, "the phase's time was over before the load "
			      "before it had ended: it is left out");
	conductor_phase_end(c);
}

void conductor_job_start(struct conductor *c)
{
	const json_t *phase = conductor_phase(c);
	const json_t *series = json_array_get(c->series, conductor_series(c));
	const char *schedule =
		json_string_value(json_object_get(phase, "schedule"));
	struct conductor_job job = {
		.series = series,
		.workload = json_object_get(series, "workload"),
		.owned = c->owned,
		.iops = isnan(c->asked_iops) ? 0.0 : c->asked_iops,
		.poisson = !schedule || !strcmp(schedule, "poisson"),
		.outstanding = c->outstanding,
		.seed = plan_us(c->plan, "seed") * 1000003u + c->phase,
		.interval_us = c->interval_us,
	};

	if (c->timed && !timed_job(c, &job.start_us)) {
		job_too_late(c);
		return;
	}
	c->step = STEP_STARTING;
	c->tainted_us = 0;
	c->held_us = 0;
	c->host.job_start(c->host.arg, &job);
}

static void job_times(struct conductor *c)
{
	plan_load(c->plan, conductor_phase(c), &c->load);
	c->interval_us = c->load.interval_us;
	c->warm_us = c->load.warm_us;
	c->job_len_us = c->load.warm_us + c->load.len_us;
}

void conductor_begin_max(struct conductor *c)
{
	const json_t *phase = conductor_phase(c);
	const json_t *series = json_array_get(c->series, conductor_series(c));
	double from = plan_number(phase, "outstanding_min", 1);

	/* One at least for each vDisk. */
	if (from < (double)plan_vdisks(series))
		from = (double)plan_vdisks(series);
	max_search_init(&c->search, (unsigned)from,
			(unsigned)plan_number(phase, "outstanding_max", 256),
			plan_number(phase, "gain", 0.03));
	job_times(c);
	c->outstanding = conductor_share(c, c->search.outstanding);
	conductor_job_start(c);
}

static void begin_job(struct conductor *c)
{
	job_times(c);
	c->during = 0;
	early_reset(&c->early);
	conductor_job_start(c);
}

void conductor_begin_point(struct conductor *c)
{
	const struct conductor_known *known =
		&c->known[plan_max_of(c->series, conductor_series(c))];
	const json_t *phase = conductor_phase(c);

	if (isnan(known->max_iops)) {
		conductor_fail(c, "the maximum of this series is not known");
		conductor_emit_phase(c);
		conductor_phase_end(c);
		return;
	}
	c->asked_iops =
		known->max_iops * plan_number(phase, "percent", 100) / 100.0;
	c->outstanding = known->outstanding;
	if (json_object_get(phase, "outstanding"))
		c->outstanding = conductor_share(
			c, (unsigned)plan_number(phase, "outstanding", 1));
	begin_job(c);
}

void conductor_begin_ramp(struct conductor *c)
{
	c->outstanding = conductor_share(
		c, (unsigned)plan_number(conductor_phase(c), "outstanding", 1));
	begin_job(c);
}

/* When the job needs the clock next: its end or an action during it. */
void conductor_job_wake(struct conductor *c)
{
	const json_t *act = json_array_get(
		json_object_get(conductor_phase(c), "during"), c->during);
	uint64_t at = c->job_at_us + c->job_len_us, due;

	if (!c->phase_open)
		at = c->job_at_us + c->late_us;
	else if (act && !conductor_phase_is(c, "max")) {
		due = c->job_at_us + c->held_us + plan_us(act, "at_us");
		if (due < at)
			at = due;
	}
	conductor_wake_at(c, at);
}

void conductor_act(struct conductor *c, const json_t *act)
{
	json_t *body;

	if (c->silent && !strcmp(plan_kind(act), "note"))
		return;
	if (strcmp(plan_kind(act), "note") != 0) {
		c->acts++;
		c->host.act(c->host.arg, act);
		return;
	}
	body = json_object();
	conductor_copy(body, act, "text");
	c->host.emit(c->host.arg, "note", body);
}

void conductor_job_tick(struct conductor *c)
{
	const json_t *during = json_object_get(conductor_phase(c), "during");
	uint64_t now = conductor_now_us(c), at;
	const json_t *act;

	if (!c->phase_open && now < c->job_at_us + c->late_us) {
		conductor_job_wake(c);
		return;
	}
	if (!c->phase_open)
		conductor_emit_phase(c);
	at = now > c->job_at_us ? now - c->job_at_us : 0;

	while (!conductor_phase_is(c, "max") && c->step == STEP_JOB &&
	       (act = json_array_get(during, c->during)) &&
	       plan_us(act, "at_us") + c->held_us <= at) {
		c->during++;
		conductor_act(c, act);
	}
	if (c->step != STEP_JOB)
		return;
	if (at >= c->job_len_us)
		conductor_job_end(c);
	else
		conductor_job_wake(c);
}

void conductor_job_began(struct conductor *c)
{
	if (c->step != STEP_STARTING)
		return;
	/* Timed, it is made ready before its time and says so at it. */
	if (!c->phase_open && !c->timed)
		conductor_emit_phase(c);
	if (!c->timed)
		c->job_at_us = conductor_now_us(c);
	c->step = STEP_JOB;
	if (c->stopping || c->failed) {
		conductor_job_end(c);
	} else if (c->paused) {
		c->paused_at_us = conductor_now_us(c);
		c->host.job_pause(c->host.arg, true);
		conductor_wake_at(c, UINT64_MAX);
	} else {
		conductor_job_wake(c);
	}
}

void conductor_max_found(struct conductor *c, double iops)
{
	struct conductor_known *known = &c->known[conductor_series(c)];

	known->max_iops = iops;
	known->outstanding = conductor_share(c, c->search.kept);
	conductor_phase_end(c);
}

static void max_level_end(struct conductor *c)
{
	unsigned depth = c->outstanding;
	enum max_verdict verdict;
	char text[160], count[32];
	double iops;

	if (c->found) {
		timed_level_end(c);
		return;
	}
	verdict = max_search_level(&c->search, &iops);
	if (verdict == MAX_NOTHING) {
		conductor_fail(c, "no I/O was completed while the maximum was "
				  "sought");
		conductor_phase_end(c);
		return;
	}
	snprintf(text, sizeof(text), "%s IOPS with %u outstanding%s",
		 units_count_text(iops, count, sizeof(count)), depth,
		 c->search.bound ? ", bound by the generator" : "");
	conductor_emit_log(c, text);
	c->found = verdict == MAX_FOUND;
	if (c->timed) {
		timed_level_end(c);
	} else if (c->found) {
		conductor_max_found(c, c->search.kept_iops);
	} else {
		c->outstanding = conductor_share(c, c->search.outstanding);
		conductor_job_start(c);
	}
}

void conductor_job_ended(struct conductor *c, int result, const char *reason)
{
	if (c->step != STEP_STARTING && c->step != STEP_JOB &&
	    c->step != STEP_ENDING)
		return;
	conductor_wake_at(c, UINT64_MAX);
	if (!c->phase_open)
		conductor_emit_phase(c);
	if (result < 0)
		conductor_fail(c, "%s",
			       reason && *reason ? reason : strerror(-result));
	else if (c->step != STEP_ENDING)
		conductor_fail(c, "the load ended on its own");
	if (c->acts)
		c->step = STEP_ACTS;
	else if (!c->failed && !c->stopping && conductor_phase_is(c, "max"))
		max_level_end(c);
	else
		conductor_phase_end(c);
}

/* ---- samples --------------------------------------------------------------
 */

/*
 * Not counted: warm-up, what a pause touched, all of a search, and from the end
 * of the load on: while the last I/Os come back nothing new is asked, so that
 * time is no part of a rate, however long a stalled drive makes it.
 */
static bool is_warm(const struct conductor *c, uint64_t from_us)
{
	from_us += c->late_us;
	return c->paused || c->step != STEP_JOB || from_us < c->warm_us ||
	       from_us < c->tainted_us || from_us >= c->job_len_us;
}

static void sample_failing(struct conductor *c,
			   const struct conductor_sample *s)
{
	conductor_fail(c, "every I/O failed: %s",
		       s->why          ? s->why
		       : s->last_error ? strerror(abs(s->last_error))
				       : "I/O error");
	conductor_job_end(c);
}

static void sample_early(struct conductor *c, const struct conductor_sample *s)
{
	double want = plan_number(conductor_phase(c), "early_ci", 0.0);
	double iops = (double)s->ops * 1e6 / (double)s->len_us;

	early_add(&c->early, iops, s->mean_us);
	/* The others of a timed plan go on to its end, too. */
	if (c->timed || want <= 0.0 || !(early_ci(&c->early) < want))
		return;
	/* What is to happen during a point is not to be missed. */
	if (json_array_get(json_object_get(conductor_phase(c), "during"),
			   c->during))
		return;
	c->status = "early";
	conductor_job_end(c);
}

void conductor_job_sample(struct conductor *c, const struct conductor_sample *s)
{
	if (c->step != STEP_JOB && c->step != STEP_ENDING)
		return;
	if (s->errors && s->errors >= s->ops)
		sample_failing(c, s);
	if (!s->len_us || is_warm(c, s->from_us))
		return;
	if (conductor_phase_is(c, "max"))
		max_search_sample(&c->search, s);
	else
		sample_early(c, s);
}

void conductor_stamp(const struct conductor *c, json_t *body)
{
	uint64_t from = plan_us(body, "from_us"), shift;
	bool warm = conductor_phase_is(c, "max") || is_warm(c, from);
	uint64_t since = c->timed ? c->slot_at_us : c->phase_at_us;

	shift = c->job_at_us > since ? c->job_at_us - since : 0;
	if (c->timed)
		shift += c->late_us;
	if (c->timed || conductor_phase_is(c, "max"))
		json_object_set_new(body, "from_us",
				    json_integer((json_int_t)(from + shift)));
	json_object_set_new(body, "run", json_string(c->run));
	json_object_set_new(body, "phase", json_integer(c->phase));
	json_object_set_new(body, "series",
			    json_integer((json_int_t)conductor_series(c)));
	json_object_set_new(body, "warm", json_boolean(warm));
}
