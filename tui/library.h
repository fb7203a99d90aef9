/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fills the library of a scene: workloads and suites of conf/, and the folder
 * of sessions. What cannot be read is left out; commands say why.
 */
#ifndef TUI_LIBRARY_H
#define TUI_LIBRARY_H

#include "tui/scene.h"

#define LIBRARY_SESSIONS_MAX 200 /* the newest */

/* session_path: of a session, whose folder is listed; "" the usual one. */
void library_load(struct library *lib, const char *session_path);
void library_fini(struct library *lib);

#endif
