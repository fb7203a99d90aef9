/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Takes iodeck off a node: ends the agent of one name, removes its directory
 * and, when no other name's is left, the bundles and the state directory. What
 * is not iodeck's stays, and symbolic links are not followed.
 *
 * Threads: a process of its own; it waits.
 */
#ifndef BACKEND_AGENT_CLEAN_H
#define BACKEND_AGENT_CLEAN_H

#include "engine/base.h"

struct clean_opts {
	const char *name, *state_dir;
	bool force; /* though a run goes, and though it does not answer */
	/* what was removed, and what was kept and why; a line each */
	void (*say)(const char *line);
};

/* -EBUSY: a run goes there. -ETIMEDOUT: it does not end. */
int clean_run(const struct clean_opts *opts, struct err *err);

#endif
