/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/text.h"
#include "backend/units.h"

/* ---- finding --------------------------------------------------------------
 */

/* Words of `name` that argv begins with, 0 when it is another. */
static int name_matches(const char *name, int argc, char *const argv[])
{
	int words = 0;
	size_t n;

	while (*name) {
		n = strcspn(name, " ");
		if (words >= argc || strlen(argv[words]) != n ||
		    strncmp(argv[words], name, n) != 0)
			return 0;
		words++;
		name += n + (name[n] == ' ');
	}
	return words;
}

const struct command *command_find(int argc, char *const argv[], int *used)
{
	const struct command *c, *best = NULL;
	int words;

	*used = 0;
	for (c = command_table; c->name; c++) {
		words = name_matches(c->name, argc, argv);
		if (words > *used) {
			best = c;
			*used = words;
		}
	}
	return best;
}

/* ---- arguments ------------------------------------------------------------
 */

/* A walk over the words: each step gives one argument and its value. */
struct walk {
	int at;
	const struct command_arg *positional; /* the next one */
	bool plain;                           /* behind "--" */
	/* what the step found */
	const struct command_arg *arg; /* NULL: unknown word */
	const char *word, *value;      /* value NULL: missing */
};

static bool is_flag(const struct command_arg *arg)
{
	return !strcmp(arg->kind, "flag");
}

static const struct command_arg *next_positional(const struct command_arg *a)
{
	while (a && a->name && !a->positional)
		a++;
	return a && a->name ? a : NULL;
}

static const struct command_arg *named(const struct command *command,
				       const char *name, size_t len)
{
	const struct command_arg *a;

	for (a = command->arg; a && a->name; a++)
		if (!a->positional && strlen(a->name) == len &&
		    !strncmp(a->name, name, len))
			return a;
	return NULL;
}

static void walk_begin(struct walk *w, const struct command *command)
{
	memset(w, 0, sizeof(*w));
	w->positional = next_positional(command->arg);
}

static void walk_positional(struct walk *w)
{
	w->arg = w->positional;
	w->value = w->word;
	if (w->arg && !w->arg->repeat)
		w->positional = next_positional(w->arg + 1);
}

static void walk_option(struct walk *w, const struct command *command, int argc,
			char *const argv[])
{
	const char *name = w->word + 2;
	size_t len = strcspn(name, "=");

	w->arg = named(command, name, len);
	if (!w->arg)
		return;
	if (name[len] == '=')
		w->value = name + len + 1;
	else if (is_flag(w->arg))
		w->value = "";
	else if (w->at < argc)
		w->value = argv[w->at++];
}

static bool walk_next(struct walk *w, const struct command *command, int argc,
		      char *const argv[])
{
	size_t len;

	if (w->at < argc && !w->plain && !strcmp(argv[w->at], "--")) {
		w->plain = true;
		w->at++;
	}
	if (w->at >= argc)
		return false;
	w->word = argv[w->at++];
	w->arg = NULL;
	w->value = NULL;
	if (w->plain) {
		walk_positional(w);
		return true;
	}
	if (!strncmp(w->word, "--", 2)) {
		walk_option(w, command, argc, argv);
		return true;
	}
	len = strcspn(w->word, "=");
	if (w->word[len])
		w->arg = named(command, w->word, len);
	if (w->arg)
		w->value = w->word + len + 1;
	else
		walk_positional(w);
	return true;
}

const char *command_arg_nth(const struct command *command, int argc,
			    char *const argv[], const char *name, int nth)
{
	struct walk w;

	walk_begin(&w, command);
	while (walk_next(&w, command, argc, argv))
		if (w.arg && !strcmp(w.arg->name, name) && !nth--)
			return w.value;
	return NULL;
}

const char *command_arg(const struct command *command, int argc,
			char *const argv[], const char *name)
{
	return command_arg_nth(command, argc, argv, name, 0);
}

/* ---- checks ---------------------------------------------------------------
 */

