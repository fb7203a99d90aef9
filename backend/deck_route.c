/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where requests go in a cluster of several nodes: what is of a vDisk to the
 * agent that owns it, what is of a drive by its path to the node named, all
 * else to all. With one agent, everything to that.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <string.h>

static const char *text(const json_t *body, const char *key)
{
	const char *is = json_string_value(json_object_get(body, key));

	return is ? is : "";
}

static bool is_one_of(const char *what, const char *const *list)
{
	while (*list && strcmp(*list, what) != 0)
		list++;
	return *list != NULL;
}

static bool is_of_drive(const char *what)
{
	static const char *const list[] = { "drive_probe", "drive_claim",
					    "drive_release", NULL };

	return is_one_of(what, list);
}

/* ---- one of them -------------------------------------------------------- */

static size_t owned(const struct deck *deck, const struct fleet_node *node)
{
	const struct model *m = deck->model;
	size_t n = 0;

	for (size_t i = 0; i < m->vdisks; i++)
		n += !strcmp(m->vdisk[i].agent, node->agent);
	return n;
}

/* Of those that are there, the one that owns least. */
static struct fleet_node *least(const struct deck *deck)
{
	struct fleet_node *best = NULL;

	for (size_t k = 0; k < deck->fleet->nodes; k++) {
		struct fleet_node *n = &deck->fleet->node[k];

		if (fleet_node_ready(n) &&
		    (!best || owned(deck, n) < owned(deck, best)))
			best = n;
	}
	return best;
}

static int not_there(const struct fleet_node *n, const char *of,
		     struct err *err)
{
	return err_set(err, -ENOTCONN, "node %s%s is not connected%s%s",
		       n->name, of, *n->text ? ": " : "", n->text);
}

static int find_named(const struct deck *deck, const char *name,
		      struct fleet_node **node, struct err *err)
{
	if (!*name)
		return err_set(err, -EINVAL,
			       "which node? say node=NAME, as the cluster has "
			       "several");
	*node = fleet_find(deck->fleet, name);
	if (!*node)
		return err_set(err, -EINVAL, "%s is no node of the cluster",
			       name);
	return (*node)->state == FLEET_UP ? 0 : not_there(*node, "", err);
}

/* Of an unknown one, whoever is asked says that there is none. */
static int find_owner(const struct deck *deck, const char *name,
		      struct fleet_node **node, struct err *err)
{
	const struct m_vdisk *v = model_vdisk(deck->model, name);
	char of[MODEL_NAME + 40];

	*node = v ? fleet_by_agent(deck->fleet, v->agent) : NULL;
	if (!*node)
		*node = least(deck);
	if (!*node)
		return err_set(err, -ENOTCONN, "no node is ready");
	snprintf(of, sizeof(of), ", which owns vDisk %s,", name);
	return fleet_node_ready(*node) ? 0 : not_there(*node, of, err);
}

static int find_one(const struct deck *deck, const char *what,
		    const json_t *body, struct fleet_node **node,
		    struct err *err)
{
	const char *owner = text(body, "owner");

	if (is_of_drive(what) || !strcmp(what, "vdisk_own"))
		return find_named(deck, text(body, "node"), node, err);
	if (strcmp(what, "vdisk_create") != 0)
		return find_owner(deck, text(body, "name"), node, err);
	if (*owner)
		return find_named(deck, owner, node, err);
	*node = least(deck);
	return *node ? 0 : err_set(err, -ENOTCONN, "no node is ready");
}

/* ---- which -------------------------------------------------------------- */

int route_find(struct deck *deck, const char *what, const json_t *body,
	       bool *to, bool *partial, struct err *err)
{
	struct fleet *f = deck->fleet;
	bool one = !strncmp(what, "vdisk_", 6) || is_of_drive(what);
	bool quit = !strcmp(what, "quit");
	struct fleet_node *node;
	size_t any = 0;
	int r;

	*partial = false;
	memset(to, 0, f->nodes * sizeof(*to));
	if (one && f->nodes > 1) {
		r = find_one(deck, what, body, &node, err);
		if (!r)
			to[node - f->node] = true;
		return r;
	}
	for (size_t k = 0; k < f->nodes; k++) {
		to[k] = f->node[k].state == FLEET_UP &&
			(f->nodes == 1 || !f->node[k].open_failed || quit);
		any += to[k];
	}
	*partial = any < f->nodes;
	return any ? 0
		   : err_set(err, -ENOTCONN, "%s",
			     *f->node->text ? f->node->text
					    : "the agent cannot be asked");
}

/* ---- what each is asked -------------------------------------------------- */

/* "drive n2:d1 offline", "domain n2 slow 5ms", or a member; "*" all. */
static void domain_of(const json_t *body, char *domain, size_t len)
{
	const char *said = text(body, "text"), *at = strchr(said, ' ');

	if (at)
		snprintf(domain, len, "%.*s", (int)strcspn(at + 1, ": "),
			 at + 1);
	else
		snprintf(domain, len, "%s", text(body, "domain"));
}

/* Each applies it to what it has over that drive; one of them says so. */
static bool is_quiet(const json_t *body, const struct fleet_node *node,
		     bool first)
{
	char domain[MODEL_NAME];

	domain_of(body, domain, sizeof(domain));
	if (fleet_find(node->fleet, domain) &&
	    fleet_find(node->fleet, domain)->state == FLEET_UP)
		return strcmp(domain, node->name) != 0;
	return !first;
}

json_t *route_body(const struct deck *deck, const char *what,
		   const json_t *body, const struct fleet_node *node,
		   bool first)
{
	static const char *const hushed[] = { "fault", "link_set", "drive_set",
					      NULL };
	json_t *own = body ? json_copy((json_t *)body) : json_object();

	if (deck->fleet->nodes == 1 || !own)
		return own;
	if (is_one_of(what, hushed) && is_quiet(body, node, first))
		json_object_set_new(own, "quiet", json_true());
	if (!strcmp(what, "run_start") && json_object_get(own, "known") &&
	    model_run(deck->model))
		json_object_set_new(
			own, "known",
			runs_known(model_run(deck->model), node->agent));
	if (is_of_drive(what))
		json_object_del(own, "node");
	if (!strcmp(what, "vdisk_create"))
		json_object_del(own, "owner");
	return own;
}
