/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the drive share. */
#ifndef ENGINE_DRIVE_IMPL_H
#define ENGINE_DRIVE_IMPL_H

#include "engine/bdev/file.h"
#include "engine/drive.h"

#define DRIVE_SIZE_MIN (16 * MIB)
#define DRIVE_ID_MAX 63
#define DRIVE_MARK "iodeck-drive" /* the file that marks a directory */

/* A kind: a directory or a device. All calls block. */
struct drive_kind_ops {
	/* Opens what is claimed, for us alone. */
	int (*open)(struct drive *drive, struct err *err);
	void (*close)(struct drive *drive);
	int (*claim)(const char *path, const char *cluster, struct err *err);
	int (*release)(struct drive *drive, struct err *err);
	void (*space)(struct drive *drive, uint64_t *size_bytes,
		      uint64_t *free_bytes);
	int (*list)(struct drive *drive, struct drive_component **list,
		    size_t *count, struct err *err);
	int (*create)(struct drive *drive, const char *id, uint64_t size_bytes,
		      struct err *err);
	int (*delete)(struct drive *drive, const char *id, struct err *err);
	int (*component)(struct drive *drive, const char *id,
			 struct bdev_file_opts *opts, char *path, size_t len,
			 struct err *err);
};

struct drive_table;

struct drive {
	const struct drive_kind_ops *ops;
	struct reactor *reactor;
	char *path;
	char name[64];
	char cluster[64];
	int fd;                    /* the mark of a directory, or the device */
	struct drive_table *table; /* of a device */
};

extern const struct drive_kind_ops drive_dir_ops;
extern const struct drive_kind_ops drive_device_ops;

/* -EBUSY with a sentence when another holds [off, off + len) of fd. */
int drive_lock(int fd, const char *path, uint64_t off, uint64_t len,
	       struct err *err);
/* Reads or writes all of it, or fails with a negative errno. */
int drive_read(int fd, void *buf, size_t len, uint64_t off);
int drive_write(int fd, const void *buf, size_t len, uint64_t off);

/* ---- drive_dir.c -------------------------------------------------------- */

/* 1: claimed, with the cluster; 0: not; negative errno. */
int drive_dir_mark_read(const char *path, char *cluster, size_t len);
/* Is there anything but the mark, our components and lost+found? */
int drive_dir_foreign(const char *path, char *name, size_t len);

/* ---- drive_device.c ----------------------------------------------------- */

/* 1: claimed, with the cluster; 0: not; negative errno. */
int drive_device_header_read(int fd, char *cluster, size_t len);

/* ---- drive_wipe.c ------------------------------------------------------- */

/*
 * Looks for what others have written: a known signature, or bytes that are
 * not zero at the beginning or the end.
 * Returns 1 and fills fstype and the sentence; 0 when empty.
 */
int drive_signature(int fd, uint64_t size_bytes, char *fstype,
		    size_t fstype_len, char *reason, size_t reason_len);
/* Removes all that drive_signature() would find. */
int drive_wipe(int fd, uint64_t size_bytes);

#endif
