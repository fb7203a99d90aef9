/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A recovery under way, as recover.c (superblocks, snapshot, the whole) and
 * recover_log.c (zones, records, replay) see it. Each step runs when the I/O
 * of the one before is over.
 */
#ifndef ENGINE_VDISK_LOG_RECOVER_H
#define ENGINE_VDISK_LOG_RECOVER_H

#include "engine/vdisk/log/impl.h"

#define READERS 8               /* reads at a time */
#define WINDOW_MAX (512u << 10) /* of the log at a time */
/* Before a window stands what the one before it left: less than a record. */
#define CARRY FMT_RECORD_MAX

enum recover_phase { LEARN, CLAIM, SNAP, HEADERS, SCAN, REPLAY, COMMIT, OVER };

struct found_zone {
	struct fmt_zone h;
	/* Up to there one record follows the other, on copies looked at: the
	 * others are read from there on, or from where it was when their turn
	 * began. */
	uint64_t whole, from;
};

struct found_rec {
	uint32_t zone; /* index + 1; 0: none */
	uint32_t pos_blocks, len;
};

struct reader {
	struct batch batch;
	struct lbuf *buf;
	unsigned member;
	uint64_t off;
	uint32_t buf_off, len;
	bool ahead; /* not asked for yet */
};

#define LANES 4  /* zones read at a time: they stand on different members */
struct scan_at { /* copy by copy; of LANES zones each window by window */
	uint32_t copy, group, step, lane;
};

struct recovery {
	enum recover_phase phase;
	struct reader reader[READERS], *now; /* what was asked for last */
	void (*done)(struct vlog *v, int result, const struct err *err);
	struct err err;
	bool waiting; /* for it */

	uint32_t tried; /* members whose snapshot is not intact */
	unsigned source;
	struct fmt_content content;
	uint32_t pieces, piece;
	uint32_t piece_len; /* that is read of it; 0: FMT_PIECE */
	uint32_t snap_crc;
	bool snap_over;
	bool refused; /* what is damaged may have been acknowledged */

	unsigned member;
	uint32_t slot;
	struct found_zone *zone;
	uint32_t zones, zones_room;
	struct scan_at at;
	uint32_t window, window_len;
	bool by_block; /* the window could not be read in one */
	bool some_failed, retried;
	bool probing; /* whether the member is still there */
	uint32_t block;
	uint32_t carry[LANES];
	uint8_t *tail[LANES];
	struct found_rec *rec;
	uint64_t recs_room;
	uint64_t claimed_durable, claimed_at;
	uint64_t lsn, end; /* replay: next; the first not there */
	uint32_t copy_tried;
	unsigned restarts;
};

void recover_fail(struct vlog *v, int code);
/* As many members as it takes to know all that was acknowledged; if not, it
 * has failed. None comes back while it lasts, so they were there all the time.
 */
bool recover_enough(struct vlog *v);
/* From the start, without those lost since; false: too few, or too often. */
bool recover_again(struct vlog *v);
void recover_headers_step(struct vlog *v);
void recover_scan_step(struct vlog *v);
void recover_replay_step(struct vlog *v);

/* recover_read.c */
int recover_readers_init(struct vlog *v);
void recover_readers_free(struct recovery *rv);
bool recover_readers_idle(const struct recovery *rv);
/* To buf_off of the buffer, rv->now's; what else is in it stays if it can. */
void recover_read(struct vlog *v, unsigned member, uint64_t off,
		  uint32_t buf_off, uint32_t len);
/* It will be asked for, just so. False: no more at a time. */
bool recover_ahead(struct vlog *v, unsigned member, uint64_t off,
		   uint32_t buf_off, uint32_t len);
void recover_ahead_drop(struct recovery *rv);

#endif
