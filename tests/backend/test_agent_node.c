/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A node: the same agent, reached over a real sshd. What the console does with
 * one of this machine it does with one of those, and a link that goes comes
 * back without gap or double.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/agent/tools.h"
#include "backend/bundle/bundle.h"
#include "backend/deck_impl.h"
#include "lab.h"
#include "sshlab.h"

static struct sshlab ssh;
static struct lab here;
static struct node node;
static char state[128];

static void node_by(enum transport_way way)
{
	node = (struct node) { .host = { .host = "127.0.0.1",
					 .port = ssh.port,
					 .config = ssh.config,
					 .way = way },
			       .program = here.program,
			       .state_dir = here.state };
}

/* The connections of sshd, one process each. */
static void links_signal(const char *name)
{
	sshlab_shell("for f in /proc/[0-9]*/task/*/children; do "
		     "case $f in /proc/%d/*) cat $f;; esac; done "
		     "2>/dev/null | xargs -r kill -%s",
		     (int)ssh.pid, name);
}

static void links_cut(void)
{
	links_signal("KILL");
}

static void attach(struct hears *h)
{
	hears_open(h, &here,
		   &(struct hears_opts) {
			   .spawn = true, .acks = true, .node = &node });
	if (h->state != LINK_UP)
		fail_msg("%s", h->reason);
}

static void test_node(void **unused)
{
	static const enum transport_way ways[] = { TRANSPORT_SSH2,
						   TRANSPORT_SSH };
	static const char *const via[] = { "libssh2", "ssh" };
	struct hears h;
	struct err err;

	(void)unused;
	for (size_t k = 0; k < array_len(ways); k++) {
		node_by(ways[k]);
		attach(&h);
		assert_string_equal(link_conn_via(h.link), via[k]);
		hears_ask_ok(&h, "drive_probe",
			     json_pack("{s:s}", "path", here.dir));
		/* the link goes, the agent does not */
		links_cut();
		assert_true(hears_until(&h, link_is_down, 30));
		assert_true(link_conn_code(h.link) < 0);
		assert_true(lab_pid(&here) > 0);
		assert_int_equal(link_conn_retry(h.link, &err), 0);
		assert_true(hears_until(&h, link_is_up, 60));
		hears_ask_ok(&h, "drive_probe",
			     json_pack("{s:s}", "path", here.dir));
		assert_int_equal(h.doubles, 0);
		assert_int_equal(h.holes, 0);
		hears_close(&h);
	}
}

/* A run goes on while nobody hears it; nothing of it is missing after. */
static void test_run(void **unused)
{
	struct hears h;
	struct err err;

	(void)unused;
	node_by(TRANSPORT_AUTO);
	attach(&h);
	hears_ask_ok(&h, "cluster_open", lab_cluster(&here, 3, 64));
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "v",
			       "size_bytes", 16 << 20, "raid", 1, "layout",
			       "inplace"));
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan("v", 2, 1500),
			       "run", "r1"));
	links_cut();
	assert_true(hears_until(&h, link_is_down, 30));
	sleep(2);
	assert_int_equal(link_conn_retry(h.link, &err), 0);
	assert_true(hears_until(&h, link_is_up, 60));
	assert_true(hears_until(&h, run_is_over, 90));
	assert_non_null(hears_find(&h, "run_state", "state", "done"));
	assert_true(hears_count(&h, "sample") > 10);
	assert_int_equal(h.doubles, 0);
	assert_int_equal(h.holes, 0);
	hears_close(&h);
}

/* A host that stands still says nothing for ever: the ping finds it. */
static void test_stopped(void **unused)
{
	struct hears h;

	(void)unused;
	node_by(TRANSPORT_SSH2);
	attach(&h);
	links_signal("STOP");
	assert_true(hears_until(&h, link_is_down, 60));
	assert_non_null(strstr(h.reason, "has not answered for"));
	links_signal("CONT");
	hears_close(&h);
}

/* An agent that ended is no lost link: nobody starts it again unasked. */
static void test_ended(void **unused)
{
	static const enum transport_way ways[] = { TRANSPORT_SSH2,
						   TRANSPORT_SSH };
	struct hears h;

	(void)unused;
	for (size_t k = 0; k < array_len(ways); k++) {
		node_by(ways[k]);
		attach(&h);
		hears_ask_ok(&h, "quit", NULL);
		assert_true(hears_until(&h, link_is_down, 60));
		assert_int_equal(link_conn_code(h.link), 0);
		hears_close(&h);
	}
}

