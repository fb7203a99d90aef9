/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front of all block devices: checks an io, counts it, hands it over, and
 * brings it back. What it promises in bdev.h is kept here once, not in each
 * kind.
 */
#include "engine/bdev/bdev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bdev_init(struct bdev *bdev, const struct bdev_ops *ops,
	       struct reactor *reactor, const char *name)
{
	memset(bdev, 0, sizeof(*bdev));
	bdev->ops = ops;
	bdev->reactor = reactor;
	snprintf(bdev->name, sizeof(bdev->name), "%s", name ? name : ops->kind);
}

/* ---- figures of time: only for a bdev that is timed --------------------- */

/* The time since the last change counts for as many io as were in flight. */
static void timing_advance(struct bdev *bdev, uint64_t now)
{
	struct bdev_stats *s = &bdev->stats;

	if (bdev->queue_last_ns && now > bdev->queue_last_ns) {
		const uint64_t ns = now - bdev->queue_last_ns;

		s->queue_ns += ns * s->inflight;
		if (s->inflight)
			s->busy_ns += ns;
	}
	bdev->queue_last_ns = now;
}

static void timing_submit(struct bdev *bdev, struct io *io)
{
	io->stamp_ns = reactor_now(bdev->reactor);
	timing_advance(bdev, io->stamp_ns);
}

static void timing_complete(struct bdev *bdev, const struct io *io)
{
	const uint64_t now = reactor_now(bdev->reactor);

	timing_advance(bdev, now);
	bdev->stats.latency_sum_ns[io->op] += now - io->stamp_ns;
}

int bdev_grow(struct bdev *bdev, uint64_t size_bytes)
{
	if (size_bytes <= bdev->limits.size_bytes)
		return 0;
	if (!bdev->ops->grow || size_bytes % bdev->limits.block_bytes)
		return -ENOTSUP;
	if (bdev->failed)
		return -ENODEV;
	return bdev->ops->grow(bdev, size_bytes);
}

void bdev_stats(struct bdev *bdev, struct bdev_stats *stats)
{
	if (bdev->timed)
		timing_advance(bdev, reactor_now(bdev->reactor));
	*stats = bdev->stats;
}

/* ---- there -------------------------------------------------------------- */

static int range_check(const struct bdev_limits *l, const struct io *io)
{
	const uint64_t mask = l->block_bytes - 1;

	if (((io->off | io->len) & mask) || !io->len)
		return -EINVAL;
	if (io->off > l->size_bytes || io->len > l->size_bytes - io->off)
		return -EINVAL;
	return 0;
}

static int io_check(const struct bdev *bdev, const struct io *io)
{
	const struct bdev_limits *l = &bdev->limits;

	if (id_unlikely(bdev->failed))
		return -ENODEV;
	switch (io->op) {
	case BDEV_WRITE:
		if (io->flags & ~BDEV_FUA)
			return -EINVAL;
		if (io->flags && !l->can_fua)
			return -EOPNOTSUPP;
		break;
	case BDEV_READ:
		if (io->flags & ~(l->can_lend ? BDEV_LEND : 0))
			return -EINVAL;
		break;
	case BDEV_FLUSH:
		return l->can_flush ? 0 : -EOPNOTSUPP;
	case BDEV_TRIM:
		return l->can_trim ? range_check(l, io) : -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if (io->len > l->io_max_bytes ||
	    ((uintptr_t)io->buf & (l->align_bytes - 1)))
		return -EINVAL;
	return range_check(l, io);
}

void bdev_submit(struct bdev *bdev, struct io *io)
{
	int rc;

	id_assert(!bdev->closing);
	if (bdev->timed)
		timing_submit(bdev, io);
	io->bdev = bdev;
	bdev->stats.inflight++;
	rc = io_check(bdev, io);
	if (id_likely(!rc))
		bdev->ops->submit(bdev, io);
	else
		bdev_complete_later(io, rc);
}

/* ---- and back ----------------------------------------------------------- */

static void complete_task(struct task *task)
{
	struct io *io = container_of(task, struct io, task);

	bdev_complete(io, io->result);
}

void bdev_complete_later(struct io *io, int result)
{
	io->result = result;
	io->task.fn = complete_task;
	reactor_post(io->bdev->reactor, &io->task);
}

static void close_task(struct task *task)
{
	struct bdev *bdev = container_of(task, struct bdev, close_task);

	bdev->ops->close(bdev);
}

static void close_post(struct bdev *bdev)
{
	bdev->close_task.fn = close_task;
	reactor_post(bdev->reactor, &bdev->close_task);
}

/* The callback may free the io and close the bdev: it comes last. */
void bdev_complete(struct io *io, int result)
{
	struct bdev *bdev = io->bdev;
	struct bdev_stats *s = &bdev->stats;

	io->result = result;
	if (bdev->timed && io->op <= BDEV_TRIM)
		timing_complete(bdev, io);
	id_assert(s->inflight);
	s->inflight--;
	if (id_likely(!result)) {
		s->ops[io->op]++;
		s->bytes[io->op] += io->len;
	} else {
		s->errors++;
	}
	if (id_unlikely(bdev->closing && !s->inflight))
		close_post(bdev);
	io->done(io);
}

/* ---- the end ------------------------------------------------------------ */

void bdev_close(struct bdev *bdev, void (*closed)(void *arg), void *arg)
{
	if (!bdev)
		return;
	id_assert(!bdev->closing);
	bdev->closing = true;
	bdev->closed = closed;
	bdev->closed_arg = arg;
	if (!bdev->stats.inflight)
		close_post(bdev);
}

void bdev_closed(struct bdev *bdev)
{
	void (*closed)(void *arg) = bdev->closed;
	void *arg = bdev->closed_arg;

	free(bdev);
	if (closed)
		closed(arg);
}

void bdev_describe(struct bdev *bdev, char *buf, size_t len)
{
	const int n = snprintf(buf, len, "%s", bdev->ops->kind);

	if (!bdev->ops->describe || n < 0 || (size_t)n + 2 >= len)
		return;
	snprintf(buf + n, len - (size_t)n, ", ");
	bdev->ops->describe(bdev, buf + n + 2, len - (size_t)n - 2);
}

/* ---- for programs without a loop ---------------------------------------- */

struct sync_io {
	struct io io;
	bool done;
};

static void sync_done(struct io *io)
{
	container_of(io, struct sync_io, io)->done = true;
}

int bdev_io_sync(struct bdev *bdev, enum bdev_op op, unsigned flags,
		 uint64_t off, void *buf, uint32_t len)
{
	struct sync_io sync = {
		.io = {
			.op = (uint8_t)op,
			.flags = (uint8_t)flags,
			.off = off,
			.buf = buf,
			.len = len,
			.done = sync_done,
		},
	};

	bdev_submit(bdev, &sync.io);
	while (!sync.done)
		reactor_run_once(bdev->reactor, UINT64_MAX);
	return sync.io.result;
}

/* Counted, not flagged: a flag's address would outlive its function. */
static _Thread_local unsigned sync_closes;

static void sync_closed(void *arg)
{
	(void)arg;
	sync_closes++;
}

void bdev_close_sync(struct bdev *bdev)
{
	const unsigned before = sync_closes;
	struct reactor *r;

	if (!bdev)
		return;
	r = bdev->reactor;
	bdev_close(bdev, sync_closed, NULL);
	while (sync_closes == before)
		reactor_run_once(r, UINT64_MAX);
}
