/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What becomes of NBD when the other side misbehaves: a server of our own that
 * says what a test wants (nbd_fake.h), and a real nbdkit that is killed,
 * stopped and cut off.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nbd_fake.h"
#include "nbd_rig.h"

#define SIZE (4 * MIB)

struct client {
	struct reactor *r;
	struct bdev *bdev;
	enum bdev_nbd_state state;
	char why[512];
	unsigned ups, losses, closed;
};

static void on_state(enum bdev_nbd_state state, const char *why, void *arg)
{
	struct client *c = arg;

	c->state = state;
	c->ups += state == BDEV_NBD_UP;
	c->losses += state == BDEV_NBD_LOST;
	if (*why)
		snprintf(c->why, sizeof(c->why), "%s", why);
}

struct times {
	uint64_t lost_ns, answer_ns;
};
/* What they bound is what is tested, or is not to come. */
static const struct times patient = { 10 * SEC_NS, 10 * SEC_NS };
/* soon given up on, and long waited for */
static const struct times hopeful = { 10 * SEC_NS, 400 * MSEC_NS };
static const struct times brief = { 1500 * MSEC_NS, 400 * MSEC_NS };
static const struct times curt = { 200 * MSEC_NS, 100 * MSEC_NS };

static void client_open(struct client *c, const struct times *t)
{
	static unsigned turn; /* now the one kind, now the other */
	const struct reactor_opts ropts = { .kind = turn++ % 2 ? REACTOR_THREADS
							       : REACTOR_AUTO };
	const struct bdev_nbd_opts opts = { .name = "n2:d1",
					    .size_bytes = SIZE,
					    .trim_zeroes = true,
					    .wait_ns = t->lost_ns,
					    .lost_ns = t->lost_ns,
					    .answer_ns = t->answer_ns,
					    .state = on_state,
					    .arg = c };
	struct err err = { 0 };

	*c = (struct client) { 0 };
	assert_int_equal(reactor_new(&ropts, &c->r, &err), 0);
	if (bdev_nbd_open(c->r, &opts, &c->bdev, &err))
		fail_msg("%s", err.text);
}

static void client_to(struct client *c, const struct bdev_nbd_target *target)
{
	struct err err = { 0 };

	if (bdev_nbd_target(c->bdev, target, &err))
		fail_msg("%s", err.text);
}

static void client_until(struct client *c, enum bdev_nbd_state state)
{
	while (c->state != state)
		reactor_run_once(c->r, UINT64_MAX);
}

static void client_end(struct client *c, enum bdev_nbd_state how)
{
	bdev_close_sync(c->bdev);
	assert_int_equal(c->state, how);
	reactor_free(c->r);
}

static void turn_for(struct client *c, uint64_t ns)
{
	const uint64_t end = reactor_now(c->r) + ns;

	while (reactor_now(c->r) < end)
		reactor_run_once(c->r, 5 * MSEC_NS);
}

/* ---- many in flight ------------------------------------------------------ */

#define MANY 64

struct many {
	struct io io[MANY];
	uint8_t buf[MANY][4096];
	unsigned left, failed;
};

static void many_done(struct io *io)
{
	struct many *m = io->arg;

	m->left--;
	if (io->result)
		assert_int_equal(io->result, -ENODEV);
	m->failed += io->result != 0;
}

static void many_write(struct many *m, struct bdev *bdev, unsigned seed)
{
	m->left = MANY;
	m->failed = 0;
	for (unsigned k = 0; k < MANY; k++) {
		memset(m->buf[k], (int)(k + seed), 4096);
		m->io[k] = (struct io) { .op = BDEV_WRITE,
					 .off = k * 8192,
					 .len = 4096,
					 .buf = m->buf[k],
					 .done = many_done,
					 .arg = m };
		bdev_submit(bdev, &m->io[k]);
	}
}

static void many_wait(struct many *m, struct client *c)
{
	while (m->left)
		reactor_run_once(c->r, UINT64_MAX);
}

static void file_expect(const struct nbd_server *s, unsigned seed)
{
	const int fd = open(s->file, O_RDONLY | O_CLOEXEC);
	uint8_t buf[4096];

	for (unsigned k = 0; k < MANY; k++) {
		assert_int_equal(pread(fd, buf, 4096, k * 8192), 4096);
		assert_int_equal(buf[0], (uint8_t)(k + seed));
		assert_int_equal(buf[4095], (uint8_t)(k + seed));
	}
	close(fd);
}

/* ---- a real server ------------------------------------------------------- */

static void server_start(struct nbd_server *s, bool tls, const char *filter,
			 const char *value)
{
	const struct nbd_server_opts opts = { .size_bytes = SIZE,
					      .tcp = tls,
					      .key = tls ? RIG_KEY : NULL,
					      .more = { filter, value } };

	nbd_server_start(s, &opts);
}

