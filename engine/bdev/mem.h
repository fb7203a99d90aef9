/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * null: answers at once; reads leave the buffer as it is, writes vanish.
 * mem: a block device in anonymous memory, thin (pages appear as written).
 */
#ifndef ENGINE_BDEV_MEM_H
#define ENGINE_BDEV_MEM_H

#include "engine/bdev/bdev.h"

int bdev_null_open(struct reactor *r, const char *name, uint64_t size_bytes,
		   uint32_t block_bytes, struct bdev **bdev, struct err *err);
int bdev_mem_open(struct reactor *r, const char *name, uint64_t size_bytes,
		  uint32_t block_bytes, struct bdev **bdev, struct err *err);

#endif
