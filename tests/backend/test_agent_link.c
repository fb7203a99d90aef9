/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A link measured over loopback; who may, what hostile bytes do, its bounds. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/agent/link_test.h"

#define TOKEN "0123456789abcdefGHIJ"

struct server {
	pthread_t thread;
	int fd, port;
	double seconds;
	atomic_bool stop;
};

static void *serve(void *arg)
{
	struct server *s = arg;

	link_serve(s->fd, TOKEN, s->seconds, &s->stop);
	return NULL;
}

static void server_start(struct server *s, double seconds)
{
	struct err err = { 0 };

	memset(s, 0, sizeof(*s));
	s->seconds = seconds;
	s->fd = link_open("127.0.0.1", 0, 0, &s->port, &err);
	assert_true(s->fd >= 0 && s->port > 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server *s)
{
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int measure(const struct server *s, const char *token,
		   struct link_figures *figures, struct err *err)
{
	static const atomic_bool go_on;

	return link_measure("127.0.0.1", s->port, token, 0.3, &go_on, figures,
			    err);
}

static void test_measured(void **state)
{
	struct link_figures f;
	struct err err = { 0 };
	struct server s;

	(void)state;
	server_start(&s, 0.3);
	assert_int_equal(measure(&s, TOKEN, &f, &err), 0);
	assert_true(f.out_bytes_s > 1e6 && f.in_bytes_s > 1e6);
	assert_true(f.rtt_min_us > 0 && f.rtt_min_us <= f.rtt_median_us);
	assert_true(f.round_trips > 0);
	/* it listens for one only: by itself it has ended */
	pthread_join(s.thread, NULL);
	assert_int_equal(measure(&s, TOKEN, &f, &err), -ECONNREFUSED);
}

static int reach(const struct server *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)s->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Whoever comes without the token is sent away, and the next is served. */
static void test_strangers(void **state)
{
	struct link_figures f;
	struct err err = { 0 };
	struct server s;
	char bytes[256];
	int fd;

	(void)state;
	server_start(&s, 0.3);
	memset(bytes, 'G', sizeof(bytes));
	fd = reach(&s);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_true(read(fd, bytes, 1) <= 0);
	close(fd);
	assert_true(measure(&s, TOKEN "x", &f, &err) < 0);
	assert_non_null(strstr(err.text, "no agent that waits for us"));
	assert_true(measure(&s, "0123456789abcdef", &f, &err) < 0);
	assert_int_equal(measure(&s, TOKEN, &f, &err), 0);
	server_end(&s);
}

/* One that knows the token and then says what no frame is. */
static void test_garbage(void **state)
{
	static const char *const bad[] = {
		"Xaaaa",
		"D\xff\xff\xff\xff",
		"P\0\0\1\0",
		"R\0\0\0\0",
	};

	(void)state;
	for (size_t k = 0; k < array_len(bad); k++) {
		uint8_t hello[LINK_HELLO_BYTES];
		struct server s;
		char yes;
		int fd;

		server_start(&s, 0.3);
		fd = reach(&s);
		link_hello(hello, TOKEN);
		assert_int_equal(write(fd, hello, sizeof(hello)),
				 sizeof(hello));
		assert_int_equal(read(fd, &yes, 1), 1);
		assert_int_equal(write(fd, bad[k], 5), 5);
		assert_true(read(fd, &yes, 1) <= 0);
		close(fd);
		pthread_join(s.thread, NULL);
	}
}

/* A server that says nothing, one that stops, a stop in between. */
static void test_bounds(void **state)
{
	static atomic_bool stop;
	struct link_figures f;
	struct err err = { 0 };
	struct server s;
	double from = now_s();
	int fd, port;

	(void)state;
	fd = link_open("127.0.0.1", 0, 0, &port, &err);
	assert_true(fd >= 0);
	assert_int_equal(
		link_measure("127.0.0.1", port, TOKEN, 0.1, &stop, &f, &err),
		-ETIMEDOUT);
	assert_true(now_s() - from < 10);
	atomic_store(&stop, true);
	assert_int_equal(
		link_measure("127.0.0.1", port, TOKEN, 0.1, &stop, &f, &err),
		-ECANCELED);
	close(fd);
	from = now_s();
	server_start(&s, 30);
	server_end(&s);
	assert_true(now_s() - from < 10);
	assert_true(link_open("example.org", 0, 0, &port, &err) < 0);
	assert_non_null(strstr(err.text, "no numeric address"));
	assert_int_equal(link_measure("", 1, TOKEN, 0.1, &stop, &f, &err) < 0,
			 1);
}

/* The first free one of a range. */
static void test_ports(void **state)
{
	struct err err = { 0 };
	int port, again, fd, other;

	(void)state;
	fd = link_open("127.0.0.1", 0, 0, &port, &err);
	assert_true(fd >= 0);
	assert_int_equal(link_open("127.0.0.1", port, port, &again, &err),
			 -EADDRINUSE);
	other = port < UINT16_MAX - 64
			? link_open("127.0.0.1", port, port + 64, &again, &err)
			: -1;
	if (other >= 0) {
		assert_true(again > port && again <= port + 64);
		close(other);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
