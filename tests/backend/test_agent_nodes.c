/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run over three real agents, whose clocks are an hour ahead and half a
 * minute behind: one plan, one start, the same intervals. One is killed and
 * falls in again. Who keeps the barrier is the test.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/event.h"
#include "lab.h"

#define NODES 3
#define MARGIN_US 200000

static struct lab node[NODES];
static struct hears hear[NODES];
static const int64_t ahead_us[NODES] = { 0, 3600000000, -30000000 };

static void turn_all(void)
{
	for (int i = 0; i < NODES; i++)
		if (hear[i].link)
			hears_turn(&hear[i]);
}

static void open_one(int i)
{
	json_t *cluster = lab_cluster(&node[i], 3, 32);
	char name[16];

	snprintf(name, sizeof(name), "v%d", i + 1);
	json_object_set_new(json_object_get(cluster, "cluster"), "vdisks",
			    json_pack("[{s:s, s:i, s:i, s:i, s:s}]", "name",
				      name, "size_bytes", 8 << 20, "raid", 1,
				      "ftt", 1, "layout", "inplace"));
	hears_attach(&hear[i], &node[i]);
	hears_ask_ok(&hear[i], "cluster_open", cluster);
}

static int setup(void **state)
{
	(void)state;
	setenv("IODECK_CLOCK", "lab.n2:3600000000:0 lab.n3:-30000000:0", 1);
	for (int i = 0; i < NODES; i++) {
		lab_open(&node[i]);
		snprintf(node[i].name, sizeof(node[i].name), "lab.n%d", i + 1);
		open_one(i);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++) {
		hears_close(&hear[i]);
		lab_close(&node[i]);
	}
	return 0;
}

/* Of all three vDisks, points of a second at half of 900 IOPS in all. */
static json_t *plan_make(int points)
{
	json_t *plan = lab_plan("v1", points, 1000);
	json_t *series = json_array_get(json_object_get(plan, "series"), 0);
	json_t *nodes = json_array();
	char name[32], agent[32], vdisk[32];

	json_object_del(series, "vdisk");
	json_object_set_new(series, "vdisks",
			    json_pack("[s, s, s]", "v1", "v2", "v3"));
	json_object_set_new(series, "max_iops", json_integer(900));
	for (int i = NODES; i-- > 1;) {
		snprintf(vdisk, sizeof(vdisk), "v%d", i + 1);
		json_array_insert_new(json_object_get(plan, "phases"), 1,
				      json_pack("{s:s, s:s}", "kind", "prefill",
						"vdisk", vdisk));
	}
	for (int i = 1; i <= NODES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		snprintf(agent, sizeof(agent), "lab.n%d", i);
		snprintf(vdisk, sizeof(vdisk), "v%d", i);
		json_array_append_new(nodes, json_pack("{s:s, s:s, s:[s]}",
						       "name", name, "agent",
						       agent, "vdisks", vdisk));
	}
	json_object_set_new(plan, "nodes", nodes);
	return plan;
}

static const char *run_state(struct hears *h)
{
	const json_t *event = hears_find(h, "run_state", NULL, NULL);
	const char *s = json_string_value(json_object_get(event, "state"));

	return s ? s : "";
}

static int64_t number(const json_t *event, const char *name)
{
	return json_integer_value(json_object_get(event, name));
}

static const json_t *phase_event(struct hears *h, int phase)
{
	const json_t *event;
	size_t i;

	json_array_foreach(h->event, i, event) {
		if (!strcmp(json_string_value(json_object_get(event, "e")),
			    "phase") &&
		    number(event, "phase") == phase)
			return event;
	}
	return NULL;
}

static void until_met(void)
{
	for (int i = 0; i < NODES; i++)
		while (!phase_event(&hear[i], i) ||
		       strcmp(run_state(&hear[i]), "waiting") != 0) {
			assert_string_not_equal(run_state(&hear[i]), "failed");
			turn_all();
		}
}

static void until_all(const char *state)
{
	for (int turns = 0; turns < 2000; turns++) {
		int n = 0;

		for (int i = 0; i < NODES; i++)
			n += !strcmp(run_state(&hear[i]), state);
		if (n == NODES)
			return;
		turn_all();
	}
	fail_msg("not all are %s", state);
}

/* How far the agent's clock is ahead, by the quickest of some pings. */
static int64_t offset_us(int i)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int k = 0; k < 10; k++) {
		int64_t sent = event_now_us(), back;
		const json_t *reply = hears_ask(&hear[i], "ping", NULL);

		back = event_now_us();
		if (back - sent >= best)
			continue;
		best = back - sent;
		offset = json_integer_value(json_object_get(reply, "t_us")) -
			 (sent + back) / 2;
	}
	return offset;
}

