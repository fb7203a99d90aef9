/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The nodes of a cluster in iodeck.conf: one for all of it, or one a domain,
 * for which the cluster's says what they do not.
 */
#ifndef BACKEND_CONFIG_NODE_H
#define BACKEND_CONFIG_NODE_H

#include <jansson.h>
#include <libconfig.h>

#include "engine/base.h"

/* Of the group `cluster` and what conf_object() made of it. Fills in what a
 * domain's node leaves to the cluster's. */
int config_nodes_check(const config_setting_t *cluster, json_t *json,
		       struct err *err);
/* How nodes are reached is the console's business alone: out of the document
 * with them. Each is NULL when there is none. */
void config_nodes_take(json_t *cluster, json_t **node, json_t **nodes);
/* Whether a node, or none (NULL), is another machine. */
bool config_there(const json_t *node);

/* ---- config.c ------------------------------------------------------------ */
/* One of a few words, NULL behind the last, or not there. */
int config_word(const config_setting_t *s, const char *key,
		const char *const *words, struct err *err);

#endif
