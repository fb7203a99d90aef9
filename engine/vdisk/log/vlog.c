/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The whole: what it is made of, the pump that turns its machines, its way out
 * and the bdev it is to others.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

#define IO_MAX_BYTES (1u << 20)
#define LIOS 4096
#define CHECKPOINT_FILL 0.5

#ifdef IODECK_MUTATIONS
enum vlog_mut vlog_mut;
#endif

static struct vlog *vlog_of(struct bdev *bdev)
{
	return container_of(bdev, struct vlog, bdev);
}

/* ---- the pump ------------------------------------------------------ */

static void stop_step(struct vlog *v)
{
	if (v->state != VLOG_STOPPED || !(v->users || v->waiting))
		return;
	writes_fail(v);
	reads_fail(v);
}

static void checkpoint_due(struct vlog *v)
{
	if (v->state != VLOG_SERVING || v->meta.wanted || !meta_idle(v) ||
	    log_fill(v) < CHECKPOINT_FILL)
		return;
	/* There is something to free. */
	if (v->zones && v->zones->zseq < log_start(v, v->durable))
		v->meta.wanted = true;
}

/* Hands on what has come, as far as there are requests. */
static bool submit_step(struct vlog *v)
{
	bool moved = false;
	struct io *io;

	while ((io = v->wait_first) && slab_left(&v->req_slab)) {
		v->wait_first = io->next;
		if (!v->wait_first)
			v->wait_last = NULL;
		v->waiting--;
		if (io->op == BDEV_READ)
			read_submit(v, io);
		else
			write_submit(v, io);
		moved = true;
	}
	return moved;
}

static bool steps(struct vlog *v)
{
	bool moved = submit_step(v);

	moved |= recover_step(v);
	moved |= log_step(v);
	moved |= meta_step(v);
	moved |= stripe_step(v);
	moved |= writes_step(v);
	moved |= destage_step(v);
	moved |= reads_step(v);
	moved |= clean_step(v);
	moved |= seg_step(v);
	return moved;
}

static bool close_step(struct vlog *v);

static void pump(struct task *task)
{
	struct vlog *v = container_of(task, struct vlog, task);

	v->task_posted = false;
	while (steps(v))
		;
	stop_step(v);
	checkpoint_due(v);
	if (v->meta.wanted && v->meta.phase == META_IDLE && meta_step(v))
		vlog_kick(v);
	if (v->changed_due && v->owns) {
		v->changed_due = false;
		if (v->changed)
			v->changed(&v->bdev, v->changed_arg);
	}
	close_step(v); /* v may be gone */
}

void vlog_kick(struct vlog *v)
{
	if (v->task_posted)
		return;
	v->task_posted = true;
	v->task.fn = pump;
	reactor_post(v->r, &v->task);
}

void vlog_changed(struct vlog *v)
{
	v->changed_due = true;
	vlog_kick(v);
}

void vlog_stop(struct vlog *v, const char *fmt, ...)
{
	va_list ap;

	if (v->state == VLOG_STOPPED)
		return;
	va_start(ap, fmt);
	vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
	va_end(ap);
	v->state = VLOG_STOPPED;
	vlog_changed(v);
}

/* ---- as a bdev ----------------------------------------------------- */

static void vlog_submit(struct bdev *bdev, struct io *io)
{
	struct vlog *v = vlog_of(bdev);

	if (v->state == VLOG_STOPPED) {
		bdev_complete_later(io, -EIO);
		return;
	}
	if (io->op == BDEV_FLUSH) { /* what was answered is durable */
		bdev_complete_later(io, 0);
		return;
	}
	io->next = NULL;
	if (v->wait_last)
		v->wait_last->next = io;
	else
		v->wait_first = io;
	v->wait_last = io;
	v->waiting++;
	vlog_kick(v);
}

static void vlog_close(struct bdev *bdev)
{
	struct vlog *v = vlog_of(bdev);

	v->closing = true;
	if (v->state == VLOG_SERVING)
		v->state = VLOG_CLOSING;
	vlog_kick(v);
}

