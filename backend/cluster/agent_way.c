/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/agent_way.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/bundle/deploy.h"

#define PROGRAM "iodeck-agent"
#define BEFORE_MAX 8

struct words {
	const char *argv[BEFORE_MAX + BUNDLE_WORDS + 8];
	int count;
	char path[PATH_MAX], before[256];
};

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

static void word_add(struct words *w, const char *word)
{
	w->argv[w->count++] = word;
}

static void before_add(struct words *w, const char *become)
{
	char *save, *word;

	snprintf(w->before, sizeof(w->before), "%s", become);
	word = strtok_r(w->before, " \t", &save);
	for (; word && w->count < BEFORE_MAX;
	     word = strtok_r(NULL, " \t", &save))
		word_add(w, word);
}

static int program_add(struct words *w, const struct agent_way_opts *o,
		       struct err *err)
{
	if (o->program)
		snprintf(w->path, sizeof(w->path), "%s", o->program);
	else if (o->host)
		snprintf(w->path, sizeof(w->path), PROGRAM);
	else if (program_find(w->path, sizeof(w->path)))
		return err_set(err, -ENOENT,
			       PROGRAM " is neither beside this program nor in "
				       "PATH: install it there");
	word_add(w, w->path);
	return 0;
}

static void verb_add(struct words *w, const struct agent_way_opts *o)
{
	word_add(w, o->verb);
	word_add(w, "--name");
	word_add(w, o->agent);
	if (o->state_dir) {
		word_add(w, "--state-dir");
		word_add(w, o->state_dir);
	}
	if (o->more)
		word_add(w, o->more);
	word_add(w, NULL);
}

int agent_way_open(const struct agent_way_opts *o, struct transport **t,
		   struct err *err)
{
	struct words w = { 0 };
	struct transport_opts opts = { .argv = w.argv, .host = o->host };
	struct bundle bundle;
	int rc = -ENOENT;

	if (o->become)
		before_add(&w, o->become);
	if (o->host && !o->program) {
		rc = bundle_find(&bundle, err);
		if (rc && rc != -ENOENT)
			return rc;
	}
	if (!rc) {
		bundle_words(&bundle, o->state_dir, w.argv + w.count);
		w.count += BUNDLE_WORDS;
		verb_add(&w, o);
		opts.name = PROGRAM;
		return deploy_open(&opts, &bundle, t, err);
	}
	rc = program_add(&w, o, err);
	if (rc)
		return rc;
	verb_add(&w, o);
	return transport_open(&opts, t, err);
}
