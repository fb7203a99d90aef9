/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stamps events and gives them to the spool. What the spool refuses is counted
 * and named by a `gap` event as soon as there is room again.
 *
 * Threads: one.
 */
#ifndef BACKEND_AGENT_JOURNAL_H
#define BACKEND_AGENT_JOURNAL_H

#include <jansson.h>

#include "backend/agent/spool.h"
#include "backend/event.h"

struct journal {
	struct spool *spool; /* the journal's */
	struct event_stamp stamp;
	int64_t lost_from, lost_to; /* 0: none */
	bool warned;                /* of a disk that is full */
};

/* agent: at most 63 characters. */
void journal_init(struct journal *j, struct spool *spool, const char *agent);
void journal_fini(struct journal *j);
/*
 * Stamps and keeps one event; body is given away.
 * Returns what spool_append() does, or -EMSGSIZE, -ENOMEM.
 */
int journal_add(struct journal *j, const char *e, int64_t t_us, json_t *body);
/* {"e":"log"} */
void journal_log(struct journal *j, const char *level, const char *fmt, ...)
	ID_PRINTF(3, 4);

#endif
