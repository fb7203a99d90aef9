/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where things are: the XDG base directories, and the files that come with
 * the program, found beside it (PREFIX/bin/iodeck, PREFIX/share/iodeck).
 *
 * All write into buf and return 0, -ENAMETOOLONG, or -ENOENT when HOME is not
 * known.
 */
#ifndef BACKEND_PATHS_H
#define BACKEND_PATHS_H

#include "engine/base.h"

enum path_base {
	PATH_CONFIG, /* $XDG_CONFIG_HOME/iodeck */
	PATH_DATA,   /* $XDG_DATA_HOME/iodeck: sessions */
	PATH_STATE,  /* $XDG_STATE_HOME/iodeck: sockets, spools, history */
	PATH_CACHE,  /* $XDG_CACHE_HOME/iodeck: the demo's drives */
	PATH_SHARE,  /* what was installed */
};
int path_of(enum path_base base, const char *name, char *buf, size_t len);

/* Makes a directory and those above it, 0700. */
int path_make(const char *dir, struct err *err);
/* Removes a tree; symbolic links are removed, not followed. */
int path_remove(const char *dir, struct err *err);
/* "~/x" with HOME put in; others as they are. */
int path_expand(const char *path, char *buf, size_t len);
bool path_exists(const char *path);

/*
 * A file of a kind ("suites", "workloads") by name: the operator's own
 * directory first, then what was installed. A name with a '/' or the ending
 * is taken as a path. -ENOENT.
 */
int path_find(const char *kind, const char *name, char *buf, size_t len);
/* All names of a kind, sorted, own ones before installed of the same name;
 * NULL-terminated, caller frees each and all. */
int path_list(const char *kind, char ***names);
void path_list_free(char **names);

#endif
