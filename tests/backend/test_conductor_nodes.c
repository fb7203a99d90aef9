/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several conductors on one timetable, under virtual clocks that are not each
 * other's: one is an hour off, one drifts by 100 ppm. Time goes on in steps of
 * a millisecond of the true clock; who kept the barrier is the test.
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

#define NODES 4
#define SAMPLES 4096

struct told {
	int phase;
	uint64_t from_us, len_us, ops;
	bool warm;
};

struct node {
	struct conductor *c;
	struct lab *lab;
	char agent[32];
	double drift, rate; /* rate: IOPS its vDisks can do */
	int64_t ahead_us;   /* its real-time clock */
	uint64_t wake_us;
	bool dead;
	/* the job, by this node's clock */
	bool asked, running, stopping, paused;
	double iops;
	unsigned outstanding;
	uint64_t start_us, sampled_us, interval_us, drain_us, stop_us;
	uint64_t job_true_us; /* when its newest job's first I/O went out */
	unsigned jobs, acts;
	uint64_t prefill_us; /* until when; 0 none */
	struct told told[SAMPLES];
	size_t tolds;
	json_t *events; /* "T": the true time */
};

struct lab {
	uint64_t now_us; /* true */
	struct node node[NODES];
	json_t *plan;
	bool keep;     /* keeps barriers */
	unsigned gone; /* barriers passed */
	uint64_t go_true_us;
};

/* Its monotonic clock began at some other time, too. */
static uint64_t node_now(void *arg)
{
	const struct node *n = arg;

	return 7000000u + (uint64_t)((double)n->lab->now_us * (1 + n->drift));
}

static int64_t node_stamp(void *arg, uint64_t at_us)
{
	return (int64_t)at_us + ((struct node *)arg)->ahead_us;
}

static void node_wake(void *arg, uint64_t at_us)
{
	((struct node *)arg)->wake_us = at_us;
}

static void node_emit(void *arg, const char *e, json_t *body)
{
	struct node *n = arg;

	json_object_set_new(body, "e", json_string(e));
	json_object_set_new(body, "T",
			    json_integer((json_int_t)n->lab->now_us));
	json_object_set_new(body, "t",
			    json_integer(node_stamp(n, node_now(n))));
	json_array_append_new(n->events, body);
}

static void node_job_start(void *arg, const struct conductor_job *job)
{
	struct node *n = arg;

	assert_false(n->running || n->asked);
	n->asked = true;
	n->iops = job->iops;
	n->outstanding = job->outstanding;
	n->interval_us = job->interval_us;
	n->start_us = job->start_us;
	assert_true(job->start_us > 0);
	n->jobs++;
}

static void node_job_stop(void *arg)
{
	struct node *n = arg;

	n->stopping = true;
	n->stop_us = node_now(n) + n->drain_us;
}

static void node_job_pause(void *arg, bool pause)
{
	((struct node *)arg)->paused = pause;
}

static void node_prefill(void *arg, const char *vdisk, const json_t *phase)
{
	struct node *n = arg;

	(void)phase;
	n->prefill_us = node_now(n) + (*vdisk == 'a' ? 300000 : 900000);
}

static void node_prefill_stop(void *arg)
{
	(void)arg;
}

static void node_act(void *arg, const json_t *phase)
{
	(void)phase;
	((struct node *)arg)->acts++;
}

static bool node_vdisk_is(void *arg, const char *vdisk, const char *state)
{
	(void)arg;
	(void)vdisk;
	(void)state;
	return true;
}

static double node_rate(const struct node *n)
{
	double most = n->outstanding / 5e-4;

	if (most > n->rate)
		most = n->rate;
	return n->iops > 0 && n->iops < most ? n->iops : most;
}

static void node_sample(struct node *n, uint64_t to_us)
{
	struct conductor_sample s = { .from_us = n->sampled_us - n->start_us,
				      .len_us = to_us - n->sampled_us,
				      .mean_us = 500 };
	json_t *body;

	if (to_us <= n->sampled_us)
		return;
	if (!n->paused)
		s.ops = (uint64_t)(node_rate(n) * (double)s.len_us / 1e6 + .5);
	n->sampled_us = to_us;
	body = json_pack("{s:I}", "from_us", (json_int_t)s.from_us);
	conductor_stamp(n->c, body);
	assert_true(n->tolds < SAMPLES);
	n->told[n->tolds++] = (struct told) {
		.phase =
			(int)json_integer_value(json_object_get(body, "phase")),
		.from_us = plan_us(body, "from_us"),
		.len_us = s.len_us,
		.ops = s.ops,
		.warm = json_is_true(json_object_get(body, "warm")),
	};
	json_decref(body);
	conductor_job_sample(n->c, &s);
}

