/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the simulator found in the in-place vDisk, each as a test of its own,
 * on the simulator's drives. Where chance has a part, over a few seeds. And
 * what was found in the drives themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/vdisk/label.h"
#include "tests/sim/media.h"
#include "tests/sim/sim.h"

#define DRIVES 8u
#define BYTES (256 * KIB)
#define TURNS_MAX 100000u

struct world {
	struct sim sim;
	struct sim_client client;
	struct bdev *vdisk;
	bool done;
	int result;
};

static bool damage_any(struct sim_client *c, uint64_t off, bool rot)
{
	(void)c;
	(void)off;
	(void)rot;
	return true;
}

static bool hot_any(struct sim_client *c, uint64_t off, uint64_t len)
{
	(void)c;
	(void)off;
	(void)len;
	return true;
}

static const struct sim_client_ops bare_ops = { .hot = hot_any,
						.name = "bare",
						.damage_ok = damage_any };
static const struct sim_profile bare = { .name = "bare", .latency_ns = 50000 };

static void world_init(struct world *w, uint64_t seed)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = seed };

	memset(w, 0, sizeof(*w));
	w->sim.profile = &bare;
	w->sim.seed = 1; /* all drives alike */
	w->sim.client = &w->client;
	w->client.ops = &bare_ops;
	w->client.sim = &w->sim;
	w->client.io_bytes = SIM_SECTOR;
	rng_seed(&w->sim.rng, seed);
	assert_int_equal(reactor_new(&opts, &w->sim.r, NULL), 0);
	for (unsigned i = 0; i < DRIVES; i++)
		assert_int_equal(sim_drive_init(&w->sim.drive[i], &w->sim, i,
						VDISK_LABEL_BYTES + BYTES),
				 0);
}

static void turns_until(struct world *w, const bool *flag)
{
	for (unsigned i = 0; i < TURNS_MAX && !*flag; i++)
		reactor_run_once(w->sim.r, SEC_NS);
	assert_true(*flag);
}

static void done(int result, const struct err *err, struct bdev *vdisk,
		 void *arg)
{
	struct world *w = arg;

	(void)err;
	w->done = true;
	w->result = result;
	if (!result)
		w->vdisk = vdisk;
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

/* All instances end; their drives are to be dead already, or it is clean. */
static void world_close(struct world *w)
{
	bool flag = false;

	bdev_close(w->vdisk, closed, &flag);
	w->vdisk = NULL;
	turns_until(w, &flag);
	while (w->sim.handles)
		reactor_run_once(w->sim.r, SEC_NS);
}

static void world_crash(struct world *w, bool power)
{
	for (unsigned i = 0; i < DRIVES; i++)
		sim_drive_crash(&w->sim.drive[i], power);
	world_close(w);
}

static void world_fini(struct world *w)
{
	for (unsigned i = 0; i < DRIVES; i++)
		sim_drive_fini(&w->sim.drive[i]);
	reactor_free(w->sim.r);
}

static unsigned slots_open(struct world *w, unsigned mask,
			   struct vdisk_slot *slot)
{
	unsigned n = 0;

	for (unsigned i = 0; i < DRIVES; i++) {
		if (!(mask & 1u << i) ||
		    sim_drive_open(&w->sim.drive[i], &slot[n].bdev))
			continue;
		snprintf(slot[n].domain, sizeof(slot[n].domain), "f%u", i);
		snprintf(slot[n].drive, sizeof(slot[n].drive), "d%u", i);
		n++;
	}
	return n;
}

static const struct vdisk_policy mirror = {
	.raid = RAID_1, .k = 1, .m = 1, .stripe_unit_bytes = 4096
};

static void mirror_create(struct world *w, unsigned m)
{
	struct vdisk_slot slot[DRIVES] = { 0 };
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "v",
				   .size_bytes = BYTES,
				   .policy = mirror,
				   .slot = slot };

	spec.policy.m = (uint8_t)m;
	spec.slots = slots_open(w, (2u << 2 * m) - 1, slot);
	w->done = false;
	vdisk_create(w->sim.r, &spec, done, w);
	turns_until(w, &w->done);
	assert_int_equal(w->result, 0);
}