/* Nothing was told yet: what is asked waits, then goes. */
static void test_waits_for_a_target(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct bdev_nbd_target target;
	struct client c;

	(void)state;
	server_start(&s, false, NULL, NULL);
	target = nbd_server_target(&s);
	client_open(&c, &patient);
	many_write(m, c.bdev, 1);
	turn_for(&c, 20 * MSEC_NS);
	assert_int_equal(m->left, MANY);
	assert_int_equal(bdev_nbd_state(c.bdev), BDEV_NBD_WAITING);
	client_to(&c, &target);
	many_wait(m, &c);
	assert_int_equal(m->failed, 0);
	client_end(&c, BDEV_NBD_CLOSED);
	file_expect(&s, 1);
	nbd_server_end(&s);
	free(m);
}

static void test_nobody_tells(void **state)
{
	struct many *m = calloc(1, sizeof(*m));
	struct client c;

	(void)state;
	client_open(&c, &curt);
	many_write(m, c.bdev, 1);
	many_wait(m, &c);
	assert_int_equal(m->failed, MANY);
	assert_int_equal(c.state, BDEV_NBD_DEAD);
	assert_non_null(strstr(c.why, "nobody said where"));
	client_end(&c, BDEV_NBD_CLOSED);
	/* or it is told that there is none */
	client_open(&c, &curt);
	many_write(m, c.bdev, 1);
	bdev_nbd_give_up(c.bdev, "n2 is switched off");
	assert_int_equal(c.state, BDEV_NBD_WAITING);
	many_wait(m, &c);
	assert_int_equal(m->failed, MANY);
	assert_string_equal(c.why, "n2 is switched off");
	client_end(&c, BDEV_NBD_CLOSED);
	free(m);
}

/* A server that is killed with MANY writes in it. */
static void killed_at_work(struct nbd_server *s, struct many *m,
			   struct client *c, const struct times *t)
{
	struct bdev_nbd_target target;

	server_start(s, true, "--filter=delay", "wdelay=200ms");
	target = nbd_server_target(s);
	client_open(c, t);
	client_to(c, &target);
	client_until(c, BDEV_NBD_UP);
	many_write(m, c->bdev, 3);
	turn_for(c, 20 * MSEC_NS);
	nbd_server_kill(s);
}

/* It is there again: not one is lost. */
static void test_killed_and_back(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct client c;

	(void)state;
	killed_at_work(&s, m, &c, &patient);
	client_until(&c, BDEV_NBD_LOST);
	assert_true(m->left > 0);
	nbd_server_again(&s);
	many_wait(m, &c);
	assert_int_equal(m->failed, 0);
	assert_int_equal(c.ups, 2);
	client_end(&c, BDEV_NBD_CLOSED);
	file_expect(&s, 3);
	nbd_server_end(&s);
	free(m);
}

/* Not back in time: a member that is gone, and nobody knows what has landed. */
static void test_killed_for_good(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct client c;

	(void)state;
	killed_at_work(&s, m, &c, &brief);
	many_wait(m, &c);
	assert_true(m->failed > 0);
	assert_int_equal(c.state, BDEV_NBD_DEAD);
	client_end(&c, BDEV_NBD_UNFENCED);
	nbd_server_end(&s);
	free(m);
}

/*
 * It stops, as a hung machine does, and goes on later: the client has given up
 * on the answers, and comes back only when the old connection's writes are
 * over.
 */
static void test_stopped(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct bdev_nbd_target target;
	struct client c;
	uint8_t buf[4096];

	(void)state;
	server_start(&s, true, NULL, NULL);
	target = nbd_server_target(&s);
	client_open(&c, &hopeful);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_UP);
	nbd_server_halt(&s);
	many_write(m, c.bdev, 5);
	client_until(&c, BDEV_NBD_LOST);
	assert_non_null(strstr(c.why, "not answered for 0.4 s"));
	kill(s.pid, SIGCONT);
	many_wait(m, &c);
	assert_int_equal(m->failed, 0);
	memset(buf, 99, sizeof(buf));
	assert_int_equal(
		bdev_io_sync(c.bdev, BDEV_WRITE, BDEV_FUA, 0, buf, 4096), 0);
	turn_for(&c, 100 * MSEC_NS);
	assert_int_equal(bdev_io_sync(c.bdev, BDEV_READ, 0, 0, buf, 4096), 0);
	assert_int_equal(buf[0], 99); /* no ghost of the first has come */
	client_end(&c, BDEV_NBD_CLOSED);
	/* and for good */
	client_open(&c, &brief);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_UP);
	nbd_server_halt(&s);
	many_write(m, c.bdev, 5);
	many_wait(m, &c);
	assert_int_equal(m->failed, MANY);
	client_end(&c, BDEV_NBD_UNFENCED);
	nbd_server_end(&s);
	free(m);
}

