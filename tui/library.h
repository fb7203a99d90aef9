/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fills the library of a scene from the answers of commands, so that screens
 * know what the command line knows.
 */
#ifndef TUI_LIBRARY_H
#define TUI_LIBRARY_H

#include "tui/scene.h"

/* Asks for workloads, suites and sessions; what has no answer stays as it was. */
void library_load(struct library *lib, struct deck *deck);
void library_fini(struct library *lib);

/* From the documents of `workload list`, `suite list`, `session list`. */
void library_workloads(struct library *lib, const json_t *doc);
void library_suites(struct library *lib, const json_t *doc);
void library_sessions(struct library *lib, const json_t *doc);

#endif
