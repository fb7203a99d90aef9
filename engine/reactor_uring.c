/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * URING: one ring, entered once a turn: it takes what was queued, waits for
 * one completion where there is nothing else to do, and all that have come
 * are called back. A page-cached read completes inside that one call.
 *
 * Two polls stand in the ring: of wake_fd, for other threads, and of the epoll
 * set of foreign fds, armed again after each look, so that it is
 * level-triggered.
 *
 * With DEFER_TASKRUN only the thread that enabled the ring may enter it, so
 * when the reactor changes hands the ring is made anew.
 */
#include "engine/reactor_impl.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 256
#define ENTRIES_DEFAULT 256
/* One registered buffer holds no more. */
#define BUFFER_MAX (1ull * GIB)

/* Ids of requests that are no kio. */
#define ID_WAKE 1u
#define ID_EPOLL 2u

struct uring {
	struct io_uring ring;
	unsigned entries;
	bool made, enabled, deferred;
	bool wake_armed, epoll_armed;
	unsigned inflight;   /* kios */
	int file[FILES_MAX]; /* fd by index, -1: free */
	unsigned files;
};

/* ---- the ring ----------------------------------------------------------- */

/* From the best the kernel may have to what the oldest one has. */
static const unsigned ring_flags[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_R_DISABLED,
	IORING_SETUP_R_DISABLED,
};

static int ring_init(struct uring *u)
{
	int rc = -ENOSYS;

	for (size_t i = 0; i < array_len(ring_flags); i++) {
		struct io_uring_params p = {
			.flags = ring_flags[i] | IORING_SETUP_CQSIZE,
			.cq_entries = u->entries * 4,
		};

		rc = io_uring_queue_init_params(u->entries, &u->ring, &p);
		if (rc != -EINVAL)
			break;
	}
	if (rc)
		return rc;
	u->made = true;
	u->enabled = false;
	u->deferred = u->ring.flags & IORING_SETUP_DEFER_TASKRUN;
	u->wake_armed = u->epoll_armed = false;
	/* NODROP: no completion is lost; EXT_ARG: waiting with a time. */
	if (!(u->ring.features & IORING_FEAT_NODROP) ||
	    !(u->ring.features & IORING_FEAT_EXT_ARG))
		return -ENOSYS;
	return 0;
}

static void ring_files_register(struct uring *u)
{
	if (io_uring_register_files_sparse(&u->ring, FILES_MAX)) {
		u->files = 0;
		return;
	}
	u->files = FILES_MAX;
	io_uring_register_files_update(&u->ring, 0, u->file, FILES_MAX);
}

/* May fail by RLIMIT_MEMLOCK: then buffers are mapped for each I/O. */
static void ring_arena_register(struct reactor *r)
{
	struct iovec iov = { r->arena.base, r->arena.bytes };

	r->arena.registered = false;
	if (!iov.iov_len)
		return;
	if (iov.iov_len > BUFFER_MAX)
		iov.iov_len = BUFFER_MAX;
	r->arena.registered =
		!io_uring_register_buffers(&r->uring->ring, &iov, 1);
}

static int ring_make(struct reactor *r)
{
	const int rc = ring_init(r->uring);

	if (rc)
		return rc;
	ring_files_register(r->uring);
	ring_arena_register(r);
	return 0;
}

static void ring_drop(struct uring *u)
{
	if (u->made)
		io_uring_queue_exit(&u->ring);
	u->made = false;
}

static const char *ring_reason(int rc)
{
	switch (rc) {
	case -EPERM:
		return "forbidden here (kernel.io_uring_disabled or a "
		       "container's filter)";
	case -ENOMEM:
		return "the limit of locked memory is too low (ulimit -l)";
	case -ENOSYS:
		return "this kernel is too old";
	default:
		return strerror(-rc);
	}
}

static int uring_init(struct reactor *r, const struct reactor_opts *opts,
		      struct err *err)
{
	struct uring *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return err_set(err, -ENOMEM, "no memory for io_uring");
	r->uring = u;
	u->entries = opts->entries ? opts->entries : ENTRIES_DEFAULT;
	for (int i = 0; i < FILES_MAX; i++)
		u->file[i] = -1;
	rc = ring_make(r);
	if (rc)
		err_set(err, rc, "cannot use io_uring: %s", ring_reason(rc));
	return rc;
}

static void uring_fini(struct reactor *r)
{
	struct uring *u = r->uring;

	if (!u)
		return;
	id_assert(!u->inflight);
	ring_drop(u);
	free(u);
	r->uring = NULL;
}

/* ---- requests ----------------------------------------------------------- */

