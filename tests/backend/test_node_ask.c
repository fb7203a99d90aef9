/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the real daemon is asked about its node, and what it says unasked. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/base.h"
#include "lab.h"

#define TOKEN "0123456789abcdef"

static const json_t *member(const json_t *j, const char *a, const char *b)
{
	return json_object_get(json_object_get(j, a), b);
}

static bool heard_disks(struct hears *h)
{
	return json_object_get(hears_find(h, "host", NULL, NULL), "disks");
}

static void test_facts(void **state)
{
	struct hears h;
	const json_t *r;

	hears_attach(&h, *state);
	r = hears_ask(&h, "node_facts", NULL);
	assert_true(json_is_true(json_object_get(r, "ok")));
	assert_null(json_object_get(r, "late"));
	assert_true(json_is_array(json_object_get(r, "nics")));
	assert_true(json_is_array(json_object_get(r, "disks")));
	assert_true(json_is_string(member(r, "clock", "source")));
	/* the event says the same, once somebody has looked */
	assert_true(hears_until(&h, heard_disks, 10));
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 30));
	hears_close(&h);
}

static void test_check(void **state)
{
	struct lab *lab = *state;
	struct hears h;
	const json_t *r, *drive;

	hears_attach(&h, lab);
	r = hears_ask(&h, "node_check",
		      json_pack("{s:[s,s], s:s}", "paths", lab->dir,
				"/dev/null/none", "become", "env"));
	assert_true(json_is_true(json_object_get(r, "ok")));
	assert_true(json_is_true(member(r, "state_dir", "ok")));
	assert_true(json_integer_value(member(r, "state_dir", "free_bytes")) >
		    0);
	assert_true(json_integer_value(member(r, "limits", "nofile")) > 0);
	assert_true(json_is_boolean(member(r, "io_uring", "ok")));
	assert_int_equal(json_is_true(member(r, "become", "ok")),
			 json_integer_value(json_object_get(r, "uid")) == 0);
	assert_true(json_integer_value(json_object_get(r, "t_us")) > 0);
	drive = json_array_get(json_object_get(r, "drives"), 0);
	assert_string_equal(json_string_value(json_object_get(drive, "kind")),
			    "directory");
	drive = json_array_get(json_object_get(r, "drives"), 1);
	assert_true(json_is_false(json_object_get(drive, "ok")));
	hears_ask_refused(&h, "node_check", json_pack("{s:s}", "paths", "x"),
			  -EINVAL, "must be a list");
	hears_ask_refused(&h, "node_check",
			  json_pack("{s:[s]}", "paths", "dev/sda"), -EINVAL,
			  "begins with /");
	/* a program that hangs is ended */
	r = hears_ask(&h, "node_check",
		      json_pack("{s:s}", "become", "sleep 60 ;"));
	assert_true(json_is_false(member(r, "become", "ok")));
	hears_close(&h);
}

static void test_link(void **state)
{
	struct hears h;
	const json_t *r;
	int port;

	hears_attach(&h, *state);
	hears_ask_refused(&h, "link_listen", json_pack("{s:s}", "token", "a"),
			  -EINVAL, "token");
	hears_ask_refused(
		&h, "link_listen",
		json_pack("{s:s,s:i}", "token", TOKEN, "seconds", 3600),
		-EINVAL, "seconds");
	hears_ask_refused(&h, "link_measure",
			  json_pack("{s:s}", "token", TOKEN), -EINVAL,
			  "address");
	r = hears_ask(&h, "link_listen",
		      json_pack("{s:s,s:f,s:s}", "token", TOKEN, "seconds", 0.3,
				"address", "127.0.0.1"));
	port = (int)json_integer_value(json_object_get(r, "port"));
	assert_true(port > 0);
	r = hears_ask(&h, "link_measure",
		      json_pack("{s:s,s:f,s:s,s:i}", "token", TOKEN, "seconds",
				0.3, "address", "127.0.0.1", "port", port));
	assert_true(json_is_true(json_object_get(r, "ok")));
	assert_true(json_number_value(json_object_get(r, "out_bytes_s")) > 0);
	assert_true(json_number_value(json_object_get(r, "in_bytes_s")) > 0);
	assert_true(json_number_value(member(r, "rtt_us", "median")) > 0);
	/* the end of the agent does not wait for who never comes */
	r = hears_ask(&h, "link_listen",
		      json_pack("{s:s,s:f}", "token", TOKEN, "seconds", 30.0));
	assert_true(json_integer_value(json_object_get(r, "port")) > 0);
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 10));
	hears_close(&h);
}

static bool heard_usage(struct hears *h)
{
	return hears_count(h, "usage") >= 3;
}

static void test_usage(void **state)
{
	struct hears h;
	const json_t *u;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 3, 64));
	assert_true(hears_until(&h, heard_usage, 20));
	u = hears_find(&h, "usage", NULL, NULL);
	assert_true(json_is_real(json_object_get(u, "cpu_busy")));
	assert_true(json_is_integer(json_object_get(u, "mem_used_bytes")));
	hears_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_facts),
		LAB_TEST(test_check),
		LAB_TEST(test_link),
		LAB_TEST(test_usage),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
