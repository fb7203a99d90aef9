/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/nbdkit.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/agent/tools.h"
#include "backend/event.h"

#define LOOK_NS (10 * MSEC_NS) /* for its pid file */
#define START_NS (10 * SEC_NS) /* it may take to listen */
#define STAYS_NS (2 * SEC_NS)  /* up so long, it is no failure to start */
#define AGAIN_NS (50 * MSEC_NS)
#define AGAIN_MAX_NS (5 * SEC_NS)
#define TERM_NS (2 * SEC_NS)

struct nbdkit {
	struct nbdkit_opts opts;
	enum nbdkit_state state;
	char *words[NBDKIT_WORDS];
	char *pidfile;
	struct tool tool;
	pid_t pid;             /* 0: none */
	struct watch end, out; /* its pidfd; what it prints. fd -1: none */
	struct timer timer;
	uint64_t began_ns, again_ns;
	unsigned starts;
	bool was_up;
	char said[200];
	struct task over;
	void (*done)(void *arg);
	void *done_arg;
};

static void state_tell(struct nbdkit *n, enum nbdkit_state state)
{
	n->state = state;
	n->opts.changed(n->opts.arg);
}

static void timer_in(struct nbdkit *n, uint64_t ns)
{
	timer_arm(n->opts.reactor, &n->timer,
		  reactor_now(n->opts.reactor) + ns);
}

static void watch_end(struct nbdkit *n, struct watch *w)
{
	if (w->fd < 0)
		return;
	watch_remove(n->opts.reactor, w);
	close(w->fd);
	w->fd = -1;
}

/* ---- what it says ------------------------------------------------------- */

/* The last line that is not empty. */
static void said_take(struct nbdkit *n, char *text)
{
	char *line = text + strlen(text);

	while (line > text && line[-1] == '\n')
		*--line = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (*line)
		event_text(n->said, sizeof(n->said), line);
}

static void out_ready(struct watch *watch, uint32_t events)
{
	struct nbdkit *n = container_of(watch, struct nbdkit, out);
	char text[4096];
	ssize_t got = read(watch->fd, text, sizeof(text) - 1);

	(void)events;
	if (got > 0) {
		text[got] = '\0';
		said_take(n, text);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		watch_end(n, &n->out);
	}
}

/* ---- its end ------------------------------------------------------------ */

static void over(struct task *task)
{
	struct nbdkit *n = container_of(task, struct nbdkit, over);
	void (*done)(void *arg) = n->done;
	void *arg = n->done_arg;

	for (int k = 0; k < NBDKIT_WORDS; k++)
		free(n->words[k]);
	free(n->pidfile);
	free(n);
	done(arg);
}

static void over_post(struct nbdkit *n)
{
	timer_cancel(n->opts.reactor, &n->timer);
	n->over.fn = over;
	reactor_post(n->opts.reactor, &n->over);
}

static void how_it_ended(struct nbdkit *n, int status)
{
	if (n->out.fd >= 0) /* its last words */
		out_ready(&n->out, 0);
	if (WIFSIGNALED(status))
		snprintf(n->said, sizeof(n->said), "it was ended by signal %d",
			 WTERMSIG(status));
	else if (!*n->said)
		snprintf(n->said, sizeof(n->said), "it ended with status %d",
			 WEXITSTATUS(status));
}

static void ended(struct nbdkit *n)
{
	const uint64_t now = reactor_now(n->opts.reactor);

	if (n->state == NBDKIT_UP && now - n->began_ns >= STAYS_NS)
		n->again_ns = AGAIN_NS;
	timer_in(n, n->again_ns);
	n->again_ns =
		n->again_ns < AGAIN_MAX_NS / 2 ? 2 * n->again_ns : AGAIN_MAX_NS;
	state_tell(n, NBDKIT_WAITS);
}

static void end_ready(struct watch *watch, uint32_t events)
{
	struct nbdkit *n = container_of(watch, struct nbdkit, end);
	int status = 0;

	(void)events;
	if (waitpid(n->pid, &status, WNOHANG) == 0)
		return;
	n->pid = 0;
	how_it_ended(n, status);
	watch_end(n, &n->end);
	watch_end(n, &n->out);
	unlink(n->pidfile);
	if (n->state == NBDKIT_ENDS)
		over_post(n);
	else
		ended(n);
}

/* ---- its beginning ------------------------------------------------------ */

static int spawn(struct nbdkit *n, int out, int fd)
{
	const char *argv[TOOL_WORDS + NBDKIT_WORDS + 8];
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none, all;
	extern char **environ;
	int at = 0, rc;

	while (at < n->tool.words) {
		argv[at] = n->tool.argv[at];
		at++;
	}
	argv[at++] = "-f";
	argv[at++] = "--exit-with-parent";
	argv[at++] = "-P";
	argv[at++] = n->pidfile;
	for (int k = 0; n->words[k]; k++)
		argv[at++] = n->words[k];
	argv[at] = NULL;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&acts, out, 1);
	posix_spawn_file_actions_adddup2(&acts, out, 2);
	if (fd >= 0)
		posix_spawn_file_actions_adddup2(&acts, fd, NBDKIT_FD);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID |
						POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(&n->pid, argv[0], &acts, &attr, (char *const *)argv,
			 environ);
	posix_spawn_file_actions_destroy(&acts);
	posix_spawnattr_destroy(&attr);
	if (rc)
		n->pid = 0;
	return -rc;
}

