/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kernel I/O by threads that may block: all of THREADS' and, under URING, of
 * files that io_uring could only hand to kernel workers (tmpfs).
 *
 *	loop: staged --kick--> [lock] queue --> workers --> done (lock free)
 *	 ^----------------------------- reap <--------------------'
 */
#include "engine/reactor_impl.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

struct pool {
	struct reactor *reactor;
	struct kio *staged_head, **staged_tail;
	unsigned staged;
	unsigned inflight; /* staged or later, not yet called back */
	unsigned threads;  /* running */
	pthread_t *thread;
	unsigned thread_max;

	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct kio *head, **tail;
	bool quit;

	_Atomic(struct kio *) done;
};

static int64_t kio_discard(const struct kio *kio)
{
	uint64_t range[2] = { kio->off, kio->len };

	return ioctl(kio->fd, BLKDISCARD, range);
}

static int64_t kio_call(const struct kio *kio)
{
	const struct iovec iov = { kio->buf, kio->len };
	const off_t off = (off_t)kio->off;
	const int dsync = kio->flags & KIO_DSYNC ? RWF_DSYNC : 0;

	switch (kio->op) {
	case KIO_READ:
		return preadv2(kio->fd, &iov, 1, off, 0);
	case KIO_WRITE:
		return pwritev2(kio->fd, &iov, 1, off, dsync);
	case KIO_FSYNC:
		return fdatasync(kio->fd);
	case KIO_PUNCH:
		return fallocate(kio->fd,
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 off, (off_t)kio->len);
	case KIO_DISCARD:
		return kio_discard(kio);
	default:
		errno = EINVAL;
		return -1;
	}
}

void kio_execute(struct kio *kio)
{
	int64_t rc;

	do {
		rc = kio_call(kio);
	} while (rc < 0 && errno == EINTR);
	kio->result = rc < 0 ? -errno : (int32_t)rc;
}

static void done_push(struct pool *pool, struct kio *kio)
{
	struct kio *head =
		atomic_load_explicit(&pool->done, memory_order_relaxed);

	do {
		kio->next = head;
	} while (!atomic_compare_exchange_weak(&pool->done, &head, kio));
	reactor_wake(pool->reactor);
}

static struct kio *queue_pop(struct pool *pool)
{
	struct kio *kio;

	pthread_mutex_lock(&pool->lock);
	while (!pool->head && !pool->quit)
		pthread_cond_wait(&pool->cond, &pool->lock);
	kio = pool->head;
	if (kio) {
		pool->head = kio->next;
		if (!pool->head)
			pool->tail = &pool->head;
	}
	pthread_mutex_unlock(&pool->lock);
	return kio;
}

static void *worker(void *arg)
{
	struct pool *pool = arg;
	struct kio *kio;

	while ((kio = queue_pop(pool))) {
		kio_execute(kio);
		done_push(pool, kio);
	}
	return NULL;
}

/* Signals belong to the program's own threads. */
static void workers_start(struct pool *pool, unsigned wanted)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (pool->threads < pool->thread_max && wanted--) {
		pthread_t *thread = &pool->thread[pool->threads];

		if (pthread_create(thread, NULL, worker, pool))
			break;
		pthread_setname_np(*thread, "iodeck-io");
		pool->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static struct pool *pool_new(struct reactor *r)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	const unsigned max = r->workers ? r->workers : 4;

	if (!pool)
		return NULL;
	pool->thread = calloc(max, sizeof(*pool->thread));
	if (!pool->thread) {
		free(pool);
		return NULL;
	}
	pool->reactor = r;
	pool->thread_max = max;
	pool->staged_tail = &pool->staged_head;
	pool->tail = &pool->head;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->cond, NULL);
	return pool;
}

/* Without a thread to be had the loop does the work itself. */
void pool_kio(struct reactor *r, struct kio *kio)
{
	struct pool *pool = r->pool;

	if (!pool)
		pool = r->pool = pool_new(r);
	if (pool && pool->inflight >= pool->threads)
		workers_start(pool, 1);
	if (!pool || !pool->threads) {
		kio_execute(kio);
		reactor_kio_reaped(r, kio);
		return;
	}
	kio->next = NULL;
	*pool->staged_tail = kio;
	pool->staged_tail = &kio->next;
	pool->staged++;
	pool->inflight++;
}

void pool_kick(struct reactor *r)
{
	struct pool *pool = r->pool;
	unsigned wake;

	if (!pool || !pool->staged)
		return;
	pthread_mutex_lock(&pool->lock);
	*pool->tail = pool->staged_head;
	pool->tail = pool->staged_tail;
	pthread_mutex_unlock(&pool->lock);
	wake = pool->staged < pool->threads ? pool->staged : pool->threads;
	while (wake--)
		pthread_cond_signal(&pool->cond);
	pool->staged_head = NULL;
	pool->staged_tail = &pool->staged_head;
	pool->staged = 0;
}

static struct kio *list_reverse(struct kio *list)
{
	struct kio *head = NULL;

	while (list) {
		struct kio *next = list->next;

		list->next = head;
		head = list;
		list = next;
	}
	return head;
}

unsigned pool_reap(struct reactor *r)
{
	struct pool *pool = r->pool;
	struct kio *kio;
	unsigned ran = 0;

	if (!pool || !atomic_load_explicit(&pool->done, memory_order_relaxed))
		return 0;
	kio = list_reverse(atomic_exchange(&pool->done, NULL));
	while (kio) {
		struct kio *next = kio->next;

		pool->inflight--;
		r->stats.kios++;
		kio->fn(kio);
		ran++;
		kio = next;
	}
	return ran;
}

bool pool_idle(const struct reactor *r)
{
	return !r->pool || !r->pool->inflight;
}

bool pool_ready(const struct reactor *r)
{
	return r->pool && atomic_load(&r->pool->done);
}

void pool_free(struct reactor *r)
{
	struct pool *pool = r->pool;

	if (!pool)
		return;
	id_assert(!pool->inflight);
	pthread_mutex_lock(&pool->lock);
	pool->quit = true;
	pthread_mutex_unlock(&pool->lock);
	pthread_cond_broadcast(&pool->cond);
	for (unsigned i = 0; i < pool->threads; i++)
		pthread_join(pool->thread[i], NULL);
	pthread_cond_destroy(&pool->cond);
	pthread_mutex_destroy(&pool->lock);
	free(pool->thread);
	free(pool);
	r->pool = NULL;
}
