/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How a vDisk is found again from the labels of the components that are there.
 *
 *   open:  read all labels --> sets among them --> the one that is the vDisk
 *          --> claim, first epoch --> (its migration's target) --> a bdev
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/front.h"
#include "engine/vdisk/mutation.h"

/* ---- the call ----------------------------------------------------------- */

#define COMPONENTS_MAX (2 * VDISK_MEMBERS_MAX)

struct component {
	struct vdisk_slot slot;
	struct label_io lio;
	bool used;
};

struct opener {
	struct reactor *reactor;
	struct vdisk_spec spec;
	char cluster[64], name[64];
	struct component c[COMPONENTS_MAX];
	unsigned count, pending;
	struct vset *vs, *target;
	struct label newest;   /* of the set being opened */
	uint64_t resume_bytes; /* of its copy */
	bool activate;         /* it was a target until its source moved */
	vdisk_done_fn *done;
	void *arg;
	struct err err;
	struct task task;
};

static bool labelled(const struct component *c)
{
	return c->slot.bdev && c->lio.found;
}

/* Newest content among the labels of a set. */
static const struct label *set_newest(const struct opener *op,
				      const uint8_t set[16])
{
	const struct label *newest = NULL;

	for (unsigned i = 0; i < op->count; i++) {
		const struct label *l = &op->c[i].lio.label;

		if (labelled(&op->c[i]) && !memcmp(l->set, set, 16) &&
		    (!newest || label_compare(l, newest) > 0))
			newest = l;
	}
	return newest;
}

/* Its target says more than that it is one: the set has moved, also where
 * the labels that say so are not there. */
static bool set_left(struct opener *op, const struct label *label)
{
	const struct label *target = set_newest(op, label->peer);

	return label->set_state == SET_MOVED ||
	       (label->set_state == SET_COPYING && target &&
		target->set_state != SET_TARGET);
}

/* What was brought but not needed is ours too, from success on, and gone
 * before the vDisk is. */
static void opener_leftovers(struct opener *op)
{
	for (unsigned i = 0; i < op->count; i++) {
		struct bdev *bdev = op->c[i].slot.bdev;
		bool used = false;

		for (unsigned j = 0; op->vs && j < op->vs->slots; j++)
			used = used || op->vs->member[j].bdev == bdev;
		for (unsigned j = 0; op->target && j < op->target->slots; j++)
			used = used || op->target->member[j].bdev == bdev;
		if (bdev && !used)
			vset_bdev_close(op->vs, bdev);
	}
}

/* Components of sets that the vDisk has left. */
static void opener_retired(struct opener *op, struct vdisk *vd)
{
	for (unsigned i = 0; i < op->count; i++) {
		const struct component *c = &op->c[i];
		const struct label *l;

		if (!labelled(c) || vd->retired == VDISK_MEMBERS_MAX)
			continue;
		l = set_newest(op, c->lio.label.set);
		if (!set_left(op, l) ||
		    memcmp(l->peer, op->vs->label.set, 16) != 0)
			continue;
		vd->retired_slot[vd->retired] = c->slot;
		vd->retired_slot[vd->retired++].bdev = NULL;
	}
}

static void opener_end(struct opener *op)
{
	struct vdisk *vd = NULL;

	for (unsigned i = 0; i < op->count; i++)
		label_io_fini(&op->c[i].lio, op->reactor);
	if (!op->err.code)
		vdisk_new(op->vs, &op->spec, &vd, &op->err);
	if (vd) {
		opener_retired(op, vd);
		opener_leftovers(op);
		op->vs->opening = false;
		if (op->target) {
			op->target->opening = false;
			migrate_resume(vd, op->target, op->resume_bytes);
		}
		vset_background(op->vs);
	}
	op->done(op->err.code, op->err.code ? &op->err : NULL,
		 vd ? &vd->bdev : NULL, op->arg);
	free(op);
}

static void opener_undone(struct vset *vs, void *arg)
{
	vset_free(vs);
	opener_end(arg);
}

static void opener_task(struct task *task)
{
	struct opener *op = container_of(task, struct opener, task);

	if (op->err.code && op->vs)
		vset_close(op->vs, false, opener_undone, op);
	else
		opener_end(op);
}

static void opener_later(struct opener *op)
{
	op->task.fn = opener_task;
	reactor_post(op->reactor, &op->task);
}

static struct opener *opener_new(struct reactor *r,
				 const struct vdisk_spec *spec,
				 vdisk_done_fn *done, void *arg)
{
	struct opener *op = calloc(1, sizeof(*op));

	id_assert(op);
	op->reactor = r;
	op->spec = *spec;
	snprintf(op->cluster, sizeof(op->cluster), "%s",
		 spec->cluster ? spec->cluster : "");
	snprintf(op->name, sizeof(op->name), "%s",
		 spec->name ? spec->name : "");
	op->done = done;
	op->arg = arg;
	return op;
}

static void created(struct vset *vs, const struct err *err, void *arg)
{
	struct opener *op = arg;

	if (err)
		op->err = *err;
	op->vs = vs;
	op->count = 0;
	opener_end(op);
}

void inplace_create(struct reactor *r, const struct vdisk_spec *spec,
		    vdisk_done_fn *done, void *arg)
{
	struct opener *op = opener_new(r, spec, done, arg);

	if (label_from_spec(r, spec, &op->newest, &op->err))
		opener_later(op);
	else
		vset_create(r, &op->newest, spec->slot, spec->slots, created,
			    op);
}

/* ---- which set is the vDisk --------------------------------------------- */

/* The component that is member i of this label; NULL: not there. */
static struct component *member_component(struct opener *op,
					  const struct label *label, unsigned i)
{
	for (unsigned j = 0; j < op->count; j++) {
		struct component *c = &op->c[j];

		if (labelled(c) && !memcmp(c->lio.label.set, label->set, 16) &&
		    !memcmp(c->lio.label.self, label->member[i].uuid, 16))
			return c;
	}
	return NULL;
}

static unsigned set_present(struct opener *op, const struct label *label)
{
	unsigned present = 0;

	for (unsigned i = 0; i < label->slots; i++)
		if (member_component(op, label, i))
			present++;
	return present;
}

static bool set_quorum(struct opener *op, const struct label *label)
{
	return label && set_present(op, label) >= quorum_read_need(label);
}

static void missing_list(struct opener *op, const struct label *label,
			 char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < label->slots && at + 1 < len; i++)
		if (!member_component(op, label, i))
			at += (size_t)snprintf(buf + at, len - at,
					       "%s%.31s:%.31s", at ? ", " : "",
					       label->member[i].domain,
					       label->member[i].drive);
}

