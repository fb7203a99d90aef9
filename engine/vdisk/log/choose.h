/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which configuration counts: from labels and superblocks of all components
 * that were brought to the content to begin with and the members it names.
 * No I/O; it only looks.
 */
#ifndef ENGINE_VDISK_LOG_CHOOSE_H
#define ENGINE_VDISK_LOG_CHOOSE_H

#include "engine/vdisk/log/format.h"

struct choose_component {
	const char *name;           /* for messages; NULL: not there */
	const char *domain, *drive; /* where it was found */
	bool failed;                /* it could not be read */
	uint64_t size_bytes;
	bool labelled; /* and super is its newest superblock ... */
	bool sound;    /* ... if it has one that is, and both could be read */
	struct fmt_label label;
	struct fmt_super super;
};

struct choose_member {
	int component;    /* index, or -1: not there */
	const char *note; /* why, if something is; static */
};

struct choose {
	const struct fmt_label *label; /* of one of the components */
	struct fmt_content content;
	struct choose_member member[FMT_COMPS_MAX];
	unsigned there;
};

/* What stands in the first FMT_FRONT_BYTES of a component; bits of the blocks
 * of it that could not be read, which are zeros. */
void choose_read(struct choose_component *c, const uint8_t *front,
		 unsigned unread);
/*
 * Components of one vDisk, and of the one that is asked for ("": any); which
 * one it is most of them say, wherever they stand.
 * -ENOENT no label; -EINVAL of two vDisks or another cluster.
 */
int choose_identity(const struct choose_component *c, unsigned count,
		    const char *cluster, const char *name, struct err *err);
/*
 * The newest content within reach, and its members.
 * below  NULL, or one that turned out to be damaged, as all above it: the
 *        newest below it that names other members
 * -EAGAIN too few, says who is missing; -EIO what is damaged may have been
 * acknowledged; -EINVAL contradictions.
 */
int choose_members(const struct choose_component *c, unsigned count,
		   const struct fmt_content *below, struct choose *out,
		   struct err *err);

#endif
