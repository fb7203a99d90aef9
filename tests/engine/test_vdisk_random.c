/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A vDisk against its shadow, by seed: overlapping I/O of any size, members
 * that fail (at once, after some writes, in a range of reads), replacements
 * under load by empty, old or once used components, power cuts (also in the
 * middle of an opening), openings with members left out. Within what the
 * policy tolerates no I/O may fail, every block must hold what the shadow
 * allows, and at the end copies and parity must agree.
 *
 * Not tried, because not promised yet: a power cut with writes in flight on a
 * degraded RAID-5 or 6, or a second fault before the resync after a power cut
 * is through (the write hole).
 *
 *   test_vdisk_random [SEED [COUNT]]
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

#define STORE_BYTES (3 * MIB)
#define STEPS 260
#define SEEDS 3

struct level {
	enum raid_level raid;
	unsigned k, m;
	uint32_t unit;
	uint64_t bytes;
};

static const struct level levels[] = {
	{ RAID_0, 3, 0, 16384, 1028 * KIB },
	{ RAID_1, 1, 1, 65536, 1284 * KIB },
	{ RAID_1, 1, 2, 65536, 1028 * KIB },
	{ RAID_1, 1, 3, 65536, 1028 * KIB },
	{ RAID_5, 2, 1, 16384, 1028 * KIB },
	{ RAID_5, 4, 1, 4096, 1040 * KIB },
	{ RAID_6, 4, 2, 16384, 1036 * KIB },
	{ RAID_6, 4, 2, 32768, 2060 * KIB },
};

static uint64_t seed_first = 1;
static unsigned seed_count = SEEDS;

struct world {
	struct rig rig;
	struct shadow sh;
	struct bdev *vdisk;
	const struct level *level;
	bool unsynced; /* a power cut, and not healthy since */
	bool bad;      /* io in flight may have met a bad range */
	unsigned crashes, faults, replaced, opened;
};

static void info_get(struct world *w, struct vdisk_info *info)
{
	vdisk_info(w->vdisk, info);
	if (info->state == VDISK_FAILED)
		fail_msg("failed: %s, seed %llu", info->reason,
			 (unsigned long long)w->rig.seed);
	if (info->state == VDISK_HEALTHY)
		w->unsynced = false;
}

static bool store_sick(const struct store *s)
{
	return s->offline || s->writes_left || s->bad_len;
}

static unsigned sick_members(struct world *w, const struct vdisk_info *info)
{
	unsigned sick = 0;

	for (unsigned i = 0; i < info->slots; i++)
		sick += info->slot[i].state != MEMBER_OK ||
			store_sick(&w->rig.store[rig_member_store(info, i)]);
	return sick;
}

/* ---- what may happen ---------------------------------------------------- */

static void do_write(struct world *w)
{
	unsigned len = 1 + (unsigned)rig_below(&w->rig, 12);

	if (rig_chance(&w->rig, 20))
		len = 1 + (unsigned)rig_below(&w->rig, 130);
	shadow_write(&w->sh, w->vdisk, rig_below(&w->rig, w->sh.blocks - len),
		     len, rig_chance(&w->rig, 10));
}

static void do_read(struct world *w)
{
	const unsigned len = 1 + (unsigned)rig_below(&w->rig, 60);

	shadow_read(&w->sh, w->vdisk, rig_below(&w->rig, w->sh.blocks - len),
		    len);
}

static void do_fault(struct world *w)
{
	struct vdisk_info info;
	struct store *s;
	unsigned index;

	info_get(w, &info);
	if (w->unsynced || sick_members(w, &info) >= w->level->m)
		return;
	if (w->bad)
		shadow_drain(&w->sh); /* else one too many for such an io */
	w->bad = false;
	info_get(w, &info);
	if (sick_members(w, &info) >= w->level->m)
		return;
	index = (unsigned)rig_below(&w->rig, info.slots);
	s = &w->rig.store[rig_member_store(&info, index)];
	w->faults++;
	switch (rig_below(&w->rig, 4)) {
	case 0:
		s->offline = true;
		break;
	case 1:
		s->writes_left = 1 + (unsigned)rig_below(&w->rig, 20);
		break;
	case 2:
		w->bad = true;
		s->bad_off =
			VDISK_LABEL_BYTES + rig_below(&w->rig, 60) * RIG_BLOCK;
		s->bad_len = RIG_BLOCK * (1 + rig_below(&w->rig, 8));
		break;
	case 3:
		assert_int_equal(vdisk_member_fail(w->vdisk, index, NULL), 0);
		break;
	}
}

