/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A migration, as migrate.c (the copy and the switch) and migrate_write.c
 * (writes meanwhile) see it.
 */
#ifndef ENGINE_VDISK_MIGRATE_H
#define ENGINE_VDISK_MIGRATE_H

#include "engine/vdisk/front.h"

#define WINDOW_BYTES (1u << 20)

enum migrate_phase {
	MIGRATE_ANNOUNCE, /* S commits COPYING */
	MIGRATE_COPY,
	MIGRATE_VERIFY,
	MIGRATE_DRAIN,    /* nothing new is let in */
	MIGRATE_FLUSH,    /* T */
	MIGRATE_MOVE,     /* S commits MOVED */
	MIGRATE_ACTIVATE, /* T commits ACTIVE */
};

struct migration {
	struct vdisk *vd;
	struct vset *target;
	enum migrate_phase phase;
	uint64_t size, mark;
	uint64_t from, to; /* the window: writes that touch it wait */
	bool busy;         /* an I/O or a timer of the copy is out */
	bool closing;
	uint8_t *buf, *back;
	struct req req;
	struct timer timer;
	uint64_t limit, started_ns, speed_ns, speed_mark, bytes_s;
	struct err err;
	vdisk_done_fn *done;
	void *arg;
	struct task task;
	bool posted;
	/* Components not yet a set: closed when it comes to nothing. */
	struct bdev *loose[VDISK_MEMBERS_MAX];
	unsigned loose_count;
};

bool migrate_overlap(const struct vreq *v, uint64_t from, uint64_t to);
/* Starts those that need not wait any more, in order of arrival. */
void migrate_writes_kick(struct vdisk *vd);
/* The next step, by a task: who calls may be in the middle of either set. */
void migrate_kick(struct migration *mg);

#endif
