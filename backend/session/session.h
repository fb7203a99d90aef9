/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A session file: JSON lines in zstd frames, about one a second, appended and
 * never rewritten. `zstd -dc FILE | jq` works. A torn tail is dropped when a
 * writer opens it, skipped when a reader does.
 */
#ifndef BACKEND_SESSION_SESSION_H
#define BACKEND_SESSION_SESSION_H

#include <jansson.h>

#include "engine/base.h"

/* ---- writer ------------------------------------------------------------- */
struct session_writer;

/* The last of each (a, i) a file holds. */
struct session_mark {
	char a[64];
	int64_t i, n;
};

/*
 * Makes the file (0600), or, with `append`, repairs and goes on with it.
 * -EEXIST; -EBUSY when another writer has it; -ENOSPC.
 */
int session_create(const char *path, bool append, struct session_writer **w,
		   struct err *err);
/* Marks found at open and since; borrowed. */
size_t session_marks(const struct session_writer *w,
		     const struct session_mark **marks);
/*
 * Buffered; flushed about once a second by session_tick(). Duplicates by (a, i,
 * n) are dropped: -EALREADY. -ENOSPC: the disk is full and so is the buffer;
 * the event was not taken, so neither acknowledge it nor append later ones of
 * its (a, i) before it. -EMSGSIZE.
 */
int session_append(struct session_writer *w, const json_t *event,
		   struct err *err);
/*
 * Writes a frame if a second has passed (or now, when force); fdatasync every
 * 5 s. After it, everything appended is on disk as far as the return says.
 * -ENOSPC: nothing is lost: what is unwritten stays in memory (bounded: 64
 * MiB) and is tried again at the next tick; err says so.
 */
int session_tick(struct session_writer *w, bool force, struct err *err);
/* Events written to the file: the newest mark that may be acknowledged. */
int64_t session_written(const struct session_writer *w, const char *a,
			int64_t i);
int64_t session_bytes(const struct session_writer *w);
/* Flushes. Takes NULL. */
int session_close(struct session_writer *w, struct err *err);

/* ---- reader ------------------------------------------------------------- */
struct session_reader;

/* -EINVAL not a session: says why; *torn_bytes: dropped from the end. */
int session_open(const char *path, struct session_reader **r,
		 uint64_t *torn_bytes, struct err *err);
/* Next event, a new reference; 0, -ENODATA at the end, -EBADMSG for a line
 * that is no event (err has its number; reading can go on). */
int session_next(struct session_reader *r, json_t **event, struct err *err);
/* Whether a console is writing to it just now. */
bool session_is_written(const char *path);
/* Back to the start. */
void session_rewind(struct session_reader *r);
/* Times of the first and the last event, from the file's first and last two
 * frames; rewinds. -ENODATA without an event. */
int session_span(struct session_reader *r, int64_t *from_us, int64_t *to_us);
void session_reader_free(struct session_reader *r);

#endif