static int no_quorum(struct opener *op, const struct label *label)
{
	char missing[256];

	missing_list(op, label, missing, sizeof(missing));
	return err_set(&op->err, -EAGAIN,
		       "vDisk %s opens with %u of its %u members, there are "
		       "%u; bring back %s",
		       label->name, quorum_read_need(label), label->slots,
		       set_present(op, label), missing);
}

static int identity_check(struct opener *op)
{
	for (unsigned i = 0; i < op->count; i++) {
		const struct label *l = &op->c[i].lio.label;

		if (!labelled(&op->c[i]))
			continue;
		if (strncmp(l->cluster, op->cluster, 64) != 0)
			return err_set(&op->err, -EINVAL,
				       "%s belongs to cluster %s, not to %s",
				       op->c[i].slot.bdev->name, l->cluster,
				       op->cluster);
		if (op->name[0] && strncmp(l->name, op->name, 64) != 0)
			return err_set(&op->err, -EINVAL,
				       "%s belongs to vDisk %s, not to %s",
				       op->c[i].slot.bdev->name, l->name,
				       op->name);
	}
	return 0;
}

/*
 * A set that says it is the vDisk, with a quorum; or one whose source says, by
 * its own quorum, that it moved there. Exactly one can exist: a source says
 * moved in m + 1 labels before its target says active.
 */
static const struct label *set_choose(struct opener *op)
{
	const struct label *moved = NULL, *best = NULL;

	for (unsigned i = 0; i < op->count; i++) {
		const struct label *l;

		if (!labelled(&op->c[i]))
			continue;
		l = set_newest(op, op->c[i].lio.label.set);
		if (!set_quorum(op, l))
			continue;
		if (set_left(op, l))
			moved = l;
		else if (l->set_state != SET_TARGET && !best)
			best = l;
		else if (l->set_state != SET_TARGET &&
			 memcmp(l->set, best->set, 16) != 0)
			err_set(&op->err, -EINVAL,
				"components of two vDisks named %s", l->name);
	}
	if (best || !moved || op->err.code)
		return op->err.code ? NULL : best;
	best = set_newest(op, moved->peer);
	if (set_quorum(op, best)) {
		op->activate = true;
		return best;
	}
	if (best)
		no_quorum(op, best);
	else
		err_set(&op->err, -EAGAIN,
			"vDisk %s has moved to other members (%.31s/%.31s and "
			"more), and they are not there",
			moved->name, moved->target[0].domain,
			moved->target[0].drive);
	return NULL;
}

