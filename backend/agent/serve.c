/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend/agent/vdisk_wire.h"

enum conn_state {
	CONN_ASK,   /* a request is being received */
	CONN_DATA,  /* what it writes */
	CONN_WAITS, /* for a write that it overlaps */
	CONN_FLIES, /* the device has it */
	CONN_TELLS, /* the answer is being sent */
};

struct conn {
	struct serve *serve;
	struct conn *next;
	struct watch watch;
	bool watched, gone; /* gone: freed once it does not fly */
	enum conn_state state;
	struct vdisk_wire_ask ask;
	struct vdisk_wire_told told;
	struct vdisk_wire_size size;
	size_t at; /* bytes of what is received or sent */
	void *buf; /* of the largest request yet */
	size_t room;
	uint64_t turn; /* when it began to wait */
	struct io io;
};

struct serve {
	struct bdev *bdev;
	struct reactor *reactor;
	struct watch control; /* fd -1: none */
	struct conn *conns;
	unsigned count;
	uint64_t turns;
	bool closing;
	struct task over;
	void (*closed)(void *arg);
	void *closed_arg;
	struct serve_stats stats;
};

static void io_done(struct io *io);
static void over_check(struct serve *s);

/* ---- a connection's end ------------------------------------------------- */

static void conn_unwatch(struct conn *c)
{
	if (c->watched)
		watch_remove(c->serve->reactor, &c->watch);
	c->watched = false;
}

static void conn_free(struct conn *c)
{
	struct serve *s = c->serve;
	struct conn **at = &s->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	s->count--;
	conn_unwatch(c);
	close(c->watch.fd);
	reactor_buf_free(s->reactor, c->buf, c->room);
	free(c);
	over_check(s);
}

static void conn_end(struct conn *c)
{
	conn_unwatch(c);
	c->gone = true;
	if (c->state != CONN_FLIES)
		conn_free(c);
}

/* ---- one request -------------------------------------------------------- */

static bool writes(const struct conn *c)
{
	return c->ask.op == VDISK_WIRE_WRITE || c->ask.op == VDISK_WIRE_ZERO ||
	       c->ask.op == VDISK_WIRE_TRIM;
}

static bool overlaps(const struct conn *a, const struct conn *b)
{
	return a->ask.off < b->ask.off + b->ask.len &&
	       b->ask.off < a->ask.off + a->ask.len;
}

/* Behind a write that flies, or one that waits longer than it does. */
static bool must_wait(const struct conn *c)
{
	const struct conn *o;

	if (!writes(c))
		return false;
	for (o = c->serve->conns; o; o = o->next)
		if (o != c && writes(o) && overlaps(o, c) &&
		    (o->state == CONN_FLIES ||
		     (o->state == CONN_WAITS &&
		      (c->state != CONN_WAITS || o->turn < c->turn))))
			return true;
	return false;
}

static void tell(struct conn *c, int result);

static void submit(struct conn *c)
{
	const struct bdev_limits *limits = &c->serve->bdev->limits;
	const bool zero = c->ask.op == VDISK_WIRE_ZERO;
	static const enum bdev_op ops[] = {
		[VDISK_WIRE_READ] = BDEV_READ,
		[VDISK_WIRE_WRITE] = BDEV_WRITE,
		[VDISK_WIRE_ZERO] = BDEV_WRITE,
		[VDISK_WIRE_TRIM] = BDEV_TRIM,
		[VDISK_WIRE_FLUSH] = BDEV_FLUSH,
	};

	if (zero)
		memset(c->buf, 0, c->ask.len);
	c->io = (struct io) {
		.op = ops[c->ask.op],
		.flags = c->ask.flags & VDISK_WIRE_FUA && limits->can_fua &&
					 c->ask.op != VDISK_WIRE_TRIM
				 ? BDEV_FUA
				 : 0,
		.len = c->ask.len,
		.off = c->ask.off,
		.buf = c->ask.op < VDISK_WIRE_TRIM ? c->buf : NULL,
		.done = io_done,
		.arg = c,
	};
	c->state = CONN_FLIES;
	bdev_submit(c->serve->bdev, &c->io);
}

static void start(struct conn *c)
{
	if (!must_wait(c)) {
		submit(c);
	} else {
		c->state = CONN_WAITS;
		c->turn = ++c->serve->turns;
	}
}

/* Whoever waited longest first. */
static void wake(struct serve *s)
{
	struct conn *c, *first;

	do {
		first = NULL;
		for (c = s->conns; c; c = c->next)
			if (c->state == CONN_WAITS && !must_wait(c) &&
			    (!first || c->turn < first->turn))
				first = c;
		if (first)
			submit(first);
	} while (first);
}

/* A device without FUA of its own: what was written is flushed. */
static bool flush_follows(struct conn *c, int result)
{
	struct serve *s = c->serve;

	if (result || !(c->ask.flags & VDISK_WIRE_FUA) || !writes(c) ||
	    c->io.op == BDEV_FLUSH || c->io.flags & BDEV_FUA ||
	    !s->bdev->limits.can_flush)
		return false;
	c->io = (struct io) { .op = BDEV_FLUSH, .done = io_done, .arg = c };
	bdev_submit(s->bdev, &c->io);
	return true;
}

