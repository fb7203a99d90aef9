/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An agent taken off a node, with real daemons; and bundles that are in use,
 * old, or never got their name.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/agent/bundles.h"
#include "backend/agent/clean.h"
#include "lab.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static char said[4096];

static void say(const char *line)
{
	size_t len = strlen(said);

	snprintf(said + len, sizeof(said) - len, "%s\n", line);
}

static void shell(const char *fmt, ...) ID_PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command))
		fail_msg("%s", command);
}

static void cleans(struct lab *lab, bool force, const char *words)
{
	const struct clean_opts opts = {
		.name = "t", .state_dir = lab->state, .force = force, .say = say
	};
	struct err err;

	said[0] = '\0';
	if (clean_run(&opts, &err))
		fail_msg("%s", err.text);
	if (!strstr(said, words))
		fail_msg("\"%s\", not \"%s\"", said, words);
}

static void refuses(struct lab *lab, bool force, int code, const char *words)
{
	const struct clean_opts opts = {
		.name = "t", .state_dir = lab->state, .force = force, .say = say
	};
	struct err err;

	assert_int_equal(clean_run(&opts, &err), code);
	if (!strstr(err.text, words))
		fail_msg("\"%s\", not \"%s\"", err.text, words);
}

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ---- agents ------------------------------------------------------------- */

static void test_nothing(void **state)
{
	struct lab *lab = *state;

	cleans(lab, false, "nothing of iodeck");
	shell("mkdir '%s'", lab->state);
	cleans(lab, false, "removed");
	assert_false(there(lab->state));
	/* neither a link to elsewhere, nor what it leads to */
	shell("mkdir -p '%s/else/t' && touch '%s/else/t/lock' && "
	      "ln -s else '%s'",
	      lab->dir, lab->dir, lab->state);
	refuses(lab, true, -ENOTDIR, "by hand");
	shell("rm '%s' && [ -f '%s/else/t/lock' ]", lab->state, lab->dir);
}

/* Idle it ends, whoever is attached; nothing is left, and nothing is
 * followed. */
static void test_idle(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	hears_attach(&h, lab);
	shell("mkdir '%s/mine' && touch '%s/mine/file' && "
	      "ln -s '%s/mine' '%s/t/link' && "
	      "mkdir -p '%s/.bundle/" HASH "0/lib' '%s/.bundle/.new.h.1'",
	      lab->dir, lab->dir, lab->dir, lab->state, lab->state, lab->state);
	cleans(lab, false, "agent t has ended");
	assert_true(hears_until(&h, link_is_down, 20));
	hears_close(&h);
	assert_false(there(lab->state));
	shell("[ -f '%s/mine/file' ]", lab->dir);
}

static void test_running(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "v",
			       "size_bytes", 16 << 20, "raid", 1, "layout",
			       "inplace"));
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan("v", 9, 60000),
			       "run", "r7"));
	refuses(lab, false, -EBUSY, "at run r7");
	assert_int_equal(h.state, LINK_UP);
	cleans(lab, true, "removed");
	assert_true(hears_until(&h, link_is_down, 20));
	hears_close(&h);
	assert_false(there(lab->state));
}

/* One that answers nothing is killed where that was asked for. */
static void test_stopped(void **state)
{
	struct lab *lab = *state;
	pid_t pid = lab_daemon(lab, "");

	assert_true(pid > 0);
	kill(pid, SIGSTOP);
	cleans(lab, true, "agent t has ended");
	assert_false(there(lab->state));
}

static void test_others(void **state)
{
	struct lab *lab = *state;

	shell("mkdir -p '%s/t' '%s/u' '%s/v' '%s/.bundle/" HASH "0' && "
	      "touch '%s/t/lock' '%s/u/lock' '%s/v/file'",
	      lab->state, lab->state, lab->state, lab->state, lab->state,
	      lab->state, lab->state);
	cleans(lab, false, "/u: another agent's");
	shell("cd '%s' && [ ! -e t ] && [ -f u/lock ] && [ -f v/file ] && "
	      "[ -d .bundle/" HASH "0 ] && rm -r u",
	      lab->state);
	shell("mkdir '%s/.bundle/other' && ln -s /etc '%s/.bundle/" HASH "1'",
	      lab->state, lab->state);
	cleans(lab, false, "not iodeck's");
	shell("cd '%s/.bundle' && [ ! -e " HASH "0 ] && [ -d other ] && "
	      "[ -L " HASH "1 ] && [ -f ../v/file ]",
	      lab->state);
}

/* The ways to the usual place are made by us; what else is on them stays. */
static void test_parents(void **state)
{
	struct lab *lab = *state, usual = *lab;

	snprintf(usual.state, sizeof(usual.state),
		 "%.40s/.local/state/iodeck/agent", lab->dir);
	shell("mkdir -p '%s/t' && touch '%s/t/lock' '%s/.local/x'", usual.state,
	      usual.state, lab->dir);
	cleans(&usual, false, "removed");
	shell("cd '%s/.local' && [ \"$(echo *)\" = x ]", lab->dir);
}

/* ---- bundles ------------------------------------------------------------ */

static void bundle_make(struct lab *lab, char last, int days)
{
	shell("cd '%s' && mkdir -p .bundle/" HASH "%c/lib && "
	      "touch -d '%d days ago' .bundle/" HASH "%c/MANIFEST",
	      lab->dir, last, days, last);
}

static void test_bundles(void **state)
{
	struct lab *lab = *state;
	char dir[256], path[300];
	int fd;

	for (int k = 0; k < 5; k++)
		bundle_make(lab, (char)('0' + k), k < 4 ? 20 : 13);
	shell("cd '%s/.bundle' && mkdir .new.a.1 .new.b.2 what && "
	      "touch -d '2 days ago' .new.a.1",
	      lab->dir);
	snprintf(dir, sizeof(dir), "%s/.bundle/" HASH "0", lab->dir);
	/* 1 is held, 2 was begun from just now, 3 is old, 4 is not yet */
	snprintf(path, sizeof(path), "%s/.bundle/" HASH "1/MANIFEST", lab->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	snprintf(path, sizeof(path), "%s/.bundle/" HASH "2", lab->dir);
	bundles_hold(path);
	bundles_tidy(dir, time(NULL));
	shell("cd '%s/.bundle' && [ \"$(ls -A | tr '\\n' ' ')\" = "
	      "'.new.b.2 " HASH "0 " HASH "1 " HASH "2 " HASH "4 what ' ]",
	      lab->dir);
	close(fd);
	/* held by this process, so also after the time is over */
	bundles_tidy(dir, time(NULL) + 400 * 86400);
	shell("cd '%s/.bundle' && [ \"$(ls -A | tr '\\n' ' ')\" = '" HASH
	      "0 " HASH "2 what ' ]",
	      lab->dir);
	/* unpacked somewhere by hand: nothing beside it is looked at */
	snprintf(dir, sizeof(dir), "%s/.bundle/what", lab->dir);
	bundles_tidy(dir, time(NULL) + 400 * 86400);
	shell("[ -d '%s/.bundle/" HASH "0' ]", lab->dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_nothing), LAB_TEST(test_idle),
		LAB_TEST(test_running), LAB_TEST(test_stopped),
		LAB_TEST(test_others),  LAB_TEST(test_parents),
		LAB_TEST(test_bundles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
