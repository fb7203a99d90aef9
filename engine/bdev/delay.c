/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * delay: each io waits before it goes to the child. A stall holds back what
 * would go out and what comes in.
 */
#include "engine/bdev/layers.h"

#include <math.h>
#include <stdio.h>

#include "engine/bdev/layer.h"

struct bdev_delay {
	struct layer layer;
	struct delay_opts opts;
	uint64_t stall_until_ns;
};

static struct bdev_delay *delay_of(struct layer *layer)
{
	return container_of(layer, struct bdev_delay, layer);
}

static struct layer_io *timer_io(struct timer *timer)
{
	return container_of(timer, struct layer_io, timer);
}

static void stall_over(struct timer *timer)
{
	struct layer_io *lio = timer_io(timer);

	if (delay_of(lio->layer)->stall_until_ns > timer->deadline_ns)
		timer_arm(lio->layer->bdev.reactor, timer,
			  delay_of(lio->layer)->stall_until_ns);
	else
		layer_io_complete(lio, lio->io.result);
}

static void delay_done(struct io *io)
{
	struct layer_io *lio = layer_io_of(io);
	const struct bdev_delay *d = delay_of(lio->layer);
	struct reactor *r = d->layer.bdev.reactor;

	if (id_likely(!d->stall_until_ns ||
		      d->stall_until_ns <= reactor_now(r))) {
		layer_io_complete(lio, io->result);
		return;
	}
	lio->timer.fn = stall_over;
	timer_arm(r, &lio->timer, d->stall_until_ns);
}

/* A stall may have begun while it waited. */
static void delay_over(struct timer *timer)
{
	struct layer_io *lio = timer_io(timer);

	if (delay_of(lio->layer)->stall_until_ns > timer->deadline_ns)
		timer_arm(lio->layer->bdev.reactor, timer,
			  delay_of(lio->layer)->stall_until_ns);
	else
		layer_io_pass(lio);
}

static uint64_t delay_draw(const struct bdev_delay *d, struct rng *rng,
			   bool read)
{
	const uint64_t mean_ns = read ? d->opts.read_ns : d->opts.write_ns;
	double random_ns;

	if (d->opts.spread <= 0.0)
		return mean_ns;
	random_ns = (double)mean_ns * d->opts.spread;
	return (uint64_t)((double)mean_ns - random_ns -
			  random_ns * log(rng_unit(rng)));
}

static void delay_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_delay *d = delay_of(layer_of(bdev));
	struct layer_io *lio = layer_io_get(&d->layer, io, delay_done);
	uint64_t now, due;

	if (!lio)
		return;
	now = reactor_now(bdev->reactor);
	due = now +
	      delay_draw(d, reactor_rng(bdev->reactor), io->op == BDEV_READ);
	if (due < d->stall_until_ns)
		due = d->stall_until_ns;
	if (due <= now) {
		layer_io_pass(lio);
		return;
	}
	lio->timer.fn = delay_over;
	timer_arm(bdev->reactor, &lio->timer, due);
}

static void delay_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_delay *d = delay_of(layer_of(bdev));
	const int n = snprintf(buf, len, "read %.1f us, write %.1f us",
			       (double)d->opts.read_ns / 1e3,
			       (double)d->opts.write_ns / 1e3);

	if (n > 0 && (size_t)n < len)
		layer_describe_child(&d->layer, buf + n, len - (size_t)n);
}

static const struct bdev_ops delay_ops = {
	.kind = "delay",
	.submit = delay_submit,
	.close = layer_close,
	.grow = layer_grow,
	.describe = delay_describe,
};

int bdev_delay_open(struct bdev *child, const struct delay_opts *opts,
		    struct bdev **bdev, struct err *err)
{
	struct layer *layer;

	if (!(opts->spread >= 0.0 && opts->spread <= 1.0))
		return err_set(err, -EINVAL,
			       "%s: the spread of a delay is from 0 to 1",
			       child->name);
	layer = layer_new(sizeof(struct bdev_delay), &delay_ops, child, NULL,
			  err);
	if (!layer)
		return -ENOMEM;
	delay_of(layer)->opts = *opts;
	*bdev = &layer->bdev;
	return 0;
}

void bdev_delay_set(struct bdev *bdev, const struct delay_opts *opts)
{
	id_assert(bdev->ops == &delay_ops);
	delay_of(layer_of(bdev))->opts = *opts;
}

void bdev_delay_stall(struct bdev *bdev, uint64_t ns)
{
	struct bdev_delay *d = delay_of(layer_of(bdev));
	const uint64_t until = reactor_now(bdev->reactor) + ns;

	id_assert(bdev->ops == &delay_ops);
	if (until > d->stall_until_ns)
		d->stall_until_ns = until;
}