/* dup2() onto itself would leave it close-on-exec. */
static int above(int fd)
{
	int up;

	if (fd < 0 || fd > NBDKIT_FD)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, NBDKIT_FD + 1);
	close(fd);
	return up < 0 ? -errno : up;
}

static int watches_start(struct nbdkit *n, int out)
{
	int rc;

	n->out = (struct watch) { .fd = out,
				  .events = EPOLLIN,
				  .fn = out_ready };
	n->end = (struct watch) {
		.fd = (int)syscall(SYS_pidfd_open, n->pid, 0),
		.events = EPOLLIN,
		.fn = end_ready,
	};
	rc = n->end.fd < 0 ? -errno : watch_add(n->opts.reactor, &n->end);
	if (!rc && watch_add(n->opts.reactor, &n->out)) {
		close(out);
		n->out.fd = -1;
	}
	return rc;
}

/* Without a way to hear of its end it must not run. */
static void kill_now(struct nbdkit *n)
{
	kill(n->pid, SIGKILL);
	waitpid(n->pid, NULL, 0);
	n->pid = 0;
	if (n->end.fd >= 0)
		close(n->end.fd);
	if (n->out.fd >= 0)
		close(n->out.fd);
	n->end.fd = n->out.fd = -1;
}

static int start_try(struct nbdkit *n)
{
	int out[2] = { -1, -1 }, fd = -1, rc = 0;

	if (n->opts.fd) {
		fd = above(n->opts.fd(n->opts.arg));
		rc = fd < 0 ? fd : 0;
	}
	if (!rc && pipe2(out, O_CLOEXEC | O_NONBLOCK))
		rc = -errno;
	if (!rc) {
		out[1] = above(out[1]);
		rc = spawn(n, out[1], fd);
	}
	if (fd >= 0)
		close(fd);
	if (out[1] >= 0)
		close(out[1]);
	if (rc) {
		if (out[0] >= 0)
			close(out[0]);
		return rc;
	}
	rc = watches_start(n, out[0]);
	if (rc)
		kill_now(n);
	return rc;
}

static void start(struct nbdkit *n)
{
	int rc;

	n->said[0] = '\0';
	n->began_ns = reactor_now(n->opts.reactor);
	unlink(n->pidfile);
	n->starts++;
	n->state = NBDKIT_STARTS;
	rc = start_try(n);
	if (rc) {
		snprintf(n->said, sizeof(n->said), "it cannot be started: %s",
			 strerror(-rc));
		ended(n);
		return;
	}
	timer_in(n, LOOK_NS);
}

/* Its pid file has its number, and a line's end, once it listens. */
static bool listens(const struct nbdkit *n)
{
	struct stat st;

	return !stat(n->pidfile, &st) && st.st_size > 0;
}

static void on_timer(struct timer *timer)
{
	struct nbdkit *n = container_of(timer, struct nbdkit, timer);
	const uint64_t now = reactor_now(n->opts.reactor);

	if (n->state == NBDKIT_WAITS) {
		start(n);
	} else if (n->state == NBDKIT_ENDS) {
		if (n->pid)
			kill(n->pid, SIGKILL);
	} else if (listens(n)) {
		n->was_up = true;
		state_tell(n, NBDKIT_UP);
	} else if (now - n->began_ns > START_NS) {
		kill(n->pid, SIGKILL); /* and again */
	} else {
		timer_in(n, LOOK_NS);
	}
}

/* ---- from outside ------------------------------------------------------- */

static int words_copy(struct nbdkit *n, const char *const *words)
{
	int k = 0;

	for (; words[k]; k++) {
		id_assert(k < NBDKIT_WORDS - 1);
		n->words[k] = strdup(words[k]);
		if (!n->words[k])
			return -ENOMEM;
	}
	n->pidfile = strdup(n->opts.pidfile);
	return n->pidfile ? 0 : -ENOMEM;
}

int nbdkit_new(const struct nbdkit_opts *opts, struct nbdkit **nbdkit,
	       struct err *err)
{
	struct nbdkit *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return err_set(err, -ENOMEM, "nbdkit: out of memory");
	n->opts = *opts;
	n->end.fd = n->out.fd = -1;
	n->timer.fn = on_timer;
	n->again_ns = AGAIN_NS;
	rc = tool_nbdkit(&n->tool, err);
	if (!rc && words_copy(n, opts->words))
		rc = err_set(err, -ENOMEM, "nbdkit: out of memory");
	if (rc) {
		for (int k = 0; k < NBDKIT_WORDS; k++)
			free(n->words[k]);
		free(n->pidfile);
		free(n);
		return rc;
	}
	*nbdkit = n;
	n->state = NBDKIT_WAITS; /* so the caller has it when it starts */
	timer_in(n, 0);
	return 0;
}

enum nbdkit_state nbdkit_state(const struct nbdkit *n)
{
	return n->state;
}

pid_t nbdkit_pid(const struct nbdkit *n)
{
	return n->pid;
}

unsigned nbdkit_restarts(const struct nbdkit *n)
{
	return n->starts ? n->starts - 1 : 0;
}

bool nbdkit_was_up(const struct nbdkit *n)
{
	return n->was_up;
}

const char *nbdkit_said(const struct nbdkit *n)
{
	return n->said;
}

void nbdkit_stop(struct nbdkit *n, void (*done)(void *arg), void *arg)
{
	n->done = done;
	n->done_arg = arg;
	n->state = NBDKIT_ENDS;
	if (!n->pid) {
		over_post(n);
		return;
	}
	kill(n->pid, SIGTERM);
	timer_in(n, TERM_NS);
}
