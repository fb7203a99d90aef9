/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Why segments are rewritten other than for space, and how fast that may go.
 *
 * The cleaner moves; this says which segments have a reason, in which order,
 * and when the next bytes may be moved:
 *
 *   nobody uses the vDisk    at full speed
 *   users are active         SHARE of the bandwidth seen (SHARE_EXPOSED where
 *                            one more loss would lose data). Each second: p99
 *                            of users' writes above the high water halves it,
 *                            to an eighth at least; below the low water it
 *                            grows by a tenth, past that share too, for nobody
 *                            feels it; between the two it goes back to its
 *                            share
 *
 * The waters are those of the spec, but never below what users saw while
 * nothing was moved: a drive that is slow by itself must not stop a rebuild.
 *
 * A member that failed with an error is lost at once; one that went silent is
 * given absent_ms to come back, as most do. When it does its segments are
 * whole again, and nothing is left to be moved.
 */
#include "engine/vdisk/log/impl.h"

#include <stdlib.h>

#define ABSENT_MS 60000u
#define HIGH_US 20000u
#define LOW_US 5000u
#define SHARE 0.20
#define SHARE_EXPOSED 0.50
#define RATE_MIN (1.0 * MIB)      /* before anything is known */
#define ACTIVE_NS (100 * MSEC_NS) /* users, after their last I/O */
#define BURST_S 0.05              /* saved up at most */
#define BAD_REPAIRS 3             /* in a segment: it is rewritten */
#define COURSE_POINTS 11
#define STARVED_NS SEC_NS

/* How far something is: what is left of it, second by second. */
struct course {
	double total; /* of which `left` is left; 0: there is none */
	uint64_t left;
	struct {
		uint64_t ns, left;
	} at[COURSE_POINTS];
	unsigned points; /* ever */
};

struct resync {
	struct vlog *v;
	struct timer timer, second;
	double rate, tokens, bandwidth; /* bytes a second, bytes */
	uint64_t promised;              /* bytes that are on their way */
	uint64_t limit;                 /* bytes a second; 0: none */
	uint64_t filled_ns, user_ns;
	/* this second */
	uint64_t second_ns, written_was, moved_was;
	struct lat writes;
	uint64_t quiet_p99_ns; /* of users while nothing is moved */
	/* all the time */
	uint64_t moved; /* bytes written */
	struct course rebuild, policy;
	uint64_t starved_ns;   /* since when there is no room */
	bool clear;            /* no segment has a reason, until something
				  happens */
	bool working, starved; /* as told last */
};

int resync_init(struct vlog *v)
{
	v->resync = calloc(1, sizeof(*v->resync));
	if (!v->resync)
		return -ENOMEM;
	v->resync->v = v;
	return 0;
}

void resync_fini(struct vlog *v)
{
	if (!v->resync)
		return;
	timer_cancel(v->r, &v->resync->timer);
	timer_cancel(v->r, &v->resync->second);
	free(v->resync);
	v->resync = NULL;
}

/* ---- why ----------------------------------------------------------- */

static uint64_t absent_ns(const struct vlog *v)
{
	return (v->pace.absent_ms ? v->pace.absent_ms : ABSENT_MS) * MSEC_NS;
}

bool resync_gone(const struct vlog *v, unsigned member)
{
	const struct member *m = &v->member[member];

	return !m->alive &&
	       (!member_silent(m->why) ||
		reactor_turn_now(v->r) - m->lost_ns >= absent_ns(v));
}

enum clean_why resync_why(const struct vlog *v, const struct seg *s)
{
	unsigned gone = 0, away = 0;

