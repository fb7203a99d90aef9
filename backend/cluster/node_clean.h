/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * iodeck taken off nodes, all at once: iodeck-agent clean on each, by the way
 * that its agent is reached. Each way has an end in time, and so has what is
 * done there.
 */
#ifndef BACKEND_CLUSTER_NODE_CLEAN_H
#define BACKEND_CLUSTER_NODE_CLEAN_H

#include "backend/cluster/node.h"
#include "backend/text.h"

struct node_clean {
	/* asked; borrowed. at NULL, or without a host: this machine */
	const char *agent, *program;
	const struct node *at;
	/* answered */
	struct text said; /* a line each of what was removed; text_take() */
	struct err err;   /* code 0: done */
	/* its own */
	struct transport *t;
	char via[400];
	int64_t due_ms;
};

/* Turns until all have ended; waits, for a command of the shell. */
void node_clean_run(struct node_clean *node, size_t count, bool force);

#endif
