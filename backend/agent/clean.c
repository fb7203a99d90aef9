/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/clean.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/agent/bundles.h"
#include "backend/agent/place.h"
#include "backend/paths.h"
#include "backend/wire.h"

#define HELLO_MS 5000
#define END_MS 30000 /* vDisks are closed in order */

static void say(const struct clean_opts *o, const char *fmt, ...)
	ID_PRINTF(2, 3);
static void say(const struct clean_opts *o, const char *fmt, ...)
{
	char line[PATH_MAX + 200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	o->say(line);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- asking it to end --------------------------------------------------- */

/* One line; NULL: none came, or no JSON. */
static json_t *line_read(struct wire *w, int fd, int64_t due_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	json_t *line = NULL;
	char buf[4096];
	ssize_t n;
	int rc;

	while ((rc = wire_next(w, &line, NULL)) == -EAGAIN) {
		int64_t left = due_ms - now_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return NULL;
		n = read(fd, buf, sizeof(buf));
		if (n <= 0 || wire_feed(w, buf, (size_t)n))
			return NULL;
	}
	return rc ? NULL : line;
}

/* None of its events is wanted: marks behind all that there can be. */
static json_t *marks(const json_t *hello)
{
	json_t *from = json_array(), *one;
	size_t k;

	json_array_foreach(json_object_get(hello, "oldest"), k, one)
		json_array_append_new(from, json_pack("[O, I]",
						      json_array_get(one, 0),
						      (json_int_t)INT64_MAX));
	json_array_append_new(from,
			      json_pack("[O, I]", json_object_get(hello, "i"),
					(json_int_t)INT64_MAX));
	return from;
}

static int line_write(struct wire *w, int fd, json_t *line)
{
	const char *out;
	size_t len;
	ssize_t n;
	int rc = line ? wire_put(w, line) : -ENOMEM;

	json_decref(line);
	while (!rc && (out = wire_out(w, &len), len)) {
		n = send(fd, out, len, MSG_NOSIGNAL);
		if (n < 0)
			rc = -errno;
		else
			wire_sent(w, (size_t)n);
	}
	return rc;
}

static int quit_ask(struct wire *w, int fd, const json_t *hello)
{
	int rc = line_write(w, fd,
			    json_pack("{s:i, s:s, s:o, s:b}", "id", 1, "do",
				      "attach", "from", marks(hello), "take",
				      1));

	return rc ? rc
		  : line_write(w, fd,
			       json_pack("{s:i, s:s}", "id", 2, "do", "quit"));
}

static int busy(const struct clean_opts *o, const json_t *hello,
		struct err *err)
{
	const char *state = json_string_value(json_object_get(hello, "state"));
	const char *run = json_string_value(json_object_get(hello, "run"));
	const char *session =
		json_string_value(json_object_get(hello, "session"));

	if (o->force || !state || strcmp(state, "running") != 0)
		return 0;
	return err_set(err, -EBUSY,
		       "agent %s is at run %s of session %s: `run stop` ends "
		       "that, `force` does not ask",
		       o->name, run ? run : "?", session ? session : "?");
}

/* The lock is free when the last of it is gone. */
static int lock_wait(struct place *place, int64_t due_ms)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	int rc;

	while ((rc = place_lock(place, NULL)) == -EBUSY && now_ms() < due_ms) {
		close(place->lockfd);
		place->lockfd = -1;
		nanosleep(&nap, NULL);
	}
	return rc;
}

static void kill_peer(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	/* who listened: the daemon */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	    cred.uid == geteuid() && cred.pid > 1)
		kill(cred.pid, SIGKILL);
}

/* Asked in order; where that fails and force is given, killed. */
static int agent_end(const struct clean_opts *o, struct place *place, int fd,
		     struct err *err)
{
	struct wire w;
	json_t *hello;
	int rc = -ETIMEDOUT;

