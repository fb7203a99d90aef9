/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/load/pacer.h"

#include <math.h>

static void step(struct pacer *p, double gap_ns)
{
	const double at = gap_ns + p->fraction;
	const double whole = floor(at);

	p->due_ns += (uint64_t)whole;
	p->fraction = at - whole;
}

static double draw_gap_ns(struct pacer *p)
{
	return p->poisson ? -log(rng_unit(&p->rng)) * p->gap_ns : p->gap_ns;
}

void pacer_init(struct pacer *p, double iops, enum load_schedule schedule,
		uint64_t start_ns, uint64_t seed)
{
	id_assert(iops > 0.0);
	*p = (struct pacer) {
		.due_ns = start_ns,
		.gap_ns = (double)SEC_NS / iops,
		.poisson = schedule == LOAD_POISSON,
	};
	rng_seed(&p->rng, seed);
	if (p->poisson)
		step(p, draw_gap_ns(p));
}

void pacer_next(struct pacer *p)
{
	p->count++;
	step(p, draw_gap_ns(p));
}

void pacer_skip_to(struct pacer *p, uint64_t end_ns)
{
	while (p->due_ns < end_ns)
		pacer_next(p);
}
