/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Drives: what may be claimed and what may not, tables that survive torn
 * writes, components in directories, images and, for root, loop devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/bdev/file.h"
#include "engine/drive.h"

#define HEADER_BYTES (1 * MIB)

static struct reactor *r;
static char dir[64], image[96];
static struct err err;

static int room_make(void **state)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO };

	(void)state;
	strcpy(dir, "base-test-drive-XXXXXX");
	if (!mkdtemp(dir) || reactor_new(&opts, &r, NULL))
		return -1;
	snprintf(image, sizeof(image), "%s/image", dir);
	err.text[0] = '\0';
	return 0;
}

static int room_free(void **state)
{
	char command[128];

	(void)state;
	reactor_free(r);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void image_make(uint64_t bytes)
{
	const int fd =
		open(image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static void put(uint64_t off, const void *data, size_t len)
{
	const int fd = open(image, O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, data, len, (off_t)off), (ssize_t)len);
	close(fd);
}

static void get(uint64_t off, void *data, size_t len)
{
	const int fd = open(image, O_RDWR | O_CLOEXEC);

	assert_int_equal(pread(fd, data, len, (off_t)off), (ssize_t)len);
	close(fd);
}

static void says(const char *what)
{
	if (strstr(err.text, what))
		return;
	print_error("\"%s\" is not in \"%s\"\n", what, err.text);
	fail();
}

static void probed(const char *path, enum drive_verdict verdict,
		   const char *reason)
{
	struct drive_facts facts;

	assert_int_equal(drive_probe(path, &facts, NULL), 0);
	if (facts.verdict != verdict || !strstr(facts.reason, reason)) {
		print_error("%s: verdict %d, \"%s\"\n", path, facts.verdict,
			    facts.reason);
		fail();
	}
}

static struct drive *drive_of(const char *path)
{
	struct drive *drive = NULL;

	if (drive_open(r, path, "n1:d1", &drive, &err)) {
		print_error("%s\n", err.text);
		fail();
	}
	return drive;
}

static size_t components(struct drive *drive)
{
	struct drive_component *list;
	size_t count;

	assert_int_equal(drive_list(drive, &list, &count, NULL), 0);
	free(list);
	return count;
}

/* ---- both kinds --------------------------------------------------------- */

static void component_io(struct drive *drive, const char *id, uint8_t byte,
			 bool write)
{
	struct bdev *bdev = NULL, *second = NULL;
	uint8_t *buf = reactor_buf_alloc(r, 65536);

	assert_int_equal(drive_component_open(drive, id, &bdev, &err), 0);
	assert_int_equal(drive_component_open(drive, id, &second, &err),
			 -EBUSY);
	assert_int_equal(drive_component_delete(drive, id, &err), -EBUSY);
	if (write) {
		memset(buf, byte, 65536);
		assert_int_equal(
			bdev_io_sync(bdev, BDEV_WRITE, BDEV_FUA, 0, buf, 65536),
			0);
	}
	memset(buf, 0xee, 65536);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 65536), 0);
	for (int i = 0; i < 65536; i++)
		assert_int_equal(buf[i], byte);
	bdev_close_sync(bdev);
	reactor_buf_free(r, buf, 65536);
}

static void components_live_and_go(const char *path)
{
	struct drive *drive = drive_of(path), *second = NULL;
	struct drive_component *list;
	struct drive_facts facts;
	struct bdev *bdev;
	size_t count;

	assert_int_equal(drive_open(r, path, NULL, &second, &err), -EBUSY);
	drive_facts(drive, &facts);
	assert_int_equal(facts.verdict, DRIVE_OURS);
	assert_string_equal(facts.cluster, "lab");
	assert_int_equal(drive_component_create(drive, "a/b", 4096, &err),
			 -EINVAL);
	assert_int_equal(drive_component_create(drive, "../x", 4096, &err),
			 -EINVAL);
	assert_int_equal(drive_component_create(drive, "x", 4097, &err),
			 -EINVAL);
	assert_int_equal(drive_component_create(drive, "x", 1ull << 60, &err),
			 -ENOSPC);
	says("MiB free");
	assert_int_equal(drive_component_create(drive, "v1.0", 5 * MIB, &err),
			 0);
	assert_int_equal(drive_component_create(drive, "v1.1", 4096 * 33, &err),
			 0);
	assert_int_equal(drive_component_create(drive, "v1.0", 4096, &err),
			 -EEXIST);
	component_io(drive, "v1.0", 0x5a, true);
	component_io(drive, "v1.1", 0xa5, true);
	drive_close(drive);

	drive = drive_of(path);
	assert_int_equal(drive_list(drive, &list, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].size_bytes + list[1].size_bytes,
			 5 * MIB + 4096 * 33);
	free(list);
	component_io(drive, "v1.0", 0x5a, false);
	assert_int_equal(drive_component_open(drive, "none", &bdev, &err),
			 -ENOENT);
	assert_int_equal(drive_component_delete(drive, "none", &err), -ENOENT);
	assert_int_equal(drive_component_delete(drive, "v1.0", &err), 0);
	assert_int_equal(drive_component_create(drive, "v2.0", 5 * MIB, &err),
			 0);
	component_io(drive, "v2.0", 0, false);
	drive_close(drive);
	assert_int_equal(drive_release(path, false, &err), -EBUSY);
	says("components");
	assert_int_equal(drive_release(path, true, &err), 0);
	assert_int_equal(drive_open(r, path, NULL, &drive, &err), -ENOENT);
	says("claim it first");
}

