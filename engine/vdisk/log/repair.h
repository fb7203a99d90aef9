/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is away, late or wrong: blocks from the others (fetch.c), segments
 * rewritten (resync.c), all of it looked at in time (scrub.c). A part of
 * impl.h, which includes it.
 */
#ifndef ENGINE_VDISK_LOG_REPAIR_H
#define ENGINE_VDISK_LOG_REPAIR_H

#include "engine/vdisk/log/log.h"

struct vlog;
struct seg;

/* ---- from the others (fetch.c) ------------------------------------- */

/*
 * One block from the other units of its stripe: its own is away, late, failed
 * to read, or is not what the map's crc says. The segment is pinned by the
 * caller.
 */
struct fetch {
	uint64_t lba, loc;
	uint32_t crc;
	bool bad;  /* its unit was read and is wrong, or failed: repair it */
	bool late; /* its unit is only slow: the others first */
	uint8_t *stored;                           /* out: its bytes */
	bool partial;                              /* out, with -EIO */
	void (*done)(struct fetch *f, int result); /* -EIO: lost; partial:
						      not all were read */
	struct fetch *next;
	struct vlog *v;
};
int fetches_init(struct vlog *v);
void fetches_fini(struct vlog *v);
bool fetches_step(struct vlog *v);
bool fetches_idle(const struct vlog *v);
void fetch_submit(struct vlog *v, struct fetch *f);
/* The enclosing range within its unit that members can read, and where in it
 * the stored bytes begin. */
void loc_range(const struct vlog *v, uint64_t loc, uint64_t *off, uint32_t *len,
	       uint32_t *skip);
/* Stored bytes against the crc of the map. */
bool block_fits(const struct vlog *v, uint64_t lba, uint64_t loc, uint32_t crc,
		const uint8_t *stored);

/*
 * Watches a read: late() runs once if it takes longer than four times the p99
 * of the other members.
 */
struct hedge {
	struct hedge *next, *prev; /* oldest first */
	struct vlog *v;
	void (*late)(struct hedge *h);
	uint64_t start_ns;
	uint8_t member;
	bool watched;
};
void hedge_begin(struct vlog *v, struct hedge *h, unsigned member,
		 void (*late)(struct hedge *h));
void hedge_end(struct vlog *v, struct hedge *h);
/* A small read took so long. */
void member_read_took(struct vlog *v, unsigned member, uint64_t ns);
/* Now and then: read where it looks slow, it may have become better. */
bool member_probe(struct vlog *v);
/* How long a read there would take; of use to compare. */
uint64_t member_load(const struct vlog *v, unsigned member);

/* ---- redundancy (resync.c) ----------------------------------------- */

/* Why a segment is cleaned; what is higher comes first. */
enum clean_why {
	WHY_NONE,
	WHY_SPACE,
	WHY_ROOM,    /* for those below, which have none */
	WHY_POLICY,  /* another k; only while there is room */
	WHY_BAD,     /* repaired too often */
	WHY_LOST,    /* a member is lost, others may still go */
	WHY_EXPOSED, /* and none may go any more */
};

int resync_init(struct vlog *v);
void resync_fini(struct vlog *v);
/* Never WHY_SPACE: that depends on the others. */
enum clean_why resync_why(const struct vlog *v, const struct seg *s);
/* It is away and its segments are to be rewritten without it. */
bool resync_gone(const struct vlog *v, unsigned member);
/* The budget has room for more: so many bytes are promised, until they are
 * settled. If not, the pump is kicked when it has. */
bool resync_may(struct vlog *v, enum clean_why why, uint64_t bytes);
void resync_settle(struct vlog *v, uint64_t bytes);
/* Granules packed for it into a stripe of k + m. */
void resync_moved(struct vlog *v, unsigned grans, unsigned k);
/* A member is there again: what was held for it is tried once more. */
void resync_member_back(struct vlog *v);
/* Something has happened that may give segments a reason. */
void resync_look(struct vlog *v);
/* False: a scan found nothing and nothing has happened since. */
bool resync_wanted(const struct vlog *v);
struct resync_scan {
	enum clean_why best; /* what is moved next */
	bool rebuild;        /* a segment has lost what can be rewritten */
	bool more;           /* others: on their way, or there is no room now */
	bool starved;        /* there is none for anything that has a reason */
};
void resync_scanned(struct vlog *v, const struct resync_scan *seen);
/* There is another policy than a moment ago. */
void resync_policy_taken(struct vlog *v);
/* Nothing moves for want of room. */
bool resync_starved(const struct vlog *v);
/* Until the first silent member is given up; 0: there is none. */
uint64_t resync_wait_ns(const struct vlog *v);
void resync_user_io(struct vlog *v);
void resync_user_write(struct vlog *v, uint64_t latency_ns);
/* True: what was lost is being rewritten. */
bool resync_info(const struct vlog *v, struct vlog_info *info);

/* ---- scrub (scrub.c) ----------------------------------------------- */

int scrub_init(struct vlog *v);
void scrub_fini(struct vlog *v);
bool scrub_step(struct vlog *v);
void scrub_member_lost(struct vlog *v, unsigned member);
bool scrub_idle(const struct vlog *v);
double scrub_progress(const struct vlog *v);

#endif
