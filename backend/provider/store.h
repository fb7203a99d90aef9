/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the components of a drive are kept: on this machine (engine/drive.h),
 * or on another node, whose agent keeps them for us (far.c). None of these
 * calls waits for another node: what a far store says is what it knows, and
 * what it begins may fail later, as a drive does, by its I/O.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_PROVIDER_STORE_H
#define BACKEND_PROVIDER_STORE_H

#include "engine/drive.h"

struct store;

/* As their namesakes of drive.h; with their errors. */
struct store_ops {
	int (*list)(struct store *store, struct drive_component **list,
		    size_t *count, struct err *err);
	int (*make)(struct store *store, const char *id, uint64_t bytes,
		    struct err *err);
	int (*remove)(struct store *store, const char *id, struct err *err);
	int (*open)(struct store *store, const char *id, struct bdev **bdev,
		    struct err *err);
	/* its room, and what is left of that to it */
	void (*facts)(struct store *store, struct drive_facts *facts);
	bool (*gone)(const struct store *store);
	void (*close)(struct store *store);
};

struct store {
	const struct store_ops *ops;
};

/* On this machine: name is for people, "n2:d1". */
int store_here_open(struct reactor *r, const char *path, const char *name,
		    struct store **store, struct err *err);
struct provider;
struct p_drive;
/* On the node that is its domain: empty until the node has listed it. */
int store_far_open(struct provider *p, struct p_drive *d, struct store **store,
		   struct err *err);
/* Of this machine: what stands behind it. NULL: of another. */
struct drive *store_drive(const struct store *store);
/* Only after its components are closed. Takes NULL. */
void store_close(struct store *store);

#endif
