/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cuts what a job measures into intervals. Boundaries are start + i * interval
 * exactly; an I/O belongs to the interval in which its completion was seen. A
 * completion behind a boundary closes the interval first, so no timer's delay
 * can move it.
 */
#ifndef ENGINE_LOAD_SAMPLER_H
#define ENGINE_LOAD_SAMPLER_H

#include "engine/load/load.h"

struct sampler {
	struct load_sample sample; /* of the interval that is open */
	uint64_t boundary_ns;      /* its end */
	uint64_t interval_ns;
	bool open_loop;

	/* of the interval that is open */
	uint64_t submitted;
	uint64_t late_sum_ns;

	/* at the boundary before */
	uint64_t scheduled, busy_ns, idle_ns, wait_ns;
};

/* What stands at a boundary: totals since the start. */
struct sampler_mark {
	uint64_t scheduled; /* arrivals due so far */
	uint64_t backlog;
	unsigned inflight;
	uint64_t busy_ns, idle_ns; /* of the reactor */
	uint64_t wait_ns;          /* of busy_ns: without a CPU */
	bool wait_known;
};

void sampler_init(struct sampler *sampler, uint64_t start_ns,
		  uint64_t interval_ns, bool open_loop,
		  const struct sampler_mark *mark);
/* Completes sampler->sample as of end_ns; sampler_next() opens the next. */
void sampler_close(struct sampler *sampler, uint64_t end_ns,
		   const struct sampler_mark *mark);
void sampler_next(struct sampler *sampler);

/* LOAD_BOUND_* of an interval; see load.h for the rule. */
struct bound_facts {
	bool open_loop;
	double busy_share; /* of the reactor */
	double interval_ns;
	uint64_t scheduled, submitted;
	double late_sum_ns;
};
unsigned load_bound(const struct bound_facts *facts);

static inline void sampler_submit(struct sampler *s, uint64_t late_ns)
{
	s->submitted++;
	s->late_sum_ns += late_ns;
}

#endif
