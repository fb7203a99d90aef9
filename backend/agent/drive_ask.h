/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The requests drive_probe, drive_claim and drive_release: they look at and
 * change devices, need no cluster, and may take seconds.
 */
#ifndef BACKEND_AGENT_DRIVE_ASK_H
#define BACKEND_AGENT_DRIVE_ASK_H

#include "backend/agent/reply.h"

struct chores;
struct drive_facts;

struct drive_ask_host {
	struct chores *chores;
	/* a drive was claimed; before the reply */
	void (*claimed)(const char *path, const char *cluster, void *arg);
	void *arg;
};

/* False: `what` is none of these, and the reply is still owed. */
bool drive_ask(const struct drive_ask_host *host, const char *what,
	       const json_t *request, struct reply *reply);

/* As drive_probe answers; any thread. NULL for lack of memory. */
json_t *drive_facts_json(const struct drive_facts *facts);

#endif