static struct io_uring_sqe *sqe_get(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	while (id_unlikely(!sqe)) {
		const int rc = io_uring_submit(&u->ring);

		id_assert(rc >= 0 || rc == -EAGAIN || rc == -EBUSY ||
			  rc == -EINTR);
		if (rc < 0)
			io_uring_get_events(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	return sqe;
}

static bool buf_registered(const struct reactor *r, const void *buf,
			   uint32_t len)
{
	const uint64_t at = (uintptr_t)buf - (uintptr_t)r->arena.base;
	const uint64_t room =
		r->arena.bytes < BUFFER_MAX ? r->arena.bytes : BUFFER_MAX;

	return r->arena.registered && at < room && len <= room - at;
}

static void sqe_rw(struct reactor *r, struct io_uring_sqe *sqe,
		   const struct kio *kio)
{
	const bool fixed = buf_registered(r, kio->buf, kio->len);

	if (kio->op == KIO_READ)
		sqe->opcode = fixed ? IORING_OP_READ_FIXED : IORING_OP_READ;
	else
		sqe->opcode = fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE;
	sqe->off = kio->off;
	sqe->addr = (uintptr_t)kio->buf;
	sqe->len = kio->len;
	if (kio->flags & KIO_DSYNC)
		sqe->rw_flags = RWF_DSYNC;
}

static void sqe_other(struct io_uring_sqe *sqe, const struct kio *kio)
{
	if (kio->op == KIO_FSYNC) {
		sqe->opcode = IORING_OP_FSYNC;
		sqe->fsync_flags = IORING_FSYNC_DATASYNC;
		return;
	}
	id_assert(kio->op == KIO_PUNCH);
	sqe->opcode = IORING_OP_FALLOCATE;
	sqe->off = kio->off;
	sqe->addr = kio->len;
	sqe->len = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
}

static void uring_kio(struct reactor *r, struct kio *kio)
{
	struct io_uring_sqe *sqe;

	if (kio->flags & KIO_POOL) {
		pool_kio(r, kio);
		return;
	}
	if (id_unlikely(r->owner != reactor_thread_mark()))
		reactor_adopt(r);
	sqe = sqe_get(r->uring);
	memset(sqe, 0, sizeof(*sqe));
	if (kio->op <= KIO_WRITE)
		sqe_rw(r, sqe, kio);
	else
		sqe_other(sqe, kio);
	sqe->fd = kio->fd;
	if (kio->flags & KIO_FIXED_FD)
		sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = (uintptr_t)kio;
	r->uring->inflight++;
}

static void poll_arm(struct uring *u, int fd, unsigned id, bool multi)
{
	struct io_uring_sqe *sqe = sqe_get(u);

	if (multi)
		io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	else
		io_uring_prep_poll_add(sqe, fd, POLLIN);
	sqe->user_data = id;
}

static void polls_arm(struct reactor *r)
{
	struct uring *u = r->uring;

	if (!u->wake_armed)
		poll_arm(u, r->wake_fd, ID_WAKE, true);
	u->wake_armed = true;
	if (!u->epoll_armed && r->watches) {
		poll_arm(u, r->epoll_fd, ID_EPOLL, false);
		u->epoll_armed = true;
	}
}

/* ---- a turn ------------------------------------------------------------- */

static bool kernel_has(const struct reactor *r)
{
	const struct uring *u = r->uring;
	const unsigned flags = IO_URING_READ_ONCE(*u->ring.sq.kflags);

	return io_uring_cq_ready(&u->ring) ||
	       (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

static void enter_check(int rc)
{
	id_assert(rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN ||
		  rc == -EBUSY);
}

static void enter_now(struct reactor *r)
{
	struct uring *u = r->uring;

	if (!io_uring_sq_ready(&u->ring) && !kernel_has(r))
		return;
	r->stats.enters++;
	enter_check(io_uring_submit_and_get_events(&u->ring));
}

static void enter_wait(struct reactor *r, uint64_t wait_ns)
{
	struct uring *u = r->uring;
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;

	r->stats.enters++;
	if (wait_ns == UINT64_MAX) {
		enter_check(io_uring_submit_and_wait(&u->ring, 1));
		return;
	}
	ts.tv_sec = (long long)(wait_ns / SEC_NS);
	ts.tv_nsec = (long long)(wait_ns % SEC_NS);
	enter_check(
		io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL));
}

static void uring_enter(struct reactor *r, uint64_t wait_ns)
{
	if (wait_ns && r->busy_poll && wait_ns <= REACTOR_SPIN_NS) {
		enter_now(r);
		reactor_spin(r, wait_ns, kernel_has);
		wait_ns = 0;
	}
	if (wait_ns && !io_uring_cq_ready(&r->uring->ring) &&
	    reactor_sleep_begin(r)) {
		enter_wait(r, wait_ns);
		reactor_sleep_end(r);
	} else {
		enter_now(r);
	}
}

/* Returns the callbacks run: none for our own polls. */
static unsigned special_done(struct reactor *r, const struct io_uring_cqe *cqe)
{
	if (cqe->user_data == ID_WAKE) {
		r->uring->wake_armed = cqe->flags & IORING_CQE_F_MORE;
		return 0;
	}
	r->uring->epoll_armed = false;
	return reactor_watch_poll(r, 0);
}

static unsigned cq_run(struct reactor *r)
{
	struct uring *u = r->uring;
	const unsigned mask = u->ring.cq.ring_mask;
	unsigned head = *u->ring.cq.khead;
	const unsigned tail = io_uring_smp_load_acquire(u->ring.cq.ktail);
	unsigned ran = 0, kios = 0;

	for (; head != tail; head++) {
		const struct io_uring_cqe *cqe = &u->ring.cq.cqes[head & mask];
		struct kio *kio;

		if (id_unlikely(cqe->user_data <= ID_EPOLL)) {
			ran += special_done(r, cqe);
			continue;
		}
		kio = (struct kio *)(uintptr_t)cqe->user_data;
		kio->result = cqe->res;
		kios++;
		kio->fn(kio);
	}
	io_uring_smp_store_release(u->ring.cq.khead, head);
	u->inflight -= kios;
	r->stats.kios += kios;
	return ran + kios;
}

static unsigned uring_turn(struct reactor *r, uint64_t wait_ns)
{
	unsigned ran;

	polls_arm(r);
	pool_kick(r);
	uring_enter(r, wait_ns);
	reactor_turn_stamp(r);
	ran = cq_run(r);
	return ran + pool_reap(r);
}

/* ---- change of thread --------------------------------------------------- */

/* Not exported by liburing 2.3. */
static int ring_enable(struct uring *u)
{
	if (syscall(__NR_io_uring_register, u->ring.ring_fd,
		    IORING_REGISTER_ENABLE_RINGS, NULL, 0))
		return -errno;
	return 0;
}

static void uring_adopt(struct reactor *r)
{
	struct uring *u = r->uring;

	int rc = 0;

	if (u->enabled) {
		id_assert(!u->inflight);
		ring_drop(u);
		rc = ring_make(r);
	}
	if (!rc)
		rc = ring_enable(u);
	id_assert(!rc);
	io_uring_register_ring_fd(&u->ring);
	u->enabled = true;
}

static void cq_keep(struct reactor *r)
{
	struct uring *u = r->uring;
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		struct kio *kio = (struct kio *)(uintptr_t)cqe->user_data;

		if (cqe->user_data > ID_EPOLL) {
			kio->result = cqe->res;
			reactor_kio_reaped(r, kio);
			u->inflight--;
		} else if (cqe->user_data == ID_WAKE) {
			u->wake_armed = cqe->flags & IORING_CQE_F_MORE;
		} else {
			u->epoll_armed = false;
		}
		io_uring_cqe_seen(&u->ring, cqe);
	}
}

static void uring_settle(struct reactor *r)
{
	struct uring *u = r->uring;

	if (!u->enabled)
		return;
	cq_keep(r);
	while (u->inflight) {
		enter_check(io_uring_submit_and_wait(&u->ring, 1));
		cq_keep(r);
	}
}

/* ---- registered files --------------------------------------------------- */

static void files_own(struct reactor *r)
{
	if (r->uring->enabled && r->owner != reactor_thread_mark())
		reactor_adopt(r);
}

static int uring_file_register(struct reactor *r, int fd, int *index)
{
	struct uring *u = r->uring;
	int rc;

	files_own(r);
	for (unsigned i = 0; i < u->files; i++) {
		if (u->file[i] >= 0)
			continue;
		rc = io_uring_register_files_update(&u->ring, i, &fd, 1);
		if (rc < 0)
			return rc;
		u->file[i] = fd;
		*index = (int)i;
		return 0;
	}
	return u->files ? -ENOSPC : -ENOSYS;
}

static void uring_file_unregister(struct reactor *r, int index)
{
	int none = -1;

	files_own(r);
	r->uring->file[index] = -1;
	io_uring_register_files_update(&r->uring->ring, (unsigned)index, &none,
				       1);
}

const struct reactor_backend reactor_uring_backend = {
	.kind = REACTOR_URING,
	.init = uring_init,
	.fini = uring_fini,
	.adopt = uring_adopt,
	.settle = uring_settle,
	.kio = uring_kio,
	.turn = uring_turn,
	.file_register = uring_file_register,
	.file_unregister = uring_file_unregister,
};
