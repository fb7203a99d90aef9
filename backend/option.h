/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The one table of options. A name in it may stand in iodeck.conf, in
 * `--set name=value` and in `set name=value` at the prompt; iodeck.conf(5) is
 * checked against it.
 */
#ifndef BACKEND_OPTION_H
#define BACKEND_OPTION_H

#include "engine/base.h"

enum option_type {
	OPTION_TEXT,   /* any text; "" unset */
	OPTION_PATH,   /* a path, ~/ allowed */
	OPTION_NUMBER, /* within min and max */
	OPTION_INT,
	OPTION_SECONDS, /* "5m" too */
	OPTION_BOOL,    /* true or false, yes or no, on or off */
	OPTION_WORD,    /* one of values */
};

struct option {
	const char *name;
	enum option_type type;
	double min, max;
	const char *values; /* of a word: "auto|utf8|ascii" */
	const char *unset;  /* the default, as written */
	const char *unit;   /* "us", "s" or "" */
	const char *help;   /* one sentence */
};

extern const struct option option_table[]; /* ends with name NULL */
const struct option *option_find(const char *name);

struct options; /* values of all of them */
int options_new(struct options **options);
void options_free(struct options *options);
/* -ENOENT unknown, -EINVAL bad: says what was expected. */
int options_set(struct options *options, const char *name, const char *value,
		struct err *err);
/* name must be in the table. Borrowed until the next options_set(). */
const char *options_text(const struct options *options, const char *name);
double options_number(const struct options *options, const char *name);
bool options_bool(const struct options *options, const char *name);

#endif
