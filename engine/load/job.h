/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a job consists of, for job.c, which runs it, and job_start.c, which
 * makes it.
 */
#ifndef ENGINE_LOAD_JOB_H
#define ENGINE_LOAD_JOB_H

#include "engine/load/content.h"
#include "engine/load/pacer.h"
#include "engine/load/pattern.h"
#include "engine/load/sampler.h"

struct target {
	struct bdev *bdev;
	struct pattern pattern;
	unsigned unflushed; /* writes done since the last FLUSH */
};

/* Three cache lines. */
struct slot {
	struct io io;
	union {
		struct slot *next; /* while free */
		uint64_t due_ns;   /* open loop: intended start */
	};
	uint64_t submit_ns;
	struct target *target;
	void *buf[2]; /* by direction */
};

struct load {
	struct reactor *reactor;
	bool going; /* started, not paused, not stopping */
	bool open_loop, started, paused, stopping, finished;
	bool starved; /* open loop: arrivals wait for a slot, not for time */
	bool fixed;   /* closed loop: a slot keeps its target */
	uint8_t write_flags;
	unsigned flush_every;
	unsigned outstanding, inflight, targets, turn;
	struct slot *free;
	uint64_t freed_ns; /* when the first slot came free after starving */
	struct pacer pacer;
	struct content content;

	struct pacer due; /* counts arrivals up to a boundary */
	uint64_t start_ns, paused_ns;
	struct timer wake, boundary;
	struct task finish;
	void (*sample)(const struct load_sample *sample, void *arg);
	void (*stopped)(void *arg);
	void *arg;
	uint32_t buf_len[2];
	struct slot *slot;
	struct target target[LOAD_TARGETS_MAX];
	struct sampler sampler;
};

/*
 * Everything is there but the schedule: sets it up and arms the timers. Times
 * and counts start here.
 */
void job_begin(struct load *load, const struct load_opts *opts);
/* What each slot's io.done is. */
void job_slot_done(struct io *io);

#endif
