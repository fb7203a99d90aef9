/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the journal of a verify layer lets pass, and what it must not. */
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
#include "engine/bdev/verify.h"

#define BLOCK VERIFY_BLOCK
#define BLOCKS 256u
#define SIZE (BLOCKS * (uint64_t)BLOCK)

struct world {
	struct reactor *r;
	char file[64], journal[80];
	struct bdev *delay, *bdev;
	uint8_t *buf;
};

static void bring_up(struct world *w)
{
	struct bdev_file_opts opts = { .path = w->file, .buffered = true };
	const struct delay_opts delay = { .write_ns = 1000 };
	struct bdev *child = NULL;
	struct err err = { 0 };

	assert_int_equal(bdev_file_open(w->r, &opts, &child, &err), 0);
	assert_int_equal(bdev_delay_open(child, &delay, &w->delay, &err), 0);
	assert_int_equal(bdev_verify_open(w->delay, w->journal, &w->bdev, &err),
			 0);
}

static void take_down(struct world *w)
{
	bdev_close_sync(w->bdev);
}

static int world_open(void **state)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = 1 };
	struct world *w = calloc(1, sizeof(*w));
	int fd;

	assert_non_null(w);
	*state = w;
	assert_int_equal(reactor_new(&opts, &w->r, NULL), 0);
	strcpy(w->file, "/tmp/iodeck-verify-XXXXXX");
	fd = mkstemp(w->file);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	close(fd);
	snprintf(w->journal, sizeof(w->journal), "%s.journal", w->file);
	w->buf = reactor_buf_alloc(w->r, 16 * BLOCK);
	bring_up(w);
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;

	unlink(w->file);
	unlink(w->journal);
	reactor_buf_free(w->r, w->buf, 16 * BLOCK);
	reactor_free(w->r);
	free(w);
	return 0;
}

static int op(struct world *w, enum bdev_op what, uint64_t block,
	      uint32_t blocks)
{
	return bdev_io_sync(w->bdev, what, 0, block * BLOCK,
			    what <= BDEV_WRITE ? w->buf : NULL, blocks * BLOCK);
}

static void copy_file(const char *from, const char *to)
{
	char command[200];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

static void file_block(struct world *w, uint64_t block, uint8_t *data,
		       bool write)
{
	FILE *f = fopen(w->file, write ? "r+e" : "re");

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)(block * BLOCK), SEEK_SET), 0);
	assert_int_equal(write ? fwrite(data, BLOCK, 1, f)
			       : fread(data, BLOCK, 1, f),
			 1);
	fclose(f);
}

/* ---- what is right ------------------------------------------------------ */

static unsigned random_left;

static void random_done(struct io *io)
{
	assert_int_equal(io->result, 0);
	random_left--;
}

static void swept(void *arg)
{
	*(bool *)arg = true;
}

static void sweep(struct world *w)
{
	bool over = false;

	bdev_verify_sweep(w->bdev, swept, &over);
	while (!over)
		reactor_run_once(w->r, SEC_NS);
}

static void right_is_right_whatever_overlaps(void **state)
{
	enum { N = 64 };
	struct world *w = *state;
	struct rng rng;

	rng_seed(&rng, 3);
	for (int round = 0; round < 50; round++) {
		static struct io io[N];
		uint8_t *buf[N];

		for (unsigned i = 0; i < N; i++) {
			const uint32_t n = 1 + (uint32_t)rng_below(&rng, 8);
			const uint64_t kind = rng_below(&rng, 8);

			buf[i] = calloc(8, BLOCK);
			io[i] = (struct io) {
				.op = kind < 4   ? BDEV_WRITE
				      : kind < 7 ? BDEV_READ
						 : BDEV_TRIM,
				.off = rng_below(&rng, 24) * BLOCK,
				.len = n * BLOCK,
				.buf = kind < 7 ? buf[i] : NULL,
				.done = random_done,
			};
			random_left++;
			bdev_submit(w->bdev, &io[i]);
		}
		while (random_left)
			reactor_run_once(w->r, SEC_NS);
		for (unsigned i = 0; i < N; i++)
			free(buf[i]);
		if (round % 10 == 9) {
			take_down(w);
			bring_up(w);
		}
		sweep(w);
	}
	assert_int_equal(bdev_verify_head(w->bdev)->wrong, 0);
	assert_int_equal(bdev_verify_head(w->bdev)->sweeps, 50);
	assert_int_equal(bdev_verify_head(w->bdev)->opens, 6);
	take_down(w);
}

/* ---- what is wrong ------------------------------------------------------ */

