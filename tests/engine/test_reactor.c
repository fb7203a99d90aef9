/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every kind of reactor answers the same: turns, tasks, timers, sends from
 * other threads, foreign fds. test_reactor_kio.c has kernel I/O and buffers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "reactor_kinds.h"

/* ---- tasks and timers --------------------------------------------------- */

static struct reactor *the; /* of the running test, for callbacks */
static char trace[256];

static void trace_add(char c)
{
	const size_t n = strlen(trace);

	id_assert(n + 1 < sizeof(trace));
	trace[n] = c;
	trace[n + 1] = '\0';
}

struct lettered {
	struct task task;
	struct timer timer;
	char letter;
	int again;
};

static void task_letter(struct task *task)
{
	struct lettered *l = container_of(task, struct lettered, task);

	trace_add(l->letter);
	if (l->again-- > 0)
		reactor_post(the, task);
}

static void timer_letter(struct timer *timer)
{
	struct lettered *l = container_of(timer, struct lettered, timer);

	trace_add(l->letter);
	if (l->again-- > 0)
		timer_arm(the, timer, reactor_turn_now(the));
}

static struct lettered lettered(char letter, int again)
{
	return (struct lettered) {
		.task.fn = task_letter,
		.timer.fn = timer_letter,
		.letter = letter,
		.again = again,
	};
}

static void tasks_run_in_order(void **state)
{
	struct lettered a = lettered('a', 1), b = lettered('b', 0);

	the = of(state);
	trace[0] = '\0';
	reactor_post(the, &a.task);
	reactor_post(the, &b.task);
	assert_string_equal(trace, "");
	assert_int_equal(reactor_run_once(the, UINT64_MAX), 2);
	assert_string_equal(trace, "ab");
	assert_int_equal(reactor_run_once(the, UINT64_MAX), 1);
	assert_string_equal(trace, "aba");
	assert_int_equal(reactor_run_once(the, 0), 0);
	reactor_free(the);
}

static void timers_fire_in_order_and_not_early(void **state)
{
	struct lettered a = lettered('a', 0), b = lettered('b', 0);
	struct lettered c = lettered('c', 0), d = lettered('d', 0);
	uint64_t now;

	the = of(state);
	trace[0] = '\0';
	now = reactor_now(the);
	timer_arm(the, &c.timer, now + 3 * MSEC_NS);
	timer_arm(the, &a.timer, now + 1 * MSEC_NS);
	timer_arm(the, &d.timer, now + 2 * MSEC_NS);
	timer_arm(the, &b.timer, now + 9 * MSEC_NS);
	timer_arm(the, &b.timer, now + 2 * MSEC_NS); /* after d by order */
	timer_cancel(the, &d.timer);
	timer_cancel(the, &d.timer);
	assert_false(timer_armed(&d.timer));
	while (timer_armed(&c.timer)) {
		reactor_run_once(the, UINT64_MAX);
		if (strchr(trace, 'b'))
			assert_true(reactor_turn_now(the) >= now + 2 * MSEC_NS);
	}
	assert_string_equal(trace, "abc");
	assert_true(reactor_now(the) >= now + 3 * MSEC_NS);
	reactor_free(the);
}

static void an_overdue_timer_waits_for_the_next_turn(void **state)
{
	struct lettered a = lettered('a', 2);

	the = of(state);
	trace[0] = '\0';
	timer_arm(the, &a.timer, 0);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(reactor_run_once(the, UINT64_MAX), 1);
		assert_int_equal(strlen(trace), i);
	}
	assert_false(timer_armed(&a.timer));
	reactor_free(the);
}

struct numbered {
	struct timer timer;
	uint64_t due_ns;
	bool fired;
};
static uint64_t last_due_ns;

static void numbered_fire(struct timer *timer)
{
	struct numbered *n = container_of(timer, struct numbered, timer);

	assert_true(n->due_ns >= last_due_ns);
	assert_true(n->due_ns <= reactor_turn_now(the));
	assert_false(n->fired);
	last_due_ns = n->due_ns;
	n->fired = true;
}

