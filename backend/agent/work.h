/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine half of the agent: the cluster and the run, on the engine's
 * reactor. The control half asks from its own thread and hears on its own
 * thread; in between, tasks are sent from reactor to reactor.
 *
 *   control thread                  engine thread
 *   work_ask()  ------------------> requests, in order
 *   answer(), event(), status() <-- as things happen
 */
#ifndef BACKEND_AGENT_WORK_H
#define BACKEND_AGENT_WORK_H

#include <jansson.h>

#include "engine/reactor.h"

struct work;

struct work_opts {
	struct reactor *engine, *control;
	const char *agent; /* its name; the caller's, for as long as it lives */
	int dirfd;         /* where the cluster's policies are remembered */
	/* All run on control's thread; body and reply are given away. */
	void (*event)(const char *e, int64_t t_us, json_t *body, void *arg);
	void (*answer)(uint64_t peer, int64_t id, json_t *reply, void *arg);
	/* for the console that is owner, which passes it on: asks.h */
	void (*question)(json_t *line, void *arg);
	/* run: its id, "" while there is none */
	void (*status)(const char *run, void *arg);
	/* so many vDisks are exported now */
	void (*exported)(unsigned count, void *arg);
	void (*closed)(void *arg);
	void *arg;
};

/* The engine's thread need not run yet. */
int work_new(const struct work_opts *opts, struct work **work, struct err *err);
/* Once both threads' reactors are at rest. Takes NULL. */
void work_free(struct work *work);

/* answer(peer, id) follows once. request is given away. */
void work_ask(struct work *work, uint64_t peer, int64_t id, json_t *request);
/* There is a new owner; and what it says to a question, given away. */
void work_owned(struct work *work);
void work_told(struct work *work, json_t *line);
/* Events that say how things stand follow. */
void work_snapshot(struct work *work);
/* Stops the run, closes vDisks and drives in order; closed() follows once. */
void work_close(struct work *work, const char *reason);

#endif