static void claims_are_kept(const char *path)
{
	assert_int_equal(drive_claim(path, "", NULL, &err), -EINVAL);
	assert_int_equal(drive_claim(path, "lab", NULL, &err), 0);
	probed(path, DRIVE_OURS, "cluster lab");
	assert_int_equal(drive_claim(path, "lab", NULL, &err), 0);
	assert_int_equal(drive_claim(path, "other", NULL, &err), -EEXIST);
	says("--destroy=");
	assert_int_equal(drive_claim(path, "other", "elsewhere", &err),
			 -EEXIST);
	says("elsewhere");
	assert_int_equal(drive_claim(path, "other", path, &err), 0);
	probed(path, DRIVE_OURS, "cluster other");
	assert_int_equal(drive_claim(path, "lab", path, &err), 0);
}

/* ---- directories -------------------------------------------------------- */

static void a_directory_is_a_drive(void **state)
{
	(void)state;
	probed(dir, DRIVE_EMPTY, "empty");
	claims_are_kept(dir);
	components_live_and_go(dir);
	probed(dir, DRIVE_EMPTY, "empty");
}

static void a_used_directory_is_never_claimed(void **state)
{
	(void)state;
	image_make(1);
	probed(dir, DRIVE_DATA, "image");
	assert_int_equal(drive_claim(dir, "lab", NULL, &err), -EEXIST);
	assert_int_equal(drive_claim(dir, "lab", dir, &err), -EEXIST);
	says("must be empty");
	assert_int_equal(access(image, F_OK), 0);
}

/* ---- images ------------------------------------------------------------- */

static void an_image_is_a_drive(void **state)
{
	(void)state;
	image_make(64 * MIB);
	probed(image, DRIVE_EMPTY, "empty");
	claims_are_kept(image);
	components_live_and_go(image);
	probed(image, DRIVE_EMPTY, "empty");
}

static void a_device_fills_up_and_gives_back(void **state)
{
	struct drive *drive;
	char id[16];

	(void)state;
	image_make(32 * MIB);
	assert_int_equal(drive_claim(image, "lab", NULL, &err), 0);
	drive = drive_of(image);
	for (int i = 0; i < 31; i++) {
		snprintf(id, sizeof(id), "c%d", i);
		assert_int_equal(drive_component_create(drive, id, MIB, &err),
				 0);
	}
	assert_int_equal(drive_component_create(drive, "more", 4096, &err),
			 -ENOSPC);
	assert_int_equal(drive_component_delete(drive, "c7", &err), 0);
	assert_int_equal(drive_component_delete(drive, "c9", &err), 0);
	assert_int_equal(drive_component_create(drive, "two", 2 * MIB, &err),
			 -ENOSPC);
	says("1 MiB");
	assert_int_equal(drive_component_delete(drive, "c8", &err), 0);
	assert_int_equal(drive_component_create(drive, "two", 2 * MIB, &err),
			 0);
	assert_int_equal(components(drive), 29);
	drive_close(drive);
}

static void unfit_paths_say_why(void **state)
{
	(void)state;
	probed("base-no-such-thing", DRIVE_UNFIT, "does not exist");
	assert_int_equal(drive_claim("base-no-such-thing", "lab", NULL, &err),
			 -EINVAL);
	probed("/dev/null", DRIVE_UNFIT, "neither");
	image_make(1 * MIB);
	probed(image, DRIVE_UNFIT, "needs 16");
	assert_int_equal(drive_claim(image, "lab", image, &err), -EINVAL);
}

