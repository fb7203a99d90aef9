/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file bdev beyond the contract: who may open it, what it says of itself,
 * and how it fails: a full disk, a file cut short, a path that is no file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/bdev/file.h"

static struct reactor *r;
static char dir[64], path[96];
static struct err err;

static int room_make(void **state)
{
	const struct reactor_opts opts = {
		.kind = *(enum reactor_kind *)*state,
	};

	strcpy(dir, "base-test-file-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/f", dir);
	r = NULL;
	if (reactor_new(&opts, &r, &err))
		print_message("%s\n", err.text);
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

static void need_reactor(void)
{
	if (!r)
		skip();
}

static int open_with(struct bdev_file_opts opts, struct bdev **bdev)
{
	if (!opts.path)
		opts.path = path;
	err.text[0] = '\0';
	return bdev_file_open(r, &opts, bdev, &err);
}

static void refused(struct bdev_file_opts opts, int code, const char *sentence)
{
	struct bdev *bdev = NULL;
	const int rc = open_with(opts, &bdev);

	if (rc != code || !strstr(err.text, sentence)) {
		print_error("%d: \"%s\"\n", rc, err.text);
		fail();
	}
	assert_null(bdev);
}

static void file_make(off_t bytes)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

/* ---- opening ------------------------------------------------------------ */

static void what_cannot_be_opened_says_why(void **state)
{
	(void)state;
	need_reactor();
	refused((struct bdev_file_opts) { 0 }, -ENOENT, "does not exist");
	refused((struct bdev_file_opts) { .path = dir }, -EINVAL, "neither");
	file_make(0);
	refused((struct bdev_file_opts) { 0 }, -EINVAL, "too few");
	file_make(4096 + 100);
	refused((struct bdev_file_opts) { 0 }, -EINVAL, "multiple");
	refused((struct bdev_file_opts) { .create_bytes = 4096 }, -EEXIST,
		"exists");
	file_make(64 * 1024);
	refused((struct bdev_file_opts) { .len_bytes = 128 * KIB }, -EINVAL,
		"not 131072");
	refused((struct bdev_file_opts) { .off_bytes = 77 }, -EINVAL,
		"multiple");
}

static void a_failed_create_leaves_nothing(void **state)
{
	(void)state;
	need_reactor();
	refused((struct bdev_file_opts) { .create_bytes = 4097 }, -EINVAL,
		"multiple");
	assert_int_equal(access(path, F_OK), -1);
}

static void a_file_is_opened_once(void **state)
{
	struct bdev *a = NULL, *b = NULL;

	(void)state;
	need_reactor();
	assert_int_equal(
		open_with((struct bdev_file_opts) { .create_bytes = 64 * KIB },
			  &a),
		0);
	refused((struct bdev_file_opts) { 0 }, -EBUSY, "open in another");
	refused((struct bdev_file_opts) { .read_only = true }, -EBUSY, "open");
	refused((struct bdev_file_opts) { .shared = true, .len_bytes = 4096 },
		-EBUSY, "open");
	bdev_close_sync(a);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .shared = true,
						    .len_bytes = 4096 },
			  &a),
		0);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .shared = true,
						    .off_bytes = 4096,
						    .len_bytes = 4096 },
			  &b),
		0);
	bdev_close_sync(a);
	bdev_close_sync(b);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .read_only = true }, &a),
		0);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .read_only = true }, &b),
		0);
	bdev_close_sync(a);
	bdev_close_sync(b);
}

static void it_says_how_it_is_read(void **state)
{
	struct bdev *bdev = NULL;
	char text[160];

	(void)state;
	need_reactor();
	file_make(64 * 1024);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .buffered = true }, &bdev),
		0);
	bdev_describe(bdev, text, sizeof(text));
	assert_non_null(strstr(text, "file, buffered"));
	bdev_close_sync(bdev);
	assert_int_equal(open_with((struct bdev_file_opts) { 0 }, &bdev), 0);
	bdev_describe(bdev, text, sizeof(text));
	print_message("%s\n", text);
	assert_true(strstr(text, "O_DIRECT") || strstr(text, "buffered ("));
	bdev_close_sync(bdev);
}

/* ---- I/O that fails ----------------------------------------------------- */

