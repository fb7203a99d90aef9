/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front of drives: who may claim what, and what an id may look like. How a
 * component lies on a drive is in drive_dir.c and drive_device.c; what stands
 * on a path that is not ours is found out in drive_probe.c.
 */
#include "engine/drive.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/drive_impl.h"

/* ---- shared by the kinds ------------------------------------------------ */

int drive_lock(int fd, const char *path, uint64_t off, uint64_t len,
	       struct err *err)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)off,
		.l_len = (off_t)len,
	};

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, -EBUSY,
			       "%s is in use by an iodeck-agent: `agent stop` "
			       "ends it",
			       path);
	return err_set(err, -errno, "%s: cannot lock it: %s", path,
		       strerror(errno));
}

int drive_read(int fd, void *buf, size_t len, uint64_t off)
{
	uint8_t *at = buf;

	while (len) {
		const ssize_t n = pread(fd, at, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int drive_write(int fd, const void *buf, size_t len, uint64_t off)
{
	const uint8_t *at = buf;

	while (len) {
		const ssize_t n = pwrite(fd, at, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool name_valid(const char *id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	const size_t len = strlen(id);

	return len && len <= DRIVE_ID_MAX && id[0] != '.' &&
	       strspn(id, allowed) == len;
}

static bool id_valid(const char *id)
{
	return name_valid(id) && strcmp(id, DRIVE_MARK) != 0;
}

static int kind_of(const char *path, const struct drive_kind_ops **ops,
		   struct err *err)
{
	struct stat st;

	if (stat(path, &st)) {
		const int code = errno == ENOENT ? -ENOENT : -EIO;

		return err_set(err, code, "%s: %s", path, strerror(errno));
	}
	*ops = S_ISDIR(st.st_mode) ? &drive_dir_ops : &drive_device_ops;
	return 0;
}

/* ---- claim -------------------------------------------------------------- */

static int destroy_check(const char *path, const char *destroy,
			 const struct drive_facts *facts, struct err *err)
{
	if (!destroy)
		return err_set(err, -EEXIST,
			       "%s %s; to overwrite it give its name again: "
			       "--destroy=%s",
			       path, facts->reason, path);
	if (strcmp(destroy, path) != 0)
		return err_set(err, -EEXIST,
			       "%s %s, and --destroy names %s, not it", path,
			       facts->reason, destroy);
	return 0;
}

/* A directory that others use is emptied by its owner, never by us. */
static int claim_check(const char *path, const char *cluster,
		       const char *destroy, const struct drive_facts *facts,
		       struct err *err)
{
	switch (facts->verdict) {
	case DRIVE_EMPTY:
		return 0;
	case DRIVE_OURS:
		if (!strcmp(facts->cluster, cluster))
			return 0;
		return destroy_check(path, destroy, facts, err);
	case DRIVE_DATA:
		if (facts->kind == DRIVE_DIR)
			return err_set(err, -EEXIST,
				       "%s %s; a directory must be empty to "
				       "become a drive",
				       path, facts->reason);
		return destroy_check(path, destroy, facts, err);
	case DRIVE_BUSY:
		return err_set(err, -EBUSY, "%s %s", path, facts->reason);
	default:
		return err_set(err, -EINVAL, "%s %s", path, facts->reason);
	}
}

int drive_claim(const char *path, const char *cluster, const char *destroy,
		struct err *err)
{
	struct drive_facts facts;
	int rc;

	if (!name_valid(cluster))
		return err_set(err, -EINVAL,
			       "the name of a cluster has 1 to 63 letters, "
			       "digits, '.', '_' or '-', the first no '.'");
	rc = drive_probe(path, &facts, err);
	if (!rc)
		rc = claim_check(path, cluster, destroy, &facts, err);
	if (rc)
		return rc;
	if (facts.verdict == DRIVE_OURS && !strcmp(facts.cluster, cluster))
		return 0;
	if (facts.verdict == DRIVE_OURS) {
		rc = drive_release(path, true, err);
		if (rc)
			return rc;
	}
	return facts.kind == DRIVE_DIR
		       ? drive_dir_ops.claim(path, cluster, err)
		       : drive_device_ops.claim(path, cluster, err);
}

/* ---- open and close ----------------------------------------------------- */

int drive_open(struct reactor *r, const char *path, const char *name,
	       struct drive **drive, struct err *err)
{
	const struct drive_kind_ops *ops = NULL;
	struct drive *d;
	int rc = kind_of(path, &ops, err);

	if (rc)
		return rc;
	id_assert(ops);
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	d->ops = ops;
	d->reactor = r;
	d->fd = -1;
	d->path = strdup(path);
	snprintf(d->name, sizeof(d->name), "%s", name ? name : path);
	rc = d->path ? ops->open(d, err)
		     : err_set(err, -ENOMEM, "%s: no memory", path);
	if (rc) {
		drive_close(d);
		return rc;
	}
	*drive = d;
	return 0;
}

void drive_close(struct drive *drive)
{
	if (!drive)
		return;
	drive->ops->close(drive);
	if (drive->fd >= 0)
		close(drive->fd);
	free(drive->path);
	free(drive);
}

int drive_release(const char *path, bool force, struct err *err)
{
	struct drive_component *list = NULL;
	struct drive *drive = NULL;
	size_t count = 0;
	int rc;

	rc = drive_open(NULL, path, NULL, &drive, err);
	if (rc)
		return rc;
	id_assert(drive);
	rc = drive_list(drive, &list, &count, err);
	if (!rc && count && !force)
		rc = err_set(err, -EBUSY,
			     "%s still holds %zu component%s, the first is %s: "
			     "delete its vDisks first",
			     path, count, count == 1 ? "" : "s", list[0].id);
	for (size_t i = 0; i < count && !rc; i++)
		rc = drive_component_delete(drive, list[i].id, err);
	if (!rc)
		rc = drive->ops->release(drive, err);
	free(list);
	drive_close(drive);
	return rc;
}

void drive_facts(struct drive *drive, struct drive_facts *facts)
{
	drive_probe(drive->path, facts, NULL);
	facts->verdict = DRIVE_OURS;
	snprintf(facts->cluster, sizeof(facts->cluster), "%s", drive->cluster);
	snprintf(facts->reason, sizeof(facts->reason),
		 "is claimed by cluster %s", drive->cluster);
	drive->ops->space(drive, &facts->size_bytes, &facts->free_bytes);
}

bool drive_gone(const struct drive *drive)
{
	struct stat st;

	return !fstat(drive->fd, &st) && !st.st_nlink;
}

/* ---- components --------------------------------------------------------- */

int drive_list(struct drive *drive, struct drive_component **list,
	       size_t *count, struct err *err)
{
	return drive->ops->list(drive, list, count, err);
}

int drive_component_create(struct drive *drive, const char *id,
			   uint64_t size_bytes, struct err *err)
{
	uint64_t size, room;

	if (!id_valid(id))
		return err_set(err, -EINVAL,
			       "%s: \"%.64s\" is no name for a component",
			       drive->name, id);
	if (!size_bytes || size_bytes % 4096)
		return err_set(err, -EINVAL,
			       "%s: a component's size is a multiple of 4 KiB",
			       drive->name);
	drive->ops->space(drive, &size, &room);
	if (size_bytes > room)
		return err_set(err, -ENOSPC,
			       "%s has %llu MiB free, component %s needs "
			       "%llu MiB",
			       drive->name, (unsigned long long)(room / MIB),
			       id, (unsigned long long)(size_bytes / MIB));
	return drive->ops->create(drive, id, size_bytes, err);
}

int drive_component_delete(struct drive *drive, const char *id, struct err *err)
{
	if (!id_valid(id))
		return err_set(err, -ENOENT, "%s has no component \"%.64s\"",
			       drive->name, id);
	return drive->ops->delete (drive, id, err);
}

static int component_opts(struct drive *drive, const char *id,
			  struct bdev_file_opts *opts,
			  struct drive_where *where, struct err *err)
{
	int rc;

	if (!id_valid(id))
		return err_set(err, -ENOENT, "%s has no component \"%.64s\"",
			       drive->name, id);
	*opts = (struct bdev_file_opts) { .name = drive->name,
					  .path = where->path };
	rc = drive->ops->component(drive, id, opts, where->path,
				   sizeof(where->path), err);
	where->off_bytes = opts->off_bytes;
	where->size_bytes = opts->len_bytes;
	where->device = opts->shared;
	return rc;
}

int drive_component_open(struct drive *drive, const char *id,
			 struct bdev **bdev, struct err *err)
{
	struct bdev_file_opts opts;
	struct drive_where where;
	const int rc = component_opts(drive, id, &opts, &where, err);

	return rc ? rc : bdev_file_open(drive->reactor, &opts, bdev, err);
}

int drive_component_where(struct drive *drive, const char *id,
			  struct drive_where *where, struct err *err)
{
	struct bdev_file_opts opts;
	struct stat st;
	int rc = component_opts(drive, id, &opts, where, err);

	if (rc || where->device)
		return rc;
	if (stat(where->path, &st))
		return err_set(err, -errno, "%s: %s", where->path,
			       strerror(errno));
	where->size_bytes = (uint64_t)st.st_size;
	return 0;
}

int drive_where_peek(struct reactor *r, const struct drive_where *where,
		     struct bdev **bdev, struct err *err)
{
	const struct bdev_file_opts opts = { .path = where->path,
					     .off_bytes = where->off_bytes,
					     .len_bytes = where->size_bytes,
					     .read_only = true,
					     .shared = true,
					     .peek = true };

	return bdev_file_open(r, &opts, bdev, err);
}

int drive_component_hold(struct drive *drive, const char *id,
			 struct drive_where *where, int *fd, struct err *err)
{
	struct bdev_file_opts opts = { .name = drive->name,
				       .path = where->path };
	const int rc = drive_component_where(drive, id, where, err);

	if (rc)
		return rc;
	opts.shared = where->device;
	opts.off_bytes = where->off_bytes;
	opts.len_bytes = where->device ? where->size_bytes : 0;
	return bdev_file_hold(&opts, fd, err);
}
