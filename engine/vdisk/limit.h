/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a vDisk can do at most on drives of a known speed: the line to draw
 * beside what it does. Pure arithmetic, any thread, no state.
 *
 * The log-structured layout turns small writes into large ones, so it is
 * bound by bytes. W is the bytes that go to drives for a byte that users
 * write, and
 *
 *	limit IOPS = sum of the drives' write bandwidths / (4096 W)
 *
 * W comes from live counters (limit_counted(), over any stretch of time) or
 * from theory (limit_random(), limit_sequential()). The layout in place is
 * bound by device I/Os instead: limit_inplace_ios().
 *
 * Typical use, once a second, with the counters of struct vlog_info:
 *
 *	if (!limit_counted(&before, &now, &w))
 *		iops = limit_write_iops(&drives, &w, 4096);
 */
#ifndef ENGINE_VDISK_LIMIT_H
#define ENGINE_VDISK_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes since the vDisk was opened; they only grow. */
struct limit_counts {
	uint64_t user;       /* written by users */
	uint64_t log;        /* to drives: records, zone headers */
	uint64_t destage;    /* to drives: stripes of what the log held */
	uint64_t bypass;     /* to drives: stripes of large writes */
	uint64_t clean;      /* to drives: stripes of what was moved */
	uint64_t snap;       /* to drives: checkpoints, superblocks */
	uint64_t clean_read; /* from drives, by the cleaner */
};

/* Bytes to (clean_read: from) drives for a byte that users write. */
struct limit_bytes {
	double log, destage, bypass, clean, snap, clean_read;
};

/* 0; -EAGAIN: no user has written between the two, nothing can be said. */
int limit_counted(const struct limit_counts *from,
		  const struct limit_counts *to, struct limit_bytes *w);
/* W: all causes, reads not. */
double limit_written(const struct limit_bytes *w);

/* What theory needs to know. */
struct limit_layout {
	unsigned k, m;
	double stored;   /* c: share of a block that is stored, 0..1 */
	double group;    /* g: blocks a log record; 32 at depth, 1 at depth 1 */
	double cleaning; /* w: (user + moved) / user; 1: no cleaning */
	double log_share; /* R: the log's size as a share of the vDisk's */
};
/*
 * Random writes of a block (the summary at a stripe's end is s = 24 bytes a
 * block):
 *	log	(m + 1) (c + 1/g)
 *	destage	c (1 + s) (k + m) / k
 *	clean	(w - 1) c (1 + s) (k + m) / k, as much data is read: (w - 1) c
 *	snap	(m + 1) (12 / 4096) / R (c + 1/g)
 * Sequential ones of whole stripes: bypass c (1 + s) (k + m) / k.
 */
void limit_random(const struct limit_layout *l, struct limit_bytes *w);
void limit_sequential(const struct limit_layout *l, struct limit_bytes *w);

/* Sums over all drives of the vDisk; 0: no such limit. */
struct limit_drives {
	double write_bytes_s, write_iops; /* iops: of small I/Os */
	double read_bytes_s, read_iops;
	bool shared; /* reads and writes share a drive's time */
};

/* Writes of `bytes` a second in the log-structured layout; 0: no limit. */
double limit_write_iops(const struct limit_drives *d,
			const struct limit_bytes *w, uint32_t bytes);
/* Random reads: one device I/O of up to `bytes`, whatever the policy and the
 * layout. */
double limit_read_iops(const struct limit_drives *d, uint32_t bytes);

/* Device I/Os for a small random write in place, with the fewer reads of
 * read-modify-write and reconstruct-write. journal: each write goes to a ring
 * first. */
struct limit_ios {
	unsigned reads, writes;
};
struct limit_ios limit_inplace_ios(unsigned k, unsigned m, bool journal);
double limit_inplace_iops(const struct limit_drives *d, unsigned k, unsigned m,
			  bool journal, uint32_t bytes);

#endif
