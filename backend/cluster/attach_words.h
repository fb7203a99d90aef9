/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command that joins a stream to an agent, here or on another host. */
#ifndef BACKEND_CLUSTER_ATTACH_WORDS_H
#define BACKEND_CLUSTER_ATTACH_WORDS_H

#include <limits.h>

#include "engine/base.h"

struct attach_words {
	const char *argv[24];
	char path[PATH_MAX], before[256];
};

struct attach_words_opts {
	const char *agent;
	const char *program;   /* NULL: here looked for, there by its name */
	const char *state_dir; /* NULL: the usual one */
	const char *become;    /* words before it: "sudo -n"; NULL: none */
	bool spawn;
	bool remote;
};

/* -ENOENT: there is no iodeck-agent on this machine. What is borrowed from
 * opts stays so. */
int attach_words(const struct attach_words_opts *opts, struct attach_words *w,
		 struct err *err);

#endif
