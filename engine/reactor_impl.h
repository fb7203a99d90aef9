/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files of the reactor share; nobody else includes it.
 *
 * A turn (reactor_run_once):
 *
 *	backend->turn   hand over queued kernel I/O, wait, run completions
 *	reaped kios     (simulated, or kept over a change of thread)
 *	inbox           tasks sent by other threads
 *	timers          that are due
 *	tasks           posted before this point; later ones are next turn's
 */
#ifndef ENGINE_REACTOR_IMPL_H
#define ENGINE_REACTOR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "engine/reactor.h"
#include "engine/reactor_clock.h"

#define REACTOR_EVENTS 64
/* While tasks keep the loop from sleeping, look at foreign fds this often. */
#define REACTOR_WATCH_NS (20 * USEC_NS)
#define REACTOR_SPIN_NS (50 * USEC_NS)
/* From one turn to the next the loop has lived so much at most; whoever counts
 * on that clock makes it turn more often. */
#define REACTOR_LIVED_NS SEC_NS
#define REACTOR_LIVED_TURN_NS (SEC_NS / 2)

struct timer_slot {
	uint64_t deadline_ns;
	uint64_t seq; /* order of arming: decides between equals */
	struct timer *timer;
};

struct timer_heap {
	struct timer_slot *slot; /* slot[1] is the first to fire */
	uint32_t count, room;
	uint64_t seq;
};

struct reactor_backend {
	enum reactor_kind kind;
	int (*init)(struct reactor *r, const struct reactor_opts *opts,
		    struct err *err);
	void (*fini)(struct reactor *r);
	/* This thread runs the reactor from now on. */
	void (*adopt)(struct reactor *r);
	/* Takes what is in flight off this thread: kios end up reaped. */
	void (*settle)(struct reactor *r);
	void (*kio)(struct reactor *r, struct kio *kio);
	/* Ends with turn_ns set and completions called: returns how many. */
	unsigned (*turn)(struct reactor *r, uint64_t wait_ns);
	int (*file_register)(struct reactor *r, int fd, int *index);
	void (*file_unregister)(struct reactor *r, int index);
};

struct arena {
	uint8_t *base;
	size_t bytes;
	bool registered;
	uint64_t *used; /* a bit a page */
	size_t pages, hint;
};

struct pool;
struct uring;

/* Padded on purpose: what other threads write has a cache line of its own. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct reactor {
	const struct reactor_backend *backend;
	struct rclock clock;
	uint64_t sim_ns; /* SIM's clock */
	uint64_t turn_ns, lived_ns;
	const void *owner; /* address of a variable of its thread */
	bool in_turn, busy_poll;
	struct task *task_head, **task_tail;
	struct kio *reaped_head, **reaped_tail;
	struct timer_heap timers;
	struct uring *uring;
	struct pool *pool; /* made when first used */
	unsigned workers;
	struct arena arena;

	int epoll_fd, wake_fd;
	unsigned watches;
	uint64_t watched_ns; /* when foreign fds were last looked at */
	struct epoll_event event[REACTOR_EVENTS];
	int events; /* of event[] still to be called */

	struct rng rng;
	struct reactor_stats stats;
	uint64_t adopted_ns, adopted_cpu_ns, adopted_wait_ns, spin_ns;
	char name[16];
	pthread_t thread;
	bool threaded;

	/* written by other threads */
	ID_CACHELINE _Atomic(struct task *) inbox;
	atomic_bool sleeping; /* the loop waits: wake it by wake_fd */
	atomic_bool stop;
};

extern const struct reactor_backend reactor_threads_backend;
extern const struct reactor_backend reactor_sim_backend;
#ifdef HAVE_URING
extern const struct reactor_backend reactor_uring_backend;
#endif

static inline uint64_t reactor_clock_read(struct reactor *r)
{
	if (id_unlikely(r->sim_ns))
		return r->sim_ns;
	return rclock_now(&r->clock);
}

/* ---- reactor.c ---------------------------------------------------------- */

/* What comes now is of a new turn, or later in this one. */
void reactor_turn_stamp(struct reactor *r);
/* Tells this thread from another. */
const void *reactor_thread_mark(void);
/* This thread runs it from now on. */
void reactor_adopt(struct reactor *r);

/* The kio is done: its callback runs in the next turn. */
void reactor_kio_reaped(struct reactor *r, struct kio *kio);
/* Any thread. Cheap while the loop is awake. */
void reactor_wake(struct reactor *r);
/*
 * Around a wait: false says something came meanwhile, so do not wait.
 */
bool reactor_sleep_begin(struct reactor *r);
void reactor_sleep_end(struct reactor *r);
/* Spins until something is there to do or the time is over. */
bool reactor_spin(struct reactor *r, uint64_t wait_ns,
		  bool (*ready)(const struct reactor *r));

/* ---- reactor_timer.c ---------------------------------------------------- */

unsigned reactor_timers_run(struct reactor *r);
/* Time until the first is due: 0 when overdue, UINT64_MAX without timers. */
uint64_t reactor_timers_wait(struct reactor *r);

/* ---- reactor_watch.c ---------------------------------------------------- */

/* wake_polled: wake_fd is one of the epoll set. */
int reactor_watch_init(struct reactor *r, bool wake_polled, struct err *err);
void reactor_watch_fini(struct reactor *r);
/* Waits for foreign fds and calls them. Clears wake_fd on the way. */
unsigned reactor_watch_poll(struct reactor *r, uint64_t wait_ns);

/* ---- reactor_arena.c ---------------------------------------------------- */

int reactor_arena_init(struct reactor *r, size_t bytes, struct err *err);
void reactor_arena_fini(struct reactor *r);

/* ---- reactor_pool.c ----------------------------------------------------- */

/* Does it here and now. */
void kio_execute(struct kio *kio);
/* Queues for a worker thread; handed over by pool_kick(). */
void pool_kio(struct reactor *r, struct kio *kio);
void pool_kick(struct reactor *r);
/* Calls back what the workers have done. */
unsigned pool_reap(struct reactor *r);
bool pool_idle(const struct reactor *r);
/* Any of them to reap? */
bool pool_ready(const struct reactor *r);
void pool_free(struct reactor *r);

#endif
