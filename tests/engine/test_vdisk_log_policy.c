/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout: another policy, another codec, more components, while it is
 * written to, and with the owner dying at any moment of it. Whatever happens
 * all that was written is there, what was asked for comes about in the end, and
 * then as many members may go as the new policy says.
 *   test_vdisk_log_policy all    at every moment; else at one in 13
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

/* Of the moments at which something happens to a change; "all": 1. */
static unsigned every = 13;

/* Away, and the vDisk has noticed. Returns the disk. */
static unsigned lose(struct rig *rig, unsigned i)
{
	struct vlog_info info;
	struct err err = { 0 };
	unsigned disk;

	vlog_info(rig->vd, &info);
	assert_non_null(info.slot[i].bdev);
	assert_int_equal(sscanf(info.slot[i].bdev->name, "disk%u", &disk), 1);
	assert_int_equal(vlog_member_fail(rig->vd, i, &err), 0);
	disk_leave(&rig->disk[disk]);
	rig_turns(rig, 50);
	return disk;
}

struct step {
	unsigned raid, k, m, codec, more;
};

static void change(struct rig *rig, const struct step *to, struct answer *a)
{
	struct vdisk_slot slot[4] = { 0 };
	struct vdisk_spec target = {
		.policy = { .raid = (enum raid_level)to->raid,
			    .k = (uint8_t)to->k,
			    .m = (uint8_t)to->m,
			    .layout = VDISK_LOG,
			    .codec = (uint8_t)to->codec },
		.slot = slot,
		.slots = to->more,
	};

	for (unsigned i = 0; i < to->more; i++) {
		const unsigned disk = rig_disk_add(rig, rig->disk[0].bytes);

		slot[i].bdev = disk_open(&rig->disk[disk]);
		snprintf(slot[i].domain, sizeof(slot[i].domain), "new%u", disk);
	}
	vlog_policy_change(rig->vd, &target, rig_answered, a);
}

static void begin_empty(struct rig *rig, uint64_t seed, unsigned k, unsigned m,
			unsigned n)
{
	rig_init(rig, seed, k, m, n, 400);
	rig->spec.tune.slots = 80;
	rig->spec.tune.buffer_bytes = 256 << 10;
	rig->spec.policy.codec = VDISK_RAW;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void begin(struct rig *rig, uint64_t seed, unsigned k, unsigned m,
		  unsigned n)
{
	begin_empty(rig, seed, k, m, n);
	rig_fill(rig);
}

/* All is as the policy says, and m members may go. */
static void holds(struct rig *rig, const struct step *to)
{
	struct vlog_info info;
	unsigned disk[4];

	vlog_info(rig->vd, &info);
	assert_int_equal(info.policy.k, to->k);
	assert_int_equal(info.policy.m, to->m);
	assert_int_equal(info.policy.codec, to->codec);
	assert_int_equal(info.state, VDISK_HEALTHY);
	assert_true(info.compliance == 1 && info.live_bytes > 0);
	assert_int_equal(info.failures_left, to->m);
	rig_expect_all(rig);
	for (unsigned i = 0; i < to->m; i++)
		disk[i] = lose(rig, (i * 2 + 1) % info.slots);
	rig_expect_all(rig);
	rig_crash(rig, true);
	rig_reopen(rig);
	rig_expect_all(rig);
	for (unsigned i = 0; i < to->m; i++) {
		struct answer a = { 0 };
		const unsigned gone = (i * 2 + 1) % info.slots;

		disk_return(&rig->disk[disk[i]]);
		vlog_member_return(rig->vd, gone,
				   disk_open(&rig->disk[disk[i]]), rig_answered,
				   &a);
		rig_wait_for(rig, &a, 1);
		assert_int_equal(a.result, 0);
	}
	rig_turns(rig, 300);
}

/* One after the other, on the same vDisk. */
static void test_steps(void **state)
{
	static const struct step steps[] = {
		{ 1, 1, 1, VDISK_RAW, 0 },  /* RAID-5 2+1 to mirrors */
		{ 5, 2, 1, VDISK_LZ4, 0 },  /* and back, compressed */
		{ 5, 4, 1, VDISK_LZ4, 2 },  /* wider, on more components */
		{ 6, 4, 2, VDISK_ZSTD, 1 }, /* one more failure */
		{ 1, 1, 2, VDISK_RAW, 0 },  /* as mirrors */
		{ 1, 1, 3, VDISK_LZ4, 1 },  /* and one more */
		{ 5, 4, 1, VDISK_LZ4, 0 },  /* fewer */
		{ 0, 3, 0, VDISK_LZ4, 0 },  /* none */
		{ 6, 4, 2, VDISK_LZ4, 0 },  /* and two again */
	};
	struct rig rig;

	(void)state;
	begin(&rig, 3, 2, 1, 3);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct answer a = { 0 };

		change(&rig, &steps[i], &a);
		rig_wait_for(&rig, &a, 1);
		if (a.result)
			fail_msg("step %u: %s", i, a.err.text);
		holds(&rig, &steps[i]);
	}
	rig_end(&rig);
}

