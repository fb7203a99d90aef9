/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The loop itself: turns, tasks, the inbox of other threads, threads. How
 * kernel I/O is done and waited for is the backend's.
 */
#include "engine/reactor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "engine/reactor_impl.h"

/* Its address tells one thread from another. */
static _Thread_local char thread_mark;

const void *reactor_thread_mark(void)
{
	return &thread_mark;
}

/* ---- making and freeing ------------------------------------------------- */

static const struct reactor_backend *backend_of(enum reactor_kind kind)
{
	switch (kind) {
	case REACTOR_THREADS:
		return &reactor_threads_backend;
	case REACTOR_SIM:
		return &reactor_sim_backend;
#ifdef HAVE_URING
	case REACTOR_URING:
		return &reactor_uring_backend;
#endif
	default:
		return NULL;
	}
}

static int reactor_make(const struct reactor_opts *opts, enum reactor_kind kind,
			struct reactor **reactor, struct err *err)
{
	struct reactor *r;
	int rc;

	r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	if (!r)
		return err_set(err, -ENOMEM, "no memory for an event loop");
	memset(r, 0, sizeof(*r));
	r->epoll_fd = r->wake_fd = -1;
	r->task_tail = &r->task_head;
	r->reaped_tail = &r->reaped_head;
	r->workers = opts->workers;
	r->busy_poll = opts->busy_poll;
	snprintf(r->name, sizeof(r->name), "%s", opts->name ? opts->name : "");
	rng_seed(&r->rng, opts->seed);
	rclock_init(&r->clock);
	r->backend = backend_of(kind);
	if (!r->backend) {
		rc = err_set(err, -ENOSYS, "this build has no io_uring");
		goto out;
	}
	rc = reactor_watch_init(r, kind != REACTOR_URING, err);
	if (!rc)
		rc = reactor_arena_init(r, opts->arena_bytes, err);
	if (!rc)
		rc = r->backend->init(r, opts, err);
	if (rc)
		goto out;
	r->turn_ns = r->lived_ns = reactor_clock_read(r);
	*reactor = r;
	r = NULL;
out:
	reactor_free(r);
	return rc;
}

int reactor_new(const struct reactor_opts *opts, struct reactor **reactor,
		struct err *err)
{
	int rc;

	if (opts->kind != REACTOR_AUTO)
		return reactor_make(opts, opts->kind, reactor, err);
	rc = reactor_make(opts, REACTOR_URING, reactor, NULL);
	if (rc)
		rc = reactor_make(opts, REACTOR_THREADS, reactor, err);
	return rc;
}

void reactor_free(struct reactor *r)
{
	if (!r)
		return;
	id_assert(!r->threaded && !r->in_turn);
	pool_free(r);
	if (r->backend)
		r->backend->fini(r);
	reactor_watch_fini(r);
	reactor_arena_fini(r);
	free(r->timers.slot);
	free(r);
}

enum reactor_kind reactor_kind(const struct reactor *r)
{
	return r->backend->kind;
}

const char *reactor_kind_name(enum reactor_kind kind)
{
	static const char *const name[] = { "auto", "uring", "threads", "sim" };

	return (size_t)kind < array_len(name) ? name[kind] : "unknown";
}

void reactor_describe(const struct reactor *r, char *buf, size_t len)
{
	switch (r->backend->kind) {
	case REACTOR_URING:
		snprintf(buf, len, "io_uring, %s",
			 r->arena.registered ? "registered buffers"
			 : r->arena.bytes    ? "plain buffers (locked memory "
					       "limit, see ulimit -l)"
					     : "plain buffers");
		break;
	case REACTOR_THREADS:
		snprintf(buf, len, "%u threads", r->workers ? r->workers : 4);
		break;
	default:
		snprintf(buf, len, "simulated");
	}
}

uint64_t reactor_now(struct reactor *r)
{
	return reactor_clock_read(r);
}

uint64_t reactor_turn_now(const struct reactor *r)
{
	return r->turn_ns;
}

uint64_t reactor_lived(const struct reactor *r)
{
	return r->lived_ns;
}

void reactor_turn_stamp(struct reactor *r)
{
	const uint64_t now = reactor_clock_read(r), passed = now - r->turn_ns;

	r->turn_ns = now;
	r->lived_ns += passed < REACTOR_LIVED_NS ? passed : REACTOR_LIVED_NS;
}

