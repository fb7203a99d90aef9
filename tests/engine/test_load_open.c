/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Open loop: schedules kept, stalls seen whole, pauses. Virtual time, but for
 * a few jobs in real time, and what those prove is counts, not speed.
 */
#include "tests/engine/load_rig.h"

#include <unistd.h>

/* ---- open loop ---------------------------------------------------------- */

static void open_loop_at(double iops, enum load_schedule schedule)
{
	struct rig *g = rig_new(REACTOR_SIM);

	rig_target(g, 80 * USEC_NS);
	g->opts.rate.iops = iops;
	g->opts.rate.schedule = schedule;
	g->opts.rate.outstanding = 256;
	rig_start(g);
	rig_run_for(g, 4 * SEC_NS + MSEC_NS);
	assert_int_equal(g->samples, 4);
	if (schedule == LOAD_UNIFORM)
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(g->first[i].scheduled, iops);
	within((double)g->reads, (double)g->scheduled, 0.002);
	assert_int_equal(g->reads + g->inflight + g->backlog, g->scheduled);
	/* Poisson: within six deviations of what was asked. */
	within((double)g->scheduled, 4 * iops, 6 / sqrt(4 * iops));
	rig_stop(g);
	assert_int_equal(g->reads + g->backlog, g->scheduled);
	rig_free(g);
}

static void uniform_rates_are_kept(void **state)
{
	(void)state;
	open_loop_at(1000, LOAD_UNIFORM);
	open_loop_at(10000, LOAD_UNIFORM);
	open_loop_at(50000, LOAD_UNIFORM);
}

static void poisson_rates_are_kept(void **state)
{
	(void)state;
	open_loop_at(1000, LOAD_POISSON);
	open_loop_at(10000, LOAD_POISSON);
	open_loop_at(50000, LOAD_POISSON);
}

/*
 * 1000 a second for 10 s with a stall of 200 ms after 5 s: the 200 arrivals of
 * the stall wait 200, 199, ... 1 ms. They are 2 % of all, so the 99th
 * percentile lies in the middle of them. Service times show the 16 alone that
 * were in flight.
 */
static void a_stall_shows_in_the_response_time(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, 50 * USEC_NS);
	g->opts.rate.iops = 1000;
	g->opts.rate.outstanding = 16;
	rig_start(g);
	rig_run_for(g, 5 * SEC_NS);
	bdev_delay_stall(g->target[0], 200 * MSEC_NS);
	rig_run_for(g, 5 * SEC_NS);
	rig_stop(g);
	within((double)g->reads, 10000, 0.0002);
	within((double)g->response->max_ns, 200 * MSEC_NS, 0.01);
	within((double)quantile(g->response, 0.99), 100 * MSEC_NS, 0.02);
	within((double)quantile(g->response, 0.985), 50 * MSEC_NS, 0.03);
	within((double)quantile(g->response, 0.995), 150 * MSEC_NS, 0.02);
	within((double)quantile(g->response, 0.97), 50 * USEC_NS, 0.01);
	within((double)quantile(g->service, 0.99), 50 * USEC_NS, 0.01);
	within((double)quantile(g->service, 0.9995), 190 * MSEC_NS, 0.06);
	assert_int_equal(g->bound, 0);
	rig_free(g);
}

/* Half of what is asked can be had: the rest waits, and is counted. */
static void what_the_target_cannot_take_is_backlog(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, MSEC_NS);
	g->opts.rate.iops = 10000;
	g->opts.rate.outstanding = 5;
	rig_start(g);
	rig_run_for(g, 4 * SEC_NS);
	assert_int_equal(g->samples, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(g->first[i].scheduled, 10000);
		within((double)g->first[i].backlog, 5000.0 * (i + 1), 0.01);
		assert_int_equal(g->first[i].inflight, 5);
		assert_int_equal(g->first[i].late_mean_ns, 0);
	}
	/* The last of them had been due for two seconds. */
	within((double)g->response->max_ns, 2 * SEC_NS, 0.01);
	within((double)g->service->max_ns, MSEC_NS, 0.01);
	assert_int_equal(g->bound, 0);
	rig_stop(g);
	assert_int_equal(g->reads + g->backlog, g->scheduled);
	rig_free(g);
}

static void a_pause_moves_the_schedule(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, 50 * USEC_NS);
	g->opts.rate.iops = 1000;
	rig_start(g);
	rig_run_for(g, 1500 * MSEC_NS + MSEC_NS / 2);
	load_pause(g->load, true);
	load_pause(g->load, true);
	rig_run_for(g, 3 * SEC_NS);
	load_pause(g->load, false);
	rig_run_for(g, 1500 * MSEC_NS);
	rig_stop(g);
	assert_true(g->samples >= 6);
	assert_int_equal(g->first[0].scheduled, 1000);
	assert_int_equal(g->first[1].scheduled, 501);
	assert_int_equal(g->first[2].scheduled, 0);
	assert_int_equal(g->first[3].scheduled, 0);
	assert_int_equal(g->first[4].scheduled, 499);
	assert_int_equal(g->first[5].scheduled, 1000);
	assert_in_range(g->reads, 3000, 3001);
	assert_true(g->response->max_ns < 52 * USEC_NS);
	rig_free(g);
}

