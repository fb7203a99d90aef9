/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout with all its addresses written: whatever it is changed to, and
 * whoever is away, there is room for what it holds, and what was begun ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log_rig.h"

#define BLOCKS 1024u

struct policy {
	const char *name;
	unsigned raid, k, m, least;
};

static const struct policy policies[] = {
	{ "RAID-1 FTT 1", 1, 1, 1, 3 }, { "RAID-5 2+1", 5, 2, 1, 3 },
	{ "RAID-1 FTT 2", 1, 1, 2, 5 }, { "RAID-5 4+1", 5, 4, 1, 5 },
	{ "RAID-6 4+2", 6, 4, 2, 6 },   { "RAID-1 FTT 3", 1, 1, 3, 7 },
};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))

struct full {
	struct rig rig;
	uint32_t version[BLOCKS];
	struct answer answer;
};

static void put(struct full *f, uint64_t lba, uint32_t blocks)
{
	uint8_t buf[64 * 4096];

	for (uint32_t i = 0; i < blocks; i++)
		block_make(lba + i, ++f->version[lba + i], buf + i * 4096u);
	assert_int_equal(bdev_io_sync(f->rig.vd, BDEV_WRITE, 0, lba * 4096, buf,
				      blocks * 4096),
			 0);
}

static void expect_all(struct full *f)
{
	uint8_t *buf = malloc(BLOCKS * 4096);

	assert_int_equal(
		bdev_io_sync(f->rig.vd, BDEV_READ, 0, 0, buf, BLOCKS * 4096),
		0);
	for (uint64_t lba = 0; lba < BLOCKS; lba++)
		assert_int_equal(block_version(lba, buf + lba * 4096),
				 f->version[lba]);
	free(buf);
	rig_check(&f->rig);
}

/* As many blocks as there are, here and there. */
static void overwrite(struct full *f)
{
	for (unsigned done = 0; done < BLOCKS;) {
		const uint32_t at =
			(uint32_t)rng_below(&f->rig.rng, BLOCKS - 32);
		const uint32_t blocks =
			rng_below(&f->rig.rng, 8)
				? 1 + (uint32_t)rng_below(&f->rig.rng, 4)
				: 32;

		put(f, at, blocks);
		done += blocks;
	}
}

/* slots: of each; 0: as many as it takes by itself. */
static struct full *begin(const struct policy *p, unsigned n, uint64_t seed,
			  uint32_t slots)
{
	struct full *f = calloc(1, sizeof(*f));

	rig_init(&f->rig, seed, p->k, p->m, n, BLOCKS);
	f->rig.growable = true;
	f->rig.spec.policy.raid = (enum raid_level)p->raid;
	f->rig.spec.policy.codec = VDISK_RAW;
	f->rig.spec.pace.absent_ms = 200;
	f->rig.spec.tune.stripes = 4;
	f->rig.spec.tune.zones = 4;
	f->rig.spec.tune.slots = slots;
	f->rig.spec.tune.buffer_bytes = 256 << 10;
	if (rig_create_sync(&f->rig))
		fail_msg("%s", f->rig.err.text);
	for (uint32_t lba = 0; lba < BLOCKS; lba += 16)
		put(f, lba, 16);
	overwrite(f);
	return f;
}

static void end(struct full *f)
{
	rig_close_sync(&f->rig);
	rig_fini(&f->rig);
	free(f);
}

static void turn_until_answered(struct full *f, uint64_t ns)
{
	const uint64_t until = reactor_now(f->rig.r) + ns;
	struct vlog_info info;

	while (!f->answer.count && reactor_now(f->rig.r) < until)
		rig_turn(&f->rig);
	vlog_info(f->rig.vd, &info);
	if (!f->answer.count)
		fail_msg("%.3f as the policy says, %.3f free, \"%s\"",
			 info.compliance, info.free, info.reason);
	if (f->answer.result)
		fail_msg("%s", f->answer.err.text);
}

