/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Policy change by migration: the vDisk's bytes move from its set S to a new
 * set T, which may differ in everything but size.
 *
 *   S labels   ACTIVE --> COPYING(T) ----------> MOVED(T)    the commit point
 *   T labels   (none) --> TARGET  ... copying ... TARGET --> ACTIVE
 *
 * S alone is the vDisk until MOVED is durable in m + 1 of its labels; from
 * then on T is, whatever T's own labels say. Opening finds either (open.c).
 *
 * The copy goes in windows from the start on. Writes below the mark go to
 * both sets, above it to S alone; those that touch the window wait until it
 * has been copied, and the window waits for those in flight. Overlapping
 * writes are put in one order here, since the two sets would not agree on one
 * by themselves. Each window is read back from T and compared; before the
 * switch T's parity is checked as a whole.
 *
 * After a clean close the copy goes on at its mark. After a crash it starts
 * again: a write that was in flight may have reached one set and not the
 * other, and would change back at the switch.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/migrate.h"
#include "engine/vdisk/mutation.h"

static void migrate_pause(struct migration *mg);

/* ---- ending ------------------------------------------------------------- */

static void migrate_free(struct migration *mg)
{
	struct reactor *r = mg->vd->bdev.reactor;

	timer_cancel(r, &mg->timer);
	reactor_buf_free(r, mg->buf, WINDOW_BYTES);
	reactor_buf_free(r, mg->back, WINDOW_BYTES);
	free(mg);
}

static void migrate_tell(struct migration *mg)
{
	struct vdisk *vd = mg->vd;

	if (vd->moving == mg)
		vd->moving = NULL;
	if (mg->done)
		mg->done(mg->err.code, mg->err.code ? &mg->err : NULL,
			 &vd->bdev, mg->arg);
	migrate_free(mg);
	vdisk_changed_post(vd);
	vdisk_call_ended(vd);
}

static void migrate_set_gone(struct vset *vs, void *arg)
{
	vset_free(vs);
	migrate_tell(arg);
}

/* T is given up; S says so when it can, and goes on. */
static void migrate_fail(struct migration *mg)
{
	struct vdisk *vd = mg->vd;
	struct vset *vs = vd->set;

	id_assert(mg->err.code && vd->migration == mg);
	vd->migration = NULL;
	vs->want_state = SET_ACTIVE;
	vs->want_targets = 0;
	vs->want_copy_bytes = 0;
	memset(vs->want_peer, 0, 16);
	if (!vs->failed && !vs->closing)
		vset_dirty(vs);
	mg->target->committed = NULL;
	mg->target->changed = NULL;
	migrate_writes_kick(vd);
	vset_close(mg->target, false, migrate_set_gone, mg);
}

static void migrate_swap(struct migration *mg)
{
	struct vdisk *vd = mg->vd;
	struct vset *old = vd->set;

	vd->retired = old->slots;
	for (unsigned i = 0; i < old->slots; i++) {
		vset_slot_fill(old, i, &vd->retired_slot[i]);
		vd->retired_slot[i].bdev = NULL;
	}
	old->committed = NULL;
	old->changed = NULL;
	mg->target->rebuild_limit = old->rebuild_limit;
	vdisk_set_attach(vd, mg->target);
	vd->migration = NULL;
	migrate_writes_kick(vd);
	vset_close(old, true, migrate_set_gone, mg);
}

/* ---- copying ------------------------------------------------------------ */

static void copy_failed(struct migration *mg, int rc, const char *what)
{
	if (!mg->err.code)
		err_set(&mg->err, rc,
			"moving %s stopped at %llu of %llu bytes: %s: %s",
			mg->vd->set->label.name, (unsigned long long)mg->mark,
			(unsigned long long)mg->size, what, strerror(-rc));
}

static void migrate_timer(struct timer *timer)
{
	struct migration *mg = container_of(timer, struct migration, timer);

	mg->busy = false;
	migrate_kick(mg);
}

static uint64_t copy_pause_ns(const struct migration *mg, uint64_t bytes)
{
	const uint64_t spent =
		reactor_now(mg->vd->bdev.reactor) - mg->started_ns;
	uint64_t whole;

	if (!mg->limit)
		return mg->vd->tracked || mg->vd->set->reqs ? spent : 0;
	whole = (uint64_t)((double)bytes * 1e9 / (double)mg->limit);
	return whole > spent ? whole - spent : 0;
}

/* A window ended, well or not: the timer goes on from here. */
static void copy_end(struct migration *mg)
{
	struct reactor *r = mg->vd->bdev.reactor;
	const uint64_t bytes = mg->to - mg->from, now = reactor_now(r);

	if (!mg->err.code)
		mg->mark = mg->to;
	if (now - mg->speed_ns >= SEC_NS) {
		mg->bytes_s = (uint64_t)((double)(mg->mark - mg->speed_mark) *
					 1e9 / (double)(now - mg->speed_ns));
		mg->speed_ns = now;
		mg->speed_mark = mg->mark;
	}
	mg->from = mg->to = 0;
	migrate_writes_kick(mg->vd);
	timer_arm(r, &mg->timer, now + copy_pause_ns(mg, bytes));
}

