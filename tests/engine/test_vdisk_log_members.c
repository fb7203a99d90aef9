/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Members of the log layout that fail, return or are slow: redundancy comes
 * back by itself, in the right order, no faster than users can stand.
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

#define LBAS 400

static void create(struct rig *rig, unsigned k, unsigned m, unsigned n)
{
	rig_init(rig, 7, k, m, n, 800);
	rig->spec.tune.slots = 100;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void fill(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba += 20)
		assert_int_equal(rig_put(rig, lba, version, 20), 0);
}

static void expect_all(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba += 20)
		assert_int_equal(rig_expect(rig, lba, version, 20), 0);
}

static struct vlog_info info_of(struct rig *rig)
{
	struct vlog_info info;

	vlog_info(rig->vd, &info);
	return info;
}

static void end(struct rig *rig)
{
	rig_check(rig);
	rig_close_sync(rig);
	rig_fini(rig);
}

/* An error: at once; what is rewritten stands on the others alone. */
static void test_error(void **state)
{
	struct vdisk_info seen;
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 4);
	fill(&rig, 3);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	info = info_of(&rig);
	assert_true(info.segs_exposed > 0);
	assert_true(info.rebuild_left_bytes > 0);
	rig_turn(&rig);
	rig_turn(&rig);
	assert_int_equal(info_of(&rig).state, VDISK_REBUILDING);
	rig_until(&rig, VDISK_DEGRADED, 5 * SEC_NS);
	info = info_of(&rig);
	assert_int_equal(info.segs_exposed, 0);
	assert_true(info.rebuild_bytes > 0);
	/* For others, by cause: what is one's is not the other's. */
	vdisk_info(rig.vd, &seen);
	assert_int_equal(seen.log.rebuild_bytes, info.rebuild_bytes);
	assert_in_range(seen.log.clean_bytes + seen.log.rebuild_bytes,
			info.rebuild_bytes,
			info.clean_bytes > info.rebuild_bytes
				? info.clean_bytes
				: info.rebuild_bytes);
	assert_true(info.progress == 1);
	assert_non_null(strstr(info.reason, "n1 (Input/output error)"));
	assert_non_null(strstr(info.reason, "replace it"));
	expect_all(&rig, 3);
	/* Any other may go now, without a read that has to be decoded. */
	info = info_of(&rig);
	expect_all(&rig, 3);
	assert_int_equal(info_of(&rig).reads_degraded, info.reads_degraded);
	end(&rig);
}

/* Silence: later; and one that is back in time costs nothing. */
static void test_silent(void **state)
{
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 4);
	fill(&rig, 3);
	disk_leave(&rig.disk[2]);
	assert_int_equal(rig_put(&rig, 500, 1, 100), 0);
	rig_run(&rig, 50 * SEC_NS);
	info = info_of(&rig);
	assert_non_null(strstr(info.reason, "n2 (No such device): rebuild in"));
	assert_int_equal(info.state, VDISK_DEGRADED);
	assert_true(info.segs_exposed > 0);
	assert_int_equal(info.rebuild_bytes, 0);
	disk_return(&rig.disk[2]);
	assert_int_equal(rig_give_back(&rig, 2), 0);
	assert_int_equal(info_of(&rig).segs_exposed, 0);
	rig_run(&rig, 60 * SEC_NS);
	info = info_of(&rig);
	assert_int_equal(info.state, VDISK_HEALTHY);
	assert_int_equal(info.rebuild_bytes, 0);
	disk_leave(&rig.disk[2]);
	assert_int_equal(rig_put(&rig, 500, 2, 100), 0);
	rig_run(&rig, 59 * SEC_NS);
	assert_int_equal(info_of(&rig).rebuild_bytes, 0);
	rig_run(&rig, 3 * SEC_NS);
	rig_until(&rig, VDISK_DEGRADED, 5 * SEC_NS);
	assert_int_equal(info_of(&rig).segs_exposed, 0);
	expect_all(&rig, 3);
	disk_return(&rig.disk[2]);
	assert_int_equal(rig_give_back(&rig, 2), 0);
	expect_all(&rig, 3);
	end(&rig);
}

/* A read that nobody answers for is no bad sector that wants a repair. */
static void test_silent_read(void **state)
{
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 4);
	fill(&rig, 3);
	vlog_checkpoint(rig.vd);
	rig_run(&rig, 100 * MSEC_NS);
	disk_leave(&rig.disk[1]);
	expect_all(&rig, 3);
	info = info_of(&rig);
	assert_int_equal(info.state, VDISK_DEGRADED);
	assert_true(info.reads_degraded > 0);
	assert_int_equal(info.reads_repaired, 0);
	disk_return(&rig.disk[1]);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	rig_until(&rig, VDISK_HEALTHY, 5 * SEC_NS);
	end(&rig);
}

