/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A log-structured vDisk over real files to which things happen that happen to
 * files: cut short, zeroed, put in each other's place, opened twice, on a disk
 * that is full. What must come of each: the data, or one sentence that says
 * what is the matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/drive.h"
#include "engine/vdisk/log/log.h"

#define DRIVES 4u /* 2 + 1, and one to spare */
#define SIZE_BYTES (8 * MIB)
#define PIECE (64 * KIB)

struct world {
	struct reactor *r;
	char dir[64];
	bool mounted;
	struct drive *drive[DRIVES];
	struct bdev *vdisk;
	struct err err;
	bool done;
	int result;
};

static void until(struct world *w)
{
	while (!w->done)
		reactor_run_once(w->r, SEC_NS);
	w->done = false;
}

static void drives_open(struct world *w)
{
	char path[96];

	for (unsigned i = 0; i < DRIVES; i++) {
		snprintf(path, sizeof(path), "%s/%u", w->dir, i);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(drive_claim(path, "lab", NULL, NULL), 0);
		assert_int_equal(
			drive_open(w->r, path, NULL, &w->drive[i], NULL), 0);
	}
}

static struct world *world_new(void)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO,
					   .workers = 1,
					   .name = "test" };
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(reactor_new(&opts, &w->r, NULL), 0);
	strcpy(w->dir, "/tmp/iodeck-log-files-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	return w;
}

