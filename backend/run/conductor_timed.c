/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A plan of several agents, each with a conductor of its own: between two
 * barriers all of them go by one timetable (plan.h), each by its own clock.
 *
 *	BARRIER --conductor_go()--> SLOT ... JOB ... SLOT ... JOB ... BARRIER
 *	   says "waiting"           each phase at its time, none sooner
 *
 * A load is made ready a moment before its time, and its intervals lie on a
 * grid that begins with the phase: interval i of one agent is interval i of
 * all. Who is late begins where an interval does. Who was away falls in where
 * a phase does.
 *
 * A search: every agent finds the depth of its own share, at the same levels
 * at the same times, and holds it until the last level, in which all of them
 * hold what they found. What each did in that one is its maximum: they add up
 * to what all can do together.
 */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <string.h>

#define LEAD_US 50000u

static bool is_load(const struct conductor *c)
{
	return conductor_phase_is(c, "max") || conductor_phase_is(c, "point") ||
	       conductor_phase_is(c, "ramp");
}

static uint64_t slot_us(const struct conductor *c)
{
	uint64_t us;

	plan_slot_us(c->plan, conductor_phase(c), &us);
	return us;
}

static bool slot_known(const struct conductor *c)
{
	uint64_t us;

	return c->phase < c->phase_count &&
	       plan_slot_us(c->plan, conductor_phase(c), &us);
}

/* Whether this agent has something to do in it. */
static bool takes_part(const struct conductor *c)
{
	const json_t *phase = conductor_phase(c);

	if (is_load(c))
		return plan_owned(
			       json_array_get(c->series, conductor_series(c)),
			       c->owned) > 0;
	if (json_object_get(phase, "vdisk"))
		return plan_owns(c->owned, json_string_value(json_object_get(
						   phase, "vdisk")));
	return !c->silent || !conductor_phase_is(c, "note");
}

static void emit_out(struct conductor *c, const char *reason)
{
	json_t *body = json_pack("{s:i, s:s, s:s}", "phase", (int)c->phase,
				 "status", "out", "reason", reason);

	conductor_emit(c, "phase_end", body);
}

/* Past all that others have begun without this agent: up to a phase of which
 * nothing that counts is over. */
static void fall_in(struct conductor *c, bool say)
{
	struct plan_load load = { 0 };

	for (; slot_known(c); c->phase++) {
		if (is_load(c))
			plan_load(c->plan, conductor_phase(c), &load);
		else
			load.warm_us = 0;
		if (c->slot_at_us + load.warm_us >= conductor_now_us(c))
			return;
		if (say && is_load(c) && takes_part(c))
			emit_out(c, "it began without this node");
		c->slot_at_us += slot_us(c);
	}
}

int timed_init(struct conductor *c, const struct conductor_order *order,
	       struct err *err)
{
	const char *agent = order->agent ? order->agent : "";
	int at = plan_node_index(c->plan, agent);

	c->passed = c->go_phase = -1;
	c->timed = plan_timed(c->plan);
	if (!plan_nodes(c->plan))
		return 0;
	if (at < 0)
		return err_set(err, -EINVAL, "plan: nodes: %s is none of them",
			       agent);
	c->owned = json_object_get(plan_node(c->plan, (size_t)at), "vdisks");
	c->silent = at > 0;
	if (!c->timed || !order->join_at_us)
		return 0;
	c->joined = true;
	c->passed = (int)order->join_phase;
	c->phase = order->join_phase;
	c->slot_at_us = c->go_at_us = order->join_at_us;
	fall_in(c, false);
	if (c->phase < c->phase_count)
		return 0;
	return err_set(err, -ESTALE,
		       "nothing of the run is left to fall in with");
}

/* ---- barriers ----------------------------------------------------------- */

static void pass(struct conductor *c, unsigned phase, uint64_t at_us)
{
	for (; c->phase < phase; c->phase++)
		if (is_load(c) && takes_part(c))
			emit_out(c, "the others had gone on");
	c->passed = (int)phase;
	c->go_phase = -1;
	c->go_at_us = c->slot_at_us = at_us;
	c->shift_us = 0;
	c->step = STEP_NONE;
	if (!c->paused && strcmp(c->state, "running") != 0)
		conductor_emit_state(c, "running");
	fall_in(c, true);
}

