/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libnbd's handle between the reactor and the nbd bdev. Which way it waits is
 * asked again after each of its calls. Its callbacks run with the handle
 * locked, so they only note what they say.
 *
 * On its end libnbd closes its descriptor by itself; the reactor watches a
 * copy, which is ours to take out of its set.
 */
#include "engine/bdev/nbd_conn.h"

#include <fcntl.h>
#include <libnbd.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* Key files are read by path only: this one is never in a directory. */
static int key_file(const struct bdev_nbd_target *target, struct err *err)
{
	const int fd = memfd_create("iodeck-key", MFD_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%s:%s\n", nbd_conn_identity(target),
			      target->key) < 0) {
		const int rc = -errno;

		if (fd >= 0)
			close(fd);
		return err_set(err, rc, "NBD: no memory for a key: %s",
			       strerror(-rc));
	}
	return fd;
}

/* ---- a connection ------------------------------------------------------- */

struct nbd_conn {
	struct reactor *r;
	struct nbd_handle *h;
	struct watch watch; /* fd: a copy of libnbd's; -1: none */
	struct task soon;
	void (*event)(void *arg);
	void *arg;
	int key_fd;
	enum nbd_conn_state state;
	bool posted, freed, tls, bye;
	struct nbd_conn_cmd *answered, **answered_end;
	char why[256];
};

bool nbd_conn_can(void)
{
	return true;
}

/* "nbd_aio_notify_read: recv: ..." means nothing to anybody. */
static void why_take(struct nbd_conn *c)
{
	const char *text = nbd_get_error(), *colon;

	if (*c->why)
		return;
	text = text ? text : "the connection ended";
	colon = !strncmp(text, "nbd_", 4) ? strstr(text, ": ") : NULL;
	snprintf(c->why, sizeof(c->why), "%s", colon ? colon + 2 : text);
}

static void watch_drop(struct nbd_conn *c)
{
	if (c->watch.fd < 0)
		return;
	watch_remove(c->r, &c->watch);
	close(c->watch.fd);
	c->watch.fd = -1;
}

static void run_soon(struct task *task)
{
	struct nbd_conn *c = container_of(task, struct nbd_conn, soon);

	c->posted = false;
	if (c->freed)
		free(c);
	else
		c->event(c->arg);
}

static void event_soon(struct nbd_conn *c)
{
	if (c->posted)
		return;
	c->posted = true;
	reactor_post(c->r, &c->soon);
}

static uint32_t events_wanted(const struct nbd_conn *c)
{
	const unsigned dir = nbd_aio_get_direction(c->h);

	return (dir & LIBNBD_AIO_DIRECTION_READ ? EPOLLIN : 0) |
	       (dir & LIBNBD_AIO_DIRECTION_WRITE ? EPOLLOUT : 0);
}

/* After each call of libnbd. True: its end is news. */
static bool look(struct nbd_conn *c)
{
	uint32_t events;

	if (c->state == NBD_CONN_OVER)
		return false;
	if (nbd_aio_is_dead(c->h) > 0 || nbd_aio_is_closed(c->h) > 0) {
		c->state = NBD_CONN_OVER;
		if (!c->bye)
			why_take(c);
		watch_drop(c);
		return true;
	}
	events = events_wanted(c);
	if (events != c->watch.events)
		watch_modify(c->r, &c->watch, events);
	if (c->state == NBD_CONN_SHAKING && nbd_aio_is_ready(c->h) > 0) {
		c->state = NBD_CONN_READY;
		return true;
	}
	return false;
}

static void told(struct nbd_conn *c, int rc)
{
	if (rc < 0 && (nbd_aio_is_dead(c->h) > 0) && !c->bye)
		why_take(c);
}

