/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of commands, how a line is taken apart, completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/command.h"
#include "backend/complete.h"

static struct deck *deck;

/* ---- the table -------------------------------------------------------------
 */

/* Kinds that completion or checks know; others are mistakes of the table. */
static bool kind_is_known(const char *kind)
{
	static const char *const kinds[] = {
		"vdisk", "policy", "drive",  "domain",  "suite",  "workload",
		"file",  "bytes",  "rate",   "seconds", "number", "int",
		"flag",  "word",   "option", "steps",
	};
	size_t i;

	for (i = 0; i < array_len(kinds); i++)
		if (!strcmp(kinds[i], kind))
			return true;
	return false;
}

static void check_arg(const struct command *c, const struct command_arg *a,
		      bool optional_before)
{
	if (!kind_is_known(a->kind))
		fail_msg("%s %s: kind %s", c->name, a->name, a->kind);
	if (a->help[strlen(a->help) - 1] != '.')
		fail_msg("%s %s: no sentence", c->name, a->name);
	/* What must be there cannot stand behind what may be left out. */
	if (a->positional && a->required && optional_before)
		fail_msg("%s %s: out of order", c->name, a->name);
}

static void test_table(void **state)
{
	const struct command *c, *other;
	const struct command_arg *a;
	bool optional;

	(void)state;
	for (c = command_table; c->name; c++) {
		assert_non_null(c->run);
		assert_true(c->where & (CMD_SHELL | CMD_PROMPT));
		assert_int_equal(c->help[strlen(c->help) - 1], '.');
		assert_non_null(strchr(c->page, '('));
		for (other = command_table; other != c; other++)
			assert_string_not_equal(c->name, other->name);
		optional = false;
		for (a = c->arg; a->name; a++) {
			check_arg(c, a, optional);
			optional |= a->positional && !a->required;
		}
	}
}

static void test_help(void **state)
{
	const struct command *c;
	char *help = command_help(CMD_SHELL | CMD_PROMPT), *usage;

	(void)state;
	for (c = command_table; c->name; c++) {
		assert_non_null(strstr(help, c->name));
		usage = command_usage(c, true);
		assert_non_null(strstr(usage, c->help));
		free(usage);
	}
	free(help);
	help = command_help(CMD_SHELL);
	assert_null(strstr(help, "Leaves; a run goes on."));
	free(help);
}

static void test_group_help(void **state)
{
	char *words[] = { (char *)"vdisk", (char *)"dance", NULL };
	char *help = command_group_help(1, words, CMD_SHELL);
	struct err err;

	(void)state;
	assert_non_null(help);
	assert_non_null(strstr(help, "vdisk create NAME"));
	assert_null(strstr(help, "drive"));
	free(help);
	assert_null(command_group_help(2, words, CMD_SHELL));
	assert_null(command_group_help(0, words, CMD_SHELL));
	command_unknown(2, words, CMD_SHELL, &err);
	assert_string_equal(err.text, "\"vdisk\" has no command \"dance\"; "
				      "`help vdisk` lists them");
	command_unknown(1, words + 1, CMD_SHELL, &err);
	assert_non_null(strstr(err.text, "unknown command \"dance\""));
}

/* ---- finding, arguments
 * ------------------------------------------------------ */

static const struct command *find(const char *line, int *argc, char ***argv,
				  int *used)
{
	assert_int_equal(command_split(line, argc, argv, NULL), 0);
	return command_find(*argc, *argv, used);
}

static void test_find(void **state)
{
	const struct command *c;
	char **argv;
	int argc, used;

	(void)state;
	c = find("vdisk create db1 size=1G", &argc, &argv, &used);
	assert_string_equal(c->name, "vdisk create");
	assert_int_equal(used, 2);
	command_split_free(argv);
	assert_null(find("vdisk", &argc, &argv, &used));
	command_split_free(argv);
	assert_null(find("runs smoke", &argc, &argv, &used));
	command_split_free(argv);
	assert_null(find("", &argc, &argv, &used));
	command_split_free(argv);
}

