/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The answer a request is owed: made with it, carried through whatever it
 * takes, and sent once by exactly one of these calls, which free it.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_AGENT_REPLY_H
#define BACKEND_AGENT_REPLY_H

#include <jansson.h>

#include "engine/base.h"

struct reply {
	/* sends body (given away) and frees the reply */
	void (*send)(struct reply *reply, json_t *body);
};

void reply_ok(struct reply *reply);
/* more: an object whose members are added; given away. */
void reply_ok_with(struct reply *reply, json_t *more);
void reply_err(struct reply *reply, const struct err *err);
void reply_fail(struct reply *reply, int code, const char *fmt, ...)
	ID_PRINTF(3, 4);

#endif
