/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front of a vDisk: a bdev that sends its requests to a set, and during a
 * migration to two. How it comes to life is in open.c.
 */
#include "engine/vdisk/vdisk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/front.h"

#define VREQ_CHUNK 64

struct vreq_chunk {
	struct vreq_chunk *next;
	struct vreq vreq[VREQ_CHUNK];
};

/* ---- requests ----------------------------------------------------------- */

static bool vreq_grow(struct vdisk *vd)
{
	struct vreq_chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return false;
	chunk->next = vd->chunks;
	vd->chunks = chunk;
	for (unsigned i = 0; i < VREQ_CHUNK; i++) {
		chunk->vreq[i].next = vd->vreq_free;
		vd->vreq_free = &chunk->vreq[i];
	}
	return true;
}

void vdisk_vreq_put(struct vreq *vreq)
{
	struct vdisk *vd = vreq->vd;

	vreq->next = vd->vreq_free;
	vd->vreq_free = vreq;
}

static void vreq_done(struct req *req)
{
	struct vreq *vreq = container_of(req, struct vreq, req);
	struct vdisk *vd = vreq->vd;
	struct io *io = vreq->io;
	const int result = req->result;

	if (io->op == BDEV_WRITE && --vd->writes_plain == 0)
		migrate_step(vd);
	vdisk_vreq_put(vreq);
	bdev_complete(io, result);
}

static void vdisk_submit(struct bdev *bdev, struct io *io)
{
	struct vdisk *vd = (struct vdisk *)bdev;
	struct vreq *vreq;
	int rc;

	if (!vd->vreq_free && !vreq_grow(vd)) {
		bdev_complete_later(io, -ENOMEM);
		return;
	}
	vreq = vd->vreq_free;
	vd->vreq_free = vreq->next;
	vreq->vd = vd;
	vreq->io = io;
	vreq->req.op = io->op;
	vreq->req.flags = io->flags;
	vreq->req.len = io->len;
	vreq->req.off = io->off;
	vreq->req.buf = io->buf;
	vreq->req.done = vreq_done;
	if (io->op == BDEV_WRITE) {
		if (id_unlikely(vd->migration != NULL)) {
			vdisk_write_tracked(vd, vreq);
			return;
		}
		vd->writes_plain++;
	}
	rc = vset_submit(vd->set, &vreq->req);
	if (id_unlikely(rc)) {
		vd->writes_plain -= io->op == BDEV_WRITE;
		vdisk_vreq_put(vreq);
		bdev_complete_later(io, rc);
	}
}

/* ---- being told --------------------------------------------------------- */

static void vdisk_task(struct task *task)
{
	struct vdisk *vd = container_of(task, struct vdisk, task);

	vd->task_posted = false;
	if (vd->changed && !vd->bdev.closing)
		vd->changed(&vd->bdev, vd->changed_arg);
	if (vd->set_closed && !vd->task_posted)
		bdev_closed(&vd->bdev);
}

void vdisk_changed_post(struct vdisk *vd)
{
	if (vd->task_posted)
		return;
	vd->task_posted = true;
	vd->task.fn = vdisk_task;
	reactor_post(vd->bdev.reactor, &vd->task);
}

void vdisk_changed(struct vset *vs)
{
	vdisk_changed_post(vs->owner);
}

/* ---- replacing a member ------------------------------------------------- */

struct replace {
	struct vdisk *vd;
	unsigned index;
	struct bdev *bdev;
	struct label_member identity;
	struct label_io lio;
	bool adopted;
	vdisk_done_fn *done;
	void *arg;
	struct err err;
	struct task task;
};

static void replace_told(struct replace *rp)
{
	struct vdisk *vd = rp->vd;

	label_io_fini(&rp->lio, vd->bdev.reactor);
	if (vd->replace == rp)
		vd->replace = NULL;
	rp->done(rp->err.code, rp->err.code ? &rp->err : NULL, &vd->bdev,
		 rp->arg);
	free(rp);
	vdisk_call_ended(vd);
}

