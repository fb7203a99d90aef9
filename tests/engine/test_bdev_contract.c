/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The contract of bdev.h, held against every kind and layer on every kind of
 * reactor. A new kind adds a row to `kinds`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/bdev/file.h"
#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"
#include "engine/vdisk/log/log.h"
#include "engine/bdev/verify.h"
#include "nbd_rig.h"

#define SIZE (2 * MIB)

struct fixture {
	struct reactor *r;
	struct bdev *bdev;
	char path[128];
	struct link *link;
	struct reactor *there; /* remote */
	struct bdev *child;
	struct nbd_server server;
};

struct kind {
	const char *name;
	bool keeps; /* reads give what was written */
	int (*open)(struct fixture *f, struct err *err);
	void (*tidy)(struct fixture *f); /* after close; may be NULL */
};

/* ---- the kinds ---------------------------------------------------------- */

static int null_open(struct fixture *f, struct err *err)
{
	return bdev_null_open(f->r, "null", SIZE, 512, &f->bdev, err);
}

static int mem_open(struct fixture *f, struct err *err)
{
	return bdev_mem_open(f->r, "mem", SIZE, 512, &f->bdev, err);
}

static int file_open_in(struct fixture *f, const char *dir, bool buffered,
			struct err *err)
{
	struct bdev_file_opts opts = {
		.path = f->path,
		.create_bytes = SIZE,
		.buffered = buffered,
	};

	snprintf(f->path, sizeof(f->path), "%s/base-test-contract-%d", dir,
		 (int)getpid());
	return bdev_file_open(f->r, &opts, &f->bdev, err);
}

static int file_direct_open(struct fixture *f, struct err *err)
{
	return file_open_in(f, ".", false, err);
}

static int file_buffered_open(struct fixture *f, struct err *err)
{
	return file_open_in(f, ".", true, err);
}

static int file_tmpfs_open(struct fixture *f, struct err *err)
{
	return file_open_in(f, "/dev/shm", false, err);
}

/* A window of a file that the test's own handle does not lock. */
static int file_window_open(struct fixture *f, struct err *err)
{
	struct bdev_file_opts opts = {
		.path = f->path,
		.off_bytes = 64 * KIB,
		.len_bytes = SIZE,
		.shared = true,
	};
	FILE *file;

	snprintf(f->path, sizeof(f->path), "base-test-contract-%d",
		 (int)getpid());
	file = fopen(f->path, "we");
	if (!file || ftruncate(fileno(file), SIZE + 128 * KIB))
		return -errno;
	fclose(file);
	return bdev_file_open(f->r, &opts, &f->bdev, err);
}

/* A child of `size` for a layer that owns it. */
static struct bdev *child_make(struct fixture *f, uint64_t size)
{
	struct bdev *child = NULL;

	assert_int_equal(bdev_mem_open(f->r, "child", size, 512, &child, NULL),
			 0);
	return child;
}

static int slice_open(struct fixture *f, struct err *err)
{
	return bdev_slice_open(child_make(f, 3 * SIZE), "slice", SIZE, SIZE,
			       &f->bdev, err);
}

static int delay_open(struct fixture *f, struct err *err)
{
	const struct delay_opts opts = { 10 * USEC_NS, 20 * USEC_NS, 0.5 };

	return bdev_delay_open(child_make(f, SIZE), &opts, &f->bdev, err);
}

static int error_open(struct fixture *f, struct err *err)
{
	return bdev_error_open(child_make(f, SIZE), &f->bdev, err);
}

static int link_open(struct fixture *f, struct err *err)
{
	const struct link_opts opts = { .rate_bytes_s = 3000000000ull,
					.rate_iops = 300000,
					.latency_ns = 5000 };

	assert_int_equal(link_new(f->r, "link", &opts, &f->link, err), 0);
	return bdev_link_open(child_make(f, SIZE), f->link, &f->bdev, err);
}

static void link_tidy(struct fixture *f)
{
	link_free(f->link);
}

static int stack_open(struct fixture *f, struct err *err)
{
	const int rc = link_open(f, err);
	struct bdev *below = f->bdev;

	assert_int_equal(rc, 0);
	assert_int_equal(bdev_error_open(below, &below, err), 0);
	return bdev_slice_open(below, NULL, 0, SIZE, &f->bdev, err);
}

