/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process of an exporter. Between vfork() and execve() it borrows our
 * memory while this thread stands still, so that a large agent need not be
 * copied for it; it only makes system calls then.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/agent/export_priv.h"

#define ENV_MAX 512

struct child {
	const char *const *argv;
	char *env[ENV_MAX];
	char listen_pid[32];
	int fd[CHILD_FDS + 1]; /* copies above what the child is to have */
	pid_t parent;
};

static bool ours(const char *entry)
{
	return !strncmp(entry, "LISTEN_", 7) ||
	       !strncmp(entry, "GNUTLS_SYSTEM_PRIORITY_FILE=", 28);
}

static void env_make(struct child *c)
{
	static char one[] = "LISTEN_FDS=1",
		    priority[] = "GNUTLS_SYSTEM_PRIORITY_FILE=/proc/self/fd/6";
	extern char **environ;
	size_t n = 0;

	for (char **at = environ; *at && n < ENV_MAX - 4; at++)
		if (!ours(*at))
			c->env[n++] = *at;
	c->env[n++] = one;
	c->env[n++] = c->listen_pid;
	c->env[n++] = priority;
	c->env[n] = NULL;
}

/* snprintf() is no system call. */
static void listen_pid_write(struct child *c, pid_t pid)
{
	char digits[16];
	size_t n = 0, at = strlen("LISTEN_PID=");

	do
		digits[n++] = (char)('0' + pid % 10);
	while ((pid /= 10) != 0);
	while (n)
		c->listen_pid[at++] = digits[--n];
	c->listen_pid[at] = '\0';
}

/*
 * nbdkit asks for a SIGTERM when its parent ends, whatever it was given before,
 * and then goes on until its client leaves: writes would land after the agent
 * that vouched for it. So that question is answered, and not passed on.
 */
static int sigkill_keep(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { array_len(filter), filter };

	return prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static _Noreturn void child_run(struct child *c)
{
	sigset_t none;

	sigemptyset(&none);
	/* after it, look: the parent may be gone already */
	if (sigkill_keep() || getppid() != c->parent)
		_exit(127);
	setsid();
	for (int fd = 0; fd < CHILD_FDS; fd++)
		if (dup2(c->fd[fd], fd) < 0)
			_exit(127);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	listen_pid_write(c, getpid());
	execve(c->argv[0], (char *const *)c->argv, c->env);
	_exit(127);
}

static int fds_take(struct child *c, const struct child_opts *o, int null)
{
	const int from[CHILD_FDS] = { null,          null,       o->err_fd,
				      o->listen_fd,  o->file_fd, o->dir_fd,
				      o->priority_fd };

	for (int k = 0; k < CHILD_FDS; k++) {
		c->fd[k] = fcntl(from[k], F_DUPFD_CLOEXEC, CHILD_FDS);
		if (c->fd[k] < 0)
			return -errno;
	}
	return 0;
}

static void fds_drop(struct child *c)
{
	for (int k = 0; k < CHILD_FDS; k++)
		if (c->fd[k] >= 0)
			close(c->fd[k]);
}

int child_start(const struct child_opts *opts, pid_t *pid)
{
	struct child *c = calloc(1, sizeof(*c));
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int rc = c && null >= 0 ? 0 : -ENOMEM;

	for (int k = 0; c && k < CHILD_FDS; k++)
		c->fd[k] = -1;
	if (!rc)
		rc = fds_take(c, opts, null);
	if (!rc) {
		c->argv = opts->argv;
		c->parent = getpid();
		strcpy(c->listen_pid, "LISTEN_PID=");
		env_make(c);
		*pid = vfork();
		if (!*pid)
			child_run(c);
		rc = *pid < 0 ? -errno : 0;
	}
	if (c)
		fds_drop(c);
	if (null >= 0)
		close(null);
	free(c);
	return rc;
}

int child_pidfd(pid_t pid)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int child_kill(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) ? -errno
								       : 0;
}

/* Field 22 of its stat: behind the name, which may have anything in it. One
 * that only waits to be reaped has ended. */
uint64_t child_began(pid_t pid)
{
	char path[40], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')');
	if (at && (!strncmp(at, ") Z", 3) || !strncmp(at, ") X", 3)))
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}