struct rng *reactor_rng(struct reactor *r)
{
	return &r->rng;
}

/* ---- tasks -------------------------------------------------------------- */

void reactor_post(struct reactor *r, struct task *task)
{
	task->next = NULL;
	*r->task_tail = task;
	r->task_tail = &task->next;
}

void reactor_wake(struct reactor *r)
{
	const uint64_t one = 1;

	if (!atomic_load(&r->sleeping) || !atomic_exchange(&r->sleeping, false))
		return;
	while (write(r->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void reactor_send(struct reactor *r, struct task *task)
{
	struct task *head =
		atomic_load_explicit(&r->inbox, memory_order_relaxed);

	do {
		task->next = head;
	} while (!atomic_compare_exchange_weak(&r->inbox, &head, task));
	reactor_wake(r);
}

static struct task *inbox_take(struct reactor *r)
{
	struct task *list, *head = NULL;

	if (!atomic_load_explicit(&r->inbox, memory_order_relaxed))
		return NULL;
	list = atomic_exchange(&r->inbox, NULL);
	while (list) {
		struct task *next = list->next;

		list->next = head;
		head = list;
		list = next;
	}
	return head;
}

static unsigned task_list_run(struct task *task)
{
	unsigned ran = 0;

	while (task) {
		struct task *next = task->next;

		task->fn(task);
		task = next;
		ran++;
	}
	return ran;
}

static unsigned tasks_run(struct reactor *r)
{
	struct task *list = r->task_head;

	r->task_head = NULL;
	r->task_tail = &r->task_head;
	return task_list_run(list);
}

void reactor_kio_reaped(struct reactor *r, struct kio *kio)
{
	kio->next = NULL;
	*r->reaped_tail = kio;
	r->reaped_tail = &kio->next;
}

static unsigned reaped_run(struct reactor *r)
{
	struct kio *kio = r->reaped_head;
	unsigned ran = 0;

	r->reaped_head = NULL;
	r->reaped_tail = &r->reaped_head;
	while (kio) {
		struct kio *next = kio->next;

		r->stats.kios++;
		kio->fn(kio);
		kio = next;
		ran++;
	}
	return ran;
}

/* ---- kernel I/O --------------------------------------------------------- */

void reactor_kio(struct reactor *r, struct kio *kio)
{
	r->backend->kio(r, kio);
}

int reactor_file_register(struct reactor *r, int fd, int *index)
{
	if (!r->backend->file_register)
		return -ENOSYS;
	return r->backend->file_register(r, fd, index);
}

void reactor_file_unregister(struct reactor *r, int index)
{
	r->backend->file_unregister(r, index);
}

/* ---- turns -------------------------------------------------------------- */

bool reactor_sleep_begin(struct reactor *r)
{
	atomic_store(&r->sleeping, true);
	if (!atomic_load(&r->inbox) && !atomic_load(&r->stop) && !pool_ready(r))
		return true;
	atomic_store(&r->sleeping, false);
	return false;
}

void reactor_sleep_end(struct reactor *r)
{
	atomic_store_explicit(&r->sleeping, false, memory_order_relaxed);
}

bool reactor_spin(struct reactor *r, uint64_t wait_ns,
		  bool (*ready)(const struct reactor *r))
{
	const uint64_t from_ns = reactor_clock_read(r);
	uint64_t now;

	do {
		now = reactor_clock_read(r);
		if (ready(r) || pool_ready(r) ||
		    atomic_load_explicit(&r->inbox, memory_order_relaxed) ||
		    atomic_load_explicit(&r->stop, memory_order_relaxed))
			break;
	} while (now - from_ns < wait_ns);
	r->spin_ns += now - from_ns;
	return now - from_ns >= wait_ns;
}

static uint64_t turn_wait(struct reactor *r, uint64_t timeout_ns)
{
	uint64_t wait_ns;

	if (!timeout_ns || r->task_head || r->reaped_head)
		return 0;
	if (atomic_load_explicit(&r->inbox, memory_order_relaxed))
		return 0;
	wait_ns = reactor_timers_wait(r);
	return wait_ns < timeout_ns ? wait_ns : timeout_ns;
}

/*
 * Time its thread had a CPU or waited for one: what the kernel says of it,
 * without the run queue where it keeps no account of that (then *wait_ns is
 * left alone).
 */
static uint64_t thread_busy_ns(uint64_t *wait_ns)
{
	struct timespec ts;
	char buf[96], *end = buf;
	uint64_t ns = 0;
	ssize_t n = -1;
	const int fd =
		open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, buf, sizeof(buf) - 1);
		close(fd);
	}
	if (n > 0) {
		buf[n] = '\0';
		ns = strtoull(buf, &end, 10);
	}
	if (end != buf) {
		*wait_ns = strtoull(end, &end, 10);
		return ns + *wait_ns;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SEC_NS + (uint64_t)ts.tv_nsec;
}

/* Timers of the kernel are 50 us late by default, to save power. */
void reactor_adopt(struct reactor *r)
{
	prctl(PR_SET_TIMERSLACK, 1);
	r->backend->adopt(r);
	r->owner = &thread_mark;
	r->adopted_ns = rclock_monotonic();
	r->adopted_wait_ns = UINT64_MAX;
	r->adopted_cpu_ns = thread_busy_ns(&r->adopted_wait_ns);
	r->spin_ns = 0;
}

unsigned reactor_run_once(struct reactor *r, uint64_t timeout_ns)
{
	unsigned ran;

	if (id_unlikely(r->owner != &thread_mark))
		reactor_adopt(r);
	id_assert(!r->in_turn);
	r->in_turn = true;
	r->stats.turns++;
	ran = r->backend->turn(r, turn_wait(r, timeout_ns));
	if (id_unlikely(r->reaped_head))
		ran += reaped_run(r);
	ran += task_list_run(inbox_take(r));
	if (r->timers.count)
		ran += reactor_timers_run(r);
	ran += tasks_run(r);
	r->in_turn = false;
	return ran;
}

static void reactor_settle(struct reactor *r)
{
	r->backend->settle(r);
	r->owner = NULL;
}

void reactor_run(struct reactor *r)
{
	while (!atomic_load_explicit(&r->stop, memory_order_acquire))
		reactor_run_once(r, UINT64_MAX);
	atomic_store(&r->stop, false);
}

void reactor_stop(struct reactor *r)
{
	atomic_store(&r->stop, true);
	reactor_wake(r);
}

/* ---- threads ------------------------------------------------------------ */

static void *thread_main(void *arg)
{
	struct reactor *r = arg;

	reactor_run(r);
	reactor_settle(r);
	return NULL;
}

/* Signals stay with the thread that started it. */
int reactor_thread_start(struct reactor *r, struct err *err)
{
	sigset_t all, old;
	int rc;

	id_assert(!r->threaded && !r->in_turn);
	reactor_settle(r);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&r->thread, NULL, thread_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return err_set(err, -rc, "cannot start a thread: %s",
			       strerror(rc));
	r->threaded = true;
	if (r->name[0])
		pthread_setname_np(r->thread, r->name);
	return 0;
}

void reactor_thread_join(struct reactor *r)
{
	if (!r->threaded)
		return;
	pthread_join(r->thread, NULL);
	r->threaded = false;
}

/* ---- figures ------------------------------------------------------------ */

void reactor_stats(const struct reactor *r, struct reactor_stats *stats)
{
	uint64_t busy_ns, wall_ns, wait_ns = 0;

	*stats = r->stats;
	stats->wait_known = false;
	if (r->owner != &thread_mark || r->backend->kind == REACTOR_SIM)
		return;
	wall_ns = rclock_monotonic() - r->adopted_ns;
	busy_ns = thread_busy_ns(&wait_ns) - r->adopted_cpu_ns;
	stats->wait_known = r->adopted_wait_ns != UINT64_MAX;
	if (stats->wait_known && wait_ns > r->adopted_wait_ns)
		stats->wait_ns = wait_ns - r->adopted_wait_ns;
	busy_ns = busy_ns > r->spin_ns ? busy_ns - r->spin_ns : 0;
	stats->busy_ns = busy_ns < wall_ns ? busy_ns : wall_ns;
	stats->idle_ns = wall_ns - stats->busy_ns;
}
