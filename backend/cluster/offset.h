/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How far another machine's clock is from ours, by what it says its time is.
 * Of an exchange, whatever the way there and back took, the answer was given
 * between asking and hearing: so offset is there - (sent + received) / 2, and
 * cannot be off by more than half the round trip, also where the one way is
 * slower than the other. The shortest of the newest exchanges counts; as clocks
 * drift apart, an old one counts for less.
 */
#ifndef BACKEND_CLUSTER_OFFSET_H
#define BACKEND_CLUSTER_OFFSET_H

#include "engine/base.h"

#define OFFSET_KEPT 32

struct offset_probe {
	int64_t at_us;     /* ours, when it was made; monotonic */
	int64_t offset_us; /* theirs less ours */
	int64_t rtt_us;
};

struct offset {
	struct offset_probe kept[OFFSET_KEPT];
	unsigned count; /* ever */
};

/* sent_us: our wall clock when it was asked; rtt_us until the answer, at_us
 * then, both monotonic; there_us what it says. What makes no sense is left
 * out. */
void offset_add(struct offset *o, int64_t sent_us, int64_t rtt_us,
		int64_t at_us, int64_t there_us);
/* The best guess at now_us (monotonic), off by err_us at most while clocks
 * drift by less than 100 ppm. rtt_us, which may be NULL: of that exchange.
 * false: there was none. */
bool offset_best(const struct offset *o, int64_t now_us, int64_t *offset_us,
		 int64_t *err_us, int64_t *rtt_us);

#endif
