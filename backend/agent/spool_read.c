/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The spool's reading half. A cursor is a place (i, n); it finds its segment
 * anew whenever it has none open, so segments may be deleted under it, and
 * goes on with what is held in memory where the disk ends.
 */
#include "backend/agent/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/agent/spool_priv.h"
#include "backend/event.h"

#define CHUNK (64 * 1024)

struct spool_cursor {
	struct spool *spool;
	struct spool_mark *from;
	size_t from_count;
	struct spool_mark at; /* the next one to give */
	int fd;               /* -1: none open */
	struct segment open;  /* which it is */
	uint64_t off;         /* of the file: where buf ends */
	char *buf;
	size_t buf_at, buf_len;
};

/* The first of incarnation i, not below n, that this reader wants. */
static int64_t wanted(const struct spool_cursor *c, int64_t i, int64_t n)
{
	const struct spool *s = c->spool;

	for (size_t k = 0; k < c->from_count; k++) {
		if (c->from[k].i != i)
			continue;
		if (c->from[k].n == INT64_MAX)
			return INT64_MAX;
		return n > c->from[k].n ? n : c->from[k].n + 1;
	}
	if (i < s->acked.i)
		return INT64_MAX;
	if (i == s->acked.i && n <= s->acked.n)
		return s->acked.n + 1;
	return n;
}

int spool_cursor_new(struct spool *s, const struct spool_mark *from,
		     size_t from_count, struct spool_cursor **cursor)
{
	struct spool_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->spool = s;
	c->fd = -1;
	c->buf = malloc(EVENT_LINE_MAX + CHUNK);
	c->from = calloc(from_count + 1, sizeof(*c->from));
	if (!c->buf || !c->from) {
		spool_cursor_free(c);
		return -ENOMEM;
	}
	if (from_count)
		memcpy(c->from, from, from_count * sizeof(*from));
	c->from_count = from_count;
	*cursor = c;
	return 0;
}

void spool_cursor_free(struct spool_cursor *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c->from);
	free(c->buf);
	free(c);
}

/* Moves the place to the first wanted one of a segment; false: has none. */
static bool place_in(struct spool_cursor *c, const struct segment *seg)
{
	int64_t n = seg->first;

	if (seg->i < c->at.i)
		return false;
	if (seg->i == c->at.i && n < c->at.n)
		n = c->at.n;
	n = wanted(c, seg->i, n);
	if (n > seg->last)
		return false;
	c->at = (struct spool_mark) { seg->i, n };
	return true;
}

/* Opens the segment the place is in, or the next one. 1, 0 none, -errno. */
static int segment_find(struct spool_cursor *c)
{
	const struct spool *s = c->spool;
	char name[SEGMENT_NAME_MAX];

	for (size_t k = 0; k < s->segments; k++) {
		if (!place_in(c, &s->segment[k]))
			continue;
		c->open = s->segment[k];
		segment_name(&c->open, name);
		c->fd = openat(s->opts.dirfd, name, O_RDONLY | O_CLOEXEC);
		if (c->fd < 0)
			return -errno;
		c->open.last = c->open.first - 1;
		c->off = 0;
		c->buf_at = c->buf_len = 0;
		return 1;
	}
	return 0;
}

/* As far as the spool has written it; 0 when it is gone. */
static uint64_t segment_written(const struct spool_cursor *c)
{
	const struct spool *s = c->spool;

	for (size_t k = s->segments; k-- > 0;)
		if (s->segment[k].i == c->open.i &&
		    s->segment[k].first == c->open.first)
			return s->segment[k].bytes;
	return c->open.bytes;
}

/* More bytes of the open segment: 1, 0 at its end, -errno. */
static int chunk_read(struct spool_cursor *c)
{
	uint64_t left = segment_written(c) - c->off;
	size_t want = left < CHUNK ? (size_t)left : CHUNK;
	ssize_t n;

	if (!want)
		return 0;
	memmove(c->buf, c->buf + c->buf_at, c->buf_len);
	c->buf_at = 0;
	n = pread(c->fd, c->buf + c->buf_len, want, (off_t)c->off);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	c->buf_len += (size_t)n;
	c->off += (uint64_t)n;
	return 1;
}

/* The next line of the open segment, whatever its number. */
static int line_read(struct spool_cursor *c, const char **line, size_t *len)
{
	const char *end = NULL;
	size_t looked = 0;
	int rc;

	for (;;) {
		*line = c->buf + c->buf_at;
		if (c->buf_len > looked)
			end = memchr(*line + looked, '\n', c->buf_len - looked);
		if (end)
			break;
		looked = c->buf_len;
		if (looked > EVENT_LINE_MAX)
			return -EBADMSG;
		rc = chunk_read(c);
		if (rc <= 0)
			return rc;
	}
	*len = (size_t)(end - *line) + 1;
	c->buf_at += *len;
	c->buf_len -= *len;
	c->open.last++;
	return 1;
}

static bool segment_is_open(const struct spool_cursor *c)
{
	const struct spool *s = c->spool;
	const struct segment *seg;

	if (s->fd < 0 || !s->segments)
		return false;
	seg = &s->segment[s->segments - 1];
	return seg->i == c->open.i && seg->first == c->open.first;
}

static int held_next(struct spool_cursor *c, const char **line, size_t *len)
{
	const struct spool *s = c->spool;

	for (const struct held *h = s->held; h; h = h->next) {
		if (c->at.i == s->incarnation && h->n < c->at.n)
			continue;
		if (wanted(c, s->incarnation, h->n) != h->n)
			continue;
		c->at = (struct spool_mark) { s->incarnation, h->n + 1 };
		*line = h->line;
		*len = h->len;
		return 1;
	}
	return 0;
}

int spool_next(struct spool_cursor *c, const char **line, size_t *len)
{
	int rc;

	for (;;) {
		if (c->fd < 0) {
			rc = segment_find(c);
			if (rc < 0)
				return rc;
			if (!rc)
				return held_next(c, line, len);
		}
		rc = line_read(c, line, len);
		if (rc < 0)
			return rc;
		if (rc && c->open.last >= c->at.n) {
			c->at.n = c->open.last + 1;
			return 1;
		}
		if (rc)
			continue;
		if (segment_is_open(c))
			return held_next(c, line, len);
		close(c->fd);
		c->fd = -1;
		/* what follows begins behind it */
		if (c->at.n <= c->open.last)
			c->at.n = c->open.last + 1;
	}
}
