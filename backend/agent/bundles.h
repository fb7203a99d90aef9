/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bundles of a node: STATE_DIR/.bundle/HASH, as backend/bundle brings
 * them. A daemon that runs from one holds its MANIFEST, locked and with the
 * time it began, so that others can tell which are in use; and removes those
 * that nobody holds and nobody has begun from for a while.
 */
#ifndef BACKEND_AGENT_BUNDLES_H
#define BACKEND_AGENT_BUNDLES_H

#include <sys/types.h>

#include "engine/base.h"

#define BUNDLES_KEEP_S (14 * 86400)
#define BUNDLES_TORN_S 86400 /* of what never got its name */

/* dir: the bundle this program runs from. The lock ends with the process. */
void bundles_hold(const char *dir);
/* Removes from beside it what is old; errors are for the next time. */
void bundles_tidy(const char *dir, time_t now);
/* Removes all of a state directory's, and what else is a bundle's there. */
int bundles_remove(const char *state_dir, struct err *err);

#endif
