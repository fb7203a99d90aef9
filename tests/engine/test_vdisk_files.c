/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A vDisk as it is used: over real files, on the reactor of this machine
 * (io_uring where it works). What the simulated one leaves out is here:
 * O_DIRECT, locks, the kernel's completions; not faults, which are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/drive.h"
#include "engine/vdisk/vdisk.h"

#define DRIVES 6
#define SIZE_BYTES (6 * MIB + 20 * KIB)
#define PIECE_BYTES (260 * KIB) /* not a row of any level */

struct world {
	struct reactor *r;
	char dir[64];
	struct drive *drive[DRIVES];
	struct bdev *vdisk;
	bool done;
	int result;
};

static void until(struct world *w)
{
	while (!w->done)
		reactor_run_once(w->r, SEC_NS);
	w->done = false;
}

static void world_open(struct world *w)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO,
					   .workers = 1,
					   .name = "test" };
	char path[96];

	memset(w, 0, sizeof(*w));
	assert_int_equal(reactor_new(&opts, &w->r, NULL), 0);
	strcpy(w->dir, "/tmp/iodeck-vdisk-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	for (unsigned i = 0; i < DRIVES; i++) {
		snprintf(path, sizeof(path), "%s/%u", w->dir, i);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(drive_claim(path, "lab", NULL, NULL), 0);
		assert_int_equal(
			drive_open(w->r, path, NULL, &w->drive[i], NULL), 0);
	}
}

static void world_close(struct world *w)
{
	char command[96];

	for (unsigned i = 0; i < DRIVES; i++)
		drive_close(w->drive[i]);
	reactor_free(w->r);
	snprintf(command, sizeof(command), "rm -r '%s'", w->dir);
	assert_int_equal(system(command), 0);
}

/* ---- the vDisk ----------------------------------------------------------- */

static void on_vdisk(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct world *w = arg;

	if (result)
		print_error("%s\n", err->text);
	w->result = result;
	if (!result)
		w->vdisk = vdisk;
	w->done = true;
}

static void on_closed(void *arg)
{
	((struct world *)arg)->done = true;
}

/* Components on drives 0.. of which `without` is left out (DRIVES: none). */
static unsigned slots_fill(struct world *w, const struct vdisk_policy *policy,
			   struct vdisk_slot *slot, unsigned without, bool make)
{
	const unsigned width = policy->k + policy->m, m2 = 2u * policy->m + 1;
	const unsigned slots = width > m2 ? width : m2;
	unsigned count = 0;

	memset(slot, 0, slots * sizeof(*slot));
	for (unsigned i = 0; i < slots; i++) {
		struct vdisk_slot *s = &slot[count];

		if (i == without)
			continue;
		if (make)
			assert_int_equal(
				drive_component_create(
					w->drive[i], "db1",
					vdisk_slot_bytes(policy, SIZE_BYTES,
							 slots, i),
					NULL),
				0);
		assert_int_equal(drive_component_open(w->drive[i], "db1",
						      &s->bdev, NULL),
				 0);
		snprintf(s->domain, sizeof(s->domain), "n%u", i);
		snprintf(s->drive, sizeof(s->drive), "d0");
		snprintf(s->component, sizeof(s->component), "db1");
		count++;
	}
	return count;
}

static void vdisk_start(struct world *w, const struct vdisk_policy *policy,
			unsigned without, bool make)
{
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	const struct vdisk_spec spec = {
		.cluster = "lab",
		.name = "db1",
		.size_bytes = SIZE_BYTES,
		.policy = *policy,
		.slot = slot,
		.slots = slots_fill(w, policy, slot, without, make),
	};

	if (make)
		vdisk_create(w->r, &spec, on_vdisk, w);
	else
		vdisk_open(w->r, &spec, on_vdisk, w);
	until(w);
	assert_int_equal(w->result, 0);
}

static void vdisk_stop(struct world *w)
{
	bdev_close(w->vdisk, on_closed, w);
	until(w);
}

/* ---- content ------------------------------------------------------------- */

static void on_io(struct io *io)
{
	struct world *w = io->arg;

	w->result = io->result;
	w->done = true;
}

static uint64_t word_at(uint64_t off, unsigned version)
{
	return (off + version) * 0x9e3779b97f4a7c15ull;
}