static int64_t go_all(int phase)
{
	int64_t offset[NODES], at;

	for (int i = 0; i < NODES; i++) {
		offset[i] = offset_us(i);
		assert_true(llabs(offset[i] - ahead_us[i]) < 20000);
	}
	at = event_now_us() + MARGIN_US;
	for (int i = 0; i < NODES; i++)
		hears_ask_ok(&hear[i], "run_go",
			     json_pack("{s:s, s:i, s:I}", "run", "r1", "phase",
				       phase, "at_us",
				       (json_int_t)(at + offset[i])));
	return at;
}

/* from_us of the phase's counted samples, as bits of intervals of 100 ms. */
static uint64_t intervals(struct hears *h, int phase)
{
	const json_t *event;
	uint64_t bits = 0;
	size_t i;

	json_array_foreach(h->event, i, event) {
		if (strcmp(json_string_value(json_object_get(event, "e")),
			   "sample") != 0 ||
		    number(event, "phase") != phase ||
		    json_is_true(json_object_get(event, "warm")))
			continue;
		assert_int_equal(number(event, "from_us") % 100000, 0);
		bits |= 1ull << number(event, "from_us") / 100000;
	}
	return bits;
}

static void start_all(json_t *plan)
{
	for (int i = 0; i < NODES; i++)
		hears_ask_ok(
			&hear[i], "run_start",
			json_pack("{s:O, s:s}", "plan", plan, "run", "r1"));
	json_decref(plan);
	until_all("waiting");
}

/* The greatest distance of what was begun from what was agreed. */
static int64_t skew_us(int phase)
{
	int64_t most = 0;

	for (int i = 0; i < NODES; i++) {
		const json_t *event = phase_event(&hear[i], phase);
		int64_t late = number(event, "t") - number(event, "asked_t_us");

		assert_non_null(event);
		assert_true(late >= 0);
		most = late > most ? late : most;
	}
	return most;
}

static void test_one_start(void **state)
{
	(void)state;
	start_all(plan_make(2));
	go_all(0);
	/* each fills its own vDisk, and they meet again */
	until_met();
	go_all(3);
	until_all("done");
	print_message("begun %lld us after what was agreed\n",
		      (long long)skew_us(3));
	assert_true(skew_us(3) < 100000);
	for (int phase = 3; phase < 5; phase++)
		for (int i = 0; i < NODES; i++)
			assert_int_equal(intervals(&hear[i], phase),
					 intervals(&hear[0], phase));
	/* four in flight over three vDisks */
	for (int i = 0; i < NODES; i++)
		assert_int_equal(
			number(phase_event(&hear[i], 3), "outstanding"),
			i ? 1 : 2);
}

static void test_falls_in(void **state)
{
	json_t *plan = plan_make(3);
	int64_t at;
	pid_t pid;

	(void)state;
	json_incref(plan);
	start_all(plan);
	go_all(0);
	until_met();
	at = go_all(3);
	while (!phase_event(&hear[1], 3))
		turn_all();
	pid = lab_pid(&node[1]);
	kill(pid, SIGKILL);
	while (hear[1].state != LINK_DOWN)
		turn_all();
	hears_close(&hear[1]);
	open_one(1);
	hears_ask_ok(&hear[1], "run_start",
		     json_pack("{s:o, s:s, s:{s:i, s:I}}", "plan", plan, "run",
			       "r1", "join", "phase", 3, "at_us",
			       (json_int_t)(at + offset_us(1))));
	until_all("done");
	assert_non_null(hears_find(&hear[1], "run", NULL, NULL));
	assert_true(number(hears_find(&hear[1], "run", NULL, NULL), "joined") >
		    3);
	assert_null(phase_event(&hear[1], 0));
	assert_int_equal(intervals(&hear[1], 5), intervals(&hear[0], 5));
	assert_int_equal(intervals(&hear[2], 3), intervals(&hear[0], 3));
}

static void test_refused(void **state)
{
	json_t *plan = plan_make(1);

	(void)state;
	json_object_set_new(json_array_get(json_object_get(plan, "nodes"), 0),
			    "agent", json_string("lab.n9"));
	hears_ask_refused(&hear[0], "run_start",
			  json_pack("{s:o, s:s}", "plan", plan, "run", "r1"),
			  -EINVAL, "lab.n1 is none of them");
	hears_ask_refused(&hear[0], "run_go",
			  json_pack("{s:s, s:i, s:i}", "run", "r1", "phase", 0,
				    "at_us", 5),
			  -ESRCH, "no run");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_start, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_falls_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
