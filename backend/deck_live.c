/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   NONE --attach--> CONNECTING --hello, session chosen--> LIVE
 *                        ^                                  |
 *                        +------------- resume <-- LOST <---+
 *
 * Requests wait until the cluster is open and the model has heard of it. An
 * agent that another console owns is watched instead.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/paths.h"
#include "backend/wire.h"

#define AGENT_LOCAL "local" /* when no cluster is configured */
#define WATCHES                                                           \
	"another console owns the agent and this one only watches: do "   \
	"that there, or leave it and `resume` here; only pause, resume, " \
	"stop, fault, link set and drive set work from here"
#define RETRY_MIN_US 1000000
#define RETRY_MAX_US 30000000
#define RETRY_ALL_US 900000000 /* a run's lease: then it has ended */
#define SETTLE_US 80000        /* from the cluster's event to all the rest */

static bool watcher_may(const char *what)
{
	return !*what || wire_watcher_may(what);
}

bool live_ready(const struct deck *deck)
{
	return deck->link_state == LINK_LIVE && deck->cluster_open &&
	       deck->ready_at_us && deck_clock() >= deck->ready_at_us;
}

static void link_text(struct deck *deck, const char *text)
{
	snprintf(deck->link_text, sizeof(deck->link_text), "%s", text);
}

/* ---- pending commands -----------------------------------------------------
 */

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

static void pending_fail_all(struct deck *deck, const char *why, bool any_time)
{
	struct pending *p;

	for (p = deck->pending; p; p = p->next)
		if (!p->done && (any_time || !p->any_time))
			pending_fail(p, why);
}

static void on_reply(const json_t *reply, void *arg)
{
	struct pending *p = arg;

	if (p->done)
		return;
	p->sent = false;
	p->done = true;
	if (!reply)
		pending_fail(p, "the agent was lost before it answered");
	else if (p->reply)
		p->reply(p, reply);
	else if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "done");
	if (p->until_down && !p->outcome.status)
		p->done = false;
}

void pending_again(struct pending *p, const char *what, json_t *body,
		   void (*reply)(struct pending *p, const json_t *reply))
{
	snprintf(p->what, sizeof(p->what), "%s", what);
	p->body = body;
	p->reply = reply;
	p->sent = p->done = false;
}

static void pending_send(struct deck *deck, struct pending *p)
{
	json_t *body = p->body;

	p->body = NULL;
	if (!*p->what) {
		json_decref(body);
		p->done = true;
		p->reply(p, NULL);
		return;
	}
	if (deck->watching && !watcher_may(p->what)) {
		json_decref(body);
		pending_fail(p, WATCHES);
		return;
	}
	p->sent = true;
	if (link_conn_ask(deck->link, p->what, body, on_reply, p) < 0)
		pending_fail(p, "the agent cannot be asked");
}

static void pending_pump(struct deck *deck)
{
	bool up = deck->link_state == LINK_LIVE;
	struct pending *p;

	for (p = deck->pending; p; p = p->next)
		if (!p->done && !p->sent && !p->until_down &&
		    (p->any_time ? up : live_ready(deck)))
			pending_send(deck, p);
}

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

/* ---- the cluster -----------------------------------------------------------
 */

static void ready_soon(struct deck *deck)
{
	if (deck->cluster_open && deck->cluster_seen && !deck->ready_at_us)
		deck->ready_at_us = deck_clock() + SETTLE_US;
}

static void on_cluster(const json_t *reply, void *arg)
{
	struct deck *deck = arg;
	json_int_t code = json_integer_value(json_object_get(reply, "code"));
	const char *error = json_string_value(json_object_get(reply, "error"));

	deck->cluster_asked = false;
	if (!reply)
		return;
	if (!json_is_true(json_object_get(reply, "ok")) && code != -EEXIST) {
		link_text(deck, error ? error : "the cluster does not open");
		pending_fail_all(deck, deck->link_text, false);
		return;
	}
	deck->link_text[0] = '\0';
	deck->cluster_open = true;
	ready_soon(deck);
}

