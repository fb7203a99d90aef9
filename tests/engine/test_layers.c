/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What each layer adds, measured on a simulated clock, so to the nanosecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/bdev/file.h"
#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"

#define SIZE (64 * MIB)

static struct reactor *r;

static int sim_make(void **state)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = 42 };

	(void)state;
	return reactor_new(&opts, &r, NULL);
}

static int sim_free(void **state)
{
	(void)state;
	reactor_free(r);
	return 0;
}

static struct bdev *null_make(void)
{
	struct bdev *bdev = NULL;

	assert_int_equal(bdev_null_open(r, "d", SIZE, 512, &bdev, NULL), 0);
	return bdev;
}

/* ---- a stream: keeps `depth` io in flight until `count` are done -------- */

struct stream {
	struct bdev *bdev;
	enum bdev_op op;
	uint32_t len;
	unsigned left, inflight, errors;
	int last_error;
	uint64_t end_ns;
	struct io io[64];
};

static void stream_next(struct stream *s, struct io *io)
{
	s->left--;
	s->inflight++;
	bdev_submit(s->bdev, io);
}

static void stream_done(struct io *io)
{
	struct stream *s = io->arg;

	s->inflight--;
	s->end_ns = reactor_now(r);
	if (io->result) {
		s->errors++;
		s->last_error = io->result;
	}
	if (s->left)
		stream_next(s, io);
}

static void stream_start(struct stream *s, struct bdev *bdev, enum bdev_op op,
			 uint32_t len, unsigned depth, unsigned count)
{
	*s = (struct stream) {
		.bdev = bdev, .op = op, .len = len, .left = count
	};
	for (unsigned i = 0; i < depth; i++) {
		s->io[i] = (struct io) { .op = (uint8_t)op,
					 .len = len,
					 .done = stream_done,
					 .arg = s };
		stream_next(s, &s->io[i]);
	}
}

static void stream_wait(struct stream *s)
{
	while (s->inflight)
		reactor_run_once(r, UINT64_MAX);
}

static uint64_t stream_run(struct bdev *bdev, enum bdev_op op, uint32_t len,
			   unsigned depth, unsigned count)
{
	const uint64_t from = reactor_now(r);
	struct stream s;

	stream_start(&s, bdev, op, len, depth, count);
	stream_wait(&s);
	assert_int_equal(s.errors, 0);
	return s.end_ns - from;
}

/* ---- slice -------------------------------------------------------------- */

static void slice_shows_its_range_alone(void **state)
{
	struct bdev *mem, *slice;
	uint8_t buf[512];
	struct err err;

	(void)state;
	assert_int_equal(bdev_mem_open(r, "m", MIB, 512, &mem, NULL), 0);
	memset(buf, 1, sizeof(buf));
	assert_int_equal(bdev_io_sync(mem, BDEV_WRITE, 0, 65536, buf, 512), 0);
	assert_int_equal(bdev_slice_open(mem, "s", 100, 512, &slice, &err),
			 -EINVAL);
	assert_int_equal(bdev_slice_open(mem, "s", 0, MIB + 512, &slice, &err),
			 -EINVAL);
	assert_int_equal(
		bdev_slice_open(mem, "s", UINT64_MAX - 511, 1024, &slice, &err),
		-EINVAL);
	assert_int_equal(bdev_slice_open(mem, "s", 65536, 1024, &slice, &err),
			 0);
	assert_string_equal(slice->name, "s");
	memset(buf, 0, sizeof(buf));
	assert_int_equal(bdev_io_sync(slice, BDEV_READ, 0, 0, buf, 512), 0);
	assert_int_equal(buf[0], 1);
	assert_int_equal(bdev_io_sync(slice, BDEV_READ, 0, 1024, buf, 512),
			 -EINVAL);
	bdev_close_sync(slice);
}

/* ---- delay -------------------------------------------------------------- */

static void delay_adds_its_time(void **state)
{
	const struct delay_opts opts = { 100 * USEC_NS, 250 * USEC_NS, 0.0 };
	struct bdev *bdev;

	(void)state;
	assert_int_equal(bdev_delay_open(null_make(), &opts, &bdev, NULL), 0);
	assert_int_equal(stream_run(bdev, BDEV_READ, 4096, 1, 10),
			 10 * 100 * USEC_NS);
	assert_int_equal(stream_run(bdev, BDEV_READ, 4096, 8, 80),
			 10 * 100 * USEC_NS);
	assert_int_equal(stream_run(bdev, BDEV_WRITE, 4096, 1, 10),
			 10 * 250 * USEC_NS);
	bdev_close_sync(bdev);
}