	for (unsigned i = 0; i < seg_width(s); i++) {
		away += !seg_unit_there(v, s, i);
		gone += resync_gone(v, s->comp[i]) ||
			(v->member[s->comp[i]].alive &&
			 !seg_unit_there(v, s, i)); /* was replaced */
	}
	/* One that is only silent counts for what is left, not for whether. */
	if (gone)
		return away >= s->m ? WHY_EXPOSED : WHY_LOST;
	if (s->bad >= BAD_REPAIRS)
		return WHY_BAD;
	return seg_as_policy(v, s) ? WHY_NONE : WHY_POLICY;
}

/* ---- how fast ------------------------------------------------------ */

static uint64_t written(const struct vlog *v)
{
	const struct vlog_info *s = &v->stat;

	return s->log_bytes + s->destage_bytes + s->bypass_bytes +
	       s->clean_bytes + s->snap_bytes;
}

static bool users_active(const struct vlog *v)
{
	const struct resync *rs = v->resync;

	return v->users || v->waiting ||
	       (rs->user_ns &&
		reactor_turn_now(v->r) - rs->user_ns < ACTIVE_NS);
}

void resync_user_io(struct vlog *v)
{
	v->resync->user_ns = reactor_turn_now(v->r);
}

static double share_rate(const struct vlog *v, enum clean_why why)
{
	const double share = why == WHY_EXPOSED ? SHARE_EXPOSED : SHARE;
	const double rate = share * v->resync->bandwidth;

	return rate > RATE_MIN ? rate : RATE_MIN;
}

static uint64_t water(uint32_t spec_us, uint32_t otherwise_us, uint64_t quiet)
{
	const uint64_t ns = (spec_us ? spec_us : otherwise_us) * 1000ull;

	return ns > quiet ? ns : quiet;
}

static void rate_adapt(struct vlog *v)
{
	struct resync *rs = v->resync;
	const uint64_t p99 = lat_quantile(&rs->writes, 0.99);
	const uint64_t quiet = rs->quiet_p99_ns;
	const double share = share_rate(v, WHY_LOST);

	if (p99 > water(v->pace.high_us, HIGH_US, quiet * 2))
		rs->rate /= 2;
	else if (p99 < water(v->pace.low_us, LOW_US, quiet + quiet / 4))
		rs->rate *= 1.1;
	else
		rs->rate += (share - rs->rate) / 10;
	if (rs->rate < share / 8)
		rs->rate = share / 8;
	if (rs->rate > 64.0 * GIB)
		rs->rate = 64.0 * GIB;
}

/* A second is over. */
static void second_end(struct vlog *v, uint64_t now)
{
	struct resync *rs = v->resync;
	const double s = (double)(now - rs->second_ns) / (double)SEC_NS;
	const double bytes = (double)(written(v) - rs->written_was) / s;
	const double moved = (double)(rs->moved - rs->moved_was) / s;

	/* A drive gets slower, too: what was once seen fades. */
	rs->bandwidth *= 0.98;
	if (bytes > rs->bandwidth)
		rs->bandwidth = bytes;
	if (!rs->rate)
		rs->rate = share_rate(v, WHY_LOST);
	if (moved > 0)
		rate_adapt(v);
	else if (rs->writes.count)
		rs->quiet_p99_ns = lat_quantile(&rs->writes, 0.99);
	lat_reset(&rs->writes);
	rs->second_ns = now;
	rs->written_was = written(v);
	rs->moved_was = rs->moved;
}

static void second_step(struct vlog *v)
{
	struct resync *rs = v->resync;
	const uint64_t now = reactor_turn_now(v->r);

	if (!rs->second_ns)
		rs->second_ns = now;
	if (now - rs->second_ns >= SEC_NS)
		second_end(v, now);
}

void resync_user_write(struct vlog *v, uint64_t latency_ns)
{
	lat_add(&v->resync->writes, latency_ns);
	second_step(v);
}

static void looked(struct timer *t)
{
	struct resync *rs = container_of(t, struct resync, timer);
	struct vlog *v = rs->v;

	second_step(v);
	rs->clear = false;
	vlog_kick(v);
}