static void settled(struct rig *rig)
{
	struct vlog_info info;

	for (unsigned i = 0; i < 20000; i++) {
		vlog_info(rig->vd, &info);
		if (info.state == VDISK_HEALTHY && info.compliance == 1 &&
		    info.failures_left == info.policy.m)
			return;
		rig_turn(rig);
	}
	fail_msg("%d, %.3f as the policy says, %u of %u may go", info.state,
		 info.compliance, info.failures_left, info.policy.m);
}

static void crash_once(unsigned after, const struct step *from, unsigned n,
		       const struct step *to)
{
	struct answer a = { 0 }, again = { 0 };
	struct vlog_info info;
	struct rig rig;

	begin(&rig, 2000 + after, from->k, from->m, n);
	change(&rig, to, &a);
	rig_turns(&rig, after);
	rig_crash(&rig, after / 2 % 2);
	rig_reopen(&rig);
	rig_expect_all(&rig);
	vlog_info(rig.vd, &info);
	if (info.policy.k != to->k || info.policy.m != to->m ||
	    info.policy.codec != to->codec || info.slots != n + to->more) {
		assert_int_equal(a.count, 0);
		change(&rig, to, &again);
		rig_wait_for(&rig, &again, 1);
		if (again.result)
			fail_msg("after %u: %s", after, again.err.text);
	}
	settled(&rig);
	holds(&rig, to);
	rig_end(&rig);
}

static void test_crash(void **state)
{
	static const struct {
		struct step from;
		unsigned n;
		struct step to;
	} moves[] = {
		{ { 5, 2, 1, 0, 0 }, 3, { 6, 4, 2, VDISK_LZ4, 3 } },
		{ { 6, 4, 2, 0, 0 }, 6, { 1, 1, 1, VDISK_RAW, 0 } },
		{ { 1, 1, 1, 0, 0 }, 3, { 1, 1, 2, VDISK_ZSTD, 2 } },
	};

	(void)state;
	for (unsigned after = 0; after<240; after += every> 1 ? 17 : 1)
		crash_once(after, &moves[after % 3].from, moves[after % 3].n,
			   &moves[after % 3].to);
}

/* The owner dies as the first content that brings others into the metadata
 * group is on one of them alone: all that there was of it before. */
static void test_crash_alone(void **state)
{
	const struct step from = { 0, 2, 0, 0, 0 }, to = { 5, 2, 1, 0, 0 };

	(void)state;
	for (unsigned after = 0; after < 160; after += every)
		crash_once(after, &from, 3, &to);
}

static void wrote(struct io *io)
{
	*(bool *)io->arg = true;
}

/* ---- contents of one policy, another and the first again ---------------- */

#define FRONT (16u << 10)

