/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways over ssh once they are open, and ends of every kind: bytes both ways,
 * floods, noise, deaths, and nobody there. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/transport/gate.h"
#include "backend/transport/process.h"
#include "engine/rng.h"
#include "sshlab.h"

#define STREAM_BYTES (12u << 20)

static struct sshlab lab;
static const enum transport_way both[] = { TRANSPORT_SSH2, TRANSPORT_SSH };

/* ---- bytes -------------------------------------------------------------- */

static void test_stream(void **state)
{
	const char *const argv[] = { "cat", NULL };
	char *in = malloc(STREAM_BYTES);
	struct rng rng;
	struct way w;

	(void)state;
	assert_non_null(in);
	rng_seed(&rng, 1);
	for (size_t k = 0; k < STREAM_BYTES; k += 8) {
		uint64_t word = rng_u64(&rng);

		memcpy(in + k, &word, 8);
	}
	for (size_t k = 0; k < array_len(both); k++) {
		way_open(&w, &lab, both[k], argv);
		w.in = in;
		w.in_len = STREAM_BYTES;
		if (!way_turn(&w, STREAM_BYTES, 60000))
			fail_msg("%zu of %u bytes came, %zu not sent, via %s",
				 w.out_len, STREAM_BYTES, w.in_len, w.via);
		assert_int_equal(w.err.code, 0);
		assert_int_equal(w.out_len, STREAM_BYTES);
		assert_memory_equal(w.out, in, STREAM_BYTES);
		way_close(&w);
	}
	free(in);
}

/* More than a window, sent to who does not read yet. */
static void test_window(void **state)
{
	const char *const argv[] = { "sh", "-c",
				     "sleep 1; head -c 8388608 | wc -c", NULL };
	char *in = calloc(1, 8u << 20);
	struct way w;

	(void)state;
	assert_non_null(in);
	for (size_t k = 0; k < array_len(both); k++) {
		way_open(&w, &lab, both[k], argv);
		w.in = in;
		w.in_len = 8u << 20;
		assert_true(way_turn(&w, 0, 30000));
		assert_string_equal(w.out, "8388608\n");
		way_close(&w);
	}
	free(in);
}

static void test_flood(void **state)
{
	(void)state;
	for (size_t k = 0; k < array_len(both); k++)
		way_expect(&lab, both[k],
			   "yes noise | head -c 8000000 >&2; echo done",
			   "done\n");
}

/* ---- rc files ----------------------------------------------------------- */

static void rc_file(const char *script)
{
	char more[160];

	sshlab_write(&lab, "rc", "%s\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
		     script);
	snprintf(more, sizeof(more), "ForceCommand sh %s/rc", lab.dir);
	sshlab_sshd(&lab, more);
}

static void test_noise(void **state)
{
	(void)state;
	rc_file("echo 'Welcome!'; echo \"you ran $SSH_ORIGINAL_COMMAND\"; "
		"head -c 60000 /dev/urandom; printf 'no end of line'");
	for (size_t k = 0; k < array_len(both); k++)
		way_expect(&lab, both[k], "echo hi", "hi\n");
	sshlab_write(&lab, ".bashrc", "echo from bashrc; printf more");
	for (size_t k = 0; k < array_len(both); k++)
		way_expect(&lab, both[k], "echo hi", "hi\n");
	sshlab_shell("rm %s/.bashrc", lab.dir);
	rc_file("yes noise");
	for (size_t k = 0; k < array_len(both); k++)
		way_refused(&lab, both[k], 20000, "rc files print");
	rc_file("echo 'out of quota' >&2; exit 1");
	for (size_t k = 0; k < array_len(both); k++)
		way_refused(&lab, both[k], 20000, "out of quota");
	rc_file("sleep 60");
	transport_hurry = 10;
	way_refused(&lab, TRANSPORT_SSH2, 40000, "waits for");
	way_refused(&lab, TRANSPORT_SSH, 40000, "waits for");
	transport_hurry = 1;
	sshlab_sshd(&lab, "");
}

/* ---- ends --------------------------------------------------------------- */

static void ends(enum transport_way way, const char *script, const char *words)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct way w;

	way_open(&w, &lab, way, argv);
	assert_true(way_turn(&w, 0, 30000));
	if (!strstr(w.err.text, words))
		fail_msg("%s: \"%s\", not \"%s\"", script, w.err.text, words);
	way_close(&w);
}

static void test_ends(void **state)
{
	const char *const argv[] = { "no-such-agent", "attach", NULL };
	struct way w;

	(void)state;
	for (size_t k = 0; k < array_len(both); k++) {
		ends(both[k], "exit 3", "status 3");
		ends(both[k], "echo it is full >&2; exit 1", "it is full");
		way_open(&w, &lab, both[k], argv);
		assert_true(way_turn(&w, 0, 30000));
		assert_int_equal(w.err.code, -ENOENT);
		assert_non_null(strstr(w.err.text, "no-such-agent"));
		assert_non_null(strstr(w.err.text, "install it"));
		way_close(&w);
	}
	ends(TRANSPORT_SSH2, "kill -9 $$", "SIGKILL");
	ends(TRANSPORT_SSH2, "kill -9 $PPID; sleep 1", "connection is lost");
	ends(TRANSPORT_SSH, "kill -9 $PPID; sleep 1", "127.0.0.1");
}