/* One that is missing at the opening is silent from then on. */
static void test_missing_at_open(void **state)
{
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 4);
	rig.spec.pace.absent_ms = 2000;
	fill(&rig, 3);
	rig_close_sync(&rig);
	disk_leave(&rig.disk[0]);
	assert_int_equal(rig_open_sync(&rig), 0);
	assert_true(info_of(&rig).segs_exposed > 0);
	rig_run(&rig, 1 * SEC_NS);
	assert_int_equal(info_of(&rig).rebuild_bytes, 0);
	rig_run(&rig, 2 * SEC_NS);
	rig_until(&rig, VDISK_DEGRADED, 5 * SEC_NS);
	assert_int_equal(info_of(&rig).segs_exposed, 0);
	expect_all(&rig, 3);
	end(&rig);
}

/* What has no redundancy left comes first. */
static void test_exposed_first(void **state)
{
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 2, 7);
	rig.spec.pace.absent_ms = 2000;
	fill(&rig, 3);
	vlog_rebuild_limit(rig.vd, 100 * KIB);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	assert_int_equal(vlog_member_fail(rig.vd, 2, NULL), 0);
	info = info_of(&rig);
	assert_int_equal(info.failures_left, 0);
	assert_true(info.segs_bare > 0 && info.segs_bare < info.segs_exposed);
	for (unsigned i = 0; info_of(&rig).segs_bare; i++) {
		assert_true(i < 10000);
		rig_run(&rig, 10 * MSEC_NS);
	}
	assert_true(info_of(&rig).segs_exposed > 0);
	vlog_rebuild_limit(rig.vd, 0);
	rig_until(&rig, VDISK_DEGRADED, 5 * SEC_NS);
	expect_all(&rig, 3);
	end(&rig);
}

/* The caller's cap holds, and the estimate says how long it will take. */
static void test_limit(void **state)
{
	struct vlog_info before, info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 4);
	fill(&rig, 3);
	vlog_rebuild_limit(rig.vd, 200 * KIB);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	rig_run(&rig, 100 * MSEC_NS);
	before = info_of(&rig);
	rig_run(&rig, 2 * SEC_NS);
	info = info_of(&rig);
	assert_int_equal(info.state, VDISK_REBUILDING);
	assert_in_range(info.rebuild_bytes - before.rebuild_bytes, 200 * KIB,
			600 * KIB);
	assert_in_range(info.rebuild_bytes_s, 100 * KIB, 300 * KIB);
	assert_true(info.rebuild_left_bytes < before.rebuild_left_bytes);
	assert_true(info.progress > before.progress && info.progress < 1);
	/* It comes back: nothing is left to be done, at once. */
	assert_int_equal(rig_give_back(&rig, 1), 0);
	assert_int_equal(info_of(&rig).rebuild_left_bytes, 0);
	rig_run(&rig, 100 * MSEC_NS);
	info = info_of(&rig);
	assert_int_equal(info.state, VDISK_HEALTHY);
	rig_run(&rig, 10 * SEC_NS);
	assert_int_equal(info_of(&rig).rebuild_bytes, info.rebuild_bytes);
	expect_all(&rig, 3);
	end(&rig);
}

static void changed(int result, const struct err *err, struct bdev *vd,
		    void *arg)
{
	(void)vd;
	if (result)
		fail_msg("%s", err->text);
	*(bool *)arg = true;
}

/* What is shown of something that goes on: never back, no other state in
 * between, and it takes as long as was said. */
struct shown {
	uint64_t begin, said_ns[2]; /* at a third and at two thirds */
	bool seen[2];
	double progress;
};

static void shown_look(struct rig *rig, struct shown *s,
		       const struct vlog_info *i)
{
	const uint64_t now = reactor_now(rig->r);

	if (i->progress < s->progress)
		fail_msg("%.4f after %.4f", i->progress, s->progress);
	s->progress = i->progress;
	assert_int_equal(i->progress == 1, !i->rebuild_left_bytes);
	assert_true(i->state == VDISK_MIGRATING || i->progress < 1);
	for (unsigned k = 0; k < 2; k++) {
		if (s->seen[k] || i->progress < (k + 1) / 3.0)
			continue;
		s->seen[k] = true;
		assert_true(i->rebuild_bytes_s > 0);
		s->said_ns[k] = now + (uint64_t)((double)i->rebuild_left_bytes *
						 (double)SEC_NS /
						 (double)i->rebuild_bytes_s);
	}
}

