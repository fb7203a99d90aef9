/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Create and open: labels on bare components, then a vDisk that recovers.
 *
 *   create: label A | superblocks | label B on every slot, flushed; then open
 *   open:   read those of every slot, agree on one label, recover, serve
 *
 * Until done() has reported success the bdevs are the caller's.
 */
#include "engine/vdisk/log/impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FRONT_BYTES (4 * FMT_BLOCK)

/* The first blocks of a component; its own memory, as a stuck drive may hold
 * on to it for longer than the opening takes. */
struct front {
	struct io io;
	struct reactor *r;
	struct vlog_opening *op; /* NULL: it went on without */
	uint8_t *buf;
	bool busy;
};

struct vlog_opening {
	struct reactor *r;
	struct vlog *v;
	struct fmt_label label;
	char cluster[64], name[64];
	struct vdisk_slot slot[FMT_COMPS_MAX];
	unsigned slots;
	struct vlog_pace pace;
	vdisk_changed_fn *changed;
	void *changed_arg;
	vdisk_done_fn *done;
	void *arg;

	struct front *front[FMT_COMPS_MAX];
	struct timer timer;
	unsigned out, step;
	uint32_t late; /* bits of slots that did not answer */
	int result;
	struct err err;
	struct task task;
	uint32_t used;                   /* bits of slots that are members */
	const char *note[FMT_COMPS_MAX]; /* why a component is not */
};

static void uuid_make(struct reactor *r, uint8_t uuid[16])
{
	uint64_t half[2];

	if (reactor_kind(r) == REACTOR_SIM ||
	    getrandom(uuid, 16, GRND_NONBLOCK) != 16) {
		half[0] = rng_u64(reactor_rng(r));
		half[1] = rng_u64(reactor_rng(r));
		memcpy(uuid, half, 16);
	}
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static struct front *front_new(struct vlog_opening *op)
{
	struct front *f = calloc(1, sizeof(*f));

	id_assert(f);
	f->r = op->r;
	f->op = op;
	f->buf = reactor_buf_alloc(op->r, FRONT_BYTES);
	id_assert(f->buf);
	return f;
}

static void front_free(struct front *f)
{
	reactor_buf_free(f->r, f->buf, FRONT_BYTES);
	free(f);
}

/* dead: nothing calls back what it holds any more. */
static void opening_free(struct vlog_opening *op, bool dead)
{
	timer_cancel(op->r, &op->timer);
	for (unsigned i = 0; i < op->slots; i++) {
		struct front *f = op->front[i];

		if (f->busy && !dead)
			f->op = NULL;
		else
			front_free(f);
	}
	free(op);
}

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
		v = NULL;
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

/* ---- the front of each component ----------------------------------- */

static void fronts_over(struct vlog_opening *op);

static void front_done(struct io *io)
{
	struct front *f = io->arg;
	struct vlog_opening *op = f->op;

	f->busy = false;
	if (!op)
		front_free(f);
	else if (--op->out == 0)
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
		struct front *f = op->front[i];

		if (!f->busy)
			continue;
		f->op = NULL;
		op->front[i] = front_new(op);
		op->front[i]->io.result = -ETIMEDOUT;
		op->late |= 1u << i;
	}
	fronts_over(op);
}

static void fronts_io(struct vlog_opening *op, enum bdev_op what)
{
	op->out = 1;
	for (unsigned i = 0; i < op->slots; i++) {
		struct bdev *bdev = op->slot[i].bdev;
		struct front *f = op->front[i];

		if (!bdev || op->late & 1u << i)
			continue;
		op->out++;
		f->busy = true;
		f->io = (struct io) {
			.op = (uint8_t)what,
			.len = what == BDEV_FLUSH ? 0 : FRONT_BYTES,
			.buf = what == BDEV_FLUSH ? NULL : f->buf,
			.done = front_done,
			.arg = f,
		};
		bdev_submit(bdev, &f->io);
	}
	op->timer.fn = fronts_late;
	timer_arm(op->r, &op->timer, reactor_now(op->r) + IO_TIMEOUT_NS);
	if (--op->out == 0)
		fronts_over(op);
}

