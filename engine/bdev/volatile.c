/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * volatile: a write cache that dies with the process, so that kill -9 does to
 * a file what a power cut does to a drive with a cache of its own.
 *
 *   WRITE    cut at random sectors; some pieces go to the child at once (a
 *            drive may write early, in any order), the rest stays in memory
 *   FUA      goes down at once, in pieces one behind the other, so that what
 *            dies in the middle is torn
 *   FLUSH    all that is held goes down in any order, then the child's FLUSH
 *   READ     the child's answer with what is held laid over it
 *
 * Each sector that was not flushed is therefore kept or lost by itself. A
 * write is a barrier to nothing; a FLUSH is one to all, which a drive may be.
 *
 * What is held lies in pages of 64 KiB with a bit a sector. A read takes along
 * at its start what it will need, as the child may be asked before a piece
 * lands there and answer after the piece is no longer held here.
 */
#include "engine/bdev/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bdev/layer.h"

#define PAGE_BYTES (64 * KIB)
#define SECTOR 512u
#define PAGE_SECTORS (PAGE_BYTES / SECTOR)
#define BUCKETS 1024u
#define PIECES_MAX 16u
#define CACHE_PAGES 1024u /* more than that goes down by itself */
#define MEM_ALIGN 4096u

struct vpage {
	struct vpage *next; /* of its bucket */
	struct vpage *down; /* of those that are being written */
	uint64_t index;
	uint64_t held[PAGE_SECTORS / 64]; /* bits */
	uint8_t *data;
};

struct bdev_volatile {
	struct layer layer;
	struct rng rng;
	uint32_t unit; /* what is kept or lost as one */
	struct vpage *bucket[BUCKETS];
	unsigned pages;
	unsigned busy; /* writes and trims under way */
	/* A FLUSH, or pages that go down by themselves (no parent). */
	bool flushing, syncing, closing;
	struct io *parent;
	struct io *first, *last; /* behind it */
	struct vpage *down;
	unsigned out;
	int result;
	struct io sync;
};

/* One io in pieces. */
struct vpiece {
	struct io io;
	struct vop *op;
	bool late; /* only once the one before it is done */
};

struct vop {
	struct bdev_volatile *d;
	struct io *parent;
	unsigned out, next, pieces;
	int result;
	uint8_t *saved; /* of a read: what was held, */
	uint64_t *mask; /* and which sectors of it */
	struct vpiece piece[PIECES_MAX];
};

static struct bdev_volatile *volatile_of(struct bdev *bdev)
{
	return container_of(layer_of(bdev), struct bdev_volatile, layer);
}

/* ---- what is held ------------------------------------------------------- */

static struct vpage **page_at(struct bdev_volatile *d, uint64_t index)
{
	struct vpage **at = &d->bucket[index % BUCKETS];

	while (*at && (*at)->index != index)
		at = &(*at)->next;
	return at;
}

static struct vpage *page_get(struct bdev_volatile *d, uint64_t index)
{
	struct vpage **at = page_at(d, index), *p = *at;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (p)
		p->data = aligned_alloc(MEM_ALIGN, PAGE_BYTES);
	if (!p || !p->data) {
		free(p);
		return NULL;
	}
	p->index = index;
	*at = p;
	d->pages++;
	return p;
}

static void pages_free(struct bdev_volatile *d)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct vpage *p;

		while ((p = d->bucket[i])) {
			d->bucket[i] = p->next;
			free(p->data);
			free(p);
		}
	}
	d->pages = 0;
}

static bool held(const struct vpage *p, unsigned sector)
{
	return p && p->held[sector / 64] >> (sector % 64) & 1;
}

static int hold(struct bdev_volatile *d, uint64_t off, const uint8_t *from,
		uint32_t len)
{
	for (uint32_t at = 0; at < len; at += SECTOR) {
		const uint64_t byte = off + at;
		struct vpage *p = page_get(d, byte / PAGE_BYTES);
		const unsigned s = (unsigned)(byte % PAGE_BYTES / SECTOR);

		if (!p)
			return -ENOMEM;
		memcpy(p->data + (size_t)s * SECTOR, from + at, SECTOR);
		p->held[s / 64] |= 1ull << (s % 64);
	}
	return 0;
}