/* Why none could be chosen. */
static void choose_failed(struct opener *op)
{
	const struct label *any = NULL;

	for (unsigned i = 0; i < op->count && !op->err.code; i++) {
		if (!labelled(&op->c[i]))
			continue;
		any = set_newest(op, op->c[i].lio.label.set);
		if (any->set_state != SET_TARGET)
			no_quorum(op, any);
	}
	if (op->err.code)
		return;
	if (any)
		err_set(&op->err, -EAGAIN,
			"these are the members vDisk %s was being moved to; "
			"it is opened from those it was moved from",
			any->name);
	else
		err_set(&op->err, -ENOENT, "no label of a vDisk is there");
}

/* ---- opening a set ------------------------------------------------------ */

static uint64_t set_promised(struct opener *op, const struct label *label)
{
	uint64_t promised = label->claim;

	for (unsigned i = 0; i < op->count; i++)
		if (labelled(&op->c[i]) &&
		    !memcmp(op->c[i].lio.label.set, label->set, 16) &&
		    op->c[i].lio.label.promised > promised)
			promised = op->c[i].lio.label.promised;
	return promised;
}

/* Where the component now is, if it was moved. */
static void identity_update(struct vset *vs, unsigned i,
			    const struct vdisk_slot *slot)
{
	struct label_member *m = &vs->want_member[i];

	if (slot->domain[0])
		memcpy(m->domain, slot->domain, sizeof(m->domain));
	if (slot->drive[0])
		memcpy(m->drive, slot->drive, sizeof(m->drive));
	if (slot->component[0])
		memcpy(m->component, slot->component, sizeof(m->component));
}

/*
 * Whether a component is older than the newest label says: a backup put back,
 * or a copy made earlier. An owner writes its claim on each member before its
 * first epoch, and each epoch on all before it begins the next: so whoever
 * the newest epoch counts in has that claim, and misses one epoch at most.
 */
static bool component_lags(const struct component *c,
			   const struct label *newest)
{
	const struct label *own = &c->lio.label;

	return own->promised < newest->claim ||
	       (own->claim == newest->claim && own->epoch + 1 < newest->epoch);
}

/* Names the first member that lags; their data is never read. */
static void set_lagging(struct opener *op, const struct label *newest,
			struct vset *vs, char *first, size_t len)
{
	first[0] = '\0';
	for (unsigned i = 0; i < vs->slots; i++) {
		const struct component *c = member_component(op, newest, i);
		struct member *m = &vs->member[i];

		if (!c || m->state == MEMBER_STALE ||
		    !component_lags(c, newest))
			continue;
		m->state = MEMBER_STALE;
		m->mark_rows = m->mark_saved = 0;
		if (!first[0])
			snprintf(first, len, "%.31s/%.31s", c->slot.domain,
				 c->slot.drive);
	}
}

static int set_open(struct opener *op, const struct label *newest,
		    struct vset **out)
{
	char lagging[64];
	struct bdev *bdev[VDISK_MEMBERS_MAX] = { NULL };
	struct component *c;
	struct label label = *newest;
	struct vset *vs;
	int rc;

	if (!label.clean && label.policy.m && !MUTATION(resync_none))
		label.resync_rows = 0;
	for (unsigned i = 0; i < label.slots; i++) {
		c = member_component(op, &label, i);
		bdev[i] = c ? c->slot.bdev : NULL;
	}
	rc = vset_new(op->reactor, &label, bdev, &vs, &op->err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < label.slots; i++) {
		c = member_component(op, &label, i);
		if (c)
			identity_update(vs, i, &c->slot);
	}
	set_lagging(op, newest, vs, lagging, sizeof(lagging));
	if (lagging[0])
		snprintf(vs->reason, sizeof(vs->reason),
			 "%s holds an older copy of its data", lagging);
	if (vset_data_gone(vs) > vs->m) {
		err_set(&op->err, -EAGAIN,
			"vDisk %s needs %u of its %u data members, %u are "
			"whole%s%s%s",
			label.name, vs->k, vs->width,
			vs->width - vset_data_gone(vs), lagging[0] ? ": " : "",
			lagging, lagging[0] ? " holds older data" : "");
		vset_free(vs);
		return op->err.code;
	}
	vs->claim = set_promised(op, newest) + 1;
	vs->owner = op;
	*out = vs;
	return 0;
}

static void target_undone(struct vset *vs, void *arg)
{
	vset_free(vs);
	opener_later(arg);
}

static void target_opened(struct vset *vs, int result)
{
	struct opener *op = vs->owner;

	if (result) {
		/* The copy cannot go on; the vDisk can. */
		op->target = NULL;
		vset_close(vs, false, target_undone, op);
		return;
	}
	opener_later(op);
}

