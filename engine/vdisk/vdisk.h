/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisk: a bdev made of bdevs by a RAID policy. This header is what the rest
 * of the program sees of either layout:
 *
 *   in place  each block has its place; parity is brought along by reading
 *             what it depends on (read-modify-write)
 *   log       writes go to a mirrored log, later to full stripes elsewhere;
 *             compressed and checksummed (log/README.md)
 *
 * A vDisk is n slots on n fault domains, n >= max(k + m, 2m + 1). In place,
 * slots 0..width-1 are data members (k data + m parity, or k copies), the
 * others witnesses that hold a label alone; in the log layout all hold data.
 *
 * In place, labels stand on L = max(width, 2m+1) domains; an epoch is durable
 * once on m+1 of them, and the vDisk opens only with L-m of those that the
 * newest epoch names (m+1 where L is 2m+1): the two always meet, so a member
 * that was left behind can never be read again.
 *
 * A member that fails is closed at once (its slot's bdev is NULL when
 * changed() runs), so that its component may be opened again and given back.
 * One failure more than tolerated is not written down: the vDisk fails, and
 * may be whole again when opened anew.
 *
 * Threads: all calls on the reactor of its members.
 */
#ifndef ENGINE_VDISK_VDISK_H
#define ENGINE_VDISK_VDISK_H

#include "engine/bdev/bdev.h"

#define VDISK_MEMBERS_MAX 16
#define VDISK_LABEL_BYTES (1ull << 20) /* room before the data of a member */

enum raid_level { RAID_0 = 0, RAID_1 = 1, RAID_5 = 5, RAID_6 = 6 };
enum vdisk_layout { VDISK_INPLACE, VDISK_LOG };
enum vdisk_codec { VDISK_RAW, VDISK_LZ4, VDISK_ZSTD };

struct vdisk_policy {
	enum raid_level raid;
	uint8_t k, m; /* RAID-0: k stripes, m 0; RAID-1: k 1, m 1..3 (m+1
			 copies); RAID-5: 2+1 or 4+1; RAID-6: 4+2; in the
			 log layout any k up to k + m = 16 */
	uint32_t stripe_unit_bytes; /* 4 KiB to 1 MiB, power of two; log
				       layout: 128 KiB */
	uint8_t layout;             /* enum vdisk_layout */
	uint8_t codec;              /* enum vdisk_codec; in place: raw */
};

/*
 * Fills k of an otherwise set policy for a number of fault domains (RAID-5: 4
 * from six domains on, else 2), checks it and says what it needs.
 * domains_needed  out: max(k + m, 2m + 1)
 * Returns 0, or -EINVAL / -ENOSPC with the reason ("RAID-6 needs 6 fault
 * domains, there are 5").
 */
int vdisk_policy_fit(struct vdisk_policy *policy, unsigned domains,
		     unsigned *domains_needed, struct err *err);
/*
 * Bytes that the component of a slot takes, labels included, in a vDisk of this
 * size on so many slots. 0: there is no such vDisk.
 */
uint64_t vdisk_slot_bytes(const struct vdisk_policy *policy,
			  uint64_t size_bytes, unsigned slots, unsigned index);
/* Bytes of memory it takes when every block is written (log layout), beside
 * what any vDisk takes. */
uint64_t vdisk_memory_bytes(const struct vdisk_policy *policy,
			    uint64_t size_bytes, unsigned slots);
/* "RAID-5 4+1" */
void vdisk_policy_name(const struct vdisk_policy *policy, char *buf,
		       size_t len);
const char *vdisk_layout_name(unsigned layout); /* "inplace", "log" */
const char *vdisk_codec_name(unsigned codec);   /* "none", "lz4", "zstd" */

enum member_role { MEMBER_DATA, MEMBER_WITNESS };
enum member_state {
	MEMBER_OK,
	MEMBER_MISSING,    /* not there at open, or failed */
	MEMBER_STALE,      /* there, but of an older epoch: never read */
	MEMBER_REBUILDING, /* written, readable below the rebuild mark */
};
const char *member_state_name(enum member_state state);

