/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bytes that are written. A buffer is filled once, before measuring; then
 * each write only stamps eight bytes into each 512-byte sector, so no two
 * sectors of a job are ever alike and nothing can be deduplicated, at a cost
 * of a nanosecond a sector.
 *
 *   sector   | stamp 8 B | random bytes      | zeros              |
 *            |<-------- 512 / ratio -------->|
 *
 * Every sector compresses alike, so the ratio holds for whatever unit a target
 * compresses by, from 512 bytes up.
 */
#ifndef ENGINE_LOAD_CONTENT_H
#define ENGINE_LOAD_CONTENT_H

#include "engine/base.h"

#define CONTENT_SECTOR 512u
/* What a stamp in each sector still allows. */
#define CONTENT_RATIO_MAX 16.0

struct content {
	uint64_t key;
	uint64_t count;        /* sectors stamped so far */
	unsigned random_bytes; /* of each sector, stamp included */
};

/* ratio: 1.0 (not compressible) to CONTENT_RATIO_MAX */
void content_init(struct content *content, double ratio, uint64_t seed);
/* Once a buffer; `salt` tells the buffers of a job apart. */
void content_fill(const struct content *content, uint64_t salt, void *buf,
		  size_t len);
/* Before each write. buf: aligned to 8, filled by content_fill(). */
void content_stamp(struct content *content, void *buf, size_t len);

#endif
