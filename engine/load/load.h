/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Load generation: a job drives one or more bdevs of one reactor with a
 * workload at a rate, and hands out samples at interval boundaries.
 *
 * Closed loop: `outstanding` I/Os are kept in flight; service time is all
 * there is. Open loop: I/Os are due at times of a schedule (uniform or
 * Poisson) made from absolute deadlines, at most `outstanding` in flight; an
 * I/O that is due while all are in flight waits, and its response time counts
 * from the intended start, so a stalled device cannot hide its queue. Service
 * time counts from submit to completion.
 *
 * An I/O that fails counts in `errors` alone. A FLUSH that the workload asks
 * for goes out on the slot of the write before it and is not counted. Closed
 * loop over several targets keeps each slot on its target; open loop takes
 * them in turn.
 *
 * Threads: all on the reactor that owns the targets (through bdev/remote
 * otherwise).
 */
#ifndef ENGINE_LOAD_LOAD_H
#define ENGINE_LOAD_LOAD_H

#include "engine/bdev/bdev.h"
#include "engine/hist.h"

#define LOAD_SIZES_MAX 16
#define LOAD_TARGETS_MAX 64

struct load_size {
	uint32_t bytes; /* 512 B to 8 MiB, multiple of the target's block */
	double weight;  /* any positive number; normalised */
};

struct workload {
	double read_share;   /* 0..1 */
	double random_share; /* 0..1; the rest continues a sequential
				stream */
	struct load_size read_sizes[LOAD_SIZES_MAX];
	unsigned read_size_count;
	struct load_size write_sizes[LOAD_SIZES_MAX];
	unsigned write_size_count; /* 0: as read */
	uint64_t footprint_bytes;  /* a target; 0: all of it */
	double footprint_share;    /* of the target, when bytes is 0; 0: 1.0 */
	double compress_ratio;     /* of written data, 1.0 not compressible */
	unsigned flush_every;      /* a FLUSH after that many writes; 0 never */
	bool fua;
	unsigned streams; /* sequential streams a target; 0: 1 */
};

/*
 * Checks what can be checked without a target. Returns 0, or -EINVAL with the
 * member at fault in err.
 */
int workload_check(const struct workload *workload, struct err *err);

enum load_schedule { LOAD_UNIFORM, LOAD_POISSON };

struct load_rate {
	double iops; /* 0: closed loop; at most 1e7 */
	enum load_schedule schedule;
	unsigned outstanding; /* in flight over all targets, 1..4096 */
};

/*
 * Why the generator and not the target bounds the rate.
 * CPU: the reactor's thread was busy or waited for a CPU more than 95 % of the
 * interval, so it hardly ever waited for the target; and in open loop the
 * schedule was not kept although slots were free. Layers and vDisks of the
 * same reactor are its work, too.
 */
#define LOAD_BOUND_CPU 1u

struct load_dir {
	uint64_t ops, bytes, errors;
	struct hist service;
	struct hist response; /* open loop; closed loop: empty, is service */
};

/* One interval. Times are reactor time. */
struct load_sample {
	uint64_t from_ns, to_ns;
	struct load_dir read, write;
	uint64_t scheduled;  /* open loop: arrivals due in the interval */
	uint64_t backlog;    /* due and not yet submitted, at its end */
	unsigned inflight;   /* at its end */
	double late_mean_ns; /* generator's own lateness: due and a slot free,
				until submitted */
	double cpu_wait;     /* share of the interval that the reactor's thread
				was ready and had no CPU; NAN not known */
	unsigned bound;      /* LOAD_BOUND_* */
	int last_error;      /* negative errno of the last failed io */
};

struct load_opts {
	const struct workload *workload;
	struct load_rate rate;
	struct bdev *target[LOAD_TARGETS_MAX];
	unsigned targets;
	uint64_t seed;        /* one of its own for each job of a run, or jobs
				 write each other's data again */
	uint64_t start_ns;    /* reactor time of the first arrival; 0: now */
	uint64_t interval_ns; /* of samples: 100 ms to 60 s; boundaries are
				 start_ns + i * interval_ns */
	/* The sample is the job's; copy what is to be kept. Runs at every
	 * boundary and once more for the rest when the job has stopped. */
	void (*sample)(const struct load_sample *sample, void *arg);
	/* Once, after load_stop(): nothing is in flight any more. */
	void (*stopped)(void *arg);
	void *arg;
};

struct load;
/* Checks all, allocates all, then starts. */
int load_start(struct reactor *r, const struct load_opts *opts,
	       struct load **load, struct err *err);
/* No new I/O from now on; stopped() when the last is back. */
void load_stop(struct load *load);
/* Holds and goes on: due times move with the pause, nothing is counted late. */
void load_pause(struct load *load, bool pause);
/* After stopped(). Takes NULL. */
void load_free(struct load *load);

/*
 * Writes all of [0, bytes) of a bdev once, sequentially, with data as the
 * workload's content. progress(done_bytes) about ten times a second.
 */
struct prefill_opts {
	struct bdev *target;
	uint64_t bytes; /* 0: all */
	double compress_ratio;
	uint64_t seed;
	uint32_t io_bytes;    /* 0: 1 MiB or the full stripe above it */
	unsigned outstanding; /* 0: 8 */
	void (*progress)(uint64_t done_bytes, void *arg);
	void (*done)(int result, void *arg);
	void *arg;
};
struct prefill;
int prefill_start(struct reactor *r, const struct prefill_opts *opts,
		  struct prefill **prefill, struct err *err);
void prefill_stop(struct prefill *prefill); /* done(-ECANCELED) follows */
void prefill_free(struct prefill *prefill);

#endif