/* Nothing is installed there: it is brought over, once. */
static void test_brought(void **unused)
{
	struct hears h;
	struct bundle bundle;
	struct err err;

	(void)unused;
	if (bundle_find(&bundle, &err)) {
		printf("this build makes no bundle\n");
		skip();
	}
	node_by(TRANSPORT_AUTO);
	node.program = NULL;
	attach(&h);
	assert_non_null(strstr(link_conn_via(h.link), "brought iodeck over"));
	hears_ask_ok(&h, "drive_probe", json_pack("{s:s}", "path", here.dir));
	sshlab_shell("[ /proc/%d/exe -ef %s/.bundle/%s/lib/" TOOL_LOADER " ]",
		     (int)lab_pid(&here), here.state, bundle.hash);
	/* and holds what it runs from */
	sshlab_shell("! flock -n %s/.bundle/%s/MANIFEST true", here.state,
		     bundle.hash);
	links_cut();
	assert_true(hears_until(&h, link_is_down, 30));
	assert_int_equal(link_conn_retry(h.link, &err), 0);
	assert_true(hears_until(&h, link_is_up, 60));
	assert_string_equal(link_conn_via(h.link), "libssh2");
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 60));
	hears_close(&h);
}

/* ---- the console -------------------------------------------------------- */

static void config_write(const char *more)
{
	char drive[96];

	snprintf(drive, sizeof(drive), "%s/d0", here.dir);
	mkdir(drive, 0700);
	sshlab_write(&ssh, "iodeck.conf",
		     "cluster = { name = \"t\";\n"
		     "  node = { host = \"127.0.0.1\"; port = %u;\n"
		     "    ssh_config = \"%s\"; program = \"%s\";\n"
		     "    state_dir = \"%s\"; %s };\n"
		     "  domains = ( { name = \"n1\"; drives = ( { name = "
		     "\"d0\"; path = \"%s/d0\"; size = \"64M\"; } ); } ); };\n",
		     ssh.port, ssh.config, here.program, here.state, more,
		     here.dir);
}

static struct deck *deck_new(void)
{
	char path[160];
	const struct deck_opts opts = { .config_path = path,
					.session_path = "" };
	struct deck *deck;
	struct err err;

	snprintf(path, sizeof(path), "%s/iodeck.conf", ssh.dir);
	if (deck_open(&opts, &deck, &err))
		fail_msg("%s", err.text);
	return deck;
}

static void deck_says(struct deck *deck, const char *a, const char *b,
		      int status, const char *words)
{
	char *const argv[] = { (char *)a, (char *)b, NULL };
	struct outcome o = { 0 };

	deck_do_wait(deck, 2, argv, 60000, &o);
	if (o.status != status || !o.text || !strstr(o.text, words))
		fail_msg("%s %s: %d \"%s\", not %d \"%s\"", a, b, o.status,
			 o.text ? o.text : "", status, words);
	outcome_free(&o);
}

static enum deck_link deck_until(struct deck *deck, enum deck_link want)
{
	struct deck_status status = { 0 };
	int64_t end = deck_clock() + 60000000;

	do {
		deck_wait(deck, deck_clock() + 50000);
		deck_step(deck);
		deck_status(deck, &status);
	} while (status.link != want && deck_clock() < end);
	if (status.link != want)
		fail_msg("%d, not %d: %s", status.link, want, status.text);
	return status.link;
}

static void test_console(void **unused)
{
	struct deck *deck;

	(void)unused;
	config_write("");
	deck = deck_new();
	deck_says(deck, "node", "check", 0, "ok, by libssh2");
	deck_says(deck, "node", "list", 0, "n1");
	/* it comes back by itself */
	links_cut();
	deck_until(deck, LINK_CONNECTING);
	deck_until(deck, LINK_LIVE);
	deck_says(deck, "agent", "status", 0, "by libssh2");
	/* sshd is away for a while: it tries again */
	links_cut();
	sshlab_stop(&ssh);
	deck_until(deck, LINK_CONNECTING);
	sleep(2);
	sshlab_sshd(&ssh, "");
	deck_until(deck, LINK_LIVE);
	deck_says(deck, "drive", "list", 0, "n1:d0");
	deck_says(deck, "agent", "stop", 0, "ended");
	deck_close(deck);
	config_write("transport = \"ssh\";");
	deck = deck_new();
	deck_says(deck, "node", "check", 0, "ok, by ssh");
	deck_close(deck);
}