static int world_open(void **state)
{
	struct world *w = world_new();

	*state = w;
	drives_open(w);
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;
	char command[96];

	bdev_close_sync(w->vdisk); /* of a test that failed */
	for (unsigned i = 0; i < DRIVES; i++)
		drive_close(w->drive[i]);
	reactor_free(w->r);
	if (w->mounted)
		umount(w->dir);
	snprintf(command, sizeof(command), "rm -r '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
	return 0;
}

static void path_of(const struct world *w, unsigned drive, const char *name,
		    char path[128])
{
	snprintf(path, 128, "%s/%u/%s.component", w->dir, drive, name);
	if (access(path, F_OK))
		fail_msg("where is the component's file? %s", path);
}

/* ---- the vDisk ---------------------------------------------------------- */

static void on_vdisk(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct world *w = arg;

	w->result = result;
	w->err = (struct err) { 0 };
	if (result)
		w->err = *err;
	else
		w->vdisk = vdisk;
	w->done = true;
}

static void spec_fill(const char *name, struct vdisk_slot *slot,
		      struct vlog_spec *spec)
{
	*spec = (struct vlog_spec) {
		.cluster = "lab",
		.name = name,
		.size_bytes = SIZE_BYTES,
		.policy = { .raid = RAID_5,
			    .k = 2,
			    .m = 1,
			    .codec = VDISK_LZ4 },
		.tune = { .zone_bytes = MIB,
			  .zones = 4,
			  .unit_bytes = 32 * KIB,
			  .stripes = 4,
			  .buffer_bytes = MIB },
		.slot = slot,
		.slots = DRIVES,
	};
	for (unsigned i = 0; i < DRIVES; i++) {
		snprintf(slot[i].domain, sizeof(slot[i].domain), "n%u", i);
		snprintf(slot[i].drive, sizeof(slot[i].drive), "d0");
		snprintf(slot[i].component, sizeof(slot[i].component), "%s",
			 name);
	}
}

static int start(struct world *w, const char *name, bool make)
{
	struct vdisk_slot slot[DRIVES] = { 0 };
	struct vlog_spec spec;

	spec_fill(name, slot, &spec);
	for (unsigned i = 0; i < DRIVES; i++) {
		if (make)
			assert_int_equal(
				drive_component_create(w->drive[i], name,
						       vlog_member_bytes(&spec),
						       NULL),
				0);
		if (!drive_component_open(w->drive[i], name, &slot[i].bdev,
					  &w->err))
			snprintf(slot[i].bdev->name, sizeof(slot[i].bdev->name),
				 "n%u:d0", i);
	}
	if (make)
		vlog_create(w->r, &spec, on_vdisk, w);
	else
		vlog_open(w->r, &spec, on_vdisk, w);
	until(w);
	for (unsigned i = 0; w->result && i < DRIVES; i++)
		if (slot[i].bdev)
			bdev_close_sync(slot[i].bdev);
	return w->result;
}

static void stop(struct world *w)
{
	bdev_close_sync(w->vdisk);
	w->vdisk = NULL;
}

/* Opens, and comes to rest in this state, with these words of the reason. */
static void expect_open(struct world *w, const char *name,
			enum vdisk_state state, const char *words)
{
	const uint64_t end = reactor_now(w->r) + 10 * SEC_NS;
	struct vlog_info info;

	if (start(w, name, false))
		fail_msg("%s", w->err.text);
	vlog_info(w->vdisk, &info);
	/* One that lost its metadata is given it again first. */
	while (info.state != state && reactor_now(w->r) < end) {
		reactor_run_once(w->r, 10 * MSEC_NS);
		vlog_info(w->vdisk, &info);
	}
	if (info.state != state)
		fail_msg("%s: %s", vdisk_state_name(info.state), info.reason);
	if (!strstr(info.reason, words))
		fail_msg("\"%s\" says nothing of \"%s\"", info.reason, words);
}

static void expect_refused(struct world *w, const char *name, int code,
			   const char *words)
{
	assert_int_equal(start(w, name, false), code);
	if (!strstr(w->err.text, words))
		fail_msg("\"%s\" says nothing of \"%s\"", w->err.text, words);
}

/* ---- content ------------------------------------------------------------ */

static uint64_t word_at(uint64_t off, unsigned version)
{
	return (off + version) * 0x9e3779b97f4a7c15ull;
}

static int piece(struct world *w, enum bdev_op op, uint64_t off,
		 unsigned version)
{
	uint64_t *buf = reactor_buf_alloc(w->r, PIECE);
	int rc;

	assert_non_null(buf);
	for (uint32_t i = 0; i < PIECE / 8; i++)
		buf[i] = op == BDEV_WRITE ? word_at(off + i, version) : 0;
	rc = bdev_io_sync(w->vdisk, op, 0, off, buf, PIECE);
	for (uint32_t i = 0; op == BDEV_READ && !rc && i < PIECE / 8; i++)
		if (buf[i] != (version ? word_at(off + i, version) : 0))
			fail_msg("differs at %llu",
				 (unsigned long long)(off + i * 8));
	reactor_buf_free(w->r, buf, PIECE);
	return rc;
}

static void content(struct world *w, enum bdev_op op, unsigned version)
{
	/* Half of it: what is left of the drives must hold it, too. */
	for (uint64_t off = 0; off < SIZE_BYTES / 2; off += PIECE)
		assert_int_equal(piece(w, op, off, version), 0);
}

static void make(struct world *w, const char *name, unsigned version)
{
	assert_int_equal(start(w, name, true), 0);
	content(w, BDEV_WRITE, version);
	stop(w);
}

/* Reads it, writes other content, and closes it. */
static void use(struct world *w, unsigned version)
{
	content(w, BDEV_READ, version);
	content(w, BDEV_WRITE, version + 1);
	stop(w);
}

/* ---- torn files --------------------------------------------------------- */

static void a_file_cut_short_is_away(void **state)
{
	static const off_t left[] = { 3 << 20, 16384, 4096 };
	struct world *w = *state;
	char path[128];

	for (unsigned i = 0; i < array_len(left); i++) {
		const char *name = (const char *const[]) { "a", "b", "c" }[i];

		make(w, name, 1);
		path_of(w, 1, name, path);
		assert_int_equal(truncate(path, left[i]), 0);
		expect_open(w, name, VDISK_DEGRADED,
			    left[i] < 16384
				    ? "n1:d0 (its label cannot be read)"
				    : "n1:d0 (shorter than it was made)");
		use(w, 1);
		path_of(w, 2, name, path);
		assert_int_equal(truncate(path, 1 << 20), 0);
		expect_refused(w, name, -EAGAIN, "n2:d0 (shorter than it");
	}
}

static void zero(const char *path, off_t off, size_t len)
{
	FILE *f = fopen(path, "r+e");
	char *zeros = calloc(1, len);

	assert_true(f && zeros);
	assert_int_equal(fseek(f, off, SEEK_SET), 0);
	assert_int_equal(fwrite(zeros, len, 1, f), 1);
	fclose(f);
	free(zeros);
}

static void a_zeroed_head_is_away(void **state)
{
	struct world *w = *state;
	char path[128];

	make(w, "db1", 1);
	path_of(w, 0, "db1", path);
	zero(path, 0, 4096); /* the other label will do */
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 1);
	zero(path, 4096, 8192); /* both superblocks */
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 2);
	zero(path, 0, 1 << 20);
	expect_open(w, "db1", VDISK_DEGRADED, "n0:d0 (carries no label)");
	use(w, 3);
	path_of(w, 1, "db1", path);
	zero(path, 0, 1 << 20);
	expect_refused(w, "db1", -EAGAIN,
		       "n0:d0 (carries no label), n1:d0 (carries no "
		       "label)");
	for (unsigned i = 2; i < DRIVES; i++) {
		path_of(w, i, "db1", path);
		zero(path, 0, 1 << 20);
	}
	expect_refused(w, "db1", -ENOENT, "no component carries a label");
}

