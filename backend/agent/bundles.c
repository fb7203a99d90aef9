/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/bundles.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/paths.h"

#define TORN ".new." /* of one that is being brought, or removed */

static bool is_hash(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

static bool is_torn(const char *name)
{
	return !strncmp(name, TORN, sizeof(TORN) - 1);
}

static int manifest_open(const char *dir)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/MANIFEST", dir);

	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	n = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return n < 0 ? -errno : n;
}

void bundles_hold(const char *dir)
{
	int fd = manifest_open(dir);

	/* where it cannot be locked or touched, nobody can remove it either */
	if (fd >= 0 && !flock(fd, LOCK_SH | LOCK_NB))
		futimens(fd, NULL);
}

static bool older(const struct stat *st, time_t now, time_t age)
{
	return st->st_mtime < now - age;
}

/* Out of its name at once, so that nobody begins from half of it. */
static void whole_remove(const char *all, const char *path)
{
	char torn[PATH_MAX + 64];

	snprintf(torn, sizeof(torn), "%s/" TORN "old.%d", all, (int)getpid());
	if (!rename(path, torn))
		path_remove(torn, NULL);
}

static void one_tidy(const char *all, const char *name, time_t now)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, n = snprintf(path, sizeof(path), "%s/%s", all, name);

	if (n < 0 || n >= PATH_MAX || lstat(path, &st) || !S_ISDIR(st.st_mode))
		return;
	if (is_torn(name)) {
		if (older(&st, now, BUNDLES_TORN_S))
			path_remove(path, NULL);
		return;
	}
	if (!is_hash(name))
		return;
	fd = manifest_open(path);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && older(&st, now, BUNDLES_KEEP_S) &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		whole_remove(all, path);
	close(fd);
}

void bundles_tidy(const char *dir, time_t now)
{
	char all[PATH_MAX], *own;
	struct dirent *entry;
	DIR *d;

	snprintf(all, sizeof(all), "%s", dir);
	own = strrchr(all, '/');
	if (!own || !is_hash(own + 1))
		return; /* unpacked by hand, somewhere */
	*own++ = '\0';
	d = opendir(all);
	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, own) != 0)
			one_tidy(all, entry->d_name, now);
	if (d)
		closedir(d);
}

int bundles_remove(const char *state_dir, struct err *err)
{
	char all[PATH_MAX], path[PATH_MAX + 300];
	struct dirent *entry;
	struct stat st;
	int rc = 0;
	DIR *d;

	snprintf(all, sizeof(all), "%.*s/.bundle", PATH_MAX - 9, state_dir);
	if (lstat(all, &st) || !S_ISDIR(st.st_mode))
		return 0;
	d = opendir(all);
	if (!d)
		return err_set(err, -errno, "%s: %s", all, strerror(errno));
	while (!rc && (entry = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", all, entry->d_name);
		if ((is_hash(entry->d_name) || is_torn(entry->d_name)) &&
		    !lstat(path, &st) && S_ISDIR(st.st_mode))
			rc = path_remove(path, err);
	}
	closedir(d);
	if (!rc)
		rmdir(all); /* what else is in it is told by the caller */
	return rc;
}
