/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much of users' writes the log takes while its buffer is nearly full.
 *
 * The log is written faster than segments are, so without a limit users fill
 * the buffer at the log's speed and then stand still until a stripe is
 * through: a cliff. Instead, from START of the buffer on, what comes in
 * follows what goes out (the controller of SPDK's FTL, lib/ftl/ftl_nv_cache.c):
 *
 *	in = out * (1 + clamp(20 * (C/2 - D) / C, -0.8, +0.5))
 *
 * C is the buffer, D what is in it, out what has left it of late: destaged,
 * overwritten or discarded. So D settles at half the buffer, and the log and
 * the segments share the drives as they need. At D = C users wait whatever is
 * due.
 */
#include "engine/vdisk/log/impl.h"

#define START 0.40
#define PERIOD_NS (20 * MSEC_NS)
#define SMOOTH 0.125 /* weight of a period */
#define WAKE_BLOCKS 32.0
#define WAKE_MIN_NS (100 * USEC_NS)

static uint32_t filled(const struct vlog *v)
{
	return v->map.grans - v->map.grans_left;
}

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static double allowed(const struct vlog *v)
{
	const double c = v->map.grans, d = filled(v);

	return v->admit.out_rate * (1 + clamp(20 * (c / 2 - d) / c, -0.8, 0.5));
}

/* What went out is what came in less what is there more. */
static void rate_follow(struct vlog *v, uint64_t now)
{
	struct admit *a = &v->admit;
	const uint32_t d = filled(v);
	double out;

	if (now - a->period_ns < PERIOD_NS)
		return;
	out = (double)a->taken - ((double)d - (double)a->filled);
	out = out > 0 ? out / (double)(now - a->period_ns) : 0;
	a->out_rate += (out - a->out_rate) * SMOOTH;
	a->period_ns = now;
	a->filled = d;
	a->taken = 0;
}

static void woken(struct timer *timer)
{
	struct admit *a = container_of(timer, struct admit, timer);

	vlog_kick(container_of(a, struct vlog, admit));
}

static void wait(struct vlog *v, uint64_t now)
{
	struct admit *a = &v->admit;
	const double rate = allowed(v);
	double ns = (double)PERIOD_NS;

	if (timer_armed(&a->timer))
		return;
	if (rate > 0)
		ns = clamp((WAKE_BLOCKS * FMT_BLOCK_GRANS - a->tokens) / rate,
			   (double)WAKE_MIN_NS, (double)PERIOD_NS);
	a->timer.fn = woken;
	timer_arm(v->r, &a->timer, now + (uint64_t)ns);
}

bool admit_may(struct vlog *v)
{
	struct admit *a = &v->admit;
	const uint64_t now = reactor_turn_now(v->r);
	const double most = WAKE_BLOCKS * FMT_BLOCK_GRANS * 2;

	rate_follow(v, now);
	if (filled(v) < START * v->map.grans) {
		a->tokens = 0;
		a->token_ns = now;
		return true;
	}
	a->tokens += allowed(v) * (double)(now - a->token_ns);
	a->tokens = a->tokens < most ? a->tokens : most;
	a->token_ns = now;
	if (a->tokens > 0)
		return true;
	wait(v, now);
	return false;
}

void admit_took(struct vlog *v, unsigned grans)
{
	v->admit.tokens -= grans;
	v->admit.taken += grans;
}
