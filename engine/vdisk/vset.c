/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Life of a set: made over its members, members fail and are adopted, changes
 * of state are committed, and it closes once nothing is in flight.
 *
 * State in memory runs ahead of the labels: a failed member is out at once,
 * and cfg_gen counts the change; quorum_commit() makes it durable; what must
 * not be told before that waits in req_parked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

/* ---- making ------------------------------------------------------------- */

static void limits_add(struct vset *vs, const struct bdev *bdev)
{
	const struct bdev_limits *m = &bdev->limits;
	struct bdev_limits *l = &vs->limits;
	uint32_t block = m->block_bytes;

	if (block < m->align_bytes)
		block = m->align_bytes; /* pieces of buffers stay aligned */
	if (l->block_bytes < block)
		l->block_bytes = block;
	if (l->align_bytes < m->align_bytes)
		l->align_bytes = m->align_bytes;
	l->can_flush = l->can_flush && m->can_flush;
	l->can_fua = l->can_fua && (m->can_fua || m->can_flush);
	l->rotational = l->rotational || m->rotational;
}

static int member_fits(const struct vset *vs, const struct bdev *bdev,
		       bool data, struct err *err)
{
	const struct bdev_limits *l = &bdev->limits;
	const uint64_t need = data ? inplace_member_bytes(&vs->label.policy,
							  vs->label.size_bytes)
				   : VDISK_LABEL_BYTES;

	if (l->size_bytes < need)
		return err_set(err, -ENOSPC,
			       "%s has %llu bytes, a member of %s needs %llu",
			       bdev->name, (unsigned long long)l->size_bytes,
			       vs->label.name, (unsigned long long)need);
	if (l->block_bytes > 4096 || l->align_bytes > 4096)
		return err_set(err, -EINVAL,
			       "%s has blocks of %u bytes; members need 4096 "
			       "or less",
			       bdev->name, l->block_bytes);
	if (data && l->io_max_bytes && l->io_max_bytes < vs->unit)
		return err_set(err, -EINVAL,
			       "%s takes transfers of %u bytes at most, less "
			       "than the stripe unit of %u",
			       bdev->name, l->io_max_bytes, vs->unit);
	return 0;
}

int vset_member_check(const struct vset *vs, const struct bdev *bdev,
		      unsigned index, struct err *err)
{
	return member_fits(vs, bdev, index < vs->width, err);
}

static void members_init(struct vset *vs, struct bdev *const *bdev)
{
	for (unsigned i = 0; i < vs->slots; i++) {
		const struct label_member *l = &vs->label.member[i];
		struct member *m = &vs->member[i];

		vs->want_member[i] = *l;
		m->bdev = bdev[i];
		m->labelled = bdev[i] != NULL;
		m->mark_rows = m->mark_saved = l->mark_rows;
		m->state = (enum member_state)l->state;
		if (!m->bdev)
			m->state = MEMBER_MISSING;
		else if (l->state == MEMBER_MISSING)
			m->state = MUTATION(stale_served) ? MEMBER_OK
							  : MEMBER_STALE;
		if (m->bdev)
			limits_add(vs, m->bdev);
	}
}

static int members_check(struct vset *vs, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < vs->slots && !rc; i++) {
		if (!vs->member[i].bdev)
			continue;
		rc = vset_member_check(vs, vs->member[i].bdev, i, err);
		if (rc)
			break;
		rc = label_io_init(&vs->lio[i], vs->member[i].bdev);
		if (rc)
			err_set(err, rc, "out of memory for labels");
	}
	return rc;
}

int vset_new(struct reactor *r, const struct label *label,
	     struct bdev *const *bdev, struct vset **out, struct err *err)
{
	struct vset *vs = calloc(1, sizeof(*vs));
	int rc;

	if (!vs)
		return err_set(err, -ENOMEM, "out of memory for a vDisk");
	vs->reactor = r;
	vs->label = *label;
	vs->k = label->policy.k;
	vs->m = label->policy.m;
	vs->width = vs->k + vs->m;
	vs->slots = label->slots;
	vs->unit = vdisk_policy_unit(&label->policy);
	vs->rows = (inplace_member_bytes(&label->policy, label->size_bytes) -
		    VDISK_LABEL_BYTES) /
		   vs->unit;
	vs->resync_rows = label->resync_rows;
	vs->want_state = label->set_state;
	memcpy(vs->want_peer, label->peer, 16);
	vs->want_targets = label->targets;
	memcpy(vs->want_target, label->target, sizeof(vs->want_target));
	vs->want_copy_bytes = label->copy_bytes;
	vs->opening = true;
	vs->limits.can_flush = vs->limits.can_fua = true;
	members_init(vs, bdev);
	rc = members_check(vs, err);
	if (!rc)
		rc = ec_new(vs->k, vs->m, &vs->ec);
	if (!rc)
		rc = op_pools_init(vs);
	if (rc == -ENOMEM)
		err_set(err, rc, "out of memory for a vDisk");
	if (rc) {
		vset_free(vs);
		return rc;
	}
	*out = vs;
	return 0;
}

