/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Events on the agent's disk until a console has them on its own.
 *
 * A directory of segments, one file each, named INCARNATION-FIRST.jsonl, of
 * whole lines whose numbers follow one another. What all consoles were told
 * stands behind `acked`; segments wholly below it are deleted.
 *
 *   3-1.jsonl  3-8121.jsonl | 4-1.jsonl  4-7702.jsonl (open)  | in memory
 *        ^acked                                                 (disk full)
 *
 * What is durable when: each line is written at once, so it survives the end
 * of the agent. fdatasync follows when a segment is full, and at
 * spool_sync(): what the machine itself forgets in between is lost.
 *
 * A full disk, or more than bytes_max, keeps lines in memory (memory_max) and
 * tries again with each line; when that is full too, lines are refused and
 * the caller says `gap`.
 *
 * Threads: one.
 */
#ifndef BACKEND_AGENT_SPOOL_H
#define BACKEND_AGENT_SPOOL_H

#include "engine/base.h"

struct spool;

struct spool_opts {
	int dirfd;            /* the spool's directory; stays the caller's */
	uint64_t bytes_max;   /* on disk; 0: 256 MiB */
	uint64_t segment_max; /* bytes; 0: 4 MiB */
	uint64_t memory_max;  /* bytes; 0: 8 MiB */
};

struct spool_mark {
	int64_t i, n;
};

/*
 * Reads what is there, repairs a torn tail, and begins a new incarnation: one
 * above all that ever were.
 * torn_bytes  out: dropped from segments' ends, 0 when all was whole
 */
int spool_open(const struct spool_opts *opts, struct spool **spool,
	       uint64_t *torn_bytes, struct err *err);
/* Syncs and closes. Takes NULL. */
void spool_close(struct spool *s);

int64_t spool_incarnation(const struct spool *s);

/*
 * Takes the line (newline included) of event n of this incarnation; numbers
 * must grow. 0; 1: kept in memory for now; -ENOSPC: refused.
 */
int spool_append(struct spool *s, int64_t n, const char *line, size_t len);
/* Tries to write what is in memory. Returns the bytes still there. */
uint64_t spool_flush(struct spool *s);
/* Why the last write failed: a negative errno; 0 when all is well. */
int spool_error(const struct spool *s);
/* An fd of the open segment to be synced, the caller's to close; -1: none. */
int spool_sync_fd(const struct spool *s);

/* Everything up to (i, n), in the order of sending, may be forgotten. */
void spool_ack(struct spool *s, int64_t i, int64_t n);
uint64_t spool_bytes(const struct spool *s);
/* The first that was not acknowledged of each incarnation, at most `room`;
 * returns how many. */
size_t spool_oldest(const struct spool *s, struct spool_mark *mark,
		    size_t room);

/* ---- reading ------------------------------------------------------------ */

struct spool_cursor;

/*
 * Reads from behind the marks (and behind what was acknowledged), earlier
 * incarnations first. *cursor is the caller's; it must go before the spool.
 */
int spool_cursor_new(struct spool *s, const struct spool_mark *from,
		     size_t from_count, struct spool_cursor **cursor);
void spool_cursor_free(struct spool_cursor *c);
/*
 * The next line, newline included, borrowed until the next call: 1; 0: none
 * yet; or a negative errno.
 */
int spool_next(struct spool_cursor *c, const char **line, size_t *len);

#endif
