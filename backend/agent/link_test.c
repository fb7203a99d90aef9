/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/link_test.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (128u * 1024)
#define PINGS 200
#define HELLO_S 2.0 /* to say who one is, to connect */
#define LEEWAY_S 3.0
#define STOP_MS 100
/* What a bucket lets through at once, and a slow start does not, is left out:
 * the first part of the time, at most this long. */
#define SKIP_NS (300 * MSEC_NS)

struct talk {
	int fd;
	const atomic_bool *stop;
	uint64_t until_ns;
	struct link_frames frames;
	uint8_t *chunk; /* of data: what is sent, what is received into */
};

struct meter {
	uint64_t skip_ns, first_ns, base_ns, last_ns, bytes, base_bytes;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SEC_NS + (uint64_t)ts.tv_nsec;
}

static uint64_t later(double seconds)
{
	return now_ns() + (uint64_t)(seconds * 1e9);
}

/* ---- bytes -------------------------------------------------------------- */

/* 0, -ETIMEDOUT, -ECANCELED. */
static int ready_wait(int fd, short events, uint64_t until_ns,
		      const atomic_bool *stop)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		const uint64_t now = now_ns();
		uint64_t ms;

		if (atomic_load(stop))
			return -ECANCELED;
		if (now >= until_ns)
			return -ETIMEDOUT;
		ms = (until_ns - now) / MSEC_NS + 1;
		if (poll(&p, 1, ms < STOP_MS ? (int)ms : STOP_MS) > 0)
			return 0;
	}
}

