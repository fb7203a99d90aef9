/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One thread, one event loop: kernel I/O, timers, tasks and foreign file
 * descriptors. Everything in engine/ runs on a reactor and takes time and
 * randomness from it alone, so the same code runs under a simulated one.
 *
 * Kinds
 *   URING    io_uring (SINGLE_ISSUER | DEFER_TASKRUN where the kernel has it),
 *            registered files and one registered buffer arena
 *   THREADS  a pool of threads doing preadv2 and pwritev2, an epoll loop; for
 *            hosts that forbid io_uring, files it cannot serve (tmpfs), and
 *            for the agent's control thread
 *   SIM      virtual clock: run_once() jumps to the next timer; kernel I/O is
 *            done at once and completes as a task
 *
 * Threads: a reactor is made, run and freed by any one thread at a time; all
 * calls but reactor_send(), reactor_stop() and reactor_kind_*() belong to the
 * thread that runs it. Callbacks run on that thread, from run, never from
 * inside the call that asked for them. It changes hands by
 * reactor_thread_start() and _join(), or by hand with no kernel I/O in flight.
 */
#ifndef ENGINE_REACTOR_H
#define ENGINE_REACTOR_H

#include <sys/types.h>

#include "engine/base.h"
#include "engine/rng.h"

struct reactor;

enum reactor_kind {
	REACTOR_AUTO, /* URING where it works, else THREADS */
	REACTOR_URING,
	REACTOR_THREADS,
	REACTOR_SIM,
};

struct reactor_opts {
	enum reactor_kind kind;
	unsigned entries;   /* submission queue; 0: 256 */
	unsigned workers;   /* THREADS: pool size; 0: 4 */
	size_t arena_bytes; /* I/O buffers made and registered now; 0: none.
			       reactor_buf_alloc() works beyond it too, from
			       unregistered memory */
	uint64_t seed;      /* of reactor_rng() */
	const char *name;   /* of its thread and in messages; NULL: none */
	bool busy_poll;     /* spin instead of sleeping while timers are due
			       within 50 us: only where cores are spare */
};

/*
 * Returns 0 and a reactor the caller frees; -ENOSYS or -EPERM when the kind is
 * not to be had here; -ENOMEM.
 */
int reactor_new(const struct reactor_opts *opts, struct reactor **reactor,
		struct err *err);
/* Frees a reactor that is not running and has no I/O in flight. Takes NULL. */
void reactor_free(struct reactor *r);

enum reactor_kind reactor_kind(const struct reactor *r);
const char *reactor_kind_name(enum reactor_kind kind);

/* Runs until reactor_stop(). */
void reactor_run(struct reactor *r);
/* Any thread. run() returns once the callbacks at hand have run. */
void reactor_stop(struct reactor *r);
/*
 * One turn: waits at most timeout_ns (UINT64_MAX: for ever) for something to
 * happen and runs its callbacks. A signal ends the wait. Returns the number of
 * callbacks run. SIM advances its clock to the next timer if that is within
 * timeout_ns, else by timeout_ns.
 */
unsigned reactor_run_once(struct reactor *r, uint64_t timeout_ns);

/* A thread of its own for a reactor: start, then stop and join. */
int reactor_thread_start(struct reactor *r, struct err *err);
void reactor_thread_join(struct reactor *r);

/*
 * Nanoseconds on a clock that never goes back (CLOCK_MONOTONIC's, read by TSC
 * where that is invariant; virtual under SIM). Cheap: about 10 ns.
 */
uint64_t reactor_now(struct reactor *r);
/* The time at the start of this turn's callbacks: free. */
uint64_t reactor_turn_now(const struct reactor *r);
/*
 * Time in which the loop was there to see what happens, as of this turn: at
 * most a second from one turn to the next. A process that was stopped for a
 * minute, with its machine or alone, has lived a second of it: what came
 * meanwhile is seen before anybody is given up for having said nothing. Of use
 * only to who has a timer_arm_lived() armed: it is what makes the loop turn
 * often enough.
 */
uint64_t reactor_lived(const struct reactor *r);
/* SIM: the process stands still for so long, between two turns. */
void reactor_sim_stop(struct reactor *r, uint64_t ns);
struct rng *reactor_rng(struct reactor *r);

/* ---- tasks: intrusive, at most once in a queue ------------------------- */

struct task {
	struct task *next;             /* private */
	void (*fn)(struct task *task); /* may free or re-post the task */
};

