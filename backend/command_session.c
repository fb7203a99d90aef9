/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sessions: listing, replaying, showing, comparing, overlaying. */
#include "backend/command_impl.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/analysis/analysis.h"
#include "backend/paths.h"
#include "backend/units.h"

/* ---- listing
 * --------------------------------------------------------------------- */

#define ENDING ".jsonl.zst"

static int is_session(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), e = strlen(ENDING);

	return n > e && !strcmp(entry->d_name + n - e, ENDING);
}

static json_t *session_about(const char *path)
{
	struct session_reader *reader;
	json_t *event = NULL, *about;
	int64_t from = 0, to = 0;
	struct stat st = { 0 };
	uint64_t torn;
	struct err err;

	if (session_open(path, &reader, &torn, &err))
		return json_pack("{s:s,s:s}", "path", path, "error", err.text);
	session_span(reader, &from, &to);
	session_next(reader, &event, NULL);
	session_reader_free(reader);
	stat(path, &st);
	about = json_pack(
		"{s:s,s:s*,s:s*,s:I,s:I,s:I,s:I}", "path", path, "title",
		json_string_value(json_object_get(event, "title")), "command",
		json_string_value(json_object_get(event, "command")), "from_us",
		(json_int_t)from, "to_us", (json_int_t)to, "size_bytes",
		(json_int_t)st.st_size, "torn_bytes", (json_int_t)torn);
	json_decref(event);
	return about;
}

static void session_line(struct text *text, const json_t *about)
{
	const char *path = json_string_value(json_object_get(about, "path"));
	const char *error = json_string_value(json_object_get(about, "error"));
	const char *title = json_string_value(json_object_get(about, "title"));
	int64_t from = json_integer_value(json_object_get(about, "from_us"));
	int64_t to = json_integer_value(json_object_get(about, "to_us"));
	time_t t = (time_t)(from / 1000000);
	char when[32] = "-", length[24];
	struct tm tm;

	if (from > 0 && localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	text_add(text, "%-16s %12s  %-24s %s%s%s\n", when,
		 units_seconds_text((double)(to - from) / 1e6, length,
				    sizeof(length)),
		 title ? title : "-", path, error ? ": " : "",
		 error ? error : "");
}

COMMAND(do_session_list)
{
	struct dirent **entry = NULL;
	struct text text = { 0 };
	char dir[PATH_MAX], path[PATH_MAX + 300];
	json_t *list, *about;
	struct err err;
	int n, i;

	(void)command;
	(void)argc;
	(void)argv;
	if (record_dir(deck, dir, sizeof(dir), &err))
		return outcome_fail(outcome, 1, "%s", err.text);
	n = scandir(dir, &entry, is_session, alphasort);
	list = json_array();
	text_add(&text, "%-16s %12s  %-24s %s\n", "begun", "length", "title",
		 "file");
	for (i = n - 1; i >= 0; i--) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry[i]->d_name);
		about = session_about(path);
		session_line(&text, about);
		json_array_append_new(list, about);
		free(entry[i]);
	}
	free(entry);
	outcome->text = text_take(&text);
	outcome->json = json_pack("{s:o}", "sessions", list);
	return 0;
}

/* ---- replay
 * ------------------------------------------------------------------------ */

COMMAND(do_open)
{
	const struct m_run *run = model_run(deck_model(deck));
	struct err err;

	if (deck->writer && run &&
	    (!strcmp(run->state, "running") || !strcmp(run->state, "paused")))
		return outcome_fail(outcome, 1,
				    "a run is being recorded here: stop it, or "
				    "open the file in another console");
	if (replay_open(deck, ARG("FILE"), &err))
		return outcome_fail(
			outcome,
			err.code == -ENOENT || err.code == -EINVAL ? 2 : 1,
			"%s", err.text);
	outcome_say(outcome, "%s%s%s", deck->session_path,
		    *deck->replay_text ? ": " : "", deck->replay_text);
	outcome_view(outcome, "screen:run");
	return 0;
}

static int need_replay(struct deck *deck, struct outcome *outcome)
{
	if (deck->reader)
		return 0;
	outcome_fail(outcome, 1, "this is no replay: `open FILE` begins one");
	return -EINVAL;
}

COMMAND(do_live)
{
	struct model *model;
	struct err err;

	(void)command;
	(void)argc;
	(void)argv;
	if (need_replay(deck, outcome))
		return 0;
	if (model_new(&model))
		return outcome_fail(outcome, 1, "out of memory");
	replay_close(deck);
	model_free(deck->model);
	deck->model = model;
	deck->session_path[0] = '\0';
	if (deck_attach(deck, &err))
		return outcome_fail(outcome, 1, "%s", err.text);
	outcome_view(outcome, "screen:cluster");
	return 0;
}

