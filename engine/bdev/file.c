/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * file: each io is one request to the kernel, and one more where the kernel
 * did part of it.
 */
#include "engine/bdev/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/bdev/file_impl.h"

static struct bdev_file *file_of(struct bdev *bdev)
{
	return container_of(bdev, struct bdev_file, bdev);
}

/* Where the ring had no way to do it without waiting, a thread waits. */
static void file_retry(struct io *io, bool pool)
{
	struct kio *kio = &io->kio;

	if (pool) {
		kio->flags &= (uint8_t)~KIO_FIXED_FD;
		kio->flags |= KIO_POOL;
		kio->fd = file_of(io->bdev)->fd;
	}
	reactor_kio(io->bdev->reactor, kio);
}

/*
 * A read short of the end of the file, or a write to a full disk: the rest
 * says which. A durable write in parts is no longer the one write that was
 * asked for.
 */
static void file_short(struct io *io)
{
	struct kio *kio = &io->kio;
	const uint32_t did = (uint32_t)kio->result;

	if (!did || did > kio->len || (kio->flags & KIO_DSYNC) ||
	    (did & (io->bdev->limits.block_bytes - 1))) {
		bdev_complete(io, -EIO);
		return;
	}
	kio->off += did;
	kio->len -= did;
	kio->buf = (uint8_t *)kio->buf + did;
	file_retry(io, false);
}

static void file_rw_done(struct kio *kio)
{
	struct io *io = container_of(kio, struct io, kio);

	if (id_likely((uint32_t)kio->result == kio->len))
		bdev_complete(io, 0);
	else if (kio->result == -EAGAIN || kio->result == -EINTR)
		file_retry(io, kio->result == -EAGAIN);
	else if (kio->result < 0)
		bdev_complete(io, kio->result);
	else
		file_short(io);
}

static void file_other_done(struct kio *kio)
{
	struct io *io = container_of(kio, struct io, kio);

	if (kio->result == -EAGAIN || kio->result == -EINTR)
		file_retry(io, kio->result == -EAGAIN);
	else
		bdev_complete(io, kio->result < 0 ? kio->result : 0);
}

static void file_rw(struct bdev_file *f, struct io *io)
{
	struct kio *kio = &io->kio;

	kio->op = io->op == BDEV_READ ? KIO_READ : KIO_WRITE;
	kio->flags = f->io_flags;
	if (io->flags & BDEV_FUA)
		kio->flags |= KIO_DSYNC;
	kio->fd = f->io_fd;
	kio->len = io->len;
	kio->off = f->off_bytes + io->off;
	kio->buf = io->buf;
	kio->fn = file_rw_done;
	reactor_kio(f->bdev.reactor, kio);
}

static void file_other(struct bdev_file *f, struct io *io)
{
	struct kio *kio = &io->kio;

	*kio = (struct kio) {
		.op = io->op == BDEV_FLUSH ? KIO_FSYNC : f->trim_op,
		.flags = f->io_flags,
		.fd = f->io_fd,
		.len = io->op == BDEV_FLUSH ? 0 : io->len,
		.off = f->off_bytes + io->off,
		.fn = file_other_done,
	};
	if (kio->op == KIO_DISCARD) {
		kio->flags = KIO_POOL;
		kio->fd = f->fd;
	}
	reactor_kio(f->bdev.reactor, kio);
}

static void file_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_file *f = file_of(bdev);

	if (id_unlikely(f->read_only && io->op != BDEV_READ))
		bdev_complete_later(io, io->op == BDEV_FLUSH ? 0 : -EROFS);
	else if (id_likely(io->op <= BDEV_WRITE))
		file_rw(f, io);
	else
		file_other(f, io);
}

static void file_free(struct bdev_file *f)
{
	if (f->index >= 0)
		reactor_file_unregister(f->bdev.reactor, f->index);
	if (f->fd >= 0)
		close(f->fd);
	if (f->created)
		unlink(f->created);
	free(f->created);
}

static void file_close(struct bdev *bdev)
{
	file_free(file_of(bdev));
	bdev_closed(bdev);
}

/* A regular file whose window reaches to its end. */
static int file_grow(struct bdev *bdev, uint64_t size_bytes)
{
	struct bdev_file *f = file_of(bdev);
	const uint64_t end = f->off_bytes + bdev->limits.size_bytes;
	struct stat st;

	if (f->device || f->read_only)
		return -ENOTSUP;
	if (fstat(f->fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != end)
		return -ENOTSUP;
	if (ftruncate(f->fd, (off_t)(f->off_bytes + size_bytes)) ||
	    fsync(f->fd))
		return -errno;
	bdev->limits.size_bytes = size_bytes;
	return 0;
}

static void file_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_file *f = file_of(bdev);
	char how[96];

	reactor_describe(bdev->reactor, how, sizeof(how));
	snprintf(buf, len, "%s%s%s%s%s, %s", f->device ? "device, " : "",
		 f->direct ? "O_DIRECT" : "buffered", f->fs[0] ? " (" : "",
		 f->fs, f->fs[0] ? ")" : "",
		 f->io_flags & KIO_POOL &&
				 reactor_kind(bdev->reactor) == REACTOR_URING
			 ? "threads (io_uring would only queue it)"
			 : how);
}

static const struct bdev_ops file_ops = {
	.kind = "file",
	.submit = file_submit,
	.close = file_close,
	.grow = file_grow,
	.describe = file_describe,
};

int bdev_file_open(struct reactor *r, const struct bdev_file_opts *opts,
		   struct bdev **bdev, struct err *err)
{
	struct bdev_file *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_set(err, -ENOMEM, "%s: no memory", opts->path);
	bdev_init(&f->bdev, &file_ops, r, opts->name ? opts->name : opts->path);
	f->fd = f->index = -1;
	rc = file_open(f, r, opts, err);
	if (rc) {
		file_free(f);
		free(f);
		return rc;
	}
	free(f->created);
	f->created = NULL;
	*bdev = &f->bdev;
	return 0;
}
