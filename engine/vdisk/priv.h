/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inside of a vDisk. A set (vset) is a group of members under one policy with
 * its labels: normally the vDisk has one; during a migration it has two.
 *
 *   vdisk.c    front: a bdev; open and create; sends requests to its set(s)
 *   migrate.c  copies from one set to the next, swaps them
 *   vset.c     life of a set, state of its members, commits of new epochs
 *   quorum.c   reading, claiming and committing labels over a set
 *   op.c       an operation on one rectangle of one row: pools, pump
 *   lock.c     their locks
 *   read.c     healthy, degraded, repairing reads
 *   write.c    full rows, read-modify-write, reconstruct-write, copies
 *   walk.c     rows one after another: rebuild, resync, verify
 *
 * Geometry: a row is k data and m parity chunks of one unit each, on k + m
 * members at the same offset. Chunk numbers are logical: 0..k-1 data, k..
 * parity (or, with k = 1, all copies); geo_member() rotates them.
 */
#ifndef ENGINE_VDISK_PRIV_H
#define ENGINE_VDISK_PRIV_H

#include "engine/vdisk/ec.h"
#include "engine/vdisk/label.h"
#include "engine/vdisk/layout.h"
#include "engine/vdisk/vdisk.h"

/* ---- policy.c ------------------------------------------------------------ */
int vdisk_policy_check(const struct vdisk_policy *policy, struct err *err);
unsigned vdisk_policy_slots(const struct vdisk_policy *policy);
uint32_t vdisk_policy_unit(const struct vdisk_policy *policy);
/* What a data member holds, label included. */
uint64_t inplace_member_bytes(const struct vdisk_policy *policy,
			      uint64_t size_bytes);

/* ---- requests and operations -------------------------------------------- */

struct vset;
struct op;

/* What the front (or a copier) asks of a set. */
struct req {
	uint8_t op; /* READ, WRITE, FLUSH */
	uint8_t flags;
	uint32_t len;
	uint64_t off;
	uint8_t *buf;
	void (*done)(struct req *req);
	void *arg;
	int result; /* out */

	/* private to the set */
	struct vset *vs;
	struct req *next, *wait_next;
	uint64_t cursor;  /* next byte to make an operation of */
	uint64_t cfg_gen; /* wait for this to be durable before the ack */
	unsigned ops;     /* operations in flight, and 1 while splitting */
};

struct mio { /* one I/O of an operation on one member */
	struct io io;
	struct op *op;
	struct bdev *bdev; /* who it went to: the slot may change hands */
	uint8_t chunk;
	uint8_t member;
	bool flush; /* once written */
};

enum op_lock { OP_UNLOCKED, OP_WAITING, OP_LOCKED };

struct op {
	struct vset *vs;
	struct req *req; /* NULL: a walk's */
	struct op *next; /* in one of: free list, run queue, waiters */
	void (*step)(struct op *op);

	uint64_t row;
	uint32_t lo, len;       /* rectangle: bytes within each chunk */
	uint8_t chunk0, chunks; /* data chunks of the user's */
	enum op_lock lock;
	bool exclusive;
	struct op *lock_prev, *lock_next;

	unsigned bad;  /* chunks that could not be read in this op */
	unsigned mask; /* of the phase */
	uint8_t mode;
	uint16_t pending;
	int result;
	uint8_t *scratch; /* one stride a chunk, and one more */
	bool scratch_big;
	void (*finished)(struct op *op); /* a walk's */
	uint32_t differs;                /* verify */
	struct mio mio[];                /* by chunk */
};

struct op_queue {
	struct op *first, **last;
};

/* ---- sets ---------------------------------------------------------------- */

#define OPS_MAX 512
#define OPS_ROW_MAX VDISK_MEMBERS_MAX /* of one row of a request */
#define OPS_WALK 64                   /* kept for walks */
#define LOCK_BUCKETS 1024
#define SCRATCH_SMALL 16384u
#define SCRATCH_BYTES_MAX (32u << 20) /* of each class */

struct member {
	struct bdev *bdev;       /* NULL: not there */
	enum member_state state; /* STALE: there, never read */
	uint64_t mark_rows;
	uint64_t mark_saved;  /* flushed: may stand in a label */
	unsigned incarnation; /* of the slot: counts who stood there */
	bool labelled;        /* has a label of ours: votes */
	unsigned reads;       /* in flight: where to read a copy */
};