static void data_is_refused_until_it_is_named(void **state)
{
	const uint8_t byte = 1;

	(void)state;
	for (int i = 0; i < 2; i++) {
		image_make(64 * MIB);
		put(i ? 64 * MIB - 1 : 777777, &byte, 1);
		probed(image, DRIVE_DATA, "unknown format");
		assert_int_equal(drive_claim(image, "lab", NULL, &err),
				 -EEXIST);
		says("--destroy=");
		assert_int_equal(drive_claim(image, "lab", image, &err), 0);
		assert_int_equal(drive_release(image, false, &err), 0);
		probed(image, DRIVE_EMPTY, "empty");
	}
}

static bool ext4_make(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "PATH=$PATH:/sbin:/usr/sbin mke2fs -q -F -t ext4 -L keep "
		 "%s >/dev/null 2>&1",
		 path);
	return system(command) == 0;
}

static void a_file_system_is_refused_until_it_is_named(void **state)
{
	struct drive_facts facts;

	(void)state;
	image_make(64 * MIB);
	if (!ext4_make(image)) {
		print_message("mke2fs is not here\n");
		skip();
	}
	drive_probe(image, &facts, NULL);
	assert_int_equal(facts.verdict, DRIVE_DATA);
	assert_int_equal(drive_claim(image, "lab", NULL, &err), -EEXIST);
	if (strcmp(facts.fstype, "") != 0) {
		assert_string_equal(facts.fstype, "ext4");
		says("ext4");
		says("label keep");
	}
	assert_int_equal(drive_claim(image, "lab", "/dev/other", &err),
			 -EEXIST);
	assert_int_equal(drive_claim(image, "lab", image, &err), 0);
	probed(image, DRIVE_OURS, "lab");
}

/* ---- torn tables -------------------------------------------------------- */

static void spoiled_copies_are_survived_and_healed(void **state)
{
	uint8_t *before = malloc(HEADER_BYTES), *now = malloc(HEADER_BYTES);
	struct drive *drive;

	(void)state;
	image_make(32 * MIB);
	assert_int_equal(drive_claim(image, "lab", NULL, &err), 0);
	drive = drive_of(image);
	assert_int_equal(drive_component_create(drive, "a", MIB, &err), 0);
	drive_close(drive);
	get(0, before, HEADER_BYTES);
	for (int i = 0; i < 2; i++) {
		put(512 * KIB * (uint64_t)i + 300, "spoiled", 7);
		drive = drive_of(image);
		assert_int_equal(components(drive), 1);
		drive_close(drive);
		get(0, now, HEADER_BYTES);
		assert_memory_equal(now, before, HEADER_BYTES);
	}
	put(300, "spoiled", 7);
	put(512 * KIB + 300, "spoiled", 7);
	assert_int_equal(drive_open(r, image, NULL, &drive, &err), -ENOENT);
	probed(image, DRIVE_DATA, "unknown");
	free(before);
	free(now);
}

/* Cut the writing of the table anywhere: it is the one before or after. */
static void a_torn_write_gives_before_or_after(void **state)
{
	uint8_t *before = malloc(HEADER_BYTES), *after = malloc(HEADER_BYTES);
	struct drive *drive;

	(void)state;
	image_make(32 * MIB);
	assert_int_equal(drive_claim(image, "lab", NULL, &err), 0);
	drive = drive_of(image);
	assert_int_equal(drive_component_create(drive, "a", MIB, &err), 0);
	get(0, before, HEADER_BYTES);
	assert_int_equal(drive_component_create(drive, "b", MIB, &err), 0);
	get(0, after, HEADER_BYTES);
	drive_close(drive);
	for (int copy = 0; copy < 2; copy++) {
		for (uint64_t cut = 0; cut <= 1024; cut += 64) {
			put(0, before, HEADER_BYTES);
			if (copy)
				put(0, after, 512 * KIB);
			put(512 * KIB * (uint64_t)copy,
			    after + 512 * KIB * (uint64_t)copy, cut);
			drive = drive_of(image);
			assert_in_range(components(drive), 1 + copy, 2);
			drive_close(drive);
		}
	}
	free(before);
	free(after);
}

