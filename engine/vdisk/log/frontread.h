/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front of a component, labels and superblocks, read: in one, or, where
 * that fails, block by block. One sector that cannot be read must not hide the
 * copy of the label beside it.
 *
 * Its own memory: a stuck drive may hold on to it for longer than whoever
 * asked is there.
 */
#ifndef ENGINE_VDISK_LOG_FRONTREAD_H
#define ENGINE_VDISK_LOG_FRONTREAD_H

#include "engine/vdisk/log/make.h"

struct front_read {
	struct io io;
	struct reactor *r;
	struct bdev *bdev;
	uint8_t *buf;    /* FMT_FRONT_BYTES; zeros where it was not read */
	unsigned unread; /* bits of blocks */
	int result;      /* 0: some of it was read */
	/* of the reading */
	void (*done)(struct front_read *f); /* NULL: nobody waits */
	void *arg;
	unsigned block;
	bool busy, by_block;
};

struct front_read *front_read_new(struct reactor *r);
/* done() once, later; or result is -ENODEV at once, without a bdev. */
void front_read_begin(struct front_read *f, struct bdev *bdev,
		      void (*done)(struct front_read *f), void *arg);
/*
 * Takes NULL. done() is not called any more; it is freed when the drive has
 * let go of it.
 * dead  nothing calls back what it holds
 */
void front_read_drop(struct front_read *f, bool dead);

#endif
