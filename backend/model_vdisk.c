/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the model knows of policies and vDisks, and what a vDisk of the log
 * layout tells of itself: counters, of which two events make an interval.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

/* ---- policies ----------------------------------------------------------- */

static struct m_policy *policy_find(struct model *m, const char *name)
{
	for (size_t i = 0; i < m->policies; i++)
		if (!strcmp(m->policy[i].name, name))
			return &m->policy[i];
	return NULL;
}

int model_on_policy(struct m_state *s, const struct event_head *head,
		    struct m_in *in)
{
	struct model *m = &s->pub;
	struct m_policy p = { 0 }, *at;

	(void)head;
	IN_TEXT(in, "name", p.name, IN_MUST);
	p.raid = (int)in_int(in, "raid", 100, IN_MUST);
	p.ftt = (int)in_int(in, "ftt", 100, IN_MAY);
	p.stripe_unit_bytes =
		in_int(in, "stripe_unit_bytes", EVENT_INT_MAX, IN_MAY);
	IN_TEXT(in, "layout", p.layout, IN_MAY);
	IN_TEXT(in, "compression", p.compression, IN_MAY);
	if (in->rc)
		return in->rc;
	at = policy_find(m, p.name);
	if (!at) {
		if (m->policies == MODEL_POLICIES_MAX)
			return in_bad(in, "more than %d policies",
				      MODEL_POLICIES_MAX);
		if (model_grow(&m->policy, m->policies, sizeof(p)))
			return -ENOMEM;
		at = &m->policy[m->policies++];
	}
	*at = p;
	return 0;
}

int model_on_policy_gone(struct m_state *s, const struct event_head *head,
			 struct m_in *in)
{
	struct model *m = &s->pub;
	char name[MODEL_NAME];
	struct m_policy *at;

	(void)head;
	IN_TEXT(in, "name", name, IN_MUST);
	at = in->rc ? NULL : policy_find(m, name);
	if (at) {
		m->policies--;
		memmove(at, at + 1,
			(size_t)(m->policy + m->policies - at) * sizeof(*at));
	}
	return in->rc;
}

/* ---- vDisks ------------------------------------------------------------- */

static void in_members(struct m_in *in, struct m_vdisk *v)
{
	const json_t *list =
		in_array(in, "members", array_len(v->member), IN_MAY);

	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		struct m_member *mb = &v->member[v->members++];

		mb->slot = (int)in_int(&part, "slot", 1000, IN_MAY);
		IN_TEXT(&part, "domain", mb->domain, IN_MAY);
		IN_TEXT(&part, "drive", mb->drive, IN_MAY);
		IN_TEXT(&part, "role", mb->role, IN_MAY);
		IN_TEXT(&part, "state", mb->state, IN_MAY);
		in->rc = part.rc;
	}
}

static void in_export(struct m_in *in, struct m_vdisk *v)
{
	const json_t *export = in_object(in, "export", IN_MAY);
	struct m_in part;

	if (!export)
		return;
	part = in_part(in, export);
	IN_TEXT(&part, "uri", v->export.uri, IN_MUST);
	IN_TEXT(&part, "state", v->export.state, IN_MUST);
	IN_TEXT(&part, "key", v->export.key, IN_MAY);
	v->export.read_only = in_bool(&part, "read_only");
	v->export.restarts = in_int(&part, "restarts", EVENT_INT_MAX, IN_MAY);
	in->rc = part.rc;
}

static void in_vdisk(struct m_in *in, struct m_vdisk *v)
{
	IN_TEXT(in, "name", v->name, IN_MUST);
	IN_TEXT(in, "uuid", v->uuid, IN_MAY);
	IN_TEXT(in, "policy", v->policy, IN_MAY);
	IN_TEXT(in, "layout", v->layout, IN_MAY);
	IN_TEXT(in, "compression", v->compression, IN_MAY);
	IN_TEXT(in, "state", v->state, IN_MUST);
	IN_TEXT(in, "reason", v->reason, IN_MAY);
	IN_TEXT(in, "owner", v->owner, IN_MAY);
	v->term = in_int(in, "term", EVENT_INT_MAX, IN_MAY);
	v->raid = (int)in_int(in, "raid", 100, IN_MAY);
	v->ftt = (int)in_int(in, "ftt", 100, IN_MAY);
	v->k = (int)in_int(in, "k", 100, IN_MAY);
	v->m = (int)in_int(in, "m", 100, IN_MAY);
	v->failures_left = (int)in_int(in, "failures_left", 100, IN_MAY);
	v->size_bytes = in_int(in, "size_bytes", INT64_MAX, IN_MAY);
	v->stripe_unit_bytes =
		in_int(in, "stripe_unit_bytes", EVENT_INT_MAX, IN_MAY);
	v->epoch = in_int(in, "epoch", INT64_MAX, IN_MAY);
	v->memory_bytes = in_int(in, "memory_bytes", EVENT_INT_MAX, IN_MAY);
	v->progress = in_num(in, "progress");
	v->rate_bytes_s = in_num(in, "rate_bytes_s");
	v->left_bytes = in_num(in, "left_bytes");
	in_export(in, v);
	in_members(in, v);
}