/* Writes all of it in pieces, or reads it and compares. */
static void content(struct world *w, unsigned version, bool write)
{
	uint64_t *buf = reactor_buf_alloc(w->r, PIECE_BYTES);

	assert_non_null(buf);
	for (uint64_t off = 0; off < SIZE_BYTES; off += PIECE_BYTES) {
		const uint64_t left = SIZE_BYTES - off;
		struct io io = {
			.op = write ? BDEV_WRITE : BDEV_READ,
			.off = off,
			.len = (uint32_t)(left < PIECE_BYTES ? left
							     : PIECE_BYTES),
			.buf = buf,
			.done = on_io,
			.arg = w,
		};

		for (uint32_t i = 0; write && i < io.len / 8; i++)
			buf[i] = word_at(off + i, version);
		bdev_submit(w->vdisk, &io);
		until(w);
		assert_int_equal(w->result, 0);
		for (uint32_t i = 0; !write && i < io.len / 8; i++)
			if (buf[i] != word_at(off + i, version))
				fail_msg("differs at %llu",
					 (unsigned long long)(off + i * 8));
	}
	reactor_buf_free(w->r, buf, PIECE_BYTES);
}

/* What the labels say to who does not open them. */
static void probe(struct world *w, const struct vdisk_policy *policy)
{
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	const unsigned slots = slots_fill(w, policy, slot, DRIVES, false);

	for (unsigned i = 0; i < slots; i++) {
		struct vdisk_label_facts facts;

		assert_int_equal(vdisk_label_probe(slot[i].bdev, &facts, NULL),
				 0);
		assert_string_equal(facts.name, "db1");
		assert_int_equal(facts.size_bytes, SIZE_BYTES);
		assert_int_equal(facts.slots, slots);
		assert_memory_equal(&facts.policy, policy, sizeof(*policy));
		bdev_close(slot[i].bdev, on_closed, w);
		until(w);
	}
}

static void verify(struct world *w)
{
	uint64_t mismatches = 1;

	vdisk_verify(w->vdisk, &mismatches, on_vdisk, w);
	until(w);
	assert_int_equal(w->result, 0);
	assert_int_equal(mismatches, 0);
}

/* Written, opened again and read, also without a member; rewritten then. */
static void test_layout(enum raid_level raid, unsigned k, unsigned m,
			enum vdisk_layout layout)
{
	const bool log = layout == VDISK_LOG;
	const struct vdisk_policy policy = {
		.raid = raid,
		.k = (uint8_t)k,
		.m = (uint8_t)m,
		.stripe_unit_bytes = log ? 128 * KIB : 64 * KIB,
		.layout = (uint8_t)layout,
		.codec = log ? VDISK_LZ4 : VDISK_RAW,
	};
	struct world w;

	world_open(&w);
	vdisk_start(&w, &policy, DRIVES, true);
	content(&w, 1, true);
	if (!log)
		verify(&w);
	content(&w, 1, false);
	vdisk_stop(&w);
	probe(&w, &policy);
	vdisk_start(&w, &policy, DRIVES, false);
	content(&w, 1, false);
	vdisk_stop(&w);
	if (m) {
		vdisk_start(&w, &policy, 1, false);
		content(&w, 1, false);
		content(&w, 2, true);
		content(&w, 2, false);
		vdisk_stop(&w);
		/* it comes back with what it had: not read */
		vdisk_start(&w, &policy, DRIVES, false);
		content(&w, 2, false);
		vdisk_stop(&w);
	}
	world_close(&w);
}

static void test_level(enum raid_level raid, unsigned k, unsigned m)
{
	test_layout(raid, k, m, VDISK_INPLACE);
	test_layout(raid, k, m, VDISK_LOG);
}

static void test_raid0(void **state)
{
	(void)state;
	test_level(RAID_0, 3, 0);
}

static void test_raid1(void **state)
{
	(void)state;
	test_level(RAID_1, 1, 2);
}

static void test_raid5(void **state)
{
	(void)state;
	test_level(RAID_5, 4, 1);
}

static void test_raid6(void **state)
{
	(void)state;
	test_level(RAID_6, 4, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raid0),
		cmocka_unit_test(test_raid1),
		cmocka_unit_test(test_raid5),
		cmocka_unit_test(test_raid6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
