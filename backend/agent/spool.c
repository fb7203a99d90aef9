/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The spool's writing half: segments, acknowledgement, repair. */
#include "backend/agent/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/agent/spool_priv.h"
#include "backend/event.h"

void segment_name(const struct segment *seg, char name[SEGMENT_NAME_MAX])
{
	snprintf(name, SEGMENT_NAME_MAX, "%" PRId64 "-%" PRId64 ".jsonl",
		 seg->i, seg->first);
}

static struct segment *segment_add(struct spool *s, int64_t i, int64_t first)
{
	size_t room = s->segments_room ? 2 * s->segments_room : 16;
	struct segment *grown;

	if (s->segments == s->segments_room) {
		grown = realloc(s->segment, room * sizeof(*grown));
		if (!grown)
			return NULL;
		s->segment = grown;
		s->segments_room = room;
	}
	grown = &s->segment[s->segments++];
	*grown = (struct segment) { .i = i, .first = first, .last = first - 1 };
	return grown;
}

static void segment_remove(struct spool *s, size_t index)
{
	char name[SEGMENT_NAME_MAX];

	segment_name(&s->segment[index], name);
	unlinkat(s->opts.dirfd, name, 0);
	s->bytes -= s->segment[index].bytes;
	s->segments--;
	memmove(s->segment + index, s->segment + index + 1,
		(s->segments - index) * sizeof(*s->segment));
}

/* ---- numbers in small files: written in place, so also on a full disk --- */

static void numbers_read(int fd, int64_t *a, int64_t *b)
{
	char text[48] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	*a = *b = 0;
	if (n > 0 && sscanf(text, "%" SCNd64 " %" SCNd64, a, b) < 1)
		*a = 0;
	if (*a < 0 || *b < 0)
		*a = *b = 0;
}

static int numbers_write(int fd, int64_t a, int64_t b)
{
	char text[48];
	int len;

	len = snprintf(text, sizeof(text), "%020" PRId64 " %020" PRId64 "\n", a,
		       b);
	if (pwrite(fd, text, (size_t)len, 0) != len)
		return errno ? -errno : -EIO;
	return 0;
}

/* ---- opening ------------------------------------------------------------ */

static int segment_order(const void *x, const void *y)
{
	const struct segment *a = x, *b = y;

	if (a->i != b->i)
		return a->i < b->i ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return 0;
}

static int segments_list(struct spool *s)
{
	int fd = openat(s->opts.dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;
	int rc = 0;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (de = readdir(dir))) {
		int64_t i, first;
		int end = 0;

		if (sscanf(de->d_name, "%" SCNd64 "-%" SCNd64 ".jsonl%n", &i,
			   &first, &end) != 2 ||
		    !end || de->d_name[end] || i < 1 || first < 1)
			continue;
		if (!segment_add(s, i, first))
			rc = -ENOMEM;
	}
	closedir(dir);
	if (s->segments)
		qsort(s->segment, s->segments, sizeof(*s->segment),
		      segment_order);
	return rc;
}

/* Whether a line is the event (i, n). */
static bool line_is(const char *line, size_t len, int64_t i, int64_t n)
{
	struct event_head head;
	json_t *event;
	bool is;

	if (event_decode(line, len, &event, NULL))
		return false;
	is = !event_head(event, &head, NULL) && head.i == i && head.n == n;
	json_decref(event);
	return is;
}

/* Counts whole lines of a segment's text; with `close`, looks at each. */
static void segment_scan(struct segment *seg, const char *text, size_t size,
			 bool closely)
{
	while (seg->bytes < size) {
		const char *line = text + seg->bytes;
		const char *end = memchr(line, '\n', size - seg->bytes);
		size_t len;

		if (!end)
			break;
		len = (size_t)(end - line) + 1;
		if (closely && !line_is(line, len, seg->i, seg->last + 1))
			break;
		seg->bytes += len;
		seg->last++;
	}
}

static int file_read(int fd, char **text, size_t *size)
{
	struct stat st;
	size_t at = 0;
	ssize_t n = 1;

	if (fstat(fd, &st))
		return -errno;
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	while (at < (size_t)st.st_size && n > 0) {
		n = pread(fd, *text + at, (size_t)st.st_size - at, (off_t)at);
		if (n > 0)
			at += (size_t)n;
	}
	*size = at;
	return n < 0 ? -errno : 0;
}

