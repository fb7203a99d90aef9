/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fold of what several agents and the console say of one cluster. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/event.h"
#include "backend/model.h"

#define T0 1800000000000000 /* when all of it happens */

static struct model *m;
static int64_t last[8];
static const char *const authors[] = { "console", "lab.n1", "lab.n2",
				       "lab.n3" };

static int say_at(size_t who, int64_t t_us, const char *e, json_t *body)
{
	struct err err = { 0 };
	int rc;

	json_object_set_new(body, "e", json_string(e));
	json_object_set_new(body, "a", json_string(authors[who]));
	json_object_set_new(body, "i", json_integer(1));
	json_object_set_new(body, "n", json_integer(++last[who]));
	json_object_set_new(body, "t", json_integer(t_us));
	rc = model_apply(m, body, &err);
	json_decref(body);
	return rc;
}

static void say(size_t who, const char *e, json_t *body)
{
	assert_non_null(body);
	assert_int_equal(say_at(who, T0, e, body), 0);
}

/* As an agent sees it: the state of drive d0 of n1 and of n2. */
static void cluster(size_t who, const char *n1, const char *n2)
{
	say(who, "cluster",
	    json_pack("{s:s, s:[{s:s, s:[{s:s, s:s}]}, {s:s, s:[{s:s, s:s}]}]}",
		      "name", "lab", "domains", "name", "n1", "drives", "name",
		      "d0", "state", n1, "name", "n2", "drives", "name", "d0",
		      "state", n2));
}

static void node(const char *name, const char *state)
{
	char agent[16];

	snprintf(agent, sizeof(agent), "lab.%s", name);
	say(0, "node",
	    json_pack("{s:s, s:s, s:s}", "name", name, "agent", agent, "state",
		      state));
}

static const char *state_of(const char *domain)
{
	return model_domain(m, domain)->drive[0].state;
}

/* Of its own drives a node is right while it is there. */
static void test_composed(void **unused)
{
	(void)unused;
	cluster(1, "ok", "offline"); /* n2 has not said anything yet */
	assert_string_equal(state_of("n2"), "offline");
	cluster(2, "offline", "ok");
	assert_string_equal(state_of("n1"), "ok");
	assert_string_equal(state_of("n2"), "ok");
	cluster(1, "ok", "failed");
	assert_string_equal(state_of("n2"), "ok");
	assert_int_equal(m->domains, 2);
	/* it is gone: what others see of it is what there is */
	node("n2", "up");
	cluster(1, "ok", "failed");
	assert_string_equal(state_of("n2"), "ok");
	node("n2", "lost");
	cluster(1, "ok", "offline");
	assert_string_equal(state_of("n2"), "offline");
	node("n2", "up");
	cluster(2, "offline", "ok");
	assert_string_equal(state_of("n2"), "ok");
	assert_string_equal(state_of("n1"), "ok");
}

static void usage(size_t who, int64_t t_us, double iops, double busy,
		  double latency_us)
{
	assert_int_equal(
		say_at(who, t_us, "usage",
		       json_pack("{s:i, s:[{s:s, s:s, s:f, s:f, s:f, s:f}], "
				 "s:[{s:s, s:f}]}",
				 "len_us", 1000000, "drives", "domain", "n1",
				 "drive", "d0", "read_iops", iops, "write_iops",
				 0.0, "busy", busy, "latency_us", latency_us,
				 "links", "domain", "n1", "read_bytes_s",
				 iops * 4096)),
		0);
}

/* Each measures its own; the drive bears all of it. */
static void test_usage(void **unused)
{
	const struct m_drive *d;

	(void)unused;
	cluster(1, "ok", "ok");
	usage(1, T0, 100, 0.5, 200);
	d = &model_domain(m, "n1")->drive[0];
	assert_true(d->read_iops == 100 && d->latency_us == 200);
	usage(2, T0, 300, 0.4, 400);
	assert_true(d->read_iops == 400);
	assert_true(fabs(d->busy - 0.9) < 1e-9);
	assert_true(fabs(d->latency_us - 350) < 1e-9);
	assert_true(model_domain(m, "n1")->link_read_bytes_s == 400 * 4096);
	/* a new description of it changes nothing of that */
	cluster(1, "ok", "ok");
	d = &model_domain(m, "n1")->drive[0];
	usage(1, T0 + 1000000, 200, 0.8, 200);
	assert_true(d->read_iops == 500);
	assert_true(d->busy == 1);
	/* who is silent for long counts no more */
	usage(1, T0 + 9000000, 50, 0.1, 200);
	assert_true(d->read_iops == 50 && d->latency_us == 200);
}

static void test_vdisks(void **unused)
{
	(void)unused;
	say(1, "vdisk", json_pack("{s:s, s:s}", "name", "v", "state", "ok"));
	assert_string_equal(model_vdisk(m, "v")->agent, "lab.n1");
	/* moved; what its old owner says then is of the past */
	say(2, "vdisk", json_pack("{s:s, s:s}", "name", "v", "state", "ok"));
	assert_string_equal(model_vdisk(m, "v")->agent, "lab.n2");
	say(1, "vdisk_gone", json_pack("{s:s}", "name", "v"));
	assert_non_null(model_vdisk(m, "v"));
	say(2, "vdisk_gone", json_pack("{s:s}", "name", "v"));
	assert_null(model_vdisk(m, "v"));
}