void vset_free(struct vset *vs)
{
	if (!vs)
		return;
	op_pools_fini(vs);
	for (unsigned i = 0; i < VDISK_MEMBERS_MAX; i++)
		label_io_fini(&vs->lio[i], vs->reactor);
	ec_free(vs->ec);
	free(vs);
}

/* ---- state -------------------------------------------------------------- */

unsigned vset_data_gone(const struct vset *vs)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < vs->width; i++)
		if (vs->member[i].state != MEMBER_OK)
			gone++;
	return gone;
}

/*
 * Told to others: a member is whole again only once the labels say so, for
 * they are what the next opening goes by.
 */
static enum member_state state_told(const struct vset *vs, unsigned i)
{
	const struct member *m = &vs->member[i];

	if (m->state == MEMBER_OK &&
	    (vs->label.member[i].state != MEMBER_OK || !m->labelled) &&
	    !MUTATION(whole_early))
		return MEMBER_REBUILDING;
	return m->state;
}

unsigned vset_failures_left(const struct vset *vs)
{
	unsigned gone = 0, labels = 0, left;

	for (unsigned i = 0; i < vs->width; i++)
		gone += state_told(vs, i) != MEMBER_OK;
	if (vs->failed || gone >= vs->m)
		return 0;
	for (unsigned i = 0; i < vs->slots; i++)
		if (vs->member[i].bdev && vs->member[i].labelled)
			labels++;
	left = vs->m - gone;
	if (labels < quorum_write_need(vs))
		return 0;
	return labels - quorum_write_need(vs) < left
		       ? labels - quorum_write_need(vs)
		       : left;
}

void vset_slot_fill(const struct vset *vs, unsigned i, struct vdisk_slot *slot)
{
	const struct label_member *l = &vs->want_member[i];

	memset(slot, 0, sizeof(*slot));
	slot->bdev = vs->member[i].bdev;
	memcpy(slot->domain, l->domain, sizeof(slot->domain));
	memcpy(slot->drive, l->drive, sizeof(slot->drive));
	memcpy(slot->component, l->component, sizeof(slot->component));
	slot->role = (enum member_role)l->role;
	slot->state = state_told(vs, i);
}

void vset_dirty(struct vset *vs)
{
	vs->cfg_gen++;
	quorum_commit(vs);
}

void vset_fail(struct vset *vs, const char *reason)
{
	if (vs->failed)
		return;
	vs->failed = true;
	snprintf(vs->reason, sizeof(vs->reason), "%s", reason);
	walk_stop(vs);
	req_unpark(vs);
	vset_task_post(vs);
	if (vs->changed)
		vs->changed(vs);
}

static void member_closed(void *arg)
{
	struct vset *vs = arg;

	vs->bdevs_closing--;
	if (vs->closing)
		vset_task_post(vs);
}

void vset_bdev_close(struct vset *vs, struct bdev *bdev)
{
	vs->bdevs_closing++;
	bdev_close(bdev, member_closed, vs);
}

static void member_close(struct vset *vs, unsigned index)
{
	struct bdev *bdev = vs->member[index].bdev;

	vs->member[index].bdev = NULL;
	if (!bdev || vs->opening)
		return; /* still the opener's */
	vset_bdev_close(vs, bdev);
}

/*
 * One more than the policy tolerates is not written into the labels: it would
 * make the vDisk unopenable for good, where a restart may find the member back.
 */
void vset_member_failed(struct vset *vs, unsigned index, int why)
{
	struct member *m = &vs->member[index];
	char reason[160];

	if (!m->bdev || vs->failed)
		return;
	snprintf(reason, sizeof(reason), "%.31s %.31s: %s",
		 vs->want_member[index].domain, vs->want_member[index].drive,
		 strerror(-why));
	if (index < vs->width && m->state == MEMBER_OK &&
	    vset_data_gone(vs) + 1 > vs->m) {
		vset_fail(vs, reason);
		return;
	}
	snprintf(vs->reason, sizeof(vs->reason), "%s", reason);
	m->state = MEMBER_MISSING;
	m->mark_rows = m->mark_saved = 0;
	m->labelled = false;
	member_close(vs, index);
	if (MUTATION(failure_untold))
		return;
	vs->cfg_gen++;
	if (index < vs->width)
		vs->ack_gen = vs->cfg_gen;
	quorum_commit(vs);
	if (vs->changed)
		vs->changed(vs);
}

