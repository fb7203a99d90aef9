/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the next I/O of a target is: direction, length and place. Shares and
 * sizes are thresholds of 32-bit draws and places come by multiply and shift,
 * so a draw has no division and costs a few nanoseconds.
 *
 * Random I/O starts at multiples of its own length. Sequential streams split
 * the footprint among them; each goes on from where it was, whether it reads
 * or writes, and begins its part again at the end of it.
 */
#ifndef ENGINE_LOAD_PATTERN_H
#define ENGINE_LOAD_PATTERN_H

#include "engine/load/load.h"
#include "engine/rng.h"

struct access {
	uint64_t off;
	uint32_t len;
	uint8_t op; /* BDEV_READ or BDEV_WRITE */
};

struct pattern_size {
	uint32_t bytes;
	uint64_t below;     /* chosen when a 32-bit draw is below this */
	uint64_t positions; /* multiples of bytes in the footprint */
};

struct pattern_stream {
	uint64_t from, to, next;
};

struct pattern {
	struct rng rng;
	uint64_t write_from; /* a 32-bit draw from here on is a write */
	uint64_t random_below;
	unsigned sizes[2]; /* by op */
	struct pattern_size size[2][LOAD_SIZES_MAX];
	unsigned streams, turn;
	struct pattern_stream *stream;
};

/*
 * For a workload that workload_fits() the bdev. Returns 0 or -ENOMEM;
 * pattern_fini() in either case.
 */
int pattern_init(struct pattern *pattern, const struct workload *workload,
		 const struct bdev_limits *limits, uint64_t seed);
void pattern_fini(struct pattern *pattern);

struct access pattern_next(struct pattern *pattern) ID_HOT;

/* ---- workload.c --------------------------------------------------------- */

/* -EINVAL when the workload cannot run on the bdev; err says which part. */
int workload_fits(const struct workload *workload, const struct bdev *bdev,
		  struct err *err);
/* Of a bdev of that size: bytes the workload touches, whole blocks. */
uint64_t workload_footprint(const struct workload *workload,
			    const struct bdev_limits *limits);
/* The sizes of a direction, writes falling back to the reads'. */
const struct load_size *workload_sizes(const struct workload *workload,
				       enum bdev_op op, unsigned *count);
/* Longest I/O of a direction; 0 when there is none. */
uint32_t workload_longest(const struct workload *workload, enum bdev_op op);

#endif
