/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The Cluster screen of several nodes: one is well, one has a clock of its own,
 * one is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/event.h"
#include "fixture.h"

#define T0 1800000000000000

static struct model *m;
static int64_t last[4];

static void say(int who, const char *e, json_t *body)
{
	static const char *const authors[] = { "console", "lab.n1", "lab.n2",
					       "lab.n3" };

	assert_non_null(body);
	json_object_set_new(body, "e", json_string(e));
	json_object_set_new(body, "a", json_string(authors[who]));
	json_object_set_new(body, "i", json_integer(1));
	json_object_set_new(body, "n", json_integer(++last[who]));
	json_object_set_new(body, "t", json_integer(T0));
	assert_int_equal(model_apply(m, body, NULL), 0);
	json_decref(body);
}

static json_t *domain(const char *name)
{
	return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s, s:i, s:i}]}", "name",
			 name, "drives", "name", "d0", "path", "/srv/d0",
			 "kind", "directory", "state", "ok", "size_bytes",
			 1 << 30, "free_bytes", 3 << 28);
}

static void agent(int who)
{
	char name[16];

	snprintf(name, sizeof(name), "n%d", who);
	say(who, "host",
	    json_pack("{s:s, s:s, s:i, s:I, s:[{s:s, s:f}]}", "name", name,
		      "kernel", "6.1.0", "cores", 16, "mem_bytes",
		      (json_int_t)64 << 30, "nics", "name", "eth0",
		      "line_bytes_s", 3.125e9));
	say(who, "cluster",
	    json_pack("{s:s, s:[o, o, o]}", "name", "lab", "domains",
		      domain("n1"), domain("n2"), domain("n3")));
	say(who, "usage",
	    json_pack("{s:i, s:f, s:I, s:[{s:s, s:f, s:f, s:f}], "
		      "s:[{s:s, s:s, s:f, s:f}]}",
		      "len_us", 1000000, "cpu_busy", 0.25 * who,
		      "mem_used_bytes", (json_int_t)9 << 30, "nics", "name",
		      "eth0", "rx_bytes_s", 1e9, "tx_bytes_s", 2e8, "share",
		      0.32, "drives", "domain", name, "drive", "d0", "busy",
		      0.3, "latency_us", 410.0));
}

static void node(const char *name, const char *state, int64_t offset_us,
		 const char *why)
{
	char agent[16];

	snprintf(agent, sizeof(agent), "lab.%s", name);
	say(0, "node",
	    json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:s*}", "name",
		      name, "agent", agent, "state", state, "via", "libssh2",
		      "version", "0.1.0", "offset_us", (json_int_t)offset_us,
		      "offset_err_us", 90, "rtt_us", 170, "why", why));
}

static void shown(struct fixture *f, int w, int h)
{
	char name[32], *text = fixture_draw(f, w, h, GLYPHS_UTF8);

	snprintf(name, sizeof(name), "cluster-nodes-%dx%d", w, h);
	golden_check(name, text);
	free(text);
}

static void test_nodes(void **unused)
{
	struct fixture f;

	(void)unused;
	assert_int_equal(model_new(&m), 0);
	for (int who = 1; who <= 3; who++)
		agent(who);
	node("n1", "up", 230, NULL);
	node("n2", "up", 3600000000, NULL);
	node("n3", "up", -1500, NULL);
	node("n3", "lost", -1500, "root@n3:22: nothing answers within 5 s");
	fixture_open(&f, 1);
	f.scene.model = m;
	f.scene.now_us = T0;
	f.ui.screen = SCREEN_CLUSTER;
	shown(&f, 80, 24);
	shown(&f, 200, 60);
	f.scene.model = f.model;
	fixture_close(&f);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nodes) };

	setenv("TZ", "UTC0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
