/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A job, its targets and the sums of what it handed out: for the tests of
 * jobs, on the simulated reactor mostly, so that every count is exact.
 */
#ifndef TESTS_ENGINE_LOAD_RIG_H
#define TESTS_ENGINE_LOAD_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"
#include "engine/load/load.h"

#define TARGET_BYTES (1 * GIB)

/*
 * Under a delay, over null: keeps what a job did to the target, and checks
 * what every io must be.
 */
struct probe {
	struct bdev bdev;
	uint64_t ops[4], fua, bytes;
	unsigned writes_unflushed, unflushed_most;
	bool fail;
	unsigned char *seen; /* by block of 4 KiB: times written */
	uint64_t first_word; /* of the newest write */
};

struct probe *probe_new(struct reactor *r, uint64_t size_bytes);

struct rig {
	struct reactor *reactor;
	struct bdev *target[LOAD_TARGETS_MAX];
	struct probe *probe[LOAD_TARGETS_MAX];
	struct workload workload;
	struct load_opts opts;
	struct load *load;

	/* sums of all samples */
	struct hist *service, *response;
	uint64_t reads, writes, bytes, errors, scheduled;
	uint64_t samples, from_ns, to_ns, backlog;
	unsigned inflight, bound;
	int last_error;
	double late_max_ns;
	struct load_sample *first; /* sums of each of the first samples */
	unsigned stopped;
	unsigned stop_at_sample; /* 0: never */
};

#define FIRST 64

struct rig *rig_new(enum reactor_kind kind);
/* A target more: a probe under a constant delay. */
void rig_target(struct rig *g, uint64_t delay_ns);
void rig_start(struct rig *g);
void rig_run_for(struct rig *g, uint64_t ns);
void rig_stop(struct rig *g);
void rig_free(struct rig *g);

uint64_t quantile(const struct hist *h, double fraction);
/* Fails unless got is within that share of want. */
void within(double got, double want, double share);

#endif