/* What the far program starts and leaves behind holds nobody up, as long as
 * it does not hold the stream. */
static void test_left_behind(void **state)
{
	(void)state;
	for (size_t k = 0; k < array_len(both); k++)
		way_expect(&lab, both[k],
			   "sleep 20 >/dev/null 2>&1 </dev/null & echo hi",
			   "hi\n");
}

/* ---- nobody there ------------------------------------------------------- */

/* A socket that listens and accepts nobody; its queue full or not. */
static int listener(unsigned *port, int *fill, int fills)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	*port = ntohs(at.sin_port);
	for (int k = 0; k < fills; k++) {
		fill[k] = socket(AF_INET,
				 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(fill[k], (struct sockaddr *)&at, sizeof(at));
	}
	return fd;
}

static void nobody(unsigned port, int limit_ms, const char *words)
{
	unsigned was = lab.port;
	int64_t at = transport_now_ms();

	lab.port = port;
	sshlab_known(&lab);
	way_refused(&lab, TRANSPORT_AUTO, limit_ms + 20000, words);
	assert_true(transport_now_ms() - at < limit_ms + 15000);
	lab.port = was;
	sshlab_known(&lab);
}

static void test_nobody(void **state)
{
	unsigned port;
	int fill[4], fd;

	(void)state;
	transport_hurry = 8;
	/* connections are dropped: a black hole */
	fd = listener(&port, fill, 4);
	nobody(port, 5000, "nothing answers on port");
	for (int k = 0; k < 4; k++)
		close(fill[k]);
	close(fd);
	/* somebody, and he says nothing */
	fd = listener(&port, fill, 0);
	nobody(port, 8000, "no sshd answers there");
	close(fd);
	nobody(port, 1000, "connection refused");
	/* sshd is there and stands still */
	kill(lab.pid, SIGSTOP);
	nobody(lab.port, 8000, "no sshd answers there");
	kill(lab.pid, SIGCONT);
	transport_hurry = 1;
}

static void test_no_name(void **state)
{
	const struct transport_host host = { .host = "no-such-host.invalid",
					     .config = lab.config,
					     .way = TRANSPORT_AUTO };
	const char *const argv[] = { "true", NULL };
	struct way w;

	(void)state;
	sshlab_write(&lab, "known_hosts", "no-such-host.invalid %s\n",
		     sshlab_key(&lab, "host_ed25519"));
	way_open_host(&w, &host, argv);
	assert_true(way_turn(&w, 0, 20000));
	assert_true(w.err.code == -EHOSTUNREACH || w.err.code == -ETIMEDOUT);
	assert_non_null(strstr(w.err.text, "name"));
	way_close(&w);
	sshlab_known(&lab);
}

static void test_no_ssh(void **state)
{
	char *path = strdup(getenv("PATH"));

	(void)state;
	setenv("PATH", lab.dir, 1);
	way_refused(&lab, TRANSPORT_AUTO, 5000, "openssh-client");
	way_refused(&lab, TRANSPORT_SSH2, 5000, "openssh-client");
	way_refused(&lab, TRANSPORT_SSH, 5000, "openssh-client");
	setenv("PATH", path, 1);
	free(path);
}

/* ---- many at once ------------------------------------------------------- */

#define MANY 16

static void test_many(void **state)
{
	const char *const argv[] = { "echo", "hi", NULL };
	struct way w[MANY];
	unsigned most = 0, over = 0;

	(void)state;
	for (int k = 0; k < MANY; k++)
		way_open(&w[k], &lab, TRANSPORT_AUTO, argv);
	for (int64_t end = transport_now_ms() + 60000; over < MANY;) {
		assert_true(transport_now_ms() < end);
		over = 0;
		for (int k = 0; k < MANY; k++) {
			if (w[k].rc == -EAGAIN)
				way_turn(&w[k], 0, -1);
			over += w[k].rc != -EAGAIN;
			if (gate_count(transport_now_ms()) > most)
				most = gate_count(transport_now_ms());
		}
		usleep(1000);
	}
	assert_in_range(most, 2, GATE_MAX);
	for (int k = 0; k < MANY; k++) {
		if (w[k].err.code)
			fail_msg("%s", w[k].err.text);
		assert_string_equal(w[k].out, "hi\n");
		way_close(&w[k]);
	}
}

/* ---- main --------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	sshlab_sshd(&lab, "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sshlab_close(&lab);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_no_ssh),
		cmocka_unit_test(test_many),
	};

	if (!sshlab_open(&lab))
		return 77;
	return cmocka_run_group_tests(tests, setup, teardown);
}
