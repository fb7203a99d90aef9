/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Create and open: components made, then a vDisk that recovers.
 *
 *   create: every slot is made into a component; then open
 *   open:   the front of every component read, members chosen, recover, serve
 *
 * A content that turns out to be damaged where it is kept, and that nobody was
 * told of, gives way to the one before; if that one names other members, all
 * begins again with those.
 *
 * Until done() has reported success the bdevs are the caller's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/vdisk/log/choose.h"
#include "engine/vdisk/log/frontread.h"
#include "engine/vdisk/log/impl.h"
#include "engine/vdisk/log/make.h"

#define SLOTS_MAX (2 * FMT_COMPS_MAX)

struct vlog_opening {
	struct reactor *r;
	struct vlog *v;
	char cluster[64], name[64];
	struct vdisk_slot slot[SLOTS_MAX];
	unsigned slots;
	struct vlog_pace pace;
	vdisk_changed_fn *changed;
	void *changed_arg;
	vdisk_done_fn *done;
	void *arg;

	struct maker *maker[SLOTS_MAX];
	struct front_read *front[SLOTS_MAX];
	struct timer timer;
	unsigned out;

	struct choose_component component[SLOTS_MAX];
	struct choose choice;
	bool again; /* the content chosen is damaged */
	int result;
	struct err err;
	struct task task;
};

/* dead: nothing calls back what it holds any more. */
static void opening_free(struct vlog_opening *op, bool dead)
{
	timer_cancel(op->r, &op->timer);
	for (unsigned i = 0; i < op->slots; i++) {
		maker_free(op->maker[i], dead);
		front_read_drop(op->front[i], dead);
	}
	free(op);
}

static void vlog_begin(struct vlog_opening *op);

static void opening_end(struct task *task)
{
	struct vlog_opening *op = container_of(task, struct vlog_opening, task);
	struct vlog *v = op->v;

	if (op->result && v) {
		/* Its own task may still be queued behind this one. */
		if (v->task_posted || v->lios_out) {
			reactor_post(op->r, task);
			return;
		}
		vlog_free(v);
		v = op->v = NULL;
		if (op->again) {
			vlog_begin(op);
			return;
		}
	}
	op->done(op->result, op->result ? &op->err : NULL, v ? &v->bdev : NULL,
		 op->arg);
	opening_free(op, false);
}

static void opening_finish(struct vlog_opening *op, int result)
{
	op->result = result;
	op->task.fn = opening_end;
	reactor_post(op->r, &op->task);
}

/* ---- a vDisk over them --------------------------------------------- */

static bool is_member(const struct vlog *v, const struct bdev *bdev)
{
	for (unsigned c = 0; c < v->n; c++)
		if (v->member[c].bdev == bdev)
			return true;
	return false;
}

/* Where the components are now, if they were moved. */
static void places_take(struct vlog_opening *op)
{
	for (unsigned c = 0; c < op->v->n; c++) {
		const int at = op->choice.member[c].component;

		if (at >= 0)
			seat_place(&op->v->conf.seat[c], &op->slot[at]);
	}
}

static void recovered(struct vlog *v, int result, const struct err *err)
{
	struct vlog_opening *op = v->changed_arg;

	if (result) {
		op->again = result == -EUCLEAN;
		if (!op->again || !op->err.code)
			op->err = *err;
		if (op->again)
			op->err.code = -EIO;
		opening_finish(op, op->err.code);
		return;
	}
	op->err.code = 0;
	v->changed = op->changed;
	v->changed_arg = op->changed_arg;
	v->state = VLOG_SERVING;
	v->owns = true;
	places_take(op);
	policy_resume(v);
	/* What failed while opening is closed as if it had failed now, and
	 * so is what has no place: a stuck drive may take its time, and only
	 * the vDisk's end waits for it. */
	for (unsigned i = 0; i < op->slots; i++)
		if (op->slot[i].bdev && !is_member(v, op->slot[i].bdev))
			member_bdev_close(v, op->slot[i].bdev);
	vlog_kick(v);
	opening_finish(op, 0);
}

static int bdev_check(const struct bdev *b, struct err *err)
{
	if (b->limits.block_bytes <= FMT_BLOCK &&
	    b->limits.align_bytes <= FMT_BLOCK &&
	    b->limits.io_max_bytes >= FMT_RECORD_MAX)
		return 0;
	return err_set(err, -ENOTSUP,
		       "%s: blocks above 4 KiB, or transfers below %u KiB",
		       b->name, FMT_RECORD_MAX / 1024);
}

