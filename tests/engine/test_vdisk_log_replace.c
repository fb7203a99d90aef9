/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout: members replaced by empty components, with the owner dying
 * at any moment of it. Whatever happens: all that was written is there, one of
 * the old and the new component is the member, and once the rebuild is through
 * any m others may go.
 *   test_vdisk_log_replace all    at every moment; else at one in 14 or 25
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/log/impl.h"
#include "log_rig.h"

/* Away, and the vDisk has noticed. */
static void lose(struct rig *rig, unsigned i)
{
	struct err err = { 0 };

	assert_int_equal(vlog_member_fail(rig->vd, i, &err), 0);
	disk_leave(&rig->disk[i]);
	rig_turns(rig, 50);
}

static void replace(struct rig *rig, unsigned index, unsigned disk,
		    struct answer *a)
{
	struct vdisk_slot slot = { .bdev = disk_open(&rig->disk[disk]) };

	assert_non_null(slot.bdev);
	snprintf(slot.domain, sizeof(slot.domain), "new%u", disk);
	vlog_replace(rig->vd, index, &slot, rig_answered, a);
}

static void rebuilt(struct rig *rig)
{
	struct vlog_info info;

	for (unsigned i = 0; i < 40000; i++) {
		rig_turn(rig);
		vlog_info(rig->vd, &info);
		if (!info.segs_exposed && info.state == VDISK_HEALTHY)
			return;
	}
	fail_msg("%u segments of %u are still exposed",
		 (unsigned)info.segs_exposed, (unsigned)info.segs);
}

static void begin(struct rig *rig, uint64_t seed, unsigned k, unsigned m,
		  unsigned n)
{
	rig_init(rig, seed, k, m, n, 400);
	rig->spec.tune.slots = 24;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
	rig_fill(rig);
}

static bool all;

/* In the metadata group and outside; then others go, one at a time. */
static void test_replace(void **state)
{
	static const unsigned shape[][3] = { { 1, 1, 3 }, { 2, 1, 4 } };

	(void)state;
	for (unsigned s = 0; s < 2; s++) {
		const unsigned n = shape[s][2];

		for (unsigned i = 0; i < n; i++) {
			struct answer a = { 0 };
			struct vlog_info info;
			struct rig rig;
			unsigned spare;

			begin(&rig, 11 + i, shape[s][0], shape[s][1], n);
			spare = rig_disk_add(&rig, rig.disk[0].bytes);
			lose(&rig, i);
			replace(&rig, i, spare, &a);
			rig_wait_for(&rig, &a, 1);
			if (a.result)
				fail_msg("%s", a.err.text);
			rig_expect_all(&rig);
			rebuilt(&rig);
			vlog_info(rig.vd, &info);
			assert_memory_equal(info.slot[i].domain, "new", 3);
			assert_int_equal(info.failures_left, 1);
			lose(&rig, (i + 1) % n);
			rig_expect_all(&rig);
			rig_crash(&rig, true);
			/* The old one is of no use, nor in the way. */
			disk_return(&rig.disk[i]);
			rig_reopen(&rig);
			vlog_info(rig.vd, &info);
			assert_int_equal(info.slots, n);
			assert_null(rig.disk[i].open);
			rig_expect_all(&rig);
			rig_end(&rig);
		}
	}
}

/*
 * The owner dies after any number of turns. Opened with all there is, either
 * component is the member; then the replacement is asked for again.
 */
static void crash_once(unsigned after, unsigned k, unsigned n, unsigned index)
{
	struct answer a = { 0 }, again = { 0 };
	struct vlog_info info;
	struct rig rig;
	unsigned spare;

	begin(&rig, 1000 + after, k, 1, n);
	spare = rig_disk_add(&rig, rig.disk[0].bytes);
	lose(&rig, index);
	replace(&rig, index, spare, &a);
	rig_turns(&rig, after);
	rig_crash(&rig, after / 2 % 2);
	if (after % 3) /* the old one is there again, too */
		disk_return(&rig.disk[index]);
	rig_reopen(&rig);
	rig_expect_all(&rig);
	vlog_info(rig.vd, &info);
	assert_false(rig.disk[spare].open && rig.disk[index].open);
	if (a.count) /* what was answered counts */
		assert_non_null(rig.disk[spare].open);
	if (!info.slot[index].bdev) {
		replace(&rig, index, spare, &again);
		rig_wait_for(&rig, &again, 1);
		if (again.result)
			fail_msg("after %u: %s", after, again.err.text);
	}
	rebuilt(&rig);
	lose(&rig, (index + 1 + after % (n - 1)) % n);
	rig_expect_all(&rig);
	if (after % 5 == 0) {
		rig_crash(&rig, true);
		rig_reopen(&rig);
		rig_expect_all(&rig);
	}
	rig_end(&rig);
}

