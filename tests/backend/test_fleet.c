/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The links of a cluster, and what one agent asks of another, with agents that
 * this program plays itself (fake_agent.h). For one that does not answer
 * the fleet's time runs ten times as fast.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cluster/fleet.h"
#include "backend/event.h"
#include "fake_agent.h"

#define NODES 6
#define FASTER 10

static char log_path[] = "/tmp/test_fleet.XXXXXX";

static int64_t real_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t fast_us(void)
{
	return real_us() * FASTER;
}

/* ---- a console ---------------------------------------------------------- */

struct rig {
	struct fleet *fleet;
	struct node node[64];
	char name[64][8];
	json_t *cluster;
	unsigned chosen, chose, events, changes;
};

static void on_choose(struct fleet_node *const *node, size_t count, void *arg)
{
	struct rig *r = arg;

	assert_non_null(node[0]->hello);
	r->chosen++;
	r->chose += (unsigned)count;
}

static void on_event(struct fleet_node *node, const json_t *event, void *arg)
{
	struct rig *r = arg;

	assert_string_equal(json_string_value(json_object_get(event, "a")),
			    node->agent);
	r->events++;
}

static void on_changed(struct fleet_node *node, void *arg)
{
	((struct rig *)arg)->changes += node->state == FLEET_UP;
}

static void rig_open(struct rig *r, size_t nodes, int64_t (*clock)(void))
{
	struct fleet_opts opts = {
		.agent = "t",
		.node = r->node,
		.nodes = nodes,
		.program = "/proc/self/exe",
		.clock = clock,
		.choose = on_choose,
		.event = on_event,
		.changed = on_changed,
		.arg = r,
	};
	struct err err;

	*r = (struct rig) { 0 };
	for (size_t k = 0; k < nodes; k++) {
		snprintf(r->name[k], sizeof(r->name[k]), "n%u",
			 (unsigned)(k + 1) % 100);
		r->node[k] = (struct node) { .name = r->name[k] };
	}
	r->cluster = json_pack("{s:s, s:[]}", "name", "t", "domains");
	opts.cluster = r->cluster;
	if (fleet_open(&opts, &r->fleet, &err))
		fail_msg("%s", err.text);
}

static void turn(struct rig *r)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	fleet_step(r->fleet);
	nanosleep(&nap, NULL);
}

static bool until(struct rig *r, bool (*so)(struct rig *r))
{
	int64_t end = real_us() + 20000000;

	while (!so(r) && real_us() < end)
		turn(r);
	return so(r);
}

static bool is_ready(struct rig *r)
{
	return fleet_ready(r->fleet);
}

static bool is_hopeless(struct rig *r)
{
	return fleet_hopeless(r->fleet);
}

static bool is_lost(struct rig *r)
{
	return fleet_state(r->fleet) == FLEET_LOST;
}

static void rig_close(struct rig *r)
{
	fleet_close(r->fleet);
	json_decref(r->cluster);
	for (size_t k = 1; k <= NODES; k++) {
		char name[16];

		snprintf(name, sizeof(name), "t.n%u", (unsigned)k % 100);
		fake_is(name, NULL);
		snprintf(name, sizeof(name), "ASK_t.n%u", (unsigned)k % 100);
		unsetenv(name);
	}
	if (truncate(log_path, 0))
		fail();
}

/* Whether any agent was sent a line with these words. */
static bool logged(const char *agent, const char *has)
{
	FILE *f = fopen(log_path, "re");
	char line[4096];
	bool found = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !strncmp(line, agent, strlen(agent)) &&
			 strstr(line, has);
	fclose(f);
	return found;
}

/* ---- attaching ---------------------------------------------------------- */

static void test_all(void **unused)
{
	struct rig r;
	int64_t offset, error;

	(void)unused;
	fake_is("t.n2", "skew=3600000000");
	rig_open(&r, NODES, real_us);
	assert_true(until(&r, is_ready));
	/* nobody was attached to before all had said hello */
	assert_int_equal(r.chosen, 1);
	assert_int_equal(r.chose, NODES);
	assert_true(r.events >= NODES);
	for (size_t k = 0; k < NODES; k++)
		assert_true(fleet_node_ready(&r.fleet->node[k]));
	assert_true(logged("t.n2", "\"node\":\"n2\""));
	assert_ptr_equal(fleet_find(r.fleet, "n3"), &r.fleet->node[2]);
	assert_ptr_equal(fleet_by_agent(r.fleet, "t.n3"), &r.fleet->node[2]);
	assert_true(fleet_offset(&r.fleet->node[1], &offset, &error));
	assert_true(labs((long)(offset - 3600000000)) < 1000000);
	rig_close(&r);
}

