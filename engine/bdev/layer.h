/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What all layers are made of: a bdev that owns a child, and a stock of ios
 * for it that grows to the depth once seen and is given back at close.
 *
 *	io of the caller (parent) --> layer_io.io --> child
 */
#ifndef ENGINE_BDEV_LAYER_H
#define ENGINE_BDEV_LAYER_H

#include "engine/bdev/bdev.h"

struct layer;

struct layer_io {
	struct io io; /* the child's */
	struct io *parent;
	struct layer *layer;
	struct timer timer;
	struct layer_io *next_free;
};

struct layer {
	struct bdev bdev;
	struct bdev *child;
	struct layer_io *free;
};

/* A layer with the child's limits. `layer` is the first member of `size`
 * bytes. NULL without memory. */
struct layer *layer_new(size_t size, const struct bdev_ops *ops,
			struct bdev *child, const char *name, struct err *err);
/* As ops->close: closes the child, then the layer. */
void layer_close(struct bdev *bdev);

/* As ops->grow: the child, and the layer with it. */
int layer_grow(struct bdev *bdev, uint64_t size_bytes);

/*
 * An io for the child that is the parent's copy, with done() as callback.
 * NULL without memory: the parent is then completed with -ENOMEM.
 */
struct layer_io *layer_io_get(struct layer *layer, struct io *parent,
			      void (*done)(struct io *io));
/* Gives it back and completes the parent. */
void layer_io_complete(struct layer_io *lio, int result);

/* ", over " and the child's description. */
void layer_describe_child(const struct layer *layer, char *buf, size_t len);

static inline struct layer *layer_of(struct bdev *bdev)
{
	return container_of(bdev, struct layer, bdev);
}

static inline struct layer_io *layer_io_of(struct io *io)
{
	return container_of(io, struct layer_io, io);
}

static inline void layer_io_pass(struct layer_io *lio)
{
	bdev_submit(lio->layer->child, &lio->io);
}

#endif
