/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The fold itself: duplicates, time, the table of types, the log. What the
 * types do stands in model_cluster.c, model_vdisk.c, model_run.c and
 * model_sample.c.
 */
#include "backend/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

int model_grow(void *array, size_t count, size_t size)
{
	void **at = array, *more;
	size_t cap = 4;

	if (count >= 4 && (count & (count - 1)))
		return 0;
	if (count && count < 4)
		return 0;
	if (count)
		cap = 2 * count;
	more = realloc(*at, cap * size);
	if (!more)
		return -ENOMEM;
	*at = more;
	return 0;
}

int model_new(struct model **model)
{
	struct m_state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->pub.first_t_us = s->pub.t_us = -1;
	s->strip_phase = -1;
	s->line_room = calloc(2 * MODEL_LOG, sizeof(*s->line_room));
	s->strip_room = calloc(2 * MODEL_STRIP, sizeof(*s->strip_room));
	if (!s->line_room || !s->strip_room) {
		model_free(&s->pub);
		return -ENOMEM;
	}
	s->pub.line = s->line_room;
	s->pub.strip = s->strip_room;
	*model = &s->pub;
	return 0;
}

void model_free(struct model *model)
{
	struct m_state *s = (struct m_state *)model;

	if (!s)
		return;
	model_runs_free(s);
	model_domains_free(model->domain, model->domains);
	free(model->node);
	model_hosts_free(model);
	free(model->policy);
	model_vdisks_free(s);
	free(s->mark);
	free(s->line_room);
	free(s->strip_room);
	free(s);
}

/* ---- the log ------------------------------------------------------------ */

void model_log(struct m_state *s, int64_t t_us, const char *level,
	       const char *fmt, ...)
{
	struct model *m = &s->pub;
	char text[2 * MODEL_TEXT];
	struct m_line *l;
	va_list ap;

	if (m->lines == MODEL_LOG) {
		m->line++;
		m->lines--;
		if (m->line == s->line_room + MODEL_LOG) {
			memcpy(s->line_room, m->line,
			       m->lines * sizeof(*m->line));
			m->line = s->line_room;
		}
	}
	l = &m->line[m->lines++];
	l->t_us = t_us;
	snprintf(l->level, sizeof(l->level), "%s", level);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	event_text(l->text, sizeof(l->text), text);
}

static int on_log(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	static const char *const level[] = { "info", "warn", "error" };
	char said[16], text[MODEL_TEXT];
	size_t i = 0;

	IN_TEXT(in, "level", said, IN_MAY);
	IN_TEXT(in, "text", text, IN_MUST);
	if (in->rc)
		return in->rc;
	while (i < array_len(level) && strcmp(said, level[i]))
		i++;
	model_log(s, head->t_us, i < array_len(level) ? level[i] : "info", "%s",
		  text);
	return 0;
}

static int on_note(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	char text[MODEL_TEXT];

	IN_TEXT(in, "text", text, IN_MUST);
	if (!in->rc)
		model_log(s, head->t_us, "note", "%s", text);
	return in->rc;
}

static int on_cmd(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	char text[MODEL_TEXT], reply[MODEL_TEXT];
	bool ok = in_bool(in, "ok");

	IN_TEXT(in, "text", text, IN_MUST);
	IN_TEXT(in, "reply", reply, IN_MAY);
	if (in->rc)
		return in->rc;
	model_log(s, head->t_us, "cmd", ":%s", text);
	if (*reply)
		model_log(s, head->t_us, ok ? "info" : "error", "%s", reply);
	return 0;
}

static int on_fault(struct m_state *s, const struct event_head *head,
		    struct m_in *in)
{
	char text[MODEL_TEXT], by[16];

	IN_TEXT(in, "text", text, IN_MUST);
	IN_TEXT(in, "by", by, IN_MAY);
	if (in->rc)
		return in->rc;
	if (*by)
		model_log(s, head->t_us, "fault", "%s (by %s)", text, by);
	else
		model_log(s, head->t_us, "fault", "%s", text);
	model_run_mark(s, text);
	return 0;
}

static int on_gap(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	int64_t from = in_int(in, "from", INT64_MAX, IN_MUST);
	int64_t to = in_int(in, "to", INT64_MAX, IN_MUST);

	if (!in->rc)
		model_log(s, head->t_us, "warn",
			  "events %lld to %lld of %s were lost: its spool "
			  "was full",
			  (long long)from, (long long)to, head->a);
	return in->rc;
}

