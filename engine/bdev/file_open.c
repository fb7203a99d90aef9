/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opening a file or a device: take it for us alone, find out how it wants to
 * be read, and set the limits from what the kernel says rather than from what
 * is usual.
 */
#include "engine/bdev/file_impl.h"

#include <fcntl.h>
#include <libgen.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define IO_MAX_BYTES (16 * MIB)
#define SECTOR 512u
#define PAGE 4096u

/* ---- the file ----------------------------------------------------------- */

static int open_failed(const char *path, bool read_only, struct err *err)
{
	const int rc = -errno;

	switch (rc) {
	case -EBUSY:
		return err_set(err, rc,
			       "%s is in use (mounted, held by another device "
			       "or open in another program)",
			       path);
	case -ENOENT:
		return err_set(err, rc, "%s does not exist", path);
	case -EEXIST:
		return err_set(err, rc, "%s exists already", path);
	case -EACCES:
	case -EPERM:
		return err_set(err, rc,
			       "%s may not be opened for %s: check its owner "
			       "and mode, for a device the group `disk`",
			       path, read_only ? "reading" : "writing");
	default:
		return err_set(err, rc, "%s: %s", path, strerror(-rc));
	}
}

static int dir_sync(const char *path, struct err *err)
{
	char *copy = strdup(path);
	int fd, rc = 0;

	if (!copy)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		rc = err_set(err, -errno, "%s: cannot sync its directory: %s",
			     path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(copy);
	return rc;
}

static int file_create(struct bdev_file *f, const struct bdev_file_opts *opts,
		       struct err *err)
{
	f->fd = open(opts->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return open_failed(opts->path, false, err);
	f->created = strdup(opts->path);
	if (!f->created) {
		unlink(opts->path);
		return err_set(err, -ENOMEM, "%s: no memory", opts->path);
	}
	if (ftruncate(f->fd, (off_t)opts->create_bytes) || fsync(f->fd))
		return err_set(err, -errno, "%s: cannot make %llu bytes: %s",
			       opts->path,
			       (unsigned long long)opts->create_bytes,
			       strerror(errno));
	return dir_sync(opts->path, err);
}

/* O_EXCL on a device asks the kernel whether anybody holds it. */
static int file_take(struct bdev_file *f, const struct bdev_file_opts *opts,
		     struct err *err)
{
	int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
		    (opts->read_only ? O_RDONLY : O_RDWR);
	struct stat st;

	if (opts->create_bytes)
		return file_create(f, opts, err);
	if (stat(opts->path, &st))
		return open_failed(opts->path, opts->read_only, err);
	f->device = S_ISBLK(st.st_mode);
	if (!f->device && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL,
			       "%s is neither a file nor a block device",
			       opts->path);
	if (f->device && !opts->shared)
		flags |= O_EXCL;
	f->fd = open(opts->path, flags);
	if (f->fd < 0)
		return open_failed(opts->path, opts->read_only, err);
	return 0;
}

/* An OFD lock goes with the open file, not with the process. */
static int file_lock(const struct bdev_file *f,
		     const struct bdev_file_opts *opts, struct err *err)
{
	struct flock lock = {
		.l_type = opts->read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = opts->shared ? (off_t)opts->off_bytes : 0,
		.l_len = opts->shared ? (off_t)opts->len_bytes : 0,
	};

	if (opts->peek || !fcntl(f->fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, -EBUSY,
			       "%s is open in another program or vDisk",
			       opts->path);
	return err_set(err, -errno, "%s: cannot lock it: %s", opts->path,
		       strerror(errno));
}

/* ---- how to do I/O ------------------------------------------------------ */

/* Memory behind O_DIRECT is a cache all the same: call it what it is. */
static bool memory_fs(int fd, char *name, size_t len)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	if (fs.f_type == TMPFS_MAGIC)
		snprintf(name, len, "tmpfs");
	else if (fs.f_type == RAMFS_MAGIC)
		snprintf(name, len, "ramfs");
	else
		return false;
	return true;
}

static void direct_set(struct bdev_file *f, const struct bdev_file_opts *opts)
{
	const int flags = fcntl(f->fd, F_GETFL);

	f->direct = false;
	if (opts->buffered ||
	    (!f->device && memory_fs(f->fd, f->fs, sizeof(f->fs)))) {
		fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK);
		return;
	}
	f->direct = !fcntl(f->fd, F_SETFL, (flags | O_DIRECT) & ~O_NONBLOCK);
	if (!f->direct) {
		snprintf(f->fs, sizeof(f->fs), "no O_DIRECT");
		fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK);
	}
}