static void shown_until_over(struct rig *rig, enum vdisk_state state)
{
	struct shown s = { .begin = reactor_now(rig->r) };
	struct vlog_info info = info_of(rig);
	uint64_t took, end;

	for (; info.state == state; info = info_of(rig)) {
		shown_look(rig, &s, &info);
		rig_run(rig, 20 * MSEC_NS);
	}
	end = reactor_now(rig->r);
	took = end - s.begin;
	assert_true(s.seen[0] && s.seen[1]);
	assert_true(info.progress == 1 && !info.rebuild_left_bytes);
	if (took < 5 * SEC_NS)
		fail_msg("over in %.3f s", (double)took / 1e9);
	for (unsigned k = 0; k < 2; k++)
		assert_in_range(s.said_ns[k], end - took / 5, end + took / 5);
}

static void test_figures(void **state)
{
	static const struct vdisk_spec mirrors = {
		.policy = { .raid = RAID_1,
			    .k = 1,
			    .m = 1,
			    .layout = VDISK_LOG,
			    .codec = VDISK_RAW },
	};
	struct rig rig;
	bool over = false;

	(void)state;
	rig_init(&rig, 7, 2, 1, 4, 800);
	rig.spec.tune.slots = 120;
	assert_int_equal(rig_create_sync(&rig), 0);
	fill(&rig, 3);
	vlog_rebuild_limit(rig.vd, 200 * KIB);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	while (info_of(&rig).state != VDISK_REBUILDING)
		rig_turn(&rig);
	shown_until_over(&rig, VDISK_REBUILDING);
	assert_int_equal(info_of(&rig).state, VDISK_DEGRADED);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	rig_run(&rig, SEC_NS);
	assert_int_equal(info_of(&rig).state, VDISK_HEALTHY);
	vlog_policy_change(rig.vd, &mirrors, changed, &over);
	shown_until_over(&rig, VDISK_MIGRATING);
	assert_true(over);
	expect_all(&rig, 3);
	end(&rig);
}

/* A user who writes all the time, and how long the slowest take. */
struct user {
	struct io io;
	struct rig *rig;
	uint64_t began_ns, worst_ns, lba;
	unsigned writes;
	bool over;
	uint8_t buf[4096];
};

static void user_write(struct user *u);

static void user_wrote(struct io *io)
{
	struct user *u = container_of(io, struct user, io);
	const uint64_t ns = reactor_now(u->rig->r) - u->began_ns;

	assert_int_equal(io->result, 0);
	u->writes++;
	if (ns > u->worst_ns)
		u->worst_ns = ns;
	if (!u->over)
		user_write(u);
}

static void user_write(struct user *u)
{
	u->lba = LBAS + (u->lba + 1) % 300;
	block_make(u->lba, 5, u->buf);
	u->began_ns = reactor_now(u->rig->r);
	u->io = (struct io) { .op = BDEV_WRITE,
			      .off = u->lba * 4096,
			      .len = 4096,
			      .buf = u->buf,
			      .done = user_wrote };
	bdev_submit(u->rig->vd, &u->io);
}

/* What is rewritten in two seconds beside a user; from then on drives may
 * be slower than they were, as if the rebuild were to blame. */
static uint64_t rebuilt_with_user(uint32_t slower)
{
	struct user u = { 0 };
	struct rig rig;
	uint64_t bytes;

	rig_init(&rig, 7, 2, 2, 7, 2400);
	rig.spec.tune.slots = 120;
	rig.spec.pace.high_us = rig.spec.pace.low_us = 1;
	assert_int_equal(rig_create_sync(&rig), 0);
	fill(&rig, 3);
	for (uint64_t lba = 800; lba < 2400; lba += 100)
		assert_int_equal(rig_put(&rig, lba, 3, 100), 0);
	for (unsigned i = 0; i < rig.n; i++)
		rig.disk[i].slow = 200;
	u.rig = &rig;
	user_write(&u);
	rig_run(&rig, 3 * SEC_NS);
	for (unsigned i = 0; i < rig.n; i++)
		rig.disk[i].slow *= slower;
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	rig_run(&rig, 2 * SEC_NS);
	bytes = info_of(&rig).rebuild_bytes;
	rig_until(&rig, VDISK_DEGRADED, 200 * SEC_NS);
	u.over = true;
	rig_run(&rig, SEC_NS);
	assert_true(u.writes > 100);
	expect_all(&rig, 3);
	end(&rig);
	return bytes;
}

