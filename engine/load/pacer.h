/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When open-loop I/Os are due. Every due time is made from the one before it,
 * never from a clock, so a late generator cannot stretch the schedule; the
 * fraction of a nanosecond is carried, so it does not drift either.
 *
 *   uniform   start, start + gap, start + 2 gap, ...
 *   Poisson   gaps drawn from an exponential distribution, the first one
 *             before the first arrival
 */
#ifndef ENGINE_LOAD_PACER_H
#define ENGINE_LOAD_PACER_H

#include "engine/load/load.h"
#include "engine/rng.h"

struct pacer {
	uint64_t due_ns; /* of the next arrival */
	uint64_t count;  /* arrivals before it */
	double fraction; /* of a nanosecond, in [0, 1) */
	double gap_ns;   /* mean */
	bool poisson;
	struct rng rng;
};

/* iops > 0. The same seed gives the same schedule. */
void pacer_init(struct pacer *pacer, double iops, enum load_schedule schedule,
		uint64_t start_ns, uint64_t seed);
/* On to the arrival after. */
void pacer_next(struct pacer *pacer);
/* Passes over all arrivals due before `end_ns`. */
void pacer_skip_to(struct pacer *pacer, uint64_t end_ns);

#endif
