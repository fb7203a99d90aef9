/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * error: failures on demand. What was in flight when it went offline fails
 * too, but only once the child has let go of the buffers.
 */
#include "engine/bdev/layers.h"

#include <stdio.h>

#include "engine/bdev/layer.h"

struct bdev_error {
	struct layer layer;
	struct error_opts opts;
};

static struct bdev_error *error_of(struct layer *layer)
{
	return container_of(layer, struct bdev_error, layer);
}

static void error_done(struct io *io)
{
	struct layer_io *lio = layer_io_of(io);
	const bool offline = error_of(lio->layer)->opts.offline;

	layer_io_complete(lio, offline ? -ENODEV : io->result);
}

static bool range_bad(const struct error_opts *opts, const struct io *io)
{
	return opts->bad_len && io->off < opts->bad_off + opts->bad_len &&
	       opts->bad_off < io->off + io->len;
}

/* The code to fail this io with, or 0. A rate of 0 draws no number. */
static int error_draw(const struct bdev_error *e, const struct io *io)
{
	const struct error_opts *opts = &e->opts;
	const int code = opts->code ? opts->code : -EIO;
	double rate = 0.0;

	if (opts->offline)
		return -ENODEV;
	if (io->op == BDEV_READ && range_bad(opts, io))
		return code;
	if (io->op == BDEV_READ)
		rate = opts->read_rate;
	else if (io->op == BDEV_WRITE)
		rate = opts->write_rate;
	if (rate > 0.0 && rng_unit(reactor_rng(e->layer.bdev.reactor)) <= rate)
		return code;
	return 0;
}

static void error_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_error *e = error_of(layer_of(bdev));
	const int rc = error_draw(e, io);
	struct layer_io *lio;

	if (rc) {
		bdev_complete_later(io, rc);
		return;
	}
	lio = layer_io_get(&e->layer, io, error_done);
	if (lio)
		layer_io_pass(lio);
}

static void error_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct error_opts *o = &error_of(layer_of(bdev))->opts;
	const int n = snprintf(buf, len, "%s",
			       o->offline ? "offline"
			       : o->read_rate > 0.0 || o->write_rate > 0.0 ||
					       o->bad_len
				       ? "failing"
				       : "none");

	if (n > 0 && (size_t)n < len)
		layer_describe_child(layer_of(bdev), buf + n, len - (size_t)n);
}

static const struct bdev_ops error_ops = {
	.kind = "error",
	.submit = error_submit,
	.close = layer_close,
	.grow = layer_grow,
	.describe = error_describe,
};

int bdev_error_open(struct bdev *child, struct bdev **bdev, struct err *err)
{
	struct layer *layer = layer_new(sizeof(struct bdev_error), &error_ops,
					child, NULL, err);

	if (!layer)
		return -ENOMEM;
	*bdev = &layer->bdev;
	return 0;
}

void bdev_error_set(struct bdev *bdev, const struct error_opts *opts)
{
	id_assert(bdev->ops == &error_ops);
	error_of(layer_of(bdev))->opts = *opts;
}
