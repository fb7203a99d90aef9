/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout as vdisk.h sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/layout.h"
#include "engine/vdisk/log/impl.h"

VDISK_HEAD_CHECK(vlog);

/* An answer that comes later, as all answers do. */
struct later {
	struct task task;
	vdisk_done_fn *done;
	void *arg;
	struct bdev *vdisk;
	struct err err;
};

static void later_run(struct task *task)
{
	struct later *l = container_of(task, struct later, task);

	l->done(l->err.code, l->err.code ? &l->err : NULL, l->vdisk, l->arg);
	free(l);
}

static void answer_later(struct bdev *vdisk, vdisk_done_fn *done, void *arg,
			 int rc, const char *what)
{
	struct later *l = calloc(1, sizeof(*l));

	id_assert(l);
	*l = (struct later) {
		.task.fn = later_run, .done = done, .arg = arg, .vdisk = vdisk
	};
	err_set(&l->err, rc, "%s: %s", vdisk->name, what);
	reactor_post(vdisk->reactor, &l->task);
}

/* ---- life ---------------------------------------------------------- */

static void spec_fill(const struct vdisk_spec *from, struct vlog_spec *to)
{
	*to = (struct vlog_spec) { .cluster = from->cluster,
				   .name = from->name,
				   .size_bytes = from->size_bytes,
				   .policy = from->policy,
				   .pace.absent_ms = from->absent_ms,
				   .slot = from->slot,
				   .slots = from->slots,
				   .changed = from->changed,
				   .changed_arg = from->changed_arg };
}

static void front_create(struct reactor *r, const struct vdisk_spec *spec,
			 vdisk_done_fn *done, void *arg)
{
	struct vlog_spec log;

	spec_fill(spec, &log);
	vlog_create(r, &log, done, arg);
}

static void front_open(struct reactor *r, const struct vdisk_spec *spec,
		       vdisk_done_fn *done, void *arg)
{
	struct vlog_spec log;

	spec_fill(spec, &log);
	vlog_open(r, &log, done, arg);
}

/* ---- members ------------------------------------------------------- */

static void front_replace(struct bdev *vdisk, unsigned index,
			  const struct vdisk_slot *slot, vdisk_done_fn *done,
			  void *arg)
{
	if (slot->bdev)
		vlog_replace(vdisk, index, slot, done, arg);
	else
		answer_later(vdisk, done, arg, -EINVAL,
			     "a component must be given");
}

static void front_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s)
{
	vlog_rebuild_limit(vdisk, bytes_s);
}

static void front_verify(struct bdev *vdisk, uint64_t *mismatches,
			 vdisk_done_fn *done, void *arg)
{
	const int rc = vlog_verify(vdisk, mismatches, done, arg);

	*mismatches = 0;
	if (rc)
		answer_later(vdisk, done, arg, rc,
			     rc == -EBUSY ? "it is being verified already"
					  : "it is not in service");
}

/* ---- facts --------------------------------------------------------- */

static void figures_fill(const struct vlog_info *from,
			 struct vdisk_log_info *to)
{
	*to = (struct vdisk_log_info) {
		.blocks_mapped = from->blocks_mapped,
		.stored_bytes = from->live_bytes + from->linked_bytes,
		.space_bytes = from->space_bytes,
		.buffer_bytes = from->buffer_bytes,
		.free_share = from->free,
		.log_fill = from->log_fill,
		.victim_live = from->victim_live,
		.user_bytes = from->user_bytes,
		.user_stored_bytes = from->user_stored_bytes,
		.zero_blocks = from->zero_blocks,
		.log_bytes = from->log_bytes,
		.destage_bytes = from->destage_bytes,
		.bypass_bytes = from->bypass_bytes,
		/* The cleaner moves for both; the causes are apart here. */
		.clean_bytes = from->clean_bytes > from->rebuild_bytes
				       ? from->clean_bytes - from->rebuild_bytes
				       : 0,
		.rebuild_bytes = from->rebuild_bytes,
		.checkpoint_bytes = from->snap_bytes,
		.checkpoints = from->checkpoints,
		.segments_cleaned = from->cleaned_segs,
		.reads_degraded = from->reads_degraded,
		.reads_repaired = from->reads_repaired,
		.reads_hedged = from->reads_hedged,
		.blocks_lost = from->blocks_lost,
		.replayed = from->replayed,
		.scrub_passes = from->scrub_passes,
		.scrub_bytes = from->scrub_bytes,
		.scrub_found = from->scrub_found,
		.scrub_repaired = from->scrub_repaired,
		.scrub_lost = from->scrub_lost,
		.scrub_progress = from->scrub_progress,
		.compliance = from->compliance,
	};
}

static void front_info(struct bdev *vdisk, struct vdisk_info *info)
{
	const struct vlog *v = container_of(vdisk, struct vlog, bdev);
	struct vlog_info log;

	vlog_info(vdisk, &log);
	memset(info, 0, sizeof(*info));
	memcpy(info->name, log.name, sizeof(info->name));
	memcpy(info->uuid, log.uuid, sizeof(info->uuid));
	info->size_bytes = log.size_bytes;
	info->policy = log.policy;
	info->epoch = log.epoch;
	info->state = log.state;
	info->failures_left = log.failures_left;
	info->progress = log.progress;
	info->rebuild_bytes_s = log.rebuild_bytes_s;
	info->rebuild_left_bytes = log.rebuild_left_bytes;
	info->slots = log.slots;
	memcpy(info->slot, log.slot, sizeof(info->slot));
	memcpy(info->reason, log.reason, sizeof(info->reason));
	figures_fill(&log, &info->log);
	info->log.buffer_max_bytes = v->label.buffer_bytes;
}