static void test_arguments(void **state)
{
	static const char *const lines[] = {
		"run smoke seconds=3 vdisk=a --vdisk b --vdisk=c --headless",
		"run --headless --seconds=3 --vdisk a vdisk=b vdisk=c smoke",
	};
	const struct command *c;
	char **argv, **words;
	int argc, used;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(lines); i++) {
		struct outcome outcome = { 0 };

		c = find(lines[i], &argc, &argv, &used);
		words = argv + used;
		argc -= used;
		assert_int_equal(command_check(c, argc, words, &outcome), 0);
		assert_string_equal(command_arg(c, argc, words, "SUITE"),
				    "smoke");
		assert_string_equal(command_arg(c, argc, words, "seconds"),
				    "3");
		assert_string_equal(command_arg_nth(c, argc, words, "vdisk", 0),
				    "a");
		assert_string_equal(command_arg_nth(c, argc, words, "vdisk", 2),
				    "c");
		assert_null(command_arg_nth(c, argc, words, "vdisk", 3));
		assert_string_equal(command_arg(c, argc, words, "headless"),
				    "");
		assert_null(command_arg(c, argc, words, "plan"));
		command_split_free(argv);
	}
	/* A file may have an '=' in its name. */
	c = find("show a=b.zst", &argc, &argv, &used);
	assert_string_equal(command_arg(c, argc - used, argv + used, "FILE"),
			    "a=b.zst");
	command_split_free(argv);
}

static void test_bad_arguments(void **state)
{
	static const struct {
		const char *line, *want;
	} bad[] = {
		{ "run", "SUITE is missing" },
		{ "run a b", "unexpected \"b\"" },
		{ "run a --seconds", "--seconds needs a value" },
		{ "run a seconds=", "expected a time" },
		{ "run a seconds=1 seconds=2", "seconds is given twice" },
		{ "run a --fast", "unexpected \"--fast\"" },
		{ "run a mode=both", "expected percent|ramp" },
		{ "vdisk create a", "size is missing" },
		{ "vdisk create a size=big", "expected a size" },
		{ "vdisk create a size=1G raid=7", "expected 0|1|5|6" },
		{ "speed", "FACTOR is missing" },
		{ "step 1.5", "expected a whole number" },
		{ "fault drive n1:d0 dance", "expected offline|online" },
	};
	struct outcome outcome;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(bad); i++) {
		deck_do(deck, bad[i].line, &outcome);
		assert_int_equal(outcome.status, 2);
		if (!strstr(outcome.text, bad[i].want) ||
		    !strstr(outcome.text, "usage: "))
			fail_msg("%s: %s", bad[i].line, outcome.text);
		outcome_free(&outcome);
	}
}

static void test_split(void **state)
{
	static const struct {
		const char *line;
		int argc;
		const char *last;
	} cases[] = {
		{ "", 0, NULL },
		{ "   ", 0, NULL },
		{ "a", 1, "a" },
		{ " a  b ", 2, "b" },
		{ "note 'two words'", 2, "two words" },
		{ "note \"it's\"", 2, "it's" },
		{ "a b\\ c", 2, "b c" },
		{ "a 'b'\"c\"d", 2, "bcd" },
		{ "a ''", 2, "" },
		{ "a \"\\\"\"", 2, "\"" },
	};
	struct err err;
	char **argv;
	int argc;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(cases); i++) {
		assert_int_equal(
			command_split(cases[i].line, &argc, &argv, &err), 0);
		assert_int_equal(argc, cases[i].argc);
		if (argc)
			assert_string_equal(argv[argc - 1], cases[i].last);
		assert_null(argv[argc]);
		command_split_free(argv);
	}
	assert_int_equal(command_split("a 'b", &argc, &argv, &err), -EINVAL);
	assert_non_null(strstr(err.text, "quote"));
}

/* ---- completion
 * ---------------------------------------------------------------- */

static bool completes(const char *line, const char *word)
{
	char **words = deck_complete(deck, line);
	bool found = false;
	size_t i;

	for (i = 0; words && words[i]; i++)
		found |= !strcmp(words[i], word);
	deck_words_free(words);
	return found;
}