static int put(struct talk *t, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = send(t->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		int rc = 0;

		if (n < 0 && errno == EAGAIN)
			rc = ready_wait(t->fd, POLLOUT, t->until_ns, t->stop);
		else if (n < 0 && errno != EINTR)
			rc = -errno;
		if (rc)
			return rc;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* At least one byte, or a negative errno; -ECONNRESET at its end. */
static ssize_t get(struct talk *t, void *buf, size_t len)
{
	for (;;) {
		ssize_t n = recv(t->fd, buf, len, MSG_DONTWAIT);
		int rc = 0;

		if (n > 0)
			return n;
		if (n == 0)
			return -ECONNRESET;
		if (errno == EAGAIN)
			rc = ready_wait(t->fd, POLLIN, t->until_ns, t->stop);
		else if (errno != EINTR)
			rc = -errno;
		if (rc)
			return rc;
	}
}

static int get_all(struct talk *t, void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		ssize_t n = get(t, at, len);

		if (n < 0)
			return (int)n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static void head_make(uint8_t head[LINK_HEAD_BYTES], enum link_type type,
		      uint32_t len)
{
	head[0] = (uint8_t)type;
	for (int k = 0; k < 4; k++)
		head[1 + k] = (uint8_t)(len >> (24 - 8 * k));
}

static int frame_put(struct talk *t, enum link_type type, const void *body,
		     uint32_t len)
{
	uint8_t bytes[LINK_HEAD_BYTES + LINK_SMALL_MAX];

	head_make(bytes, type, len);
	if (len)
		memcpy(bytes + LINK_HEAD_BYTES, body, len);
	return put(t, bytes, LINK_HEAD_BYTES + len);
}

static void wide_make(uint8_t *at, uint64_t v)
{
	for (int k = 0; k < 8; k++)
		at[k] = (uint8_t)(v >> (56 - 8 * k));
}

static uint64_t wide_read(const uint8_t *at)
{
	uint64_t v = 0;

	for (int k = 0; k < 8; k++)
		v = v << 8 | at[k];
	return v;
}

/* ---- both sides --------------------------------------------------------- */

static void meter_add(struct meter *m, uint64_t bytes)
{
	m->last_ns = now_ns();
	m->first_ns = m->first_ns ? m->first_ns : m->last_ns;
	m->bytes += bytes;
	if (!m->base_ns && m->last_ns - m->first_ns >= m->skip_ns) {
		m->base_ns = m->last_ns;
		m->base_bytes = m->bytes;
	}
}

/* Data for as long, then its end. */
static int data_send(struct talk *t, double seconds)
{
	const uint64_t until = later(seconds);
	int rc = 0;

	head_make(t->chunk, LINK_DATA, CHUNK - LINK_HEAD_BYTES);
	while (!rc && now_ns() < until)
		rc = put(t, t->chunk, CHUNK);
	return rc ? rc : frame_put(t, LINK_END, NULL, 0);
}

/* Reads on until frame() stops it. */
static int frames_get(struct talk *t,
		      bool (*frame)(enum link_type type, const uint8_t *body,
				    uint32_t len, void *arg),
		      void *arg, const bool *over)
{
	/* the one who speaks waits for each answer: nothing comes behind it */
	while (!*over) {
		const ssize_t n = get(t, t->chunk, CHUNK);
		const ssize_t took =
			n < 0 ? n
			      : link_frames_feed(&t->frames, t->chunk,
						 (size_t)n, frame, arg);

		if (took < 0)
			return (int)took;
		if (took < n)
			return -EPROTO;
	}
	return 0;
}

static int talk_open(struct talk *t, int fd, const atomic_bool *stop,
		     uint64_t until_ns)
{
	const int one = 1;

	*t = (struct talk) { .fd = fd, .stop = stop, .until_ns = until_ns };
	t->chunk = calloc(1, CHUNK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return t->chunk ? 0 : -ENOMEM;
}

static void talk_close(struct talk *t)
{
	free(t->chunk);
	close(t->fd);
}

static uint64_t skip_of(double seconds)
{
	const uint64_t quarter = (uint64_t)(seconds * 1e9 / 4);

	return quarter < SKIP_NS ? quarter : SKIP_NS;
}

/* ---- listens ------------------------------------------------------------ */

struct serve {
	struct talk talk;
	struct meter meter;
	double seconds;
	bool over;
	int rc;
};

static int report(struct serve *s)
{
	const struct meter *m = &s->meter;
	const bool some = m->base_ns && m->last_ns > m->base_ns;
	uint8_t body[16];

	wide_make(body, m->bytes - (some ? m->base_bytes : 0));
	wide_make(body + 8, m->last_ns - (some ? m->base_ns : m->first_ns));
	s->meter = (struct meter) { .skip_ns = skip_of(s->seconds) };
	return frame_put(&s->talk, LINK_REPORT, body, sizeof(body));
}

static bool on_serve(enum link_type type, const uint8_t *body, uint32_t len,
		     void *arg)
{
	struct serve *s = arg;
	uint8_t copy[LINK_SMALL_MAX];

	switch (type) {
	case LINK_DATA:
		meter_add(&s->meter, len);
		break;
	case LINK_PING:
		memcpy(copy, body, len);
		s->rc = frame_put(&s->talk, LINK_PING, copy, len);
		break;
	case LINK_END:
		s->rc = report(s);
		break;
	case LINK_SEND:
		s->rc = data_send(&s->talk, s->seconds / 2);
		break;
	case LINK_REPORT:
		s->rc = -EPROTO;
		break;
	}
	s->over = s->rc != 0;
	return !s->over;
}

/* True: it was the one who knows the token. */
static bool serve_one(int fd, const char *token, double seconds,
		      const atomic_bool *stop)
{
	uint8_t hello[LINK_HELLO_BYTES];
	struct serve s = { .seconds = seconds };
	bool known;

	s.meter.skip_ns = skip_of(seconds / 2);
	known = !talk_open(&s.talk, fd, stop, later(HELLO_S)) &&
		!get_all(&s.talk, hello, sizeof(hello)) &&
		link_hello_right(hello, token);
	if (known) {
		s.talk.until_ns = later(seconds + LEEWAY_S);
		if (!put(&s.talk, "+", 1))
			frames_get(&s.talk, on_serve, &s, &s.over);
	}
	talk_close(&s.talk);
	return known;
}

void link_serve(int fd, const char *token, double seconds,
		const atomic_bool *stop)
{
	const uint64_t until = later(seconds + LEEWAY_S);
	bool served = false;

	while (!served && !ready_wait(fd, POLLIN, until, stop)) {
		const int one =
			accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		served = one >= 0 && serve_one(one, token, seconds, stop);
	}
	close(fd);
}

static int address_read(const char *address, int port,
			struct sockaddr_storage *to, socklen_t *len,
			struct err *err)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	};
	struct addrinfo *list = NULL;
	char service[16];

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(*address ? address : "0.0.0.0", service, &hints,
			&list) ||
	    !list)
		return err_set(err, -EINVAL, "\"%.64s\" is no numeric address",
			       address);
	memcpy(to, list->ai_addr, list->ai_addrlen);
	*len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static int port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len))
		return -errno;
	return ntohs(at.ss_family == AF_INET6
			     ? ((struct sockaddr_in6 *)&at)->sin6_port
			     : ((struct sockaddr_in *)&at)->sin_port);
}

static int port_listen(const char *address, int port, struct err *err)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	int rc = address_read(address, port, &at, &len, err), fd, one = 1;

	if (rc)
		return rc;
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return err_set(err, -errno, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (struct sockaddr *)&at, len) && !listen(fd, 4))
		return fd;
	rc = err_set(err, -errno, "%s port %d: %s", address, port,
		     strerror(errno));
	close(fd);
	return rc;
}

int link_open(const char *address, int from, int to, int *port, struct err *err)
{
	int fd = -EADDRINUSE;

	for (*port = from; fd == -EADDRINUSE && *port <= to; (*port)++)
		fd = port_listen(address, *port, err);
	if (fd < 0)
		return fd;
	*port = port_of(fd);
	return fd;
}

