/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fills a target once from its beginning to its end, then flushes it: the
 * first failure or a stop ends it early, once what is in flight is back.
 */
#include <stdlib.h>

#include "engine/load/content.h"
#include "engine/load/load.h"

#define IO_BYTES MIB
#define IO_BYTES_MAX (64 * MIB)
#define OUTSTANDING 8u
#define OUTSTANDING_MAX 1024u
#define PROGRESS_NS (100 * MSEC_NS)
/* Its content differs from that of a job with the same seed. */
#define SEED_MARK 0x7072656669

struct filler {
	struct io io;
	struct prefill *prefill;
	void *buf;
};

struct prefill {
	struct reactor *reactor;
	struct bdev *target;
	uint64_t bytes, next, done;
	uint32_t io_bytes;
	unsigned outstanding, inflight;
	int result;
	bool flushing, ended;
	struct content content;
	struct timer tick;
	struct task finish;
	void (*progress)(uint64_t done_bytes, void *arg);
	void (*finished)(int result, void *arg);
	void *arg;
	struct filler *filler;
};

static void finish_run(struct task *task)
{
	struct prefill *p = container_of(task, struct prefill, finish);

	timer_cancel(p->reactor, &p->tick);
	if (p->progress)
		p->progress(p->done, p->arg);
	p->finished(p->result, p->arg); /* may free p */
}

static void flush_submit(struct prefill *p)
{
	struct io *io = &p->filler[0].io;

	p->flushing = true;
	p->inflight++;
	io->op = BDEV_FLUSH;
	io->len = 0;
	io->off = 0;
	io->buf = NULL;
	bdev_submit(p->target, io);
}

/* Nothing is in flight: what comes now? */
static void settle(struct prefill *p)
{
	if (p->ended)
		return;
	if (!p->result && !p->flushing && p->target->limits.can_flush) {
		flush_submit(p);
		return;
	}
	p->ended = true;
	reactor_post(p->reactor, &p->finish);
}

static void write_next(struct prefill *p, struct io *io)
{
	const uint64_t left = p->bytes - p->next;

	io->len = left < p->io_bytes ? (uint32_t)left : p->io_bytes;
	io->off = p->next;
	p->next += io->len;
	p->inflight++;
	content_stamp(&p->content, io->buf, io->len);
	bdev_submit(p->target, io);
}

static void filler_done(struct io *io)
{
	struct filler *f = container_of(io, struct filler, io);
	struct prefill *p = f->prefill;

	p->inflight--;
	if (io->result && !p->result)
		p->result = io->result;
	if (!io->result)
		p->done += io->len;
	if (!p->result && p->next < p->bytes)
		write_next(p, io);
	else if (!p->inflight)
		settle(p);
}

static void tick_fire(struct timer *timer)
{
	struct prefill *p = container_of(timer, struct prefill, tick);

	p->progress(p->done, p->arg);
	timer_arm(p->reactor, timer, timer->deadline_ns + PROGRESS_NS);
}

static uint32_t round_down(uint64_t bytes, uint32_t unit)
{
	return (uint32_t)(bytes - bytes % unit);
}

/* 1 MiB, or whole full stripes from there on, as far as the target takes. */
static uint32_t io_bytes_default(const struct bdev_limits *l)
{
	const uint64_t unit =
		l->io_opt_bytes ? l->io_opt_bytes : l->block_bytes;
	const uint64_t want = (IO_BYTES + unit - 1) / unit * unit;

	if (want <= l->io_max_bytes)
		return (uint32_t)want;
	if (unit <= l->io_max_bytes)
		return round_down(l->io_max_bytes, (uint32_t)unit);
	return round_down(l->io_max_bytes, l->block_bytes);
}

static int opts_check(const struct prefill_opts *o, struct err *err)
{
	const struct bdev *b = o->target;
	const uint32_t block = b->limits.block_bytes;

	if (o->bytes > b->limits.size_bytes || o->bytes % block)
		return err_set(err, -EINVAL,
			       "prefill of %s: %llu bytes, expected at most "
			       "%llu in blocks of %u",
			       b->name, (unsigned long long)o->bytes,
			       (unsigned long long)b->limits.size_bytes, block);
	if (o->io_bytes > b->limits.io_max_bytes ||
	    o->io_bytes > IO_BYTES_MAX || o->io_bytes % block)
		return err_set(err, -EINVAL,
			       "prefill of %s: writes of %u bytes, expected at "
			       "most %u in blocks of %u",
			       b->name, o->io_bytes, b->limits.io_max_bytes,
			       block);
	if (o->outstanding > OUTSTANDING_MAX)
		return err_set(err, -EINVAL,
			       "prefill of %s: %u outstanding, at most %u",
			       b->name, o->outstanding, OUTSTANDING_MAX);
	if (!(o->compress_ratio >= 1.0 &&
	      o->compress_ratio <= CONTENT_RATIO_MAX))
		return err_set(err, -EINVAL,
			       "prefill of %s: compress_ratio: %g, expected 1 "
			       "(not compressible) to %g",
			       b->name, o->compress_ratio, CONTENT_RATIO_MAX);
	return 0;
}

static int fillers_init(struct prefill *p)
{
	p->filler = calloc(p->outstanding, sizeof(*p->filler));
	if (!p->filler)
		return -ENOMEM;
	for (unsigned i = 0; i < p->outstanding; i++) {
		struct filler *f = &p->filler[i];

		f->prefill = p;
		f->io.op = BDEV_WRITE;
		f->io.done = filler_done;
		f->buf = reactor_buf_alloc(p->reactor, p->io_bytes);
		if (!f->buf)
			return -ENOMEM;
		f->io.buf = f->buf;
		content_fill(&p->content, i, f->buf, p->io_bytes);
	}
	return 0;
}

int prefill_start(struct reactor *r, const struct prefill_opts *o,
		  struct prefill **prefill, struct err *err)
{
	struct prefill *p = NULL;
	int rc = opts_check(o, err);

	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		goto nomem;
	p->reactor = r;
	p->target = o->target;
	p->bytes = o->bytes ? o->bytes : o->target->limits.size_bytes;
	p->io_bytes = o->io_bytes ? o->io_bytes
				  : io_bytes_default(&o->target->limits);
	p->outstanding = o->outstanding ? o->outstanding : OUTSTANDING;
	p->progress = o->progress;
	p->finished = o->done;
	p->arg = o->arg;
	p->tick.fn = tick_fire;
	p->finish.fn = finish_run;
	content_init(&p->content, o->compress_ratio, o->seed ^ SEED_MARK);
	if (fillers_init(p))
		goto nomem;
	for (unsigned i = 0; i < p->outstanding && p->next < p->bytes; i++)
		write_next(p, &p->filler[i].io);
	if (p->progress)
		timer_arm(r, &p->tick, reactor_now(r) + PROGRESS_NS);
	*prefill = p;
	return 0;
nomem:
	prefill_free(p);
	return err_set(err, -ENOMEM, "prefill of %s: no memory for %u writes",
		       o->target->name,
		       o->outstanding ? o->outstanding : OUTSTANDING);
}

void prefill_stop(struct prefill *p)
{
	if (!p->result && !p->flushing)
		p->result = -ECANCELED;
}

void prefill_free(struct prefill *p)
{
	if (!p)
		return;
	id_assert(!p->inflight);
	for (unsigned i = 0; p->filler && i < p->outstanding; i++)
		if (p->filler[i].buf)
			reactor_buf_free(p->reactor, p->filler[i].buf,
					 p->io_bytes);
	free(p->filler);
	free(p);
}