static void cluster_ask(struct deck *deck)
{
	if (!deck->cluster || deck->cluster_open || deck->cluster_asked ||
	    deck->watching || deck->link_state != LINK_LIVE)
		return;
	deck->cluster_asked = true;
	link_conn_ask(deck->link, "cluster_open",
		      json_pack("{s:O}", "cluster", deck->cluster), on_cluster,
		      deck);
}

/* ---- the link's callbacks ---------------------------------------------------
 */

static void on_event(const json_t *event, void *arg)
{
	const char *e = json_string_value(json_object_get(event, "e"));
	struct deck *deck = arg;

	record_event(deck, event);
	if (e && !strcmp(e, "cluster")) {
		deck->cluster_seen = true;
		ready_soon(deck);
	}
}

static void on_hello(struct deck *deck, const json_t *hello)
{
	const char *state = json_string_value(json_object_get(hello, "state"));
	const char *version =
		json_string_value(json_object_get(hello, "version"));
	struct err err;

	deck->hello_seen = true;
	event_text(deck->agent_version, sizeof(deck->agent_version), version);
	deck->hello_running = state && !strcmp(state, "running");
	deck->cluster_open = deck->hello_running;
	if (record_choose(deck, hello, &err)) {
		link_text(deck, err.text);
		deck->drop = true;
	}
}

static void on_up(struct deck *deck)
{
	deck->link_state = LINK_LIVE;
	deck->link_text[0] = '\0';
	deck->lost_at_us = deck->retry_at_us = 0;
	deck->retries = 0;
	deck->up_after_us = deck_clock() - deck->opened_at_us;
	if (deck->watching) {
		deck->cluster_open = true;
		link_text(deck, "another console owns the agent; this one "
				"watches");
	}
	cluster_ask(deck);
	ready_soon(deck);
}

/*
 * A link to a node that was up comes back by itself: its run goes on there, and
 * its spool keeps what happens. The deck waits, as while it attaches, from one
 * second on and twice as long each time; in the end, or when it was refused,
 * the link is lost.
 */
static bool retry_later(struct deck *deck, enum deck_link was)
{
	int64_t now = deck_clock(), wait = RETRY_MIN_US;
	size_t len;

	if (!deck->remote || deck->drop || !deck->link ||
	    !node_may_heal(link_conn_code(deck->link)))
		return false;
	if (was == LINK_LIVE) {
		for (struct pending *p = deck->pending; p; p = p->next)
			if (p->until_down && !p->done)
				return false; /* it was told to end */
		deck->lost_at_us = now;
		deck->retries = 0;
	}
	if (!deck->lost_at_us || now > deck->lost_at_us + RETRY_ALL_US)
		return false;
	for (unsigned k = 0; k < deck->retries && wait < RETRY_MAX_US; k++)
		wait *= 2;
	if (wait > RETRY_MAX_US)
		wait = RETRY_MAX_US;
	deck->retries++;
	deck->retry_at_us = now + wait;
	len = strlen(deck->link_text);
	snprintf(deck->link_text + len, sizeof(deck->link_text) - len,
		 "; trying again in %d s", (int)(wait / 1000000));
	deck->link_state = LINK_CONNECTING;
	return true;
}

/* Their answers are gone; what was not asked yet waits on. */
static void pending_fail_sent(struct deck *deck)
{
	for (struct pending *p = deck->pending; p; p = p->next)
		if (p->sent && !p->done)
			pending_fail(p, deck->link_text);
}

static void on_down(struct deck *deck, const char *reason);

static void retry_now(struct deck *deck)
{
	struct err err = { 0 };

	deck->retry_at_us = 0;
	deck->hello_seen = deck->rewatch = deck->drop = false;
	deck->opened_at_us = deck_clock();
	if (link_conn_retry(deck->link, &err))
		on_down(deck, err.text);
}

