/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Changes of members and policy while the vDisk serves, one after another.
 *
 *   a member   read its label --> it is ours: learn its superblocks; usable
 *                             '-> it is empty: make it in its turn, then CONFIG
 *   a policy   in policy.c, to CONFIG and beyond
 *
 *   CONFIG     wait until no content is in work; say it in conf; from then on
 *              every content names it, and there is no way back: one that
 *              failed may have landed. It counts once such a content is
 *              committed.
 *   LEAVING    it came to nothing; its bdev is being closed
 *
 * A drive that is stuck holds nobody up but itself. A member that is ours has
 * nothing to be said of it, so it waits for no other change: one of those may
 * be waiting for just this member to be back.
 */
#include "engine/vdisk/log/change.h"

#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/label.h"
#include "engine/vdisk/log/make.h"

static struct vlog *vlog_of(struct bdev *bdev)
{
	return container_of(bdev, struct vlog, bdev);
}

/* ---- the queue ----------------------------------------------------- */

static void change_free(struct change *c, bool dead)
{
	struct vlog *v = c->v;

	timer_cancel(v->r, &c->timer);
	for (unsigned i = 0; i < c->parts; i++)
		maker_free(c->part[i].maker, dead);
	front_read_drop(c->front, dead);
	free(c);
}

static void change_unlink(struct change *c)
{
	struct change **at = &c->v->changes;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}

void change_abandon(struct vlog *v)
{
	struct change *c;

	while ((c = v->changes)) {
		v->changes = c->next;
		change_free(c, true);
	}
}

void change_end(struct change *c)
{
	struct vlog *v = c->v;

	change_unlink(c);
	if (c->done)
		c->done(c->result, c->result ? &c->err : NULL, &v->bdev,
			c->arg);
	vlog_changed(v);
	change_free(c, false);
}

static void part_closed(void *arg)
{
	struct change *c = arg;

	if (!--c->closing)
		change_end(c);
}

void change_refuse(struct change *c, int result)
{
	c->result = result;
	c->step = CHANGE_LEAVING;
	timer_cancel(c->v->r, &c->timer);
	c->closing = 1;
	for (unsigned i = 0; i < c->parts; i++) {
		struct bdev *bdev = c->part[i].slot.bdev;

		if (!bdev)
			continue;
		c->part[i].slot.bdev = NULL;
		c->closing++;
		bdev_close(bdev, part_closed, c);
	}
	vlog_kick(c->v); /* the next may begin */
	part_closed(c);
}

/* The one whose turn it is, or NULL. */
static struct change *change_head(const struct vlog *v)
{
	struct change *c = v->changes;

	while (c && c->step >= CHANGE_APART)
		c = c->next;
	return c;
}

bool change_later(struct change *c)
{
	struct change **at = &c->v->changes, *next = c->next;

	while (next && next->step >= CHANGE_WAIT)
		next = next->next;
	if (!next)
		return false;
	change_unlink(c);
	c->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = c;
	return true;
}

bool change_saying(const struct vlog *v)
{
	for (const struct change *c = v->changes; c; c = c->next)
		if (c->step == CHANGE_CONFIG || c->step == CHANGE_NAMED)
			return true;
	return false;
}

struct change *change_add(struct vlog *v, bool (*turn)(struct change *c),
			  vdisk_done_fn *done, void *arg)
{
	struct change *c = calloc(1, sizeof(*c)), **at = &v->changes;

	id_assert(c);
	c->v = v;
	c->turn = turn;
	c->done = done;
	c->arg = arg;
	while (*at)
		at = &(*at)->next;
	*at = c;
	vlog_kick(v);
	return c;
}

static bool out_of_service(struct change *c)
{
	struct vlog *v = c->v;

	err_set(&c->err, v->closing ? -ECANCELED : -EIO,
		v->closing ? "%s: closed meanwhile" : "%s: not in service",
		v->bdev.name);
	change_refuse(c, c->err.code);
	return true;
}

static bool turn(struct change *c)
{
	struct vlog *v = c->v;

	if (c->step == CHANGE_BUSY || c->step == CHANGE_LEAVING)
		return false;
	if (v->state != VLOG_SERVING)
		return out_of_service(c);
	/* Not into a content that is being written. */
	if (c->step == CHANGE_CONFIG && v->meta.phase != META_IDLE)
		return false;
	if (c->step == CHANGE_NAMED && v->meta.config_committed < c->config)
		return false;
	return c->turn(c);
}

static bool early(struct change *c)
{
	if (c->step != CHANGE_QUEUED && c->step != CHANGE_READ)
		return false;
	if (c->v->state != VLOG_SERVING)
		return out_of_service(c);
	return c->early && c->early(c);
}