static void test_crash(void **state)
{
	(void)state;
	for (unsigned after = 0; after < 150; after += all ? 1 : 14)
		crash_once(after, 1, 3, after / 2 % 3);
	for (unsigned after = 1; after < 150; after += all ? 1 : 25)
		crash_once(after, 2, 4, after % 4);
}

/* Two at a time; one that is no component; one of another index. */
static void test_queue(void **state)
{
	struct answer a = { 0 }, b = { 0 }, c = { 0 };
	struct vdisk_slot slot = { 0 };
	struct rig rig;

	(void)state;
	begin(&rig, 5, 1, 2, 5);
	rig_disk_add(&rig, rig.disk[0].bytes);
	rig_disk_add(&rig, rig.disk[0].bytes);
	rig_disk_add(&rig, rig.disk[0].bytes / 2);
	lose(&rig, 0);
	lose(&rig, 3);
	replace(&rig, 0, 5, &a);
	replace(&rig, 3, 6, &b);
	replace(&rig, 3, 7, &c); /* in service by then */
	rig_wait_for(&rig, &a, 1);
	rig_wait_for(&rig, &b, 1);
	rig_wait_for(&rig, &c, 1);
	assert_int_equal(a.result, 0);
	assert_int_equal(b.result, 0);
	assert_int_equal(c.result, -EBUSY);
	rebuilt(&rig);
	lose(&rig, 1);
	lose(&rig, 2);
	rig_expect_all(&rig);
	replace(&rig, 1, 7, &c);
	rig_wait_for(&rig, &c, 2);
	assert_int_equal(c.result, -ENOSPC);
	disk_return(&rig.disk[2]);
	replace(&rig, 1, 2, &c); /* member 2 as member 1 */
	rig_wait_for(&rig, &c, 3);
	assert_int_equal(c.result, -EINVAL);
	replace(&rig, 2, 2, &c);
	rig_wait_for(&rig, &c, 4);
	assert_int_equal(c.result, 0);
	disk_return(&rig.disk[0]);
	slot.bdev = disk_open(&rig.disk[0]); /* was replaced */
	vlog_replace(rig.vd, 1, &slot, rig_answered, &c);
	rig_wait_for(&rig, &c, 5);
	assert_int_equal(c.result, -EINVAL);
	rig_expect_all(&rig);
	rig_end(&rig);
}

/* What was on it is gone, its label too; it is given back as it is. */
static void test_wiped(void **state)
{
	struct vlog_info was, info;
	struct rig rig;

	(void)state;
	begin(&rig, 21, 1, 1, 3);
	vlog_info(rig.vd, &was);
	assert_string_not_equal(was.slot[1].domain, "");
	lose(&rig, 1);
	memset(rig.disk[1].seen, 0, rig.disk[1].bytes);
	memset(rig.disk[1].durable, 0, rig.disk[1].bytes);
	disk_return(&rig.disk[1]);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	rebuilt(&rig);
	vlog_info(rig.vd, &info);
	assert_string_equal(info.slot[1].domain, was.slot[1].domain);
	assert_string_equal(info.slot[1].drive, was.slot[1].drive);
	assert_string_equal(info.slot[1].component, was.slot[1].component);
	rig_expect_all(&rig);
	rig_end(&rig);
}

/*
 * Some of labels (blocks 0 and 3) and superblocks cannot be read of one that
 * comes back: it is itself all the same, or refused, but never taken for an
 * empty one.
 */
