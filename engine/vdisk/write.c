/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes. Without parity: to the member. Copies: under the lock, to all, so
 * that overlapping writes land in one order everywhere. With parity, by what
 * costs the fewest reads among what is possible with the members there:
 *
 *   FULL   all data chunks are written: no reads
 *   RMW    old data and old parity; parity += code(old ^ new)
 *   RCW    the data chunks that are not written; parity = code(all)
 *   RECON  any k chunks; what is missing is decoded; then as RCW
 *
 * At a tie RCW: it also puts a wrong parity right. The lock covers the bytes
 * from the first read to the last write. A member that fails during the
 * writes is marked, and the write counts as done: what it missed is in the
 * parity (or the other copies), and the acknowledgement waits for the labels.
 */
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

enum write_mode { WRITE_FULL, WRITE_RMW, WRITE_RCW, WRITE_RECON };

static void write_plan(struct op *op);

static unsigned mask_covered(const struct op *op)
{
	return ((1u << op->chunks) - 1) << op->chunk0;
}

static unsigned mask_data(const struct vset *vs)
{
	return (1u << vs->k) - 1;
}

static unsigned mask_parity(const struct vset *vs)
{
	return ((1u << vs->m) - 1) << vs->k;
}

static void write_done(struct op *op)
{
	op_finish(op, op->vs->failed ? -EIO : 0);
}

static uint8_t *write_source(const struct op *op, unsigned chunk)
{
	return chunk < op->vs->k ? op_user(op, chunk) : op_chunk(op, chunk);
}

static void write_out(struct op *op)
{
	const struct vset *vs = op->vs;
	const unsigned mask =
		op_writable(op) & (mask_covered(op) | mask_parity(vs));

	if (vs->failed)
		op_finish(op, -EIO);
	else if (!mask)
		op_finish(op, -EIO);
	else
		op_io(op, BDEV_WRITE, mask, write_source, write_done);
}

/* ---- parity ------------------------------------------------------------- */

static void parity_encode(struct op *op)
{
	const struct vset *vs = op->vs;
	const unsigned covered = mask_covered(op);
	uint8_t *data[EC_CODED_MAX], *parity[EC_CODED_MAX];

	for (unsigned c = 0; c < vs->k; c++)
		data[c] = covered & 1u << c ? op_user(op, c) : op_chunk(op, c);
	for (unsigned j = 0; j < vs->m; j++)
		parity[j] = op_chunk(op, vs->k + j);
	ec_encode(vs->ec, op->len, data, parity);
}

static void parity_update(struct op *op)
{
	const struct vset *vs = op->vs;
	uint8_t *parity[EC_CODED_MAX];

	for (unsigned j = 0; j < vs->m; j++)
		parity[j] = op_chunk(op, vs->k + j);
	for (unsigned c = op->chunk0; c < op->chunk0 + op->chunks; c++) {
		ec_xor(op_chunk(op, c), op_user(op, c), op->len);
		ec_update(vs->ec, op->len, c, op_chunk(op, c), parity);
	}
}

/* Old data that is neither written nor readable, from the k that are. */
static void data_decode(struct op *op)
{
	const struct vset *vs = op->vs;
	const unsigned want = mask_data(vs) & ~mask_covered(op) & ~op->mask;
	uint8_t *chunk[EC_CODED_MAX];

	for (unsigned c = 0; c < vs->width; c++)
		chunk[c] = op_chunk(op, c);
	for (unsigned c = 0; c < vs->k; c++)
		if (want & 1u << c)
			ec_decode(vs->ec, op->len, op->mask, c, chunk,
				  chunk[c]);
}

static void write_compute(struct op *op)
{
	if (op->bad & op->mask && !MUTATION(parity_unread)) {
		write_plan(op); /* with one less to read from */
		return;
	}
	if (op->mode == WRITE_RECON)
		data_decode(op);
	if (op->mode == WRITE_RMW)
		parity_update(op);
	else
		parity_encode(op);
	write_out(op);
}

/* ---- the planner -------------------------------------------------------- */

/*
 * Chooses the mode and what it reads.
 * Returns the mask to read (0 with WRITE_FULL), or ~0 when nothing works.
 */
static unsigned plan_choose(struct op *op)
{
	const struct vset *vs = op->vs;
	const unsigned covered = mask_covered(op);
	const unsigned readable = op_readable(op);
	const unsigned rest = mask_data(vs) & ~covered;
	const unsigned old = covered | (mask_parity(vs) & op_writable(op));
	const unsigned sources = op_sources(op, 0);
	unsigned cost = ~0u, mask = ~0u;

	if (!rest || !(mask_parity(vs) & op_writable(op))) {
		op->mode = WRITE_FULL;
		return 0;
	}
	if ((readable & rest) == rest) {
		op->mode = WRITE_RCW;
		mask = rest;
		cost = (unsigned)__builtin_popcount(rest);
	}
	if ((readable & old) == old &&
	    (unsigned)__builtin_popcount(old) < cost) {
		op->mode = WRITE_RMW;
		mask = old;
		cost = (unsigned)__builtin_popcount(old);
	}
	if (mask == ~0u && sources) {
		op->mode = WRITE_RECON;
		mask = sources;
	}
	return mask;
}

/* All data is there, or no parity member is: nothing to read. */
static void write_full(struct op *op)
{
	if (op->chunks == op->vs->k)
		parity_encode(op);
	write_out(op);
}

static void write_plan(struct op *op)
{
	const struct vset *vs = op->vs;
	unsigned mask;

	if (vs->failed) {
		op_finish(op, -EIO);
		return;
	}
	if (!op_scratch(op, write_plan))
		return;
	op_bad_renew(op);
	mask = plan_choose(op);
	if (mask == ~0u)
		op_finish(op, -EIO);
	else if (mask)
		op_io(op, BDEV_READ, mask, op_chunk, write_compute);
	else
		write_full(op);
}

/* ---- copies and plain members ------------------------------------------- */

static void write_copies(struct op *op)
{
	const unsigned mask = op_writable(op);

	if (op->vs->failed || !mask)
		op_finish(op, -EIO);
	else
		op_io(op, BDEV_WRITE, mask, op_user, write_done);
}

void write_step(struct op *op)
{
	struct vset *vs = op->vs;

	if (vs->failed)
		op_finish(op, -EIO);
	else if (!vs->m)
		op_io(op, BDEV_WRITE, 1u << op->chunk0, op_user, write_done);
	else if (vs->k == 1)
		op_lock(op, true, write_copies);
	else
		op_lock(op, true, write_plan);
}