static bool is_lost_n5(struct rig *r)
{
	return r->fleet->node[4].state == FLEET_LOST;
}

static bool is_ready_n5(struct rig *r)
{
	return fleet_node_ready(&r->fleet->node[4]);
}

/* One that does not answer, one that cannot be started: not for ever. */
static void test_some(void **unused)
{
	char text[FLEET_TEXT];
	struct rig r;

	(void)unused;
	fake_is("t.n2", "silent");
	fake_is("t.n5", "dead");
	rig_open(&r, NODES, fast_us);
	assert_true(until(&r, is_ready));
	assert_int_equal(r.fleet->node[1].state, FLEET_CONNECTING);
	assert_true(until(&r, is_lost_n5));
	assert_int_equal(fleet_state(r.fleet), FLEET_UP);
	fleet_text(r.fleet, text, sizeof(text));
	assert_non_null(strstr(text, "n5: agent t.n5 went away"));
	/* it is there again, and asked for */
	fake_is("t.n5", NULL);
	fleet_retry(r.fleet);
	assert_true(until(&r, is_ready_n5));
	rig_close(&r);
}

static void test_none(void **unused)
{
	struct rig r;

	(void)unused;
	fake_is("t.n1", "dead");
	fake_is("t.n2", "dead");
	rig_open(&r, 2, real_us);
	assert_true(until(&r, is_lost));
	assert_false(fleet_ready(r.fleet));
	rig_close(&r);
}

/* What one of them refuses to open the others have. */
static void test_refused(void **unused)
{
	struct rig r;

	(void)unused;
	fake_is("t.n1", "refuses");
	rig_open(&r, 2, real_us);
	assert_true(until(&r, is_ready));
	assert_false(fleet_node_ready(&r.fleet->node[0]));
	assert_string_equal(r.fleet->node[0].text, "no such drives");
	rig_close(&r);
	fake_is("t.n1", "refuses");
	fake_is("t.n2", "refuses");
	rig_open(&r, 2, real_us);
	assert_true(until(&r, is_hopeless));
	assert_false(fleet_ready(r.fleet));
	rig_close(&r);
}

static bool watches(struct rig *r)
{
	return r->fleet->watching && fleet_state(r->fleet) == FLEET_UP &&
	       r->fleet->settled;
}

/* Another console owns one of them: all of them are watched. */
static void test_watch(void **unused)
{
	struct rig r;

	(void)unused;
	fake_is("t.n4", "busy");
	rig_open(&r, NODES, real_us);
	assert_true(until(&r, watches));
	for (size_t k = 0; k < NODES; k++)
		assert_int_equal(r.fleet->node[k].state, FLEET_UP);
	rig_close(&r);
}

/* Each may take its time to go; all of them go at once. */
static void test_close(void **unused)
{
	struct rig r;
	int64_t from;

	(void)unused;
	for (size_t k = 1; k <= NODES; k++) {
		char name[8];

		snprintf(name, sizeof(name), "t.n%u", (unsigned)k % 100);
		fake_is(name, "deaf");
	}
	rig_open(&r, NODES, real_us);
	assert_true(until(&r, is_ready));
	from = real_us();
	rig_close(&r);
	if (real_us() - from > NODES * 300000 - 500000)
		fail_msg("%lld ms", (long long)(real_us() - from) / 1000);
}

/* ---- the switchboard ---------------------------------------------------- */

static bool told(struct rig *r)
{
	(void)r;
	return logged("t.n1", "\"told\":7");
}

static void board(const char *ask, const char *has)
{
	struct rig r;

	setenv("ASK_t.n1", ask, 1);
	rig_open(&r, 3, real_us);
	assert_true(until(&r, is_ready));
	assert_true(until(&r, told));
	if (!logged("t.n1", has)) {
		FILE *f = fopen(log_path, "re");
		char line[4096];

		while (f && fgets(line, sizeof(line), f))
			print_message("%s", line);
		fail_msg("no %s", has);
	}
	rig_close(&r);
}

