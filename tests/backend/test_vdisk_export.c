/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisks of the real daemon exported by NBD, in both layouts, to qemu-img,
 * nbdcopy and fio; and what happens when nbdkit, a client, the vDisk or the
 * agent goes while they are at it.
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

#include "engine/base.h"
#include "lab.h"

#define VDISK_MIB 16

static void attach(struct hears *h, struct lab *lab)
{
	hears_attach(h, lab);
	hears_ask_ok(h, "cluster_open", lab_cluster(lab, 3, 256));
	hears_ask_ok(h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "db1",
			       "size_bytes", VDISK_MIB << 20, "raid", 5,
			       "layout", lab_layout));
}

static json_t *of_db1(void)
{
	return json_pack("{s:s}", "name", "db1");
}

static void quit(struct hears *h)
{
	hears_ask_ok(h, "quit", NULL);
	assert_true(hears_until(h, link_is_down, 30));
	hears_close(h);
}

/* Exports it; its URI. */
static void export(struct hears *h, json_t *request, char *uri, size_t size)
{
	const json_t *r = hears_ask(h, "vdisk_export", request);
	const char *text = json_string_value(
		json_object_get(json_object_get(r, "export"), "uri"));

	if (!text)
		print_message("%s\n",
			      json_string_value(json_object_get(r, "error")));
	assert_non_null(text);
	snprintf(uri, size, "%s", text);
}

static void export_db1(struct hears *h, char *uri, size_t size)
{
	export(h, of_db1(), uri, size);
}

static ID_PRINTF(1, 2) int shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;
	int status;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A client that writes and reads without an end. */
static pid_t load_start(const struct lab *lab, const char *uri)
{
	char command[1024];
	pid_t pid;

	snprintf(command, sizeof(command),
		 "cd %s && exec fio --name=load --thread --ioengine=nbd "
		 "--uri='%s' --rw=randrw --bs=4k --iodepth=64 --runtime=60 "
		 "--time_based "
		 "--size=%dm >load.out 2>&1",
		 lab->dir, uri, VDISK_MIB);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static const json_t *told(struct hears *h, const char *member)
{
	return json_object_get(
		json_object_get(hears_find(h, "vdisk", "name", "db1"),
				"export"),
		member);
}

static void turn_for(struct hears *h, int ms)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		hears_turn(h);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 +
			 (now.tv_nsec - from.tv_nsec) / 1000000 <
		 ms);
}

static bool is_written(struct hears *h)
{
	const json_t *list =
		json_object_get(hears_find(h, "usage", NULL, NULL), "exports");

	return json_number_value(json_object_get(json_array_get(list, 0),
						 "write_iops")) > 0;
}

/* Turns until it has I/O at the vDisk. */
static void load_wait(struct hears *h)
{
	json_array_clear(h->event);
	assert_true(hears_until(h, is_written, 30));
}

static void load_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The nbdkit of the export: its process id. */
static pid_t nbdkit_pid(const struct lab *lab)
{
	char command[256], line[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "cat %s/*/export.db1.pid",
		 lab->state);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	return (pid_t)atoi(line);
}

static bool is_gone(pid_t pid)
{
	for (int k = 0; k < 500 && !kill(pid, 0); k++)
		nanosleep(&(struct timespec) { .tv_nsec = 20000000 }, NULL);
	return kill(pid, 0) && errno == ESRCH;
}

static bool is_up_again(struct hears *h)
{
	const char *state = json_string_value(told(h, "state"));

	return state && !strcmp(state, "up") &&
	       json_integer_value(told(h, "restarts")) > 0;
}

/* ---- tests -------------------------------------------------------------- */