bool change_step(struct vlog *v)
{
	struct change *head = change_head(v);

	/* One a time: any may be gone after it. */
	for (struct change *c = v->changes; c; c = c->next)
		if (c == head || c->step == CHANGE_APART ? turn(c) : early(c))
			return true;
	return false;
}

void change_named(struct change *c)
{
	struct vlog *v = c->v;

	c->config = ++v->conf_changes;
	c->step = CHANGE_NAMED;
	meta_commit(v, v->meta.clean_wanted);
}

/* ---- parts: components that come in -------------------------------- */

static void align_take(struct vlog *v, const struct bdev *b)
{
	if (b->limits.block_bytes > v->align)
		v->align = b->limits.block_bytes;
}

void part_usable(struct change *c, struct change_part *p)
{
	struct member *m = &c->v->member[p->index];

	m->bdev = p->slot.bdev;
	p->slot.bdev = NULL;
	align_take(c->v, m->bdev);
	memset(&m->super, 0, sizeof(m->super));
	m->super.serial = 1;
	m->super.content.area = 1;
	m->super_slot = 0;
	m->learned = m->admitted = m->alive = true;
	m->why = 0;
}

static void part_made(struct maker *m, int result, void *arg)
{
	struct change *c = arg;

	for (unsigned i = 0; i < c->parts; i++) {
		struct change_part *p = &c->part[i];

		if (p->maker != m)
			continue;
		if (result && !c->err.code)
			err_set(&c->err, result, "%s cannot be written: %s",
				p->slot.bdev->name, strerror(-result));
	}
	if (--c->making)
		return;
	if (c->err.code) {
		change_refuse(c, c->err.code);
		return;
	}
	c->step = CHANGE_CONFIG;
	vlog_kick(c->v);
}

/* The label of a new component: as of today, with it in. */
static void label_fill(const struct vlog *v, const struct change *c,
		       struct fmt_label *l)
{
	*l = v->label;
	l->comps = c->comps;
	for (unsigned i = 0; i < v->n; i++) {
		const struct fmt_seat *from = &v->conf.seat[i];
		struct fmt_member *to = &l->member[i];

		memcpy(to->uuid, from->uuid, 16);
		memcpy(to->domain, from->domain, sizeof(to->domain));
		memcpy(to->drive, from->drive, sizeof(to->drive));
		memcpy(to->component, from->component, sizeof(to->component));
	}
	for (unsigned i = 0; i < c->parts; i++) {
		const struct fmt_seat *from = &c->part[i].seat;
		struct fmt_member *to = &l->member[c->part[i].index];

		memcpy(to->uuid, from->uuid, 16);
		memcpy(to->domain, from->domain, sizeof(to->domain));
		memcpy(to->drive, from->drive, sizeof(to->drive));
		memcpy(to->component, from->component, sizeof(to->component));
	}
}

int parts_make(struct change *c)
{
	struct vlog *v = c->v;
	struct fmt_label label;

	for (unsigned i = 0; i < c->parts; i++) {
		uuid_make(v->r, c->part[i].seat.uuid);
		seat_place(&c->part[i].seat, &c->part[i].slot);
	}
	label_fill(v, c, &label);
	c->step = CHANGE_BUSY;
	c->making = 1;
	for (unsigned i = 0; i < c->parts; i++) {
		struct change_part *p = &c->part[i];
		uint8_t front[FMT_FRONT_BYTES];

		front_fill(front, &label, p->index, NULL);
		p->maker = maker_new(v->r, p->slot.bdev, &label, front,
				     part_made, c);
		if (!p->maker)
			err_set(&c->err, -ENOMEM, "%s: no memory",
				v->bdev.name);
		c->making += p->maker != NULL;
	}
	if (--c->making)
		return 0;
	return c->err.code ? c->err.code : -EINVAL; /* none was begun */
}

int part_check(const struct vlog *v, const struct bdev *b, uint32_t slots,
	       struct err *err)
{
	const uint64_t need = v->label.off_data + (uint64_t)slots *
							  v->label.unit_bytes *
							  v->label.stripes;

	if (b->limits.size_bytes < need)
		return err_set(err, -ENOSPC,
			       "%s has %llu MiB, a component of %s needs %llu",
			       b->name,
			       (unsigned long long)(b->limits.size_bytes / MIB),
			       v->bdev.name, (unsigned long long)(need / MIB));
	if (b->limits.block_bytes > FMT_BLOCK ||
	    b->limits.align_bytes > FMT_BLOCK ||
	    b->limits.io_max_bytes < FMT_RECORD_MAX)
		return err_set(err, -ENOTSUP,
			       "%s: blocks above 4 KiB, or transfers below %u "
			       "KiB",
			       b->name, FMT_RECORD_MAX / 1024);
	return 0;
}

