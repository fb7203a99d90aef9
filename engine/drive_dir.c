/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A directory as a drive: a marking file, and one sparse file a component. The
 * mark's lock is the drive's, a component's lock is its bdev's.
 */
#include "engine/drive_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SUFFIX ".component"

/* ---- names -------------------------------------------------------------- */

static int dir_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Length of the id in a component's file name, 0 for another file. */
static size_t component_id_len(const char *file)
{
	const size_t len = strlen(file), suffix = sizeof(SUFFIX) - 1;

	if (len <= suffix || strcmp(file + len - suffix, SUFFIX) != 0 ||
	    len - suffix > DRIVE_ID_MAX)
		return 0;
	return len - suffix;
}

static bool ours(const char *file)
{
	return !strcmp(file, ".") || !strcmp(file, "..") ||
	       !strcmp(file, "lost+found") || !strcmp(file, DRIVE_MARK) ||
	       component_id_len(file);
}

int drive_dir_foreign(const char *path, char *name, size_t len)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir))) {
		if (ours(entry->d_name))
			continue;
		snprintf(name, len, "%.100s", entry->d_name);
		found = 1;
	}
	closedir(dir);
	return found;
}

static void component_file(const char *id, char *file, size_t len)
{
	snprintf(file, len, "%s" SUFFIX, id);
}

/* ---- the mark ----------------------------------------------------------- */

static int mark_parse(const char *text, char *cluster, size_t len)
{
	static const char first[] = "iodeck-drive 1\ncluster ";
	size_t n;

	if (strncmp(text, first, sizeof(first) - 1) != 0)
		return 0;
	text += sizeof(first) - 1;
	n = strcspn(text, "\n");
	if (!n || n > 63 || n >= len || text[n] != '\n')
		return 0;
	memcpy(cluster, text, n);
	cluster[n] = '\0';
	return 1;
}

static int mark_read(int fd, char *cluster, size_t len)
{
	char text[256];
	const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return mark_parse(text, cluster, len);
}