static void copy_submit(struct migration *mg, struct vset *vs, enum bdev_op op,
			uint8_t *buf, void (*done)(struct req *req))
{
	mg->req = (struct req) {
		.op = (uint8_t)op,
		.off = mg->from,
		.len = (uint32_t)(mg->to - mg->from),
		.buf = buf,
		.done = done,
		.arg = mg,
	};
	if (vset_submit(vs, &mg->req)) {
		copy_failed(mg, -EIO, vs->reason);
		copy_end(mg);
	}
}

static void copy_compared(struct req *req)
{
	struct migration *mg = req->arg;

	if (req->result)
		copy_failed(mg, req->result, "reading back");
	else if (memcmp(mg->buf, mg->back, req->len) != 0)
		copy_failed(mg, -EBADMSG, "what was written reads differently");
	copy_end(mg);
}

static void copy_written(struct req *req)
{
	struct migration *mg = req->arg;

	if (req->result) {
		copy_failed(mg, req->result, "writing");
		copy_end(mg);
		return;
	}
	copy_submit(mg, mg->target, BDEV_READ, mg->back, copy_compared);
}

static void copy_was_read(struct req *req)
{
	struct migration *mg = req->arg;

	if (req->result) {
		copy_failed(mg, req->result, "reading");
		copy_end(mg);
		return;
	}
	copy_submit(mg, mg->target, BDEV_WRITE, mg->buf, copy_written);
}

/* The window is closed to new writes; begins once those in it are out. */
static void copy_begin(struct migration *mg)
{
	struct vdisk *vd = mg->vd;

	if (vd->writes_plain)
		return; /* from before the migration */
	if (!mg->to) {
		mg->from = mg->mark;
		mg->to = mg->mark + WINDOW_BYTES;
		if (mg->to > mg->size)
			mg->to = mg->size;
	}
	for (const struct vreq *v = vd->tracked; v; v = v->next)
		if (v->started && migrate_overlap(v, mg->from, mg->to))
			return;
	mg->busy = true;
	mg->started_ns = reactor_now(vd->bdev.reactor);
	copy_submit(mg, vd->set, BDEV_READ, mg->buf, copy_was_read);
}

/* ---- the switch --------------------------------------------------------- */

static void target_verified(struct vset *vs, int result)
{
	struct migration *mg = vs->owner;

	mg->busy = false;
	if (result && !mg->closing)
		copy_failed(mg, result, "verifying");
	else if (!result && vs->walk.mismatches)
		copy_failed(mg, -EBADMSG, "parity of the new members");
	if (!result)
		mg->phase = MIGRATE_DRAIN;
	migrate_kick(mg);
}

static void target_verify(struct migration *mg)
{
	struct vset *vs = mg->target;

	if (!vs->m) {
		mg->phase = MIGRATE_DRAIN;
		migrate_kick(mg);
	} else if (walk_idle(vs)) {
		mg->busy = true;
		walk_start(vs, WALK_VERIFY, 0, 0, target_verified);
	}
}

static void target_flushed(struct req *req)
{
	struct migration *mg = req->arg;
	struct vset *vs = mg->vd->set;

	mg->busy = false;
	if (req->result)
		copy_failed(mg, req->result, "flushing");
	if (!mg->err.code) {
		mg->phase = MIGRATE_MOVE;
		vs->want_state = SET_MOVED;
		vset_dirty(vs);
	}
	migrate_kick(mg);
}

static void migrate_drain(struct migration *mg)
{
	struct vdisk *vd = mg->vd;

	if (vd->replace)
		return; /* its end comes here again */
	mg->from = 0;
	mg->to = UINT64_MAX; /* all writes wait */
	for (const struct vreq *v = vd->tracked; v; v = v->next)
		if (v->started)
			return;
	mg->phase = MIGRATE_FLUSH;
	if (MUTATION(moved_unflushed)) {
		mg->req = (struct req) { .arg = mg };
		target_flushed(&mg->req);
		return;
	}
	mg->busy = true;
	mg->req = (struct req) { .op = BDEV_FLUSH,
				 .done = target_flushed,
				 .arg = mg };
	if (vset_submit(mg->target, &mg->req)) {
		mg->busy = false;
		copy_failed(mg, -EIO, mg->target->reason);
		migrate_kick(mg);
	}
}

static void migrate_activate(struct migration *mg)
{
	struct vset *vs = mg->target;

	mg->phase = MIGRATE_ACTIVATE;
	vs->want_state = SET_ACTIVE;
	memset(vs->want_peer, 0, 16);
	vset_dirty(vs);
}

