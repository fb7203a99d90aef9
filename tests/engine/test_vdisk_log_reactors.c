/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout at work: over files, on each kind of reactor, with many
 * I/Os of all sizes in flight and members that go. What the simulator leaves
 * out is here: O_DIRECT, completions of the kernel and of other threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/bdev/file.h"
#include "log_rig.h"
#include "reactor_kinds.h"

#define MEMBERS 6
#define BLOCK 4096u
#define JOBS 24
#define SHARE 96u /* blocks of each job */
#define BIG_BLOCKS ((uint32_t)(8 * MIB) / BLOCK)

struct job {
	struct world *w;
	struct io io;
	uint8_t *buf;
	uint64_t lba;
	uint32_t blocks, version;
	unsigned left;
};

struct world {
	struct reactor *r;
	struct rng rng;
	struct vlog_spec spec;
	struct vdisk_slot slot[MEMBERS];
	uint32_t version[JOBS * SHARE];
	struct job job[JOBS];
	unsigned running;
	struct bdev *vd;
	bool over;
	int result;
};

/* ---- the vDisk ----------------------------------------------------- */

static void member_path(unsigned i, char *path, size_t len)
{
	snprintf(path, len, "test-reactors-%d-%u", (int)getpid(), i);
}

static void members_open(struct world *w, uint64_t create_bytes)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		char path[64];
		const struct bdev_file_opts opts = {
			.path = path,
			.create_bytes = create_bytes,
		};
		struct err err;

		member_path(i, path, sizeof(path));
		if (bdev_file_open(w->r, &opts, &w->slot[i].bdev, &err))
			fail_msg("%s", err.text);
		snprintf(w->slot[i].domain, sizeof(w->slot[i].domain), "n%u",
			 i);
	}
}

static void opened(int result, const struct err *err, struct bdev *vd,
		   void *arg)
{
	struct world *w = arg;

	if (result)
		print_error("%s\n", err->text);
	w->result = result;
	w->vd = vd;
	w->over = true;
}

static void until_over(struct world *w)
{
	while (!w->over)
		reactor_run_once(w->r, SEC_NS);
	w->over = false;
	assert_int_equal(w->result, 0);
}

static void world_make(struct world *w, struct reactor *r, uint64_t size)
{
	memset(w, 0, sizeof(*w));
	w->r = r;
	rng_seed(&w->rng, 11);
	w->spec = (struct vlog_spec) {
		.name = "v",
		.size_bytes = size,
		.policy = { .raid = RAID_6,
			    .k = 4,
			    .m = 2,
			    .codec = VDISK_LZ4 },
		.tune = { .zone_bytes = 528 * KIB,
			  .zones = 6,
			  .unit_bytes = 32 * KIB,
			  .stripes = 4,
			  .buffer_bytes = MIB },
		.slot = w->slot,
		.slots = MEMBERS,
	};
	members_open(w, vlog_member_bytes(&w->spec));
	vlog_create(r, &w->spec, opened, w);
	until_over(w);
	for (unsigned i = 0; i < JOBS; i++) {
		w->job[i].w = w;
		w->job[i].buf = reactor_buf_alloc(r, SHARE * BLOCK);
		assert_non_null(w->job[i].buf);
	}
}

static void world_reopen(struct world *w)
{
	bdev_close_sync(w->vd);
	members_open(w, 0);
	vlog_open(w->r, &w->spec, opened, w);
	until_over(w);
}

static void world_end(struct world *w)
{
	char path[64];

	bdev_close_sync(w->vd);
	for (unsigned i = 0; i < JOBS; i++)
		reactor_buf_free(w->r, w->job[i].buf, SHARE * BLOCK);
	for (unsigned i = 0; i < MEMBERS; i++) {
		member_path(i, path, sizeof(path));
		unlink(path);
	}
	reactor_free(w->r);
}

/* ---- load ---------------------------------------------------------- */

static void job_next(struct job *j);

static void job_check(struct job *j)
{
	struct world *w = j->w;

	for (uint32_t i = 0; i < j->blocks; i++) {
		const uint64_t lba = j->lba + i;

		if (j->io.op != BDEV_READ)
			w->version[lba] = j->version;
		else
			assert_int_equal(
				block_version(lba, j->buf + (size_t)i * BLOCK),
				w->version[lba]);
	}
}

static void job_done(struct io *io)
{
	struct job *j = io->arg;

	assert_int_equal(io->result, 0);
	job_check(j);
	if (j->left)
		job_next(j);
	else
		j->w->running--;
}