static const struct {
	const char *kind;
	int (*parse)(const char *text, double *value);
	const char *want;
} kinds[] = {
	{ "bytes", units_bytes, "a size such as 512M or 4GiB" },
	{ "rate", units_rate, "a rate such as 150MB or 25Gbit" },
	{ "seconds", units_seconds, "a time such as 10, 2.5 or 5m" },
	{ "number", units_number, "a number" },
	{ "int", units_number, "a whole number" },
	{ "steps", units_signed, "a whole number, negative for backwards" },
};

static bool is_one_of(const char *word, const char *values)
{
	size_t n = strlen(word), len;

	for (;; values += len + 1) {
		len = strcspn(values, "|");
		if (n == len && !strncmp(word, values, n))
			return true;
		if (!values[len])
			return false;
	}
}

static bool is_whole(const struct command_arg *arg)
{
	return !strcmp(arg->kind, "int") || !strcmp(arg->kind, "steps");
}

/* NULL: good; else what was expected. */
static const char *check_value(const struct command_arg *arg, const char *value)
{
	double v;
	size_t i;

	if (arg->values)
		return is_one_of(value, arg->values) ? NULL : arg->values;
	if (is_flag(arg))
		return *value ? "no value" : NULL;
	for (i = 0; i < array_len(kinds); i++) {
		if (strcmp(kinds[i].kind, arg->kind) != 0)
			continue;
		if (kinds[i].parse(value, &v) ||
		    (is_whole(arg) && v != floor(v)))
			return kinds[i].want;
	}
	return *value ? NULL : "a value";
}

static int usage_fail(const struct command *command, struct outcome *outcome,
		      const char *what)
{
	char *usage = command_usage(command, false);
	struct text text = { 0 };

	text_add(&text, "%s\nusage: %s", what, usage ? usage : command->name);
	free(usage);
	outcome->text = text_take(&text);
	outcome->status = 2;
	return -EINVAL;
}

static int check_word(const struct command *command, const struct walk *w,
		      struct outcome *outcome)
{
	const char *want;
	char what[256];

	if (!w->arg)
		snprintf(what, sizeof(what), "unexpected \"%.100s\"", w->word);
	else if (!w->value)
		snprintf(what, sizeof(what), "%s needs a value", w->word);
	else if ((want = check_value(w->arg, w->value)))
		snprintf(what, sizeof(what), "%s: \"%.64s\": expected %s",
			 w->arg->name, w->value, want);
	else
		return 0;
	return usage_fail(command, outcome, what);
}

static int check_counts(const struct command *command, int argc,
			char *const argv[], struct outcome *outcome)
{
	const struct command_arg *a;
	char what[128];

	for (a = command->arg; a && a->name; a++) {
		if (a->required && !command_arg(command, argc, argv, a->name))
			snprintf(what, sizeof(what), "%s is missing", a->name);
		else if (!a->repeat &&
			 command_arg_nth(command, argc, argv, a->name, 1))
			snprintf(what, sizeof(what), "%s is given twice",
				 a->name);
		else
			continue;
		return usage_fail(command, outcome, what);
	}
	return 0;
}

int command_check(const struct command *command, int argc, char *const argv[],
		  struct outcome *outcome)
{
	struct walk w;

	walk_begin(&w, command);
	while (walk_next(&w, command, argc, argv))
		if (check_word(command, &w, outcome))
			return -EINVAL;
	return check_counts(command, argc, argv, outcome);
}

/* ---- help -----------------------------------------------------------------
 */

static void usage_arg(struct text *text, const struct command_arg *a)
{
	const char *open = a->required ? "" : "[",
		   *close = a->required ? "" : "]";

	if (a->positional)
		text_add(text, " %s%s%s%s", open, a->name,
			 a->repeat ? "..." : "", close);
	else if (is_flag(a))
		text_add(text, " %s--%s%s", open, a->name, close);
	else
		text_add(text, " %s%s=%s%s", open, a->name,
			 a->values ? a->values : a->kind, close);
}

char *command_usage(const struct command *command, bool with_args)
{
	const struct command_arg *a;
	struct text text = { 0 };
	char name[32];

	text_add(&text, "%s", command->name);
	for (a = command->arg; a && a->name; a++)
		usage_arg(&text, a);
	if (!with_args)
		return text_take(&text);
	text_add(&text, "\n\n%s\n", command->help);
	for (a = command->arg; a && a->name; a++) {
		snprintf(name, sizeof(name), "%s%s%s", is_flag(a) ? "--" : "",
			 a->name, a->positional || is_flag(a) ? "" : "=");
		text_add(&text, "\n  %-16s %s", name, a->help);
		if (a->unset)
			text_add(&text, " Default: %s.", a->unset);
	}
	return text_take(&text);
}

