/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks: all rows of a set, a batch at a time, while I/O goes on.
 *
 *   REBUILD  k other chunks -> the member's chunk
 *   RESYNC   data -> parity (first copy -> others), after an unclean end
 *   VERIFY   as resync, but only counts what differs
 *
 * The rows of a batch stay locked until all of it is done and the mark has
 * passed them: a write above the mark leaves the rebuilding member out (its
 * share is in the parity and comes over when the row's turn comes), a write
 * below goes to it as to any member, and there is no row in between.
 *
 * The mark is written into the labels after a flush, now and then, so that a
 * rebuild goes on there after a restart. A resync, too, is over only once what
 * it wrote is durable: the first copy may go then, and power with it.
 */
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

#define BATCH_BYTES (1u << 20) /* of a member */
#define BATCH_ROWS_MAX 16u
#define PERSIST_BYTES (64u << 20)
#define PERSIST_PARTS 16u

static void walk_next(struct vset *vs);

bool walk_idle(const struct vset *vs)
{
	return vs->walk.kind == WALK_NONE;
}

struct member *walk_target(struct vset *vs)
{
	struct member *m = &vs->member[vs->walk.member];

	return m->state == MEMBER_REBUILDING &&
			       m->incarnation == vs->walk.incarnation
		       ? m
		       : NULL;
}

static void walk_end(struct vset *vs, int result)
{
	struct walk *w = &vs->walk;

	w->kind = WALK_NONE;
	w->bytes_s = 0;
	timer_cancel(vs->reactor, &w->timer);
	w->done(vs, result);
	if (vs->closing)
		vset_task_post(vs);
}

/* ---- one row ------------------------------------------------------------ */

static void row_begin(struct op *op);

static void rebuild_written(struct op *op)
{
	struct vset *vs = op->vs;

	op_finish(op, walk_target(vs) && !vs->failed ? 0 : -ECANCELED);
}

static void rebuild_row(struct op *op)
{
	struct vset *vs = op->vs;
	const unsigned want = geo_chunk(vs, op->row, vs->walk.member);
	uint8_t *chunk[EC_CODED_MAX];

	if (!walk_target(vs)) {
		op_finish(op, -ECANCELED);
		return;
	}
	for (unsigned c = 0; c < vs->width; c++)
		chunk[c] = op_chunk(op, c);
	ec_decode(vs->ec, op->len, op->mask, want, chunk, chunk[want]);
	op_io(op, BDEV_WRITE, 1u << want, op_chunk, rebuild_written);
}

static void resync_written(struct op *op)
{
	op_finish(op, op->vs->failed ? -ECANCELED : 0);
}

/* Decodes what is not a source and compares. */
static void scan_row(struct op *op)
{
	struct vset *vs = op->vs;
	const unsigned have = op_sources(op, 0);
	uint8_t *chunk[EC_CODED_MAX], *fresh = op_chunk(op, vs->width);
	unsigned wrong = 0;

	for (unsigned c = 0; c < vs->width; c++)
		chunk[c] = op_chunk(op, c);
	for (unsigned c = 0; c < vs->width; c++) {
		if (!(op->mask & ~have & 1u << c))
			continue;
		ec_decode(vs->ec, op->len, have, c, chunk, fresh);
		if (!memcmp(fresh, chunk[c], op->len))
			continue;
		wrong |= 1u << c;
		memcpy(chunk[c], fresh, op->len);
	}
	op->differs = wrong != 0;
	wrong &= op_writable(op);
	if (wrong && vs->walk.kind == WALK_RESYNC)
		op_io(op, BDEV_WRITE, wrong, op_chunk, resync_written);
	else
		op_finish(op, 0);
}

static void row_was_read(struct op *op)
{
	if (op->bad & op->mask && !MUTATION(rebuild_unread))
		row_begin(op); /* with other sources */
	else if (op->vs->walk.kind == WALK_REBUILD)
		rebuild_row(op);
	else if (op->mask & ~op_readable(op))
		row_begin(op); /* a member went meanwhile */
	else
		scan_row(op);
}

static unsigned row_sources(struct op *op)
{
	const struct vset *vs = op->vs;

	if (vs->walk.kind == WALK_REBUILD)
		return op_sources(
			op, 1u << geo_chunk(vs, op->row, vs->walk.member));
	return op_sources(op, 0) ? op_readable(op) : 0;
}

static void row_begin(struct op *op)
{
	struct vset *vs = op->vs;
	unsigned mask;

	if (vs->failed || vs->walk.stop ||
	    (vs->walk.kind == WALK_RESYNC && vset_data_gone(vs))) {
		op_finish(op, -ECANCELED);
		return;
	}
	mask = row_sources(op);
	if (!mask)
		op_finish(op, -EIO);
	else if (op_scratch(op, row_begin))
		op_io(op, BDEV_READ, mask, op_chunk, row_was_read);
}

/* ---- a batch ------------------------------------------------------------ */

static void walk_speed(struct vset *vs, uint64_t bytes)
{
	struct walk *w = &vs->walk;
	const uint64_t now = reactor_turn_now(vs->reactor);
	const uint64_t span = now - w->speed_ns;

	w->speed_bytes += bytes;
	if (span < SEC_NS)
		return;
	w->bytes_s = (uint64_t)((double)w->speed_bytes * 1e9 / (double)span);
	w->speed_ns = now;
	w->speed_bytes = 0;
}

/* Held to the limit; without one, half of the time while others wait. */
static uint64_t walk_pause_ns(const struct vset *vs)
{
	const struct walk *w = &vs->walk;
	const uint64_t spent = reactor_now(vs->reactor) - w->started_ns;
	uint64_t whole;

	if (w->kind != WALK_VERIFY && vs->rebuild_limit) {
		whole = (uint64_t)((double)w->batch * vs->unit * 1e9 /
				   (double)vs->rebuild_limit);
		return whole > spent ? whole - spent : 0;
	}
	return vs->reqs ? spent : 0;
}

static void walk_timer(struct timer *timer)
{
	walk_next(container_of(timer, struct vset, walk.timer));
}

static void walk_saved(struct req *req)
{
	struct vset *vs = req->vs;
	struct walk *w = &vs->walk;
	struct member *m = walk_target(vs);

	if (!req->result && w->kind == WALK_REBUILD && m) {
		m->mark_saved = w->persist_row;
		if (w->row < vs->rows)
			vset_dirty(vs);
	}
	if (w->kind == WALK_RESYNC && req->result)
		w->result = req->result;
	else if (w->kind == WALK_RESYNC)
		vs->resync_rows = w->row;
	timer_arm(vs->reactor, &w->timer, reactor_now(vs->reactor));
}

static bool walk_save_due(const struct vset *vs)
{
	const struct walk *w = &vs->walk;
	uint64_t step = vs->rows / PERSIST_PARTS + 1;

	if (step > PERSIST_BYTES / vs->unit)
		step = PERSIST_BYTES / vs->unit;
	if (w->stop || vs->failed || w->row == w->persist_row)
		return false;
	return (w->kind == WALK_REBUILD && w->row - w->persist_row >= step) ||
	       (w->kind != WALK_VERIFY && w->row == vs->rows);
}

static bool walk_save(struct vset *vs)
{
	struct walk *w = &vs->walk;

	if (!walk_save_due(vs))
		return false;
	w->persist_row = w->row;
	w->flush = (struct req) { .op = BDEV_FLUSH, .done = walk_saved };
	if (MUTATION(mark_early) && walk_target(vs) && w->row < vs->rows) {
		walk_target(vs)->mark_saved = w->persist_row;
		vset_dirty(vs);
	}
	if (MUTATION(resync_volatile) && w->kind == WALK_RESYNC) {
		vs->resync_rows = w->row;
		return false;
	}
	return !vset_submit(vs, &w->flush);
}

static void batch_end(struct vset *vs)
{
	struct walk *w = &vs->walk;
	struct member *m = walk_target(vs);
	const uint64_t pause = walk_pause_ns(vs);

	if (!w->result) {
		w->row += w->batch;
		if (w->kind == WALK_REBUILD && m)
			m->mark_rows = w->row;
		if (w->kind == WALK_RESYNC && w->row < vs->rows)
			vs->resync_rows = w->row;
		walk_speed(vs, (uint64_t)w->batch * vs->unit);
	}
	while (w->held) {
		struct op *op = w->held;

		w->held = op->next;
		w->mismatches += op->differs;
		op_unlock(op);
		op_put(op);
	}
	if (!walk_save(vs))
		timer_arm(vs->reactor, &w->timer,
			  reactor_now(vs->reactor) + pause);
}

static void row_finished(struct op *op)
{
	struct vset *vs = op->vs;
	struct walk *w = &vs->walk;

	if (op->result && !w->result)
		w->result = op->result;
	op->next = w->held;
	w->held = op;
	if (--w->running == 0)
		batch_end(vs);
}

static void batch_start(struct vset *vs)
{
	struct walk *w = &vs->walk;
	unsigned batch = BATCH_BYTES / vs->unit;

	if (batch > BATCH_ROWS_MAX)
		batch = BATCH_ROWS_MAX;
	if (batch > vs->rows - w->row)
		batch = (unsigned)(vs->rows - w->row);
	w->batch = w->running = batch;
	w->started_ns = reactor_now(vs->reactor);
	for (unsigned i = 0; i < batch; i++) {
		struct op *op = op_get(vs);

		op->row = w->row + i;
		op->len = vs->unit;
		op->finished = row_finished;
		op_lock(op, true, row_begin);
	}
	vset_pump(vs);
}

static void walk_next(struct vset *vs)
{
	struct walk *w = &vs->walk;

	if (w->stop || vs->failed)
		walk_end(vs, -ECANCELED);
	else if (w->result)
		walk_end(vs, w->result);
	else if (w->row >= vs->rows)
		walk_end(vs, 0);
	else
		batch_start(vs);
}

void walk_start(struct vset *vs, enum walk_kind kind, unsigned member,
		uint64_t row, void (*done)(struct vset *vs, int result))
{
	struct walk *w = &vs->walk;

	id_assert(w->kind == WALK_NONE);
	w->kind = kind;
	w->member = member;
	w->incarnation = vs->member[member].incarnation;
	w->row = w->persist_row = row;
	w->stop = false;
	w->result = 0;
	w->mismatches = 0;
	w->done = done;
	w->timer.fn = walk_timer;
	w->speed_ns = reactor_now(vs->reactor);
	w->speed_bytes = 0;
	timer_arm(vs->reactor, &w->timer, reactor_now(vs->reactor));
}

void walk_stop(struct vset *vs)
{
	struct walk *w = &vs->walk;

	if (w->kind == WALK_NONE)
		return;
	w->stop = true;
	if (timer_armed(&w->timer))
		timer_arm(vs->reactor, &w->timer, reactor_now(vs->reactor));
}
