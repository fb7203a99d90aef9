/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes rid of iodeck. It waits for them, so no prompt has it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cluster/node_clean.h"
#include "backend/command_impl.h"
#include "backend/event.h"
#include "backend/paths.h"

#define LOCAL "local" /* the agent's name without a cluster */

/* All nodes of the configuration, and those of them that are meant. */
struct nodes {
	struct node *at;
	char (*agent)[MODEL_NAME];
	struct node_clean *clean;
	size_t all, count;
};

static const char *cluster_name(const struct deck *deck)
{
	const char *name =
		json_string_value(json_object_get(deck->cluster, "name"));

	return name ? name : LOCAL;
}

/* What the operator calls it. */
static const char *node_name(const struct deck *deck, const struct node *at)
{
	if (at->name)
		return at->name;
	return at->host.host ? at->host.host : cluster_name(deck);
}

static int node_take(const struct deck *deck, struct nodes *nodes, size_t k,
		     struct err *err)
{
	const struct config *c = deck->config;
	const json_t *json = c->nodes ? json_array_get(c->nodes, k) : c->node;
	const char *cluster = cluster_name(deck);
	struct node *at = &nodes->at[k];
	int n, r = json ? node_read(json, at, err) : 0;

	if (r)
		return r;
	n = snprintf(nodes->agent[k], sizeof(nodes->agent[k]), "%s%s%s",
		     cluster, at->name ? "." : "", at->name ? at->name : "");
	if (n < 0 || (size_t)n >= sizeof(nodes->agent[k]))
		return err_set(err, -ENAMETOOLONG, "%s.%s: too long", cluster,
			       at->name);
	return 0;
}

static int nodes_choose(const struct deck *deck, const char *which,
			struct nodes *nodes, struct err *err)
{
	const json_t *list = deck->config->nodes;
	size_t k;
	int r = 0;

	nodes->all = list ? json_array_size(list) : 1;
	nodes->at = calloc(nodes->all, sizeof(*nodes->at));
	nodes->agent = calloc(nodes->all, sizeof(*nodes->agent));
	nodes->clean = calloc(nodes->all, sizeof(*nodes->clean));
	if (!nodes->at || !nodes->agent || !nodes->clean)
		return err_set(err, -ENOMEM, "out of memory");
	for (k = 0; k < nodes->all && !r; k++) {
		r = node_take(deck, nodes, k, err);
		if (!strcmp(which, "all") ||
		    !strcmp(which, node_name(deck, &nodes->at[k])))
			nodes->clean[nodes->count++] = (struct node_clean) {
				.agent = nodes->agent[k],
				.at = &nodes->at[k],
			};
	}
	if (!r && !nodes->count)
		return err_set(err, -ENOENT,
			       "there is no node %s: name one of the "
			       "configuration, or all",
			       which);
	return r;
}

static void nodes_free(struct nodes *nodes)
{
	free(nodes->clean);
	free(nodes->agent);
	free(nodes->at);
}

static void node_show(const struct deck *deck, struct node_clean *n,
		      struct text *text, json_t *list)
{
	const char *name = node_name(deck, n->at);
	char *said = text_take(&n->said), *line, *save;
	json_t *lines = json_array();
	char clean[600];

	for (line = said ? strtok_r(said, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		event_text(clean, sizeof(clean), line);
		text_add(text, "%s: %s\n", name, clean);
		json_array_append_new(lines, json_string(clean));
	}
	if (n->err.code)
		text_add(text, "%s: %s\n", name, n->err.text);
	json_array_append_new(
		list, json_pack("{s:s,s:b,s:o,s:s*}", "node", name, "ok",
				!n->err.code, "said", lines, "why",
				n->err.code ? n->err.text : NULL));
	free(said);
}

COMMAND(do_node_clean)
{
	const char *program = deck_option(deck, "agent_program");
	struct nodes nodes = { 0 };
	struct text text = { 0 };
	json_t *list = json_array();
	char path[PATH_MAX] = "";
	struct err err;
	size_t k;

	if (nodes_choose(deck, ARG("NODE"), &nodes, &err)) {
		outcome_fail(outcome, 2, "node clean: %s", err.text);
		goto out;
	}
	if (*program)
		path_expand(program, path, sizeof(path));
	for (k = 0; k < nodes.count; k++)
		nodes.clean[k].program = *path ? path : NULL;
	node_clean_run(nodes.clean, nodes.count, ARG("force") != NULL);
	for (k = 0; k < nodes.count; k++) {
		node_show(deck, &nodes.clean[k], &text, list);
		if (nodes.clean[k].err.code)
			outcome->status = 1;
	}
	outcome->text = text_take(&text);
	outcome->json = json_pack("{s:O}", "nodes", list);
out:
	json_decref(list);
	nodes_free(&nodes);
	return 0;
}
