/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The labels of a set as one agreement.
 *
 * L labels stand on L = max(k + m, 2m + 1) fault domains. To write takes
 * m + 1 of them durable, to open takes L - m of them: any two such meet in at
 * least one label. And two owners cannot both open: 2 (L - m) > L, and each
 * holds its components exclusively.
 *
 * 1. An owner reads at least L - m labels and takes the newest content, by
 *    (claim, epoch). A content on a minority only, left by a crash, may be
 *    taken or not; both are right, because nothing that depends on it was
 *    acknowledged.
 * 2. It claims: claim = 1 + the highest promised, written beside each label's
 *    own content, until m + 1 hold it. The next owner reads one of these, so
 *    no two owners that got this far ever have the same claim; without this
 *    step two different contents could stand as the same epoch, one of them
 *    on a component that was away, and bring a stale member back.
 * 3. It commits the content under its claim, epoch + 1, the missing marked,
 *    on m + 1 labels, and serves.
 * 4. Each later change is epoch + 1 in the same way. A component that is new
 *    to the set gets its label only once the epoch that names it is durable
 *    on m + 1 of those that were in the set before: so each commit holds in
 *    the old and in the new set.
 *
 * Each write of a label reads it first: a higher promise there means that
 * another owner took over, and this one stops; a lower one, that somebody put
 * an older copy of the component back, and that member is out. A write that
 * failed may have landed: that component is out until it is read and admitted
 * again.
 */
#include <stdio.h>
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

unsigned quorum_write_need(const struct vset *vs)
{
	return vs->m + !(MUTATION(label_minority) && vs->m);
}

unsigned quorum_read_need(const struct label *label)
{
	return label->slots - label->policy.m;
}

/* ---- one round over the members of a mask ------------------------------- */

static void lio_end(struct label_io *lio, bool ok)
{
	struct vset *vs = lio->arg;

	if (ok)
		vs->lio_ok |= 1u << lio->index;
	if (--vs->lio_pending == 0)
		vs->lio_done(vs);
}

static void lio_failed(struct label_io *lio, int why)
{
	struct vset *vs = lio->arg;

	if (vs->member[lio->index].bdev == lio->bdev)
		vset_member_failed(vs, lio->index, why);
	lio_end(lio, false);
}

static void lio_written(struct label_io *lio)
{
	const struct vset *vs = lio->arg;

	if (lio->result)
		lio_failed(lio, lio->result);
	else
		lio_end(lio, vs->member[lio->index].bdev == lio->bdev);
}

/* What this component's label becomes. */
static void lio_content(struct label_io *lio, struct label *label)
{
	struct vset *vs = lio->arg;

	*label = vs->lio_mode == LIO_CLAIM ? lio->label : vs->next_label;
	label->promised = vs->claim;
	if (vs->lio_mode == LIO_CONTENT)
		memcpy(label->self, vs->want_member[lio->index].uuid, 16);
}

static void lio_was_read(struct label_io *lio)
{
	struct vset *vs = lio->arg;
	const bool ours =
		lio->found && !memcmp(lio->label.set, vs->label.set, 16);
	struct label label;

	if (vs->member[lio->index].bdev != lio->bdev) {
		lio_end(lio, false); /* failed meanwhile */
		return;
	}
	if (lio->result) {
		lio_failed(lio, lio->result);
		return;
	}
	if (ours && lio->label.promised > vs->claim) {
		vs->lio_fenced = true;
		lio_end(lio, false);
		return;
	}
	if (vs->member[lio->index].labelled &&
	    (!ours || (vs->lio_mode == LIO_CONTENT &&
		       lio->label.promised < vs->claim))) {
		lio_failed(lio, -EBADMSG); /* overwritten, or put back */
		return;
	}
	lio_content(lio, &label);
	lio->done = lio_written;
	label_io_write(lio, &label);
}

void quorum_write(struct vset *vs, unsigned mask, int mode,
		  void (*done)(struct vset *vs))
{
	id_assert(!vs->lio_pending && mask);
	vs->lio_mode = mode;
	vs->lio_ok = 0;
	vs->lio_fenced = false;
	vs->lio_done = done;
	vs->lio_pending = (unsigned)__builtin_popcount(mask);
	for (unsigned i = 0; i < vs->slots; i++) {
		struct label_io *lio = &vs->lio[i];

		if (!(mask & 1u << i))
			continue;
		lio->bdev = vs->member[i].bdev;
		lio->index = i;
		lio->arg = vs;
		lio->done = lio_was_read;
		label_io_read(lio);
	}
}

static unsigned mask_there(const struct vset *vs, bool labelled)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < vs->slots; i++)
		if (vs->member[i].bdev && vs->member[i].labelled == labelled)
			mask |= 1u << i;
	return mask;
}