/* A bad range counts as a fault for as long as it stands. */
static void heal(struct world *w, const struct vdisk_info *info)
{
	for (unsigned i = 0; i < info->slots; i++) {
		struct store *s = &w->rig.store[rig_member_store(info, i)];

		if (info->slot[i].state == MEMBER_OK && !s->offline)
			s->bad_len = s->writes_left = 0;
	}
}

static unsigned store_spare(struct world *w, const struct vdisk_info *info)
{
	for (;;) {
		const unsigned n = (unsigned)rig_below(&w->rig, 14);
		bool used = false;

		for (unsigned i = 0; i < info->slots; i++)
			used = used || rig_member_store(info, i) == n;
		if (!used)
			return n;
	}
}

static void replace(struct world *w, const struct vdisk_info *info,
		    unsigned index)
{
	unsigned store = rig_member_store(info, index);
	struct store *s;

	if (info->slot[index].bdev && rig_chance(&w->rig, 50)) {
		/* Stale, and there: it is taken as it is. */
		const struct vdisk_slot none = { 0 };
		struct rig_result res = { 0 };

		vdisk_replace(w->vdisk, index, &none, rig_done, &res);
		rig_until(&w->rig, &res.done);
		return;
	}
	if (info->slot[index].bdev || rig_chance(&w->rig, 50))
		store = store_spare(w, info);
	s = &w->rig.store[store];
	while (s->port) /* exclusive: not before it is closed */
		rig_run(&w->rig, 1);
	s->offline = false;
	s->writes_left = 0;
	s->bad_len = 0;
	if (rig_chance(&w->rig, 50))
		rig_store_zero(&w->rig, store);
	assert_int_equal(rig_replace(&w->rig, w->vdisk, index, store), 0);
	w->replaced++;
}

static void do_replace(struct world *w)
{
	struct vdisk_info info;

	info_get(w, &info);
	for (unsigned i = 0; i < info.slots; i++)
		if (info.slot[i].state == MEMBER_MISSING ||
		    info.slot[i].state == MEMBER_STALE) {
			replace(w, &info, i);
			return;
		}
	heal(w, &info);
}

/* Members to open with; some of the whole may be left out. */
static unsigned stores_mask(struct world *w, const struct vdisk_info *info,
			    bool leave_out)
{
	unsigned mask = 0;
	unsigned sick = sick_members(w, info);

	for (unsigned i = 0; i < info->slots; i++) {
		const unsigned n = rig_member_store(info, i);

		if (w->rig.store[n].offline)
			continue;
		if (leave_out && info->slot[i].state == MEMBER_OK &&
		    !store_sick(&w->rig.store[n]) && sick < w->level->m &&
		    rig_chance(&w->rig, 40)) {
			sick++;
			continue;
		}
		mask |= 1u << n;
	}
	/* Components that once were members must do no harm. */
	for (unsigned n = 0; n < 14; n++)
		if (!w->rig.store[n].offline && rig_chance(&w->rig, 20) &&
		    !leave_out)
			mask |= 1u << n;
	return mask;
}

static void reopen(struct world *w, unsigned mask)
{
	struct rig_result res;

	w->vdisk = rig_open(&w->rig, mask, &res);
	if (!w->vdisk)
		fail_msg("open: %s, seed %llu", res.err.text,
			 (unsigned long long)w->rig.seed);
	w->opened++;
}

static void do_reopen(struct world *w)
{
	struct vdisk_info info;
	unsigned mask;

	shadow_drain(&w->sh);
	rig_run(&w->rig, 3);
	info_get(w, &info);
	rig_close(&w->rig, w->vdisk);
	mask = stores_mask(w, &info, !w->unsynced && rig_chance(&w->rig, 40));
	reopen(w, mask);
}

static bool gone(const struct vdisk_info *info)
{
	for (unsigned i = 0; i < info->slots; i++)
		if (info->slot[i].state != MEMBER_OK)
			return true;
	return false;
}

static void port_gone(void *arg)
{
	(void)arg;
}

/* Begins to open, and the power goes. */
static void open_cut(struct world *w, unsigned mask)
{
	struct vdisk_slot slot[RIG_STORES];
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "db1",
				   .slot = slot };
	struct rig_result res = { 0 };

	for (unsigned i = 0; i < RIG_STORES; i++)
		if (mask & 1u << i)
			rig_slot(&w->rig, i, &slot[spec.slots++]);
	vdisk_open(w->rig.r, &spec, rig_done, &res);
	rig_run(&w->rig, (unsigned)rig_below(&w->rig, 30));
	rig_power_cut(&w->rig);
	rig_until(&w->rig, &res.done);
	if (res.vdisk)
		rig_close(&w->rig, res.vdisk);
	for (unsigned i = 0; !res.vdisk && i < spec.slots; i++)
		bdev_close(slot[i].bdev, port_gone, NULL);
}