static void set_opened(struct vset *vs, int result)
{
	struct opener *op = vs->owner;
	const struct label *target = set_newest(op, vs->label.peer);

	if (result) {
		err_set(&op->err, result, "vDisk %s: %s", vs->label.name,
			vs->reason);
	} else if (vs->label.set_state == SET_COPYING &&
		   set_quorum(op, target) &&
		   !set_open(op, target, &op->target)) {
		quorum_open(op->target, target_opened);
		return;
	}
	if (!result)
		op->err.code = 0; /* of a target that could not be opened */
	opener_later(op);
}

static void opener_choose(struct opener *op)
{
	const struct label *label;

	if (identity_check(op)) {
		opener_later(op);
		return;
	}
	label = set_choose(op);
	if (!label)
		choose_failed(op);
	if (!label || set_open(op, label, &op->vs)) {
		opener_later(op);
		return;
	}
	/* What a label says of the copy holds only for a clean end, and only
	 * until the vDisk is open: the next opening may miss the target. */
	op->resume_bytes = label->clean ? label->copy_bytes : 0;
	op->vs->want_copy_bytes = 0;
	if (op->activate) {
		op->vs->want_state = SET_ACTIVE;
		memset(op->vs->want_peer, 0, 16);
	}
	quorum_open(op->vs, set_opened);
}

static void opener_was_read(struct label_io *lio)
{
	struct opener *op = lio->arg;

	if (--op->pending == 0)
		opener_choose(op);
}

void inplace_open(struct reactor *r, const struct vdisk_spec *spec,
		  vdisk_done_fn *done, void *arg)
{
	struct opener *op = opener_new(r, spec, done, arg);

	id_assert(spec->slots <= COMPONENTS_MAX);
	op->count = spec->slots;
	for (unsigned i = 0; i < op->count; i++) {
		struct component *c = &op->c[i];

		c->slot = spec->slot[i];
		if (!c->slot.bdev)
			continue;
		if (c->slot.bdev->limits.size_bytes < VDISK_LABEL_BYTES)
			continue;
		if (label_io_init(&c->lio, c->slot.bdev)) {
			err_set(&op->err, -ENOMEM, "out of memory for labels");
			break;
		}
		op->pending++;
	}
	if (op->err.code)
		op->pending = 0;
	if (!op->pending) {
		if (!op->err.code)
			choose_failed(op);
		opener_later(op);
		return;
	}
	for (unsigned i = 0; i < op->count; i++) {
		struct label_io *lio = &op->c[i].lio;

		if (!lio->buf)
			continue;
		lio->arg = op;
		lio->done = opener_was_read;
		label_io_read(lio);
	}
}

/* ---- looking without opening -------------------------------------------- */

static void probed(struct label_io *lio)
{
	*(bool *)lio->arg = true;
}

static void facts_fill(const struct label *l, struct vdisk_label_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	memcpy(facts->cluster, l->cluster, sizeof(facts->cluster));
	memcpy(facts->name, l->name, sizeof(facts->name));
	memcpy(facts->uuid, l->vdisk, 16);
	facts->epoch = l->epoch;
	facts->policy = l->policy;
	facts->size_bytes = l->size_bytes;
	facts->slots = l->slots;
	for (unsigned i = 0; i < l->slots; i++) {
		struct vdisk_slot *slot = &facts->slot[i];

		memcpy(slot->domain, l->member[i].domain, 32);
		memcpy(slot->drive, l->member[i].drive, 32);
		memcpy(slot->component, l->member[i].component, 64);
		slot->role = (enum member_role)l->member[i].role;
		slot->state = (enum member_state)l->member[i].state;
	}
}

int inplace_label_probe(struct bdev *component, struct vdisk_label_facts *facts,
			struct err *err)
{
	struct label_io lio;
	bool done = false;
	int rc;

	if (component->limits.size_bytes < VDISK_LABEL_BYTES)
		return err_set(err, -EBADMSG, "%s is too small for a label",
			       component->name);
	rc = label_io_init(&lio, component);
	if (rc)
		return err_set(err, rc, "out of memory for a label");
	lio.done = probed;
	lio.arg = &done;
	label_io_read(&lio);
	while (!done)
		reactor_run_once(component->reactor, UINT64_MAX);
	if (lio.result)
		rc = err_set(err, lio.result, "%s cannot be read: %s",
			     component->name, strerror(-lio.result));
	else if (lio.damaged)
		rc = err_set(err, -EBADMSG,
			     "%s has a label that is damaged, or of a newer "
			     "iodeck",
			     component->name);
	else if (!lio.found)
		rc = err_set(err, -ENOENT, "%s has no label of a vDisk",
			     component->name);
	else
		facts_fill(&lio.label, facts);
	label_io_fini(&lio, component->reactor);
	return rc;
}
