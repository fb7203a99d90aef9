/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log layout: what it stores it gives back, whatever has happened since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log_rig.h"

static int sync_io(struct rig *rig, enum bdev_op op, uint64_t lba, void *buf,
		   uint32_t blocks)
{
	return bdev_io_sync(rig->vd, op, 0, lba * 4096, buf, blocks * 4096);
}

static void put(struct rig *rig, uint64_t lba, uint32_t version,
		uint32_t blocks)
{
	uint8_t *buf = malloc((size_t)blocks * 4096);

	for (uint32_t i = 0; i < blocks; i++)
		block_make(lba + i, version, buf + (size_t)i * 4096);
	assert_int_equal(sync_io(rig, BDEV_WRITE, lba, buf, blocks), 0);
	free(buf);
}

static void expect(struct rig *rig, uint64_t lba, uint32_t version,
		   uint32_t blocks)
{
	uint8_t *buf = malloc((size_t)blocks * 4096);

	assert_int_equal(sync_io(rig, BDEV_READ, lba, buf, blocks), 0);
	for (uint32_t i = 0; i < blocks; i++)
		assert_int_equal(block_version(lba + i, buf + (size_t)i * 4096),
				 version);
	free(buf);
}

static void check(struct rig *rig)
{
	struct err err = { 0 };

	if (vlog_check(rig->vd, &err))
		fail_msg("%s", err.text);
}