static void let_go(struct bdev_volatile *d, uint64_t off, uint64_t len)
{
	struct vpage *p = NULL;

	for (uint64_t byte = off; byte < off + len; byte += SECTOR) {
		const unsigned s = (unsigned)(byte % PAGE_BYTES / SECTOR);

		if (byte == off || !s)
			p = *page_at(d, byte / PAGE_BYTES);
		if (p)
			p->held[s / 64] &= ~(1ull << (s % 64));
	}
}

/* ---- ios in pieces ------------------------------------------------------ */

static void volatile_submit(struct bdev *bdev, struct io *io);

static struct vop *op_get(struct bdev_volatile *d, struct io *io)
{
	struct vop *op = calloc(1, sizeof(*op));

	if (!op) {
		bdev_complete_later(io, -ENOMEM);
		return NULL;
	}
	op->d = d;
	op->parent = io;
	return op;
}

static void flush_try(struct bdev_volatile *d);

static void op_over(struct vop *op)
{
	struct bdev_volatile *d = op->d;
	struct io *parent = op->parent;
	const int result = op->result;

	if (parent->op != BDEV_READ)
		d->busy--;
	free(op->saved);
	free(op->mask);
	free(op);
	flush_try(d);
	bdev_complete(parent, result);
}

static void op_go(struct vop *op);

static void piece_done(struct io *io)
{
	struct vpiece *piece = container_of(io, struct vpiece, io);
	struct vop *op = piece->op;

	if (io->result && !op->result)
		op->result = io->result;
	if (!io->result)
		let_go(op->d, io->off, io->len);
	op->out--;
	op_go(op);
}

static void op_go(struct vop *op)
{
	while (op->next < op->pieces) {
		struct vpiece *p = &op->piece[op->next];

		if (p->late && op->out)
			return;
		op->next++;
		op->out++;
		bdev_submit(op->d->layer.child, &p->io);
	}
	if (!op->out)
		op_over(op);
}

static void piece_add(struct vop *op, uint32_t from, uint32_t to, bool late)
{
	struct vpiece *p = &op->piece[op->pieces++];

	p->op = op;
	p->late = late;
	p->io.op = BDEV_WRITE;
	p->io.flags = op->parent->flags;
	p->io.off = op->parent->off + from;
	p->io.len = to - from;
	p->io.buf = (uint8_t *)op->parent->buf + from;
	p->io.done = piece_done;
}

/* Where it is cut: up to `most` pieces, in units. Returns how many. */
static unsigned cuts_draw(struct bdev_volatile *d, uint32_t len, unsigned most,
			  uint32_t cut[PIECES_MAX + 1])
{
	const uint32_t units = len / d->unit;
	const unsigned want = units < most ? units : most;
	unsigned n = 0;

	cut[0] = 0;
	for (unsigned i = 1; i <= want; i++) {
		/* Equal shares, their ends moved by up to a share. */
		const uint64_t lo = (uint64_t)units * i / want;
		const uint64_t step = units / want;
		uint32_t at =
			(uint32_t)(lo - rng_below(&d->rng, step)) * d->unit;

		if (i == want)
			at = len;
		if (at > cut[n])
			cut[++n] = at;
	}
	return n;
}

static void write_fua(struct bdev_volatile *d, struct vop *op)
{
	uint32_t cut[PIECES_MAX + 1];
	const unsigned most = rng_below(&d->rng, 2) ? 1 : 4;
	const unsigned n = cuts_draw(d, op->parent->len, most, cut);
	const unsigned turn = (unsigned)rng_below(&d->rng, n);

	for (unsigned i = 0; i < n; i++) {
		const unsigned at = (i + turn) % n;

		piece_add(op, cut[at], cut[at + 1], true);
	}
}

static void write_cached(struct bdev_volatile *d, struct vop *op)
{
	uint32_t cut[PIECES_MAX + 1];
	const unsigned n = cuts_draw(d, op->parent->len, PIECES_MAX, cut);
	const struct io *io = op->parent;

	for (unsigned i = 0; i < n && !op->result; i++) {
		if (rng_below(&d->rng, 2))
			piece_add(op, cut[i], cut[i + 1], false);
		else
			op->result = hold(d, io->off + cut[i],
					  (const uint8_t *)io->buf + cut[i],
					  cut[i + 1] - cut[i]);
	}
}