/* ---- what next ---------------------------------------------------------- */

/* Past the commit point there is no way back: forward, also to a failure. */
static bool migrate_past(const struct migration *mg)
{
	return mg->phase >= MIGRATE_MOVE;
}

static void migrate_go(struct migration *mg)
{
	struct vset *s = mg->vd->set, *t = mg->target;

	if (mg->busy)
		return;
	if (!mg->err.code && s->failed && !migrate_past(mg))
		copy_failed(mg, -EIO, s->reason);
	if (!mg->err.code && t->failed && !migrate_past(mg))
		copy_failed(mg, -EIO, t->reason);
	if (mg->err.code && !migrate_past(mg)) {
		migrate_fail(mg);
		return;
	}
	if (mg->closing && mg->phase < MIGRATE_DRAIN) {
		migrate_pause(mg);
		return;
	}
	switch (mg->phase) {
	case MIGRATE_ANNOUNCE:
		if (s->label.set_state != SET_COPYING ||
		    memcmp(s->label.peer, t->label.set, 16) != 0 ||
		    s->committing)
			return;
		mg->phase = MIGRATE_COPY;
		/* fallthrough */
	case MIGRATE_COPY:
		if (mg->mark < mg->size) {
			copy_begin(mg);
			return;
		}
		mg->phase = MIGRATE_VERIFY;
		/* fallthrough */
	case MIGRATE_VERIFY:
		target_verify(mg);
		return;
	case MIGRATE_DRAIN:
		migrate_drain(mg);
		return;
	case MIGRATE_FLUSH:
		return;
	case MIGRATE_MOVE:
		if (s->failed) { /* unknown: the next open decides */
			copy_failed(mg, -EIO, s->reason);
			migrate_fail(mg);
			return;
		}
		if (s->label.set_state == SET_MOVED && !s->committing)
			migrate_activate(mg);
		return;
	case MIGRATE_ACTIVATE:
		if (t->failed)
			copy_failed(mg, -EIO, t->reason);
		if (t->failed ||
		    (t->label.set_state == SET_ACTIVE && !t->committing))
			migrate_swap(mg);
		return;
	}
}

static void migrate_task(struct task *task)
{
	struct migration *mg = container_of(task, struct migration, task);

	mg->posted = false;
	if (mg->vd->migration == mg)
		migrate_go(mg);
}

/* Always by a task: who calls may be in the middle of either set. */
void migrate_kick(struct migration *mg)
{
	if (mg->posted)
		return;
	mg->posted = true;
	mg->task.fn = migrate_task;
	reactor_post(mg->vd->bdev.reactor, &mg->task);
}

void migrate_step(struct vdisk *vd)
{
	if (vd->migration)
		migrate_kick(vd->migration);
}

static void target_committed(struct vset *vs)
{
	struct migration *mg = vs->owner;

	migrate_kick(mg);
}

static void target_changed(struct vset *vs)
{
	struct migration *mg = vs->owner;

	vdisk_changed_post(mg->vd);
	migrate_kick(mg);
}

/* The vDisk closes: the copy rests, and goes on at the mark. */
static void migrate_pause(struct migration *mg)
{
	struct vdisk *vd = mg->vd;

	vd->migration = NULL;
	vd->set->want_copy_bytes = mg->mark;
	err_set(&mg->err, -ECANCELED,
		"%s was closed; moving it goes on when it is opened",
		vd->set->label.name);
	mg->target->committed = NULL;
	mg->target->changed = NULL;
	vset_close(mg->target, true, migrate_set_gone, mg);
}

void migrate_close(struct vdisk *vd)
{
	vd->migration->closing = true;
	walk_stop(vd->migration->target);
	migrate_kick(vd->migration);
}

/* ---- starting ----------------------------------------------------------- */

static struct migration *migration_new(struct vdisk *vd)
{
	struct reactor *r = vd->bdev.reactor;
	struct migration *mg = calloc(1, sizeof(*mg));

	id_assert(mg);
	vd->calls++;
	mg->vd = vd;
	mg->size = vd->bdev.limits.size_bytes;
	mg->limit = vd->set->rebuild_limit;
	mg->timer.fn = migrate_timer;
	mg->buf = reactor_buf_alloc(r, WINDOW_BYTES);
	mg->back = reactor_buf_alloc(r, WINDOW_BYTES);
	id_assert(mg->buf && mg->back);
	mg->speed_ns = reactor_now(r);
	return mg;
}

static void migrate_attach(struct migration *mg, struct vset *target)
{
	mg->target = target;
	target->owner = mg;
	target->committed = target_committed;
	target->changed = target_changed;
	mg->vd->migration = mg;
	vdisk_changed_post(mg->vd);
}

