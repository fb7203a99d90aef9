/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs: their series and points come from the plan and its phases, filled by
 * the samples (model_sample.c).
 *
 *	run ── plan ── series[] ── points[]   one a phase of kind max, point
 *	 └──── phase  (the newest)            or ramp, in order of running
 *
 * How far a run is, model_time.c says.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"
#include "backend/run/plan.h"
#include "backend/units.h"

struct m_run *model_run_find(struct m_state *s, const char *id)
{
	for (size_t i = s->pub.runs; i--;)
		if (!strcmp(s->pub.run[i].id, id))
			return &s->pub.run[i];
	return NULL;
}

struct run_own *model_run_own(struct m_state *s, const struct m_run *run)
{
	return &s->own[run - s->pub.run];
}

struct m_point *model_point_find(struct m_run *run, int64_t phase)
{
	for (size_t i = run->series_count; i--;)
		for (size_t k = run->series[i].points; k--;)
			if (run->series[i].point[k].phase == phase)
				return &run->series[i].point[k];
	return NULL;
}

static void run_fini(struct m_run *run, struct run_own *own)
{
	nodes_free(run, own);
	for (size_t i = 0; i < run->series_count; i++) {
		struct m_series *se = &run->series[i];

		for (size_t k = 0; k < se->points; k++) {
			free(se->point[k].interval);
			free(se->point[k].node);
		}
		free(se->point);
	}
	free(run->series);
	json_decref(run->plan);
}

void model_runs_free(struct m_state *s)
{
	for (size_t i = 0; i < s->pub.runs; i++) {
		run_fini(&s->pub.run[i], &s->own[i]);
		free(s->own[i].spent_us);
	}
	free(s->pub.run);
	free(s->own);
}

bool model_run_over(const struct m_run *run)
{
	return !strcmp(run->state, "done") || !strcmp(run->state, "failed") ||
	       !strcmp(run->state, "stopped");
}

/* ---- run, run_state ----------------------------------------------------- */

static int run_make(struct m_state *s, const struct event_head *head,
		    const char *id, const char *title, const json_t *plan)
{
	struct m_run run = { .begun_t_us = head->t_us, .ended_t_us = -1 };
	struct run_own own = { .elapsed_us = -1, .go_err_us = -1 };
	struct model *m = &s->pub;

	if (model_grow(&m->run, m->runs, sizeof(run)) ||
	    model_grow(&s->own, m->runs, sizeof(own)))
		return -ENOMEM;
	memcpy(run.id, id, sizeof(run.id));
	memcpy(run.title, title, sizeof(run.title));
	strcpy(run.state, "running");
	run.done_share = run.left_s = NAN;
	run.go_phase = -1;
	run.phase.phase = run.phase.series = -1;
	run.phases = (int)json_array_size(json_object_get(plan, "phases"));
	run.plan = json_deep_copy(plan);
	own.spent_us = malloc((size_t)(run.phases + 1) * sizeof(int64_t));
	if (!run.plan || !own.spent_us || model_series_make(&run) ||
	    nodes_make(&run)) {
		run_fini(&run, &own);
		free(own.spent_us);
		return -ENOMEM;
	}
	for (int i = 0; i <= run.phases; i++)
		own.spent_us[i] = -1;
	s->own[m->runs] = own;
	m->run[m->runs++] = run;
	return 0;
}

/* The next node says that it begins: at first, or after a while. */
static int run_of_node(struct m_state *s, const struct event_head *head,
		       struct m_in *in, struct m_run *run, int64_t resumed)
{
	int64_t joined = in_int(in, "joined", MODEL_PHASES_MAX, IN_MAY);
	int node = nodes_index(run, head);

	if (in->rc || node < 0)
		return in->rc;
	nodes_run(s, run, node, joined >= 0 ? joined : resumed, joined >= 0);
	nodes_run_state(s, run, node, "running", "", -1);
	run->ended_t_us = -1;
	if (joined >= 0)
		model_log(s, head->t_us, "info",
			  "%s takes part in the run again from phase %lld of "
			  "%d",
			  run->node[node].name, (long long)joined + 1,
			  run->phases);
	return 0;
}

