/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Slots that were given back are given back to the drive, too, so that a thin
 * vDisk takes as much room as it holds: lazily, one at a time, and only those
 * that nobody has taken again. A part of impl.h.
 */
#ifndef ENGINE_VDISK_LOG_PUNCH_H
#define ENGINE_VDISK_LOG_PUNCH_H

#include "engine/base.h"

struct vlog;

int punch_init(struct vlog *v);
void punch_fini(struct vlog *v);
/* After its slots were set, or have grown. 0, -ENOMEM. */
int punch_fit(struct vlog *v, unsigned member);
/* A slot is free from now on; it is in use again. */
void punch_freed(struct vlog *v, unsigned member, uint32_t slot);
void punch_taken(struct vlog *v, unsigned member, uint32_t slot);
bool punch_step(struct vlog *v);
/* Slots of a member that are held for it. */
unsigned punch_holds(const struct vlog *v, unsigned member);

#endif
