/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The console's part of a run over nodes, before agents that are a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/run/plan.h"
#include "backend/run_nodes.h"

#define NODES 3
#define WALL 1800000000000000

struct lab {
	struct run_nodes *r;
	int64_t now_us;
	int64_t offset_us[NODES];
	bool known[NODES];
	json_t *asked[NODES]; /* the newest, with "what" */
	char story[NODES][256];
	json_t *emitted; /* the newest, with "e" */
};

static int64_t lab_now(void *arg)
{
	return ((struct lab *)arg)->now_us;
}

static int64_t lab_wall(void *arg)
{
	return WALL + ((struct lab *)arg)->now_us;
}

static void lab_ask(void *arg, size_t n, const char *what, json_t *body)
{
	struct lab *lab = arg;
	size_t len = strlen(lab->story[n]);

	snprintf(lab->story[n] + len, sizeof(lab->story[n]) - len, "[%s]",
		 what);
	json_decref(lab->asked[n]);
	lab->asked[n] = body;
}

static bool lab_offset(void *arg, size_t n, int64_t *offset_us, int64_t *err_us,
		       int64_t *rtt_us)
{
	struct lab *lab = arg;

	*offset_us = lab->offset_us[n];
	*err_us = 50 + (int64_t)n;
	*rtt_us = 1000 * (int64_t)(n + 1);
	return lab->known[n];
}

static json_t *lab_known(void *arg, size_t n)
{
	(void)arg;
	return json_pack("{s:{s:i}}", "0", "max_iops", (int)n + 1);
}

static void lab_emit(void *arg, const char *e, json_t *body)
{
	struct lab *lab = arg;

	json_object_set_new(body, "e", json_string(e));
	json_decref(lab->emitted);
	lab->emitted = body;
}

static const struct run_nodes_host lab_host = {
	.now_us = lab_now,
	.wall_us = lab_wall,
	.ask = lab_ask,
	.offset = lab_offset,
	.known = lab_known,
	.emit = lab_emit,
};

static int owner(const char *vdisk, void *arg)
{
	(void)arg;
	return *vdisk - 'a';
}

static json_t *plan_make(const char *silent)
{
	static const struct run_nodes_who who[NODES] = { { "n1", "lab.n1" },
							 { "n2", "lab.n2" },
							 { "n3", "lab.n3" } };
	json_t *plan =
		json_pack("{s:s, s:[{s:[s, s, s]}], s:[{s:s, s:s}]}", "silent",
			  silent, "series", "vdisks", "a", "b", "c", "phases",
			  "kind", "prefill", "vdisk", "b");
	struct err err;

	if (run_nodes_assign(plan, who, NODES, owner, NULL, &err))
		fail_msg("%s", err.text);
	return plan;
}

static void lab_open(struct lab *lab, const char *silent, bool adopt)
{
	struct run_nodes_host host = lab_host;
	json_t *plan = plan_make(silent);
	struct err err;

	memset(lab, 0, sizeof(*lab));
	lab->now_us = 1000000;
	lab->offset_us[1] = 3600000000;
	lab->offset_us[2] = -30000000;
	lab->known[0] = lab->known[1] = lab->known[2] = true;
	host.arg = lab;
	assert_int_equal(
		run_nodes_new(plan, "r1", 0, adopt, &host, &lab->r, &err), 0);
	json_decref(plan);
	run_nodes_tick(lab->r);
}

static void lab_close(struct lab *lab)
{
	run_nodes_free(lab->r);
	for (int n = 0; n < NODES; n++)
		json_decref(lab->asked[n]);
	json_decref(lab->emitted);
}

static void says(struct lab *lab, size_t n, const char *state, int phase)
{
	json_t *event = json_pack("{s:s, s:i}", "state", state, "phase", phase);

	run_nodes_event(lab->r, n, event);
	json_decref(event);
}

static void later(struct lab *lab, double seconds)
{
	lab->now_us += (int64_t)(seconds * 1e6);
	run_nodes_tick(lab->r);
}

static int64_t asked(struct lab *lab, size_t n, const char *name)
{
	return json_integer_value(json_object_get(lab->asked[n], name));
}

static const char *emitted(struct lab *lab)
{
	const char *e = json_string_value(json_object_get(lab->emitted, "e"));

	return e ? e : "";
}

