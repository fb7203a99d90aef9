/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Locks of operations, on (row, bytes within the chunks): lists in order of
 * arrival; who conflicts with anyone earlier waits, so order is FIFO.
 */
#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

static struct op **lock_bucket(struct vset *vs, uint64_t row)
{
	return &vs->lock_bucket[row % LOCK_BUCKETS];
}

static bool lock_conflict(const struct op *a, const struct op *b)
{
	return a->row == b->row && (a->exclusive || b->exclusive) &&
	       a->lo < b->lo + b->len && b->lo < a->lo + a->len;
}

/* The list runs from the newest to the oldest. */
static bool lock_free(const struct op *op)
{
	for (const struct op *o = op->lock_next; o; o = o->lock_next)
		if (lock_conflict(op, o) && !MUTATION(lock_none))
			return false;
	return true;
}

static void lock_grant(struct op *op)
{
	op->lock = OP_LOCKED;
	op_run(op, op->step);
}

void op_lock(struct op *op, bool exclusive, void (*step)(struct op *op))
{
	struct op **bucket = lock_bucket(op->vs, op->row);

	id_assert(op->lock == OP_UNLOCKED);
	op->exclusive = exclusive;
	op->step = step;
	op->lock = OP_WAITING;
	op->lock_prev = NULL;
	op->lock_next = *bucket;
	if (*bucket)
		(*bucket)->lock_prev = op;
	*bucket = op;
	if (lock_free(op))
		lock_grant(op);
}

void op_unlock(struct op *op)
{
	struct op **bucket = lock_bucket(op->vs, op->row);
	struct op *last = NULL;

	if (op->lock == OP_UNLOCKED)
		return;
	id_assert(op->lock == OP_LOCKED);
	op->lock = OP_UNLOCKED;
	if (op->lock_prev)
		op->lock_prev->lock_next = op->lock_next;
	else
		*bucket = op->lock_next;
	if (op->lock_next)
		op->lock_next->lock_prev = op->lock_prev;
	for (struct op *o = *bucket; o; o = o->lock_next)
		last = o;
	for (struct op *o = last; o; o = o->lock_prev)
		if (o->lock == OP_WAITING && lock_conflict(o, op) &&
		    lock_free(o))
			lock_grant(o);
}
