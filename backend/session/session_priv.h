/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What writer, reader and repair share: where frames begin and end. */
#ifndef BACKEND_SESSION_SESSION_PRIV_H
#define BACKEND_SESSION_SESSION_PRIV_H

#include <sys/types.h>

#include "backend/session/session.h"

#define SESSION_FRAME_TEXT                                \
	((size_t)4 << 20) /* most text of a written frame \
			   */
#define SESSION_PENDING_MAX ((size_t)64 << 20)
#define SESSION_WINDOW_LOG_MAX 23 /* 8 MiB to unpack with */
#define SESSION_WRITERS_MAX 4096  /* (a, i) of a file */
#define SESSION_PLAIN_FIRST '{'

/* Bytes of a file, a window of them held. */
struct session_bytes {
	int fd;
	uint64_t at;
	size_t len;
	unsigned char buf[64 * 1024];
};
void session_bytes_init(struct session_bytes *b, int fd);
/* `want` bytes at `at` (at most 64), or NULL when the file ends before. */
const unsigned char *session_bytes_get(struct session_bytes *b, uint64_t at,
				       size_t want);

struct session_frame {
	uint64_t at, len;
	bool skippable; /* no content */
};
/*
 * The first whole frame at or behind `from` that ends by `end`. What lies
 * between is damage. 0; -ENODATA when there is none. Looks at headers alone,
 * so a frame found may still fail to unpack.
 */
int session_frame_find(struct session_bytes *b, uint64_t from, uint64_t end,
		       struct session_frame *frame);

enum session_kind { SESSION_ZSTD, SESSION_PLAIN };
/* By the first bytes: -EINVAL with the reason when it is neither. An empty file
 * is of either kind: -ENODATA. */
int session_kind(struct session_bytes *b, uint64_t size, const char *path,
		 enum session_kind *kind, struct err *err);
/* What a sound file would end at: behind the last whole frame or line. */
uint64_t session_sound_end(struct session_bytes *b, uint64_t size,
			   enum session_kind kind);

/* Gives a reader of `fd` (kept open by the caller until freed). */
int session_reader_of_fd(int fd, const char *path, struct session_reader **r,
			 uint64_t *torn_bytes, struct err *err);
/* Where the frame at hand begins; the end of the file once all was read. */
uint64_t session_reader_frame(const struct session_reader *r);
/* Whether the frame that session_reader_frame() tells did not unpack. */
bool session_reader_damaged(const struct session_reader *r);

/* ---- repair.c ----------------------------------------------------------- */

struct session_marks {
	struct session_mark *mark;
	size_t count, last;
};
/* NULL when (a, i) is not there. */
struct session_mark *session_mark_find(struct session_marks *m, const char *a,
				       int64_t i);
/* Finds or adds, with n = 0. -ENOMEM; -EINVAL for too many. */
int session_mark_add(struct session_marks *m, const char *a, int64_t i,
		     struct session_mark **mark, struct err *err);
/*
 * Cuts off what a crash left behind the last whole frame, and a last frame
 * whose content is damaged; reads the marks.
 */
int session_repair(int fd, const char *path, struct session_marks *marks,
		   uint64_t *size, struct err *err);

/* ---- writer.c, for tests ------------------------------------------------ */

struct session_hooks {
	ssize_t (*write)(int fd, const void *buf, size_t len, void *arg);
	int64_t (*now_us)(void *arg); /* monotonic */
	void *arg;
};
void session_hook(struct session_writer *w, const struct session_hooks *hooks);

#endif
