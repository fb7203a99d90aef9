/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A node that an agent runs on, as the configuration names it. */
#ifndef BACKEND_CLUSTER_NODE_H
#define BACKEND_CLUSTER_NODE_H

#include <jansson.h>

#include "backend/transport/transport.h"

struct node {
	struct transport_host host; /* host.host NULL: this machine */
	const char *name;      /* NULL: the agent is that of a whole cluster */
	const char *program;   /* iodeck-agent there; NULL: along its PATH */
	const char *state_dir; /* NULL: the usual one there */
	const char *become;    /* "sudo -n"; NULL: none */
	const char *address;   /* of its exports, for other nodes; NULL: none */
	unsigned ports[2];     /* of its exports, the first and the last */
};

/* Everything is borrowed from json. -EINVAL: a name that is none, or that a
 * command would take as an option. */
int node_read(const json_t *json, struct node *node, struct err *err);
/* Whether it may heal by itself: what was refused is refused again, and sshd
 * punishes who asks again. */
bool node_may_heal(int code);
/* Where it is, for people. */
void node_place(const struct node *node, char *buf, size_t len);

#endif