static int volatile_open(struct fixture *f, struct err *err)
{
	return bdev_volatile_open(child_make(f, SIZE), 3, &f->bdev, err);
}

static int volatile_file_open(struct fixture *f, struct err *err)
{
	struct bdev *below;
	const int rc = file_direct_open(f, err);

	assert_int_equal(rc, 0);
	below = f->bdev;
	return bdev_volatile_open(below, 4, &f->bdev, err);
}

static int verify_open(struct fixture *f, struct err *err)
{
	snprintf(f->path, sizeof(f->path), "base-test-journal-%d",
		 (int)getpid());
	return bdev_verify_open(child_make(f, SIZE), f->path, &f->bdev, err);
}

static int remote_open(struct fixture *f, struct err *err)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS };

	assert_int_equal(reactor_new(&opts, &f->there, err), 0);
	assert_int_equal(
		bdev_mem_open(f->there, "far", SIZE, 512, &f->child, err), 0);
	assert_int_equal(reactor_thread_start(f->there, err), 0);
	return bdev_remote_open(f->r, f->child, &f->bdev, err);
}

static void remote_tidy(struct fixture *f)
{
	reactor_stop(f->there);
	reactor_thread_join(f->there);
	bdev_close_sync(f->child);
	reactor_free(f->there);
}

static void file_tidy(struct fixture *f)
{
	unlink(f->path);
}

/* ---- the log-structured vDisk ------------------------------------------- */

#define MEMBERS 3

struct vlog_made {
	bool over;
	int result;
	struct err err;
	struct bdev *vdisk;
};

static void vlog_made(int result, const struct err *err, struct bdev *vdisk,
		      void *arg)
{
	struct vlog_made *made = arg;

	made->over = true;
	made->result = result;
	if (result)
		made->err = *err;
	made->vdisk = vdisk;
}

static void member_path(const struct fixture *f, unsigned i, char *path,
			size_t len)
{
	snprintf(path, len, "%s-%u", f->path, i);
}

static int member_open(struct fixture *f, bool file, uint64_t bytes, unsigned i,
		       struct bdev **member, struct err *err)
{
	char path[160];
	const struct bdev_file_opts opts = { .path = path,
					     .create_bytes = bytes };

	if (!file)
		return bdev_mem_open(f->r, "member", bytes, 512, member, err);
	member_path(f, i, path, sizeof(path));
	return bdev_file_open(f->r, &opts, member, err);
}

/* So small that the log wraps, and segments fill, in each clause. */
static int vlog_open_over(struct fixture *f, bool file, struct err *err)
{
	struct vdisk_slot slot[MEMBERS] = { 0 };
	struct vlog_spec spec = {
		.name = "v",
		.size_bytes = SIZE,
		.policy = { .raid = RAID_5,
			    .k = 2,
			    .m = 1,
			    .codec = VDISK_LZ4 },
		.tune = { .zone_bytes = 272 * KIB,
			  .zones = 4,
			  .unit_bytes = 16 * KIB,
			  .stripes = 3,
			  .buffer_bytes = 256 * KIB },
		.slot = slot,
		.slots = MEMBERS,
	};
	const uint64_t bytes = vlog_member_bytes(&spec);
	struct vlog_made made = { 0 };

	snprintf(f->path, sizeof(f->path), "base-test-contract-%d",
		 (int)getpid());
	for (unsigned i = 0; i < MEMBERS; i++) {
		const int rc =
			member_open(f, file, bytes, i, &slot[i].bdev, err);

		if (rc)
			return rc;
		snprintf(slot[i].domain, sizeof(slot[i].domain), "n%u", i);
	}
	vlog_create(f->r, &spec, vlog_made, &made);
	while (!made.over)
		reactor_run_once(f->r, UINT64_MAX);
	f->bdev = made.vdisk;
	*err = made.err;
	return made.result;
}

static int vlog_mem_open(struct fixture *f, struct err *err)
{
	return vlog_open_over(f, false, err);
}

static int vlog_file_open(struct fixture *f, struct err *err)
{
	return vlog_open_over(f, true, err);
}