int model_on_run(struct m_state *s, const struct event_head *head,
		 struct m_in *in)
{
	char id[MODEL_NAME], title[MODEL_NAME];
	int64_t resumed = in_int(in, "resumed_from", MODEL_PHASES_MAX, IN_MAY);
	const json_t *plan = in_object(in, "plan", IN_MUST);
	struct m_run *run;
	struct m_in part;
	int rc;

	IN_TEXT(in, "run", id, IN_MUST);
	IN_TEXT(in, "title", title, IN_MAY);
	if (in->rc)
		return in->rc;
	part = in_part(in, plan);
	in_array(&part, "series", MODEL_SERIES_MAX, IN_MAY);
	in_array(&part, "phases", MODEL_PHASES_MAX, IN_MAY);
	if (part.rc)
		return part.rc;
	run = model_run_find(s, id);
	if (run && run == model_run(&s->pub) && run->nodes)
		return run_of_node(s, head, in, run, resumed);
	if (run && run == model_run(&s->pub)) {
		strcpy(run->state, "running");
		run->reason[0] = '\0';
		run->ended_t_us = -1;
		model_log(s, head->t_us, "info",
			  "run %s goes on from phase "
			  "%lld of %d",
			  *title ? title : id,
			  (long long)(resumed < 0 ? 0 : resumed) + 1,
			  run->phases);
		return 0;
	}
	if (s->pub.runs == MODEL_RUNS_MAX)
		return in_bad(in, "more than %d runs", MODEL_RUNS_MAX);
	rc = run_make(s, head, id, title, plan);
	run = model_run(&s->pub);
	if (!rc && run->nodes && nodes_index(run, head) >= 0)
		nodes_run_state(s, run, nodes_index(run, head), "running", "",
				-1);
	if (!rc)
		model_log(s, head->t_us, "info", "run %s begins",
			  *title ? title : id);
	return rc;
}

/* Points that were running and will not go on. */
static void points_cut(struct m_run *run)
{
	for (size_t i = 0; i < run->series_count; i++)
		for (size_t k = 0; k < run->series[i].points; k++) {
			struct m_point *p = &run->series[i].point[k];

			if (p->state == POINT_WARM || p->state == POINT_RUN)
				p->state = POINT_CUT;
		}
}

/* A pause is no part of a point's time. */
static void point_pause(struct m_run *run, int64_t t_us)
{
	struct m_point *p = model_point_find(run, run->phase.phase);

	if (!p || run->phase.ended)
		return;
	if (!strcmp(run->state, "paused")) {
		p->paused_t_us = t_us;
	} else if (p->paused_t_us) {
		if (t_us > p->paused_t_us)
			p->held_us += t_us - p->paused_t_us;
		p->paused_t_us = 0;
	}
}

int model_on_run_state(struct m_state *s, const struct event_head *head,
		       struct m_in *in)
{
	static const char *const known[] = { "running",  "waiting", "paused",
					     "stopping", "done",    "failed",
					     "stopped" };
	int64_t phase = in_int(in, "phase", MODEL_PHASES_MAX, IN_MAY);
	char id[MODEL_NAME], state[16], reason[MODEL_TEXT], was[16];
	const char *who = "";
	struct m_run *run;
	size_t i = 0;
	int node;