static void create(struct rig *rig, unsigned k, unsigned m, unsigned n)
{
	rig_init(rig, 7, k, m, n, 1200);
	rig->spec.tune.slots = 13;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void reopen(struct rig *rig)
{
	if (rig_open_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void test_basic(void **state)
{
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 3);
	expect(&rig, 0, 0, 4);
	put(&rig, 3, 1, 1);
	put(&rig, 3, 2, 5);
	put(&rig, 700, 3, 100);
	expect(&rig, 3, 2, 5);
	expect(&rig, 700, 3, 100);
	assert_int_equal(sync_io(&rig, BDEV_TRIM, 4, NULL, 2), 0);
	expect(&rig, 4, 0, 2);
	expect(&rig, 6, 2, 1);
	check(&rig);
	rig_close_sync(&rig);
	reopen(&rig);
	expect(&rig, 3, 2, 1);
	expect(&rig, 4, 0, 2);
	expect(&rig, 700, 3, 100);
	check(&rig);
	rig_crash(&rig, true);
	reopen(&rig);
	expect(&rig, 700, 3, 100);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

/* They take no room, by either way, and are counted: what is filled with
 * zeros makes figures meaningless. */
static void test_zeros_are_counted(void **state)
{
	uint8_t *buf = calloc(128, 4096);
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 3);
	assert_int_equal(sync_io(&rig, BDEV_WRITE, 9, buf, 3), 0);
	assert_int_equal(sync_io(&rig, BDEV_WRITE, 100, buf, 128), 0);
	put(&rig, 500, 1, 2);
	vlog_info(rig.vd, &info);
	assert_int_equal(info.zero_blocks, 131);
	assert_int_equal(info.user_bytes, 133 * 4096);
	assert_true(info.user_stored_bytes <= 2 * 4096);
	expect(&rig, 9, 0, 3);
	expect(&rig, 100, 0, 128);
	rig_close_sync(&rig);
	rig_fini(&rig);
	free(buf);
}

/* Enough to destage, seal, checkpoint and clean. */
struct lent {
	struct io io;
	uint64_t lba;
	uint32_t version, wrong;
	bool over;
};

/* What is lent is there for as long as the callback runs. */
static void lent_done(struct io *io)
{
	struct lent *t = io->arg;
	const uint8_t *p = io->buf;

	for (uint32_t i = 0; i < io->len / 4096; i++)
		t->wrong += block_version(t->lba + i, p + (size_t)i * 4096) !=
			    t->version;
	t->over = true;
}

/* True: it was lent, false: copied; right it must be. */
static bool lent(struct rig *rig, uint64_t lba, uint32_t version,
		 uint32_t blocks)
{
	uint8_t *buf = calloc(blocks, 4096);
	struct lent t = { .io = { .op = BDEV_READ,
				  .flags = BDEV_LEND,
				  .off = lba * 4096,
				  .len = blocks * 4096,
				  .buf = buf,
				  .done = lent_done,
				  .arg = &t },
			  .lba = lba,
			  .version = version };

	bdev_submit(rig->vd, &t.io);
	while (!t.over)
		rig_turn(rig);
	assert_int_equal(t.io.result, 0);
	assert_int_equal(t.wrong, 0);
	free(buf);
	return t.io.buf != buf;
}

static void test_lent(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, 7, 2, 1, 3, 1200);
	rig.spec.policy.codec = VDISK_LZ4;
	if (rig_create_sync(&rig))
		fail_msg("%s", rig.err.text);
	put(&rig, 5, 3, 2); /* in the buffer */
	put(&rig, 8, 2, 1);
	put(&rig, 100, 3, 100); /* straight to segments */
	put(&rig, 400, 2, 1);
	assert_true(lent(&rig, 5, 3, 1));
	assert_true(lent(&rig, 101, 3, 1));
	assert_true(lent(&rig, 102, 3, 2));
	assert_false(lent(&rig, 8, 2, 1)); /* is to be unpacked */
	assert_false(lent(&rig, 5, 3, 2)); /* in two pieces */
	assert_false(lent(&rig, 100, 3, 100));
	assert_false(lent(&rig, 50, 0, 1)); /* not there */
	rig.disk[0].stuck = true;           /* late: from the others */
	for (uint64_t lba = 100; lba < 200; lba += 7)
		lent(&rig, lba, 3, 1);
	disk_unstick(&rig.disk[0]);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_churn(void **state)
{
	struct rig rig;
	struct vlog_info info;

	(void)state;
	create(&rig, 2, 1, 4);
	for (uint32_t v = 1; v <= 600; v++) {
		put(&rig, 100 + v % 150, v, 1);
		put(&rig, (v * 2654435761u >> 8) % 60, v, 1);
	}
	for (uint64_t lba = 0; lba < 60; lba += 4)
		put(&rig, lba, 60, 4);
	check(&rig);
	vlog_info(rig.vd, &info);
	assert_true(info.checkpoints > 1);
	assert_true(info.destage_bytes > 0 && info.live_bytes > 0);
	assert_true(info.cleaned_segs > 0);
	expect(&rig, 0, 60, 60);
	rig_crash(&rig, true);
	reopen(&rig);
	expect(&rig, 0, 60, 60);
	check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

/* What was discarded is given back to the drives; what is written again in the
 * meantime is not. */
static void test_punch(void **state)
{
	struct vlog_info info;
	struct rig rig;
	uint64_t trimmed = 0;

	(void)state;
	rig_init(&rig, 8, 2, 1, 3, 1200);
	rig.spec.tune.slots = 40;
	rig.spec.policy.codec = VDISK_RAW;
	rig.spec.pace.punch_ms = 50;
	if (rig_create_sync(&rig))
		fail_msg("%s", rig.err.text);
	for (uint32_t lba = 0; lba < 300; lba += 20)
		put(&rig, lba, 1 + lba, 20);
	assert_int_equal(sync_io(&rig, BDEV_TRIM, 0, NULL, 200), 0);
	for (unsigned i = 0; i < 3000; i++) {
		rig_turn(&rig);
		if (i % 10 == 0)
			check(&rig);
	}
	vlog_info(rig.vd, &info);
	for (unsigned i = 0; i < rig.n; i++)
		trimmed += rig.disk[i].trimmed;
	assert_true(trimmed > 0 && trimmed == info.punched_bytes);
	for (uint32_t lba = 200; lba < 300; lba += 20)
		expect(&rig, lba, 1 + lba, 20);
	for (uint32_t v = 1; v <= 40; v++) { /* at once, and again */
		put(&rig, v % 5 * 20, v, 20);
		rig_turn(&rig);
	}
	for (uint32_t v = 36; v <= 40; v++)
		expect(&rig, v % 5 * 20, v, 20);
	rig_crash(&rig, true);
	reopen(&rig);
	for (uint32_t v = 36; v <= 40; v++)
		expect(&rig, v % 5 * 20, v, 20);
	expect(&rig, 120, 0, 80);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static uint64_t reads(const struct rig *rig)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->n; i++)
		sum += rig->disk[i].reads;
	return sum;
}

/* A read takes 51 us on average: one after another they would take longer. */
static void test_opening_reads_several_at_a_time(void **state)
{
	struct rig rig;
	uint64_t before, ns;

	(void)state;
	create(&rig, 2, 1, 4);
	for (uint32_t v = 1; v <= 40; v++)
		put(&rig, v * 7, v, 3);
	rig_crash(&rig, true);
	before = reads(&rig);
	ns = reactor_now(rig.r);
	reopen(&rig);
	ns = reactor_now(rig.r) - ns;
	assert_true(reads(&rig) - before > 60);
	assert_true(ns < (reads(&rig) - before) * 51 * USEC_NS / 2);
	for (uint32_t v = 1; v <= 40; v++)
		expect(&rig, v * 7, v, 3);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

/* Data lies on all members alike, so reads keep all drives busy. */
static void reads_are_spread(unsigned k, unsigned m)
{
	const uint32_t blocks = 2048;
	struct rig rig;
	uint64_t most = 0, sum = 0;

	rig_init(&rig, 7, k, m, 7, blocks);
	rig.spec.policy.codec = VDISK_RAW;
	rig.spec.tune.slots = 0;
	assert_int_equal(rig_create_sync(&rig), 0);
	for (uint32_t lba = 0; lba < blocks; lba += 32)
		put(&rig, lba, 1, 32);
	rig_close_sync(&rig); /* nearly all is on the drives */
	reopen(&rig);
	for (unsigned i = 0; i < rig.n; i++)
		rig.disk[i].reads = 0;
	for (uint32_t lba = 0; lba < blocks; lba++)
		expect(&rig, lba, 1, 1);
	for (unsigned i = 0; i < rig.n; i++) {
		sum += rig.disk[i].reads;
		if (rig.disk[i].reads > most)
			most = rig.disk[i].reads;
	}
	assert_true(sum > blocks * 9 / 10);
	assert_true((double)most * rig.n < 1.3 * (double)sum);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_reads_are_spread(void **state)
{
	(void)state;
	reads_are_spread(2, 1);
	reads_are_spread(4, 1);
	reads_are_spread(4, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_zeros_are_counted),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_punch),
		cmocka_unit_test(test_opening_reads_several_at_a_time),
		cmocka_unit_test(test_reads_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