static void node_turn(struct node *n)
{
	uint64_t now = node_now(n);

	if (n->asked) {
		n->asked = false;
		n->running = true;
		n->stopping = n->paused = false;
		n->sampled_us = n->start_us;
		n->job_true_us = 0;
		conductor_job_began(n->c);
	}
	if (n->running && !n->job_true_us && now >= n->start_us)
		n->job_true_us = n->lab->now_us;
	while (n->running && n->sampled_us + n->interval_us <= now)
		node_sample(n, n->sampled_us + n->interval_us);
	if (n->running && n->stopping && now >= n->stop_us) {
		node_sample(n, now);
		n->running = false;
		conductor_job_ended(n->c, 0, NULL);
	}
	if (n->acts) {
		n->acts--;
		conductor_step_done(n->c, 0, NULL);
	}
	if (n->prefill_us && now >= n->prefill_us) {
		n->prefill_us = 0;
		conductor_step_done(n->c, 0, NULL);
	}
	if (n->wake_us <= now) {
		n->wake_us = UINT64_MAX;
		conductor_tick(n->c);
	}
}

/* A true time as this node's clock will say it. */
static uint64_t node_at(const struct node *n, uint64_t true_us)
{
	return 7000000u + (uint64_t)((double)true_us * (1 + n->drift));
}

static unsigned waiting_for(const struct node *n)
{
	size_t i = json_array_size(n->events);
	const json_t *event;

	while (i--) {
		event = json_array_get(n->events, i);
		if (!strcmp(json_string_value(json_object_get(event, "e")),
			    "run_state"))
			return (unsigned)json_integer_value(
				json_object_get(event, "phase"));
	}
	return 0;
}

static void lab_barrier(struct lab *lab)
{
	unsigned phase = 0;
	int i;

	for (i = 0; i < NODES; i++) {
		if (lab->node[i].dead)
			continue;
		if (strcmp(conductor_state(lab->node[i].c), "waiting") != 0)
			return;
		phase = waiting_for(&lab->node[i]);
	}
	lab->gone++;
	lab->go_true_us = lab->now_us + 100000;
	for (i = 0; i < NODES; i++)
		if (!lab->node[i].dead)
			conductor_go(lab->node[i].c, phase,
				     node_at(&lab->node[i], lab->go_true_us));
}

static bool lab_over(const struct lab *lab)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (!lab->node[i].dead && !conductor_over(lab->node[i].c))
			return false;
	return true;
}

static void lab_run(struct lab *lab, double seconds)
{
	uint64_t until = lab->now_us + (uint64_t)(seconds * 1e6);
	int i;

	while (!lab_over(lab) && lab->now_us < until) {
		lab->now_us += 1000;
		for (i = 0; i < NODES; i++)
			if (!lab->node[i].dead)
				node_turn(&lab->node[i]);
		if (lab->keep)
			lab_barrier(lab);
	}
}

static const struct conductor_host node_host = {
	.now_us = node_now,
	.wake_at = node_wake,
	.emit = node_emit,
	.job_start = node_job_start,
	.job_stop = node_job_stop,
	.job_pause = node_job_pause,
	.prefill = node_prefill,
	.prefill_stop = node_prefill_stop,
	.act = node_act,
	.vdisk_is = node_vdisk_is,
	.stamp_us = node_stamp,
};

static void node_start(struct node *n, struct conductor_order *order)
{
	struct conductor_host host = node_host;
	struct err err = { 0 };

	host.arg = n;
	order->plan = n->lab->plan;
	order->run = "r1";
	order->agent = n->agent;
	n->wake_us = UINT64_MAX;
	n->running = n->asked = n->dead = false;
	if (conductor_new(order, &host, &n->c, &err))
		fail_msg("%s", err.text);
	conductor_start(n->c);
}

#define FILL "{'kind':'prefill','vdisk':'a'},{'kind':'prefill','vdisk':'b'},"
#define REST "{'kind':'rest','length_us':500000},"
#define MAX                                                              \
	"{'kind':'max','series':0,'step_us':1000000,'warmup_us':200000," \
	"'outstanding_max':64,'gain':0.03},"