static void test_board(void **unused)
{
	(void)unused;
	board("{\"ask\":7,\"node\":\"n2\",\"do\":\"export_open\","
	      "\"for\":\"n3\",\"key\":\"k\"}",
	      "\"for\":\"n1\"");
	board("{\"ask\":7,\"node\":\"n2\",\"do\":\"export_open\"}",
	      "\"reply\":{\"got\":{\"do\":\"export_open\",\"for\":\"n1\"");
	/* what may not pass, or has nowhere to go */
	board("{\"ask\":7,\"node\":\"n2\",\"do\":\"quit\"}", "\"code\":-1,");
	board("{\"ask\":7,\"node\":\"n2\"}", "\"code\":-1,");
	board("{\"ask\":7,\"node\":\"n9\",\"do\":\"export_open\"}",
	      "\"code\":-22,");
	board("{\"ask\":7,\"do\":\"export_open\"}", "\"code\":-22,");
	board("{\"ask\":7,\"node\":\"n1\",\"do\":\"export_open\"}",
	      "\"code\":-22,");
	fake_is("t.n3", "dead");
	board("{\"ask\":7,\"node\":\"n3\",\"do\":\"export_open\"}",
	      "node n3 is not connected");
	fake_is("t.n3", "drops");
	board("{\"ask\":7,\"node\":\"n3\",\"do\":\"export_open\"}",
	      "node n3 was lost before it answered");
}

/* A line that is no question ends its link, and no other. */
static void test_board_hostile(void **unused)
{
	struct rig r;

	(void)unused;
	setenv("ASK_t.n1", "{\"ask\":\"x\",\"node\":\"n2\"}", 1);
	rig_open(&r, 2, real_us);
	assert_true(until(&r, is_ready));
	while (r.fleet->node[0].state == FLEET_UP)
		turn(&r);
	assert_non_null(strstr(r.fleet->node[0].text, "what it may not"));
	assert_int_equal(r.fleet->node[1].state, FLEET_UP);
	rig_close(&r);
}

/* ---- parts -------------------------------------------------------------- */

static void test_offset(void **unused)
{
	struct offset o = { 0 };
	int64_t offset, error, rtt;

	(void)unused;
	assert_false(offset_best(&o, 0, &offset, &error, NULL));
	/* an hour ahead; 300 us there, 100 us back: off by 100 of 200 */
	offset_add(&o, 1000, 400, 400, 1000 + 300 + 3600000000);
	assert_true(offset_best(&o, 400, &offset, &error, &rtt));
	assert_int_equal(offset, 3600000100);
	assert_int_equal(error, 200);
	assert_int_equal(rtt, 400);
	/* a shorter one is better; a slow one changes nothing */
	offset_add(&o, 2000, 40, 1440, 2020 + 3600000000);
	offset_add(&o, 3000, 90000, 92440, 3001);
	assert_true(offset_best(&o, 92440, &offset, &error, &rtt));
	assert_int_equal(offset, 3600000000);
	assert_int_equal(error, 20 + 9);
	/* as clocks drift, an old one is outlived */
	offset_add(&o, 100000000, 400, 100000000, 100000200 + 3600005000);
	assert_true(offset_best(&o, 100000000, &offset, &error, NULL));
	assert_int_equal(offset, 3600005000);
	/* nonsense is left out */
	offset_add(&o, 0, -1, 0, 5);
	offset_add(&o, 0, 1, 0, -5);
	offset_add(&o, 0, 1, 0, INT64_MAX);
	assert_int_equal(o.count, 4);
}

static void test_document(void **unused)
{
	const struct node node[] = {
		{ .name = "a", .address = "x", .ports = { 5, 6 } },
		{ .name = "b" },
	};
	const struct node only = { 0 };
	json_t *cluster = json_pack(
		"{s:s, s:[{s:s}, {s:s}], s:[{s:s}, {s:s}, {s:s, s:s}]}", "name",
		"t", "domains", "name", "a", "name", "b", "vdisks", "name",
		"v1", "name", "v2", "name", "v3", "owner", "b");
	json_t *doc = document_for(cluster, node, 2, 0), *far;
	char *text;

	(void)unused;
	text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(
		text,
		"{\"domains\":[{\"name\":\"a\"},{\"far\":true,\"name\":\"b\"}],"
		"\"export\":{\"address\":\"x\",\"ports\":[5,6]},\"name\":\"t\","
		"\"node\":\"a\",\"vdisks\":[{\"name\":\"v1\"}]}");
	free(text);
	json_decref(doc);
	doc = document_for(cluster, node, 2, 1);
	far = json_object_get(doc, "vdisks");
	assert_int_equal(json_array_size(far), 2);
	assert_null(json_object_get(json_array_get(far, 1), "owner"));
	json_decref(doc);
	doc = document_for(cluster, &only, 1, 0);
	assert_ptr_equal(doc, cluster);
	json_decref(doc);
	json_decref(cluster);
}

static int setup(void **unused)
{
	int fd = mkstemp(log_path);

	(void)unused;
	if (fd < 0)
		return -1;
	close(fd);
	return setenv("FAKE_LOG", log_path, 1);
}

static int teardown(void **unused)
{
	(void)unused;
	return unlink(log_path);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_some),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_board),
		cmocka_unit_test(test_board_hostile),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_document),
	};

	fake_agent(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