/* ---- one member ---------------------------------------------------- */

/*
 * It promised itself to a later owner, or may have. That one came to nothing if
 * this one still holds a quorum of others: each was read before, held alone
 * since, and has no such promise. But what is held may be gone, and nobody has
 * noticed; a content of the other may stand there, and would win over whatever
 * this one writes from now on without it. So the others first take a content
 * that is begun after this one was read; they are given up, and the vDisk
 * stops, where they do not.
 */
static bool return_doubtful(const struct vlog *v, unsigned i)
{
	const struct fmt_super *s = &v->member[i].super;

	return i < meta_group(v) && (s->promised > v->epoch || !s->content.seq);
}

static void return_learned(struct vlog *v, void *arg)
{
	struct change *c = arg;
	struct change_part *p = &c->part[0];
	struct member *m = &v->member[p->index];

	if (m->bdev != p->slot.bdev) { /* lost again meanwhile, and closed */
		p->slot.bdev = NULL;
		err_set(&c->err, -EIO, "%s: failed again", v->bdev.name);
		change_refuse(c, -EIO);
		return;
	}
	if (!m->learned) {
		err_set(&c->err, -EIO, "%s: its superblocks cannot be read",
			v->bdev.name);
		m->bdev = NULL;
		change_refuse(c, -EIO);
		return;
	}
	if (m->super.content.epoch > v->epoch) {
		err_set(&c->err, -ESTALE,
			"%s: another owner has taken the vDisk over",
			v->bdev.name);
		m->bdev = NULL;
		vlog_stop(v, "another owner has taken it over");
		change_refuse(c, -ESTALE);
		return;
	}
	if (!c->proof && return_doubtful(v, p->index)) {
		m->bdev = NULL;
		m->learned = false;
		c->proof = v->meta.seq;
		c->step = CHANGE_READ;
		meta_commit(v, v->meta.clean_wanted);
		return;
	}
	p->slot.bdev = NULL;
	align_take(v, m->bdev);
	m->alive = m->admitted = true;
	resync_member_back(v);
	change_end(c);
}

static const struct fmt_label *front_label(const uint8_t *front)
{
	if (!fmt_label_check(front + FMT_LABEL_A, FMT_COMP_ANY, FMT_LABEL_A))
		return (const void *)(front + FMT_LABEL_A);
	if (!fmt_label_check(front + FMT_LABEL_B, FMT_COMP_ANY, FMT_LABEL_B))
		return (const void *)(front + FMT_LABEL_B);
	return NULL;
}

/*
 * Nothing stands there that could be missed: no label, of whichever layout, or
 * one that was made for this vDisk by a change that came to nothing. What a
 * torn write left of such a label is no label.
 */
