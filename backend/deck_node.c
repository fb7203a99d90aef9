/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the console tells of the nodes: whether it reaches them, and how far
 * their clocks are off. It is an event like any, so that a replay shows it; of
 * an agent of this machine alone there is nothing to tell.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_TELL_US 2000 /* a clock that has moved by less is not told */
#define LOOK_US 1000000

struct told {
	json_t *body; /* without what is measured */
	bool offset_known;
	int64_t offset_us, err_us;
};

static const char *state_of(const struct fleet_node *n)
{
	int code = n->link ? link_conn_code(n->link) : 0;

	switch (n->state) {
	case FLEET_UP:
		return n->open_failed ? "refused" : "up";
	case FLEET_WAITING:
		return "lost";
	case FLEET_LOST:
		return code && !node_may_heal(code) ? "refused" : "lost";
	default:
		return n->ups ? "lost" : "connecting";
	}
}

/* Without when it is tried again, as that alone is no news. */
static void why_of(const struct fleet_node *n, char *buf, size_t len)
{
	char *again;

	snprintf(buf, len, "%s", n->text);
	again = strstr(buf, FLEET_AGAIN);
	if (again)
		*again = '\0';
}

static json_t *body_of(const struct fleet_node *n)
{
	const char *via = n->link ? link_conn_via(n->link) : "";
	const char *host = n->at->host.host;
	char why[FLEET_TEXT];

	why_of(n, why, sizeof(why));
	return json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:s*}", "name",
			 *n->name ? n->name : host, "agent", n->agent, "state",
			 state_of(n), "why", *why ? why : NULL, "via",
			 *via ? via : NULL, "version",
			 *n->version ? n->version : NULL);
}

static bool offset_is_news(const struct told *t, bool known, int64_t offset_us,
			   int64_t err_us)
{
	int64_t by = llabs(offset_us - t->offset_us);

	if (!known || !t->offset_known)
		return known && !t->offset_known;
	return (by > OFFSET_TELL_US && by > 2 * err_us) ||
	       (err_us < t->err_us / 4 && t->err_us > OFFSET_TELL_US);
}

void node_tell(struct deck *deck, const struct fleet_node *n)
{
	struct told *t;
	int64_t offset = 0, err = 0, rtt = 0;
	bool known = offset_best(&n->offset, deck_clock(), &offset, &err, &rtt);
	json_t *body;

	if (!*n->name && !n->at->host.host)
		return;
	if (!deck->told)
		deck->told = calloc(deck->nodes, sizeof(*deck->told));
	body = deck->told ? body_of(n) : NULL;
	if (!body)
		return;
	t = &deck->told[n - deck->fleet->node];
	if (json_equal(body, t->body) &&
	    !offset_is_news(t, known, offset, err)) {
		json_decref(body);
		return;
	}
	json_decref(t->body);
	*t = (struct told) { json_deep_copy(body), known, offset, err };
	if (known) {
		json_object_set_new(body, "offset_us", json_integer(offset));
		json_object_set_new(body, "offset_err_us", json_integer(err));
		json_object_set_new(body, "rtt_us", json_integer(rtt));
	}
	record_own(deck, "node", body);
}

void nodes_look(struct deck *deck)
{
	int64_t now = deck_clock();

	if (!deck->fleet || now < deck->look_at_us)
		return;
	deck->look_at_us = now + LOOK_US;
	for (size_t k = 0; k < deck->fleet->nodes; k++)
		node_tell(deck, &deck->fleet->node[k]);
}

void nodes_forget(struct deck *deck)
{
	for (size_t k = 0; deck->told && k < deck->nodes; k++)
		json_decref(deck->told[k].body);
	free(deck->told);
	deck->told = NULL;
}
