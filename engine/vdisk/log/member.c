/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Members: their I/O, and what becomes of them when it fails.
 *
 * A write or flush that fails or takes longer than IO_TIMEOUT_NS (of the time
 * this process lived, not of what it stood still) loses the member: nothing
 * more is written to it, its bdev is closed, and everything that waited for it
 * goes on at once as failed. Buffers are counted, so one that a stuck drive
 * still holds is not used for anything else until the drive lets go of it. A
 * read that fails is its reader's affair.
 *
 * What was believed of a lost member's superblocks is forgotten with it: a
 * write that failed may have landed.
 */
#include "engine/vdisk/log/member.h"

#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

/* ---- buffers ------------------------------------------------------- */

struct bufs {
	struct bufs *next;
	uint32_t count;
	struct lbuf buf[];
};

int bufpool_grow(struct bufpool *p, uint32_t count)
{
	struct bufs *bufs =
		calloc(1, sizeof(*bufs) + count * sizeof(bufs->buf[0]));

	if (!bufs)
		return -ENOMEM;
	bufs->next = p->all;
	p->all = bufs;
	for (uint32_t i = 0; i < count; i++) {
		struct lbuf *b = &bufs->buf[i];

		/* Zeroed as it is first handed out: an opening that dies early
		 * does not pay for what it never came to use. */
		b->data = reactor_buf_alloc_raw(p->r, p->len);
		if (!b->data)
			return -ENOMEM;
		b->pool = p;
		b->next = p->free;
		p->free = b;
		p->count++;
		bufs->count++;
	}
	return 0;
}

int bufpool_init(struct bufpool *p, struct reactor *r, uint32_t len,
		 uint32_t count)
{
	*p = (struct bufpool) { .r = r, .len = len };
	return bufpool_grow(p, count);
}

void bufpool_fini(struct bufpool *p)
{
	struct bufs *bufs;

	while ((bufs = p->all)) {
		p->all = bufs->next;
		for (uint32_t i = 0; i < bufs->count; i++)
			reactor_buf_free(p->r, bufs->buf[i].data, p->len);
		free(bufs);
	}
}

struct lbuf *lbuf_get(struct bufpool *p)
{
	struct lbuf *b = p->free;

	if (!b)
		return NULL;
	p->free = b->next;
	p->used++;
	b->refs = 1;
	if (!b->clean && !p->raw)
		memset(b->data, 0, p->len);
	b->clean = true;
	return b;
}

void lbuf_put(struct lbuf *b)
{
	if (!b)
		return;
	id_assert(b->refs);
	if (--b->refs)
		return;
	b->next = b->pool->free;
	b->pool->free = b;
	b->pool->used--;
}

/* ---- batches ------------------------------------------------------- */

void batch_begin(struct batch *b, void (*done)(struct batch *b))
{
	*b = (struct batch) { .out = 1, .done = done };
}

static void batch_drop(struct vlog *v, struct batch *b)
{
	id_assert(b->out);
	if (--b->out) {
		if (b->each)
			vlog_kick(v);
		return;
	}
	if (b->done)
		b->done(b);
	else
		vlog_kick(v);
}

void batch_end(struct vlog *v, struct batch *b)
{
	batch_drop(v, b);
}

void batch_leave(struct vlog *v, struct batch *b)
{
	for (unsigned i = 0; i < v->n && b->out; i++)
		for (struct lio *l = v->member[i].first; l; l = l->next) {
			if (l->batch != b)
				continue;
			id_assert(l->io.op == BDEV_READ);
			l->batch = &v->late;
			v->late.out++;
			b->out--;
		}
	id_assert(!b->out);
}

static void lio_unlink(struct lio *lio)
{
	struct member *m = &lio->v->member[lio->member];

	if (lio->prev)
		lio->prev->next = lio->next;
	else
		m->first = lio->next;
	if (lio->next)
		lio->next->prev = lio->prev;
	else
		m->last = lio->prev;
	m->out--;
	m->out_bytes -= lio->bytes;
}

