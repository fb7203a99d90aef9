/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inside of the log-structured vDisk: one single-threaded state machine. All
 * that lasts longer than a callback is a small machine whose step function
 * looks at the state, does what can be done and says whether it moved;
 * pump.c runs the steps until none moves. Completions only take notes and
 * kick the pump, so no step ever runs inside another.
 *
 *    users ---> write.c ---> record group ---> log.c ---> zones on m+1 members
 *      |            \---> stripe.c (bypass)      |
 *      |                    |  ^  ^              v  durable, in LSN order
 *      |                    |  |  |           apply.c --> map.c, seg.c
 *      |                    |  |  destage.c <---- undestaged blocks (buffer)
 *      |                    |  clean.c <--------- victims
 *      |                    v
 *      |                units durable --> COMMIT record --> log.c
 *      \---> read.c: buffer, or a unit, or k others of its stripe
 *
 *    meta.c  superblocks: learn, claim, commit     snap.c  what a content is
 *    recover.c  from the drives back to this state
 *
 * Rules that must not be broken (the numbers are those of the design)
 *   1  acks and applies in LSN order, once durable on all m+1 members
 *   2  a COMMIT is appended after all units of its stripe are durable
 *   3  a move is applied only if the map still holds what was copied
 *   4  a SEAL is appended after the last COMMIT of its segment
 *   5  zone slots are free only once a content with a later log_zone is
 *      committed on m+1 members of the metadata group
 *   6  a member's own newest superblock says which of its areas may go
 *   7  nothing is written on a member whose superblocks were not read since it
 *      was last lost; a failed superblock write is unknown, and so is one
 *      that cannot be read: such a member is written like a new one, once a
 *      content of this owner is committed on others
 *   8  until recovery has committed its content it has written `promised`
 *      fields and inactive areas alone
 *   9  slots are given back once no read or write on them is outstanding
 */
#ifndef ENGINE_VDISK_LOG_IMPL_H
#define ENGINE_VDISK_LOG_IMPL_H

#include "engine/vdisk/ec.h"
#include "engine/vdisk/layout.h"
#include "engine/vdisk/log/codec.h"
#include "engine/vdisk/log/format.h"
#include "engine/vdisk/log/log.h"
#include "engine/vdisk/log/member.h"
#include "engine/vdisk/log/mut.h"
#include "engine/vdisk/log/punch.h"
#include "engine/vdisk/log/slab.h"

#define RECS 40          /* records known; users may hold all but */
#define RECS_RESERVED 24 /* of them for COMMIT and SEAL */
#define RECS_INFLIGHT 4  /* of users, at least */
#define LANES_MAX 12
#define STRIPES 64     /* in work at a time */
#define STRIPE_BUFS 16 /* of them with their bytes still in memory, */
#define UNITS_MIN 64   /* and more where they are narrow */
#define SEG_LANES 4    /* open segments of a stream at most */
#define PIECES 4       /* of a checkpoint in flight */
#define REQS 1024
#define COW_LEAVES_MIN 4096u /* more than one record can change */

struct vlog;

/* ---- map and undestaged blocks (map.c) ----------------------------- */

struct leaf {
	uint64_t loc[FMT_LEAF];
	uint32_t crc[FMT_LEAF];
	uint32_t used, pad;
};

#define GRAN_NONE UINT32_MAX

struct block { /* undestaged: its bytes are in the buffer */
	uint64_t lba, loc;
	struct block *next, *prev; /* by age */
	struct block *hash_next;
	uint32_t crc;
	uint32_t gran[FMT_BLOCK_GRANS];
	uint16_t refs; /* map or record, snapshot, stripe */
	uint8_t grans, codec;
	bool linked; /* the map points to it */
	bool moving; /* in a stripe that is not committed yet */
};