static void go_on(struct lab *lab, int phase)
{
	for (size_t n = 0; n < NODES; n++)
		says(lab, n, "waiting", phase);
	later(lab, 0.1);
	for (size_t n = 0; n < NODES; n++)
		says(lab, n, "running", 0);
}

static void test_assign(void **state)
{
	json_t *plan = plan_make("wait");
	const struct run_nodes_who one = { "n1", "lab.n1" };
	struct err err;

	(void)state;
	assert_int_equal(plan_nodes(plan), 3);
	assert_true(
		plan_owns(json_object_get(plan_node(plan, 1), "vdisks"), "b"));
	assert_int_equal(
		json_array_size(json_object_get(plan_node(plan, 1), "vdisks")),
		1);
	assert_int_equal(run_nodes_assign(plan, &one, 1, owner, NULL, &err),
			 -ENODEV);
	assert_non_null(strstr(err.text, "owns b"));
	json_decref(plan);
}

/* One moment, said in the clock of each. */
static void test_barrier(void **state)
{
	struct lab lab;
	int64_t at;

	(void)state;
	lab_open(&lab, "continue", false);
	for (int n = 0; n < NODES; n++)
		assert_string_equal(lab.story[n], "[run_start]");
	assert_null(json_object_get(lab.asked[1], "join"));
	says(&lab, 0, "waiting", 0);
	says(&lab, 2, "waiting", 0);
	later(&lab, 30);
	assert_string_equal(lab.story[0], "[run_start]");
	lab.known[1] = false;
	says(&lab, 1, "waiting", 0);
	later(&lab, 0.1);
	assert_string_equal(lab.story[0], "[run_start]");
	lab.known[1] = true;
	later(&lab, 0.1);
	at = asked(&lab, 0, "at_us");
	assert_int_equal(at - WALL - lab.now_us, 100000 + 2 * 3000);
	assert_int_equal(asked(&lab, 1, "at_us") - at, 3600000000);
	assert_int_equal(asked(&lab, 2, "at_us") - at, -30000000);
	assert_string_equal(emitted(&lab), "run_go");
	assert_int_equal(
		json_integer_value(json_object_get(lab.emitted, "err_us")), 52);
	/* drift: said again to the one, once */
	lab.offset_us[2] += 700;
	later(&lab, 20);
	later(&lab, 20);
	assert_string_equal(lab.story[2], "[run_start][run_go][run_go]");
	assert_string_equal(lab.story[1], "[run_start][run_go]");
	assert_int_equal(asked(&lab, 2, "at_us") - at, -29999300);
	for (size_t n = 0; n < NODES; n++)
		says(&lab, n, "done", 0);
	assert_true(run_nodes_over(lab.r));
	lab_close(&lab);
}

/* A cut link for a while is nothing: its load goes on. */
static void test_cut(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, "continue", false);
	go_on(&lab, 0);
	run_nodes_down(lab.r, 1);
	says(&lab, 0, "waiting", 3);
	says(&lab, 2, "waiting", 3);
	later(&lab, 20);
	assert_string_equal(emitted(&lab), "run_go");
	run_nodes_up(lab.r, 1, true);
	later(&lab, 0.1);
	assert_string_equal(lab.story[0], "[run_start][run_go]");
	says(&lab, 1, "waiting", 3);
	later(&lab, 0.1);
	assert_string_equal(lab.story[0], "[run_start][run_go][run_go]");
	assert_string_equal(lab.story[1], "[run_start][run_go][run_go]");
	lab_close(&lab);
}

/* Killed, it is started again to fall in; refused at first, it is tried again.
 */
static void test_killed(void **state)
{
	json_t *no = json_pack("{s:b, s:i, s:s}", "ok", 0, "code", -ENODEV,
			       "error", "no cluster is open");
	struct lab lab;
	const json_t *join;
	int64_t at;

	(void)state;
	lab_open(&lab, "continue", false);
	go_on(&lab, 0);
	at = asked(&lab, 1, "at_us");
	run_nodes_down(lab.r, 1);
	later(&lab, 2);
	run_nodes_up(lab.r, 1, false);
	later(&lab, 0.1);
	assert_string_equal(lab.story[1], "[run_start][run_go][run_start]");
	join = json_object_get(lab.asked[1], "join");
	assert_int_equal(json_integer_value(json_object_get(join, "at_us")),
			 at);
	assert_non_null(json_object_get(lab.asked[1], "known"));
	run_nodes_answer(lab.r, 1, "run_start", no);
	later(&lab, 0.1);
	assert_string_equal(lab.story[1], "[run_start][run_go][run_start]");
	later(&lab, 2.5);
	assert_string_equal(lab.story[1],
			    "[run_start][run_go][run_start][run_start]");
	json_decref(no);
	lab_close(&lab);
}