static void lio_link(struct vlog *v, struct lio *lio)
{
	struct member *m = &v->member[lio->member];

	lio->next = NULL;
	lio->prev = m->last;
	if (m->last)
		m->last->next = lio;
	else
		m->first = lio;
	m->last = lio;
	m->out++;
	m->out_bytes += lio->bytes;
}

bool member_silent(int why)
{
	return !why || why == -ENODEV || why == -ETIMEDOUT ||
	       why == -ENOTCONN || why == -ECONNRESET || why == -EPIPE;
}

/* A read that failed may be a bad sector, unless there was nobody to ask; and
 * a trim need not be done. */
static bool loses(enum bdev_op op, int result)
{
	if (op == BDEV_READ)
		return member_silent(result);
	return op != BDEV_TRIM;
}

static void lio_over(struct lio *lio, int result)
{
	struct vlog *v = lio->v;
	struct batch *b = lio->batch;
	const unsigned member = lio->member;
	const bool lose = b && result && loses(lio->io.op, result);

	if (b)
		lio_unlink(lio);
	if (!result && lio->io.op == BDEV_READ && b &&
	    lio->io.len < v->label.unit_bytes)
		member_read_took(v, member,
				 reactor_lived(v->r) - lio->start_ns);
	lbuf_put(lio->buf);
	slab_put(&v->lio_slab, lio);
	v->lios_out--;
	if (!b) {
		vlog_kick(v);
		return;
	}
	if (result)
		b->failed |= 1u << member;
	else
		b->ok |= 1u << member;
	if (lose)
		member_lost(v, member, result);
	batch_drop(v, b);
}

static void lio_done(struct io *io)
{
	struct lio *lio = container_of(io, struct lio, io);

	/* Durable means flushed where the drive cannot do it by write. */
	if (!io->result && lio->batch && io->op == BDEV_WRITE && lio->keep) {
		struct member *m = &lio->v->member[lio->member];

		lio->keep = false;
		if (m->bdev) {
			lio->io = (struct io) { .op = BDEV_FLUSH,
						.done = lio_done };
			bdev_submit(m->bdev, &lio->io);
			return;
		}
	}
	lio_over(lio, io->result);
}

void batch_io(struct vlog *v, struct batch *b, unsigned member, enum bdev_op op,
	      unsigned flags, uint64_t off, struct lbuf *buf, uint32_t buf_off,
	      uint32_t len)
{
	struct member *m = &v->member[member];
	struct lio *lio = m->bdev ? slab_get_raw(&v->lio_slab) : NULL;
	bool then_flush = false;

	if (!lio) { /* away; or more I/Os than there can be */
		id_assert(!m->bdev);
		b->failed |= 1u << member;
		return;
	}
	if (flags & BDEV_FUA && !m->bdev->limits.can_fua) {
		flags &= ~BDEV_FUA;
		then_flush = true;
	}
	*lio = (struct lio) {
		.v = v,
		.batch = b,
		.buf = buf,
		.member = (uint8_t)member,
		.start_ns = reactor_lived(v->r),
		.bytes = len,
		.keep = then_flush,
		.io = { .op = (uint8_t)op,
			.flags = (uint8_t)flags,
			.off = off,
			.len = len,
			.buf = buf ? buf->data + buf_off : NULL,
			.done = lio_done },
	};
	if (buf)
		buf->refs++;
	b->out++;
	v->lios_out++;
	lio_link(v, lio);
	bdev_submit(m->bdev, &lio->io);
	member_watch(v);
}

/* ---- loss ---------------------------------------------------------- */

static void member_closed(void *arg)
{
	struct vlog *v = arg;

	v->closing_members--;
	vlog_kick(v);
}

void member_bdev_close(struct vlog *v, struct bdev *bdev)
{
	v->closing_members++;
	bdev_close(bdev, member_closed, v);
}