static void vlog_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct vlog *v = vlog_of(bdev);
	static const char *const codec[] = { "raw", "lz4", "zstd" };

	snprintf(buf, len, "log-structured %u+%u on %u, %s", v->k, v->m, v->n,
		 codec[v->codec]);
}

static const struct bdev_ops vlog_ops = {
	.kind = "vdisk",
	.submit = vlog_submit,
	.close = vlog_close,
	.describe = vlog_describe,
};

/* ---- made and freed ------------------------------------------------ */

static int pools_init(struct vlog *v)
{
	const unsigned width = v->label.k + v->label.m;
	int rc;

	rc = slab_init(&v->lio_slab, sizeof(struct lio), LIOS);
	if (!rc)
		rc = slab_init(&v->req_slab, sizeof(struct ureq), REQS);
	if (!rc)
		rc = slab_init(&v->zone_slab, sizeof(struct zone),
			       v->n * v->label.zones + 1);
	if (!rc)
		rc = bufpool_init(&v->page_pool, v->r, FMT_BLOCK, 96);
	if (!rc)
		rc = bufpool_init(&v->rec_pool, v->r, FMT_RECORD_MAX,
				  RECS + RECS_INFLIGHT);
	if (!rc)
		rc = bufpool_init(&v->unit_pool, v->r, v->label.unit_bytes,
				  (STRIPES + 1) * width + 4);
	if (!rc)
		rc = bufpool_init(&v->piece_pool, v->r, FMT_PIECE,
				  2 * (v->m + 1));
	v->scratch = reactor_buf_alloc(v->r, FMT_BLOCK);
	return rc ? rc : v->scratch ? 0 : -ENOMEM;
}

static int ecs_init(struct vlog *v)
{
	int rc = 0;

	for (unsigned k = 1; k <= v->label.k && !rc && v->m; k++)
		rc = ec_new(k, v->m, &v->ec[k]);
	return rc;
}

static int vlog_init(struct vlog *v)
{
	int rc = pools_init(v);

	if (!rc)
		rc = codec_new(&v->coder);
	if (!rc)
		rc = ecs_init(v);
	for (unsigned i = 0; i < v->n && !rc; i++)
		rc = member_space_init(v, &v->member[i]);
	if (!rc)
		rc = map_init(v);
	if (!rc)
		rc = segs_init(v);
	if (!rc)
		rc = snap_init(v);
	if (!rc)
		rc = stripes_init(v);
	if (!rc)
		rc = reads_init(v);
	if (!rc)
		rc = fetches_init(v);
	if (!rc)
		rc = cleaner_init(v);
	if (!rc)
		rc = resync_init(v);
	return rc;
}

static void facts_fill(struct vlog *v, unsigned i)
{
	const struct fmt_member *l = &v->label.member[i];
	struct vdisk_slot *s = &v->member[i].facts;

	memcpy(v->member[i].uuid, l->uuid, 16);
	memcpy(s->domain, l->domain, sizeof(s->domain) - 1);
	memcpy(s->drive, l->drive, sizeof(s->drive) - 1);
	memcpy(s->component, l->component, sizeof(s->component) - 1);
}

int vlog_new(struct reactor *r, const struct fmt_label *label, const char *name,
	     struct vlog **out, struct err *err)
{
	struct vlog *v = calloc(1, sizeof(*v));

	if (!v)
		return err_set(err, -ENOMEM, "%s: no memory", name);
	v->r = r;
	v->label = *label;
	v->n = label->comps;
	v->k = label->k;
	v->m = label->m;
	v->raid = label->raid;
	v->codec = label->codec;
	v->next_lsn = 1;
	memcpy(v->uuid, label->head.vdisk, 16);
	v->crc_seed = codec_crc(v->uuid, 16);
	for (unsigned i = 0; i < v->n; i++)
		facts_fill(v, i);
	v->layout = &vdisk_log;
	bdev_init(&v->bdev, &vlog_ops, r, name);
	v->bdev.limits = (struct bdev_limits) {
		.size_bytes = label->size_blocks * FMT_BLOCK,
		.block_bytes = FMT_BLOCK,
		.phys_bytes = FMT_BLOCK,
		.align_bytes = 1,
		.io_max_bytes = IO_MAX_BYTES,
		.io_opt_bytes = v->k * label->unit_bytes,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.trim_zeroes = true,
	};
	if (vlog_init(v)) {
		vlog_free(v);
		return err_set(err, -ENOMEM, "%s: no memory", name);
	}
	*out = v;
	return 0;
}

