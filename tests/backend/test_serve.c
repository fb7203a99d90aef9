/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A device served to sockets: what is asked is done, requests that are none
 * end their connection, overlapping writes keep their order, and after the
 * close nothing flies.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/agent/serve.h"
#include "backend/agent/vdisk_wire.h"
#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"

#define SIZE (4 * MIB)

struct rig {
	struct reactor *reactor;
	struct bdev *bdev;
	struct serve *serve;
	bool closed;
};

static int rig_make(void **state, uint64_t delay_ns)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS,
					   .workers = 1 };
	struct rig *r = calloc(1, sizeof(*r));
	struct bdev *mem;

	assert_int_equal(reactor_new(&opts, &r->reactor, NULL), 0);
	assert_int_equal(
		bdev_mem_open(r->reactor, "mem", SIZE, 4096, &mem, NULL), 0);
	r->bdev = mem;
	if (delay_ns)
		assert_int_equal(
			bdev_delay_open(
				mem,
				&(struct delay_opts) { delay_ns, delay_ns, 0 },
				&r->bdev, NULL),
			0);
	assert_int_equal(serve_new(r->bdev, &r->serve), 0);
	*state = r;
	return 0;
}

static int rig_setup(void **state)
{
	return rig_make(state, 0);
}

static int rig_setup_slow(void **state)
{
	return rig_make(state, 20 * MSEC_NS);
}

static void on_closed(void *arg)
{
	((struct rig *)arg)->closed = true;
}

static void serve_end(struct rig *r)
{
	serve_close(r->serve, on_closed, r);
	while (!r->closed)
		reactor_run_once(r->reactor, SEC_NS);
	r->serve = NULL;
}

static int rig_remove(void **state)
{
	struct rig *r = *state;

	if (r->serve)
		serve_end(r);
	bdev_close_sync(r->bdev);
	reactor_free(r->reactor);
	free(r);
	return 0;
}

/* ---- a client ----------------------------------------------------------- */

static struct vdisk_wire_ask asks(int op, int flags, uint64_t off, uint32_t len)
{
	return (struct vdisk_wire_ask) { .magic = VDISK_WIRE_MAGIC,
					 .op = (uint8_t)op,
					 .flags = (uint8_t)flags,
					 .off = off,
					 .len = len };
}

static void put(struct rig *r, int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			reactor_run_once(r->reactor, MSEC_NS);
			continue;
		}
		assert_true(n > 0);
		at += n;
		len -= (size_t)n;
	}
}