static void member_give_up(struct vlog *v, struct member *m, unsigned index)
{
	struct lio *lio;

	while ((lio = m->first)) {
		struct batch *b = lio->batch;

		lio_unlink(lio);
		lio->batch = NULL;
		b->failed |= 1u << index;
		batch_drop(v, b);
	}
}

/* To write the log, and to commit contents. */
static bool enough_alive(const struct vlog *v)
{
	uint32_t alive = 0;

	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].alive)
			alive |= 1u << i;
	return member_alive_count(v) > v->m &&
	       fmt_group_quorum(&v->conf, alive);
}

bool member_dispensable(const struct vlog *v, unsigned index)
{
	const unsigned group = index < meta_group(v);
	unsigned left = 0;

	for (unsigned i = 0; i < meta_group(v); i++)
		left += v->member[i].alive;
	return v->member[index].alive && member_alive_count(v) > v->m + 1 &&
	       left - group > v->m;
}

static void too_few(struct vlog *v)
{
	char away[96];

	info_members_away(v, away, sizeof(away));
	vlog_stop(v,
		  "stopped, %u may be away: %s; bring some back and open it "
		  "again, nothing acknowledged is lost",
		  v->m, away);
}

void member_lost(struct vlog *v, unsigned index, int why)
{
	struct member *m = &v->member[index];
	struct bdev *bdev = m->bdev;

	if (!m->bdev)
		return;
	m->alive = false;
	m->bdev = NULL;
	m->why = why;
	m->note = NULL;
	m->lost_ns = reactor_now(v->r);
	v->meta.gone |= 1u << index;
	if (!MUT(TRUST_FAILED))
		m->learned = false;
	/* While opening the bdevs are still the opener's. */
	if (v->owns)
		member_bdev_close(v, bdev);
	member_give_up(v, m, index);
	seg_member_lost(v, index);
	scrub_member_lost(v, index);
	if (v->state == VLOG_SERVING)
		v->meta.wanted = true; /* protect again what it held */
	if ((v->state == VLOG_SERVING || v->state == VLOG_CLOSING) &&
	    !enough_alive(v))
		too_few(v);
	resync_look(v);
	vlog_changed(v);
}

static void watch_fired(struct timer *t)
{
	struct vlog *v = container_of(t, struct vlog, watch);
	const uint64_t now = reactor_lived(v->r);

	for (unsigned i = 0; i < v->n; i++) {
		struct lio *first = v->member[i].first;

		if (first && now - first->start_ns >= IO_TIMEOUT_NS)
			member_lost(v, i, -ETIMEDOUT);
	}
	member_watch(v);
}

void member_watch(struct vlog *v)
{
	if (timer_armed(&v->watch) || !v->lios_out)
		return;
	v->watch.fn = watch_fired;
	timer_arm_lived(v->r, &v->watch, SEC_NS);
}

unsigned member_alive_count(const struct vlog *v)
{
	unsigned count = 0;

	for (unsigned i = 0; i < v->n; i++)
		count += v->member[i].alive;
	return count;
}

int member_space_init(struct vlog *v, struct member *m, uint32_t slots)
{
	m->zones_free = v->label.zones;
	m->slots = m->slots_free = slots;
	m->zone_used = calloc((v->label.zones + 63) / 64, 8);
	m->slot_used = calloc((slots + 63) / 64, 8);
	return m->zone_used && m->slot_used ? 0 : -ENOMEM;
}

int member_slots_grow(struct member *m, uint32_t slots)
{
	const size_t was = (m->slots + 63) / 64, words = (slots + 63) / 64;
	uint64_t *used;

	if (slots <= m->slots)
		return 0;
	used = realloc(m->slot_used, words * 8);
	if (!used)
		return -ENOMEM;
	memset(used + was, 0, (words - was) * 8);
	m->slot_used = used;
	m->slots_free += slots - m->slots;
	m->slots = slots;
	return 0;
}