static void on_down(struct deck *deck, const char *reason)
{
	enum deck_link was = deck->link_state;
	bool refused = was == LINK_CONNECTING && deck->hello_seen &&
		       deck->link && !link_conn_code(deck->link) &&
		       !deck->watching && !deck->drop;

	deck->cluster_open = deck->cluster_asked = false;
	deck->ready_at_us = 0;
	deck->cluster_seen = false;
	if (refused || deck->rewatch) {
		deck->rewatch = true;
		return;
	}
	deck->link_state = LINK_LOST;
	if (!deck->drop)
		link_text(deck, reason ? reason : "the agent is gone");
	if (retry_later(deck, was)) {
		pending_fail_sent(deck);
		return;
	}
	deck->lost_at_us = 0;
	for (struct pending *p = deck->pending; p; p = p->next)
		if (p->until_down && !p->done) {
			p->done = true;
			outcome_say(&p->outcome, "agent %s has ended",
				    deck->agent);
		}
	pending_fail_all(deck, deck->link_text, true);
}

static void on_state(enum link_state state, const json_t *hello,
		     const char *reason, void *arg)
{
	struct deck *deck = arg;

	if (state == LINK_OPENING && hello)
		on_hello(deck, hello);
	else if (state == LINK_UP)
		on_up(deck);
	else if (state == LINK_DOWN)
		on_down(deck, reason);
}

/* ---- attaching
 * --------------------------------------------------------------- */

static void link_close(struct deck *deck)
{
	if (!deck->link)
		return;
	epoll_ctl(deck->epfd, EPOLL_CTL_DEL, link_conn_fd(deck->link), NULL);
	link_conn_close(deck->link);
	deck->link = NULL;
	deck->retry_at_us = deck->lost_at_us = 0;
}

static int link_open(struct deck *deck, bool watch, struct err *err)
{
	const char *program = deck_option(deck, "agent_program");
	char path[PATH_MAX];
	struct link_conn_opts opts = {
		.agent = deck->agent,
		.state_dir = *deck->state_dir ? deck->state_dir : NULL,
		.watch = watch,
		.spawn = true,
		.node = deck->remote ? &deck->node : NULL,
		.event = on_event,
		.state = on_state,
		.arg = deck,
	};
	struct epoll_event ev = { .events = EPOLLIN };
	int r;

	if (*program && !path_expand(program, path, sizeof(path)))
		opts.program = path;
	deck->watching = watch;
	deck->hello_seen = deck->rewatch = deck->drop = false;
	deck->link_state = LINK_CONNECTING;
	deck->opened_at_us = deck_clock();
	r = link_conn_open(&opts, &deck->link, err);
	if (r) {
		deck->link_state = LINK_NONE;
		return r;
	}
	epoll_ctl(deck->epfd, EPOLL_CTL_ADD, link_conn_fd(deck->link), &ev);
	return 0;
}

static int attach(struct deck *deck, bool need_cluster, struct err *err)
{
	const char *name =
		json_string_value(json_object_get(deck->cluster, "name"));

	if (deck->reader)
		return err_set(err, -EBUSY,
			       "this is a replay: `live` goes back");
	if (deck->link_state == LINK_LIVE ||
	    deck->link_state == LINK_CONNECTING)
		return 0;
	if (deck->link_state == LINK_LOST)
		return err_set(err, -ENOTCONN, "%s: `resume` goes on",
			       deck->link_text);
	if (!name && need_cluster)
		return err_set(err, -ENOENT,
			       "no cluster is configured: write one into "
			       "iodeck.conf, see iodeck.conf(5), or try "
			       "`iodeck demo`");
	if (deck->config->nodes)
		return err_set(err, -ENOSYS,
			       "a cluster of several nodes cannot be attached "
			       "to yet");
	snprintf(deck->agent, sizeof(deck->agent), "%s",
		 name ? name : AGENT_LOCAL);
	return link_open(deck, deck->watch, err);
}

int deck_attach(struct deck *deck, struct err *err)
{
	return attach(deck, true, err);
}

int live_retry(struct deck *deck, struct err *err)
{
	int r;

	if (deck->link_state != LINK_LOST)
		return attach(deck, true, err);
	deck->disk_text[0] = '\0';
	if (!deck->link) {
		deck->link_state = LINK_NONE;
		return attach(deck, true, err);
	}
	deck->hello_seen = deck->rewatch = deck->drop = false;
	deck->link_state = LINK_CONNECTING;
	deck->opened_at_us = deck_clock();
	r = link_conn_retry(deck->link, err);
	if (r)
		deck->link_state = LINK_LOST;
	return r;
}