#define POINT                                                  \
	"{'kind':'point','series':0,'percent':50,'length_us':" \
	"4000000,'warmup_us':500000,'early_ci':0.1}"

/* n1 has a and c, n2 b, n3 d, n4 nothing. */
static void lab_open(struct lab *lab, const char *phases)
{
	static const char base[] =
		"{'title':'t','interval_ms':200,'seed':1,'series':[{'name':"
		"'all','vdisks':['a','b','c','d'],'workload':{'name':'w',"
		"'read_share':0.7,'random_share':1,'read_sizes':[[4096,1]]}}],"
		"'nodes':[{'name':'n1','agent':'lab.n1','vdisks':['a','c']},"
		"{'name':'n2','agent':'lab.n2','vdisks':['b']},"
		"{'name':'n3','agent':'lab.n3','vdisks':['d']},"
		"{'name':'n4','agent':'lab.n4','vdisks':[]}],'phases':[%s]}";
	static const struct {
		double drift, rate;
		int64_t ahead_us;
	} clock[NODES] = { { 0, 20000, 0 },
			   { 0, 10000, 3600000000 },
			   { 1e-4, 5000, -30000000 },
			   { 0, 0, 5 } };
	struct conductor_order order;
	char text[4096], *p;
	int i;

	memset(lab, 0, sizeof(*lab));
	snprintf(text, sizeof(text), base, phases);
	for (p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	lab->plan = json_loads(text, 0, NULL);
	assert_non_null(lab->plan);
	lab->keep = true;
	lab->now_us = 1000000;
	for (i = 0; i < NODES; i++) {
		struct node *n = &lab->node[i];

		n->lab = lab;
		n->drift = clock[i].drift;
		n->rate = clock[i].rate;
		n->ahead_us = clock[i].ahead_us;
		n->events = json_array();
		snprintf(n->agent, sizeof(n->agent), "lab.n%d", i + 1);
		order = (struct conductor_order) { .run = "r1" };
		node_start(n, &order);
	}
}

static void lab_close(struct lab *lab)
{
	int i;

	for (i = 0; i < NODES; i++) {
		conductor_free(lab->node[i].c);
		json_decref(lab->node[i].events);
	}
	json_decref(lab->plan);
}

static double num(const json_t *event, const char *name)
{
	const json_t *j = json_object_get(event, name);

	return json_is_number(j) ? json_number_value(j) : NAN;
}

/* The event of that type and phase, or NULL. */
static const json_t *event_of(const struct node *n, const char *e, int phase)
{
	const json_t *event;
	size_t i;

	json_array_foreach(n->events, i, event) {
		if (!strcmp(json_string_value(json_object_get(event, "e")),
			    e) &&
		    (phase < 0 || num(event, "phase") == phase))
			return event;
	}
	return NULL;
}

static const char *status(const struct node *n, int phase)
{
	const char *s = json_string_value(
		json_object_get(event_of(n, "phase_end", phase), "status"));

	return s ? s : "";
}

/* The counted intervals of a phase that node a and b both told of; each is
 * whole and on the grid. */
static unsigned shared(const struct node *a, const struct node *b, int phase,
		       uint64_t interval_us)
{
	unsigned n = 0;
	size_t i, k;

	for (i = 0; i < a->tolds; i++) {
		const struct told *t = &a->told[i];

		if (t->phase != phase || t->warm)
			continue;
		assert_int_equal(t->from_us % interval_us, 0);
		assert_int_equal(t->len_us, interval_us);
		for (k = 0; k < b->tolds; k++)
			n += b->told[k].phase == phase && !b->told[k].warm &&
			     b->told[k].from_us == t->from_us;
	}
	return n;
}

/* ---- tests -------------------------------------------------------------- */

static void test_together(void **state)
{
	struct lab lab;
	const json_t *event;
	double max, begun[3];
	int i;

	(void)state;
	lab_open(&lab, FILL REST MAX POINT "," POINT);
	lab_run(&lab, 600);
	assert_true(lab_over(&lab));
	assert_int_equal(lab.gone, 2);
	/* each fills its own, then all meet */
	assert_null(event_of(&lab.node[0], "phase", 1));
	assert_null(event_of(&lab.node[1], "phase", 0));
	assert_int_equal(num(event_of(&lab.node[2], "phase", 2), "T"),
			 lab.go_true_us);
	/* of its share, in the last level of nine; three have 2, 1, 1 vDisks */
	for (i = 0; i < 3; i++) {
		event = event_of(&lab.node[i], "phase_end", 3);
		max = num(event, "max_iops");
		assert_float_equal(max, lab.node[i].rate,
				   0.01 * lab.node[i].rate);
		assert_int_equal(lab.node[i].jobs, 9 + 2);
		event = event_of(&lab.node[i], "phase", 4);
		assert_float_equal(num(event, "asked_iops"), max / 2, 1);
		assert_float_equal(num(event, "t"), num(event, "asked_t_us"),
				   1100);
		begun[i] = num(event, "T");
	}
	assert_float_equal(begun[0], begun[1], 1100);
	/* 100 ppm of 13 s */
	assert_float_equal(begun[0], begun[2], 2500);
	assert_int_equal(shared(&lab.node[0], &lab.node[1], 4, 200000), 20);
	assert_int_equal(shared(&lab.node[0], &lab.node[2], 5, 200000), 20);
	/* one that has nothing to load is not in the way */
	assert_null(event_of(&lab.node[3], "phase", 4));
	lab_close(&lab);
}

/* What was in flight keeps one from beginning in time: it begins an interval
 * or two later, on the same grid. Longer, and it leaves the phase out. */
static void test_late(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, MAX POINT "," POINT "," POINT);
	lab_run(&lab, 15);
	lab.node[1].drain_us = 1250000;
	lab_run(&lab, 4);
	lab.node[1].drain_us = 6000000;
	lab_run(&lab, 5);
	lab.node[1].drain_us = 0;
	lab_run(&lab, 600);
	assert_true(lab_over(&lab));
	assert_int_equal(shared(&lab.node[0], &lab.node[2], 1, 200000), 20);
	assert_int_equal(shared(&lab.node[0], &lab.node[1], 1, 200000), 20);
	/* 1.2 s late, and 0.6 of that is warm-up */
	assert_int_equal(shared(&lab.node[0], &lab.node[1], 2, 200000), 17);
	assert_string_equal(status(&lab.node[1], 3), "late");
	assert_int_equal(shared(&lab.node[0], &lab.node[2], 3, 200000), 20);
	lab_close(&lab);
}

