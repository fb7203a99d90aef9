/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run that several nodes run: what each is at, and intervals put together.
 *
 *	n1  [0][1][2][3]        an interval counts when every node that takes
 *	n2  [0][1]              part in the point has told it: 0 and 1. What n2
 *	n3  [0][1][2][3]        will not tell any more (GONE) is missing: 2 and
 *	                        3 do not count, and the point says so. Where it
 *	                        never took part (OUT) the others' do.
 *
 * What waits is kept sparse: a link may be cut for long.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"
#include "backend/run/plan.h"

#define PENDING_MAX 4096 /* intervals; some 20 KB each */

struct packed {
	struct hist_pair {
		uint32_t at;
		uint64_t n;
	} * pair;
	size_t pairs;
	uint64_t count, sum_ns, min_ns, max_ns, clipped;
};

struct pending_interval {
	struct m_sample sum;
	struct packed hist[4];
	uint64_t told[PLAN_NODES_MAX / 64];
	bool dead; /* some node will never tell it */
};

/* ---- sparse histograms -------------------------------------------------- */

static int pack(struct packed *p, const struct hist *h)
{
	size_t n = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		n += h->bucket[i] != 0;
	free(p->pair);
	*p = (struct packed) { .count = h->count,
			       .sum_ns = h->sum_ns,
			       .min_ns = h->min_ns,
			       .max_ns = h->max_ns,
			       .clipped = h->clipped };
	p->pair = n ? malloc(n * sizeof(*p->pair)) : NULL;
	if (n && !p->pair)
		return -ENOMEM;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		if (h->bucket[i])
			p->pair[p->pairs++] =
				(struct hist_pair) { i, h->bucket[i] };
	return 0;
}

static void unpack(const struct packed *p, struct hist *h)
{
	hist_reset(h);
	if (!p->count)
		return;
	h->count = p->count;
	h->sum_ns = p->sum_ns;
	h->min_ns = p->min_ns;
	h->max_ns = p->max_ns;
	h->clipped = p->clipped;
	for (size_t i = 0; i < p->pairs; i++)
		h->bucket[p->pair[i].at] = p->pair[i].n;
}

/* ---- intervals that wait ------------------------------------------------ */

static void pending_hists_free(struct pending_interval *w)
{
	for (int i = 0; i < 4; i++) {
		free(w->hist[i].pair);
		w->hist[i] = (struct packed) { 0 };
	}
}

static void pending_free(struct pending_interval *w)
{
	pending_hists_free(w);
	free(w);
}

static bool told(const struct pending_interval *w, size_t node)
{
	return w->told[node / 64] >> node % 64 & 1;
}

static void pending_remove(struct run_own *own, size_t at)
{
	pending_free(own->pending[at]);
	memmove(own->pending + at, own->pending + at + 1,
		(--own->pendings - at) * sizeof(*own->pending));
}

static struct pending_interval *pending_find(const struct run_own *own,
					     const struct m_sample *sa)
{
	for (size_t i = own->pendings; i-- > 0;)
		if (own->pending[i]->sum.phase == sa->phase &&
		    own->pending[i]->sum.from_us == sa->from_us)
			return own->pending[i];
	return NULL;
}

static void sum_init(struct m_sample *sum, const struct m_sample *sa)
{
	*sum = *sa;
	sum->scheduled = sum->backlog = sum->inflight = -1;
	sum->cpu_wait = NAN;
	memset(sum->ops, 0, sizeof(sum->ops));
	memset(sum->bytes, 0, sizeof(sum->bytes));
	memset(sum->errors, 0, sizeof(sum->errors));
}

static struct pending_interval *pending_make(struct run_own *own,
					     const struct m_sample *sa)
{
	struct pending_interval *w;

	/* The oldest of so many is not waited for any longer. */
	if (own->pendings == PENDING_MAX)
		pending_remove(own, 0);
	if (model_grow(&own->pending, own->pendings, sizeof(w)))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	sum_init(&w->sum, sa);
	own->pending[own->pendings++] = w;
	return w;
}

static void add_known(int64_t *sum, int64_t v)
{
	if (v >= 0)
		*sum = (*sum > 0 ? *sum : 0) + v;
}