static void trim(struct vop *op)
{
	struct vpiece *p = &op->piece[op->pieces++];

	p->op = op;
	p->io.op = BDEV_TRIM;
	p->io.off = op->parent->off;
	p->io.len = op->parent->len;
	p->io.done = piece_done;
}

/* ---- reads -------------------------------------------------------------- */

static void read_done(struct io *io)
{
	struct vpiece *piece = container_of(io, struct vpiece, io);
	struct vop *op = piece->op;
	uint8_t *buf = op->parent->buf;

	op->result = io->result;
	for (uint32_t s = 0; op->mask && s < io->len / SECTOR; s++)
		if (op->mask[s / 64] >> (s % 64) & 1)
			memcpy(buf + (size_t)s * SECTOR,
			       op->saved + (size_t)s * SECTOR, SECTOR);
	op_over(op);
}

/* What is held of it is taken along. */
static int read_save(struct bdev_volatile *d, struct vop *op)
{
	const struct io *io = op->parent;
	const uint32_t sectors = io->len / SECTOR;
	struct vpage *p = NULL;

	for (uint32_t i = 0; i < sectors; i++) {
		const uint64_t byte = io->off + (uint64_t)i * SECTOR;
		const unsigned s = (unsigned)(byte % PAGE_BYTES / SECTOR);

		if (!i || !s)
			p = *page_at(d, byte / PAGE_BYTES);
		if (!held(p, s))
			continue;
		if (!op->mask) {
			op->mask = calloc((sectors + 63) / 64, 8);
			op->saved = malloc(io->len);
			if (!op->mask || !op->saved)
				return -ENOMEM;
		}
		op->mask[i / 64] |= 1ull << (i % 64);
		memcpy(op->saved + (size_t)i * SECTOR,
		       p->data + (size_t)s * SECTOR, SECTOR);
	}
	return 0;
}

static void read_submit(struct bdev_volatile *d, struct io *io)
{
	struct vop *op = op_get(d, io);
	struct vpiece *p;

	if (!op)
		return;
	if (read_save(d, op)) {
		free(op->saved);
		free(op->mask);
		free(op);
		bdev_complete_later(io, -ENOMEM);
		return;
	}
	p = &op->piece[0];
	p->op = op;
	p->io.op = BDEV_READ;
	p->io.off = io->off;
	p->io.len = io->len;
	p->io.buf = io->buf;
	p->io.done = read_done;
	bdev_submit(d->layer.child, &p->io);
}

/* ---- flush -------------------------------------------------------------- */

struct vdown {
	struct io io;
	struct bdev_volatile *d;
};

static void flush_over(struct bdev_volatile *d)
{
	struct io *parent = d->parent, *io = d->first;
	const int result = d->result;

	pages_free(d); /* also of a flush that failed: nothing is sure now */
	d->flushing = d->syncing = false;
	d->parent = NULL;
	d->first = d->last = NULL;
	if (d->closing) {
		layer_close(&d->layer.bdev);
		return;
	}
	while (io) {
		struct io *next = io->next;

		volatile_submit(&d->layer.bdev, io);
		io = next;
	}
	if (parent)
		bdev_complete(parent, result);
}

static void sync_done(struct io *io)
{
	struct bdev_volatile *d = io->arg;

	if (io->result && !d->result)
		d->result = io->result;
	flush_over(d);
}

static void flush_go(struct bdev_volatile *d);

static void down_done(struct io *io)
{
	struct vdown *w = container_of(io, struct vdown, io);
	struct bdev_volatile *d = w->d;

	if (io->result && !d->result)
		d->result = io->result;
	d->out--;
	free(w);
	flush_go(d);
}

static bool down_run(struct bdev_volatile *d, struct vpage *p, unsigned from,
		     unsigned to)
{
	struct vdown *w = calloc(1, sizeof(*w));

	if (!w) {
		d->result = -ENOMEM;
		return false;
	}
	w->d = d;
	w->io.op = BDEV_WRITE;
	w->io.off = p->index * PAGE_BYTES + (uint64_t)from * SECTOR;
	w->io.len = (to - from) * SECTOR;
	w->io.buf = p->data + (size_t)from * SECTOR;
	w->io.done = down_done;
	d->out++;
	bdev_submit(d->layer.child, &w->io);
	return true;
}