/*
 * May a read be tried without waiting? Where not, io_uring hands each one to
 * a kernel worker, which costs more than a thread of ours.
 */
static bool nowait_works(const struct bdev_file *f)
{
	const uint32_t len = f->bdev.limits.block_bytes;
	void *buf = aligned_alloc(PAGE, len < PAGE ? PAGE : len);
	const struct iovec iov = { buf, len };
	bool works = true;

	if (buf && preadv2(f->fd, &iov, 1, (off_t)f->off_bytes, RWF_NOWAIT) < 0)
		works = errno != EOPNOTSUPP;
	free(buf);
	return works;
}

static void path_choose(struct bdev_file *f, struct reactor *r)
{
	f->io_fd = f->fd;
	f->io_flags = 0;
	if (!nowait_works(f)) {
		f->io_flags = KIO_POOL;
	} else if (!reactor_file_register(r, f->fd, &f->index)) {
		f->io_fd = f->index;
		f->io_flags = KIO_FIXED_FD;
	}
}

/* ---- limits ------------------------------------------------------------- */

/* A number from the device's queue directory, also for a partition of it. */
static uint64_t queue_number(dev_t dev, const char *what)
{
	static const char *const up[] = { "", "../" };
	char path[128], text[32] = "";

	for (size_t i = 0; i < array_len(up) && !text[0]; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/%s",
			 major(dev), minor(dev), up[i], what);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	return strtoull(text, NULL, 10);
}

static int device_limits(struct bdev_file *f, const struct stat *st,
			 uint64_t *size_bytes)
{
	struct bdev_limits *l = &f->bdev.limits;
	unsigned phys = 0;
	int block = 0;

	if (ioctl(f->fd, BLKGETSIZE64, size_bytes) ||
	    ioctl(f->fd, BLKSSZGET, &block))
		return -errno;
	if (ioctl(f->fd, BLKPBSZGET, &phys))
		phys = (unsigned)block;
	l->block_bytes = (uint32_t)block;
	l->phys_bytes = phys;
	l->align_bytes = f->direct ? l->block_bytes : 1;
	l->rotational = queue_number(st->st_rdev, "rotational") != 0;
	if (queue_number(st->st_rdev, "write_zeroes_max_bytes")) {
		f->trim_op = KIO_PUNCH;
		l->can_trim = l->trim_zeroes = true;
	} else if (queue_number(st->st_rdev, "discard_max_bytes")) {
		f->trim_op = KIO_DISCARD;
		l->can_trim = true;
	}
	return 0;
}

/* What O_DIRECT asks of offsets and buffers; the kernel tells since 6.1. */
static void direct_limits(struct bdev_file *f)
{
	struct bdev_limits *l = &f->bdev.limits;

	l->block_bytes = l->align_bytes = PAGE;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) ||
	    !(stx.stx_mask & STATX_DIOALIGN) || !stx.stx_dio_offset_align)
		return;
	l->block_bytes = stx.stx_dio_offset_align;
	l->align_bytes = stx.stx_dio_mem_align;
	if (l->block_bytes < SECTOR)
		l->block_bytes = SECTOR;
#endif
}