	IN_TEXT(in, "run", id, IN_MUST);
	IN_TEXT(in, "state", state, IN_MUST);
	IN_TEXT(in, "reason", reason, IN_MAY);
	while (i < array_len(known) && strcmp(known[i], state))
		i++;
	if (!in->rc && i == array_len(known))
		in_bad(in, "\"state\" of a run is %s", state);
	run = in->rc ? NULL : model_run_find(s, id);
	if (!in->rc && !run)
		in_bad(in, "run %s was not announced", id);
	if (in->rc)
		return in->rc;
	memcpy(was, run->state, sizeof(was));
	node = nodes_index(run, head);
	if (run->nodes && node < 0)
		return 0;
	if (run->nodes) {
		nodes_run_state(s, run, node, state, reason, phase);
		who = run->node[node].name;
	} else {
		memcpy(run->state, state, sizeof(state));
		memcpy(run->reason, reason, sizeof(reason));
	}
	/* Of nodes what they come to together, and who fails. */
	if (!run->nodes || !strcmp(state, "failed") ||
	    strcmp(was, run->state) != 0)
		model_log(
			s, head->t_us,
			strcmp(state, "failed") ? "info" : "error",
			"run %s is %s%s%s%s%s",
			*run->title ? run->title : run->id,
			strcmp(state, "failed") ? run->state : state,
			*reason ? ": " : "", strcmp(state, "failed") ? "" : who,
			*who && *reason && !strcmp(state, "failed") ? ": " : "",
			reason);
	point_pause(run, head->t_us);
	if (!model_run_over(run)) {
		run->ended_t_us = -1;
		return 0;
	}
	run->ended_t_us = head->t_us;
	run->left_s = 0;
	if (!strcmp(run->state, "done"))
		run->done_share = 1;
	points_cut(run);
	return 0;
}

/* ---- phase, phase_end, progress ----------------------------------------- */

static void point_clear(struct m_point *p)
{
	free(p->node);
	memset(p, 0, sizeof(*p));
	hist_reset(&p->read.svc);
	hist_reset(&p->read.rsp);
	hist_reset(&p->write.svc);
	hist_reset(&p->write.rsp);
	p->percent = p->asked_iops = NAN;
	p->scheduled = p->backlog = -1;
	p->outstanding = -1;
	p->ratio = NAN;
	p->net_share = p->net_full = NAN;
}

static struct m_series *model_series_of(struct m_run *run,
					const struct m_point *p)
{
	for (size_t i = 0; i < run->series_count; i++)
		if (p >= run->series[i].point &&
		    p < run->series[i].point + run->series[i].points)
			return &run->series[i];
	return NULL;
}

static void series_max(const struct m_run *run, struct m_series *se,
		       const struct m_point *p)
{
	se->max_iops = 0;
	se->max_outstanding = 0;
	for (size_t n = 0; n < run->nodes; n++) {
		if (isnan(p->node[n].max_iops))
			continue;
		se->max_iops += p->node[n].max_iops;
		se->max_outstanding += p->node[n].outstanding;
	}
}

/* A new point of the series, or, after `resume`, the phase's old one. */
static int point_make(struct m_state *s, struct m_series *se, int64_t phase,
		      struct m_in *in, struct m_point **point)
{
	for (size_t k = 0; k < se->points; k++)
		if (se->point[k].phase == phase) {
			s->intervals -= se->point[k].intervals;
			free(se->point[k].interval);
			*point = &se->point[k];
			point_clear(*point);
			return 0;
		}
	if (s->points == MODEL_POINTS_MAX)
		return in_bad(in, "more than %d points", MODEL_POINTS_MAX);
	if (model_grow(&se->point, se->points, sizeof(**point)))
		return -ENOMEM;
	*point = &se->point[se->points++];
	(*point)->node = NULL;
	s->points++;
	point_clear(*point);
	return 0;
}

static bool kind_has_point(const char *kind)
{
	return !strcmp(kind, "max") || !strcmp(kind, "point") ||
	       !strcmp(kind, "ramp");
}

static void point_saw(struct m_point *p, const struct m_vdisk *v)
{
	p->degraded |= !strcmp(v->state, "degraded");
	p->rebuilding |= !strcmp(v->state, "rebuilding");
}

static const json_t *plan_series(const struct m_run *run, int series)
{
	return json_array_get(json_object_get(run->plan, "series"),
			      (size_t)series);
}