static void do_crash(struct world *w)
{
	struct vdisk_info info;
	unsigned mask;

	info_get(w, &info);
	if (sick_members(w, &info) && w->level->raid != RAID_1)
		shadow_drain(&w->sh);
	info_get(w, &info);
	/* What is sick would be a second fault before the resync. */
	for (unsigned i = 0; i < RIG_STORES; i++)
		if (!w->rig.store[i].offline)
			w->rig.store[i].bad_len = w->rig.store[i].writes_left =
				0;
	mask = stores_mask(w, &info, false);
	rig_power_cut(&w->rig);
	shadow_crash(&w->sh);
	rig_close(&w->rig, w->vdisk);
	while (rig_chance(&w->rig, 40))
		open_cut(w, mask);
	reopen(w, mask);
	w->unsynced = true;
	w->crashes++;
	info_get(w, &info);
	if (!gone(&info) && w->level->m == 0)
		w->unsynced = false;
}

static void do_verify(struct world *w)
{
	struct vdisk_info info;

	shadow_drain(&w->sh);
	info_get(w, &info);
	if (info.state == VDISK_HEALTHY && !sick_members(w, &info))
		assert_int_equal(rig_verify(&w->rig, w->vdisk), 0);
}

/* ---- one seed ----------------------------------------------------------- */

static void step(struct world *w)
{
	const unsigned dice = (unsigned)rig_below(&w->rig, 100);

	if (w->sh.inflight > 24)
		rig_run(&w->rig, 12);
	if (dice < 42)
		do_write(w);
	else if (dice < 65)
		do_read(w);
	else if (dice < 68)
		shadow_flush(&w->sh, w->vdisk);
	else if (dice < 80)
		rig_run(&w->rig, (unsigned)rig_below(&w->rig, 30));
	else if (dice < 86)
		do_fault(w);
	else if (dice < 92)
		do_replace(w);
	else if (dice < 95)
		do_reopen(w);
	else if (dice < 98)
		do_crash(w);
	else
		do_verify(w);
}

static void make_whole(struct world *w)
{
	struct vdisk_info info;

	for (unsigned turn = 0; turn < 8; turn++) {
		shadow_drain(&w->sh);
		info_get(w, &info);
		heal(w, &info);
		for (unsigned i = 0; i < info.slots; i++) {
			if (info.slot[i].state == MEMBER_OK &&
			    w->rig.store[rig_member_store(&info, i)].offline)
				vdisk_member_fail(w->vdisk, i, NULL);
			info_get(w, &info);
			if (info.slot[i].state == MEMBER_MISSING ||
			    info.slot[i].state == MEMBER_STALE)
				replace(w, &info, i);
		}
	}
	rig_healthy(&w->rig, w->vdisk);
}

static void world_run(const struct level *level, uint64_t seed)
{
	const struct vdisk_policy policy =
		rig_policy(level->raid, level->k, level->m, level->unit);
	struct world w = { .level = level };

	rig_init(&w.rig, seed, STORE_BYTES);
	shadow_init(&w.sh, &w.rig, level->bytes);
	w.vdisk = rig_create(&w.rig, &policy, level->bytes, 0);
	for (unsigned i = 0; i < STEPS; i++)
		step(&w);
	make_whole(&w);
	shadow_check_all(&w.sh, w.vdisk);
	assert_int_equal(rig_verify(&w.rig, w.vdisk), 0);
	if (w.sh.errors)
		fail_msg("%u ios failed, seed %llu", w.sh.errors,
			 (unsigned long long)seed);
	rig_close(&w.rig, w.vdisk);
	shadow_fini(&w.sh);
	rig_fini(&w.rig);
}

static void test_random(void **state)
{
	(void)state;
	for (unsigned s = 0; s < seed_count; s++)
		for (unsigned i = 0; i < array_len(levels); i++) {
			const uint64_t seed = (seed_first + s) * 100 + i;

			if (getenv("VERBOSE"))
				fprintf(stderr, "seed %llu\n",
					(unsigned long long)seed);
			world_run(&levels[i], seed);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	if (argc > 1)
		seed_first = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		seed_count = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
