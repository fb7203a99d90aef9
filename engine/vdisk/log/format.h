/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What stands on a component of the log-structured layout.
 *
 *   0       label A | superblock 0 | superblock 1 | label B   (4 KiB each)
 *   1 MiB   zones x zone_bytes                       the log
 *   ..      snapshot area 0 | snapshot area 1        of this member alone
 *   ..      slots x (unit_bytes x stripes)           the capacity leg
 *
 * Each block that is read without something pointing at it starts with the
 * same head: what it is, whose it is, where it belongs and a checksum, so that
 * a stale, torn, damaged or misdirected block is never taken for another.
 * `self` is the offset on the component, for blocks that stand on one (comp
 * says which), and the offset within the zone for those that stand on all
 * members of a zone (comp is FMT_COMP_ANY).
 *
 * Numbers are little-endian; so are the machines this runs on (asserted).
 * Decoders take any bytes: they check magic, version, vDisk, address, lengths
 * and checksum before anything else is looked at.
 *
 * A location (loc) says where a block's newest bytes are:
 *   bits 0..1 kind, 2..4 granules - 1, 5..6 codec, and by kind
 *     LOG      7..18 entry, 19..62 LSN: an identity, so a record that is
 *              written again elsewhere keeps it
 *     SEGMENT  7..14 granule, 15..18 unit, 19..23 stripe, 24..55 segment
 *     ZERO     codec 3 marks a block that is lost (reads fail)
 */
#ifndef ENGINE_VDISK_LOG_FORMAT_H
#define ENGINE_VDISK_LOG_FORMAT_H

#include "engine/base.h"

/* Raised with the first change of format after the first release: until then
 * none but test vDisks have been made, and those are made anew. */
#define FMT_VERSION 1
#define FMT_BLOCK 4096u
#define FMT_GRAN 512u
#define FMT_BLOCK_GRANS (FMT_BLOCK / FMT_GRAN)
#define FMT_COMPS_MAX 16u
#define FMT_COPIES_MAX 4u /* m + 1 */
#define FMT_COMP_ANY 0xffffu

#define FMT_LABEL_A 0u
#define FMT_SUPER(slot) (FMT_BLOCK * (1u + (slot)))
#define FMT_LABEL_B (FMT_BLOCK * 3u)
#define FMT_LOG_OFF (1u << 20)

#define FMT_PAYLOAD_MAX (256u << 10) /* of a record */
#define FMT_RECORD_MAX (FMT_PAYLOAD_MAX + FMT_BLOCK)
#define FMT_WRITES_MAX 240u    /* entries of a WRITE record */
#define FMT_PIECE (256u << 10) /* of a snapshot, head included */

enum fmt_magic {
	FMT_LABEL = 0x424c4c56, /* VLLB */
	FMT_SUPERBLOCK = 0x42534c56,
	FMT_ZONE = 0x4e5a4c56,
	FMT_RECORD = 0x43524c56,
	FMT_SNAP = 0x4e534c56,
	FMT_STRIPE = 0x54534c56,
};

struct fmt_head {
	uint32_t magic;
	uint32_t crc; /* of `len` bytes from here, this field as 0 */
	uint8_t vdisk[16];
	uint16_t version;
	uint16_t comp;
	uint32_t len;
	uint64_t self;
	uint64_t epoch;
};

struct fmt_member {
	uint8_t uuid[16];
	char domain[32], drive[32], component[64];
};

struct fmt_label {
	struct fmt_head head;
	uint8_t comp_uuid[16];
	char cluster[64], name[64];
	uint64_t size_blocks;
	uint64_t off_snap[2], off_data;
	uint64_t snap_bytes; /* of an area */
	uint32_t zone_bytes, zones;
	uint32_t unit_bytes, stripes; /* of a segment */
	uint32_t slots;
	uint32_t segs;             /* length of the segment table */
	uint32_t buffer_bytes;     /* of undestaged blocks, at most */
	uint8_t raid, k, m, codec; /* as created */
	uint32_t comps;
	uint32_t pad;
	struct fmt_member member[FMT_COMPS_MAX]; /* as created */
};

