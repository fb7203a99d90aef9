/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes to a vDisk that is being moved, in a list in order of arrival: one
 * starts when it overlaps none before it and not the window of the copy.
 */
#include "engine/vdisk/migrate.h"
#include "engine/vdisk/mutation.h"

bool migrate_overlap(const struct vreq *v, uint64_t from, uint64_t to)
{
	return v->req.off < to && from < v->req.off + v->req.len;
}

static void tracked_remove(struct vdisk *vd, struct vreq *vreq)
{
	struct vreq **at = &vd->tracked;

	while (*at != vreq)
		at = &(*at)->next;
	*at = vreq->next;
	if (!vreq->next)
		vd->tracked_last = at;
}

static void write_start(struct vreq *vreq);

/* Those that wait, in order of arrival. */
void migrate_writes_kick(struct vdisk *vd)
{
	struct vreq *v = vd->tracked;

	while (v) {
		struct vreq *next = v->next;
		const struct migration *mg = vd->migration;
		bool free_to_go = !v->started;

		for (struct vreq *o = vd->tracked; free_to_go && o != v;
		     o = o->next)
			free_to_go = !migrate_overlap(o, v->req.off,
						      v->req.off + v->req.len);
		if (free_to_go && mg && !MUTATION(window_open) &&
		    migrate_overlap(v, mg->from, mg->to))
			free_to_go = false;
		if (free_to_go)
			write_start(v);
		v = next;
	}
}

static void write_told(struct task *task)
{
	struct vreq *vreq = container_of(task, struct vreq, task);
	struct vdisk *vd = vreq->vd;
	struct io *io = vreq->io;
	const int result = vreq->req.result;

	tracked_remove(vd, vreq);
	migrate_writes_kick(vd);
	if (vd->migration)
		migrate_kick(vd->migration);
	vdisk_vreq_put(vreq);
	bdev_complete(io, result);
}

/* By a task: the parts may end inside of a submit. */
static void write_part_done(struct req *req)
{
	struct vreq *vreq = req->arg;

	if (--vreq->parts)
		return;
	vreq->task.fn = write_told;
	reactor_post(vreq->vd->bdev.reactor, &vreq->task);
}

/* What goes wrong in the target is the migration's trouble, not the user's. */
static void write_start(struct vreq *vreq)
{
	struct vdisk *vd = vreq->vd;
	struct migration *mg = vd->migration;
	const bool both =
		mg && vreq->req.off < mg->mark && !MUTATION(copy_alone);
	int rc;

	vreq->started = true;
	vreq->parts = both ? 2 : 1;
	vreq->req.arg = vreq;
	vreq->req.done = write_part_done;
	vreq->twin = vreq->req;
	if (both && vset_submit(mg->target, &vreq->twin))
		write_part_done(&vreq->twin);
	rc = vset_submit(vd->set, &vreq->req);
	if (rc) {
		vreq->req.result = rc;
		write_part_done(&vreq->req);
	}
}

void vdisk_write_tracked(struct vdisk *vd, struct vreq *vreq)
{
	vreq->started = false;
	vreq->next = NULL;
	*vd->tracked_last = vreq;
	vd->tracked_last = &vreq->next;
	migrate_writes_kick(vd);
}
