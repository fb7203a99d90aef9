/* SPDX-License-Identifier: GPL-3.0-or-later */
/* THREADS: waits in epoll, leaves kernel I/O to the pool. */
#include "engine/reactor_impl.h"

static int threads_init(struct reactor *r, const struct reactor_opts *opts,
			struct err *err)
{
	(void)r;
	(void)opts;
	(void)err;
	return 0;
}

static void threads_nothing(struct reactor *r)
{
	(void)r;
}

static bool never(const struct reactor *r)
{
	(void)r;
	return false;
}

/* Busy with tasks, it looks at foreign fds from time to time only. */
static unsigned threads_wait(struct reactor *r, uint64_t wait_ns)
{
	unsigned ran = 0;

	if (wait_ns && r->busy_poll && wait_ns <= REACTOR_SPIN_NS) {
		reactor_spin(r, wait_ns, never);
		wait_ns = 0;
	}
	if (wait_ns && reactor_sleep_begin(r)) {
		ran = reactor_watch_poll(r, wait_ns);
		reactor_sleep_end(r);
		return ran;
	}
	reactor_turn_stamp(r);
	if (r->watches && r->turn_ns - r->watched_ns > REACTOR_WATCH_NS)
		ran = reactor_watch_poll(r, 0);
	return ran;
}

static unsigned threads_turn(struct reactor *r, uint64_t wait_ns)
{
	unsigned ran;

	pool_kick(r);
	ran = threads_wait(r, wait_ns);
	return ran + pool_reap(r);
}

const struct reactor_backend reactor_threads_backend = {
	.kind = REACTOR_THREADS,
	.init = threads_init,
	.fini = threads_nothing,
	.adopt = threads_nothing,
	.settle = threads_nothing,
	.kio = pool_kio,
	.turn = threads_turn,
};
