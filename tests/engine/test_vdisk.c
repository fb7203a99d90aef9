/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Each RAID level from one end to the other: known data, every tolerated
 * combination of members away, all read back, more written, empty members
 * brought back, rebuilt under load, all read back; parity by recomputing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/engine/vdisk_rig.h"

#define UNIT (16u * 1024)
#define STORE_BYTES (4 * MIB)

struct level {
	enum raid_level raid;
	unsigned k, m;
	uint64_t bytes;
};

static const struct level levels[] = {
	{ RAID_0, 3, 0, 1536 * KIB + 12 * KIB },
	{ RAID_1, 1, 1, 1536 * KIB },
	{ RAID_1, 1, 2, 1032 * KIB },
	{ RAID_1, 1, 3, 1032 * KIB },
	{ RAID_5, 2, 1, 1536 * KIB + 4 * KIB },
	{ RAID_5, 4, 1, 1536 * KIB + 8 * KIB },
	{ RAID_6, 4, 2, 1536 * KIB + 20 * KIB },
};

static struct vdisk_policy level_policy(const struct level *l)
{
	return rig_policy(l->raid, l->k, l->m, UNIT);
}

static void random_writes(struct shadow *sh, struct bdev *vdisk, unsigned n)
{
	while (n--) {
		const unsigned len = 1 + (unsigned)rig_below(sh->rig, 40);

		shadow_write(sh, vdisk, rig_below(sh->rig, sh->blocks - len),
			     len, rig_chance(sh->rig, 10));
		if (sh->inflight > 12)
			rig_run(sh->rig, 3);
	}
	shadow_drain(sh);
}

static void fill(struct shadow *sh, struct bdev *vdisk)
{
	for (uint64_t b = 0; b < sh->blocks; b += 24) {
		const uint64_t left = sh->blocks - b;

		assert_true(shadow_write(sh, vdisk, b,
					 (unsigned)(left < 24 ? left : 24),
					 false));
		if (sh->inflight > 12)
			shadow_drain(sh);
	}
	shadow_drain(sh);
	assert_int_equal(sh->errors, 0);
}

/* ---- healthy ------------------------------------------------------------ */

static void test_healthy(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_len(levels); i++) {
		const struct vdisk_policy p = level_policy(&levels[i]);
		struct rig_result res;
		struct bdev *vdisk;
		struct shadow sh;
		struct rig rig;

		rig_init(&rig, 100 + i, STORE_BYTES);
		shadow_init(&sh, &rig, levels[i].bytes);
		vdisk = rig_create(&rig, &p, levels[i].bytes, 0);
		shadow_check_all(&sh, vdisk); /* zeros */
		fill(&sh, vdisk);
		random_writes(&sh, vdisk, 200);
		shadow_check_all(&sh, vdisk);
		assert_int_equal(rig_verify(&rig, vdisk), 0);
		rig_close(&rig, vdisk);
		vdisk = rig_open(&rig, 0xff, &res);
		assert_non_null(vdisk);
		shadow_check_all(&sh, vdisk);
		assert_int_equal(rig_verify(&rig, vdisk), 0);
		assert_int_equal(sh.errors, 0);
		rig_close(&rig, vdisk);
		shadow_fini(&sh);
		rig_fini(&rig);
	}
}

/* ---- every tolerated combination ---------------------------------------- */

static void take_away(struct rig *rig, unsigned gone)
{
	for (unsigned i = 0; i < RIG_STORES; i++)
		rig->store[i].offline = (gone & 1u << i) != 0;
}

static void bring_back(struct rig *rig, struct bdev *vdisk, unsigned gone)
{
	for (unsigned i = 0; i < 8; i++) {
		if (!(gone & 1u << i))
			continue;
		rig->store[i].offline = false;
		rig_store_zero(rig, i);
		assert_int_equal(rig_replace(rig, vdisk, i, i), 0);
	}
}

static void combination(const struct level *l, unsigned gone, uint64_t seed)
{
	const struct vdisk_policy p = level_policy(l);
	struct vdisk_info info;
	struct bdev *vdisk;
	struct shadow sh;
	struct rig rig;

	rig_init(&rig, seed, STORE_BYTES);
	shadow_init(&sh, &rig, l->bytes);
	vdisk = rig_create(&rig, &p, l->bytes, 0);
	fill(&sh, vdisk);
	take_away(&rig, gone);
	shadow_check_all(&sh, vdisk);
	random_writes(&sh, vdisk, 60);
	shadow_check_all(&sh, vdisk);
	vdisk_info(vdisk, &info);
	assert_int_equal(info.state, VDISK_DEGRADED);
	bring_back(&rig, vdisk, gone);
	random_writes(&sh, vdisk, 60);
	rig_healthy(&rig, vdisk);
	random_writes(&sh, vdisk, 10);
	shadow_check_all(&sh, vdisk);
	assert_int_equal(rig_verify(&rig, vdisk), 0);
	assert_int_equal(sh.errors, 0);
	rig_close(&rig, vdisk);
	shadow_fini(&sh);
	rig_fini(&rig);
}

static void test_combinations(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_len(levels); i++) {
		const unsigned width = levels[i].k + levels[i].m;

		for (unsigned gone = 1; gone < 1u << width; gone++)
			if ((unsigned)__builtin_popcount(gone) <= levels[i].m)
				combination(&levels[i], gone,
					    1000 * (i + 1) + gone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_combinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