/* What others have components of, where its owner says nothing. */
static void seen(int i, const char *owner, int term)
{
	say(i, "vdisk_seen",
	    json_pack("{s:s, s:s, s:s?, s:i, s:s}", "name", "v", "state",
		      "offline", "owner", owner, "term", term, "reason",
		      "nobody says anything"));
}

static void owns(int i, int term)
{
	say(i, "vdisk",
	    json_pack("{s:s, s:s, s:i}", "name", "v", "state", "ok", "term",
		      term));
}

static void test_hearsay(void **unused)
{
	(void)unused;
	cluster(2, "ok", "ok");
	seen(3, NULL, 0);
	assert_true(model_vdisk(m, "v")->hearsay);
	assert_string_equal(model_vdisk(m, "v")->owner, "");
	assert_int_equal(model_vdisk(m, "v")->size_bytes, -1);
	seen(2, "n1", 4);
	assert_string_equal(model_vdisk(m, "v")->owner, "n1");
	assert_string_equal(model_vdisk(m, "v")->agent, "lab.n1");
	seen(3, "n3", 3); /* of an older term */
	assert_string_equal(model_vdisk(m, "v")->owner, "n1");
	/* its owner knows */
	owns(1, 4);
	seen(2, "n1", 4);
	assert_string_equal(model_vdisk(m, "v")->state, "ok");
	assert_false(model_vdisk(m, "v")->hearsay);
	/* unless it was taken from it since */
	seen(2, "n3", 5);
	assert_string_equal(model_vdisk(m, "v")->owner, "n3");
	owns(1, 4);
	assert_string_equal(model_vdisk(m, "v")->agent, "lab.n3");
	owns(3, 5);
	owns(1, 4);
	assert_string_equal(model_vdisk(m, "v")->state, "ok");
	assert_string_equal(model_vdisk(m, "v")->agent, "lab.n3");
	say(1, "vdisk_gone", json_pack("{s:s}", "name", "v"));
	assert_non_null(model_vdisk(m, "v"));
	say(3, "vdisk_gone", json_pack("{s:s}", "name", "v"));
	assert_null(model_vdisk(m, "v"));
}

/* A clock that is an hour off moves nothing. */
static void test_clock(void **unused)
{
	const int64_t hour = 3600000000;
	const struct m_node *n;

	(void)unused;
	say(0, "node",
	    json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:s}", "name", "n2",
		      "agent", "lab.n2", "state", "up", "offset_us",
		      (json_int_t)hour, "offset_err_us", 50, "rtt_us", 90,
		      "via", "libssh2"));
	n = model_node(m, "n2");
	assert_true(n->offset_known);
	assert_int_equal(n->rtt_us, 90);
	assert_int_equal(say_at(2, T0 + hour + 5, "log",
				json_pack("{s:s}", "text", "here")),
			 0);
	assert_int_equal(m->line[m->lines - 1].t_us, T0 + 5);
	assert_int_equal(m->t_us, T0 + 5);
	/* behind, and a time before there was any */
	say(0, "node",
	    json_pack("{s:s, s:s, s:s, s:I}", "name", "n2", "agent", "lab.n2",
		      "state", "up", "offset_us", (json_int_t)-hour));
	assert_int_equal(say_at(2, T0 - hour + 7, "log",
				json_pack("{s:s}", "text", "here")),
			 0);
	assert_int_equal(m->t_us, T0 + 7);
	assert_int_equal(say_at(0, T0, "node",
				json_pack("{s:s, s:s, s:f}", "name", "n2",
					  "state", "up", "offset_us", 1.5)),
			 -EINVAL);
	assert_int_equal(
		say_at(0, T0, "node", json_pack("{s:s}", "name", "n2")),
		-EINVAL);
}

/* What happens to a node is in the log, once. */
static void test_log(void **unused)
{
	(void)unused;
	node("n3", "connecting");
	assert_int_equal(m->lines, 0);
	node("n3", "up");
	node("n3", "up");
	assert_int_equal(m->lines, 1);
	node("n3", "lost");
	assert_int_equal(m->lines, 2);
	assert_string_equal(m->line[1].level, "warn");
	assert_string_equal(m->line[1].text, "node n3 is lost");
}

static int setup(void **unused)
{
	(void)unused;
	memset(last, 0, sizeof(last));
	return model_new(&m);
}

static int teardown(void **unused)
{
	(void)unused;
	model_free(m);
	return 0;
}

#define MODEL_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODEL_TEST(test_composed), MODEL_TEST(test_usage),
		MODEL_TEST(test_vdisks),   MODEL_TEST(test_hearsay),
		MODEL_TEST(test_clock),    MODEL_TEST(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
