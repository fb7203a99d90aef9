/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/bdev/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layer *layer_new(size_t size, const struct bdev_ops *ops,
			struct bdev *child, const char *name, struct err *err)
{
	struct layer *layer = calloc(1, size);

	if (!layer) {
		err_set(err, -ENOMEM, "%s: no memory", child->name);
		return NULL;
	}
	bdev_init(&layer->bdev, ops, child->reactor, name ? name : child->name);
	layer->bdev.limits = child->limits;
	layer->bdev.limits.can_lend = false; /* a parent keeps its buffer */
	layer->child = child;
	return layer;
}

static void stock_free(struct layer *layer)
{
	while (layer->free) {
		struct layer_io *lio = layer->free;

		layer->free = lio->next_free;
		free(lio);
	}
}

static void child_closed(void *arg)
{
	struct layer *layer = arg;

	stock_free(layer);
	bdev_closed(&layer->bdev);
}

void layer_close(struct bdev *bdev)
{
	struct layer *layer = layer_of(bdev);

	if (layer->child)
		bdev_close(layer->child, child_closed, layer);
	else
		child_closed(layer);
}

int layer_grow(struct bdev *bdev, uint64_t size_bytes)
{
	struct layer *layer = layer_of(bdev);
	const int rc =
		layer->child ? bdev_grow(layer->child, size_bytes) : -ENODEV;

	if (!rc)
		bdev->limits.size_bytes = layer->child->limits.size_bytes;
	return rc;
}

static struct layer_io *stock_take(struct layer *layer)
{
	struct layer_io *lio = layer->free;

	if (lio)
		layer->free = lio->next_free;
	else
		lio = calloc(1, sizeof(*lio));
	return lio;
}

struct layer_io *layer_io_get(struct layer *layer, struct io *parent,
			      void (*done)(struct io *io))
{
	struct layer_io *lio = stock_take(layer);

	if (!lio) {
		bdev_complete_later(parent, -ENOMEM);
		return NULL;
	}
	lio->parent = parent;
	lio->layer = layer;
	lio->io.op = parent->op;
	lio->io.flags = parent->flags;
	lio->io.len = parent->len;
	lio->io.off = parent->off;
	lio->io.buf = parent->buf;
	lio->io.done = done;
	return lio;
}

void layer_io_complete(struct layer_io *lio, int result)
{
	struct io *parent = lio->parent;

	lio->next_free = lio->layer->free;
	lio->layer->free = lio;
	bdev_complete(parent, result);
}

void layer_describe_child(const struct layer *layer, char *buf, size_t len)
{
	static const char over[] = ", over ";

	if (len <= sizeof(over))
		return;
	memcpy(buf, over, sizeof(over));
	bdev_describe(layer->child, buf + sizeof(over) - 1,
		      len - sizeof(over) + 1);
}
