/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the bundle --------------------------------------------------------- */

void tools_bundle_of(const char *exe, char dir[PATH_MAX])
{
	static const char loader[] = "/lib/" TOOL_LOADER;
	size_t len = strlen(exe), tail = sizeof(loader) - 1;
	char program[PATH_MAX];

	dir[0] = '\0';
	if (len <= tail || len >= PATH_MAX ||
	    strcmp(exe + len - tail, loader) != 0)
		return;
	memcpy(dir, exe, len - tail);
	dir[len - tail] = '\0';
	/* a host's own loader, given a program, is no bundle */
	if (snprintf(program, sizeof(program), "%s/bin/iodeck-agent", dir) >=
		    PATH_MAX ||
	    access(program, R_OK))
		dir[0] = '\0';
}

static ssize_t self_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return n;
}

const char *tools_bundle(void)
{
	static char dir[PATH_MAX];
	static bool known;
	char self[PATH_MAX];

	if (!known && self_path(self) > 0)
		tools_bundle_of(self, dir);
	known = true;
	return dir;
}

/* ---- programs ----------------------------------------------------------- */

/* False: the path is longer than any that can be opened. */
static bool path_join(char path[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	return n > 0 && n < PATH_MAX;
}

/* --inhibit-cache: what the host's ld.so.cache names is not for this libc. */
static int bundled(struct tool *tool, const char *dir, const char *name,
		   struct err *err)
{
	if (!path_join(tool->path, dir, name) ||
	    !path_join(tool->lib, dir, "lib") ||
	    !path_join(tool->loader, tool->lib, TOOL_LOADER) ||
	    access(tool->path, R_OK))
		return err_set(err, -ENOENT,
			       "%s/%s is not there: this bundle was made "
			       "without it",
			       dir, name);
	tool->argv[tool->words++] = tool->loader;
	tool->argv[tool->words++] = "--inhibit-cache";
	tool->argv[tool->words++] = "--library-path";
	tool->argv[tool->words++] = tool->lib;
	tool->argv[tool->words++] = tool->path;
	return 0;
}

static int along_path(struct tool *tool, const char *name)
{
	const char *dirs = getenv("PATH");
	char dir[PATH_MAX];

	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (*dirs == '/' && len < sizeof(dir)) {
			memcpy(dir, dirs, len);
			dir[len] = '\0';
			if (path_join(tool->path, dir, name) &&
			    !access(tool->path, X_OK)) {
				tool->argv[tool->words++] = tool->path;
				return 0;
			}
		}
		dirs += len + (dirs[len] == ':');
	}
	return -ENOENT;
}

int tool_self(struct tool *tool, struct err *err)
{
	const char *dir = tools_bundle();

	*tool = (struct tool) { 0 };
	if (*dir)
		return bundled(tool, dir, "bin/iodeck-agent", err);
	if (self_path(tool->path) <= 0)
		return err_set(err, -ENOENT,
			       "/proc/self/exe: %s: is /proc mounted?",
			       strerror(errno));
	tool->argv[tool->words++] = tool->path;
	return 0;
}

int tool_nbdkit(struct tool *tool, struct err *err)
{
	const char *dir = tools_bundle();

	*tool = (struct tool) { 0 };
	if (*dir)
		return bundled(tool, dir, "bin/nbdkit", err);
	if (along_path(tool, "nbdkit"))
		return err_set(err, -ENOENT,
			       "nbdkit is not in PATH: install it (nbdkit)");
	return 0;
}

static void module_path(const char *name, const char *kind, char path[PATH_MAX])
{
	const char *dir = tools_bundle();

	if (*dir)
		snprintf(path, PATH_MAX, "%s/nbdkit/nbdkit-%s-%s.so", dir, name,
			 kind);
	else
		snprintf(path, PATH_MAX, "%s", name);
}

void tool_plugin(const char *name, char path[PATH_MAX])
{
	module_path(name, "plugin", path);
}

void tool_filter(const char *name, char path[PATH_MAX])
{
	module_path(name, "filter", path);
}

int tool_own_plugin(char path[PATH_MAX], struct err *err)
{
	static const char name[] = "nbdkit-iodeck-plugin.so";
	static const char *const beside[] = { "", IODECK_PLUGINS };
	char self[PATH_MAX], dir[PATH_MAX];
	char *slash;

	if (*tools_bundle()) {
		module_path("iodeck", "plugin", path);
		if (!access(path, R_OK))
			return 0;
	}
	self_path(self);
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t k = 0; slash && k < array_len(beside); k++)
		if ((size_t)snprintf(dir, sizeof(dir), "%s%s", self,
				     beside[k]) < sizeof(dir) &&
		    path_join(path, dir, name) && !access(path, R_OK))
			return 0;
	return err_set(err, -ENOENT,
		       "%s is not there: it is built where nbdkit-plugin-dev "
		       "is installed",
		       name);
}