struct scratch_pool {
	uint8_t *free;
	size_t bytes; /* of a piece */
	uint32_t stride;
	unsigned made, max;
	struct op_queue waiters;
};

enum walk_kind { WALK_NONE, WALK_REBUILD, WALK_RESYNC, WALK_VERIFY };

struct walk {
	enum walk_kind kind;
	unsigned member; /* rebuild */
	unsigned incarnation;
	uint64_t row; /* next */
	unsigned batch, running;
	struct op *held; /* finished, still locked */
	bool stop, paused;
	uint64_t started_ns;
	uint64_t persist_row;
	uint64_t mismatches;
	int result;
	struct timer timer;
	struct req flush;
	void (*done)(struct vset *vs, int result);
	/* speed */
	uint64_t speed_ns, speed_bytes, bytes_s;
};

struct vset {
	struct reactor *reactor;
	struct label label; /* last durable content */
	struct member member[VDISK_MEMBERS_MAX];
	unsigned slots, width, k, m;
	uint32_t unit;
	uint64_t rows;
	struct ec *ec;
	struct bdev_limits limits; /* of what is there */

	/* operations */
	uint8_t *op_slab; /* OPS_MAX of them, touched as needed */
	size_t op_bytes;
	struct op *ops_free;
	unsigned ops_made, ops_busy;
	struct op_queue run;
	struct req *req_wait, **req_wait_last; /* for operations */
	struct req *req_done, **req_done_last; /* to be told */
	struct req *req_parked;                /* for a commit */
	bool opening; /* the members' bdevs are still the opener's */
	unsigned reqs;
	bool pumping, telling;
	unsigned in_call;
	struct task task;
	bool task_posted;
	struct op **lock_bucket;
	struct scratch_pool small, big;
	unsigned copy_turn;

	/* labels */
	struct label_io lio[VDISK_MEMBERS_MAX];
	struct label next_label; /* being committed */
	unsigned lio_pending, lio_mask, lio_ok;
	bool lio_fenced;
	void (*lio_done)(struct vset *vs);
	void (*opened)(struct vset *vs, int result);
	int lio_mode;
	uint64_t claim;
	uint64_t cfg_gen; /* of the state in memory */
	uint64_t cfg_running, cfg_durable;
	uint64_t ack_gen; /* writes wait for this to be durable */
	bool committing;
	uint8_t want_state; /* enum label_set_state to commit */
	uint8_t want_peer[16];
	unsigned want_targets;
	struct label_member want_target[VDISK_MEMBERS_MAX];
	uint64_t want_copy_bytes;
	bool want_clean;
	struct label_member want_member[VDISK_MEMBERS_MAX]; /* identities */
	bool failed;
	char reason[160];
	uint64_t resync_rows; /* rows below have sound parity */

	struct walk walk;
	uint64_t rebuild_limit;
	unsigned bdevs_closing;
	bool closing, close_clean;
	int close_phase;
	void (*closed)(struct vset *vs, void *arg);
	void *closed_arg;

	/* told to the owner, from the reactor, never from a call in */
	void (*changed)(struct vset *vs);
	void (*committed)(
		struct vset *vs); /* a commit ended (look at failed) */
	void *owner;
};

static inline unsigned geo_member(const struct vset *vs, uint64_t row,
				  unsigned chunk)
{
	unsigned base;

	if (!vs->m || vs->k == 1)
		return chunk;
	/* Left-symmetric: parity walks down, data follows it around. */
	base = vs->width - 1 - (unsigned)(row % vs->width);
	if (chunk >= vs->k)
		return (base + chunk - vs->k) % vs->width;
	return (base + vs->m + chunk) % vs->width;
}

static inline unsigned geo_chunk(const struct vset *vs, uint64_t row,
				 unsigned member)
{
	for (unsigned c = 0; c < vs->width; c++)
		if (geo_member(vs, row, c) == member)
			return c;
	id_assert(!"member of no chunk");
	return 0;
}

/* ---- vset.c -------------------------------------------------------------- */
/* Takes label and members over; nothing is written yet. */
int vset_new(struct reactor *r, const struct label *label,
	     struct bdev *const *bdev, struct vset **vs, struct err *err);