enum vdisk_state {
	VDISK_HEALTHY,
	VDISK_DEGRADED,
	VDISK_REBUILDING,
	VDISK_MIGRATING,
	VDISK_FAILED, /* more members gone than the policy tolerates */
};
const char *vdisk_state_name(enum vdisk_state state);

struct vdisk_slot {
	struct bdev *bdev; /* in: the component, or NULL when it is not
			      there; the vDisk's to close from a successful
			      open on */
	char domain[32];   /* where it is: in for create, checked at open */
	char drive[32];
	char component[64];    /* its id on the drive */
	enum member_role role; /* out */
	enum member_state state;
};

/*
 * Figures of the log layout; all 0 in place. Bytes are counted since it was
 * opened. Write amplification is the sum of what was written to members by
 * cause over user_bytes.
 */
struct vdisk_log_info {
	uint64_t blocks_mapped; /* of 4 KiB: written, not discarded */
	uint64_t stored_bytes;  /* what these take, compressed */
	uint64_t space_bytes;   /* what segments can hold of such bytes */
	uint64_t buffer_bytes, buffer_max_bytes; /* in the log alone */
	double free_share;                       /* F: of slots for segments */
	double log_fill;                         /* of zone slots in use */
	double victim_live; /* u of segments cleaned lately */
	uint64_t user_bytes, user_stored_bytes; /* before, after compression */
	uint64_t zero_blocks; /* of users' writes: all zeros */
	uint64_t log_bytes, destage_bytes, bypass_bytes, clean_bytes,
		rebuild_bytes, checkpoint_bytes; /* written, by cause */
	uint64_t checkpoints, segments_cleaned;
	uint64_t reads_degraded, reads_repaired, reads_hedged;
	uint64_t blocks_lost; /* reads of them fail */
	uint64_t replayed;    /* records at the last opening */
	/* by the scrubber: passes, bytes read, what was wrong (stripes, blocks
	 * of metadata), what of it is mended, what is not to be had */
	uint64_t scrub_passes, scrub_bytes, scrub_found, scrub_repaired,
		scrub_lost;
	double scrub_progress; /* of the pass under way */
	double compliance;     /* share of stored bytes as the policy says */
};

struct vdisk_info {
	char name[64];
	uint8_t uuid[16];
	uint64_t size_bytes;
	struct vdisk_policy policy;
	uint64_t epoch;
	enum vdisk_state state;
	unsigned failures_left; /* members that may still go */
	unsigned slots;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	double progress;          /* 0..1 of a rebuild or migration */
	uint64_t rebuild_bytes_s; /* that less is left; 0 unknown */
	uint64_t rebuild_left_bytes;
	char reason[160]; /* why it is not healthy */
	/* Components a migration has left: closed, free to be deleted. */
	unsigned retired;
	struct vdisk_slot retired_slot[VDISK_MEMBERS_MAX];
	struct vdisk_log_info log;
};

/* Called on the reactor after each change of state, never from a call in. */
typedef void vdisk_changed_fn(struct bdev *vdisk, void *arg);

struct vdisk_spec {
	const char *cluster; /* identity checked at open */
	const char *name;
	uint64_t size_bytes;        /* create only; multiple of 4 KiB */
	struct vdisk_policy policy; /* create; open: its layout alone */
	uint32_t absent_ms; /* log layout: how long a silent member is waited
			       for before what it held is rewritten on the
			       others; 0: 60 s. In place its owner decides. */
	struct vdisk_slot *slot;
	unsigned slots;
	vdisk_changed_fn *changed;
	void *changed_arg;
};

/*
 * Writes labels of epoch 1 on all slots (all must be there), made durable.
 * New components read as zeros: members must be sparse or zeroed.
 * Asynchronous: done(result, err, arg) once, later.
 */
typedef void vdisk_done_fn(int result, const struct err *err,
			   struct bdev *vdisk, void *arg);
void vdisk_create(struct reactor *r, const struct vdisk_spec *spec,
		  vdisk_done_fn *done, void *arg);