static void vlog_file_tidy(struct fixture *f)
{
	char path[160];

	for (unsigned i = 0; i < MEMBERS; i++) {
		member_path(f, i, path, sizeof(path));
		unlink(path);
	}
}

/* ---- over NBD ----------------------------------------------------------- */

static int nbd_open_at(struct fixture *f, bool tls, struct err *err)
{
	const struct nbd_server_opts server = { .size_bytes = SIZE,
						.tcp = tls,
						.key = tls ? RIG_KEY : NULL };
	const struct bdev_nbd_opts opts = { .name = "nbd",
					    .size_bytes = SIZE,
					    .trim_zeroes = true };
	struct bdev_nbd_target target;
	int rc;

	nbd_server_start(&f->server, &server);
	target = nbd_server_target(&f->server);
	rc = bdev_nbd_open(f->r, &opts, &f->bdev, err);
	return rc ? rc : bdev_nbd_target(f->bdev, &target, err);
}

static int nbd_unix_open(struct fixture *f, struct err *err)
{
	return nbd_open_at(f, false, err);
}

static int nbd_tls_open(struct fixture *f, struct err *err)
{
	return nbd_open_at(f, true, err);
}

static void nbd_tidy(struct fixture *f)
{
	nbd_server_end(&f->server);
}

static bool kind_runs(const struct reactor *r, const char *name)
{
	return strncmp(name, "nbd", 3) != 0 ||
	       (nbd_server_can() && reactor_kind(r) != REACTOR_SIM);
}

static const struct kind kinds[] = {
	{ "null", false, null_open, NULL },
	{ "mem", true, mem_open, NULL },
	{ "file, O_DIRECT", true, file_direct_open, file_tidy },
	{ "file, buffered", true, file_buffered_open, file_tidy },
	{ "file, tmpfs", true, file_tmpfs_open, file_tidy },
	{ "file, window", true, file_window_open, file_tidy },
	{ "slice", true, slice_open, NULL },
	{ "delay", true, delay_open, NULL },
	{ "error", true, error_open, NULL },
	{ "link", true, link_open, link_tidy },
	{ "slice over error over link", true, stack_open, link_tidy },
	{ "remote", true, remote_open, remote_tidy },
	{ "log-structured vDisk over mem", true, vlog_mem_open, NULL },
	{ "log-structured vDisk over files", true, vlog_file_open,
	  vlog_file_tidy },
	{ "verify", false, verify_open, file_tidy }, /* it stamps */
	{ "volatile", true, volatile_open, NULL },
	{ "volatile over file", true, volatile_file_open, file_tidy },
	{ "nbd, Unix socket", true, nbd_unix_open, nbd_tidy },
	{ "nbd, TCP and TLS", true, nbd_tls_open, nbd_tidy },
};

/* ---- helpers ------------------------------------------------------------ */

struct tracked {
	struct io io;
	unsigned done;
	bool in_submit;
	struct fixture *f;
};
static unsigned tracked_left;

static void tracked_done(struct io *io)
{
	struct tracked *t = container_of(io, struct tracked, io);

	assert_false(t->in_submit);
	assert_ptr_equal(io->arg, t);
	t->done++;
	tracked_left--;
}

static void tracked_submit(struct fixture *f, struct tracked *t)
{
	t->done = 0;
	t->f = f;
	t->io.done = tracked_done;
	t->io.arg = t;
	t->in_submit = true;
	tracked_left++;
	bdev_submit(f->bdev, &t->io);
	t->in_submit = false;
}

static void wait_all(struct fixture *f)
{
	while (tracked_left)
		reactor_run_once(f->r, UINT64_MAX);
}

static uint8_t *buf_make(struct fixture *f, size_t len)
{
	uint8_t *buf = reactor_buf_alloc(f->r, len);

	assert_non_null(buf);
	return buf;
}

static int sync_op(struct fixture *f, enum bdev_op op, uint64_t off, void *buf,
		   uint32_t len)
{
	return bdev_io_sync(f->bdev, op, 0, off, buf, len);
}

/* ---- the contract ------------------------------------------------------- */