static void on_watch(struct watch *watch, uint32_t events)
{
	struct nbd_conn *c = container_of(watch, struct nbd_conn, watch);
	const uint32_t bad = EPOLLHUP | EPOLLERR;

	if (events & (EPOLLIN | bad) &&
	    nbd_aio_get_direction(c->h) & LIBNBD_AIO_DIRECTION_READ)
		told(c, nbd_aio_notify_read(c->h));
	if (events & (EPOLLOUT | bad) &&
	    nbd_aio_get_direction(c->h) & LIBNBD_AIO_DIRECTION_WRITE)
		told(c, nbd_aio_notify_write(c->h));
	if (look(c) || c->answered)
		c->event(c->arg);
}

/* ---- commands ----------------------------------------------------------- */

static void give_back(struct nbd_conn *c, struct nbd_conn_cmd *cmd, int error)
{
	cmd->given = true;
	cmd->error = error;
	cmd->next = NULL;
	*c->answered_end = cmd;
	c->answered_end = &cmd->next;
}

static int on_answer(void *arg, int *error)
{
	struct nbd_conn_cmd *cmd = arg;

	if (!cmd->conn->freed)
		give_back(cmd->conn, cmd, *error);
	return 1;
}

static int64_t issue(struct nbd_conn *c, struct nbd_conn_cmd *cmd)
{
	const nbd_completion_callback done = { .callback = on_answer,
					       .user_data = cmd };
	const uint32_t fua = cmd->fua ? LIBNBD_CMD_FLAG_FUA : 0;

	switch (cmd->op) {
	case NBD_CONN_READ:
		return nbd_aio_pread(c->h, cmd->buf, cmd->len, cmd->off, done,
				     0);
	case NBD_CONN_WRITE:
		return nbd_aio_pwrite(c->h, cmd->buf, cmd->len, cmd->off, done,
				      fua);
	case NBD_CONN_FLUSH:
		return nbd_aio_flush(c->h, done, 0);
	case NBD_CONN_TRIM:
		return nbd_aio_trim(c->h, cmd->len, cmd->off, done, 0);
	default:
		return nbd_aio_zero(c->h, cmd->len, cmd->off, done, 0);
	}
}

void nbd_conn_send(struct nbd_conn *c, struct nbd_conn_cmd *cmd)
{
	cmd->conn = c;
	cmd->given = false;
	if (c->state != NBD_CONN_READY) {
		give_back(c, cmd, ENOTCONN);
		event_soon(c);
		return;
	}
	if (issue(c, cmd) < 0 && !cmd->given) {
		const int error = nbd_get_errno();

		give_back(c, cmd,
			  nbd_aio_is_ready(c->h) > 0 ||
					  nbd_aio_is_processing(c->h) > 0
				  ? (error ? error : EIO)
				  : ENOTCONN);
	}
	if (look(c) || c->answered)
		event_soon(c);
}

struct nbd_conn_cmd *nbd_conn_answered(struct nbd_conn *c)
{
	struct nbd_conn_cmd *list = c->answered;

	c->answered = NULL;
	c->answered_end = &c->answered;
	return list;
}

void nbd_conn_bye(struct nbd_conn *c)
{
	c->bye = true;
	told(c, nbd_aio_disconnect(c->h, 0));
	if (look(c))
		event_soon(c);
}

/* ---- what it is --------------------------------------------------------- */

enum nbd_conn_state nbd_conn_state(const struct nbd_conn *c)
{
	return c->state;
}

const char *nbd_conn_why(const struct nbd_conn *c)
{
	return c->why;
}

/* Longest without knowing better: what every server takes. */
#define REQUEST_MAX (32u * 1024 * 1024)

void nbd_conn_facts(const struct nbd_conn *c, struct nbd_conn_facts *facts)
{
	const int64_t size = nbd_get_size(c->h);
	const int64_t min = nbd_get_block_size(c->h, LIBNBD_SIZE_MINIMUM);
	const int64_t max = nbd_get_block_size(c->h, LIBNBD_SIZE_MAXIMUM);

	*facts = (struct nbd_conn_facts) {
		.size_bytes = size > 0 ? (uint64_t)size : 0,
		.block_min = min > 0 ? (uint32_t)min : 1,
		.request_max = max > 0 && max < REQUEST_MAX ? (uint32_t)max
							    : REQUEST_MAX,
		.read_only = nbd_is_read_only(c->h) != 0,
		.can_flush = nbd_can_flush(c->h) > 0,
		.can_fua = nbd_can_fua(c->h) > 0,
		.can_trim = nbd_can_trim(c->h) > 0,
		.can_zero = nbd_can_zero(c->h) > 0,
		.tls = c->tls,
	};
}