static int mirror_open(struct world *w, unsigned mask)
{
	struct vdisk_slot slot[DRIVES] = { 0 };
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "v",
				   .slot = slot };

	spec.slots = slots_open(w, mask, slot);
	w->done = false;
	vdisk_open(w->sim.r, &spec, done, w);
	turns_until(w, &w->done);
	for (unsigned i = 0; w->result && i < spec.slots; i++)
		bdev_close_sync(slot[i].bdev);
	return w->result;
}

static void healthy_wait(struct world *w)
{
	struct vdisk_info info;

	for (unsigned i = 0; i < TURNS_MAX; i++) {
		vdisk_info(w->vdisk, &info);
		if (info.state == VDISK_HEALTHY)
			return;
		reactor_run_once(w->sim.r, SEC_NS);
	}
	fail_msg("never healthy: %s", info.reason);
}

static uint8_t block[SIM_BLOCK] __attribute__((aligned(SIM_BLOCK)));

static int io_do(struct bdev *bdev, enum bdev_op op, uint64_t off, uint8_t fill)
{
	if (op == BDEV_WRITE)
		memset(block, fill, sizeof(block));
	return bdev_io_sync(bdev, op, 0, off, op == BDEV_FLUSH ? NULL : block,
			    op == BDEV_FLUSH ? 0 : sizeof(block));
}

/* ---- a flush fails on one copy while that copy is being read ------------ */

struct pair {
	struct io read, flush;
	unsigned left;
};

static void pair_done(struct io *io)
{
	((struct pair *)io->arg)->left--;
}

/*
 * A failed flush drops what was not durable; a read of the same drive that
 * was under way sees what stood there before.
 */
static void test_read_beside_failed_flush(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w;
		struct pair p = { .left = 2 };

		world_init(&w, seed);
		mirror_create(&w, 1);
		healthy_wait(&w);
		assert_int_equal(io_do(w.vdisk, BDEV_WRITE, 0, 1), 0);
		assert_int_equal(io_do(w.vdisk, BDEV_FLUSH, 0, 0), 0);
		assert_int_equal(io_do(w.vdisk, BDEV_WRITE, 0, 2), 0);
		w.sim.drive[seed % 2].once = SIM_FLUSH_ERROR;
		p.flush = (struct io) { .op = BDEV_FLUSH,
					.done = pair_done,
					.arg = &p };
		p.read = (struct io) { .op = BDEV_READ,
				       .len = sizeof(block),
				       .buf = block,
				       .done = pair_done,
				       .arg = &p };
		bdev_submit(w.vdisk, &p.flush);
		bdev_submit(w.vdisk, &p.read);
		while (p.left)
			reactor_run_once(w.sim.r, SEC_NS);
		assert_int_equal(p.read.result, 0);
		for (unsigned i = 0; i < sizeof(block); i += SIM_SECTOR)
			assert_int_equal(block[i], 2);
		world_close(&w);
		world_fini(&w);
	}
}

/* ---- a resync that is over is durable ------------------------------------ */

/*
 * After a crash only the first copy has a write. It is seen, and the copies
 * are made equal; then the first copy goes and the power of the second. What
 * was seen must still be there.
 */
static void test_resync_is_durable(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct bdev *first;
		struct world w;

		world_init(&w, seed);
		mirror_create(&w, 1);
		assert_int_equal(io_do(w.vdisk, BDEV_WRITE, 0, 1), 0);
		assert_int_equal(io_do(w.vdisk, BDEV_FLUSH, 0, 0), 0);
		world_crash(&w, true);
		assert_int_equal(sim_drive_open(&w.sim.drive[0], &first), 0);
		assert_int_equal(io_do(first, BDEV_WRITE, VDISK_LABEL_BYTES, 2),
				 0);
		assert_int_equal(io_do(first, BDEV_FLUSH, 0, 0), 0);
		bdev_close_sync(first);

		assert_int_equal(mirror_open(&w, 7), 0);
		healthy_wait(&w);
		assert_int_equal(io_do(w.vdisk, BDEV_READ, 0, 0), 0);
		assert_int_equal(block[0], 2);
		world_crash(&w, true);
		assert_int_equal(mirror_open(&w, 6), 0);
		assert_int_equal(io_do(w.vdisk, BDEV_READ, 0, 0), 0);
		assert_int_equal(block[0], 2);
		world_close(&w);
		world_fini(&w);
	}
}

