/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A job: slots that carry I/Os, refilled as they come back (closed loop) or
 * when the schedule says (open loop).
 *
 *   closed   done -> account -> draw the next -> submit, on the same slot
 *   open     timer at the next due time -> pump: submit all that are due while
 *            slots are free; without a free slot the next completion pumps
 *
 * Clocks: one read a completion. In closed loop it is also the submit time of
 * the slot's next read, which the bdev gets a few tens of nanoseconds later;
 * that is the error of a service time. Writes, whose content is stamped in
 * between, and submits in open loop have a read of their own.
 *
 * All memory exists before the first I/O.
 */
#include "engine/load/job.h"

/* A slot whose I/O failed rests in closed loop: a dead target would otherwise
 * be asked millions of times a second. */
#define REST_NS MSEC_NS

/* ---- intervals ---------------------------------------------------------- */

/*
 * Arrivals due before end_ns, submitted or not. Starts from where the pacer
 * is, so only what waits is drawn twice, and each of that once.
 */
static uint64_t arrivals_until(struct load *l, uint64_t end_ns)
{
	if (!l->open_loop)
		return 0;
	if (l->pacer.count > l->due.count)
		l->due = l->pacer;
	if (!l->paused && !l->stopping)
		pacer_skip_to(&l->due, end_ns);
	return l->due.count;
}

static void mark_take(struct load *l, uint64_t end_ns, struct sampler_mark *m)
{
	struct reactor_stats stats;

	reactor_stats(l->reactor, &stats);
	m->scheduled = arrivals_until(l, end_ns);
	m->backlog = l->open_loop ? m->scheduled - l->pacer.count : 0;
	m->inflight = l->inflight;
	m->busy_ns = stats.busy_ns;
	m->idle_ns = stats.idle_ns;
	m->wait_ns = stats.wait_ns;
	m->wait_known = stats.wait_known;
}

static void interval_end(struct load *l, uint64_t end_ns)
{
	struct sampler_mark mark;

	mark_take(l, end_ns, &mark);
	sampler_close(&l->sampler, end_ns, &mark);
	l->sample(&l->sampler.sample, l->arg);
	sampler_next(&l->sampler);
}

static void intervals_end(struct load *l, uint64_t now)
{
	while (now >= l->sampler.boundary_ns)
		interval_end(l, l->sampler.boundary_ns);
}

static void boundary_fire(struct timer *timer)
{
	struct load *l = container_of(timer, struct load, boundary);

	intervals_end(l, reactor_now(l->reactor));
	timer_arm(l->reactor, timer, l->sampler.boundary_ns);
}

/* ---- submitting --------------------------------------------------------- */

static struct target *target_next(struct load *l)
{
	const unsigned turn = l->turn;

	l->turn = turn + 1 == l->targets ? 0 : turn + 1;
	return &l->target[turn];
}

static inline void slot_submit(struct load *l, struct slot *s, uint64_t now)
{
	struct access a;

	if (!l->fixed)
		s->target = target_next(l);
	a = pattern_next(&s->target->pattern);
	s->io.op = a.op;
	s->io.flags = s->target->bdev->limits.can_lend ? BDEV_LEND : 0;
	s->io.len = a.len;
	s->io.off = a.off;
	s->io.buf = s->buf[a.op];
	if (a.op == BDEV_WRITE) {
		s->io.flags = l->write_flags;
		content_stamp(&l->content, s->io.buf, a.len);
		now = reactor_now(l->reactor);
	}
	s->submit_ns = now;
	bdev_submit(s->target->bdev, &s->io);
}

static struct slot *slot_take(struct load *l)
{
	struct slot *s = l->free;

	l->free = s->next;
	l->inflight++;
	return s;
}

static void slot_give(struct load *l, struct slot *s)
{
	s->next = l->free;
	l->free = s;
	l->inflight--;
}

/* Closed loop: every free slot goes out. */
static void fill(struct load *l)
{
	while (l->going && l->free)
		slot_submit(l, slot_take(l), reactor_now(l->reactor));
}

/*
 * Open loop: all that are due go out, in order, while slots last. What falls
 * due meanwhile is left to the next turn, so nothing of the next interval goes
 * out before this one is closed.
 */
static void pump(struct load *l, uint64_t now)
{
	const uint64_t until = now;

	while (l->free && l->pacer.due_ns <= until) {
		const uint64_t due = l->pacer.due_ns;
		struct slot *s = slot_take(l);

		sampler_submit(&l->sampler,
			       now - (due > l->freed_ns ? due : l->freed_ns));
		pacer_next(&l->pacer);
		slot_submit(l, s, now);
		s->due_ns = due;
		now = reactor_now(l->reactor);
	}
	l->starved = !l->free;
	if (!l->starved)
		timer_arm(l->reactor, &l->wake, l->pacer.due_ns);
}

static void wake_fire(struct timer *timer)
{
	struct load *l = container_of(timer, struct load, wake);
	const uint64_t now = reactor_now(l->reactor);

	if (id_unlikely(now >= l->sampler.boundary_ns))
		intervals_end(l, now);
	l->started = true;
	l->going = !l->paused && !l->stopping; /* the sample's reader may say */
	if (!l->going)
		return;
	if (l->open_loop)
		pump(l, now);
	else
		fill(l);
}

