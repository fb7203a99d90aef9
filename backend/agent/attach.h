/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Joins this process's stdin and stdout to a daemon's socket, until either
 * end is over. It understands nothing of what passes.
 */
#ifndef BACKEND_AGENT_ATTACH_H
#define BACKEND_AGENT_ATTACH_H

#include "engine/base.h"

struct attach_opts {
	const char *name, *state_dir;
	char *const *spawn; /* how to start a daemon when there is none, for
			       execv(); NULL: do not */
};

/* 0 once an end is over; a negative errno when there is no daemon. */
int attach_run(const struct attach_opts *opts, struct err *err);

#endif
