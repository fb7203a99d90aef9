/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes a session: lines gather in memory and go out as one zstd frame about
 * once a second, by one write(2). A frame that did not fit is taken back, so
 * the file is whole whenever nobody is inside of write(2).
 *
 *	session_append -> text -> session_tick -> frame -> file -> fdatasync
 *	                  marks appended                   marks written
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "backend/event.h"
#include "backend/session/session_priv.h"

#define FRAME_US 1000000
#define SYNC_US 5000000

struct session_writer {
	int fd;
	char *path;
	ZSTD_CCtx *zstd;
	enum session_kind kind;
	char *text; /* lines not yet written */
	size_t text_len, text_cap;
	void *frame;
	size_t frame_cap;
	struct session_marks appended, written;
	uint64_t size; /* of what is whole in the file */
	int64_t frame_us, sync_us;
	bool unsynced;
	struct session_hooks hooks;
};

static ssize_t plain_write(int fd, const void *buf, size_t len, void *arg)
{
	(void)arg;
	return write(fd, buf, len);
}

static int64_t monotonic_us(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void session_hook(struct session_writer *w, const struct session_hooks *hooks)
{
	w->hooks = *hooks;
	if (!w->hooks.write)
		w->hooks.write = plain_write;
	if (!w->hooks.now_us)
		w->hooks.now_us = monotonic_us;
	w->frame_us = w->sync_us = w->hooks.now_us(w->hooks.arg);
}

/* ---- open, close -------------------------------------------------------- */

static void writer_free(struct session_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	ZSTD_freeCCtx(w->zstd);
	free(w->path);
	free(w->text);
	free(w->frame);
	free(w->appended.mark);
	free(w->written.mark);
	free(w);
}

static int file_open(struct session_writer *w, bool append, struct err *err)
{
	int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK;
	struct stat st;

	w->fd = open(w->path, append ? flags : flags | O_CREAT | O_EXCL, 0600);
	if (w->fd < 0 && errno == EEXIST)
		return err_set(err, -EEXIST,
			       "%s: is there already: choose another name, or "
			       "move it away",
			       w->path);
	if (w->fd < 0)
		return err_set(err, -errno, "%s: cannot be %s: %s", w->path,
			       append ? "opened" : "made", strerror(errno));
	if (fstat(w->fd, &st) || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: is no file", w->path);
	if (flock(w->fd, LOCK_EX | LOCK_NB))
		return err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno,
			       "%s: another iodeck is writing to it", w->path);
	return 0;
}

static int marks_copy(struct session_marks *to,
		      const struct session_marks *from)
{
	struct session_mark *m;

	if (to->count < from->count) {
		m = realloc(to->mark, from->count * sizeof(*m));
		if (!m)
			return -ENOMEM;
		to->mark = m;
	}
	if (from->count)
		memcpy(to->mark, from->mark, from->count * sizeof(*m));
	to->count = from->count;
	return 0;
}

/* What goes behind plain lines stays plain. */
static int kind_find(struct session_writer *w, struct err *err)
{
	struct session_bytes *b;
	int rc;

	w->kind = SESSION_ZSTD;
	if (!w->size)
		return 0;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	session_bytes_init(b, w->fd);
	rc = session_kind(b, w->size, w->path, &w->kind, err);
	free(b);
	return rc;
}

int session_create(const char *path, bool append, struct session_writer **w,
		   struct err *err)
{
	static const struct session_hooks none = { 0 };
	struct session_writer *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->fd = -1;
	n->path = strdup(path);
	n->zstd = ZSTD_createCCtx();
	n->frame_cap = ZSTD_compressBound(SESSION_FRAME_TEXT);
	n->frame = malloc(n->frame_cap);
	rc = n->path && n->zstd && n->frame ? 0 : -ENOMEM;
	if (!rc)
		rc = file_open(n, append, err);
	if (!rc && append)
		rc = session_repair(n->fd, path, &n->appended, &n->size, err);
	if (!rc)
		rc = kind_find(n, err);
	if (!rc)
		rc = marks_copy(&n->written, &n->appended);
	if (rc) {
		writer_free(n);
		return rc;
	}
	ZSTD_CCtx_setParameter(n->zstd, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(n->zstd, ZSTD_c_checksumFlag, 1);
	session_hook(n, &none);
	*w = n;
	return 0;
}

int session_close(struct session_writer *w, struct err *err)
{
	int rc;

	if (!w)
		return 0;
	rc = session_tick(w, true, err);
	if (!rc && fdatasync(w->fd))
		rc = err_set(err, -errno, "%s: cannot be written: %s", w->path,
			     strerror(errno));
	writer_free(w);
	return rc;
}

/* ---- append ------------------------------------------------------------- */

static int text_add(struct session_writer *w, const char *line, size_t len,
		    struct err *err)
{
	size_t cap = w->text_cap ? w->text_cap : 65536;
	char *more;

	if (w->text_len + len > SESSION_PENDING_MAX)
		return err_set(err, -ENOSPC,
			       "%s: cannot be written, and %zu MiB wait in "
			       "memory: make room on its disk",
			       w->path, SESSION_PENDING_MAX >> 20);
	while (cap < w->text_len + len)
		cap *= 2;
	if (cap != w->text_cap) {
		more = realloc(w->text, cap);
		if (!more)
			return -ENOMEM;
		w->text = more;
		w->text_cap = cap;
	}
	memcpy(w->text + w->text_len, line, len);
	w->text_len += len;
	return 0;
}

int session_append(struct session_writer *w, const json_t *event,
		   struct err *err)
{
	struct session_mark *mark;
	struct event_head head;
	char *line = NULL;
	size_t len;
	int rc = event_head(event, &head, err);

	if (!rc)
		rc = session_mark_add(&w->appended, head.a, head.i, &mark, err);
	if (!rc && head.n <= mark->n)
		rc = -EALREADY;
	if (rc)
		return rc;
	rc = event_encode(event, &line, &len);
	if (rc == -EMSGSIZE)
		err_set(err, rc, "%s: event \"%s\" is longer than %u bytes",
			w->path, head.e, EVENT_LINE_MAX);
	if (!rc)
		rc = text_add(w, line, len, err);
	if (!rc)
		mark->n = head.n;
	free(line);
	return rc;
}

size_t session_marks(const struct session_writer *w,
		     const struct session_mark **marks)
{
	*marks = w->appended.mark;
	return w->appended.count;
}

int64_t session_written(const struct session_writer *w, const char *a,
			int64_t i)
{
	for (size_t k = 0; k < w->written.count; k++)
		if (w->written.mark[k].i == i &&
		    !strcmp(w->written.mark[k].a, a))
			return w->written.mark[k].n;
	return 0;
}

int64_t session_bytes(const struct session_writer *w)
{
	return (int64_t)w->size;
}

/* ---- write -------------------------------------------------------------- */

/* All of `buf` or nothing, as far as the file system lets us. */
static int whole_write(struct session_writer *w, const void *buf, size_t len,
		       struct err *err)
{
	const char *at = buf;
	size_t left = len;
	int rc;

	while (left) {
		ssize_t n = w->hooks.write(w->fd, at, left, w->hooks.arg);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			break;
		at += n;
		left -= (size_t)n;
	}
	if (!left) {
		w->size += len;
		w->unsynced = true;
		return 0;
	}
	rc = -errno;
	if (left < len && ftruncate(w->fd, (off_t)w->size)) {
		/* A torn frame stays; readers step over it. */
		w->size += len - left;
		return err_set(err, -EIO,
			       "%s: a frame was cut and cannot be taken back: "
			       "%s",
			       w->path, strerror(errno));
	}
	if (rc == -EDQUOT || rc == -EFBIG)
		rc = -ENOSPC;
	return err_set(err, rc,
		       "%s: cannot be written: %s; %zu KiB wait in memory and "
		       "are tried again",
		       w->path, strerror(-rc), (w->text_len + 1023) >> 10);
}

/* Length of the whole lines that go into the next frame. */
static size_t frame_text(const struct session_writer *w)
{
	const char *nl;

	if (w->text_len <= SESSION_FRAME_TEXT)
		return w->text_len;
	nl = memrchr(w->text, '\n', SESSION_FRAME_TEXT);
	id_assert(nl); /* a line is shorter than a frame */
	return (size_t)(nl - w->text) + 1;
}

static int frame_write(struct session_writer *w, struct err *err)
{
	size_t text = frame_text(w), len = text;
	const void *out = w->text;
	int rc;

	if (w->kind == SESSION_ZSTD) {
		len = ZSTD_compress2(w->zstd, w->frame, w->frame_cap, w->text,
				     text);
		if (ZSTD_isError(len))
			return err_set(err, -ENOMEM, "%s: zstd: %s", w->path,
				       ZSTD_getErrorName(len));
		out = w->frame;
	}
	rc = whole_write(w, out, len, err);
	if (rc)
		return rc;
	w->text_len -= text;
	memmove(w->text, w->text + text, w->text_len);
	return 0;
}

int session_tick(struct session_writer *w, bool force, struct err *err)
{
	int64_t now = w->hooks.now_us(w->hooks.arg);
	int rc = 0;

	if (w->text_len && (force || now - w->frame_us >= FRAME_US ||
			    w->text_len >= SESSION_FRAME_TEXT)) {
		w->frame_us = now;
		while (w->text_len && !rc)
			rc = frame_write(w, err);
		if (!rc)
			rc = marks_copy(&w->written, &w->appended);
	}
	if (w->unsynced && now - w->sync_us >= SYNC_US) {
		w->sync_us = now;
		if (fdatasync(w->fd) && !rc)
			rc = err_set(err, -errno,
				     "%s: the disk did not take it: %s",
				     w->path, strerror(errno));
		else
			w->unsynced = false;
	}
	return rc;
}