/*
 * Reads labels, finds the quorum and the newest epoch, marks the stale,
 * advances the epoch without the missing when they are more than none, and
 * gives a bdev. The slots are matched to the newest label's members by
 * identity, so their order does not matter (up to 32: bring all components
 * that carry the vDisk's name, also of a migration's other set); components of
 * no use to it are closed, those of another cluster or vDisk refuse the whole
 * (-EINVAL). -ENOENT no label; -EAGAIN no quorum, says who is missing. On
 * failure the bdevs stay the caller's.
 *
 * After an unclean end the parity (or copies) of what was in flight may not
 * agree: all is resynced in the background while I/O goes on. A member lost
 * before that is done, or missing already at the crash, can take blocks of
 * partial-stripe writes in flight with it (the write hole; RAID-5 and 6).
 */
void vdisk_open(struct reactor *r, const struct vdisk_spec *spec,
		vdisk_done_fn *done, void *arg);
/* Closing is bdev_close(): takes I/O, rebuild and label writes to their end. */

void vdisk_info(struct bdev *vdisk, struct vdisk_info *info);

/*
 * Gives slot `index` (its member missing, stale or failed) a component to be
 * rebuilt into: the old one come back, or an empty one on another drive. A new
 * epoch names it as rebuilding, then the rebuild runs while I/O goes on; done
 * once it has begun. slot->bdev NULL: the stale component that stands there.
 * The bdev is the vDisk's from the call on; on failure it is closed.
 */
void vdisk_replace(struct bdev *vdisk, unsigned index,
		   const struct vdisk_slot *slot, vdisk_done_fn *done,
		   void *arg);
/* Takes a member out of service as if it had failed (for maintenance). */
int vdisk_member_fail(struct bdev *vdisk, unsigned index, struct err *err);
/* Most the rebuild may move; 0: no limit but foreground I/O's needs. */
void vdisk_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s);

/*
 * Policy change. It never changes the layout (-ENOTSUP).
 *
 * Log layout: new writes follow the new policy at once, what is older is
 * rewritten in the background; target->slot are empty components to be added
 * where the new policy needs more (slots may be 0), `done` once all follows it.
 *
 * In place, by migration: copies to a new set of slots under the new
 * policy, then labels are swapped so that at any moment exactly one set is the
 * vDisk. Resumable: the target's labels say how far it got, and opening finds
 * it. I/O through the vDisk goes on (writes go to both). `done` once the new
 * set is verified and the old one's components may be deleted (info.retired
 * lists them, also after a migration that went on by itself at an opening).
 * The target's bdevs are the vDisk's from the call on; when it comes to
 * nothing they are closed. -ECANCELED: the vDisk was closed; the copy goes on
 * when it is opened with the components of both sets.
 *
 * In the log layout nothing is copied: the same components take on the new
 * policy, the target's slots are those that come in beside them (none, if there
 * are enough), and nothing is retired. The layout stays as it is.
 */
void vdisk_migrate(struct bdev *vdisk, const struct vdisk_spec *target,
		   vdisk_done_fn *done, void *arg);

/*
 * Checks every stripe: recomputes parity, compares copies (log layout: and the
 * checksum of every block, and repairs). Reports through
 * done: result 0 and *mismatches (of stripes), on an idle vDisk.
 */
void vdisk_verify(struct bdev *vdisk, uint64_t *mismatches, vdisk_done_fn *done,
		  void *arg);

/*
 * What a label on a component says, without opening a vDisk: to find which
 * components belong together. -ENOENT: empty, as a new component is; -EBADMSG:
 * something stands there that cannot be read as a label.
 */
struct vdisk_label_facts {
	char cluster[64], name[64];
	uint8_t uuid[16];
	uint64_t epoch;
	struct vdisk_policy policy;
	uint64_t size_bytes;
	unsigned slots;
	/* the members as this label knows them; role and state filled */
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
};
int vdisk_label_probe(struct bdev *component, struct vdisk_label_facts *facts,
		      struct err *err); /* synchronous, turns the reactor */

#endif
