/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the spool's writing and reading halves share. */
#ifndef BACKEND_AGENT_SPOOL_PRIV_H
#define BACKEND_AGENT_SPOOL_PRIV_H

#include "backend/agent/spool.h"

/* A file of whole lines: events first..last of incarnation i. */
struct segment {
	int64_t i, first, last;
	uint64_t bytes;
};

/* A line the disk had no room for. */
struct held {
	struct held *next;
	int64_t n;
	size_t len;
	char line[];
};

struct spool {
	struct spool_opts opts;
	int64_t incarnation;
	struct segment *segment; /* in order; the last one may be open */
	size_t segments, segments_room;
	int fd; /* of the open segment; -1 */
	int acked_fd;
	struct spool_mark acked;
	uint64_t bytes; /* of all segments */
	struct held *held, **held_end;
	uint64_t held_bytes;
	int error;
};

#define SEGMENT_NAME_MAX 64
void segment_name(const struct segment *seg, char name[SEGMENT_NAME_MAX]);

/* Whether (i, n) comes after mark m in the order of sending. */
static inline bool mark_before(struct spool_mark m, int64_t i, int64_t n)
{
	return m.i < i || (m.i == i && m.n < n);
}

#endif
