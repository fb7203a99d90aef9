/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A child with a socket pair as its stdin and stdout and a pipe as stderr, in
 * a session of its own: no ^C of the console's terminal reaches it, and it has
 * no terminal to ask at.
 */
#ifndef BACKEND_TRANSPORT_PROCESS_H
#define BACKEND_TRANSPORT_PROCESS_H

#include <poll.h>

#include "backend/transport/said.h"

struct process {
	pid_t pid;      /* 0: none, or it was waited for */
	int fd, fd_err; /* -1: none, or at their end */
	int status;     /* as waitpid() gives it, with over */
	bool over;
	int64_t ended_ms; /* when stdout's end was read; 0: not yet */
	int64_t shut_ms;  /* when process_shut() was called; 0: not yet */
	struct said said;
};

/* Monotonic milliseconds; the transports' one clock. */
int64_t transport_now_ms(void);
/* Lowers *timeout_ms (-1: none) to when `due_ms` is. */
void transport_wake(int64_t due_ms, int *timeout_ms);

/* argv[0] along PATH when it has no '/'. -ENOENT: no such program. */
int process_start(struct process *p, const char *const argv[], struct err *err);
/* As struct transport_ops has them. */
int process_poll(const struct process *p, bool out, struct pollfd *fd,
		 int *timeout_ms);
/* Takes stderr in too. 0 only once the child is waited for, or did not end
 * within a second of its stream. */
ssize_t process_read(struct process *p, void *buf, size_t len);
ssize_t process_write(struct process *p, const void *buf, size_t len);
/* Its stdin ends. */
void process_write_end(struct process *p);
/* The same, and its patience in process_end() begins. */
void process_shut(struct process *p);
/* Waits patience_ms for it to end by itself, then kills it. */
void process_end(struct process *p, int patience_ms);

#endif