/* Planted faults write on fewer than it takes. */
static unsigned mask_fewer(const struct vset *vs, unsigned mask, bool fewer)
{
	while (fewer && (unsigned)__builtin_popcount(mask) > vs->m && vs->m)
		mask &= mask - 1;
	return mask;
}

/* ---- commits ------------------------------------------------------------ */

static void content_build(struct vset *vs)
{
	struct label *next = &vs->next_label;

	*next = vs->label;
	next->claim = next->promised = vs->claim;
	next->epoch = vs->label.epoch + 1;
	next->set_state = vs->want_state;
	memcpy(next->peer, vs->want_peer, 16);
	next->targets = (uint8_t)vs->want_targets;
	memcpy(next->target, vs->want_target, sizeof(next->target));
	next->copy_bytes = vs->want_copy_bytes;
	next->clean = vs->want_clean;
	next->resync_rows = vs->resync_rows;
	for (unsigned i = 0; i < vs->slots; i++) {
		struct label_member *m = &next->member[i];

		*m = vs->want_member[i];
		m->state = (uint8_t)(vs->member[i].state == MEMBER_STALE
					     ? MEMBER_MISSING
					     : vs->member[i].state);
		m->mark_rows = m->state == MEMBER_REBUILDING
				       ? vs->member[i].mark_saved
				       : 0;
	}
}

static void commit_end(struct vset *vs)
{
	vs->committing = false;
	if (!vs->failed)
		vs->cfg_durable = vs->cfg_running;
	req_unpark(vs);
	vset_pump(vs);
	if (vs->opened && (vs->failed || vs->cfg_durable == vs->cfg_gen)) {
		void (*opened)(struct vset * vs, int result) = vs->opened;

		vs->opened = NULL;
		opened(vs, vs->failed ? -EAGAIN : 0);
		return; /* may have freed vs */
	}
	quorum_commit(vs);
	vset_background(vs);
	if (vs->committed && !vs->committing)
		vs->committed(vs);
	if (vs->closing)
		vset_task_post(vs);
}

static void commit_new_done(struct vset *vs)
{
	for (unsigned i = 0; i < vs->slots; i++)
		if (vs->lio_ok & 1u << i)
			vs->member[i].labelled = true;
	commit_end(vs);
}

static void commit_done(struct vset *vs)
{
	const unsigned ok = (unsigned)__builtin_popcount(vs->lio_ok);
	unsigned mask;
	char why[160];

	if (vs->lio_fenced) {
		vset_fail(vs, "another owner has taken it over");
	} else if (ok < quorum_write_need(vs)) {
		snprintf(why, sizeof(why),
			 "labels could be written on %u of %u members, %u are "
			 "needed",
			 ok, vs->slots, quorum_write_need(vs));
		vset_fail(vs, why);
	}
	if (vs->failed) {
		commit_end(vs);
		return;
	}
	vs->label = vs->next_label;
	mask = mask_there(vs, false);
	if (mask)
		quorum_write(vs, mask, LIO_CONTENT, commit_new_done);
	else
		commit_end(vs);
}

void quorum_commit(struct vset *vs)
{
	unsigned mask;

	if (vs->committing || vs->failed || vs->cfg_gen == vs->cfg_durable)
		return;
	mask = mask_there(vs, true);
	vs->committing = true;
	if (!mask) {
		vset_fail(vs, "no label is left");
		commit_end(vs);
		return;
	}
	vs->cfg_running = vs->cfg_gen;
	content_build(vs);
	quorum_write(vs, mask_fewer(vs, mask, MUTATION(label_minority)),
		     LIO_CONTENT, commit_done);
}

/* ---- opening ------------------------------------------------------------ */

static void claim_done(struct vset *vs)
{
	const unsigned ok = (unsigned)__builtin_popcount(vs->lio_ok) +
			    MUTATION(claim_minority) * vs->m;

	vs->committing = false;
	if (vs->lio_fenced || ok < quorum_write_need(vs))
		vset_fail(vs, vs->lio_fenced ? "another owner is taking it over"
					     : "its labels cannot be written");
	if (vs->failed) {
		commit_end(vs);
		return;
	}
	vset_dirty(vs);
}

void quorum_open(struct vset *vs, void (*done)(struct vset *vs, int result))
{
	vs->opened = done;
	vs->committing = true;
	if (MUTATION(claim_none)) {
		vs->committing = false;
		vset_dirty(vs);
		return;
	}
	quorum_write(
		vs,
		mask_fewer(vs, mask_there(vs, true), MUTATION(claim_minority)),
		LIO_CLAIM, claim_done);
}
