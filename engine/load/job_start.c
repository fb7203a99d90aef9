/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Checks what is asked of a job and makes all its memory, before anything is
 * submitted.
 */
#include "engine/load/job.h"

#include <stdlib.h>

#define OUTSTANDING_MAX 4096u
/* Arrivals are drawn one by one, also those that are only counted. */
#define IOPS_MAX 1e7
#define BUFFERS_MAX (2 * GIB)
#define INTERVAL_MIN_NS (100 * MSEC_NS)
#define INTERVAL_MAX_NS (60 * SEC_NS)

static int rate_check(const struct load_opts *o, uint64_t now, struct err *err)
{
	const struct load_rate *rate = &o->rate;

	if (!(rate->iops >= 0.0 && rate->iops <= IOPS_MAX))
		return err_set(
			err, -EINVAL,
			"load: rate of %g IOPS, expected 0 (closed loop) "
			"to %g",
			rate->iops, IOPS_MAX);
	if (rate->outstanding < 1 || rate->outstanding > OUTSTANDING_MAX)
		return err_set(err, -EINVAL,
			       "load: %u outstanding, expected 1 to %u",
			       rate->outstanding, OUTSTANDING_MAX);
	if (o->interval_ns < INTERVAL_MIN_NS ||
	    o->interval_ns > INTERVAL_MAX_NS)
		return err_set(
			err, -EINVAL,
			"load: interval of %.3f s, expected 0.1 s to 60 s",
			(double)o->interval_ns / (double)SEC_NS);
	if (o->start_ns && o->start_ns + o->interval_ns < now)
		return err_set(err, -EINVAL,
			       "load: the start is %.3f s ago, longer than an "
			       "interval; ask for a later one",
			       (double)(now - o->start_ns) / (double)SEC_NS);
	return 0;
}

static int opts_check(struct reactor *r, const struct load_opts *o,
		      struct err *err)
{
	const uint64_t buffers =
		(uint64_t)o->rate.outstanding *
		((uint64_t)workload_longest(o->workload, BDEV_READ) +
		 workload_longest(o->workload, BDEV_WRITE));
	int rc = rate_check(o, reactor_now(r), err);

	if (rc)
		return rc;
	if (o->targets < 1 || o->targets > LOAD_TARGETS_MAX)
		return err_set(err, -EINVAL,
			       "load: %u targets, expected 1 to %d", o->targets,
			       LOAD_TARGETS_MAX);
	for (unsigned i = 0; !rc && i < o->targets; i++)
		rc = workload_fits(o->workload, o->target[i], err);
	if (!rc && buffers > BUFFERS_MAX)
		rc = err_set(err, -EINVAL,
			     "load: %u outstanding of these sizes take %llu "
			     "MiB of buffers, at most %llu; ask for fewer",
			     o->rate.outstanding,
			     (unsigned long long)(buffers / MIB),
			     (unsigned long long)(BUFFERS_MAX / MIB));
	return rc;
}

static int targets_init(struct load *l, const struct load_opts *o)
{
	int rc = 0;

	l->targets = o->targets;
	for (unsigned i = 0; !rc && i < o->targets; i++) {
		l->target[i].bdev = o->target[i];
		rc = pattern_init(&l->target[i].pattern, o->workload,
				  &o->target[i]->limits,
				  o->seed + i * 0x9e3779b97f4a7c15ull);
	}
	return rc;
}

static int slot_init(struct load *l, unsigned i)
{
	struct slot *s = &l->slot[i];

	s->io.done = job_slot_done;
	s->io.arg = l;
	s->target = &l->target[i % l->targets];
	s->next = i + 1 < l->outstanding ? s + 1 : NULL;
	for (int op = BDEV_READ; op <= BDEV_WRITE; op++) {
		if (!l->buf_len[op])
			continue;
		s->buf[op] = reactor_buf_alloc(l->reactor, l->buf_len[op]);
		if (!s->buf[op])
			return -ENOMEM;
	}
	if (s->buf[BDEV_WRITE])
		content_fill(&l->content, i, s->buf[BDEV_WRITE],
			     l->buf_len[BDEV_WRITE]);
	return 0;
}

static int slots_init(struct load *l, const struct load_opts *o)
{
	int rc = 0;

	l->outstanding = o->rate.outstanding;
	l->slot = calloc(l->outstanding, sizeof(*l->slot));
	if (!l->slot)
		return -ENOMEM;
	for (int op = BDEV_READ; op <= BDEV_WRITE; op++)
		l->buf_len[op] = workload_longest(o->workload, op);
	for (unsigned i = 0; !rc && i < l->outstanding; i++)
		rc = slot_init(l, i);
	l->free = l->slot;
	return rc;
}

int load_start(struct reactor *r, const struct load_opts *o, struct load **load,
	       struct err *err)
{
	struct load *l = NULL;
	int rc = opts_check(r, o, err);

	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		goto nomem;
	l->reactor = r;
	l->sample = o->sample;
	l->stopped = o->stopped;
	l->arg = o->arg;
	l->open_loop = o->rate.iops > 0.0;
	l->fixed = o->targets == 1 ||
		   (!l->open_loop && o->rate.outstanding >= o->targets);
	l->write_flags = o->workload->fua ? BDEV_FUA : 0;
	l->flush_every = o->workload->flush_every;
	content_init(&l->content, o->workload->compress_ratio, o->seed);
	if (targets_init(l, o) || slots_init(l, o))
		goto nomem;
	job_begin(l, o);
	*load = l;
	return 0;
nomem:
	load_free(l);
	return err_set(err, -ENOMEM,
		       "load: no memory for %u outstanding; ask for fewer",
		       o->rate.outstanding);
}

void load_free(struct load *l)
{
	if (!l)
		return;
	id_assert(!l->inflight);
	for (unsigned i = 0; l->slot && i < l->outstanding; i++)
		for (int op = BDEV_READ; op <= BDEV_WRITE; op++)
			if (l->slot[i].buf[op])
				reactor_buf_free(l->reactor, l->slot[i].buf[op],
						 l->buf_len[op]);
	for (unsigned i = 0; i < l->targets; i++)
		pattern_fini(&l->target[i].pattern);
	free(l->slot);
	free(l);
}
