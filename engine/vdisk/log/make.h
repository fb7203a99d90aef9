/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A component made: from whatever stands there to labels, a superblock that
 * has accepted nothing (or the first content) and zeros where log and
 * snapshots will be. The zeros are there so that a durable write to a file
 * does not have its file system change extents each time (145 us against 240
 * on ext4).
 *
 *   front blank | flush | zeros | flush | labels and superblocks | flush
 *
 * Until the last step nothing on it can be read as a label: one that was half
 * made is as good as an empty one.
 */
#ifndef ENGINE_VDISK_LOG_MAKE_H
#define ENGINE_VDISK_LOG_MAKE_H

#include "engine/bdev/bdev.h"
#include "engine/vdisk/log/format.h"
#include "engine/vdisk/vdisk.h"

#define FMT_FRONT_BYTES (4 * FMT_BLOCK)

/* Where a component stands now; a place that is not known changes nothing. */
void seat_place(struct fmt_seat *seat, const struct vdisk_slot *slot);

/*
 * The first FMT_FRONT_BYTES of component `comp`, whose id is label's
 * member[comp].uuid.
 * content  accepted with its making, or NULL: nothing yet
 */
void front_fill(uint8_t *front, const struct fmt_label *label, unsigned comp,
		const struct fmt_content *content);

struct maker;
/*
 * Begins; done() once, later. The bdev stays the caller's. NULL: no memory.
 * front  copied
 */
struct maker *maker_new(struct reactor *r, struct bdev *bdev,
			const struct fmt_label *label, const uint8_t *front,
			void (*done)(struct maker *m, int result, void *arg),
			void *arg);
/*
 * Takes NULL. What is in flight is left to end by itself; done() is not called
 * any more.
 * dead  nothing calls back what it holds
 */
void maker_free(struct maker *m, bool dead);

#endif
