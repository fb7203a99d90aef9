/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of exporters share. */
#ifndef BACKEND_AGENT_EXPORT_PRIV_H
#define BACKEND_AGENT_EXPORT_PRIV_H

#include <sys/types.h>

#include "backend/agent/export.h"

struct exports {
	struct exports_opts opts;
	int dirfd;       /* export/ */
	int priority_fd; /* GnuTLS's file, in memory */
	struct export *list;
	unsigned serial;
	uint16_t port_last; /* the one given last */
	char boot[40];
};

/* ---- export_child.c ----------------------------------------------------- */

/* Descriptors as the child finds them. */
enum { CHILD_LISTEN = 3, CHILD_FILE, CHILD_DIR, CHILD_PRIORITY, CHILD_FDS };

struct child_opts {
	const char *const *argv;
	int listen_fd, file_fd, dir_fd, priority_fd, err_fd;
};
/* Starts it, to be killed when this thread ends. -errno. */
int child_start(const struct child_opts *opts, pid_t *pid);
int child_pidfd(pid_t pid);
int child_kill(int pidfd);
/* Ticks since boot at which it began; 0: there is no such process. */
uint64_t child_began(pid_t pid);

/* ---- export_listen.c ---------------------------------------------------- */

/* A listening socket at a free port of the range; *port in: where to begin,
 * out: which. -errno with a sentence. */
int listen_tcp(const char *address, uint16_t first, uint16_t last,
	       uint16_t *port, struct err *err);
int listen_unix(int dirfd, const char *name, struct err *err);

/* ---- export_left.c ------------------------------------------------------ */

/* Notes who serves, so that a later agent can end it. */
void left_mark(const struct exports *x, const char *name, pid_t pid);
void left_unmark(const struct exports *x, const char *name);
/* Ends what is marked and still runs, waits for it, and empties export/. */
void left_end(const struct exports *x);

#endif
