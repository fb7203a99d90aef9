/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the conductor says: the run's events. */
#include "backend/run/conductor_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const json_t *conductor_phase(const struct conductor *c)
{
	return json_array_get(c->phases, c->phase);
}

size_t conductor_series(const struct conductor *c)
{
	return (size_t)plan_number(conductor_phase(c), "series", 0);
}

bool conductor_phase_is(const struct conductor *c, const char *kind)
{
	return !strcmp(plan_kind(conductor_phase(c)), kind);
}

uint64_t conductor_now_us(const struct conductor *c)
{
	return c->host.now_us(c->host.arg);
}

void conductor_wake_at(const struct conductor *c, uint64_t at_us)
{
	c->host.wake_at(c->host.arg, at_us);
}

void conductor_emit(struct conductor *c, const char *e, json_t *body)
{
	json_object_set_new(body, "run", json_string(c->run));
	c->host.emit(c->host.arg, e, body);
}

void conductor_emit_state(struct conductor *c, const char *state)
{
	json_t *body = json_object();

	c->state = state;
	json_object_set_new(body, "state", json_string(state));
	if (c->reason[0])
		json_object_set_new(body, "reason", json_string(c->reason));
	conductor_emit(c, "run_state", body);
}

void conductor_emit_log(struct conductor *c, const char *text)
{
	json_t *body = json_object();

	json_object_set_new(body, "level", json_string("info"));
	json_object_set_new(body, "text", json_string(text));
	c->host.emit(c->host.arg, "log", body);
}

void conductor_copy(json_t *to, const json_t *from, const char *name)
{
	json_t *value = json_object_get(from, name);

	if (value && !json_is_null(value))
		json_object_set(to, name, value);
}

/* Of a load what it will be, in whole intervals; else as planned. */
static uint64_t phase_length_us(const struct conductor *c)
{
	if (conductor_phase_is(c, "point") || conductor_phase_is(c, "ramp"))
		return c->job_len_us > c->warm_us ? c->job_len_us - c->warm_us
						  : 0;
	return plan_us(conductor_phase(c), "length_us");
}

void conductor_emit_phase(struct conductor *c)
{
	static const char *const copied[] = { "kind",    "series", "point",
					      "percent", "text",   "vdisk" };
	const json_t *phase = conductor_phase(c);
	json_t *body = json_object();
	size_t i;

	json_object_set_new(body, "phase", json_integer(c->phase));
	for (i = 0; i < array_len(copied); i++)
		conductor_copy(body, phase, copied[i]);
	if (!isnan(c->asked_iops))
		json_object_set_new(body, "asked_iops",
				    json_real(c->asked_iops));
	if (c->outstanding)
		json_object_set_new(body, "outstanding",
				    json_integer(c->outstanding));
	json_object_set_new(body, "warmup_us",
			    json_integer((json_int_t)c->warm_us));
	json_object_set_new(body, "length_us",
			    json_integer((json_int_t)phase_length_us(c)));
	if (c->timed)
		timed_stamp(c, body);
	c->phase_at_us = conductor_now_us(c);
	c->phase_open = true;
	conductor_emit(c, "phase", body);
}

void conductor_emit_phase_end(struct conductor *c)
{
	json_t *body = json_object();

	json_object_set_new(body, "phase", json_integer(c->phase));
	json_object_set_new(body, "status", json_string(c->status));
	if (c->reason[0])
		json_object_set_new(body, "reason", json_string(c->reason));
	if (conductor_phase_is(c, "max") && !strcmp(c->status, "done")) {
		const struct conductor_known *known =
			&c->known[conductor_series(c)];

		json_object_set_new(body, "max_iops",
				    json_real(known->max_iops));
		json_object_set_new(body, "outstanding",
				    json_integer(known->outstanding));
	}
	c->phase_open = false;
	conductor_emit(c, "phase_end", body);
}
