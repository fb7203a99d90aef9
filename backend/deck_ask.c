/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Commands that wait for agents. They are sent once all nodes that can be
 * reached are ready, to those that they are for, and done when all of these
 * have answered.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/text.h"
#include "backend/wire.h"

#define WATCHES                                                           \
	"another console owns the agent and this one only watches: do "   \
	"that there, or leave it and `resume` here; only pause, resume, " \
	"stop, fault, link set and drive set work from here"

static bool watcher_may(const char *what)
{
	return !*what || wire_watcher_may(what);
}

/* ---- ending ------------------------------------------------------------- */

bool reply_failed(struct pending *p, const json_t *reply)
{
	const char *error;
	json_int_t code;

	if (json_is_true(json_object_get(reply, "ok")))
		return false;
	error = json_string_value(json_object_get(reply, "error"));
	code = json_integer_value(json_object_get(reply, "code"));
	outcome_fail(&p->outcome, code == -EINVAL ? 2 : 1, "%s",
		     error ? error : "the agent refuses without a reason");
	return true;
}

static void pending_fail(struct pending *p, const char *why)
{
	outcome_fail(&p->outcome, 1, "%s", why);
	p->done = true;
}

void pending_fail_all(struct deck *deck, const char *why, bool any_time)
{
	struct pending *p;

	for (p = deck->pending; p; p = p->next)
		if (!p->done && !p->always && (any_time || !p->any_time))
			pending_fail(p, why);
}

/* What a command did without is said with what it did. */
static void missing_say(struct pending *p)
{
	const struct fleet *f = p->deck->fleet;
	json_t *list = json_array();
	struct text text = { 0 };
	char *all;

	if (p->outcome.text && *p->outcome.text)
		text_add(&text, "%s%s", p->outcome.text,
			 p->outcome.text[strlen(p->outcome.text) - 1] == '\n'
				 ? ""
				 : "\n");
	for (size_t k = 0; k < f->nodes; k++) {
		const struct fleet_node *n = &f->node[k];

		if (n->state == FLEET_UP && !n->open_failed)
			continue;
		text_add(&text, "without %s: %s\n", n->name,
			 *n->text ? n->text : "it has not answered yet");
		json_array_append_new(list, json_pack("{s:s, s:s}", "node",
						      n->name, "why", n->text));
	}
	all = text_take(&text);
	if (all && json_array_size(list)) {
		free(p->outcome.text);
		p->outcome.text = all;
		all = NULL;
	}
	free(all);
	if (json_is_object(p->outcome.json) && json_array_size(list))
		json_object_set(p->outcome.json, "missing", list);
	json_decref(list);
}

static void pending_done(struct pending *p, json_t *reply)
{
	p->sent = false;
	p->done = true;
	if (*p->lost)
		pending_fail(p, p->lost);
	else if (p->reply)
		p->reply(p, reply);
	else if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "done");
	if (p->until_down && !p->outcome.status)
		p->done = false;
	if (p->done && p->partial && p->deck->fleet)
		missing_say(p);
	json_decref(reply);
}

/* ---- replies ------------------------------------------------------------ */

struct from {
	struct pending *p;
	const struct fleet_node *node;
};

static bool is_ok(const json_t *reply)
{
	return json_is_true(json_object_get(reply, "ok"));
}

/* Of several it is said whose it is. */
static json_t *reply_own(const struct fleet_node *n, const json_t *reply)
{
	const char *error = json_string_value(json_object_get(reply, "error"));
	json_t *own = json_deep_copy(reply);

	if (own && !is_ok(reply) && n->fleet->nodes > 1)
		json_object_set_new(own, "error",
				    json_sprintf("%s: %s", n->name,
						 error ? error : "refused"));
	return own;
}

