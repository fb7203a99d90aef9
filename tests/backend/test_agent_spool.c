/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The spool: order over incarnations, marks, acknowledgement, torn tails, full
 * disks, and the gap that names what was lost.
 */
#include "backend/agent/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/iodeck-spool-XXXXXX";
static int dirfd_ = -1;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/iodeck-spool-XXXXXX");
	assert_non_null(mkdtemp(dir));
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd_ >= 0);
	return 0;
}

static unsigned files(const char *end, bool remove_them)
{
	DIR *d = opendir(dir);
	const struct dirent *de;
	unsigned count = 0;

	while ((de = readdir(d))) {
		size_t len = strlen(de->d_name);

		if (de->d_name[0] == '.' || len < strlen(end) ||
		    strcmp(de->d_name + len - strlen(end), end) != 0)
			continue;
		count++;
		if (remove_them)
			unlinkat(dirfd_, de->d_name, 0);
	}
	closedir(d);
	return count;
}

static int teardown(void **state)
{
	(void)state;
	files("", true);
	close(dirfd_);
	rmdir(dir);
	return 0;
}

static void start(struct journal *j, struct spool_opts opts, uint64_t *torn)
{
	struct spool *spool;
	struct err err = { 0 };
	uint64_t unused;

	opts.dirfd = dirfd_;
	assert_int_equal(spool_open(&opts, &spool, torn ? torn : &unused, &err),
			 0);
	journal_init(j, spool, "x");
}

static int note(struct journal *j, const char *text)
{
	return journal_add(j, "note", 1, json_pack("{s:s}", "text", text));
}

static void notes(struct journal *j, unsigned count)
{
	for (unsigned k = 0; k < count; k++)
		assert_int_equal(note(j, "some text to fill it"), 0);
}

static struct spool_cursor *read_from(struct journal *j,
				      const struct spool_mark *from, size_t n)
{
	struct spool_cursor *c;

	assert_int_equal(spool_cursor_new(j->spool, from, n, &c), 0);
	return c;
}

/* The next event's head; 0, or -EAGAIN. The event is kept in *event. */
static int take(struct spool_cursor *c, int64_t *i, int64_t *n, json_t **event)
{
	struct event_head head;
	const char *line;
	json_t *j;
	size_t len;
	int rc = spool_next(c, &line, &len);

	assert_true(rc >= 0);
	if (!rc)
		return -EAGAIN;
	assert_int_equal(event_decode(line, len, &j, NULL), 0);
	assert_int_equal(event_head(j, &head, NULL), 0);
	*i = head.i;
	*n = head.n;
	if (event)
		*event = j;
	else
		json_decref(j);
	return 0;
}

static void expect_run(struct spool_cursor *c, int64_t i, int64_t first,
		       int64_t last)
{
	int64_t at_i, at_n;

	for (int64_t n = first; n <= last; n++) {
		assert_int_equal(take(c, &at_i, &at_n, NULL), 0);
		assert_int_equal(at_i, i);
		assert_int_equal(at_n, n);
	}
}

static void expect_end(struct spool_cursor *c)
{
	int64_t i, n;

	assert_int_equal(take(c, &i, &n, NULL), -EAGAIN);
}

static void test_order(void **state)
{
	const struct spool_opts small = { .segment_max = 1000 };
	struct spool_cursor *c;
	struct journal j;
	int64_t first;

	(void)state;
	start(&j, small, NULL);
	first = j.stamp.i;
	assert_true(first > 1600000000);
	c = read_from(&j, NULL, 0);
	expect_end(c);
	notes(&j, 30);
	assert_true(files(".jsonl", false) > 2);
	expect_run(c, first, 1, 30);
	expect_end(c);
	notes(&j, 5);
	expect_run(c, first, 31, 35);
	expect_end(c);
	spool_cursor_free(c);
	journal_fini(&j);

	start(&j, small, NULL);
	assert_int_equal(j.stamp.i, first + 1);
	notes(&j, 3);
	c = read_from(&j, NULL, 0);
	expect_run(c, first, 1, 35);
	expect_run(c, first + 1, 1, 3);
	expect_end(c);
	spool_cursor_free(c);
	journal_fini(&j);
}