/* A change of state is worth a line, and another member that is gone;
 * progress is not. */
static void vdisk_log(struct m_state *s, int64_t t_us,
		      const struct m_vdisk *was, const struct m_vdisk *is)
{
	bool bad =
		!strcmp(is->state, "failed") || !strcmp(is->state, "degraded");

	if (was && !strcmp(was->state, is->state) &&
	    is->failures_left >= was->failures_left)
		return;
	model_log(s, t_us, bad ? "warn" : "info", "vDisk %s is %s%s%s",
		  is->name, is->state, *is->reason ? ": " : "", is->reason);
}

static void figures_clear(struct m_vdisk_log *l)
{
	*l = (struct m_vdisk_log) {
		.t_us = -1,
		.opened_t_us = -1,
		.written = { -1, -1, -1, -1, -1, -1, -1, -1 },
		.blocks_mapped = -1,
		.stored_bytes = -1,
		.space_bytes = -1,
		.buffer_bytes = -1,
		.buffer_max_bytes = -1,
		.zero_blocks = -1,
		.checkpoints = -1,
		.segments_cleaned = -1,
		.reads_degraded = -1,
		.reads_repaired = -1,
		.reads_hedged = -1,
		.scrub_passes = -1,
		.scrub_bytes = -1,
		.scrub_found = -1,
		.scrub_repaired = -1,
		.scrub_lost = -1,
		.scrub_progress = NAN,
		.blocks_lost = -1,
		.replayed = -1,
		.opening_us = -1,
		.free_share = NAN,
		.log_fill = NAN,
		.victim_live = NAN,
		.compliance = NAN,
		.ratio = NAN,
	};
}

/* Those of the same vDisk outlive a new description of it. */
static void figures_keep(struct m_vdisk *to, const struct m_vdisk *from)
{
	to->log = from->log;
	to->strip = from->strip;
	to->strips = from->strips;
	memcpy(to->span, from->span, sizeof(to->span));
	to->spans = from->spans;
}

/* Ends the span of the state before, begins that of the new one. */
static void span_turn(struct m_vdisk *v, int64_t t_us)
{
	struct m_span *last = v->spans ? &v->span[v->spans - 1] : NULL;

	if (last && last->to_us < 0) {
		if (!strcmp(last->state, v->state))
			return;
		last->to_us = t_us;
	}
	if (!strcmp(v->state, "healthy"))
		return;
	if (v->spans == MODEL_SPANS)
		memmove(v->span, v->span + 1, --v->spans * sizeof(*v->span));
	last = &v->span[v->spans++];
	*last = (struct m_span) { .from_us = t_us, .to_us = -1 };
	memcpy(last->state, v->state, sizeof(last->state));
}

/* A new vDisk's place: by name, whatever order they were told of in. */
static struct m_vdisk *place_make(struct model *m, const char *name)
{
	size_t at = m->vdisks;

	while (at && strverscmp(m->vdisk[at - 1].name, name) > 0)
		at--;
	memmove(m->vdisk + at + 1, m->vdisk + at,
		(m->vdisks - at) * sizeof(*m->vdisk));
	m->vdisks++;
	return &m->vdisk[at];
}

static int vdisk_put(struct m_state *s, const struct event_head *head,
		     struct m_in *in, struct m_vdisk *v)
{
	struct model *m = &s->pub;
	struct m_vdisk *at = model_vdisk(m, v->name);

	if (at) {
		figures_keep(v, at);
	} else {
		if (m->vdisks == MODEL_VDISKS_MAX)
			return in_bad(in, "more than %d vDisks",
				      MODEL_VDISKS_MAX);
		if (model_grow(&m->vdisk, m->vdisks, sizeof(*v)))
			return -ENOMEM;
		at = place_make(m, v->name);
		figures_clear(&v->log);
	}
	if (!v->hearsay)
		span_turn(v, head->t_us);
	*at = *v;
	model_run_vdisk(s, at);
	return 0;
}

