/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Closed loop, and what is common to both loops; in virtual time, but one. */
#include "tests/engine/load_rig.h"

/* ---- closed loop -------------------------------------------------------- */

static void closed_loop_keeps_its_depth(void **state)
{
	static const unsigned depth[] = { 1, 7, 32, 256 };

	(void)state;
	for (size_t i = 0; i < array_len(depth); i++) {
		struct rig *g = rig_new(REACTOR_SIM);

		rig_target(g, MSEC_NS);
		g->opts.rate.outstanding = depth[i];
		rig_start(g);
		rig_run_for(g, 2 * SEC_NS + 1);
		within((double)g->reads, 2000.0 * depth[i], 0.002);
		assert_int_equal(g->inflight, depth[i]);
		assert_int_equal(g->response->count, 0);
		within((double)quantile(g->service, 1.0), MSEC_NS, 0.001);
		within((double)quantile(g->service, 1e-6), MSEC_NS, 0.001);
		rig_stop(g);
		assert_int_equal(g->probe[0]->ops[BDEV_READ], g->reads);
		assert_int_equal(g->probe[0]->bytes, g->bytes);
		rig_free(g);
	}
}

static void reads_and_writes_are_told_apart(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, MSEC_NS);
	g->workload.read_share = 0.7;
	g->workload.write_sizes[0] = (struct load_size) { 8192, 1.0 };
	g->workload.write_size_count = 1;
	g->workload.fua = true;
	rig_start(g);
	rig_run_for(g, 2 * SEC_NS);
	rig_stop(g);
	assert_int_equal(g->probe[0]->ops[BDEV_READ], g->reads);
	assert_int_equal(g->probe[0]->ops[BDEV_WRITE], g->writes);
	assert_int_equal(g->probe[0]->fua, g->writes);
	assert_int_equal(g->bytes, g->reads * 4096 + g->writes * 8192);
	within((double)g->reads, 0.7 * (double)(g->reads + g->writes), 0.02);
	assert_true(g->probe[0]->first_word != 0);
	rig_free(g);
}

static void a_flush_follows_so_many_writes(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, MSEC_NS);
	g->workload.read_share = 0.0;
	g->workload.flush_every = 8;
	g->opts.rate.outstanding = 1;
	rig_start(g);
	rig_run_for(g, 2 * SEC_NS);
	rig_stop(g);
	assert_true(g->writes > 1000);
	assert_int_equal(g->probe[0]->unflushed_most, 8);
	within((double)g->probe[0]->ops[BDEV_FLUSH], (double)g->writes / 8,
	       0.01);
	assert_int_equal(g->service->count, g->writes);
	rig_free(g);
}

static void targets_share_the_load(void **state)
{
	static const double iops[] = { 0.0, 2000.0 };

	(void)state;
	for (size_t k = 0; k < array_len(iops); k++) {
		struct rig *g = rig_new(REACTOR_SIM);

		for (unsigned i = 0; i < 4; i++)
			rig_target(g, MSEC_NS);
		g->opts.rate.iops = iops[k];
		rig_start(g);
		rig_run_for(g, SEC_NS);
		rig_stop(g);
		for (unsigned i = 0; i < 4; i++)
			within((double)g->probe[i]->ops[BDEV_READ],
			       (double)g->reads / 4, 0.01);
		rig_free(g);
	}
}

/* Fewer slots than targets: each still gets its turn. */
static void one_slot_visits_all_targets(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		rig_target(g, MSEC_NS);
	g->opts.rate.outstanding = 1;
	rig_start(g);
	rig_run_for(g, SEC_NS);
	rig_stop(g);
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(g->probe[i]->ops[BDEV_READ], 300, 340);
	rig_free(g);
}

static void a_closed_loop_pauses(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, MSEC_NS);
	rig_start(g);
	rig_run_for(g, SEC_NS);
	load_pause(g->load, true);
	rig_run_for(g, SEC_NS + 1);
	assert_int_equal(g->inflight, 0);
	load_pause(g->load, false);
	rig_run_for(g, SEC_NS);
	assert_int_equal(g->inflight, 32);
	rig_stop(g);
	within((double)g->reads, 64000, 0.002);
	rig_free(g);
}

/* ---- samples, starting, stopping, failing ------------------------------- */

