/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run: lends the conductor the engine's hands (load jobs, prefill, faults)
 * and turns what they measure into events.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_AGENT_RUN_H
#define BACKEND_AGENT_RUN_H

#include <jansson.h>

#include "engine/base.h"

struct run;
struct work;

/* request: run_start's plan, run, resume_from, known, join. Checks all; starts
 * nothing. -EINVAL with the place in the plan. */
int run_new(struct work *work, const json_t *request, struct run **run,
	    struct err *err);
/* work_run_over() follows once, when nothing is in flight any more. */
void run_start(struct run *run, const json_t *plan);
/* pause, held_us */
void run_pause(struct run *run, const json_t *request);
/* run, phase, at_us: of this agent's clock, see conductor_go() */
int run_go(struct run *run, const json_t *request, struct err *err);
void run_stop(struct run *run, const char *reason);
const char *run_id(const struct run *run);
void run_free(struct run *run);

#endif
