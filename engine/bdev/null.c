/* SPDX-License-Identifier: GPL-3.0-or-later */
/* null: the shortest kind, and the cost of the front. */
#include "engine/bdev/mem.h"

#include <stdlib.h>

#define IO_MAX_BYTES (16 * MIB)

static void null_submit(struct bdev *bdev, struct io *io)
{
	(void)bdev;
	bdev_complete_later(io, 0);
}

static const struct bdev_ops null_ops = {
	.kind = "null",
	.submit = null_submit,
	.close = bdev_closed,
};

int bdev_null_open(struct reactor *r, const char *name, uint64_t size_bytes,
		   uint32_t block_bytes, struct bdev **bdev, struct err *err)
{
	struct bdev *b;

	if (!block_bytes || (block_bytes & (block_bytes - 1)) || !size_bytes ||
	    size_bytes % block_bytes)
		return err_set(err, -EINVAL,
			       "%s: the size must be a multiple of the block, "
			       "a power of two",
			       name);
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(err, -ENOMEM, "%s: no memory", name);
	bdev_init(b, &null_ops, r, name);
	b->limits = (struct bdev_limits) {
		.size_bytes = size_bytes,
		.block_bytes = block_bytes,
		.phys_bytes = block_bytes,
		.align_bytes = 1,
		.io_max_bytes = IO_MAX_BYTES,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
	};
	*bdev = b;
	return 0;
}