static void front_make(struct vlog_opening *op, unsigned i)
{
	struct fmt_label l = op->label;
	uint8_t *buf = op->front[i]->buf;
	struct fmt_super s = { .serial = 1,
			       .content = { .seq = 1,
					    .area = 1,
					    .raid = l.raid,
					    .k = l.k,
					    .m = l.m,
					    .codec = l.codec,
					    .clean = 1 } };

	memset(buf, 0, FRONT_BYTES);
	memcpy(l.comp_uuid, l.member[i].uuid, 16);
	memcpy(buf + FMT_LABEL_A, &l, sizeof(l));
	memcpy(buf + FMT_LABEL_B, &l, sizeof(l));
	fmt_seal(buf + FMT_LABEL_A, FMT_LABEL, l.head.vdisk, i, FMT_LABEL_A, 0,
		 sizeof(l));
	fmt_seal(buf + FMT_LABEL_B, FMT_LABEL, l.head.vdisk, i, FMT_LABEL_B, 0,
		 sizeof(l));
	if (i > 2u * l.m)
		return;
	for (unsigned c = 0; c < l.comps; c++)
		memcpy(s.content.uuid[c], l.member[c].uuid, 16);
	memcpy(buf + FMT_SUPER(0), &s, sizeof(s));
	fmt_seal(buf + FMT_SUPER(0), FMT_SUPERBLOCK, l.head.vdisk, i,
		 FMT_SUPER(0), 0, sizeof(s));
}

/* ---- agreeing on a label ------------------------------------------- */

static const struct fmt_label *label_of(const struct vlog_opening *op,
					unsigned i)
{
	const uint8_t *a = op->front[i]->buf + FMT_LABEL_A;
	const uint8_t *b = op->front[i]->buf + FMT_LABEL_B;

	if (!op->slot[i].bdev || op->front[i]->io.result)
		return NULL;
	if (!fmt_label_check(a, FMT_COMP_ANY, FMT_LABEL_A))
		return (const void *)a;
	if (!fmt_label_check(b, FMT_COMP_ANY, FMT_LABEL_B))
		return (const void *)b;
	return NULL;
}

static bool label_named(const struct vlog_opening *op,
			const struct fmt_label *l)
{
	return (!op->name[0] || !strcmp(op->name, l->name)) &&
	       (!op->cluster[0] || !strcmp(op->cluster, l->cluster));
}

/* Of the vDisk that most components with the right name belong to; if none
 * has it, any. */
static const struct fmt_label *label_choose(const struct vlog_opening *op)
{
	const struct fmt_label *best = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < op->slots; i++) {
		const struct fmt_label *l = label_of(op, i), *other;
		unsigned votes = 0;

		for (unsigned j = 0; l && j < op->slots; j++) {
			other = label_of(op, j);
			votes += other &&
				 !memcmp(l->head.vdisk, other->head.vdisk, 16);
		}
		if (l && !label_named(op, l))
			votes = 0;
		if (l && (!best || votes > most)) {
			best = l;
			most = votes;
		}
	}
	return best;
}

static int slot_foreign(struct vlog_opening *op, unsigned i,
			const struct fmt_label *l)
{
	const bool namesake = !strcmp(l->name, op->label.name) &&
			      !strcmp(l->cluster, op->label.cluster);

	return err_set(&op->err, -EINVAL,
		       "%s holds a component of %s%s in cluster %s, not of "
		       "%s: put the right one in its place, or take it away",
		       op->slot[i].bdev->name, namesake ? "another " : "",
		       l->name, l->cluster,
		       namesake ? "this one" : op->label.name);
}

static int slot_match(struct vlog_opening *op, unsigned i,
		      const struct fmt_label *l, struct bdev **member)
{
	const unsigned comp = l->head.comp;

	if (memcmp(l->head.vdisk, op->label.head.vdisk, 16))
		return slot_foreign(op, i, l);
	if (memcmp(l->comp_uuid, op->label.member[comp].uuid, 16))
		return 0; /* was replaced: of no use */
	if (member[comp])
		return err_set(&op->err, -EINVAL,
			       "%s and %s are the same component",
			       op->slot[i].bdev->name, member[comp]->name);
	/* Torn: as good as away, and never written to. */
	if (op->slot[i].bdev->limits.size_bytes <
	    geo_member_bytes(&op->label)) {
		op->note[comp] = "shorter than it was made";
		return 0;
	}
	member[comp] = op->slot[i].bdev;
	op->used |= 1u << i;
	return 0;
}

