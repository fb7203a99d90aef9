/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A console of a cluster of three nodes: which agents are asked what, what is
 * made of their answers, and what is said when one is not there. The agents
 * are fake_agent.h's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/deck_impl.h"
#include "backend/paths.h"
#include "fake_agent.h"

static char dir[] = "/tmp/test_deck_nodes.XXXXXX";
static char log_path[64];

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct deck *deck_new(const char *session)
{
	char path[64];
	const struct deck_opts opts = { .config_path = path,
					.session_path = session };
	struct deck *deck;
	struct err err;

	snprintf(path, sizeof(path), "%s/iodeck.conf", dir);
	if (deck_open(&opts, &deck, &err))
		fail_msg("%s", err.text);
	write_file("log", "");
	return deck;
}

static void says(struct deck *deck, const char *line, int status,
		 const char *words)
{
	struct outcome o = { 0 };
	struct err err;
	char **argv;
	int argc;

	assert_int_equal(command_split(line, &argc, &argv, &err), 0);
	deck_do_wait(deck, argc, argv, 60000, &o);
	if (o.status != status || !o.text || !strstr(o.text, words))
		fail_msg("%s: %d \"%s\", not %d \"%s\"", line, o.status,
			 o.text ? o.text : "", status, words);
	outcome_free(&o);
	command_split_free(argv);
}

/* How many lines of an agent's have these words. */
static unsigned logged(const char *agent, const char *has)
{
	FILE *f = fopen(log_path, "re");
	char line[4096];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, agent, strlen(agent)) && strstr(line, has);
	fclose(f);
	return n;
}

static void test_routes(void **unused)
{
	struct deck *deck = deck_new("");

	(void)unused;
	/* by turns: whoever owns least */
	says(deck, "vdisk create v1 size=64M raid=1", 0, "v1");
	says(deck, "vdisk create v2 size=64M raid=1", 0, "v2");
	says(deck, "vdisk create v3 size=64M raid=1 owner=n1", 0, "v3");
	assert_int_equal(logged("t.n1", "\"name\":\"v1\""), 1);
	assert_int_equal(logged("t.n2", "\"name\":\"v2\""), 1);
	assert_int_equal(logged("t.n1", "\"name\":\"v3\""), 1);
	assert_int_equal(logged("t.", "\"owner\""), 0);
	/* to its owner */
	says(deck, "vdisk delete v2", 0, "v2");
	assert_int_equal(logged("t.", "vdisk_delete"), 1);
	assert_int_equal(logged("t.n2", "vdisk_delete"), 1);
	/* to all */
	says(deck, "policy create gold raid=1", 0, "gold");
	assert_int_equal(logged("t.", "policy_set"), 3);
	says(deck, "stop", 0, "done");
	assert_int_equal(logged("t.", "run_stop"), 3);
	/* to all, and one of them tells of it */
	says(deck, "fault drive n2:d0 offline", 0, "done");
	assert_int_equal(logged("t.", "\"fault\""), 3);
	assert_int_equal(logged("t.n2", "\"quiet\""), 0);
	assert_int_equal(logged("t.n1", "\"quiet\":true"), 1);
	assert_int_equal(logged("t.n3", "\"quiet\":true"), 1);
	says(deck, "link set * rate=1Gbit", 0, "done");
	assert_int_equal(logged("t.", "\"quiet\""), 4);
	/* what is no lab has nobody to pull its plugs */
	says(deck, "fault node n2 stop", 1, "is no lab");
	says(deck, "fault link n2 slow", 2, "say how slow");
	says(deck, "fault link n2 cut 1Gbit", 2, "only slow");
	/* to the one named */
	says(deck, "drive claim /dev/x", 2, "which node?");
	says(deck, "drive claim /dev/x node=n9", 2, "no node");
	says(deck, "drive claim /dev/x node=n3", 0, "done");
	assert_int_equal(logged("t.", "drive_claim"), 1);
	assert_int_equal(logged("t.n3", "drive_claim"), 1);
	says(deck, "agent stop", 0, "have ended");
	assert_int_equal(logged("t.", "quit"), 3);
	deck_close(deck);
}

static void test_missing(void **unused)
{
	struct deck *deck;

	(void)unused;
	fake_is("t.n2", "dead");
	deck = deck_new("");
	says(deck, "vdisk list", 0, "without n2: agent t.n2 went away");
	says(deck, "policy create gold raid=1", 0, "without n2: ");
	says(deck, "drive probe /x node=n2", 1, "node n2 is not connected");
	says(deck, "agent status", 0, "agent t.n2: agent t.n2 went away");
	/* it comes back when it is asked for */
	fake_is("t.n2", NULL);
	says(deck, "resume", 0, "attached");
	says(deck, "drive probe /x node=n2", 0, "");
	deck_close(deck);
	fake_is("t.n2", "refuses");
	deck = deck_new("");
	says(deck, "vdisk list", 0, "without n2: no such drives");
	deck_close(deck);
	fake_is("t.n1", "dead");
	fake_is("t.n2", "dead");
	fake_is("t.n3", "dead");
	deck = deck_new("");
	says(deck, "vdisk list", 1, "n1: agent t.n1 went away");
	deck_close(deck);
	fake_is("t.n1", NULL);
	fake_is("t.n2", NULL);
	fake_is("t.n3", NULL);
}