/* At ns at the latest. */
static void look_at(struct vlog *v, uint64_t ns)
{
	struct resync *rs = v->resync;

	if (timer_armed(&rs->timer)) {
		if (rs->timer.deadline_ns <= ns)
			return;
		timer_cancel(v->r, &rs->timer);
	}
	rs->timer.fn = looked;
	timer_arm(v->r, &rs->timer, ns);
}

bool resync_may(struct vlog *v, enum clean_why why, uint64_t bytes)
{
	struct resync *rs = v->resync;
	const uint64_t now = reactor_turn_now(v->r);
	const double wait = (double)(now - rs->filled_ns) / (double)SEC_NS;
	double rate = rs->rate, left;

	if (!rate) /* nothing was measured yet */
		rate = rs->rate = share_rate(v, WHY_LOST);
	if (why == WHY_EXPOSED)
		rate *= SHARE_EXPOSED / SHARE;
	if (!users_active(v))
		rate = 64.0 * GIB;
	if (rs->limit && rate > (double)rs->limit)
		rate = (double)rs->limit;
	rs->filled_ns = now;
	rs->tokens += rate * wait;
	if (rs->tokens > rate * BURST_S)
		rs->tokens = rate * BURST_S;
	look_at(v, now + SEC_NS); /* the next second's measure */
	left = rs->tokens - (double)rs->promised;
	if (left > 0) {
		rs->promised += bytes;
		return true;
	}
	rs->clear = true; /* no scans meanwhile */
	look_at(v, now + MSEC_NS + (uint64_t)(-left / rate * (double)SEC_NS));
	return false;
}

void resync_settle(struct vlog *v, uint64_t bytes)
{
	v->resync->promised -= bytes;
}

void resync_moved(struct vlog *v, unsigned grans, unsigned k)
{
	struct resync *rs = v->resync;
	const uint64_t bytes = (uint64_t)grans * FMT_GRAN * (k + v->m) / k;

	rs->tokens -= (double)bytes;
	rs->moved += bytes;
}

void vlog_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s)
{
	struct vlog *v = container_of(vdisk, struct vlog, bdev);

	v->resync->limit = bytes_s;
	resync_look(v);
}

/* ---- how far ------------------------------------------------------- */

/* Live bytes of segments that a member was lost of, or that were repaired too
 * often; and of those that are not as the policy says. */
static void lefts(const struct vlog *v, uint64_t *rebuild, uint64_t *policy)
{
	*rebuild = *policy = 0;
	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];
		enum clean_why why;

		if (s->state == SEG_FREE || !s->live)
			continue;
		why = resync_why(v, s);
		if (why >= WHY_BAD)
			*rebuild += (uint64_t)s->live * FMT_GRAN;
		else if (why == WHY_POLICY)
			*policy += (uint64_t)s->live * FMT_GRAN;
	}
}

/* What comes on top while it lasts leaves the share that is done as it is. */
static void course_follow(struct course *c, uint64_t left, uint64_t now)
{
	const uint64_t more = left > c->left ? left - c->left : 0;

	if (!left || !c->left) {
		*c = (struct course) { .total = (double)left };
	} else if (more) {
		c->total *= (double)left / (double)c->left;
		for (unsigned i = 0; i < COURSE_POINTS; i++)
			c->at[i].left += more;
	}
	c->left = left;
	c->at[c->points % COURSE_POINTS].ns = now;
	c->at[c->points++ % COURSE_POINTS].left = left;
}

static double course_progress(const struct course *c, uint64_t left)
{
	if (!left)
		return 1;
	if (!c->left)
		return 0;
	return 1 - (double)(left < c->left ? left : c->left) / c->total;
}

