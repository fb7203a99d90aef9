/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The conductor under a virtual clock, before a modelled device: a server of
 * 10,000 IOPS with 0.4 ms of latency beside its queue. Every event it emits is
 * kept; tests read the story they tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/run/conductor.h"
#include "backend/run/plan.h"

#define RATE 10000.0   /* IOPS the device can do */
#define LATENCY_S 4e-4 /* and what one I/O takes beside its place in it */

struct lab {
	struct conductor *c;
	uint64_t now_us, wake_us;
	json_t *events;
	/* the job */
	bool asked, running, stopping, paused;
	double iops;
	unsigned outstanding;
	uint64_t began_us, sampled_us, interval_us, held_us;
	char vdisk[32];
	unsigned jobs;
	/* asked and not yet answered */
	bool prefill, prefill_stopped;
	unsigned acts;
	char acted[512];
	/* what is to go wrong */
	int start_result, act_result;
	bool all_fail, generator_bound, never_healthy;
	uint64_t healthy_at_us;
};

static uint64_t lab_now(void *arg)
{
	return ((struct lab *)arg)->now_us;
}

static void lab_wake(void *arg, uint64_t at_us)
{
	((struct lab *)arg)->wake_us = at_us;
}

static void lab_emit(void *arg, const char *e, json_t *body)
{
	struct lab *lab = arg;

	json_object_set_new(body, "e", json_string(e));
	json_object_set_new(body, "t", json_integer((json_int_t)lab->now_us));
	json_array_append_new(lab->events, body);
}

static void lab_job_start(void *arg, const struct conductor_job *job)
{
	struct lab *lab = arg;

	assert_false(lab->running);
	assert_true(json_is_object(job->workload));
	assert_in_range(job->outstanding, 1, 4096);
	lab->asked = true;
	lab->iops = job->iops;
	lab->outstanding = job->outstanding;
	lab->interval_us = job->interval_us;
	snprintf(lab->vdisk, sizeof(lab->vdisk), "%s",
		 plan_vdisk(job->series, 0));
	lab->jobs++;
}

static void lab_job_stop(void *arg)
{
	((struct lab *)arg)->stopping = true;
}

static void lab_job_pause(void *arg, bool pause)
{
	struct lab *lab = arg;

	assert_true(lab->running);
	lab->paused = pause;
}

static void lab_prefill(void *arg, const char *vdisk, const json_t *phase)
{
	struct lab *lab = arg;

	assert_string_equal(vdisk,
			    json_string_value(json_object_get(phase, "vdisk")));
	lab->prefill = true;
	lab->prefill_stopped = false;
}

static void lab_prefill_stop(void *arg)
{
	((struct lab *)arg)->prefill_stopped = true;
}

static void lab_act(void *arg, const json_t *phase)
{
	struct lab *lab = arg;
	const char *text = json_string_value(json_object_get(phase, "text"));
	size_t n = strlen(lab->acted);

	if (!text)
		text = json_string_value(json_object_get(phase, "kind"));
	snprintf(lab->acted + n, sizeof(lab->acted) - n, "[%s]", text);
	lab->acts++;
}

static bool lab_vdisk_is(void *arg, const char *vdisk, const char *state)
{
	struct lab *lab = arg;

	assert_string_equal(vdisk, "db1");
	assert_string_equal(state, "healthy");
	return !lab->never_healthy && lab->now_us >= lab->healthy_at_us;
}

static const struct conductor_host lab_host = {
	.now_us = lab_now,
	.wake_at = lab_wake,
	.emit = lab_emit,
	.job_start = lab_job_start,
	.job_stop = lab_job_stop,
	.job_pause = lab_job_pause,
	.prefill = lab_prefill,
	.prefill_stop = lab_prefill_stop,
	.act = lab_act,
	.vdisk_is = lab_vdisk_is,
};

/* What the device does: closed loop by Little's law up to its rate. */
static double lab_rate(const struct lab *lab)
{
	double most = lab->outstanding / (LATENCY_S + 1.0 / RATE);

	if (most > RATE)
		most = RATE;
	return lab->iops > 0 && lab->iops < most ? lab->iops : most;
}