static void many_timers_armed_cancelled_and_moved(void **state)
{
	enum { N = 2000 };
	struct numbered *n;
	struct rng rng;
	uint64_t now;

	the = of(state);
	n = calloc(N, sizeof(*n));
	rng_seed(&rng, 11);
	last_due_ns = 0;
	now = reactor_now(the);
	for (int i = 0; i < N; i++) {
		n[i].timer.fn = numbered_fire;
		n[i].due_ns = now + rng_below(&rng, 5 * MSEC_NS);
		timer_arm(the, &n[i].timer, n[i].due_ns);
	}
	for (int i = 0; i < N; i += 3) {
		n[i].due_ns = now + rng_below(&rng, 5 * MSEC_NS);
		timer_arm(the, &n[i].timer, n[i].due_ns);
	}
	for (int i = 0; i < N; i += 7)
		timer_cancel(the, &n[i].timer);
	do
		reactor_run_once(the, MSEC_NS);
	while (reactor_turn_now(the) < now + 6 * MSEC_NS);
	for (int i = 0; i < N; i++)
		assert_int_equal(n[i].fired, i % 7 != 0);
	reactor_free(the);
	free(n);
}

/*
 * A signal ends a turn at once, and so does the kernel where it still clears
 * away the ring of a reactor that is gone: the last of a few is not disturbed.
 */
static void a_turn_ends_after_its_timeout(void **state)
{
	uint64_t from, took_ns;
	int tries = 0;

	the = of(state);
	do {
		from = reactor_now(the);
		assert_int_equal(reactor_run_once(the, 2 * MSEC_NS), 0);
		took_ns = reactor_now(the) - from;
		/* The kernel sleeps by its clock, ours follows but closely. */
	} while (took_ns < 2 * MSEC_NS - 50 * USEC_NS && ++tries < 5);
	assert_in_range(tries, 0, 4);
	reactor_free(the);
}

/* ---- other threads ------------------------------------------------------ */

enum { SENDERS = 3, SENDS = 2000 };
struct sent {
	struct task task;
	int sender, number;
};
static int next_number[SENDERS];
static int received;

static void sent_run(struct task *task)
{
	struct sent *s = container_of(task, struct sent, task);

	assert_int_equal(s->number, next_number[s->sender]++);
	if (++received == SENDERS * SENDS)
		reactor_stop(the);
}

struct sender {
	pthread_t thread;
	struct sent sent[SENDS];
};

static void *sender_main(void *arg)
{
	struct sender *s = arg;

	for (int i = 0; i < SENDS; i++) {
		reactor_send(the, &s->sent[i].task);
		if (i % 100 == 0)
			sched_yield();
	}
	return NULL;
}

static void sends_arrive_once_in_order(void **state)
{
	struct sender *s;

	the = of(state);
	s = calloc(SENDERS, sizeof(*s));
	received = 0;
	memset(next_number, 0, sizeof(next_number));
	for (int i = 0; i < SENDERS; i++) {
		for (int j = 0; j < SENDS; j++)
			s[i].sent[j] =
				(struct sent) { { .fn = sent_run }, i, j };
		pthread_create(&s[i].thread, NULL, sender_main, &s[i]);
	}
	reactor_run(the);
	assert_int_equal(received, SENDERS * SENDS);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(s[i].thread, NULL);
	reactor_free(the);
	free(s);
}

struct ball {
	struct task task;
	struct reactor *side[2];
	int throws;
};

static void ball_catch(struct task *task)
{
	struct ball *b = container_of(task, struct ball, task);

	if (++b->throws < 2000) {
		reactor_send(b->side[b->throws % 2], task);
		return;
	}
	reactor_stop(b->side[0]);
	reactor_stop(b->side[1]);
}

static void two_threads_play_ball(void **state)
{
	struct ball b = { .task.fn = ball_catch };

	b.side[0] = of(state);
	b.side[1] = make(*(enum reactor_kind *)*state);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reactor_thread_start(b.side[i], NULL), 0);
	reactor_send(b.side[0], &b.task);
	for (int i = 0; i < 2; i++)
		reactor_thread_join(b.side[i]);
	assert_int_equal(b.throws, 2000);
	for (int i = 0; i < 2; i++)
		reactor_free(b.side[i]);
}

/* ---- foreign fds -------------------------------------------------------- */

struct piped {
	struct watch watch, other;
	int fd[2];
	int calls;
	char got[16];
};

static void pipe_read(struct watch *watch, uint32_t events)
{
	struct piped *p = container_of(watch, struct piped, watch);

	assert_true(events & EPOLLIN);
	assert_int_equal(read(p->fd[0], &p->got[p->calls++], 1), 1);
}

