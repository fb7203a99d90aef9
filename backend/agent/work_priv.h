/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files on the engine's thread share. */
#ifndef BACKEND_AGENT_WORK_PRIV_H
#define BACKEND_AGENT_WORK_PRIV_H

#include "backend/agent/reply.h"
#include "backend/agent/work.h"

struct asks;
struct chores;
struct provider;
struct run;

struct work {
	struct work_opts opts;
	struct provider *provider; /* NULL: no cluster */
	struct run *run;           /* NULL: no run */
	struct chores *chores;
	struct asks *asks;
	struct reply *opening_reply, *closing_reply;
	bool cluster_closing, ending;
};

/* Body is given away; NULL (no memory) is dropped. */
void work_emit(struct work *w, const char *e, json_t *body);
void work_status(struct work *w, const char *run);
/* The run is over; frees it. */
void work_run_over(struct work *w);

#endif
