/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A label: who a component is, which set of members it belongs to, and what
 * is known of that set. One record of LABEL_BYTES in two places at the start
 * of each component, written alternately, so that a torn write never loses
 * the older one.
 *
 *   0                 LABEL_BYTES        2 x LABEL_BYTES   VDISK_LABEL_BYTES
 *   | record, copy 0 | record, copy 1  | not used ...     | data of the member
 *
 * Order of contents
 *   promised      highest claim an owner made here; decides nothing but which
 *                 claim the next owner takes
 *   (claim,epoch) the content: a later claim wins, within it a later epoch.
 *                 An owner's claim is unique (quorum.c says why), so two
 *                 different contents never have the same place in the order.
 */
#ifndef ENGINE_VDISK_LABEL_H
#define ENGINE_VDISK_LABEL_H

#include "engine/vdisk/vdisk.h"

#define LABEL_BYTES 8192u
#define LABEL_COPIES 2u

enum label_set_state {
	SET_ACTIVE,  /* this set is the vDisk */
	SET_COPYING, /* it is, and is being copied to the peer set */
	SET_TARGET,  /* being filled: the vDisk only once its source says moved
		      */
	SET_MOVED,   /* the peer set is the vDisk */
};

struct label_member {
	uint8_t uuid[16];
	char domain[32], drive[32], component[64];
	uint8_t role;       /* enum member_role */
	uint8_t state;      /* enum member_state: OK, MISSING, REBUILDING */
	uint64_t mark_rows; /* REBUILDING: rows below are readable */
};

struct label {
	char cluster[64], name[64];
	uint8_t vdisk[16], set[16], peer[16];
	struct vdisk_policy policy;
	uint64_t size_bytes;
	uint64_t promised;
	uint64_t claim, epoch;
	uint8_t set_state;    /* enum label_set_state */
	bool clean;           /* closed with nothing in flight */
	uint64_t resync_rows; /* not clean: rows below have sound parity */
	uint64_t copy_bytes;  /* COPYING and clean: copied so far */
	uint8_t slots, targets;
	struct label_member member[VDISK_MEMBERS_MAX];
	struct label_member target[VDISK_MEMBERS_MAX]; /* of the peer set */
	uint8_t self[16]; /* the member this component is */
	uint64_t serial;  /* of writes on this component */
};

void label_encode(const struct label *label, uint8_t record[LABEL_BYTES]);
/* -ENOENT not a label; -EBADMSG torn or damaged; -ENOTSUP newer version. */
int label_decode(const uint8_t record[LABEL_BYTES], struct label *label);
/* <0, 0, >0: order of contents. */
int label_compare(const struct label *a, const struct label *b);
/* Index of the member with this uuid, or -1. */
int label_member_find(const struct label *label, const uint8_t uuid[16]);

/*
 * Label I/O on one component. The reader fills label with the newest sound
 * copy; the writer writes the other copy, durable when done, and must follow
 * a read. What another owner left may not be durable: it is made so first, or
 * power lost during the write could take both. done() runs later, exactly
 * once for each call.
 */
struct label_io {
	struct io io;
	struct bdev *bdev;
	uint8_t *buf;       /* LABEL_COPIES records, aligned */
	struct label label; /* out of a read */
	bool found;         /* a sound label stands there */
	bool damaged;       /* none does, and it is not empty either */
	unsigned copy;      /* the newest */
	bool durable;       /* that one, for sure: we wrote it */
	unsigned writing;   /* the copy being written */
	int result;         /* 0 or a negative errno of the I/O */
	void (*done)(struct label_io *lio);
	void *arg;
	unsigned index; /* the submitter's own */
};

int label_io_init(struct label_io *lio, struct bdev *bdev);
void label_io_fini(struct label_io *lio, struct reactor *r);
void label_io_read(struct label_io *lio);
/* serial is set by the writer: after the newest. */
void label_io_write(struct label_io *lio, const struct label *label);

#endif
