/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mem: anonymous memory; the kernel gives pages as they are written and takes
 * them back at TRIM. */
#include "engine/bdev/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define IO_MAX_BYTES (16 * MIB)
#define PAGE 4096ull

struct bdev_mem {
	struct bdev bdev;
	uint8_t *mem;
};

static void mem_trim(struct bdev_mem *m, uint64_t off, uint64_t len)
{
	const uint64_t from = (off + PAGE - 1) / PAGE * PAGE;
	const uint64_t to = (off + len) / PAGE * PAGE;

	if (from >= to) {
		memset(m->mem + off, 0, len);
		return;
	}
	memset(m->mem + off, 0, from - off);
	memset(m->mem + to, 0, off + len - to);
	if (madvise(m->mem + from, to - from, MADV_DONTNEED))
		memset(m->mem + from, 0, to - from);
}

static void mem_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_mem *m = container_of(bdev, struct bdev_mem, bdev);

	switch (io->op) {
	case BDEV_READ:
		memcpy(io->buf, m->mem + io->off, io->len);
		break;
	case BDEV_WRITE:
		memcpy(m->mem + io->off, io->buf, io->len);
		break;
	case BDEV_TRIM:
		mem_trim(m, io->off, io->len);
		break;
	default:
		break;
	}
	bdev_complete_later(io, 0);
}

static void mem_close(struct bdev *bdev)
{
	struct bdev_mem *m = container_of(bdev, struct bdev_mem, bdev);

	munmap(m->mem, bdev->limits.size_bytes);
	bdev_closed(bdev);
}

static const struct bdev_ops mem_ops = {
	.kind = "mem",
	.submit = mem_submit,
	.close = mem_close,
};

int bdev_mem_open(struct reactor *r, const char *name, uint64_t size_bytes,
		  uint32_t block_bytes, struct bdev **bdev, struct err *err)
{
	struct bdev_mem *m;

	if (!block_bytes || (block_bytes & (block_bytes - 1)) || !size_bytes ||
	    size_bytes % block_bytes)
		return err_set(err, -EINVAL,
			       "%s: the size must be a multiple of the block, "
			       "a power of two",
			       name);
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(err, -ENOMEM, "%s: no memory", name);
	m->mem = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->mem == MAP_FAILED) {
		free(m);
		return err_set(err, -ENOMEM, "%s: no room for %llu MiB", name,
			       (unsigned long long)(size_bytes / MIB));
	}
	bdev_init(&m->bdev, &mem_ops, r, name);
	m->bdev.limits = (struct bdev_limits) {
		.size_bytes = size_bytes,
		.block_bytes = block_bytes,
		.phys_bytes = block_bytes,
		.align_bytes = 1,
		.io_max_bytes = IO_MAX_BYTES,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.trim_zeroes = true,
	};
	*bdev = &m->bdev;
	return 0;
}