static void intervals_end_at_their_boundaries(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);
	uint64_t ops = 0;

	(void)state;
	rig_target(g, 7 * MSEC_NS + 1);
	g->opts.interval_ns = 100 * MSEC_NS;
	g->opts.start_ns = reactor_now(g->reactor) + 3 * SEC_NS;
	rig_start(g);
	rig_run_for(g, 3 * SEC_NS - 1);
	assert_int_equal(g->samples, 0);
	assert_int_equal(g->probe[0]->ops[BDEV_READ], 0);
	rig_run_for(g, 2 * SEC_NS + 5 * MSEC_NS);
	assert_int_equal(g->samples, 20);
	for (unsigned i = 0; i < 20; i++) {
		const struct load_sample *s = &g->first[i];
		/* Rounds of 32 end at 7, 14, ... ms after the start. */
		const uint64_t before = i * 100 * MSEC_NS / (7 * MSEC_NS + 1);
		const uint64_t after =
			(i + 1) * 100 * MSEC_NS / (7 * MSEC_NS + 1);

		assert_int_equal(s->from_ns,
				 g->opts.start_ns + i * 100 * MSEC_NS);
		assert_int_equal(s->to_ns, s->from_ns + 100 * MSEC_NS);
		assert_int_equal(s->read.ops, 32 * (after - before));
		ops += s->read.ops;
	}
	assert_int_equal(ops, g->reads);
	rig_stop(g);
	assert_int_equal(g->samples, 21); /* and the rest */
	assert_int_equal(g->probe[0]->ops[BDEV_READ], g->reads);
	rig_free(g);
}

static void a_silent_target_still_gives_samples(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, 3500 * MSEC_NS);
	rig_start(g);
	rig_run_for(g, 3 * SEC_NS + 1);
	assert_int_equal(g->samples, 3);
	assert_int_equal(g->reads, 0);
	assert_int_equal(g->inflight, 32);
	rig_stop(g);
	assert_int_equal(g->reads, 32);
	rig_free(g);
}

static void a_sample_may_stop_the_job(void **state)
{
	static const double iops[] = { 0.0, 1000.0 };

	(void)state;
	for (size_t i = 0; i < array_len(iops); i++) {
		struct rig *g = rig_new(REACTOR_SIM);

		rig_target(g, MSEC_NS);
		g->opts.rate.iops = iops[i];
		g->stop_at_sample = 2;
		rig_start(g);
		while (!g->stopped)
			reactor_run_once(g->reactor, UINT64_MAX);
		assert_true(g->to_ns - g->from_ns <= 2 * SEC_NS + 2 * MSEC_NS);
		rig_free(g);
	}
}

static void stopping_before_the_start_is_quiet(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, MSEC_NS);
	g->opts.start_ns = reactor_now(g->reactor) + SEC_NS;
	rig_start(g);
	rig_stop(g);
	rig_run_for(g, 2 * SEC_NS);
	assert_int_equal(g->probe[0]->ops[BDEV_READ], 0);
	assert_int_equal(g->samples, 0);
	rig_free(g);
}

static void failures_are_counted_and_rest(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, 0);
	g->probe[0]->fail = true;
	rig_start(g);
	rig_run_for(g, 100 * MSEC_NS);
	g->probe[0]->fail = false;
	bdev_delay_set(g->target[0],
		       &(struct delay_opts) { MSEC_NS, MSEC_NS, 0.0 });
	rig_run_for(g, 900 * MSEC_NS);
	rig_stop(g);
	assert_int_equal(g->last_error, -EIO);
	within((double)g->errors, 3200, 0.05); /* not millions */
	within((double)g->reads, 900 * 32, 0.05);
	assert_int_equal(g->service->count, g->reads);
	rig_free(g);
}

static void the_same_seed_gives_the_same_run(void **state)
{
	uint64_t sum[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rig *g = rig_new(REACTOR_SIM);

		rig_target(g, 100 * USEC_NS);
		g->workload.read_share = 0.5;
		g->opts.rate.iops = 5000;
		g->opts.rate.schedule = LOAD_POISSON;
		rig_start(g);
		rig_run_for(g, SEC_NS);
		rig_stop(g);
		sum[i] = g->response->sum_ns + g->reads * 1000003 +
			 g->probe[0]->first_word;
		rig_free(g);
	}
	assert_int_equal(sum[0], sum[1]);
}

static void bad_jobs_are_refused(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);
	struct load *load = NULL;
	struct err err;

	(void)state;
	rig_run_for(g, 10 * SEC_NS);
	rig_target(g, MSEC_NS);
