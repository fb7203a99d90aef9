/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/attach_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "iodeck-agent"
#define BEFORE_MAX 8

static bool usable(char *path, size_t size, const char *dir, int dir_len,
		   const char *more)
{
	int n = snprintf(path, size, "%.*s%s/%s", dir_len, dir, more, PROGRAM);

	return n > 0 && (size_t)n < size && !access(path, X_OK);
}

/* Beside our own binary, then in libexec beside bin, then along PATH. */
static int program_find(char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *slash;
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		int len = (int)(slash - self);

		if (usable(path, size, self, len, "") ||
		    usable(path, size, self, len, "/../libexec/iodeck") ||
		    usable(path, size, self, len, "/../libexec"))
			return 0;
	}
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (len && usable(path, size, dirs, (int)len, ""))
			return 0;
		dirs += len + (dirs[len] == ':');
	}
	return -ENOENT;
}

static int before_split(struct attach_words *w, const char *become)
{
	char *save, *word;
	int n = 0;

	if (!become)
		return 0;
	snprintf(w->before, sizeof(w->before), "%s", become);
	word = strtok_r(w->before, " \t", &save);
	for (; word && n < BEFORE_MAX; word = strtok_r(NULL, " \t", &save))
		w->argv[n++] = word;
	return n;
}

int attach_words(const struct attach_words_opts *o, struct attach_words *w,
		 struct err *err)
{
	int n = before_split(w, o->become);

	if (o->program)
		snprintf(w->path, sizeof(w->path), "%s", o->program);
	else if (o->remote)
		snprintf(w->path, sizeof(w->path), PROGRAM);
	else if (program_find(w->path, sizeof(w->path)))
		return err_set(err, -ENOENT,
			       PROGRAM " is neither beside this program nor in "
				       "PATH: install it there");
	w->argv[n++] = w->path;
	w->argv[n++] = "attach";
	w->argv[n++] = "--name";
	w->argv[n++] = o->agent;
	if (o->state_dir) {
		w->argv[n++] = "--state-dir";
		w->argv[n++] = o->state_dir;
	}
	if (o->spawn)
		w->argv[n++] = "--spawn";
	w->argv[n] = NULL;
	return 0;
}