static void job_next(struct job *j)
{
	struct world *w = j->w;
	const uint64_t share = (uint64_t)(j - w->job) * SHARE;
	const unsigned what = (unsigned)rng_below(&w->rng, 20);
	const uint32_t most = what % 3 ? 4 : SHARE;
	enum bdev_op op = BDEV_WRITE;

	j->left--;
	j->blocks = 1 + (uint32_t)rng_below(&w->rng, most);
	j->lba = share + rng_below(&w->rng, SHARE - j->blocks + 1);
	j->version = 0;
	if (what == 0)
		op = BDEV_TRIM;
	else if (what < 9)
		op = BDEV_READ;
	else
		j->version = 1 + (uint32_t)rng_below(&w->rng, 1 << 20);
	for (uint32_t i = 0; i < j->blocks && op == BDEV_WRITE; i++)
		block_make(j->lba + i, j->version, j->buf + (size_t)i * BLOCK);
	j->io = (struct io) { .op = (uint8_t)op,
			      .off = j->lba * BLOCK,
			      .len = j->blocks * BLOCK,
			      .buf = op == BDEV_TRIM ? NULL : j->buf,
			      .done = job_done,
			      .arg = j };
	bdev_submit(w->vd, &j->io);
}

static void load_start(struct world *w, unsigned ios)
{
	for (unsigned i = 0; i < JOBS; i++) {
		w->job[i].left = ios;
		w->running++;
		job_next(&w->job[i]);
	}
}

static void load_wait(struct world *w, unsigned running)
{
	while (w->running > running)
		reactor_run_once(w->r, SEC_NS);
}

static void all_check(struct world *w)
{
	uint8_t *buf = w->job[0].buf;
	struct err err = { 0 };

	for (unsigned i = 0; i < JOBS; i++) {
		assert_int_equal(bdev_io_sync(w->vd, BDEV_READ, 0,
					      (uint64_t)i * SHARE * BLOCK, buf,
					      SHARE * BLOCK),
				 0);
		for (uint32_t b = 0; b < SHARE; b++)
			assert_int_equal(
				block_version(i * SHARE + b, buf + b * BLOCK),
				w->version[i * SHARE + b]);
	}
	if (vlog_check(w->vd, &err))
		fail_msg("%s", err.text);
}

/* ---- tests --------------------------------------------------------- */

static void many_at_once_and_reopened(void **state)
{
	static struct world w;

	world_make(&w, of(state), (uint64_t)JOBS * SHARE * BLOCK);
	load_start(&w, 60);
	load_wait(&w, 0);
	all_check(&w);
	world_reopen(&w);
	all_check(&w);
	load_start(&w, 60);
	load_wait(&w, 0);
	all_check(&w);
	world_end(&w);
}

static void members_go_under_load(void **state)
{
	static struct world w;

	world_make(&w, of(state), (uint64_t)JOBS * SHARE * BLOCK);
	load_start(&w, 40);
	load_wait(&w, JOBS - 1);
	assert_int_equal(vlog_member_fail(w.vd, 1, NULL), 0);
	load_wait(&w, JOBS / 2);
	assert_int_equal(vlog_member_fail(w.vd, 4, NULL), 0);
	load_wait(&w, 0);
	all_check(&w);
	world_reopen(&w);
	all_check(&w);
	world_end(&w);
}

/* The longest there may be: many records, many runs, more than there are. */
static void the_longest_io(void **state)
{
	static struct world w;
	uint8_t *buf;

	world_make(&w, of(state), 64 * MIB);
	buf = reactor_buf_alloc(w.r, 8 * MIB);
	assert_non_null(buf);
	assert_int_equal(w.vd->limits.io_max_bytes, 8 * MIB);
	for (uint32_t version = 2; version < 5; version++) {
		for (uint32_t i = 0; i < BIG_BLOCKS; i++)
			block_make(i, version, buf + (size_t)i * BLOCK);
		assert_int_equal(
			bdev_io_sync(w.vd, BDEV_WRITE, 0, 0, buf, 8 * MIB), 0);
		memset(buf, 0xee, 8 * MIB);
		assert_int_equal(
			bdev_io_sync(w.vd, BDEV_READ, 0, 0, buf, 8 * MIB), 0);
		for (uint32_t i = 0; i < BIG_BLOCKS; i++)
			assert_int_equal(
				block_version(i, buf + (size_t)i * BLOCK),
				version);
	}
	reactor_buf_free(w.r, buf, 8 * MIB);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(many_at_once_and_reopened),
		EACH(members_go_under_load),
		EACH(the_longest_io),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
