/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   NONE --attach--> CONNECTING --hello, session chosen--> LIVE
 *                        ^                                  |
 *                        +------------- resume <-- LOST <---+
 *
 * The agents of the cluster, all at once; where another console owns them they
 * are watched instead. What becomes of each link is cluster/fleet.h's.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/paths.h"

#define AGENT_LOCAL "local" /* when no cluster is configured */

/* ---- how it stands ------------------------------------------------------ */

enum deck_link live_state(const struct deck *deck)
{
	if (!deck->fleet)
		return LINK_NONE;
	switch (fleet_state(deck->fleet)) {
	case FLEET_UP:
		return LINK_LIVE;
	case FLEET_LOST:
		return LINK_LOST;
	default:
		return LINK_CONNECTING;
	}
}

bool live_watching(const struct deck *deck)
{
	return deck->fleet && deck->fleet->watching;
}

void live_text(const struct deck *deck, char *buf, size_t len)
{
	*buf = '\0';
	if (!deck->fleet)
		return;
	fleet_text(deck->fleet, buf, len);
	if (!*buf && live_watching(deck) && live_state(deck) == LINK_LIVE)
		snprintf(buf, len,
			 "another console owns the agent; this one watches");
}

bool live_ready(const struct deck *deck)
{
	return deck->fleet && fleet_ready(deck->fleet);
}

bool live_running(const struct deck *deck)
{
	for (size_t k = 0; deck->fleet && k < deck->fleet->nodes; k++)
		if (deck->fleet->node[k].running)
			return true;
	return false;
}

bool live_lost(const struct deck *deck)
{
	for (size_t k = 0; deck->fleet && k < deck->fleet->nodes; k++)
		if (deck->fleet->node[k].state == FLEET_LOST ||
		    (deck->fleet->nodes > 1 &&
		     deck->fleet->node[k].state == FLEET_WAITING))
			return true;
	return false;
}

/* ---- the links' callbacks ----------------------------------------------- */

static void on_choose(struct fleet_node *const *node, size_t count, void *arg)
{
	struct deck *deck = arg;
	struct err err;

	if (record_choose(deck, node, count, &err))
		fleet_drop(deck->fleet, err.text);
	else if (!deck->fleet->rewatch)
		for (size_t k = 0; k < count; k++)
			node_tell(deck, node[k]);
}

static void on_event(struct fleet_node *node, const json_t *event, void *arg)
{
	record_event(arg, node, event);
	runs_event(arg, node, event);
}

/* Before there is a session it is not told. */
static void on_changed(struct fleet_node *node, void *arg)
{
	struct deck *deck = arg;

	if (deck->fleet && deck->fleet->chosen)
		node_tell(deck, node);
}

/* ---- attaching ---------------------------------------------------------- */

static void fleet_end(struct deck *deck)
{
	if (!deck->fleet)
		return;
	runs_end(deck);
	epoll_ctl(deck->epfd, EPOLL_CTL_DEL, fleet_fd(deck->fleet), NULL);
	fleet_close(deck->fleet);
	deck->fleet = NULL;
	nodes_forget(deck);
}

static int fleet_begin(struct deck *deck, struct err *err)
{
	const char *program = deck_option(deck, "agent_program");
	struct fleet_opts opts = {
		.agent = deck->agent,
		.node = deck->node,
		.nodes = deck->nodes,
		.state_dir = *deck->state_dir ? deck->state_dir : NULL,
		.cluster = deck->only_look ? NULL : deck->cluster,
		.watch = deck->watch,
		.clock = deck_clock,
		.choose = on_choose,
		.event = on_event,
		.changed = on_changed,
		.arg = deck,
	};
	struct epoll_event ev = { .events = EPOLLIN };
	int r;

	if (*program &&
	    !path_expand(program, deck->program, sizeof(deck->program)))
		opts.program = deck->program;
	r = fleet_open(&opts, &deck->fleet, err);
	if (r)
		return r;
	epoll_ctl(deck->epfd, EPOLL_CTL_ADD, fleet_fd(deck->fleet), &ev);
	return 0;
}

int live_attach(struct deck *deck, bool need_cluster, struct err *err)
{
	const char *name =
		json_string_value(json_object_get(deck->cluster, "name"));
	char why[DECK_TEXT];

	if (deck->reader)
		return err_set(err, -EBUSY,
			       "this is a replay: `live` goes back");
	if (live_state(deck) == LINK_LOST) {
		live_text(deck, why, sizeof(why));
		return err_set(err, -ENOTCONN, "%s: `resume` goes on", why);
	}
	if (deck->fleet && need_cluster && deck->only_look) {
		deck->only_look = false;
		fleet_cluster(deck->fleet, deck->cluster);
	}
	if (deck->fleet)
		return 0;
	deck->only_look = !need_cluster;
	if (!name && need_cluster)
		return err_set(err, -ENOENT,
			       "no cluster is configured: write one into "
			       "iodeck.conf, see iodeck.conf(5), or try "
			       "`iodeck demo`");
	snprintf(deck->agent, sizeof(deck->agent), "%s",
		 name ? name : AGENT_LOCAL);
	return fleet_begin(deck, err);
}

int deck_attach(struct deck *deck, struct err *err)
{
	return live_attach(deck, true, err);
}

int live_retry(struct deck *deck, struct err *err)
{
	deck->disk_text[0] = '\0';
	if (!deck->fleet)
		return live_attach(deck, true, err);
	fleet_retry(deck->fleet);
	return 0;
}

void live_own(struct deck *deck)
{
	if (live_state(deck) != LINK_LIVE || !live_watching(deck))
		return;
	deck->watch = false;
	fleet_end(deck);
}

/* ---- turning ------------------------------------------------------------ */

void live_step(struct deck *deck)
{
	if (deck->fleet)
		fleet_step(deck->fleet);
	if (live_watching(deck))
		record_close(deck, "watching another console's session");
	if (deck->fleet && deck->fleet->chosen)
		nodes_look(deck);
	runs_step(deck);
	record_tick(deck, false);
	pending_step(deck);
}

static int sooner(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

int live_timeout_ms(const struct deck *deck)
{
	int ms = deck->fleet ? fleet_timeout_ms(deck->fleet) : -1;

	if (deck->writer)
		ms = sooner(ms, 250);
	if (deck->runs || deck->runs_began)
		ms = sooner(ms, 50);
	return pending_waits(deck) ? sooner(ms, 20) : ms;
}

void live_close(struct deck *deck)
{
	const struct m_run *run = model_run(deck->model);
	bool going = run && (!strcmp(run->state, "running") ||
			     !strcmp(run->state, "paused"));

	record_close(deck, live_state(deck) == LINK_LOST ? "the agent was lost"
			   : going ? "the console left; the run goes on"
				   : "the console left");
	if (deck->fleet)
		fleet_step(deck->fleet);
	fleet_end(deck);
}
