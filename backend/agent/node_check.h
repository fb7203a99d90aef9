/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a pre-flight asks an agent of its node: facts, not verdicts, as the
 * console knows better what a cluster needs. May block for as long as a device
 * does, so it is run as a chore.
 *
 * Threads: any, one at a time.
 */
#ifndef BACKEND_AGENT_NODE_CHECK_H
#define BACKEND_AGENT_NODE_CHECK_H

#include <jansson.h>

#include "engine/base.h"

#define NODE_CHECK_PATHS_MAX 64

struct node_check {
	int dirfd;    /* of the agent's state; duplicated */
	char io[32];  /* kind of the engine's reactor */
	char *become; /* words, "sudo -n"; NULL: not asked */
	char **path;  /* drives to look at */
	size_t paths;
	json_t *result; /* NULL: not yet, or no memory */
};

/* From a request {paths?, become?}. -EINVAL with err; -ENOMEM. */
int node_check_new(const json_t *request, int dirfd, const char *io,
		   struct node_check **check, struct err *err);
void node_check_free(struct node_check *check);
/* Fills result; at most some seconds, if no device hangs. */
void node_check_work(struct node_check *check);

#endif