/*
 * Close with writes in the server: it ends when they have landed and the server
 * has let go, so that whoever comes next cannot be overtaken.
 */
static void test_close_waits_for_the_server(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct bdev_nbd_target target;
	struct client c, next;

	(void)state;
	server_start(&s, false, "--filter=delay", "wdelay=150ms");
	target = nbd_server_target(&s);
	client_open(&c, &patient);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_UP);
	many_write(m, c.bdev, 7);
	turn_for(&c, 10 * MSEC_NS);
	assert_true(m->left > 0);
	client_end(&c, BDEV_NBD_CLOSED);
	assert_int_equal(m->left, 0);
	assert_int_equal(m->failed, 0);
	file_expect(&s, 7);
	client_open(&next, &patient);
	client_to(&next, &target);
	client_until(&next, BDEV_NBD_UP);
	assert_int_equal(next.losses, 0); /* it was not one too many */
	client_end(&next, BDEV_NBD_CLOSED);
	nbd_server_end(&s);
	free(m);
}

/*
 * A connection that passes nothing on any more, behind a proxy that stops. The
 * server has one thread: nbdkit 1.32 may fail an assertion where a connection
 * ends while several answer. The agent starts such a one anew; nobody here.
 */
static void test_cut(void **state)
{
	struct nbd_server s;
	struct many *m = calloc(1, sizeof(*m));
	struct bdev_nbd_target target;
	struct client c;
	pid_t proxy;

	(void)state;
	server_start(&s, false, "-t1", NULL);
	proxy = fake_proxy(s.sock);
	target = (struct bdev_nbd_target) { .unix_path = fake_path() };
	client_open(&c, &hopeful);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_UP);
	many_write(m, c.bdev, 9);
	many_wait(m, &c);
	kill(-proxy, SIGSTOP);
	many_write(m, c.bdev, 10);
	client_until(&c, BDEV_NBD_LOST);
	kill(-proxy, SIGCONT);
	many_wait(m, &c);
	assert_int_equal(m->failed, 0);
	client_end(&c, BDEV_NBD_CLOSED);
	file_expect(&s, 10);
	fake_end(proxy);
	nbd_server_end(&s);
	free(m);
}

static void test_wrong_key(void **state)
{
	struct nbd_server s;
	struct bdev_nbd_target target;
	struct client c;
	struct err err = { 0 };

	(void)state;
	server_start(&s, true, NULL, NULL);
	target = nbd_server_target(&s);
	target.key = "ff" RIG_KEY;
	client_open(&c, &brief);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_DEAD);
	assert_null(strstr(c.why, RIG_KEY));
	client_end(&c, BDEV_NBD_CLOSED);
	client_open(&c, &brief);
	target.key = NULL; /* in the clear, to one that wants TLS */
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_DEAD);
	client_end(&c, BDEV_NBD_CLOSED);
	/* what cannot be right is refused at once */
	client_open(&c, &brief);
	target.key = "no hexadecimal digits, and a secret";
	assert_int_equal(bdev_nbd_target(c.bdev, &target, &err), -EINVAL);
	assert_null(strstr(err.text, "secret"));
	target.key = RIG_KEY;
	target.address = "localhost";
	assert_int_equal(bdev_nbd_target(c.bdev, &target, &err), -EINVAL);
	client_end(&c, BDEV_NBD_CLOSED);
	nbd_server_end(&s);
}

static void test_read_only(void **state)
{
	const struct nbd_server_opts opts = { .size_bytes = SIZE,
					      .read_only = true };
	struct nbd_server s;
	struct bdev_nbd_target target;
	struct client c;

	(void)state;
	nbd_server_start(&s, &opts);
	target = nbd_server_target(&s);
	client_open(&c, &patient);
	client_to(&c, &target);
	client_until(&c, BDEV_NBD_DEAD);
	assert_non_null(strstr(c.why, "read-only"));
	client_end(&c, BDEV_NBD_CLOSED);
	nbd_server_end(&s);
}

/* ---- a server that says what it likes ------------------------------------ */

static void fake_client(struct client *c, const struct fake *fake, pid_t *pid,
			const struct times *times)
{
	struct bdev_nbd_target target = { 0 };

	*pid = fake_start(fake);
	target.unix_path = fake_path();
	client_open(c, times);
	client_to(c, &target);
}

