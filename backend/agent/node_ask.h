/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests about the node, which need no cluster: node_facts, node_check,
 * link_listen, link_measure. What blocks is a chore; each is bounded in time,
 * and one whose time is over is answered without what it waited for.
 *
 * Threads: the reactor's (control).
 */
#ifndef BACKEND_AGENT_NODE_ASK_H
#define BACKEND_AGENT_NODE_ASK_H

#include "backend/agent/chores.h"
#include "backend/agent/host_watch.h"
#include "backend/agent/reply.h"

struct node_ask;

struct node_ask_opts {
	struct reactor *reactor;
	struct chores *chores;
	struct host_watch *watch;
	int dirfd;      /* the agent's state */
	const char *io; /* kind of the engine's reactor */
};

int node_ask_new(const struct node_ask_opts *opts, struct node_ask **node);
/* Once its chores are over, or left. Takes NULL. */
void node_ask_free(struct node_ask *node);
bool node_ask_knows(const char *what);
/* Answers, now or later; the request stays the caller's. */
void node_ask(struct node_ask *node, const char *what, const json_t *request,
	      struct reply *reply);
/* The watch's look is over. */
void node_ask_looked(struct node_ask *node);
/* What goes on ends within a moment; all that is owed is answered. */
void node_ask_stop(struct node_ask *node);

#endif