static void page_down(struct bdev_volatile *d, struct vpage *p)
{
	for (unsigned s = 0; s < PAGE_SECTORS; s++) {
		const unsigned from = s;

		while (s < PAGE_SECTORS && held(p, s))
			s++;
		if (s > from && !down_run(d, p, from, s))
			return;
	}
}

static void flush_go(struct bdev_volatile *d)
{
	struct vpage *p;

	while (d->out < PIECES_MAX && (p = d->down)) {
		d->down = p->down;
		page_down(d, p);
	}
	if (d->out || d->down || d->syncing)
		return;
	d->syncing = true;
	d->sync = (struct io) { .op = BDEV_FLUSH, .done = sync_done, .arg = d };
	bdev_submit(d->layer.child, &d->sync);
}

/* Once the writes before it are done: in which order the pages go, chance
 * says. */
static void flush_try(struct bdev_volatile *d)
{
	struct vpage *tail = NULL;

	if (!d->flushing || d->syncing || d->out || d->busy)
		return;
	d->down = NULL;
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct vpage *p = d->bucket[i]; p; p = p->next) {
			if (tail && rng_below(&d->rng, 2)) {
				p->down = NULL;
				tail->down = p;
				tail = p;
				continue;
			}
			p->down = d->down;
			d->down = p;
			tail = tail ? tail : p;
		}
	flush_go(d);
}

static void flush_begin(struct bdev_volatile *d, struct io *parent)
{
	d->flushing = true;
	d->parent = parent;
	d->result = 0;
	flush_try(d);
}

/* ---- the bdev ----------------------------------------------------------- */

static void queue(struct bdev_volatile *d, struct io *io)
{
	io->next = NULL;
	if (d->last)
		d->last->next = io;
	else
		d->first = io;
	d->last = io;
}

static void change_submit(struct bdev_volatile *d, struct io *io)
{
	struct vop *op = op_get(d, io);

	if (!op)
		return;
	d->busy++;
	if (io->op == BDEV_TRIM)
		trim(op);
	else if (io->flags & BDEV_FUA)
		write_fua(d, op);
	else
		write_cached(d, op);
	if (!op->pieces || op->result) {
		const int result = op->result;

		d->busy--;
		free(op);
		bdev_complete_later(io, result);
		return;
	}
	op_go(op);
}

static void volatile_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_volatile *d = volatile_of(bdev);

	if (io->op == BDEV_READ) {
		read_submit(d, io);
		return;
	}
	if (!d->flushing && d->pages > CACHE_PAGES)
		flush_begin(d, NULL);
	if (d->flushing)
		queue(d, io);
	else if (io->op == BDEV_FLUSH)
		flush_begin(d, io);
	else
		change_submit(d, io);
}

/* Orderly: the next to open sees all that was done. */
static void volatile_close(struct bdev *bdev)
{
	struct bdev_volatile *d = volatile_of(bdev);

	d->closing = true;
	if (!d->flushing)
		flush_begin(d, NULL);
}

static void volatile_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_volatile *d = volatile_of(bdev);
	const int n =
		snprintf(buf, len, "volatile cache of %llu MiB",
			 (unsigned long long)(CACHE_PAGES * PAGE_BYTES / MIB));

	if (n > 0 && (size_t)n < len)
		layer_describe_child(&d->layer, buf + n, len - (size_t)n);
}

static const struct bdev_ops volatile_ops = {
	.kind = "volatile",
	.submit = volatile_submit,
	.close = volatile_close,
	.describe = volatile_describe,
};

int bdev_volatile_open(struct bdev *child, uint64_t seed, struct bdev **bdev,
		       struct err *err)
{
	const struct bdev_limits *l = &child->limits;
	const uint32_t unit = l->block_bytes > l->align_bytes ? l->block_bytes
							      : l->align_bytes;
	struct layer *layer;
	struct bdev_volatile *d;

	if (unit > PAGE_BYTES || unit % SECTOR || l->size_bytes % unit ||
	    !l->can_flush || !l->can_fua)
		return err_set(err, -EINVAL,
			       "%s: no volatile cache over a device without "
			       "FLUSH and FUA",
			       child->name);
	layer = layer_new(sizeof(*d), &volatile_ops, child, NULL, err);
	if (!layer)
		return -ENOMEM;
	d = volatile_of(&layer->bdev);
	d->unit = unit;
	rng_seed(&d->rng, seed);
	*bdev = &layer->bdev;
	return 0;
}