/* Adds what is in scratch; scratch is the sum then. */
static int pending_add(struct m_state *s, struct pending_interval *w,
		       const struct m_sample *sa)
{
	struct hist *before = &s->both; /* which whoever counts makes anew */
	int rc = 0;

	for (int i = 0; i < 4 && !rc; i++) {
		unpack(&w->hist[i], before);
		if (!model_hist_fits(&s->scratch[i], before))
			return -EINVAL;
		hist_merge(&s->scratch[i], before);
		rc = pack(&w->hist[i], &s->scratch[i]);
	}
	for (int i = 0; i < 2; i++) {
		add_known(&w->sum.ops[i], sa->ops[i]);
		add_known(&w->sum.bytes[i], sa->bytes[i]);
		add_known(&w->sum.errors[i], sa->errors[i]);
	}
	add_known(&w->sum.scheduled, sa->scheduled);
	add_known(&w->sum.backlog, sa->backlog);
	add_known(&w->sum.inflight, sa->inflight);
	w->sum.warm |= sa->warm;
	w->sum.generator_bound |= sa->generator_bound;
	w->sum.cpu_wait = fmax(w->sum.cpu_wait, sa->cpu_wait);
	if (sa->len_us > w->sum.len_us)
		w->sum.len_us = sa->len_us;
	return rc;
}

/* Whether nobody is waited for; missing: somebody will not tell it. */
static bool is_whole(const struct m_run *run, const struct m_point *p,
		     const struct pending_interval *w, bool *missing)
{
	bool whole = true;

	*missing = false;
	for (size_t n = 0; n < run->nodes; n++) {
		const enum m_part_state state = p->node[n].state;

		if (told(w, n))
			continue;
		*missing |= state == PART_GONE;
		whole &= state == PART_GONE || state == PART_OUT ||
			 state == PART_IDLE;
	}
	return whole;
}

static void interval_missing(const struct m_run *run, struct m_point *p,
			     struct pending_interval *w)
{
	w->dead = true;
	pending_hists_free(w);
	if (w->sum.warm)
		return;
	p->missing++;
	for (size_t n = 0; n < run->nodes; n++)
		p->node[n].missing +=
			!told(w, n) && p->node[n].state == PART_GONE;
}

/* Counts it, gives it up or lets it wait; true: it waits on. */
static bool interval_settle(struct m_state *s, struct m_run *run,
			    struct m_point *p, struct pending_interval *w)
{
	bool missing, whole = is_whole(run, p, w, &missing);

	if (missing && !w->dead)
		interval_missing(run, p, w);
	if (!whole)
		return true;
	if (!w->dead) {
		for (int i = 0; i < 4; i++)
			unpack(&w->hist[i], &s->scratch[i]);
		model_sample_count(s, run, p, &w->sum, 0);
	}
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct pending_interval *const *x = a, *const *y = b;
	int64_t d = (*x)->sum.phase - (*y)->sum.phase;

	if (!d)
		d = (*x)->sum.from_us - (*y)->sum.from_us;
	return d < 0 ? -1 : d > 0;
}

/* What can be said of the point's intervals now, in order. */
static void point_settle(struct m_state *s, struct m_run *run,
			 struct m_point *p)
{
	struct run_own *own = model_run_own(s, run);

	if (own->pendings)
		qsort(own->pending, own->pendings, sizeof(*own->pending),
		      by_time);
	for (size_t i = 0; i < own->pendings;)
		if (own->pending[i]->sum.phase != p->phase ||
		    interval_settle(s, run, p, own->pending[i]))
			i++;
		else
			pending_remove(own, i);
}

int nodes_sample(struct m_state *s, struct m_run *run, struct m_point *p,
		 int node, const struct m_sample *sa)
{
	struct run_own *own = model_run_own(s, run);
	struct pending_interval *w;
	int rc = 0;

	if (p->node[node].state == PART_OUT || model_sample_is_slice(run, sa))
		return 0;
	w = pending_find(own, sa);
	if (!w)
		w = pending_make(own, sa);
	if (!w)
		return -ENOMEM;
	if (told(w, (size_t)node))
		return 0;
	w->told[node / 64] |= 1ull << node % 64;
	if (!w->dead)
		rc = pending_add(s, w, sa);
	if (!interval_settle(s, run, p, w))
		for (size_t i = own->pendings; i-- > 0;)
			if (own->pending[i] == w)
				pending_remove(own, i);
	return rc;
}

/* ---- nodes -------------------------------------------------------------- */

int nodes_make(struct m_run *run)
{
	const size_t n = plan_nodes(run->plan);

	if (!plan_timed(run->plan) || n > PLAN_NODES_MAX)
		return 0;
	run->node = calloc(n, sizeof(*run->node));
	if (!run->node)
		return -ENOMEM;
	run->nodes = n;
	for (size_t i = 0; i < n; i++) {
		const json_t *o = plan_node(run->plan, i);
		struct m_run_node *node = &run->node[i];

		event_text(node->name, sizeof(node->name),
			   json_string_value(json_object_get(o, "name")));
		event_text(node->agent, sizeof(node->agent),
			   json_string_value(json_object_get(o, "agent")));
		node->waits_at = -1;
	}
	return 0;
}

