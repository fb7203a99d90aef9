/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Session files: what goes in comes out, whatever is cut, full, killed, or was
 * never a session.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>
#include <cmocka.h>

#include "backend/event.h"
#include "backend/session/session_priv.h"
#include "synth.h"

static char dir[64], path[128];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/iodeck-test-session-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s.jsonl.zst", dir);
	return 0;
}

static int teardown(void **state)
{
	char cmd[256];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'", dir);
	return system(cmd);
}

/* ---- a virtual clock and disk ------------------------------------------- */

static struct {
	int64_t now_us;
	size_t room; /* bytes until the disk is full */
	int writes;
} world;

static int64_t world_now(void *arg)
{
	(void)arg;
	return world.now_us;
}

static ssize_t world_write(int fd, const void *buf, size_t len, void *arg)
{
	ssize_t n;

	(void)arg;
	world.writes++;
	if (!world.room) {
		errno = ENOSPC;
		return -1;
	}
	n = write(fd, buf, len < world.room ? len : world.room);
	if (n > 0)
		world.room -= (size_t)n;
	return n;
}

static struct session_writer *writer(bool append)
{
	static const struct session_hooks hooks = {
		.write = world_write,
		.now_us = world_now,
	};
	struct session_writer *w = NULL;
	struct err err = { 0 };

	if (session_create(path, append, &w, &err))
		fail_msg("%s", err.text);
	world.room = SIZE_MAX;
	session_hook(w, &hooks);
	return w;
}

static int note(struct session_writer *w, const char *a, int64_t i, int64_t n,
		const char *text)
{
	json_t *j = json_pack("{s:s,s:s,s:I,s:I,s:I,s:s}", "e", "note", "a", a,
			      "i", (json_int_t)i, "n", (json_int_t)n, "t",
			      (json_int_t)(1000000 * n), "text", text);
	int rc = session_append(w, j, NULL);

	json_decref(j);
	return rc;
}

/* Events of the file that are whole and in order; -1 for a bad line. */
static int count_events(const char *file, uint64_t *torn)
{
	struct session_reader *r;
	struct err err;
	json_t *j;
	int n = 0, rc;

	if (session_open(file, &r, torn, &err))
		return -2;
	while (!(rc = session_next(r, &j, &err))) {
		struct event_head head;

		assert_int_equal(event_head(j, &head, NULL), 0);
		assert_int_equal(head.n, n + 1);
		n++;
		json_decref(j);
	}
	session_reader_free(r);
	return rc == -ENODATA ? n : -1;
}

