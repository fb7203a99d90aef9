/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * kill -9 of the owner of a log-structured vDisk over real files, again and
 * again: kill.c forks owners and kills them, owner.c is one.
 *
 *   kill.c                          owner.c (a process of its own)
 *   fork --------------------------> open drives, vDisk, journal
 *   look at the shared page <------- OPENING, READING (all of it), LOADED
 *   kill -9, or SIGTERM              writes, trims, reads, checkpoints, members
 *   look at the journal's head       that fail and come back, until it dies
 */
#ifndef TESTS_KILL_KILL_H
#define TESTS_KILL_KILL_H

#include "engine/bdev/verify.h"
#include "engine/vdisk/log/log.h"

#define DRIVES_MAX 12u

enum owner_phase { OWNER_STARTED, OWNER_OPENING, OWNER_READING, OWNER_LOADED };

/* Survives the owner. */
struct shared {
	int phase;
	uint64_t done;             /* ios of this life */
	uint64_t open_ns, read_ns; /* the last that were whole */
	uint64_t replayed, degraded, rejoined, failed, changed;
	uint64_t checkpoints, cleaned;
	char error[640]; /* what the owner could not go on with */
};

struct setting {
	char dir[96];
	unsigned drives, k, m;
	uint64_t size_bytes;
	struct vlog_tune tune;
	enum vdisk_codec codec;
	bool volatile_cache;
	uint64_t seed; /* of the set; each life has one of its own */
};

/* Claims the drives and makes the vDisk; ends as owner_live() does. */
void owner_make(const struct setting *set, struct shared *shared)
	__attribute__((noreturn));
/*
 * One life: never returns but through _exit(): 0 closed after SIGTERM, 1 with
 * shared->error said.
 */
void owner_live(const struct setting *set, uint64_t life_seed,
		struct shared *shared) __attribute__((noreturn));

#endif