int drive_dir_mark_read(const char *path, char *cluster, size_t len)
{
	const int dir = dir_open(path);
	int fd, rc;

	if (dir < 0)
		return -errno;
	fd = openat(dir, DRIVE_MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	rc = fd >= 0           ? mark_read(fd, cluster, len)
	     : errno == ENOENT ? 0
			       : -errno;
	if (fd >= 0)
		close(fd);
	close(dir);
	return rc;
}

/* Whole or not at all: written aside, then given its name. */
static int mark_write(int dir, const char *cluster)
{
	static const char aside[] = DRIVE_MARK ".new";
	char text[256];
	const int len = snprintf(text, sizeof(text),
				 "iodeck-drive 1\ncluster %s\n", cluster);
	const int fd = openat(
		dir, aside,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = drive_write(fd, text, (size_t)len, 0);
	if (!rc && fsync(fd))
		rc = -errno;
	close(fd);
	if (!rc && renameat(dir, aside, dir, DRIVE_MARK))
		rc = -errno;
	if (!rc && fsync(dir))
		rc = -errno;
	if (rc)
		unlinkat(dir, aside, 0);
	return rc;
}

static int dir_claim(const char *path, const char *cluster, struct err *err)
{
	const int dir = dir_open(path);
	int rc;

	if (dir < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	rc = mark_write(dir, cluster);
	if (rc)
		err_set(err, rc, "%s: cannot be marked: %s", path,
			strerror(-rc));
	close(dir);
	return rc;
}

static int dir_drive_open(struct drive *drive, struct err *err)
{
	const int dir = dir_open(drive->path);
	int rc;

	if (dir < 0)
		return err_set(err, -errno, "%s: %s", drive->path,
			       strerror(errno));
	drive->fd = openat(dir, DRIVE_MARK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	rc = drive->fd < 0 ? -errno : 0;
	close(dir);
	if (rc && rc != -ENOENT)
		return err_set(err, rc, "%s: %s", drive->path, strerror(-rc));
	if (rc ||
	    mark_read(drive->fd, drive->cluster, sizeof(drive->cluster)) != 1)
		return err_set(err, -ENOENT,
			       "%s is no drive of iodeck: claim it first",
			       drive->path);
	return drive_lock(drive->fd, drive->path, 0, 0, err);
}

static void dir_drive_close(struct drive *drive)
{
	(void)drive;
}

static int dir_release(struct drive *drive, struct err *err)
{
	const int dir = dir_open(drive->path);
	int rc = 0;

	if (dir < 0 || unlinkat(dir, DRIVE_MARK, 0) || fsync(dir))
		rc = err_set(err, -errno, "%s: cannot be released: %s",
			     drive->path, strerror(errno));
	if (dir >= 0)
		close(dir);
	return rc;
}

/* ---- components --------------------------------------------------------- */

static int component_stat(int dir, const char *file, struct stat *st)
{
	if (!component_id_len(file) ||
	    fstatat(dir, file, st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st->st_mode) || !st->st_size)
		return -ENOENT;
	return 0;
}

static int list_add(struct drive_component **list, size_t *count,
		    const char *file, const struct stat *st)
{
	struct drive_component *more =
		realloc(*list, (*count + 1) * sizeof(**list));

	if (!more)
		return -ENOMEM;
	*list = more;
	more += (*count)++;
	snprintf(more->id, sizeof(more->id), "%.*s",
		 (int)component_id_len(file), file);
	more->size_bytes = (uint64_t)st->st_size;
	return 0;
}

/* Calls for each component; sum: what is promised but not yet written. */
static int dir_walk(const struct drive *drive, struct drive_component **list,
		    size_t *count, uint64_t *sum)
{
	DIR *dir = opendir(drive->path);
	struct dirent *entry;
	struct stat st;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		if (component_stat(dirfd(dir), entry->d_name, &st))
			continue;
		if (st.st_size > st.st_blocks * 512)
			*sum += (uint64_t)(st.st_size - st.st_blocks * 512);
		if (list)
			rc = list_add(list, count, entry->d_name, &st);
	}
	closedir(dir);
	return rc;
}

static int dir_list(struct drive *drive, struct drive_component **list,
		    size_t *count, struct err *err)
{
	uint64_t sum = 0;
	int rc;

	*list = NULL;
	*count = 0;
	rc = dir_walk(drive, list, count, &sum);
	if (!rc)
		return 0;
	free(*list);
	*list = NULL;
	*count = 0;
	return err_set(err, rc, "%s: cannot be listed: %s", drive->path,
		       strerror(-rc));
}

static void dir_space(struct drive *drive, uint64_t *size_bytes,
		      uint64_t *free_bytes)
{
	struct statvfs fs;
	uint64_t promised = 0;

	*size_bytes = *free_bytes = 0;
	if (statvfs(drive->path, &fs))
		return;
	*size_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	*free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	dir_walk(drive, NULL, NULL, &promised);
	*free_bytes -= promised < *free_bytes ? promised : *free_bytes;
}

static int component_make(int dir, const char *file, uint64_t size_bytes)
{
	const int fd =
		openat(dir, file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size_bytes) || fsync(fd) || fsync(dir))
		rc = -errno;
	close(fd);
	if (rc)
		unlinkat(dir, file, 0);
	return rc;
}

static int dir_create(struct drive *drive, const char *id, uint64_t size_bytes,
		      struct err *err)
{
	const int dir = dir_open(drive->path);
	char file[DRIVE_ID_MAX + sizeof(SUFFIX)];
	int rc;

	component_file(id, file, sizeof(file));
	rc = dir < 0 ? -errno : component_make(dir, file, size_bytes);
	if (dir >= 0)
		close(dir);
	if (rc)
		err_set(err, rc, "%s: cannot make component %s: %s",
			drive->name, id, strerror(-rc));
	return rc;
}

static int dir_delete(struct drive *drive, const char *id, struct err *err)
{
	const int dir = dir_open(drive->path);
	char file[DRIVE_ID_MAX + sizeof(SUFFIX)];
	int fd, rc = 0;

	component_file(id, file, sizeof(file));
	fd = dir < 0 ? -1 : openat(dir, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		rc = err_set(err, -errno, "%s: component %s: %s", drive->name,
			     id, strerror(errno));
	if (!rc && drive_lock(fd, id, 0, 0, NULL))
		rc = err_set(err, -EBUSY, "%s: component %s is open",
			     drive->name, id);
	if (!rc && (unlinkat(dir, file, 0) || fsync(dir)))
		rc = err_set(err, -errno, "%s: cannot delete component %s: %s",
			     drive->name, id, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	return rc;
}

static int dir_component(struct drive *drive, const char *id,
			 struct bdev_file_opts *opts, char *path, size_t len,
			 struct err *err)
{
	struct stat st;

	(void)opts;
	if ((size_t)snprintf(path, len, "%s/%s" SUFFIX, drive->path, id) >= len)
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long",
			       drive->name);
	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return err_set(err, -ENOENT, "%s has no component %s",
			       drive->name, id);
	return 0;
}

const struct drive_kind_ops drive_dir_ops = {
	.open = dir_drive_open,
	.close = dir_drive_close,
	.claim = dir_claim,
	.release = dir_release,
	.space = dir_space,
	.list = dir_list,
	.create = dir_create,
	.delete = dir_delete,
	.component = dir_component,
};
