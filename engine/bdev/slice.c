/* SPDX-License-Identifier: GPL-3.0-or-later */
/* slice: a range of the child. */
#include "engine/bdev/layers.h"

#include <stdio.h>

#include "engine/bdev/layer.h"

struct bdev_slice {
	struct layer layer;
	uint64_t off_bytes;
};

static void slice_done(struct io *io)
{
	layer_io_complete(layer_io_of(io), io->result);
}

static void slice_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_slice *s =
		container_of(layer_of(bdev), struct bdev_slice, layer);
	struct layer_io *lio = layer_io_get(&s->layer, io, slice_done);

	if (!lio)
		return;
	lio->io.off += s->off_bytes;
	layer_io_pass(lio);
}

static void slice_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_slice *s =
		container_of(layer_of(bdev), struct bdev_slice, layer);
	const int n = snprintf(buf, len, "at %llu MiB",
			       (unsigned long long)(s->off_bytes / MIB));

	if (n > 0 && (size_t)n < len)
		layer_describe_child(&s->layer, buf + n, len - (size_t)n);
}

static const struct bdev_ops slice_ops = {
	.kind = "slice",
	.submit = slice_submit,
	.close = layer_close,
	.describe = slice_describe,
};

int bdev_slice_open(struct bdev *child, const char *name, uint64_t off_bytes,
		    uint64_t len_bytes, struct bdev **bdev, struct err *err)
{
	const uint64_t size_bytes = child->limits.size_bytes;
	struct layer *layer;

	if (((off_bytes | len_bytes) & (child->limits.block_bytes - 1)) ||
	    !len_bytes || off_bytes > size_bytes ||
	    len_bytes > size_bytes - off_bytes)
		return err_set(err, -EINVAL,
			       "%s has no range of %llu bytes at %llu in "
			       "blocks of %u",
			       child->name, (unsigned long long)len_bytes,
			       (unsigned long long)off_bytes,
			       child->limits.block_bytes);
	layer = layer_new(sizeof(struct bdev_slice), &slice_ops, child, name,
			  err);
	if (!layer)
		return -ENOMEM;
	layer->bdev.limits.size_bytes = len_bytes;
	container_of(layer, struct bdev_slice, layer)->off_bytes = off_bytes;
	*bdev = &layer->bdev;
	return 0;
}