static int memory_check(const struct fmt_label *label, struct err *err)
{
	const uint64_t need = geo_memory_bytes(label);
	const uint64_t have = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			      (uint64_t)sysconf(_SC_PAGESIZE);

	if (need <= have)
		return 0;
	return err_set(err, -ENOMEM,
		       "%s needs %llu MiB of memory once fully written; this "
		       "machine has %llu MiB. Make it smaller",
		       label->name, (unsigned long long)(need / MIB),
		       (unsigned long long)(have / MIB));
}

static int members_choose(struct vlog_opening *op, struct err *err)
{
	const struct fmt_content below = op->choice.content;
	int rc = choose_identity(op->component, op->slots, op->cluster,
				 op->name, err);

	if (!rc)
		rc = choose_members(op->component, op->slots,
				    op->again ? &below : NULL, &op->choice,
				    err);
	for (unsigned c = 0; !rc && c < op->choice.content.comps; c++) {
		const int at = op->choice.member[c].component;

		if (at >= 0)
			rc = bdev_check(op->slot[at].bdev, err);
	}
	return rc;
}

static void members_give(struct vlog_opening *op)
{
	struct vlog *v = op->v;

	v->align = FMT_GRAN;
	for (unsigned c = 0; c < v->n; c++) {
		const int at = op->choice.member[c].component;
		struct member *m = &v->member[c];

		m->bdev = at < 0 ? NULL : op->slot[at].bdev;
		m->alive = m->bdev != NULL;
		m->why = -ENODEV;
		m->note = op->choice.member[c].note;
		m->lost_ns = reactor_now(op->r);
		if (m->bdev && m->bdev->limits.block_bytes > v->align)
			v->align = m->bdev->limits.block_bytes;
	}
}

static void vlog_begin(struct vlog_opening *op)
{
	struct err err = { 0 };
	int rc = members_choose(op, &err);

	if (!rc)
		rc = memory_check(op->choice.label, &err);
	if (!rc)
		rc = vlog_new(op->r, op->choice.label, &op->choice.content,
			      &op->v, &err);
	if (rc) {
		/* What was wrong with the newest says more. */
		if (!op->again || rc == -EAGAIN)
			op->err = err;
		opening_finish(op, op->err.code);
		return;
	}
	op->again = false;
	op->v->changed_arg = op;
	op->v->pace = op->pace;
	members_give(op);
	recover_start(op->v, recovered);
}

/* ---- the front of each component ----------------------------------- */

static void fronts_over(struct vlog_opening *op)
{
	timer_cancel(op->r, &op->timer);
	for (unsigned i = 0; i < op->slots; i++) {
		struct choose_component *c = &op->component[i];
		const struct bdev *bdev = op->slot[i].bdev;

		if (!bdev)
			continue;
		c->name = bdev->name;
		c->domain = op->slot[i].domain;
		c->drive = op->slot[i].drive;
		c->failed = op->front[i]->result != 0;
		if (c->failed)
			continue;
		c->size_bytes = bdev->limits.size_bytes;
		choose_read(c, op->front[i]->buf, op->front[i]->unread);
		c->failed = !c->labelled && op->front[i]->unread;
	}
	vlog_begin(op);
}

static void front_done(struct front_read *f)
{
	struct vlog_opening *op = f->arg;

	if (--op->out == 0)
		fronts_over(op);
}

/* Drives that are stuck are away. */
static void fronts_late(struct timer *timer)
{
	struct vlog_opening *op =
		container_of(timer, struct vlog_opening, timer);

	if (!op->out)
		return;
	op->out = 0;
	for (unsigned i = 0; i < op->slots; i++) {
		if (!op->front[i]->busy)
			continue;
		front_read_drop(op->front[i], false);
		op->front[i] = front_read_new(op->r);
		op->front[i]->result = -ETIMEDOUT;
	}
	fronts_over(op);
}

static void fronts_read(struct vlog_opening *op)
{
	op->out = 1;
	for (unsigned i = 0; i < op->slots; i++) {
		front_read_begin(op->front[i], op->slot[i].bdev, front_done,
				 op);
		op->out += op->front[i]->busy;
	}
	op->timer.fn = fronts_late;
	timer_arm_lived(op->r, &op->timer, IO_TIMEOUT_NS);
	if (--op->out == 0)
		fronts_over(op);
}

/* ---- making components --------------------------------------------- */