static void test_marks(void **state)
{
	struct spool_mark from[2];
	struct spool_cursor *c;
	struct journal j;
	int64_t first;

	(void)state;
	start(&j, (struct spool_opts) { .segment_max = 700 }, NULL);
	first = j.stamp.i;
	notes(&j, 20);
	journal_fini(&j);
	start(&j, (struct spool_opts) { .segment_max = 700 }, NULL);
	notes(&j, 20);
	from[0] = (struct spool_mark) { first, 17 };
	from[1] = (struct spool_mark) { first + 1, 20 };
	c = read_from(&j, from, 2);
	expect_run(c, first, 18, 20);
	expect_end(c);
	notes(&j, 1);
	expect_run(c, first + 1, 21, 21);
	spool_cursor_free(c);
	from[0].n = INT64_MAX;
	c = read_from(&j, from, 1);
	expect_run(c, first + 1, 1, 21);
	spool_cursor_free(c);
	journal_fini(&j);
}

static void test_ack(void **state)
{
	struct spool_mark oldest[4];
	struct spool_cursor *c;
	struct journal j;
	int64_t i;

	(void)state;
	start(&j, (struct spool_opts) { .segment_max = 500 }, NULL);
	i = j.stamp.i;
	notes(&j, 30);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 1, 3);
	spool_ack(j.spool, i, 28);
	assert_int_equal(files(".jsonl", false), 1);
	assert_int_equal(spool_oldest(j.spool, oldest, 4), 1);
	assert_int_equal(oldest[0].n, 29);
	/* what was open stays readable to its end */
	expect_run(c, i, 4, 5);
	spool_cursor_free(c);
	spool_ack(j.spool, i, 5);     /* never back */
	spool_ack(j.spool, i + 7, 1); /* nor ahead of what is */
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 29, 30);
	spool_cursor_free(c);
	journal_fini(&j);

	start(&j, (struct spool_opts) { 0 }, NULL);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 29, 30);
	expect_end(c);
	spool_cursor_free(c);
	spool_ack(j.spool, j.stamp.i, 0);
	assert_int_equal(files(".jsonl", false), 0);
	journal_fini(&j);
	start(&j, (struct spool_opts) { 0 }, NULL);
	assert_int_equal(j.stamp.i, i + 2);
	journal_fini(&j);
}

/* A crash cuts anywhere: whole lines stay, and only those. */
static void test_torn(void **state)
{
	struct spool_cursor *c;
	char name[64];
	struct journal j;
	struct stat st;
	uint64_t torn;
	int64_t i;

	(void)state;
	start(&j, (struct spool_opts) { 0 }, NULL);
	i = j.stamp.i;
	notes(&j, 4);
	journal_fini(&j);
	snprintf(name, sizeof(name), "%lld-1.jsonl", (long long)i);
	assert_int_equal(fstatat(dirfd_, name, &st, 0), 0);
	for (off_t cut = st.st_size; cut >= 0; cut -= 7) {
		int fd = openat(dirfd_, name, O_RDWR);
		int64_t whole = cut * 4 / st.st_size;

		if (fd < 0)
			break;
		assert_int_equal(ftruncate(fd, cut), 0);
		close(fd);
		start(&j, (struct spool_opts) { 0 }, &torn);
		assert_int_equal(torn, (uint64_t)cut % (st.st_size / 4));
		c = read_from(&j, NULL, 0);
		expect_run(c, i, 1, whole);
		expect_end(c);
		spool_cursor_free(c);
		journal_fini(&j);
		cut = whole * (st.st_size / 4);
	}
}

/* What a power cut can leave: blocks of zeros, other blocks. */
static void test_damaged(void **state)
{
	static const char zeros[100];
	struct spool_cursor *c;
	char name[64];
	struct journal j;
	uint64_t torn;
	int64_t i;
	int fd;

	(void)state;
	start(&j, (struct spool_opts) { 0 }, NULL);
	i = j.stamp.i;
	notes(&j, 4);
	journal_fini(&j);
	snprintf(name, sizeof(name), "%lld-1.jsonl", (long long)i);
	fd = openat(dirfd_, name, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(write(fd, "\n", 1), 1);
	close(fd);
	start(&j, (struct spool_opts) { 0 }, &torn);
	assert_int_equal(torn, sizeof(zeros) + 1);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 1, 4);
	expect_end(c);
	spool_cursor_free(c);
	journal_fini(&j);
}