static struct fmt_super newest(const struct rig *rig, unsigned disk)
{
	const uint8_t *front = rig->disk[disk].seen;
	const void *const block[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	struct fmt_super super = { 0 };
	struct fmt_label label;
	unsigned slot;

	memcpy(&label, front + FMT_LABEL_A, sizeof(label));
	assert_int_equal(fmt_super_newest(block, label.head.vdisk,
					  label.head.comp, &super, &slot),
			 0);
	return super;
}

/* What stands on a disk, without log and data. */
static void metadata_put(struct disk *d, const uint8_t *from)
{
	struct fmt_label l;

	memcpy(&l, d->seen + FMT_LABEL_A, sizeof(l));
	memcpy(d->seen, from, FRONT);
	memcpy(d->seen + l.off_snap[0], from + l.off_snap[0],
	       l.off_data - l.off_snap[0]);
	memcpy(d->durable, d->seen, d->bytes);
}

static void snapshot_wipe(struct rig *rig, unsigned disk)
{
	const struct fmt_super super = newest(rig, disk);
	struct disk *d = &rig->disk[disk];
	struct fmt_label l;

	memcpy(&l, d->seen + FMT_LABEL_A, sizeof(l));
	memset(d->seen + l.off_snap[super.content.area], 0, FMT_BLOCK);
	memcpy(d->durable, d->seen, d->bytes);
}

/* Turns until the first content of this codec is on one of the first two alone;
 * which, or -1. */
static int alone(struct rig *rig, unsigned codec)
{
	const struct fmt_super was[2] = { newest(rig, 0), newest(rig, 1) };

	if (fmt_content_compare(&was[0].content, &was[1].content))
		return -1;
	for (unsigned i = 0; i < 2000; i++) {
		const bool a = newest(rig, 0).content.codec == codec;
		const bool b = newest(rig, 1).content.codec == codec;

		if (a || b)
			return a && b ? -1 : b;
		rig_turn(rig);
	}
	return -1;
}

/*
 * The newest is on one member, and damaged there; a third has not been written
 * to since the oldest. The one in between counts, whatever its policy.
 */
static bool in_between(uint64_t seed)
{
	const struct step lz4 = { 5, 1, 1, VDISK_LZ4, 0 };
	const struct step raw = { 5, 1, 1, VDISK_RAW, 0 };
	struct answer a = { 0 }, b = { 0 };
	uint8_t *old;
	struct rig rig;
	int newer;

	begin(&rig, seed, 1, 1, 3);
	old = malloc(rig.disk[2].bytes);
	memcpy(old, rig.disk[2].seen, rig.disk[2].bytes);
	change(&rig, &lz4, &a);
	rig_wait_for(&rig, &a, 1);
	settled(&rig);
	/* The log of the oldest is written over. */
	for (unsigned i = 0; i < 12; i++) {
		rig_fill(&rig);
		vlog_checkpoint(rig.vd);
		rig_run(&rig, 100 * MSEC_NS);
	}
	change(&rig, &raw, &b);
	newer = alone(&rig, VDISK_RAW);
	rig_crash(&rig, false);
	if (newer >= 0) {
		snapshot_wipe(&rig, (unsigned)newer);
		metadata_put(&rig.disk[2], old);
		if (rig_open_sync(&rig))
			fail_msg("seed %llu: %s", (unsigned long long)seed,
				 rig.err.text);
		rig_expect_all(&rig);
	}
	free(old);
	rig_end(&rig);
	return newer >= 0;
}

static void test_in_between(void **state)
{
	unsigned count = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		count += in_between(seed);
	assert_true(count > 2);
}

/* The only segment is sealed when the policy is another one already, and
 * nobody does anything from then on. */
static void sealed_late(unsigned after, const struct step *to)
{
	static uint8_t buf[24 * 4096] __attribute__((aligned(4096)));
	struct answer a = { 0 };
	bool over = false;
	struct rig rig;
	struct io io = { .op = BDEV_WRITE,
			 .off = 100 * 4096,
			 .len = sizeof(buf),
			 .buf = buf,
			 .done = wrote,
			 .arg = &over };

	begin_empty(&rig, 3000 + after, 2, 0, 4);
	memset(buf, 1, sizeof(buf));
	change(&rig, to, &a);
	rig_turns(&rig, after);
	bdev_submit(rig.vd, &io);
	rig_wait_for(&rig, &a, 1);
	assert_int_equal(a.result, 0);
	while (!over)
		rig_turn(&rig);
	settled(&rig);
	rig_end(&rig);
}

static void test_sealed_late(void **state)
{
	const struct step m = { 5, 2, 1, VDISK_RAW, 0 };
	const struct step codec = { 0, 2, 0, VDISK_LZ4, 0 };

	(void)state;
	for (unsigned after = 0; after < 40; after += every) {
		sealed_late(after, &m);
		sealed_late(after, &codec);
	}
}

/* ---- members go in the middle of it --------------------------------- */

struct loss {
	struct step from;
	unsigned n;
	struct step to;
	uint32_t gone; /* bits of members */
};

static void gone(struct rig *rig, uint32_t mask)
{
	struct err err = { 0 };

	for (unsigned i = 0; i < rig->n; i++)
		if (mask & 1u << i)
			assert_int_equal(vlog_member_fail(rig->vd, i, &err), 0);
	for (unsigned i = 0; i < rig->n; i++)
		while (mask & 1u << i && rig->disk[i].open)
			rig_turn(rig);
}

/* One after another. empty: bits of those that another comes in for. */
static void come_back(struct rig *rig, uint32_t mask, uint32_t empty,
		      int result)
{
	for (unsigned i = 0; i < rig->n; i++) {
		unsigned disk = i;
		struct answer back = { 0 };

		if (!(mask & 1u << i))
			continue;
		if (empty & 1u << i)
			disk = rig_disk_add(rig, rig->disk[0].bytes);
		vlog_member_return(rig->vd, i, disk_open(&rig->disk[disk]),
				   rig_answered, &back);
		rig_wait_for(rig, &back, 1);
		assert_int_equal(back.result, result);
	}
}

static bool in_service(struct rig *rig)
{
	struct vlog_info info;

	vlog_info(rig->vd, &info);
	return info.state != VDISK_FAILED;
}

/* With a checkpoint at work most of the time: what is to be said waits. */
static bool lost_once(unsigned after, const struct loss *l)
{
	struct answer a = { 0 };
	struct rig rig;
	bool serves;

	begin(&rig, 4000 + after, l->from.k, l->from.m, l->n);
	change(&rig, &l->to, &a);
	for (unsigned i = 0; i < after; i++) {
		if (i % 3 == 0)
			vlog_checkpoint(rig.vd);
		rig_turn(&rig);
	}
	gone(&rig, l->gone);
	rig_turns(&rig, after % 20);
	serves = in_service(&rig);
	for (unsigned i = 0; serves && after % 8 == 1 && i < 12; i++)
		rig_fill(&rig); /* goes on without them */
	if (after % 4 != 3)
		come_back(&rig, l->gone,
			  after % 4 == 2 && l->to.m ? l->gone & -l->gone : 0,
			  serves ? 0 : -EIO);
	if (serves && after % 4 != 3) {
		rig_wait_for(&rig, &a, 1);
		rig_fill(&rig);
		rig_until(&rig, VDISK_HEALTHY, 200 * SEC_NS);
		rig_expect_all(&rig);
	}
	rig_end(&rig);
	return serves;
}

/* More than the policy that comes tolerates, of those that would have to say
 * it. It goes on once they are back, or it has stopped: it never hangs. */
static void test_lost(void **state)
{
	static const struct loss losses[] = {
		{ { 6, 4, 2, 0, 0 }, 6, { 5, 2, 1, VDISK_LZ4, 0 }, 3 },
		{ { 5, 2, 1, 0, 0 }, 3, { 0, 2, 0, VDISK_RAW, 0 }, 1 },
		{ { 5, 2, 1, 0, 0 }, 6, { 6, 3, 2, VDISK_RAW, 0 }, 0x1a },
		{ { 1, 1, 2, 0, 0 }, 7, { 1, 1, 3, VDISK_RAW, 0 }, 0x6c },
	};

	(void)state;
	for (unsigned i = 0; i < array_len(losses); i++) {
		unsigned served = 0;

		for (unsigned after = 0; after < 130; after += 2 * every + 1)
			served += lost_once(after, &losses[i]);
		assert_true(served >= 2); /* not only stopped */
	}
}

/* What cannot be says why, and changes nothing. */
static void test_refused(void **state)
{
	static const struct {
		struct step to;
		int result;
		const char *words;
	} no[] = {
		{ { 6, 4, 2, 0, 0 }, -ENOSPC, "4+2 needs 6 to 16 components" },
		{ { 1, 1, 2, 0, 1 }, -ENOSPC, "1+2 needs 5" },
		{ { 5, 14, 3, 0, 0 }, -EINVAL, "no such policy" },
		{ { 1, 1, 1, 7, 0 }, -EINVAL, "no such policy" },
	};
	struct vdisk_spec other = { .policy = { .k = 1, .m = 1 } };
	struct answer a = { 0 };
	struct vlog_info info;
	struct rig rig;

	(void)state;
	begin(&rig, 9, 2, 1, 3);
	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		change(&rig, &no[i].to, &a);
		rig_wait_for(&rig, &a, i + 1);
		assert_int_equal(a.result, no[i].result);
		if (!strstr(a.err.text, no[i].words))
			fail_msg("\"%s\"", a.err.text);
	}
	vlog_policy_change(rig.vd, &other, rig_answered, &a);
	rig_wait_for(&rig, &a, 5);
	assert_int_equal(a.result, -ENOTSUP);
	lose(&rig, 1);
	change(&rig, &(const struct step) { 1, 1, 1, 0, 0 }, &a);
	rig_wait_for(&rig, &a, 6);
	assert_int_equal(a.result, -EAGAIN);
	vlog_info(rig.vd, &info);
	assert_int_equal(info.policy.k, 2);
	rig_expect_all(&rig);
	rig_end(&rig);
}