static void made(struct maker *m, int result, void *arg)
{
	struct vlog_opening *op = arg;
	unsigned i = 0;

	while (op->maker[i] != m)
		i++;
	if (result && !op->result) {
		op->result =
			err_set(&op->err, result, "%s cannot be written: %s",
				op->slot[i].bdev->name, strerror(-result));
	}
	if (--op->out)
		return;
	if (op->result)
		opening_finish(op, op->result);
	else
		fronts_read(op);
}

static void content_first(const struct fmt_label *l, struct fmt_content *c)
{
	*c = (struct fmt_content) { .seq = 1,
				    .area = 1,
				    .clean = 1,
				    .raid = l->raid,
				    .k = l->k,
				    .m = l->m,
				    .codec = l->codec,
				    .comps = (uint8_t)l->comps,
				    .group_m = l->m,
				    .group_was = l->m,
				    .tolerates = l->m };
	for (unsigned i = 0; i < l->comps; i++) {
		const struct fmt_member *from = &l->member[i];
		struct fmt_seat *seat = &c->seat[i];

		seat->slots = l->slots;
		memcpy(seat->uuid, from->uuid, 16);
		memcpy(seat->domain, from->domain, sizeof(seat->domain));
		memcpy(seat->drive, from->drive, sizeof(seat->drive));
		memcpy(seat->component, from->component,
		       sizeof(seat->component));
	}
}

static int components_make(struct vlog_opening *op, const struct fmt_label *l)
{
	uint8_t front[FMT_FRONT_BYTES];
	struct fmt_content first;

	content_first(l, &first);
	for (unsigned i = 0; i < op->slots; i++) {
		front_fill(front, l, i, i > 2u * l->m ? NULL : &first);
		op->maker[i] =
			maker_new(op->r, op->slot[i].bdev, l, front, made, op);
		if (!op->maker[i])
			return err_set(&op->err, -ENOMEM, "%s: no memory",
				       op->name);
		op->out++;
	}
	return 0;
}

static int create_check(struct vlog_opening *op, const struct vlog_spec *spec,
			struct fmt_label *label)
{
	int rc = geo_label(spec, label, &op->err);

	if (!rc)
		rc = memory_check(label, &op->err);
	for (unsigned i = 0; i < op->slots && !rc; i++) {
		const struct bdev *b = op->slot[i].bdev;
		const uint64_t need = geo_member_bytes(label);

		if (!b || b->limits.size_bytes < need)
			rc = err_set(&op->err, -EINVAL,
				     "component %u must be there, of %llu MiB "
				     "or more",
				     i, (unsigned long long)(need / MIB));
		else
			rc = bdev_check(b, &op->err);
	}
	return rc;
}

/* ---- the calls ----------------------------------------------------- */

static struct vlog_opening *opening_new(struct reactor *r,
					const struct vlog_spec *spec,
					vdisk_done_fn *done, void *arg)
{
	struct vlog_opening *op = calloc(1, sizeof(*op));

	id_assert(op);
	op->r = r;
	op->done = done;
	op->arg = arg;
	op->pace = spec->pace;
	op->changed = spec->changed;
	op->changed_arg = spec->changed_arg;
	snprintf(op->name, sizeof(op->name), "%s",
		 spec->name ? spec->name : "");
	snprintf(op->cluster, sizeof(op->cluster), "%s",
		 spec->cluster ? spec->cluster : "");
	op->slots = spec->slots <= SLOTS_MAX ? spec->slots : 0;
	for (unsigned i = 0; i < op->slots; i++) {
		op->slot[i] = spec->slot[i];
		op->front[i] = front_read_new(op->r);
	}
	return op;
}

struct vlog_opening *vlog_open(struct reactor *r, const struct vlog_spec *spec,
			       vdisk_done_fn *done, void *arg)
{
	struct vlog_opening *op = opening_new(r, spec, done, arg);

	fronts_read(op);
	return op;
}

struct vlog_opening *vlog_create(struct reactor *r,
				 const struct vlog_spec *spec,
				 vdisk_done_fn *done, void *arg)
{
	struct vlog_opening *op = opening_new(r, spec, done, arg);
	struct fmt_label label;
	int rc = create_check(op, spec, &label);

	if (!rc) {
		uuid_make(r, label.head.vdisk);
		for (unsigned i = 0; i < op->slots; i++)
			uuid_make(r, label.member[i].uuid);
		rc = components_make(op, &label);
	}
	if (rc)
		opening_finish(op, rc);
	return op;
}

void vlog_opening_abandon(struct vlog_opening *op)
{
	if (!op)
		return;
	if (op->v)
		vlog_abandon(&op->v->bdev);
	opening_free(op, true);
}
