/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *            begin ---> STARTING ---> JOB ---> ENDING ---> ACTS
 *              |           ^                      |          |
 *              |           +-- max: next level ---+          v
 *   NONE ------+---> ASKED (prefill, fault, link, drive) -> end -> NONE
 *              +---> REST, WAIT -------------------------->  ^
 *              +---> note -------------------------------->  |
 *
 * Phases follow each other in conductor_advance() alone, a loop, so a plan of
 * ten thousand notes does not nest. Stopping and failing only mark the
 * conductor and end what runs; the way out is the same as an ordinary end.
 */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_POLL_US 200000u
#define PROGRESS_US 500000u

/* ---- ends -----------------------------------------------------------------
 */

static void run_end(struct conductor *c)
{
	c->step = STEP_NONE;
	conductor_wake_at(c, UINT64_MAX);
	conductor_emit_state(c, c->failed     ? "failed"
				: c->stopping ? "stopped"
					      : "done");
}

/* What was to happen during a phase that ended before: said, not just not
 * done. */
static void during_left(struct conductor *c)
{
	const json_t *during = json_object_get(conductor_phase(c), "during");
	const size_t size = json_array_size(during);
	const json_t *act = json_array_get(during, c->during);
	const char *what = json_string_value(json_object_get(act, "text"));

	if (!act)
		return;
	if (!what)
		what = json_string_value(json_object_get(act, "kind"));
	c->host.emit(c->host.arg, "log",
		     json_pack("{s:s, s:o}", "level", "warn", "text",
			       json_sprintf("the run ended in the middle of a "
					    "phase: %zu of the %zu things that "
					    "were to happen during it did "
					    "not, \"%.60s\" next",
					    size - c->during, size,
					    what ? what : "")));
}

void conductor_phase_end(struct conductor *c)
{
	if (c->failed)
		c->status = "failed";
	else if (c->stopping && strcmp(c->status, "early") != 0)
		c->status = "stopped";
	if (c->phase_open && (c->failed || c->stopping))
		during_left(c);
	if (c->phase_open)
		conductor_emit_phase_end(c);
	if (c->timed)
		timed_phase_end(c);
	c->step = STEP_NONE;
	c->phase++;
	conductor_advance(c);
}

/* Marks it; the caller ends what runs. */
void conductor_fail(struct conductor *c, const char *fmt, ...)
{
	va_list ap;

	if (c->failed)
		return;
	c->failed = true;
	va_start(ap, fmt);
	vsnprintf(c->reason, sizeof(c->reason), fmt, ap);
	va_end(ap);
}

/* ---- phases without a job -------------------------------------------------
 */

static void begin_prefill(struct conductor *c)
{
	const json_t *phase = conductor_phase(c);

	conductor_emit_phase(c);
	c->progress_at_us = 0;
	c->step = STEP_ASKED;
	c->host.prefill(c->host.arg,
			json_string_value(json_object_get(phase, "vdisk")),
			phase);
}

static void begin_act(struct conductor *c)
{
	conductor_emit_phase(c);
	c->step = STEP_ASKED;
	c->host.act(c->host.arg, conductor_phase(c));
}

static void begin_note(struct conductor *c)
{
	conductor_emit_phase(c);
	conductor_act(c, conductor_phase(c));
	conductor_phase_end(c);
}

static void begin_rest(struct conductor *c)
{
	conductor_emit_phase(c);
	c->step = STEP_REST;
	c->deadline_us =
		conductor_now_us(c) + plan_us(conductor_phase(c), "length_us");
	if (c->timed)
		c->deadline_us = timed_rest_end(c);
	conductor_wake_at(c, c->deadline_us);
}

static void wait_tick(struct conductor *c)
{
	const json_t *phase = conductor_phase(c);
	const char *vdisk = json_string_value(json_object_get(phase, "vdisk"));
	const char *state = json_string_value(json_object_get(phase, "state"));

	if (c->host.vdisk_is(c->host.arg, vdisk, state)) {
		conductor_phase_end(c);
	} else if (conductor_now_us(c) >= c->deadline_us) {
		conductor_fail(c, "%s was not %s within %.0f s", vdisk, state,
			       plan_number(phase, "length_us", 0) / 1e6);
		conductor_phase_end(c);
	} else {
		conductor_wake_at(c, conductor_now_us(c) + WAIT_POLL_US);
	}
}

static void begin_wait(struct conductor *c)
{
	conductor_emit_phase(c);
	c->step = STEP_WAIT;
	c->deadline_us =
		conductor_now_us(c) + plan_us(conductor_phase(c), "length_us");
	wait_tick(c);
}

void conductor_progress(struct conductor *c, uint64_t done, uint64_t total)
{
	uint64_t now = conductor_now_us(c);
	json_t *body;

	if (c->step != STEP_ASKED || !conductor_phase_is(c, "prefill"))
		return;
	if (done < total && c->progress_at_us &&
	    now < c->progress_at_us + PROGRESS_US)
		return;
	c->progress_at_us = now ? now : 1;
	body = json_object();
	json_object_set_new(body, "phase", json_integer(c->phase));
	json_object_set_new(body, "done_bytes", json_integer((json_int_t)done));
	json_object_set_new(body, "total_bytes",
			    json_integer((json_int_t)total));
	conductor_emit(c, "progress", body);
}