/* All but the struct itself. */
static void vlog_fini(struct vlog *v)
{
	timer_cancel(v->r, &v->watch);
	timer_cancel(v->r, &v->timer);
	cleaner_fini(v);
	resync_fini(v);
	reads_fini(v);
	fetches_fini(v);
	stripes_fini(v);
	snap_fini(v);
	segs_fini(v);
	map_fini(v);
	codec_free(v->coder);
	for (unsigned i = 0; i < v->n; i++) {
		free(v->member[i].zone_used);
		free(v->member[i].slot_used);
	}
	if (v->scratch)
		reactor_buf_free(v->r, v->scratch, FMT_BLOCK);
	bufpool_fini(&v->page_pool);
	bufpool_fini(&v->rec_pool);
	bufpool_fini(&v->unit_pool);
	bufpool_fini(&v->piece_pool);
	bufpool_fini(&v->window_pool);
	slab_fini(&v->lio_slab);
	slab_fini(&v->req_slab);
	slab_fini(&v->zone_slab);
}

void vlog_free(struct vlog *v)
{
	vlog_fini(v);
	free(v);
}

struct returning {
	struct vlog *v;
	unsigned index;
	struct bdev *bdev;
	struct io io;
	uint8_t *buf;
	vdisk_done_fn *done;
	void *arg;
	struct err err;
	int result;
};

static void return_abandon(struct vlog *v)
{
	if (!v->returning)
		return;
	reactor_buf_free(v->r, v->returning->buf, 4 * FMT_BLOCK);
	free(v->returning);
}

void vlog_abandon(struct bdev *bdev)
{
	struct vlog *v = vlog_of(bdev);

	id_assert(!v->task_posted);
	recover_abandon(v);
	return_abandon(v);
	vlog_free(v);
}

/* ---- the way out --------------------------------------------------- */

static bool quiet(const struct vlog *v)
{
	for (unsigned i = 0; i < STRIPES; i++)
		if (v->stripe[i].state != STRIPE_IDLE)
			return false;
	return !v->users && !v->waiting && !v->rec_first &&
	       !(v->group && v->group->entries) && reads_idle(v) &&
	       cleaner_idle(v) && !v->seals_due;
}

static void members_close(struct vlog *v)
{
	v->state = VLOG_STOPPED;
	for (unsigned i = 0; i < v->n; i++)
		member_lost(v, i, -ESHUTDOWN);
}

/* True: it is gone. */
static bool close_step(struct vlog *v)
{
	if (!v->closing)
		return false;
	if (v->state == VLOG_CLOSING) {
		if (!quiet(v))
			return false;
		if (!v->meta.clean_wanted) {
			meta_commit(v, true);
			return false;
		}
		if (v->meta.wanted || v->meta.phase != META_IDLE)
			return false;
		members_close(v);
	}
	if (v->state != VLOG_STOPPED || v->users || v->waiting)
		return false;
	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].bdev)
			members_close(v);
	if (v->lios_out || v->closing_members || v->task_posted || v->returning)
		return false;
	vlog_fini(v);
	bdev_closed(&v->bdev);
	return true;
}

/* ---- members that come back ---------------------------------------- */

static void return_end(struct vlog *v, int result)
{
	struct returning *ret = v->returning;

	v->returning = NULL;
	reactor_buf_free(v->r, ret->buf, 4 * FMT_BLOCK);
	ret->done(result, result ? &ret->err : NULL, &v->bdev, ret->arg);
	free(ret);
	vlog_changed(v);
}

