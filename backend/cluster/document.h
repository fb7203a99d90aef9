/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cluster as each node's agent is told of it. */
#ifndef BACKEND_CLUSTER_DOCUMENT_H
#define BACKEND_CLUSTER_DOCUMENT_H

#include "backend/cluster/node.h"

/*
 * A new reference: for node k of them the configured cluster with who it is,
 * where it may listen, which domains are far, and of the vDisks to be made
 * those that are its own. One node without a name: the cluster as it is.
 */
json_t *document_for(const json_t *cluster, const struct node *node,
		     size_t nodes, size_t k);
/* The index of a node by its name; nodes: none is called so. */
size_t node_find(const struct node *node, size_t nodes, const char *name);

#endif