/* A component takes a slot; the next epoch names it. bdev NULL: the one that
 * stands there already (stale). */
int vset_adopt(struct vset *vs, unsigned index, struct bdev *bdev,
	       const struct label_member *identity)
{
	struct member *m = &vs->member[index];
	struct label_io lio;
	int rc;

	id_assert(!vs->committing && !vs->failed);
	if (bdev) {
		rc = label_io_init(&lio, bdev);
		if (rc)
			return rc;
		label_io_fini(&vs->lio[index], vs->reactor);
		vs->lio[index] = lio;
		member_close(vs, index);
		m->bdev = bdev;
		m->labelled = false;
	}
	vs->want_member[index] = *identity;
	m->incarnation++;
	m->mark_rows = m->mark_saved = 0;
	m->state = index < vs->width ? MEMBER_REBUILDING : MEMBER_OK;
	vs->walk.paused = false;
	vs->reason[0] = '\0';
	vset_dirty(vs);
	return 0;
}

/* ---- background --------------------------------------------------------- */

static void resync_done(struct vset *vs, int result)
{
	if (!result)
		vset_dirty(vs);
	if (vs->changed)
		vs->changed(vs);
	vset_background(vs);
}

static void rebuild_done(struct vset *vs, int result)
{
	struct member *m = &vs->member[vs->walk.member];

	if (!result && walk_target(vs)) {
		m->state = MEMBER_OK;
		if (!vset_data_gone(vs))
			vs->reason[0] = '\0';
		vset_dirty(vs);
	} else if (result && result != -ECANCELED && !vs->failed) {
		vs->walk.paused = true;
		snprintf(vs->reason, sizeof(vs->reason),
			 "the rebuild stopped at row %llu: %s",
			 (unsigned long long)vs->walk.row, strerror(-result));
	}
	if (vs->changed)
		vs->changed(vs);
	vset_background(vs);
}

void vset_background(struct vset *vs)
{
	if (vs->failed || vs->closing || vs->opening || !walk_idle(vs) ||
	    vs->walk.paused)
		return;
	for (unsigned i = 0; i < vs->width; i++)
		if (vs->member[i].state == MEMBER_REBUILDING &&
		    vs->member[i].labelled) {
			walk_start(vs, WALK_REBUILD, i, vs->member[i].mark_rows,
				   rebuild_done);
			return;
		}
	if (vs->resync_rows < vs->rows && !vset_data_gone(vs))
		walk_start(vs, WALK_RESYNC, 0, vs->resync_rows, resync_done);
}

/* ---- closing ------------------------------------------------------------ */

enum { CLOSE_DRAIN, CLOSE_FLUSH, CLOSE_LABEL, CLOSE_BDEVS };

static void close_flushed(struct req *req)
{
	(void)req; /* a failed one has failed its member, or the set */
}

static bool vset_busy(const struct vset *vs)
{
	return vs->reqs || vs->ops_busy || vs->committing || !walk_idle(vs) ||
	       vs->req_done;
}

void vset_close_step(struct vset *vs)
{
	if (!vs->closing || vset_busy(vs))
		return;
	if (vs->close_phase == CLOSE_DRAIN) {
		vs->close_phase = CLOSE_FLUSH;
		vs->walk.flush = (struct req) { .op = BDEV_FLUSH,
						.done = close_flushed };
		if (vs->close_clean && !MUTATION(clean_unflushed) &&
		    !vset_submit(vs, &vs->walk.flush))
			return;
	}
	if (vs->close_phase == CLOSE_FLUSH) {
		vs->close_phase = CLOSE_LABEL;
		if (vs->close_clean && !vs->failed) {
			vs->want_clean = true;
			vset_dirty(vs);
			return; /* the commit's end comes here again */
		}
	}
	if (vs->close_phase == CLOSE_LABEL) {
		vs->close_phase = CLOSE_BDEVS;
		for (unsigned i = 0; i < vs->slots; i++)
			member_close(vs, i);
	}
	if (vs->bdevs_closing || vs->task_posted)
		return;
	vs->closed(vs, vs->closed_arg); /* frees vs */
}

void vset_close(struct vset *vs, bool clean,
		void (*closed)(struct vset *vs, void *arg), void *arg)
{
	id_assert(!vs->closing);
	vs->closing = true;
	vs->close_clean = clean;
	vs->closed = closed;
	vs->closed_arg = arg;
	walk_stop(vs);
	vset_task_post(vs);
}
