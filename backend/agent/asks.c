/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/asks.h"

#include <stdlib.h>

struct ask {
	struct ask *next;
	int64_t id;
	json_t *line;
	uint64_t end_ns;
	asks_answer_fn *answer;
	void *arg;
};

struct asks {
	struct reactor *reactor;
	void (*send)(json_t *line, void *arg);
	void *arg;
	struct ask *first; /* in order of asking */
	int64_t newest;
	struct timer timer;
};

/* At the nearest limit. */
static void timer_set(struct asks *s)
{
	uint64_t end_ns = UINT64_MAX;

	for (const struct ask *a = s->first; a; a = a->next)
		if (a->end_ns < end_ns)
			end_ns = a->end_ns;
	if (end_ns == UINT64_MAX)
		timer_cancel(s->reactor, &s->timer);
	else
		timer_arm(s->reactor, &s->timer, end_ns);
}

/* Out of the list, then answered: the answer may ask again. */
static void ask_end(struct ask **at, const json_t *reply)
{
	struct ask *a = *at;

	*at = a->next;
	if (reply)
		a->answer(reply, a->arg);
	json_decref(a->line);
	free(a);
}

/* One by one from the start, as answers ask again. */
static void timer_run(struct timer *timer)
{
	struct asks *s = container_of(timer, struct asks, timer);
	const uint64_t now = reactor_now(s->reactor);
	json_t *late = json_pack(
		"{s:b, s:i, s:s}", "ok", 0, "code", -ETIMEDOUT, "error",
		"nobody answered: no console is attached, or the node hangs");
	struct ask **at = &s->first;

	while (*at)
		if ((*at)->end_ns <= now) {
			ask_end(at, late);
			at = &s->first;
		} else {
			at = &(*at)->next;
		}
	json_decref(late);
	timer_set(s);
}

int asks_new(struct reactor *r, void (*send)(json_t *line, void *arg),
	     void *arg, struct asks **asks)
{
	struct asks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct asks) {
		.reactor = r, .send = send, .arg = arg, .timer.fn = timer_run
	};
	*asks = s;
	return 0;
}

void asks_free(struct asks *s)
{
	if (!s)
		return;
	while (s->first)
		ask_end(&s->first, NULL);
	timer_cancel(s->reactor, &s->timer);
	free(s);
}

void asks_ask(struct asks *s, const char *node, const char *what, json_t *body,
	      uint64_t limit_ns, asks_answer_fn *answer, void *arg)
{
	struct ask *a = calloc(1, sizeof(*a)), **end = &s->first;

	id_assert(a);
	*a = (struct ask) { .id = ++s->newest,
			    .line = body ? body : json_object(),
			    .end_ns = reactor_now(s->reactor) + limit_ns,
			    .answer = answer,
			    .arg = arg };
	json_object_set_new(a->line, "ask", json_integer(a->id));
	json_object_set_new(a->line, "node", json_string(node));
	json_object_set_new(a->line, "do", json_string(what));
	while (*end)
		end = &(*end)->next;
	*end = a;
	s->send(json_deep_copy(a->line), s->arg);
	timer_set(s);
}

void asks_forget(struct asks *s, void *arg)
{
	struct ask **at = &s->first;

	while (*at)
		if ((*at)->arg == arg)
			ask_end(at, NULL);
		else
			at = &(*at)->next;
	timer_set(s);
}

void asks_told(struct asks *s, const json_t *line)
{
	const int64_t id = json_integer_value(json_object_get(line, "told"));
	const json_t *reply = json_object_get(line, "reply");
	struct ask **at = &s->first;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	if (*at && json_is_object(reply))
		ask_end(at, reply);
	timer_set(s);
}

void asks_again(struct asks *s)
{
	for (const struct ask *a = s->first; a; a = a->next)
		s->send(json_deep_copy(a->line), s->arg);
}
