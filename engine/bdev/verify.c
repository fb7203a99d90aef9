/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * verify: a journal entry holds, for a block, the newest version known to be
 * there and the newest that was sent. They differ while a write is under way,
 * behind a write that failed, and behind one that a crash cut off.
 *
 *   sector   | block * 8 + sector | version | crc of the rest | the caller's |
 *              8 bytes              4         4                 496
 */
#include "engine/bdev/verify.h"

#include <fcntl.h>
#include <isa-l.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/bdev/layer.h"

#define SECTOR 512u
#define SECTORS (VERIFY_BLOCK / SECTOR)
#define ZEROS 0x80000000u /* this version reads as zeros */
#define NUMBER 0x7fffffffu
#define WRONG UINT32_MAX /* no version at all */
#define SWEEP_BYTES (256 * KIB)
#define SWEEP_DEPTH 4u

struct entry {
	uint32_t there, sent;
};

struct stamp {
	uint64_t place;
	uint32_t version, crc;
};

struct vio {
	struct io io;
	struct bdev_verify *d;
	struct io *parent; /* NULL: of the sweep */
	struct vio *next;
	uint64_t block;
	uint32_t blocks;
	uint32_t there[]; /* of each block, as the read began */
};

struct bdev_verify {
	struct layer layer;
	struct verify_head *head;
	struct entry *entry;
	size_t map_bytes;
	uint64_t blocks;
	uint64_t *busy;      /* bits: a write is under way */
	uint64_t *unsettled; /* bits: cut off by the crash before this open */
	struct io *first, *last; /* wait for a write that they overlap */
	/* sweep */
	uint64_t next;
	unsigned out;
	bool sweeping, closing;
	uint8_t *buf[SWEEP_DEPTH];
	void (*swept)(void *arg);
	void *arg;
};

static struct bdev_verify *verify_of(const struct bdev *bdev)
{
	return (struct bdev_verify *)container_of(bdev, struct layer, bdev);
}

