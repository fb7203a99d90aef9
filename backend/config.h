/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * iodeck.conf: options by the table in option.h, and one group `cluster`, the
 * inventory, which becomes the cluster document of the agent protocol.
 */
#ifndef BACKEND_CONFIG_H
#define BACKEND_CONFIG_H

#include <jansson.h>

#include "backend/option.h"

struct config {
	char *path;      /* of the file read; NULL: none was there */
	json_t *cluster; /* the cluster document; NULL: none configured */
	json_t *node;    /* where its one agent runs, node.h; NULL: here */
	/* A node a domain, in their order, with its name: an agent each. NULL:
	 * the cluster has one agent. */
	json_t *nodes;
	struct options *options;
};

/*
 * path NULL: iodeck.conf in the configuration directory, if it is there. An
 * error names file, line and what was expected.
 */
int config_load(const char *path, struct config **config, struct err *err);
void config_free(struct config *config);

#endif