static void replace_closed(void *arg)
{
	replace_told(arg);
}

/* The component is the vDisk's from the call on, also to close. */
static void replace_end(struct replace *rp)
{
	if (rp->err.code && rp->bdev && !rp->adopted)
		bdev_close(rp->bdev, replace_closed, rp);
	else
		replace_told(rp);
}

/* After each commit, and once the label is read. */
void vdisk_replace_step(struct vdisk *vd)
{
	struct replace *rp = vd->replace;
	struct vset *vs = vd->set;
	int rc;

	if (!rp || !rp->lio.index)
		return; /* the label is still being read */
	if (!rp->err.code && vs->failed)
		err_set(&rp->err, -EIO, "%s has failed: %s", vs->label.name,
			vs->reason);
	if (!rp->err.code && !rp->bdev && !vs->member[rp->index].bdev)
		err_set(&rp->err, -ENODEV,
			"the component for member %u of %s has gone: %s",
			rp->index, vs->label.name, vs->reason);
	if (!rp->err.code && !rp->adopted) {
		if (vs->committing)
			return;
		rc = vset_adopt(vs, rp->index, rp->bdev, &rp->identity);
		if (!rc) {
			rp->adopted = true;
			return;
		}
		err_set(&rp->err, rc, "out of memory to replace a member");
	}
	if (!rp->err.code && !vs->member[rp->index].labelled)
		err_set(&rp->err, -EIO,
			"the component for member %u of %s failed: %s",
			rp->index, vs->label.name, vs->reason);
	replace_end(rp);
}

static void replace_was_read(struct label_io *lio)
{
	struct replace *rp = lio->arg;
	struct vset *vs = rp->vd->set;

	if (lio->result)
		err_set(&rp->err, lio->result,
			"%s cannot be read: %s; check the drive",
			rp->bdev->name, strerror(-lio->result));
	else if (lio->found &&
		 memcmp(lio->label.vdisk, vs->label.vdisk, 16) != 0)
		err_set(&rp->err, -EEXIST,
			"%s is a component of vDisk %s; delete it first",
			rp->bdev->name, lio->label.name);
	rp->lio.index = 1;
	vdisk_replace_step(rp->vd);
}

static int replace_check(struct vdisk *vd, unsigned index,
			 const struct vdisk_slot *slot, struct err *err)
{
	struct vset *vs = vd->set;

	if (vd->bdev.closing || vs->failed)
		return err_set(err, -EIO, "%s is not open", vs->label.name);
	if (vd->replace || migrate_switching(vd))
		return err_set(err, -EBUSY,
			       "%s is just being changed; try again",
			       vs->label.name);
	if (index >= vs->slots)
		return err_set(err, -EINVAL, "%s has no member %u",
			       vs->label.name, index);
	if (vs->member[index].state != MEMBER_MISSING &&
	    vs->member[index].state != MEMBER_STALE)
		return err_set(err, -EINVAL,
			       "member %u of %s is in service; fail it first",
			       index, vs->label.name);
	if (!slot->bdev)
		return vs->member[index].bdev
			       ? 0
			       : err_set(err, -EINVAL,
					 "member %u of %s is not there; name a "
					 "component to take its place",
					 index, vs->label.name);
	for (unsigned i = 0; i < vs->slots; i++)
		if (i != index && slot->domain[0] &&
		    !strncmp(vs->want_member[i].domain, slot->domain, 32))
			return err_set(err, -EINVAL,
				       "fault domain %.31s has a member of %s "
				       "already",
				       slot->domain, vs->label.name);
	return vset_member_check(vs, slot->bdev, index, err);
}

static void replace_task(struct task *task)
{
	struct replace *rp = container_of(task, struct replace, task);

	if (rp->err.code) {
		replace_end(rp);
	} else if (rp->bdev) {
		rp->lio.done = replace_was_read;
		rp->lio.arg = rp;
		label_io_read(&rp->lio);
	} else {
		rp->lio.index = 1;
		vdisk_replace_step(rp->vd);
	}
}