char *command_help(unsigned where)
{
	const char *group = "";
	const struct command *c;
	struct text text = { 0 };

	for (c = command_table; c->name; c++) {
		if (!(c->where & where))
			continue;
		if (strcmp(group, c->group) != 0)
			text_add(&text, "%s%s\n", *group ? "\n" : "", c->group);
		group = c->group;
		text_add(&text, "  %-16s %s\n", c->name, c->help);
	}
	return text_take(&text);
}

/* Is `name` one of the group that all these words name? */
static bool is_in_group(const char *name, int argc, char *const argv[])
{
	int i;
	size_t n;

	for (i = 0; i < argc; i++) {
		n = strcspn(name, " ");
		if (strlen(argv[i]) != n || strncmp(name, argv[i], n) != 0 ||
		    !name[n])
			return false;
		name += n + 1;
	}
	return argc > 0;
}

char *command_group_help(int argc, char *const argv[], unsigned where)
{
	const struct command *c;
	struct text text = { 0 };
	bool any = false;
	char *usage;

	for (c = command_table; c->name; c++) {
		if (!(c->where & where) || !is_in_group(c->name, argc, argv))
			continue;
		usage = command_usage(c, false);
		text_add(&text, "%s  %s\n      %s\n", any ? "\n" : "",
			 usage ? usage : c->name, c->help);
		free(usage);
		any = true;
	}
	return any ? text_take(&text) : NULL;
}

void command_unknown(int argc, char *const argv[], unsigned where,
		     struct err *err)
{
	char *group = argc ? command_group_help(1, argv, where) : NULL;

	if (!group)
		err_set(err, -EINVAL,
			"unknown command \"%.64s\"; `help` lists them",
			argc ? argv[0] : "");
	else if (argc < 2)
		err_set(err, -EINVAL,
			"\"%.32s\" is a group of commands; `help %.32s` lists "
			"them",
			argv[0], argv[0]);
	else
		err_set(err, -EINVAL,
			"\"%.32s\" has no command \"%.32s\"; `help %.32s` "
			"lists them",
			argv[0], argv[1], argv[0]);
	free(group);
}

/* ---- splitting a line ------------------------------------------------------
 */

struct split {
	const char *at;
	char *out; /* writes words one behind the other */
};

/* One word with its quotes taken off; false for a quote left open. */
static bool split_word(struct split *s)
{
	char quote = 0;

	for (; *s->at && (quote || (*s->at != ' ' && *s->at != '\t'));
	     s->at++) {
		if (!quote && (*s->at == '\'' || *s->at == '"')) {
			quote = *s->at;
		} else if (quote && *s->at == quote) {
			quote = 0;
		} else {
			if (*s->at == '\\' && quote != '\'' && s->at[1])
				s->at++;
			*s->out++ = *s->at;
		}
	}
	*s->out++ = '\0';
	return !quote;
}

/* argv and its words are one allocation: at most one word for two bytes. */
int command_split(const char *line, int *argc, char ***argv, struct err *err)
{
	size_t len = strlen(line), words = len / 2 + 2;
	struct split s = { .at = line };
	char **v;

	v = malloc(words * sizeof(*v) + len + words + 1);
	if (!v)
		return err_set(err, -ENOMEM, "out of memory");
	s.out = (char *)(v + words);
	for (*argc = 0;; (*argc)++) {
		while (*s.at == ' ' || *s.at == '\t' || *s.at == '\n')
			s.at++;
		if (!*s.at)
			break;
		v[*argc] = s.out;
		if (!split_word(&s)) {
			free(v);
			return err_set(err, -EINVAL,
				       "a quote is not closed: expected "
				       "another at the end");
		}
	}
	v[*argc] = NULL;
	*argv = v;
	return 0;
}

void command_split_free(char **argv)
{
	free(argv);
}
