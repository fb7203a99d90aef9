/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The real daemon through the console's link: a run from end to end, deaths of
 * either side in the middle of one, two consoles, garbage, leases, a spool
 * that is full.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/event.h"
#include "lab.h"

static int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	lab_open(lab);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	lab_close(*state);
	free(*state);
	return 0;
}

static void nap_ms(long ms)
{
	const struct timespec nap = { .tv_sec = ms / 1000,
				      .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&nap, NULL);
}

static json_t *vdisk(const char *name, int mib, int raid)
{
	return json_pack("{s:s, s:i, s:i, s:s}", "name", name, "size_bytes",
			 mib << 20, "raid", raid, "layout", "inplace");
}

static void start_run(struct hears *h, const char *on, int points, int ms)
{
	hears_ask_ok(h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan(on, points, ms),
			       "run", "r1"));
}

static void check_whole(struct hears *h)
{
	assert_int_equal(h->doubles, 0);
	assert_int_equal(h->holes, 0);
}

static bool is_healthy(struct hears *h)
{
	const json_t *v = hears_find(h, "vdisk", "name", "db1");

	return v && !strcmp(json_string_value(json_object_get(v, "state")),
			    "healthy");
}

static bool is_degraded(struct hears *h)
{
	const json_t *v = hears_find(h, "vdisk", "name", "db1");

	return v && !strcmp(json_string_value(json_object_get(v, "state")),
			    "degraded");
}

static void verify(struct hears *h, const char *name)
{
	const json_t *answer =
		hears_ask(h, "vdisk_verify", json_pack("{s:s}", "name", name));

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(
		json_integer_value(json_object_get(answer, "mismatches")), 0);
}

static void refused(struct hears *h, const char *what, json_t *body, int code)
{
	const json_t *answer = hears_ask(h, what, body);

	assert_int_equal(json_integer_value(json_object_get(answer, "code")),
			 code);
	assert_true(strlen(json_string_value(
			    json_object_get(answer, "error"))) > 10);
}

/* ---- a run from end to end ---------------------------------------------- */

static void test_run(void **state)
{
	struct lab *lab = *state;
	struct stat st;
	struct hears h;
	char path[128];
	pid_t pid;

	hears_open(&h, lab,
		   &(struct hears_opts) { .spawn = true, .acks = true });
	assert_int_equal(h.state, LINK_UP);
	pid = lab_pid(lab);
	assert_int_equal(pid,
			 json_integer_value(json_object_get(h.hello, "pid")));
	snprintf(path, sizeof(path), "%s/t", lab->state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/t/sock", lab->state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);

	refused(&h, "vdisk_create", vdisk("db1", 16, 6), -ENODEV);
	refused(&h, "nonsense", NULL, -ENOSYS);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 16, 6));
	hears_ask_ok(&h, "vdisk_create", vdisk("db2", 8, 1));
	refused(&h, "vdisk_create", vdisk("db1", 16, 6), -EEXIST);
	refused(&h, "vdisk_create", vdisk("db3", 1024, 1), -ENOSPC);
	start_run(&h, "db1", 2, 500);
	refused(&h, "vdisk_set",
		json_pack("{s:s, s:i}", "name", "db2", "raid", 5), -EBUSY);
	refused(&h, "cluster_close", NULL, -EBUSY);
	refused(&h, "run_start", json_object(), -EBUSY);
	assert_true(hears_until(&h, run_is_over, 60));
	assert_non_null(hears_find(&h, "run_state", "state", "done"));
	assert_true(hears_count(&h, "sample") >= 10);
	assert_true(hears_count(&h, "usage") >= 5);
	assert_true(hears_count(&h, "host") >= 1);
	verify(&h, "db1");
	check_whole(&h);
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 30));
	assert_true(strlen(h.reason) > 10);
	hears_close(&h);
	for (int k = 0; k < 1000 && !kill(pid, 0); k++)
		nap_ms(10);
	assert_int_equal(lab_pid(lab), 0);
}

