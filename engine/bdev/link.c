/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * link: two servers, one a direction, each known by the time it is free
 * again. An io is given its time of arrival at once, so the rate is exact
 * whatever the timers' delay: a late timer finds the server busy ahead.
 *
 *	write: [server 1] latency --> child --> done
 *	read:  child --> [server 0] latency --> done
 */
#include "engine/bdev/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bdev/layer.h"

/* Times of a server in 2^-32 ns, so that no rate is rounded. */
typedef unsigned __int128 fine_ns;
#define FINE_SHIFT 32

struct link_server {
	fine_ns free_at;
	fine_ns busy;
};

struct link {
	struct reactor *reactor;
	struct link_opts opts;
	struct link_server server[2];
	struct link_stats stats;
	unsigned users;
	char name[64];
};

struct bdev_link {
	struct layer layer;
	struct link *link;
};

static struct bdev_link *link_of(struct layer *layer)
{
	return container_of(layer, struct bdev_link, layer);
}

/* ---- the link ----------------------------------------------------------- */

int link_new(struct reactor *r, const char *name, const struct link_opts *opts,
	     struct link **link, struct err *err)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(err, -ENOMEM, "%s: no memory", name);
	l->reactor = r;
	l->opts = *opts;
	snprintf(l->name, sizeof(l->name), "%s", name);
	*link = l;
	return 0;
}

void link_set(struct link *link, const struct link_opts *opts)
{
	link->opts = *opts;
}

void link_get(const struct link *link, struct link_opts *opts)
{
	*opts = link->opts;
}

void link_stats(struct link *link, struct link_stats *stats)
{
	*stats = link->stats;
	for (int i = 0; i < 2; i++)
		stats->busy_ns[i] =
			(uint64_t)(link->server[i].busy >> FINE_SHIFT);
}

void link_free(struct link *link)
{
	if (!link)
		return;
	id_assert(!link->users);
	free(link);
}

static fine_ns transfer_time(const struct link_opts *opts, uint32_t len)
{
	fine_ns by_bytes = 0, by_ops = 0;

	if (opts->rate_bytes_s)
		by_bytes = (((fine_ns)len * SEC_NS) << FINE_SHIFT) /
			   opts->rate_bytes_s;
	if (opts->rate_iops)
		by_ops = ((fine_ns)SEC_NS << FINE_SHIFT) / opts->rate_iops;
	return by_bytes > by_ops ? by_bytes : by_ops;
}

/*
 * Takes the io in and returns when it is through, latency included. FLUSH and
 * TRIM carry no data: they have the latency alone.
 */
static uint64_t link_take(struct link *link, const struct io *io, uint64_t now)
{
	const unsigned dir = io->op != BDEV_READ;
	const bool data = io->op == BDEV_READ || io->op == BDEV_WRITE;
	struct link_server *server =
		&link->server[link->opts.half_duplex ? 0 : dir];
	fine_ns took, at = (fine_ns)now << FINE_SHIFT;

	link->stats.ops[dir]++;
	if (!data)
		return now + link->opts.latency_ns;
	took = transfer_time(&link->opts, io->len);
	if (server->free_at > at)
		at = server->free_at;
	server->free_at = at + took;
	link->server[dir].busy += took;
	link->stats.bytes[dir] += io->len;
	return (uint64_t)(server->free_at >> FINE_SHIFT) +
	       link->opts.latency_ns;
}

/* ---- the layer ---------------------------------------------------------- */

static void link_arrive(struct layer_io *lio, void (*fn)(struct timer *timer))
{
	struct reactor *r = lio->layer->bdev.reactor;
	const uint64_t now = reactor_now(r);
	const uint64_t at = link_take(link_of(lio->layer)->link, &lio->io, now);

	if (at <= now) {
		fn(&lio->timer);
		return;
	}
	lio->timer.fn = fn;
	timer_arm(r, &lio->timer, at);
}

static void read_arrived(struct timer *timer)
{
	struct layer_io *lio = container_of(timer, struct layer_io, timer);

	layer_io_complete(lio, lio->io.result);
}

static void write_arrived(struct timer *timer)
{
	layer_io_pass(container_of(timer, struct layer_io, timer));
}

static void link_done(struct io *io)
{
	struct layer_io *lio = layer_io_of(io);

	if (io->op == BDEV_READ)
		link_arrive(lio, read_arrived);
	else
		layer_io_complete(lio, io->result);
}

static void link_submit(struct bdev *bdev, struct io *io)
{
	struct layer_io *lio = layer_io_get(layer_of(bdev), io, link_done);

	if (!lio)
		return;
	if (io->op == BDEV_READ)
		layer_io_pass(lio);
	else
		link_arrive(lio, write_arrived);
}

static void link_close(struct bdev *bdev)
{
	link_of(layer_of(bdev))->link->users--;
	layer_close(bdev);
}

static void link_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_link *b = link_of(layer_of(bdev));
	const struct link_opts *o = &b->link->opts;
	const int n = snprintf(buf, len, "%s: %.0f MB/s, %llu IOPS, %.1f us",
			       b->link->name, (double)o->rate_bytes_s / 1e6,
			       (unsigned long long)o->rate_iops,
			       (double)o->latency_ns / 1e3);

	if (n > 0 && (size_t)n < len)
		layer_describe_child(&b->layer, buf + n, len - (size_t)n);
}

static const struct bdev_ops link_ops = {
	.kind = "link",
	.submit = link_submit,
	.close = link_close,
	.grow = layer_grow,
	.describe = link_describe,
};

int bdev_link_open(struct bdev *child, struct link *link, struct bdev **bdev,
		   struct err *err)
{
	struct layer *layer;

	id_assert(link->reactor == child->reactor);
	layer = layer_new(sizeof(struct bdev_link), &link_ops, child, NULL,
			  err);
	if (!layer)
		return -ENOMEM;
	link_of(layer)->link = link;
	link->users++;
	*bdev = &layer->bdev;
	return 0;
}