static void test_refused(void **unused)
{
	struct deck *deck;

	(void)unused;
	config_write("");
	sshlab_write(&ssh, "known_hosts", "%s", "");
	deck = deck_new();
	deck_says(deck, "node", "check", 1, "ssh-keyscan");
	assert_int_equal(deck->fleet->node->retry_at_us, 0);
	deck_close(deck);
	sshlab_known(&ssh);
	config_write("become = \"sh -c false --\";");
	deck = deck_new();
	deck_says(deck, "node", "check", 1, "status 1");
	deck_close(deck);
}

/* Two nodes; one has an agent that was brought, the other has nothing. */
static void nodes_write(void)
{
	sshlab_write(&ssh, "iodeck.conf",
		     "cluster = { name = \"t\";\n"
		     "  node = { port = %u; ssh_config = \"%s\"; };\n"
		     "  domains = (\n"
		     "    { name = \"n1\"; node = { host = \"127.0.0.1\"; "
		     "state_dir = \"%s/s1\"; };\n"
		     "      drives = ( { name = \"d0\"; path = \"%s/d1\"; } ); "
		     "},\n"
		     "    { name = \"n2\"; node = { host = \"127.0.0.1\"; "
		     "state_dir = \"%s/s2\"; };\n"
		     "      drives = ( { name = \"d0\"; path = \"%s/d2\"; } ); "
		     "} ); };\n",
		     ssh.port, ssh.config, here.dir, here.dir, here.dir,
		     here.dir);
}

static void clean_says(struct deck *deck, const char *which, int status,
		       const char *words)
{
	char *const argv[] = { "node", "clean", (char *)which, NULL };
	struct outcome o = { 0 };

	deck_do_wait(deck, 3, argv, 120000, &o);
	if (o.status != status || !o.text || !strstr(o.text, words))
		fail_msg("%s: %d \"%s\", not %d \"%s\"", which, o.status,
			 o.text ? o.text : "", status, words);
	outcome_free(&o);
}

static void test_clean(void **unused)
{
	struct deck *deck;
	struct bundle bundle;
	struct lab lab = here;
	struct hears h;
	struct err err;

	(void)unused;
	if (bundle_find(&bundle, &err)) {
		printf("this build makes no bundle\n");
		skip();
	}
	nodes_write();
	deck = deck_new();
	clean_says(deck, "n3", 2, "there is no node n3");
	clean_says(deck, "n2", 0, "n2: nothing of iodeck is in");
	node_by(TRANSPORT_AUTO);
	snprintf(lab.state, sizeof(lab.state), "%.70s/s1", here.dir);
	strcpy(lab.name, "t.n1");
	node.program = NULL;
	node.state_dir = lab.state;
	hears_open(&h, &lab,
		   &(struct hears_opts) { .spawn = true, .node = &node });
	assert_int_equal(h.state, LINK_UP);
	sshlab_shell("[ -d %s/t.n1 ] && touch %s/mine", lab.state, here.dir);
	clean_says(deck, "all", 0, "n1: agent t.n1 has ended");
	assert_true(hears_until(&h, link_is_down, 30));
	hears_close(&h);
	sshlab_shell("cd %s && [ ! -e s1 ] && [ ! -e s2 ] && [ -f mine ]",
		     here.dir);
	clean_says(deck, "n1", 0, "nothing of iodeck");
	sshlab_stop(&ssh);
	clean_says(deck, "all", 1, "n2: ");
	sshlab_sshd(&ssh, "");
	deck_close(deck);
}

static int setup(void **unused)
{
	(void)unused;
	lab_open(&here);
	snprintf(state, sizeof(state), "%s/state", ssh.dir);
	setenv("XDG_STATE_HOME", state, 1);
	setenv("XDG_DATA_HOME", state, 1);
	sshlab_sshd(&ssh, "");
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	sshlab_close(&ssh);
	lab_close(&here);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node),    cmocka_unit_test(test_run),
		cmocka_unit_test(test_stopped), cmocka_unit_test(test_ended),
		cmocka_unit_test(test_brought), cmocka_unit_test(test_console),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_clean),
	};

	if (!sshlab_open(&ssh))
		return 77;
	return cmocka_run_group_tests(tests, setup, teardown);
}
