/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads, one chunk an operation. Healthy data needs no lock: a write in flight
 * to the same bytes may be seen or not. Data that has to be reconstructed
 * needs the row's bytes at rest, so it takes the lock.
 *
 *   readable:   read --ok--> done
 *                 \--error--> lock, exclusive --> reconstruct --> rewrite
 *   gone:       lock, shared --> reconstruct --> done
 */
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

static void read_recon(struct op *op);

/*
 * The copy with the fewest reads in flight, in turn where equal. After an
 * unclean end copies may differ in what was in flight; until that is put
 * right only the first is read, so that a block never changes back.
 */
static unsigned copy_choose(struct op *op, unsigned readable)
{
	struct vset *vs = op->vs;
	unsigned best = 0, best_reads = ~0u;

	if (op->row >= vs->resync_rows && !MUTATION(read_any_copy))
		return readable & -readable;
	for (unsigned i = 0; i < vs->width; i++) {
		const unsigned c = (vs->copy_turn + i) % vs->width;

		if ((readable & 1u << c) && vs->member[c].reads < best_reads) {
			best = c;
			best_reads = vs->member[c].reads;
		}
	}
	vs->copy_turn = (best + 1) % vs->width;
	return 1u << best;
}

static unsigned read_direct(struct op *op)
{
	const unsigned readable = op_readable(op);

	if (op->vs->k == 1 && op->vs->m)
		return readable ? copy_choose(op, readable) : 0;
	return readable & 1u << op->chunk0;
}

static void repair_done(struct op *op)
{
	op_finish(op, 0); /* a failed rewrite has failed the member */
}

/* What could not be read but is in service gets the right data again. */
static void read_repair(struct op *op)
{
	unsigned mask = op->exclusive ? op->bad & op_writable(op) : 0;

	if (op->vs->k > 1)
		mask &= 1u << op->chunk0;
	if (mask && !op->vs->failed)
		op_io(op, BDEV_WRITE, mask, op_user, repair_done);
	else
		op_finish(op, 0);
}

static void recon_done(struct op *op)
{
	struct vset *vs = op->vs;
	uint8_t *chunk[EC_CODED_MAX];

	if (op->bad & op->mask) {
		read_recon(op);
		return;
	}
	if (vs->k > 1 && op->mask != 1u << op->chunk0) {
		for (unsigned c = 0; c < vs->width; c++)
			chunk[c] = op_chunk(op, c);
		ec_decode(vs->ec, op->len, op->mask, op->chunk0, chunk,
			  op_user(op, op->chunk0));
	}
	read_repair(op);
}

/* Each turn either ends or finds one more chunk bad: it comes to an end. */
static void read_recon(struct op *op)
{
	struct vset *vs = op->vs;
	unsigned mask;

	op_bad_renew(op);
	mask = read_direct(op);

	if (vs->failed) {
		op_finish(op, -EIO);
		return;
	}
	if (mask) { /* another copy, or it is back meanwhile */
		op_io(op, BDEV_READ, mask, op_user, recon_done);
		return;
	}
	mask = vs->k > 1 ? op_sources(op, 1u << op->chunk0) : 0;
	if (!mask)
		op_finish(op, -EIO);
	else if (op_scratch(op, read_recon))
		op_io(op, BDEV_READ, mask, op_chunk, recon_done);
}

static void read_done(struct op *op)
{
	if (id_likely(!op->bad))
		op_finish(op, 0);
	else if (!op->vs->m)
		op_finish(op, -EIO);
	else
		op_lock(op, true, read_recon);
}

void read_step(struct op *op)
{
	const unsigned mask = read_direct(op);

	if (id_unlikely(op->vs->failed))
		op_finish(op, -EIO);
	else if (id_likely(mask))
		op_io(op, BDEV_READ, mask, op_user, read_done);
	else if (!op->vs->m)
		op_finish(op, -EIO);
	else
		op_lock(op, false, read_recon);
}