/* What had waited 30 ms before the pause has waited 30 ms after it. */
static void a_pause_keeps_what_had_been_waited(void **state)
{
	struct rig *g = rig_new(REACTOR_SIM);

	(void)state;
	rig_target(g, 50 * USEC_NS);
	g->opts.rate.iops = 1000;
	g->opts.rate.outstanding = 1;
	rig_start(g);
	rig_run_for(g, 500 * MSEC_NS);
	bdev_delay_stall(g->target[0], 30 * MSEC_NS);
	rig_run_for(g, 30 * MSEC_NS - USEC_NS);
	load_pause(g->load, true);
	rig_run_for(g, SEC_NS);
	load_pause(g->load, false);
	rig_run_for(g, SEC_NS);
	rig_stop(g);
	assert_true(g->response->max_ns <= 31 * MSEC_NS);
	assert_true(g->response->max_ns >= 28 * MSEC_NS);
	assert_int_equal(g->reads + g->backlog, g->scheduled);
	rig_free(g);
}

/* ---- in real time ------------------------------------------------------- */

/*
 * On a machine of any load: every arrival that time has brought is either done
 * or, when the job was stopped, still in the backlog; none is lost or made up,
 * and their number is that of the time that passed.
 */
static void real_time_loses_no_arrival(void **state)
{
	struct rig *g = rig_new(REACTOR_AUTO);
	double seconds;

	(void)state;
	g->opts.targets = 1;
	assert_int_equal(bdev_null_open(g->reactor, "null", GIB, 4096,
					&g->target[0], NULL),
			 0);
	g->opts.target[0] = g->target[0];
	g->opts.rate.iops = 10000;
	g->opts.interval_ns = 100 * MSEC_NS;
	rig_start(g);
	while (g->samples < 4)
		reactor_run_once(g->reactor, UINT64_MAX);
	seconds = (double)(g->to_ns - g->from_ns) / 1e9;
	assert_true(fabs((double)g->scheduled - 10000 * seconds) <= 1.0);
	rig_stop(g);
	assert_int_equal(g->reads + g->backlog, g->scheduled);
	assert_int_equal(g->response->count, g->reads);
	assert_true(g->response->min_ns >= g->service->min_ns);
	rig_free(g);
}

/*
 * Ten million writes of 1 MiB a second to a null device: only the generator,
 * which stamps each sector, can be what holds them back, and it says so. Needs
 * the kernel's account of waiting for a CPU, or a busy machine would look like
 * an idle generator.
 */
static void a_generator_that_cannot_says_so(void **state)
{
	struct rig *g;

	(void)state;
	if (access("/proc/thread-self/schedstat", R_OK))
		skip();
	g = rig_new(REACTOR_AUTO);
	g->opts.targets = 1;
	assert_int_equal(bdev_null_open(g->reactor, "null", GIB, 4096,
					&g->target[0], NULL),
			 0);
	g->opts.target[0] = g->target[0];
	g->workload.read_share = 0.0;
	g->workload.read_sizes[0].bytes = MIB;
	g->opts.rate.iops = 1e7;
	g->opts.rate.outstanding = 4;
	g->opts.interval_ns = 100 * MSEC_NS;
	rig_start(g);
	while (g->samples < 2)
		reactor_run_once(g->reactor, UINT64_MAX);
	assert_int_equal(g->bound, LOAD_BOUND_CPU);
	rig_stop(g);
	rig_free(g);
}

/* A target that takes 10 ms is what holds 10 000 a second back. */
static void a_slow_target_is_not_the_generator(void **state)
{
	struct rig *g = rig_new(REACTOR_AUTO);

	(void)state;
	rig_target(g, 10 * MSEC_NS);
	g->opts.rate.iops = 10000;
	g->opts.rate.outstanding = 2;
	g->opts.interval_ns = 100 * MSEC_NS;
	rig_start(g);
	while (g->samples < 2)
		reactor_run_once(g->reactor, UINT64_MAX);
	assert_int_equal(g->bound, 0);
	assert_true(g->backlog > 0);
	rig_stop(g);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_rates_are_kept),
		cmocka_unit_test(poisson_rates_are_kept),
		cmocka_unit_test(a_stall_shows_in_the_response_time),
		cmocka_unit_test(what_the_target_cannot_take_is_backlog),
		cmocka_unit_test(a_pause_moves_the_schedule),
		cmocka_unit_test(a_pause_keeps_what_had_been_waited),
		cmocka_unit_test(real_time_loses_no_arrival),
		cmocka_unit_test(a_generator_that_cannot_says_so),
		cmocka_unit_test(a_slow_target_is_not_the_generator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
