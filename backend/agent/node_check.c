/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/node_check.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/agent/drive_ask.h"
#include "backend/agent/host_read.h"
#include "backend/agent/tools.h"
#include "backend/event.h"
#include "backend/transport/errand.h"
#include "engine/drive.h"
#include "engine/reactor.h"

#define BECOME_MS 3000
#define WORDS_MAX 16

/* ---- what was asked ----------------------------------------------------- */

static int paths_take(struct node_check *c, const json_t *paths,
		      struct err *err)
{
	const json_t *one;
	size_t k;

	if (!paths || json_is_null(paths))
		return 0;
	if (!json_is_array(paths) ||
	    json_array_size(paths) > NODE_CHECK_PATHS_MAX)
		return err_set(err, -EINVAL,
			       "node_check: \"paths\" must be a list of at "
			       "most %d",
			       NODE_CHECK_PATHS_MAX);
	c->path = calloc(json_array_size(paths) + 1, sizeof(*c->path));
	if (!c->path)
		return err_set(err, -ENOMEM, "node_check: out of memory");
	json_array_foreach(paths, k, one) {
		const char *path = json_string_value(one);

		if (!path || path[0] != '/')
			return err_set(err, -EINVAL,
				       "node_check: a path begins with /");
		c->path[k] = strdup(path);
		if (!c->path[k])
			return err_set(err, -ENOMEM,
				       "node_check: out of memory");
		c->paths++;
	}
	return 0;
}

int node_check_new(const json_t *request, int dirfd, const char *io,
		   struct node_check **check, struct err *err)
{
	const char *become =
		json_string_value(json_object_get(request, "become"));
	struct node_check *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, -ENOMEM, "node_check: out of memory");
	snprintf(c->io, sizeof(c->io), "%s", io);
	c->become = become && *become ? strdup(become) : NULL;
	c->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
	rc = c->dirfd < 0
		     ? err_set(err, -errno, "node_check: %s", strerror(errno))
		     : paths_take(c, json_object_get(request, "paths"), err);
	if (rc)
		node_check_free(c);
	else
		*check = c;
	return rc;
}

void node_check_free(struct node_check *c)
{
	if (!c)
		return;
	for (size_t k = 0; k < c->paths; k++)
		free(c->path[k]);
	free(c->path);
	free(c->become);
	if (c->dirfd >= 0)
		close(c->dirfd);
	json_decref(c->result);
	free(c);
}

/* ---- what is found ------------------------------------------------------ */

static json_t *whether(bool ok, const char *why)
{
	json_t *j = json_object();

	json_object_set_new(j, "ok", json_boolean(ok));
	if (!ok)
		host_add_text(j, "error", why);
	return j;
}

