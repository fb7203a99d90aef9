/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/agent/tools.h"

static char dir[] = "/tmp/iodeck-tools-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void file_make(const char *name)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0700), 0);
}

static void expect_bundle(const char *exe, const char *expected)
{
	char path[PATH_MAX], got[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, exe);
	tools_bundle_of(path, got);
	assert_string_equal(got, expected);
}

static void test_bundle_of(void **state)
{
	char path[PATH_MAX];

	(void)state;
	expect_bundle("lib/" TOOL_LOADER, "");
	snprintf(path, sizeof(path), "%s/bin", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	file_make("bin/iodeck-agent");
	expect_bundle("lib/" TOOL_LOADER, dir);
	expect_bundle("bin/iodeck-agent", "");
	expect_bundle("lib/x" TOOL_LOADER, "");
	expect_bundle("lib/" TOOL_LOADER " (deleted)", "");
}

/* This test is in no bundle. */
static void test_here(void **state)
{
	struct tool tool;
	char path[PATH_MAX];

	(void)state;
	assert_string_equal(tools_bundle(), "");
	assert_int_equal(tool_self(&tool, NULL), 0);
	assert_int_equal(tool.words, 1);
	assert_non_null(strstr(tool.argv[0], "/test_agent_tools"));
	tool_filter("limit", path);
	assert_string_equal(path, "limit");
	tool_plugin("file", path);
	assert_string_equal(path, "file");
}

static void test_nbdkit_along_path(void **state)
{
	struct tool tool;
	struct err err = { 0 };
	char path[PATH_MAX], *was = strdup(getenv("PATH"));

	(void)state;
	assert_non_null(was);
	snprintf(path, sizeof(path), "relative::/nowhere:%s", dir);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(tool_nbdkit(&tool, &err), -ENOENT);
	assert_non_null(strstr(err.text, "install"));
	file_make("nbdkit");
	assert_int_equal(tool_nbdkit(&tool, &err), 0);
	assert_int_equal(tool.words, 1);
	snprintf(path, sizeof(path), "%s/nbdkit", dir);
	assert_string_equal(tool.argv[0], path);
	setenv("PATH", was, 1);
	free(was);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bundle_of),
		cmocka_unit_test(test_here),
		cmocka_unit_test(test_nbdkit_along_path),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
