/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Small files of /proc and /sys, below a root: "" is this machine, a test has
 * its own. Nothing fails loudly: what is not there is empty, or -1.
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_HOST_READ_H
#define BACKEND_AGENT_HOST_READ_H

#include <jansson.h>

#include "engine/base.h"

/* The beginning of a file, as text; "" when it cannot be read. */
void host_read(const char *root, const char *path, char *text, size_t size);
/* Its first line without the blanks around it; false: there is none. */
bool host_line(char *line, size_t size, const char *root, const char *fmt, ...)
	ID_PRINTF(4, 5);
/* A whole number that stands alone in a file; -1: there is none from 0 on. */
int64_t host_number(const char *root, const char *fmt, ...) ID_PRINTF(2, 3);
/* The last part of what a symbolic link points to; false: it is none. */
bool host_link(char *name, size_t size, const char *root, const char *fmt, ...)
	ID_PRINTF(4, 5);
bool host_there(const char *root, const char *fmt, ...) ID_PRINTF(2, 3);
/* each(name) for the entries of a directory that have no dot in front, until
 * it returns false. */
void host_dir(const char *root, const char *path,
	      bool (*each)(const char *name, void *arg), void *arg);

/* Members of facts: left out where unknown ("", negative). */
void host_add_text(json_t *to, const char *name, const char *text);
void host_add_int(json_t *to, const char *name, int64_t v);
/* Left out, too, where no event may say so much (1e18). */
void host_add_rate(json_t *to, const char *name, double v);

#endif