/* A member, as the newest content knows it: a label is only who it was made
 * as. */
struct fmt_seat {
	uint8_t uuid[16];
	/* Segments with a lower id do not stand on it: it replaced the member
	 * they were written to. */
	uint64_t since;
	uint32_t slots; /* of data */
	uint32_t pad;
	char domain[32], drive[32], component[64];
};

/*
 * Accepted content: what a recovery starts from. Order by (epoch, seq). It
 * holds the configuration too, so that there is one order for both.
 *
 * Two groups: while the metadata group is being moved, a content counts once
 * on a quorum of each, and only what names both is looked for on both.
 */
struct fmt_content {
	uint64_t epoch, seq; /* seq 0: nothing accepted here yet */
	uint64_t log_epoch;  /* the log counts: zones of log_epoch ... */
	uint64_t log_zone;   /* ... with this zseq or more */
	uint64_t lsn;        /* the snapshot is the state after this LSN */
	uint64_t snap_len;   /* bytes in the area */
	uint32_t snap_crc;   /* of the crcs of its pieces */
	uint8_t area, clean;
	uint8_t raid, k, m, codec; /* of what is written from now on */
	uint8_t comps;
	uint8_t group_m, group_was; /* groups: the first 2 x + 1 members */
	uint8_t tolerates;          /* members away that it opens with */
	uint8_t pad[2];
	uint64_t seg_next; /* counter of segment ids, for people */
	/* Segments with a lower id may hold blocks of another codec. */
	uint64_t codec_since;
	struct fmt_seat seat[FMT_COMPS_MAX];
};

struct fmt_super {
	struct fmt_head head; /* epoch: who wrote it */
	uint64_t promised;    /* the highest epoch claimed here */
	uint64_t serial;      /* of writes here: the newest slot */
	struct fmt_content content;
};
/* Added where what was written may not have been read: newer than that. */
#define FMT_SERIAL_UNREAD (1ull << 32)

struct fmt_zone {
	struct fmt_head head;
	uint64_t zseq, first_lsn, durable_lsn;
	uint32_t copies, pad;
	uint16_t comp[FMT_COPIES_MAX];
	uint32_t slot[FMT_COPIES_MAX];
};

enum fmt_type { REC_WRITE = 1, REC_DISCARD, REC_COMMIT, REC_SEAL };

/* A record: this, the entries, to hdr_len; then the payload. */
struct fmt_record {
	struct fmt_head
		head; /* self: offset in the zone; len: to entries' end */
	uint64_t zseq, lsn, durable_lsn;
	uint32_t hdr_len, pay_len; /* multiples of FMT_BLOCK */
	uint32_t pay_crc;
	uint16_t entries;
	uint8_t type, pad;
};

enum {
	ENT_ZERO = 1,   /* WRITE: all zeros, no payload */
	ENT_BYPASS = 2, /* COMMIT: a write, not a move */
	ENT_BAD = 4,    /* COMMIT: could not be read, is lost */
	ENT_CODEC_SHIFT = 4,
};

struct fmt_write { /* one block */
	uint64_t lba;
	uint32_t crc;
	uint16_t gran; /* in the payload */
	uint8_t grans, flags;
};

struct fmt_discard {
	uint64_t lba, blocks;
};

struct fmt_commit { /* before the moves of a COMMIT; alone in a SEAL */
	uint64_t seg_id;
	uint32_t seg;
	uint16_t stripe;
	uint8_t k, m;
	uint8_t comp[FMT_COMPS_MAX];
	uint32_t slot[FMT_COMPS_MAX];
};

struct fmt_move {
	uint64_t lba, old; /* a loc; not used by a bypass */
	uint32_t crc;
	uint8_t gran, unit; /* in the stripe */
	uint8_t grans, flags;
};