/* ---- drives come and go, policies change --------------------------------- */

static bool is_raid6(struct hears *h)
{
	const json_t *v = hears_find(h, "vdisk", "name", "db1");

	return is_healthy(h) &&
	       json_integer_value(json_object_get(v, "raid")) == 6;
}

static bool is_on_spare(struct hears *h)
{
	const json_t *v = hears_find(h, "vdisk", "name", "db1"), *m;
	size_t k;

	json_array_foreach(json_object_get(v, "members"), k, m)
		if (!strcmp(json_string_value(json_object_get(m, "domain")),
			    "n1"))
			return false;
	return is_healthy(h);
}

static void fault(struct hears *h, const char *text)
{
	hears_ask_ok(h, "fault", json_pack("{s:s}", "text", text));
}

static void test_repair(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	hears_open(&h, lab,
		   &(struct hears_opts) { .spawn = true, .acks = true });
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 16, 1));
	refused(&h, "fault", json_pack("{s:s}", "text", "drive n9:d0 offline"),
		-ENOENT);
	refused(&h, "fault", json_pack("{s:s}", "text", "drive n1:d0 burn"),
		-EINVAL);
	/* pulled and put back: rebuilt into by itself */
	fault(&h, "drive n1:d0 offline");
	assert_true(hears_until(&h, is_degraded, 10));
	fault(&h, "drive n1:d0 online");
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h, "db1");
	/* away for good: a spare in another domain takes its place */
	fault(&h, "domain n1 offline");
	assert_true(hears_until(&h, is_degraded, 10));
	assert_true(hears_until(&h, is_on_spare, 30));
	verify(&h, "db1");
	fault(&h, "domain n1 online");
	/* another policy */
	hears_ask_ok(&h, "vdisk_set",
		     json_pack("{s:s, s:i}", "name", "db1", "raid", 6));
	assert_true(hears_until(&h, is_raid6, 60));
	verify(&h, "db1");
	/* and all of it is there again after a closing */
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	assert_true(hears_until(&h, is_raid6, 30));
	hears_ask_ok(&h, "vdisk_delete", json_pack("{s:s}", "name", "db1"));
	check_whole(&h);
	hears_close(&h);
}

/* ---- the console dies ---------------------------------------------------- */

static size_t lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t count = 0;
	int c;

	while (f && (c = fgetc(f)) != EOF)
		count += c == '\n';
	if (f)
		fclose(f);
	return count;
}

/* Lives until it is killed. */
static void console_main(struct lab *lab, const char *path)
{
	struct hears h;

	hears_open(&h, lab,
		   &(struct hears_opts) {
			   .spawn = true,
			   .acks = true,
			   .file = open(path, O_WRONLY | O_CREAT | O_APPEND,
					0600) });
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 16, 5));
	start_run(&h, "db1", 3, 1000);
	for (;;)
		hears_turn(&h);
}

static void test_console_killed(void **state)
{
	struct lab *lab = *state;
	int64_t from[1][2];
	struct hears h;
	char path[128];
	pid_t child;

	snprintf(path, sizeof(path), "%s/heard", lab->dir);
	child = fork();
	if (!child)
		console_main(lab, path);
	for (int k = 0; k < 3000 && lines_of(path) < 25; k++)
		nap_ms(10);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(lines_of(path) >= 25);
	nap_ms(300); /* the run goes on meanwhile */

	/* one daemon, one incarnation, numbers from 1: lines are the mark */
	from[0][1] = (int64_t)lines_of(path);
	assert_true(lab_pid(lab) > 0);
	hears_open(&h, lab, &(struct hears_opts) { .watch = true });
	from[0][0] = json_integer_value(json_object_get(h.hello, "i"));
	assert_string_equal(
		json_string_value(json_object_get(h.hello, "state")),
		"running");
	assert_string_equal(json_string_value(json_object_get(h.hello, "run")),
			    "r1");
	assert_string_equal(
		json_string_value(json_object_get(h.hello, "session")),
		"/some/session");
	hears_close(&h);
	hears_open(&h, lab,
		   &(struct hears_opts) { .from = (const int64_t(*)[2])from,
					  .from_count = 1,
					  .acks = true });
	assert_int_equal(h.state, LINK_UP);
	assert_true(hears_until(&h, run_is_over, 60));
	assert_non_null(hears_find(&h, "run_state", "state", "done"));
	check_whole(&h);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(h.event, 0), "n")),
			 from[0][1] + 1);
	hears_close(&h);
}