/* Users' latency says how fast it may go; it never stops. */
static void test_throttle(void **state)
{
	const uint64_t calm = rebuilt_with_user(1);
	const uint64_t felt = rebuilt_with_user(4);

	(void)state;
	printf("%llu, and %llu bytes where users feel it\n",
	       (unsigned long long)calm, (unsigned long long)felt);
	assert_true(felt > 0 && felt < calm * 3 / 4);
}

/* One drive is a thousand times slower, or hangs: reads go on without. */
static uint64_t read_worst(struct rig *rig)
{
	uint64_t worst = 0;

	for (uint64_t lba = 0; lba < LBAS; lba++) {
		const uint64_t began = reactor_now(rig->r);

		assert_int_equal(rig_expect(rig, lba, 3, 1), 0);
		if (reactor_now(rig->r) - began > worst)
			worst = reactor_now(rig->r) - began;
	}
	return worst;
}

static void slow_drive(unsigned k, unsigned m, unsigned n)
{
	struct vlog_info info;
	struct rig rig;
	uint64_t worst;

	create(&rig, k, m, n);
	fill(&rig, 3);
	read_worst(&rig);
	assert_int_equal(info_of(&rig).reads_hedged, 0);
	rig.disk[1].slow = 400; /* 1 to 100 ms */
	worst = read_worst(&rig);
	info = info_of(&rig);
	printf("%u+%u: %llu hedged, %llu won, worst %llu us\n", k, m,
	       (unsigned long long)info.reads_hedged,
	       (unsigned long long)info.hedges_won,
	       (unsigned long long)worst / 1000);
	assert_true(info.hedges_won > 0);
	assert_true(info.hedges_won <= info.reads_hedged);
	assert_int_equal(info.reads_failed, 0);
	assert_in_range(worst, 0, 10 * MSEC_NS);
	/* Mirrors are read where it goes fast. */
	if (k == 1)
		assert_in_range(info.reads_hedged, 1, LBAS / 8);
	rig.disk[1].slow = 0;
	read_worst(&rig);
	read_worst(&rig);
	info = info_of(&rig);
	assert_in_range(read_worst(&rig), 0, 2 * MSEC_NS);
	assert_int_equal(info_of(&rig).reads_hedged, info.reads_hedged);
	end(&rig);
}

static void test_slow(void **state)
{
	(void)state;
	slow_drive(2, 1, 3);
	slow_drive(4, 2, 6);
	slow_drive(1, 1, 3);
	slow_drive(1, 2, 5);
}

/* A request hangs: its data comes from the others at once, the drive is given
 * up after a time, and what it says in the end is nobody's. */
static void stuck_drive(unsigned k, unsigned m, unsigned n)
{
	struct rig rig;
	uint64_t began;

	create(&rig, k, m, n);
	fill(&rig, 3);
	read_worst(&rig);
	rig.disk[1].stuck = true;
	assert_in_range(read_worst(&rig), 0, 10 * MSEC_NS);
	began = reactor_now(rig.r);
	assert_int_equal(rig_put(&rig, 500, 4, 100), 0);
	assert_in_range(reactor_now(rig.r) - began, 0, 8 * SEC_NS);
	rig_run(&rig, 8 * SEC_NS);
	assert_int_equal(info_of(&rig).slot[1].state, MEMBER_MISSING);
	assert_in_range(read_worst(&rig), 0, 10 * MSEC_NS);
	fill(&rig, 6);
	disk_unstick(&rig.disk[1]);
	rig_run(&rig, SEC_NS);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	expect_all(&rig, 6);
	assert_int_equal(rig_expect(&rig, 500, 4, 100), 0);
	end(&rig);
}