/* ---- labels -------------------------------------------------------- */

#define PROBE_BYTES (4 * FMT_BLOCK)

static void probe_done(struct io *io)
{
	*(bool *)io->arg = true;
}

static void member_place(struct vdisk_slot *slot, const char *domain,
			 const char *drive, const char *component)
{
	memcpy(slot->domain, domain, sizeof(slot->domain));
	memcpy(slot->drive, drive, sizeof(slot->drive));
	memcpy(slot->component, component, sizeof(slot->component));
	slot->role = MEMBER_DATA;
}

/* What it was made as ... */
static void facts_of_label(const struct fmt_label *l,
			   struct vdisk_label_facts *facts)
{
	memcpy(facts->cluster, l->cluster, sizeof(facts->cluster));
	memcpy(facts->name, l->name, sizeof(facts->name));
	memcpy(facts->uuid, l->head.vdisk, sizeof(facts->uuid));
	facts->size_bytes = l->size_blocks * FMT_BLOCK;
	facts->slots = l->comps;
	facts->policy =
		(struct vdisk_policy) { .raid = l->raid,
					.k = l->k,
					.m = l->m,
					.codec = l->codec,
					.layout = VDISK_LOG,
					.stripe_unit_bytes = l->unit_bytes };
	for (unsigned i = 0; i < l->comps; i++)
		member_place(&facts->slot[i], l->member[i].domain,
			     l->member[i].drive, l->member[i].component);
}

/* ... and what it has accepted since. */
static void facts_of_content(const struct fmt_content *c,
			     struct vdisk_label_facts *facts)
{
	facts->epoch = c->epoch;
	facts->policy.raid = c->raid;
	facts->policy.k = c->k;
	facts->policy.m = c->m;
	facts->policy.codec = c->codec;
	facts->slots = c->comps;
	for (unsigned i = 0; i < c->comps; i++)
		member_place(&facts->slot[i], c->seat[i].domain,
			     c->seat[i].drive, c->seat[i].component);
}

static void facts_fill(const uint8_t *front, const struct fmt_label *l,
		       struct vdisk_label_facts *facts)
{
	const void *const block[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	struct fmt_super super;
	unsigned slot;

	memset(facts, 0, sizeof(*facts));
	facts_of_label(l, facts);
	if (!fmt_super_newest(block, l->head.vdisk, l->head.comp, &super,
			      &slot) &&
	    super.content.seq)
		facts_of_content(&super.content, facts);
}

static int probe_take(struct bdev *component, const uint8_t *front,
		      struct vdisk_label_facts *facts, struct err *err)
{
	const uint32_t place[2] = { FMT_LABEL_A, FMT_LABEL_B };
	int rc = -ENOENT;

	for (unsigned i = 0; i < 2; i++) {
		const int is = fmt_label_check(front + place[i], FMT_COMP_ANY,
					       place[i]);

		if (!is) {
			facts_fill(front, (const void *)(front + place[i]),
				   facts);
			return 0;
		}
		if (is != -ENOENT)
			rc = is;
	}
	if (rc == -ENOENT)
		return err_set(err, rc, "%s has no label of a vDisk",
			       component->name);
	return err_set(err, -EBADMSG,
		       "%s has a label that is damaged, or of a newer iodeck",
		       component->name);
}

static int front_label_probe(struct bdev *component,
			     struct vdisk_label_facts *facts, struct err *err)
{
	struct reactor *r = component->reactor;
	bool done = false;
	struct io io = { .op = BDEV_READ,
			 .len = PROBE_BYTES,
			 .done = probe_done,
			 .arg = &done };
	int rc;

	if (component->limits.size_bytes < PROBE_BYTES)
		return err_set(err, -EBADMSG, "%s is too small for a label",
			       component->name);
	io.buf = reactor_buf_alloc(r, PROBE_BYTES);
	if (!io.buf)
		return err_set(err, -ENOMEM, "out of memory for a label");
	bdev_submit(component, &io);
	while (!done)
		reactor_run_once(r, UINT64_MAX);
	rc = io.result ? err_set(err, io.result, "%s cannot be read: %s",
				 component->name, strerror(-io.result))
		       : probe_take(component, io.buf, facts, err);
	reactor_buf_free(r, io.buf, PROBE_BYTES);
	return rc;
}

static struct vlog_spec size_spec(const struct vdisk_policy *policy,
				  uint64_t size_bytes, unsigned slots)
{
	return (struct vlog_spec) { .size_bytes = size_bytes,
				    .policy = *policy,
				    .slots = slots };
}

static uint64_t front_slot_bytes(const struct vdisk_policy *policy,
				 uint64_t size_bytes, unsigned slots,
				 unsigned index)
{
	const struct vlog_spec spec = size_spec(policy, size_bytes, slots);

	return index < slots ? vlog_member_bytes(&spec) : 0;
}

static uint64_t front_memory_bytes(const struct vdisk_policy *policy,
				   uint64_t size_bytes, unsigned slots)
{
	const struct vlog_spec spec = size_spec(policy, size_bytes, slots);

	return vlog_memory_bytes(&spec);
}

const struct vdisk_layout_ops vdisk_log = {
	.name = "log",
	.create = front_create,
	.open = front_open,
	.info = front_info,
	.replace = front_replace,
	.member_fail = vlog_member_fail,
	.rebuild_limit = front_rebuild_limit,
	.migrate = vlog_policy_change,
	.verify = front_verify,
	.label_probe = front_label_probe,
	.slot_bytes = front_slot_bytes,
	.memory_bytes = front_memory_bytes,
};