static void put_file(const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static char *get_file(size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	assert_true(fd >= 0 && !fstat(fd, &st));
	*len = (size_t)st.st_size;
	data = malloc(*len + 1);
	assert_int_equal(read(fd, data, *len), *len);
	close(fd);
	return data;
}

/* ---- writer and reader -------------------------------------------------- */

struct both {
	struct session_writer *w;
	struct model *m;
};

static int both_one(const json_t *event, void *arg)
{
	struct both *b = arg;
	int rc = session_append(b->w, event, NULL);

	world.now_us += 100000;
	if (!rc)
		rc = session_tick(b->w, false, NULL);
	return rc ? rc : model_apply(b->m, event, NULL);
}

static void session_round_trip(void **state)
{
	struct both b;
	struct synth_opts o;
	struct model *back;
	struct session_reader *r;
	struct err err;
	int64_t from, to;
	uint64_t torn;
	struct stat st;
	json_t *j;
	int rc;

	(void)state;
	synth_defaults(&o);
	o.points = 3;
	b.w = writer(false);
	assert_int_equal(model_new(&b.m), 0);
	assert_int_equal(synth_session(&o, both_one, &b), 0);
	assert_int_equal(session_close(b.w, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(world.writes > synth_events(&o) / 12);

	assert_int_equal(session_open(path, &r, &torn, &err), 0);
	assert_int_equal(torn, 0);
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(model_new(&back), 0);
		while (!(rc = session_next(r, &j, &err))) {
			assert_int_equal(model_apply(back, j, &err), 0);
			json_decref(j);
		}
		assert_int_equal(rc, -ENODATA);
		assert_int_equal(back->revision, b.m->revision);
		assert_int_equal(back->t_us, b.m->t_us);
		assert_true(back->closed);
		assert_memory_equal(
			&model_run(back)->series[1].point[2].read.svc,
			&model_run(b.m)->series[1].point[2].read.svc,
			sizeof(struct hist));
		model_free(back);
		session_rewind(r);
	}
	assert_int_equal(session_span(r, &from, &to), 0);
	assert_int_equal(from, b.m->first_t_us);
	assert_int_equal(to, b.m->t_us);
	session_reader_free(r);
	model_free(b.m);
}

/* Others' tools read it: `zstd -dc FILE | jq`. */
static void tools_read_it(void **state)
{
	struct session_writer *w;
	char cmd[512];

	(void)state;
	if (system("command -v zstd >/dev/null && command -v jq >/dev/null")) {
		print_message("zstd or jq is not installed\n");
		skip();
	}
	w = writer(false);
	for (int n = 1; n <= 50; n++) {
		assert_int_equal(note(w, "a", 1, n, "h\xc3\xa9 \"q\" \x1b"), 0);
		assert_int_equal(session_tick(w, n % 7 == 0, NULL), 0);
	}
	assert_int_equal(session_close(w, NULL), 0);
	snprintf(cmd, sizeof(cmd),
		 "test \"$(zstd -dc '%s' | jq -s 'map(.n) | add')\" = 1275",
		 path);
	assert_int_equal(system(cmd), 0);
	/* And we read what they wrote: one frame, and none at all. */
	snprintf(cmd, sizeof(cmd),
		 "cd %s && zstd -qdf s.jsonl.zst -o p && zstd -q9f p -o q",
		 dir);
	assert_int_equal(system(cmd), 0);
	for (const char *f = "pq"; *f; f++) {
		uint64_t torn;

		snprintf(cmd, sizeof(cmd), "%s/%c", dir, *f);
		assert_int_equal(count_events(cmd, &torn), 50);
		assert_int_equal(torn, 0);
	}
}

static void frames_once_a_second(void **state)
{
	struct session_writer *w = writer(false);

	(void)state;
	world.writes = 0;
	for (int n = 1; n <= 100; n++) {
		world.now_us += 100000;
		assert_int_equal(note(w, "a", 1, n, "x"), 0);
		assert_int_equal(session_tick(w, false, NULL), 0);
	}
	assert_int_equal(world.writes, 10);
	assert_int_equal(note(w, "a", 1, 101, "x"), 0);
	assert_int_equal(session_written(w, "a", 1), 100);
	assert_int_equal(session_tick(w, true, NULL), 0);
	assert_int_equal(session_written(w, "a", 1), 101);
	assert_int_equal(session_written(w, "b", 1), 0);
	assert_int_equal(note(w, "a", 1, 101, "x"), -EALREADY);
	assert_int_equal(session_close(w, NULL), 0);
}

/* ---- opening again ------------------------------------------------------ */

static void goes_on(void **state)
{
	struct session_writer *w = writer(false), *w2 = NULL;
	const struct session_mark *mark;
	struct err err;
	uint64_t torn;

	(void)state;
	assert_int_equal(session_create(path, false, &w2, &err), -EEXIST);
	assert_int_equal(session_create(path, true, &w2, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another"));
	for (int n = 1; n <= 5; n++)
		assert_int_equal(note(w, "a", 1, n, "x"), 0);
	assert_int_equal(session_close(w, NULL), 0);
	w = writer(true);
	assert_int_equal(session_marks(w, &mark), 1);
	assert_string_equal(mark[0].a, "a");
	assert_int_equal(mark[0].i, 1);
	assert_int_equal(mark[0].n, 5);
	assert_int_equal(session_written(w, "a", 1), 5);
	assert_int_equal(note(w, "a", 1, 5, "x"), -EALREADY);
	assert_int_equal(note(w, "a", 1, 6, "x"), 0);
	assert_int_equal(session_close(w, NULL), 0);
	assert_int_equal(count_events(path, &torn), 6);
	assert_int_equal(torn, 0);
}

/* A file of three frames, cut at every byte: reading gives whole frames, and
 * writing goes on behind them. */
static void cut_anywhere(void **state)
{
	struct session_writer *w = writer(false);
	int64_t edge[4] = { 0 };
	size_t len;
	char *data;

	(void)state;
	for (int n = 1; n <= 6; n++) {
		assert_int_equal(note(w, "a", 1, n, "some text to pack"), 0);
		if (n % 2 == 0) {
			assert_int_equal(session_tick(w, true, NULL), 0);
			edge[n / 2] = session_bytes(w);
		}
	}
	assert_int_equal(session_close(w, NULL), 0);
	data = get_file(&len);
	assert_int_equal(len, edge[3]);
	for (size_t cut = 0; cut <= len; cut++) {
		int whole = cut >= (size_t)edge[3]   ? 3
			    : cut >= (size_t)edge[2] ? 2
			    : cut >= (size_t)edge[1] ? 1
						     : 0;
		uint64_t torn;

		put_file(data, cut);
		if (cut) {
			assert_int_equal(count_events(path, &torn), 2 * whole);
			assert_int_equal(torn, cut - (size_t)edge[whole]);
		}
		w = writer(true);
		assert_int_equal(session_bytes(w), edge[whole]);
		assert_int_equal(session_written(w, "a", 1), 2 * whole);
		assert_int_equal(note(w, "a", 1, 2 * whole + 1, "more"), 0);
		assert_int_equal(session_close(w, NULL), 0);
		assert_int_equal(count_events(path, &torn), 2 * whole + 1);
		assert_int_equal(torn, 0);
	}
	free(data);
}

/* Any one byte is wrong: nothing breaks, and what is read is whole. */
static void damaged_anywhere(void **state)
{
	struct session_writer *w = writer(false);
	size_t len;
	char *data;

	(void)state;
	for (int n = 1; n <= 6; n++) {
		assert_int_equal(note(w, "a", 1, n, "some text to pack"), 0);
		assert_int_equal(session_tick(w, n % 2 == 0, NULL), 0);
	}
	assert_int_equal(session_close(w, NULL), 0);
	data = get_file(&len);
	for (size_t at = 0; at < len; at++) {
		struct session_reader *r = NULL;
		struct err err;
		uint64_t torn;
		json_t *j;
		int n = 0, rc;

		data[at] ^= 0x55;
		put_file(data, len);
		data[at] ^= 0x55;
		rc = session_open(path, &r, &torn, &err);
		if (rc) {
			assert_true(at < 4);
			continue;
		}
		while ((rc = session_next(r, &j, &err)) != -ENODATA) {
			assert_true(!rc || rc == -EBADMSG);
			n += !rc;
			if (!rc)
				json_decref(j);
		}
		assert_true(n >= 4); /* the other two frames */
		session_reader_free(r);
	}
	free(data);
}

/* Power loss: the length is there, the content is not. */
static void zeros_at_the_end(void **state)
{
	struct session_writer *w = writer(false);
	int64_t edge;
	uint64_t torn;
	size_t len;
	char *data;

	(void)state;
	for (int n = 1; n <= 4; n++) {
		assert_int_equal(note(w, "a", 1, n, "some text to pack"), 0);
		assert_int_equal(session_tick(w, n % 2 == 0, NULL), 0);
	}
	assert_int_equal(session_close(w, NULL), 0);
	data = get_file(&len);
	edge = (int64_t)len / 2;
	memset(data + len - 6, 0, 6);
	put_file(data, len);
	w = writer(true);
	assert_int_equal(session_bytes(w), edge);
	assert_int_equal(session_written(w, "a", 1), 2);
	assert_int_equal(session_close(w, NULL), 0);
	memset(data + edge, 0, len - (size_t)edge);
	put_file(data, len);
	assert_int_equal(count_events(path, &torn), 2);
	assert_int_equal(torn, len - (size_t)edge);
	free(data);
}

/* ---- full disk ---------------------------------------------------------- */

static void disk_full(void **state)
{
	struct session_writer *w = writer(false);
	struct err err = { 0 };
	uint64_t torn;
	int n = 0;

	(void)state;
	assert_int_equal(note(w, "a", 1, ++n, "before"), 0);
	assert_int_equal(session_tick(w, true, &err), 0);
	world.room = 20; /* a part of a frame */
	assert_int_equal(note(w, "a", 1, ++n, "full"), 0);
	assert_int_equal(session_tick(w, true, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "tried again"));
	/* The file is whole meanwhile, and nothing too much acknowledged. */
	assert_int_equal(count_events(path, &torn), 1);
	assert_int_equal(torn, 0);
	assert_int_equal(session_written(w, "a", 1), 1);
	for (int k = 0; k < 100; k++) {
		assert_int_equal(note(w, "a", 1, ++n, "full"), 0);
		world.now_us += 1000000;
		assert_int_equal(session_tick(w, false, &err), -ENOSPC);
	}
	world.room = SIZE_MAX;
	world.now_us += 1000000;
	assert_int_equal(session_tick(w, false, &err), 0);
	assert_int_equal(session_written(w, "a", 1), n);
	assert_int_equal(session_close(w, &err), 0);
	assert_int_equal(count_events(path, &torn), n);
}

static void memory_is_bounded(void **state)
{
	struct session_writer *w = writer(false);
	char *big = malloc(1000001);
	uint64_t torn;
	int n = 0, rc;

	(void)state;
	memset(big, 'x', 1000000);
	big[1000000] = '\0';
	world.room = 0;
	do
		rc = note(w, "a", 1, ++n, big);
	while (!rc && n < 100);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, 68); /* 64 MiB of 1 MB each, and one */
	world.room = SIZE_MAX;
	assert_int_equal(session_tick(w, true, NULL), 0);
	assert_int_equal(note(w, "a", 1, n, big),
			 0); /* not lost: given again */
	assert_int_equal(session_close(w, NULL), 0);
	assert_int_equal(count_events(path, &torn), n);
	free(big);
}

/* The same by the kernel's own refusal. */
static void file_size_limit(void **state)
{
	struct rlimit old, low = { 0 };
	struct session_writer *w;
	struct err err;
	uint64_t torn;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low.rlim_max = old.rlim_max;
	w = writer(false);
	assert_int_equal(note(w, "a", 1, 1, "one"), 0);
	assert_int_equal(session_tick(w, true, &err), 0);
	low.rlim_cur = (rlim_t)session_bytes(w) + 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(note(w, "a", 1, 2, "two"), 0);
	assert_int_equal(session_tick(w, true, &err), -ENOSPC);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(session_close(w, &err), 0);
	assert_int_equal(count_events(path, &torn), 2);
	assert_int_equal(torn, 0);
}

/* ---- kill --------------------------------------------------------------- */

static void killed_child(int ready)
{
	struct session_writer *w = NULL;
	int64_t n;

	if (session_create(path, true, &w, NULL))
		_exit(1);
	n = session_written(w, "a", 1);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	for (n++;; n++) {
		json_t *j = json_pack("{s:s,s:s,s:i,s:I,s:i,s:I}", "e", "x",
				      "a", "a", "i", 1, "n", (json_int_t)n, "t",
				      1, "noise",
				      (json_int_t)(n * 2654435761 % 1000003));

		if (session_append(w, j, NULL) ||
		    session_tick(w, n % 50 == 0, NULL))
			_exit(1);
		json_decref(j);
	}
}

static void killed_writers(void **state)
{
	struct session_writer *w = writer(false);
	uint64_t torn;
	int before = 0;

	(void)state;
	assert_int_equal(session_close(w, NULL), 0);
	for (int round = 0; round < 12; round++) {
		int p[2], status, now;
		struct stat st;
		pid_t child;
		char c;

		assert_int_equal(pipe(p), 0);
		child = fork();
		assert_true(child >= 0);
		if (!child)
			killed_child(p[1]);
		assert_int_equal(read(p[0], &c, 1), 1);
		usleep(3000 + 1500 * (unsigned)round);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		close(p[0]);
		close(p[1]);
		assert_int_equal(stat(path, &st), 0);
		now = st.st_size ? count_events(path, &torn) : 0;
		/* No gap, no double, nothing that was there is gone. */
		assert_true(now >= before);
		before = now;
	}
	assert_true(before > 0);
}

/* ---- hostile files ------------------------------------------------------ */

static int open_only(struct err *err)
{
	struct session_reader *r = NULL;
	uint64_t torn;
	int rc = session_open(path, &r, &torn, err);

	session_reader_free(r);
	return rc;
}

static void not_a_session(void **state)
{
	struct session_writer *w = NULL;
	struct err err;
	size_t len;
	char *data;

	(void)state;
	put_file("", 0);
	assert_int_equal(open_only(&err), -EINVAL);
	put_file("\x1f\x8b\x08", 3);
	assert_int_equal(open_only(&err), -EINVAL);
	assert_non_null(strstr(err.text, "gunzip"));
	put_file("root:x:0:0:root:/root:/bin/sh\n", 30);
	assert_int_equal(open_only(&err), -EINVAL);
	/* Nor is it cut. */
	assert_int_equal(session_create(path, true, &w, &err), -EINVAL);
	data = get_file(&len);
	assert_int_equal(len, 30);
	free(data);
	snprintf(path, sizeof(path), "%s", dir);
	assert_int_equal(open_only(&err), -EINVAL);
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(open_only(&err), -ENOENT);
}

/* Packed by someone, but no session: it stays as it was. */
static void foreign_zstd(void **state)
{
	char text[1000], out[2000];
	struct session_writer *w = NULL;
	struct err err;
	size_t n, len;
	char *data;

	(void)state;
	memset(text, 'y', sizeof(text));
	n = ZSTD_compress(out, sizeof(out), text, sizeof(text), 3);
	memset(out + n, 'z', 100);
	put_file(out, n + 100);
	assert_int_equal(session_create(path, true, &w, &err), -EINVAL);
	data = get_file(&len);
	assert_int_equal(len, n + 100);
	free(data);
}

/* 256 MiB of one letter in few bytes, then a good frame. */
static void bomb(void **state)
{
	size_t cap = 1 << 20, len = 0, chunk = 1 << 20;
	char *out = malloc(cap), *text = malloc(chunk);
	ZSTD_CCtx *z = ZSTD_createCCtx();
	struct session_reader *r;
	struct err err;
	uint64_t torn;
	json_t *j;
	int rc, events = 0, bad = 0;

	(void)state;
	memset(text, 'b', chunk);
	for (int i = 0; i < 256; i++) {
		ZSTD_inBuffer in = { text, chunk, 0 };
		ZSTD_outBuffer o = { out, cap, len };

		ZSTD_compressStream2(z, &o, &in,
				     i == 255 ? ZSTD_e_end : ZSTD_e_continue);
		len = o.pos;
	}
	strcpy(text, "\n{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}\n");
	len += ZSTD_compress(out + len, cap - len, text, strlen(text), 1);
	assert_true(len < 100000);
	put_file(out, len);
	ZSTD_freeCCtx(z);
	free(out);
	free(text);
	assert_int_equal(session_open(path, &r, &torn, &err), 0);
	while ((rc = session_next(r, &j, &err)) != -ENODATA) {
		events += !rc;
		bad += rc == -EBADMSG;
		if (!rc)
			json_decref(j);
	}
	assert_int_equal(events, 1);
	assert_int_equal(bad, 1);
	assert_non_null(strstr(err.text, "line 1"));
	session_reader_free(r);
}

/* Bad lines have their number, and reading goes on. */
static void bad_lines(void **state)
{
	static const char text[] =
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}\n"
		"\n"
		"{\"e\":\"x\"}\n"
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":2,\"t\":1}\n"
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n";
	struct session_reader *r;
	struct err err;
	uint64_t torn;
	json_t *j;

	(void)state;
	put_file(text, strlen(text));
	assert_int_equal(session_open(path, &r, &torn, &err), 0);
	assert_int_equal(torn, 25);
	assert_int_equal(session_next(r, &j, &err), 0);
	json_decref(j);
	assert_int_equal(session_next(r, &j, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "line 3"));
	assert_int_equal(session_next(r, &j, &err), 0);
	json_decref(j);
	assert_int_equal(session_next(r, &j, &err), -ENODATA);
	session_reader_free(r);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(session_round_trip),
		T(tools_read_it),
		T(frames_once_a_second),
		T(goes_on),
		T(cut_anywhere),
		T(damaged_anywhere),
		T(zeros_at_the_end),
		T(disk_full),
		T(memory_is_bounded),
		T(file_size_limit),
		T(killed_writers),
		T(not_a_session),
		T(foreign_zstd),
		T(bomb),
		T(bad_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