/* Own thread: runs in this turn or the next, in order of posting. */
void reactor_post(struct reactor *r, struct task *task);
/* Any thread: runs on r's thread, in order for each sender. */
void reactor_send(struct reactor *r, struct task *task);

/* ---- timers ------------------------------------------------------------- */

struct timer {
	uint64_t deadline_ns; /* of reactor_now() */
	uint64_t lived_ns;    /* private: that of a timer_arm_lived(), or 0 */
	void (*fn)(struct timer *timer);
	uint32_t heap_index; /* private; 0 when idle */
};

/* (Re)arms. A deadline in the past fires in the next turn. */
void timer_arm(struct reactor *r, struct timer *timer, uint64_t deadline_ns);
/* For what is given ns to answer: they pass by reactor_lived(). */
void timer_arm_lived(struct reactor *r, struct timer *timer, uint64_t ns);
/* No effect on an idle timer. */
void timer_cancel(struct reactor *r, struct timer *timer);
static inline bool timer_armed(const struct timer *timer)
{
	return timer->heap_index != 0;
}

/* ---- foreign file descriptors ------------------------------------------ */

struct watch {
	int fd;
	uint32_t events; /* EPOLLIN | EPOLLOUT wanted */
	void (*fn)(struct watch *watch, uint32_t events);
	void *priv; /* private */
};

/* Level-triggered. -EPERM for an fd that cannot be polled. Not for SIM. */
int watch_add(struct reactor *r, struct watch *watch);
int watch_modify(struct reactor *r, struct watch *watch, uint32_t events);
/* After it returns the callback does not run again. */
void watch_remove(struct reactor *r, struct watch *watch);

/* ---- kernel I/O: what the file bdev is made of -------------------------- */

enum kio_op {
	KIO_READ,
	KIO_WRITE,
	KIO_FSYNC,   /* data and what is needed to read it (fdatasync) */
	KIO_PUNCH,   /* fallocate: the range reads as zeros */
	KIO_DISCARD, /* BLKDISCARD on a device; needs KIO_POOL */
};
#define KIO_DSYNC 1u    /* KIO_WRITE: durable when done (RWF_DSYNC) */
#define KIO_POOL 2u     /* by a thread that may block; plain fd only */
#define KIO_FIXED_FD 4u /* fd is an index from reactor_file_register() */

struct kio {
	uint8_t op;    /* enum kio_op */
	uint8_t flags; /* KIO_* */
	int fd;
	uint32_t len;
	int32_t result; /* bytes or -errno, as the kernel gave it */
	uint64_t off;
	void *buf;
	void (*fn)(struct kio *kio);
	struct kio *next; /* private */
};

/*
 * Queues; the batch goes to the kernel at the end of the turn. The callback
 * runs exactly once, later, on this thread. Never fails: what the kernel
 * refuses comes back as result.
 */
void reactor_kio(struct reactor *r, struct kio *kio);
/* Registers an fd: *index is for kio.fd with KIO_FIXED_FD. -ENOSPC, -ENOSYS:
 * go on with the plain fd. */
int reactor_file_register(struct reactor *r, int fd, int *index);
void reactor_file_unregister(struct reactor *r, int index);

/*
 * Buffers aligned to 4096, from the registered arena while it lasts. Zeroed.
 * Freed with the length they were made with.
 */
void *reactor_buf_alloc(struct reactor *r, size_t len);
/* The same, holding whatever was there before. */
void *reactor_buf_alloc_raw(struct reactor *r, size_t len);
void reactor_buf_free(struct reactor *r, void *buf, size_t len);

/*
 * How kernel I/O is done here, for people: "io_uring, registered buffers",
 * "io_uring, plain buffers (RLIMIT_MEMLOCK is too low)", "4 threads".
 */
void reactor_describe(const struct reactor *r, char *buf, size_t len);

/* ---- figures ------------------------------------------------------------ */

struct reactor_stats {
	uint64_t turns;
	uint64_t kios;    /* done */
	uint64_t enters;  /* system calls for them */
	uint64_t busy_ns; /* its thread on a CPU or waiting for one, spinning
			     not counted; since it took the reactor over */
	uint64_t idle_ns; /* the rest of that time */
	uint64_t wait_ns; /* of busy_ns: ready to run, without a CPU */
	bool wait_known;  /* the kernel keeps account of that */
};
void reactor_stats(const struct reactor *r, struct reactor_stats *stats);

#endif
