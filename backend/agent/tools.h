/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The programs that the agent starts: itself as a daemon, and nbdkit. On a
 * node that has nothing installed they stand in a bundle, each started by the
 * bundle's own loader, as nothing there may fit the node's libc:
 *
 *	DIR/lib/		the loader, libc and all other libraries
 *	DIR/bin/		iodeck-agent, nbdkit
 *	DIR/nbdkit/		its plugins and filters
 *
 * Whoever runs from a bundle uses that bundle alone; any other agent takes
 * nbdkit along PATH.
 */
#ifndef BACKEND_AGENT_TOOLS_H
#define BACKEND_AGENT_TOOLS_H

#include <limits.h>

#include "engine/base.h"

#define TOOL_WORDS 6
#define TOOL_LOADER "ld-linux-x86-64.so.2"

/* The words a program's own arguments come behind, for execv(): argv[0] is an
 * absolute path. Nothing is to be freed; not to be copied. */
struct tool {
	const char *argv[TOOL_WORDS];
	int words;
	char path[PATH_MAX], loader[PATH_MAX], lib[PATH_MAX];
};

/* The bundle that this program runs from, "" none: always the same answer. */
const char *tools_bundle(void);
/* The bundle that a program of this path is of; as readlink() of
 * /proc/self/exe says it, which of a bundle's program is the loader. */
void tools_bundle_of(const char *exe, char dir[PATH_MAX]);

/* This program. -ENOENT: it does not know where it is. */
int tool_self(struct tool *tool, struct err *err);
/* -ENOENT: there is none; the sentence says what to install. */
int tool_nbdkit(struct tool *tool, struct err *err);
/* What nbdkit takes for a plugin's or a filter's name ("file", "limit"): the
 * path of the bundle's own, or the name as it is. */
/* The plugin of our own: the bundle's, or the one beside this program or where
 * it was installed. -ENOENT: it was not built; the sentence says why. */
int tool_own_plugin(char path[PATH_MAX], struct err *err);
void tool_plugin(const char *name, char path[PATH_MAX]);
void tool_filter(const char *name, char path[PATH_MAX]);

#endif