/* ---- files in each other's place ---------------------------------------- */

static void swap(const char *a, const char *b)
{
	char aside[140];

	snprintf(aside, sizeof(aside), "%s.aside", a);
	assert_int_equal(rename(a, aside), 0);
	assert_int_equal(rename(b, a), 0);
	assert_int_equal(rename(aside, b), 0);
}

static void a_component_of_another_vdisk_is_refused(void **state)
{
	struct world *w = *state;
	char a[128], b[128];

	make(w, "db1", 1);
	make(w, "db2", 5);
	for (unsigned i = 0; i < DRIVES; i++) {
		char words[96];

		path_of(w, i, "db1", a);
		path_of(w, i, "db2", b);
		swap(a, b);
		snprintf(words, sizeof(words),
			 "n%u:d0 holds a component of db2 in cluster lab, not "
			 "of db1",
			 i);
		expect_refused(w, "db1", -EINVAL, words);
		swap(a, b);
	}
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 1);
	expect_open(w, "db2", VDISK_HEALTHY, "");
	use(w, 5);
}

static void components_know_their_place(void **state)
{
	struct world *w = *state;
	char a[128], b[128];

	make(w, "db1", 1);
	path_of(w, 0, "db1", a);
	path_of(w, 2, "db1", b);
	swap(a, b);
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 1);
	swap(a, b);
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 2);
}

/* ---- two owners --------------------------------------------------------- */

static void a_second_owner_gets_nothing(void **state)
{
	struct world *w = *state;
	struct bdev *vdisk;

	make(w, "db1", 1);
	expect_open(w, "db1", VDISK_HEALTHY, "");
	vdisk = w->vdisk;
	assert_int_equal(start(w, "db1", false), -ENOENT);
	w->vdisk = vdisk;
	use(w, 1);
	expect_open(w, "db1", VDISK_HEALTHY, "");
	use(w, 2);
}

/* ---- a full disk -------------------------------------------------------- */

static void tmpfs_size(struct world *w, bool again, const char *size)
{
	char opts[32];

	snprintf(opts, sizeof(opts), "size=%s", size);
	if (mount("none", w->dir, "tmpfs", again ? MS_REMOUNT : 0, opts)) {
		print_message("tmpfs cannot be mounted: skipped\n");
		assert_false(again);
		skip();
	}
	w->mounted = true;
}

static int small_open(void **state)
{
	*state = world_new();
	return 0;
}

/*
 * Writes until it fails; what was acknowledged must be there once there is
 * room, and the vDisk must go on.
 */
static void a_full_disk_is_an_error_first(void **state)
{
	struct world *w = *state;
	unsigned version[SIZE_BYTES / PIECE] = { 0 };
	unsigned acked = 0, i;
	int rc = 0;

	tmpfs_size(w, false, "44m");
	drives_open(w);
	assert_int_equal(start(w, "db1", true), 0);
	for (i = 0; !rc && i < 4 * array_len(version); i++) {
		const unsigned p = i % array_len(version);

		rc = piece(w, BDEV_WRITE, p * PIECE, version[p] + 1);
		if (rc)
			break;
		version[p]++;
		acked++;
	}
	assert_true(rc == -EIO || rc == -ENOSPC);
	assert_true(acked > 0);
	stop(w);
	/* No room to open: refused, with nothing lost, or it opens. */
	if (!start(w, "db1", false))
		stop(w);
	else
		assert_true(w->result == -EAGAIN || w->result == -ENOSPC);
	tmpfs_size(w, true, "200m");
	expect_open(w, "db1", VDISK_HEALTHY, "");
	for (unsigned p = 0; p < array_len(version); p++) {
		/* the one that failed: as before or as after */
		if (p == i % array_len(version))
			continue;
		assert_int_equal(piece(w, BDEV_READ, p * PIECE, version[p]), 0);
	}
	content(w, BDEV_WRITE, 9);
	use(w, 9);
}

#define WORLD(test) \
	cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD(a_file_cut_short_is_away),
		WORLD(a_zeroed_head_is_away),
		WORLD(a_component_of_another_vdisk_is_refused),
		WORLD(components_know_their_place),
		WORLD(a_second_owner_gets_nothing),
		cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_first,
						small_open, world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