static bool bit(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void bit_put(uint64_t *bits, uint64_t i, bool on)
{
	if (on)
		bits[i / 64] |= 1ull << (i % 64);
	else
		bits[i / 64] &= ~(1ull << (i % 64));
}

/* ---- content ------------------------------------------------------------ */

static uint32_t rest_crc(const uint8_t *sector)
{
	uint8_t *rest = (uint8_t *)sector + sizeof(struct stamp);

	return crc32_iscsi(rest, SECTOR - sizeof(struct stamp), ~0u);
}

static void block_stamp(uint64_t block, uint32_t version, uint8_t *data)
{
	for (unsigned s = 0; s < SECTORS; s++, data += SECTOR) {
		const struct stamp stamp = { block * SECTORS + s, version,
					     rest_crc(data) };

		memcpy(data, &stamp, sizeof(stamp));
	}
}

static bool all_zeros(const uint8_t *data)
{
	return !data[0] && !memcmp(data, data + 1, VERIFY_BLOCK - 1);
}

/* Which version it is; ZEROS; WRONG with why. */
static uint32_t block_version(uint64_t block, const uint8_t *data,
			      const char **why)
{
	struct stamp first, stamp;

	if (all_zeros(data))
		return ZEROS;
	memcpy(&first, data, sizeof(first));
	for (unsigned s = 0; s < SECTORS; s++, data += SECTOR) {
		memcpy(&stamp, data, sizeof(stamp));
		if (stamp.place != block * SECTORS + s)
			*why = "carries no stamp of its place";
		else if (stamp.version != first.version)
			*why = "is of two versions";
		else if (stamp.crc != rest_crc(data))
			*why = "is damaged behind its stamp";
		else
			continue;
		return WRONG;
	}
	return first.version;
}

/* ---- the journal -------------------------------------------------------- */

static void wrong(struct bdev_verify *d, uint64_t block, uint32_t saw,
		  uint32_t least, struct entry e, const char *why)
{
	if (d->head->wrong++)
		return;
	snprintf(d->head->first, sizeof(d->head->first),
		 "block %llu %s: read %s%u, expected %s%u to %s%u",
		 (unsigned long long)block, why,
		 saw == WRONG || !(saw & ZEROS) ? "" : "zeros ", saw & NUMBER,
		 least & ZEROS ? "zeros " : "", least & NUMBER,
		 e.sent & ZEROS ? "zeros " : "", e.sent & NUMBER);
}

/* Zeros say no version: the one they may stand for, newest first. */
static uint32_t zeros_version(uint32_t least, struct entry e)
{
	if (e.sent & ZEROS || !e.sent)
		return e.sent;
	if (e.there & ZEROS || !e.there)
		return e.there;
	if (least & ZEROS || !least)
		return least;
	/* One that came and went while the read was under way. */
	if ((e.there & NUMBER) > (least & NUMBER) + 1)
		return ((least & NUMBER) + 1) | ZEROS;
	return WRONG;
}

static bool version_fits(uint32_t saw, uint32_t least, struct entry e)
{
	const uint32_t n = saw & NUMBER;

	if (saw == WRONG || n < (least & NUMBER) || n > (e.sent & NUMBER))
		return false;
	if (n == (least & NUMBER))
		return saw == least;
	if (n == (e.there & NUMBER))
		return saw == e.there;
	return n < (e.sent & NUMBER) || saw == e.sent;
}

/* False: it must not read so. */
static bool block_judge(struct bdev_verify *d, uint64_t block, uint32_t least,
			const uint8_t *data)
{
	struct entry *e = &d->entry[block];
	const char *why = "goes back";
	uint32_t saw = block_version(block, data, &why);

	if (saw == ZEROS) {
		saw = zeros_version(least, *e);
		why = "lost what was written";
	}
	if (!version_fits(saw, least, *e)) {
		wrong(d, block, saw, least, *e, why);
		return false;
	}
	if ((saw & NUMBER) > (e->there & NUMBER))
		e->there = saw;
	if (bit(d->unsettled, block) && !bit(d->busy, block)) {
		bit_put(d->unsettled, block, false);
		d->head->settled++;
		d->head->settled_new += saw == e->sent;
		e->sent = e->there = saw;
	}
	return true;
}

/* ---- ios ---------------------------------------------------------------- */

static struct vio *vio_get(struct bdev_verify *d, struct io *parent,
			   enum bdev_op op, uint64_t off, uint32_t len,
			   void *buf, void (*done)(struct io *io))
{
	const uint32_t blocks = len / VERIFY_BLOCK;
	struct vio *v = calloc(1, sizeof(*v) + (op == BDEV_READ ? blocks : 0) *
						       sizeof(v->there[0]));

	if (!v)
		return NULL;
	v->d = d;
	v->parent = parent;
	v->block = off / VERIFY_BLOCK;
	v->blocks = blocks;
	v->io.op = (uint8_t)op;
	v->io.off = off;
	v->io.len = len;
	v->io.buf = buf;
	v->io.done = done;
	return v;
}

static void sweep_done(struct bdev_verify *d, struct vio *v);

static void read_done(struct io *io)
{
	struct vio *v = container_of(io, struct vio, io);
	struct bdev_verify *d = v->d;
	struct io *parent = v->parent;
	int result = io->result;

	for (uint32_t i = 0; !io->result && i < v->blocks; i++)
		if (!block_judge(d, v->block + i, v->there[i],
				 (const uint8_t *)io->buf +
					 (size_t)i * VERIFY_BLOCK))
			result = -EBADMSG;
	d->head->errors += io->result != 0;
	d->head->reads++;
	if (!parent) {
		sweep_done(d, v);
		return;
	}
	free(v);
	bdev_complete(parent, result);
}

static void read_begin(struct vio *v)
{
	for (uint32_t i = 0; i < v->blocks; i++)
		v->there[i] = v->d->entry[v->block + i].there;
	bdev_submit(v->d->layer.child, &v->io);
}

static void waiting_go(struct bdev_verify *d);

static void change_done(struct io *io)
{
	struct vio *v = container_of(io, struct vio, io);
	struct bdev_verify *d = v->d;
	struct io *parent = v->parent;
	const int result = io->result;

	for (uint32_t i = 0; i < v->blocks; i++) {
		const uint64_t b = v->block + i;

		/* One that failed may still come true at the next open. */
		bit_put(d->busy, b, false);
		bit_put(d->unsettled, b, false);
		if (!result)
			d->entry[b].there = d->entry[b].sent;
	}
	d->head->errors += result != 0;
	if (io->op == BDEV_TRIM)
		d->head->trims++;
	else
		d->head->writes++;
	free(v);
	waiting_go(d);
	bdev_complete(parent, result);
}

static bool overlaps(const struct bdev_verify *d, const struct io *io)
{
	for (uint64_t b = 0; b < io->len / VERIFY_BLOCK; b++)
		if (bit(d->busy, io->off / VERIFY_BLOCK + b))
			return true;
	return false;
}

static void change_begin(struct bdev_verify *d, struct io *io)
{
	const uint32_t kind = io->op == BDEV_TRIM ? ZEROS : 0;
	struct vio *v =
		vio_get(d, io, io->op, io->off, io->len, io->buf, change_done);

	if (!v) {
		bdev_complete_later(io, -ENOMEM);
		return;
	}
	v->io.flags = io->flags;
	for (uint32_t i = 0; i < v->blocks; i++) {
		struct entry *e = &d->entry[v->block + i];
		const uint32_t version = (e->sent & NUMBER) + 1;

		id_assert(version < NUMBER);
		e->sent = version | kind;
		bit_put(d->busy, v->block + i, true);
		if (!kind)
			block_stamp(v->block + i, version,
				    (uint8_t *)io->buf +
					    (size_t)i * VERIFY_BLOCK);
	}
	/* The journal has it before the child does, also for a reader of the
	 * mapping after a kill. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	bdev_submit(d->layer.child, &v->io);
}

static void change_queue(struct bdev_verify *d, struct io *io)
{
	io->next = NULL;
	if (d->last)
		d->last->next = io;
	else
		d->first = io;
	d->last = io;
}

static void waiting_go(struct bdev_verify *d)
{
	struct io *io = d->first;

	d->first = d->last = NULL;
	while (io) {
		struct io *next = io->next;

		if (overlaps(d, io))
			change_queue(d, io);
		else
			change_begin(d, io);
		io = next;
	}
}

static void flush_done(struct io *io)
{
	struct layer_io *lio = layer_io_of(io);

	layer_io_complete(lio, io->result);
}

static void verify_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_verify *d = verify_of(bdev);
	struct layer_io *lio;
	struct vio *v;

	switch (io->op) {
	case BDEV_READ:
		v = vio_get(d, io, BDEV_READ, io->off, io->len, io->buf,
			    read_done);
		if (v)
			read_begin(v);
		else
			bdev_complete_later(io, -ENOMEM);
		break;
	case BDEV_FLUSH:
		lio = layer_io_get(&d->layer, io, flush_done);
		if (lio)
			layer_io_pass(lio);
		break;
	default:
		if (overlaps(d, io))
			change_queue(d, io);
		else
			change_begin(d, io);
		break;
	}
}

/* ---- sweep -------------------------------------------------------------- */

static void verify_end(struct bdev_verify *d)
{
	for (unsigned i = 0; i < SWEEP_DEPTH; i++) {
		if (d->buf[i])
			reactor_buf_free(d->layer.bdev.reactor, d->buf[i],
					 SWEEP_BYTES);
		d->buf[i] = NULL;
	}
	if (d->closing) {
		munmap(d->head, d->map_bytes);
		free(d->busy);
		free(d->unsettled);
		layer_close(&d->layer.bdev);
	}
}

static bool sweep_next(struct bdev_verify *d, uint8_t *buf)
{
	const uint64_t left = d->layer.bdev.limits.size_bytes - d->next;
	const uint32_t len =
		left < SWEEP_BYTES ? (uint32_t)left : (uint32_t)SWEEP_BYTES;
	struct vio *v;

	if (!len || d->closing)
		return false;
	v = vio_get(d, NULL, BDEV_READ, d->next, len, buf, read_done);
	if (!v)
		return false;
	d->next += len;
	d->out++;
	read_begin(v);
	return true;
}

static void sweep_done(struct bdev_verify *d, struct vio *v)
{
	uint8_t *buf = v->io.buf;
	const bool all = d->next == d->layer.bdev.limits.size_bytes;

	free(v);
	d->out--;
	if (sweep_next(d, buf) || d->out)
		return;
	d->sweeping = false;
	d->head->sweeps += all && !d->closing;
	verify_end(d);
	if (!d->closing && d->swept)
		d->swept(d->arg);
}

void bdev_verify_sweep(struct bdev *bdev, void (*done)(void *arg), void *arg)
{
	struct bdev_verify *d = verify_of(bdev);

	id_assert(!d->sweeping);
	d->sweeping = true;
	d->next = 0;
	d->swept = done;
	d->arg = arg;
	for (unsigned i = 0; i < SWEEP_DEPTH; i++) {
		d->buf[i] = reactor_buf_alloc(bdev->reactor, SWEEP_BYTES);
		id_assert(d->buf[i]);
		sweep_next(d, d->buf[i]);
	}
}

/* ---- the bdev ----------------------------------------------------------- */

static void verify_close(struct bdev *bdev)
{
	struct bdev_verify *d = verify_of(bdev);

	d->closing = true;
	if (!d->out)
		verify_end(d);
}

static const struct bdev_ops verify_ops = {
	.kind = "verify",
	.submit = verify_submit,
	.close = verify_close,
};

const struct verify_head *bdev_verify_head(const struct bdev *bdev)
{
	return verify_of(bdev)->head;
}

static int journal_map(struct bdev_verify *d, int fd, const char *path,
		       struct err *err)
{
	struct stat st;
	void *map;

	d->map_bytes = VERIFY_HEAD_BYTES + d->blocks * sizeof(struct entry);
	if (fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!st.st_size && ftruncate(fd, (off_t)d->map_bytes))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_size && (size_t)st.st_size != d->map_bytes)
		return err_set(err, -EINVAL,
			       "%s is the journal of a device of another size",
			       path);
	map = mmap(NULL, d->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	if (map == MAP_FAILED)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	d->head = map;
	d->entry = (void *)((uint8_t *)map + VERIFY_HEAD_BYTES);
	if (!st.st_size) {
		d->head->version = 1;
		d->head->block_bytes = VERIFY_BLOCK;
		d->head->blocks = d->blocks;
		memcpy(d->head->magic, VERIFY_MAGIC, sizeof(d->head->magic));
	}
	if (memcmp(d->head->magic, VERIFY_MAGIC, sizeof(d->head->magic)) ||
	    d->head->version != 1 || d->head->blocks != d->blocks) {
		munmap(map, d->map_bytes);
		return err_set(err, -EINVAL, "%s is not a journal of it", path);
	}
	d->head->opens++;
	return 0;
}

static int journal_open(struct bdev_verify *d, const char *path,
			struct err *err)
{
	const uint64_t words = (d->blocks + 63) / 64;
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	d->busy = calloc(words, 8);
	d->unsettled = calloc(words, 8);
	if (d->busy && d->unsettled)
		rc = journal_map(d, fd, path, err);
	else
		rc = err_set(err, -ENOMEM, "%s: no memory", path);
	close(fd);
	for (uint64_t b = 0; !rc && b < d->blocks; b++)
		if (d->entry[b].there != d->entry[b].sent)
			bit_put(d->unsettled, b, true);
	return rc;
}

int bdev_verify_open(struct bdev *child, const char *journal,
		     struct bdev **bdev, struct err *err)
{
	struct layer *layer = layer_new(sizeof(struct bdev_verify), &verify_ops,
					child, NULL, err);
	struct bdev_verify *d;
	int rc;

	if (!layer)
		return -ENOMEM;
	d = verify_of(&layer->bdev);
	if (layer->bdev.limits.block_bytes > VERIFY_BLOCK ||
	    layer->bdev.limits.size_bytes % VERIFY_BLOCK)
		rc = err_set(err, -EINVAL, "%s: not of 4 KiB blocks",
			     child->name);
	else
		rc = 0;
	layer->bdev.limits.block_bytes = VERIFY_BLOCK;
	if (layer->bdev.limits.phys_bytes < VERIFY_BLOCK)
		layer->bdev.limits.phys_bytes = VERIFY_BLOCK;
	if (!layer->bdev.limits.trim_zeroes)
		layer->bdev.limits.can_trim = false;
	d->blocks = layer->bdev.limits.size_bytes / VERIFY_BLOCK;
	if (!rc)
		rc = journal_open(d, journal, err);
	if (rc) {
		free(d->busy);
		free(d->unsettled);
		free(layer);
		return rc;
	}
	*bdev = &layer->bdev;
	return 0;
}
