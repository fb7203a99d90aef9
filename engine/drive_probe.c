/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * May a path be written? Asked in this order: does it exist and is it large
 * enough; does anybody use it (mounts, swap, holders, loop devices, and last
 * the kernel, by O_EXCL); is it ours; has somebody written on it.
 */
#include "engine/drive.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "engine/drive_impl.h"

/* Sets the verdict and its sentence; reads as `return verdict(...)`. */
static ID_PRINTF(3, 4) int verdict(struct drive_facts *facts,
				   enum drive_verdict v, const char *fmt, ...)
{
	va_list ap;

	facts->verdict = v;
	va_start(ap, fmt);
	vsnprintf(facts->reason, sizeof(facts->reason), fmt, ap);
	va_end(ap);
	return 1;
}

/* ---- who uses it -------------------------------------------------------- */

struct mount {
	unsigned major, minor;
	char point[512], fstype[32], source[256];
};

static bool mount_parse(const char *line, struct mount *m)
{
	const char *rest = strstr(line, " - ");
	char number[32], *colon;

	if (!rest ||
	    sscanf(line, "%*s %*s %31s %*s %511s", number, m->point) != 2 ||
	    sscanf(rest + 3, "%31s %255s", m->fstype, m->source) != 2)
		return false;
	m->major = (unsigned)strtoul(number, &colon, 10);
	m->minor = *colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	return true;
}

/* The last mount of a device, as a later one hides earlier ones. */
static bool mount_find(dev_t dev, struct mount *found)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	struct mount m;
	bool any = false;

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (!mount_parse(line, &m) || m.major != major(dev) ||
		    m.minor != minor(dev))
			continue;
		*found = m;
		any = true;
	}
	fclose(file);
	return any;
}

/* A directory of sysfs: its first entry that is not a dot. */
static bool dir_first(const char *path, char *name, size_t len)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, len, "%.63s", entry->d_name);
		found = true;
	}
	closedir(dir);
	return found;
}

static bool swap_on(dev_t dev)
{
	FILE *file = fopen("/proc/swaps", "re");
	char line[1024], path[512];
	struct stat st;
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%511s", path) == 1 && path[0] == '/' &&
			!stat(path, &st) && S_ISBLK(st.st_mode) &&
			st.st_rdev == dev;
	fclose(file);
	return found;
}

static bool file_line(const char *path, char *line, size_t len)
{
	FILE *file = fopen(path, "re");
	bool got;

	if (!file)
		return false;
	got = fgets(line, (int)len, file) != NULL;
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	while (got && line[0] && line[strlen(line) - 1] == ' ')
		line[strlen(line) - 1] = '\0';
	return got && line[0];
}

/* Is a file the backing of a loop device? */
static bool loop_of(const char *path, char *name, size_t len)
{
	char real[4096], sys[320], backing[4096];
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && realpath(path, real) && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "loop", 4) != 0)
			continue;
		snprintf(sys, sizeof(sys), "/sys/block/%s/loop/backing_file",
			 entry->d_name);
		found = file_line(sys, backing, sizeof(backing)) &&
			!strcmp(backing, real);
		snprintf(name, len, "%.63s", entry->d_name);
	}
	closedir(dir);
	return found;
}

static int device_users(dev_t dev, struct drive_facts *facts)
{
	char path[96], holder[64];
	struct mount m;

	if (mount_find(dev, &m)) {
		snprintf(facts->fstype, sizeof(facts->fstype), "%s", m.fstype);
		return verdict(facts, DRIVE_BUSY,
			       "is mounted on %.180s: unmount it first",
			       m.point);
	}
	if (swap_on(dev))
		return verdict(facts, DRIVE_BUSY,
			       "is used as swap: swapoff frees it");
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(dev),
		 minor(dev));
	if (dir_first(path, holder, sizeof(holder)))
		return verdict(facts, DRIVE_BUSY, "is held by %s", holder);
	return 0;
}

/* ---- directories -------------------------------------------------------- */

static void dir_figures(const char *path, const struct stat *st,
			struct drive_facts *facts)
{
	struct statvfs fs;
	struct mount m;

	if (!statvfs(path, &fs)) {
		facts->size_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
		facts->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
		facts->block_bytes = (uint32_t)fs.f_bsize;
	}
	if (mount_find(st->st_dev, &m)) {
		snprintf(facts->fstype, sizeof(facts->fstype), "%s", m.fstype);
		snprintf(facts->model, sizeof(facts->model), "%.63s", m.source);
	}
}

static int dir_probe(const char *path, const struct stat *st,
		     struct drive_facts *facts)
{
	char foreign[128];
	int rc;

	facts->kind = DRIVE_DIR;
	dir_figures(path, st, facts);
	rc = drive_dir_mark_read(path, facts->cluster, sizeof(facts->cluster));
	if (rc == 1)
		return verdict(facts, DRIVE_OURS, "is claimed by cluster %s",
			       facts->cluster);
	if (rc < 0)
		return verdict(facts, DRIVE_UNFIT, "cannot be read: %s",
			       strerror(-rc));
	rc = drive_dir_foreign(path, foreign, sizeof(foreign));
	if (rc < 0)
		return verdict(facts, DRIVE_UNFIT, "cannot be read: %s",
			       strerror(-rc));
	if (rc)
		return verdict(facts, DRIVE_DATA,
			       "is not empty: it has \"%s\" in it", foreign);
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS))
		return verdict(facts, DRIVE_UNFIT, "cannot be written: %s",
			       strerror(errno));
	if (facts->free_bytes < DRIVE_SIZE_MIN)
		return verdict(
			facts, DRIVE_UNFIT,
			"has %llu MiB free; a drive needs %llu MiB or more",
			(unsigned long long)(facts->free_bytes / MIB),
			DRIVE_SIZE_MIN / MIB);
	return verdict(facts, DRIVE_EMPTY, "is an empty directory");
}

