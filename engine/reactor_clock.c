/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rate is measured between two pairs of (counter, CLOCK_MONOTONIC), at
 * first a millisecond apart, later tenths of a second to tens of seconds (under
 * 1 ppm). A rate is trusted for as long as it was measured over, at most a
 * tenth of a second: so the clock is never off by more than the pairs were,
 * some hundred nanoseconds, though the host was crowded when it began.
 * Anchoring sets the clock forward to CLOCK_MONOTONIC and never back: ahead of
 * it, it goes on at the true rate.
 */
#include "engine/reactor_clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#ifdef CLOCK_HAS_TSC
#include <cpuid.h>

#define CALIBRATE_NS MSEC_NS
#define SYNC_NS (100 * MSEC_NS)
#define RATE_SPAN_NS (20 * SEC_NS)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rclock first; /* written once, by calibrate() */

/* A counter value and the time that belong together: the closest of a few. */
static void pair_read(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		const uint64_t before = __rdtsc();
		const uint64_t now = rclock_monotonic();
		const uint64_t width = __rdtsc() - before;

		if (width < best) {
			best = width;
			*tsc = before + width / 2;
			*ns = now;
		}
	}
}

static bool tsc_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* The kernel distrusts counters that differ between sockets or stop. */
static bool tsc_trusted(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/"
		"current_clocksource";
	char buf[64] = "";
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, buf, sizeof(buf) - 1) < 0)
		buf[0] = '\0';
	close(fd);
	return !strncmp(buf, "tsc", 3) || !strncmp(buf, "kvm-clock", 9) ||
	       !strncmp(buf, "hyperv_clocksource_tsc_page", 27);
}

static void rate_set(struct rclock *clock, uint64_t tsc, uint64_t ns)
{
	const uint64_t ticks = tsc - clock->rate_tsc;
	uint64_t sync_ns;

	if (!ticks || ns <= clock->rate_ns)
		return;
	clock->mult =
		(uint64_t)((((unsigned __int128)(ns - clock->rate_ns)) << 32) /
			   ticks);
	sync_ns = ns - clock->rate_ns < SYNC_NS ? ns - clock->rate_ns : SYNC_NS;
	clock->sync_ticks =
		(uint64_t)(((unsigned __int128)sync_ns << 32) / clock->mult);
}

static void calibrate(void)
{
	uint64_t tsc, ns;

	if (!tsc_invariant() || !tsc_trusted())
		return;
	pair_read(&first.rate_tsc, &first.rate_ns);
	do {
		pair_read(&tsc, &ns);
	} while (ns - first.rate_ns < CALIBRATE_NS);
	rate_set(&first, tsc, ns);
	first.base_tsc = tsc;
	first.base_ns = ns;
	first.tsc = true;
}

void rclock_init(struct rclock *clock)
{
	pthread_once(&once, calibrate);
	*clock = first;
}

uint64_t rclock_sync(struct rclock *clock)
{
	uint64_t tsc, ns;

	pair_read(&tsc, &ns);
	rate_set(clock, tsc, ns);
	if (ns - clock->rate_ns > RATE_SPAN_NS) {
		clock->rate_tsc = tsc;
		clock->rate_ns = ns;
	}
	clock->base_tsc = tsc;
	clock->base_ns = ns > clock->last_ns ? ns : clock->last_ns;
	clock->last_ns = clock->base_ns;
	return clock->base_ns;
}

#else

void rclock_init(struct rclock *clock)
{
	*clock = (struct rclock) { .tsc = false };
}

uint64_t rclock_sync(struct rclock *clock)
{
	(void)clock;
	return rclock_monotonic();
}

#endif