static void test_not_as_stated(void **state)
{
	static const struct {
		struct fake fake;
		const char *why;
	} rows[] = {
		{ { .size = SIZE / 2, .flags = FAKE_ALL }, "bytes, not" },
		{ { .size = SIZE, .flags = FAKE_ALL & ~FAKE_FLUSH },
		  "cannot flush" },
		{ { .size = SIZE, .flags = FAKE_ALL, .block_min = 4096 },
		  "its block is 4096" },
	};
	struct client c;
	pid_t pid;

	(void)state;
	for (size_t k = 0; k < array_len(rows); k++) {
		fake_client(&c, &rows[k].fake, &pid, &patient);
		client_until(&c, BDEV_NBD_DEAD);
		assert_non_null(strstr(c.why, rows[k].why));
		assert_non_null(strstr(c.why, "n2:d1"));
		client_end(&c, BDEV_NBD_CLOSED);
		fake_end(pid);
	}
}

/* Rubbish at each stage: an end, never a crash, a hang or a busy loop. */
static void test_rubbish(void **state)
{
	struct client c;
	uint8_t buf[4096];
	pid_t pid;

	(void)state;
	for (int stage = FAKE_FIRST; stage < FAKE_STAGES; stage++)
		for (int how = 0; how < FAKE_HOWS; how++) {
			const struct fake fake = { .size = SIZE,
						   .flags = FAKE_ALL,
						   .stage = stage,
						   .how = how };
			int rc;

			fake_client(&c, &fake, &pid, &curt);
			rc = bdev_io_sync(c.bdev, BDEV_READ, 0, 0, buf, 4096);
			/* rubbish in the place of data is data */
			if (stage != FAKE_DATA || how != FAKE_NOISE || rc)
				assert_true(rc == -ENODEV || rc == -EIO ||
					    rc == -EINVAL);
			bdev_close_sync(c.bdev);
			reactor_free(c.r);
			fake_end(pid);
		}
}

/* Without FUA, zeroes or long requests the same comes of it. */
static void test_poor_server(void **state)
{
	const struct fake fake = { .size = SIZE,
				   .flags = FAKE_FLUSH,
				   .request_max = 64 * 1024 };
	uint8_t *buf = malloc(MIB);
	struct client c;
	pid_t pid;

	(void)state;
	fake_client(&c, &fake, &pid, &patient);
	memset(buf, 7, MIB);
	assert_int_equal(
		bdev_io_sync(c.bdev, BDEV_WRITE, BDEV_FUA, 0, buf, MIB), 0);
	assert_int_equal(fake_count(FAKE_COUNT_WRITE), 16);
	assert_int_equal(fake_count(FAKE_COUNT_FLUSH), 1);
	assert_int_equal(bdev_io_sync(c.bdev, BDEV_TRIM, 0, 4096, NULL, 8192),
			 0);
	assert_int_equal(bdev_io_sync(c.bdev, BDEV_READ, 0, 0, buf, MIB), 0);
	assert_int_equal(fake_count(FAKE_COUNT_READ), 16);
	for (unsigned k = 0; k < MIB; k++)
		assert_int_equal(buf[k], k >= 4096 && k < 12288 ? 0 : 7);
	client_end(&c, BDEV_NBD_CLOSED);
	fake_end(pid);
	free(buf);
}

/*
 * Another boot of the machine: what it answered and had not flushed may be
 * lost. With nothing of that kind, or the same boot, it goes on.
 */
static void test_another_boot(void **state)
{
	struct bdev_nbd_target target;
	struct nbd_server s;
	struct client c;
	uint8_t buf[4096] = { 0 };

	(void)state;
	server_start(&s, false, NULL, NULL);
	target = nbd_server_target(&s);
	for (int flushed = 0; flushed < 2; flushed++) {
		client_open(&c, &patient);
		target.boot = "a";
		client_to(&c, &target);
		client_until(&c, BDEV_NBD_UP);
		assert_int_equal(
			bdev_io_sync(c.bdev, BDEV_WRITE, 0, 0, buf, 4096), 0);
		target.export_name = "elsewhere"; /* the same boot */
		client_to(&c, &target);
		client_until(&c, BDEV_NBD_CONNECTING);
		client_until(&c, BDEV_NBD_UP);
		if (flushed)
			assert_int_equal(
				bdev_io_sync(c.bdev, BDEV_FLUSH, 0, 0, NULL, 0),
				0);
		target.boot = "b";
		client_to(&c, &target);
		client_until(&c, BDEV_NBD_CONNECTING);
		client_until(&c, flushed ? BDEV_NBD_UP : BDEV_NBD_DEAD);
		if (!flushed)
			assert_non_null(strstr(c.why, "started anew"));
		client_end(&c, BDEV_NBD_CLOSED);
		target.export_name = NULL;
	}
	nbd_server_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_a_target),
		cmocka_unit_test(test_nobody_tells),
		cmocka_unit_test(test_killed_and_back),
		cmocka_unit_test(test_killed_for_good),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_close_waits_for_the_server),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_not_as_stated),
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_poor_server),
		cmocka_unit_test(test_another_boot),
	};

	if (!nbd_server_can()) {
		printf("no libnbd, or no nbdkit, here\n");
		return getenv("CI") ? 1 : 77;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