struct fmt_piece {
	struct fmt_head head; /* len: to the end of what it holds */
	uint64_t seq;         /* of the content; epoch is in the head */
	uint32_t index;
	uint32_t used; /* bytes after this head */
};

/* Items in the pieces of a snapshot; an item never crosses a piece. */
enum fmt_item_type { ITEM_SEG = 1, ITEM_LEAF, ITEM_BLOCK, ITEM_END };
struct fmt_item {
	uint32_t type, len; /* of what follows */
};
struct fmt_item_seg {
	struct fmt_commit where; /* stripe is not used */
	uint64_t lsn;            /* of its newest COMMIT */
	uint32_t live, sealed;
	uint32_t stripes; /* bits of those committed */
	uint32_t pad;
};
#define FMT_LEAF 512u
struct fmt_item_leaf {
	uint64_t index;
	uint64_t loc[FMT_LEAF];
	uint32_t crc[FMT_LEAF];
};
struct fmt_item_block { /* undestaged; its bytes follow */
	uint64_t lba, loc;
};
struct fmt_item_end {
	uint64_t segs, leaves, blocks;
};

/* In a stripe: entries, then this, at the very end of the last data unit. */
struct fmt_sum_entry {
	uint64_t lba;
	uint32_t crc;
	uint8_t gran, unit, grans, flags;
};
struct fmt_sum {
	uint8_t vdisk[16];
	uint64_t seg_id, epoch;
	uint32_t crc; /* of entries and this, this field as 0 */
	uint32_t magic;
	uint16_t stripe, entries;
	uint8_t k, m;
	uint16_t pad;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian");
_Static_assert(sizeof(struct fmt_head) == 48, "head");
_Static_assert(sizeof(struct fmt_member) == 144, "member");
_Static_assert(sizeof(struct fmt_label) <= FMT_BLOCK, "label");
_Static_assert(sizeof(struct fmt_seat) == 160, "seat");
_Static_assert(
	sizeof(struct fmt_super) == 64 + 80 + 160 * FMT_COMPS_MAX,
	"superblock: a block; torn, it is as if it had not been written");
_Static_assert(sizeof(struct fmt_zone) == 104, "zone");
_Static_assert(sizeof(struct fmt_record) == 88, "record");
_Static_assert(sizeof(struct fmt_write) == 16, "write");
_Static_assert(sizeof(struct fmt_discard) == 16, "discard");
_Static_assert(sizeof(struct fmt_commit) == 96, "commit");
_Static_assert(sizeof(struct fmt_move) == 24, "move");
_Static_assert(sizeof(struct fmt_piece) == 64, "piece");
_Static_assert(sizeof(struct fmt_item_seg) == 120, "segment item");
_Static_assert(sizeof(struct fmt_item_leaf) == 8 + 12 * FMT_LEAF, "leaf");
_Static_assert(sizeof(struct fmt_sum_entry) == 16, "summary entry");
_Static_assert(sizeof(struct fmt_sum) == 48, "summary");
_Static_assert(sizeof(struct fmt_record) +
			       FMT_WRITES_MAX * sizeof(struct fmt_write) <=
		       FMT_BLOCK,
	       "a full WRITE record's entries fit its first block");

/* ---- locations ----------------------------------------------------- */

enum loc_kind { LOC_NONE, LOC_LOG, LOC_SEG, LOC_ZERO };
enum { CODEC_NONE, CODEC_LZ4, CODEC_ZSTD, CODEC_COUNT };

#define LOC_BAD (LOC_ZERO | 3ull << 5)

static inline enum loc_kind loc_kind(uint64_t loc)
{
	return (enum loc_kind)(loc & 3);
}

static inline unsigned loc_grans(uint64_t loc)
{
	return (unsigned)(loc >> 2 & 7) + 1;
}

static inline unsigned loc_codec(uint64_t loc)
{
	return (unsigned)(loc >> 5 & 3);
}

static inline uint64_t loc_log(uint64_t lsn, unsigned entry, unsigned grans,
			       unsigned codec)
{
	return LOC_LOG | (uint64_t)(grans - 1) << 2 | (uint64_t)codec << 5 |
	       (uint64_t)entry << 7 | lsn << 19;
}

static inline uint64_t loc_lsn(uint64_t loc)
{
	return loc >> 19;
}

static inline unsigned loc_entry(uint64_t loc)
{
	return (unsigned)(loc >> 7 & 0xfff);
}

static inline uint64_t loc_seg(uint32_t seg, unsigned stripe, unsigned unit,
			       unsigned gran, unsigned grans, unsigned codec)
{
	return LOC_SEG | (uint64_t)(grans - 1) << 2 | (uint64_t)codec << 5 |
	       (uint64_t)gran << 7 | (uint64_t)unit << 15 |
	       (uint64_t)stripe << 19 | (uint64_t)seg << 24;
}

static inline uint32_t loc_seg_index(uint64_t loc)
{
	return (uint32_t)(loc >> 24);
}

static inline unsigned loc_stripe(uint64_t loc)
{
	return (unsigned)(loc >> 19 & 31);
}

static inline unsigned loc_unit(uint64_t loc)
{
	return (unsigned)(loc >> 15 & 15);
}

static inline unsigned loc_gran(uint64_t loc)
{
	return (unsigned)(loc >> 7 & 255);
}

/* ---- heads --------------------------------------------------------- */

/* Fills the head of a block of len bytes and its checksum. */
void fmt_seal(void *block, enum fmt_magic magic, const uint8_t vdisk[16],
	      unsigned comp, uint64_t self, uint64_t epoch, uint32_t len);
/*
 * 0; -ENOENT of another type; -ENOTSUP newer; -EBADMSG torn, damaged, of
 * another vDisk or in the wrong place. vdisk NULL: any.
 * max  bytes there are
 */
int fmt_check(const void *block, enum fmt_magic magic, const uint8_t *vdisk,
	      unsigned comp, uint64_t self, uint32_t min, uint32_t max);

/* As above, and that what they say of sizes and places is possible. */
int fmt_label_check(const void *block, unsigned comp_or_any, uint64_t self);
/*
 * The newest sound of a component's two superblocks.
 * slot  out: which
 * -ENOENT: none is sound, which is not the same as one that holds nothing yet
 * (content.seq 0).
 */
int fmt_super_newest(const void *const block[2], const uint8_t vdisk[16],
		     unsigned comp, struct fmt_super *super, unsigned *slot);
/* <0, 0, >0: order of contents. */
int fmt_content_compare(const struct fmt_content *a,
			const struct fmt_content *b);
/* The same members, groups and policy. */
bool fmt_config_same(const struct fmt_content *a, const struct fmt_content *b);
/* The members that `mask` holds are a quorum of both groups. */
bool fmt_group_quorum(const struct fmt_content *c, uint32_t mask);
/*
 * Member i comes into the group with c and has accepted nothing yet: that it
 * holds no content says as much as another's. False of one that took a place,
 * as the one before may have accepted some; and of what could not be read.
 */
bool fmt_group_fresh(const struct fmt_content *c, unsigned i,
		     const struct fmt_super *s);
/*
 * A record at offset `pos` of a zone, with `room` bytes from it to the zone's
 * end. The payload's checksum is apart: there may be less than all of it.
 */
int fmt_record_check(const void *block, const uint8_t vdisk[16], uint64_t pos,
		     uint32_t avail, uint32_t room);
bool fmt_payload_ok(const struct fmt_record *rec);
/* Summary at the end of a last data unit; NULL: none there that is sound. */
const struct fmt_sum *fmt_sum_find(const uint8_t *unit, uint32_t unit_bytes,
				   const uint8_t vdisk[16]);
/* Writes it; entries are copied. */
void fmt_sum_write(uint8_t *unit, uint32_t unit_bytes,
		   const struct fmt_sum *sum,
		   const struct fmt_sum_entry *entry);

#endif