static void expect_wrong(struct world *w, uint64_t block, const char *words)
{
	const uint64_t before = bdev_verify_head(w->bdev)->wrong;

	assert_int_equal(op(w, BDEV_READ, block, 1), -EBADMSG);
	assert_int_equal(bdev_verify_head(w->bdev)->wrong, before + 1);
	if (!before)
		assert_non_null(
			strstr(bdev_verify_head(w->bdev)->first, words));
}

static void wrong_content_is_told(void **state)
{
	static const char *const words[] = { "goes back",
					     "lost what was written",
					     "no stamp of its place",
					     "two versions",
					     "damaged",
					     "no stamp" };
	struct world *w = *state;
	uint8_t old[BLOCK], now[BLOCK], bad[BLOCK];

	for (unsigned i = 0; i < array_len(words); i++) {
		const uint64_t b = 10 + i;

		memset(w->buf, 7, BLOCK);
		op(w, BDEV_WRITE, b, 1);
		file_block(w, b, old, false);
		op(w, BDEV_WRITE, b, 1);
		op(w, BDEV_WRITE, b + 1, 1);
		file_block(w, b, now, false);
		memcpy(bad, now, BLOCK);
		if (i == 0)
			memcpy(bad, old, BLOCK);
		else if (i == 1)
			memset(bad, 0, BLOCK);
		else if (i == 2)
			file_block(w, b + 1, bad, false);
		else if (i == 3)
			memcpy(bad + 512, old + 512, 512);
		else if (i == 4)
			bad[3000] ^= 1;
		else
			memset(bad, 9, BLOCK);
		file_block(w, b, bad, true);
		expect_wrong(w, b, words[i]);
		file_block(w, b, now, true);
		assert_int_equal(op(w, BDEV_READ, b, 1), 0);
		take_down(w);
		unlink(w->journal); /* each is the first */
		memset(bad, 0, BLOCK);
		for (uint64_t z = 0; z < 20; z++)
			file_block(w, z, bad, true);
		bring_up(w);
	}
	/* trimmed, it must not come back */
	op(w, BDEV_WRITE, 3, 1);
	file_block(w, 3, old, false);
	op(w, BDEV_TRIM, 3, 1);
	assert_int_equal(op(w, BDEV_READ, 3, 1), 0);
	file_block(w, 3, old, true);
	expect_wrong(w, 3, "goes back");
	take_down(w);
}

/* A write that a crash cut off: old or new, and then that for good. */
static void what_was_cut_off_settles(void **state)
{
	struct world *w = *state;
	struct io io = { .op = BDEV_WRITE,
			 .off = 5ull * BLOCK,
			 .len = BLOCK,
			 .buf = w->buf,
			 .done = random_done };
	uint8_t old[BLOCK], now[BLOCK];
	char kept[100];

	snprintf(kept, sizeof(kept), "%s.kept", w->journal);
	op(w, BDEV_WRITE, 5, 1);
	file_block(w, 5, old, false);
	random_left = 1;
	bdev_submit(w->bdev, &io);
	copy_file(w->journal, kept);
	while (random_left)
		reactor_run_once(w->r, SEC_NS);
	file_block(w, 5, now, false);
	take_down(w);
	for (int as_new = 0; as_new < 2; as_new++) {
		copy_file(kept, w->journal);
		file_block(w, 5, as_new ? now : old, true);
		bring_up(w);
		assert_int_equal(op(w, BDEV_READ, 5, 1), 0);
		assert_int_equal(bdev_verify_head(w->bdev)->settled, 1);
		assert_int_equal(bdev_verify_head(w->bdev)->settled_new,
				 as_new);
		file_block(w, 5, as_new ? old : now, true);
		expect_wrong(w, 5, "goes back");
		take_down(w);
	}
	unlink(kept);
}

static void a_journal_of_another_size_is_refused(void **state)
{
	struct world *w = *state;
	struct bdev *child = NULL, *bdev = NULL;
	struct bdev_file_opts opts = { .path = w->file, .len_bytes = SIZE / 2 };
	struct err err = { 0 };

	take_down(w);
	assert_int_equal(bdev_file_open(w->r, &opts, &child, &err), 0);
	assert_int_equal(bdev_verify_open(child, w->journal, &bdev, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "another size"));
	bdev_close_sync(child);
}

#define WORLD(test) \
	cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD(right_is_right_whatever_overlaps),
		WORLD(wrong_content_is_told),
		WORLD(what_was_cut_off_settles),
		WORLD(a_journal_of_another_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
