/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/offset.h"

#define TIME_MAX_US ((int64_t)1 << 53)
#define DRIFT 10000 /* one part in so many: 100 ppm */

void offset_add(struct offset *o, int64_t sent_us, int64_t rtt_us,
		int64_t at_us, int64_t there_us)
{
	struct offset_probe *p = &o->kept[o->count % OFFSET_KEPT];

	if (rtt_us < 0 || there_us < 0 || there_us > TIME_MAX_US)
		return;
	p->at_us = at_us;
	p->rtt_us = rtt_us;
	p->offset_us = there_us - (sent_us + rtt_us / 2);
	o->count++;
}

static int64_t error_at(const struct offset_probe *p, int64_t now_us)
{
	return (p->rtt_us + 1) / 2 + (now_us - p->at_us) / DRIFT;
}

bool offset_best(const struct offset *o, int64_t now_us, int64_t *offset_us,
		 int64_t *err_us, int64_t *rtt_us)
{
	unsigned n = o->count < OFFSET_KEPT ? o->count : OFFSET_KEPT;
	const struct offset_probe *best = NULL;

	for (unsigned k = 0; k < n; k++)
		if (!best ||
		    error_at(&o->kept[k], now_us) < error_at(best, now_us))
			best = &o->kept[k];
	if (!best)
		return false;
	*offset_us = best->offset_us;
	*err_us = error_at(best, now_us);
	if (rtt_us)
		*rtt_us = best->rtt_us;
	return true;
}