static int on_open(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	char session[MODEL_NAME], title[MODEL_NAME], version[16];
	int64_t v = in_int(in, "v", 1000000, IN_MAY);

	IN_TEXT(in, "session", session, IN_MAY);
	IN_TEXT(in, "title", title, IN_MAY);
	IN_TEXT(in, "iodeck", version, IN_MAY);
	if (in->rc)
		return in->rc;
	memcpy(s->pub.session, session, sizeof(session));
	memcpy(s->pub.title, title, sizeof(title));
	memcpy(s->pub.version, version, sizeof(version));
	s->pub.closed = false;
	if (v > 1)
		model_log(s, head->t_us, "warn",
			  "the session was written by a newer iodeck (%s): "
			  "what is new in it is not shown",
			  version);
	return 0;
}

static int on_close(struct m_state *s, const struct event_head *head,
		    struct m_in *in)
{
	char reason[MODEL_TEXT];

	IN_TEXT(in, "reason", reason, IN_MAY);
	if (in->rc)
		return in->rc;
	s->pub.closed = true;
	model_log(s, head->t_us, "info", "session closed%s%s",
		  *reason ? ": " : "", reason);
	return 0;
}

/* ---- apply -------------------------------------------------------------- */

static const struct {
	const char *e;
	model_handler on;
} handlers[] = {
	{ "sample", model_on_sample },
	{ "usage", model_on_usage },
	{ "vdisk_usage", model_on_vdisk_usage },
	{ "progress", model_on_progress },
	{ "phase", model_on_phase },
	{ "phase_end", model_on_phase_end },
	{ "log", on_log },
	{ "note", on_note },
	{ "cmd", on_cmd },
	{ "fault", on_fault },
	{ "vdisk", model_on_vdisk },
	{ "vdisk_gone", model_on_vdisk_gone },
	{ "vdisk_seen", model_on_vdisk_seen },
	{ "policy", model_on_policy },
	{ "policy_gone", model_on_policy_gone },
	{ "cluster", model_on_cluster },
	{ "host", model_on_host },
	{ "node", model_on_node },
	{ "run", model_on_run },
	{ "run_state", model_on_run_state },
	{ "run_go", model_on_run_go },
	{ "run_out", model_on_run_out },
	{ "gap", on_gap },
	{ "open", on_open },
	{ "close", on_close },
};

/* -EALREADY when (a, i, n) was seen; else remembers it. */
static int mark_set(struct m_state *s, const struct event_head *head,
		    struct err *err)
{
	struct mark *m = NULL;

	for (size_t k = 0; k < s->marks && !m; k++) {
		/* Most come from the one that wrote before. */
		size_t at = (s->mark_last + k) % s->marks;

		if (s->mark[at].i == head->i &&
		    !strcmp(s->mark[at].a, head->a)) {
			m = &s->mark[at];
			s->mark_last = at;
		}
	}
	if (!m) {
		if (s->marks == MODEL_MARKS_MAX)
			return err_set(err, -EINVAL,
				       "event: more than %d writers",
				       MODEL_MARKS_MAX);
		if (model_grow(&s->mark, s->marks, sizeof(*s->mark)))
			return -ENOMEM;
		m = &s->mark[s->marks];
		s->mark_last = s->marks++;
		snprintf(m->a, sizeof(m->a), "%s", head->a);
		m->i = head->i;
		m->n = 0;
	}
	if (head->n <= m->n)
		return -EALREADY;
	m->n = head->n;
	return 0;
}

int model_apply(struct model *model, const json_t *event, struct err *err)
{
	struct m_state *s = (struct m_state *)model;
	struct event_head head;
	struct m_in in = { .o = event, .err = err };
	char a[64];
	int rc = event_head(event, &head, err);

	if (!rc)
		rc = mark_set(s, &head, err);
	if (rc == -EINVAL)
		model->ignored++;
	if (rc)
		return rc;
	event_text(a, sizeof(a), head.a);
	head.a = a;
	head.t_us = model_t_us(model, a, head.t_us);
	model->revision++;
	if (model->first_t_us < 0)
		model->first_t_us = head.t_us;
	if (head.t_us > model->t_us)
		model->t_us = head.t_us;
	rc = 1;
	for (size_t i = 0; i < array_len(handlers) && rc == 1; i++)
		if (!strcmp(handlers[i].e, head.e))
			rc = handlers[i].on(s, &head, &in);
	if (rc == 1 || rc == -EINVAL)
		model->ignored++;
	model_run_time(s);
	return rc == 1 ? 0 : rc;
}

/* ---- finding ------------------------------------------------------------ */

struct m_run *model_run(const struct model *model)
{
	return model->runs ? &model->run[model->runs - 1] : NULL;
}

struct m_vdisk *model_vdisk(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->vdisks; i++)
		if (!strcmp(model->vdisk[i].name, name))
			return &model->vdisk[i];
	return NULL;
}

struct m_domain *model_domain(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->domains; i++)
		if (!strcmp(model->domain[i].name, name))
			return &model->domain[i];
	return NULL;
}
