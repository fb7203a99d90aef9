/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a layout offers; vdisk.h is this, by the layout of the vDisk at hand.
 * The contracts stand there.
 */
#ifndef ENGINE_VDISK_LAYOUT_H
#define ENGINE_VDISK_LAYOUT_H

#include "engine/vdisk/vdisk.h"

struct vdisk_layout_ops {
	const char *name;
	void (*create)(struct reactor *r, const struct vdisk_spec *spec,
		       vdisk_done_fn *done, void *arg);
	void (*open)(struct reactor *r, const struct vdisk_spec *spec,
		     vdisk_done_fn *done, void *arg);
	void (*info)(struct bdev *vdisk, struct vdisk_info *info);
	void (*replace)(struct bdev *vdisk, unsigned index,
			const struct vdisk_slot *slot, vdisk_done_fn *done,
			void *arg);
	int (*member_fail)(struct bdev *vdisk, unsigned index, struct err *err);
	void (*rebuild_limit)(struct bdev *vdisk, uint64_t bytes_s);
	void (*migrate)(struct bdev *vdisk, const struct vdisk_spec *target,
			vdisk_done_fn *done, void *arg);
	void (*verify)(struct bdev *vdisk, uint64_t *mismatches,
		       vdisk_done_fn *done, void *arg);
	int (*label_probe)(struct bdev *component,
			   struct vdisk_label_facts *facts, struct err *err);
	uint64_t (*slot_bytes)(const struct vdisk_policy *policy,
			       uint64_t size_bytes, unsigned slots,
			       unsigned index);
	uint64_t (*memory_bytes)(const struct vdisk_policy *policy,
				 uint64_t size_bytes, unsigned slots);
};

/* How the vDisk of either layout begins. */
struct vdisk_head {
	struct bdev bdev;
	const struct vdisk_layout_ops *layout;
};
#define VDISK_HEAD_CHECK(type)                                              \
	_Static_assert(offsetof(struct type, bdev) == 0 &&                  \
			       offsetof(struct type, layout) ==             \
				       offsetof(struct vdisk_head, layout), \
		       #type " begins like any vDisk")

extern const struct vdisk_layout_ops vdisk_inplace, vdisk_log;

/* Random, of version 4; the reactor's own generator when it is simulated. */
void uuid_make(struct reactor *r, uint8_t uuid[16]);

#endif