/* By where it stands: which component had the label that cannot be read? */
static void slot_unread(struct vlog_opening *op, unsigned i)
{
	const struct vdisk_slot *s = &op->slot[i];

	for (unsigned c = 0; s->bdev && c < op->label.comps; c++) {
		const struct fmt_member *m = &op->label.member[c];

		if (strncmp(m->domain, s->domain, sizeof(m->domain)) != 0 ||
		    strncmp(m->drive, s->drive, sizeof(m->drive)) != 0)
			continue;
		op->note[c] = op->front[i]->io.result
				      ? "its label cannot be read"
				      : "carries no label";
	}
}

static int labels_agree(struct vlog_opening *op, struct bdev **member)
{
	const struct fmt_label *first = label_choose(op);
	int rc;

	if (!first)
		return err_set(&op->err, -ENOENT,
			       "%s: no component carries a label of the log "
			       "layout",
			       op->name);
	op->label = *first;
	if (!label_named(op, &op->label))
		return err_set(&op->err, -EINVAL,
			       "these are components of %s in cluster %s",
			       op->label.name, op->label.cluster);
	for (unsigned i = 0; i < op->slots; i++) {
		const struct fmt_label *l = label_of(op, i);

		if (!l)
			slot_unread(op, i);
		rc = l ? slot_match(op, i, l, member) : 0;
		if (rc)
			return rc;
	}
	for (unsigned c = 0; c < op->label.comps; c++)
		if (member[c])
			op->note[c] = NULL;
	return 0;
}

/* ---- a vDisk over them --------------------------------------------- */

static void unused_closed(void *arg)
{
	(void)arg; /* a stuck drive may take its time: nobody waits */
}

static void recovered(struct vlog *v, int result, const struct err *err)
{
	struct vlog_opening *op = v->changed_arg;

	if (result) {
		op->err = *err;
		opening_finish(op, result);
		return;
	}
	v->changed = op->changed;
	v->changed_arg = op->changed_arg;
	v->state = VLOG_SERVING;
	v->owns = true;
	/* What failed while opening is closed as if it had failed now, and
	 * so is what has no place. */
	for (unsigned i = 0; i < op->slots; i++) {
		bool member = false;

		for (unsigned c = 0; c < v->n; c++)
			member |= v->member[c].bdev == op->slot[i].bdev;
		if (!op->slot[i].bdev || member)
			continue;
		bdev_close(op->slot[i].bdev, unused_closed, NULL);
	}
	vlog_kick(v);
	opening_finish(op, 0);
}

static int members_check(struct vlog_opening *op, struct bdev **member)
{
	char why[320] = "";
	unsigned there = 0;

	for (unsigned c = 0; c < op->label.comps; c++) {
		const struct bdev *b = member[c];

		there += b != NULL;
		if (b && (b->limits.block_bytes > FMT_BLOCK ||
			  b->limits.align_bytes > FMT_BLOCK ||
			  b->limits.io_max_bytes < FMT_RECORD_MAX))
			return err_set(&op->err, -ENOTSUP,
				       "%s: blocks above 4 KiB, or transfers "
				       "below %u KiB",
				       b->name, FMT_RECORD_MAX / 1024);
	}
	if (there + op->label.m >= op->label.comps)
		return 0;
	for (unsigned c = 0; c < op->label.comps; c++) {
		if (member[c])
			continue;
		snprintf(why + strlen(why), sizeof(why) - strlen(why),
			 "%s%.31s (%s)", why[0] ? ", " : "",
			 op->label.member[c].domain,
			 op->note[c] ? op->note[c] : "not there");
	}
	return err_set(&op->err, -EAGAIN,
		       "%s: %u of %u components are of use, %u are needed; "
		       "bring back what is missing: %s",
		       op->label.name, there, op->label.comps,
		       op->label.comps - op->label.m, why);
}