static void limits_make_sense(struct fixture *f, const struct kind *kind)
{
	const struct bdev_limits *l = &f->bdev->limits;
	char text[160];

	(void)kind;
	assert_int_equal(l->size_bytes, SIZE);
	assert_true(l->block_bytes >= 512);
	assert_int_equal(l->block_bytes & (l->block_bytes - 1), 0);
	assert_int_equal(l->align_bytes & (l->align_bytes - 1), 0);
	assert_true(l->align_bytes > 0 && l->align_bytes <= 4096);
	assert_int_equal(l->size_bytes % l->block_bytes, 0);
	assert_true(l->phys_bytes >= l->block_bytes);
	assert_true(l->io_max_bytes >= 8 * MIB);
	assert_true(l->can_flush && l->can_fua);
	bdev_describe(f->bdev, text, sizeof(text));
	assert_true(strlen(text) > 2);
}

static void bad_io_fails_by_callback(struct fixture *f, const struct kind *kind)
{
	const struct bdev_limits *l = &f->bdev->limits;
	const uint32_t b = l->block_bytes;
	uint8_t *buf = buf_make(f, 4 * (size_t)b);
	const struct io bad[] = {
		{ .op = BDEV_READ, .off = 1, .len = b, .buf = buf },
		{ .op = BDEV_READ, .off = 0, .len = b - 1, .buf = buf },
		{ .op = BDEV_READ, .off = 0, .len = 0, .buf = buf },
		{ .op = BDEV_READ, .off = SIZE, .len = b, .buf = buf },
		{ .op = BDEV_READ, .off = SIZE - b, .len = 2 * b, .buf = buf },
		{ .op = BDEV_READ,
		  .off = UINT64_MAX - b + 1,
		  .len = 2 * b,
		  .buf = buf },
		{ .op = BDEV_READ, .flags = BDEV_FUA, .len = b, .buf = buf },
		{ .op = BDEV_READ,
		  .flags = l->can_lend ? 0x80 : BDEV_LEND,
		  .len = b,
		  .buf = buf },
		{ .op = BDEV_WRITE, .flags = 0x80, .len = b, .buf = buf },
		{ .op = BDEV_WRITE, .len = l->io_max_bytes + b, .buf = buf },
		{ .op = BDEV_TRIM, .off = SIZE - b, .len = 2 * b },
		{ .op = 9, .len = b, .buf = buf },
	};

	(void)kind;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct tracked t = { .io = bad[i] };

		tracked_submit(f, &t);
		wait_all(f);
		assert_int_equal(t.done, 1);
		assert_true(t.io.result < 0);
		if (t.io.op != BDEV_TRIM)
			assert_int_equal(t.io.result, -EINVAL);
	}
	if (l->align_bytes > 1) {
		struct tracked t = {
			.io = { .op = BDEV_READ, .len = b, .buf = buf + 1 }
		};

		tracked_submit(f, &t);
		wait_all(f);
		assert_int_equal(t.io.result, -EINVAL);
	}
	reactor_buf_free(f->r, buf, 4 * (size_t)b);
}

static void reads_give_what_was_written(struct fixture *f,
					const struct kind *kind)
{
	enum { ROUNDS = 300, LEN_MAX = 64 * 1024 };
	const uint32_t b = f->bdev->limits.block_bytes;
	uint8_t *model = calloc(1, SIZE), *buf = buf_make(f, LEN_MAX);
	struct rng rng;

	rng_seed(&rng, 5);
	for (int i = 0; i < ROUNDS && kind->keeps; i++) {
		const uint32_t len =
			b * (1 + (uint32_t)rng_below(&rng, LEN_MAX / b));
		const uint64_t off = rng_below(&rng, (SIZE - len) / b + 1) * b;
		const unsigned flags = i % 5 ? 0 : BDEV_FUA;

		if (i % 3 == 2) {
			assert_int_equal(sync_op(f, BDEV_READ, off, buf, len),
					 0);
			assert_memory_equal(buf, model + off, len);
			continue;
		}
		memset(buf, i % 251 + 1, len);
		memset(model + off, i % 251 + 1, len);
		assert_int_equal(
			bdev_io_sync(f->bdev, BDEV_WRITE, flags, off, buf, len),
			0);
		if (i % 50 == 0)
			assert_int_equal(sync_op(f, BDEV_FLUSH, 0, NULL, 0), 0);
	}
	for (uint64_t off = 0; off < SIZE && kind->keeps; off += LEN_MAX) {
		assert_int_equal(sync_op(f, BDEV_READ, off, buf, LEN_MAX), 0);
		assert_memory_equal(buf, model + off, LEN_MAX);
	}
	reactor_buf_free(f->r, buf, LEN_MAX);
	free(model);
}

