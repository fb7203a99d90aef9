/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/engine/load_rig.h"

static void probe_submit(struct bdev *bdev, struct io *io)
{
	struct probe *p = container_of(bdev, struct probe, bdev);

	p->ops[io->op]++;
	p->fua += io->op == BDEV_WRITE && (io->flags & BDEV_FUA);
	p->bytes += io->len;
	if (io->op == BDEV_WRITE) {
		memcpy(&p->first_word, io->buf, sizeof(p->first_word));
		if (++p->writes_unflushed > p->unflushed_most)
			p->unflushed_most = p->writes_unflushed;
		for (uint64_t at = 0; p->seen && at < io->len; at += 4096)
			p->seen[(io->off + at) / 4096]++;
	}
	if (io->op == BDEV_FLUSH)
		p->writes_unflushed = 0;
	bdev_complete_later(io, p->fail ? -EIO : 0);
}

static void probe_close(struct bdev *bdev)
{
	bdev_closed(bdev);
}

static const struct bdev_ops probe_ops = {
	.kind = "probe",
	.submit = probe_submit,
	.close = probe_close,
};

struct probe *probe_new(struct reactor *r, uint64_t size_bytes)
{
	struct probe *p = calloc(1, sizeof(*p));

	bdev_init(&p->bdev, &probe_ops, r, "probe");
	p->bdev.limits = (struct bdev_limits) {
		.size_bytes = size_bytes,
		.block_bytes = 512,
		.align_bytes = 512,
		.io_max_bytes = 8 * MIB,
		.can_flush = true,
		.can_fua = true,
	};
	return p;
}

static void rig_sample(const struct load_sample *s, void *arg)
{
	struct rig *g = arg;

	if (g->samples)
		assert_int_equal(s->from_ns, g->to_ns);
	else
		g->from_ns = s->from_ns;
	assert_false(g->stopped);
	assert_int_equal(s->read.ops, s->read.service.count);
	if (g->samples < FIRST)
		memcpy(&g->first[g->samples], s, sizeof(*s));
	g->to_ns = s->to_ns;
	g->reads += s->read.ops;
	g->writes += s->write.ops;
	g->bytes += s->read.bytes + s->write.bytes;
	g->errors += s->read.errors + s->write.errors;
	g->scheduled += s->scheduled;
	g->backlog = s->backlog;
	g->inflight = s->inflight;
	g->bound |= s->bound;
	g->late_max_ns = fmax(g->late_max_ns, s->late_mean_ns);
	if (s->last_error)
		g->last_error = s->last_error;
	hist_merge(g->service, &s->read.service);
	hist_merge(g->service, &s->write.service);
	hist_merge(g->response, &s->read.response);
	hist_merge(g->response, &s->write.response);
	if (++g->samples == g->stop_at_sample)
		load_stop(g->load);
}

static void rig_stopped(void *arg)
{
	((struct rig *)arg)->stopped++;
}

void rig_target(struct rig *g, uint64_t delay_ns)
{
	const struct delay_opts delay = { delay_ns, delay_ns, 0.0 };
	const unsigned i = g->opts.targets++;

	g->probe[i] = probe_new(g->reactor, TARGET_BYTES);
	assert_int_equal(bdev_delay_open(&g->probe[i]->bdev, &delay,
					 &g->target[i], NULL),
			 0);
	g->opts.target[i] = g->target[i];
}

struct rig *rig_new(enum reactor_kind kind)
{
	const struct reactor_opts opts = { .kind = kind, .seed = 1 };
	struct rig *g = calloc(1, sizeof(*g));

	assert_int_equal(reactor_new(&opts, &g->reactor, NULL), 0);
	g->service = malloc(sizeof(*g->service));
	g->response = malloc(sizeof(*g->response));
	g->first = calloc(FIRST, sizeof(*g->first));
	hist_reset(g->service);
	hist_reset(g->response);
	g->workload = (struct workload) {
		.read_share = 1.0,
		.random_share = 1.0,
		.read_sizes = { { 4096, 1.0 } },
		.read_size_count = 1,
		.compress_ratio = 1.0,
	};
	g->opts = (struct load_opts) {
		.workload = &g->workload,
		.rate = { .outstanding = 32 },
		.seed = 1,
		.interval_ns = SEC_NS,
		.sample = rig_sample,
		.stopped = rig_stopped,
		.arg = g,
	};
	return g;
}

void rig_run_for(struct rig *g, uint64_t ns)
{
	const uint64_t end_ns = reactor_now(g->reactor) + ns;

	while (reactor_now(g->reactor) < end_ns)
		reactor_run_once(g->reactor, end_ns - reactor_now(g->reactor));
}

void rig_start(struct rig *g)
{
	struct err err = { 0 };

	if (load_start(g->reactor, &g->opts, &g->load, &err))
		fail_msg("%s", err.text);
}

void rig_stop(struct rig *g)
{
	load_stop(g->load);
	assert_int_equal(g->stopped, 0); /* never from inside the call */
	while (!g->stopped)
		reactor_run_once(g->reactor, UINT64_MAX);
	assert_int_equal(g->stopped, 1);
	assert_int_equal(g->inflight, 0);
}

void rig_free(struct rig *g)
{
	load_free(g->load);
	for (unsigned i = 0; i < g->opts.targets; i++)
		if (g->target[i])
			bdev_close_sync(g->target[i]);
	reactor_free(g->reactor);
	free(g->service);
	free(g->response);
	free(g->first);
	free(g);
}

uint64_t quantile(const struct hist *h, double fraction)
{
	uint64_t ns = 0;

	assert_int_equal(hist_quantile(h, fraction, &ns), 0);
	return ns;
}

void within(double got, double want, double share)
{
	if (fabs(got - want) > share * want)
		fail_msg("%g is not within %g %% of %g", got, share * 100,
			 want);
}
