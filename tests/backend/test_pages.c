/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reference pages against the tables of the program: the types of
 * iodeck-session(5) and the model, the members of workload and suite files and
 * iodeck-workload(5), the limits and units of options and iodeck.conf(5). What
 * real sessions hold is compared with their page by e2e/demo.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/model.h"
#include "backend/option.h"
#include "backend/run/suite_impl.h"

static unsigned faults;

#define FAULT(...)                            \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		faults++;                     \
	} while (0)

/* ---- a page ------------------------------------------------------------- */

static char *page_read(const char *name)
{
	const char *source = getenv("SOURCE_DIR");
	char path[512], *text = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/man/%s", source ? source : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be read", path);
	if (getdelim(&text, &size, '\0', f) <= 0)
		fail_msg("%s is empty", path);
	fclose(f);
	return text;
}

/* From the line `from` to the next one that begins with `to`; own copy. */
static char *part(const char *page, const char *from, const char *to)
{
	const char *at = strstr(page, from), *end;

	if (!at)
		fail_msg("the page has no line \"%s\"", from);
	end = strstr(at + strlen(from), to);
	return end ? strndup(at, (size_t)(end - at)) : strdup(at);
}

/* Calls seen() for each word that a line with .Cm, or .It Cm, marks. */
static void words(const char *text, bool items,
		  void (*seen)(const char *word, void *arg), void *arg)
{
	char *copy = strdup(text), *lines = NULL, *line, *word, *rest;

	for (line = strtok_r(copy, "\n", &lines); line;
	     line = strtok_r(NULL, "\n", &lines)) {
		if (!strncmp(line, ".It Cm ", 7))
			line += 7;
		else if (!items && !strncmp(line, ".Cm ", 4))
			line += 4;
		else
			continue;
		for (word = strtok_r(line, " ,;.)(", &rest); word;
		     word = strtok_r(NULL, " ,;.)(", &rest))
			seen(word, arg);
	}
	free(copy);
}

struct sought {
	const char *word;
	bool found;
};

static void on_sought(const char *word, void *arg)
{
	struct sought *s = arg;

	s->found |= !strcmp(word, s->word);
}

static bool names(const char *text, const char *word)
{
	struct sought s = { .word = word };

	words(text, false, on_sought, &s);
	return s.found;
}

/* ---- events ------------------------------------------------------------- */

static void on_type(const char *type, void *arg)
{
	struct model *model = arg;
	uint64_t ignored = model->ignored;
	static int64_t n = 1;
	json_t *event =
		json_pack("{s:s,s:s,s:i,s:I,s:I}", "e", type, "a", "x", "i", 1,
			  "n", (json_int_t)n, "t", (json_int_t)n);

	n++;
	/* one that is not known is ignored, one that lacks members refused */
	if (!model_apply(model, event, NULL) && model->ignored != ignored)
		FAULT("iodeck-session(5): the model does not know %s", type);
	json_decref(event);
}

static void test_event_types(void **state)
{
	char *page = page_read("iodeck-session.5");
	char *events = part(page, "\n.Sh THE SESSION", "\n.Sh HISTOGRAMS");
	struct model *model;

	(void)state;
	faults = 0;
	assert_int_equal(model_new(&model), 0);
	words(events, true, on_type, model);
	assert_int_equal(faults, 0);
	on_type("no_such_type", model);
	assert_int_equal(faults, 1);
	model_free(model);
	free(events);
	free(page);
}

/* ---- workloads and suites ----------------------------------------------- */

static void members_named(const char *text, const char *where,
			  const struct conf_member *members)
{
	for (; members->name; members++)
		if (!names(text, members->name))
			FAULT("iodeck-workload(5), %s: no member %s", where,
			      members->name);
}

struct back {
	const struct conf_member *members;
	const char *where;
};

static void on_item(const char *word, void *arg)
{
	const struct back *b = arg;
	const struct conf_member *m = b->members;

	while (m->name && strcmp(m->name, word) != 0)
		m++;
	if (!m->name)
		FAULT("iodeck-workload(5), %s: the parser does not know %s",
		      b->where, word);
}