/* One is killed; the others do not notice. It comes back and falls in where a
 * phase begins. */
static void test_join(void **state)
{
	struct conductor_order order = { .join_phase = 0 };
	struct lab lab;
	struct node *n = &lab.node[1];

	(void)state;
	lab_open(&lab, MAX POINT "," POINT "," POINT);
	lab_run(&lab, 15);
	assert_non_null(event_of(n, "phase", 1));
	n->dead = true;
	conductor_free(n->c);
	lab_run(&lab, 1.5);
	order.known = json_pack("{s:{s:f,s:i}}", "0", "max_iops", 10000.0,
				"outstanding", 8);
	order.join_at_us = node_at(n, lab.go_true_us);
	node_start(n, &order);
	json_decref((json_t *)order.known);
	lab_run(&lab, 600);
	assert_true(lab_over(&lab));
	assert_string_equal(conductor_state(n->c), "done");
	assert_int_equal(
		num(json_array_get(n->events, json_array_size(n->events) - 7),
		    "joined"),
		2);
	assert_true(shared(&lab.node[0], n, 1, 200000) < 10);
	assert_int_equal(shared(&lab.node[0], n, 2, 200000), 20);
	assert_int_equal(shared(&lab.node[0], n, 3, 200000), 20);
	assert_int_equal(shared(&lab.node[0], &lab.node[2], 1, 200000), 20);
	lab_close(&lab);
}

/* Without its maximum there is nothing to ask of it: it says so. */
static void test_join_unknown(void **state)
{
	struct conductor_order order = { .join_phase = 0 };
	struct lab lab;
	struct node *n = &lab.node[2];

	(void)state;
	lab_open(&lab, MAX POINT ",{'kind':'ramp','series':0,'outstanding':8,"
				 "'length_us':1000000}");
	lab_run(&lab, 3);
	n->dead = true;
	conductor_free(n->c);
	lab_run(&lab, 1);
	order.join_at_us = node_at(n, lab.go_true_us);
	node_start(n, &order);
	lab_run(&lab, 600);
	assert_string_equal(status(n, 1), "out");
	assert_string_equal(status(n, 2), "done");
	assert_int_equal(shared(&lab.node[0], n, 2, 200000), 5);
	lab_close(&lab);
}

