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

#define IO_MAX_BYTES (8 * MIB) /* as in place */
#define LIOS 4096

#ifdef IODECK_MUTATIONS
enum vlog_mut vlog_mut;
#define NAME(name, text) #text,
const char *const vlog_mut_name[MUT_COUNT] = { "none", VLOG_MUT_LIST(NAME) };
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
	    log_fill(v) < meta_start(v))
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
	moved |= scrub_step(v);
	moved |= seg_step(v);
	moved |= change_step(v);
	moved |= punch_step(v);
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
	int rc;

	rc = slab_init(&v->lio_slab, sizeof(struct lio), LIOS);
	if (!rc)
		rc = slab_init(&v->req_slab, sizeof(struct ureq), REQS);
	if (!rc)
		rc = slab_init(&v->zone_slab, sizeof(struct zone),
			       FMT_COMPS_MAX * v->label.zones + 1);
	if (!rc)
		rc = bufpool_init(&v->page_pool, v->r, FMT_BLOCK, 96);
	if (!rc)
		rc = bufpool_init(&v->rec_pool, v->r, FMT_RECORD_MAX, 2 * RECS);
	if (!rc)
		rc = bufpool_init(&v->unit_pool, v->r, v->label.unit_bytes,
				  units_wanted(v->conf.k + v->conf.m));
	if (!rc)
		rc = bufpool_init(&v->piece_pool, v->r, FMT_PIECE,
				  (PIECES + 2) * FMT_COPIES_MAX);
	v->scratch = reactor_buf_alloc(v->r, FMT_BLOCK);
	return rc ? rc : v->scratch ? 0 : -ENOMEM;
}

/* For what may be written from now on: k' may be less than k. */
static int shapes_init(struct vlog *v, unsigned k, unsigned m)
{
	int rc = 0;

	for (unsigned i = 1; i <= k && !rc; i++)
		rc = seg_ec_need(v, i, m);
	return rc;
}

int vlog_policy_room(struct vlog *v, unsigned k, unsigned m)
{
	const uint32_t units = units_wanted(k + m);
	int rc = shapes_init(v, k, m);

	if (!rc && units > v->unit_pool.count)
		rc = bufpool_grow(&v->unit_pool, units - v->unit_pool.count);
	return rc;
}

void vlog_policy_take(struct vlog *v)
{
	v->k = v->conf.k;
	v->m = v->conf.m;
	v->raid = v->conf.raid;
	v->codec = v->conf.codec;
	v->bdev.limits.io_opt_bytes = v->k * v->label.unit_bytes;
}

static int vlog_init(struct vlog *v)
{
	int rc = pools_init(v);

	if (!rc)
		rc = codec_new(&v->coder);
	if (!rc)
		rc = shapes_init(v, v->k, v->m);
	for (unsigned i = 0; i < v->n && !rc; i++)
		rc = member_space_init(v, &v->member[i], v->conf.seat[i].slots);
	if (!rc)
		rc = map_init(v);
	if (!rc)
		rc = segs_init(v);
	if (!rc)
		rc = punch_init(v);
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
	if (!rc)
		rc = scrub_init(v);
	return rc;
}

int vlog_new(struct reactor *r, const struct fmt_label *label,
	     const struct fmt_content *conf, struct vlog **out, struct err *err)
{
	struct vlog *v = calloc(1, sizeof(*v));

	if (!v)
		return err_set(err, -ENOMEM, "%s: no memory", label->name);
	v->r = r;
	v->label = *label;
	v->conf = *conf;
	v->n = conf->comps;
	v->next_lsn = 1;
	memcpy(v->uuid, label->head.vdisk, 16);
	v->crc_seed = codec_crc(v->uuid, 16);
	v->layout = &vdisk_log;
	bdev_init(&v->bdev, &vlog_ops, r, label->name);
	v->bdev.limits = (struct bdev_limits) {
		.size_bytes = label->size_blocks * FMT_BLOCK,
		.block_bytes = FMT_BLOCK,
		.phys_bytes = FMT_BLOCK,
		.align_bytes = 1,
		.io_max_bytes = IO_MAX_BYTES,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.trim_zeroes = true,
		.can_lend = true,
	};
	vlog_policy_take(v);
	if (vlog_init(v)) {
		vlog_free(v);
		return err_set(err, -ENOMEM, "%s: no memory", label->name);
	}
	*out = v;
	return 0;
}

/* All but the struct itself. */
static void vlog_fini(struct vlog *v)
{
	timer_cancel(v->r, &v->watch);
	timer_cancel(v->r, &v->timer);
	timer_cancel(v->r, &v->admit.timer);
	cleaner_fini(v);
	resync_fini(v);
	scrub_fini(v);
	reads_fini(v);
	fetches_fini(v);
	stripes_fini(v);
	snap_fini(v);
	segs_fini(v);
	punch_fini(v);
	map_fini(v);
	codec_free(v->coder);
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
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

void vlog_abandon(struct bdev *bdev)
{
	struct vlog *v = vlog_of(bdev);

	id_assert(!v->task_posted);
	recover_abandon(v);
	change_abandon(v);
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
	       cleaner_idle(v) && scrub_idle(v) && !v->seals_due;
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
	if (v->state != VLOG_STOPPED || v->users || v->waiting ||
	    !scrub_idle(v))
		return false;
	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].bdev)
			members_close(v);
	if (v->lios_out || v->closing_members || v->task_posted || v->changes)
		return false;
	vlog_fini(v);
	bdev_closed(&v->bdev);
	return true;
}

/* ---- calls --------------------------------------------------------- */

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