/* The first that failed, else all as one: lists one behind the other. */
static void reply_merge(struct pending *p, json_t *more)
{
	const char *key;
	json_t *value;

	if (!p->merged || (is_ok(p->merged) && !is_ok(more))) {
		json_decref(p->merged);
		p->merged = more;
		return;
	}
	if (is_ok(p->merged) && is_ok(more))
		json_object_foreach(more, key, value) {
			json_t *is = json_object_get(p->merged, key);

			if (json_is_array(is) && json_is_array(value))
				json_array_extend(is, value);
			else if (!is)
				json_object_set(p->merged, key, value);
		}
	json_decref(more);
}

static void on_reply(const json_t *reply, void *arg)
{
	struct from *from = arg;
	struct pending *p = from->p;
	const char *name = from->node->name;

	p->waits--;
	if (reply)
		reply_merge(p, reply_own(from->node, reply));
	else
		snprintf(p->lost, sizeof(p->lost),
			 "%s%sthe agent was lost before it answered", name,
			 *name ? ": " : "");
	free(from);
	if (p->waits)
		return;
	reply = p->merged;
	p->merged = NULL;
	if (p->done)
		json_decref((json_t *)reply);
	else
		pending_done(p, (json_t *)reply);
}

/* ---- asking ------------------------------------------------------------- */

void pending_again(struct pending *p, const char *what, json_t *body,
		   void (*reply)(struct pending *p, const json_t *reply))
{
	snprintf(p->what, sizeof(p->what), "%s", what);
	p->body = body;
	p->reply = reply;
	p->sent = p->done = false;
}

static void send_one(struct pending *p, struct fleet_node *n, bool first)
{
	struct from *from = malloc(sizeof(*from));

	if (!from)
		return;
	*from = (struct from) { p, n };
	p->waits++;
	if (fleet_ask(n, p->what,
		      route_body(p->deck, p->what, p->body, n, first), on_reply,
		      from) < 0) {
		p->waits--;
		free(from);
	}
}

static void send_all(struct pending *p, const bool *to)
{
	struct fleet *f = p->deck->fleet;
	bool first = true;

	p->sent = true;
	for (size_t k = 0; k < f->nodes; k++) {
		if (!to[k])
			continue;
		send_one(p, &f->node[k], first);
		first = false;
	}
	if (!p->waits)
		pending_fail(p, "the agent cannot be asked");
}

static void pending_send(struct deck *deck, struct pending *p)
{
	bool to[FLEET_MAX];
	json_t *body = p->body;
	struct err err;
	int r = route_find(deck, p->what, p->body, to, &p->partial, &err);

	if (!*p->what) {
		p->body = NULL;
		pending_done(p, NULL);
	} else if (live_watching(deck) && !watcher_may(p->what)) {
		pending_fail(p, WATCHES);
	} else if (r) {
		pending_fail(p, err.text);
		p->outcome.status = r == -EINVAL ? 2 : 1;
	} else {
		send_all(p, to);
	}
	json_decref(body);
	if (p->body == body)
		p->body = NULL;
}

/* ---- turning ------------------------------------------------------------ */

/* It was told to end, and has. */
static void ended_say(struct pending *p)
{
	const struct fleet *f = p->deck->fleet;

	if (f->nodes > 1)
		outcome_say(&p->outcome, "the agents of cluster %s have ended",
			    p->deck->agent);
	else
		outcome_say(&p->outcome, "agent %s has ended", p->deck->agent);
	p->done = true;
	if (p->partial)
		missing_say(p);
}

static bool any_ending(const struct fleet *f)
{
	for (size_t k = 0; k < f->nodes; k++)
		if (f->node[k].ending && f->node[k].state == FLEET_UP)
			return true;
	return false;
}

static bool may_send(const struct deck *deck, const struct pending *p)
{
	if (p->always)
		return deck->fleet->settled;
	return p->any_time ? deck->fleet->settled &&
				     fleet_state(deck->fleet) == FLEET_UP
			   : live_ready(deck);
}

