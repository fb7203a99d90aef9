/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A regular file or a kernel block device. O_DIRECT by default, and buffered
 * where asked or where the file system has no O_DIRECT (said so by describe).
 * Holds an exclusive OFD lock on a file, O_EXCL on a device.
 */
#ifndef ENGINE_BDEV_FILE_H
#define ENGINE_BDEV_FILE_H

#include "engine/bdev/bdev.h"

struct bdev_file_opts {
	const char *path;
	const char *name;      /* NULL: path */
	uint64_t create_bytes; /* > 0: make the file (O_EXCL), sparse, of this
				  size; the file and its directory are synced */
	uint64_t off_bytes;    /* window on the file or device; 0: all of it */
	uint64_t len_bytes;
	bool buffered;
	bool read_only;
	bool peek;   /* with read_only and shared: no lock at all, others may
			write meanwhile */
	bool shared; /* lock the window alone, no O_EXCL: others may open other
			windows of it */
};

/*
 * Returns 0 and a bdev; -EBUSY in use elsewhere; -EEXIST (create); -ENOENT;
 * -EACCES; -EINVAL too small or not a multiple of its block.
 */
int bdev_file_open(struct reactor *r, const struct bdev_file_opts *opts,
		   struct bdev **bdev, struct err *err);

/*
 * Takes it as bdev_file_open() does, for another program to use: it is taken
 * as long as *fd, or a copy of it in any process, is open. Does not create.
 */
int bdev_file_hold(const struct bdev_file_opts *opts, int *fd, struct err *err);

#endif
