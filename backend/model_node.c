/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The nodes of a cluster as the console saw them: whether it reached them, how,
 * and how far their clocks were off, by which times of theirs are told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

struct m_node *model_node(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->nodes; i++)
		if (!strcmp(model->node[i].name, name))
			return &model->node[i];
	return NULL;
}

struct m_host *model_host(const struct model *model, const char *agent)
{
	for (size_t i = 0; i < model->hosts; i++)
		if (!strcmp(model->host[i].agent, agent))
			return &model->host[i];
	return NULL;
}

int64_t model_t_us(const struct model *model, const char *agent, int64_t t_us)
{
	for (size_t i = 0; i < model->nodes; i++) {
		const struct m_node *n = &model->node[i];

		if (n->offset_known && !strcmp(n->agent, agent))
			return t_us > n->offset_us ? t_us - n->offset_us : 0;
	}
	return t_us;
}

static int64_t in_signed(struct m_in *in, const char *key)
{
	const json_t *j = json_object_get(in->o, key);
	json_int_t v = json_integer_value(j);

	if (j && !json_is_null(j) && !in->rc &&
	    (!json_is_integer(j) || v > EVENT_INT_MAX || v < -EVENT_INT_MAX))
		in_bad(in, "%s: a whole number is expected", key);
	return v;
}

static void node_read(struct m_in *in, struct m_node *n)
{
	const json_t *offset = json_object_get(in->o, "offset_us");

	IN_TEXT(in, "name", n->name, IN_MUST);
	IN_TEXT(in, "agent", n->agent, IN_MAY);
	IN_TEXT(in, "state", n->state, IN_MUST);
	IN_TEXT(in, "why", n->why, IN_MAY);
	IN_TEXT(in, "via", n->via, IN_MAY);
	IN_TEXT(in, "version", n->version, IN_MAY);
	n->offset_known = offset && !json_is_null(offset);
	n->offset_us = in_signed(in, "offset_us");
	n->offset_err_us = in_int(in, "offset_err_us", EVENT_INT_MAX, IN_MAY);
	n->rtt_us = in_int(in, "rtt_us", EVENT_INT_MAX, IN_MAY);
}

static void node_log(struct m_state *s, int64_t t_us, const struct m_node *was,
		     const struct m_node *is)
{
	bool bad = !strcmp(is->state, "lost") || !strcmp(is->state, "refused");

	if (was && !strcmp(was->state, is->state) && !strcmp(was->why, is->why))
		return;
	if (!was && !strcmp(is->state, "connecting"))
		return;
	model_log(s, t_us, bad ? "warn" : "info", "node %s is %s%s%s", is->name,
		  is->state, *is->why ? ": " : "", is->why);
}

int model_on_node(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	struct model *m = &s->pub;
	struct m_node n = { .t_us = head->t_us }, *at;

	node_read(in, &n);
	if (in->rc)
		return in->rc;
	at = model_node(m, n.name);
	node_log(s, head->t_us, at, &n);
	if (!at) {
		if (m->nodes == MODEL_HOSTS_MAX)
			return in_bad(in, "more than %d nodes",
				      MODEL_HOSTS_MAX);
		if (model_grow(&m->node, m->nodes, sizeof(n)))
			return -ENOMEM;
		at = &m->node[m->nodes++];
	} else if (!strcmp(at->state, n.state)) {
		n.t_us = at->t_us;
	}
	*at = n;
	return 0;
}
