/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Policy change by migration: under load, from and to each level, closed in
 * the middle, its target lost, and with a power cut after any number of turns.
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

#define STORE_BYTES (4 * MIB)
#define SIZE (2500 * KIB)
#define SOURCE 0u /* first store */
#define TARGET 10u

struct move {
	enum raid_level raid;
	unsigned k, m;
};

static const struct move levels[] = {
	{ RAID_0, 3, 0 }, { RAID_1, 1, 1 }, { RAID_1, 1, 2 },
	{ RAID_5, 2, 1 }, { RAID_5, 4, 1 }, { RAID_6, 4, 2 },
};

struct lab {
	struct rig rig;
	struct shadow sh;
	struct bdev *vdisk;
	struct rig_result moved;
	struct vdisk_info info;
	struct vdisk_policy to;
	unsigned slots;
};

static void load(struct lab *lab, unsigned n)
{
	while (n--) {
		const unsigned len = 1 + (unsigned)rig_below(&lab->rig, 40);
		const uint64_t at = rig_below(&lab->rig, lab->sh.blocks - len);

		if (rig_chance(&lab->rig, 70))
			shadow_write(&lab->sh, lab->vdisk, at, len, false);
		else
			shadow_read(&lab->sh, lab->vdisk, at, len);
		if (lab->sh.inflight > 8)
			rig_run(&lab->rig, 4);
	}
}

static void lab_init(struct lab *lab, const struct move *from,
		     const struct move *to, uint64_t seed)
{
	const struct vdisk_policy p =
		rig_policy(from->raid, from->k, from->m, 16384);

	memset(lab, 0, sizeof(*lab));
	lab->to = rig_policy(to->raid, to->k, to->m, 32768);
	rig_init(&lab->rig, seed, STORE_BYTES);
	shadow_init(&lab->sh, &lab->rig, SIZE);
	lab->vdisk = rig_create(&lab->rig, &p, SIZE, SOURCE);
	load(lab, 60);
	shadow_drain(&lab->sh);
}

static void lab_fini(struct lab *lab)
{
	if (lab->vdisk)
		rig_close(&lab->rig, lab->vdisk);
	rig_run(&lab->rig, 100);
	shadow_fini(&lab->sh);
	rig_fini(&lab->rig);
}

static void move_begin(struct lab *lab)
{
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	struct vdisk_spec spec = { .policy = lab->to, .slot = slot };

	assert_int_equal(vdisk_policy_fit(&lab->to, 12, &spec.slots, NULL), 0);
	lab->slots = spec.slots;
	for (unsigned i = 0; i < spec.slots; i++)
		rig_slot(&lab->rig, TARGET + i, &slot[i]);
	memset(&lab->moved, 0, sizeof(lab->moved));
	vdisk_migrate(lab->vdisk, &spec, rig_done, &lab->moved);
}

static void info_is_new(struct lab *lab)
{
	vdisk_info(lab->vdisk, &lab->info);
	assert_int_equal(lab->info.policy.raid, lab->to.raid);
	assert_int_equal(lab->info.policy.k, lab->to.k);
	assert_int_equal(lab->info.state, VDISK_HEALTHY);
}

static unsigned mask_source(void)
{
	return (1u << TARGET) - 1;
}

static unsigned mask_target(void)
{
	return 0x3ffu << TARGET;
}

/* ---- whole moves -------------------------------------------------------- */