static void lab_sample(struct lab *lab, uint64_t to_us)
{
	struct conductor_sample s = {
		.from_us = lab->sampled_us - lab->began_us,
		.len_us = to_us - lab->sampled_us,
		.bound = lab->generator_bound,
	};
	double rate = lab_rate(lab);

	if (to_us <= lab->sampled_us)
		return;
	lab->sampled_us = to_us;
	if (!lab->paused)
		s.ops = (uint64_t)(rate * (double)s.len_us / 1e6 + 0.5);
	s.mean_us = 1e6 * lab->outstanding / rate;
	if (lab->all_fail) {
		s.errors = s.ops;
		s.last_error = -EIO;
	}
	conductor_job_sample(lab->c, &s);
}

static void lab_job_end(struct lab *lab)
{
	lab_sample(lab, lab->now_us);
	lab->running = lab->stopping = lab->paused = false;
	conductor_job_ended(lab->c, 0, NULL);
}

/* The answers to what was asked, one turn later. */
static void lab_answer(struct lab *lab)
{
	if (lab->asked) {
		lab->asked = false;
		if (lab->start_result) {
			conductor_job_ended(lab->c, lab->start_result,
					    "db1: not open");
			return;
		}
		lab->running = true;
		lab->began_us = lab->sampled_us = lab->now_us;
		conductor_job_began(lab->c);
	} else if (lab->stopping && lab->running) {
		lab_job_end(lab);
	} else if (lab->acts) {
		lab->acts--;
		conductor_step_done(lab->c, lab->act_result, "no such drive");
	} else if (lab->prefill && lab->prefill_stopped) {
		lab->prefill = false;
		conductor_step_done(lab->c, -ECANCELED, NULL);
	} else if (lab->prefill) {
		lab->prefill = false;
		conductor_progress(lab->c, 50, 100);
		conductor_progress(lab->c, 100, 100);
		conductor_step_done(lab->c, 0, NULL);
	}
}

static void lab_turn(struct lab *lab)
{
	lab->now_us += 10000;
	lab_answer(lab);
	while (lab->running &&
	       lab->sampled_us + lab->interval_us <= lab->now_us)
		lab_sample(lab, lab->sampled_us + lab->interval_us);
	if (lab->wake_us <= lab->now_us) {
		lab->wake_us = UINT64_MAX;
		conductor_tick(lab->c);
	}
}

static void lab_run(struct lab *lab, double seconds)
{
	uint64_t until = lab->now_us + (uint64_t)(seconds * 1e6);

	while (!conductor_over(lab->c) && lab->now_us < until)
		lab_turn(lab);
}

static void lab_finish(struct lab *lab)
{
	lab_run(lab, 3600);
	assert_true(conductor_over(lab->c));
	assert_false(lab->running || lab->prefill || lab->acts);
}

