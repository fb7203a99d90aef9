/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A pass of the scrubber, as scrub.c (the whole), scrub_seg.c (a stripe) and
 * scrub_meta.c (labels, superblocks, the snapshot, the log) see it. One I/O
 * batch at a time; each step runs when the one before is over.
 */
#ifndef ENGINE_VDISK_LOG_SCRUB_H
#define ENGINE_VDISK_LOG_SCRUB_H

#include "engine/vdisk/log/impl.h"

enum scrub_phase {
	SCRUB_IDLE,
	SCRUB_SEG,    /* the next stripe, or the next segment */
	SCRUB_READ,   /* all units of a stripe */
	SCRUB_BLOCKS, /* each against its crc */
	SCRUB_FETCH,  /* one, from the others, with repair */
	SCRUB_WRITE,  /* units that were wrong */
	SCRUB_CHECK,  /* and back */
	SCRUB_FRONT,  /* label A, superblocks, label B of a member */
	SCRUB_SNAP,   /* a piece of a member's snapshot */
	SCRUB_ZONE,   /* a record of a zone's copy */
	SCRUB_OVER,
};

struct scrub {
	struct vlog *v;
	enum scrub_phase phase;
	struct timer timer;
	struct batch batch;
	bool waiting; /* for batch */
	uint64_t passes;

	/* on demand */
	bool verify, again; /* again: from the start, once it can be */
	uint64_t *mismatches, found_was;
	vdisk_done_fn *done;
	void *arg;
	struct err err;

	/* segments, oldest first */
	struct bufpool units;
	uint64_t after_id; /* ids above are to come */
	uint64_t segs, segs_done;
	uint32_t seg;
	unsigned stripe;
	uint32_t todo; /* bits of stripes */
	struct lbuf *buf[FMT_COMPS_MAX], *extra[FMT_COMPS_MAX];
	/* bits of units: asked for and not lost since; read; to be written */
	uint32_t asked, have, write;
	bool wrong; /* the stripe is counted as such */
	bool lost;  /* something in it cannot be had */
	struct fmt_sum_entry *entry;
	unsigned entries, at;
	struct fetch fetch;
	uint8_t stored[FMT_BLOCK];
	int fetched;
	bool fetched_over;

	/* metadata */
	uint64_t mended_by; /* the checkpoint that mends what was found */
	struct bufpool windows;
	struct lbuf *window;
	struct {
		unsigned member;
		uint64_t off;
		uint32_t most; /* to be read of it */
		unsigned tries;
	} place; /* of what is in the window */
	unsigned member, copy;
	uint64_t serial; /* of its superblock, as it was read */
	unsigned rounds; /* of superblocks: until they are sound */
	uint32_t sound;  /* bits of the front's blocks that could be read */
	bool mending;    /* a checkpoint is to write them */
	struct fmt_content content;
	uint32_t piece, crc;
	uint64_t zseq, pos;
	uint64_t lsn, last_lsn; /* of the record before; that must be there */
};

/* All units of sc->stripe; false: no buffers now. */
bool scrub_stripe_read(struct vlog *v);
bool scrub_stripe_step(struct vlog *v);
void scrub_bufs_put(struct scrub *sc);
bool scrub_meta_step(struct vlog *v);
void scrub_meta_begin(struct vlog *v);
/* A block, or stripe, that was not as it should be. */
void scrub_wrong(struct vlog *v);

#endif
