/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/load/sampler.h"

#include <math.h>
#include <string.h>

/* A generator that waits for less than this share is busy with itself. */
#define BUSY_SHARE 0.95
/* Arrivals not kept up with, below which nobody calls it a bound. */
#define BEHIND_SHARE 0.005
/*
 * Arrivals that were due, had a slot free and were not yet submitted, on the
 * average (by Little's law: rate times mean lateness).
 */
#define HELD_UP 0.1

static void dir_reset(struct load_dir *dir)
{
	if (dir->service.count)
		hist_reset(&dir->service);
	if (dir->response.count)
		hist_reset(&dir->response);
	dir->ops = dir->bytes = dir->errors = 0;
}

static void mark_keep(struct sampler *s, const struct sampler_mark *mark)
{
	s->scheduled = mark->scheduled;
	s->busy_ns = mark->busy_ns;
	s->idle_ns = mark->idle_ns;
	s->wait_ns = mark->wait_ns;
}

void sampler_init(struct sampler *s, uint64_t start_ns, uint64_t interval_ns,
		  bool open_loop, const struct sampler_mark *mark)
{
	struct load_dir *const dir[] = { &s->sample.read, &s->sample.write };

	memset(s, 0, sizeof(*s));
	s->sample.from_ns = start_ns;
	s->boundary_ns = start_ns + interval_ns;
	s->interval_ns = interval_ns;
	s->open_loop = open_loop;
	for (unsigned i = 0; i < array_len(dir); i++) {
		hist_reset(&dir[i]->service);
		hist_reset(&dir[i]->response);
	}
	mark_keep(s, mark);
}

unsigned load_bound(const struct bound_facts *f)
{
	const double behind = (double)f->scheduled - (double)f->submitted;

	if (f->busy_share <= BUSY_SHARE)
		return 0;
	if (!f->open_loop)
		return LOAD_BOUND_CPU;
	if (behind <= BEHIND_SHARE * (double)f->scheduled)
		return 0;
	return f->late_sum_ns > HELD_UP * f->interval_ns ? LOAD_BOUND_CPU : 0;
}

static double busy_share(const struct sampler *s,
			 const struct sampler_mark *mark)
{
	const double busy = (double)mark->busy_ns - (double)s->busy_ns;
	const double idle = (double)mark->idle_ns - (double)s->idle_ns;

	return busy > 0.0 ? busy / (busy + idle) : 0.0;
}

static double wait_share(const struct sampler *s,
			 const struct sampler_mark *mark)
{
	const double wall = (double)mark->busy_ns - (double)s->busy_ns +
			    (double)mark->idle_ns - (double)s->idle_ns;
	const double wait = (double)mark->wait_ns - (double)s->wait_ns;

	if (!mark->wait_known || !(wall > 0.0))
		return NAN;
	return wait <= 0.0 ? 0.0 : wait < wall ? wait / wall : 1.0;
}

void sampler_close(struct sampler *s, uint64_t end_ns,
		   const struct sampler_mark *mark)
{
	struct load_sample *const sample = &s->sample;
	const struct bound_facts facts = {
		.open_loop = s->open_loop,
		.busy_share = busy_share(s, mark),
		.interval_ns = (double)(end_ns - sample->from_ns),
		.scheduled = mark->scheduled - s->scheduled,
		.submitted = s->submitted,
		.late_sum_ns = (double)s->late_sum_ns,
	};

	sample->to_ns = end_ns;
	sample->read.ops = sample->read.service.count;
	sample->write.ops = sample->write.service.count;
	sample->scheduled = facts.scheduled;
	sample->backlog = mark->backlog;
	sample->inflight = mark->inflight;
	sample->late_mean_ns =
		s->submitted ? facts.late_sum_ns / (double)s->submitted : 0.0;
	sample->cpu_wait = wait_share(s, mark);
	sample->bound = load_bound(&facts);
	mark_keep(s, mark);
}

void sampler_next(struct sampler *s)
{
	const uint64_t from_ns = s->sample.to_ns;

	dir_reset(&s->sample.read);
	dir_reset(&s->sample.write);
	s->sample.from_ns = from_ns;
	s->sample.last_error = 0;
	s->boundary_ns = from_ns + s->interval_ns;
	s->submitted = 0;
	s->late_sum_ns = 0;
}