static json_t *plan_with(const char *phases)
{
	static const char base[] =
		"{'title':'t','interval_ms':200,'seed':1,'series':[{'name':"
		"'RAID-1','vdisk':'db1','workload':{'name':'w','read_share':"
		"0.7,'random_share':1,'read_sizes':[[4096,1]]}},{'name':"
		"'again','vdisk':'db1','max_from':0,'workload':{'name':'w',"
		"'read_share':0.7,'random_share':1,'read_sizes':[[4096,1]]}}"
		"],'phases':[%s]}";
	char text[4096], *p;
	json_t *plan;

	snprintf(text, sizeof(text), base, phases);
	for (p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	plan = json_loads(text, 0, NULL);
	assert_non_null(plan);
	return plan;
}

/* What is wrong from the start on; NULL nothing. */
static void (*lab_set)(struct lab *lab);

static void lab_open(struct lab *lab, const char *phases, unsigned from,
		     const char *known)
{
	struct conductor_host host = lab_host;
	json_t *plan = plan_with(phases), *k = NULL;
	struct conductor_order order;
	struct err err = { 0 };

	memset(lab, 0, sizeof(*lab));
	lab->events = json_array();
	lab->now_us = 1000000;
	lab->wake_us = UINT64_MAX;
	host.arg = lab;
	if (known)
		k = json_loads(known, 0, NULL);
	order = (struct conductor_order) {
		.plan = plan, .run = "r1", .resume_from = from, .known = k
	};
	if (conductor_new(&order, &host, &lab->c, &err))
		fail_msg("%s", err.text);
	json_decref(plan);
	json_decref(k);
	if (lab_set)
		lab_set(lab);
	conductor_start(lab->c);
}

static void lab_close(struct lab *lab)
{
	conductor_free(lab->c);
	json_decref(lab->events);
}

/* "run phase:max phase_end:done ..." */
static const char *lab_story(const struct lab *lab)
{
	static char story[4096];
	const char *e, *what;
	const json_t *event;
	size_t i, n = 0;

	story[0] = '\0';
	json_array_foreach(lab->events, i, event) {
		e = json_string_value(json_object_get(event, "e"));
		if (!strcmp(e, "log") || !strcmp(e, "progress"))
			continue;
		what = json_string_value(json_object_get(
			event, !strcmp(e, "phase")       ? "kind"
			       : !strcmp(e, "phase_end") ? "status"
							 : "state"));
		n += (size_t)snprintf(story + n, sizeof(story) - n, "%s%s%s%s",
				      n ? " " : "", e, what ? ":" : "",
				      what ? what : "");
	}
	return story;
}

static const json_t *lab_event(const struct lab *lab, const char *e, int nth)
{
	const json_t *event;
	size_t i;

	json_array_foreach(lab->events, i, event)
		if (!strcmp(json_string_value(json_object_get(event, "e")),
			    e) &&
		    !nth--)
			return event;
	fail_msg("no such event: %s", e);
	return NULL;
}

static double num(const json_t *event, const char *name)
{
	const json_t *j = json_object_get(event, name);

	return json_is_number(j) ? json_number_value(j) : NAN;
}

static const char *str(const json_t *event, const char *name)
{
	const char *s = json_string_value(json_object_get(event, name));

	return s ? s : "";
}

#define MAX0                                                             \
	"{'kind':'max','series':0,'step_us':1000000,'warmup_us':200000," \
	"'outstanding_max':256,'gain':0.03}"
#define POINT(percent)                                                       \
	"{'kind':'point','series':0,'point':0,'points':2,'percent':" percent \
	",'length_us':2000000,'warmup_us':500000}"

/* ---- tests -------------------------------------------------------------- */

static void test_curve(void **state)
{
	struct lab lab;
	const json_t *end, *point;

	(void)state;
	lab_open(&lab,
		 "{'kind':'prefill','vdisk':'db1'},"
		 "{'kind':'rest','length_us':500000}," MAX0
		 "," POINT("50") "," POINT("100"),
		 0, NULL);
	lab_finish(&lab);
	assert_string_equal(
		lab_story(&lab),
		"run run_state:running phase:prefill phase_end:done "
		"phase:rest phase_end:done phase:max phase_end:done "
		"phase:point phase_end:done phase:point phase_end:done "
		"run_state:done");
	/* 4 deep: 8,000; 8 deep: 10,000, all it can; 16 gains nothing */
	end = lab_event(&lab, "phase_end", 2);
	assert_int_equal(num(end, "outstanding"), 8);
	assert_float_equal(num(end, "max_iops"), RATE, RATE * 0.01);
	point = lab_event(&lab, "phase", 3);
	assert_float_equal(num(point, "asked_iops"), RATE / 2, RATE * 0.01);
	assert_int_equal(num(point, "outstanding"), 8);
	/* warm-up in whole intervals of 200 ms */
	assert_int_equal(num(point, "warmup_us"), 600000);
	assert_float_equal(num(lab_event(&lab, "phase_end", 3), "t") -
				   num(point, "t"),
			   2600000, 20000);
	assert_string_equal(str(lab_event(&lab, "run", 0), "run"), "r1");
	lab_close(&lab);
}

static void test_ramp_and_acts(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab,
		 "{'kind':'note','text':'hello'},"
		 "{'kind':'link','domain':'*','latency_us':100},"
		 "{'kind':'ramp','series':0,'outstanding':4,"
		 "'length_us':1000000,'during':[{'kind':'fault','at_us':300000,"
		 "'text':'drive n2:d1 offline'},{'kind':'note','at_us':400000,"
		 "'text':'pulled'}]},"
		 "{'kind':'fault','text':'drive n2:d1 online'},"
		 "{'kind':'wait','vdisk':'db1','state':'healthy',"
		 "'length_us':9000000}",
		 0, NULL);
	lab.healthy_at_us = 5000000;
	lab_finish(&lab);
	assert_string_equal(
		lab_story(&lab),
		"run run_state:running phase:note note phase_end:done "
		"phase:link phase_end:done phase:ramp note phase_end:done "
		"phase:fault phase_end:done phase:wait phase_end:done "
		"run_state:done");
	assert_string_equal(lab.acted, "[link][drive n2:d1 offline]"
				       "[drive n2:d1 online]");
	assert_true(lab.iops == 0.0);
	assert_int_equal(lab.outstanding, 4);
	assert_true(lab.now_us >= 5000000);
	lab_close(&lab);
}