struct map {
	struct leaf **leaf;
	struct leaf **cow; /* as at the checkpoint; LEAF_NONE: was not there */
	uint64_t leaves;
	bool cow_all; /* every leaf may be copied at once */
	struct slab leaf_slab, block_slab;
	uint64_t mapped; /* blocks with a loc */
	uint64_t bad;    /* of them: lost */
	uint8_t *gran_mem;
	uint32_t *gran_free;
	uint32_t grans, grans_left;
	struct block **hash;
	uint32_t hash_mask;
	struct block *oldest, *newest;
	uint64_t linked_grans, moving_grans;
};
#define LEAF_NONE ((struct leaf *)-1)

int map_init(struct vlog *v);
void map_fini(struct vlog *v);
uint64_t map_loc(const struct vlog *v, uint64_t lba, uint32_t *crc);
/* It will be asked for, or set, soon. Any address. */
void map_prefetch(const struct vlog *v, uint64_t lba);
/* Sets it, brings live counts along; the old location's bytes are dead. */
void map_set(struct vlog *v, uint64_t lba, uint64_t loc, uint32_t crc);
/* True: that many changes of leaves cannot run out of leaves to copy to. */
bool map_room(const struct vlog *v, uint64_t changes);
struct leaf *map_snapshot_leaf(const struct vlog *v, uint64_t index);
void map_snapshot_leaf_done(struct vlog *v, uint64_t index);
struct block *block_find(const struct vlog *v, uint64_t loc);
/* A block with grans granules of the buffer; NULL: no room. */
struct block *block_get(struct vlog *v, unsigned grans);
void block_put(struct vlog *v, struct block *b);
void block_fill(struct vlog *v, struct block *b, const uint8_t *stored);
void block_copy(const struct vlog *v, const struct block *b, uint8_t *stored);
/* Its bytes in one piece: where they lie, or in room (FMT_BLOCK bytes). */
uint8_t *block_stored(const struct vlog *v, const struct block *b,
		      uint8_t *room);
void block_prefetch(const struct vlog *v, const struct block *b);
void block_link(struct vlog *v, struct block *b); /* lba, loc, crc are set */

/* ---- segments (seg.c) ---------------------------------------------- */

enum seg_state { SEG_FREE, SEG_OPEN, SEG_CLOSED, SEG_SEALED };
enum stream { STREAM_HOT, STREAM_COLD, STREAM_BYPASS, STREAMS };

struct seg {
	uint64_t id, lsn; /* lsn: of its newest COMMIT */
	uint32_t live;    /* granules the map points to */
	uint32_t slot[FMT_COMPS_MAX];
	uint8_t comp[FMT_COMPS_MAX];
	uint8_t k, m, state;
	bool committed; /* at least one COMMIT is applied */
	/* of this run alone */
	bool sealing;
	uint32_t stripes; /* bits of those committed */
	bool held;        /* a block of it waits for a member to come back */
	bool cleaning;
	uint8_t next, out, commits; /* stripes begun, in work, appended */
	uint8_t bad;                /* reads that had to be repaired */
	uint16_t pins;              /* readers, cleaner, moves from it */
	uint16_t moves;             /* from it, not yet committed */
};

int segs_init(struct vlog *v);
void segs_fini(struct vlog *v);
/* Of the next one: never that of another, whatever became of it. */
uint64_t seg_id_next(const struct vlog *v);
/* Next stripe of the stream's open segment, which may be a new one; -1: no
 * space. The caller ends it by seg_stripe_end(). */
int seg_stripe_begin(struct vlog *v, enum stream stream, uint32_t *seg,
		     unsigned *stripe);
void seg_stripe_end(struct vlog *v, uint32_t seg, bool committed);
void seg_stripe_cancel(struct vlog *v, uint32_t seg, unsigned stripe);
void seg_member_lost(struct vlog *v, unsigned member);
/* If it is open: it gets no more stripes, and is sealed once it has none out.
 */