static void replace_identity(struct replace *rp, const struct vdisk_slot *slot)
{
	struct vset *vs = rp->vd->set;

	rp->identity = vs->want_member[rp->index];
	if (!slot->bdev)
		return; /* the same one, admitted again */
	uuid_make(vs->reactor, rp->identity.uuid);
	if (slot->domain[0])
		memcpy(rp->identity.domain, slot->domain, 32);
	memcpy(rp->identity.drive, slot->drive, 32);
	memcpy(rp->identity.component, slot->component, 64);
}

static void inplace_replace(struct bdev *vdisk, unsigned index,
			    const struct vdisk_slot *slot, vdisk_done_fn *done,
			    void *arg)
{
	struct vdisk *vd = (struct vdisk *)vdisk;
	struct replace *rp = calloc(1, sizeof(*rp));

	id_assert(rp);
	rp->vd = vd;
	rp->index = index;
	rp->done = done;
	rp->arg = arg;
	rp->task.fn = replace_task;
	rp->bdev = slot->bdev;
	vd->calls++;
	if (!replace_check(vd, index, slot, &rp->err)) {
		replace_identity(rp, slot);
		vd->replace = rp;
		if (rp->bdev && label_io_init(&rp->lio, rp->bdev))
			err_set(&rp->err, -ENOMEM,
				"out of memory to replace a member");
	}
	reactor_post(vdisk->reactor, &rp->task);
}

static int inplace_member_fail(struct bdev *vdisk, unsigned index,
			       struct err *err)
{
	struct vdisk *vd = (struct vdisk *)vdisk;
	struct vset *vs = vd->set;

	if (index >= vs->slots)
		return err_set(err, -EINVAL, "%s has no member %u",
			       vs->label.name, index);
	if (!vs->member[index].bdev)
		return 0;
	if (vs->member[index].state == MEMBER_OK && !vset_failures_left(vs))
		return err_set(err, -EBUSY,
			       "%s cannot do without member %u; wait for the "
			       "rebuild",
			       vs->label.name, index);
	vset_member_failed(vs, index, -ESHUTDOWN);
	return 0;
}

static void inplace_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s)
{
	struct vdisk *vd = (struct vdisk *)vdisk;

	vd->set->rebuild_limit = bytes_s;
	migrate_limit(vd, bytes_s);
}

/* ---- verify ------------------------------------------------------------- */

struct verify {
	struct vdisk *vd;
	uint64_t *mismatches;
	vdisk_done_fn *done;
	void *arg;
	struct err err;
	struct task task;
};

static void verify_task(struct task *task)
{
	struct verify *v = container_of(task, struct verify, task);

	struct vdisk *vd = v->vd;

	v->done(v->err.code, v->err.code ? &v->err : NULL, &vd->bdev, v->arg);
	free(v);
	vdisk_call_ended(vd);
}

static void verify_done(struct vset *vs, int result)
{
	struct vdisk *vd = vs->owner;
	struct verify *v = vd->verify;

	vd->verify = NULL;
	*v->mismatches = vs->walk.mismatches;
	if (result)
		err_set(&v->err, result, "verifying %s stopped: %s",
			vs->label.name,
			vs->failed ? vs->reason : strerror(-result));
	reactor_post(vs->reactor, &v->task);
	vset_background(vs);
}