static int phase_point(struct m_state *s, struct m_run *run,
		       const struct m_phase *ph, struct m_in *in)
{
	int64_t index = in_int(in, "point", 1 << 20, IN_MAY);
	int64_t outstanding = in_int(in, "outstanding", 1 << 30, IN_MAY);
	double percent = in_num(in, "percent");
	double asked = in_num(in, "asked_iops");
	const struct m_vdisk *v;
	struct m_point *p = NULL;
	int rc;

	if (in->rc)
		return in->rc;
	p = run->nodes ? model_point_find(run, ph->phase) : NULL;
	if (p) { /* another node's, too */
		p->asked_iops += asked;
		p->outstanding += outstanding;
		return 0;
	}
	rc = point_make(s, &run->series[ph->series], ph->phase, in, &p);
	if (!rc)
		rc = nodes_point_make(run, p, ph->series);
	if (rc)
		return rc;
	p->phase = ph->phase;
	p->point = (int)index;
	memcpy(p->kind, ph->kind, sizeof(p->kind));
	p->percent = percent;
	p->asked_iops = asked;
	p->outstanding = outstanding;
	p->begun_t_us = ph->begun_t_us;
	p->warmup_us = ph->warmup_us;
	p->length_us = ph->length_us;
	for (size_t i = 0; i < plan_vdisks(plan_series(run, ph->series)); i++) {
		v = model_vdisk(&s->pub,
				plan_vdisk(plan_series(run, ph->series), i));
		if (v)
			point_saw(p, v);
	}
	return 0;
}

/* As the event has it: the head's may have been set right. */
static int64_t said_t_us(struct m_in *in)
{
	return json_integer_value(json_object_get(in->o, "t"));
}

int model_on_phase(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	struct m_phase ph = { .begun_t_us = head->t_us,
			      .done_bytes = -1,
			      .total_bytes = -1 };
	char id[MODEL_NAME];
	struct run_own *own;
	int64_t asked, late_us = 0;
	struct m_run *run;
	int rc, node;

	IN_TEXT(in, "run", id, IN_MUST);
	IN_TEXT(in, "kind", ph.kind, IN_MUST);
	ph.phase = (int)in_int(in, "phase", MODEL_PHASES_MAX, IN_MUST);
	ph.series = (int)in_int(in, "series", MODEL_SERIES_MAX, IN_MAY);
	ph.warmup_us = in_int(in, "warmup_us", EVENT_INT_MAX, IN_MAY);
	ph.length_us = in_int(in, "length_us", EVENT_INT_MAX, IN_MAY);
	run = in->rc ? NULL : model_run_find(s, id);
	if (!in->rc && !run)
		in_bad(in, "run %s was not announced", id);
	if (run && (ph.phase < 0 || ph.phase >= run->phases))
		in_bad(in, "phase %d of %d", ph.phase, run->phases);
	if (run && ph.series >= (int)run->series_count)
		in_bad(in, "series %d of %zu", ph.series, run->series_count);
	if (in->rc)
		return in->rc;
	node = nodes_index(run, head);
	if (run->nodes && node < 0)
		return 0;
	if (!run->nodes)
		points_cut(run); /* the end of the one before was lost */
	asked = in_int(in, "asked_t_us", INT64_MAX, IN_MAY);
	if (asked >= 0) /* what both stamps are of is one clock */
		late_us = said_t_us(in) - asked;
	ph.begun_t_us -= late_us;
	if (ph.series >= 0 && kind_has_point(ph.kind)) {
		model_series_layout(&s->pub, &run->series[ph.series]);
		rc = phase_point(s, run, &ph, in);
		if (rc)
			return rc;
	}
	own = model_run_own(s, run);
	if (run->nodes) {
		nodes_phase(s, run, node, ph.phase, late_us);
		if (ph.phase <= run->phase.phase)
			return 0; /* another was there before */
	}
	run->phase = ph;
	own->spent_us[ph.phase] = -1;
	own->elapsed_us = kind_has_point(ph.kind) ? 0 : -1;
	model_run_sums(run, own);
	return 0;
}

/* The how manyth of its kind in its series, from 1. */
static int point_nth(const struct m_series *se, const struct m_point *p)
{
	int n = 0;

	for (size_t i = 0; i < se->points && &se->point[i] <= p; i++)
		n += !strcmp(se->point[i].kind, p->kind);
	return n;
}

