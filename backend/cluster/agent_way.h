/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way to an agent: the command that joins a stream to it, and what carries
 * that. On another host it is the agent of this console's own bundle, brought
 * over where it is not, unless the configuration names a program there.
 */
#ifndef BACKEND_CLUSTER_AGENT_WAY_H
#define BACKEND_CLUSTER_AGENT_WAY_H

#include "backend/transport/transport.h"

struct agent_way_opts {
	const char *verb; /* of iodeck-agent(8) */
	const char *agent;
	const char *program;   /* NULL: here looked for, there the bundle's,
				  without one by its name */
	const char *state_dir; /* NULL: the usual one */
	const char *become;    /* words before it: "sudo -n"; NULL: none */
	const char *more;      /* one more word; NULL: none */
	const struct transport_host *host; /* NULL: this machine */
};

/* -ENOENT: there is no iodeck-agent on this machine. */
int agent_way_open(const struct agent_way_opts *opts, struct transport **t,
		   struct err *err);

#endif