static void change(struct full *f, const struct policy *to)
{
	const struct vdisk_spec target = {
		.policy = { .raid = (enum raid_level)to->raid,
			    .k = (uint8_t)to->k,
			    .m = (uint8_t)to->m,
			    .layout = VDISK_LOG,
			    .codec = VDISK_RAW },
	};

	f->answer = (struct answer) { 0 };
	vlog_policy_change(f->rig.vd, &target, rig_answered, &f->answer);
}

static void converts(struct full *f, const struct policy *to, bool used)
{
	struct vlog_info info;

	change(f, to);
	if (used)
		overwrite(f);
	turn_until_answered(f, 20 * SEC_NS);
	vlog_info(f->rig.vd, &info);
	assert_true(info.compliance == 1);
	assert_int_equal(info.state, VDISK_HEALTHY);
	assert_int_equal(info.failures_left, to->m);
	expect_all(f);
	end(f);
}

/* From each to each, nobody writing, and somebody writing. */
static void test_pairs(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICIES; i++)
		for (unsigned j = 0; j < POLICIES; j++) {
			const struct policy *from = &policies[i];
			const struct policy *to = &policies[j];
			const unsigned n = from->least > to->least ? from->least
								   : to->least;

			if (i != j)
				converts(begin(from, n, i * 10 + j, 0), to,
					 (i + j) & 1);
		}
}

/* Nothing is free but what the cleaner keeps free: it has to make room. */
static void test_tight(void **state)
{
	static const struct {
		unsigned n;
		struct policy from, to;
		uint32_t slots;
	} pairs[] = {
		{ 3, { "", 1, 1, 1, 3 }, { "", 0, 3, 0, 3 }, 75 },
		{ 5, { "", 1, 1, 2, 5 }, { "", 5, 2, 1, 3 }, 68 },
		{ 7, { "", 1, 1, 3, 7 }, { "", 6, 4, 2, 6 }, 65 },
		{ 6, { "", 6, 4, 2, 6 }, { "", 5, 4, 1, 5 }, 27 },
	};

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		converts(begin(&pairs[i / 2].from, pairs[i / 2].n, 200 + i,
			       pairs[i / 2].slots),
			 &pairs[i / 2].to, i & 1);
}

/* On as few as it can be on, as many away as it stands. */
static void degraded(const struct policy *p)
{
	struct full *f = begin(p, p->least, 7 + p->k + p->m, 0);
	struct err err = { 0 };

	for (unsigned i = 0; i < p->m; i++) {
		assert_int_equal(vlog_member_fail(f->rig.vd, i, &err), 0);
		disk_leave(&f->rig.disk[i]);
	}
	rig_run(&f->rig, SEC_NS);
	overwrite(f);
	overwrite(f);
	expect_all(f);
	for (unsigned i = 0; i < p->m; i++) {
		disk_return(&f->rig.disk[i]);
		assert_int_equal(rig_give_back(&f->rig, i), 0);
	}
	overwrite(f);
	rig_until(&f->rig, VDISK_HEALTHY, 60 * SEC_NS);
	expect_all(f);
	end(f);
}

static void test_degraded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICIES; i++)
		degraded(&policies[i]);
}

/* No room on the others: it says so, and goes on once there is. */
static void test_starved(void **state)
{
	struct full *f = begin(&policies[0], 3, 5, 75);
	struct vlog_info info;

	(void)state;
	assert_int_equal(vlog_member_fail(f->rig.vd, 0, NULL), 0);
	disk_leave(&f->rig.disk[0]);
	rig_run(&f->rig, 20 * SEC_NS);
	vlog_info(f->rig.vd, &info);
	assert_int_equal(info.state, VDISK_DEGRADED);
	assert_non_null(strstr(info.reason, "no room to rebuild"));
	assert_true(info.progress > 0 && info.progress < 1);
	expect_all(f);
	assert_int_equal(bdev_io_sync(f->rig.vd, BDEV_TRIM, 0, 0, NULL,
				      BLOCKS / 2 * 4096),
			 0);
	memset(f->version, 0, sizeof(f->version) / 2);
	rig_until(&f->rig, VDISK_DEGRADED, 20 * SEC_NS);
	vlog_info(f->rig.vd, &info);
	assert_int_equal(info.segs_exposed, 0);
	expect_all(f);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tight),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_degraded),
		cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
