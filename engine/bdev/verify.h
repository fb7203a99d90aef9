/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * verify: a layer that knows what it was told. It stamps what is written,
 * keeps a journal of it in a file that outlives the process, and holds every
 * read against that, across any number of crashes:
 *
 *   - a block reads as the last write that was acknowledged, or as one that
 *     was under way at the time
 *   - one whose write was cut off by a crash reads as before or as after, and
 *     then never again as the other
 *   - never written or trimmed, it reads as zeros
 *
 * The caller's buffers are stamped: 16 bytes of each 512-byte sector, from its
 * submit on. Writes that overlap one another are put in order here, so any
 * load may run over it. Blocks of 4 KiB; 8 bytes of journal for each.
 *
 * The journal survives kill -9 of who writes it, not a crash of the machine:
 * it is mapped, not synced.
 */
#ifndef ENGINE_BDEV_VERIFY_H
#define ENGINE_BDEV_VERIFY_H

#include "engine/bdev/bdev.h"

/* The head of the journal file; others may map it and look while it grows. */
struct verify_head {
	char magic[8]; /* "iodeckvj" */
	uint32_t version, block_bytes;
	uint64_t blocks;
	uint64_t opens, sweeps;        /* begun; ended */
	uint64_t writes, reads, trims; /* ios answered, of all opens */
	uint64_t settled; /* blocks cut off by a crash: as before or as after */
	uint64_t settled_new;
	uint64_t errors; /* ios that failed below */
	uint64_t wrong;  /* blocks that read as they must not */
	char first[256]; /* the first of them, in words */
};
#define VERIFY_MAGIC "iodeckvj"
#define VERIFY_HEAD_BYTES 4096u
#define VERIFY_BLOCK 4096u

/*
 * Over a child that reads as zeros, or with the journal that stood over it
 * before; a file that is not there is made. The child is the layer's from a
 * success on. A read that is wrong ends with -EBADMSG. -EINVAL the journal is
 * of another size.
 */
int bdev_verify_open(struct bdev *child, const char *journal,
		     struct bdev **bdev, struct err *err);
/* Reads all of it once, beside what others do; done() unless closed before. */
void bdev_verify_sweep(struct bdev *bdev, void (*done)(void *arg), void *arg);
const struct verify_head *bdev_verify_head(const struct bdev *bdev);

#endif
