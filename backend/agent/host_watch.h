/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * This machine, kept an eye on: what it is, as of the newest look, which a
 * thread takes, as drivers and devices may let one wait; and how busy it is,
 * from what the kernel tells at once.
 *
 *   host_watch_look() ---> thread: interfaces, disks ---> looked()
 *   host_watch_facts()     what is known now
 *   host_watch_usage()     since the last call
 *
 * Threads: the reactor's.
 */
#ifndef BACKEND_AGENT_HOST_WATCH_H
#define BACKEND_AGENT_HOST_WATCH_H

#include <jansson.h>

#include "backend/agent/chores.h"

struct host_watch;

struct host_watch_opts {
	struct reactor *reactor;
	struct chores *chores;
	const char *root; /* as in host_read.h; stays */
	/* a look is over */
	void (*looked)(void *arg);
	void *arg;
};

int host_watch_new(const struct host_watch_opts *opts,
		   struct host_watch **watch);
/* Once its chores are over, or left. Takes NULL. */
void host_watch_free(struct host_watch *watch);
/* Looks anew; nothing while it does so already. */
void host_watch_look(struct host_watch *watch);
bool host_watch_looking(const struct host_watch *watch);
/* The body of a host event, without its agent; NULL for lack of memory. */
json_t *host_watch_facts(struct host_watch *watch);
/* Adds what a usage event says of the host. */
void host_watch_usage(struct host_watch *watch, json_t *usage);

#endif