#define REFUSED(what, ...)                                               \
	do {                                                             \
		const struct load_opts good = g->opts;                   \
		__VA_ARGS__;                                             \
		assert_int_equal(                                        \
			load_start(g->reactor, &g->opts, &load, &err),   \
			-EINVAL);                                        \
		if (!strstr(err.text, what))                             \
			fail_msg("\"%s\" lacks \"%s\"", err.text, what); \
		g->opts = good;                                          \
	} while (0)
	REFUSED("0 outstanding", g->opts.rate.outstanding = 0);
	REFUSED("4097 outstanding", g->opts.rate.outstanding = 4097);
	REFUSED("rate of -1", g->opts.rate.iops = -1.0);
	REFUSED("rate of 1e+09", g->opts.rate.iops = 1e9);
	REFUSED("rate of nan", g->opts.rate.iops = NAN);
	REFUSED("interval of 0.010 s", g->opts.interval_ns = 10 * MSEC_NS);
	REFUSED("0 targets", g->opts.targets = 0);
	REFUSED("s ago", g->opts.start_ns = 1);
	g->workload.read_sizes[0].bytes = 8 * MIB;
	REFUSED("of buffers", g->opts.rate.outstanding = 4096);
	assert_null(load);
	load_free(NULL);
	rig_free(g);
}

/* ---- late completions --------------------------------------------------- */

/* Completes its one io by a timer that fires in time and then dawdles. */
struct dawdler {
	struct bdev bdev;
	struct timer timer;
	struct io *io;
	uint64_t until_ns;
};

static void dawdler_fire(struct timer *timer)
{
	struct dawdler *d = container_of(timer, struct dawdler, timer);

	while (reactor_now(d->bdev.reactor) < d->until_ns)
		;
	bdev_complete(d->io, 0);
}

static void dawdler_submit(struct bdev *bdev, struct io *io)
{
	struct dawdler *d = container_of(bdev, struct dawdler, bdev);

	d->io = io;
	timer_arm(bdev->reactor, &d->timer,
		  reactor_now(bdev->reactor) + MSEC_NS);
}

static void dawdler_close(struct bdev *bdev)
{
	bdev_closed(bdev);
}

static const struct bdev_ops dawdler_ops = {
	.kind = "dawdler",
	.submit = dawdler_submit,
	.close = dawdler_close,
};

/*
 * In real time: a completion that is seen behind a boundary, before the
 * boundary's own timer has run, is of the next interval; and the boundary stays
 * where it was.
 */
static void what_is_seen_late_is_of_the_next_interval(void **state)
{
	struct rig *g = rig_new(REACTOR_AUTO);
	struct dawdler *d = calloc(1, sizeof(*d));

	(void)state;
	bdev_init(&d->bdev, &dawdler_ops, g->reactor, "dawdler");
	d->bdev.limits = (struct bdev_limits) {
		.size_bytes = MIB,
		.block_bytes = 512,
		.align_bytes = 512,
		.io_max_bytes = MIB,
	};
	d->timer.fn = dawdler_fire;
	g->target[0] = g->opts.target[0] = &d->bdev;
	g->opts.targets = 1;
	g->opts.rate.outstanding = 1;
	g->opts.interval_ns = 100 * MSEC_NS;
	g->opts.start_ns = reactor_now(g->reactor);
	g->stop_at_sample = 1;
	d->until_ns = g->opts.start_ns + 130 * MSEC_NS;
	rig_start(g);
	while (!g->stopped)
		reactor_run_once(g->reactor, UINT64_MAX);
	assert_int_equal(g->first[0].read.ops, 0);
	assert_int_equal(g->first[0].to_ns, g->opts.start_ns + 100 * MSEC_NS);
	assert_int_equal(g->reads, 1);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_loop_keeps_its_depth),
		cmocka_unit_test(reads_and_writes_are_told_apart),
		cmocka_unit_test(a_flush_follows_so_many_writes),
		cmocka_unit_test(targets_share_the_load),
		cmocka_unit_test(one_slot_visits_all_targets),
		cmocka_unit_test(a_closed_loop_pauses),
		cmocka_unit_test(intervals_end_at_their_boundaries),
		cmocka_unit_test(a_silent_target_still_gives_samples),
		cmocka_unit_test(what_is_seen_late_is_of_the_next_interval),
		cmocka_unit_test(a_sample_may_stop_the_job),
		cmocka_unit_test(stopping_before_the_start_is_quiet),
		cmocka_unit_test(failures_are_counted_and_rest),
		cmocka_unit_test(the_same_seed_gives_the_same_run),
		cmocka_unit_test(bad_jobs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
