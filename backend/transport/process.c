/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATUS_MS 1000 /* from the end of stdout to that of the process */
#define LOOK_MS 5

int64_t transport_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void transport_wake(int64_t due_ms, int *timeout_ms)
{
	int64_t left = due_ms - transport_now_ms();

	if (left < 0)
		left = 0;
	if (*timeout_ms < 0 || left < *timeout_ms)
		*timeout_ms = (int)left;
}

/* ---- starting ----------------------------------------------------------- */

/* Default signals, as the console may ignore some. */
static int spawn(struct process *p, const char *const argv[], int io,
		 int err_end)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none, all;
	extern char **environ;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, io, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&acts, io, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&acts, err_end, STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID |
						POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawnp(&p->pid, argv[0], &acts, &attr, (char *const *)argv,
			  environ);
	posix_spawn_file_actions_destroy(&acts);
	posix_spawnattr_destroy(&attr);
	if (rc)
		p->pid = 0;
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

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int process_start(struct process *p, const char *const argv[], struct err *err)
{
	int io[2] = { -1, -1 }, errs[2] = { -1, -1 }, rc = 0;

	*p = (struct process) { .fd = -1, .fd_err = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) ||
	    pipe2(errs, O_CLOEXEC))
		rc = -errno;
	io[1] = above_stdio(io[1]);
	errs[1] = above_stdio(errs[1]);
	p->fd = io[0];
	p->fd_err = errs[0];
	if (!rc && fcntl(p->fd_err, F_SETFL, O_NONBLOCK))
		rc = -errno;
	if (!rc)
		rc = spawn(p, argv, io[1], errs[1]);
	fd_close(&io[1]);
	fd_close(&errs[1]);
	if (!rc)
		return 0;
	process_end(p, 0);
	return err_set(err, rc, "%s: cannot start: %s", argv[0], strerror(-rc));
}

/* ---- using it ----------------------------------------------------------- */

int process_poll(const struct process *p, bool out, struct pollfd *fd,
		 int *timeout_ms)
{
	int n = 0;

	if (p->ended_ms)
		transport_wake(transport_now_ms() + LOOK_MS, timeout_ms);
	else if (p->fd >= 0)
		fd[n++] = (struct pollfd) {
			.fd = p->fd,
			.events = (short)(out ? POLLIN | POLLOUT : POLLIN)
		};
	if (p->fd_err >= 0)
		fd[n++] = (struct pollfd) { .fd = p->fd_err, .events = POLLIN };
	return n;
}

static void said_read(struct process *p)
{
	char buf[SAID_MAX];
	ssize_t n = -1;

	/* a flood must not keep the caller here */
	for (int turns = 0; turns < 64 && p->fd_err >= 0; turns++) {
		n = read(p->fd_err, buf, sizeof(buf));
		if (n <= 0)
			break;
		said_add(&p->said, buf, (size_t)n);
	}
	if (n == 0) /* its end: poll would say so for ever */
		fd_close(&p->fd_err);
}

static bool reaped(struct process *p)
{
	pid_t pid;

	if (!p->pid)
		return true;
	pid = waitpid(p->pid, &p->status, WNOHANG);
	if (pid != p->pid)
		return pid < 0 && errno != EINTR;
	p->pid = 0;
	p->over = true;
	return true;
}

ssize_t process_read(struct process *p, void *buf, size_t len)
{
	ssize_t n = p->ended_ms ? 0 : recv(p->fd, buf, len, MSG_DONTWAIT);
	int rc = n < 0 ? -errno : 0;

	said_read(p);
	if (n > 0)
		return n;
	if (rc == -EINTR || rc == -EAGAIN)
		return -EAGAIN;
	if (!p->ended_ms)
		p->ended_ms = transport_now_ms();
	if (!reaped(p) && transport_now_ms() < p->ended_ms + STATUS_MS)
		return -EAGAIN;
	said_read(p);
	return 0;
}

ssize_t process_write(struct process *p, const void *buf, size_t len)
{
	ssize_t n = send(p->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

void process_write_end(struct process *p)
{
	shutdown(p->fd, SHUT_WR);
}

void process_shut(struct process *p)
{
	if (p->fd < 0 || p->shut_ms)
		return;
	shutdown(p->fd, SHUT_WR);
	p->shut_ms = transport_now_ms();
}

/* Of the patience, what is left since it was told to end. */
static int patience_left(const struct process *p, int patience_ms)
{
	int64_t left = p->shut_ms + patience_ms - transport_now_ms();

	return p->shut_ms && left < patience_ms ? (int)(left > 0 ? left : 0)
						: patience_ms;
}

void process_end(struct process *p, int patience_ms)
{
	struct pollfd end = { .fd = p->fd, .events = POLLRDHUP };

	patience_ms = patience_left(p, patience_ms);
	if (p->fd >= 0) {
		shutdown(p->fd, SHUT_WR);
		if (p->pid && patience_ms)
			poll(&end, 1, patience_ms);
	}
	fd_close(&p->fd);
	fd_close(&p->fd_err);
	if (!p->pid)
		return;
	kill(-p->pid, SIGKILL); /* with what it started: a ProxyCommand */
	while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	p->over = true;
}
