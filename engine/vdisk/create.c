/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A new set on empty components: a vDisk's first, or the one it moves to. A
 * component that carries any label is refused, never overwritten.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/front.h"

static void text_copy(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%s", from ? from : "");
}

static int spec_check(const struct vdisk_spec *spec, struct err *err)
{
	unsigned needed;
	char name[32];
	int rc = vdisk_policy_check(&spec->policy, err);

	if (rc)
		return rc;
	vdisk_policy_name(&spec->policy, name, sizeof(name));
	if (!spec->size_bytes || spec->size_bytes % 4096 ||
	    spec->size_bytes > 1ull << 50)
		return err_set(err, -EINVAL,
			       "a size of %llu bytes: it is a multiple of "
			       "4096 up to 1 PiB",
			       (unsigned long long)spec->size_bytes);
	needed = vdisk_policy_slots(&spec->policy);
	if (spec->slots != needed)
		return err_set(err, -ENOSPC,
			       "%s needs %u fault domains, there are %u", name,
			       needed, spec->slots);
	for (unsigned i = 0; i < spec->slots; i++) {
		if (!spec->slot[i].bdev)
			return err_set(err, -EINVAL,
				       "member %u has no component", i);
		for (unsigned j = 0; j < i; j++)
			if (!strncmp(spec->slot[i].domain, spec->slot[j].domain,
				     32))
				return err_set(err, -EINVAL,
					       "two members in fault domain "
					       "%.31s",
					       spec->slot[i].domain);
	}
	return 0;
}

int label_from_spec(struct reactor *r, const struct vdisk_spec *spec,
		    struct label *label, struct err *err)
{
	int rc = spec_check(spec, err);

	if (rc)
		return rc;
	memset(label, 0, sizeof(*label));
	text_copy(label->cluster, sizeof(label->cluster), spec->cluster);
	text_copy(label->name, sizeof(label->name), spec->name);
	uuid_make(r, label->vdisk);
	uuid_make(r, label->set);
	label->policy = spec->policy;
	label->size_bytes = spec->size_bytes;
	label->claim = label->promised = label->epoch = 1;
	label->set_state = SET_ACTIVE;
	label->resync_rows = UINT64_MAX; /* zeros are sound */
	label->slots = (uint8_t)spec->slots;
	for (unsigned i = 0; i < spec->slots; i++) {
		struct label_member *m = &label->member[i];

		uuid_make(r, m->uuid);
		memcpy(m->domain, spec->slot[i].domain, 31);
		memcpy(m->drive, spec->slot[i].drive, 31);
		memcpy(m->component, spec->slot[i].component, 63);
		m->role = i < (unsigned)(label->policy.k + label->policy.m)
				  ? MEMBER_DATA
				  : MEMBER_WITNESS;
		m->state = MEMBER_OK;
	}
	return 0;
}

struct creator {
	struct reactor *reactor;
	struct vset *vs;
	unsigned pending;
	vset_made_fn *done;
	void *arg;
	struct err err;
	struct task task;
};

static void creator_end(struct creator *cr)
{
	struct vset *vs = cr->err.code ? NULL : cr->vs;

	if (vs)
		vs->opening = false;
	cr->done(vs, cr->err.code ? &cr->err : NULL, cr->arg);
	free(cr);
}

static void creator_undone(struct vset *vs, void *arg)
{
	vset_free(vs);
	creator_end(arg);
}

static void creator_task(struct task *task)
{
	struct creator *cr = container_of(task, struct creator, task);

	if (cr->err.code && cr->vs)
		vset_close(cr->vs, false, creator_undone, cr);
	else
		creator_end(cr);
}

static void creator_later(struct creator *cr)
{
	cr->task.fn = creator_task;
	reactor_post(cr->reactor, &cr->task);
}

static void creator_written(struct vset *vs)
{
	struct creator *cr = vs->owner;
	const unsigned all = (1u << vs->slots) - 1;

	vs->committing = false;
	if (vs->lio_ok != all)
		err_set(&cr->err, -EIO,
			"the labels of %s cannot be written: %s",
			vs->label.name, vs->reason);
	for (unsigned i = 0; i < vs->slots; i++)
		vs->member[i].labelled = true;
	creator_later(cr);
}

static void creator_was_read(struct label_io *lio)
{
	struct creator *cr = lio->arg;
	struct vset *vs = cr->vs;

	if (lio->result)
		err_set(&cr->err, lio->result, "%s cannot be read: %s",
			lio->bdev->name, strerror(-lio->result));
	else if (lio->found)
		err_set(&cr->err, -EEXIST,
			"%s is a component of vDisk %s already; delete it "
			"first",
			lio->bdev->name, lio->label.name);
	if (--cr->pending)
		return;
	if (cr->err.code) {
		creator_later(cr);
		return;
	}
	vs->next_label = vs->label;
	vs->claim = vs->label.claim;
	vs->committing = true;
	quorum_write(vs, (1u << vs->slots) - 1, LIO_CONTENT, creator_written);
}

void vset_create(struct reactor *r, const struct label *label,
		 const struct vdisk_slot *slot, unsigned slots,
		 vset_made_fn *done, void *arg)
{
	struct creator *cr = calloc(1, sizeof(*cr));
	struct bdev *bdev[VDISK_MEMBERS_MAX] = { NULL };

	id_assert(cr && slots <= VDISK_MEMBERS_MAX);
	cr->reactor = r;
	cr->done = done;
	cr->arg = arg;
	for (unsigned i = 0; i < slots; i++)
		bdev[i] = slot[i].bdev;
	if (vset_new(r, label, bdev, &cr->vs, &cr->err)) {
		creator_later(cr);
		return;
	}
	cr->vs->owner = cr;
	cr->pending = slots;
	for (unsigned i = 0; i < slots; i++) {
		struct label_io *lio = &cr->vs->lio[i];

		cr->vs->member[i].labelled = false;
		lio->arg = cr;
		lio->done = creator_was_read;
		label_io_read(lio);
	}
}
