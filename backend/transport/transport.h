/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A way to a program's byte stream, here or on another host: one table, three
 * kinds. `child` starts the program itself; over ssh it is started at the far
 * end, by libssh2 in this thread or by OpenSSH's ssh as a child, whichever can
 * (remote.c chooses and says why). What speaks over the stream is the same.
 *
 * The caller's turn, whenever poll's descriptors or its time say so:
 *
 *	read until -EAGAIN, read_err until -EAGAIN, write what waits, poll anew
 *
 * A way that is still opening answers -EAGAIN to all of them, and opens by
 * being read from. Nothing blocks but close, which waits a moment for a child
 * to end. Every stage of opening has an end in time.
 *
 * Threads: one for all ways.
 */
#ifndef BACKEND_TRANSPORT_TRANSPORT_H
#define BACKEND_TRANSPORT_TRANSPORT_H

#include <poll.h>
#include <sys/types.h>

#include "engine/base.h"

#define TRANSPORT_FDS 4

enum transport_way { TRANSPORT_AUTO, TRANSPORT_SSH2, TRANSPORT_SSH };

/* A host reached over ssh. What is NULL or 0 is left to ssh_config(5). */
struct transport_host {
	const char *host; /* a name, an address, or ssh_config's alias */
	const char *user, *identity;
	const char *config; /* in place of ssh's own configuration files */
	unsigned port;
	enum transport_way way;
};

struct transport_opts {
	/* The program and its arguments, NULL behind the last. Here it is
	 * looked for along PATH when it has no '/'; there a leading "~/" is the
	 * home directory. */
	const char *const *argv;
	const char *name; /* of it in messages; NULL: argv[0] */
	const struct transport_host *host; /* NULL: this machine */
};

struct transport {
	const struct transport_ops *ops;
};

struct transport_ops {
	const char *kind;
	/*
	 * What to wait for: fills at most TRANSPORT_FDS and returns how many;
	 * lowers *timeout_ms (-1: none) to when it wants a turn regardless.
	 * out: the caller has something to write.
	 */
	int (*poll)(struct transport *t, bool out, struct pollfd *fd,
		    int *timeout_ms);
	/*
	 * As read(2) with negative errno. 0: the program has ended its stream.
	 * Any error but -EAGAIN is the end as well. err is set with the end
	 * where the way knows more than that it ended: one sentence with place,
	 * reason and remedy.
	 */
	ssize_t (*read)(struct transport *t, void *buf, size_t len,
			struct err *err);
	/* What the program and the way say on stderr: of a flood the newest
	 * few KiB. Never an error: -EAGAIN when there is no more. */
	ssize_t (*read_err)(struct transport *t, void *buf, size_t len);
	/* As write(2) with negative errno; an error but -EAGAIN shows itself to
	 * the reader too, behind what came before it. */
	ssize_t (*write)(struct transport *t, const void *buf, size_t len);
	/* For people: "child", "libssh2", "ssh: the host is behind a jump
	 * host"; borrowed. */
	const char *(*via)(const struct transport *t);
	/* NULL: nothing to do. See transport_shut(). */
	void (*shut)(struct transport *t);
	void (*close)(struct transport *t);
};

/* By what the limits of waiting for a host are divided: 1. Tests of hosts that
 * do not answer are in a hurry. */
extern int transport_hurry;

int transport_open(const struct transport_opts *opts, struct transport **t,
		   struct err *err);
/* Of several to be closed: nothing more is written, and what the far end needs
 * to go it needs at the same time as the others'. Takes NULL. */
void transport_shut(struct transport *t);
/* Takes NULL. */
void transport_close(struct transport *t);

#endif
