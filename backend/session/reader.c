/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads a session line by line. Memory is bounded whatever the file says: it
 * is unpacked as a stream, a window at a time, and a line that is longer than
 * an event may be is skipped.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "backend/event.h"
#include "backend/session/session_priv.h"

#define PIECE (128u * 1024)

struct session_reader {
	int fd;
	bool owns_fd;
	char *path;
	enum session_kind kind;
	uint64_t end; /* of what is sound */
	uint64_t at;  /* next byte to read */
	struct session_frame frame;
	bool in_frame, damaged;
	ZSTD_DCtx *zstd;
	size_t in_len, in_at, out_len, out_at;
	char *line;
	size_t line_len, line_cap;
	bool too_long;
	uint64_t line_no;
	struct session_bytes bytes;
	unsigned char in[PIECE];
	unsigned char out[PIECE];
};

/* ---- bytes -------------------------------------------------------------- */

static int piece_read(struct session_reader *r, unsigned char *buf,
		      uint64_t end, size_t *len, struct err *err)
{
	size_t want = PIECE;
	ssize_t n;

	if (want > end - r->at)
		want = (size_t)(end - r->at);
	do
		n = pread(r->fd, buf, want, (off_t)r->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(err, -errno, "%s: cannot be read: %s", r->path,
			       strerror(errno));
	/* Cut while we read it. */
	if (!n && want)
		return -ENODATA;
	r->at += (size_t)n;
	*len = (size_t)n;
	return 0;
}

static int frame_begin(struct session_reader *r, struct err *err)
{
	uint64_t from = r->at, damage = 0, damage_at = 0;

	do {
		if (session_frame_find(&r->bytes, from, r->end, &r->frame))
			return -ENODATA;
		if (r->frame.at != from) {
			damage_at = from;
			damage = r->frame.at - from;
		}
		from = r->frame.at + r->frame.len;
	} while (r->frame.skippable);
	r->at = r->frame.at;
	r->in_frame = true;
	r->damaged = false;
	r->in_len = r->in_at = 0;
	ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
	if (!damage)
		return 0;
	return err_set(err, -EBADMSG,
		       "%s: %llu bytes at byte %llu are no part of a session",
		       r->path, (unsigned long long)damage,
		       (unsigned long long)damage_at);
}

static int frame_drop(struct session_reader *r, const char *why,
		      struct err *err)
{
	r->in_frame = false;
	r->damaged = true;
	r->at = r->frame.at + r->frame.len;
	r->line_len = 0;
	r->too_long = false;
	return err_set(err, -EBADMSG,
		       "%s: the frame at byte %llu is damaged: %s", r->path,
		       (unsigned long long)r->frame.at, why);
}

static int fill_zstd(struct session_reader *r, struct err *err)
{
	ZSTD_outBuffer out = { r->out, sizeof(r->out), 0 };
	ZSTD_inBuffer in;
	uint64_t frame_end;
	size_t left;
	int rc;

	if (!r->in_frame) {
		rc = frame_begin(r, err);
		if (rc)
			return rc;
	}
	frame_end = r->frame.at + r->frame.len;
	if (r->in_at == r->in_len && r->at < frame_end) {
		rc = piece_read(r, r->in, frame_end, &r->in_len, err);
		if (rc)
			return rc;
		r->in_at = 0;
	}
	in = (ZSTD_inBuffer) { r->in, r->in_len, r->in_at };
	left = ZSTD_decompressStream(r->zstd, &out, &in);
	if (ZSTD_isError(left))
		return frame_drop(r, ZSTD_getErrorName(left), err);
	if (left && in.pos == r->in_at && !out.pos && r->at == frame_end)
		return frame_drop(r, "it ends too early", err);
	r->in_at = in.pos;
	r->out_at = 0;
	r->out_len = out.pos;
	if (!left) {
		r->in_frame = false;
		r->at = frame_end;
	}
	return 0;
}

static int fill(struct session_reader *r, struct err *err)
{
	if (r->kind == SESSION_ZSTD)
		return fill_zstd(r, err);
	if (r->at >= r->end)
		return -ENODATA;
	r->out_at = 0;
	r->out_len = 0;
	return piece_read(r, r->out, r->end, &r->out_len, err);
}

/* ---- lines -------------------------------------------------------------- */

static int line_add(struct session_reader *r, const unsigned char *text,
		    size_t len)
{
	size_t cap = r->line_cap ? r->line_cap : 4096;
	char *more;

	if (r->too_long || r->line_len + len > EVENT_LINE_MAX) {
		r->too_long = true;
		r->line_len = 0;
		return 0;
	}
	while (cap < r->line_len + len)
		cap *= 2;
	if (cap != r->line_cap) {
		more = realloc(r->line, cap);
		if (!more)
			return -ENOMEM;
		r->line = more;
		r->line_cap = cap;
	}
	memcpy(r->line + r->line_len, text, len);
	r->line_len += len;
	return 0;
}

/* Takes what is there of the line; 1 when it is whole. */
static int line_take(struct session_reader *r)
{
	const unsigned char *from = r->out + r->out_at;
	size_t have = r->out_len - r->out_at;
	const unsigned char *nl = have ? memchr(from, '\n', have) : NULL;
	size_t len = nl ? (size_t)(nl - from) : have;
	int rc = line_add(r, from, len);

	r->out_at += nl ? len + 1 : len;
	return rc ? rc : nl != NULL;
}

static int line_decode(struct session_reader *r, json_t **event,
		       struct err *err)
{
	struct err why = { 0 };
	size_t len = r->line_len;
	int rc;

	r->line_no++;
	r->line_len = 0;
	if (r->too_long) {
		r->too_long = false;
		return err_set(err, -EBADMSG,
			       "%s: line %llu: is longer than %u bytes",
			       r->path, (unsigned long long)r->line_no,
			       EVENT_LINE_MAX);
	}
	if (!len)
		return 1;
	rc = event_decode(r->line, len, event, &why);
	if (rc == -EINVAL)
		return err_set(err, -EBADMSG, "%s: line %llu: %s", r->path,
			       (unsigned long long)r->line_no, why.text);
	return rc;
}

int session_next(struct session_reader *r, json_t **event, struct err *err)
{
	int rc;

	for (;;) {
		rc = line_take(r);
		if (rc < 0)
			return rc;
		if (rc) {
			rc = line_decode(r, event, err);
			if (rc <= 0)
				return rc;
			continue;
		}
		r->out_at = r->out_len = 0;
		rc = fill(r, err);
		if (rc == -ENODATA && (r->line_len || r->too_long)) {
			rc = line_decode(r, event, err);
			if (rc <= 0)
				return rc;
			return -ENODATA;
		}
		if (rc)
			return rc;
	}
}

void session_rewind(struct session_reader *r)
{
	r->at = 0;
	r->in_frame = r->damaged = r->too_long = false;
	r->in_len = r->in_at = r->out_len = r->out_at = 0;
	r->line_len = 0;
	r->line_no = 0;
}

/* ---- span --------------------------------------------------------------- */

static int next_time(struct session_reader *r, int64_t *t_us)
{
	json_t *event = NULL;
	struct event_head head;
	int rc;

	do
		rc = session_next(r, &event, NULL);
	while (rc == -EBADMSG);
	if (rc)
		return rc;
	rc = event_head(event, &head, NULL);
	*t_us = head.t_us;
	json_decref(event);
	return rc;
}

/* Begins of the last two whole frames, so that a damaged last one leaves
 * another to look into; of plain lines a byte near the end. */
static uint64_t tail_begin(struct session_reader *r)
{
	struct session_frame f;
	uint64_t at = 0, last = 0, before = 0;

	if (r->kind == SESSION_PLAIN)
		return r->end > 2 * EVENT_LINE_MAX ? r->end - 2 * EVENT_LINE_MAX
						   : 0;
	while (!session_frame_find(&r->bytes, at, r->end, &f)) {
		before = last;
		last = f.at;
		at = f.at + f.len;
	}
	return before;
}

int session_span(struct session_reader *r, int64_t *from_us, int64_t *to_us)
{
	int64_t t = 0;
	int rc;

	session_rewind(r);
	rc = next_time(r, from_us);
	if (rc)
		return rc;
	*to_us = *from_us;
	session_rewind(r);
	r->at = tail_begin(r);
	while (!(rc = next_time(r, &t)))
		if (t > *to_us)
			*to_us = t;
	session_rewind(r);
	return rc == -ENODATA ? 0 : rc;
}

/* ---- open, close -------------------------------------------------------- */

int session_reader_of_fd(int fd, const char *path, struct session_reader **r,
			 uint64_t *torn_bytes, struct err *err)
{
	struct session_reader *n;
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: is no file", path);
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->fd = fd;
	n->path = strdup(path);
	n->zstd = ZSTD_createDCtx();
	session_bytes_init(&n->bytes, fd);
	rc = n->path && n->zstd ? 0 : -ENOMEM;
	if (!rc)
		rc = session_kind(&n->bytes, (uint64_t)st.st_size, path,
				  &n->kind, err);
	if (rc) {
		session_reader_free(n);
		return rc;
	}
	ZSTD_DCtx_setParameter(n->zstd, ZSTD_d_windowLogMax,
			       SESSION_WINDOW_LOG_MAX);
	n->end = session_sound_end(&n->bytes, (uint64_t)st.st_size, n->kind);
	*torn_bytes = (uint64_t)st.st_size - n->end;
	*r = n;
	return 0;
}

int session_open(const char *path, struct session_reader **r,
		 uint64_t *torn_bytes, struct err *err)
{
	/* A pipe by this name must not hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return err_set(err, -errno, "%s: cannot be opened: %s", path,
			       strerror(errno));
	rc = session_reader_of_fd(fd, path, r, torn_bytes, err);
	if (rc)
		close(fd);
	else
		(*r)->owns_fd = true;
	return rc == -ENODATA ? -EINVAL : rc;
}

void session_reader_free(struct session_reader *r)
{
	if (!r)
		return;
	if (r->owns_fd)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	free(r->path);
	free(r->line);
	free(r);
}

uint64_t session_reader_frame(const struct session_reader *r)
{
	return r->frame.at;
}

bool session_reader_damaged(const struct session_reader *r)
{
	return r->damaged;
}

bool session_is_written(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool written =
		fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return written;
}