/* ---- the daemon dies ----------------------------------------------------- */

static bool has_samples(struct hears *h)
{
	return hears_count(h, "sample") >= 5;
}

static int64_t chosen[1][2];

static void choose_early(struct hears *h)
{
	link_conn_from(h->link, "/s", (const int64_t(*)[2])chosen, 1);
}

static bool heard_two_lives(struct hears *h)
{
	return h->last_i != chosen[0][0] && hears_count(h, "host") >= 1;
}

static void test_daemon_killed(void **state)
{
	struct lab *lab = *state;
	int64_t heard_n;
	struct err err;
	struct hears h;

	hears_open(&h, lab, &(struct hears_opts) { .spawn = true });
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 16, 6));
	start_run(&h, "db1", 1, 60000);
	assert_true(hears_until(&h, has_samples, 30));
	kill(lab_pid(lab), SIGKILL);
	/* a request in flight is answered with nothing, once */
	if (link_conn_ask(h.link, "ping", NULL, NULL, NULL) > 0)
		assert_true(hears_until(&h, link_is_down, 10));
	assert_true(hears_until(&h, link_is_down, 10));
	assert_non_null(strstr(h.reason, "agent t is gone"));
	check_whole(&h);
	heard_n = h.last_n;

	/* the next life brings what the first had not seen acknowledged */
	chosen[0][0] = h.last_i;
	chosen[0][1] = 3;
	h.choose = choose_early;
	json_array_clear(h.event);
	h.last_n = 3;
	assert_int_equal(link_conn_retry(h.link, &err), 0);
	assert_true(hears_until(&h, heard_two_lives, 30));
	check_whole(&h);
	assert_int_equal(h.last_i, chosen[0][0] + 1);
	for (size_t k = 0; k < (size_t)heard_n - 3; k++) {
		const json_t *event = json_array_get(h.event, k);

		assert_int_equal(
			json_integer_value(json_object_get(event, "i")),
			chosen[0][0]);
		assert_int_equal(
			json_integer_value(json_object_get(event, "n")),
			(json_int_t)k + 4);
	}
	/* and the vDisk opens by its labels and is sound */
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h, "db1");
	hears_close(&h);
}

/* ---- more than one console ------------------------------------------------
 */

static void test_two_consoles(void **state)
{
	struct lab *lab = *state;
	struct hears a, b, w;

	hears_open(&a, lab, &(struct hears_opts) { .spawn = true });
	hears_open(&b, lab, &(struct hears_opts) { .spawn = true });
	assert_int_equal(b.state, LINK_DOWN);
	assert_non_null(strstr(b.reason, "has a console already"));
	hears_close(&b);
	hears_open(&w, lab, &(struct hears_opts) { .watch = true });
	assert_int_equal(w.state, LINK_UP);
	refused(&w, "quit", NULL, -EPERM);
	hears_open(&b, lab, &(struct hears_opts) { .take = true });
	assert_int_equal(b.state, LINK_UP);
	assert_true(hears_until(&a, link_is_down, 10));
	assert_non_null(strstr(a.reason, "taken over"));
	hears_ask_ok(&b, "ping", NULL);
	/* an owner that left is nobody */
	hears_close(&b);
	hears_open(&b, lab, &(struct hears_opts) { 0 });
	assert_int_equal(b.state, LINK_UP);
	check_whole(&w);
	assert_true(hears_until(&w, has_samples, 0) == false);
	hears_close(&a);
	hears_close(&b);
	hears_close(&w);
}

