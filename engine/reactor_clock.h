/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A clock that costs a time stamp counter read (about 10 ns) and follows
 * CLOCK_MONOTONIC: at least ten times a second it is anchored to it anew: off
 * by well under a microsecond. Where the counter is not invariant it is
 * clock_gettime().
 */
#ifndef ENGINE_REACTOR_CLOCK_H
#define ENGINE_REACTOR_CLOCK_H

#include <time.h>

#include "engine/base.h"

#if defined(__x86_64__)
#define CLOCK_HAS_TSC 1
#include <x86intrin.h>
#endif

struct rclock {
	bool tsc;
	uint64_t last_ns; /* handed out: never go below */
	uint64_t base_tsc, base_ns;
	uint64_t mult;              /* nanoseconds a tick, 32.32 fixed point */
	uint64_t sync_ticks;        /* anchor again when the base is older */
	uint64_t rate_tsc, rate_ns; /* far anchor the rate is taken from */
};

/* Any thread; the first in a process takes about a millisecond. */
void rclock_init(struct rclock *clock);
/* Private: the slow path of rclock_now(). */
uint64_t rclock_sync(struct rclock *clock);

static inline uint64_t rclock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SEC_NS + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds; never goes back. One thread at a time. */
static inline uint64_t rclock_now(struct rclock *clock)
{
#ifdef CLOCK_HAS_TSC
	if (id_likely(clock->tsc)) {
		const uint64_t ticks = __rdtsc() - clock->base_tsc;
		uint64_t ns;

		if (id_unlikely(ticks > clock->sync_ticks))
			return rclock_sync(clock);
		ns = clock->base_ns +
		     (uint64_t)(((unsigned __int128)ticks * clock->mult) >> 32);
		if (id_unlikely(ns < clock->last_ns))
			return clock->last_ns;
		clock->last_ns = ns;
		return ns;
	}
#endif
	return rclock_monotonic();
}

#endif
