/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every combination of missing members that the policy covers, for each level:
 * gone while it serves under load, or at the opening; rebuilt without them,
 * then given back. And one more than it covers: refused or EIO, and nothing
 * acknowledged is lost once they are back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/log/format.h"
#include "log_rig.h"

#define LBAS 120

static const struct shape {
	unsigned k, m, n;
} shapes[] = { { 1, 1, 3 }, { 1, 2, 5 }, { 1, 3, 7 },
	       { 2, 1, 3 }, { 4, 1, 6 }, { 4, 2, 6 } };

static void create(struct rig *rig, const struct shape *s)
{
	rig_init(rig, 3, s->k, s->m, s->n, 300);
	rig->spec.tune.slots = 60;
	rig->spec.pace.absent_ms = 20;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void fill(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba += 12)
		assert_int_equal(rig_put(rig, lba, version, 12), 0);
	for (uint64_t lba = 1; lba < LBAS; lba += 5)
		assert_int_equal(rig_put(rig, lba, version + 1, 1), 0);
}

static void expect(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba++)
		assert_int_equal(
			rig_expect(rig, lba, version + (lba % 5 == 1), 1), 0);
}

static bool in(uint32_t set, unsigned i)
{
	return set >> i & 1;
}

static void give_back_all(struct rig *rig, uint32_t set)
{
	for (unsigned i = 0; i < rig->n; i++) {
		struct vlog_info info;

		if (in(set, i))
			disk_return(&rig->disk[i]);
		vlog_info(rig->vd, &info);
		if (!info.slot[i].bdev)
			assert_int_equal(rig_give_back(rig, i), 0);
	}
	rig_until(rig, VDISK_HEALTHY, 5 * SEC_NS);
}

/* The others hold everything in full redundancy. */
static void rebuilt(struct rig *rig)
{
	struct vlog_info info;

	rig_run(rig, 40 * MSEC_NS);
	rig_until(rig, VDISK_DEGRADED, 5 * SEC_NS);
	vlog_info(rig->vd, &info);
	assert_int_equal(info.segs_exposed, 0);
	assert_int_equal(info.blocks_lost, 0);
	assert_int_equal(info.reads_failed, 0);
}

static void serving(struct rig *rig, uint32_t set, uint32_t version)
{
	for (unsigned i = 0; i < rig->n; i++)
		if (in(set, i))
			disk_leave(&rig->disk[i]);
	expect(rig, version - 2);
	fill(rig, version); /* notices, and goes on */
	expect(rig, version);
	vlog_checkpoint(rig->vd);
	rig_run(rig, 5 * MSEC_NS);
	rebuilt(rig);
	expect(rig, version);
	give_back_all(rig, set);
	expect(rig, version);
	rig_check(rig);
}

static void opening(struct rig *rig, uint32_t set, uint32_t version, bool clean)
{
	if (clean)
		rig_close_sync(rig);
	else
		rig_crash(rig, true);
	for (unsigned i = 0; i < rig->n; i++)
		if (in(set, i))
			disk_leave(&rig->disk[i]);
	if (rig_open_sync(rig))
		fail_msg("without %x: %s", set, rig->err.text);
	expect(rig, version - 2);
	fill(rig, version);
	rebuilt(rig);
	expect(rig, version);
	give_back_all(rig, set);
	expect(rig, version);
	rig_check(rig);
}

static unsigned covered(const struct shape *s)
{
	uint32_t version = 1;
	unsigned sets = 0;
	struct rig rig;

	create(&rig, s);
	fill(&rig, version);
	for (uint32_t set = 1; set < 1u << s->n; set++) {
		if ((unsigned)__builtin_popcount(set) > s->m)
			continue;
		serving(&rig, set, version += 2);
		opening(&rig, set, version += 2, set % 2);
		sets++;
	}
	rig_close_sync(&rig);
	rig_fini(&rig);
	return sets;
}

static void test_covered(void **state)
{
	(void)state;
	for (unsigned i = 0; i < array_len(shapes); i++)
		printf("%u+%u on %u: %u combinations\n", shapes[i].k,
		       shapes[i].m, shapes[i].n, covered(&shapes[i]));
}

/* ---- above the policy ---------------------------------------------- */

static void slots_close(struct rig *rig)
{
	for (unsigned i = 0; i < rig->n; i++)
		if (rig->slot[i].bdev)
			bdev_close_sync(rig->slot[i].bdev);
}

/* Whatever comes is right, or an error. */
static void right_or_error(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba++) {
		const int rc =
			rig_expect(rig, lba, version + (lba % 5 == 1), 1);

		assert_true(!rc || rc == -EIO);
	}
}

static void above(const struct shape *s, uint32_t set)
{
	struct vlog_info info;
	struct rig rig;

	create(&rig, s);
	fill(&rig, 1);
	for (unsigned i = 0; i < rig.n; i++)
		if (in(set, i))
			disk_leave(&rig.disk[i]);
	right_or_error(&rig, 1);
	for (unsigned i = 0; i < 20; i++)
		rig_put(&rig, 200 + i, 1, 1);
	right_or_error(&rig, 1);
	vlog_info(rig.vd, &info);
	if (info.state == VDISK_FAILED)
		assert_non_null(strstr(info.reason, "open it again"));
	rig_crash(&rig, true);
	assert_int_equal(rig_open_sync(&rig), -EAGAIN);
	slots_close(&rig);
	for (unsigned i = 0; i < rig.n; i++)
		disk_return(&rig.disk[i]);
	if (rig_open_sync(&rig))
		fail_msg("%s", rig.err.text);
	expect(&rig, 1);
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_above(void **state)
{
	(void)state;
	for (unsigned i = 0; i < array_len(shapes); i++)
		for (uint32_t set = 1; set < 1u << shapes[i].n; set++)
			if ((unsigned)__builtin_popcount(set) ==
				    shapes[i].m + 1 &&
			    (shapes[i].n < 6 || set % 5 == 0))
				above(&shapes[i], set);
}

/*
 * The owner dies, a member goes, and of the log on the others each block cannot
 * be read at first: what stands there was acknowledged all the same.
 */
static void moody(const struct shape *s, unsigned away)
{
	struct rig rig;
	int rc = -EAGAIN;

	create(&rig, s);
	fill(&rig, 1);
	rig_crash(&rig, true);
	disk_leave(&rig.disk[away]);
	for (unsigned i = 0; i < rig.n; i++)
		for (uint64_t off = FMT_LOG_OFF; off < rig.disk[i].bytes;
		     off += 4096)
			rig.disk[i].moody[off / SECTOR] = 1;
	for (unsigned i = 0; rc == -EAGAIN && i < 50; i++) {
		rc = rig_open_sync(&rig);
		if (rc)
			slots_close(&rig);
	}
	if (rc)
		fail_msg("%u away: %s", away, rig.err.text);
	for (unsigned i = 0; i < rig.n; i++)
		memset(rig.disk[i].moody, 0, rig.disk[i].bytes / SECTOR);
	expect(&rig, 1);
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_read_at_the_second_try(void **state)
{
	(void)state;
	for (unsigned i = 0; i < array_len(shapes); i++)
		for (unsigned away = 0; away < shapes[i].n; away++)
			moody(&shapes[i], away);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_covered),
		cmocka_unit_test(test_above),
		cmocka_unit_test(test_read_at_the_second_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