static void test_generator_bound(void **state)
{
	struct lab lab;
	const json_t *end;

	(void)state;
	lab_open(&lab, MAX0, 0, NULL);
	lab.generator_bound = true;
	lab_finish(&lab);
	end = lab_event(&lab, "phase_end", 0);
	assert_int_equal(num(end, "outstanding"), 1);
	assert_int_equal(lab.jobs, 1);
	lab_close(&lab);
}

static void test_early(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab,
		 "{'kind':'ramp','series':0,'outstanding':4,"
		 "'length_us':60000000,'early_ci':0.05}",
		 0, NULL);
	lab_finish(&lab);
	assert_string_equal(str(lab_event(&lab, "phase_end", 0), "status"),
			    "early");
	assert_true(lab.now_us < 5000000);
	lab_close(&lab);
}

static void test_pause(void **state)
{
	struct lab lab;
	json_t *body;
	const json_t *point, *end;

	(void)state;
	lab_open(&lab, MAX0 "," POINT("50"), 0, NULL);
	while (json_array_size(lab.events) == 0 ||
	       strcmp(str(json_array_get(lab.events,
					 json_array_size(lab.events) - 1),
			  "kind"),
		      "point") != 0)
		lab_turn(&lab);
	lab_run(&lab, 1.0);
	conductor_pause(lab.c, true, 0);
	assert_string_equal(conductor_state(lab.c), "paused");
	assert_true(lab.paused);
	body = json_pack("{s:i,s:i}", "from_us", 1000000, "len_us", 200000);
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	lab_run(&lab, 30.0);
	assert_false(conductor_over(lab.c));
	conductor_pause(lab.c, false, 0);
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	json_object_set_new(body, "from_us", json_integer(31200000));
	conductor_stamp(lab.c, body);
	assert_true(json_is_false(json_object_get(body, "warm")));
	json_decref(body);
	lab_finish(&lab);
	point = lab_event(&lab, "phase", 1);
	end = lab_event(&lab, "phase_end", 1);
	assert_float_equal(num(end, "t") - num(point, "t"), 32600000, 50000);
	assert_string_equal(conductor_state(lab.c), "done");
	lab_close(&lab);
}

/* What is counted: warm-up and all of a search are not. */
static void test_stamp(void **state)
{
	struct lab lab;
	json_t *body = json_pack("{s:i,s:i}", "from_us", 0, "len_us", 200000);

	(void)state;
	lab_open(&lab, MAX0 "," POINT("50"), 0, NULL);
	lab_run(&lab, 0.5);
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	assert_int_equal(num(body, "phase"), 0);
	while (num(body, "phase") < 1) {
		lab_turn(&lab);
		conductor_stamp(lab.c, body);
	}
	json_object_set_new(body, "from_us", json_integer(400000));
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	lab_run(&lab, 0.1);
	json_object_set_new(body, "from_us", json_integer(600000));
	conductor_stamp(lab.c, body);
	assert_true(json_is_false(json_object_get(body, "warm")));
	/* the splinter behind the end */
	json_object_set_new(body, "from_us", json_integer(2600000));
	json_object_set_new(body, "len_us", json_integer(900));
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	/* ... also where a stalled drive makes it as long as an interval */
	json_object_set_new(body, "len_us", json_integer(200000));
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	/* and the interval that an early end falls into */
	conductor_stop(lab.c, NULL);
	json_object_set_new(body, "from_us", json_integer(600000));
	conductor_stamp(lab.c, body);
	assert_true(json_is_true(json_object_get(body, "warm")));
	json_decref(body);
	lab_close(&lab);
}