static void test_stuck(void **state)
{
	(void)state;
	stuck_drive(2, 1, 3);
	stuck_drive(4, 2, 6);
	stuck_drive(1, 1, 3);
	stuck_drive(1, 3, 7);
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

/*
 * A drive that hangs while the vDisk opens, after so many reads, is away to
 * it; but what it holds is in flight, so the vDisk is not closed before it.
 */
static void stuck_while_opening(uint64_t reads)
{
	bool over = false;
	struct rig rig;

	create(&rig, 2, 1, 3);
	fill(&rig, 3);
	rig_crash(&rig, false);
	reads += rig.disk[1].reads;
	rig_open(&rig);
	while (rig.disk[1].reads < reads)
		assert_true(rig_turn(&rig));
	rig.disk[1].stuck = true;
	assert_int_equal(rig_wait(&rig), 0);
	assert_int_equal(info_of(&rig).slot[1].state, MEMBER_MISSING);
	expect_all(&rig, 3);
	rig_check(&rig);
	bdev_close(rig.vd, closed, &over);
	rig_run(&rig, 20 * SEC_NS);
	assert_false(over);
	disk_unstick(&rig.disk[1]);
	rig_run(&rig, SEC_NS);
	assert_true(over);
	assert_null(rig.disk[1].open);
	rig_fini(&rig);
}

static void test_stuck_while_opening(void **state)
{
	(void)state;
	for (uint64_t reads = 0; reads < 3; reads++)
		stuck_while_opening(reads);
}

/* What no choice of units gives is lost for good only once nobody is away who
 * might have it; then it is marked, told, and in nobody's way. */
static void test_lost(void **state)
{
	struct vlog_info info;
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 3);
	rig.spec.pace.absent_ms = 1000;
	rig_close_sync(&rig);
	assert_int_equal(rig_open_sync(&rig), 0);
	fill(&rig, 3);
	info = info_of(&rig);
	/* All that one drive holds of data cannot be read, and one is away. */
	memset(rig.disk[0].bad + rig.disk[0].bytes / 2 / SECTOR, 1,
	       rig.disk[0].bytes / 2 / SECTOR);
	disk_leave(&rig.disk[1]);
	assert_int_equal(rig_put(&rig, 500, 3, 100), 0);
	rig_run(&rig, 5 * SEC_NS);
	info = info_of(&rig);
	assert_int_equal(info.blocks_lost, 0);
	assert_non_null(strstr(info.reason, "the others alone do not give"));
	for (uint64_t lba = 0; lba < LBAS; lba++) {
		const int rc = rig_expect(&rig, lba, 3, 1);

		assert_true(!rc || rc == -EIO);
	}
	assert_true(info_of(&rig).reads_failed > 0);
	assert_int_equal(info_of(&rig).blocks_lost, 0);
	disk_return(&rig.disk[1]);
	assert_int_equal(rig_give_back(&rig, 1), 0);
	expect_all(&rig, 3); /* nothing was */
	end(&rig);
}

/*
 * Owners die whose claim reached one member alone; the next opens without it.
 * What it promised them is nobody's when it comes back.
 */
static void test_claimed_in_vain(void **state)
{
	struct rig rig;

	(void)state;
	create(&rig, 1, 1, 3);
	fill(&rig, 1);
	rig_crash(&rig, true);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t writes = rig.disk[2].writes;

		rig.disk[0].slow = rig.disk[1].slow = 400;
		rig_open(&rig);
		while (rig.disk[2].writes == writes)
			rig_turn(&rig);
		/* Nothing in flight lands there. */
		disk_leave(&rig.disk[0]);
		disk_leave(&rig.disk[1]);
		rig_crash(&rig, true);
		disk_return(&rig.disk[0]);
		disk_return(&rig.disk[1]);
	}
	rig.disk[0].slow = rig.disk[1].slow = 0;
	disk_leave(&rig.disk[2]);
	assert_int_equal(rig_open_sync(&rig), 0);
	fill(&rig, 2);
	disk_return(&rig.disk[2]);
	assert_int_equal(rig_give_back(&rig, 2), 0);
	rig_until(&rig, VDISK_HEALTHY, 100 * SEC_NS);
	expect_all(&rig, 2);
	end(&rig);
}

static const struct vlog *vlog_of(struct rig *rig)
{
	return container_of(rig->vd, struct vlog, bdev);
}

static unsigned segs_open(struct rig *rig)
{
	const struct vlog *v = vlog_of(rig);
	unsigned open = 0;

	for (uint32_t i = 0; i < v->segs; i++)
		open += v->seg[i].state == SEG_OPEN && v->seg[i].live;
	return open;
}

