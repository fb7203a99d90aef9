/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The requests drive_probe, drive_claim and drive_release: they look at and
 * change devices, need no cluster, and may take seconds.
 */
#ifndef BACKEND_AGENT_DRIVE_ASK_H
#define BACKEND_AGENT_DRIVE_ASK_H

#include "backend/agent/reply.h"

struct chores;

/* False: `what` is none of these, and the reply is still owed. */
bool drive_ask(struct chores *chores, const char *what, const json_t *request,
	       struct reply *reply);

#endif
