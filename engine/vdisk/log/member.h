/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Members, the buffers that I/O on them needs, and I/Os that end together. A
 * part of impl.h.
 */
#ifndef ENGINE_VDISK_LOG_MEMBER_H
#define ENGINE_VDISK_LOG_MEMBER_H

#include "engine/bdev/bdev.h"
#include "engine/vdisk/log/format.h"
#include "engine/vdisk/log/lat.h"

#define IO_TIMEOUT_NS (5 * SEC_NS)

struct vlog;

struct lbuf {
	uint8_t *data;
	uint32_t refs;
	bool clean; /* zeroed once */
	struct bufpool *pool;
	struct lbuf *next;
};

struct bufpool {
	struct reactor *r;
	uint32_t len, count, used;
	bool raw; /* never zeroed: only for what drives write into */
	struct bufs *all;
	struct lbuf *free;
};

int bufpool_init(struct bufpool *p, struct reactor *r, uint32_t len,
		 uint32_t count);
int bufpool_grow(struct bufpool *p, uint32_t count); /* -ENOMEM */
void bufpool_fini(struct bufpool *p);
struct lbuf *lbuf_get(struct bufpool *p); /* NULL: none left */
void lbuf_put(struct lbuf *buf);          /* takes NULL */

/*
 * I/Os that end together. done() runs when the last has ended, or, with no
 * done, the pump is kicked. failed and ok hold bits of members.
 */
struct batch {
	unsigned out;
	uint32_t failed, ok;
	bool each; /* the pump is kicked by each that ends */
	void (*done)(struct batch *b);
};

struct lio {
	struct io io;
	struct vlog *v;
	struct batch *batch; /* NULL: given up, its member is lost */
	struct lbuf *buf;
	struct lio *next, *prev; /* of its member, oldest first */
	uint64_t start_ns;       /* of reactor_lived() */
	uint32_t bytes;          /* also while it is being flushed */
	uint8_t member;
	bool keep; /* its failure does not lose the member */
};

void batch_begin(struct batch *b, void (*done)(struct batch *b));
/* Adds an I/O; write failures lose the member, read failures do not. */
void batch_io(struct vlog *v, struct batch *b, unsigned member, enum bdev_op op,
	      unsigned flags, uint64_t off, struct lbuf *buf, uint32_t buf_off,
	      uint32_t len);
void batch_end(struct vlog *v, struct batch *b);
/* What is still out (reads alone) is nobody's any more. */
void batch_leave(struct vlog *v, struct batch *b);
static inline bool batch_over(const struct batch *b)
{
	return b->out == 0;
}

struct member {
	struct bdev *bdev; /* NULL: away */
	bool alive;        /* reads and writes may go there */
	bool learned;      /* super is what its superblocks say */
	/* A content that names it is committed on others: its vote counts, and
	 * contents may be written here. */
	bool admitted;
	struct fmt_super super;
	unsigned super_slot;             /* of the newest */
	uint64_t *zone_used, *slot_used; /* bitmaps */
	uint32_t slots;                  /* of data */
	uint32_t zones_free, slots_free;
	uint32_t slots_data; /* of those in use: not of parity */
	struct lio *first, *last;
	unsigned out;               /* I/Os */
	uint64_t out_bytes;         /* of them */
	uint64_t read_ns, hedge_ns; /* a small read takes; is late after */
	struct lat reads;
	int why;          /* it was lost */
	const char *note; /* that, in words of its own, or NULL */
	uint64_t lost_ns;
};

/* Nothing was heard of it, rather than that it said no. */
bool member_silent(int why);
void member_lost(struct vlog *v, unsigned member, int why);
/* A component that is no member, or no more: v is not gone before it is. */
void member_bdev_close(struct vlog *v, struct bdev *bdev);
/* It is in service, and the vDisk goes on without. */
bool member_dispensable(const struct vlog *v, unsigned member);
unsigned member_alive_count(const struct vlog *v);
void member_watch(struct vlog *v);
int member_space_init(struct vlog *v, struct member *m, uint32_t slots);
int member_slots_grow(struct member *m, uint32_t slots); /* -ENOMEM */

#endif