/* ---- garbage, strangers ----------------------------------------------------
 */

static void script(struct lab *lab, char *path, size_t size, const char *text)
{
	FILE *f;

	snprintf(path, size, "%s/fake", lab->dir);
	f = fopen(path, "w");
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	chmod(path, 0700);
}

static void reason_of(struct lab *lab, const char *text, const char *reason)
{
	struct hears h;
	char path[128];

	script(lab, path, sizeof(path), text);
	hears_open(&h, lab, &(struct hears_opts) { .program = path });
	assert_int_equal(h.state, LINK_DOWN);
	if (!strstr(h.reason, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, h.reason);
	hears_close(&h);
}

/* What answers is no agent, or another's, or none: said in words. */
static void test_strangers(void **state)
{
	struct lab *lab = *state;
	struct link_conn_opts opts = { .agent = "t", .program = "/nowhere/x" };
	struct link_conn *c;
	struct err err;

	reason_of(lab,
		  "echo '{\"iodeck\":\"agent\",\"v\":2,\"a\":\"t\",\"i\":1,"
		  "\"version\":\"9.9.9\"}'; sleep 5",
		  "is iodeck 9.9.9 and speaks protocol 2");
	reason_of(lab, "echo hello; sleep 5", "no protocol");
	reason_of(lab, "echo '{}'; sleep 5", "no iodeck-agent");
	reason_of(lab,
		  "echo '{\"iodeck\":\"agent\",\"v\":1,\"a\":\"u\"}'; sleep 5",
		  "got u");
	reason_of(lab, "echo no key for you >&2; exit 255", "no key for you");
	reason_of(lab, "exit 0", "went away");
	reason_of(lab, "exec '$0' attach --name t --state-dir /nowhere/at/all",
		  "");
	assert_int_equal(link_conn_open(&opts, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/x"));
}

static void test_garbage(void **state)
{
	struct lab *lab = *state;
	pid_t pid = lab_daemon(lab, "");
	char command[512];

	/* one answer, then the end; the daemon lives on */
	snprintf(command, sizeof(command),
		 "printf 'rubbish\\n{\"id\":1,\"do\":\"ping\"}\\n' | "
		 "( cat; sleep 2 ) | '%s' attach --name t --state-dir '%s' | "
		 "tail -n 1 | grep -q '\"ok\":false.*line 1'",
		 lab->program, lab->state);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command),
		 "head -c 3000000 /dev/zero | tr '\\0' x | "
		 "'%s' attach --name t --state-dir '%s' >'%s/out'",
		 lab->program, lab->state, lab->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(lab_pid(lab), pid);
	/* one daemon a name */
	snprintf(command, sizeof(command),
		 "'%s' daemon --name t --state-dir '%s' 2>&1 | "
		 "grep -q 'runs already'",
		 lab->program, lab->state);
	assert_int_equal(system(command), 0);
	assert_int_equal(lab_pid(lab), pid);
}

/* ---- leases ----------------------------------------------------------------
 */

static void test_leases(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	lab_daemon(lab, "--lease-idle 1");
	hears_open(&h, lab, &(struct hears_opts) { 0 });
	assert_int_equal(h.state, LINK_UP);
	nap_ms(1500);
	assert_true(lab_pid(lab) > 0); /* it has an owner */
	hears_close(&h);
	for (int k = 0; k < 1000 && lab_pid(lab); k++)
		nap_ms(10);
	assert_int_equal(lab_pid(lab), 0);

	/* one that only watches is a console, too */
	lab_daemon(lab, "--lease-idle 1");
	hears_open(&h, lab, &(struct hears_opts) { .watch = true });
	for (int k = 0; k < 60; k++)
		hears_turn(&h);
	assert_int_equal(h.state, LINK_UP);
	assert_true(lab_pid(lab) > 0);
	hears_close(&h);
	for (int k = 0; k < 1000 && lab_pid(lab); k++)
		nap_ms(10);
	assert_int_equal(lab_pid(lab), 0);
	/* a run outlives the idle lease, not its own; what came of it waits */
	lab_daemon(lab, "--lease-idle 1 --lease-run 3");
	hears_open(&h, lab, &(struct hears_opts) { .acks = true });
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
	start_run(&h, "db1", 1, 60000);
	hears_close(&h);
	nap_ms(1800);
	assert_true(lab_pid(lab) > 0);
	for (int k = 0; k < 1500 && lab_pid(lab); k++)
		nap_ms(10);
	assert_int_equal(lab_pid(lab), 0);
	hears_open(&h, lab, &(struct hears_opts) { .spawn = true });
	assert_true(hears_until(&h, run_is_over, 10));
	assert_non_null(hears_find(&h, "run_state", "state", "stopped"));
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	assert_true(hears_until(&h, is_healthy, 10));
	hears_close(&h);
}

/* ---- a spool that is full ---------------------------------------------------
 */

/* Every number is heard or named by a gap. */
static void check_gaps(struct hears *h)
{
	int64_t next = 0;
	const json_t *event;
	json_t *covered = json_object();
	char key[24];
	size_t k;

	json_array_foreach(h->event, k, event) {
		int64_t from, to;

		if (strcmp(json_string_value(json_object_get(event, "e")),
			   "gap") != 0)
			continue;
		from = json_integer_value(json_object_get(event, "from"));
		to = json_integer_value(json_object_get(event, "to"));
		assert_true(from <= to);
		for (; from <= to; from++) {
			snprintf(key, sizeof(key), "%lld", (long long)from);
			json_object_set_new(covered, key, json_true());
		}
	}
	json_array_foreach(h->event, k, event) {
		int64_t n = json_integer_value(json_object_get(event, "n"));

		for (; next && next < n; next++) {
			snprintf(key, sizeof(key), "%lld", (long long)next);
			assert_non_null(json_object_get(covered, key));
		}
		next = n + 1;
	}
	json_decref(covered);
}

static bool has_gap(struct hears *h)
{
	return hears_count(h, "gap") > 0;
}

static void test_spool_full(void **state)
{
	struct lab *lab = *state;
	char name[64], *text = malloc(300001);
	struct hears h;

	lab_daemon(lab, "--spool-max 65536");
	hears_open(&h, lab, &(struct hears_opts) { 0 });
	/* nothing is acknowledged: the disk's share is soon full, then memory;
	 * padding makes it quick */
	memset(text, 'x', 300000);
	text[300000] = '\0';
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
	for (int k = 0; k < 60; k++) {
		json_t *plan = lab_plan("db1", 0, 0);

		json_object_set_new(plan, "padding", json_string(text));
		json_object_set_new(plan, "phases",
				    json_pack("[{s:s, s:s}]", "kind", "note",
					      "text", "full"));
		snprintf(name, sizeof(name), "r%d", k);
		hears_ask_ok(
			&h, "run_start",
			json_pack("{s:o, s:s}", "plan", plan, "run", name));
	}
	free(text);
	h.acks = true;
	link_conn_ack(h.link, h.last_i, h.last_n);
	assert_true(hears_until(&h, has_gap, 20));
	assert_int_equal(h.doubles, 0);
	check_gaps(&h);
	hears_close(&h);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_run),
		TEST(test_repair),
		TEST(test_console_killed),
		TEST(test_daemon_killed),
		TEST(test_two_consoles),
		TEST(test_strangers),
		TEST(test_garbage),
		TEST(test_leases),
		TEST(test_spool_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
