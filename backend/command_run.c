/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suites and workloads, and what is done with a run. */
#include "backend/command_impl.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/paths.h"
#include "backend/plan_text.h"
#include "backend/run/conductor.h"
#include "backend/run/plan.h"
#include "backend/run/suite.h"
#include "backend/run/workload.h"
#include "backend/units.h"

/* ---- the library
 * -------------------------------------------------------------- */

COMMAND(do_workload_list)
{
	struct workload_library library;
	struct text text = { 0 };
	const json_t *w;
	struct err err;
	char mean[24];
	size_t i;

	(void)deck;
	(void)command;
	(void)argc;
	(void)argv;
	if (workload_library_load(&library, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	text_add(&text, "%-12s %5s %7s %10s  %s\n", "workload", "reads",
		 "random", "mean I/O", "");
	json_array_foreach(library.list, i, w) {
		text_add(&text, "%-12s %3.0f %% %5.0f %% %10s  %s\n",
			 json_string_value(json_object_get(w, "name")),
			 100 * json_number_value(
				       json_object_get(w, "read_share")),
			 100 * json_number_value(
				       json_object_get(w, "random_share")),
			 units_bytes_text(workload_mean_bytes(w), mean,
					  sizeof(mean)),
			 json_string_value(json_object_get(w, "title")));
	}
	outcome->text = text_take(&text);
	outcome->json = json_pack("{s:O}", "workloads", library.list);
	workload_library_free(&library);
	return 0;
}

COMMAND(do_workload_show)
{
	struct workload_library library;
	struct err err;
	json_t *w;

	(void)deck;
	if (workload_library_load(&library, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	w = workload_find(&library, ARG("NAME"));
	if (w) {
		outcome->json = json_incref(w);
		outcome->text = json_dumps(w, JSON_INDENT(2));
	} else {
		outcome_fail(outcome, 2,
			     "no workload \"%s\"; `workload list` names those "
			     "there are",
			     ARG("NAME"));
	}
	workload_library_free(&library);
	return 0;
}

COMMAND(do_suite_list)
{
	struct text text = { 0 };
	json_t *list, *about;
	struct err err;
	char **names;
	size_t i;

	(void)deck;
	(void)command;
	(void)argc;
	(void)argv;
	if (path_list("suites", &names))
		return outcome_fail(outcome, 1, "out of memory");
	list = json_array();
	for (i = 0; names[i]; i++) {
		if (suite_describe(names[i], &about, &err)) {
			text_add(&text, "%-16s %s\n", names[i], err.text);
			continue;
		}
		text_add(&text, "%-16s %s: %s\n", names[i],
			 json_string_value(json_object_get(about, "title")),
			 json_string_value(json_object_get(about, "summary")));
		json_array_append_new(list, about);
	}
	path_list_free(names);
	outcome->text = text_take(&text);
	outcome->json = json_pack("{s:o}", "suites", list);
	return 0;
}

/* ---- what to run
 * ----------------------------------------------------------------- */

#define VDISKS_MAX PLAN_VDISKS_MAX

/* `run` as typed, kept while the agent is being attached. */
struct order {
	char *suite, *percent, *outstanding, *mode, *silent;
	char *vdisk[VDISKS_MAX];
	size_t vdisks;
	double seconds, warmup, early_ci;
	bool no_prefill, together;
};

static void order_free(void *arg)
{
	struct order *o = arg;
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->vdisks; i++)
		free(o->vdisk[i]);
	free(o->suite);
	free(o->percent);
	free(o->outstanding);
	free(o->mode);
	free(o->silent);
	free(o);
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static struct order *order_new(const struct command *command, int argc,
			       char *const argv[], const char *suite)
{
	struct order *o = calloc(1, sizeof(*o));
	const char *v;

	if (!o)
		return NULL;
	o->suite = copy(suite);
	o->percent = copy(ARG("percent"));
	o->outstanding = copy(ARG("outstanding"));
	o->mode = copy(ARG("mode"));
	o->silent = copy(ARG("silent"));
	o->together = ARG("together") != NULL;
	o->seconds = arg_number(ARG("seconds"), "seconds", NAN);
	o->warmup = arg_number(ARG("warmup"), "seconds", NAN);
	o->early_ci = arg_number(ARG("early_ci"), "number", NAN) / 100.0;
	o->no_prefill = ARG("no-prefill") != NULL;
	while (o->vdisks < VDISKS_MAX &&
	       (v = command_arg_nth(command, argc, argv, "vdisk",
				    (int)o->vdisks)))
		o->vdisk[o->vdisks++] = copy(v);
	return o;
}

/* The vDisks there are: the model's, else the configured ones. */
static size_t vdisks_known(const struct deck *deck, const char **name)
{
	const json_t *list = json_object_get(deck->cluster, "vdisks"), *v;
	size_t i, n = 0;

	for (i = 0; i < deck->model->vdisks && n < VDISKS_MAX; i++)
		name[n++] = deck->model->vdisk[i].name;
	if (n)
		return n;
	json_array_foreach(list, i, v) {
		if (n < VDISKS_MAX)
			name[n++] =
				json_string_value(json_object_get(v, "name"));
	}
	return n;
}

/* What was asked for, by name or as a pattern of those there are. */
static size_t vdisks_asked(const struct order *o, const char *const *there,
			   size_t count, const char **name)
{
	size_t i, k, n = 0;

	for (i = 0; i < o->vdisks; i++) {
		size_t before = n;

		for (k = 0; strpbrk(o->vdisk[i], "*?[") && k < count; k++)
			if (n < VDISKS_MAX &&
			    !fnmatch(o->vdisk[i], there[k], 0))
				name[n++] = there[k];
		if (n == before && n < VDISKS_MAX)
			name[n++] = o->vdisk[i];
	}
	return n;
}

static int order_plan(struct deck *deck, const struct order *o, json_t **plan,
		      struct err *err)
{
	const char *there[VDISKS_MAX], *asked[VDISKS_MAX];
	struct suite_params params = {
		.vdisk = there,
		.together = o->together,
		.there = there,
		.seconds = o->seconds,
		.warmup_seconds = o->warmup,
		.early_ci = o->early_ci,
		.mode = o->mode,
		.percent = o->percent,
		.outstanding = o->outstanding,
		.silent = o->silent,
		.no_prefill = o->no_prefill,
		.options = deck->config->options,
	};

	params.there_count = vdisks_known(deck, there);
	params.vdisks = params.there_count;
	if (o->vdisks) {
		params.vdisk = asked;
		params.vdisks =
			vdisks_asked(o, there, params.there_count, asked);
	}
	return suite_load(o->suite, &params, plan, err);
}

static int show_plan(struct deck *deck, const struct order *o,
		     struct outcome *outcome)
{
	struct err err;
	json_t *plan;

	if (order_plan(deck, o, &plan, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	outcome->text = plan_text(plan, deck->model, deck->cluster);
	outcome->json =
		json_pack("{s:o,s:o}", "plan", plan, "cost",
			  plan_cost_json(plan, deck->model, deck->cluster));
	return 0;
}

static bool size_is_known(const struct deck *deck, const char *vdisk)
{
	const json_t *v, *name;
	size_t i;

	if (model_vdisk(deck->model, vdisk))
		return true;
	json_array_foreach(json_object_get(deck->cluster, "vdisks"), i, v) {
		name = json_object_get(v, "name");
		if (name && !strcmp(json_string_value(name), vdisk))
			return true;
	}
	return false;
}

static void plan_ready(struct pending *p, const json_t *reply)
{
	(void)reply;
	show_plan(p->deck, p->order, &p->outcome);
}

/* Of vDisks that were made by command only the agent knows the size: it is
 * asked where the configuration does not say. Takes the order. */
static void plan_ask(struct deck *deck, struct order *o,
		     struct outcome *outcome)
{
	const json_t *series;
	struct pending *p;
	bool known = true;
	json_t *plan;
	size_t i, k;
	int r = deck->cluster ? order_plan(deck, o, &plan, NULL) : -ENOENT;

	/* Which vDisks there are the agents know. */
	if (r == -ENODEV && !live_ready(deck))
		known = false;
	if (!r) {
		json_array_foreach(json_object_get(plan, "series"), i, series) {
			for (k = 0; k < plan_vdisks(series); k++)
				known = known &&
					size_is_known(deck,
						      plan_vdisk(series, k));
		}
		json_decref(plan);
	}
	p = known ? NULL : live_ask(deck, outcome, "", NULL, plan_ready);
	if (p) {
		p->order = o;
		p->order_free = order_free;
		return;
	}
	if (known)
		show_plan(deck, o, outcome);
	order_free(o);
}

COMMAND(do_suite_show)
{
	struct order *o = order_new(command, argc, argv, ARG("NAME"));

	if (!o)
		return outcome_fail(outcome, 1, "out of memory");
	show_plan(deck, o, outcome);
	order_free(o);
	return 0;
}

/* ---- faults that name a vDisk ------------------------------------------- */

/* "drive @db3 offline": the first drive of vDisk db3, by what the model says.
 */
static void fault_resolve(const struct model *m, json_t *act)
{
	const char *text = json_string_value(json_object_get(act, "text"));
	const char *kind = json_string_value(json_object_get(act, "kind"));
	const char *at = text ? strchr(text, '@') : NULL;
	const struct m_vdisk *v;
	char name[MODEL_NAME];
	struct text out = { 0 };
	char *resolved;
	size_t n;

	if (!at || !kind || strcmp(kind, "fault") != 0)
		return;
	n = strcspn(at + 1, " ");
	snprintf(name, sizeof(name), "%.*s", (int)n, at + 1);
	v = model_vdisk(m, name);
	if (!v || !v->members)
		return;
	text_add(&out, "%.*s%s:%s%s", (int)(at - text), text,
		 v->member[0].domain, v->member[0].drive, at + 1 + n);
	resolved = text_take(&out);
	if (resolved)
		json_object_set_new(act, "text", json_string(resolved));
	free(resolved);
}

static void faults_resolve(const struct model *m, json_t *plan)
{
	json_t *phase, *act;
	size_t i, k;

	json_array_foreach(json_object_get(plan, "phases"), i, phase) {
		fault_resolve(m, phase);
		json_array_foreach(json_object_get(phase, "during"), k, act)
			fault_resolve(m, act);
	}
}

/* ---- starting
 * ---------------------------------------------------------------------- */

static void run_id(char *buf, size_t len)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(buf, len, "%Y%m%d-%H%M%S", &tm);
	snprintf(buf + n, len - n, ".%03ld", now.tv_nsec / 1000000);
}

static void undone(const json_t *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* One refused: the others, which wait for it, do not begin. */
static void run_undo(struct pending *p)
{
	struct fleet *f = p->deck->fleet;

	for (size_t k = 0; f && f->nodes > 1 && k < f->nodes; k++)
		fleet_ask(&f->node[k], "run_stop",
			  json_pack("{s:s}", "reason", "a node refused it"),
			  undone, NULL);
}

static void run_started(struct pending *p, const json_t *reply)
{
	if (reply_failed(p, reply)) {
		run_undo(p);
		return;
	}
	p->deck->runs_began = p->deck->fleet && p->deck->fleet->nodes > 1;
	outcome_say(&p->outcome, "run %s has begun", p->name);
	p->outcome.json = json_pack("{s:s,s:s}", "run", p->name, "session",
				    p->deck->session_path);
	outcome_view(&p->outcome, "screen:run");
}

/* Refused before a run is begun and recorded that could only fail. */
static bool vdisks_are_there(const struct model *m, const json_t *plan,
			     struct outcome *outcome)
{
	const json_t *series;
	const char *name;
	size_t i, k;

	json_array_foreach(json_object_get(plan, "series"), i, series) {
		for (k = 0; k < plan_vdisks(series); k++) {
			name = plan_vdisk(series, k);
			if (model_vdisk(m, name))
				continue;
			outcome_fail(outcome, 2,
				     "there is no vDisk %s; `vdisk list` says "
				     "which there are",
				     name);
			return false;
		}
	}
	return true;
}

/* The cluster is known: resolve the suite and ask. */
static void run_ready(struct pending *p, const json_t *reply)
{
	struct err err;
	json_t *plan;

	(void)reply;
	if (order_plan(p->deck, p->order, &plan, &err)) {
		outcome_fail(&p->outcome, 2, "%s", err.text);
		return;
	}
	if (!vdisks_are_there(deck_model(p->deck), plan, &p->outcome)) {
		json_decref(plan);
		return;
	}
	faults_resolve(deck_model(p->deck), plan);
	if (runs_assign(p->deck, plan, &err)) {
		outcome_fail(&p->outcome, 1, "%s", err.text);
		json_decref(plan);
		return;
	}
	run_id(p->name, sizeof(p->name));
	pending_again(p, "run_start",
		      json_pack("{s:o,s:s}", "plan", plan, "run", p->name),
		      run_started);
}

static int run_order(struct deck *deck, struct order *o,
		     struct outcome *outcome)
{
	struct pending *p;

	p = live_ask(deck, outcome, "", NULL, run_ready);
	if (!p) {
		order_free(o);
		return 0;
	}
	p->order = o;
	p->order_free = order_free;
	return 0;
}

/* A session of its own is only to be chosen before recording begins. */
static int session_wish(struct deck *deck, const char *path,
			struct outcome *outcome)
{
	if (!path)
		return 0;
	if (deck->writer || live_state(deck) != LINK_NONE)
		return outcome_fail(outcome, 2,
				    "session: this console records to %s",
				    deck->session_path),
		       -EBUSY;
	if (path_exists(path))
		return outcome_fail(outcome, 2,
				    "session: %s exists; `resume %s` goes on "
				    "with it, another name begins anew",
				    path, path),
		       -EEXIST;
	snprintf(deck->session_want, sizeof(deck->session_want), "%s", path);
	deck->want_run = true;
	return 0;
}

COMMAND(do_run)
{
	struct order *o = order_new(command, argc, argv, ARG("SUITE"));

	if (!o)
		return outcome_fail(outcome, 1, "out of memory");
	if (ARG("plan")) {
		plan_ask(deck, o, outcome);
		return 0;
	}
	if (session_wish(deck, ARG("session"), outcome)) {
		order_free(o);
		return 0;
	}
	return run_order(deck, o, outcome);
}

COMMAND(do_demo)
{
	struct order *o;
	struct err err;

	if (session_wish(deck, ARG("session"), outcome))
		return 0;
	if (live_state(deck) != LINK_NONE && !*deck->demo_dir)
		live_close(deck);
	if (!*deck->demo_dir && demo_open(deck, &err))
		return outcome_fail(outcome, 1, "%s", err.text);
	o = order_new(command, argc, argv, "demo");
	return o ? run_order(deck, o, outcome)
		 : outcome_fail(outcome, 1, "out of memory");
}

/* ---- holding, going on, ending
 * ------------------------------------------------------ */

static int pause_ask(struct deck *deck, bool pause, struct outcome *outcome)
{
	if (runs_pause(deck, pause))
		return outcome_say(outcome, "done");
	live_ask(deck, outcome, "run_pause", json_pack("{s:b}", "pause", pause),
		 NULL);
	return 0;
}

COMMAND(do_pause)
{
	(void)command;
	(void)argc;
	(void)argv;
	if (deck->reader) {
		replay_play(deck, false);
		return 0;
	}
	return pause_ask(deck, true, outcome);
}

COMMAND(do_stop)
{
	(void)command;
	(void)argc;
	(void)argv;
	if (runs_stop(deck))
		return outcome_say(outcome, "done");
	live_ask(deck, outcome, "run_stop", NULL, NULL);
	return 0;
}

/* The first phase that has not ended well. */
static int resume_phase(const struct m_run *run)
{
	const struct m_phase *p = &run->phase;

	if (p->phase < 0)
		return 0;
	if (p->ended &&
	    (!strcmp(p->status, "done") || !strcmp(p->status, "early")))
		return p->phase + 1;
	return p->phase;
}

static json_t *resume_known(const struct m_run *run)
{
	json_t *known = json_object();
	char key[24];
	size_t i;

	for (i = 0; i < run->series_count; i++) {
		const struct m_series *s = &run->series[i];

		if (isnan(s->max_iops) || s->max_outstanding < 1)
			continue;
		snprintf(key, sizeof(key), "%zu", i);
		json_object_set_new(known, key,
				    json_pack("{s:f,s:I}", "max_iops",
					      s->max_iops, "outstanding",
					      (json_int_t)s->max_outstanding));
	}
	return known;
}

static void run_resume(struct pending *p, const struct m_run *run)
{
	int phase = resume_phase(run);

	if (!strcmp(run->state, "done") || phase >= run->phases) {
		outcome_say(&p->outcome, "attached; the run was over");
		return;
	}
	snprintf(p->name, sizeof(p->name), "%s", run->id);
	pending_again(p, "run_start",
		      json_pack("{s:O,s:s,s:i,s:o}", "plan", run->plan, "run",
				run->id, "resume_from", phase, "known",
				resume_known(run)),
		      run_started);
}

/* Attached again: the run is still going there, or is to be taken up here. */
static void resume_ready(struct pending *p, const json_t *reply)
{
	const struct m_run *run = model_run(deck_model(p->deck));

	(void)reply;
	if (live_watching(p->deck)) {
		outcome_say(&p->outcome,
			    "another console owns the agent still: this one "
			    "watches on");
	} else if (!run || !run->plan) {
		outcome_say(&p->outcome, "attached; there is no run to go on "
					 "with");
	} else if (live_running(p->deck) && !model_run_over(run)) {
		outcome_say(&p->outcome, "attached; the run goes on");
		outcome_view(&p->outcome, "screen:run");
	} else {
		run_resume(p, run);
	}
}

static int resume_lost(struct deck *deck, struct outcome *outcome)
{
	struct err err;

	if (live_retry(deck, &err))
		return outcome_fail(outcome, 1, "%s", err.text);
	live_ask(deck, outcome, "", NULL, resume_ready);
	return 0;
}

COMMAND(do_resume)
{
	const struct m_run *run;
	struct err err;

	if (ARG("FILE")) {
		if (record_resume(deck, ARG("FILE"), &err))
			return outcome_fail(outcome, 1, "%s", err.text);
		live_ask(deck, outcome, "", NULL, resume_ready);
		return 0;
	}
	if (deck->reader) {
		replay_play(deck, true);
		return 0;
	}
	if (live_lost(deck))
		return resume_lost(deck, outcome);
	run = model_run(deck_model(deck));
	if (run && !strcmp(run->state, "paused"))
		return pause_ask(deck, false, outcome);
	live_own(deck);
	live_ask(deck, outcome, "", NULL, resume_ready);
	return 0;
}

COMMAND(do_note)
{
	struct text text = { 0 };
	const char *word;
	char *line;
	int n;

	if (deck->reader)
		return outcome_fail(outcome, 1,
				    "a replay takes no notes: the file is not "
				    "written");
	for (n = 0; (word = command_arg_nth(command, argc, argv, "TEXT", n));
	     n++)
		text_add(&text, "%s%s", n ? " " : "", word);
	line = text_take(&text);
	if (line)
		record_own(deck, "note", json_pack("{s:s}", "text", line));
	free(line);
	return 0;
}
