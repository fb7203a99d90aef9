/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *variable, *below_home;
} bases[] = {
	[PATH_CONFIG] = { "XDG_CONFIG_HOME", ".config" },
	[PATH_DATA] = { "XDG_DATA_HOME", ".local/share" },
	[PATH_STATE] = { "XDG_STATE_HOME", ".local/state" },
	[PATH_CACHE] = { "XDG_CACHE_HOME", ".cache" },
};

static int put(char *buf, size_t len, int written)
{
	if (written < 0 || (size_t)written >= len) {
		buf[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

static int path_share(const char *name, char *buf, size_t len)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return -ENOENT;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return put(buf, len,
		   snprintf(buf, len, "%s/../share/iodeck/%s", self, name));
}

int path_of(enum path_base base, const char *name, char *buf, size_t len)
{
	const char *dir, *home = getenv("HOME");

	if (base == PATH_SHARE)
		return path_share(name, buf, len);
	dir = getenv(bases[base].variable);
	if (dir && dir[0] == '/')
		return put(buf, len,
			   snprintf(buf, len, "%s/iodeck/%s", dir, name));
	if (!home || home[0] != '/')
		return -ENOENT;
	return put(buf, len,
		   snprintf(buf, len, "%s/%s/iodeck/%s", home,
			    bases[base].below_home, name));
}

int path_make(const char *dir, struct err *err)
{
	char path[PATH_MAX], *p;

	if (put(path, sizeof(path), snprintf(path, sizeof(path), "%s", dir)))
		return err_set(err, -ENAMETOOLONG, "%s: name too long", dir);
	for (p = path + 1;; p++) {
		if (*p && *p != '/')
			continue;
		if (*p == '/' && p[-1] == '/')
			continue;
		{
			char kept = *p;

			*p = '\0';
			if (mkdir(path, 0700) && errno != EEXIST)
				return err_set(err, -errno,
					       "cannot make the directory "
					       "%s: %s",
					       path, strerror(errno));
			*p = kept;
		}
		if (!*p)
			return 0;
	}
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

int path_remove(const char *dir, struct err *err)
{
	if (!nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) ||
	    errno == ENOENT)
		return 0;
	return err_set(err, -errno, "cannot remove %s: %s", dir,
		       strerror(errno));
}

int path_expand(const char *path, char *buf, size_t len)
{
	const char *home = getenv("HOME");

	if (strncmp(path, "~/", 2) != 0)
		return put(buf, len, snprintf(buf, len, "%s", path));
	if (!home)
		return -ENOENT;
	return put(buf, len, snprintf(buf, len, "%s/%s", home, path + 2));
}

bool path_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ---- files that have a name --------------------------------------------- */

#define ENDING ".conf"

static bool ends_conf(const char *name)
{
	size_t n = strlen(name), e = strlen(ENDING);

	return n > e && !strcmp(name + n - e, ENDING);
}

int path_find(const char *kind, const char *name, char *buf, size_t len)
{
	static const enum path_base order[] = { PATH_CONFIG, PATH_SHARE };
	char below[256];
	size_t i;

	if (strchr(name, '/') || ends_conf(name)) {
		if (path_expand(name, buf, len))
			return -ENAMETOOLONG;
		return path_exists(buf) ? 0 : -ENOENT;
	}
	if (put(below, sizeof(below),
		snprintf(below, sizeof(below), "%s/%s" ENDING, kind, name)))
		return -ENOENT;
	for (i = 0; i < array_len(order); i++)
		if (!path_of(order[i], below, buf, len) && path_exists(buf))
			return 0;
	return -ENOENT;
}

struct names {
	char **name;
	size_t count;
};

static int names_add(struct names *names, const char *name, size_t len)
{
	char **more;
	size_t i;

	for (i = 0; i < names->count; i++)
		if (!strncmp(names->name[i], name, len) && !names->name[i][len])
			return 0;
	more = realloc(names->name, (names->count + 2) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	names->name = more;
	more[names->count] = strndup(name, len);
	if (!more[names->count])
		return -ENOMEM;
	more[++names->count] = NULL;
	return 0;
}

static int names_scan(struct names *names, const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int r = 0;

	if (!d)
		return 0;
	while (!r && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && ends_conf(entry->d_name))
			r = names_add(names, entry->d_name,
				      strlen(entry->d_name) - strlen(ENDING));
	closedir(d);
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int path_list(const char *kind, char ***list)
{
	struct names names = { 0 };
	char dir[PATH_MAX];
	int r = 0;

	if (!path_of(PATH_CONFIG, kind, dir, sizeof(dir)))
		r = names_scan(&names, dir);
	if (!r && !path_of(PATH_SHARE, kind, dir, sizeof(dir)))
		r = names_scan(&names, dir);
	if (!r && !names.name)
		names.name = calloc(1, sizeof(*names.name));
	if (r || !names.name) {
		path_list_free(names.name);
		return -ENOMEM;
	}
	qsort(names.name, names.count, sizeof(*names.name), compare);
	*list = names.name;
	return 0;
}

void path_list_free(char **names)
{
	size_t i;

	for (i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}