/* What a phase found, in a line. */
static void phase_log(struct m_state *s, int64_t t_us, struct m_run *run,
		      const char *status)
{
	const struct m_phase *ph = &run->phase;
	const struct m_point *p = model_point_find(run, ph->phase);
	const struct m_series *se =
		ph->series < 0 ? NULL : &run->series[ph->series];
	char iops[32], ms[32];
	double ops, sum;

	if (!strcmp(status, "failed")) {
		model_log(s, t_us, "error", "phase %d of %d (%s) failed: %s",
			  ph->phase + 1, run->phases, ph->kind, ph->reason);
		return;
	}
	/* A note stands in the log itself. */
	if (!strcmp(ph->kind, "note"))
		return;
	if (!p || !se) {
		model_log(s, t_us, "info", "phase %d of %d (%s) %s",
			  ph->phase + 1, run->phases, ph->kind, status);
		return;
	}
	if (!strcmp(p->kind, "max")) {
		model_log(s, t_us, "info",
			  "%s: maximum %s IOPS at %lld outstanding", se->name,
			  units_count_text(se->max_iops, iops, sizeof(iops)),
			  (long long)se->max_outstanding);
		return;
	}
	ops = (double)p->read.ops + (double)p->write.ops;
	sum = (double)p->read.svc.sum_ns + (double)p->write.svc.sum_ns;
	if (p->measured_s > 0 && ops > 0)
		model_log(s, t_us, "info", "%s: point %d %s, %s IOPS at %s ms",
			  se->name, point_nth(se, p), status,
			  units_count_text(ops / p->measured_s, iops,
					   sizeof(iops)),
			  units_three_text(sum / ops / 1e6, ms, sizeof(ms)));
	else
		model_log(s, t_us, "info", "%s: point %d %s", se->name,
			  point_nth(se, p), status);
}

static bool phase_goes_on(const struct m_run *run, const struct m_point *p)
{
	for (size_t n = 0; p && n < run->nodes; n++)
		if (p->node[n].state == PART_BEGUN ||
		    p->node[n].state == PART_TO_COME)
			return true;
	return false;
}

/* Maxima of nodes add up. true: it was the last in the newest phase. */
static bool phase_end_of_node(struct m_state *s, const struct event_head *head,
			      struct m_run *run, int64_t phase,
			      const char *status, double max_iops,
			      int64_t depth)
{
	struct m_point *p = model_point_find(run, phase);
	int node = nodes_index(run, head);
	struct m_series *se;

	if (node < 0 || phase < 0)
		return false;
	nodes_phase_end(s, run, node, phase, status);
	if (p && max_iops >= 0) {
		se = model_series_of(run, p);
		p->node[node].max_iops = max_iops;
		p->node[node].outstanding = depth;
		series_max(run, se, p);
	}
	return phase == run->phase.phase && !run->phase.ended &&
	       !phase_goes_on(run, p);
}

int model_on_phase_end(struct m_state *s, const struct event_head *head,
		       struct m_in *in)
{
	char id[MODEL_NAME], status[16], reason[MODEL_TEXT];
	int64_t phase = in_int(in, "phase", MODEL_PHASES_MAX, IN_MUST);
	int64_t depth = in_int(in, "outstanding", 1 << 30, IN_MAY);
	double max_iops = in_num(in, "max_iops");
	struct run_own *own;
	struct m_point *p;
	struct m_run *run;
	int64_t spent;

	IN_TEXT(in, "run", id, IN_MUST);
	IN_TEXT(in, "status", status, IN_MUST);
	IN_TEXT(in, "reason", reason, IN_MAY);
	run = in->rc ? NULL : model_run_find(s, id);
	if (!in->rc && !run)
		in_bad(in, "run %s was not announced", id);
	if (!in->rc && !run->nodes && (phase < 0 || phase != run->phase.phase))
		in_bad(in, "end of phase %lld, at phase %d", (long long)phase,
		       run->phase.phase);
	if (in->rc)
		return in->rc;
	own = model_run_own(s, run);
	if (run->nodes &&
	    !phase_end_of_node(s, head, run, phase, status, max_iops, depth))
		return 0;
	spent = head->t_us - run->phase.begun_t_us;
	own->spent_us[phase] = spent > 0 ? spent : 0;
	run->phase.ended = true;
	memcpy(run->phase.status, status, sizeof(status));
	memcpy(run->phase.reason, reason, sizeof(reason));
	p = model_point_find(run, phase);
	if (p && !run->nodes)
		p->state = !strcmp(status, "done") || !strcmp(status, "early")
				   ? POINT_DONE
				   : POINT_CUT;
	if (p && !run->nodes && !strcmp(p->kind, "max") &&
	    run->phase.series >= 0) {
		run->series[run->phase.series].max_iops = max_iops;
		run->series[run->phase.series].max_outstanding = depth;
	}
	phase_log(s, head->t_us, run, status);
	model_run_sums(run, own);
	return 0;
}

