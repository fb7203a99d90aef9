/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/headless.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis.h"

static volatile sig_atomic_t interrupts;

static void on_signal(int number)
{
	(void)number;
	interrupts++;
}

static void signals_set(void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* ---- progress ---------------------------------------------------------------
 */

struct progress {
	bool on;
	int phase; /* of the line being shown; -1 none yet */
};

static const struct m_point *point_of(const struct m_run *run,
				      const struct m_series **series)
{
	size_t i, k;

	for (i = 0; i < run->series_count; i++)
		for (k = 0; k < run->series[i].points; k++)
			if (run->series[i].point[k].phase == run->phase.phase) {
				*series = &run->series[i];
				return &run->series[i].point[k];
			}
	return NULL;
}

static void point_line(const struct m_run *run)
{
	const struct m_series *series;
	const struct m_point *point = point_of(run, &series);
	struct point_stats s;

	if (!point || !strcmp(point->kind, "max")) {
		fprintf(stderr, "\r\033[K%3d/%d  %s%s%s", run->phase.phase + 1,
			run->phases, point ? series->name : "",
			point ? ": " : "", run->phase.kind);
		return;
	}
	point_stats(point, &s);
	fprintf(stderr, "\r\033[K%3d/%d  %-24s", run->phase.phase + 1,
		run->phases, series->name);
	if (!isnan(s.percent))
		fprintf(stderr, " %3.0f %%", s.percent);
	if (!isnan(s.iops))
		fprintf(stderr, "  %8.0f IOPS  %7.3f ms", s.iops,
			s.latency.all.mean / 1000.0);
}

static void progress_draw(struct progress *p, const struct deck *deck)
{
	const struct m_run *run = model_run(deck_model(deck));

	if (!p->on || !run || run->phase.phase < 0)
		return;
	if (p->phase != run->phase.phase && p->phase >= 0)
		fputc('\n', stderr);
	p->phase = run->phase.phase;
	point_line(run);
	fflush(stderr);
}

/* ---- the run
 * ------------------------------------------------------------------ */

static void stop_ask(struct deck *deck)
{
	struct outcome outcome;

	deck_do(deck, "stop", &outcome);
	outcome_free(&outcome);
}

/* true: the run is over; false: lost, or left. */
static bool run_wait(struct deck *deck, struct progress *progress)
{
	struct deck_status status;
	const struct m_run *run;
	struct outcome outcome;
	bool asked = false;

	for (;;) {
		deck_step(deck);
		while (deck_outcome_take(deck, &outcome))
			outcome_free(&outcome);
		progress_draw(progress, deck);
		run = model_run(deck_model(deck));
		if (run && model_run_over(run))
			return true;
		deck_status(deck, &status);
		if (status.link == LINK_LOST || interrupts > 1)
			return false;
		if (interrupts && !asked) {
			stop_ask(deck);
			asked = true;
		}
		deck_wait(deck, INT64_MAX);
	}
}

static void say(struct outcome *outcome, int status, const char *fmt,
		const char *a, const char *b)
{
	size_t len = strlen(fmt) + strlen(a) + strlen(b) + 1;

	outcome->status = status;
	outcome->text = malloc(len);
	if (outcome->text)
		snprintf(outcome->text, len, "%s%s%s", a, fmt, b);
}

static void result_lost(struct deck *deck, struct outcome *outcome)
{
	struct deck_status status;

	deck_status(deck, &status);
	if (status.link == LINK_LOST && deck_model(deck)->cluster_virtual)
		say(outcome, 1,
		    "\nThe session is kept; this shows it: iodeck replay ",
		    status.text, status.session_path);
	else if (status.link == LINK_LOST)
		say(outcome, 1,
		    "\nThe session is kept; this goes on with it: iodeck "
		    "resume ",
		    status.text, status.session_path);
	else
		say(outcome, 1,
		    "left; the run goes on and a new console attaches to it: "
		    "",
		    "", status.session_path);
}

static void result_run(struct deck *deck, struct outcome *outcome)
{
	const struct m_run *run = model_run(deck_model(deck));
	double bound = strtod(deck_option(deck, "bound_us"), NULL);
	struct deck_status status;
	char *text = NULL;

	deck_status(deck, &status);
	outcome->json = analysis_run_json(run, bound);
	if (outcome->json)
		json_object_set_new(outcome->json, "session",
				    json_string(status.session_path));
	analysis_run_text(run, bound, &text);
	say(outcome, strcmp(run->state, "done") != 0, "\nsession ",
	    text ? text : "", status.session_path);
	free(text);
}

void headless_run(struct deck *deck, bool progress, struct outcome *outcome)
{
	struct progress p = { .on = progress, .phase = -1 };
	bool over;

	outcome_free(outcome);
	signals_set(on_signal);
	over = run_wait(deck, &p);
	if (p.on && p.phase >= 0)
		fputc('\n', stderr);
	if (over)
		result_run(deck, outcome);
	else
		result_lost(deck, outcome);
	signals_set(SIG_DFL);
}