/* ---- completing --------------------------------------------------------- */

static struct load_dir *slot_dir(struct load *l, const struct slot *s)
{
	return s->io.op == BDEV_READ ? &l->sampler.sample.read
				     : &l->sampler.sample.write;
}

static inline void account(struct load *l, const struct slot *s, uint64_t now)
{
	struct load_dir *dir = slot_dir(l, s);

	dir->bytes += s->io.len;
	hist_add(&dir->service, now - s->submit_ns);
	if (l->open_loop)
		hist_add(&dir->response, now - s->due_ns);
}

static void account_error(struct load *l, const struct slot *s)
{
	slot_dir(l, s)->errors++; /* a FLUSH belongs to the writes */
	l->sampler.sample.last_error = s->io.result;
}

/* True when the slot goes on as the FLUSH that its write made due. */
static bool flush_follows(struct load *l, struct slot *s)
{
	if (!l->flush_every || s->io.op != BDEV_WRITE || l->stopping)
		return false;
	if (++s->target->unflushed < l->flush_every)
		return false;
	s->target->unflushed = 0;
	s->io.op = BDEV_FLUSH;
	s->io.flags = 0;
	s->io.len = 0;
	s->io.off = 0;
	s->io.buf = NULL;
	bdev_submit(s->target->bdev, &s->io);
	return true;
}

static void finish_if_idle(struct load *l)
{
	if (!l->stopping || l->inflight || l->finished)
		return;
	l->finished = true;
	reactor_post(l->reactor, &l->finish);
}

/* A slot that does not go on at once. */
static void slot_back(struct load *l, struct slot *s, uint64_t now)
{
	if (l->starved)
		l->freed_ns = reactor_turn_now(l->reactor);
	slot_give(l, s);
	if (l->stopping)
		finish_if_idle(l);
	else if (!l->going)
		return;
	else if (!l->open_loop && !timer_armed(&l->wake))
		timer_arm(l->reactor, &l->wake, now + REST_NS);
	else if (l->starved)
		pump(l, now);
}

ID_HOT void job_slot_done(struct io *io)
{
	struct slot *s = container_of(io, struct slot, io);
	struct load *l = io->arg;
	const uint64_t now = reactor_now(l->reactor);
	const int result = io->result;

	if (id_unlikely(now >= l->sampler.boundary_ns))
		intervals_end(l, now);
	if (id_unlikely(result))
		account_error(l, s);
	else if (id_likely(io->op != BDEV_FLUSH))
		account(l, s, now);
	if (id_unlikely(flush_follows(l, s)))
		return;
	if (id_likely(l->going && !l->open_loop && !result))
		slot_submit(l, s, now);
	else
		slot_back(l, s, now);
}

static void finish_run(struct task *task)
{
	struct load *l = container_of(task, struct load, finish);
	const uint64_t now = reactor_now(l->reactor);

	timer_cancel(l->reactor, &l->boundary);
	intervals_end(l, now);
	if (now > l->sampler.sample.from_ns)
		interval_end(l, now);
	l->stopped(l->arg); /* may free l */
}

/* ---- from outside ------------------------------------------------------- */

void job_begin(struct load *l, const struct load_opts *o)
{
	const uint64_t start_ns =
		o->start_ns ? o->start_ns : reactor_now(l->reactor);
	struct sampler_mark mark = { 0 };

	l->wake.fn = wake_fire;
	l->boundary.fn = boundary_fire;
	l->finish.fn = finish_run;
	l->start_ns = start_ns;
	/* Another stream of draws than the addresses'. */
	if (l->open_loop)
		pacer_init(&l->pacer, o->rate.iops, o->rate.schedule, start_ns,
			   ~o->seed);
	l->due = l->pacer;
	mark_take(l, start_ns, &mark);
	sampler_init(&l->sampler, start_ns, o->interval_ns, l->open_loop,
		     &mark);
	timer_arm(l->reactor, &l->wake,
		  l->open_loop ? l->pacer.due_ns : start_ns);
	timer_arm(l->reactor, &l->boundary, l->sampler.boundary_ns);
}

void load_stop(struct load *l)
{
	if (l->stopping)
		return;
	arrivals_until(l, reactor_now(l->reactor));
	l->stopping = true;
	l->going = false;
	timer_cancel(l->reactor, &l->wake);
	finish_if_idle(l);
}

/*
 * What is due moves with the pause. Arrivals that were due before it keep the
 * time they had waited by then.
 */
static void resume(struct load *l, uint64_t now)
{
	const uint64_t away_ns = now - l->paused_ns;

	l->pacer.due_ns += away_ns;
	l->due.due_ns += away_ns;
	l->freed_ns = now;
	l->going = l->started;
	l->start_ns += l->started ? 0 : away_ns;
	timer_arm(l->reactor, &l->wake,
		  l->open_loop ? l->pacer.due_ns : l->start_ns);
}

void load_pause(struct load *l, bool pause)
{
	const uint64_t now = reactor_now(l->reactor);

	if (l->stopping || pause == l->paused)
		return;
	if (pause) {
		arrivals_until(l, now);
		l->paused_ns = now;
		l->going = false;
		timer_cancel(l->reactor, &l->wake);
	}
	l->paused = pause;
	if (!pause)
		resume(l, now);
}