static void count(struct conn *c, int result)
{
	struct serve_stats *st = &c->serve->stats;

	st->errors += result != 0;
	if (c->ask.op == VDISK_WIRE_READ) {
		st->reads++;
		st->read_bytes += c->ask.len;
	} else if (writes(c)) {
		st->writes++;
		st->write_bytes += c->ask.len;
	}
}

static void io_done(struct io *io)
{
	struct conn *c = io->arg;
	struct serve *s = c->serve;
	const int result = io->result;

	if (flush_follows(c, result))
		return;
	count(c, result);
	c->state = CONN_TELLS;
	if (c->gone)
		conn_free(c);
	else
		tell(c, result);
	wake(s);
}

static uint32_t most(const struct bdev_limits *l)
{
	return l->io_max_bytes < VDISK_WIRE_MAX ? l->io_max_bytes
						: VDISK_WIRE_MAX;
}

/* What a request must be; the bdev looks at it again. */
static int ask_check(const struct conn *c)
{
	const struct vdisk_wire_ask *a = &c->ask;
	const struct bdev_limits *l = &c->serve->bdev->limits;
	const bool ranged =
		a->op >= VDISK_WIRE_READ && a->op <= VDISK_WIRE_TRIM;

	if (a->magic != VDISK_WIRE_MAGIC || a->op < VDISK_WIRE_SIZE ||
	    a->op > VDISK_WIRE_FLUSH || a->flags & ~VDISK_WIRE_FUA)
		return -EPROTO;
	if (!ranged)
		return a->len || a->off ? -EPROTO : 0;
	/* a buffer is made before the device sees it */
	if (a->op != VDISK_WIRE_TRIM && a->len > most(l))
		return -EPROTO;
	if (!a->len || a->off % l->block_bytes || a->len % l->block_bytes ||
	    a->off > l->size_bytes || a->len > l->size_bytes - a->off)
		return a->op == VDISK_WIRE_WRITE ? -EPROTO : -EINVAL;
	return a->op == VDISK_WIRE_TRIM && !l->can_trim ? -EOPNOTSUPP : 0;
}

static int room(struct conn *c, size_t len)
{
	if (len <= c->room)
		return 0;
	reactor_buf_free(c->serve->reactor, c->buf, c->room);
	c->room = 0;
	c->buf = reactor_buf_alloc_raw(c->serve->reactor, len);
	if (!c->buf)
		return -ENOMEM;
	c->room = len;
	return 0;
}

/* The request is whole, without what it writes. 1: that comes next; 0: it is
 * seen to, and the connection may be gone; -EPROTO: it is none. */
static int asked(struct conn *c)
{
	int rc = ask_check(c);

	if (rc == -EPROTO)
		return rc;
	if (!rc && c->ask.op >= VDISK_WIRE_READ && c->ask.op < VDISK_WIRE_TRIM)
		rc = room(c, c->ask.len);
	/* what it writes would be taken for the next request */
	if (rc && c->ask.op == VDISK_WIRE_WRITE)
		return -EPROTO;
	c->at = 0;
	if (!rc && c->ask.op == VDISK_WIRE_WRITE) {
		c->state = CONN_DATA;
		return 1;
	}
	if (rc || c->ask.op == VDISK_WIRE_SIZE)
		tell(c, rc);
	else
		start(c);
	return 0;
}

/* ---- bytes -------------------------------------------------------------- */

/* What follows the answer's head. */
static size_t told_data(struct conn *c, void **data)
{
	if (c->told.result)
		return 0;
	if (c->ask.op == VDISK_WIRE_READ) {
		*data = c->buf;
		return c->ask.len;
	}
	*data = &c->size;
	return c->ask.op == VDISK_WIRE_SIZE ? sizeof(c->size) : 0;
}