/* A silent one: the others go on; the word comes later. */
static void test_late_go(void **state)
{
	struct lab lab;
	struct node *n = &lab.node[1];
	int i;

	(void)state;
	lab_open(&lab, "{'kind':'ramp','series':0,'outstanding':8,"
		       "'length_us':1000000},{'kind':'ramp','series':0,"
		       "'outstanding':8,'length_us':1000000}");
	lab.keep = false;
	lab_run(&lab, 0.1);
	for (i = 0; i < NODES; i++)
		if (i != 1)
			conductor_go(lab.node[i].c, 0,
				     node_at(&lab.node[i], 1200000));
	lab_run(&lab, 0.5);
	assert_string_equal(conductor_state(n->c), "waiting");
	conductor_go(n->c, 0, node_at(n, 1200000));
	lab_run(&lab, 60);
	assert_true(lab_over(&lab));
	assert_string_equal(status(n, 0), "out");
	assert_int_equal(shared(&lab.node[0], n, 1, 200000), 5);
	lab_close(&lab);
}

/* Paused for as long as all agree to have been, whenever the word came. */
static void test_pause(void **state)
{
	struct lab lab;
	int i;

	(void)state;
	lab_open(&lab, MAX POINT "," POINT);
	lab_run(&lab, 15);
	for (i = 0; i < NODES; i++) {
		conductor_pause(lab.node[i].c, true, 0);
		lab_run(&lab, 0.013);
	}
	lab_run(&lab, 2);
	for (i = NODES; i-- > 0;) {
		conductor_pause(lab.node[i].c, false, 2100000);
		lab_run(&lab, 0.004);
	}
	lab_run(&lab, 600);
	assert_true(lab_over(&lab));
	assert_float_equal(num(event_of(&lab.node[0], "phase", 2), "T"),
			   num(event_of(&lab.node[1], "phase", 2), "T"), 1100);
	assert_int_equal(shared(&lab.node[0], &lab.node[1], 2, 200000), 20);
	assert_in_range(shared(&lab.node[0], &lab.node[1], 1, 200000), 18, 20);
	lab_close(&lab);
}

/* Said again, the moment moves the phases to come, not the one under way. */
static void test_drift(void **state)
{
	struct lab lab;
	struct node *n = &lab.node[2];

	(void)state;
	lab_open(&lab, MAX POINT "," POINT);
	n->drift = 1e-3;
	lab_run(&lab, 15);
	/* 1000 ppm since the true time 0: as far as the clock is by now */
	conductor_go(n->c, 0,
		     node_at(n, lab.go_true_us) +
			     (uint64_t)(1e-3 * (double)(lab.now_us + 4000000 -
							lab.go_true_us)));
	lab_run(&lab, 600);
	assert_true(fabs(num(event_of(&lab.node[0], "phase", 1), "T") -
			 num(event_of(n, "phase", 1), "T")) > 10000);
	assert_float_equal(num(event_of(&lab.node[0], "phase", 2), "T"),
			   num(event_of(n, "phase", 2), "T"), 2000);
	assert_int_equal(shared(&lab.node[0], n, 1, 200000), 20);
	assert_int_equal(shared(&lab.node[0], n, 2, 200000), 20);
	lab_close(&lab);
}

static void test_stop_anywhere(void **state)
{
	struct lab lab;
	int i, ms;

	(void)state;
	for (ms = 1; ms < 17000; ms += 463) {
		lab_open(&lab, FILL MAX POINT);
		lab_run(&lab, ms / 1e3);
		for (i = 0; i < NODES; i++)
			conductor_stop(lab.node[i].c, "asked");
		lab_run(&lab, 2);
		for (i = 0; i < NODES; i++)
			assert_true(conductor_over(lab.node[i].c) &&
				    !lab.node[i].running);
		lab_close(&lab);
	}
}

static void test_stranger(void **state)
{
	struct conductor_order order = { .run = "r", .agent = "lab.n9" };
	struct conductor *c = NULL;
	struct lab lab;
	struct err err;

	(void)state;
	lab_open(&lab, "{'kind':'rest','length_us':1}");
	order.plan = lab.plan;
	assert_int_equal(conductor_new(&order, &node_host, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "lab.n9 is none of them"));
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_join_unknown),
		cmocka_unit_test(test_late_go),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_stop_anywhere),
		cmocka_unit_test(test_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
