/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How far a run is: from the plan's lengths; a phase without one (prefill, the
 * search for the maximum, waiting) counts as long as its like took before in
 * this run.
 */
#include <math.h>
#include <string.h>

#include "backend/model_priv.h"

static int64_t plan_int(const json_t *o, const char *key)
{
	const json_t *j = json_object_get(o, key);
	double v = json_number_value(j);

	return json_is_number(j) && v > 0 && v < 1e15 ? (int64_t)v : 0;
}

/* What the plan says of phase i; 0: until it is done. */
static int64_t plan_phase_us(const struct m_run *run, int i)
{
	const json_t *p =
		json_array_get(json_object_get(run->plan, "phases"), (size_t)i);
	const char *kind = json_string_value(json_object_get(p, "kind"));
	int64_t length = plan_int(p, "length_us");

	if (!kind || !strcmp(kind, "wait") || !length)
		return 0;
	return length + plan_int(p, "warmup_us");
}

static const char *plan_kind(const struct m_run *run, int i)
{
	const char *kind = json_string_value(json_object_get(
		json_array_get(json_object_get(run->plan, "phases"), (size_t)i),
		"kind"));

	return kind ? kind : "";
}

/* A search that none of its like went before: a level for each doubling of what
 * is in flight, and seldom more than seven. */
#define SEARCH_LEVELS 7
static int64_t search_guess_us(const struct m_run *run, int i)
{
	const json_t *p =
		json_array_get(json_object_get(run->plan, "phases"), (size_t)i);
	int64_t from = plan_int(p, "outstanding_min");
	int64_t to = plan_int(p, "outstanding_max"), levels = 1;

	for (from = from ? from : 1; from < to && levels < SEARCH_LEVELS;
	     from *= 2)
		levels++;
	return levels * (plan_int(p, "step_us") + plan_int(p, "warmup_us"));
}

/* How long phase i probably takes: as planned, or as its like took. */
static int64_t phase_guess_us(const struct m_run *run,
			      const struct run_own *own, int i)
{
	int64_t plan = plan_phase_us(run, i), sum = 0, n = 0;
	const char *kind = plan_kind(run, i);

	if (plan || !*kind)
		return plan;
	for (int k = 0; k < run->phases; k++) {
		if (own->spent_us[k] < 0 || strcmp(plan_kind(run, k), kind))
			continue;
		sum += own->spent_us[k];
		n++;
	}
	if (!n && !strcmp(kind, "max"))
		return search_guess_us(run, i);
	return n ? sum / n : 0;
}

/* The sums on both sides of the newest phase; once a phase, not an event. */
void model_run_sums(struct m_run *run, struct run_own *own)
{
	int at = run->phase.phase;

	own->before_us = own->after_us = 0;
	for (int i = 0; i < run->phases; i++) {
		if (i == at)
			continue;
		if (i > at)
			own->after_us += phase_guess_us(run, own, i);
		else if (own->spent_us[i] >= 0)
			own->before_us += own->spent_us[i];
		else
			own->before_us += phase_guess_us(run, own, i);
	}
}

static int64_t phase_elapsed_us(const struct m_state *s,
				const struct m_run *run,
				const struct run_own *own)
{
	const struct m_phase *p = &run->phase;
	int64_t clock = s->pub.t_us - p->begun_t_us;

	if (own->elapsed_us >= 0)
		return own->elapsed_us;
	return clock > 0 ? clock : 0;
}

/* Length of the phase at hand by what it did so far; -1 unknown. */
static int64_t phase_length_us(const struct m_run *run,
			       const struct run_own *own, int64_t elapsed)
{
	const struct m_phase *p = &run->phase;
	int64_t plan = plan_phase_us(run, p->phase);
	int64_t guess;

	if (p->ended)
		return elapsed;
	if (plan || p->length_us > 0) {
		if (!plan)
			plan = p->length_us +
			       (p->warmup_us > 0 ? p->warmup_us : 0);
		return plan > elapsed ? plan : elapsed;
	}
	if (p->done_bytes > 0 && p->total_bytes >= p->done_bytes)
		return (int64_t)((double)elapsed * (double)p->total_bytes /
				 (double)p->done_bytes);
	guess = phase_guess_us(run, own, p->phase);
	return guess > elapsed ? guess : -1;
}

void model_run_time(struct m_state *s)
{
	struct m_run *run = model_run(&s->pub);
	struct run_own *own;
	int64_t elapsed, length, all;
	double share;

	if (!run || model_run_over(run) || run->phase.phase < 0)
		return;
	own = model_run_own(s, run);
	if (run->phase.ended && own->spent_us[run->phase.phase] >= 0)
		elapsed = own->spent_us[run->phase.phase];
	else
		elapsed = phase_elapsed_us(s, run, own);
	length = phase_length_us(run, own, elapsed);
	run->left_s =
		length < 0 ? NAN
			   : (double)(length - elapsed + own->after_us) / 1e6;
	if (length < 0)
		length = elapsed;
	all = own->before_us + length + own->after_us;
	if (all <= 0)
		return;
	share = (double)(own->before_us + elapsed) / (double)all;
	/* A guess that grew does not take back what was shown. */
	if (isnan(run->done_share) || share > run->done_share)
		run->done_share = share > 1 ? 1 : share;
}