static bool front_free(const struct vlog *v, const uint8_t *front)
{
	const struct fmt_label *l = front_label(front);
	const void *const block[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	struct fmt_super super = { 0 };
	struct label inplace;
	unsigned slot;

	_Static_assert(FMT_FRONT_BYTES == LABEL_COPIES * LABEL_BYTES, "all");
	if (!l)
		return label_decode(front, &inplace) &&
		       label_decode(front + LABEL_BYTES, &inplace);
	for (unsigned i = 0; i < v->n; i++)
		if (!memcmp(l->comp_uuid, v->conf.seat[i].uuid, 16))
			return false;
	fmt_super_newest(block, v->uuid, l->head.comp, &super, &slot);
	return !memcmp(l->head.vdisk, v->uuid, 16) && !super.content.seq;
}

static int member_place_check(const struct vlog *v, const struct change *c,
			      struct err *err)
{
	const struct vdisk_slot *slot = &c->part[0].slot;
	const unsigned index = c->part[0].index;

	for (unsigned i = 0; i < v->n; i++)
		if (i != index && slot->domain[0] &&
		    !strncmp(slot->domain, v->conf.seat[i].domain,
			     sizeof(slot->domain)))
			return err_set(err, -EINVAL,
				       "%.31s holds component %u already: "
				       "each stands in a fault domain of its "
				       "own",
				       slot->domain, i);
	return part_check(v, slot->bdev, v->conf.seat[index].slots, err);
}

/* One of the vDisk's own that comes back. */
static bool member_ours(const struct change *c)
{
	const struct vlog *v = c->v;
	const struct fmt_label *l = front_label(c->front->buf);

	return l && !memcmp(l->head.vdisk, v->uuid, 16) &&
	       !memcmp(l->comp_uuid, v->conf.seat[c->part[0].index].uuid, 16);
}

static void member_make(struct change *c)
{
	struct vlog *v = c->v;
	struct change_part *p = &c->part[0];
	int rc;

	if (!front_free(v, c->front->buf)) {
		rc = err_set(&c->err, -EINVAL,
			     "%s is neither component %u of this vDisk nor "
			     "empty",
			     p->slot.bdev->name, p->index);
	} else {
		p->seat = v->conf.seat[p->index];
		c->comps = v->n;
		rc = member_place_check(v, c, &c->err);
		if (!rc)
			rc = parts_make(c);
	}
	if (rc)
		change_refuse(c, rc);
}

static void member_read(struct change *c)
{
	int rc = c->front->result;

	/* A label may stand where it was not read. */
	if (!rc && !front_label(c->front->buf) && c->front->unread)
		rc = -EIO;
	if (rc) {
		err_set(&c->err, rc, "%s cannot be read: %s",
			c->part[0].slot.bdev->name, strerror(-rc));
		change_refuse(c, rc);
		return;
	}
	c->step = CHANGE_READ;
	vlog_kick(c->v);
}

static void member_read_done(struct front_read *f)
{
	struct change *c = f->arg;

	timer_cancel(c->v->r, &c->timer);
	member_read(c);
}

static void member_read_late(struct timer *timer)
{
	struct change *c = container_of(timer, struct change, timer);

	front_read_drop(c->front, false);
	c->front = NULL;
	err_set(&c->err, -ETIMEDOUT, "%s does not answer",
		c->part[0].slot.bdev->name);
	change_refuse(c, -ETIMEDOUT);
}

/* Every content from now on names the new one, at its place. */
static void member_named(struct change *c)
{
	struct vlog *v = c->v;
	struct change_part *p = &c->part[0];
	struct member *m = &v->member[p->index];

	p->seat.since = seg_id_next(v);
	v->conf.seat[p->index] = p->seat;
	m->learned = m->admitted = false;
	change_named(c);
}

static void member_read_begin(struct change *c)
{
	struct vlog *v = c->v;
	struct change_part *p = &c->part[0];

	if (p->index >= v->n || v->member[p->index].bdev) {
		err_set(&c->err, -EBUSY, "%s: member %u is in service",
			v->bdev.name, p->index);
		change_refuse(c, -EBUSY);
		return;
	}
	c->step = CHANGE_BUSY;
	c->timer.fn = member_read_late;
	timer_arm_lived(v->r, &c->timer, IO_TIMEOUT_NS);
	front_read_begin(c->front, p->slot.bdev, member_read_done, c);
	if (!c->front->busy) /* too small to be one */
		member_read(c);
}

/* Another one for the same place was there before. */
static bool member_second(const struct change *c)
{
	const struct change *o = c->v->changes;

	while (o != c && (o->early != c->early || o->step == CHANGE_LEAVING ||
			  o->part[0].index != c->part[0].index))
		o = o->next;
	return o != c;
}

static bool member_early(struct change *c)
{
	struct vlog *v = c->v;
	struct change_part *p = &c->part[0];

	if (member_second(c))
		return false;
	if (c->step == CHANGE_QUEUED) {
		member_read_begin(c);
		return true;
	}
	if (v->meta.learn_mask || !member_ours(c) ||
	    v->meta.committed <= c->proof)
		return false;
	c->step = CHANGE_BUSY;
	v->member[p->index].bdev = p->slot.bdev;
	meta_learn(v, 1u << p->index, return_learned, c);
	return true;
}

static bool member_turn(struct change *c)
{
	struct vlog *v = c->v;

	switch (c->step) {
	case CHANGE_QUEUED:
		return member_early(c);
	case CHANGE_READ:
		if (member_ours(c))
			return member_early(c);
		member_make(c);
		return true;
	case CHANGE_CONFIG:
		member_named(c);
		return true;
	case CHANGE_NAMED:
		part_usable(c, &c->part[0]);
		resync_member_back(v);
		change_end(c);
		return true;
	default:
		return false;
	}
}

void vlog_replace(struct bdev *vdisk, unsigned index,
		  const struct vdisk_slot *slot, vdisk_done_fn *done, void *arg)
{
	struct vlog *v = vlog_of(vdisk);
	struct change *c = change_add(v, member_turn, done, arg);

	id_assert(slot->bdev);
	c->early = member_early;
	c->parts = 1;
	c->part[0].index = index;
	c->part[0].slot = *slot;
	c->front = front_read_new(v->r);
}

void vlog_member_return(struct bdev *vdisk, unsigned index, struct bdev *bdev,
			vdisk_done_fn *done, void *arg)
{
	const struct vdisk_slot slot = { .bdev = bdev };

	vlog_replace(vdisk, index, &slot, done, arg);
}