static void return_refused(void *arg)
{
	struct vlog *v = arg;

	return_end(v, v->returning->result);
}

static void return_refuse(struct vlog *v, int result)
{
	struct returning *ret = v->returning;

	ret->result = result;
	bdev_close(ret->bdev, return_refused, v);
}

static void return_learned(struct vlog *v)
{
	struct returning *ret = v->returning;
	struct member *m = &v->member[ret->index];

	if (m->bdev != ret->bdev) { /* lost again meanwhile, and closed */
		err_set(&ret->err, -EIO, "%s: failed again", v->bdev.name);
		return_end(v, -EIO);
		return;
	}
	if (ret->index < meta_group(v) && !m->learned) {
		err_set(&ret->err, -EIO, "%s: its superblocks cannot be read",
			v->bdev.name);
		m->bdev = NULL;
		return_refuse(v, -EIO);
		return;
	}
	if (ret->index < meta_group(v) && m->super.promised > v->epoch) {
		err_set(&ret->err, -ESTALE,
			"%s: another owner has taken the vDisk over",
			v->bdev.name);
		m->bdev = NULL;
		vlog_stop(v, "another owner has taken it over");
		return_refuse(v, -ESTALE);
		return;
	}
	m->alive = true;
	resync_member_back(v);
	return_end(v, 0);
}

static void return_label_read(struct io *io)
{
	struct returning *ret = io->arg;
	struct vlog *v = ret->v;
	const struct fmt_label *l = (const void *)ret->buf;
	struct member *m = &v->member[ret->index];

	if (!io->result &&
	    fmt_label_check(ret->buf + FMT_LABEL_A, ret->index, FMT_LABEL_A))
		l = (const void *)(ret->buf + FMT_LABEL_B);
	if (io->result ||
	    fmt_label_check(l, ret->index,
			    l == (void *)ret->buf ? FMT_LABEL_A
						  : FMT_LABEL_B) ||
	    memcmp(l->comp_uuid, m->uuid, 16) ||
	    memcmp(l->head.vdisk, v->uuid, 16)) {
		err_set(&ret->err, -EINVAL,
			"%s is not component %u of this vDisk", ret->bdev->name,
			ret->index);
		return_refuse(v, -EINVAL);
		return;
	}
	if (v->state != VLOG_SERVING) {
		err_set(&ret->err, -EIO, "%s: not in service", v->bdev.name);
		return_refuse(v, -EIO);
		return;
	}
	m->bdev = ret->bdev;
	meta_learn(v, 1u << ret->index, return_learned);
}

void vlog_member_return(struct bdev *vdisk, unsigned index, struct bdev *bdev,
			vdisk_done_fn *done, void *arg)
{
	struct vlog *v = vlog_of(vdisk);
	struct returning *ret = calloc(1, sizeof(*ret));

	id_assert(ret && index < v->n && !v->member[index].bdev &&
		  !v->returning);
	*ret = (struct returning) {
		.v = v,
		.index = index,
		.bdev = bdev,
		.done = done,
		.arg = arg,
		.buf = reactor_buf_alloc(v->r, 4 * FMT_BLOCK),
	};
	id_assert(ret->buf);
	v->returning = ret;
	ret->io = (struct io) { .op = BDEV_READ,
				.len = 4 * FMT_BLOCK,
				.buf = ret->buf,
				.done = return_label_read,
				.arg = ret };
	bdev_submit(bdev, &ret->io);
}

int vlog_member_fail(struct bdev *vdisk, unsigned index, struct err *err)
{
	struct vlog *v = vlog_of(vdisk);

	if (index >= v->n || !v->member[index].alive)
		return err_set(err, -EINVAL, "%s: no such member", vdisk->name);
	member_lost(v, index, -EIO);
	return 0;
}

void vlog_checkpoint(struct bdev *vdisk)
{
	struct vlog *v = vlog_of(vdisk);

	v->meta.wanted = true;
	vlog_kick(v);
}