void conductor_go(struct conductor *c, unsigned phase, uint64_t at_us)
{
	if (!c->timed || conductor_over(c) || phase >= c->phase_count)
		return;
	if ((int)phase == c->passed) {
		c->shift_us += (int64_t)(at_us - c->go_at_us);
		c->go_at_us = at_us;
	} else if (phase >= c->phase && c->step == STEP_BARRIER) {
		pass(c, phase, at_us);
		conductor_advance(c);
	} else if (phase >= c->phase) {
		c->go_phase = (int)phase;
		c->go_at_us = at_us;
	}
}

static bool is_barrier(const struct conductor *c)
{
	return c->passed != (int)c->phase &&
	       plan_barrier(c->plan, c->phase,
			    c->joined ? SIZE_MAX : c->resume_from);
}

static void meet(struct conductor *c)
{
	json_t *body;

	if (c->go_phase >= (int)c->phase) {
		pass(c, (unsigned)c->go_phase, c->go_at_us);
		return;
	}
	c->step = STEP_BARRIER;
	c->state = "waiting";
	body = json_pack("{s:s, s:i}", "state", c->state, "phase",
			 (int)c->phase);
	conductor_emit(c, "run_state", body);
}

/* ---- phases ------------------------------------------------------------- */

static bool max_missing(const struct conductor *c)
{
	return conductor_phase_is(c, "point") &&
	       isnan(c->known[plan_max_of(c->series, conductor_series(c))]
			     .max_iops);
}

bool timed_ready(struct conductor *c)
{
	uint64_t at;
	bool out;

	if (is_barrier(c)) {
		meet(c);
		return false;
	}
	out = takes_part(c) && max_missing(c);
	if (out)
		emit_out(c, "this node has not found its maximum");
	if (out || !takes_part(c)) {
		timed_phase_end(c);
		c->phase++;
		return false;
	}
	at = c->slot_at_us - (is_load(c) ? LEAD_US : 0);
	if (!slot_known(c) || conductor_now_us(c) >= at)
		return true;
	c->step = STEP_SLOT;
	conductor_wake_at(c, at);
	return false;
}

void timed_phase_end(struct conductor *c)
{
	c->slot_at_us += slot_us(c) + (uint64_t)c->shift_us + c->slot_held_us;
	c->shift_us = 0;
	c->slot_held_us = 0;
}

uint64_t timed_rest_end(const struct conductor *c)
{
	const uint64_t us = slot_us(c);

	return c->slot_at_us + us - (us < LEAD_US ? us : LEAD_US);
}

/* What is under way keeps the time it began at. */
void timed_held(struct conductor *c, uint64_t held_us)
{
	c->go_at_us += held_us; /* said again, it will be of that */
	if (c->step == STEP_NONE || c->step == STEP_SLOT)
		c->slot_at_us += held_us;
	else if (c->step != STEP_BARRIER)
		c->slot_held_us += held_us;
}

/* ---- loads -------------------------------------------------------------- */

bool timed_job(struct conductor *c, uint64_t *start_us)
{
	const struct plan_load *l = &c->load;
	const uint64_t now = conductor_now_us(c);
	const uint64_t one = l->warm_us + l->len_us + l->gap_us;

	for (;;) {
		c->job_at_us = c->slot_at_us + c->slot_held_us + c->level * one;
		c->late_us = 0;
		if (now > c->job_at_us)
			c->late_us = (now - c->job_at_us + l->interval_us - 1) /
				     l->interval_us * l->interval_us;
		*start_us = c->job_at_us + c->late_us;
		if (c->late_us < l->warm_us + l->len_us)
			return true;
		if (c->level + 1 >= l->levels)
			return false;
		c->level++;
	}
}

static void last_level_end(struct conductor *c)
{
	double iops = c->search.kept_iops;

	if (c->search.len_us)
		iops = (double)c->search.ops * 1e6 / (double)c->search.len_us;
	conductor_max_found(c, iops > 0 ? iops : c->search.kept_iops);
}

void timed_level_end(struct conductor *c)
{
	if (c->level + 1 >= c->load.levels) {
		last_level_end(c);
		return;
	}
	c->level++;
	if (c->level + 1 >= c->load.levels)
		c->found = true;
	c->search.ops = c->search.len_us = 0;
	c->outstanding = conductor_share(c, c->found ? c->search.kept
						     : c->search.outstanding);
	conductor_job_start(c);
}

void timed_stamp(const struct conductor *c, json_t *body)
{
	if (slot_known(c) && c->host.stamp_us)
		json_object_set_new(body, "asked_t_us",
				    json_integer((json_int_t)c->host.stamp_us(
					    c->host.arg, c->slot_at_us)));
}