/* It has had another owner since, of whom this one has not heard yet. */
static bool outdated(const struct m_vdisk *at, const struct m_vdisk *v)
{
	return at && at->term > v->term &&
	       (!*at->uuid || !*v->uuid || !strcmp(at->uuid, v->uuid));
}

int model_on_vdisk(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	struct m_vdisk v = { 0 };
	const struct m_vdisk *at;

	snprintf(v.agent, sizeof(v.agent), "%s", head->a);
	in_vdisk(in, &v);
	if (in->rc)
		return in->rc;
	at = model_vdisk(&s->pub, v.name);
	if (outdated(at, &v))
		return 0;
	vdisk_log(s, head->t_us, at, &v);
	return vdisk_put(s, head, in, &v);
}

/* Who has heard of a later term knows better who owns it. */
int model_on_vdisk_seen(struct m_state *s, const struct event_head *head,
			struct m_in *in)
{
	struct m_vdisk v = { .hearsay = true };
	const struct m_vdisk *at;

	in_vdisk(in, &v);
	if (in->rc)
		return in->rc;
	at = model_vdisk(&s->pub, v.name);
	if (at && at->term >= v.term)
		return 0;
	if (*v.owner)
		snprintf(v.agent, sizeof(v.agent), "%.31s.%.31s",
			 s->pub.cluster, v.owner);
	return vdisk_put(s, head, in, &v);
}

static void strips_drop(struct m_state *s, struct m_vdisk *v)
{
	s->vdisk_strips -= v->strips;
	free(v->strip);
	v->strip = NULL;
	v->strips = 0;
}

void model_vdisks_free(struct m_state *s)
{
	for (size_t i = 0; i < s->pub.vdisks; i++)
		strips_drop(s, &s->pub.vdisk[i]);
	free(s->pub.vdisk);
}

int model_on_vdisk_gone(struct m_state *s, const struct event_head *head,
			struct m_in *in)
{
	struct model *m = &s->pub;
	char name[MODEL_NAME];
	struct m_vdisk *at;

	IN_TEXT(in, "name", name, IN_MUST);
	at = in->rc ? NULL : model_vdisk(m, name);
	/* not what another agent has taken over since */
	if (at && !strcmp(at->agent, head->a)) {
		strips_drop(s, at);
		m->vdisks--;
		memmove(at, at + 1,
			(size_t)(m->vdisk + m->vdisks - at) * sizeof(*at));
		model_log(s, head->t_us, "info", "vDisk %s is gone", name);
	}
	return in->rc;
}

/* ---- figures of the log layout ------------------------------------------ */

void model_amp(const struct m_written *w, struct m_amp *amp)
{
	const double user = w->user > 0 ? (double)w->user : NAN;

	amp->log = (double)w->log / user;
	amp->destage = (double)w->destage / user;
	amp->bypass = (double)w->bypass / user;
	amp->clean = (double)w->clean / user;
	amp->rebuild = (double)w->rebuild / user;
	amp->checkpoint = (double)w->checkpoint / user;
	amp->all = amp->log + amp->destage + amp->bypass + amp->clean +
		   amp->rebuild + amp->checkpoint;
}

static void sum_add(int64_t *sum, int64_t v)
{
	if (v > 0)
		*sum = *sum > EVENT_INT_MAX - v ? EVENT_INT_MAX : *sum + v;
}

void model_written_add(struct m_written *sum, const struct m_written *more)
{
	sum_add(&sum->user, more->user);
	sum_add(&sum->stored, more->stored);
	sum_add(&sum->log, more->log);
	sum_add(&sum->destage, more->destage);
	sum_add(&sum->bypass, more->bypass);
	sum_add(&sum->clean, more->clean);
	sum_add(&sum->rebuild, more->rebuild);
	sum_add(&sum->checkpoint, more->checkpoint);
}

static int64_t in_bytes(struct m_in *in, const char *key)
{
	return in_int(in, key, EVENT_INT_MAX, IN_MAY);
}

static void in_written(struct m_in *in, struct m_written *w)
{
	w->user = in_bytes(in, "user_bytes");
	w->stored = in_bytes(in, "user_stored_bytes");
	w->log = in_bytes(in, "log_bytes");
	w->destage = in_bytes(in, "destage_bytes");
	w->bypass = in_bytes(in, "bypass_bytes");
	w->clean = in_bytes(in, "clean_bytes");
	w->rebuild = in_bytes(in, "rebuild_bytes");
	w->checkpoint = in_bytes(in, "checkpoint_bytes");
}

