/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the calls of vdisk.h to the layout they are about.
 */
#include "engine/vdisk/layout.h"

#include <string.h>
#include <sys/random.h>

static const struct vdisk_layout_ops *const layouts[] = {
	[VDISK_INPLACE] = &vdisk_inplace,
	[VDISK_LOG] = &vdisk_log,
};

static const struct vdisk_layout_ops *by_policy(const struct vdisk_policy *p)
{
	id_assert(p->layout < array_len(layouts));
	return layouts[p->layout];
}

static const struct vdisk_layout_ops *by_vdisk(struct bdev *vdisk)
{
	return container_of(vdisk, struct vdisk_head, bdev)->layout;
}

void vdisk_create(struct reactor *r, const struct vdisk_spec *spec,
		  vdisk_done_fn *done, void *arg)
{
	by_policy(&spec->policy)->create(r, spec, done, arg);
}

void vdisk_open(struct reactor *r, const struct vdisk_spec *spec,
		vdisk_done_fn *done, void *arg)
{
	by_policy(&spec->policy)->open(r, spec, done, arg);
}

void vdisk_info(struct bdev *vdisk, struct vdisk_info *info)
{
	by_vdisk(vdisk)->info(vdisk, info);
}

void vdisk_replace(struct bdev *vdisk, unsigned index,
		   const struct vdisk_slot *slot, vdisk_done_fn *done,
		   void *arg)
{
	by_vdisk(vdisk)->replace(vdisk, index, slot, done, arg);
}

int vdisk_member_fail(struct bdev *vdisk, unsigned index, struct err *err)
{
	return by_vdisk(vdisk)->member_fail(vdisk, index, err);
}

void vdisk_rebuild_limit(struct bdev *vdisk, uint64_t bytes_s)
{
	by_vdisk(vdisk)->rebuild_limit(vdisk, bytes_s);
}

void vdisk_migrate(struct bdev *vdisk, const struct vdisk_spec *target,
		   vdisk_done_fn *done, void *arg)
{
	by_vdisk(vdisk)->migrate(vdisk, target, done, arg);
}

void vdisk_verify(struct bdev *vdisk, uint64_t *mismatches, vdisk_done_fn *done,
		  void *arg)
{
	by_vdisk(vdisk)->verify(vdisk, mismatches, done, arg);
}

/* What the log layout does not know may be the other's, also a damaged one. */
int vdisk_label_probe(struct bdev *component, struct vdisk_label_facts *facts,
		      struct err *err)
{
	const int rc = vdisk_log.label_probe(component, facts, err);

	if (rc != -ENOENT)
		return rc;
	return vdisk_inplace.label_probe(component, facts, err);
}

uint64_t vdisk_slot_bytes(const struct vdisk_policy *policy,
			  uint64_t size_bytes, unsigned slots, unsigned index)
{
	return by_policy(policy)->slot_bytes(policy, size_bytes, slots, index);
}

uint64_t vdisk_memory_bytes(const struct vdisk_policy *policy,
			    uint64_t size_bytes, unsigned slots)
{
	return by_policy(policy)->memory_bytes(policy, size_bytes, slots);
}

const char *vdisk_layout_name(unsigned layout)
{
	return layout < array_len(layouts) ? layouts[layout]->name : "-";
}

const char *vdisk_codec_name(unsigned codec)
{
	static const char *const names[] = { "none", "lz4", "zstd" };

	return codec < array_len(names) ? names[codec] : "-";
}

void uuid_make(struct reactor *r, uint8_t uuid[16])
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