void seg_close(struct vlog *v, uint32_t seg);
/* What is open gets no more stripes: the policy is another one. */
void seg_streams_close(struct vlog *v);
/* Its shape and codec are those of today's policy. */
bool seg_as_policy(const struct vlog *v, const struct seg *s);
bool seg_step(struct vlog *v); /* appends SEALs that are due */
void seg_pin(struct vlog *v, uint32_t seg);
void seg_unpin(struct vlog *v, uint32_t seg);
void seg_maybe_free(struct vlog *v, uint32_t seg);
/* By a COMMIT or a snapshot: makes it known. -EBADMSG: cannot be. */
int seg_adopt(struct vlog *v, const struct fmt_commit *c, bool sealed);
uint64_t seg_unit_off(const struct vlog *v, const struct seg *s, unsigned unit,
		      unsigned stripe);
unsigned seg_k_now(const struct vlog *v); /* k' */
/*
 * Stored bytes once more, by the codec of today.
 * stored  in and out; grans, codec, crc likewise
 * scratch FMT_BLOCK bytes that stored may point to afterwards
 */
void stored_recode(struct vlog *v, uint64_t lba, const uint8_t **stored,
		   unsigned *grans, unsigned *codec, uint32_t *crc,
		   uint8_t *scratch);
/*
 * F, which cleaning follows: what is free of the slots that the policy takes in
 * ordinary use. The others are for when members are away; below 0 some of them
 * are in use.
 */
double seg_free_share(const struct vlog *v);
double seg_room_share(const struct vlog *v); /* of all slots */
bool seg_space_low(const struct vlog *v);    /* users must wait */
/* So many, at most, find members with free slots. */
unsigned seg_room_segs(const struct vlog *v, unsigned most);
uint64_t seg_space_grans(const struct vlog *v); /* all that fits, k' */
/* The same of the slots in ordinary use. */
uint64_t seg_ordinary_grans(const struct vlog *v);
/* Of a member that is there, the slots in ordinary use: as many as it has, but
 * no more than this. */
uint32_t seg_slots_ordinary(const struct vlog *v);
/* The code for segments of this shape; it has been asked for before. */
const struct ec *seg_ec(const struct vlog *v, unsigned k, unsigned m);
/* From now on there may be segments of this shape. -ENOMEM. */
int seg_ec_need(struct vlog *v, unsigned k, unsigned m);
static inline unsigned seg_width(const struct seg *s)
{
	return s->k + s->m;
}
static inline bool seg_unit_there(const struct vlog *v, const struct seg *s,
				  unsigned unit);

/* ---- the log (log.c, apply.c) -------------------------------------- */

enum zone_state { ZONE_OPENING, ZONE_READY, ZONE_SEALED };

struct zone {
	struct zone *next; /* by zseq */
	uint64_t zseq, first_lsn;
	uint64_t last_lsn; /* the highest that only stands here; 0: none */
	uint64_t pos;
	struct batch batch;
	struct lbuf *buf;
	uint8_t state, copies;
	bool known; /* to checkpoints */
	bool cut;   /* a member was lost: what was not durable went elsewhere */
	uint8_t comp[FMT_COPIES_MAX];
	uint32_t slot[FMT_COPIES_MAX];
};

enum rec_state { REC_FREE, REC_FILLING, REC_WAITING, REC_ISSUED };

struct ureq;
struct stripe;

struct rec {
	struct rec *next; /* by LSN */
	uint64_t lsn;
	struct lbuf *buf;
	struct batch batch;
	uint32_t hdr_len, pay_len;
	uint32_t pay_crc; /* under way */
	uint16_t entries;
	uint8_t type, state;
	bool applied;          /* only by a planted fault ahead of others */
	struct stripe *stripe; /* of a COMMIT */
	uint32_t seg;          /* of a SEAL */
	unsigned reqs;
	struct ureq *req[FMT_WRITES_MAX];
	struct block *block[FMT_WRITES_MAX];
};