void nodes_free(struct m_run *run, struct run_own *own)
{
	for (size_t i = 0; i < own->pendings; i++)
		pending_free(own->pending[i]);
	free(own->pending);
	free(run->node);
}

int nodes_index(const struct m_run *run, const struct event_head *head)
{
	for (size_t i = 0; i < run->nodes; i++)
		if (!strcmp(run->node[i].agent, head->a))
			return (int)i;
	return -1;
}

int nodes_point_make(const struct m_run *run, struct m_point *p, int series)
{
	p->skew_us = p->skew_err_us = -1;
	p->missing = 0;
	if (!run->nodes)
		return 0;
	p->node = calloc(run->nodes, sizeof(*p->node));
	if (!p->node)
		return -ENOMEM;
	for (size_t n = 0; n < run->nodes; n++) {
		p->node[n].late_us = p->node[n].outstanding = -1;
		p->node[n].max_iops = NAN;
		p->node[n].state = !plan_node_runs(run->plan, n, (size_t)series)
					   ? PART_IDLE
				   : run->node[n].out ? PART_OUT
						      : PART_TO_COME;
		p->node_out |= p->node[n].state == PART_OUT;
	}
	return 0;
}

/* Nobody is in it any more. */
static void point_end(struct m_point *p, size_t nodes)
{
	bool failed = false;

	if (p->state == POINT_DONE || p->state == POINT_CUT)
		return;
	for (size_t n = 0; n < nodes; n++) {
		if (p->node[n].state == PART_TO_COME ||
		    p->node[n].state == PART_BEGUN)
			return;
		failed |= p->node[n].failed;
	}
	p->state = failed ? POINT_CUT : POINT_DONE;
}

/* The node will tell no more of this point. */
static void part_end(struct m_state *s, struct m_run *run, struct m_point *p,
		     int node, enum m_part_state state)
{
	struct m_point_node *part = &p->node[node];

	if (part->state != PART_TO_COME && part->state != PART_BEGUN)
		return;
	part->state = state;
	p->node_out |= state == PART_OUT;
	point_settle(s, run, p);
	point_end(p, run->nodes);
}

/* Of all points up to (not with) this phase: those it began it has left, to
 * those it did not it will not come. */
static void parts_end(struct m_state *s, struct m_run *run, int node,
		      int64_t phase)
{
	for (size_t i = 0; i < run->series_count; i++)
		for (size_t k = 0; k < run->series[i].points; k++) {
			struct m_point *p = &run->series[i].point[k];

			if (p->phase < phase)
				part_end(s, run, p, node,
					 p->node[node].state == PART_BEGUN
						 ? PART_GONE
						 : PART_OUT);
		}
}

static void points_drop(struct m_state *s, struct m_run *run, int64_t from)
{
	struct run_own *own = model_run_own(s, run);

	for (size_t i = own->pendings; i-- > 0;)
		if (own->pending[i]->sum.phase >= from)
			pending_remove(own, i);
	for (size_t i = 0; i < run->series_count; i++) {
		struct m_series *se = &run->series[i];

		while (se->points && se->point[se->points - 1].phase >= from) {
			struct m_point *p = &se->point[--se->points];

			s->intervals -= p->intervals;
			s->points--;
			free(p->interval);
			free(p->node);
		}
	}
}

void nodes_run(struct m_state *s, struct m_run *run, int node, int64_t from,
	       bool joined)
{
	struct run_own *own = model_run_own(s, run);

	run->node[node].out = false;
	if (joined) {
		parts_end(s, run, node, from);
	} else if (own->active) {
		/* All of them begin again: what they did of it does not count.
		 */
		points_drop(s, run, from);
		own->active = false;
	}
}

static bool all_over(const struct m_run *run)
{
	for (size_t n = 0; n < run->nodes; n++) {
		const char *state = run->node[n].state;

		if (!run->node[n].out && strcmp(state, "done") != 0 &&
		    strcmp(state, "failed") != 0 &&
		    strcmp(state, "stopped") != 0)
			return false;
	}
	return true;
}

static const struct m_run_node *any_in(const struct m_run *run,
				       const char *state)
{
	for (size_t n = 0; n < run->nodes; n++)
		if (!run->node[n].out && !strcmp(run->node[n].state, state))
			return &run->node[n];
	return NULL;
}

/* Of all together: what the first of these is that any is in. */
static void run_compose(struct m_run *run)
{
	static const char *const over[] = { "failed", "stopped", "done" };
	static const char *const live[] = { "stopping", "paused", "running",
					    "waiting" };
	const bool is_over = all_over(run);
	const char *const *list = is_over ? over : live;
	const struct m_run_node *in = NULL;
	size_t count = is_over ? array_len(over) : array_len(live);

	for (size_t i = 0; i < count && !in; i++) {
		in = any_in(run, list[i]);
		if (in) {
			memcpy(run->state, in->state, sizeof(run->state));
			memcpy(run->reason, in->reason, sizeof(run->reason));
		}
	}
}