static void test_scratched(void **state)
{
	static const struct {
		uint32_t blocks; /* bits */
		int result;
	} cases[] = {
		{ 1, 0 }, { 2, 0 },    { 4, 0 },    { 8, 0 },
		{ 3, 0 }, { 9, -EIO }, { 6, -EIO },
	};
	struct vlog_info info;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		begin(&rig, 41, 1, 1, 3);
		lose(&rig, 1);
		for (unsigned s = 0; s < 32; s++)
			rig.disk[1].bad[s] = cases[i].blocks >> s / 8 & 1;
		disk_return(&rig.disk[1]);
		assert_int_equal(rig_give_back(&rig, 1), cases[i].result);
		vlog_info(rig.vd, &info);
		assert_int_equal(!info.slot[1].bdev, cases[i].result != 0);
		if (!cases[i].result) {
			assert_int_equal(info.segs_exposed, 0);
			rebuilt(&rig);
			rig_crash(&rig, true);
			disk_leave(&rig.disk[0]);
			rig_reopen(&rig);
		}
		rig_expect_all(&rig);
		rig_end(&rig);
	}
}

/* Whoever goes next, once it rests: the new one must have a vote. crash: the
 * owner dies as soon as the new one is the member. */
static void vote_once(unsigned index, bool crash)
{
	struct answer a = { 0 };
	struct vlog_info info;
	struct rig rig;
	unsigned spare;

	begin(&rig, 31 + index, 1, 1, 3);
	spare = rig_disk_add(&rig, rig.disk[0].bytes);
	lose(&rig, index);
	replace(&rig, index, spare, &a);
	rig_wait_for(&rig, &a, 1);
	assert_int_equal(a.result, 0);
	vlog_info(rig.vd, &info);
	assert_int_equal(info.slot[index].state, MEMBER_REBUILDING);
	assert_int_equal(info.failures_left, 0);
	if (crash) {
		rig_crash(&rig, true);
		rig_reopen(&rig);
	}
	rebuilt(&rig);
	rig_crash(&rig, true);
	disk_leave(&rig.disk[(index + 1) % 3]);
	rig_reopen(&rig);
	rig_expect_all(&rig);
	rig_end(&rig);
}

static void test_vote(void **state)
{
	(void)state;
	for (unsigned index = 0; index < 3; index++) {
		vote_once(index, false);
		vote_once(index, true);
	}
}

/* ---- reads that take long ------------------------------------------ */

struct reading {
	struct io io[RIG_BLOCKS];
	uint8_t *buf;
	unsigned out;
};

static void reading_done(struct io *io)
{
	((struct reading *)io->arg)->out--;
}

/* Of every block; what drives are asked for at once, they answer late. */
static void reading_begin(struct rig *rig, struct reading *rd)
{
	for (unsigned i = 0; i < rig->disks; i++)
		rig->disk[i].slow = 20000; /* to 2 s */
	rd->buf = malloc((size_t)RIG_BLOCKS * 4096);
	rd->out = RIG_BLOCKS;
	for (uint64_t lba = 0; lba < RIG_BLOCKS; lba++) {
		rd->io[lba] = (struct io) { .op = BDEV_READ,
					    .off = lba * 4096,
					    .len = 4096,
					    .buf = rd->buf + lba * 4096,
					    .done = reading_done,
					    .arg = rd };
		bdev_submit(rig->vd, &rd->io[lba]);
	}
	rig_run(rig, 100 * MSEC_NS); /* the others were asked, too */
	for (unsigned i = 0; i < rig->disks; i++)
		rig->disk[i].slow = 0;
}

static void reading_end(struct rig *rig, struct reading *rd)
{
	for (unsigned i = 0; rd->out; i++) {
		assert_true(i < 20000);
		rig_turn(rig);
	}
	for (uint64_t lba = 0; lba < RIG_BLOCKS; lba++) {
		assert_int_equal(rd->io[lba].result, 0);
		assert_int_equal(block_version(lba, rd->buf + lba * 4096),
				 rig_version(lba));
	}
	free(rd->buf);
}

/* All that a read is after moves elsewhere; then what it waits for goes. */
static void test_moved_on(void **state)
{
	unsigned outlasted = 0;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		const unsigned first = i % 4, second = (first + 1 + i / 4) % 4;
		struct answer a = { 0 };
		struct reading rd;
		struct rig rig;
		unsigned spare;

		begin(&rig, 60 + i, 2, 1, 4);
		spare = rig_disk_add(&rig, rig.disk[0].bytes);
		reading_begin(&rig, &rd);
		lose(&rig, first);
		replace(&rig, first, spare, &a);
		rig_wait_for(&rig, &a, 1);
		assert_int_equal(a.result, 0);
		rebuilt(&rig);
		outlasted += rd.out > 0;
		lose(&rig, second);
		reading_end(&rig, &rd);
		rig_end(&rig);
	}
	assert_in_range(outlasted, 6, 12);
}