void vset_free(struct vset *vs);
/* Takes everything to its end, closes the bdevs; closed() later. The set is
 * the caller's to free then. clean: says so in the labels. */
void vset_close(struct vset *vs, bool clean,
		void (*closed)(struct vset *vs, void *arg), void *arg);
/* A component that is none of its members: it is gone before the set is. */
void vset_bdev_close(struct vset *vs, struct bdev *bdev);
void vset_member_failed(struct vset *vs, unsigned index, int why);
void vset_dirty(struct vset *vs); /* what is in memory is to be committed */
void vset_fail(struct vset *vs, const char *reason);
unsigned vset_failures_left(const struct vset *vs);
unsigned vset_data_gone(const struct vset *vs);
void vset_slot_fill(const struct vset *vs, unsigned i, struct vdisk_slot *slot);
/* Not while a commit runs. bdev NULL: the component that stands there. */
int vset_adopt(struct vset *vs, unsigned index, struct bdev *bdev,
	       const struct label_member *identity);
int vset_member_check(const struct vset *vs, const struct bdev *bdev,
		      unsigned index, struct err *err);
void vset_close_step(struct vset *vs);
void vset_background(struct vset *vs); /* starts what is due */

/* ---- quorum.c ------------------------------------------------------------ */
enum { LIO_CLAIM, LIO_CONTENT };
/* Writes labels on the members of mask; done() runs with lio_ok set. */
void quorum_write(struct vset *vs, unsigned mask, int mode,
		  void (*done)(struct vset *vs));
/* Claims and commits a first epoch; done(vs, result). */
void quorum_open(struct vset *vs, void (*done)(struct vset *vs, int result));
void quorum_commit(struct vset *vs); /* if there is something to */
unsigned quorum_write_need(const struct vset *vs); /* m + 1 */
unsigned quorum_read_need(const struct label *label);

/* ---- op.c ---------------------------------------------------------------- */
int op_pools_init(struct vset *vs);
void op_pools_fini(struct vset *vs);
/* Returns 0 or an error; on 0 req->done runs later, exactly once. */
int vset_submit(struct vset *vs, struct req *req);
struct op *op_get(struct vset *vs);
void op_put(struct op *op);
void op_run(struct op *op, void (*step)(struct op *op)); /* queue a step */
/* true: op->scratch is there; false: step runs once it is. */
bool op_scratch(struct op *op, void (*step)(struct op *op));
uint8_t *op_chunk(const struct op *op, unsigned chunk); /* scratch */
uint8_t *op_user(const struct op *op, unsigned chunk);
/* Starts the I/Os of mask from or to buf(op, chunk), then runs step. */
void op_io(struct op *op, enum bdev_op what, unsigned mask,
	   uint8_t *(*buf)(const struct op *op, unsigned chunk),
	   void (*step)(struct op *op));
void op_finish(struct op *op, int result);
unsigned op_readable(const struct op *op); /* mask of chunks */
unsigned op_writable(const struct op *op);
/* k readable chunks, data first, of what is not in avoid; 0: too few. */
unsigned op_sources(const struct op *op, unsigned avoid);
/* Who took the slot of a member that failed meanwhile has not been tried. */
void op_bad_renew(struct op *op);
void vset_pump(struct vset *vs);
void req_release(struct req *req);    /* one operation of it ended */
void req_unpark(struct vset *vs);     /* after a commit or a failure */
void vset_task_post(struct vset *vs); /* pump and close_step, later */

/* ---- lock.c -------------------------------------------------------------- */
void op_lock(struct op *op, bool exclusive, void (*step)(struct op *op));
void op_unlock(struct op *op);

/* ---- read.c, write.c, walk.c --------------------------------------------- */
void read_step(struct op *op);
void write_step(struct op *op);
void walk_start(struct vset *vs, enum walk_kind kind, unsigned member,
		uint64_t row, void (*done)(struct vset *vs, int result));
void walk_stop(struct vset *vs); /* done() runs later, -ECANCELED */
bool walk_idle(const struct vset *vs);
/* The member being rebuilt, NULL once it failed or another took its slot. */
struct member *walk_target(struct vset *vs);

#endif