static void in_figures(struct m_in *in, struct m_vdisk_log *l)
{
	in_written(in, &l->written);
	l->opened_t_us = in_bytes(in, "opened_t_us");
	l->blocks_mapped = in_bytes(in, "blocks_mapped");
	l->stored_bytes = in_bytes(in, "stored_bytes");
	l->space_bytes = in_bytes(in, "space_bytes");
	l->buffer_bytes = in_bytes(in, "buffer_bytes");
	l->buffer_max_bytes = in_bytes(in, "buffer_max_bytes");
	l->zero_blocks = in_bytes(in, "zero_blocks");
	l->checkpoints = in_bytes(in, "checkpoints");
	l->segments_cleaned = in_bytes(in, "segments_cleaned");
	l->reads_degraded = in_bytes(in, "reads_degraded");
	l->reads_repaired = in_bytes(in, "reads_repaired");
	l->reads_hedged = in_bytes(in, "reads_hedged");
	l->blocks_lost = in_bytes(in, "blocks_lost");
	l->replayed = in_bytes(in, "replayed");
	l->scrub_passes = in_bytes(in, "scrub_passes");
	l->scrub_bytes = in_bytes(in, "scrub_bytes");
	l->scrub_found = in_bytes(in, "scrub_found");
	l->scrub_repaired = in_bytes(in, "scrub_repaired");
	l->scrub_lost = in_bytes(in, "scrub_lost");
	l->scrub_progress = in_num(in, "scrub_progress");
	l->opening_us = in_bytes(in, "opening_us");
	l->free_share = in_num(in, "free_share");
	l->log_fill = in_num(in, "log_fill");
	l->victim_live = in_num(in, "victim_live");
	l->compliance = in_num(in, "compliance");
	l->ratio = l->stored_bytes > 0 && l->blocks_mapped >= 0
			   ? (double)l->blocks_mapped * 4096 /
				     (double)l->stored_bytes
			   : NAN;
}

/* 0 where either is unknown, or it went back. */
static int64_t grown(int64_t from, int64_t to)
{
	return from >= 0 && to > from ? to - from : 0;
}

static void written_between(const struct m_written *from,
			    const struct m_written *to, struct m_written *w)
{
	w->user = grown(from->user, to->user);
	w->stored = grown(from->stored, to->stored);
	w->log = grown(from->log, to->log);
	w->destage = grown(from->destage, to->destage);
	w->bypass = grown(from->bypass, to->bypass);
	w->clean = grown(from->clean, to->clean);
	w->rebuild = grown(from->rebuild, to->rebuild);
	w->checkpoint = grown(from->checkpoint, to->checkpoint);
}

/* Twice as many as promised are kept, so that moving is rare. */
static void strips_halve(struct m_state *s, struct m_vdisk *v)
{
	const size_t drop = v->strips - v->strips / 2;

	memmove(v->strip, v->strip + drop,
		(v->strips - drop) * sizeof(*v->strip));
	v->strips -= drop;
	s->vdisk_strips -= drop;
}

static int strip_add(struct m_state *s, struct m_vdisk *v,
		     const struct m_vdisk_strip *strip)
{
	if (v->strips && (v->strips == 2 * MODEL_STRIP ||
			  s->vdisk_strips == MODEL_VDISK_STRIPS_MAX))
		strips_halve(s, v);
	if (s->vdisk_strips == MODEL_VDISK_STRIPS_MAX)
		return 0;
	if (model_grow(&v->strip, v->strips, sizeof(*strip)))
		return -ENOMEM;
	v->strip[v->strips++] = *strip;
	s->vdisk_strips++;
	return 0;
}

int model_on_vdisk_usage(struct m_state *s, const struct event_head *head,
			 struct m_in *in)
{
	struct m_vdisk_log is = { .t_us = head->t_us };
	struct m_vdisk_strip strip;
	char name[MODEL_NAME];
	struct m_vdisk_log was;
	struct m_vdisk *v;

	IN_TEXT(in, "name", name, IN_MUST);
	in_figures(in, &is);
	v = in->rc ? NULL : model_vdisk(&s->pub, name);
	if (!v)
		return in->rc;
	was = v->log;
	v->log = is;
	if (was.t_us < 0 || was.opened_t_us != is.opened_t_us ||
	    is.t_us <= was.t_us)
		return 0;
	strip = (struct m_vdisk_strip) { .t_us = is.t_us,
					 .len_us = is.t_us - was.t_us,
					 .log_fill = is.log_fill,
					 .free_share = is.free_share,
					 .compliance = is.compliance,
					 .ratio = is.ratio };
	written_between(&was.written, &is.written, &strip.written);
	model_run_written(s, name, &strip);
	return strip_add(s, v, &strip);
}
