/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A change under way, as change.c (the queue, members) and policy.c see it.
 */
#ifndef ENGINE_VDISK_LOG_CHANGE_H
#define ENGINE_VDISK_LOG_CHANGE_H

#include "engine/vdisk/log/frontread.h"
#include "engine/vdisk/log/impl.h"

enum change_step {
	CHANGE_QUEUED,
	CHANGE_READ,   /* its label is; made, if need be, in its turn */
	CHANGE_BUSY,   /* with I/O of its own */
	CHANGE_CONFIG, /* ready to be said in the next content */
	CHANGE_NAMED,  /* said; waits until a content with it is committed */
	CHANGE_WAIT,   /* for something else, before the next may begin */
	CHANGE_APART,  /* the same, and others may begin */
	CHANGE_LEAVING,
};

enum policy_phase {
	POLICY_ASKED,
	POLICY_SAY,
	POLICY_TAKE,
	POLICY_SETTLE,
	POLICY_GROUP,
	POLICY_ALONE,
	POLICY_GROUPED,
	POLICY_CONVERT,
	POLICY_LAST,
};

struct change_part { /* a component that comes in */
	unsigned index;
	struct vdisk_slot slot; /* its bdev: NULL once it is the vDisk's */
	struct fmt_seat seat;
	struct maker *maker;
};

struct change {
	struct change *next;
	struct vlog *v;
	enum change_step step;
	/* In the steps QUEUED, READ, CONFIG (no content is in work), NAMED (it
	 * is committed), WAIT and APART, when it is its turn. False: nothing
	 * was to be done; else it may be gone. */
	bool (*turn)(struct change *c);
	/* In QUEUED and READ, ahead of its turn; NULL: nothing to be done. */
	bool (*early)(struct change *c);
	vdisk_done_fn *done;
	void *arg;
	int result;
	struct err err;
	uint64_t config;
	uint64_t proof; /* a content after this one is to be committed first */
	struct timer timer;
	struct front_read *front;
	unsigned comps; /* of the vDisk, with the parts in */
	unsigned parts, making, closing;
	struct change_part part[FMT_COMPS_MAX];
	/* of a policy change */
	unsigned phase;
	struct vdisk_policy target;
	uint32_t slots[FMT_COMPS_MAX];
	uint64_t seg_since; /* segments with a lower id are older */
	uint32_t seg_at;    /* one that was left at the last look */
};

struct change *change_add(struct vlog *v, bool (*turn)(struct change *c),
			  vdisk_done_fn *done, void *arg);
/* It is in conf now. */
void change_named(struct change *c);
/* The others first. False: there are none that would go on. */
bool change_later(struct change *c);
/* One is about to be said, or it is not committed yet. */
bool change_saying(const struct vlog *v);
/* It is over: done() is called, c is gone. */
void change_end(struct change *c);
/* It is refused: closes what came with it first. */
void change_refuse(struct change *c, int result);
/* Makes all parts components; then CONFIG, or it is refused. */
int parts_make(struct change *c);
void part_usable(struct change *c, struct change_part *p);
/* A bdev that can be a component with so many slots. */
int part_check(const struct vlog *v, const struct bdev *bdev, uint32_t slots,
	       struct err *err);

#endif
