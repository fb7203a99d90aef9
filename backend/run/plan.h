/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reading a plan that plan_check() has passed: its members, what each series
 * loads, which agents run it, and the timetable they all go by.
 *
 *   phases  [prefill prefill] | rest max point point [wait] | point ...
 *            until they are   |   a stretch: each a slot of  |
 *            done             |   fixed length               |
 *                          barrier                        barrier
 *
 * A plan that several agents run is timed: from a barrier on each knows when
 * every phase begins, by its own clock, without a word from anybody. What ends
 * when it is done (prefill, wait) ends a stretch.
 *
 * Threads: any.
 */
#ifndef BACKEND_RUN_PLAN_H
#define BACKEND_RUN_PLAN_H

#include <jansson.h>

#include "engine/base.h"

#define PLAN_VDISKS_MAX 256 /* of one series */
#define PLAN_NODES_MAX 256

const char *plan_kind(const json_t *phase);
double plan_number(const json_t *object, const char *name, double unset);
uint64_t plan_us(const json_t *object, const char *name);
/* The series whose maximum this one's points are shares of. */
size_t plan_max_of(const json_t *series, size_t index);

/* What a series loads: "vdisk", or each of "vdisks". */
size_t plan_vdisks(const json_t *series);
const char *plan_vdisk(const json_t *series, size_t index);
bool plan_loads(const json_t *series, const char *vdisk);
/* Whether an array of names has it; NULL has all. */
bool plan_owns(const json_t *owned, const char *vdisk);
/* "db1", "db1, db2 and db3", "db1, db2 and 4 more"; returns out. */
const char *plan_vdisks_text(const json_t *series, char *out, size_t size);

/*
 * How many of `count` alike (outstanding I/Os), dealt out evenly over the
 * series' vDisks in order, fall to those that `owned` (an array of names; NULL:
 * all of them) has; at least one each.
 */
unsigned plan_share(const json_t *series, const json_t *owned, unsigned count);
/* How many of the series' vDisks are among them. */
size_t plan_owned(const json_t *series, const json_t *owned);

/* The agents that run it: {"name", "agent", "vdisks"}; 0 where the plan does
 * not say: there is one then. */
size_t plan_nodes(const json_t *plan);
const json_t *plan_node(const json_t *plan, size_t index);
/* By its agent's name; -1 none. */
int plan_node_index(const json_t *plan, const char *agent);
bool plan_node_runs(const json_t *plan, size_t node, size_t series);
/* More than one agent: there is a timetable. */
bool plan_timed(const json_t *plan);

/* A load, in the time of one job; a search has several, its levels. */
struct plan_load {
	uint64_t interval_us;
	uint64_t warm_us; /* whole intervals */
	uint64_t len_us;  /* measured, behind the warm-up */
	/* timed: until the next job may begin, for what is in flight */
	uint64_t gap_us;
	unsigned levels;
};
/* Of max, point and ramp. */
void plan_load(const json_t *plan, const json_t *phase, struct plan_load *load);
/* False: it ends when it is done. */
bool plan_slot_us(const json_t *plan, const json_t *phase, uint64_t *us);
/* Whether all agents meet before this phase of a timed plan; first: of this
 * run of it, which may have been resumed. */
bool plan_barrier(const json_t *plan, size_t phase, size_t first);

#endif