static void test_complete(void **state)
{
	(void)state;
	assert_true(completes("", "run"));
	assert_true(completes("ru", "run"));
	assert_false(completes("ru", "vdisk"));
	assert_true(completes("vd", "vdisk"));
	assert_true(completes("vdisk ", "create"));
	assert_true(completes("vdisk cr", "create"));
	assert_false(completes("vdisk create x cr", "create"));
	assert_true(completes("run ", "smoke"));
	assert_true(completes("run sm", "smoke"));
	assert_true(completes("run smoke se", "seconds="));
	assert_false(completes("run smoke seconds=1 se", "seconds="));
	assert_true(completes("run smoke mode=", "mode=ramp"));
	assert_true(completes("run smoke --he", "--headless"));
	assert_true(completes("workload show rd", "rdbms22k"));
	assert_true(completes("screen ", "cluster"));
	assert_true(completes("set bou", "bound_us="));
	assert_true(completes("fault drive n1:d0 o", "offline"));
	/* the configured cluster's names, with no agent asked */
	assert_true(completes("vdisk show ", "db1"));
	assert_true(completes("vdisk set db1 policy=m", "policy=mirror"));
	assert_true(completes("link set ", "n4"));
	assert_true(completes("fault drive n", "n1:d0"));
	assert_null(deck_complete(deck, "note 'open quote"));
}

static void test_shell(void **state)
{
	char **words;

	(void)state;
	words = complete_shell(deck, "iodeck rep");
	assert_non_null(words);
	assert_string_equal(words[0], "replay");
	deck_words_free(words);
	/* `open` is the prompt's word for it */
	words = complete_shell(deck, "iodeck op");
	assert_null(words);
}

/* ---- commands that need no agent
 * ------------------------------------------------ */

static void test_console(void **state)
{
	struct outcome o;

	(void)state;
	deck_do(deck, "screen run", &o);
	assert_string_equal(o.view, "screen:run");
	outcome_free(&o);
	deck_do(deck, "help vdisk create", &o);
	assert_string_equal(o.view, "help:iodeck-policy");
	outcome_free(&o);
	deck_do(deck, "quit", &o);
	assert_true(o.quit);
	outcome_free(&o);
	deck_do(deck, "set bound_us=1500 mouse=off", &o);
	assert_int_equal(o.status, 0);
	outcome_free(&o);
	assert_string_equal(deck_option(deck, "bound_us"), "1500");
	deck_do(deck, "set bound_us", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	deck_do(deck, "set", &o);
	assert_int_equal(json_object_size(o.json) >= 10, true);
	outcome_free(&o);
	deck_do(deck, "seek 10", &o);
	assert_int_equal(o.status, 1);
	outcome_free(&o);
	deck_do(deck, "nonsense", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	/* What may block, or is for a shell. */
	deck_do(deck, "lab down name=-", &o);
	assert_int_equal(o.status, 2);
	assert_string_equal(o.text, "lab down is a command of the shell: "
				    "iodeck lab down ...");
	outcome_free(&o);
	deck_do(deck, "completion bash", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	deck_do(deck, "overlay nothing.csv#x", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
}

static void test_overlay(void **state)
{
	const struct deck_overlay *overlay;
	struct outcome o;
	char line[600];

	(void)state;
	snprintf(line, sizeof(line),
		 "overlay '%s/tests/data/curves.csv#RDBMS 22K RAID6 25GbE'",
		 getenv("SOURCE_DIR"));
	deck_do(deck, line, &o);
	if (o.status)
		fail_msg("%s", o.text);
	outcome_free(&o);
	assert_int_equal(deck_overlays(deck, &overlay), 1);
	assert_int_equal(overlay->curve.points, 3);
	assert_float_equal(overlay->curve.point[2].iops, 237000, 0);
	assert_float_equal(overlay->curve.point[2].latency_us, 2160, 1e-6);
	deck_do(deck, "overlay off", &o);
	outcome_free(&o);
	assert_int_equal(deck_overlays(deck, &overlay), 0);
}

static int setup(void **state)
{
	struct deck_opts opts = { 0 };
	char path[512];

	(void)state;
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	snprintf(path, sizeof(path), "%s/conf/iodeck.conf",
		 getenv("SOURCE_DIR"));
	opts.config_path = path;
	return deck_open(&opts, &deck, NULL);
}

static int teardown(void **state)
{
	(void)state;
	deck_close(deck);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_group_help),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_shell),
		cmocka_unit_test(test_console),
		cmocka_unit_test(test_overlay),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
