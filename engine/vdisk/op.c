/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Operations. A request is cut into operations, each on one rectangle of one
 * row (the same bytes of one or several chunks), because parity at an offset
 * depends on the data at that offset alone. An operation is a chain of steps;
 * every step runs from vset_pump(), so nothing recurses and no callback of a
 * requester runs from inside its own submit.
 *
 *   member callback --> mio_done --> run queue --> pump: steps --> tell: done
 *
 * An operation holds at most one lock (lock.c), takes scratch memory only under
 * it, and whoever has scratch waits for nothing but I/O: no circle can form.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

static void queue_push(struct op_queue *q, struct op *op)
{
	op->next = NULL;
	*q->last = op;
	q->last = &op->next;
}

static struct op *queue_pop(struct op_queue *q)
{
	struct op *op = q->first;

	if (!op)
		return NULL;
	q->first = op->next;
	if (!q->first)
		q->last = &q->first;
	return op;
}

static void queue_init(struct op_queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

/* ---- pools -------------------------------------------------------------- */

static uint8_t *scratch_make(struct vset *vs, struct scratch_pool *pool)
{
	uint8_t *piece;

	if (pool->made == pool->max)
		return NULL;
	piece = reactor_buf_alloc(vs->reactor, pool->bytes);
	if (piece)
		pool->made++;
	return piece;
}

/* One piece at once, so that there is always progress. */
static int scratch_init(struct vset *vs, struct scratch_pool *pool,
			uint32_t stride)
{
	uint8_t *piece;

	queue_init(&pool->waiters);
	pool->stride = stride;
	pool->bytes = (size_t)stride * (vs->width + 1);
	pool->max = (unsigned)(SCRATCH_BYTES_MAX / pool->bytes);
	if (pool->max < 4)
		pool->max = 4;
	piece = scratch_make(vs, pool);
	if (!piece)
		return -ENOMEM;
	memcpy(piece, &pool->free, sizeof(pool->free));
	pool->free = piece;
	return 0;
}

static void scratch_fini(struct vset *vs, struct scratch_pool *pool)
{
	while (pool->free) {
		uint8_t *piece = pool->free;

		memcpy(&pool->free, piece, sizeof(pool->free));
		reactor_buf_free(vs->reactor, piece, pool->bytes);
		pool->made--;
	}
	id_assert(!pool->made);
}

int op_pools_init(struct vset *vs)
{
	int rc = 0;

	queue_init(&vs->run);
	vs->req_wait_last = &vs->req_wait;
	vs->req_done_last = &vs->req_done;
	vs->op_bytes = sizeof(struct op) + vs->width * sizeof(struct mio);
	vs->op_bytes = (vs->op_bytes + 63) / 64 * 64;
	vs->op_slab = calloc(OPS_MAX, vs->op_bytes);
	vs->lock_bucket = calloc(LOCK_BUCKETS, sizeof(*vs->lock_bucket));
	if (!vs->op_slab || !vs->lock_bucket)
		return -ENOMEM;
	if (vs->m) {
		rc = scratch_init(vs, &vs->small, SCRATCH_SMALL);
		if (!rc)
			rc = scratch_init(vs, &vs->big, vs->unit);
	}
	return rc;
}

void op_pools_fini(struct vset *vs)
{
	id_assert(!vs->ops_busy);
	scratch_fini(vs, &vs->small);
	scratch_fini(vs, &vs->big);
	free(vs->op_slab);
	free(vs->lock_bucket);
}

struct op *op_get(struct vset *vs)
{
	struct op *op = vs->ops_free;

	if (op) {
		vs->ops_free = op->next;
	} else {
		id_assert(vs->ops_made < OPS_MAX);
		op = (struct op *)(void *)(vs->op_slab +
					   vs->op_bytes * vs->ops_made++);
	}
	memset(op, 0, sizeof(*op));
	op->vs = vs;
	vs->ops_busy++;
	return op;
}

static void scratch_put(struct op *op)
{
	struct vset *vs = op->vs;
	struct scratch_pool *pool = op->scratch_big ? &vs->big : &vs->small;
	struct op *waiter;

	if (!op->scratch)
		return;
	waiter = queue_pop(&pool->waiters);
	if (waiter) {
		waiter->scratch = op->scratch;
		op_run(waiter, waiter->step);
	} else {
		memcpy(op->scratch, &pool->free, sizeof(pool->free));
		pool->free = op->scratch;
	}
	op->scratch = NULL;
}

bool op_scratch(struct op *op, void (*step)(struct op *op))
{
	struct vset *vs = op->vs;
	struct scratch_pool *pool;

	if (op->scratch)
		return true;
	op->scratch_big = op->len > SCRATCH_SMALL;
	pool = op->scratch_big ? &vs->big : &vs->small;
	if (pool->free) {
		op->scratch = pool->free;
		memcpy(&pool->free, op->scratch, sizeof(pool->free));
		return true;
	}
	op->scratch = scratch_make(vs, pool);
	if (op->scratch)
		return true;
	op->step = step;
	queue_push(&pool->waiters, op);
	return false;
}

uint8_t *op_chunk(const struct op *op, unsigned chunk)
{
	const struct vset *vs = op->vs;

	return op->scratch +
	       (size_t)chunk *
		       (op->scratch_big ? vs->big.stride : vs->small.stride);
}

uint8_t *op_user(const struct op *op, unsigned chunk)
{
	const struct vset *vs = op->vs;
	uint64_t at = op->row * vs->k * vs->unit + op->lo;

	if (vs->k > 1)
		at += (uint64_t)chunk * vs->unit;
	return op->req->buf + (at - op->req->off);
}

/* ---- steps -------------------------------------------------------------- */

void op_run(struct op *op, void (*step)(struct op *op))
{
	op->step = step;
	queue_push(&op->vs->run, op);
}

unsigned op_writable(const struct op *op)
{
	const struct vset *vs = op->vs;
	unsigned mask = 0;

	for (unsigned c = 0; c < vs->width; c++) {
		const struct member *m =
			&vs->member[geo_member(vs, op->row, c)];

		if (m->state == MEMBER_OK ||
		    (m->state == MEMBER_REBUILDING &&
		     (op->row < m->mark_rows || MUTATION(mark_ignored))))
			mask |= 1u << c;
	}
	return mask;
}

unsigned op_readable(const struct op *op)
{
	return op_writable(op) & ~op->bad;
}

unsigned op_sources(const struct op *op, unsigned avoid)
{
	unsigned left = op_readable(op) & ~avoid, mask = 0;

	for (unsigned n = 0; n < op->vs->k; n++) {
		if (!left)
			return 0;
		mask |= left & -left;
		left &= left - 1;
	}
	return mask;
}

void op_bad_renew(struct op *op)
{
	const struct vset *vs = op->vs;

	for (unsigned c = 0; c < vs->width; c++)
		if (op->bad & 1u << c &&
		    op->mio[c].bdev !=
			    vs->member[geo_member(vs, op->row, c)].bdev)
			op->bad &= ~(1u << c);
}

/* Its member has not failed since, nor has another taken the slot. */
static bool mio_here(const struct mio *mio)
{
	return mio->op->vs->member[mio->member].bdev == mio->bdev ||
	       MUTATION(read_failed_member);
}

static void mio_failed(struct mio *mio)
{
	struct op *op = mio->op;
	struct vset *vs = op->vs;
	const bool here = mio_here(mio);

	if (mio->io.op == BDEV_READ) {
		op->bad |= 1u << mio->chunk;
		if (mio->io.result != -ENODEV)
			return;
	} else if (!vs->m) {
		op->result = mio->io.result;
	}
	if (MUTATION(flush_failed_trusted) && mio->io.op == BDEV_FLUSH)
		return;
	if (MUTATION(write_failed_trusted) && mio->io.op == BDEV_WRITE)
		return;
	if (here && vs->m)
		vset_member_failed(vs, mio->member, mio->io.result);
}

/* A member without FUA: what was written is made durable by a flush. */
static bool mio_flush(struct mio *mio)
{
	mio->flush = false;
	if (!mio_here(mio))
		return false;
	mio->io.op = BDEV_FLUSH;
	mio->io.off = 0;
	mio->io.len = 0;
	mio->io.buf = NULL;
	bdev_submit(mio->bdev, &mio->io);
	return true;
}

static void mio_done(struct io *io)
{
	struct mio *mio = container_of(io, struct mio, io);
	struct op *op = mio->op;
	struct vset *vs = op->vs;

	if (io->op == BDEV_READ)
		vs->member[mio->member].reads--;
	if (id_unlikely(io->result))
		mio_failed(mio);
	else if (id_unlikely(!mio_here(mio)) && io->op == BDEV_READ)
		op->bad |= 1u << mio->chunk; /* it may have dropped writes */
	else if (id_unlikely(mio->flush) && mio_flush(mio))
		return;
	if (--op->pending)
		return;
	op_run(op, op->step);
	vset_pump(vs);
}

void op_io(struct op *op, enum bdev_op what, unsigned mask,
	   uint8_t *(*buf)(const struct op *op, unsigned chunk),
	   void (*step)(struct op *op))
{
	struct vset *vs = op->vs;

	id_assert(mask);
	op->step = step;
	op->mask = mask;
	op->pending = (uint16_t)__builtin_popcount(mask);
	for (unsigned c = 0; mask >> c; c++) {
		struct mio *mio = &op->mio[c];
		unsigned index;

		if (!(mask & 1u << c))
			continue;
		index = geo_member(vs, op->row, c);
		mio->op = op;
		mio->chunk = (uint8_t)c;
		mio->member = (uint8_t)index;
		mio->bdev = vs->member[index].bdev;
		mio->io.op = (uint8_t)what;
		mio->io.flags = 0;
		mio->io.done = mio_done;
		mio->io.off = 0;
		mio->io.len = 0;
		mio->io.buf = NULL;
		if (what == BDEV_READ)
			vs->member[index].reads++;
		if (what != BDEV_FLUSH) {
			mio->io.off =
				VDISK_LABEL_BYTES + op->row * vs->unit + op->lo;
			mio->io.len = op->len;
			mio->io.buf = buf(op, c);
		}
		mio->flush = false;
		if (what == BDEV_WRITE && op->req &&
		    op->req->flags & BDEV_FUA) {
			const struct bdev_limits *l = &mio->bdev->limits;

			mio->io.flags = l->can_fua ? BDEV_FUA : 0;
			mio->flush = !l->can_fua && l->can_flush;
		}
		bdev_submit(mio->bdev, &mio->io);
	}
}

void op_put(struct op *op)
{
	struct vset *vs = op->vs;

	id_assert(op->lock == OP_UNLOCKED && !op->scratch);
	op->next = vs->ops_free;
	vs->ops_free = op;
	vs->ops_busy--;
}

/*
 * A walk keeps the lock of its operations until the batch is done; all others
 * let go at once.
 */
void op_finish(struct op *op, int result)
{
	struct req *req = op->req;

	scratch_put(op);
	if (result && !op->result)
		op->result = result;
	if (!req) {
		op->finished(op);
		return;
	}
	op_unlock(op);
	if (op->result && !req->result)
		req->result = op->result;
	op_put(op);
	req_release(req);
}

/* ---- requests ----------------------------------------------------------- */

static void req_tell(struct req *req)
{
	struct vset *vs = req->vs;

	req->next = NULL;
	*vs->req_done_last = req;
	vs->req_done_last = &req->next;
}

/*
 * A write that a failed member missed must not be acknowledged before that
 * failure is durable in m + 1 labels: else the member could be read again
 * after a restart.
 */
void req_release(struct req *req)
{
	struct vset *vs = req->vs;

	if (--req->ops)
		return;
	if (req->op != BDEV_READ && !req->result &&
	    vs->ack_gen > vs->cfg_durable && !MUTATION(ack_early)) {
		req->cfg_gen = vs->ack_gen;
		req->next = vs->req_parked;
		vs->req_parked = req;
		return;
	}
	req_tell(req);
}

void req_unpark(struct vset *vs)
{
	struct req *list = vs->req_parked;

	vs->req_parked = NULL;
	while (list) {
		struct req *req = list;

		list = req->next;
		if (vs->failed)
			req->result = -EIO;
		if (!vs->failed && req->cfg_gen > vs->cfg_durable) {
			req->next = vs->req_parked;
			vs->req_parked = req;
		} else {
			req_tell(req);
		}
	}
}

static void op_start(struct req *req, uint64_t row, unsigned chunk0,
		     unsigned chunks, uint32_t lo, uint32_t len)
{
	struct op *op = op_get(req->vs);

	op->req = req;
	op->row = row;
	op->chunk0 = (uint8_t)chunk0;
	op->chunks = (uint8_t)chunks;
	op->lo = lo;
	op->len = len;
	req->ops++;
	op_run(op, req->op == BDEV_READ ? read_step : write_step);
}

/* One operation a chunk: reads, and writes without parity. */
static void split_chunks(struct req *req, uint64_t row, uint64_t from,
			 uint64_t to)
{
	const uint32_t unit = req->vs->unit;

	while (from < to) {
		const unsigned chunk = (unsigned)(from / unit);
		const uint32_t lo = (uint32_t)(from % unit);
		uint64_t len = unit - lo;

		if (len > to - from)
			len = to - from;
		op_start(req, row, chunk, 1, lo, (uint32_t)len);
		from += len;
	}
}

/*
 * Bytes from..to of a row's data as rectangles: columns change where the
 * first chunk begins and where the last one ends.
 *
 *   chunk 0  ......####     columns 0..o1: chunks 1, 2
 *   chunk 1  ##########             o1..o0: chunk 1
 *   chunk 2  ##........             o0..unit: chunks 0, 1
 */
static void split_columns(struct req *req, uint64_t row, uint64_t from,
			  uint64_t to)
{
	const uint32_t unit = req->vs->unit;
	const unsigned c0 = (unsigned)(from / unit);
	const unsigned c1 = (unsigned)((to - 1) / unit);
	const uint32_t o0 = (uint32_t)(from % unit);
	const uint32_t o1 = (uint32_t)((to - 1) % unit) + 1;
	const uint32_t edge[4] = { 0, o0 < o1 ? o0 : o1, o0 < o1 ? o1 : o0,
				   unit };

	if (c0 == c1) {
		op_start(req, row, c0, 1, o0, o1 - o0);
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t x = edge[i], len = edge[i + 1] - edge[i];
		const unsigned first = x >= o0 ? c0 : c0 + 1;
		const unsigned end = x < o1 ? c1 + 1 : c1;

		if (len && first < end)
			op_start(req, row, first, end - first, x, len);
	}
}

static bool req_split(struct req *req)
{
	struct vset *vs = req->vs;
	const uint64_t row_bytes = (uint64_t)vs->k * vs->unit;
	const uint64_t end = req->off + req->len;

	while (req->cursor < end) {
		const uint64_t row = req->cursor / row_bytes;
		const uint64_t base = row * row_bytes;
		const uint64_t to =
			end < base + row_bytes ? end : base + row_bytes;

		if (vs->failed) {
			req->result = -EIO;
			break;
		}
		if (vs->ops_busy + OPS_ROW_MAX > OPS_MAX - OPS_WALK)
			return false;
		if (req->op == BDEV_READ || !vs->m || vs->k == 1)
			split_chunks(req, row, req->cursor - base, to - base);
		else
			split_columns(req, row, req->cursor - base, to - base);
		req->cursor = to;
	}
	req_release(req);
	return true;
}

/* ---- flush: every member that has been written to ----------------------- */

static void flush_done(struct op *op)
{
	op_finish(op, op->vs->failed ? -EIO : 0);
}

static void flush_step(struct op *op)
{
	struct vset *vs = op->vs;
	unsigned mask = 0;

	for (unsigned c = 0; c < vs->width; c++) {
		const struct member *m = &vs->member[geo_member(vs, 0, c)];

		if ((m->state == MEMBER_OK || m->state == MEMBER_REBUILDING) &&
		    m->bdev->limits.can_flush)
			mask |= 1u << c;
	}
	if (MUTATION(flush_one))
		mask &= -mask;
	if (vs->failed || !mask)
		op_finish(op, vs->failed ? -EIO : 0);
	else
		op_io(op, BDEV_FLUSH, mask, NULL, flush_done);
}

static bool req_flush(struct req *req)
{
	struct vset *vs = req->vs;
	struct op *op;

	if (vs->ops_busy + OPS_ROW_MAX > OPS_MAX - OPS_WALK)
		return false;
	op = op_get(vs);
	op->req = req;
	op_run(op, flush_step);
	return true;
}

static bool req_begin(struct req *req)
{
	return req->op == BDEV_FLUSH ? req_flush(req) : req_split(req);
}

/* ---- the pump ----------------------------------------------------------- */

static void vset_task(struct task *task)
{
	struct vset *vs = container_of(task, struct vset, task);

	vs->task_posted = false;
	vset_pump(vs);
	vset_close_step(vs); /* may free vs */
}

void vset_task_post(struct vset *vs)
{
	if (vs->task_posted)
		return;
	vs->task_posted = true;
	vs->task.fn = vset_task;
	reactor_post(vs->reactor, &vs->task);
}

static void vset_tell(struct vset *vs)
{
	bool told = false;

	if (vs->telling)
		return;
	if (vs->in_call) {
		if (vs->req_done)
			vset_task_post(vs);
		return;
	}
	vs->telling = true;
	while (vs->req_done) {
		struct req *req = vs->req_done;

		vs->req_done = req->next;
		if (!vs->req_done)
			vs->req_done_last = &vs->req_done;
		vs->reqs--;
		told = true;
		req->done(req);
	}
	vs->telling = false;
	if (vs->closing && told)
		vset_task_post(vs);
}

void vset_pump(struct vset *vs)
{
	if (vs->pumping)
		return;
	vs->pumping = true;
	for (;;) {
		struct op *op = queue_pop(&vs->run);

		if (op) {
			op->step(op);
		} else if (vs->req_wait && req_begin(vs->req_wait)) {
			/* req_begin() may have put it on another list, but
			 * only the wait list is linked through wait_next. */
			struct req *req = vs->req_wait;

			vs->req_wait = req->wait_next;
			if (!vs->req_wait)
				vs->req_wait_last = &vs->req_wait;
		} else {
			break;
		}
	}
	vs->pumping = false;
	vset_tell(vs);
}

int vset_submit(struct vset *vs, struct req *req)
{
	if (vs->failed)
		return -EIO;
	req->vs = vs;
	req->result = 0;
	req->cursor = req->off;
	req->ops = 1;
	req->next = req->wait_next = NULL;
	vs->reqs++;
	vs->in_call++;
	if (vs->req_wait || !req_begin(req)) {
		*vs->req_wait_last = req;
		vs->req_wait_last = &req->wait_next;
	}
	vset_pump(vs);
	vs->in_call--;
	return 0;
}
