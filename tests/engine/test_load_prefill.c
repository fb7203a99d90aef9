/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prefill: every block once, flushed at the end, stopped and failed cleanly. */
#include "tests/engine/load_rig.h"

struct fill {
	struct reactor *reactor;
	struct probe *probe;
	struct bdev *target;
	struct prefill_opts opts;
	struct prefill *prefill;
	uint64_t done_bytes;
	unsigned reports, ended;
	int result;
};

static void fill_progress(uint64_t done_bytes, void *arg)
{
	struct fill *f = arg;

	assert_true(done_bytes >= f->done_bytes);
	f->done_bytes = done_bytes;
	f->reports++;
}

static void fill_done(int result, void *arg)
{
	struct fill *f = arg;

	f->ended++;
	f->result = result;
}

static void fill_open(struct fill *f, uint64_t size_bytes, uint64_t delay_ns)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = 1 };
	const struct delay_opts delay = { delay_ns, delay_ns, 0.0 };

	memset(f, 0, sizeof(*f));
	assert_int_equal(reactor_new(&opts, &f->reactor, NULL), 0);
	f->probe = probe_new(f->reactor, size_bytes);
	f->probe->seen = calloc(size_bytes / 4096 + 1, 1);
	assert_int_equal(
		bdev_delay_open(&f->probe->bdev, &delay, &f->target, NULL), 0);
	f->opts = (struct prefill_opts) {
		.target = f->target,
		.compress_ratio = 1.0,
		.seed = 1,
		.progress = fill_progress,
		.done = fill_done,
		.arg = f,
	};
}

static void fill_start(struct fill *f)
{
	struct err err = { 0 };

	if (prefill_start(f->reactor, &f->opts, &f->prefill, &err))
		fail_msg("%s", err.text);
}

static void fill_wait(struct fill *f)
{
	while (!f->ended)
		reactor_run_once(f->reactor, UINT64_MAX);
	reactor_run_once(f->reactor, 10 * SEC_NS);
	assert_int_equal(f->ended, 1);
}

static void fill_close(struct fill *f)
{
	prefill_free(f->prefill);
	free(f->probe->seen);
	bdev_close_sync(f->target);
	reactor_free(f->reactor);
}

static void every_block_is_written_once(void **state)
{
	static const uint64_t size[] = { 4096, 1 * MIB, 64 * MIB,
					 17 * MIB + 3 * 4096 };

	(void)state;
	for (size_t i = 0; i < array_len(size); i++) {
		struct fill f;

		fill_open(&f, size[i], MSEC_NS);
		fill_start(&f);
		fill_wait(&f);
		assert_int_equal(f.result, 0);
		assert_int_equal(f.done_bytes, size[i]);
		assert_int_equal(f.probe->bytes, size[i]);
		assert_int_equal(f.probe->ops[BDEV_FLUSH], 1);
		assert_int_equal(f.probe->writes_unflushed, 0);
		for (uint64_t b = 0; b < size[i] / 4096; b++)
			assert_int_equal(f.probe->seen[b], 1);
		fill_close(&f);
	}
}

static void a_part_leaves_the_rest_alone(void **state)
{
	struct fill f;

	(void)state;
	fill_open(&f, 16 * MIB, MSEC_NS);
	f.opts.bytes = 5 * MIB + 512;
	f.opts.io_bytes = 64 * KIB;
	f.opts.outstanding = 3;
	fill_start(&f);
	fill_wait(&f);
	assert_int_equal(f.done_bytes, 5 * MIB + 512);
	assert_int_equal(f.probe->ops[BDEV_WRITE], 81);
	assert_int_equal(f.probe->seen[5 * MIB / 4096], 1);
	assert_int_equal(f.probe->seen[5 * MIB / 4096 + 1], 0);
	fill_close(&f);
}

/* Eight at a time, 10 ms each: 800 MiB in a second. */
static void progress_comes_ten_times_a_second(void **state)
{
	struct fill f;

	(void)state;
	fill_open(&f, 800 * MIB, 10 * MSEC_NS);
	fill_start(&f);
	fill_wait(&f);
	assert_in_range(f.reports, 10, 12);
	fill_close(&f);
}

static void writes_are_whole_stripes(void **state)
{
	struct fill f;

	(void)state;
	fill_open(&f, 12 * MIB, MSEC_NS);
	f.target->limits.io_opt_bytes = 3 * 256 * KIB;
	fill_start(&f);
	fill_wait(&f);
	assert_int_equal(f.probe->ops[BDEV_WRITE], 8); /* of 1.5 MiB */
	fill_close(&f);
}

static void a_stop_ends_it_early(void **state)
{
	struct fill f;

	(void)state;
	fill_open(&f, 800 * MIB, 10 * MSEC_NS);
	fill_start(&f);
	reactor_run_once(f.reactor, 5 * MSEC_NS);
	prefill_stop(f.prefill);
	assert_int_equal(f.ended, 0);
	fill_wait(&f);
	assert_int_equal(f.result, -ECANCELED);
	assert_int_equal(f.probe->ops[BDEV_WRITE], 8);
	assert_int_equal(f.probe->ops[BDEV_FLUSH], 0);
	fill_close(&f);
}

static void a_failure_ends_it_early(void **state)
{
	struct fill f;

	(void)state;
	fill_open(&f, 800 * MIB, 10 * MSEC_NS);
	f.probe->fail = true;
	fill_start(&f);
	fill_wait(&f);
	assert_int_equal(f.result, -EIO);
	assert_int_equal(f.done_bytes, 0);
	assert_true(f.probe->ops[BDEV_WRITE] <= 16);
	fill_close(&f);
}

static void bad_prefills_are_refused(void **state)
{
	struct fill f;
	struct err err;

	(void)state;
	fill_open(&f, 16 * MIB, MSEC_NS);
#define REFUSED(field, value, what)                                          \
	do {                                                                 \
		const struct prefill_opts good = f.opts;                     \
		f.opts.field = (value);                                      \
		assert_int_equal(                                            \
			prefill_start(f.reactor, &f.opts, &f.prefill, &err), \
			-EINVAL);                                            \
		assert_non_null(strstr(err.text, what));                     \
		f.opts = good;                                               \
	} while (0)
	REFUSED(bytes, 17 * MIB, "17825792 bytes");
	REFUSED(bytes, 100, "100 bytes");
	REFUSED(io_bytes, 16 * MIB, "writes of 16777216");
	REFUSED(io_bytes, 1000, "writes of 1000");
	REFUSED(outstanding, 5000, "5000 outstanding");
	REFUSED(compress_ratio, 0.0, "compress_ratio: 0");
	assert_null(f.prefill);
	fill_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_is_written_once),
		cmocka_unit_test(a_part_leaves_the_rest_alone),
		cmocka_unit_test(progress_comes_ten_times_a_second),
		cmocka_unit_test(writes_are_whole_stripes),
		cmocka_unit_test(a_stop_ends_it_early),
		cmocka_unit_test(a_failure_ends_it_early),
		cmocka_unit_test(bad_prefills_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