static void loose_closed(void *arg)
{
	struct migration *mg = arg;

	if (--mg->loose_count == 0)
		migrate_tell(mg);
}

/* It came to nothing: the components are ours to close. */
static void migrate_refuse(struct migration *mg)
{
	const unsigned count = mg->loose_count;

	mg->loose_count++;
	for (unsigned i = 0; i < count; i++)
		bdev_close(mg->loose[i], loose_closed, mg);
	loose_closed(mg);
}

static void target_created(struct vset *target, const struct err *err,
			   void *arg)
{
	struct migration *mg = arg;
	struct vset *vs = mg->vd->set;

	if (!target) {
		mg->err = *err;
		migrate_refuse(mg);
		return;
	}
	if (mg->vd->bdev.closing || vs->failed) {
		err_set(&mg->err, -ECANCELED, "%s is not open any more",
			vs->label.name);
		vset_close(target, false, migrate_set_gone, mg);
		return;
	}
	migrate_attach(mg, target);
	vs->want_state = SET_COPYING;
	memcpy(vs->want_peer, target->label.set, 16);
	vs->want_targets = target->slots;
	memcpy(vs->want_target, target->label.member, sizeof(vs->want_target));
	vset_dirty(vs);
}

static int migrate_check(struct vdisk *vd, const struct migration *mg,
			 const struct vdisk_spec *spec, struct err *err)
{
	const struct vset *vs = vd->set;

	if (vd->bdev.closing || vs->failed)
		return err_set(err, -EIO, "%s is not open", vs->label.name);
	if (vd->moving != mg)
		return err_set(err, -EBUSY, "%s is being moved already",
			       vs->label.name);
	for (unsigned i = 0; i < spec->slots; i++) {
		const struct bdev *b = spec->slot[i].bdev;

		if (b && (b->limits.block_bytes > vd->bdev.limits.block_bytes ||
			  b->limits.align_bytes > vd->bdev.limits.block_bytes))
			return err_set(err, -EINVAL,
				       "%s has blocks of %u bytes, %s has %u",
				       b->name, b->limits.block_bytes,
				       vs->label.name,
				       vd->bdev.limits.block_bytes);
	}
	return 0;
}

static void refused_task(struct task *task)
{
	migrate_refuse(container_of(task, struct migration, task));
}

void inplace_migrate(struct bdev *vdisk, const struct vdisk_spec *target,
		     vdisk_done_fn *done, void *arg)
{
	struct vdisk *vd = (struct vdisk *)vdisk;
	struct vset *vs = vd->set;
	struct migration *mg = migration_new(vd);
	struct vdisk_spec spec = *target;
	struct label label;
	int rc;

	mg->done = done;
	mg->arg = arg;
	for (unsigned i = 0; i < spec.slots && i < VDISK_MEMBERS_MAX; i++)
		if (spec.slot[i].bdev)
			mg->loose[mg->loose_count++] = spec.slot[i].bdev;
	if (!vd->moving)
		vd->moving = mg;
	spec.cluster = vs->label.cluster;
	spec.name = vs->label.name;
	spec.size_bytes = vs->label.size_bytes;
	rc = migrate_check(vd, mg, &spec, &mg->err);
	if (!rc)
		rc = label_from_spec(vdisk->reactor, &spec, &label, &mg->err);
	if (rc) {
		mg->task.fn = refused_task;
		reactor_post(vdisk->reactor, &mg->task);
		return;
	}
	memcpy(label.vdisk, vs->label.vdisk, 16);
	memcpy(label.peer, vs->label.set, 16);
	label.set_state = SET_TARGET;
	vset_create(vdisk->reactor, &label, spec.slot, spec.slots,
		    target_created, mg);
}

void migrate_resume(struct vdisk *vd, struct vset *target, uint64_t mark)
{
	struct migration *mg = migration_new(vd);

	vd->moving = mg;
	mg->mark = mg->speed_mark = mark;
	migrate_attach(mg, target);
	migrate_kick(mg);
}

/* ---- seen from the front ------------------------------------------------ */

bool migrate_switching(const struct vdisk *vd)
{
	return vd->migration && vd->migration->phase >= MIGRATE_DRAIN;
}

void migrate_limit(struct vdisk *vd, uint64_t bytes_s)
{
	if (vd->migration)
		vd->migration->limit = bytes_s;
}

void migrate_info(const struct vdisk *vd, struct vdisk_info *info)
{
	const struct migration *mg = vd->migration;

	info->retired = vd->retired;
	memcpy(info->retired_slot, vd->retired_slot,
	       sizeof(info->retired_slot));
	if (!mg || info->state == VDISK_REBUILDING)
		return;
	info->progress = (double)mg->mark / (double)mg->size;
	info->rebuild_bytes_s = mg->bytes_s;
	info->rebuild_left_bytes = mg->size - mg->mark;
}
