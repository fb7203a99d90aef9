/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A world for vDisks on the simulated reactor: stores that outlive whoever
 * opens them, ports (bdevs) on the stores with random latency and faults, a
 * power cut that leaves each write in flight done, undone or torn, and a
 * shadow that knows which contents each block may have.
 */
#ifndef TESTS_ENGINE_VDISK_RIG_H
#define TESTS_ENGINE_VDISK_RIG_H

#include "engine/vdisk/vdisk.h"

#define RIG_STORES 32
#define RIG_BLOCK 4096u

struct port;

struct store {
	uint8_t *data;
	uint64_t bytes;
	struct port *port;         /* the last opened one */
	bool offline;              /* everything fails, -ENODEV */
	unsigned writes_left;      /* > 0: counts down, then offline */
	uint64_t bad_off, bad_len; /* reads fail, -EIO, until written */
	uint64_t reads, writes;
};

struct rig {
	struct reactor *r;
	struct rng rng;
	uint64_t seed;
	struct store store[RIG_STORES];
	uint64_t latency_ns; /* most of an io */
	unsigned live;       /* ports not yet closed */
	struct port *ports;
};

void rig_init(struct rig *rig, uint64_t seed, uint64_t store_bytes);
void rig_fini(struct rig *rig);
/* A new bdev on a store. */
struct bdev *rig_port(struct rig *rig, unsigned store);
/* All ports there are: what is in flight lands wholly, partly or not. */
void rig_power_cut(struct rig *rig);
void rig_store_zero(struct rig *rig, unsigned store);
uint64_t rig_below(struct rig *rig, uint64_t n);
bool rig_chance(struct rig *rig, unsigned percent);

/* Turn the reactor until *flag. Fails the test after many turns. */
void rig_until(struct rig *rig, const bool *flag);
void rig_run(struct rig *rig, unsigned turns);

/* ---- vDisks -------------------------------------------------------------- */

/* Slots on stores[i], domains "f<store>". */
void rig_slot(struct rig *rig, unsigned store, struct vdisk_slot *slot);
struct rig_result {
	bool done;
	int result;
	struct err err;
	struct bdev *vdisk;
};
void rig_done(int result, const struct err *err, struct bdev *vdisk, void *arg);
/* first: the first store; slots as the policy needs. */
struct bdev *rig_create(struct rig *rig, const struct vdisk_policy *policy,
			uint64_t size_bytes, unsigned first);
/* Opens with the stores of mask; NULL and *result on failure. */
struct bdev *rig_open(struct rig *rig, unsigned mask, struct rig_result *res);
void rig_close(struct rig *rig, struct bdev *vdisk);
/* The store that is member i, by its component's name. */
unsigned rig_member_store(const struct vdisk_info *info, unsigned i);
int rig_replace(struct rig *rig, struct bdev *vdisk, unsigned index,
		unsigned store);
uint64_t rig_verify(struct rig *rig, struct bdev *vdisk);
/* Turns until the vDisk is healthy (rebuilt, resynced). */
void rig_healthy(struct rig *rig, struct bdev *vdisk);
struct vdisk_policy rig_policy(enum raid_level raid, unsigned k, unsigned m,
			       uint32_t unit);

/* ---- shadow -------------------------------------------------------------- */

#define SHADOW_CANDIDATES 24

struct candidate {
	uint64_t version;
	uint64_t submitted, ended; /* 0: in flight */
	uint64_t removed;          /* 0: may be read */
};
struct shadow_block {
	struct candidate c[SHADOW_CANDIDATES];
	unsigned count, readers;
};
struct shadow {
	struct rig *rig;
	struct shadow_block *block;
	uint64_t blocks, clock, version;
	unsigned inflight;
	unsigned errors; /* ios that ended in one */
	struct shadow_io *ios;
};
void shadow_init(struct shadow *sh, struct rig *rig, uint64_t bytes);
void shadow_fini(struct shadow *sh);
/* false: too many candidates just now. */
bool shadow_write(struct shadow *sh, struct bdev *vdisk, uint64_t block,
		  unsigned blocks, bool fua);
void shadow_read(struct shadow *sh, struct bdev *vdisk, uint64_t block,
		 unsigned blocks);
void shadow_flush(struct shadow *sh, struct bdev *vdisk);
void shadow_drain(struct shadow *sh);
/* The writes in flight may or may not have been. */
void shadow_crash(struct shadow *sh);
/* Reads and checks every block. */
void shadow_check_all(struct shadow *sh, struct bdev *vdisk);

#endif