/* A point is as long as whole intervals, and says so. */
static void test_whole_intervals(void **state)
{
	const json_t *phase, *end;
	struct lab lab;

	(void)state;
	lab_open(&lab,
		 "{'kind':'ramp','series':0,'outstanding':4,"
		 "'length_us':1100000,'warmup_us':300000}",
		 0, NULL);
	lab_finish(&lab);
	phase = lab_event(&lab, "phase", 0);
	end = lab_event(&lab, "phase_end", 0);
	assert_int_equal(num(phase, "length_us"), 1200000);
	assert_int_equal(num(phase, "warmup_us"), 400000);
	assert_float_equal(num(end, "t") - num(phase, "t"), 1600000, 30000);
	lab_close(&lab);
}

/* What is to happen during a point waits with it. */
static void test_pause_acts(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab,
		 "{'kind':'ramp','series':0,'outstanding':4,"
		 "'length_us':2000000,'during':[{'kind':'fault',"
		 "'at_us':1000000,'text':'drive n2:d1 offline'}]}",
		 0, NULL);
	lab_run(&lab, 0.5);
	conductor_pause(lab.c, true, 0);
	lab_run(&lab, 10.0);
	conductor_pause(lab.c, false, 0);
	lab_run(&lab, 0.3);
	assert_string_equal(lab.acted, "");
	lab_run(&lab, 0.4);
	assert_string_equal(lab.acted, "[drive n2:d1 offline]");
	lab_finish(&lab);
	lab_close(&lab);
}

/* A run that ends before what was to happen during it says what did not. */
static void test_acts_left(void **state)
{
	const json_t *event, *said = NULL;
	struct lab lab;
	size_t k;

	(void)state;
	lab_open(&lab,
		 "{'kind':'ramp','series':0,'outstanding':4,"
		 "'length_us':2000000,'during':[{'kind':'fault',"
		 "'at_us':100000,'text':'drive n1:d1 offline'},{'kind':'fault',"
		 "'at_us':1000000,'text':'drive n2:d1 offline'}]}",
		 0, NULL);
	lab_run(&lab, 0.5);
	conductor_stop(lab.c, "asked by the operator");
	lab_run(&lab, 2.0);
	assert_string_equal(conductor_state(lab.c), "stopped");
	json_array_foreach(lab.events, k, event)
		if (!strcmp(str(event, "e"), "log"))
			said = event;
	assert_non_null(said);
	assert_non_null(strstr(str(said, "text"), "1 of the 2 things"));
	assert_non_null(strstr(str(said, "text"), "n2:d1 offline"));
	lab_close(&lab);
}

/* Wherever the stop falls, the run ends and nothing is left running. */
static void test_stop_anywhere(void **state)
{
	static const char phases[] =
		"{'kind':'prefill','vdisk':'db1'},"
		"{'kind':'rest','length_us':100000}," MAX0 ","
		"{'kind':'link','domain':'*'}," POINT(
			"50") ","
			      "{'kind':'wait','vdisk':'db1','state':'healthy',"
			      "'length_us':9000000}";
	struct lab lab;
	unsigned turns, i;

	(void)state;
	for (turns = 0; turns < 1200; turns += 7) {
		lab_open(&lab, phases, 0, NULL);
		lab.healthy_at_us = UINT64_MAX;
		for (i = 0; i < turns && !conductor_over(lab.c); i++)
			lab_turn(&lab);
		conductor_stop(lab.c, "asked by the operator");
		conductor_stop(lab.c, "twice");
		lab_run(&lab, 2.0);
		assert_string_equal(conductor_state(lab.c), "stopped");
		assert_false(lab.running || lab.prefill || lab.acts);
		assert_string_equal(
			str(json_array_get(lab.events,
					   json_array_size(lab.events) - 1),
			    "reason"),
			"asked by the operator");
		lab_close(&lab);
	}
}

static void test_stop_paused(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, MAX0 "," POINT("50"), 0, NULL);
	lab_run(&lab, 0.5);
	conductor_pause(lab.c, true, 0);
	conductor_stop(lab.c, "asked");
	lab_run(&lab, 1.0);
	assert_string_equal(conductor_state(lab.c), "stopped");
	lab_close(&lab);
}