static void check_says(const char *facts, int status, const char *words)
{
	struct deck *deck;

	setenv("CHECK_t.n2", facts, 1);
	deck = deck_new("");
	says(deck, "node check", status, words);
	deck_close(deck);
	unsetenv("CHECK_t.n2");
}

/* A verdict a line, and what to do. */
static void test_check(void **unused)
{
	struct deck *deck = deck_new("");

	(void)unused;
	says(deck, "node check", 0, " 0 bad, ");
	/* to look is not to open */
	assert_int_equal(logged("t.", "cluster_open"), 0);
	assert_int_equal(logged("t.", "link_measure"), 3);
	says(deck, "node check", 0,
	     "n1-n2   link     ok   1000 Mbit/s there, 200 back, round trip "
	     "0.12 ms");
	says(deck, "vdisk list", 0, "");
	assert_int_equal(logged("t.", "cluster_open"), 3);
	deck_close(deck);
	check_says("{\"state_dir\":{\"ok\":true,\"free_bytes\":5}}", 1,
		   "n2      space    BAD");
	check_says("{\"tools\":{\"nbdkit\":{\"ok\":false,\"error\":\"none\"}}}",
		   1, "other nodes cannot use its drives: none");
	check_says("{\"io_uring\":{\"ok\":false,\"error\":\"x\"}}", 0,
		   "n2      io       warn threads, as io_uring");
	check_says("{\"drives\":[{\"ok\":false,\"path\":\"/q\","
		   "\"error\":\"No such device\"}]}",
		   1, "n2      drive    BAD  /q: No such device");
	check_says("{\"drives\":[{\"ok\":true,\"path\":\"/q\","
		   "\"writable\":true,\"verdict\":\"data\","
		   "\"reason\":\"ext4\"}]}",
		   1, "/q: data, ext4");
	check_says("{\"drives\":[{\"ok\":true,\"path\":\"/q\"}]}", 1,
		   "may not write there");
	fake_is("t.n2", "skew=7200000000");
	check_says("{}", 0, "n2      clock    warn 120 min before");
	fake_is("t.n2", "dead");
	check_says("{}", 1, "n2      reach    BAD  agent t.n2 went away");
	fake_is("t.n1", "dead");
	fake_is("t.n3", "dead");
	check_says("{}", 1, "3 checks, 3 bad");
	fake_is("t.n1", NULL);
	fake_is("t.n2", NULL);
	fake_is("t.n3", NULL);
}

/* What all of them say stands in one session, and none of it twice. */
static void test_session(void **unused)
{
	const struct session_mark *mark;
	struct deck *deck;
	char path[64], say[96];

	(void)unused;
	snprintf(path, sizeof(path), "%s/s.jsonl.zst", dir);
	deck = deck_new(path);
	says(deck, "vdisk create v1 size=64M raid=1", 0, "v1");
	assert_int_equal(session_marks(deck->writer, &mark), 4);
	assert_string_equal(deck->session_path, path);
	assert_int_equal(deck->model->nodes, 3);
	assert_string_equal(model_node(deck->model, "n2")->state, "up");
	assert_true(model_node(deck->model, "n2")->offset_known);
	deck_close(deck);
	assert_int_equal(logged("t.", path), 3); /* each was told */
	/* of one that runs goes on, with what the others say */
	snprintf(say, sizeof(say), "running session=%s", path);
	fake_is("t.n3", say);
	deck = deck_new(NULL);
	says(deck, "vdisk list", 0, "v1");
	assert_string_equal(deck->session_path, path);
	assert_int_equal(session_marks(deck->writer, &mark), 8);
	deck_close(deck);
	fake_is("t.n3", NULL);
}

static int setup(void **unused)
{
	char conf[1024];

	(void)unused;
	if (!mkdtemp(dir))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	setenv("FAKE_LOG", log_path, 1);
	setenv("XDG_DATA_HOME", dir, 1);
	snprintf(conf, sizeof(conf),
		 "agent_program = \"/proc/self/exe\";\n"
		 "cluster = { name = \"t\"; domains = (\n"
		 "{ name = \"n1\"; node = { }; drives = ( ); },\n"
		 "{ name = \"n2\"; node = { }; drives = ( ); },\n"
		 "{ name = \"n3\"; node = { }; drives = ( ); } ); };\n");
	write_file("iodeck.conf", conf);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	return path_remove(dir, NULL);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_session),
	};

	fake_agent(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
