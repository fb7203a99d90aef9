/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples: an interval's operations and latencies go into the strip and the
 * heat map as they are, and into their point unless the load was still warming
 * up.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

/* ---- reading it --------------------------------------------------------- */

static void in_hist(struct m_in *in, const char *key, struct hist *h)
{
	const json_t *o = in_object(in, key, IN_MAY);

	hist_reset(h);
	if (o && !in->rc)
		in->rc = event_hist_decode(o, h, in->err);
}

static void in_dir(struct m_in *in, const char *key, struct m_sample *sa, int i,
		   struct m_state *s)
{
	const json_t *o = in_object(in, key, IN_MAY);
	struct m_in part;

	hist_reset(&s->scratch[i]);
	hist_reset(&s->scratch[2 + i]);
	if (!o)
		return;
	part = in_part(in, o);
	sa->ops[i] = in_int(&part, "ops", EVENT_INT_MAX, IN_MUST);
	sa->bytes[i] = in_int(&part, "bytes", EVENT_INT_MAX, IN_MAY);
	sa->errors[i] = in_int(&part, "errors", EVENT_INT_MAX, IN_MAY);
	in_hist(&part, "svc", &s->scratch[i]);
	in_hist(&part, "rsp", &s->scratch[2 + i]);
	in->rc = part.rc;
}

static void in_sample(struct m_in *in, struct m_sample *sa, struct m_state *s)
{
	const json_t *bound;

	memset(sa, 0, sizeof(*sa));
	IN_TEXT(in, "run", sa->run, IN_MAY);
	sa->phase = in_int(in, "phase", MODEL_PHASES_MAX, IN_MAY);
	sa->series = in_int(in, "series", MODEL_SERIES_MAX, IN_MAY);
	sa->from_us = in_int(in, "from_us", EVENT_INT_MAX, IN_MUST);
	sa->len_us = in_int(in, "len_us", 3600000000, IN_MUST);
	sa->warm = in_bool(in, "warm");
	sa->cpu_wait = in_num(in, "cpu_wait");
	sa->scheduled = in_int(in, "scheduled", EVENT_INT_MAX, IN_MAY);
	sa->backlog = in_int(in, "backlog", EVENT_INT_MAX, IN_MAY);
	sa->inflight = in_int(in, "inflight", EVENT_INT_MAX, IN_MAY);
	bound = in_array(in, "bound", 16, IN_MAY);
	for (size_t i = 0; i < json_array_size(bound); i++) {
		const char *w = json_string_value(json_array_get(bound, i));

		sa->generator_bound |= w && !strcmp(w, "generator");
	}
	in_dir(in, "read", sa, 0, s);
	in_dir(in, "write", sa, 1, s);
	if (!in->rc && (sa->len_us < 1 || sa->from_us < 0))
		in_bad(in, "a sample of no length");
}

/* ---- strip and heat map ------------------------------------------------- */

static struct m_strip *strip_next(struct m_state *s)
{
	struct model *m = &s->pub;

	if (m->strips == MODEL_STRIP) {
		m->strip++;
		m->strips--;
		if (m->strip == s->strip_room + MODEL_STRIP) {
			memcpy(s->strip_room, m->strip,
			       m->strips * sizeof(*m->strip));
			m->strip = s->strip_room;
		}
	}
	memset(&m->strip[m->strips], 0, sizeof(*m->strip));
	return &m->strip[m->strips++];
}

static unsigned heat_row(unsigned bucket)
{
	uint64_t us = (hist_bucket_low_ns(bucket) +
		       hist_bucket_width_ns(bucket) / 2) /
		      1000;
	unsigned row = us < 2 ? 0 : 63u - (unsigned)__builtin_clzll(us);

	return row < MODEL_HEAT_ROWS ? row : MODEL_HEAT_ROWS - 1;
}

static void heat_fill(struct m_strip *st, const struct hist *h)
{
	uint64_t row[MODEL_HEAT_ROWS] = { 0 };

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		if (h->bucket[i])
			row[heat_row(i)] += h->bucket[i];
	for (unsigned i = 0; i < MODEL_HEAT_ROWS; i++)
		st->heat[i] =
			row[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)row[i];
}

static double p99_us(const struct hist *h)
{
	uint64_t ns;

	return hist_quantile(h, 0.99, &ns) ? NAN : (double)ns / 1000;
}

static double mean_us(const struct hist *h)
{
	return h->count ? hist_mean_ns(h) / 1000 : NAN;
}

static double rate_one(int64_t v, int64_t len_us)
{
	return v > 0 ? (double)v * 1e6 / (double)len_us : 0;
}

static double rate(const int64_t v[2], int64_t len_us)
{
	return rate_one(v[0], len_us) + rate_one(v[1], len_us);
}

/* Two that each passed the codec's check may still overflow together. */
bool model_hist_fits(const struct hist *into, const struct hist *from)
{
	return into->sum_ns <= UINT64_MAX - from->sum_ns &&
	       into->count <= INT64_MAX - from->count;
}

/*
 * What a step has left when it ends, over milliseconds: a rate of it says
 * nothing, and would stand on the screen as what goes through now.
 */
bool model_sample_is_slice(const struct m_run *run, const struct m_sample *sa)
{
	const json_int_t interval_ms =
		json_integer_value(json_object_get(run->plan, "interval_ms"));

	return sa->len_us / 500 < interval_ms;
}