/* ---- healthy is what an opening would find ------------------------------- */

/* A member rebuilt is told to be whole only once the labels say so. */
static void test_whole_is_durable(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct vdisk_slot slot = { 0 };
		struct world w;

		world_init(&w, seed);
		mirror_create(&w, 1);
		assert_int_equal(io_do(w.vdisk, BDEV_WRITE, 0, 1), 0);
		assert_int_equal(vdisk_member_fail(w.vdisk, 0, NULL), 0);
		while (w.sim.drive[0].handle)
			reactor_run_once(w.sim.r, SEC_NS);
		assert_int_equal(slots_open(&w, 1, &slot), 1);
		w.done = false;
		vdisk_replace(w.vdisk, 0, &slot, done, &w);
		turns_until(&w, &w.done);
		assert_int_equal(w.result, 0);
		assert_int_equal(io_do(w.vdisk, BDEV_FLUSH, 0, 0), 0);
		healthy_wait(&w);
		world_crash(&w, true);
		assert_int_equal(mirror_open(&w, 5), 0);
		assert_int_equal(io_do(w.vdisk, BDEV_READ, 0, 0), 0);
		assert_int_equal(block[0], 1);
		world_close(&w);
		world_fini(&w);
	}
}

/* ---- a set that has moved does not come back ----------------------------- */

static uint8_t labels[LABEL_BYTES * LABEL_COPIES]
	__attribute__((aligned(SIM_BLOCK)));

/* The drive's labels become what they were. */
static void labels_restore(struct world *w, unsigned drive)
{
	struct bdev *bdev;

	assert_int_equal(sim_drive_open(&w->sim.drive[drive], &bdev), 0);
	assert_int_equal(bdev_io_sync(bdev, BDEV_WRITE, BDEV_FUA, 0, labels,
				      sizeof(labels)),
			 0);
	bdev_close_sync(bdev);
}

/*
 * Of the labels that say "moved" one is lost, one away; the others are from
 * before. The set moved to says enough.
 */
static void test_moved_set_stays_left(void **state)
{
	struct vdisk_slot slot[DRIVES] = { 0 };
	struct vdisk_spec spec = { .policy = mirror, .slot = slot };
	struct vdisk_info info = { 0 };
	struct world w;

	(void)state;
	world_init(&w, 1);
	mirror_create(&w, 1);
	assert_int_equal(io_do(w.vdisk, BDEV_WRITE, 0, 1), 0);
	spec.slots = slots_open(&w, 7 << 3, slot);
	w.done = false;
	vdisk_migrate(w.vdisk, &spec, done, &w);
	while (info.state != VDISK_MIGRATING || !info.progress) {
		reactor_run_once(w.sim.r, SEC_NS);
		vdisk_info(w.vdisk, &info);
	}
	sim_drive_peek(&w.sim.drive[1], 0, labels, sizeof(labels));
	sim_drive_leave(&w.sim.drive[2], false);
	turns_until(&w, &w.done);
	assert_int_equal(w.result, 0);
	world_close(&w);

	sim_drive_return(&w.sim.drive[2]);
	labels_restore(&w, 1);
	assert_int_equal(mirror_open(&w, 7 << 3 | 6), 0);
	vdisk_info(w.vdisk, &info);
	assert_string_equal(info.slot[0].drive, "d3");
	world_close(&w);
	world_fini(&w);
}

/* ---- a member without FUA takes the place of one with it ---------------- */