/* Reads a segment; cuts what is no whole event off its end. */
static int segment_repair(struct spool *s, struct segment *seg, bool closely,
			  uint64_t *torn_bytes)
{
	char name[SEGMENT_NAME_MAX], *text = NULL;
	size_t size = 0;
	int fd, rc;

	segment_name(seg, name);
	fd = openat(s->opts.dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	rc = file_read(fd, &text, &size);
	if (!rc)
		segment_scan(seg, text, size, closely);
	if (!rc && seg->bytes < size) {
		*torn_bytes += size - seg->bytes;
		if (ftruncate(fd, (off_t)seg->bytes))
			rc = -errno;
	}
	free(text);
	close(fd);
	return rc;
}

/* Only the last segment of an incarnation can be torn by a crash, as the
 * others were synced when they were full; so only that is looked at closely. */
static int segments_repair(struct spool *s, uint64_t *torn_bytes)
{
	size_t at = 0;

	while (at < s->segments) {
		struct segment *seg = &s->segment[at];
		bool closely =
			at + 1 == s->segments || s->segment[at + 1].i != seg->i;
		int rc = segment_repair(s, seg, closely, torn_bytes);

		if (rc)
			return rc;
		s->bytes += seg->bytes;
		if (seg->bytes)
			at++;
		else
			segment_remove(s, at);
	}
	return 0;
}

/* One above all that were; without a memory of them, the time: a console that
 * remembers numbers this directory has forgotten must not take new events for
 * old ones. */
static int incarnation_next(struct spool *s)
{
	int64_t was, unused;
	int fd, rc;

	fd = openat(s->opts.dirfd, "incarnation",
		    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	numbers_read(fd, &was, &unused);
	if (was < s->acked.i)
		was = s->acked.i;
	if (s->segments && was < s->segment[s->segments - 1].i)
		was = s->segment[s->segments - 1].i;
	s->incarnation = was ? was + 1 : (int64_t)time(NULL);
	rc = numbers_write(fd, s->incarnation, 0);
	if (!rc && fdatasync(fd))
		rc = -errno;
	close(fd);
	return rc;
}

static int acked_open(struct spool *s)
{
	s->acked_fd = openat(s->opts.dirfd, "acked",
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->acked_fd < 0)
		return -errno;
	numbers_read(s->acked_fd, &s->acked.i, &s->acked.n);
	return 0;
}

static void acked_delete(struct spool *s)
{
	size_t open_one = s->fd >= 0 ? 1 : 0;

	while (s->segments > open_one &&
	       !mark_before(s->acked, s->segment[0].i, s->segment[0].last))
		segment_remove(s, 0);
}

int spool_open(const struct spool_opts *opts, struct spool **spool,
	       uint64_t *torn_bytes, struct err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	*torn_bytes = 0;
	if (!s)
		goto out;
	s->opts = *opts;
	s->fd = -1;
	s->held_end = &s->held;
	if (!s->opts.bytes_max)
		s->opts.bytes_max = 256 * MIB;
	if (!s->opts.segment_max)
		s->opts.segment_max = 4 * MIB;
	if (!s->opts.memory_max)
		s->opts.memory_max = 8 * MIB;
	rc = acked_open(s);
	if (!rc)
		rc = segments_list(s);
	if (!rc)
		rc = segments_repair(s, torn_bytes);
	if (!rc)
		rc = incarnation_next(s);
	if (rc)
		goto out;
	acked_delete(s);
	*spool = s;
	return 0;
out:
	spool_close(s);
	return err_set(err, rc, "spool: %s", strerror(-rc));
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	spool_flush(s);
	while (s->held) {
		struct held *h = s->held;

		s->held = h->next;
		free(h);
	}
	if (s->fd >= 0) {
		fdatasync(s->fd);
		close(s->fd);
	}
	if (s->acked_fd >= 0)
		close(s->acked_fd);
	free(s->segment);
	free(s);
}

/* ---- writing ------------------------------------------------------------ */

static void segment_finish(struct spool *s)
{
	if (s->fd < 0)
		return;
	fdatasync(s->fd);
	close(s->fd);
	s->fd = -1;
}

static int segment_begin(struct spool *s, int64_t n)
{
	struct segment *seg = segment_add(s, s->incarnation, n);
	char name[SEGMENT_NAME_MAX];
	int rc;

	if (!seg)
		return -ENOMEM;
	segment_name(seg, name);
	s->fd = openat(s->opts.dirfd, name,
		       O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
		       0600);
	if (s->fd >= 0)
		return 0;
	rc = -errno;
	s->segments--;
	return rc;
}

static int write_whole(int fd, const char *line, size_t len)
{
	while (len) {
		ssize_t n = write(fd, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		line += n;
		len -= (size_t)n;
	}
	return 0;
}

/* All of the line or nothing of it. */
static int line_write(struct spool *s, int64_t n, const char *line, size_t len)
{
	struct segment *seg = s->fd < 0 ? NULL : &s->segment[s->segments - 1];
	int rc = 0;

	if (s->bytes + len > s->opts.bytes_max)
		return -ENOSPC;
	if (seg &&
	    (seg->last + 1 != n || seg->bytes + len > s->opts.segment_max)) {
		segment_finish(s);
		acked_delete(s);
	}
	if (s->fd < 0)
		rc = segment_begin(s, n);
	if (rc)
		return rc;
	id_assert(s->segment && s->segments);
	seg = &s->segment[s->segments - 1];
	rc = write_whole(s->fd, line, len);
	if (!rc) {
		seg->bytes += len;
		seg->last = n;
		s->bytes += len;
		return 0;
	}
	/* A cut needs no room. If even that fails, the next line goes to a
	 * segment of its own and this tail is repaired at the next start. */
	if (!seg->bytes) {
		close(s->fd);
		s->fd = -1;
		segment_remove(s, s->segments - 1);
	} else if (ftruncate(s->fd, (off_t)seg->bytes)) {
		segment_finish(s);
	}
	return rc;
}

static int line_hold(struct spool *s, int64_t n, const char *line, size_t len)
{
	struct held *h;

	if (s->held_bytes + len > s->opts.memory_max)
		return -ENOSPC;
	h = malloc(sizeof(*h) + len);
	if (!h)
		return -ENOSPC;
	*h = (struct held) { .n = n, .len = len };
	memcpy(h->line, line, len);
	*s->held_end = h;
	s->held_end = &h->next;
	s->held_bytes += len;
	return 1;
}

uint64_t spool_flush(struct spool *s)
{
	while (s->held) {
		struct held *h = s->held;

		s->error = line_write(s, h->n, h->line, h->len);
		if (s->error)
			break;
		s->held = h->next;
		if (!s->held)
			s->held_end = &s->held;
		s->held_bytes -= h->len;
		free(h);
	}
	return s->held_bytes;
}

int spool_append(struct spool *s, int64_t n, const char *line, size_t len)
{
	if (spool_flush(s))
		return line_hold(s, n, line, len);
	s->error = line_write(s, n, line, len);
	if (s->error)
		return line_hold(s, n, line, len);
	return 0;
}

/* ---- acknowledgement, figures ------------------------------------------- */

static void held_ack(struct spool *s)
{
	while (s->held && !mark_before(s->acked, s->incarnation, s->held->n)) {
		struct held *h = s->held;

		s->held = h->next;
		if (!s->held)
			s->held_end = &s->held;
		s->held_bytes -= h->len;
		free(h);
	}
}

void spool_ack(struct spool *s, int64_t i, int64_t n)
{
	if (i > s->incarnation || !mark_before(s->acked, i, n))
		return;
	s->acked = (struct spool_mark) { i, n };
	numbers_write(s->acked_fd, i, n);
	acked_delete(s);
	held_ack(s);
	spool_flush(s);
}

int64_t spool_incarnation(const struct spool *s)
{
	return s->incarnation;
}

int spool_error(const struct spool *s)
{
	return s->error;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}

int spool_sync_fd(const struct spool *s)
{
	return s->fd < 0 ? -1 : fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
}

size_t spool_oldest(const struct spool *s, struct spool_mark *mark, size_t room)
{
	size_t count = 0;

	for (size_t k = 0; k < s->segments && count < room; k++) {
		const struct segment *seg = &s->segment[k];
		int64_t first = seg->first;

		if (count && mark[count - 1].i == seg->i)
			continue;
		if (!mark_before(s->acked, seg->i, seg->last))
			continue;
		if (s->acked.i == seg->i && s->acked.n >= first)
			first = s->acked.n + 1;
		mark[count++] = (struct spool_mark) { seg->i, first };
	}
	return count;
}