static void inplace_verify(struct bdev *vdisk, uint64_t *mismatches,
			   vdisk_done_fn *done, void *arg)
{
	struct vdisk *vd = (struct vdisk *)vdisk;
	struct vset *vs = vd->set;
	struct verify *v = calloc(1, sizeof(*v));

	id_assert(v);
	*v = (struct verify) {
		.vd = vd, .mismatches = mismatches, .done = done, .arg = arg
	};
	v->task.fn = verify_task;
	vd->calls++;
	*mismatches = 0;
	if (vs->failed || vd->bdev.closing)
		err_set(&v->err, -EIO, "%s is not open", vs->label.name);
	else if (vd->verify || !walk_idle(vs) || vd->migration)
		err_set(&v->err, -EBUSY,
			"%s is being rebuilt, moved or verified; wait for it",
			vs->label.name);
	if (v->err.code || !vs->m) {
		reactor_post(vdisk->reactor, &v->task);
		return;
	}
	vd->verify = v;
	walk_start(vs, WALK_VERIFY, 0, 0, verify_done);
}

/* ---- facts -------------------------------------------------------------- */

static void info_state(const struct vdisk *vd, struct vdisk_info *info)
{
	const struct vset *vs = vd->set;
	bool rebuilding = vs->walk.kind == WALK_RESYNC ||
			  (vs->resync_rows < vs->rows && !vset_data_gone(vs));
	bool whole = true;

	for (unsigned i = 0; i < vs->slots; i++) {
		const enum member_state state = info->slot[i].state;

		whole = whole && state == MEMBER_OK;
		rebuilding = rebuilding || state == MEMBER_REBUILDING;
	}
	if (vs->failed)
		info->state = VDISK_FAILED;
	else if (rebuilding && !vs->walk.paused)
		info->state = VDISK_REBUILDING;
	else if (vd->migration)
		info->state = VDISK_MIGRATING;
	else
		info->state = whole ? VDISK_HEALTHY : VDISK_DEGRADED;
}

/* Before the walk begins, while it lasts, and until the labels say so. */
static uint64_t rows_done(const struct vset *vs)
{
	uint64_t rows = vs->rows;

	if (!walk_idle(vs))
		return vs->walk.row;
	for (unsigned i = 0; i < vs->slots; i++)
		if (vs->member[i].state == MEMBER_REBUILDING &&
		    vs->member[i].mark_rows < rows)
			rows = vs->member[i].mark_rows;
	return vs->resync_rows < rows ? vs->resync_rows : rows;
}

static void inplace_info(struct bdev *vdisk, struct vdisk_info *info)
{
	const struct vdisk *vd = (const struct vdisk *)vdisk;
	const struct vset *vs = vd->set;

	memset(info, 0, sizeof(*info));
	memcpy(info->name, vs->label.name, sizeof(info->name));
	memcpy(info->uuid, vs->label.vdisk, 16);
	info->size_bytes = vs->label.size_bytes;
	info->policy = vs->label.policy;
	info->epoch = vs->label.epoch;
	info->failures_left = vset_failures_left(vs);
	info->slots = vs->slots;
	for (unsigned i = 0; i < vs->slots; i++)
		vset_slot_fill(vs, i, &info->slot[i]);
	info_state(vd, info);
	memcpy(info->reason, vs->reason, sizeof(info->reason));
	if ((!walk_idle(vs) || info->state == VDISK_REBUILDING) && vs->rows) {
		const uint64_t rows = rows_done(vs);

		info->progress = (double)rows / (double)vs->rows;
		info->rebuild_bytes_s = vs->walk.bytes_s;
		info->rebuild_left_bytes = (vs->rows - rows) * vs->unit;
	}
	migrate_info(vd, info);
}

static void vdisk_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct vdisk *vd = (const struct vdisk *)bdev;
	const struct vset *vs = vd->set;
	char policy[32];

	vdisk_policy_name(&vs->label.policy, policy, sizeof(policy));
	snprintf(buf, len, "%s, unit %u KiB", policy,
		 vs->label.policy.stripe_unit_bytes / 1024);
}

/* ---- life --------------------------------------------------------------- */

static void vdisk_set_closed(struct vset *vs, void *arg)
{
	struct vdisk *vd = arg;

	vset_free(vs);
	vd->set = NULL;
	while (vd->chunks) {
		struct vreq_chunk *chunk = vd->chunks;

		vd->chunks = chunk->next;
		free(chunk);
	}
	vd->set_closed = true;
	if (!vd->task_posted)
		bdev_closed(&vd->bdev);
}

