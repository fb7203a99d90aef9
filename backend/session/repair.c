/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a crash leaves: a write cut anywhere. Frames are written whole or not
 * at all by one write(2), which SIGKILL and power loss can still tear; so the
 * last frame may lack its end, or hold blocks of zeros.
 *
 * Only what lies behind the last sound frame is cut. Damage farther up stays as
 * it is: readers step over it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "backend/event.h"
#include "backend/session/session_priv.h"

struct session_mark *session_mark_find(struct session_marks *m, const char *a,
				       int64_t i)
{
	for (size_t k = 0; k < m->count; k++) {
		/* Most come from the one that wrote before. */
		size_t at = (m->last + k) % m->count;

		if (m->mark[at].i == i && !strcmp(m->mark[at].a, a)) {
			m->last = at;
			return &m->mark[at];
		}
	}
	return NULL;
}

int session_mark_add(struct session_marks *m, const char *a, int64_t i,
		     struct session_mark **mark, struct err *err)
{
	struct session_mark *at = session_mark_find(m, a, i);

	if (!at) {
		if (m->count == SESSION_WRITERS_MAX)
			return err_set(
				err, -EINVAL,
				"session: more than %d writers of events",
				SESSION_WRITERS_MAX);
		at = realloc(m->mark, (m->count + 1) * sizeof(*at));
		if (!at)
			return -ENOMEM;
		m->mark = at;
		at += m->count++;
		snprintf(at->a, sizeof(at->a), "%s", a);
		at->i = i;
		at->n = 0;
	}
	*mark = at;
	return 0;
}

static int mark_event(struct session_marks *marks, const json_t *event,
		      struct err *err)
{
	struct session_mark *mark;
	struct event_head head;
	int rc = event_head(event, &head, err);

	if (!rc)
		rc = session_mark_add(marks, head.a, head.i, &mark, err);
	if (!rc && head.n > mark->n)
		mark->n = head.n;
	return rc;
}

/* Reads all; *damaged_at: where the last frame begins when it is damaged. */
static int marks_read(struct session_reader *r, struct session_marks *marks,
		      uint64_t *damaged_at, struct err *err)
{
	json_t *event = NULL;
	int rc;

	*damaged_at = UINT64_MAX;
	for (;;) {
		rc = session_next(r, &event, err);
		if (rc == -ENODATA)
			return 0;
		if (rc == -EBADMSG) {
			if (session_reader_damaged(r))
				*damaged_at = session_reader_frame(r);
			continue;
		}
		if (rc)
			return rc;
		if (session_reader_frame(r) != *damaged_at)
			*damaged_at = UINT64_MAX;
		rc = mark_event(marks, event, err);
		json_decref(event);
		if (rc)
			return rc;
	}
}

/*
 * A file that merely looks like a session must not be cut: a crash leaves at
 * most one frame or line that is torn, behind events that can be read.
 */
static int may_cut(const struct session_marks *marks, uint64_t size,
		   uint64_t whole, uint64_t end, const char *path,
		   struct err *err)
{
	uint64_t most = ZSTD_compressBound(SESSION_FRAME_TEXT);

	if (!marks->count && whole)
		return err_set(err, -EINVAL,
			       "%s: holds no event: it is no session", path);
	if (size - end > most)
		return err_set(
			err, -EINVAL,
			"%s: the %llu bytes behind byte %llu are no part "
			"of a session; to go on, copy what is before "
			"them to another file",
			path, (unsigned long long)(size - end),
			(unsigned long long)end);
	return 0;
}

int session_repair(int fd, const char *path, struct session_marks *marks,
		   uint64_t *size, struct err *err)
{
	struct session_reader *r = NULL;
	uint64_t torn = 0, end, damaged_at = UINT64_MAX;
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	*size = (uint64_t)st.st_size;
	if (!st.st_size)
		return 0;
	rc = session_reader_of_fd(fd, path, &r, &torn, err);
	if (!rc)
		rc = marks_read(r, marks, &damaged_at, err);
	session_reader_free(r);
	if (rc)
		return rc;
	end = *size - torn;
	if (damaged_at < end)
		end = damaged_at;
	rc = may_cut(marks, *size, *size - torn, end, path, err);
	if (rc)
		return rc;
	if (end == *size)
		return 0;
	if (ftruncate(fd, (off_t)end) || fdatasync(fd))
		return err_set(err, -errno,
			       "%s: its torn end cannot be cut off: %s", path,
			       strerror(errno));
	*size = end;
	return 0;
}