static void delay_spreads_about_its_mean(void **state)
{
	enum { N = 20000 };
	const struct delay_opts opts = { 100 * USEC_NS, 0, 1.0 };
	const struct delay_opts half = { 100 * USEC_NS, 0, 0.5 };
	const struct delay_opts bad = { 0, 0, 1.5 };
	struct bdev *bdev, *null = null_make();
	double mean;

	(void)state;
	assert_int_equal(bdev_delay_open(null, &bad, &bdev, NULL), -EINVAL);
	assert_int_equal(bdev_delay_open(null, &opts, &bdev, NULL), 0);
	mean = (double)stream_run(bdev, BDEV_READ, 4096, 1, N) / N;
	assert_true(fabs(mean / 1e5 - 1.0) < 0.03);
	bdev_delay_set(bdev, &half);
	for (int i = 0; i < 100; i++)
		assert_true(stream_run(bdev, BDEV_READ, 4096, 1, 1) >=
			    50 * USEC_NS);
	bdev_close_sync(bdev);
}

/* What was under way, and what comes during it, is back at its end. */
static void a_stall_holds_everything(void **state)
{
	const struct delay_opts opts = { 100 * USEC_NS, 0, 0.0 };
	struct stream before, during;
	struct bdev *bdev;
	uint64_t from;

	(void)state;
	assert_int_equal(bdev_delay_open(null_make(), &opts, &bdev, NULL), 0);
	stream_start(&before, bdev, BDEV_READ, 4096, 4, 4);
	from = reactor_now(r);
	bdev_delay_stall(bdev, 200 * MSEC_NS);
	reactor_run_once(r, 50 * MSEC_NS);
	stream_start(&during, bdev, BDEV_WRITE, 4096, 4, 4);
	stream_wait(&before);
	stream_wait(&during);
	assert_int_equal(before.end_ns, from + 200 * MSEC_NS);
	assert_int_equal(during.end_ns, from + 200 * MSEC_NS);
	assert_int_equal(stream_run(bdev, BDEV_READ, 4096, 1, 1),
			 100 * USEC_NS);
	bdev_close_sync(bdev);
}

/* ---- error -------------------------------------------------------------- */

static void errors_come_at_their_rate(void **state)
{
	const struct error_opts opts = { .read_rate = 0.1, .code = -ETIMEDOUT };
	struct bdev *bdev;
	struct stream s;

	(void)state;
	assert_int_equal(bdev_error_open(null_make(), &bdev, NULL), 0);
	bdev_error_set(bdev, &opts);
	stream_start(&s, bdev, BDEV_READ, 4096, 4, 20000);
	stream_wait(&s);
	assert_true(s.errors > 1800 && s.errors < 2200);
	assert_int_equal(s.last_error, -ETIMEDOUT);
	stream_run(bdev, BDEV_WRITE, 4096, 4, 1000);
	bdev_close_sync(bdev);
}

static void a_bad_range_fails_reads_alone(void **state)
{
	const struct error_opts opts = { .bad_off = 8192, .bad_len = 512 };
	struct bdev *bdev;
	uint8_t buf[4096];

	(void)state;
	assert_int_equal(bdev_error_open(null_make(), &bdev, NULL), 0);
	bdev_error_set(bdev, &opts);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 8192, buf, 512),
			 -EIO);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 4608, buf, 4096),
			 -EIO);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 4096, buf, 4096), 0);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 8704, buf, 512), 0);
	assert_int_equal(bdev_io_sync(bdev, BDEV_WRITE, 0, 8192, buf, 512), 0);
	bdev_close_sync(bdev);
}

static void offline_fails_what_is_in_flight_too(void **state)
{
	const struct delay_opts slow = { MSEC_NS, MSEC_NS, 0.0 };
	const struct error_opts off = { .offline = true }, on = { 0 };
	struct bdev *delay, *bdev;
	struct stream s;
	uint8_t buf[512];

	(void)state;
	assert_int_equal(bdev_delay_open(null_make(), &slow, &delay, NULL), 0);
	assert_int_equal(bdev_error_open(delay, &bdev, NULL), 0);
	stream_start(&s, bdev, BDEV_WRITE, 4096, 8, 8);
	reactor_run_once(r, 0);
	assert_int_equal(s.inflight, 8);
	bdev_error_set(bdev, &off);
	stream_wait(&s);
	assert_int_equal(s.errors, 8);
	assert_int_equal(s.last_error, -ENODEV);
	assert_int_equal(bdev_io_sync(bdev, BDEV_FLUSH, 0, 0, NULL, 0),
			 -ENODEV);
	bdev_error_set(bdev, &on);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 512), 0);
	bdev_close_sync(bdev);
}