/* 0: all is sent; -EAGAIN; or the connection is lost. */
static int answer_send(struct conn *c)
{
	for (;;) {
		void *data = NULL;
		const size_t head = sizeof(c->told);
		const size_t all = head + told_data(c, &data);
		struct iovec iov[2];
		struct msghdr m = { .msg_iov = iov };
		ssize_t n;

		if (c->at < head)
			iov[m.msg_iovlen++] =
				(struct iovec) { (char *)&c->told + c->at,
						 head - c->at };
		if (all > head) {
			const size_t off = c->at > head ? c->at - head : 0;

			iov[m.msg_iovlen++] =
				(struct iovec) { (char *)data + off,
						 all - head - off };
		}
		n = sendmsg(c->watch.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		c->at += (size_t)n;
		if (c->at == all)
			return 0;
	}
}

static void tells(struct conn *c)
{
	const int rc = answer_send(c);
	const uint32_t want = rc ? EPOLLOUT : EPOLLIN;

	if (rc && rc != -EAGAIN) {
		conn_end(c);
		return;
	}
	if (!rc) {
		c->state = CONN_ASK;
		c->at = 0;
	}
	if (c->watch.events != want)
		watch_modify(c->serve->reactor, &c->watch, want);
}

static void tell(struct conn *c, int result)
{
	const struct bdev_limits *l = &c->serve->bdev->limits;

	c->told = (struct vdisk_wire_told) { VDISK_WIRE_MAGIC, result };
	c->size = (struct vdisk_wire_size) { l->size_bytes, l->block_bytes,
					     most(l), l->can_trim, 0 };
	c->state = CONN_TELLS;
	c->at = 0;
	tells(c);
}

/* 0: `len` bytes stand at `to`; -EAGAIN; or the connection is lost. */
static int receive(struct conn *c, void *to, size_t len)
{
	while (c->at < len) {
		ssize_t n = recv(c->watch.fd, (char *)to + c->at, len - c->at,
				 MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		c->at += (size_t)n;
	}
	return 0;
}

static void hears(struct conn *c)
{
	int rc = 0;

	if (c->state == CONN_ASK) {
		rc = receive(c, &c->ask, sizeof(c->ask));
		if (!rc)
			rc = asked(c);
		else if (rc == -EAGAIN)
			return;
		if (!rc)
			return;
	}
	/* mostly it has come with the request */
	if (rc >= 0) {
		rc = receive(c, c->buf, c->ask.len);
		if (!rc)
			start(c);
	}
	if (rc && rc != -EAGAIN)
		conn_end(c);
}

static void conn_ready(struct watch *watch, uint32_t events)
{
	struct conn *c = container_of(watch, struct conn, watch);

	(void)events;
	if (c->state == CONN_TELLS)
		tells(c);
	else if (c->state == CONN_ASK || c->state == CONN_DATA)
		hears(c);
	else /* it has ended, or does not wait for its answer */
		conn_end(c);
}

/* ---- connections -------------------------------------------------------- */

int serve_connect(struct serve *s)
{
	struct conn *c;
	int fd[2], rc;

	if (s->closing || s->count >= VDISK_WIRE_CONNS)
		return -EBUSY;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -errno;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->serve = s;
		c->watch = (struct watch) { .fd = fd[0],
					    .events = EPOLLIN,
					    .fn = conn_ready };
	}
	rc = c ? watch_add(s->reactor, &c->watch) : -ENOMEM;
	if (rc) {
		free(c);
		close(fd[0]);
		close(fd[1]);
		return rc;
	}
	c->watched = true;
	c->next = s->conns;
	s->conns = c;
	s->count++;
	return fd[1];
}

static void control_close(struct serve *s)
{
	if (s->control.fd < 0)
		return;
	watch_remove(s->reactor, &s->control);
	close(s->control.fd);
	s->control.fd = -1;
}

static void conns_end(struct serve *s)
{
	struct conn *c, *next;

	for (c = s->conns; c; c = next) {
		next = c->next;
		if (!c->gone)
			conn_end(c);
	}
}

/* A byte, with the new end beside it if there is one. */
static bool fd_send(int to, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { "c", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static void control_ready(struct watch *watch, uint32_t events)
{
	struct serve *s = container_of(watch, struct serve, control);
	bool ok;
	char byte;
	int fd;

	(void)events;
	if (recv(watch->fd, &byte, 1, MSG_DONTWAIT) != 1) {
		control_close(s);
		return;
	}
	fd = serve_connect(s);
	ok = fd_send(watch->fd, fd);
	if (fd >= 0)
		close(fd);
	if (!ok)
		control_close(s);
}

int serve_control(struct serve *s)
{
	int fd[2], rc;

	if (s->closing)
		return -ESHUTDOWN;
	control_close(s);
	conns_end(s);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -errno;
	s->control = (struct watch) { .fd = fd[0],
				      .events = EPOLLIN,
				      .fn = control_ready };
	rc = watch_add(s->reactor, &s->control);
	if (!rc)
		return fd[1];
	close(fd[0]);
	close(fd[1]);
	s->control.fd = -1;
	return rc;
}

/* ---- all of it ---------------------------------------------------------- */

int serve_new(struct bdev *bdev, struct serve **serve)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->bdev = bdev;
	s->reactor = bdev->reactor;
	s->control.fd = -1;
	*serve = s;
	return 0;
}

static void over(struct task *task)
{
	struct serve *s = container_of(task, struct serve, over);
	void (*closed)(void *arg) = s->closed;
	void *arg = s->closed_arg;

	free(s);
	closed(arg);
}

static void over_check(struct serve *s)
{
	if (!s->closing || s->conns || s->over.fn)
		return;
	s->over.fn = over;
	reactor_post(s->reactor, &s->over);
}

void serve_close(struct serve *s, void (*closed)(void *arg), void *arg)
{
	s->closed = closed;
	s->closed_arg = arg;
	control_close(s);
	conns_end(s);
	s->closing = true;
	over_check(s);
}

void serve_stats(const struct serve *s, struct serve_stats *stats)
{
	*stats = s->stats;
	stats->conns = s->count;
}