/* A hole behind the end of the file changes nothing and tells. */
static bool punch_works(const struct bdev_file *f, uint64_t size_bytes)
{
	const uint64_t off = (size_bytes + PAGE - 1) / PAGE * PAGE;

	return !fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)off, PAGE);
}

static void regular_limits(struct bdev_file *f, const struct stat *st)
{
	struct bdev_limits *l = &f->bdev.limits;

	if (f->direct) {
		direct_limits(f);
	} else {
		l->block_bytes = SECTOR;
		l->align_bytes = 1;
	}
	l->phys_bytes = (uint32_t)st->st_blksize;
	if (l->phys_bytes < l->block_bytes)
		l->phys_bytes = l->block_bytes;
	l->rotational = queue_number(st->st_dev, "rotational") != 0;
	f->trim_op = KIO_PUNCH;
	l->can_trim = l->trim_zeroes =
		!f->read_only && punch_works(f, (uint64_t)st->st_size);
}

static int window_set(struct bdev_file *f, const struct bdev_file_opts *opts,
		      uint64_t size_bytes, struct err *err)
{
	struct bdev_limits *l = &f->bdev.limits;
	const uint64_t rest =
		size_bytes > opts->off_bytes ? size_bytes - opts->off_bytes : 0;
	const uint64_t len = opts->len_bytes ? opts->len_bytes : rest;

	if (!rest)
		return err_set(err, -EINVAL,
			       "%s has %llu bytes, too few to begin at %llu",
			       opts->path, (unsigned long long)size_bytes,
			       (unsigned long long)opts->off_bytes);
	if (len > rest)
		return err_set(err, -EINVAL,
			       "%s has %llu bytes, not %llu, from %llu on",
			       opts->path, (unsigned long long)rest,
			       (unsigned long long)len,
			       (unsigned long long)opts->off_bytes);
	if ((opts->off_bytes | len) & (l->block_bytes - 1))
		return err_set(err, -EINVAL,
			       "%s: %llu bytes at %llu are not a multiple of "
			       "its block of %u bytes",
			       opts->path, (unsigned long long)len,
			       (unsigned long long)opts->off_bytes,
			       l->block_bytes);
	l->size_bytes = len;
	f->off_bytes = opts->off_bytes;
	return 0;
}

static int limits_set(struct bdev_file *f, const struct bdev_file_opts *opts,
		      struct err *err)
{
	struct bdev_limits *l = &f->bdev.limits;
	uint64_t size_bytes = 0;
	struct stat st;
	int rc = 0;

	if (fstat(f->fd, &st))
		rc = -errno;
	else if (f->device)
		rc = device_limits(f, &st, &size_bytes);
	if (rc)
		return err_set(err, rc, "%s: cannot be sized: %s", opts->path,
			       strerror(-rc));
	if (!f->device) {
		regular_limits(f, &st);
		size_bytes = (uint64_t)st.st_size;
	}
	l->io_max_bytes = IO_MAX_BYTES;
	l->can_flush = l->can_fua = true;
	if (f->read_only)
		l->can_trim = l->trim_zeroes = false;
	return window_set(f, opts, size_bytes, err);
}

int file_open(struct bdev_file *f, struct reactor *r,
	      const struct bdev_file_opts *opts, struct err *err)
{
	int rc;

	f->read_only = opts->read_only;
	rc = file_take(f, opts, err);
	if (!rc)
		rc = file_lock(f, opts, err);
	if (rc)
		return rc;
	direct_set(f, opts);
	rc = limits_set(f, opts, err);
	if (rc)
		return rc;
	path_choose(f, r);
	return 0;
}

int bdev_file_hold(const struct bdev_file_opts *opts, int *fd, struct err *err)
{
	struct bdev_file f = { .fd = -1 };
	int rc = file_take(&f, opts, err);

	if (!rc)
		rc = file_lock(&f, opts, err);
	if (rc && f.fd >= 0)
		close(f.fd);
	if (!rc)
		*fd = f.fd;
	return rc;
}
