/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cleaner inside: what it has in work (clean.c), and which segments are
 * next (victim.c).
 */
#ifndef ENGINE_VDISK_LOG_CLEAN_H
#define ENGINE_VDISK_LOG_CLEAN_H

#include "engine/vdisk/log/impl.h"

#define JOBS 8        /* victims at a time: one is read by few drives; */
#define JOBS_UNITS 24 /* fewer where they are wide */

enum clean_phase { CLEAN_IDLE, CLEAN_READ, CLEAN_MOVE, CLEAN_FETCH };

/* One victim, stripe by stripe. */
struct job {
	enum clean_phase phase;
	enum clean_why why;
	uint32_t victim;
	unsigned stripe;
	uint64_t promised; /* bytes of the budget, for this stripe */
	struct lbuf *buf[FMT_COMPS_MAX];
	struct batch batch;
	uint32_t have; /* units that are there or were decoded */
	struct fmt_sum_entry *entry;
	unsigned entries, at;
	struct fetch fetch;
	uint8_t stored[FMT_BLOCK], recoded[FMT_BLOCK];
	int fetched;
	bool fetched_over;
};

struct cleaner {
	struct job job[JOBS];
	double credit;     /* granules */
	double u_victims;  /* moving average */
	bool urgent_moves; /* the cold stripe holds some that cannot wait */
};

struct victim {
	uint32_t seg; /* SEG_NONE: none */
	enum clean_why why;
	double benefit;
};
struct victim victim_choose(struct vlog *v);
/* Of the slots it takes, the share that its live blocks take once they are
 * rewritten as today. From 1 on nothing is gained. */
double victim_use(const struct vlog *v, const struct seg *s);

#endif
