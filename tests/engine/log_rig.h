/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Drives for the log layout's own tests: memory that survives its bdev, with
 * what is durable apart from what is only seen. The full simulator is in
 * tests/sim; this one is small enough to step through.
 */
#ifndef TESTS_ENGINE_LOG_RIG_H
#define TESTS_ENGINE_LOG_RIG_H

#include "engine/bdev/bdev.h"
#include "engine/vdisk/log/log.h"

#define DISKS_MAX 32
#define SECTOR 512u

struct disk_io {
	struct io *io;
	struct timer timer;
	struct disk_bdev *d;
	struct disk_io *next;
};

struct disk {
	struct rig *rig;
	uint8_t *seen, *durable;
	uint8_t *dirty; /* by sector: seen differs from durable */
	uint64_t bytes;
	bool away;     /* I/O ends in -ENODEV */
	bool stuck;    /* I/O does not end */
	int fail;      /* I/O ends in this */
	uint32_t slow; /* times slower; 0: not */
	uint8_t *bad;  /* by sector: cannot be read until written */
	/* by sector: a read that begins there fails, so many times */
	uint8_t *moody;
	struct disk_io *queue;
	struct disk_bdev *open;
	uint64_t reads, writes, trimmed;
};

struct rig {
	struct reactor *r;
	struct rng rng;
	struct disk disk[DISKS_MAX];
	unsigned n;     /* members at creation */
	unsigned disks; /* that there are: brought to each opening */
	struct vlog_spec spec;
	struct vdisk_slot slot[DISKS_MAX];
	struct vlog_opening *opening;
	struct bdev *vd;
	int result;
	struct err err;
	bool over;
	bool growable;        /* disks can be made longer */
	uint32_t block_bytes; /* of disks; 0: SECTOR */
	bool dead;            /* the owner has died: nothing calls back */
};

void rig_init(struct rig *rig, uint64_t seed, unsigned k, unsigned m,
	      unsigned n, uint64_t blocks);
void rig_fini(struct rig *rig);
/* Begins; rig->over once done. */
void rig_create(struct rig *rig);
void rig_open(struct rig *rig);
/* Turns the reactor once; false: nothing happened. */
bool rig_turn(struct rig *rig);
int rig_wait(struct rig *rig); /* until rig->over */
int rig_create_sync(struct rig *rig);
int rig_open_sync(struct rig *rig);
void rig_close_sync(struct rig *rig);
/* The owner dies; power: what is not durable is kept in part only. */
void rig_crash(struct rig *rig, bool power);
/* One more disk, empty; its index. */
unsigned rig_disk_add(struct rig *rig, uint64_t bytes);
void disk_leave(struct disk *d);
void disk_return(struct disk *d);
void disk_unstick(struct disk *d); /* what is stuck fails */
struct bdev *disk_open(struct disk *d);

/* The disk that a member lost, given back to the vDisk; rig->over once done. */
void rig_give_back_begin(struct rig *rig, unsigned index);
int rig_give_back(struct rig *rig, unsigned index);
/* Turns for so long. */
void rig_run(struct rig *rig, uint64_t ns);
/* Nobody moves for so long, the drives neither. */
void rig_stop(struct rig *rig, uint64_t ns);
/* Until the vDisk rests in this state; aborts after ns. */
void rig_until(struct rig *rig, enum vdisk_state state, uint64_t ns);
int rig_put(struct rig *rig, uint64_t lba, uint32_t version, uint32_t blocks);
/* 0; -errno of the read; 1: wrong data. */
int rig_expect(struct rig *rig, uint64_t lba, uint32_t version,
	       uint32_t blocks);
void rig_check(struct rig *rig); /* vlog_check() or abort */

/* ---- for what is changed in service --------------------------------- */

struct answer {
	unsigned count;
	int result;
	struct err err;
};
/* A vdisk_done_fn whose arg is a struct answer. */
void rig_answered(int result, const struct err *err, struct bdev *vd,
		  void *arg);
void rig_wait_for(struct rig *rig, const struct answer *a, unsigned count);
void rig_turns(struct rig *rig, unsigned n);
/* The first RIG_BLOCKS blocks, each of a version of its own; and that they are
 * there, and all invariants hold. Aborts. */
#define RIG_BLOCKS 90
uint32_t rig_version(uint64_t lba);
void rig_fill(struct rig *rig);
void rig_expect_all(struct rig *rig);
void rig_reopen(struct rig *rig); /* or abort */
void rig_end(struct rig *rig);    /* open or not */

/* Content of a block: version 0 is zeros. */
void block_make(uint64_t lba, uint32_t version, uint8_t *block);
uint32_t block_version(uint64_t lba, const uint8_t *block); /* or UINT32_MAX */

#endif
