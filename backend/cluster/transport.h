/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A way to an agent's byte stream. `child` starts a process that joins the
 * stream to the daemon: here iodeck-agent attach itself, over ssh the same at
 * the far end.
 *
 * Nothing blocks but close, which waits a moment for a child to end.
 */
#ifndef BACKEND_CLUSTER_TRANSPORT_H
#define BACKEND_CLUSTER_TRANSPORT_H

#include <sys/types.h>

#include "engine/base.h"

struct transport;

struct transport_opts {
	const char *agent, *program, *state_dir; /* as link_conn_opts */
	bool spawn;
};

struct transport_ops {
	const char *kind;
	int (*open)(const struct transport_opts *opts,
		    struct transport **transport, struct err *err);
	/* What poll shall look at: the stream, and what it says of itself. */
	int (*fd)(const struct transport *t);
	int (*fd_err)(const struct transport *t);
	/* As read(2) and write(2), with negative errno: -EAGAIN; 0 its end. */
	ssize_t (*read)(struct transport *t, void *buf, size_t len);
	ssize_t (*read_err)(struct transport *t, void *buf, size_t len);
	ssize_t (*write)(struct transport *t, const void *buf, size_t len);
	/* Takes NULL. */
	void (*close)(struct transport *t);
};

extern const struct transport_ops transport_child;

#endif
