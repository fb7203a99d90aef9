/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log-structured vDisk, seen from outside: a bdev made of bdevs. What is
 * written goes to a log mirrored on m + 1 members and is acknowledged once
 * durable there; later it moves, in full stripes of k + m, to segments.
 *
 * Kept apart from engine/vdisk/vdisk.h until the layout is whole; spec and
 * info have the same shapes.
 *
 * Contract on top of bdev.h: blocks of 4 KiB; every write is durable when
 * done, FUA or not; FLUSH and FUA cost nothing; TRIM reads as zeros; a write
 * of up to 256 KiB is atomic where it does not start in the middle of others.
 *
 * Threads: all calls on the reactor of the members.
 */
#ifndef ENGINE_VDISK_LOG_LOG_H
#define ENGINE_VDISK_LOG_LOG_H

#include "engine/vdisk/limit.h"
#include "engine/vdisk/vdisk.h"

/*
 * Sizes of the layout; 0: as said, for a vDisk of S bytes on n components. All
 * of it shrinks with a vDisk below 1 GiB, so that it is not what a component
 * is made of.
 *   R, the log  2 % of S, 128 MiB to 8 GiB, but S / 8 at most
 */
struct vlog_tune {
	uint32_t zone_bytes;   /* R / 64, 1 to 16 MiB */
	uint32_t zones;        /* per component: R (m + 1) / n / zone + 2 */
	uint32_t unit_bytes;   /* 128 KiB */
	uint32_t stripes;      /* of a segment: S / k / 64 / unit, a power of
				  two, 4 to 32 */
	uint32_t buffer_bytes; /* of undestaged blocks: R / 8, at most 64 MiB,
				  at least 4 stripes and 4 MiB */
	uint32_t slots;        /* per component, of unit x stripes:
				  1.25 S (k + m) / k / n, and 6 */
};

/* How background work goes about it; 0: as said. Not stored. */
struct vlog_pace {
	uint32_t absent_ms; /* silence before a rebuild; 60 s */
	/* users' p99 of writes: above high a rebuild is slowed down, below low
	 * it may be faster; 20 and 5 ms */
	uint32_t high_us, low_us;
	/* a slot that stays free for so long is given back to the drive; 10 s
	 */
	uint32_t punch_ms;
	uint32_t scrub_ms;      /* a pass takes; 30 days */
	uint64_t scrub_bytes_s; /* and reads at most; 32 MiB/s */
};

struct vlog_spec {
	const char *cluster, *name;
	uint64_t size_bytes;        /* create only */
	struct vdisk_policy policy; /* create only; k and m by policy_fit;
				       layout and stripe unit say nothing */
	struct vlog_tune tune;      /* create only */
	struct vlog_pace pace;
	struct vdisk_slot *slot; /* in distinct domains */
	unsigned slots;          /* max(k + m, 2m + 1) or more */
	vdisk_changed_fn *changed;
	void *changed_arg;
};

/* Bytes a component needs; 0 for a spec that cannot be. */
uint64_t vlog_member_bytes(const struct vlog_spec *spec);
/* Bytes of memory the vDisk takes when every block has been written. */
uint64_t vlog_memory_bytes(const struct vlog_spec *spec);

/*
 * Writes labels and an empty content on all slots, then opens. Refused
 * (-ENOMEM) when the machine has less memory than vlog_memory_bytes().
 * As vdisk_create(): done() once, later; the bdevs are the vDisk's from a
 * success on.
 */
struct vlog_opening; /* valid until done() runs */
struct vlog_opening *vlog_create(struct reactor *r,
				 const struct vlog_spec *spec,
				 vdisk_done_fn *done, void *arg);
/*
 * Recovers and ends the epoch before. Up to 32 components in any order, as
 * vdisk_open() wants them. -ENOENT no label; -EINVAL of another vDisk; -EAGAIN
 * fewer than n - m members, says who is missing; -EIO what was acknowledged is
 * beyond reach: says what.
 */
struct vlog_opening *vlog_open(struct reactor *r, const struct vlog_spec *spec,
			       vdisk_done_fn *done, void *arg);

/*
 * Gives member `index`, which is away, a component: its own come back, usable
 * as soon as its superblocks are read, with nothing to be resynced; or an empty
 * one, which is made a member (a content says so) and is used at once for what
 * is new, while what stood on the old one is rebuilt by cleaning. The old one
 * is of no use from then on.
 * slot  its place and bdev, which is the vDisk's from the call on
 * Several may be called for at once; they are done in order, but for its own,
 * which wait for no other change. done() on failure comes when the bdev is
 * closed: -EBUSY the member is in service; -EINVAL neither its own nor empty;
 * -ENOSPC too small; -ESTALE another owner claimed it, the vDisk stops.
 */
void vlog_replace(struct bdev *vdisk, unsigned index,
		  const struct vdisk_slot *slot, vdisk_done_fn *done,
		  void *arg);
/* The same, with a place that is not known. */
void vlog_member_return(struct bdev *vdisk, unsigned index, struct bdev *member,
			vdisk_done_fn *done, void *arg);
