/* SPDX-License-Identifier: GPL-3.0-or-later */
/* See frontread.h. */
#include "engine/vdisk/log/frontread.h"

#include <stdlib.h>
#include <string.h>

#define FRONT_BLOCKS (FMT_FRONT_BYTES / FMT_BLOCK)

struct front_read *front_read_new(struct reactor *r)
{
	struct front_read *f = calloc(1, sizeof(*f));

	id_assert(f);
	f->r = r;
	f->buf = reactor_buf_alloc(r, FMT_FRONT_BYTES);
	id_assert(f->buf);
	return f;
}

static void release(struct front_read *f)
{
	reactor_buf_free(f->r, f->buf, FMT_FRONT_BYTES);
	free(f);
}

void front_read_drop(struct front_read *f, bool dead)
{
	if (!f)
		return;
	f->done = NULL;
	if (!f->busy || dead)
		release(f);
}

static void submit(struct front_read *f, uint32_t off, uint32_t len);

/* What is left of a block that was not read may be anything. */
static void block_over(struct front_read *f)
{
	if (f->io.result) {
		f->unread |= 1u << f->block;
		memset(f->buf + f->block * FMT_BLOCK, 0, FMT_BLOCK);
	} else {
		f->result = 0;
	}
	f->block++;
}

static void front_over(struct io *io)
{
	struct front_read *f = io->arg;

	f->busy = false;
	if (!f->done) {
		release(f);
		return;
	}
	if (f->by_block)
		block_over(f);
	else
		f->result = io->result;
	if (io->result && !f->by_block)
		f->by_block = true;
	if (f->by_block && f->block < FRONT_BLOCKS)
		submit(f, f->block * FMT_BLOCK, FMT_BLOCK);
	else
		f->done(f);
}

static void submit(struct front_read *f, uint32_t off, uint32_t len)
{
	f->busy = true;
	f->io = (struct io) { .op = BDEV_READ,
			      .off = off,
			      .len = len,
			      .buf = f->buf + off,
			      .done = front_over,
			      .arg = f };
	bdev_submit(f->bdev, &f->io);
}

void front_read_begin(struct front_read *f, struct bdev *bdev,
		      void (*done)(struct front_read *f), void *arg)
{
	f->bdev = bdev;
	f->done = done;
	f->arg = arg;
	f->result = -ENODEV;
	if (bdev && bdev->limits.size_bytes >= FMT_FRONT_BYTES)
		submit(f, 0, FMT_FRONT_BYTES);
}