/* ---- what earlier phases set, when resuming -------------------------------
 */

static void redo_next(struct conductor *c)
{
	const json_t *act = json_array_get(c->redo, c->redo_next++);

	if (!act || c->stopping || c->failed) {
		c->step = STEP_NONE;
		conductor_advance(c);
		return;
	}
	c->step = STEP_REDO;
	c->host.act(c->host.arg, act);
}

void conductor_step_done(struct conductor *c, int result, const char *reason)
{
	bool cancelled = result == -ECANCELED && c->stopping;

	if (result < 0 && !cancelled)
		conductor_fail(c, "%s",
			       reason && *reason ? reason : strerror(-result));
	if (c->step == STEP_REDO) {
		redo_next(c);
	} else if (c->step == STEP_ASKED) {
		conductor_phase_end(c);
	} else if (c->acts) {
		c->acts--;
		if (c->failed)
			conductor_job_end(c);
		if (!c->acts && c->step == STEP_ACTS)
			conductor_phase_end(c);
	}
}

/* ---- the way through the plan ---------------------------------------------
 */

static const struct {
	const char *kind;
	void (*begin)(struct conductor *c);
} begins[] = {
	{ "prefill", begin_prefill },
	{ "rest", begin_rest },
	{ "max", conductor_begin_max },
	{ "point", conductor_begin_point },
	{ "ramp", conductor_begin_ramp },
	{ "fault", begin_act },
	{ "link", begin_act },
	{ "drive", begin_act },
	{ "wait", begin_wait },
	{ "note", begin_note },
};

static void phase_begin(struct conductor *c)
{
	size_t i;

	c->asked_iops = NAN;
	c->outstanding = 0;
	c->warm_us = c->job_len_us = 0;
	c->acts = 0;
	c->late_us = 0;
	c->level = 0;
	c->found = false;
	c->status = "done";
	for (i = 0; i < array_len(begins); i++)
		if (conductor_phase_is(c, begins[i].kind))
			break;
	id_assert(i < array_len(begins)); /* plan_check() saw to it */
	begins[i].begin(c);
}

void conductor_advance(struct conductor *c)
{
	if (c->advancing)
		return;
	c->advancing = true;
	while (c->step == STEP_NONE && !conductor_over(c)) {
		if (c->failed || c->stopping || c->phase >= c->phase_count)
			run_end(c);
		else if (c->paused)
			break;
		else if (!c->timed || timed_ready(c))
			phase_begin(c);
	}
	c->advancing = false;
}

void conductor_tick(struct conductor *c)
{
	if (c->paused && c->step != STEP_WAIT)
		return;
	if (c->step == STEP_SLOT) {
		c->step = STEP_NONE;
		conductor_advance(c);
	} else if (c->step == STEP_JOB)
		conductor_job_tick(c);
	else if (c->step == STEP_WAIT)
		wait_tick(c);
	else if (c->step == STEP_REST && conductor_now_us(c) >= c->deadline_us)
		conductor_phase_end(c);
	else if (c->step == STEP_REST)
		conductor_wake_at(c, c->deadline_us);
}

/* ---- orders ---------------------------------------------------------------
 */

void conductor_start(struct conductor *c)
{
	json_t *body = json_object();

	id_assert(!strcmp(c->state, "new"));
	json_object_set_new(body, "title",
			    json_incref(json_object_get(c->plan, "title")));
	json_object_set(body, "plan", c->plan);
	if (c->joined)
		json_object_set_new(body, "joined", json_integer(c->phase));
	else if (c->resume_from)
		json_object_set_new(body, "resumed_from",
				    json_integer(c->resume_from));
	conductor_emit(c, "run", body);
	conductor_emit_state(c, "running");
	redo_next(c);
}

static void pause_end(struct conductor *c, uint64_t held)
{
	if (!held)
		held = conductor_now_us(c) - c->paused_at_us;
	if (c->timed)
		timed_held(c, held);
	if (c->step == STEP_JOB) {
		c->tainted_us = conductor_now_us(c) - c->job_at_us;
		c->job_len_us += held;
		c->held_us += held;
		c->host.job_pause(c->host.arg, false);
		conductor_job_wake(c);
	} else if (c->step == STEP_REST) {
		c->deadline_us += held;
		conductor_wake_at(c, c->deadline_us);
	}
}

/*
 * A job and a rest are held where they are. What cannot be held (prefill, an
 * action, a wait) goes on to its end, and the next phase waits.
 */
