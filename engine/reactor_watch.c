/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Foreign file descriptors and the wake-up of the loop share one epoll set.
 * THREADS waits in it; URING waits in its ring, where a poll of the epoll set
 * stands among the requests.
 */
#include "engine/reactor_impl.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int reactor_watch_init(struct reactor *r, bool wake_polled, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return err_set(err, -errno,
			       "cannot make an event loop: epoll: %s",
			       strerror(errno));
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd < 0 ||
	    (wake_polled &&
	     epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->wake_fd, &ev)))
		return err_set(err, -errno,
			       "cannot make an event loop: eventfd: %s",
			       strerror(errno));
	return 0;
}

void reactor_watch_fini(struct reactor *r)
{
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
}

int watch_add(struct reactor *r, struct watch *watch)
{
	struct epoll_event ev = { .events = watch->events, .data.ptr = watch };

	if (r->backend->kind == REACTOR_SIM)
		return -EPERM;
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, watch->fd, &ev))
		return -errno;
	r->watches++;
	return 0;
}

int watch_modify(struct reactor *r, struct watch *watch, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = watch };

	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, watch->fd, &ev))
		return -errno;
	watch->events = events;
	return 0;
}

void watch_remove(struct reactor *r, struct watch *watch)
{
	if (!epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL))
		r->watches--;
	for (int i = 0; i < r->events; i++)
		if (r->event[i].data.ptr == watch)
			r->event[i].events = 0;
}

static int epoll_wait_ns(int fd, struct epoll_event *event, int room,
			 uint64_t wait_ns)
{
	struct timespec ts;
	int n;

	if (!wait_ns)
		return epoll_wait(fd, event, room, 0);
	if (wait_ns == UINT64_MAX)
		return epoll_wait(fd, event, room, -1);
	ts.tv_sec = (time_t)(wait_ns / SEC_NS);
	ts.tv_nsec = (long)(wait_ns % SEC_NS);
	n = epoll_pwait2(fd, event, room, &ts, NULL);
	if (n < 0 && errno == ENOSYS) {
		const uint64_t ms = (wait_ns + MSEC_NS - 1) / MSEC_NS;

		n = epoll_wait(fd, event, room,
			       ms > INT32_MAX ? INT32_MAX : (int)ms);
	}
	return n;
}

static void wake_clear(struct reactor *r)
{
	uint64_t count;

	while (read(r->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

unsigned reactor_watch_poll(struct reactor *r, uint64_t wait_ns)
{
	unsigned ran = 0;

	r->events =
		epoll_wait_ns(r->epoll_fd, r->event, REACTOR_EVENTS, wait_ns);
	reactor_turn_stamp(r);
	r->watched_ns = r->turn_ns;
	for (int i = 0; i < r->events; i++) {
		struct watch *watch = r->event[i].data.ptr;
		const uint32_t events = r->event[i].events;

		if (!events)
			continue;
		if (!watch) {
			wake_clear(r);
			continue;
		}
		watch->fn(watch, events);
		ran++;
	}
	r->events = 0;
	return ran;
}
