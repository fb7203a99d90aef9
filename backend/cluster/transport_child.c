/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/transport.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "iodeck-agent"
#define CLOSE_MS 300

struct transport {
	pid_t pid;
	int fd, fd_err;
};

/* ---- finding the program ------------------------------------------------ */

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

/* ---- starting it -------------------------------------------------------- */

/* A process group of its own, so that ^C at the console does not reach it;
 * default signals, as the console may ignore some. */
static int child_start(struct transport *t, const char *path,
		       const struct transport_opts *o, int io, int err_end)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none, all;
	char *argv[9];
	int argc = 0, rc;
	extern char **environ;

	argv[argc++] = (char *)path;
	argv[argc++] = (char *)"attach";
	argv[argc++] = (char *)"--name";
	argv[argc++] = (char *)o->agent;
	if (o->state_dir) {
		argv[argc++] = (char *)"--state-dir";
		argv[argc++] = (char *)o->state_dir;
	}
	if (o->spawn)
		argv[argc++] = (char *)"--spawn";
	argv[argc] = NULL;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, io, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&acts, io, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&acts, err_end, STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
						POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(&t->pid, path, &acts, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* dup2() of an fd onto itself would leave it close-on-exec: keep ends above. */
static int above_stdio(int fd)
{
	int up;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return up;
}

static void child_close(struct transport *t);

static int child_open(const struct transport_opts *opts,
		      struct transport **transport, struct err *err)
{
	struct transport *t = malloc(sizeof(*t));
	int io[2] = { -1, -1 }, errs[2] = { -1, -1 }, rc = 0;
	char path[PATH_MAX];

	if (!t)
		return err_set(err, -ENOMEM, "agent: out of memory");
	*t = (struct transport) { .pid = -1, .fd = -1, .fd_err = -1 };
	if (opts->program)
		snprintf(path, sizeof(path), "%s", opts->program);
	else
		rc = program_find(path, sizeof(path));
	if (rc) {
		rc = err_set(err, rc,
			     PROGRAM " is neither beside this program nor in "
				     "PATH: install it there");
		goto out;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) ||
	    pipe2(errs, O_CLOEXEC | O_NONBLOCK))
		rc = -errno;
	io[1] = above_stdio(io[1]);
	errs[1] = above_stdio(errs[1]);
	t->fd = io[0];
	t->fd_err = errs[0];
	if (!rc)
		rc = child_start(t, path, opts, io[1], errs[1]);
	if (rc)
		t->pid = -1;
	if (rc)
		err_set(err, rc, "%s: cannot start: %s", path, strerror(-rc));
out:
	if (io[1] >= 0)
		close(io[1]);
	if (errs[1] >= 0)
		close(errs[1]);
	if (rc)
		child_close(t);
	else
		*transport = t;
	return rc;
}

/* ---- using it ----------------------------------------------------------- */

static int child_fd(const struct transport *t)
{
	return t->fd;
}

static int child_fd_err(const struct transport *t)
{
	return t->fd_err;
}

static ssize_t child_read(struct transport *t, void *buf, size_t len)
{
	ssize_t n = recv(t->fd, buf, len, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static ssize_t child_read_err(struct transport *t, void *buf, size_t len)
{
	ssize_t n = read(t->fd_err, buf, len);

	return n < 0 ? -errno : n;
}

static ssize_t child_write(struct transport *t, const void *buf, size_t len)
{
	ssize_t n = send(t->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

/*
 * The end of our half is the child's stdin's: it passes on what it has and
 * ends, and its end of the stream closes. It owns nothing, so it may be killed
 * when that takes long.
 */
static void child_close(struct transport *t)
{
	struct pollfd p;
	int status;

	if (!t)
		return;
	if (t->fd >= 0) {
		shutdown(t->fd, SHUT_WR);
		p = (struct pollfd) { .fd = t->fd, .events = POLLRDHUP };
		if (t->pid > 0)
			poll(&p, 1, CLOSE_MS);
		close(t->fd);
	}
	if (t->fd_err >= 0)
		close(t->fd_err);
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	free(t);
}

const struct transport_ops transport_child = {
	.kind = "child",
	.open = child_open,
	.fd = child_fd,
	.fd_err = child_fd_err,
	.read = child_read,
	.read_err = child_read_err,
	.write = child_write,
	.close = child_close,
};