static void foreign_fds_are_level_triggered(void **state)
{
	struct piped p = { .watch = { .events = EPOLLIN, .fn = pipe_read } };

	the = of(state);
	assert_int_equal(pipe2(p.fd, O_CLOEXEC), 0);
	p.watch.fd = p.fd[0];
	if (reactor_kind(the) == REACTOR_SIM) {
		assert_int_equal(watch_add(the, &p.watch), -EPERM);
	} else {
		assert_int_equal(watch_add(the, &p.watch), 0);
		assert_int_equal(write(p.fd[1], "abc", 3), 3);
		while (p.calls < 3)
			reactor_run_once(the, UINT64_MAX);
		assert_string_equal(p.got, "abc");
		assert_int_equal(reactor_run_once(the, MSEC_NS), 0);
		assert_int_equal(watch_modify(the, &p.watch, 0), 0);
		assert_int_equal(write(p.fd[1], "d", 1), 1);
		assert_int_equal(reactor_run_once(the, MSEC_NS), 0);
		assert_int_equal(watch_modify(the, &p.watch, EPOLLIN), 0);
		while (p.calls < 4)
			reactor_run_once(the, UINT64_MAX);
		watch_remove(the, &p.watch);
		assert_int_equal(write(p.fd[1], "e", 1), 1);
		assert_int_equal(reactor_run_once(the, MSEC_NS), 0);
	}
	close(p.fd[0]);
	close(p.fd[1]);
	reactor_free(the);
}

static struct watch *victim[2];
static int victim_calls;

/* Whichever comes first removes the other. */
static void victim_call(struct watch *watch, uint32_t events)
{
	(void)events;
	victim_calls++;
	watch_remove(the, watch == victim[0] ? victim[1] : victim[0]);
}

static void a_removed_watch_is_not_called(void **state)
{
	int fd[2][2];
	struct watch w[2];

	the = of(state);
	if (reactor_kind(the) == REACTOR_SIM) {
		reactor_free(the);
		return;
	}
	victim_calls = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe2(fd[i], O_CLOEXEC), 0);
		assert_int_equal(write(fd[i][1], "x", 1), 1);
		w[i] = (struct watch) { .fd = fd[i][0],
					.events = EPOLLIN,
					.fn = victim_call };
		victim[i] = &w[i];
		assert_int_equal(watch_add(the, &w[i]), 0);
	}
	assert_int_equal(reactor_run_once(the, UINT64_MAX), 1);
	assert_int_equal(victim_calls, 1);
	for (int i = 0; i < 2; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
	reactor_free(the);
}

/* Tasks that never end must not starve foreign fds. */
static void foreign_fds_are_served_while_tasks_run(void **state)
{
	struct piped p = { .watch = { .events = EPOLLIN, .fn = pipe_read } };
	struct lettered a = lettered('a', INT32_MAX);

	the = of(state);
	if (reactor_kind(the) == REACTOR_SIM) {
		reactor_free(the);
		return;
	}
	assert_int_equal(pipe2(p.fd, O_CLOEXEC), 0);
	p.watch.fd = p.fd[0];
	assert_int_equal(watch_add(the, &p.watch), 0);
	assert_int_equal(write(p.fd[1], "a", 1), 1);
	reactor_post(the, &a.task);
	while (!p.calls) {
		trace[0] = '\0';
		reactor_run_once(the, UINT64_MAX);
	}
	close(p.fd[0]);
	close(p.fd[1]);
	reactor_free(the);
}

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SEC_NS + (uint64_t)ts.tv_nsec;
}

/* ... and is CLOCK_MONOTONIC, to well under a millisecond. */
static void the_clock_never_goes_back(void **state)
{
	uint64_t last = 0, from, before;

	the = of(state);
	from = reactor_now(the);
	for (int i = 0; i < 300000; i++) {
		const uint64_t now = reactor_now(the);

		assert_true(now >= last);
		last = now;
	}
	if (reactor_kind(the) != REACTOR_SIM) {
		before = monotonic();
		last = reactor_now(the);
		assert_true(last > from);
		assert_true(last + MSEC_NS > before);
		assert_true(last < monotonic() + MSEC_NS);
	}
	reactor_free(the);
}

/* ---- of one kind -------------------------------------------------------- */

static void simulated_time_jumps(void **state)
{
	struct lettered a = lettered('a', 0);
	uint64_t from;

	(void)state;
	the = make(REACTOR_SIM);
	trace[0] = '\0';
	from = reactor_now(the);
	assert_true(from > 0);
	timer_arm(the, &a.timer, from + 3600 * SEC_NS);
	assert_int_equal(reactor_run_once(the, 60 * SEC_NS), 0);
	assert_int_equal(reactor_now(the), from + 60 * SEC_NS);
	assert_int_equal(reactor_run_once(the, UINT64_MAX), 1);
	assert_int_equal(reactor_now(the), from + 3600 * SEC_NS);
	reactor_free(the);
}

