/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A drive's port under a virtual clock: pulled, stalled, measured, closed. */
#include "backend/provider/port.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"

struct one {
	struct io io;
	int done;
	uint64_t at_ns;
};

struct bench {
	struct reactor *r;
	struct hub hub;
	struct bdev *port[2];
	struct one one[8];
	void *buf;
};

static void on_done(struct io *io)
{
	struct one *o = container_of(io, struct one, io);

	o->done++;
	o->at_ns = reactor_now(io->bdev->reactor);
}

/* Two components of one drive, each answering after 1 ms. */
static int setup(void **state)
{
	static const struct reactor_opts opts = { .kind = REACTOR_SIM };
	static const struct delay_opts slow = { .read_ns = MSEC_NS,
						.write_ns = MSEC_NS };
	struct bench *b = calloc(1, sizeof(*b));
	struct bdev *mem, *delay;

	assert_int_equal(reactor_new(&opts, &b->r, NULL), 0);
	hub_init(&b->hub, b->r);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(
			bdev_mem_open(b->r, "m", MIB, 4096, &mem, NULL), 0);
		assert_int_equal(bdev_delay_open(mem, &slow, &delay, NULL), 0);
		assert_int_equal(port_open(delay, &b->hub, k ? "c1" : "c0",
					   &b->port[k], NULL),
				 0);
	}
	b->buf = reactor_buf_alloc(b->r, 4096);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	for (int k = 0; k < 2; k++)
		if (b->port[k])
			bdev_close_sync(b->port[k]);
	assert_null(b->hub.ports);
	hub_fini(&b->hub);
	reactor_buf_free(b->r, b->buf, 4096);
	reactor_free(b->r);
	free(b);
	return 0;
}

static struct one *submit(struct bench *b, int k, int port, enum bdev_op op)
{
	struct one *o = &b->one[k];

	o->io = (struct io) {
		.op = (uint8_t)op, .len = 4096, .buf = b->buf, .done = on_done
	};
	bdev_submit(b->port[port], &o->io);
	return o;
}

static void turn(struct bench *b, uint64_t ns)
{
	uint64_t end = reactor_now(b->r) + ns;

	while (reactor_now(b->r) < end)
		reactor_run_once(b->r, end - reactor_now(b->r));
	reactor_run_once(b->r, 0);
	reactor_run_once(b->r, 0);
}

static void test_pull(void **state)
{
	struct bench *b = *state;
	struct one *flying = submit(b, 0, 0, BDEV_WRITE), *late;

	turn(b, MSEC_NS / 2);
	assert_int_equal(flying->done, 0);
	hub_offline_set(&b->hub, true);
	late = submit(b, 1, 1, BDEV_READ);
	assert_int_equal(late->done, 0); /* never from inside submit */
	turn(b, 2 * MSEC_NS);
	assert_int_equal(flying->done, 1);
	assert_int_equal(flying->io.result, -ENODEV);
	assert_int_equal(late->io.result, -ENODEV);
	hub_offline_set(&b->hub, false);
	late = submit(b, 2, 1, BDEV_READ);
	turn(b, 2 * MSEC_NS);
	assert_int_equal(late->io.result, 0);
	assert_int_equal(late->done, 1);
}

static void test_stall(void **state)
{
	struct bench *b = *state;
	uint64_t from = reactor_now(b->r);
	struct one *a, *c;

	hub_stall(&b->hub, 200 * MSEC_NS);
	a = submit(b, 0, 0, BDEV_READ);
	c = submit(b, 1, 1, BDEV_WRITE);
	turn(b, 199 * MSEC_NS);
	assert_int_equal(a->done + c->done, 0);
	turn(b, 3 * MSEC_NS);
	assert_int_equal(a->done + c->done, 2);
	assert_true(a->at_ns - from >= 201 * MSEC_NS);
	/* pulled while it stalls: nothing waits for the stall's end */
	hub_stall(&b->hub, SEC_NS);
	a = submit(b, 2, 0, BDEV_READ);
	hub_offline_set(&b->hub, true);
	assert_int_equal(a->done, 0);
	turn(b, MSEC_NS);
	assert_int_equal(a->io.result, -ENODEV);
}

static void test_figures(void **state)
{
	struct bench *b = *state;
	struct hub_stats s;

	submit(b, 0, 0, BDEV_READ);
	submit(b, 1, 0, BDEV_READ);
	submit(b, 2, 1, BDEV_WRITE);
	turn(b, 10 * MSEC_NS);
	hub_stats(&b->hub, &s);
	assert_int_equal(s.ops[0], 2);
	assert_int_equal(s.ops[1], 1);
	assert_int_equal(s.bytes[0], 8192);
	assert_true(s.latency_ns == 3 * MSEC_NS);
	assert_true(s.busy_ns == MSEC_NS);
	assert_true(s.queue_ns == 3 * MSEC_NS);
	/* a component that closes takes nothing back */
	bdev_close_sync(b->port[0]);
	b->port[0] = NULL;
	hub_stats(&b->hub, &s);
	assert_int_equal(s.ops[0], 2);
	assert_false(hub_has(&b->hub, "c0"));
	assert_true(hub_has(&b->hub, "c1"));
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

static void test_close(void **state)
{
	struct bench *b = *state;
	struct one *o = submit(b, 0, 0, BDEV_WRITE);
	bool gone = false;

	assert_ptr_equal(hub_top(&b->hub, "c0"), b->port[0]);
	bdev_close(b->port[0], closed, &gone);
	b->port[0] = NULL;
	/* still there while something is in flight, but nobody's to close */
	assert_true(hub_has(&b->hub, "c0"));
	assert_null(hub_top(&b->hub, "c0"));
	turn(b, 5 * MSEC_NS);
	assert_int_equal(o->io.result, 0);
	assert_true(gone);
	assert_false(hub_has(&b->hub, "c0"));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pull),
		TEST(test_stall),
		TEST(test_figures),
		TEST(test_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