/*
 * Another policy (target's policy: level, k, m, codec) and, if its slots are
 * not none, more components, which are empty. What is written follows it as
 * soon as a content says so; what is in older segments is moved by the cleaner.
 * done() once all is as the policy says; meanwhile info.compliance grows, and
 * failures_left is what the least protected of it stands. All members must be
 * in service. Components are made longer where they can be, if it takes more
 * room.
 * -ENOSPC too few components, or too little room in them; -EINVAL no such
 * policy; -ENOTSUP another layout; -EAGAIN members are missing; -ECANCELED it
 * was closed: it goes on when it is opened.
 */
void vlog_policy_change(struct bdev *vdisk, const struct vdisk_spec *target,
			vdisk_done_fn *done, void *arg);
/* As if it had failed. */
int vlog_member_fail(struct bdev *vdisk, unsigned index, struct err *err);
/* Most a rebuild may write, users active or not; 0: as fast as users allow. */
void vlog_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s);
/*
 * A pass of the scrubber at once and at full speed: all blocks, parity, labels,
 * superblocks, snapshots and the log are read on all members, and what is wrong
 * is repaired. I/O may go on; what it writes meanwhile is not waited for.
 * mismatches  out: stripes and blocks of metadata that were wrong
 * done()  0, or -ECANCELED: closed before
 * Returns -EBUSY while one runs, -EIO when the vDisk is not in service.
 */
int vlog_verify(struct bdev *vdisk, uint64_t *mismatches, vdisk_done_fn *done,
		void *arg);
/* Starts one as soon as it can be; for tests and before maintenance. */
void vlog_checkpoint(struct bdev *vdisk);

struct vlog_info {
	char name[64];
	uint8_t uuid[16];
	uint64_t size_bytes;
	struct vdisk_policy policy;
	enum vdisk_state state;
	unsigned failures_left;
	unsigned slots;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	char reason[160];
	uint64_t epoch, lsn, lsn_snapshot;
	uint64_t blocks_mapped; /* written and not discarded */
	uint64_t live_bytes;    /* stored, in segments */
	uint64_t buffer_bytes;  /* stored, in the log alone */
	uint64_t linked_bytes;  /* of them, of blocks that were not written
				   anew since */
	uint64_t space_bytes;   /* what segments can hold under this policy */
	double free;            /* F: share of slots free */
	double log_fill;        /* share of zone slots in use */
	double victim_live;     /* u of recent victims */
	double compliance;      /* share of live bytes as the policy says */
	uint64_t segs, segs_exposed; /* of them with a member away */
	uint64_t segs_bare;          /* one more away loses data */
	/* Of what stands on lost members, or was repaired too often, or, while
	 * the policy changes, is not as it says: how much of it is rewritten,
	 * live bytes left, by how much less that is a second of late (0:
	 * unknown); and the bytes that were written for it in all. */
	double progress; /* 0..1; 1: nothing is to be done */
	uint64_t rebuild_bytes_s, rebuild_left_bytes, rebuild_bytes;
	/* bytes written: by users, and to members by cause */
	uint64_t user_bytes, log_bytes, destage_bytes, bypass_bytes,
		clean_bytes, snap_bytes;
	uint64_t clean_read_bytes;  /* from members, by the cleaner */
	uint64_t user_stored_bytes; /* after compression */
	uint64_t zero_blocks;       /* written by users: nothing is stored */
	uint64_t punched_bytes;     /* given back to drives */
	uint64_t checkpoints, cleaned_segs;
	uint64_t reads_degraded, reads_repaired;
	uint64_t reads_hedged, hedges_won; /* late; the others were first */
	uint64_t reads_failed; /* blocks, of what is lost just now */
	uint64_t blocks_lost;  /* marked as such: until they are written */
	uint64_t replayed;     /* records at the last open */
	/* by the scrubber: read, found wrong (stripes, blocks of metadata),
	 * written again (blocks, units), not to be had */
	uint64_t scrub_passes, scrub_segs, scrub_bytes;
	uint64_t scrub_found, scrub_repaired, scrub_lost;
	double scrub_progress; /* of this pass */
};
void vlog_info(struct bdev *vdisk, struct vlog_info *info);
/* The bytes of it, as engine/vdisk/limit.h takes them. */
void vlog_info_counts(const struct vlog_info *info, struct limit_counts *c);

/* ---- for tests and the simulator ----------------------------------- */

/*
 * Every invariant that can be seen from memory: live counts against the map,
 * slots against segments, buffers against the log. 0, or -EINVAL and which.
 */
int vlog_check(struct bdev *vdisk, struct err *err);
/*
 * The owner dies: frees all at once, closes nothing, calls nothing back. First
 * see to it that the members swallow what is submitted and never call back
 * what they hold, then turn the reactor until it runs no callback.
 */
void vlog_abandon(struct bdev *vdisk);
/* The same for one that is still opening. Takes NULL. */
void vlog_opening_abandon(struct vlog_opening *opening);

#endif