/* The end of the last call comes here again. */
static void vdisk_close_try(struct vdisk *vd)
{
	if (vd->close_asked && !vd->calls)
		vset_close(vd->set, true, vdisk_set_closed, vd);
}

void vdisk_call_ended(struct vdisk *vd)
{
	vd->calls--;
	migrate_step(vd);
	vdisk_close_try(vd);
}

static void vdisk_close(struct bdev *bdev)
{
	struct vdisk *vd = (struct vdisk *)bdev;

	vd->close_asked = true;
	if (vd->verify)
		walk_stop(vd->set);
	if (vd->migration)
		migrate_close(vd);
	vdisk_close_try(vd);
}

static const struct bdev_ops vdisk_ops = {
	.kind = "vdisk",
	.submit = vdisk_submit,
	.close = vdisk_close,
	.describe = vdisk_describe,
};

static void vdisk_committed(struct vset *vs)
{
	struct vdisk *vd = vs->owner;

	vdisk_replace_step(vd);
	migrate_step(vd);
	vdisk_changed_post(vd);
}

void vdisk_set_attach(struct vdisk *vd, struct vset *vs)
{
	struct bdev_limits *l = &vd->bdev.limits;

	vs->owner = vd;
	vs->changed = vdisk_changed;
	vs->committed = vdisk_committed;
	vd->set = vs;
	l->can_flush = vs->limits.can_flush;
	l->can_fua = vs->limits.can_fua;
	l->rotational = vs->limits.rotational;
	l->io_opt_bytes = vs->unit * vs->k;
}

int vdisk_new(struct vset *vs, const struct vdisk_spec *spec,
	      struct vdisk **out, struct err *err)
{
	struct vdisk *vd = calloc(1, sizeof(*vd));

	if (!vd)
		return err_set(err, -ENOMEM, "out of memory for a vDisk");
	bdev_init(&vd->bdev, &vdisk_ops, vs->reactor, vs->label.name);
	vd->bdev.limits = (struct bdev_limits) {
		.size_bytes = vs->label.size_bytes,
		.block_bytes = vs->limits.block_bytes,
		.phys_bytes = 4096,
		.align_bytes = vs->limits.align_bytes,
		.io_max_bytes = 8 * MIB,
	};
	vd->layout = &vdisk_inplace;
	vd->tracked_last = &vd->tracked;
	vdisk_set_attach(vd, vs);
	vd->changed = spec->changed;
	vd->changed_arg = spec->changed_arg;
	*out = vd;
	return 0;
}

/* ---- the layout --------------------------------------------------------- */

static uint64_t inplace_slot_bytes(const struct vdisk_policy *policy,
				   uint64_t size_bytes, unsigned slots,
				   unsigned index)
{
	if (index >= slots)
		return 0;
	if (index < (unsigned)policy->k + policy->m)
		return inplace_member_bytes(policy, size_bytes);
	return VDISK_LABEL_BYTES;
}

/* Nothing that grows with its size. */
static uint64_t inplace_memory_bytes(const struct vdisk_policy *policy,
				     uint64_t size_bytes, unsigned slots)
{
	(void)policy;
	(void)size_bytes;
	(void)slots;
	return 0;
}

const struct vdisk_layout_ops vdisk_inplace = {
	.name = "inplace",
	.create = inplace_create,
	.open = inplace_open,
	.info = inplace_info,
	.replace = inplace_replace,
	.member_fail = inplace_member_fail,
	.rebuild_limit = inplace_rebuild_limit,
	.migrate = inplace_migrate,
	.verify = inplace_verify,
	.label_probe = inplace_label_probe,
	.slot_bytes = inplace_slot_bytes,
	.memory_bytes = inplace_memory_bytes,
};