static void expect_gap(struct spool_cursor *c, int64_t from, int64_t to)
{
	int64_t i, n;
	json_t *event;

	assert_int_equal(take(c, &i, &n, &event), 0);
	assert_string_equal(json_string_value(json_object_get(event, "e")),
			    "gap");
	assert_int_equal(json_integer_value(json_object_get(event, "from")),
			 from);
	assert_int_equal(json_integer_value(json_object_get(event, "to")), to);
	json_decref(event);
}

static void test_full(void **state)
{
	const struct spool_opts tiny = { .bytes_max = 2000,
					 .segment_max = 500,
					 .memory_max = 1000 };
	struct spool_cursor *c, *late;
	int64_t refused, held = 0;
	struct journal j;
	int64_t i;
	int rc;

	(void)state;
	start(&j, tiny, NULL);
	i = j.stamp.i;
	c = read_from(&j, NULL, 0);
	while ((rc = note(&j, "text")) >= 0)
		held += rc;
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(spool_error(j.spool), -ENOSPC);
	assert_true(held > 5);
	refused = j.stamp.n;
	/* each further one is tried with its gap, and both are lost */
	for (int k = 0; k < 3; k++)
		assert_int_equal(note(&j, "lost"), -ENOSPC);
	/* what is held is read as what is on disk */
	expect_run(c, i, 1, refused - 1);
	expect_end(c);
	late = read_from(&j, NULL, 0);
	expect_run(late, i, 1, refused - 1);
	expect_end(late);
	/* room again: the gap says what is missing, and it goes on */
	spool_ack(j.spool, i, refused - 3);
	assert_int_equal(note(&j, "after"), 0);
	expect_gap(c, refused, refused + 6);
	expect_gap(late, refused, refused + 6);
	expect_run(c, i, refused + 8, refused + 8);
	expect_end(c);
	spool_cursor_free(c);
	spool_cursor_free(late);
	journal_fini(&j);

	start(&j, tiny, NULL);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, refused - 2, refused - 1);
	expect_gap(c, refused, refused + 6);
	spool_cursor_free(c);
	journal_fini(&j);
}

/* The kernel refuses in the middle of a line: none of it may stay. */
static void test_disk_full(void **state)
{
	struct rlimit was, limit;
	struct spool_cursor *c;
	struct journal j;
	uint64_t torn;
	int64_t i;
	int rc = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = 1000;
	start(&j, (struct spool_opts) { 0 }, NULL);
	i = j.stamp.i;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int k = 0; k < 20; k++) {
		rc = note(&j, "text");
		assert_true(rc >= 0);
	}
	assert_int_equal(rc, 1);
	assert_int_equal(spool_error(j.spool), -EFBIG);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 1, 20);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(spool_flush(j.spool), 0);
	notes(&j, 1);
	expect_run(c, i, 21, 21);
	expect_end(c);
	spool_cursor_free(c);
	journal_fini(&j);
	start(&j, (struct spool_opts) { 0 }, &torn);
	assert_int_equal(torn, 0);
	c = read_from(&j, NULL, 0);
	expect_run(c, i, 1, 21);
	spool_cursor_free(c);
	journal_fini(&j);
}

/* A line of the longest kind comes back whole. */
static void test_long_line(void **state)
{
	char *text = malloc(1000001);
	struct spool_cursor *c;
	struct journal j;

	(void)state;
	memset(text, 'y', 1000000);
	text[1000000] = '\0';
	start(&j, (struct spool_opts) { .segment_max = 4096 }, NULL);
	assert_int_equal(note(&j, text), 0);
	notes(&j, 1);
	c = read_from(&j, NULL, 0);
	expect_run(c, j.stamp.i, 1, 2);
	spool_cursor_free(c);
	text[1000000] = 'y';
	text = realloc(text, 1200001);
	memset(text, 'y', 1200000);
	text[1200000] = '\0';
	assert_int_equal(note(&j, text), -EMSGSIZE);
	free(text);
	notes(&j, 1);
	c = read_from(&j, (struct spool_mark[]) { { j.stamp.i, 2 } }, 1);
	expect_gap(c, 3, 3);
	expect_run(c, j.stamp.i, 5, 5);
	spool_cursor_free(c);
	journal_fini(&j);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),     TEST(test_marks),     TEST(test_ack),
		TEST(test_torn),      TEST(test_damaged),   TEST(test_full),
		TEST(test_disk_full), TEST(test_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