/* Written by one and read by the others, whole blocks or not. */
static void test_clients(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;

	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	assert_int_equal(shell("cd %s && head -c %dM /dev/urandom >src &&"
			       "nbdcopy src '%s' && nbdcopy '%s' back &&"
			       "cmp src back",
			       lab->dir, VDISK_MIB, uri, uri),
			 0);
	assert_int_equal(shell("cd %s && qemu-img compare -f raw -F raw src "
			       "'%s' >/dev/null",
			       lab->dir, uri),
			 0);
	assert_int_equal(shell("cd %s && head -c %dM /dev/urandom >src &&"
			       "truncate -s %dM src && qemu-img convert -n "
			       "-f raw -O raw src '%s' && nbdcopy '%s' back "
			       "&& cmp src back",
			       lab->dir, VDISK_MIB / 2, VDISK_MIB, uri, uri),
			 0);
	assert_int_equal(shell("cd %s && fio --name=v --ioengine=nbd "
			       "--uri='%s' --rw=randwrite --bsrange=512-64k "
			       "--bs_unaligned=0 --iodepth=16 --size=8m "
			       "--verify=crc32c --do_verify=1 >fio.out 2>&1 "
			       "|| { cat fio.out; false; }",
			       lab->dir, uri),
			 0);
	hears_ask_refused(&h, "vdisk_export", of_db1(), -EEXIST,
			  "exported already");
	hears_ask_ok(&h, "vdisk_unexport", of_db1());
	assert_int_not_equal(shell("nbdinfo '%s' >/dev/null 2>&1", uri), 0);
	hears_ask_refused(&h, "vdisk_unexport", of_db1(), -ENOENT,
			  "not exported");
	assert_string_equal(hears_vdisk_text(&h, "db1", "state"), "healthy");
	quit(&h);
}

/* nbdkit is killed under a load: it is there again, and serves. */
static void test_nbdkit_killed(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;
	pid_t load;

	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	load = load_start(lab, uri);
	load_wait(&h);
	assert_int_equal(kill(nbdkit_pid(lab), SIGKILL), 0);
	assert_true(hears_until(&h, is_up_again, 20));
	load_kill(load);
	assert_int_equal(shell("cd %s && head -c %dM /dev/urandom >src &&"
			       "nbdcopy src '%s' && nbdcopy '%s' back &&"
			       "cmp src back",
			       lab->dir, VDISK_MIB, uri, uri),
			 0);
	assert_string_equal(hears_vdisk_text(&h, "db1", "state"), "healthy");
	quit(&h);
}

/* A client is killed with I/O in flight; then the vDisk is deleted under
 * another: both end, and leave nothing. */
static void test_client_and_vdisk_gone(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;
	pid_t load, nbdkit;

	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	load = load_start(lab, uri);
	load_wait(&h);
	load_kill(load);
	for (int k = 0;
	     k < 50 && shell("nbdinfo --size '%s' >/dev/null 2>&1", uri); k++)
		turn_for(&h, 100);
	assert_int_equal(shell("nbdinfo --size '%s' >/dev/null", uri), 0);
	nbdkit = nbdkit_pid(lab);
	load = load_start(lab, uri);
	load_wait(&h);
	hears_ask_ok(&h, "vdisk_delete", of_db1());
	assert_true(is_gone(nbdkit));
	load_kill(load);
	assert_int_equal(shell("ls %s/*/export.* 2>/dev/null", lab->state), 2);
	quit(&h);
}

/* A run and an export do not go together. */
static void test_run_refused(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;

	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	hears_ask_refused(&h, "run_start",
			  json_pack("{s:o, s:s}", "plan",
				    lab_plan("db1", 1, 500), "run", "r1"),
			  -EBUSY, "is exported");
	hears_ask_ok(&h, "vdisk_unexport", of_db1());
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan("db1", 1, 1500),
			       "run", "r1"));
	hears_ask_refused(&h, "vdisk_export", of_db1(), -EBUSY, "run is over");
	assert_true(hears_until(&h, run_is_over, 60));
	quit(&h);
}

static bool is_told_gone(struct hears *h)
{
	return !told(h, "uri");
}