static void strip_add(struct m_state *s, const struct m_sample *sa, size_t run,
		      int64_t end_t_us)
{
	struct model *m = &s->pub;
	int64_t end_us = sa->from_us + sa->len_us;
	bool same = m->strips && s->strip_run == run &&
		    s->strip_phase == sa->phase && s->strip_end_us == end_us;
	struct m_strip *st;

	if (same) {
		st = &m->strip[m->strips - 1];
	} else {
		st = strip_next(s);
		st->t_us = end_t_us;
		st->inflight = -1;
		hist_reset(&s->strip_hist);
		s->strip_run = run;
		s->strip_phase = sa->phase;
		s->strip_end_us = end_us;
	}
	if (model_hist_fits(&s->strip_hist, &s->both))
		hist_merge(&s->strip_hist, &s->both);
	st->iops += rate(sa->ops, sa->len_us);
	st->read_iops += rate_one(sa->ops[0], sa->len_us);
	st->write_iops += rate_one(sa->ops[1], sa->len_us);
	if (sa->inflight >= 0)
		st->inflight =
			(st->inflight > 0 ? st->inflight : 0) + sa->inflight;
	st->bytes_s += rate(sa->bytes, sa->len_us);
	st->mean_us = mean_us(&s->strip_hist);
	st->p99_us = p99_us(&s->strip_hist);
	heat_fill(st, &s->strip_hist);
}

/* ---- the point ---------------------------------------------------------- */

/* Unknown (-1) adds nothing; a sum stays below what a double holds. */
static void sum_add(int64_t *sum, int64_t v)
{
	if (v < 0)
		return;
	*sum = *sum > EVENT_INT_MAX - v ? EVENT_INT_MAX : *sum + v;
}

static int interval_add(struct m_state *s, struct m_point *p,
			const struct m_sample *sa, int64_t end_t_us)
{
	struct m_interval *iv;

	if (s->intervals >= MODEL_INTERVALS_MAX)
		return 0;
	if (model_grow(&p->interval, p->intervals, sizeof(*iv)))
		return -ENOMEM;
	iv = &p->interval[p->intervals++];
	s->intervals++;
	iv->t_us = end_t_us;
	iv->iops = rate(sa->ops, sa->len_us);
	iv->mean_us = mean_us(&s->both);
	iv->p99_us = p99_us(&s->both);
	return 0;
}

/* What stood before the target; of a search, too, whose maximum is the measure
 * of all points after it. */
static void point_held(struct m_point *p, const struct m_sample *sa)
{
	p->generator_bound |= sa->generator_bound;
	if (!(sa->cpu_wait >= 0))
		return;
	p->wait_of_s += (double)sa->len_us / 1e6;
	p->wait_s += sa->cpu_wait * (double)sa->len_us / 1e6;
}

static int point_add(struct m_state *s, struct m_point *p,
		     const struct m_sample *sa, int64_t end_t_us)
{
	struct m_dir *dir[2] = { &p->read, &p->write };

	if (!sa->warm || !strcmp(p->kind, "max"))
		point_held(p, sa);
	if (sa->warm)
		return 0;
	if (p->state == POINT_WARM)
		p->state = POINT_RUN;
	for (int i = 0; i < 2; i++) {
		if (!model_hist_fits(&dir[i]->svc, &s->scratch[i]) ||
		    !model_hist_fits(&dir[i]->rsp, &s->scratch[2 + i]))
			return -EINVAL;
		sum_add(&dir[i]->ops, sa->ops[i]);
		sum_add(&dir[i]->bytes, sa->bytes[i]);
		sum_add(&dir[i]->errors, sa->errors[i]);
		hist_merge(&dir[i]->svc, &s->scratch[i]);
		hist_merge(&dir[i]->rsp, &s->scratch[2 + i]);
	}
	if (sa->scheduled >= 0) {
		if (p->scheduled < 0)
			p->scheduled = 0;
		sum_add(&p->scheduled, sa->scheduled);
	}
	if (sa->backlog >= 0)
		p->backlog = sa->backlog;
	p->measured_s += (double)sa->len_us / 1e6;
	return interval_add(s, p, sa, end_t_us);
}

int model_sample_count(struct m_state *s, struct m_run *run, struct m_point *p,
		       const struct m_sample *sa, int64_t end_t_us)
{
	struct run_own *own = model_run_own(s, run);
	int64_t end_us = sa->from_us + sa->len_us;
	int rc = 0;

	s->both = s->scratch[0];
	hist_merge(&s->both, &s->scratch[1]);
	if (p) {
		end_t_us = p->begun_t_us + end_us;
		rc = point_add(s, p, sa, end_t_us);
		end_us -= p->held_us;
	}
	if (!model_sample_is_slice(run, sa))
		strip_add(s, sa, (size_t)(run - s->pub.run), end_t_us);
	if (sa->phase == run->phase.phase && end_us > own->elapsed_us &&
	    !(p && p->paused_t_us))
		own->elapsed_us = end_us;
	return rc;
}

int model_on_sample(struct m_state *s, const struct event_head *head,
		    struct m_in *in)
{
	struct m_sample sa;
	struct m_run *run;
	struct m_point *p;
	int node;

	in_sample(in, &sa, s);
	if (in->rc)
		return in->rc;
	run = model_run_find(s, sa.run);
	if (!run)
		return in_bad(in,
			      "a sample of run %s, which was not "
			      "announced",
			      sa.run);
	p = sa.phase < 0 ? NULL : model_point_find(run, sa.phase);
	if (!run->nodes)
		return model_sample_count(s, run, p, &sa, head->t_us);
	node = nodes_index(run, head);
	if (node < 0 || !p)
		return in_bad(in,
			      "a sample of a phase that %.40s has not begun",
			      head->a);
	return nodes_sample(s, run, p, node, &sa);
}