void live_own(struct deck *deck)
{
	if (deck->link_state != LINK_LIVE || !deck->watching)
		return;
	deck->watch = false;
	link_close(deck);
	deck->cluster_open = deck->cluster_asked = deck->cluster_seen = false;
	deck->ready_at_us = 0;
	deck->link_state = LINK_NONE;
}

/* ---- asking
 * -------------------------------------------------------------------- */

static struct pending *
ask(struct deck *deck, struct outcome *outcome, const char *what, json_t *body,
    bool any_time, void (*reply)(struct pending *p, const json_t *reply))
{
	struct pending *p;
	struct err err;

	if (attach(deck, !any_time, &err)) {
		outcome_fail(outcome, 1, "%s", err.text);
	} else if (deck->watching && !watcher_may(what)) {
		outcome_fail(outcome, 1, "%s", WATCHES);
	} else {
		p = pending_add(deck, what, body, any_time);
		if (!p) {
			outcome_fail(outcome, 1, "out of memory");
			return NULL;
		}
		p->reply = reply;
		outcome->pending = true;
		cluster_ask(deck);
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

void live_show(struct deck *deck, struct outcome *outcome,
	       void (*show)(struct pending *p, const json_t *reply),
	       const char *name)
{
	struct pending *p, now = { .deck = deck };

	snprintf(now.name, sizeof(now.name), "%s", name ? name : "");
	if (deck->reader || live_ready(deck) || deck->link_state == LINK_LOST) {
		show(&now, NULL);
		*outcome = now.outcome;
		return;
	}
	p = live_ask(deck, outcome, "", NULL, show);
	if (p)
		snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
}

/* ---- turning
 * -------------------------------------------------------------------- */

static void rewatch(struct deck *deck)
{
	struct err err;

	link_close(deck);
	record_close(deck, "watching another console's session");
	if (link_open(deck, true, &err)) {
		deck->link_state = LINK_LOST;
		link_text(deck, err.text);
		pending_fail_all(deck, err.text, true);
	}
}

static void drop(struct deck *deck)
{
	deck->drop = false;
	link_close(deck);
	deck->link_state = LINK_LOST;
	deck->cluster_open = deck->cluster_asked = deck->cluster_seen = false;
	deck->ready_at_us = 0;
	if (*deck->disk_text)
		link_text(deck, deck->disk_text);
	pending_fail_all(deck, deck->link_text, true);
}

void live_step(struct deck *deck)
{
	if (deck->link)
		link_conn_step(deck->link);
	if (deck->retry_at_us && deck_clock() >= deck->retry_at_us)
		retry_now(deck);
	if (deck->rewatch)
		rewatch(deck);
	if (deck->drop)
		drop(deck);
	record_tick(deck, false);
	pending_pump(deck);
}

static int sooner(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

static int us_left_ms(int64_t at_us)
{
	int64_t left = at_us - deck_clock();

	return left > 0 ? (int)(left / 1000) + 1 : 0;
}

int live_timeout_ms(const struct deck *deck)
{
	int ms = deck->link ? link_conn_timeout_ms(deck->link) : -1;
	const struct pending *p;

	if (deck->rewatch || deck->drop)
		return 0;
	if (deck->retry_at_us)
		ms = sooner(ms, us_left_ms(deck->retry_at_us));
	if (deck->writer)
		ms = sooner(ms, 250);
	for (p = deck->pending; p; p = p->next)
		if (!p->done && !p->sent && !p->until_down)
			return sooner(ms, 20);
	return ms;
}

void live_close(struct deck *deck)
{
	const struct m_run *run = model_run(deck->model);
	bool going = run && (!strcmp(run->state, "running") ||
			     !strcmp(run->state, "paused"));

	record_close(deck, deck->link_state == LINK_LOST ? "the agent was lost"
			   : going ? "the console left; the run goes on"
				   : "the console left");
	if (deck->link)
		link_conn_step(deck->link);
	link_close(deck);
	deck->link_state = LINK_NONE;
	deck->cluster_open = deck->cluster_asked = deck->cluster_seen = false;
	deck->ready_at_us = 0;
	deck->link_text[0] = '\0';
}