static void many_in_flight_come_back_once(struct fixture *f,
					  const struct kind *kind)
{
	enum { N = 300, LEN = 4096 };
	struct tracked *t = calloc(N, sizeof(*t));
	uint8_t *buf = buf_make(f, N * LEN);

	for (unsigned i = 0; i < N; i++) {
		memset(buf + i * LEN, (int)(i % 250 + 1), LEN);
		t[i].io = (struct io) { .op = BDEV_WRITE,
					.off = i * LEN,
					.len = LEN,
					.buf = buf + i * LEN };
		tracked_submit(f, &t[i]);
	}
	wait_all(f);
	memset(buf, 0, N * LEN);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].io.result, 0);
		t[i].io.op = i % 40 ? BDEV_READ : BDEV_FLUSH;
		tracked_submit(f, &t[i]);
	}
	wait_all(f);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(t[i].io.result, 0);
		if (kind->keeps && i % 40)
			assert_int_equal(buf[i * LEN + 77], i % 250 + 1);
	}
	reactor_buf_free(f->r, buf, N * LEN);
	free(t);
}

static void trim_zeroes_where_it_says_so(struct fixture *f,
					 const struct kind *kind)
{
	const struct bdev_limits *l = &f->bdev->limits;
	uint8_t *buf = buf_make(f, 32 * KIB);

	if (!l->can_trim) {
		assert_int_equal(sync_op(f, BDEV_TRIM, 0, NULL, l->block_bytes),
				 -EOPNOTSUPP);
		reactor_buf_free(f->r, buf, 32 * KIB);
		return;
	}
	memset(buf, 9, 32 * KIB);
	assert_int_equal(sync_op(f, BDEV_WRITE, 0, buf, 32 * KIB), 0);
	assert_int_equal(
		sync_op(f, BDEV_TRIM, 4096 + l->block_bytes, NULL, 16 * KIB),
		0);
	assert_int_equal(sync_op(f, BDEV_READ, 0, buf, 32 * KIB), 0);
	for (unsigned i = 0; i < 32 * KIB && l->trim_zeroes; i++) {
		const bool trimmed = i >= 4096 + l->block_bytes &&
				     i < 4096 + l->block_bytes + 16 * KIB;

		if (trimmed || kind->keeps)
			assert_int_equal(buf[i], trimmed ? 0 : 9);
	}
	reactor_buf_free(f->r, buf, 32 * KIB);
}

static void again_done(struct io *io)
{
	struct tracked *t = container_of(io, struct tracked, io);

	if (++t->done < 50)
		bdev_submit(t->f->bdev, io);
	else
		tracked_left--;
}

static void an_io_can_be_submitted_from_its_callback(struct fixture *f,
						     const struct kind *kind)
{
	struct tracked t = { .f = f };

	(void)kind;
	t.io = (struct io) { .op = BDEV_READ,
			     .len = 4096,
			     .buf = buf_make(f, 4096),
			     .done = again_done };
	tracked_left = 1;
	bdev_submit(f->bdev, &t.io);
	wait_all(f);
	assert_int_equal(t.done, 50);
	assert_int_equal(t.io.result, 0);
	reactor_buf_free(f->r, t.io.buf, 4096);
}

static void figures_add_up(struct fixture *f, const struct kind *kind)
{
	uint8_t *buf = buf_make(f, 8192);
	struct bdev_stats s;

	(void)kind;
	f->bdev->timed = true;
	for (int i = 0; i < 10; i++)
		sync_op(f, BDEV_READ, 0, buf, 8192);
	for (int i = 0; i < 5; i++)
		sync_op(f, BDEV_WRITE, 0, buf, 4096);
	sync_op(f, BDEV_FLUSH, 0, NULL, 0);
	sync_op(f, BDEV_READ, 1, buf, 4096);
	bdev_stats(f->bdev, &s);
	assert_int_equal(s.ops[BDEV_READ], 10);
	assert_int_equal(s.bytes[BDEV_READ], 10 * 8192);
	assert_int_equal(s.ops[BDEV_WRITE], 5);
	assert_int_equal(s.bytes[BDEV_WRITE], 5 * 4096);
	assert_int_equal(s.ops[BDEV_FLUSH], 1);
	assert_int_equal(s.errors, 1);
	assert_int_equal(s.inflight, 0);
	assert_true(s.busy_ns == s.queue_ns); /* one at a time */
	if (reactor_kind(f->r) != REACTOR_SIM)
		assert_true(s.latency_sum_ns[BDEV_READ] > 0);
	reactor_buf_free(f->r, buf, 8192);
}