/* Members are too short for mirrors: refused, or made longer. */
static void test_room(void **state)
{
	static const struct step mirrors = { 1, 1, 1, VDISK_RAW, 0 };
	struct answer a = { 0 };
	struct rig rig;

	(void)state;
	rig_init(&rig, 4, 4, 1, 5, 3000);
	rig.spec.tune.slots = 0;
	rig.spec.policy.codec = VDISK_RAW;
	if (rig_create_sync(&rig))
		fail_msg("%s", rig.err.text);
	rig_fill(&rig);
	change(&rig, &mirrors, &a);
	rig_wait_for(&rig, &a, 1);
	assert_int_equal(a.result, -ENOSPC);
	assert_non_null(strstr(a.err.text, "MiB on each of 5 components"));
	rig.growable = true;
	change(&rig, &mirrors, &a);
	rig_wait_for(&rig, &a, 2);
	if (a.result)
		fail_msg("%s", a.err.text);
	settled(&rig);
	holds(&rig, &mirrors);
	rig_end(&rig);
}

/* A member is replaced while older segments are still being moved. */
static void test_meanwhile(void **state)
{
	static const struct step mirrors = { 1, 1, 1, VDISK_LZ4, 0 };
	struct answer a = { 0 }, b = { 0 };
	struct vdisk_slot slot = { .domain = "new" };
	struct vlog_info info;
	struct rig rig;
	unsigned spare;

	(void)state;
	begin(&rig, 6, 2, 1, 4);
	spare = rig_disk_add(&rig, rig.disk[0].bytes);
	change(&rig, &mirrors, &a);
	do {
		rig_turn(&rig);
		vlog_info(rig.vd, &info);
	} while (info.policy.k != 1);
	lose(&rig, 1);
	slot.bdev = disk_open(&rig.disk[spare]);
	vlog_replace(rig.vd, 1, &slot, rig_answered, &b);
	rig_wait_for(&rig, &a, 1);
	rig_wait_for(&rig, &b, 1);
	assert_int_equal(a.result, 0);
	assert_int_equal(b.result, 0);
	settled(&rig);
	rig_expect_all(&rig);
	lose(&rig, 2);
	rig_expect_all(&rig);
	rig_end(&rig);
}