/* A record to be filled; NULL: none for this use now. */
struct rec *rec_get(struct vlog *v, enum fmt_type type, bool user);
void rec_append(struct vlog *v, struct rec *rec);
void rec_put(struct vlog *v, struct rec *rec);
static inline struct fmt_record *rec_head(const struct rec *rec)
{
	return (struct fmt_record *)rec->buf->data;
}
static inline void *rec_entries(const struct rec *rec)
{
	return rec->buf->data + sizeof(struct fmt_record);
}
bool log_step(struct vlog *v);
unsigned log_inflight(const struct vlog *v); /* users' records */
unsigned log_depth(const struct vlog *v);    /* of them, before they wait */

/* zone.c */
/* How many zones may be open at once. */
unsigned zone_lanes(const struct vlog *v);
uint64_t zone_slot_off(const struct vlog *v, uint32_t slot);
/* An open one with room for a record; NULL: a header is being written, or
 * there are no slots or members. */
struct zone *zone_for(struct vlog *v, uint64_t lsn, uint32_t len);
bool zones_step(struct vlog *v);
void zones_seal(struct vlog *v);
bool zones_broken(const struct vlog *v); /* a member of an open one is lost */
/* What is not durable will be written again elsewhere. */
void zones_superseded(struct vlog *v);
double log_fill(const struct vlog *v);
/* What comes goes to a zone of m + 1 copies. */
void log_renew(struct vlog *v);
/* All that was written before log_renew() is durable. */
bool log_settled(const struct vlog *v);
/* No more records go to this zone. */
void zone_retire(struct vlog *v, const struct zone *z);
/* Frees the zones before zseq. */
void log_trim(struct vlog *v, uint64_t zseq);
/* The oldest zone that recovery would need for LSNs after lsn. */
uint64_t log_start(const struct vlog *v, uint64_t lsn);
/* A checkpoint begins: what would hold it back is sealed. */
void zones_checkpoint(struct vlog *v);

/*
 * One record's effect on map and segments; the same at run time and replay.
 * block  by entry, or NULL: taken from the payload (replay)
 * 0; -EBADMSG what it says cannot be (replay only).
 */
int apply_record(struct vlog *v, const struct fmt_record *rec,
		 struct block **block);
uint64_t apply_changes(const struct fmt_record *rec); /* leaves at most */

/* ---- stripes (stripe.c, destage.c, clean.c) ------------------------ */

enum stripe_state {
	STRIPE_IDLE,
	STRIPE_FILLING,
	STRIPE_WRITING,
	STRIPE_WRITTEN,    /* durable, COMMIT to be appended */
	STRIPE_COMMITTING, /* COMMIT is on its way */
	STRIPE_DRAINING,   /* done with; writes outstanding (planted fault) */
};

struct stripe_entry {
	uint64_t lba, old;
	uint32_t crc;
	uint8_t gran, unit, grans, flags;
	struct block *block; /* held, or NULL */
	uint32_t seg;        /* pinned, or SEG_NONE */
};
#define SEG_NONE UINT32_MAX

struct stripe {
	enum stripe_state state;
	enum stream stream;
	uint32_t seg;
	unsigned stripe, k, m;
	unsigned unit, gran; /* next free */
	uint64_t grans;      /* of all entries */
	unsigned entries, entries_max;
	struct stripe_entry *entry;
	struct lbuf *buf[FMT_COMPS_MAX]; /* units */
	struct batch batch;
	struct ureq *req; /* of a bypass */
};

int stripes_init(struct vlog *v);
void stripes_fini(struct vlog *v);
struct stripe *stripe_begin(struct vlog *v, enum stream stream);
/* Room for a stored block; NULL: full. Where to put its bytes. */
uint8_t *stripe_add(struct vlog *v, struct stripe *s, unsigned grans,
		    struct stripe_entry **entry);
void stripe_write(struct vlog *v, struct stripe *s);
void stripe_drop(struct vlog *v, struct stripe *s); /* nothing happened */
void stripe_committed(struct vlog *v, struct stripe *s);
bool stripe_step(struct vlog *v);
bool destage_step(struct vlog *v);
bool clean_step(struct vlog *v);
void clean_credit(struct vlog *v, uint64_t grans); /* user data destaged */
int cleaner_init(struct vlog *v);
void cleaner_fini(struct vlog *v);
void cleaner_info(const struct vlog *v, struct vlog_info *info);
bool cleaner_idle(const struct vlog *v);