/* A network's: with a key, and what is refused. */
static void test_tcp(void **state)
{
	struct lab *lab = *state;
	char uri[512], key[256], *at;
	struct stat st;
	struct hears h;
	json_t *tcp;

	attach(&h, lab);
	hears_ask_refused(&h, "vdisk_export",
			  json_pack("{s:s,s:s}", "name", "db1", "socket", "x"),
			  -EINVAL, "absolute path");
	hears_ask_refused(
		&h, "vdisk_export",
		json_pack("{s:s,s:s}", "name", "db1", "socket", lab->dir),
		-EEXIST, "there already");
	hears_ask_refused(
		&h, "vdisk_export",
		json_pack("{s:s,s:s}", "name", "db1", "address", "some.host"),
		-EINVAL, "numeric address");
	hears_ask_refused(&h, "vdisk_export",
			  json_pack("{s:s,s:i}", "name", "db1", "port", 1),
			  -EINVAL, "needs an address");
	/* of no interface here: nbdkit says why */
	hears_ask_refused(
		&h, "vdisk_export",
		json_pack("{s:s,s:s}", "name", "db1", "address", "192.0.2.1"),
		-EIO, "cannot be exported");
	assert_true(hears_until(&h, is_told_gone, 10));
	tcp = json_pack("{s:s,s:s,s:i}", "name", "db1", "address", "127.0.0.1",
			"port", 20000 + getpid() % 20000);
	export(&h, tcp, uri, sizeof(uri));
	at = strstr(uri, "tls-psk-file=");
	assert_non_null(at);
	snprintf(key, sizeof(key), "%s", at + strlen("tls-psk-file="));
	assert_int_equal(stat(key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(shell("nbdinfo --size '%s' >/dev/null", uri), 0);
	*strchr(uri, '?') = '\0';
	assert_int_not_equal(shell("nbdinfo 'nbd://%s' >/dev/null 2>&1",
				   strchr(uri, '@') + 1),
			     0);
	hears_ask_ok(&h, "vdisk_unexport", of_db1());
	assert_int_equal(access(key, F_OK), -1);
	quit(&h);
}

/* The agent is killed: nobody goes on serving what it owned. */
static void test_agent_killed(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;
	pid_t nbdkit, agent;

	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	nbdkit = nbdkit_pid(lab);
	agent = lab_pid(lab);
	kill(agent, SIGKILL);
	assert_true(is_gone(nbdkit));
	assert_true(hears_until(&h, link_is_down, 20));
	hears_close(&h);
	/* what it left does not stand in the way of the next */
	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 256));
	export_db1(&h, uri, sizeof(uri));
	assert_int_equal(shell("nbdinfo --size '%s' >/dev/null", uri), 0);
	quit(&h);
}

/* What others use does not end with the console: it ends when they let go. */
static void test_lease(void **state)
{
	struct lab *lab = *state;
	char uri[512];
	struct hears h;
	pid_t agent;

	agent = lab_daemon(lab, "--lease-idle 1");
	attach(&h, lab);
	export_db1(&h, uri, sizeof(uri));
	hears_close(&h);
	sleep(3);
	assert_int_equal(shell("nbdinfo --size '%s' >/dev/null", uri), 0);
	assert_int_equal(lab_pid(lab), agent);
	hears_attach(&h, lab);
	hears_ask_ok(&h, "vdisk_unexport", of_db1());
	hears_close(&h);
	assert_true(is_gone(agent) || waitpid(agent, NULL, WNOHANG) == agent);
}

/* ---- what it needs ------------------------------------------------------ */

static bool lacks(const char *what, const char *command)
{
	if (!shell("%s >/dev/null 2>&1", command))
		return false;
	printf("%s: %s\n", getenv("CI") ? "lacks" : "skipped, lacks", what);
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST_BOTH(test_clients),
		LAB_TEST_BOTH(test_nbdkit_killed),
		LAB_TEST_BOTH(test_client_and_vdisk_gone),
		LAB_TEST(test_run_refused),
		LAB_TEST(test_tcp),
		LAB_TEST(test_agent_killed),
		LAB_TEST(test_lease),
	};

	signal(SIGPIPE, SIG_IGN);
	if (lacks("nbdkit", "nbdkit --version") ||
	    lacks("the plugin (nbdkit-plugin-dev was not there)",
		  "test -e \"$BIN_DIR/nbdkit-iodeck-plugin.so\"") ||
	    lacks("qemu-img (qemu-utils)", "qemu-img --version") ||
	    lacks("nbdcopy (libnbd-bin)", "nbdcopy --version") ||
	    lacks("fio with nbd", "fio --enghelp=nbd"))
		return getenv("CI") ? 1 : 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