/* ---- link --------------------------------------------------------------- */

static struct link *link_make(struct link_opts opts)
{
	struct link *link = NULL;

	assert_int_equal(link_new(r, "l", &opts, &link, NULL), 0);
	return link;
}

static struct bdev *linked(struct link *link)
{
	struct bdev *bdev = NULL;

	assert_int_equal(bdev_link_open(null_make(), link, &bdev, NULL), 0);
	return bdev;
}

/* n io of len bytes take n * len / rate, to the nanosecond, plus one latency;
 * the rate is one that no single transfer time is a whole number of. */
static void link_rate_is_exact(void **state)
{
	struct link *link = link_make((struct link_opts) {
		.rate_bytes_s = 1234567891, .latency_ns = 7000 });
	struct bdev *bdev = linked(link);
	const uint64_t exact = (uint64_t)((unsigned __int128)100000 * 4096 *
					  SEC_NS / 1234567891);
	struct link_stats stats;
	uint64_t took;

	(void)state;
	took = stream_run(bdev, BDEV_READ, 4096, 16, 100000);
	assert_in_range(took, exact + 7000 - 1, exact + 7000 + 1);
	took = stream_run(bdev, BDEV_WRITE, 4096, 16, 100000);
	assert_in_range(took, exact + 7000 - 1, exact + 7000 + 1);
	link_stats(link, &stats);
	assert_int_equal(stats.ops[0], 100000);
	assert_int_equal(stats.bytes[1], 100000ull * 4096);
	assert_in_range(stats.busy_ns[0], exact - 1, exact);
	bdev_close_sync(bdev);
	link_free(link);
}

static void link_counts_operations_too(void **state)
{
	struct link *link = link_make((struct link_opts) {
		.rate_bytes_s = 1000000000, .rate_iops = 10000 });
	struct bdev *bdev = linked(link);

	(void)state;
	assert_int_equal(stream_run(bdev, BDEV_READ, 4096, 4, 1000),
			 100 * MSEC_NS);
	/* 1 MB at 1 GB/s is 1 ms, longer than 1 / 10000 s */
	assert_int_equal(stream_run(bdev, BDEV_READ, 1000448, 4, 100),
			 100 * 1000448);
	bdev_close_sync(bdev);
	link_free(link);
}

static uint64_t both_ways(struct bdev *bdev)
{
	const uint64_t from = reactor_now(r);
	struct stream in, out;

	stream_start(&in, bdev, BDEV_READ, 4096, 8, 1000);
	stream_start(&out, bdev, BDEV_WRITE, 4096, 8, 1000);
	stream_wait(&in);
	stream_wait(&out);
	return (in.end_ns > out.end_ns ? in.end_ns : out.end_ns) - from;
}

static void directions_share_only_a_half_duplex_link(void **state)
{
	struct link *link =
		link_make((struct link_opts) { .rate_bytes_s = 4096000000 });
	const struct link_opts half = { .rate_bytes_s = 4096000000,
					.half_duplex = true };
	struct bdev *bdev = linked(link);

	(void)state;
	assert_int_equal(both_ways(bdev), 1000 * 1000);
	link_set(link, &half);
	assert_int_equal(both_ways(bdev), 2000 * 1000);
	bdev_close_sync(bdev);
	link_free(link);
}

static void devices_on_one_link_share_its_rate(void **state)
{
	struct link *link =
		link_make((struct link_opts) { .rate_bytes_s = 4096000000 });
	struct bdev *a = linked(link), *b = linked(link);
	const uint64_t from = reactor_now(r);
	struct stream sa, sb;

	(void)state;
	stream_start(&sa, a, BDEV_READ, 4096, 8, 500);
	stream_start(&sb, b, BDEV_READ, 4096, 8, 500);
	stream_wait(&sa);
	stream_wait(&sb);
	assert_int_equal(sb.end_ns - from, 1000 * 1000);
	assert_true(sa.end_ns - from > 980 * 1000);
	bdev_close_sync(a);
	bdev_close_sync(b);
	link_free(link);
}