/* All of the table stand in the section, and its items all in the table. */
static void section(const char *page, const char *from, const char *to,
		    const struct conf_member *members)
{
	struct back back = { members, from + 1 };
	char *text = part(page, from, to);

	members_named(text, from + 1, members);
	words(text, true, on_item, &back);
	free(text);
}

static const struct conf_member *below(const struct conf_member *members,
				       const char *name)
{
	while (members->name && strcmp(members->name, name) != 0)
		members++;
	assert_non_null(members->members);
	return members->members;
}

static void test_workload_members(void **state)
{
	char *page = page_read("iodeck-workload.5"), *phases;
	const struct conf_member *phase = below(suite_members, "phases");

	(void)state;
	faults = 0;
	section(page, "\n.Ss A workload", "\n.Ss", workload_members);
	section(page, "\n.Ss A matrix", "\n.Sh", matrix_members);
	section(page, "\n.Sh SUITE FILES", "\n.Ss", suite_members);
	section(page, "\n.Ss A series", "\n.Ss",
		below(suite_members, "series"));
	phases = part(page, "\n.Ss A phase", "\n.Sh");
	members_named(phases, "A phase", phase);
	members_named(phases, "during", below(phase, "during"));
	assert_int_equal(faults, 0);
	free(phases);
	free(page);
}

/* ---- options ------------------------------------------------------------ */

static void with_commas(double v, char *out, size_t size)
{
	char plain[32];
	int n = snprintf(plain, sizeof(plain), "%.0f", v);
	size_t o = 0;

	for (int i = 0; i < n && o + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = plain[i];
	}
	out[o] = '\0';
}

/* As the page writes a limit: 1,000, or of a time 0.2 s, 24 h, 0. */
static void limit_text(const struct option *o, double v, char *out, size_t size)
{
	if (o->type != OPTION_SECONDS || v == 0)
		with_commas(v, out, size);
	else if (v >= 3600)
		snprintf(out, size, "%g h", v / 3600);
	else
		snprintf(out, size, "%g s", v);
}

static const char *unit_text(const struct option *o)
{
	static const char *const said[][2] = {
		{ "us", "microseconds" },
		{ "ms", "milliseconds" },
		{ "frames/s", "a second" },
		{ "s", " s" },
	};

	for (size_t k = 0; k < array_len(said); k++)
		if (!strcmp(o->unit, said[k][0]))
			return said[k][1];
	fail_msg("no words for the unit %s", o->unit);
	return "";
}

static void option_check(const struct option *o, const char *page)
{
	char from[64], low[40], high[40], range[128];
	char *text;

	snprintf(from, sizeof(from), "\n.It Cm %s No", o->name);
	text = part(page, from, "\n.It Cm");
	limit_text(o, o->min, low, sizeof(low));
	limit_text(o, o->max, high, sizeof(high));
	snprintf(range, sizeof(range), "\n%s to %s; default %s", low, high,
		 o->unset);
	if (o->max > 0 && !strstr(text, range))
		FAULT("iodeck.conf(5), %s: expected \"%s\"", o->name,
		      range + 1);
	if (*o->unit && !strstr(text, unit_text(o)))
		FAULT("iodeck.conf(5), %s: no unit \"%s\"", o->name,
		      unit_text(o));
	for (const char *v = o->values; v && *v; v += strcspn(v, "|")) {
		char word[32];

		v += *v == '|';
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(v, "|"), v);
		if (!names(text, word))
			FAULT("iodeck.conf(5), %s: no value %s", o->name, word);
	}
	free(text);
}

static void test_options(void **state)
{
	char *page = page_read("iodeck.conf.5");

	(void)state;
	faults = 0;
	for (const struct option *o = option_table; o->name; o++)
		option_check(o, page);
	assert_int_equal(faults, 0);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_types),
		cmocka_unit_test(test_workload_members),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