static void test_member_without_fua(void **state)
{
	struct vdisk_slot slot = { 0 };
	struct world w;

	(void)state;
	world_init(&w, 1);
	mirror_create(&w, 1);
	assert_int_equal(vdisk_member_fail(w.vdisk, 0, NULL), 0);
	assert_int_equal(slots_open(&w, 8, &slot), 1);
	slot.bdev->limits.can_fua = false;
	w.done = false;
	vdisk_replace(w.vdisk, 0, &slot, done, &w);
	turns_until(&w, &w.done);
	healthy_wait(&w);
	memset(block, 3, sizeof(block));
	assert_int_equal(bdev_io_sync(w.vdisk, BDEV_WRITE, BDEV_FUA, 0, block,
				      sizeof(block)),
			 0);
	healthy_wait(&w);
	world_crash(&w, true);
	assert_int_equal(mirror_open(&w, 12), 0); /* without the other copy */
	assert_int_equal(io_do(w.vdisk, BDEV_READ, 0, 0), 0);
	assert_int_equal(block[0], 3);
	world_close(&w);
	world_fini(&w);
}

/* ---- one power cut never takes both labels ------------------------------- */

static bool label_stands(struct world *w, unsigned drive)
{
	struct label label;

	sim_drive_peek(&w->sim.drive[drive], 0, labels, sizeof(labels));
	return !label_decode(labels, &label) ||
	       !label_decode(labels + LABEL_BYTES, &label);
}

/* The owner ends while drive 0's label is written, the claim or the epoch. */
static void open_crash(struct world *w, unsigned mask, bool power,
		       unsigned write)
{
	struct vdisk_slot slot[DRIVES] = { 0 };
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "v",
				   .slot = slot };
	bool hot = false;

	spec.slots = slots_open(w, mask, slot);
	w->done = false;
	vdisk_open(w->sim.r, &spec, done, w);
	while (write && !w->done) {
		reactor_run_once(w->sim.r, SEC_NS);
		write -= !hot && sim_drive_hot(&w->sim.drive[0]);
		hot = sim_drive_hot(&w->sim.drive[0]);
	}
	for (unsigned i = 0; i < DRIVES; i++)
		sim_drive_crash(&w->sim.drive[i], power);
	turns_until(w, &w->done);
	for (unsigned i = 0; w->result && i < spec.slots; i++)
		bdev_close_sync(slot[i].bdev);
	if (!w->result)
		world_close(w);
}

/*
 * What a killed owner wrote last may be in the drive's cache alone. The next
 * one, writing over the older copy, must not lose both by a power cut.
 */
static void test_labels_survive(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct world w;

		world_init(&w, seed);
		mirror_create(&w, 1);
		world_close(&w);
		open_crash(&w, 5, false, 2);
		open_crash(&w, 5, true, 1);
		assert_true(label_stands(&w, 0));
		world_fini(&w);
	}
}

/* ---- a stale member goes while it is admitted again ---------------------- */

static void test_stale_goes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		const struct vdisk_slot none = { 0 };
		struct vdisk_info info;
		struct world w;

		world_init(&w, seed);
		mirror_create(&w, 2);
		world_close(&w);
		assert_int_equal(mirror_open(&w, 30), 0);
		world_close(&w);
		assert_int_equal(mirror_open(&w, 31), 0);
		vdisk_info(w.vdisk, &info);
		assert_int_equal(info.slot[0].state, MEMBER_STALE);
		sim_drive_leave(&w.sim.drive[0], false);
		/* The admission waits for this commit, which finds it gone. */
		assert_int_equal(vdisk_member_fail(w.vdisk, 1, NULL), 0);
		w.done = false;
		vdisk_replace(w.vdisk, 0, &none, done, &w);
		turns_until(&w, &w.done);
		assert_int_equal(w.result, -ENODEV);
		assert_int_equal(io_do(w.vdisk, BDEV_FLUSH, 0, 0), 0);
		world_close(&w);
		world_fini(&w);
	}
}

/* ---- a flush that was stuck is one all the same -------------------------- */

static void flag_done(struct io *io)
{
	*(bool *)io->arg = true;
}