/* ---- users (write.c, read.c) --------------------------------------- */

struct ureq {
	struct vlog *v;
	struct io *io;
	struct ureq *next;
	uint32_t blocks, placed;
	unsigned parts; /* records or stripes it waits for */
	int result;
	uint64_t lba, start_ns;
	bool redo, small; /* a bypass failed: once more, by the log */
};

bool writes_step(struct vlog *v);
void write_submit(struct vlog *v, struct io *io);
void ureq_part_done(struct vlog *v, struct ureq *u, int result);
void read_submit(struct vlog *v, struct io *io);
bool reads_step(struct vlog *v);
int reads_init(struct vlog *v);
void reads_fini(struct vlog *v);
bool reads_idle(const struct vlog *v);
void reads_fail(struct vlog *v);
void writes_fail(struct vlog *v);

#include "engine/vdisk/log/repair.h"

/* ---- admission (admit.c) -------------------------------------------- */

struct admit {
	double out_rate; /* granules a ns that leave the buffer */
	double tokens;   /* granules; below 0 nothing is let in */
	uint64_t token_ns, period_ns;
	uint64_t taken;  /* granules let in this period */
	uint32_t filled; /* at its beginning */
	struct timer timer;
};
/* One more block may go into the log; if not, the pump is kicked when. */
bool admit_may(struct vlog *v);
void admit_took(struct vlog *v, unsigned grans);

/* ---- metadata group (meta.c, snap.c) ------------------------------- */

static inline unsigned meta_group(const struct vlog *v);
void meta_learn(struct vlog *v, uint32_t mask,
		void (*done)(struct vlog *v, void *arg), void *arg);
void meta_claim(struct vlog *v, void (*done)(struct vlog *v, int result));
/* Snapshot and superblocks; done() once a content of this call or later is
 * committed. It goes on until it is, or the vDisk stops. */
void meta_commit(struct vlog *v, bool clean);
bool meta_step(struct vlog *v);
bool meta_idle(const struct vlog *v);
bool meta_stuck(const struct vlog *v);
/* It accepted a content that names it. Any other has no say: it was replaced,
 * is new, or its superblocks are damaged. */
bool meta_votes(const struct vlog *v, unsigned i);
/* Of the group those in service without a vote, until a content is written
 * there: it comes next. */
uint32_t meta_mute(const struct vlog *v);
/* Share of zone slots in use at which a checkpoint is to begin. */
double meta_start(const struct vlog *v);

enum meta_phase {
	META_IDLE,
	META_PIECE,
	META_FLUSH,
	META_SUPER,
};

struct meta {
	struct batch learn[2]; /* by slot */
	uint32_t learn_mask;
	struct lbuf *learn_buf[FMT_COMPS_MAX][2];
	void (*learned)(struct vlog *v, void *arg);
	void *learned_arg;
	void (*claimed)(struct vlog *v, int result);

	enum meta_phase phase;
	bool wanted, clean, clean_wanted;
	uint32_t prefer; /* members that should have the next content */
	struct batch batch;
	uint32_t members; /* still good */
	uint32_t gone;    /* lost since they were chosen, back or not */
	uint8_t area[FMT_COMPS_MAX];
	struct fmt_content content;
	uint64_t seq, committed; /* of contents in this epoch */
	struct piece {
		struct batch batch;
		struct lbuf *buf[FMT_COPIES_MAX];
	} piece[PIECES];
	struct lbuf *super[FMT_COMPS_MAX];
	uint32_t pieces, pieces_all; /* written; expected */
	double fill_start;           /* of the log, when it began */
	uint64_t retry_ns;
	/* Changes of the configuration: how many there were when the content
	 * in work was filled, and the last that was committed. */
	uint64_t config, config_committed;
};