/* One that was not asked, as it was away, comes back in time. */
static void test_back_in_time(void **state)
{
	struct answer a = { 0 };
	struct reading rd;
	struct rig rig;
	unsigned spare;

	(void)state;
	begin(&rig, 8, 2, 1, 4);
	spare = rig_disk_add(&rig, rig.disk[0].bytes);
	vlog_rebuild_limit(rig.vd, 1);
	lose(&rig, 0);
	replace(&rig, 0, spare, &a);
	rig_wait_for(&rig, &a, 1);
	lose(&rig, 1);
	reading_begin(&rig, &rd);
	disk_return(&rig.disk[1]);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	assert_true(rd.out > 0);
	reading_end(&rig, &rd);
	rig_end(&rig);
}

static void heard(struct bdev *vd, void *arg)
{
	struct vlog_info info;

	vlog_info(vd, &info);
	*(enum vdisk_state *)arg = info.state;
}

/* Who only looks when told that something has changed knows how it is. */
static void test_told(void **state)
{
	enum vdisk_state last = VDISK_HEALTHY;
	struct answer a = { 0 };
	struct rig rig;

	(void)state;
	rig_init(&rig, 3, 1, 1, 6, 400);
	rig.spec.changed = heard;
	rig.spec.changed_arg = &last;
	assert_int_equal(rig_create_sync(&rig), 0);
	lose(&rig, 0);
	assert_int_equal(last, VDISK_DEGRADED);
	rig_disk_add(&rig, rig.disk[0].bytes);
	replace(&rig, 0, 6, &a);
	rig_wait_for(&rig, &a, 1);
	assert_int_equal(a.result, 0);
	assert_int_equal(last, VDISK_REBUILDING);
	rebuilt(&rig);
	rig_turns(&rig, 10);
	assert_int_equal(last, VDISK_HEALTHY);
	rig_end(&rig);
}

/* The member, of a stripe that is on its way, that is asked last; -1: none is
 * on its way. */
static int slow_member(struct rig *rig)
{
	const struct vlog *v = container_of(rig->vd, struct vlog, bdev);

	for (uint32_t i = 0; i < v->segs; i++)
		if (v->seg[i].out)
			return v->seg[i].comp[1];
	return -1;
}

/*
 * A stripe is on its way when one of its members is replaced: what lives in it
 * in the end has lost that member, and is rebuilt though nobody was looking for
 * anything any more.
 */
static void test_in_flight(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct answer a = { 0 };
		struct rig rig;
		unsigned spare;
		int member;

		rig_init(&rig, seed, 1, 1, 4, 400);
		rig.spec.tune.slots = 40;
		rig.spec.policy.codec = VDISK_RAW;
		if (rig_create_sync(&rig))
			fail_msg("%s", rig.err.text);
		spare = rig_disk_add(&rig, rig.disk[0].bytes);
		for (unsigned i = 0; i < rig.n; i++)
			rig.disk[i].slow = 20000; /* for what is under way */
		for (unsigned lba = 0; (member = slow_member(&rig)) < 0; lba++)
			assert_int_equal(rig_put(&rig, lba, 1, 1), 0);
		for (unsigned i = 0; i < rig.n; i++)
			rig.disk[i].slow = 0;
		lose(&rig, (unsigned)member);
		replace(&rig, (unsigned)member, spare, &a);
		rig_wait_for(&rig, &a, 1);
		assert_int_equal(a.result, 0);
		rebuilt(&rig);
		rig_run(&rig, 5 * SEC_NS); /* by now it has come */
		assert_int_equal(slow_member(&rig), -1);
		rebuilt(&rig);
		rig_end(&rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_wiped),
		cmocka_unit_test(test_scratched),
		cmocka_unit_test(test_vote),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_moved_on),
		cmocka_unit_test(test_back_in_time),
		cmocka_unit_test(test_in_flight),
	};

	all = argc > 1 && !strcmp(argv[1], "all");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