static int memory_check(struct vlog_opening *op)
{
	const uint64_t need = geo_memory_bytes(&op->label);
	const uint64_t have = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			      (uint64_t)sysconf(_SC_PAGESIZE);

	if (need <= have)
		return 0;
	return err_set(&op->err, -ENOMEM,
		       "%s needs %llu MiB of memory once fully written; this "
		       "machine has %llu MiB. Make it smaller",
		       op->label.name, (unsigned long long)(need / MIB),
		       (unsigned long long)(have / MIB));
}

static void vlog_begin(struct vlog_opening *op)
{
	struct bdev *member[FMT_COMPS_MAX] = { 0 };
	struct vlog *v;
	int rc;

	rc = labels_agree(op, member);
	if (!rc)
		rc = members_check(op, member);
	if (!rc)
		rc = memory_check(op);
	if (!rc)
		rc = vlog_new(op->r, &op->label, op->label.name, &op->v,
			      &op->err);
	if (rc) {
		opening_finish(op, rc);
		return;
	}
	v = op->v;
	v->changed_arg = op;
	v->pace = op->pace;
	v->align = FMT_GRAN;
	for (unsigned c = 0; c < v->n; c++) {
		struct member *m = &v->member[c];

		m->bdev = member[c];
		m->alive = member[c] != NULL;
		m->why = -ENODEV;
		m->note = op->note[c];
		m->lost_ns = reactor_now(op->r);
		if (m->bdev && m->bdev->limits.block_bytes > v->align)
			v->align = m->bdev->limits.block_bytes;
	}
	recover_start(v, recovered);
}

static void fronts_over(struct vlog_opening *op)
{
	int rc = 0;

	timer_cancel(op->r, &op->timer);
	switch (op->step++) {
	case 0: /* written */
	case 1: /* flushed */
		for (unsigned i = 0; i < op->slots && !rc; i++)
			rc = op->front[i]->io.result;
		if (rc) {
			err_set(&op->err, rc, "%s: a label cannot be written",
				op->name);
			opening_finish(op, rc);
			return;
		}
		if (op->step == 1)
			fronts_io(op, BDEV_FLUSH);
		else
			fronts_io(op, BDEV_READ);
		break;
	default:
		vlog_begin(op);
		break;
	}
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
	op->slots = spec->slots <= FMT_COMPS_MAX ? spec->slots : 0;
	for (unsigned i = 0; i < op->slots; i++) {
		op->slot[i] = spec->slot[i];
		op->front[i] = front_new(op);
	}
	return op;
}

struct vlog_opening *vlog_open(struct reactor *r, const struct vlog_spec *spec,
			       vdisk_done_fn *done, void *arg)
{
	struct vlog_opening *op = opening_new(r, spec, done, arg);

	op->step = 2;
	fronts_io(op, BDEV_READ);
	return op;
}

static int create_check(struct vlog_opening *op, const struct vlog_spec *spec)
{
	int rc = geo_label(spec, &op->label, &op->err);

	if (!rc)
		rc = memory_check(op);
	for (unsigned i = 0; i < op->slots && !rc; i++) {
		const struct bdev *b = op->slot[i].bdev;

		if (!b || b->limits.size_bytes < geo_member_bytes(&op->label))
			rc = err_set(&op->err, -EINVAL,
				     "component %u must be there, of %llu "
				     "MiB or more",
				     i,
				     (unsigned long long)(geo_member_bytes(
								  &op->label) /
							  MIB));
	}
	return rc;
}

struct vlog_opening *vlog_create(struct reactor *r,
				 const struct vlog_spec *spec,
				 vdisk_done_fn *done, void *arg)
{
	struct vlog_opening *op = opening_new(r, spec, done, arg);
	const int rc = create_check(op, spec);

	if (rc) {
		opening_finish(op, rc);
		return op;
	}
	uuid_make(r, op->label.head.vdisk);
	for (unsigned i = 0; i < op->slots; i++)
		uuid_make(r, op->label.member[i].uuid);
	for (unsigned i = 0; i < op->slots; i++)
		front_make(op, i);
	fronts_io(op, BDEV_WRITE);
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