/* False: the connection has ended. */
static bool get(struct rig *r, int fd, void *bytes, size_t len)
{
	char *at = bytes;

	for (int turns = 0; len && turns < 5000; turns++) {
		ssize_t n = recv(fd, at, len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		if (n < 0) {
			reactor_run_once(r->reactor, MSEC_NS);
			continue;
		}
		at += n;
		len -= (size_t)n;
	}
	assert_int_equal(len, 0);
	return true;
}

static int answer(struct rig *r, int fd, void *data, size_t len)
{
	struct vdisk_wire_told told;

	assert_true(get(r, fd, &told, sizeof(told)));
	assert_int_equal(told.magic, VDISK_WIRE_MAGIC);
	if (!told.result && len)
		assert_true(get(r, fd, data, len));
	return told.result;
}

static int ask(struct rig *r, int fd, struct vdisk_wire_ask a, const void *out,
	       void *in)
{
	put(r, fd, &a, sizeof(a));
	if (out)
		put(r, fd, out, a.len);
	return answer(r, fd, in, in ? a.len : 0);
}

static bool all_are(const char *bytes, size_t len, char c)
{
	return bytes[0] == c && !memcmp(bytes, bytes + 1, len - 1);
}

/* ---- tests -------------------------------------------------------------- */

static void test_asked(void **state)
{
	struct rig *r = *state;
	char *out = malloc(VDISK_WIRE_MAX), *in = malloc(VDISK_WIRE_MAX);
	struct vdisk_wire_ask a = asks(VDISK_WIRE_SIZE, 0, 0, 0);
	struct vdisk_wire_size size;
	struct serve_stats st;
	int fd = serve_connect(r->serve);

	assert_true(fd >= 0);
	put(r, fd, &a, sizeof(a));
	assert_int_equal(answer(r, fd, &size, sizeof(size)), 0);
	assert_true(size.size_bytes == SIZE && size.block_bytes == 4096);
	memset(out, 'w', VDISK_WIRE_MAX);
	a = asks(VDISK_WIRE_WRITE, VDISK_WIRE_FUA, MIB, VDISK_WIRE_MAX);
	assert_int_equal(ask(r, fd, a, out, NULL), 0);
	a = asks(VDISK_WIRE_READ, 0, MIB, VDISK_WIRE_MAX);
	assert_int_equal(ask(r, fd, a, NULL, in), 0);
	assert_true(all_are(in, VDISK_WIRE_MAX, 'w'));
	a = asks(VDISK_WIRE_ZERO, VDISK_WIRE_FUA, MIB, 8192);
	assert_int_equal(ask(r, fd, a, NULL, NULL), 0);
	a = asks(VDISK_WIRE_READ, 0, MIB, 12288);
	assert_int_equal(ask(r, fd, a, NULL, in), 0);
	assert_true(all_are(in, 8192, 0) && all_are(in + 8192, 4096, 'w'));
	assert_int_equal(
		ask(r, fd, asks(VDISK_WIRE_FLUSH, 0, 0, 0), NULL, NULL), 0);
	a = asks(VDISK_WIRE_TRIM, 0, 0, 2 * MIB);
	assert_int_equal(ask(r, fd, a, NULL, NULL),
			 r->bdev->limits.can_trim ? 0 : -EOPNOTSUPP);
	serve_stats(r->serve, &st);
	assert_int_equal(st.reads, 2);
	assert_int_equal(st.conns, 1);
	close(fd);
	free(out);
	free(in);
}

/* As a stream may come: byte by byte. */
static void test_pieces(void **state)
{
	struct rig *r = *state;
	struct vdisk_wire_ask a = asks(VDISK_WIRE_WRITE, 0, 4096, 4096);
	char bytes[sizeof(a) + 4096], in[4096];
	int fd = serve_connect(r->serve);

	memcpy(bytes, &a, sizeof(a));
	memset(bytes + sizeof(a), 'p', 4096);
	for (size_t k = 0; k < sizeof(bytes); k++) {
		put(r, fd, bytes + k, 1);
		if (k < 2 * sizeof(a) || k % 512 == 0)
			reactor_run_once(r->reactor, 0);
	}
	assert_int_equal(answer(r, fd, NULL, 0), 0);
	assert_int_equal(
		ask(r, fd, asks(VDISK_WIRE_READ, 0, 4096, 4096), NULL, in), 0);
	assert_true(all_are(in, 4096, 'p'));
	close(fd);
}

/* What could never be is the end of a connection; what cannot be here is
 * answered. */
static void test_hostile(void **state)
{
	struct rig *r = *state;
	struct vdisk_wire_ask bad[] = {
		asks(0, 0, 0, 0),
		asks(99, 0, 0, 0),
		asks(VDISK_WIRE_READ, 0x80, 0, 4096),
		asks(VDISK_WIRE_READ, 0, 0, VDISK_WIRE_MAX + 4096),
		asks(VDISK_WIRE_READ, 0, 0, UINT32_MAX),
		asks(VDISK_WIRE_WRITE, 0, 1, 4096),
		asks(VDISK_WIRE_WRITE, 0, UINT64_MAX - 4095, 4096),
		asks(VDISK_WIRE_WRITE, 0, 0, 0),
		asks(VDISK_WIRE_FLUSH, 0, 0, 4096),
		{ .magic = 1, .op = VDISK_WIRE_SIZE },
	};
	const struct vdisk_wire_ask refused[] = {
		asks(VDISK_WIRE_READ, 0, 1, 4096),
		asks(VDISK_WIRE_READ, 0, 0, 100),
		asks(VDISK_WIRE_READ, 0, SIZE, 4096),
		asks(VDISK_WIRE_READ, 0, UINT64_MAX - 4095, 4096),
		asks(VDISK_WIRE_ZERO, 0, SIZE - 4096, 8192),
		asks(VDISK_WIRE_TRIM, 0, 0, 0),
	};
	int fd;
	char c;

	for (size_t k = 0; k < array_len(bad); k++) {
		fd = serve_connect(r->serve);
		put(r, fd, &bad[k], sizeof(bad[k]));
		assert_false(get(r, fd, &c, 1));
		close(fd);
	}
	fd = serve_connect(r->serve);
	for (size_t k = 0; k < array_len(refused); k++)
		assert_int_equal(ask(r, fd, refused[k], NULL, NULL), -EINVAL);
	close(fd);
}

/* One that does not wait for its answer is taken for lost. */
static void test_impatient(void **state)
{
	struct rig *r = *state;
	struct vdisk_wire_ask a = asks(VDISK_WIRE_READ, 0, 0, 4096);
	int fd = serve_connect(r->serve);
	char c;

	put(r, fd, &a, sizeof(a));
	put(r, fd, &a, sizeof(a));
	assert_false(get(r, fd, &c, 1));
	close(fd);
}

static void test_overlap(void **state)
{
	enum { N = 8 };
	struct rig *r = *state;
	int fd[N], apart = serve_connect(r->serve);
	uint64_t from = reactor_now(r->reactor);
	char out[8192], in[8192];

	for (int k = 0; k < N; k++) {
		struct vdisk_wire_ask a =
			asks(VDISK_WIRE_WRITE, 0, 4096ull * (k % 2), 8192);

		fd[k] = serve_connect(r->serve);
		memset(out, 'a' + k, sizeof(out));
		put(r, fd[k], &a, sizeof(a));
		put(r, fd[k], out, sizeof(out));
		for (int turn = 0; turn < 3; turn++)
			reactor_run_once(r->reactor, 0);
		assert_true(r->bdev->stats.inflight <= 1);
	}
	/* one that is elsewhere waits for nobody */
	memset(out, 'z', sizeof(out));
	assert_int_equal(
		ask(r, apart, asks(VDISK_WIRE_WRITE, 0, MIB, 8192), out, NULL),
		0);
	for (int k = 0; k < N; k++)
		assert_int_equal(answer(r, fd[k], NULL, 0), 0);
	assert_true(reactor_now(r->reactor) - from >= N * 20 * MSEC_NS);
	assert_int_equal(
		ask(r, apart, asks(VDISK_WIRE_READ, 0, 0, 8192), NULL, in), 0);
	assert_true(all_are(in, 4096, 'a' + N - 2));
	assert_true(all_are(in + 4096, 4096, 'a' + N - 1));
	for (int k = 0; k < N; k++)
		close(fd[k]);
	close(apart);
}

/* Clients go, and then the server, with I/O in flight and waiting. */
static void test_gone(void **state)
{
	struct rig *r = *state;
	struct vdisk_wire_ask a = asks(VDISK_WIRE_WRITE, 0, 0, 4096);
	char out[4096] = "x";
	struct serve_stats st;
	int fd[6];

	for (int k = 0; k < 6; k++) {
		fd[k] = serve_connect(r->serve);
		put(r, fd[k], &a, sizeof(a));
		put(r, fd[k], out, sizeof(out));
	}
	reactor_run_once(r->reactor, 0);
	reactor_run_once(r->reactor, 0);
	for (int k = 0; k < 3; k++)
		close(fd[k]);
	reactor_run_once(r->reactor, 0);
	serve_stats(r->serve, &st);
	assert_true(r->bdev->stats.inflight == 1 && st.conns >= 3);
	serve_end(r);
	assert_int_equal(r->bdev->stats.inflight, 0);
	for (int k = 3; k < 6; k++)
		close(fd[k]);
}

/* The end that a control socket brings; -1: none. */
static int fd_get(struct rig *r, int control)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space;
	char byte = 'c';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space.bytes,
			    .msg_controllen = sizeof(space.bytes) };
	ssize_t n;
	int fd = -1;

	put(r, control, "c", 1);
	while ((n = recvmsg(control, &m, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
		reactor_run_once(r->reactor, MSEC_NS);
	assert_int_equal(n, 1);
	if (CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void test_control(void **state)
{
	struct rig *r = *state;
	int fd[VDISK_WIRE_CONNS], control = serve_control(r->serve), again;
	char c;

	for (int k = 0; k < VDISK_WIRE_CONNS; k++) {
		fd[k] = fd_get(r, control);
		assert_true(fd[k] >= 0);
	}
	assert_int_equal(fd_get(r, control), -1);
	assert_int_equal(
		ask(r, fd[63], asks(VDISK_WIRE_FLUSH, 0, 0, 0), NULL, NULL), 0);
	/* whoever has the new one, has all */
	again = serve_control(r->serve);
	assert_false(get(r, control, &c, 1));
	for (int k = 0; k < VDISK_WIRE_CONNS; k++) {
		assert_false(get(r, fd[k], &c, 1));
		close(fd[k]);
	}
	fd[0] = fd_get(r, again);
	assert_true(fd[0] >= 0);
	close(fd[0]);
	close(control);
	close(again);
}

#define RIG(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_remove)
#define SLOW(t) cmocka_unit_test_setup_teardown(t, rig_setup_slow, rig_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(test_asked),      RIG(test_pieces),   RIG(test_hostile),
		SLOW(test_impatient), SLOW(test_overlap), SLOW(test_gone),
		RIG(test_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
