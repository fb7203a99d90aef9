/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/agent/place.h"

/* ---- finding or starting the daemon ------------------------------------- */

/* The command detaches and ends when its daemon listens or could not; what it
 * has to say it says on stderr, which is ours. */
static int spawn(char *const argv[])
{
	int status = 0, null;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static bool no_daemon(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED;
}

/* Another console may have started one at the same moment: as long as the lock
 * is held, somebody is about to listen. */
static int connect_patiently(struct place *place)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	int rc = place_connect(place);

	for (int tries = 0; no_daemon(rc) && tries < 250; tries++) {
		int locked = place_lock(place, NULL);

		if (place->lockfd >= 0)
			close(place->lockfd);
		place->lockfd = -1;
		if (locked != -EBUSY)
			break;
		nanosleep(&nap, NULL);
		rc = place_connect(place);
	}
	return rc;
}

static int daemon_reach(struct place *place, const struct attach_opts *opts,
			struct err *err)
{
	int rc = place_connect(place);

	if (no_daemon(rc) && opts->spawn) {
		rc = spawn(opts->spawn);
		if (rc && rc != -ECHILD)
			return err_set(err, rc, "cannot start a process: %s",
				       strerror(-rc));
		rc = connect_patiently(place);
		if (no_daemon(rc))
			return err_set(err, rc, "agent %s did not start",
				       opts->name);
	}
	if (no_daemon(rc))
		return err_set(err, rc, "there is no agent %s in %s",
			       opts->name, opts->state_dir);
	if (rc < 0)
		return err_set(err, rc, "agent %s: %s", opts->name,
			       strerror(-rc));
	return rc;
}

/* ---- joining ------------------------------------------------------------ */

struct pipe_way {
	int from, to;
	char buf[64 * 1024];
	size_t at, len;
	bool over; /* nothing more will come or can go */
};

static void way_read(struct pipe_way *w)
{
	ssize_t n = read(w->from, w->buf, sizeof(w->buf));

	if (n > 0) {
		w->at = 0;
		w->len = (size_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		w->over = true;
	}
}

static void way_write(struct pipe_way *w)
{
	ssize_t n = write(w->to, w->buf + w->at, w->len);

	if (n >= 0) {
		w->at += (size_t)n;
		w->len -= (size_t)n;
	} else if (errno != EAGAIN && errno != EINTR) {
		w->len = 0;
		w->over = true;
	}
}

static void way_poll(const struct pipe_way *w, struct pollfd *p)
{
	p->fd = w->len ? w->to : w->from;
	p->events = w->len ? POLLOUT : POLLIN;
}

static void way_turn(struct pipe_way *w, const struct pollfd *p)
{
	if (!p->revents)
		return;
	if (w->len)
		way_write(w);
	else
		way_read(w);
}

/* A terminal is shared with others, who do not expect it not to block. */
static void nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && !isatty(fd))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void join(int sock)
{
	static struct pipe_way in, out;
	struct pollfd p[2];

	in.from = STDIN_FILENO;
	in.to = out.from = sock;
	out.to = STDOUT_FILENO;
	nonblocking(STDIN_FILENO);
	nonblocking(STDOUT_FILENO);
	nonblocking(sock);
	while (!in.over && !out.over) {
		way_poll(&in, &p[0]);
		way_poll(&out, &p[1]);
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		way_turn(&in, &p[0]);
		way_turn(&out, &p[1]);
	}
}

int attach_run(const struct attach_opts *opts, struct err *err)
{
	struct place place;
	int sock, rc = place_open(opts->state_dir, opts->name, &place, err);

	if (rc)
		return rc;
	signal(SIGPIPE, SIG_IGN);
	sock = daemon_reach(&place, opts, err);
	place_close(&place);
	if (sock < 0)
		return sock;
	join(sock);
	close(sock);
	return 0;
}