/* Room, and that a file can be made: a full or read-only disk says so now. */
static json_t *state_dir(const struct node_check *c)
{
	static const char probe[] = "check.tmp";
	char link[32], path[512];
	struct statvfs fs;
	json_t *j;
	ssize_t n;
	int fd = openat(c->dirfd, probe,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const bool ok = fd >= 0 && write(fd, "ok\n", 3) == 3;

	j = whether(ok, strerror(errno));
	if (fd >= 0)
		close(fd);
	unlinkat(c->dirfd, probe, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", c->dirfd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	host_add_text(j, "path", path);
	if (!fstatvfs(c->dirfd, &fs)) {
		host_add_int(j, "size_bytes",
			     (int64_t)(fs.f_blocks * fs.f_frsize));
		host_add_int(j, "free_bytes",
			     (int64_t)(fs.f_bavail * fs.f_frsize));
	}
	return j;
}

/* Unlimited is no limit: left out. */
static void limit_add(json_t *to, const char *name, rlim_t limit)
{
	if (limit != RLIM_INFINITY)
		host_add_int(to, name, (int64_t)limit);
}

static json_t *limits(void)
{
	json_t *j = json_object();
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		limit_add(j, "nofile", r.rlim_cur);
		limit_add(j, "nofile_max", r.rlim_max);
	}
	if (!getrlimit(RLIMIT_MEMLOCK, &r)) {
		limit_add(j, "memlock_bytes", r.rlim_cur);
		limit_add(j, "memlock_max_bytes", r.rlim_max);
	}
	return j;
}

/* By making one, with registered buffers: a limit on locked memory shows. */
static json_t *io_uring(void)
{
	const struct reactor_opts opts = {
		.kind = REACTOR_URING,
		.entries = 8,
		.arena_bytes = 4 * MIB,
	};
	struct err err = { 0 };
	struct reactor *r;
	char how[128];
	json_t *j;

	if (reactor_new(&opts, &r, &err))
		return whether(false, err.text);
	j = whether(true, "");
	reactor_describe(r, how, sizeof(how));
	host_add_text(j, "how", how);
	reactor_free(r);
	return j;
}

static json_t *drive(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	json_t *j = whether(fd >= 0, strerror(errno)), *more;
	struct drive_facts facts;

	if (fd >= 0)
		close(fd);
	host_add_text(j, "path", path);
	/* device nodes may be opened to read by those who may not write */
	json_object_set_new(
		j, "writable",
		json_boolean(!faccessat(AT_FDCWD, path, W_OK, AT_EACCESS)));
	drive_probe(path, &facts, NULL);
	more = drive_facts_json(&facts);
	if (more)
		json_object_update_missing(j, more);
	json_decref(more);
	return j;
}

/* "sudo -n" before "id -u", which must say 0. */
static json_t *become(const char *words)
{
	const char *argv[WORDS_MAX + 3];
	char copy[256], *word, *rest;
	struct errand e = { 0 };
	struct err err = { 0 };
	int n = 0, status = 0, rc;
	json_t *j;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", words) >= sizeof(copy))
		return whether(false, "too long");
	for (word = strtok_r(copy, " \t", &rest); word && n < WORDS_MAX;
	     word = strtok_r(NULL, " \t", &rest))
		argv[n++] = word;
	argv[n++] = "id";
	argv[n++] = "-u";
	argv[n] = NULL;
	rc = errand_start(&e, argv, BECOME_MS, &err);
	while (!rc && (rc = errand_step(&e, &status, &err)) == -EAGAIN) {
		int timeout_ms = 100;
		struct pollfd fd[4];

		poll(fd, (nfds_t)errand_poll(&e, fd, &timeout_ms), timeout_ms);
		rc = 0;
	}
	j = rc       ? whether(false, err.text)
	    : status ? whether(false, "it was refused")
		     : whether(!strcmp(e.out ? e.out : "", "0\n"),
			       "it does not become root");
	errand_fini(&e);
	return j;
}

static json_t *tools(void)
{
	json_t *j = json_object(), *nbdkit;
	struct err err = { 0 };
	struct tool tool;

	nbdkit = whether(!tool_nbdkit(&tool, &err), err.text);
	if (!err.code)
		host_add_text(nbdkit, "path", tool.path);
	json_object_set_new(j, "nbdkit", nbdkit);
	return j;
}

void node_check_work(struct node_check *c)
{
	json_t *j = json_object(), *drives = json_array();

	host_add_text(j, "version", IODECK_VERSION);
	host_add_int(j, "uid", geteuid());
	host_add_text(j, "io", c->io);
	json_object_set_new(j, "state_dir", state_dir(c));
	json_object_set_new(j, "limits", limits());
	json_object_set_new(j, "io_uring", io_uring());
	if (c->become)
		json_object_set_new(j, "become", become(c->become));
	for (size_t k = 0; k < c->paths; k++)
		json_array_append_new(drives, drive(c->path[k]));
	json_object_set_new(j, "drives", drives);
	json_object_set_new(j, "tools", tools());
	host_add_int(j, "t_us", event_now_us());
	c->result = j;
}
