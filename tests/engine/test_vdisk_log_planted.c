/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rules of the log layout that the simulator does not see broken: a test for
 * each, named as the fault of engine/vdisk/log/mut.h that breaks it. Built with
 * the faults, it fails where its own is planted (log_plant.c).
 *   test_vdisk_log_planted [NAME]    all, or the one
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/log/impl.h"
#include "log_rig.h"

#define BLOCK 4096u

/* ---- well-formed, and of something else ----------------------------- */

static const uint8_t vdisk[16] = "0123456789abcde";

static void super_make(uint8_t *block, unsigned comp, unsigned slot,
		       uint64_t serial)
{
	struct fmt_super s = { .promised = serial, .serial = serial };

	memset(block, 0, BLOCK);
	memcpy(block, &s, sizeof(s));
	fmt_seal(block, FMT_SUPERBLOCK, vdisk, comp, FMT_SUPER(slot), 1,
		 sizeof(s));
}

static int zone_check(const uint8_t *block, uint64_t self)
{
	return fmt_check(block, FMT_ZONE, vdisk, FMT_COMP_ANY, self,
			 sizeof(struct fmt_head), BLOCK);
}

/* Another component's, another place's, another type's: each is refused. */
static void no_magic(void **state)
{
	uint8_t mine[BLOCK], other[BLOCK];
	const void *const block[2] = { mine, other };
	struct fmt_super s;
	unsigned slot;

	(void)state;
	super_make(mine, 1, 0, 5);
	super_make(other, 2, 1, 6);
	assert_int_equal(fmt_super_newest(block, vdisk, 1, &s, &slot), 0);
	assert_int_equal(s.serial, 5);
	super_make(other, 1, 0, 6);
	assert_int_equal(fmt_super_newest(block, vdisk, 1, &s, &slot), 0);
	assert_int_equal(s.serial, 5);
	super_make(other, 1, 1, 6);
	assert_int_equal(fmt_super_newest(block, vdisk, 1, &s, &slot), 0);
	assert_int_equal(s.serial, 6);
	assert_int_not_equal(zone_check(mine, FMT_SUPER(0)), 0);
}

/* The same bytes at another address are another block. */
static void no_lba_seed(void **state)
{
	static const uint8_t bytes[FMT_GRAN] = "of whoever";

	(void)state;
	for (uint64_t lba = 0; lba < 1000; lba++)
		assert_int_not_equal(
			codec_block_crc(7, lba, bytes, sizeof(bytes)),
			codec_block_crc(7, lba + 1, bytes, sizeof(bytes)));
}

/* ---- repairs of one place ------------------------------------------- */

#define SMALL 64 /* blocks, of which one takes a granule */

struct reads {
	struct io io[SMALL];
	uint8_t buf[SMALL][BLOCK];
	unsigned out;
};

static void read_over(struct io *io)
{
	((struct reads *)io->arg)->out--;
}

/* All at the same time. */
static void read_each(struct rig *rig)
{
	struct reads *rd = calloc(1, sizeof(*rd));

	assert_non_null(rd);
	for (unsigned i = 0; i < SMALL; i++) {
		rd->io[i] = (struct io) { .op = BDEV_READ,
					  .off = (uint64_t)i * BLOCK,
					  .len = BLOCK,
					  .buf = rd->buf[i],
					  .done = read_over,
					  .arg = rd };
		rd->out++;
		bdev_submit(rig->vd, &rd->io[i]);
	}
	for (unsigned i = 0; rd->out; i++) {
		assert_true(i < 100000);
		rig_turn(rig);
	}
	for (unsigned i = 0; i < SMALL; i++) {
		assert_int_equal(rd->io[i].result, 0);
		for (unsigned at = 0; at < BLOCK; at++)
			assert_int_equal(rd->buf[i][at], i + 1);
	}
	free(rd);
}

static void damage_data(struct rig *rig, unsigned member, unsigned *damaged)
{
	const struct vlog *v = container_of(rig->vd, struct vlog, bdev);

	for (uint64_t lba = 0; lba < SMALL; lba++) {
		uint32_t crc;
		const uint64_t loc = map_loc(v, lba, &crc);
		const struct seg *s = &v->seg[loc_seg_index(loc)];
		uint64_t off;

		if (loc_kind(loc) != LOC_SEG ||
		    s->comp[loc_unit(loc)] != member)
			continue;
		off = seg_unit_off(v, s, loc_unit(loc), loc_stripe(loc)) +
		      (uint64_t)loc_gran(loc) * FMT_GRAN;
		rig->disk[member].seen[off] ^= 1;
		rig->disk[member].durable[off] ^= 1;
		++*damaged;
	}
}