enum snap_phase { SNAP_SEGS, SNAP_LEAVES, SNAP_BLOCKS, SNAP_END, SNAP_OVER };
struct snap {
	bool active;
	enum snap_phase phase;
	uint64_t cursor; /* leaves below are written */
	struct seg *seg; /* copy of the table */
	struct block **block;
	uint32_t blocks, at;
	struct fmt_item_end count;
	uint32_t crc;
};
int snap_init(struct vlog *v);
void snap_fini(struct vlog *v);
void snap_begin(struct vlog *v);
/* Bytes of one begun now, about. */
uint64_t snap_bytes(const struct vlog *v);
void snap_end(struct vlog *v);
/* Fills a piece's payload; returns bytes used; 0: all is written. */
uint32_t snap_fill(struct vlog *v, uint8_t *p, uint32_t room);
/* Takes a piece's payload in; -EBADMSG. *over: the end was seen. */
int snap_load(struct vlog *v, const uint8_t *p, uint32_t used, bool *over);

/* ---- the whole ----------------------------------------------------- */

enum vlog_state { VLOG_OPENING, VLOG_SERVING, VLOG_CLOSING, VLOG_STOPPED };

struct recovery;

struct vlog {
	struct bdev bdev;
	const struct vdisk_layout_ops *layout;
	struct reactor *r;
	enum vlog_state state;
	struct fmt_label label; /* what all components agree on */
	uint32_t crc_seed;
	unsigned n, k, m, codec; /* what is written follows these */
	uint8_t raid;
	uint8_t uuid[16]; /* of the vDisk */
	/* What contents from now on say of members, groups and policy; ahead of
	 * the above while a change is being committed. */
	struct fmt_content conf;
	uint64_t conf_changes;
	uint64_t codec_lsn; /* blocks before it may be of another codec */
	uint64_t renew_lsn; /* of log_renew() */
	struct member member[FMT_COMPS_MAX];
	struct slab lio_slab;
	unsigned lios_out, closing_members;
	struct timer watch;
	struct bufpool page_pool, rec_pool, unit_pool, piece_pool, window_pool;
	struct codec *coder;
	struct ec *ec[FMT_COPIES_MAX][FMT_COMPS_MAX + 1]; /* by m and k */
	uint8_t *scratch;                                 /* a block */

	/* epoch and log */
	uint64_t epoch, log_epoch;
	uint64_t next_lsn, durable; /* next to give; the durable prefix */
	uint64_t zseq, log_zone, lsn_snapshot;
	struct zone *zones, *lane[LANES_MAX]; /* all that count; open ones */
	struct slab zone_slab;
	struct rec rec[RECS], *rec_first, *rec_last;
	unsigned recs_used;
	bool log_relog, log_waits; /* records to be reissued; no zone slots */
	struct rec *group;         /* being filled by users */

	struct map map;
	struct seg *seg;
	uint32_t segs, seg_hint;
	uint64_t seg_counter;
	uint64_t live_grans; /* in segments */
	uint32_t open_seg[STREAMS][SEG_LANES];
	uint32_t segs_used;
	bool seals_due;

	struct stripe stripe[STRIPES];
	struct cleaner *cleaner;
	struct resync *resync;
	struct punch *punch;
	struct scrub *scrub;
	struct vlog_pace pace;
	struct stripe *cold; /* being filled by the cleaner */

	struct slab req_slab;
	struct ureq *write_first, *write_last;
	unsigned users, waiting; /* ios in work; not yet begun */
	struct io *wait_first, *wait_last;
	struct reads *reads;
	struct fetches *fetches;
	struct batch late; /* reads that nobody waits for any more */

	struct admit admit;
	struct meta meta;
	struct snap snap;
	struct recovery *recovery;