void pending_step(struct deck *deck)
{
	char why[DECK_TEXT];
	struct pending *p;

	for (p = deck->pending; p; p = p->next)
		if (!p->done && p->sent && p->turn)
			p->turn(p);
	if (!deck->fleet)
		return;
	for (p = deck->pending; p; p = p->next)
		if (p->until_down && !p->done && !p->waits &&
		    !any_ending(deck->fleet))
			ended_say(p);
	live_text(deck, why, sizeof(why));
	if (live_state(deck) == LINK_LOST)
		pending_fail_all(deck, why, true);
	else if (fleet_hopeless(deck->fleet))
		pending_fail_all(deck, why, false);
	for (p = deck->pending; p; p = p->next)
		if (!p->done && !p->sent && !p->until_down && may_send(deck, p))
			pending_send(deck, p);
}

bool pending_waits(const struct deck *deck)
{
	const struct pending *p;

	for (p = deck->pending; p; p = p->next)
		if (!p->done && (!p->sent || p->turn) && !p->until_down)
			return true;
	return false;
}

/* ---- queueing ----------------------------------------------------------- */

static struct pending *pending_add(struct deck *deck, const char *what,
				   json_t *body, bool any_time)
{
	struct pending *p = calloc(1, sizeof(*p)), **end = &deck->pending;

	if (!p) {
		json_decref(body);
		return NULL;
	}
	p->deck = deck;
	p->body = body;
	p->any_time = any_time;
	snprintf(p->what, sizeof(p->what), "%s", what);
	while (*end)
		end = &(*end)->next;
	*end = p;
	return p;
}

static struct pending *
ask(struct deck *deck, struct outcome *outcome, const char *what, json_t *body,
    bool any_time, void (*reply)(struct pending *p, const json_t *reply))
{
	struct pending *p;
	struct err err;

	if (live_attach(deck, !any_time, &err)) {
		outcome_fail(outcome, 1, "%s", err.text);
	} else if (live_watching(deck) && !watcher_may(what)) {
		outcome_fail(outcome, 1, "%s", WATCHES);
	} else {
		p = pending_add(deck, what, body, any_time);
		if (!p) {
			outcome_fail(outcome, 1, "out of memory");
			return NULL;
		}
		p->reply = reply;
		outcome->pending = true;
		fleet_open_again(deck->fleet);
		return p;
	}
	json_decref(body);
	return NULL;
}

struct pending *live_ask(struct deck *deck, struct outcome *outcome,
			 const char *what, json_t *body,
			 void (*reply)(struct pending *p, const json_t *reply))
{
	return ask(deck, outcome, what, body, false, reply);
}

struct pending *live_ask_any(struct deck *deck, struct outcome *outcome,
			     const char *what, json_t *body,
			     void (*reply)(struct pending *p,
					   const json_t *reply))
{
	return ask(deck, outcome, what, body, true, reply);
}

struct pending *live_ask_always(struct deck *deck, struct outcome *outcome,
				void (*reply)(struct pending *p,
					      const json_t *reply))
{
	struct pending *p;
	struct err err;

	if (live_state(deck) == LINK_LOST)
		live_retry(deck, &err);
	p = ask(deck, outcome, "", NULL, true, reply);
	if (p)
		p->always = true;
	return p;
}

void live_turn(struct deck *deck, struct outcome *outcome,
	       void (*turn)(struct pending *p), void *order,
	       void (*order_free)(void *order))
{
	struct pending *p = pending_add(deck, "", NULL, true);

	if (!p) {
		order_free(order);
		outcome_fail(outcome, 1, "out of memory");
		return;
	}
	p->always = p->sent = true;
	p->turn = turn;
	p->order = order;
	p->order_free = order_free;
	outcome->pending = true;
}

void live_show(struct deck *deck, struct outcome *outcome,
	       void (*show)(struct pending *p, const json_t *reply),
	       const char *name)
{
	struct pending *p, now = { .deck = deck };

	snprintf(now.name, sizeof(now.name), "%s", name ? name : "");
	if (deck->reader || live_ready(deck) || live_state(deck) == LINK_LOST) {
		show(&now, NULL);
		*outcome = now.outcome;
		return;
	}
	p = live_ask(deck, outcome, "", NULL, show);
	if (p)
		snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
}