static void the_same_seed_gives_the_same_run(void **state)
{
	const struct delay_opts opts = { 100 * USEC_NS, 90 * USEC_NS, 1.0 };
	uint64_t took[2];

	for (int i = 0; i < 2; i++) {
		struct bdev *bdev;

		sim_make(state);
		assert_int_equal(
			bdev_delay_open(null_make(), &opts, &bdev, NULL), 0);
		took[i] = stream_run(bdev, BDEV_WRITE, 4096, 7, 1000);
		bdev_close_sync(bdev);
		sim_free(state);
	}
	assert_int_equal(took[0], took[1]);
}

/* ---- volatile: what a kill would leave, seen below it ------------------- */

#define CACHED (64 * KIB)

static unsigned sectors_with(struct bdev *bdev, uint8_t value)
{
	static _Alignas(4096) uint8_t buf[CACHED];
	unsigned count = 0;

	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, CACHED), 0);
	for (size_t at = 0; at < CACHED; at += 512)
		count += buf[at] == value && buf[at + 511] == value;
	return count;
}

static void cached(struct bdev *bdev, unsigned flags, uint8_t value)
{
	static _Alignas(4096) uint8_t buf[CACHED];

	memset(buf, value, CACHED);
	for (size_t at = 0; at < CACHED; at += 4096)
		assert_int_equal(bdev_io_sync(bdev, BDEV_WRITE, flags, at,
					      buf + at, 4096),
				 0);
}

static void what_is_not_flushed_is_lost_by_sectors(void **state)
{
	const unsigned all = CACHED / 512;
	struct bdev *child = NULL, *bdev = NULL;
	struct bdev_stats stats;
	unsigned down;

	(void)state;
	assert_int_equal(bdev_mem_open(r, "d", SIZE, 512, &child, NULL), 0);
	assert_int_equal(bdev_volatile_open(child, 7, &bdev, NULL), 0);
	cached(bdev, 0, 1);
	down = sectors_with(child, 1);
	assert_in_range(down, all / 4, all * 3 / 4);
	assert_int_equal(sectors_with(child, 0), all - down);
	assert_int_equal(sectors_with(bdev, 1), all);
	assert_int_equal(bdev_io_sync(bdev, BDEV_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(sectors_with(child, 1), all);

	cached(bdev, 0, 2);
	cached(bdev, BDEV_FUA, 3);
	assert_int_equal(sectors_with(child, 3), all);
	assert_int_equal(sectors_with(bdev, 3), all);
	bdev_stats(child, &stats);
	/* some in pieces, so that they can be torn */
	assert_true(stats.ops[BDEV_WRITE] > 100);

	cached(bdev, 0, 4);
	bdev_close_sync(bdev);
}

/* Closed in order it is no power cut. */
static void a_volatile_cache_goes_down_when_closed(void **state)
{
	char path[] = "/tmp/iodeck-volatile-XXXXXX";
	const int fd = mkstemp(path);
	struct bdev_file_opts opts = { .path = path };
	struct reactor *threads = NULL;
	struct bdev *child = NULL, *bdev = NULL;

	(void)state;
	assert_int_equal(
		reactor_new(&(struct reactor_opts) { .kind = REACTOR_THREADS },
			    &threads, NULL),
		0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	close(fd);
	assert_int_equal(bdev_file_open(threads, &opts, &child, NULL), 0);
	assert_int_equal(bdev_volatile_open(child, 9, &bdev, NULL), 0);
	cached(bdev, 0, 5);
	assert_true(sectors_with(child, 5) < CACHED / 512);
	bdev_close_sync(bdev);
	assert_int_equal(bdev_file_open(threads, &opts, &child, NULL), 0);
	assert_int_equal(sectors_with(child, 5), CACHED / 512);
	bdev_close_sync(child);
	reactor_free(threads);
	unlink(path);
}

#define SIM(test) cmocka_unit_test_setup_teardown(test, sim_make, sim_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SIM(slice_shows_its_range_alone),
		SIM(delay_adds_its_time),
		SIM(delay_spreads_about_its_mean),
		SIM(a_stall_holds_everything),
		SIM(errors_come_at_their_rate),
		SIM(a_bad_range_fails_reads_alone),
		SIM(offline_fails_what_is_in_flight_too),
		SIM(link_rate_is_exact),
		SIM(link_counts_operations_too),
		SIM(directions_share_only_a_half_duplex_link),
		SIM(devices_on_one_link_share_its_rate),
		SIM(what_is_not_flushed_is_lost_by_sectors),
		cmocka_unit_test(a_volatile_cache_goes_down_when_closed),
		cmocka_unit_test(the_same_seed_gives_the_same_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
