/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this agent asks of other nodes. Agents do not speak to each other: the
 * console that owns them passes on what one asks of another, and brings the
 * answer. While there is no console, questions wait, each within its limit.
 *
 *   asks_ask() --> send --> console --> the node's agent
 *   answer()  <-- asks_told() <-- console <--
 *
 * Questions are no events: they stand in no spool, session or log, as keys are
 * among the answers.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_AGENT_ASKS_H
#define BACKEND_AGENT_ASKS_H

#include <jansson.h>

#include "engine/reactor.h"

struct asks;

/* send(): to the console that is owner, if there is one; line is given away. */
int asks_new(struct reactor *r, void (*send)(json_t *line, void *arg),
	     void *arg, struct asks **asks);
/* Nothing is answered any more. Takes NULL. */
void asks_free(struct asks *asks);

/*
 * answer(reply, arg) once, later: what the node's agent replied, or an object
 * with ok false, code and error: -ENOTCONN the node is not connected,
 * -ETIMEDOUT nobody answered within limit_ns. body may be NULL and is given
 * away. A node may be asked the same twice: once more by a new console.
 */
typedef void asks_answer_fn(const json_t *reply, void *arg);
void asks_ask(struct asks *asks, const char *node, const char *what,
	      json_t *body, uint64_t limit_ns, asks_answer_fn *answer,
	      void *arg);
/* None of these will be answered. */
void asks_forget(struct asks *asks, void *arg);
/* {"told":ID,"reply":{..}} has come. */
void asks_told(struct asks *asks, const json_t *line);
/* There is a new owner: it is asked what is open. */
void asks_again(struct asks *asks);

#endif
