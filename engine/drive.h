/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A drive gives room to components (one vDisk's share of it). Two kinds:
 *   directory     a component is one file in it
 *   block device  claimed: a header with a checksummed table, two copies; a
 *                 component is a contiguous range. An image in a regular file
 *                 does as well
 * Claim and release are the only ways in and out. Nothing with data on it is
 * ever claimed unless its name is given again.
 */
#ifndef ENGINE_DRIVE_H
#define ENGINE_DRIVE_H

#include "engine/bdev/bdev.h"

enum drive_kind { DRIVE_DIR, DRIVE_DEVICE };

struct drive; /* an open drive, of one reactor, exclusive */

/*
 * Why a path may or may not be written: signatures (libblkid), mounts and
 * holders (/proc, /sys, O_EXCL), partitions, our own header.
 */
enum drive_verdict {
	DRIVE_EMPTY, /* free to claim */
	DRIVE_OURS,  /* claimed by iodeck */
	DRIVE_DATA,  /* has a signature: refused without destroy */
	DRIVE_BUSY,  /* mounted or held: refused always */
	DRIVE_UNFIT, /* too small, read-only, no such thing, no permission */
};
struct drive_facts {
	enum drive_kind kind;
	enum drive_verdict verdict;
	uint64_t size_bytes, free_bytes;
	uint32_t block_bytes;
	char model[64], fstype[32];
	char reason[256]; /* a sentence: "has an ext4 file system (label x)" */
	char cluster[64]; /* DRIVE_OURS: who claimed it */
};
/*
 * Always tells something: returns 0 and a verdict with its sentence, also for
 * a path that is not there.
 */
int drive_probe(const char *path, struct drive_facts *facts, struct err *err);

/*
 * What stands on a device, without holding it, whoever uses it: "ext4", "gpt",
 * "iodeck" (and whose), "data", "" nothing. 0 or a negative errno.
 */
int drive_content(const char *path, char *what, size_t what_len, char *cluster,
		  size_t cluster_len);

/*
 * Makes path a drive of `cluster`. `destroy` NULL, or the path again, to
 * overwrite what stands there (BUSY stays refused). For a directory: must
 * exist, be empty or ours; a small file `iodeck-drive` marks it.
 * cluster: [a-zA-Z0-9._-]{1,63}, no dot first.
 */
int drive_claim(const char *path, const char *cluster, const char *destroy,
		struct err *err);
/* Refuses while components stand on it, unless `force`. */
int drive_release(const char *path, bool force, struct err *err);

int drive_open(struct reactor *r, const char *path, const char *name,
	       struct drive **drive, struct err *err);
/* Only after its components are closed. Takes NULL. */
void drive_close(struct drive *drive);
void drive_facts(struct drive *drive, struct drive_facts *facts);
/* Whether somebody deleted it: what is open of it still answers, and is lost
 * when it is closed. */
bool drive_gone(const struct drive *drive);

struct drive_component {
	char id[64];
	uint64_t size_bytes;
};
/* *list is the caller's to free(). */
int drive_list(struct drive *drive, struct drive_component **list,
	       size_t *count, struct err *err);
/*
 * id: [a-zA-Z0-9._-]{1,63}, no dot first; size: a multiple of 4 KiB. -ENOSPC
 * says how much there is. Made durable, and reads as zeros: on a device that
 * cannot forget a range they are written, which takes its time.
 */
int drive_component_create(struct drive *drive, const char *id,
			   uint64_t size_bytes, struct err *err);
int drive_component_delete(struct drive *drive, const char *id,
			   struct err *err);
/* Exclusive: -EBUSY while open anywhere. The bdev is the caller's. */
int drive_component_open(struct drive *drive, const char *id,
			 struct bdev **bdev, struct err *err);

/* For others than this drive's reactor: where a component lies. */
struct drive_where {
	char path[4096 + 128]; /* a file, or the device */
	uint64_t off_bytes, size_bytes;
	bool device;
};
int drive_component_where(struct drive *drive, const char *id,
			  struct drive_where *where, struct err *err);
/* Reads it, whoever writes meanwhile. */
int drive_where_peek(struct reactor *r, const struct drive_where *where,
		     struct bdev **bdev, struct err *err);
/*
 * Opens it for another program: exclusively, as drive_component_open() does,
 * as long as *fd, or a copy of it in any process, is open.
 */
int drive_component_hold(struct drive *drive, const char *id,
			 struct drive_where *where, int *fd, struct err *err);

#endif
