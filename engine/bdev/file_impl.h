/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What file.c (the data path) and file_open.c share. */
#ifndef ENGINE_BDEV_FILE_IMPL_H
#define ENGINE_BDEV_FILE_IMPL_H

#include "engine/bdev/file.h"

struct bdev_file {
	struct bdev bdev;
	int fd;
	int index;        /* of the registered file, -1: none */
	int io_fd;        /* either, by io_flags */
	uint8_t io_flags; /* KIO_POOL, KIO_FIXED_FD or none */
	uint8_t trim_op;  /* KIO_PUNCH or KIO_DISCARD */
	bool device, direct, read_only;
	uint64_t off_bytes; /* of the window */
	char fs[16];        /* why it is not direct: "tmpfs", "" */
	char *created;      /* path to unlink while opening may still fail */
};

/* Fills all of f but the bdev's operations. On failure the caller frees. */
int file_open(struct bdev_file *f, struct reactor *r,
	      const struct bdev_file_opts *opts, struct err *err);

#endif