static void move_whole(const struct move *from, const struct move *to,
		       uint64_t seed)
{
	struct rig_result res;
	struct lab lab;

	lab_init(&lab, from, to, seed);
	move_begin(&lab);
	while (!lab.moved.done) {
		load(&lab, 3);
		rig_run(&lab.rig, 6);
	}
	assert_int_equal(lab.moved.result, 0);
	info_is_new(&lab);
	assert_true(lab.info.retired >= from->k + from->m);
	assert_string_equal(lab.info.retired_slot[0].component, "c0");
	load(&lab, 30);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(rig_verify(&lab.rig, lab.vdisk), 0);
	rig_close(&lab.rig, lab.vdisk);
	/* The old set is the vDisk no more. */
	lab.vdisk = rig_open(&lab.rig, mask_source(), &res);
	assert_null(lab.vdisk);
	assert_int_equal(res.result, -EAGAIN);
	assert_non_null(strstr(res.err.text, "moved"));
	lab.vdisk = rig_open(&lab.rig, mask_target(), &res);
	assert_non_null(lab.vdisk);
	info_is_new(&lab);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(lab.sh.errors, 0);
	lab_fini(&lab);
}

static void test_move(void **state)
{
	(void)state;
	for (unsigned i = 0; i < array_len(levels); i++)
		for (unsigned j = 0; j < array_len(levels); j++)
			if ((i + 2 * j) % 3 != 1)
				move_whole(&levels[i], &levels[j],
					   500 + i * 10 + j);
}

/* ---- closed in the middle ----------------------------------------------- */

static void until_progress(struct lab *lab, double progress)
{
	for (unsigned i = 0; i < 1000000; i++) {
		vdisk_info(lab->vdisk, &lab->info);
		if (lab->info.state == VDISK_MIGRATING &&
		    lab->info.progress >= progress)
			return;
		reactor_run_once(lab->rig.r, 10 * USEC_NS);
	}
	fail_msg("no progress");
}

static void test_closed(void **state)
{
	struct rig_result res;
	struct lab lab;

	(void)state;
	lab_init(&lab, &levels[1], &levels[3], 77);
	move_begin(&lab);
	until_progress(&lab, 0.4);
	load(&lab, 20);
	shadow_drain(&lab.sh);
	rig_close(&lab.rig, lab.vdisk);
	assert_true(lab.moved.done);
	assert_int_equal(lab.moved.result, -ECANCELED);
	/* The target alone is not the vDisk. */
	lab.vdisk = rig_open(&lab.rig, mask_target(), &res);
	assert_null(lab.vdisk);
	/* With both it goes on. */
	lab.vdisk = rig_open(&lab.rig, mask_source() | mask_target(), &res);
	assert_non_null(lab.vdisk);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.state, VDISK_MIGRATING);
	assert_true(lab.info.progress > 0.3);
	load(&lab, 20);
	rig_healthy(&lab.rig, lab.vdisk);
	info_is_new(&lab);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

/* Opened without the target and written to; then with it: from the start. */
static void test_target_misses_writes(void **state)
{
	struct rig_result res;
	struct lab lab;

	(void)state;
	lab_init(&lab, &levels[3], &levels[1], 78);
	move_begin(&lab);
	until_progress(&lab, 0.4);
	rig_close(&lab.rig, lab.vdisk);
	lab.vdisk = rig_open(&lab.rig, mask_source(), &res);
	assert_non_null(lab.vdisk);
	load(&lab, 60);
	shadow_drain(&lab.sh);
	rig_close(&lab.rig, lab.vdisk);
	lab.vdisk = rig_open(&lab.rig, mask_source() | mask_target(), &res);
	assert_non_null(lab.vdisk);
	rig_healthy(&lab.rig, lab.vdisk);
	info_is_new(&lab);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

/* ---- the target fails --------------------------------------------------- */

static void test_target_lost(void **state)
{
	struct rig_result res;
	struct lab lab;

	(void)state;
	lab_init(&lab, &levels[3], &levels[5], 79);
	move_begin(&lab);
	until_progress(&lab, 0.4);
	for (unsigned i = 0; i < 3; i++)
		lab.rig.store[TARGET + i].offline = true;
	load(&lab, 40);
	rig_until(&lab.rig, &lab.moved.done);
	assert_int_not_equal(lab.moved.result, 0);
	shadow_drain(&lab.sh);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.state, VDISK_HEALTHY);
	assert_int_equal(lab.info.policy.raid, RAID_5);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(lab.sh.errors, 0);
	/* Another try, on what is left of it, goes through. */
	for (unsigned i = 0; i < 10; i++) {
		lab.rig.store[TARGET + i].offline = false;
		rig_store_zero(&lab.rig, TARGET + i);
	}
	rig_close(&lab.rig, lab.vdisk);
	lab.vdisk = rig_open(&lab.rig, mask_source(), &res);
	assert_non_null(lab.vdisk);
	move_begin(&lab);
	rig_until(&lab.rig, &lab.moved.done);
	assert_int_equal(lab.moved.result, 0);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

/* A member of either set fails within what is tolerated: it goes on. */
static void test_members_fail(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, &levels[3], &levels[5], 80);
	move_begin(&lab);
	until_progress(&lab, 0.3);
	lab.rig.store[SOURCE + 1].offline = true;
	lab.rig.store[TARGET + 2].offline = true;
	while (!lab.moved.done) {
		load(&lab, 2);
		rig_run(&lab.rig, 6);
	}
	assert_int_equal(lab.moved.result, 0);
	shadow_drain(&lab.sh);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.state, VDISK_DEGRADED);
	assert_int_equal(lab.info.policy.raid, RAID_6);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(lab.sh.errors, 0);
	lab_fini(&lab);
}

