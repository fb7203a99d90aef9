/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The block device: one small asynchronous contract that a file, a kernel
 * device, a null device, a shaped link and a vDisk all answer. A layer is a
 * bdev over a bdev; a vDisk is a bdev made of bdevs.
 *
 * The contract
 *   - A bdev belongs to one reactor; submit, close and all callbacks are of
 *     that reactor's thread. bdev/remote.h carries I/O from another reactor.
 *   - bdev_submit() checks range, alignment and flags, then hands over. The
 *     callback runs exactly once for each submitted io, never from inside
 *     bdev_submit(), also for io that failed the checks.
 *   - The io and its buffer are the bdev's from submit to callback. A bdev
 *     may change io->... private fields only.
 *   - Overlapping writes in flight are the caller's to order. A read that
 *     overlaps a write in flight may see either, block by block.
 *   - WRITE is done when a later READ sees it; it is durable only with FUA or
 *     after a FLUSH submitted once it was done. FLUSH covers the writes whose
 *     callbacks ran before it was submitted.
 *   - TRIM may or may not zero (limits.trim_zeroes).
 *   - A READ with BDEV_LEND may be answered without a copy: what was read is
 *     at io->buf as the callback finds it, which is the buffer given or memory
 *     of the bdev's own, lent until the callback returns. Whatever the bdev
 *     may have let go of unanswered writes into that memory, never into a
 *     buffer that its owner has back.
 *   - result is 0, or a negative errno; there is no short transfer.
 *   - Open is exclusive or fails. Close is asynchronous and completes when no
 *     write of ours can still land; no io may be submitted after it.
 */
#ifndef ENGINE_BDEV_BDEV_H
#define ENGINE_BDEV_BDEV_H

#include "engine/base.h"
#include "engine/reactor.h"

enum bdev_op { BDEV_READ, BDEV_WRITE, BDEV_FLUSH, BDEV_TRIM };
#define BDEV_FUA 1u
#define BDEV_LEND 2u

struct bdev;

struct io {
	uint8_t op;     /* enum bdev_op */
	uint8_t flags;  /* BDEV_FUA on WRITE, BDEV_LEND on READ */
	int32_t result; /* out: 0 or a negative errno */
	uint32_t len;   /* bytes, a multiple of limits.block; 0 for FLUSH */
	uint64_t off;   /* bytes */
	void *buf;      /* len bytes, aligned to limits.align; NULL for FLUSH
			   and TRIM */
	void (*done)(struct io *io);
	void *arg; /* the submitter's own */

	/* private to the bdev between submit and callback */
	struct bdev *bdev;
	union { /* a kind does one or the other */
		struct task task;
		struct kio kio;
	};
	struct io *next;
	uint64_t stamp_ns; /* the front's, when the bdev is timed */
	void *priv;
};

struct bdev_limits {
	uint64_t size_bytes;   /* multiple of block_bytes */
	uint32_t block_bytes;  /* smallest unit of address and length; a power
				  of two */
	uint32_t phys_bytes;   /* below it the device reads to write */
	uint32_t align_bytes;  /* of buffers; a power of two */
	uint32_t io_max_bytes; /* longest READ or WRITE; TRIM has no limit but
				  UINT32_MAX */
	uint32_t io_opt_bytes; /* a good size (full stripe); 0 unknown */
	bool can_flush, can_fua, can_trim, trim_zeroes, can_lend;
	bool rotational;
};

/*
 * What a kind implements: see null.c, the shortest. The front has checked the
 * io and counted it. An implementation completes with bdev_complete() or, from
 * inside submit, bdev_complete_later().
 */
struct bdev_ops {
	const char *kind; /* "file", "null", "vdisk" */
	void (*submit)(struct bdev *bdev, struct io *io);
	/* done(arg) once no write can still land and all is freed but the
	 * struct bdev itself, which the front frees */
	void (*close)(struct bdev *bdev);
	/* optional: makes it longer, to size_bytes, and its limits with it;
	 * what is new reads as zeros. 0 or a negative errno; it may take as
	 * long as opening does */
	int (*grow)(struct bdev *bdev, uint64_t size_bytes);
	/* optional: one line of state for people, e.g. "O_DIRECT, io_uring" */
	void (*describe)(struct bdev *bdev, char *buf, size_t len);
};

struct bdev_stats {
	uint64_t ops[4]; /* done, by enum bdev_op */
	uint64_t bytes[4];
	uint64_t errors;
	uint64_t latency_sum_ns[4];
	uint64_t busy_ns;  /* time with at least one io in flight */
	uint64_t queue_ns; /* sum of in-flight time: /elapsed is the queue */
	uint32_t inflight;
};

struct bdev {
	const struct bdev_ops *ops;
	struct reactor *reactor;
	struct bdev_limits limits;
	char name[64]; /* for messages: "n2:d1", "db1" */
	bool failed;   /* refuses all io with -ENODEV: pulled or fenced */

	/* private to the front */
	struct bdev_stats stats;
	bool timed; /* keeps latency_sum_ns, busy_ns and queue_ns; set it
		       before the first io. Off, it costs nothing */
	uint64_t busy_since_ns, queue_last_ns;
	bool closing;
	void (*closed)(void *arg);
	void *closed_arg;
	struct task close_task;
};

void bdev_submit(struct bdev *bdev, struct io *io) ID_HOT;

/*
 * Starts to close; takes what is in flight to its end first. closed(arg) runs
 * later, on the reactor; the bdev is gone then. Takes NULL (closed still runs
 * if r is given through a non-NULL bdev only: with NULL nothing runs).
 */
void bdev_close(struct bdev *bdev, void (*closed)(void *arg), void *arg);

/*
 * Makes it longer if it can be: a file, and what lies over one alone.
 * -ENOTSUP: it cannot; -ENOSPC, -EFBIG and others as for files.
 */
int bdev_grow(struct bdev *bdev, uint64_t size_bytes);

/* Snapshot, with the times counted up to now. */
void bdev_stats(struct bdev *bdev, struct bdev_stats *stats);
/* "file, O_DIRECT, io_uring" */
void bdev_describe(struct bdev *bdev, char *buf, size_t len);

/* ---- for implementations ------------------------------------------------ */

/* Fills what is common; implementations embed struct bdev first. */
void bdev_init(struct bdev *bdev, const struct bdev_ops *ops,
	       struct reactor *reactor, const char *name);
/* From a later callback, never inside submit. */
void bdev_complete(struct io *io, int result) ID_HOT;
/* From inside submit: posts a task (io->task) that completes. */
void bdev_complete_later(struct io *io, int result);
/* From ops->close or later: calls closed() and frees the embedding memory. */
void bdev_closed(struct bdev *bdev);

/*
 * For programs without an event loop of their own (tests, prefill of labels):
 * submit and turn the reactor until done. Never from a callback.
 */
int bdev_io_sync(struct bdev *bdev, enum bdev_op op, unsigned flags,
		 uint64_t off, void *buf, uint32_t len);
void bdev_close_sync(struct bdev *bdev);

#endif
