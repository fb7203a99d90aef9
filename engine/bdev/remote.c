/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * remote: an io travels to the child's reactor as a task, and back as one.
 * The stock of ios is of this side, the io in it of the other while it is
 * there.
 *
 *	here:   submit --send--> there: bdev_submit(child)
 *	here: complete <--send-- there: callback
 */
#include "engine/bdev/layers.h"

#include <stdlib.h>

#include "engine/bdev/layer.h"

struct remote_io {
	struct io io;     /* the child's */
	struct task task; /* it travels by */
	struct io *parent;
	struct bdev_remote *remote;
	struct remote_io *next_free;
};

struct bdev_remote {
	struct bdev bdev;
	struct bdev *child;
	struct remote_io *free;
};

/* ---- here --------------------------------------------------------------- */

static void back_here(struct task *task)
{
	struct remote_io *rio = container_of(task, struct remote_io, task);
	struct io *parent = rio->parent;
	const int result = rio->io.result;

	rio->next_free = rio->remote->free;
	rio->remote->free = rio;
	bdev_complete(parent, result);
}

/* ---- there -------------------------------------------------------------- */

static void done_there(struct io *io)
{
	struct remote_io *rio = container_of(io, struct remote_io, io);

	rio->task.fn = back_here;
	reactor_send(rio->remote->bdev.reactor, &rio->task);
}

static void arrived_there(struct task *task)
{
	struct remote_io *rio = container_of(task, struct remote_io, task);

	bdev_submit(rio->remote->child, &rio->io);
}

/* ---- here again --------------------------------------------------------- */

static void remote_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_remote *m = container_of(bdev, struct bdev_remote, bdev);
	struct remote_io *rio = m->free;

	if (rio)
		m->free = rio->next_free;
	else
		rio = calloc(1, sizeof(*rio));
	if (!rio) {
		bdev_complete_later(io, -ENOMEM);
		return;
	}
	rio->parent = io;
	rio->remote = m;
	rio->io.op = io->op;
	rio->io.flags = io->flags;
	rio->io.len = io->len;
	rio->io.off = io->off;
	rio->io.buf = io->buf;
	rio->io.done = done_there;
	rio->task.fn = arrived_there;
	reactor_send(m->child->reactor, &rio->task);
}

static void remote_close(struct bdev *bdev)
{
	struct bdev_remote *m = container_of(bdev, struct bdev_remote, bdev);

	while (m->free) {
		struct remote_io *rio = m->free;

		m->free = rio->next_free;
		free(rio);
	}
	bdev_closed(bdev);
}

static const struct bdev_ops remote_ops = {
	.kind = "remote",
	.submit = remote_submit,
	.close = remote_close,
};

int bdev_remote_open(struct reactor *here, struct bdev *child,
		     struct bdev **bdev, struct err *err)
{
	struct bdev_remote *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, -ENOMEM, "%s: no memory", child->name);
	bdev_init(&m->bdev, &remote_ops, here, child->name);
	m->bdev.limits = child->limits;
	m->bdev.limits.can_lend = false; /* the callback is elsewhere */
	m->child = child;
	*bdev = &m->bdev;
	return 0;
}