/* What was acknowledged before it was submitted is durable once it is done. */
static void test_stuck_flush(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sim_drive *d;
		struct bdev *bdev;
		bool over = false;
		struct io flush = { .op = BDEV_FLUSH,
				    .done = flag_done,
				    .arg = &over };
		struct world w;

		world_init(&w, seed);
		d = &w.sim.drive[0];
		assert_int_equal(sim_drive_open(d, &bdev), 0);
		assert_int_equal(io_do(bdev, BDEV_WRITE, 0, 1), 0);
		d->once = SIM_STUCK;
		bdev_submit(bdev, &flush);
		assert_true(sim_drive_stuck(d));
		sim_drive_free_stuck(d);
		turns_until(&w, &over);
		assert_int_equal(flush.result, 0);
		sim_drive_crash(d, true);
		bdev_close_sync(bdev);
		sim_drive_peek(d, 0, block, sizeof(block));
		for (unsigned i = 0; i < sizeof(block); i += SIM_SECTOR)
			assert_int_equal(block[i], 1);
		world_fini(&w);
	}
}

/* ---- what was read before it healed is not put back -----------------------
 */

static void read_do(struct bdev *bdev)
{
	assert_int_equal(io_do(bdev, BDEV_READ, 0, 0), 0);
}

/* A repair writes what it read around the block, and nobody would know. */
static void test_healed_in_between(void **state)
{
	const struct sim_range range = { 0, SIM_SECTOR };
	struct sim_drive *d;
	struct bdev *bdev;
	struct world w;

	(void)state;
	world_init(&w, 1);
	d = &w.sim.drive[0];
	assert_int_equal(sim_drive_open(d, &bdev), 0);
	sim_drive_damage(d, range, true);
	sim_drive_heal(d);
	assert_int_equal(d->rotten, 0);
	sim_drive_damage(d, range, true);
	read_do(bdev);
	sim_drive_heal(d);
	assert_int_equal(d->rotten, 1);
	bdev_close_sync(bdev);
	sim_drive_heal(d);
	assert_int_equal(d->rotten, 0);

	assert_int_equal(sim_drive_open(d, &bdev), 0);
	sim_drive_damage(d, range, true);
	read_do(bdev);
	assert_int_equal(
		bdev_io_sync(bdev, BDEV_WRITE, 0, 0, block, sizeof(block)), 0);
	sim_drive_crash(d, false); /* it is on its way all the same */
	bdev_close_sync(bdev);
	sim_drive_heal(d);
	assert_int_equal(d->rotten, 1);
	world_fini(&w);
}

/* A sector shorn by a power cut, whose repair is lost: healed, it is whole. */
static void test_lost_over_shorn(void **state)
{
	struct sim_drive *d;
	struct bdev *bdev;
	struct world w;

	(void)state;
	world_init(&w, 1);
	d = &w.sim.drive[0];
	assert_int_equal(sim_drive_open(d, &bdev), 0);
	d->media->bad[0] = SHORN;
	assert_int_equal(io_do(bdev, BDEV_READ, 0, 0), -EIO);
	d->once = SIM_WRITE_LOST;
	assert_int_equal(
		bdev_io_sync(bdev, BDEV_WRITE, 0, 0, block, sizeof(block)), 0);
	assert_int_equal(d->once, SIM_ONCE_NONE);
	assert_true(d->rotten > 0);
	bdev_close_sync(bdev);
	sim_drive_heal(d);
	assert_int_equal(d->rotten, 0);
	assert_int_equal(sim_drive_open(d, &bdev), 0);
	read_do(bdev);
	bdev_close_sync(bdev);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_beside_failed_flush),
		cmocka_unit_test(test_resync_is_durable),
		cmocka_unit_test(test_whole_is_durable),
		cmocka_unit_test(test_moved_set_stays_left),
		cmocka_unit_test(test_member_without_fua),
		cmocka_unit_test(test_labels_survive),
		cmocka_unit_test(test_stale_goes),
		cmocka_unit_test(test_stuck_flush),
		cmocka_unit_test(test_healed_in_between),
		cmocka_unit_test(test_lost_over_shorn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