static void a_table_of_nonsense_is_refused(void **state)
{
	uint8_t *copy = malloc(HEADER_BYTES);
	struct drive *drive = NULL;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 9);
	image_make(32 * MIB);
	assert_int_equal(drive_claim(image, "lab", NULL, &err), 0);
	get(0, copy, HEADER_BYTES);
	for (int i = 0; i < 50; i++) {
		uint8_t *bad = malloc(HEADER_BYTES);

		memcpy(bad, copy, HEADER_BYTES);
		bad[rng_below(&rng, 4096)] ^= 1u << rng_below(&rng, 8);
		memcpy(bad + 512 * KIB, bad, 128 * KIB);
		put(0, bad, HEADER_BYTES);
		assert_int_equal(drive_open(r, image, NULL, &drive, &err),
				 -ENOENT);
		free(bad);
	}
	free(copy);
}

/* ---- loop devices: root only -------------------------------------------- */

static int loop_attach(char *path, size_t len)
{
	const int ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const int back = open(image, O_RDWR | O_CLOEXEC);
	int loop = -1, n;

	for (int tries = 0; ctl >= 0 && back >= 0 && tries < 10; tries++) {
		n = ioctl(ctl, LOOP_CTL_GET_FREE);
		if (n < 0)
			break;
		snprintf(path, len, "/dev/loop%d", n);
		loop = open(path, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			break;
		if (!ioctl(loop, LOOP_SET_FD, back))
			break;
		close(loop);
		loop = -1;
	}
	if (ctl >= 0)
		close(ctl);
	if (back >= 0)
		close(back);
	return loop;
}

static void a_block_device_is_a_drive(void **state)
{
	char path[64];
	struct bdev *bdev, *second;
	int loop;

	(void)state;
	image_make(64 * MIB);
	loop = loop_attach(path, sizeof(path));
	if (loop < 0) {
		print_message("no loop device to be had here\n");
		skip();
	}
	probed(image, DRIVE_BUSY, "/dev/loop");
	probed(path, DRIVE_EMPTY, "empty");
	claims_are_kept(path);
	components_live_and_go(path);
	assert_int_equal(
		bdev_file_open(r, &(struct bdev_file_opts) { .path = path },
			       &bdev, &err),
		0);
	assert_int_equal(
		bdev_file_open(r, &(struct bdev_file_opts) { .path = path },
			       &second, &err),
		-EBUSY);
	says("in use");
	probed(path, DRIVE_BUSY, "");
	assert_int_equal(bdev->limits.size_bytes, 64 * MIB);
	if (bdev->limits.can_trim)
		assert_int_equal(bdev_io_sync(bdev, BDEV_TRIM, 0, 0, NULL, MIB),
				 0);
	bdev_close_sync(bdev);
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
	close(loop);
}

static void a_mounted_device_is_never_claimed(void **state)
{
	char path[64], point[96];
	int loop, mounted;

	(void)state;
	image_make(64 * MIB);
	snprintf(point, sizeof(point), "%s/mnt", dir);
	loop = loop_attach(path, sizeof(path));
	if (loop < 0 || !ext4_make(path)) {
		print_message("no loop device or mke2fs to be had here\n");
		if (loop >= 0) {
			ioctl(loop, LOOP_CLR_FD, 0);
			close(loop);
		}
		skip();
	}
	assert_int_equal(mkdir(point, 0700), 0);
	mounted = !mount(path, point, "ext4", 0, NULL);
	if (mounted) {
		probed(path, DRIVE_BUSY, "is mounted on");
		assert_int_equal(drive_claim(path, "lab", path, &err), -EBUSY);
		probed(point, DRIVE_EMPTY, "empty"); /* lost+found apart */
		assert_int_equal(umount(point), 0);
	}
	probed(path, DRIVE_DATA, "");
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
	close(loop);
}

#define IN_ROOM(test) \
	cmocka_unit_test_setup_teardown(test, room_make, room_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_ROOM(a_directory_is_a_drive),
		IN_ROOM(a_used_directory_is_never_claimed),
		IN_ROOM(an_image_is_a_drive),
		IN_ROOM(a_device_fills_up_and_gives_back),
		IN_ROOM(unfit_paths_say_why),
		IN_ROOM(data_is_refused_until_it_is_named),
		IN_ROOM(a_file_system_is_refused_until_it_is_named),
		IN_ROOM(spoiled_copies_are_survived_and_healed),
		IN_ROOM(a_torn_write_gives_before_or_after),
		IN_ROOM(a_table_of_nonsense_is_refused),
		IN_ROOM(a_block_device_is_a_drive),
		IN_ROOM(a_mounted_device_is_never_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
