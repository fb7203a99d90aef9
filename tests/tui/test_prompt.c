/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The prompt: editing, completion, history in a file of mode 0600, paste, and
 * leaving it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tui/prompt.h"
#include "tui/term.h"

static char history[128];

static char **complete(void *arg, const char *line)
{
	static const char *const words[] = { "vdisk", "verify", "workload",
					     "size=", "a file" };
	char **list = calloc(6, sizeof(*list));

	(void)arg;
	(void)line;
	for (size_t i = 0; i < 5; i++)
		list[i] = strdup(words[i]);
	return list;
}

static int setup(void **state)
{
	struct ui *ui = calloc(1, sizeof(*ui));

	setenv("INPUTRC", "/dev/null", 1);
	snprintf(history, sizeof(history), "/tmp/iodeck-prompt-%d",
		 (int)getpid());
	ui_init(ui);
	prompt_init(complete, NULL, history);
	*state = ui;
	return 0;
}

static int teardown(void **state)
{
	prompt_fini();
	ui_fini(*state);
	free(*state);
	unlink(history);
	return 0;
}

/* Types keys; the first result that is not 0, or 0. */
static int type(struct ui *ui, const char *text, char *line)
{
	for (; *text; text++) {
		int rc = prompt_key(ui, (unsigned char)*text, line);

		if (rc)
			return rc;
	}
	return 0;
}

static void test_edit(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];

	prompt_open(ui, "");
	assert_int_equal(type(ui, "note helo", line), 0);
	assert_string_equal(ui->prompt.line, "note helo");
	assert_string_equal(ui->prompt.label, ":");
	prompt_key(ui, K_LEFT, line);
	prompt_key(ui, 'l', line);
	assert_int_equal(ui->prompt.cursor, 9);
	prompt_key(ui, K_HOME, line);
	assert_int_equal(ui->prompt.cursor, 0);
	prompt_key(ui, K_END, line);
	prompt_key(ui, 0xe9, line); /* e acute */
	prompt_key(ui, K_BACKSPACE, line);
	assert_int_equal(prompt_key(ui, K_ENTER, line), 1);
	assert_string_equal(line, "note hello");
	assert_false(ui->prompt.open);
}

static void test_typed_before(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];

	prompt_open(ui, "overlay ");
	assert_string_equal(ui->prompt.line, "overlay ");
	assert_int_equal(type(ui, "x\r", line), 1);
	assert_string_equal(line, "overlay x");
}

static void test_complete(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];

	prompt_open(ui, "");
	type(ui, "w\t", line);
	assert_string_equal(ui->prompt.line, "workload ");
	type(ui, "si\t", line);
	/* a value follows at once */
	assert_string_equal(ui->prompt.line, "workload size=");
	type(ui, " a\t", line);
	assert_string_equal(ui->prompt.line, "workload size= a\\ file ");
	type(ui, "a\\ \t", line);
	assert_string_equal(ui->prompt.line,
			    "workload size= a\\ file a\\ file ");
	type(ui, " v\t\t", line);
	assert_int_equal(ui->prompt.lists, 2);
	assert_string_equal(ui->prompt.list[0], "vdisk");
	prompt_key(ui, 'e', line);
	assert_int_equal(ui->prompt.lists, 0);
	assert_int_equal(prompt_key(ui, K_CTRL('c'), line), -ECANCELED);
}

static void test_leave(void **state)
{
	static const int how[] = { K_ESC, K_CTRL('c') };
	struct ui *ui = *state;
	char line[UI_LINE];

	for (size_t i = 0; i < array_len(how); i++) {
		prompt_open(ui, "");
		type(ui, "stop", line);
		assert_int_equal(prompt_key(ui, how[i], line), -ECANCELED);
		assert_false(ui->prompt.open);
	}
	prompt_open(ui, "");
	assert_int_equal(prompt_key(ui, K_BACKSPACE, line), -ECANCELED);
	prompt_open(ui, "");
	assert_int_equal(prompt_key(ui, K_CTRL('d'), line), -ECANCELED);
	prompt_open(ui, "");
	assert_int_equal(prompt_key(ui, K_ENTER, line), -ECANCELED);
	/* and nothing of the left lines is there the next time */
	prompt_open(ui, "");
	assert_string_equal(ui->prompt.line, "");
	prompt_key(ui, K_ESC, line);
}

/* A line end in pasted text does not run it. */
static void test_paste(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];

	prompt_open(ui, "");
	assert_int_equal(prompt_key(ui, K_PASTE, line), 0);
	assert_int_equal(type(ui,
			      "note a\rb\x01"
			      "c\t",
			      line),
			 0);
	assert_int_equal(prompt_key(ui, K_PASTE_END, line), 0);
	assert_string_equal(ui->prompt.line, "note a bc ");
	assert_int_equal(prompt_key(ui, K_ENTER, line), 1);
}

static void test_search(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];

	prompt_open(ui, "");
	type(ui, "speed 8\r", line);
	prompt_open(ui, "");
	type(ui, "\x12spe", line);
	assert_non_null(strstr(ui->prompt.label, "search"));
	assert_int_equal(prompt_key(ui, K_ENTER, line), 1);
	assert_string_equal(line, "speed 8");
	prompt_open(ui, "");
	prompt_key(ui, K_UP, line);
	assert_string_equal(ui->prompt.line, "speed 8");
	prompt_key(ui, K_ESC, line);
}

static void test_history_file(void **state)
{
	struct ui *ui = *state;
	char line[UI_LINE];
	struct stat st;

	prompt_open(ui, "");
	type(ui, "pause\r", line);
	prompt_fini();
	assert_int_equal(stat(history, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	prompt_init(complete, NULL, history);
	prompt_open(ui, "");
	prompt_key(ui, K_UP, line);
	assert_string_equal(ui->prompt.line, "pause");
	prompt_key(ui, K_ESC, line);
}

static void test_path(void **state)
{
	char path[256];

	(void)state;
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", "", 1);
	assert_false(prompt_history_path(path, sizeof(path)));
	setenv("XDG_STATE_HOME", "/tmp/iodeck-test-state", 1);
	assert_true(prompt_history_path(path, sizeof(path)));
	assert_string_equal(path, "/tmp/iodeck-test-state/iodeck/history");
	rmdir("/tmp/iodeck-test-state/iodeck");
	rmdir("/tmp/iodeck-test-state");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_edit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_typed_before, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_paste, setup, teardown),
		cmocka_unit_test_setup_teardown(test_search, setup, teardown),
		cmocka_unit_test_setup_teardown(test_history_file, setup,
						teardown),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