/* ---- healthy ------------------------------------------------------- */

static bool stripe_under_way(struct rig *rig)
{
	const struct vlog *v = container_of(rig->vd, struct vlog, bdev);

	for (uint32_t i = 0; i < v->segs; i++)
		if (v->seg[i].out)
			return true;
	return false;
}

/*
 * The first stripe there is, in the shape without parity, is on its way to
 * slow members when the policy changes: nothing lives in its segment yet. The
 * change has not come to its end before that is as the policy says.
 */
static void in_flight(uint64_t seed)
{
	static const struct step to = { 5, 2, 1, VDISK_RAW, 0 };
	struct answer a = { 0 };
	struct vlog_info info;
	struct rig rig;
	uint64_t until;

	begin_empty(&rig, seed, 3, 0, 5);
	for (unsigned i = 0; i < rig.n; i++)
		rig.disk[i].slow = 20000; /* for what is under way */
	for (unsigned lba = 0; !stripe_under_way(&rig); lba++)
		assert_int_equal(rig_put(&rig, lba, 1, 1), 0);
	for (unsigned i = 0; i < rig.n; i++)
		rig.disk[i].slow = 0;
	change(&rig, &to, &a);
	until = reactor_now(rig.r) + 60 * SEC_NS;
	while (reactor_now(rig.r) < until) {
		rig_turn(&rig);
		vlog_info(rig.vd, &info);
		if (a.count)
			assert_int_equal(info.failures_left, to.m);
	}
	assert_int_equal(a.count, 1);
	assert_int_equal(a.result, 0);
	assert_int_equal(info.state, VDISK_HEALTHY);
	assert_true(info.compliance == 1);
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_in_flight(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		in_flight(seed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_meanwhile),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_crash_alone),
		cmocka_unit_test(test_in_between),
		cmocka_unit_test(test_sealed_late),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_in_flight),
	};

	if (argc > 1 && !strcmp(argv[1], "all"))
		every = 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
