/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/option.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/units.h"

const struct option option_table[] = {
	{ "agent_program", OPTION_PATH, 0, 0, NULL, "", "",
	  "The iodeck-agent to start; unset, the one beside iodeck, then the "
	  "one in libexec, then PATH." },
	{ "session_dir", OPTION_PATH, 0, 0, NULL, "", "",
	  "Where new sessions are recorded; unset, iodeck/sessions in the data "
	  "directory." },
	{ "lab_dir", OPTION_PATH, 0, 0, NULL, "/var/lib/iodeck/lab", "",
	  "Where labs for rehearsal are kept, one directory each." },
	{ "bound_us", OPTION_NUMBER, 1, 1e9, NULL, "1000", "us",
	  "The latency under which the highest IOPS are read off a curve." },
	{ "interval_ms", OPTION_INT, 100, 60000, NULL, "1000", "ms",
	  "How long an interval of samples is, where a suite does not say." },
	{ "point_seconds", OPTION_SECONDS, 0.2, 86400, NULL, "60", "s",
	  "How long a point is measured, where a suite does not say." },
	{ "warmup_seconds", OPTION_SECONDS, 0, 86400, NULL, "5", "s",
	  "How long a load runs before it is measured, where a suite does not "
	  "say." },
	{ "charset", OPTION_WORD, 0, 0, "auto|utf8|blocks|ascii", "auto", "",
	  "The characters that charts are drawn with." },
	{ "colour", OPTION_WORD, 0, 0, "auto|none|8|16|256", "auto", "",
	  "The colours used; auto asks the terminal and NO_COLOR." },
	{ "theme", OPTION_WORD, 0, 0, "dark|light", "dark", "",
	  "The palette, for a dark or a light terminal." },
	{ "frames_s", OPTION_INT, 1, 30, NULL, "10", "frames/s",
	  "How often the screen is drawn at most." },
	{ "mouse", OPTION_BOOL, 0, 0, NULL, "true", "",
	  "Whether the console takes the mouse." },
	{ NULL, OPTION_TEXT, 0, 0, NULL, NULL, NULL, NULL },
};

#define OPTIONS (array_len(option_table) - 1)

struct options {
	char *value[OPTIONS];
};

const struct option *option_find(const char *name)
{
	const struct option *o;

	for (o = option_table; o->name; o++)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static size_t option_index(const char *name)
{
	const struct option *o = option_find(name);

	id_assert(o);
	return (size_t)(o - option_table);
}

int options_new(struct options **options)
{
	struct options *o = calloc(1, sizeof(*o));
	size_t i;

	for (i = 0; o && i < OPTIONS; i++) {
		o->value[i] = strdup(option_table[i].unset);
		if (!o->value[i]) {
			options_free(o);
			return -ENOMEM;
		}
	}
	*options = o;
	return o ? 0 : -ENOMEM;
}

void options_free(struct options *options)
{
	size_t i;

	for (i = 0; options && i < OPTIONS; i++)
		free(options->value[i]);
	free(options);
}

/* ---- checks ------------------------------------------------------------- */

static int as_bool(const char *text)
{
	static const char *const words[] = { "false", "true", "no",
					     "yes",   "off",  "on" };
	int i;

	for (i = 0; i < (int)array_len(words); i++)
		if (!strcasecmp(words[i], text))
			return i & 1;
	return -1;
}

static bool word_is_one_of(const char *word, const char *values)
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

static int as_number(const struct option *o, const char *text, double *value)
{
	int r = o->type == OPTION_SECONDS ? units_seconds(text, value)
					  : units_number(text, value);

	if (!r && o->type == OPTION_INT && *value != floor(*value))
		r = -EINVAL;
	if (!r && !(*value >= o->min && *value <= o->max))
		r = -ERANGE;
	return r;
}

static int check(const struct option *o, const char *value, struct err *err)
{
	double number;

	switch (o->type) {
	case OPTION_TEXT:
	case OPTION_PATH:
		return 0;
	case OPTION_BOOL:
		if (as_bool(value) >= 0)
			return 0;
		return err_set(err, -EINVAL, "%s: expected true or false",
			       o->name);
	case OPTION_WORD:
		if (word_is_one_of(value, o->values))
			return 0;
		return err_set(err, -EINVAL, "%s: expected one of %s", o->name,
			       o->values);
	default:
		if (!as_number(o, value, &number))
			return 0;
		return err_set(err, -EINVAL,
			       "%s: expected a %s from %g to %g%s%s", o->name,
			       o->type == OPTION_INT ? "whole number"
						     : "number",
			       o->min, o->max, *o->unit ? " " : "", o->unit);
	}
}

int options_set(struct options *options, const char *name, const char *value,
		struct err *err)
{
	const struct option *o = option_find(name);
	char *copy;
	int r;

	if (!o)
		return err_set(err, -ENOENT,
			       "unknown option \"%s\"; iodeck.conf(5) lists "
			       "them",
			       name);
	r = check(o, value, err);
	if (r)
		return r;
	copy = strdup(value);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	free(options->value[o - option_table]);
	options->value[o - option_table] = copy;
	return 0;
}

/* ---- reading ------------------------------------------------------------ */

const char *options_text(const struct options *options, const char *name)
{
	return options->value[option_index(name)];
}

double options_number(const struct options *options, const char *name)
{
	size_t i = option_index(name);
	double value = NAN;

	id_assert(!as_number(&option_table[i], options->value[i], &value));
	return value;
}

bool options_bool(const struct options *options, const char *name)
{
	return as_bool(options_text(options, name)) == 1;
}