void conductor_pause(struct conductor *c, bool pause, uint64_t held_us)
{
	if (conductor_over(c) || c->stopping || c->paused == pause)
		return;
	c->paused = pause;
	conductor_emit_state(c, pause                     ? "paused"
				: c->step == STEP_BARRIER ? "waiting"
							  : "running");
	if (!pause) {
		pause_end(c, held_us);
		conductor_advance(c);
		return;
	}
	c->paused_at_us = conductor_now_us(c);
	if (c->step == STEP_JOB) {
		c->host.job_pause(c->host.arg, true);
		conductor_wake_at(c, UINT64_MAX);
	} else if (c->step == STEP_REST || c->step == STEP_SLOT) {
		conductor_wake_at(c, UINT64_MAX);
	}
}

void conductor_stop(struct conductor *c, const char *reason)
{
	if (conductor_over(c) || c->stopping)
		return;
	c->stopping = true;
	if (!c->failed && reason)
		snprintf(c->reason, sizeof(c->reason), "%s", reason);
	conductor_emit_state(c, "stopping");
	if (c->step == STEP_BARRIER || c->step == STEP_SLOT)
		c->step = STEP_NONE;
	if (c->step == STEP_JOB)
		conductor_job_end(c);
	else if (c->step == STEP_ASKED && conductor_phase_is(c, "prefill"))
		c->host.prefill_stop(c->host.arg);
	else if (c->step == STEP_REST || c->step == STEP_WAIT)
		conductor_phase_end(c);
	else
		conductor_advance(c);
}

const char *conductor_state(const struct conductor *c)
{
	return c->state;
}

bool conductor_over(const struct conductor *c)
{
	return !strcmp(c->state, "done") || !strcmp(c->state, "failed") ||
	       !strcmp(c->state, "stopped");
}

/* ---- making one -----------------------------------------------------------
 */

static void known_fill(struct conductor *c, const json_t *known)
{
	const json_t *entry, *series;
	double all, share, depth;
	char key[24];
	size_t i;

	for (i = 0; i < json_array_size(c->series); i++) {
		snprintf(key, sizeof(key), "%zu", i);
		series = json_array_get(c->series, i);
		entry = json_object_get(known, key);
		/* What the plan says is of all agents. */
		all = (double)plan_vdisks(series);
		share = entry ? 1 : (double)plan_owned(series, c->owned) / all;
		if (!entry)
			entry = series;
		c->known[i].max_iops =
			share * plan_number(entry, "max_iops", NAN);
		depth = plan_number(entry, "outstanding", 32);
		if (!(depth >= 1 && depth <= 4096))
			depth = 32;
		c->known[i].outstanding =
			entry == series
				? plan_share(series, c->owned, (unsigned)depth)
				: (unsigned)depth;
	}
}

/* Points to come need the maxima that phases now skipped had found. */
static int known_check(const struct conductor *c, struct err *err)
{
	const json_t *phase;
	bool found[256] = { false };
	size_t i, series;

	/* Over nodes a phase whose maximum this agent lacks is left out. */
	for (i = c->phase; !c->timed && i < c->phase_count; i++) {
		phase = json_array_get(c->phases, i);
		series = (size_t)plan_number(phase, "series", 0);
		if (!strcmp(plan_kind(phase), "max"))
			found[series] = true;
		if (strcmp(plan_kind(phase), "point") != 0)
			continue;
		series = plan_max_of(c->series, series);
		if (!found[series] && isnan(c->known[series].max_iops))
			return err_set(err, -EINVAL,
				       "cannot go on at phase %u: the maximum "
				       "of series %zu is not known; start the "
				       "run anew",
				       c->resume_from, series);
	}
	return 0;
}

int conductor_new(const struct conductor_order *order,
		  const struct conductor_host *host,
		  struct conductor **conductor, struct err *err)
{
	const json_t *plan = order->plan;
	struct conductor *c;
	int r;

	r = plan_check(plan, err);
	if (r)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, -ENOMEM, "out of memory for the run");
	c->plan = json_incref((json_t *)plan);
	c->phases = json_object_get(plan, "phases");
	c->series = json_object_get(plan, "series");
	c->phase_count = (unsigned)json_array_size(c->phases);
	c->resume_from = order->resume_from;
	c->phase = order->resume_from;
	c->host = *host;
	c->state = "new";
	c->status = "done";
	c->run = strdup(order->run);
	c->known = calloc(json_array_size(c->series) + 1, sizeof(*c->known));
	r = -ENOMEM;
	if (!c->run || !c->known) {
		err_set(err, r, "out of memory for the run");
		goto fail;
	}
	r = -EINVAL;
	if (c->resume_from >= c->phase_count) {
		err_set(err, r, "cannot go on at phase %u: the plan has %u",
			c->resume_from, c->phase_count);
		goto fail;
	}
	r = timed_init(c, order, err);
	if (r)
		goto fail;
	c->redo = plan_standing_acts(plan, c->phase);
	if (!c->redo) {
		r = err_set(err, -ENOMEM, "out of memory for the run");
		goto fail;
	}
	known_fill(c, order->known);
	r = known_check(c, err);
	if (r)
		goto fail;
	*conductor = c;
	return 0;
fail:
	conductor_free(c);
	return r;
}

void conductor_free(struct conductor *c)
{
	if (!c)
		return;
	json_decref(c->plan);
	json_decref(c->redo);
	free(c->known);
	free(c->run);
	free(c);
}