/* ---- devices and images ------------------------------------------------- */

static void device_figures(int fd, const struct stat *st,
			   struct drive_facts *facts)
{
	static const char *const up[] = { "", "../" };
	char path[96];
	int block = 0;

	facts->size_bytes = (uint64_t)st->st_size;
	facts->block_bytes = 512;
	if (!S_ISBLK(st->st_mode)) {
		snprintf(facts->model, sizeof(facts->model), "image file");
		return;
	}
	if (ioctl(fd, BLKGETSIZE64, &facts->size_bytes))
		facts->size_bytes = 0;
	if (!ioctl(fd, BLKSSZGET, &block))
		facts->block_bytes = (uint32_t)block;
	for (size_t i = 0; i < array_len(up) && !facts->model[0]; i++) {
		snprintf(path, sizeof(path),
			 "/sys/dev/block/%u:%u/%sdevice/model",
			 major(st->st_rdev), minor(st->st_rdev), up[i]);
		file_line(path, facts->model, sizeof(facts->model));
	}
}

static bool locked_by_other(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static bool read_only(int fd, const char *path, const struct stat *st)
{
	int ro = 0;

	if (S_ISBLK(st->st_mode) && !ioctl(fd, BLKROGET, &ro) && ro)
		return true;
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0;
}

/* With the device at hand, nobody using it. */
static int content_probe(int fd, const char *path, const struct stat *st,
			 struct drive_facts *facts)
{
	if (drive_device_header_read(fd, facts->cluster,
				     sizeof(facts->cluster)) == 1)
		return verdict(facts, DRIVE_OURS, "is claimed by cluster %s",
			       facts->cluster);
	if (read_only(fd, path, st))
		return verdict(facts, DRIVE_UNFIT, "is read-only");
	if (facts->size_bytes < DRIVE_SIZE_MIN)
		return verdict(facts, DRIVE_UNFIT,
			       "has %llu MiB; a drive needs %llu MiB or more",
			       (unsigned long long)(facts->size_bytes / MIB),
			       DRIVE_SIZE_MIN / MIB);
	if (drive_signature(fd, facts->size_bytes, facts->fstype,
			    sizeof(facts->fstype), facts->reason,
			    sizeof(facts->reason))) {
		facts->verdict = DRIVE_DATA;
		return 1;
	}
	facts->free_bytes = facts->size_bytes / MIB * MIB - MIB;
	return verdict(facts, DRIVE_EMPTY, "is empty");
}

static int device_probe(const char *path, const struct stat *st,
			struct drive_facts *facts)
{
	const bool block = S_ISBLK(st->st_mode);
	char loop[64];
	int fd, excl, rc = 0;

	facts->kind = DRIVE_DEVICE;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return verdict(facts, DRIVE_UNFIT, "cannot be opened: %s",
			       strerror(errno));
	device_figures(fd, st, facts);
	if (block)
		rc = device_users(st->st_rdev, facts);
	else if (loop_of(path, loop, sizeof(loop)))
		rc = verdict(facts, DRIVE_BUSY, "is used by /dev/%s", loop);
	if (!rc && locked_by_other(fd))
		rc = verdict(facts, DRIVE_BUSY, "is open in another program");
	if (!rc && block) {
		excl = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
		if (excl < 0)
			rc = verdict(
				facts, DRIVE_BUSY,
				errno == EBUSY
					? "is in use (a partition of it is "
					  "mounted, or a program holds it)"
					: "cannot be held alone");
		else
			close(excl);
	}
	if (!rc)
		content_probe(fd, path, st, facts);
	close(fd);
	return 1;
}

int drive_content(const char *path, char *what, size_t what_len, char *cluster,
		  size_t cluster_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
	uint64_t size_bytes = 0;
	char reason[256];

	*what = *cluster = '\0';
	if (fd < 0)
		return -errno;
	rc = ioctl(fd, BLKGETSIZE64, &size_bytes) ? -errno : 0;
	if (rc)
		goto out;
	if (drive_device_header_read(fd, cluster, cluster_len) == 1)
		snprintf(what, what_len, "iodeck");
	else if (drive_signature(fd, size_bytes, what, what_len, reason,
				 sizeof(reason)) &&
		 !*what)
		snprintf(what, what_len, "data");
out:
	close(fd);
	return rc;
}

int drive_probe(const char *path, struct drive_facts *facts, struct err *err)
{
	struct stat st;

	(void)err;
	memset(facts, 0, sizeof(*facts));
	facts->kind = DRIVE_DEVICE;
	if (stat(path, &st))
		verdict(facts, DRIVE_UNFIT, "%s%s",
			errno == ENOENT ? "does not exist"
					: "cannot be reached: ",
			errno == ENOENT ? "" : strerror(errno));
	else if (S_ISDIR(st.st_mode))
		dir_probe(path, &st, facts);
	else if (S_ISBLK(st.st_mode) || S_ISREG(st.st_mode))
		device_probe(path, &st, facts);
	else
		verdict(facts, DRIVE_UNFIT,
			"is neither a directory nor a block device");
	return 0;
}