static void a_loop_lives_no_more_than_a_second_a_turn(void **state)
{
	struct lettered a = lettered('a', 0), b = lettered('b', 0);
	uint64_t from, lived;

	(void)state;
	the = make(REACTOR_SIM);
	trace[0] = '\0';
	from = reactor_now(the);
	lived = reactor_lived(the);
	timer_arm_lived(the, &a.timer, 5 * SEC_NS);
	reactor_run_once(the, MSEC_NS);
	reactor_sim_stop(the, 60 * SEC_NS);
	reactor_run_once(the, UINT64_MAX);
	assert_string_equal(trace, "");
	assert_int_equal(reactor_lived(the), lived + MSEC_NS + SEC_NS);
	/* Who just waits has lived all the time. */
	while (timer_armed(&a.timer))
		reactor_run_once(the, UINT64_MAX);
	assert_int_equal(reactor_lived(the), lived + 5 * SEC_NS);
	assert_int_equal(reactor_now(the), from + 64 * SEC_NS);
	/* Any other arming after it is of the other clock. */
	timer_arm_lived(the, &b.timer, 5 * SEC_NS);
	timer_arm(the, &b.timer, reactor_now(the) + SEC_NS);
	reactor_sim_stop(the, 60 * SEC_NS);
	reactor_run_once(the, UINT64_MAX);
	assert_string_equal(trace, "ab");
	reactor_free(the);
}

static void what_is_given_time_to_answer_has_it(void **state)
{
	struct lettered a = lettered('a', 0);
	uint64_t from;

	the = of(state);
	trace[0] = '\0';
	from = reactor_now(the);
	timer_arm_lived(the, &a.timer, 3 * MSEC_NS);
	while (timer_armed(&a.timer))
		reactor_run_once(the, UINT64_MAX);
	assert_string_equal(trace, "a");
	assert_in_range(reactor_now(the) - from, 3 * MSEC_NS, UINT64_MAX);
	reactor_free(the);
}

static void auto_always_gives_one(void **state)
{
	char text[128];

	(void)state;
	the = make(REACTOR_AUTO);
	assert_non_null(the);
	assert_true(reactor_kind(the) == REACTOR_URING ||
		    reactor_kind(the) == REACTOR_THREADS);
	reactor_describe(the, text, sizeof(text));
	print_message("auto: %s\n", text);
	reactor_run_once(the, 0);
	reactor_free(the);
}

/* Idle less busy time over 10 ms of waiting or of work. */
static int64_t idle_surplus_ns(bool work)
{
	struct reactor_stats a, b;
	uint64_t until;

	reactor_stats(the, &a);
	until = reactor_now(the) + 10 * MSEC_NS;
	if (!work)
		reactor_run_once(the, 10 * MSEC_NS);
	while (work && reactor_now(the) < until)
		;
	reactor_stats(the, &b);
	return (int64_t)(b.idle_ns - a.idle_ns) -
	       (int64_t)(b.busy_ns - a.busy_ns);
}

/* Waiting for a CPU counts as busy, so a crowded host may need a few tries. */
static void idle_and_busy_are_told_apart(void **state)
{
	int tries = 0;

	(void)state;
	the = make(REACTOR_AUTO);
	reactor_run_once(the, 0);
	while (idle_surplus_ns(false) <= 0)
		assert_true(++tries < 50);
	while (idle_surplus_ns(true) >= 0)
		assert_true(++tries < 50);
	reactor_free(the);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(tasks_run_in_order),
		EACH(timers_fire_in_order_and_not_early),
		EACH(an_overdue_timer_waits_for_the_next_turn),
		EACH(many_timers_armed_cancelled_and_moved),
		EACH(what_is_given_time_to_answer_has_it),
		EACH(a_turn_ends_after_its_timeout),
		EACH(sends_arrive_once_in_order),
		EACH(two_threads_play_ball),
		EACH(foreign_fds_are_level_triggered),
		EACH(a_removed_watch_is_not_called),
		EACH(foreign_fds_are_served_while_tasks_run),
		EACH(the_clock_never_goes_back),
		cmocka_unit_test(simulated_time_jumps),
		cmocka_unit_test(a_loop_lives_no_more_than_a_second_a_turn),
		cmocka_unit_test(auto_always_gives_one),
		cmocka_unit_test(idle_and_busy_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