static void a_failed_one_refuses(struct fixture *f, const struct kind *kind)
{
	uint8_t *buf = buf_make(f, 4096);

	(void)kind;
	f->bdev->failed = true;
	assert_int_equal(sync_op(f, BDEV_READ, 0, buf, 4096), -ENODEV);
	assert_int_equal(sync_op(f, BDEV_WRITE, 0, buf, 4096), -ENODEV);
	assert_int_equal(sync_op(f, BDEV_FLUSH, 0, NULL, 0), -ENODEV);
	f->bdev->failed = false;
	assert_int_equal(sync_op(f, BDEV_READ, 0, buf, 4096), 0);
	reactor_buf_free(f->r, buf, 4096);
}

static void closed_once(void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(tracked_left, 0);
	assert_non_null(f->bdev);
	f->bdev = NULL;
}

static void close_waits_for_what_is_in_flight(struct fixture *f,
					      const struct kind *kind)
{
	enum { N = 40 };
	struct tracked *t = calloc(N, sizeof(*t));
	uint8_t *buf = buf_make(f, N * 4096);

	(void)kind;
	for (unsigned i = 0; i < N; i++) {
		t[i].io = (struct io) { .op = BDEV_WRITE,
					.off = i * 4096,
					.len = 4096,
					.buf = buf + i * 4096 };
		tracked_submit(f, &t[i]);
	}
	bdev_close(f->bdev, closed_once, f);
	assert_non_null(f->bdev);
	while (f->bdev)
		reactor_run_once(f->r, UINT64_MAX);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(t[i].done, 1);
	reactor_buf_free(f->r, buf, N * 4096);
	free(t);
}

/* ---- all of it ---------------------------------------------------------- */

static void (*const clauses[])(struct fixture *f, const struct kind *kind) = {
	limits_make_sense,
	bad_io_fails_by_callback,
	reads_give_what_was_written,
	many_in_flight_come_back_once,
	trim_zeroes_where_it_says_so,
	an_io_can_be_submitted_from_its_callback,
	figures_add_up,
	a_failed_one_refuses,
	close_waits_for_what_is_in_flight,
};

static void clause_run(struct reactor *r, const struct kind *kind, size_t i)
{
	struct fixture f = { .r = r };
	struct err err = { 0 };

	if (kind->open(&f, &err)) {
		print_error("%s: %s\n", kind->name, err.text);
		fail();
	}
	tracked_left = 0;
	clauses[i](&f, kind);
	bdev_close_sync(f.bdev);
	if (kind->tidy)
		kind->tidy(&f);
}

static void contract_holds(void **state)
{
	const struct reactor_opts opts = {
		.kind = *(enum reactor_kind *)*state,
		.arena_bytes = 1 * MIB,
		.seed = 1,
	};
	struct reactor *r = NULL;

	if (reactor_new(&opts, &r, NULL)) {
		print_message("no %s here\n", reactor_kind_name(opts.kind));
		skip();
	}
	for (size_t k = 0; k < array_len(kinds); k++) {
		if (!kind_runs(r, kinds[k].name))
			continue;
		print_message("  %s\n", kinds[k].name);
		for (size_t i = 0; i < array_len(clauses); i++)
			clause_run(r, &kinds[k], i);
	}
	reactor_free(r);
}

int main(void)
{
	static enum reactor_kind on[] = { REACTOR_URING, REACTOR_THREADS,
					  REACTOR_SIM };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(contract_holds, &on[0]),
		cmocka_unit_test_prestate(contract_holds, &on[1]),
		cmocka_unit_test_prestate(contract_holds, &on[2]),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
