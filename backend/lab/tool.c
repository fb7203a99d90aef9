/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Other programs as children: their argument vector is made here and no shell
 * sees it, what they print is bounded, and none outlasts its time.
 */
#include "backend/lab/lab_impl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_MS 20000
#define OUT_MAX (4 << 20)
#define WORDS 240 /* of what it says last */

/* ---- finding ------------------------------------------------------------ */

static const struct {
	const char *program, *package;
} packages[] = {
	{ "ip", "iproute2" },
	{ "tc", "iproute2" },
	{ "sshd", "openssh-server" },
	{ "ssh-keygen", "openssh-client" },
};

static bool find_in(const char *dirs, const char *program, char *buf,
		    size_t len)
{
	while (dirs && *dirs) {
		size_t n = strcspn(dirs, ":");
		int k = snprintf(buf, len, "%.*s/%s", (int)n, dirs, program);

		if (*dirs == '/' && k > 0 && (size_t)k < len &&
		    !access(buf, X_OK))
			return true;
		dirs += n + (dirs[n] == ':');
	}
	return false;
}

int lab_tool_find(const char *program, char *buf, size_t len, struct err *err)
{
	const char *package = "";
	size_t i;

	if (find_in(getenv("PATH"), program, buf, len) ||
	    find_in("/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", program,
		    buf, len))
		return 0;
	for (i = 0; i < array_len(packages); i++)
		if (!strcmp(packages[i].program, program))
			package = packages[i].package;
	return err_set(
		err, -ENOENT,
		"%s is not here, and a lab needs it: install the package "
		"%s (apt-get install %s)",
		program, package, package);
}

/* ---- running ------------------------------------------------------------ */

struct child {
	pid_t pid;
	int out, errs;
	char *text; /* of out */
	size_t len;
	char last[WORDS];
	size_t last_len;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int child_spawn(struct child *c, const char *path,
		       const char *const argv[], int out, int errs)
{
	static char *env[] = {
		(char *)"PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
		(char *)"LC_ALL=C", NULL
	};
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&acts, out, 1);
	posix_spawn_file_actions_adddup2(&acts, errs, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
						POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(&c->pid, path, &acts, &attr, (char **)argv, env);
	posix_spawn_file_actions_destroy(&acts);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* true: more may come. What is too long is read and dropped. */
static bool take(int fd, char **text, size_t *len, size_t max)
{
	char buf[16384], *more;
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	if ((size_t)n > max - *len)
		n = (ssize_t)(max - *len);
	more = realloc(*text, *len + (size_t)n + 1);
	if (more) {
		memcpy(more + *len, buf, (size_t)n);
		*len += (size_t)n;
		more[*len] = '\0';
		*text = more;
	}
	return true;
}

static bool take_last(struct child *c)
{
	char *text = NULL;
	size_t len = 0, keep;
	bool more = take(c->errs, &text, &len, 16384);

	keep = sizeof(c->last) - 1 - c->last_len;
	if (len < keep)
		keep = len;
	if (text)
		memcpy(c->last + c->last_len, text, keep);
	c->last_len += keep;
	c->last[c->last_len] = '\0';
	free(text);
	return more;
}

/* false: its time was up. */
static bool child_read(struct child *c)
{
	struct pollfd p[2] = { { .fd = c->out, .events = POLLIN },
			       { .fd = c->errs, .events = POLLIN } };
	int64_t until = now_ms() + RUN_MS, left;

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		left = until - now_ms();
		if (left <= 0)
			return false;
		if (poll(p, 2, (int)left) < 0 && errno != EINTR)
			return false;
		if (p[0].revents && !take(c->out, &c->text, &c->len, OUT_MAX))
			p[0].fd = -1;
		if (p[1].revents && !take_last(c))
			p[1].fd = -1;
	}
	return true;
}

/* One line of it, for a sentence. */
static void tidy(char *text)
{
	size_t n = strlen(text);
	char *p;

	while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
	for (p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
}

/* What a kernel or a container says, and what can be done about it. */
static const struct {
	const char *said;
	int code;
	const char *hint;
} hints[] = {
	{ "ermitted", -EPERM,
	  "; a lab needs root with leave to make namespaces and interfaces, "
	  "which some containers do not give" },
	{ "ermission denied", -EPERM,
	  "; a lab needs root with leave to make namespaces and interfaces, "
	  "which some containers do not give" },
	{ "nknown device type", -EOPNOTSUPP,
	  "; a lab needs veth and bridge of the kernel: modprobe veth bridge" },
	{ "qdisc kind is unknown", -EOPNOTSUPP,
	  "; a lab needs tbf of the kernel: modprobe sch_tbf" },
	{ "not supported", -EOPNOTSUPP,
	  "; a lab needs veth, bridge and tbf of the kernel: modprobe veth "
	  "bridge sch_tbf" },
	{ "No space left", -ENOSPC,
	  "; make room there, or say another "
	  "lab_dir" },
	{ "", -EIO, "" },
};

static int verdict(struct child *c, const char *const argv[], bool in_time,
		   struct err *err)
{
	char line[160] = "";
	size_t i, n = 0;
	int status = 0;

	if (!in_time)
		kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (in_time && WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	for (i = 0; argv[i] && n < sizeof(line); i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s",
				      i ? " " : "", argv[i]);
	tidy(c->last);
	if (!in_time)
		return err_set(err, -ETIMEDOUT, "\"%s\" took over %d s", line,
			       RUN_MS / 1000);
	for (i = 0; !strstr(c->last, hints[i].said); i++)
		;
	return err_set(err, hints[i].code, "\"%s\" failed: %s%s", line,
		       *c->last ? c->last : "without a word", hints[i].hint);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int lab_tool_run(const char *const argv[], char **out, struct err *err)
{
	struct child c = { .out = -1, .errs = -1 };
	int o[2] = { -1, -1 }, e[2] = { -1, -1 }, r;
	char path[PATH_MAX];

	r = lab_tool_find(argv[0], path, sizeof(path), err);
	if (r)
		return r;
	if (pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC)) {
		r = err_set(err, -errno, "%s: %s", argv[0], strerror(errno));
		goto out;
	}
	r = child_spawn(&c, path, argv, o[1], e[1]);
	if (r) {
		err_set(err, r, "%s: cannot start: %s", path, strerror(-r));
		goto out;
	}
	close_fd(&o[1]);
	close_fd(&e[1]);
	c.out = o[0];
	c.errs = e[0];
	r = verdict(&c, argv, child_read(&c), err);
	if (!r && out) {
		*out = c.text ? c.text : strdup("");
		c.text = NULL;
		if (!*out)
			r = err_set(err, -ENOMEM, "out of memory");
	}
out:
	close_fd(&o[0]);
	close_fd(&o[1]);
	close_fd(&e[0]);
	close_fd(&e[1]);
	free(c.text);
	return r;
}
