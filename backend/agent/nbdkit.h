/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An nbdkit that is kept running: started, seen to listen, started again when
 * it ends (of Debian 12, it aborts when a busy client dies), and ended for
 * good, which is done only once it is reaped: nothing of it can do I/O then.
 *
 *   STARTS --listens--> UP --ends--> WAITS --> STARTS ..
 *                                      pause: 50 ms, doubled to 5 s while it
 *                                      does not stay up
 *   any --nbdkit_stop()--> SIGTERM, 2 s, SIGKILL --> reaped, done()
 *
 * It ends with the agent, however that ends (--exit-with-parent).
 *
 * Threads: the reactor's, which must be the one thread as long as it runs.
 */
#ifndef BACKEND_AGENT_NBDKIT_H
#define BACKEND_AGENT_NBDKIT_H

#include "engine/reactor.h"

#define NBDKIT_WORDS 48
#define NBDKIT_FD 3 /* of what it is given */

enum nbdkit_state { NBDKIT_STARTS, NBDKIT_UP, NBDKIT_WAITS, NBDKIT_ENDS };

struct nbdkit;

struct nbdkit_opts {
	struct reactor *reactor;
	/* behind -f and its like: copied; NULL at the end */
	const char *const *words;
	const char *pidfile; /* written once it listens; copied */
	/* a descriptor to give it, at each start, which is then closed here;
	 * NULL: none. A negative errno puts the start off. */
	int (*fd)(void *arg);
	/* it is UP, or WAITS; may stop it */
	void (*changed)(void *arg);
	void *arg;
};

int nbdkit_new(const struct nbdkit_opts *opts, struct nbdkit **nbdkit,
	       struct err *err);
enum nbdkit_state nbdkit_state(const struct nbdkit *n);
/* 0: it does not run. */
pid_t nbdkit_pid(const struct nbdkit *n);
/* How often it was started again; whether it ever listened. */
unsigned nbdkit_restarts(const struct nbdkit *n);
bool nbdkit_was_up(const struct nbdkit *n);
/* What it said last, or how it ended; "". */
const char *nbdkit_said(const struct nbdkit *n);
/* done(arg) later, never from inside; n is gone then. Once. */
void nbdkit_stop(struct nbdkit *n, void (*done)(void *arg), void *arg);

#endif