/* ---- life --------------------------------------------------------------- */

static int tls_set(struct nbd_conn *c, const struct bdev_nbd_target *target,
		   struct err *err)
{
	char path[48];

	if (!target->key)
		return nbd_set_tls(c->h, LIBNBD_TLS_DISABLE);
	c->key_fd = key_file(target, err);
	if (c->key_fd < 0)
		return -1;
	c->tls = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->key_fd);
#ifdef LIBNBD_HAVE_NBD_SET_TLS_PRIORITY
	if (nbd_set_tls_priority(c->h, target->priority
					       ? target->priority
					       : "NORMAL:-CHACHA20-POLY1305"))
		return -1;
#endif
	return nbd_set_tls(c->h, LIBNBD_TLS_REQUIRE) ||
			       nbd_set_tls_psk_file(c->h, path) ||
			       nbd_set_tls_username(c->h,
						    nbd_conn_identity(target))
		       ? -1
		       : 0;
}

/* A dead link is noticed, also while nothing is asked. */
static void socket_set(int fd)
{
	const int on = 1, idle_s = 5, every_s = 2, times = 3, user_ms = 10000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms,
		   sizeof(user_ms));
}

static int watch_start(struct nbd_conn *c)
{
	const int fd = nbd_aio_get_fd(c->h);

	c->watch.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (c->watch.fd < 0)
		return -1;
	c->watch.events = events_wanted(c);
	if (!watch_add(c->r, &c->watch))
		return 0;
	close(c->watch.fd);
	c->watch.fd = -1;
	return -1;
}

static int connect_start(struct nbd_conn *c,
			 const struct bdev_nbd_target *target, struct err *err)
{
	const char *name = target->export_name ? target->export_name : "";
	union nbd_conn_address at;
	socklen_t len = 0;
	int rc = nbd_conn_address(target, &at, &len, err);

	if (rc)
		return rc;
	c->h = nbd_create();
	if (!c->h || nbd_set_export_name(c->h, name) || tls_set(c, target, err))
		return -1;
	/* simple replies are all that is needed, and less to get wrong */
	if (nbd_set_request_structured_replies(c->h, false) ||
	    nbd_set_pread_initialize(c->h, false) ||
	    nbd_aio_connect(c->h, &at.any, len) || watch_start(c))
		return -1;
	if (at.any.sa_family != AF_UNIX)
		socket_set(c->watch.fd);
	return 0;
}

int nbd_conn_new(struct reactor *r, const struct bdev_nbd_target *target,
		 void (*event)(void *arg), void *arg, struct nbd_conn **conn,
		 struct err *err)
{
	struct nbd_conn *c = calloc(1, sizeof(*c));
	struct err why = { 0 };
	int rc;

	if (!c)
		return err_set(err, -ENOMEM, "NBD: no memory");
	*c = (struct nbd_conn) { .r = r,
				 .watch = { .fd = -1, .fn = on_watch },
				 .soon.fn = run_soon,
				 .event = event,
				 .arg = arg,
				 .key_fd = -1 };
	c->answered_end = &c->answered;
	rc = connect_start(c, target, &why);
	if (!rc) {
		if (look(c))
			event_soon(c);
		*conn = c;
		return 0;
	}
	if (!why.code)
		why_take(c);
	rc = err_set(err, -ECONNREFUSED, "%s", why.code ? why.text : c->why);
	nbd_conn_free(c);
	return rc;
}

void nbd_conn_free(struct nbd_conn *c)
{
	if (!c)
		return;
	c->freed = true;
	watch_drop(c);
	nbd_close(c->h);
	c->h = NULL;
	if (c->key_fd >= 0)
		close(c->key_fd);
	if (!c->posted)
		free(c);
}