/* By how much less is left a second, over the last ten; 0: unknown. */
static uint64_t course_rate(const struct course *c, uint64_t left, uint64_t now)
{
	const unsigned oldest =
		c->points > COURSE_POINTS ? c->points - COURSE_POINTS : 0;
	const uint64_t ns = c->at[oldest % COURSE_POINTS].ns;
	const uint64_t was = c->at[oldest % COURSE_POINTS].left;

	if (!c->points || now - ns < SEC_NS / 2 || was <= left)
		return 0;
	return (uint64_t)((double)(was - left) * (double)SEC_NS /
			  (double)(now - ns));
}

static void second_over(struct timer *t);

/* A point of each a second, until nothing is left. */
static void courses_follow(struct vlog *v)
{
	struct resync *rs = v->resync;
	const uint64_t now = reactor_turn_now(v->r);
	uint64_t rebuild, policy;

	if (timer_armed(&rs->second))
		return;
	lefts(v, &rebuild, &policy);
	course_follow(&rs->rebuild, rebuild, now);
	course_follow(&rs->policy, policy, now);
	rs->second.fn = second_over;
	if (rebuild || policy)
		timer_arm(v->r, &rs->second, now + SEC_NS);
}

static void second_over(struct timer *t)
{
	courses_follow(container_of(t, struct resync, second)->v);
}

/* ---- whether ------------------------------------------------------- */

bool resync_wanted(const struct vlog *v)
{
	return !v->resync->clear;
}

void resync_look(struct vlog *v)
{
	v->resync->clear = false;
	vlog_kick(v);
}

void resync_policy_taken(struct vlog *v)
{
	v->resync->policy = (struct course) { 0 };
	resync_look(v);
}

void resync_member_back(struct vlog *v)
{
	for (uint32_t i = 0; i < v->segs; i++)
		v->seg[i].held = false;
	resync_look(v);
}

void resync_scanned(struct vlog *v, const struct resync_scan *seen)
{
	struct resync *rs = v->resync;
	const uint64_t now = reactor_turn_now(v->r);
	bool working, starved;

	second_step(v);
	if (!seen->starved)
		rs->starved_ns = 0;
	else if (!rs->starved_ns)
		rs->starved_ns = now;
	starved = rs->starved_ns && now - rs->starved_ns >= STARVED_NS;
	working = seen->rebuild && !starved;
	if (working != rs->working || starved != rs->starved)
		vlog_changed(v);
	rs->working = working;
	rs->starved = starved;
	/* What is on its way may come to nothing: once more, soon. */
	if (seen->more)
		look_at(v, now + 50 * MSEC_NS);
	rs->clear = seen->best <= WHY_SPACE;
	if (seen->best > WHY_SPACE || seen->more)
		courses_follow(v);
	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];

		if (!m->alive && !resync_gone(v, i))
			look_at(v, m->lost_ns + absent_ns(v));
	}
}

uint64_t resync_wait_ns(const struct vlog *v)
{
	const uint64_t now = reactor_turn_now(v->r);
	uint64_t wait = 0;

	for (unsigned i = 0; i < v->n; i++) {
		const uint64_t until = v->member[i].lost_ns + absent_ns(v);

		if (v->member[i].alive || resync_gone(v, i) || until <= now)
			continue;
		if (!wait || until - now < wait)
			wait = until - now;
	}
	return wait;
}

bool resync_starved(const struct vlog *v)
{
	return v->resync->starved;
}

bool resync_info(const struct vlog *v, struct vlog_info *info)
{
	const struct resync *rs = v->resync;
	const struct course *c = &rs->rebuild;
	uint64_t rebuild, left;

	lefts(v, &rebuild, &left);
	if (rebuild || !policy_changing(v))
		left = rebuild;
	else
		c = &rs->policy;
	if (!rebuild && policy_beginning(v))
		left = v->live_grans * FMT_GRAN;
	info->rebuild_left_bytes = left;
	info->rebuild_bytes_s = course_rate(c, left, reactor_turn_now(v->r));
	info->rebuild_bytes = rs->moved;
	info->progress = course_progress(c, left);
	return rebuild && rs->working;
}