	struct task task;
	bool task_posted, closing;
	bool owns;              /* the bdevs of its members */
	struct change *changes; /* of members and policy, in order */
	struct timer timer;     /* looks again later */
	uint32_t align;         /* of reads and writes on members */
	char reason[160];
	vdisk_changed_fn *changed;
	void *changed_arg;
	bool changed_due;
	struct vlog_info stat; /* counters */
};

/* How many members may vote: of both groups while it is being moved. */
static inline unsigned meta_group(const struct vlog *v)
{
	const struct fmt_content *c = &v->conf;

	return 2u * (c->group_m > c->group_was ? c->group_m : c->group_was) + 1;
}

/*
 * A unit of a segment is there: its member is, and it is the member that it
 * was written to, not one that took its place since.
 */
static inline bool seg_unit_there(const struct vlog *v, const struct seg *s,
				  unsigned unit)
{
	const unsigned c = s->comp[unit];

	return v->member[c].alive &&
	       (s->id >= v->conf.seat[c].since || MUT(READ_REPLACED));
}

void vlog_kick(struct vlog *v);
void vlog_stop(struct vlog *v, const char *fmt, ...) ID_PRINTF(2, 3);
void vlog_changed(struct vlog *v);
/* Which members are away and why, for people. */
void info_members_away(const struct vlog *v, char *buf, size_t len);
/* conf: the configuration it begins with. */
int vlog_new(struct reactor *r, const struct fmt_label *label,
	     const struct fmt_content *conf, struct vlog **v, struct err *err);
void vlog_free(struct vlog *v);
/* Memory for stripes of up to k + m units. -ENOMEM. */
int vlog_policy_room(struct vlog *v, unsigned k, unsigned m);
/* What is written from now on follows conf. */
void vlog_policy_take(struct vlog *v);

/* geo.c */
int geo_label(const struct vlog_spec *spec, struct fmt_label *label,
	      struct err *err);
uint64_t geo_member_bytes(const struct fmt_label *label);
/*
 * Data slots a policy wants of each of so many components: what it takes in
 * ordinary use, with 25 % for the cleaner, or, where that is more, all content
 * in the narrower stripes that are left while m of them are away.
 */
uint32_t geo_slots(const struct fmt_label *label, unsigned k, unsigned m,
		   unsigned comps);
/* Of each that is there, in ordinary use. */
uint32_t geo_slots_ordinary(const struct fmt_label *label, unsigned k,
			    unsigned m, unsigned alive);
/* With so many on each all content fits, whichever m are away. */
bool geo_slots_enough(const struct fmt_label *label, unsigned k, unsigned m,
		      unsigned comps, const uint32_t *slots);
/* What a stripe of k units holds at least. */
uint64_t geo_stripe_grans(const struct fmt_label *label, unsigned k);
uint64_t geo_memory_bytes(const struct fmt_label *label);

/* change.c, policy.c */
void policy_resume(struct vlog *v);
bool policy_changing(const struct vlog *v);
bool policy_beginning(const struct vlog *v); /* the old one still counts */
bool change_step(struct vlog *v);
void change_abandon(struct vlog *v);

/* recover.c: -EUCLEAN: no intact snapshot of this configuration. */
void recover_start(struct vlog *v, void (*done)(struct vlog *v, int result,
						const struct err *err));
void recover_content_committed(struct vlog *v);
bool recover_step(struct vlog *v);
void recover_abandon(struct vlog *v);

static inline bool bit_get(const uint64_t *map, uint64_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void bit_set(uint64_t *map, uint64_t i)
{
	map[i / 64] |= 1ull << (i % 64);
}

static inline void bit_clear(uint64_t *map, uint64_t i)
{
	map[i / 64] &= ~(1ull << (i % 64));
}

/* Buffers for stripes and the cleaner. */
static inline uint32_t units_wanted(unsigned width)
{
	const uint32_t units = (STRIPE_BUFS + 1) * width;

	return 4 + (units > UNITS_MIN ? units : UNITS_MIN);
}

static inline uint32_t unit_grans(const struct vlog *v)
{
	return v->label.unit_bytes / FMT_GRAN;
}

#endif