int model_on_progress(struct m_state *s, const struct event_head *head,
		      struct m_in *in)
{
	char id[MODEL_NAME];
	int64_t phase = in_int(in, "phase", MODEL_PHASES_MAX, IN_MUST);
	int64_t done = in_int(in, "done_bytes", INT64_MAX, IN_MUST);
	int64_t total = in_int(in, "total_bytes", INT64_MAX, IN_MAY);
	struct m_run *run;

	(void)head;
	IN_TEXT(in, "run", id, IN_MUST);
	run = in->rc ? NULL : model_run_find(s, id);
	if (run && run->nodes && phase != run->phase.phase)
		return 0; /* nodes fill theirs at once; one is shown */
	if (!in->rc && (!run || phase != run->phase.phase))
		in_bad(in, "progress of a phase that does not run");
	if (in->rc)
		return in->rc;
	run->phase.done_bytes = done;
	run->phase.total_bytes = total;
	return 0;
}

/* ---- faults ------------------------------------------------------------- */

void model_run_mark(struct m_state *s, const char *text)
{
	struct m_run *run = model_run(&s->pub);
	struct m_point *p;
	size_t len;

	if (!run || model_run_over(run) || run->phase.ended)
		return;
	p = model_point_find(run, run->phase.phase);
	if (!p)
		return;
	len = strlen(p->marks);
	if (len + 4 >= sizeof(p->marks))
		return;
	if (len) {
		memcpy(p->marks + len, "; ", 2);
		len += 2;
	}
	event_text(p->marks + len, sizeof(p->marks) - len, text);
}

/* ---- what a vDisk was and wrote while a point was measured --------------- */

/* The point that is running on this vDisk, or NULL. */
static struct m_point *point_on(struct m_state *s, const char *vdisk)
{
	struct m_run *run = model_run(&s->pub);

	if (!run || run->phase.ended || run->phase.series < 0 ||
	    !plan_loads(plan_series(run, run->phase.series), vdisk))
		return NULL;
	return model_point_find(run, run->phase.phase);
}

void model_run_vdisk(struct m_state *s, const struct m_vdisk *vdisk)
{
	struct m_point *p = point_on(s, vdisk->name);

	if (p)
		point_saw(p, vdisk);
}

static int64_t part_of(int64_t bytes, double share)
{
	return (int64_t)((double)bytes * share + 0.5);
}

/* An interval that began in the warm-up counts by what lies behind it. */
void model_run_written(struct m_state *s, const char *vdisk,
		       const struct m_vdisk_strip *strip)
{
	struct m_point *p = point_on(s, vdisk);
	struct m_written w = strip->written;
	int64_t us;
	double share;

	if (!p || p->state != POINT_RUN || p->paused_t_us)
		return;
	us = strip->t_us - (p->begun_t_us + p->warmup_us + p->held_us);
	if (us <= 0)
		return;
	us = us < strip->len_us ? us : strip->len_us;
	share = (double)us / (double)strip->len_us;
	w.user = part_of(w.user, share);
	w.stored = part_of(w.stored, share);
	w.log = part_of(w.log, share);
	w.destage = part_of(w.destage, share);
	w.bypass = part_of(w.bypass, share);
	w.clean = part_of(w.clean, share);
	w.rebuild = part_of(w.rebuild, share);
	w.checkpoint = part_of(w.checkpoint, share);
	model_written_add(&p->written, &w);
	p->written_s += (double)us / 1e6;
	p->ratio = strip->ratio;
}
