/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * SIM: time passes only when there is nothing to do, and then at once. Kernel
 * I/O is done when it is asked for and called back in the next turn.
 */
#include "engine/reactor_impl.h"

/* Not zero, so that a time of zero can mean "none"; the same in each run. */
#define SIM_START_NS (1000 * SEC_NS)

static int sim_init(struct reactor *r, const struct reactor_opts *opts,
		    struct err *err)
{
	(void)opts;
	(void)err;
	r->sim_ns = SIM_START_NS;
	return 0;
}

static void sim_nothing(struct reactor *r)
{
	(void)r;
}

static void sim_kio(struct reactor *r, struct kio *kio)
{
	kio_execute(kio);
	reactor_kio_reaped(r, kio);
}

/* For ever: only another thread can end that. */
static unsigned sim_turn(struct reactor *r, uint64_t wait_ns)
{
	if (wait_ns == UINT64_MAX) {
		if (reactor_sleep_begin(r)) {
			reactor_watch_poll(r, wait_ns);
			reactor_sleep_end(r);
		}
		wait_ns = 0;
	}
	r->sim_ns += wait_ns;
	reactor_turn_stamp(r);
	return 0;
}

void reactor_sim_stop(struct reactor *r, uint64_t ns)
{
	id_assert(r->sim_ns && !r->in_turn);
	r->sim_ns += ns;
}

const struct reactor_backend reactor_sim_backend = {
	.kind = REACTOR_SIM,
	.init = sim_init,
	.fini = sim_nothing,
	.adopt = sim_nothing,
	.settle = sim_nothing,
	.kio = sim_kio,
	.turn = sim_turn,
};