static void a_read_only_file_refuses_writes(void **state)
{
	struct bdev *bdev = NULL;
	uint8_t *buf;

	(void)state;
	need_reactor();
	file_make(64 * 1024);
	assert_int_equal(
		open_with((struct bdev_file_opts) { .read_only = true }, &bdev),
		0);
	buf = reactor_buf_alloc(r, 4096);
	assert_int_equal(bdev_io_sync(bdev, BDEV_WRITE, 0, 0, buf, 4096),
			 -EROFS);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 4096), 0);
	assert_int_equal(bdev_io_sync(bdev, BDEV_FLUSH, 0, 0, NULL, 0), 0);
	reactor_buf_free(r, buf, 4096);
	bdev_close_sync(bdev);
}

/* A read past what is left of the file is an error, not zeros or a part. */
static void a_file_cut_short_fails_its_reads(void **state)
{
	struct bdev *bdev = NULL;
	uint8_t *buf;

	(void)state;
	need_reactor();
	for (int buffered = 0; buffered < 2; buffered++) {
		file_make(64 * 1024);
		assert_int_equal(
			open_with((struct bdev_file_opts) { .buffered =
								    buffered },
				  &bdev),
			0);
		buf = reactor_buf_alloc(r, 16384);
		assert_int_equal(truncate(path, 8192), 0);
		assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 8192),
				 0);
		assert_int_equal(
			bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 16384), -EIO);
		assert_int_equal(
			bdev_io_sync(bdev, BDEV_READ, 0, 16384, buf, 4096),
			-EIO);
		reactor_buf_free(r, buf, 16384);
		bdev_close_sync(bdev);
	}
}

static bool put(const char *file, const char *text)
{
	const int fd = open(file, O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

/* Root of a user namespace, where that is allowed to everybody. */
static bool own_namespaces(void)
{
	const unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (!unshare(CLONE_NEWNS))
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!put("/proc/self/setgroups", "deny") ||
	    !put("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return put("/proc/self/gid_map", map);
}

/* A file system of 1 MiB that goes with this process. */
static bool small_disk(void)
{
	return own_namespaces() &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", dir, "tmpfs", 0, "size=1m");
}

/* Returns the exit status: 0 passed, 77 no such disk to be had, else a line */
static int full_disk_child(enum reactor_kind kind)
{
	const struct reactor_opts opts = { .kind = kind };
	struct bdev *bdev = NULL;
	uint8_t *buf;
	int full = 0, good = 0, rc;

	if (!small_disk())
		return 77;
	if (reactor_new(&opts, &r, NULL) ||
	    open_with((struct bdev_file_opts) { .create_bytes = 4 * MIB },
		      &bdev))
		return 2;
	buf = reactor_buf_alloc(r, 128 * KIB);
	memset(buf, 1, 128 * KIB);
	for (uint64_t off = 0; off < 4 * MIB; off += 128 * KIB) {
		rc = bdev_io_sync(bdev, BDEV_WRITE, 0, off, buf, 128 * KIB);
		full += rc == -ENOSPC;
		good += rc == 0;
	}
	if (full < 20 || good < 5 || full + good != 32)
		return 3;
	if (bdev_io_sync(bdev, BDEV_READ, 0, 0, buf, 128 * KIB) || buf[9] != 1)
		return 4;
	bdev_close_sync(bdev);
	reactor_buf_free(r, buf, 128 * KIB);
	reactor_free(r);
	return 0;
}

static void a_full_disk_says_so(void **state)
{
	const enum reactor_kind kind = *(enum reactor_kind *)*state;
	int status = 0;
	pid_t pid;

	need_reactor();
	pid = fork();
	if (!pid)
		_exit(full_disk_child(kind));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no small file system can be mounted here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define ON(test, k)                                                          \
	cmocka_unit_test_prestate_setup_teardown(test, room_make, room_free, \
						 &kinds[k])
#define EACH(test) ON(test, 0), ON(test, 1), ON(test, 2)

int main(void)
{
	static enum reactor_kind kinds[] = { REACTOR_URING, REACTOR_THREADS,
					     REACTOR_SIM };
	const struct CMUnitTest tests[] = {
		EACH(what_cannot_be_opened_says_why),
		EACH(a_failed_create_leaves_nothing),
		EACH(a_file_is_opened_once),
		EACH(it_says_how_it_is_read),
		EACH(a_read_only_file_refuses_writes),
		EACH(a_file_cut_short_fails_its_reads),
		EACH(a_full_disk_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
