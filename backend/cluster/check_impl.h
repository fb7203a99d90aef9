/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between check.c, which asks, and check_judge.c, which judges. */
#ifndef BACKEND_CLUSTER_CHECK_IMPL_H
#define BACKEND_CLUSTER_CHECK_IMPL_H

#include "backend/cluster/check.h"

#define CHECK_PATHS_MAX 64 /* of one node, as its agent takes them */

/* NULL: out of memory, and it is left out. */
struct check_line *check_say(struct check *check, const char *node,
			     const char *what, enum check_verdict verdict,
			     const char *fmt, ...) ID_PRINTF(5, 6);
const json_t *check_cluster(const struct check *check);
bool check_is_numeric(const char *address);

#endif