void nodes_run_state(struct m_state *s, struct m_run *run, int node,
		     const char *state, const char *reason, int64_t phase)
{
	struct m_run_node *n = &run->node[node];

	snprintf(n->state, sizeof(n->state), "%s", state);
	snprintf(n->reason, sizeof(n->reason), "%s", reason);
	n->waits_at = strcmp(state, "waiting") ? -1 : (int)phase;
	n->out = false;
	if (!strcmp(state, "done") || !strcmp(state, "failed") ||
	    !strcmp(state, "stopped"))
		parts_end(s, run, node, MODEL_PHASES_MAX + 1);
	run_compose(run);
}

void nodes_phase(struct m_state *s, struct m_run *run, int node, int64_t phase,
		 int64_t late_us)
{
	struct run_own *own = model_run_own(s, run);
	struct m_point *p = model_point_find(run, phase);
	struct m_point_node *part;

	own->active = true;
	run->node[node].out = false;
	parts_end(s, run, node, phase);
	if (!p)
		return;
	part = &p->node[node];
	/* Where the others' intervals have counted without it they go on to. */
	if (part->state == PART_OUT && p->measured_s > 0)
		return;
	part->state = PART_BEGUN;
	p->node_out = false;
	for (size_t n = 0; n < run->nodes; n++)
		p->node_out |= p->node[n].state == PART_OUT;
	part->late_us = late_us;
	if (late_us > p->skew_us)
		p->skew_us = late_us;
	p->skew_err_us = own->go_err_us;
}

void nodes_phase_end(struct m_state *s, struct m_run *run, int node,
		     int64_t phase, const char *status)
{
	struct m_point *p = model_point_find(run, phase);

	if (!p)
		return;
	p->node[node].failed =
		!strcmp(status, "failed") || !strcmp(status, "stopped");
	part_end(s, run, p, node, strcmp(status, "out") ? PART_GONE : PART_OUT);
}

/* ---- what the console says ---------------------------------------------- */

int model_on_run_go(struct m_state *s, const struct event_head *head,
		    struct m_in *in)
{
	int64_t err_us = in_int(in, "err_us", EVENT_INT_MAX, IN_MAY);
	int64_t phase = in_int(in, "phase", MODEL_PHASES_MAX, IN_MUST);
	int64_t at_us = in_int(in, "at_us", INT64_MAX, IN_MAY);
	char id[MODEL_NAME];
	struct m_run *run;

	(void)head;
	IN_TEXT(in, "run", id, IN_MUST);
	run = in->rc ? NULL : model_run_find(s, id);
	if (run) {
		model_run_own(s, run)->go_err_us = err_us;
		run->go_phase = (int)phase;
		run->go_at_us = at_us;
	}
	return in->rc;
}

int model_on_run_out(struct m_state *s, const struct event_head *head,
		     struct m_in *in)
{
	char id[MODEL_NAME], agent[MODEL_NAME], why[MODEL_TEXT];
	struct m_run *run;

	IN_TEXT(in, "run", id, IN_MUST);
	IN_TEXT(in, "agent", agent, IN_MUST);
	IN_TEXT(in, "why", why, IN_MAY);
	run = in->rc ? NULL : model_run_find(s, id);
	for (size_t n = 0; run && n < run->nodes; n++) {
		if (strcmp(run->node[n].agent, agent) != 0)
			continue;
		run->node[n].out = true;
		parts_end(s, run, (int)n, MODEL_PHASES_MAX + 1);
		run_compose(run);
		model_log(s, head->t_us, "warn",
			  "the run goes on without %s%s%s", run->node[n].name,
			  *why ? ": " : "", why);
	}
	return in->rc;
}

const char *model_silent_text(const struct m_run *run, const struct m_point *p,
			      char *out, size_t size)
{
	size_t len = 0;

	*out = '\0';
	for (size_t n = 0; p->node && n < run->nodes && len < size; n++) {
		const struct m_point_node *part = &p->node[n];

		if (part->state == PART_OUT)
			len += (size_t)snprintf(out + len, size - len,
						"%swithout %s", len ? ", " : "",
						run->node[n].name);
		else if (part->missing)
			len += (size_t)snprintf(
				out + len, size - len,
				"%s%s missing in %lld of %lld intervals",
				len ? ", " : "", run->node[n].name,
				(long long)part->missing,
				(long long)p->missing +
					(long long)p->intervals);
	}
	return out;
}