/* ---- power cuts --------------------------------------------------------- */

/*
 * After N turns the power goes; what opens must be one whole vDisk with the
 * right contents, and the move comes to its end. Returns false once the move
 * was over before the cut.
 */
static bool move_cut(unsigned turns, uint64_t seed)
{
	struct rig_result res;
	struct lab lab;
	bool over;

	lab_init(&lab, &levels[1 + seed % 3], &levels[3 + seed % 2], seed);
	lab.rig.latency_ns = 20 * USEC_NS;
	move_begin(&lab);
	for (unsigned i = 0; i < turns && !lab.moved.done; i++) {
		if (i % 7 == 0 && lab.sh.inflight < 4)
			load(&lab, 1);
		reactor_run_once(lab.rig.r, 10 * USEC_NS);
	}
	over = lab.moved.done;
	rig_power_cut(&lab.rig);
	shadow_crash(&lab.sh);
	rig_close(&lab.rig, lab.vdisk);
	lab.vdisk = rig_open(&lab.rig, mask_source() | mask_target(), &res);
	if (!lab.vdisk)
		fail_msg("after %u turns: %s", turns, res.err.text);
	shadow_check_all(&lab.sh, lab.vdisk);
	load(&lab, 10);
	rig_healthy(&lab.rig, lab.vdisk);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(rig_verify(&lab.rig, lab.vdisk), 0);
	rig_close(&lab.rig, lab.vdisk);
	/* Exactly one of the two sets opens. */
	lab.vdisk = rig_open(&lab.rig, mask_source(), &res);
	if (lab.vdisk) {
		rig_close(&lab.rig, lab.vdisk);
		lab.vdisk = rig_open(&lab.rig, mask_target(), &res);
		assert_null(lab.vdisk);
	} else {
		lab.vdisk = rig_open(&lab.rig, mask_target(), &res);
		assert_non_null(lab.vdisk);
		shadow_check_all(&lab.sh, lab.vdisk);
	}
	lab_fini(&lab);
	return !over;
}

static void test_power_cut(void **state)
{
	unsigned tries = 0, step = 7;

	(void)state;
	for (unsigned turns = 0; move_cut(turns, 900 + tries % 6); tries++) {
		turns += step;
		if (tries > 60)
			step = 40;
		assert_true(tries < 2000);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_target_misses_writes),
		cmocka_unit_test(test_target_lost),
		cmocka_unit_test(test_members_fail),
		cmocka_unit_test(test_power_cut),
	};

	(void)argc;
	(void)argv;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