	wire_init(&w);
	hello = line_read(&w, fd, now_ms() + HELLO_MS);
	if (hello)
		rc = busy(o, hello, err);
	if (hello && !rc)
		rc = quit_ask(&w, fd, hello);
	if (!rc)
		rc = lock_wait(place, now_ms() + END_MS);
	json_decref(hello);
	wire_fini(&w);
	if (rc && o->force) {
		kill_peer(fd);
		rc = lock_wait(place, now_ms() + HELLO_MS);
	}
	if (rc == -EBUSY && err->code == -EBUSY)
		return rc;
	if (rc)
		return err_set(err, -ETIMEDOUT,
			       "agent %s does not end; `force` kills it",
			       o->name);
	say(o, "agent %s has ended", o->name);
	return 0;
}

/* ---- one agent's directory ---------------------------------------------- */

/* A directory of this user's with an agent's lock in it. */
static bool is_agents(const char *state_dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s", state_dir, name);

	if (n < 0 || n >= PATH_MAX - 5 || lstat(path, &st) ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return false;
	snprintf(path + n, sizeof(path) - (size_t)n, "/lock");
	return !lstat(path, &st) && S_ISREG(st.st_mode);
}

static int agent_clean(const struct clean_opts *o, struct err *err)
{
	struct place place;
	char path[PATH_MAX];
	int fd, rc;

	if (!is_agents(o->state_dir, o->name))
		return 0;
	rc = place_open(o->state_dir, o->name, &place, err);
	if (rc)
		return rc;
	fd = place_connect(&place);
	rc = fd < 0 ? lock_wait(&place, now_ms() + HELLO_MS)
		    : agent_end(o, &place, fd, err);
	if (fd >= 0)
		close(fd);
	if (rc && !err->code)
		err_set(err, rc, "agent %s: %s", o->name, strerror(-rc));
	/* held: nobody starts one while it is removed */
	snprintf(path, sizeof(path), "%s/%s", o->state_dir, o->name);
	if (!rc)
		rc = path_remove(path, err);
	if (!rc)
		say(o, "removed %s", path);
	place_close(&place);
	return rc;
}

/* ---- the rest ----------------------------------------------------------- */

static bool others(const struct clean_opts *o)
{
	DIR *d = opendir(o->state_dir);
	struct dirent *entry;
	bool any = false;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.' &&
		    is_agents(o->state_dir, entry->d_name)) {
			say(o, "kept %s/%s: another agent's", o->state_dir,
			    entry->d_name);
			any = true;
		}
	if (d)
		closedir(d);
	return any;
}

/* What was made on the way to the usual state directory, once it is empty. */
static void parents_remove(const char *state_dir)
{
	static const char *const made[] = { "agent", "iodeck", "state",
					    ".local" };
	char path[PATH_MAX], *slash;

	snprintf(path, sizeof(path), "%s", state_dir);
	for (size_t k = 0; k < array_len(made); k++) {
		slash = strrchr(path, '/');
		if (!slash || (k && strcmp(slash + 1, made[k]) != 0) ||
		    rmdir(path))
			return;
		*slash = '\0';
	}
}

int clean_run(const struct clean_opts *o, struct err *err)
{
	struct stat st;
	int rc;

	*err = (struct err) { 0 };
	if (lstat(o->state_dir, &st)) {
		say(o, "nothing of iodeck is in %s", o->state_dir);
		return 0;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, -ENOTDIR,
			       "%s is no directory of this user's: remove it "
			       "by hand",
			       o->state_dir);
	rc = agent_clean(o, err);
	if (rc)
		return rc;
	if (others(o)) {
		say(o, "kept the bundles: they may be in use");
		return 0;
	}
	rc = bundles_remove(o->state_dir, err);
	if (rc)
		return rc;
	parents_remove(o->state_dir);
	if (lstat(o->state_dir, &st))
		say(o, "removed %s", o->state_dir);
	else
		say(o, "kept %s: there is more in it, and it is not iodeck's",
		    o->state_dir);
	return 0;
}