/* What was opened while one was away is not written on with fewer units. */
static void test_narrow_is_closed(void **state)
{
	struct rig rig;

	(void)state;
	create(&rig, 4, 1, 5);
	disk_leave(&rig.disk[2]);
	fill(&rig, 3);
	vlog_checkpoint(rig.vd);
	rig_run(&rig, 100 * MSEC_NS);
	assert_true(segs_open(&rig) > 0);
	disk_return(&rig.disk[2]);
	assert_int_equal(rig_give_back(&rig, 2), 0);
	for (unsigned i = 0; info_of(&rig).compliance < 1; i++) {
		assert_true(i < 100);
		rig_run(&rig, 100 * MSEC_NS);
	}
	rig_until(&rig, VDISK_HEALTHY, 5 * SEC_NS);
	expect_all(&rig, 3);
	end(&rig);
}

/* Repaired too often is no reason to wait for writes that would fill it. */
static void test_bad_is_closed(void **state)
{
	struct rig rig;

	(void)state;
	create(&rig, 2, 1, 3);
	assert_int_equal(rig_put(&rig, 0, 1, 20), 0);
	vlog_checkpoint(rig.vd);
	rig_run(&rig, 100 * MSEC_NS);
	assert_true(segs_open(&rig) > 0);
	for (unsigned i = 0; i < 3; i++) {
		struct disk *d = &rig.disk[i];
		const uint64_t from = vlog_of(&rig)->label.off_data / SECTOR;

		memset(d->bad + from, 1, d->bytes / SECTOR - from);
		for (uint64_t lba = 0; lba < 20; lba++)
			assert_int_equal(rig_expect(&rig, lba, 1, 1), 0);
		memset(d->bad, 0, d->bytes / SECTOR);
	}
	assert_true(info_of(&rig).reads_repaired > 3);
	rig_turn(&rig);
	rig_turn(&rig);
	assert_int_equal(info_of(&rig).state, VDISK_REBUILDING);
	rig_until(&rig, VDISK_HEALTHY, 5 * SEC_NS);
	assert_int_equal(rig_expect(&rig, 0, 1, 1), 0);
	end(&rig);
}

static void expect_in_service(struct rig *rig, unsigned n)
{
	const struct vlog_info info = info_of(rig);

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(info.slot[i].state, MEMBER_OK);
}

/* Time after time for a minute, wherever it is: with `turns` between. */
static void stands_still(struct rig *rig, unsigned turns, uint64_t times)
{
	while (!rig->over && times--) {
		rig_turns(rig, turns);
		rig_stop(rig, 60 * SEC_NS);
	}
	if (rig_wait(rig))
		fail_msg("%s", rig->err.text);
	rig_run(rig, SEC_NS);
}

static void wrote(struct io *io)
{
	struct rig *rig = io->arg;

	rig->result = io->result;
	rig->over = true;
}

/*
 * A process that stands still, or its machine does, gives nobody up for what
 * it did not hear meanwhile: while it makes, opens, writes and takes members
 * back. Who says nothing then is given up in time.
 */
static void stood_still(unsigned turns)
{
	static uint8_t buf[60 * 4096];
	struct io io = { .op = BDEV_WRITE, .buf = buf, .len = sizeof(buf) };
	uint64_t began;
	struct rig rig;

	rig_init(&rig, 7, 2, 1, 4, 800);
	rig.spec.tune.slots = 100;
	rig_create(&rig);
	stands_still(&rig, turns, 3);
	rig_crash(&rig, false);
	rig_open(&rig);
	stands_still(&rig, turns, 3);
	expect_in_service(&rig, 4);
	fill(&rig, 3);
	io.done = wrote;
	io.arg = &rig;
	rig.over = false;
	bdev_submit(rig.vd, &io);
	stands_still(&rig, turns, 3);
	expect_in_service(&rig, 4);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	rig_turns(&rig, 3);
	rig_give_back_begin(&rig, 1);
	stands_still(&rig, turns, 3);
	expect_in_service(&rig, 4);
	rig.disk[1].stuck = true;
	began = reactor_now(rig.r);
	assert_int_equal(rig_put(&rig, 500, 4, 100), 0);
	assert_in_range(reactor_now(rig.r) - began, 4 * SEC_NS, 8 * SEC_NS);
	assert_int_equal(info_of(&rig).slot[1].state, MEMBER_MISSING);
	disk_unstick(&rig.disk[1]);
	end(&rig);
}

static void test_stood_still(void **state)
{
	(void)state;
	for (unsigned turns = 1; turns < 40; turns += 3)
		stood_still(turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_narrow_is_closed),
		cmocka_unit_test(test_bad_is_closed),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_silent_read),
		cmocka_unit_test(test_missing_at_open),
		cmocka_unit_test(test_exposed_first),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_throttle),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_stuck_while_opening),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_claimed_in_vain),
		cmocka_unit_test(test_stood_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