COMMAND(do_play)
{
	(void)command;
	(void)argc;
	(void)argv;
	if (!need_replay(deck, outcome))
		replay_play(deck, !deck->playing);
	return 0;
}

COMMAND(do_speed)
{
	struct err err;

	if (need_replay(deck, outcome))
		return 0;
	if (replay_speed(deck, arg_number(ARG("FACTOR"), "number", 1), &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	return 0;
}

COMMAND(do_seek)
{
	const char *time = ARG("TIME");
	int64_t at = deck->target_us - deck->from_us;
	double seconds;
	int sign = 0;

	if (need_replay(deck, outcome))
		return 0;
	if (!strcmp(time, "end")) {
		replay_seek(deck, INT64_MAX / 4);
		return 0;
	}
	if (*time == '+' || *time == '-')
		sign = *time++ == '+' ? 1 : -1;
	if (units_seconds(time, &seconds))
		return outcome_fail(outcome, 2,
				    "seek: expected a time such as 90, +10, "
				    "-10, 5m or end");
	at = sign ? at + sign * (int64_t)(seconds * 1e6)
		  : (int64_t)(seconds * 1e6);
	replay_seek(deck, at);
	return 0;
}

COMMAND(do_step)
{
	if (!need_replay(deck, outcome))
		replay_steps(deck, (int)arg_number(ARG("COUNT"), "steps", 1));
	return 0;
}

/* ---- results
 * ------------------------------------------------------------------------- */

static double bound_us(const struct deck *deck)
{
	return options_number(deck->config->options, "bound_us");
}

static const struct m_run *run_named(const struct model *m, const char *id)
{
	size_t i;

	if (!id)
		return model_run(m);
	for (i = 0; i < m->runs; i++)
		if (!strcmp(m->run[i].id, id))
			return &m->run[i];
	return NULL;
}

/* A run whose end is not in its file: said in place of its state. */
static void unfinished_say(struct m_run *run, bool written)
{
	char was[sizeof(run->state)];

	memcpy(was, run->state, sizeof(was));
	if (written) {
		snprintf(run->reason, sizeof(run->reason),
			 "its session is being written just now");
		return;
	}
	snprintf(run->reason, sizeof(run->reason),
		 "the record ends while it was %s", was);
	snprintf(run->state, sizeof(run->state), "unfinished");
}

/* What was cut off, and what goes on with it. */
static void cut_say(struct text *text, const char *path, uint64_t torn,
		    bool over, bool gone)
{
	if (torn)
		text_add(text,
			 "\nThe last %llu bytes of the file were torn and are "
			 "left out.\n",
			 (unsigned long long)torn);
	if (!over && gone)
		text_add(text, "\nThe demo's drives are gone: nothing can go "
			       "on with it.\n");
	else if (!over)
		text_add(text, "\nThis goes on with it: iodeck resume %s\n",
			 path);
}

static void show_run(struct deck *deck, const struct model *model,
		     const struct m_run *run, const char *path, uint64_t torn,
		     struct outcome *outcome)
{
	struct m_run said = *run;
	bool written = session_is_written(path);
	struct text text = { 0 };
	char *body = NULL;

	outcome->json = analysis_run_json(run, bound_us(deck));
	if (outcome->json) {
		json_object_set_new(outcome->json, "written",
				    json_boolean(written));
		json_object_set_new(outcome->json, "torn_bytes",
				    json_integer((json_int_t)torn));
	}
	if (!model_run_over(run))
		unfinished_say(&said, written);
	if (analysis_run_text(&said, bound_us(deck), &body))
		outcome_fail(outcome, 1, "out of memory");
	else
		text_add(&text, "%s", body);
	if (!written)
		cut_say(&text, path, torn, model_run_over(run),
			model->cluster_virtual);
	free(body);
	if (!outcome->status)
		outcome->text = text_take(&text);
}

COMMAND(do_show)
{
	char path[PATH_MAX];
	const struct m_run *run;
	struct model *model;
	uint64_t torn = 0;
	struct err err;

	if (path_expand(ARG("FILE"), path, sizeof(path)))
		return outcome_fail(outcome, 2, "%s: name too long",
				    ARG("FILE"));
	if (session_model(path, &model, &torn, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	run = run_named(model, ARG("run"));
	if (run)
		show_run(deck, model, run, path, torn, outcome);
	else
		outcome_fail(outcome, 1, "%s: %s", path,
			     ARG("run") ? "there is no such run in it"
					: "there is no run in it");
	model_free(model);
	return 0;
}

/* "FILE#SERIES", "FILE", "#SERIES" (of the run on screen). */
struct source {
	char path[PATH_MAX];
	const char *series; /* NULL: the only one */
};

static void source_split(const char *text, struct source *s)
{
	const char *hash = strrchr(text, '#');
	char given[PATH_MAX];

	snprintf(given, sizeof(given), "%.*s",
		 hash ? (int)(hash - text) : (int)strlen(text), text);
	if (path_expand(given, s->path, sizeof(s->path)))
		s->path[0] = '\0';
	s->series = hash ? hash + 1 : NULL;
}

static bool is_csv(const char *path)
{
	size_t n = strlen(path);

	return n > 4 && !strcmp(path + n - 4, ".csv");
}

static int bad_series(const char *path, const char *series, char *const *names,
		      size_t count, struct err *err)
{
	char list[300] = "";
	size_t i, n = 0;

	for (i = 0; i < count && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\"",
				      i ? ", " : "", names[i]);
	if (series)
		return err_set(err, -ENOENT,
			       "%s has no series \"%s\": expected one of %s",
			       path, series, list);
	return err_set(err, -EINVAL, "%s: say which series: %s#NAME of %s",
		       path, path, list);
}

static int curve_with_facts(const struct model *m, const struct m_run *run,
			    const struct m_series *series, struct curve *curve)
{
	int r = curve_of_series(series, curve);

	if (!r)
		curve->facts = facts_of_series(m, run, series);
	return r;
}

static int curve_of_model(const struct model *m, const struct source *s,
			  struct curve *curve, struct err *err)
{
	const struct m_run *run = model_run(m);
	char *names[256];
	size_t i;

	if (!run || !run->series_count)
		return err_set(err, -ENOENT, "%s: there is no run in it",
			       s->path);
	for (i = 0; i < run->series_count && i < array_len(names); i++) {
		names[i] = run->series[i].name;
		if (s->series ? !strcmp(s->series, run->series[i].name)
			      : run->series_count == 1)
			return curve_with_facts(m, run, &run->series[i], curve);
	}
	return bad_series(s->path, s->series, names, i, err);
}

static int curve_of_file(const struct source *s, struct curve *curve,
			 struct err *err)
{
	char **names;
	size_t count = 0, i;
	int r;

	if (s->series)
		return curve_of_csv(s->path, s->series, curve, err);
	r = curve_csv_series(s->path, &names, err);
	if (r)
		return r;
	while (names[count])
		count++;
	r = count == 1 ? curve_of_csv(s->path, names[0], curve, err)
		       : bad_series(s->path, NULL, names, count, err);
	for (i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return r;
}

static int curve_of(struct deck *deck, const char *text, struct curve *curve,
		    struct err *err)
{
	struct model *model;
	struct source s;
	uint64_t torn;
	int r;

	source_split(text, &s);
	if (!*s.path) {
		snprintf(s.path, sizeof(s.path), "the run here");
		return curve_of_model(deck->model, &s, curve, err);
	}
	if (is_csv(s.path))
		return curve_of_file(&s, curve, err);
	r = session_model(s.path, &model, &torn, err);
	if (r)
		return r;
	r = curve_of_model(model, &s, curve, err);
	model_free(model);
	return r;
}

/* Two series of one name are told apart by where they came from. */
static void name_by_source(struct curve *curve, const char *text)
{
	const char *base = strrchr(text, '/');

	snprintf(curve->name, sizeof(curve->name), "%.*s",
		 (int)sizeof(curve->name) - 1, base ? base + 1 : text);
}

COMMAND(do_compare)
{
	struct curve a, b;
	struct err err;

	if (curve_of(deck, ARG("A"), &a, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	if (curve_of(deck, ARG("B"), &b, &err)) {
		curve_fini(&a);
		return outcome_fail(outcome, 2, "%s", err.text);
	}
	if (!strcmp(a.name, b.name) && strcmp(ARG("A"), ARG("B")) != 0) {
		name_by_source(&a, ARG("A"));
		name_by_source(&b, ARG("B"));
	}
	outcome->json = analysis_compare_json(&a, &b, bound_us(deck));
	if (analysis_compare_text(&a, &b, bound_us(deck), &outcome->text))
		outcome_fail(outcome, 1, "out of memory");
	curve_fini(&a);
	curve_fini(&b);
	return 0;
}

COMMAND(do_overlay)
{
	struct curve curve;
	struct err err;

	if (!strcmp(ARG("WHAT"), "off")) {
		deck_overlay_clear(deck);
		return 0;
	}
	if (curve_of(deck, ARG("WHAT"), &curve, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	if (deck_overlay_add(deck, &curve))
		outcome_fail(outcome, 1, "out of memory");
	else
		outcome_view(outcome, "screen:run");
	curve_fini(&curve);
	return 0;
}
