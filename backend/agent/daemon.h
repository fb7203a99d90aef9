/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The daemon: one a name. Its main thread is control: sockets, spool, lease,
 * signals; the engine has a thread of its own.
 */
#ifndef BACKEND_AGENT_DAEMON_H
#define BACKEND_AGENT_DAEMON_H

#include "engine/base.h"

#define LEASE_RUN_S 900
#define LEASE_IDLE_S 15

struct daemon_opts {
	const char *name, *state_dir;
	unsigned lease_run_s, lease_idle_s; /* without an owner */
	uint64_t spool_max_bytes;           /* 0: the spool's default */
	/* once: it listens (0), or why it does not */
	void (*ready)(int rc, const struct err *err, void *arg);
	void *arg;
};

/* Runs until told to quit. 0 or a negative errno with err. */
int daemon_run(const struct daemon_opts *opts, struct err *err);

#endif