static void failing(void (*set)(struct lab *lab), const char *phases,
		    const char *reason)
{
	struct lab lab;

	lab_set = set;
	lab_open(&lab, phases, 0, NULL);
	lab_set = NULL;
	lab_finish(&lab);
	assert_string_equal(conductor_state(lab.c), "failed");
	assert_string_equal(str(lab_event(&lab, "phase_end", 0), "status"),
			    "failed");
	assert_non_null(strstr(
		str(json_array_get(lab.events, json_array_size(lab.events) - 1),
		    "reason"),
		reason));
	lab_close(&lab);
}

static void set_start(struct lab *lab)
{
	lab->start_result = -ENODEV;
}
static void set_act(struct lab *lab)
{
	lab->act_result = -ENOENT;
}
static void set_io(struct lab *lab)
{
	lab->all_fail = true;
}
static void set_sick(struct lab *lab)
{
	lab->never_healthy = true;
}

static void test_failures(void **state)
{
	(void)state;
	failing(set_start, MAX0, "db1: not open");
	failing(set_act, "{'kind':'fault','text':'drive n9:d9 offline'}",
		"no such drive");
	failing(set_act,
		"{'kind':'ramp','series':0,'outstanding':4,'length_us':"
		"1000000,'during':[{'kind':'fault','at_us':0,'text':'x'}]}",
		"no such drive");
	failing(set_io, MAX0, "Input/output error");
	failing(set_sick,
		"{'kind':'wait','vdisk':'db1','state':'healthy',"
		"'length_us':2000000}",
		"not healthy within 2 s");
}

static void test_resume(void **state)
{
	static const char phases[] =
		"{'kind':'drive','domain':'*','drive':'*','rate_iops':3000},"
		"{'kind':'fault','text':'drive n2:d1 offline'},"
		"{'kind':'fault','text':'drive n2:d1 online'},"
		"{'kind':'fault','text':'drive n3:d0 offline'}," MAX0
		"," POINT("50") "," POINT("80");
	struct lab lab;

	(void)state;
	lab_open(&lab, phases, 6,
		 "{\"0\":{\"max_iops\":4000,\"outstanding\":16}}");
	lab_finish(&lab);
	assert_string_equal(lab_story(&lab),
			    "run run_state:running phase:point phase_end:done "
			    "run_state:done");
	assert_int_equal(num(lab_event(&lab, "run", 0), "resumed_from"), 6);
	assert_float_equal(num(lab_event(&lab, "phase", 0), "asked_iops"), 3200,
			   0.1);
	assert_int_equal(lab.outstanding, 16);
	/* what still holds of the phases before is set again */
	assert_string_equal(lab.acted, "[drive][drive n3:d0 offline]");
	lab_close(&lab);
}

static void test_resume_unknown(void **state)
{
	json_t *plan = plan_with(MAX0 "," POINT("50"));
	struct conductor_order order = { .plan = plan,
					 .run = "r",
					 .resume_from = 1 };
	struct conductor_host host = lab_host;
	struct conductor *c = NULL;
	struct err err;

	(void)state;
	assert_int_equal(conductor_new(&order, &host, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "maximum"));
	order.resume_from = 2;
	assert_int_equal(conductor_new(&order, &host, &c, &err), -EINVAL);
	json_decref(plan);
}

static void test_max_from(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab,
		 MAX0 ",{'kind':'point','series':1,'percent':30,"
		      "'length_us':1000000}",
		 0, NULL);
	lab_finish(&lab);
	assert_float_equal(num(lab_event(&lab, "phase", 1), "asked_iops"), 3000,
			   30);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_curve),
		cmocka_unit_test(test_ramp_and_acts),
		cmocka_unit_test(test_generator_bound),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_stamp),
		cmocka_unit_test(test_whole_intervals),
		cmocka_unit_test(test_pause_acts),
		cmocka_unit_test(test_acts_left),
		cmocka_unit_test(test_stop_anywhere),
		cmocka_unit_test(test_stop_paused),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_resume_unknown),
		cmocka_unit_test(test_max_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