/*
 * Many small blocks in each 4 KiB of a drive that writes no less, all of them
 * wrong: each is put right once, and the drive stays.
 */
static void repair_race(void **state)
{
	static uint8_t all[SMALL][BLOCK];
	unsigned damaged = 0;
	struct vlog_info info;
	struct rig rig;

	(void)state;
	rig_init(&rig, 3, 1, 1, 3, 240);
	rig.block_bytes = BLOCK;
	rig.spec.policy.codec = VDISK_LZ4;
	if (rig_create_sync(&rig))
		fail_msg("%s", rig.err.text);
	for (unsigned i = 0; i < SMALL; i++)
		memset(all[i], (int)i + 1, BLOCK);
	assert_int_equal(
		bdev_io_sync(rig.vd, BDEV_WRITE, 0, 0, all, sizeof(all)), 0);
	rig_run(&rig, 50 * MSEC_NS);
	for (unsigned i = 0; i < rig.n; i++) {
		damage_data(&rig, i, &damaged);
		read_each(&rig);
	}
	vlog_info(rig.vd, &info);
	for (unsigned i = 0; i < rig.n; i++)
		assert_int_equal(info.slot[i].state, MEMBER_OK);
	/* What was moved meanwhile needs none. */
	assert_in_range(info.reads_repaired, SMALL / 2, damaged);
	rig_check(&rig);
	rig_end(&rig);
}

/* ---- who may vote ---------------------------------------------------- */

/* The content that a component holds, 0: none. */
static uint64_t content_of(const struct rig *rig, unsigned i)
{
	const uint8_t *front = rig->disk[i].seen;
	const void *const block[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	struct fmt_label label;
	struct fmt_super s;
	unsigned slot;

	memcpy(&label, front + FMT_LABEL_A, sizeof(label));
	if (fmt_super_newest(block, label.head.vdisk, label.head.comp, &s,
			     &slot))
		return 0;
	return s.content.epoch << 32 | s.content.seq;
}

/* Member 2, which is away, is to be replaced by the spare; until the content
 * that says so stands on one of the others alone: that one. */
static unsigned half_replaced(struct rig *rig, unsigned spare)
{
	struct vdisk_slot slot = { .domain = "new" };
	struct answer a = { 0 };

	slot.bdev = disk_open(&rig->disk[spare]);
	vlog_replace(rig->vd, 2, &slot, rig_answered, &a);
	for (unsigned turn = 0; turn < 1000; turn++) {
		const bool labelled = rig->disk[spare].seen[FMT_LABEL_A];
		const uint64_t was[2] = { content_of(rig, 0),
					  content_of(rig, 1) };

		rig_turn(rig);
		for (unsigned i = 0; labelled && i < 2; i++)
			if (content_of(rig, i) != was[i])
				return i;
	}
	fail_msg("it is never said");
	return 0;
}

/*
 * The owner dies while it replaces one; the next one goes on with the new
 * component, and dies, too. Then who was replaced is back, and who took its
 * place is not, nor is the one that knew first. What is left was enough before,
 * but must know that it is no more. False: the new one was not taken.
 */
static bool replaced_once(uint64_t seed)
{
	unsigned spare, first;
	struct err err;
	struct rig rig;
	bool taken;

	rig_init(&rig, seed, 1, 1, 3, 400);
	rig.spec.tune.slots = 24;
	if (rig_create_sync(&rig))
		fail_msg("%s", rig.err.text);
	rig_fill(&rig);
	spare = rig_disk_add(&rig, rig.disk[0].bytes);
	assert_int_equal(vlog_member_fail(rig.vd, 2, &err), 0);
	disk_leave(&rig.disk[2]);
	rig_run(&rig, 50 * MSEC_NS);
	first = half_replaced(&rig, spare);
	rig_crash(&rig, true);
	rig_reopen(&rig);
	taken = rig.disk[spare].open;
	rig_crash(&rig, true);
	disk_return(&rig.disk[2]);
	disk_leave(&rig.disk[first]);
	disk_leave(&rig.disk[spare]);
	if (!rig_open_sync(&rig) && taken)
		fail_msg("seed %u: opened by who was replaced", (unsigned)seed);
	for (unsigned i = 0; !rig.vd && i < rig.disks; i++)
		if (rig.slot[i].bdev)
			bdev_close_sync(rig.slot[i].bdev);
	rig_end(&rig);
	return taken;
}

static void blank_votes(void **state)
{
	unsigned taken = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		taken += replaced_once(seed);
	assert_in_range(taken, 20, 40);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_magic),
		cmocka_unit_test(no_lba_seed),
		cmocka_unit_test(repair_race),
		cmocka_unit_test(blank_votes),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