static void test_silent(void **state)
{
	static const struct {
		const char *silent, *story, *emitted;
	} as[] = {
		{ "wait", "[run_start][run_go]", "run_go" },
		{ "continue", "[run_start][run_go][run_go]", "run_go" },
		{ "stop", "[run_start][run_go][run_stop]", "run_out" },
	};
	struct lab lab;

	(void)state;
	for (size_t i = 0; i < array_len(as); i++) {
		lab_open(&lab, as[i].silent, false);
		go_on(&lab, 0);
		run_nodes_down(lab.r, 1);
		says(&lab, 0, "waiting", 3);
		says(&lab, 2, "waiting", 3);
		later(&lab, 59);
		assert_string_equal(lab.story[0], "[run_start][run_go]");
		later(&lab, 2);
		later(&lab, 0.1);
		assert_string_equal(lab.story[0], as[i].story);
		assert_string_equal(emitted(&lab), as[i].emitted);
		/* it comes back and waits: the others' moment is its, too */
		if (!i || i == 2) {
			lab_close(&lab);
			continue;
		}
		run_nodes_up(lab.r, 1, true);
		says(&lab, 1, "waiting", 3);
		assert_string_equal(lab.story[1],
				    "[run_start][run_go][run_go]");
		assert_int_equal(asked(&lab, 1, "phase"), 3);
		lab_close(&lab);
	}
}

static void test_fails(void **state)
{
	json_t *no = json_pack("{s:b, s:i, s:s}", "ok", 0, "code", -EBUSY,
			       "error", "a run is going on already");
	struct lab lab;

	(void)state;
	/* one refuses: nothing has begun anywhere */
	lab_open(&lab, "continue", false);
	run_nodes_answer(lab.r, 2, "run_start", no);
	assert_string_equal(lab.story[0], "[run_start][run_stop]");
	assert_string_equal(
		json_string_value(json_object_get(lab.asked[0], "reason")),
		"node n3: a run is going on already");
	lab_close(&lab);
	/* one fails: all end */
	lab_open(&lab, "continue", false);
	go_on(&lab, 0);
	says(&lab, 1, "failed", 0);
	assert_string_equal(lab.story[0], "[run_start][run_go][run_stop]");
	says(&lab, 0, "stopped", 0);
	says(&lab, 2, "stopped", 0);
	assert_true(run_nodes_over(lab.r));
	json_decref(no);
	lab_close(&lab);
}

/* Held as long for all; one that comes later is told of the moved moment. */
static void test_pause(void **state)
{
	struct lab lab;
	int64_t at;

	(void)state;
	lab_open(&lab, "continue", false);
	go_on(&lab, 0);
	at = asked(&lab, 0, "at_us");
	run_nodes_pause(lab.r, true);
	later(&lab, 7);
	run_nodes_pause(lab.r, false);
	assert_int_equal(asked(&lab, 2, "held_us"), 7000000);
	run_nodes_down(lab.r, 0);
	run_nodes_up(lab.r, 0, false);
	later(&lab, 0.1);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(lab.asked[0], "join"), "at_us")),
		at + 7000000);
	lab_close(&lab);
}

/* A console that comes to a run that is going on. */
static void test_adopt(void **state)
{
	json_t *go =
		json_pack("{s:i, s:I}", "phase", 0, "at_us", (json_int_t)WALL);
	struct lab lab;

	(void)state;
	lab_open(&lab, "continue", true);
	assert_string_equal(lab.story[0], "");
	run_nodes_went(lab.r, go);
	for (size_t n = 0; n < NODES; n++)
		says(&lab, n, "waiting", 3);
	later(&lab, 0.1);
	for (size_t n = 0; n < NODES; n++)
		assert_string_equal(lab.story[n], "[run_go]");
	assert_int_equal(asked(&lab, 0, "phase"), 3);
	json_decref(go);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_assign), cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_killed),
		cmocka_unit_test(test_silent), cmocka_unit_test(test_fails),
		cmocka_unit_test(test_pause),  cmocka_unit_test(test_adopt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