/* ---- measures ----------------------------------------------------------- */

struct measure {
	struct talk talk;
	struct meter meter;
	enum link_type await; /* what ends a wait */
	double rate_bytes_s;
	bool over;
};

static bool on_measure(enum link_type type, const uint8_t *body, uint32_t len,
		       void *arg)
{
	struct measure *m = arg;
	uint64_t ns;

	if (type == LINK_DATA && m->await == LINK_END) {
		meter_add(&m->meter, len);
		return true;
	}
	if (type != m->await)
		return false;
	if (type == LINK_REPORT && len == 16) {
		ns = wide_read(body + 8);
		m->rate_bytes_s =
			ns ? (double)wide_read(body) * 1e9 / (double)ns : 0;
	}
	m->over = true;
	return true;
}

static int await(struct measure *m, enum link_type type)
{
	m->await = type;
	m->over = false;
	return frames_get(&m->talk, on_measure, m, &m->over);
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int round_trips(struct measure *m, double seconds,
		       struct link_figures *figures)
{
	const uint64_t until = later(seconds);
	double us[PINGS];
	int n = 0, rc = 0;

	while (n < PINGS && (!n || now_ns() < until)) {
		const uint64_t sent = now_ns();

		rc = frame_put(&m->talk, LINK_PING, "ping", 4);
		if (!rc)
			rc = await(m, LINK_PING);
		if (rc)
			return rc;
		us[n++] = (double)(now_ns() - sent) / 1e3;
	}
	qsort(us, (size_t)n, sizeof(*us), by_size);
	figures->rtt_min_us = us[0];
	figures->rtt_median_us = us[n / 2];
	figures->round_trips = n;
	return 0;
}

static int rates(struct measure *m, double seconds,
		 struct link_figures *figures)
{
	struct meter *in = &m->meter;
	uint64_t base;
	int rc = data_send(&m->talk, seconds / 2);

	if (!rc)
		rc = await(m, LINK_REPORT);
	figures->out_bytes_s = m->rate_bytes_s;
	*in = (struct meter) { .skip_ns = skip_of(seconds / 2) };
	if (!rc)
		rc = frame_put(&m->talk, LINK_SEND, NULL, 0);
	if (!rc)
		rc = await(m, LINK_END);
	if (rc)
		return rc;
	base = in->base_ns ? in->base_ns : in->first_ns;
	if (in->last_ns > base)
		figures->in_bytes_s =
			(double)(in->bytes -
				 (in->base_ns ? in->base_bytes : 0)) *
			1e9 / (double)(in->last_ns - base);
	return 0;
}

static int reach(const char *address, int port, const atomic_bool *stop,
		 int *fd, struct err *err)
{
	struct sockaddr_storage at;
	socklen_t len = 0, size = sizeof(int);
	int rc = address_read(address, port, &at, &len, err), failed = 0;

	if (rc)
		return rc;
	*fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		     0);
	if (*fd < 0)
		return err_set(err, -errno, "socket: %s", strerror(errno));
	rc = connect(*fd, (struct sockaddr *)&at, len) ? -errno : 0;
	if (rc == -EINPROGRESS) {
		rc = ready_wait(*fd, POLLOUT, later(HELLO_S), stop);
		if (!rc &&
		    !getsockopt(*fd, SOL_SOCKET, SO_ERROR, &failed, &size))
			rc = -failed;
	}
	if (rc) {
		close(*fd);
		err_set(err, rc,
			"%s port %d: %s; is TCP let through between the nodes?",
			address, port, strerror(-rc));
	}
	return rc;
}

int link_measure(const char *address, int port, const char *token,
		 double seconds, const atomic_bool *stop,
		 struct link_figures *figures, struct err *err)
{
	uint8_t hello[LINK_HELLO_BYTES], yes = 0;
	struct measure m = { 0 };
	int fd = -1, rc = reach(address, port, stop, &fd, err);

	*figures = (struct link_figures) { 0 };
	if (rc)
		return rc;
	link_hello(hello, token);
	rc = talk_open(&m.talk, fd, stop, later(seconds + LEEWAY_S));
	if (!rc)
		rc = put(&m.talk, hello, sizeof(hello));
	if (!rc)
		rc = get_all(&m.talk, &yes, 1);
	if (!rc && yes != '+')
		rc = -EPROTO;
	if (!rc)
		rc = round_trips(&m, seconds / 5, figures);
	if (!rc)
		rc = rates(&m, seconds * 4 / 5, figures);
	talk_close(&m.talk);
	return rc ? err_set(err, rc, "%s port %d: %s", address, port,
			    yes == '+' ? strerror(-rc)
				       : "is no agent that waits for us")
		  : 0;
}
