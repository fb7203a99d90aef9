/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/config_node.h"

#include <limits.h>
#include <string.h>

#include "backend/cluster/node.h"
#include "backend/conf.h"
#include "backend/paths.h"

#define HERE "127.0.0.1"

bool config_there(const json_t *node)
{
	return json_object_get(node, "host") != NULL;
}

/* A file of this machine. */
static int expand(json_t *node, const char *key)
{
	const char *given = json_string_value(json_object_get(node, key));
	char path[PATH_MAX];

	if (!given)
		return 0;
	if (path_expand(given, path, sizeof(path)))
		return -ENAMETOOLONG;
	return json_object_set_new(node, key, json_string(path));
}

static int check_node(const config_setting_t *s, json_t *json, struct err *err)
{
	static const char *const ways[] = { "auto", "libssh2", "ssh", NULL };
	struct node node;
	struct err why;
	int r = config_word(s, "transport", ways, err);

	if (r)
		return r;
	if (expand(json, "identity") || expand(json, "ssh_config") ||
	    (!config_there(json) && expand(json, "state_dir")))
		return conf_bad(s, err, "a path is too long");
	return node_read(json, &node, &why) ? conf_bad(s, err, "%s", why.text)
					    : 0;
}

/* Where others reach the exports of this machine nobody can guess; it matters
 * once there are others. */
static int check_address(const config_setting_t *s, json_t *node, bool alone,
			 struct err *err)
{
	const char *host = json_string_value(json_object_get(node, "host"));

	if (json_object_get(node, "address"))
		return 0;
	if (!host && !alone)
		return conf_bad(s, err,
				"node: expected host or address here, as other "
				"nodes are elsewhere");
	json_object_set_new(node, "address", json_string(host ? host : HERE));
	return 0;
}

static bool any_there(const json_t *domains)
{
	json_t *domain;
	size_t i;

	json_array_foreach(domains, i, domain) {
		if (config_there(json_object_get(domain, "node")))
			return true;
	}
	return false;
}

static int check_domains(const config_setting_t *list, const json_t *defaults,
			 json_t *domains, struct err *err)
{
	bool alone = !any_there(domains);
	json_t *domain, *node;
	size_t i;
	int r = 0;

	json_array_foreach(domains, i, domain) {
		const config_setting_t *s =
			config_setting_get_elem(list, (unsigned)i);
		const config_setting_t *at =
			config_setting_get_member(s, "node");

		node = json_object_get(domain, "node");
		if (!node)
			return conf_bad(s, err,
					"expected node here, as other domains "
					"have one");
		r = check_node(at, node, err);
		if (!r && defaults)
			json_object_update_missing(node, (json_t *)defaults);
		if (!r)
			r = check_address(at, node, alone, err);
		if (r)
			return r;
		json_object_set(node, "name", json_object_get(domain, "name"));
	}
	return 0;
}

/* A vDisk that is made at the opening names the node that owns it. */
static int check_owners(const config_setting_t *vdisks, const json_t *domains,
			bool have, struct err *err)
{
	const char *owner;
	json_t *domain;
	size_t k;
	int i;

	for (i = 0; vdisks && i < config_setting_length(vdisks); i++) {
		config_setting_t *s =
			config_setting_get_elem(vdisks, (unsigned)i);

		if (!config_setting_lookup_string(s, "owner", &owner))
			continue;
		json_array_foreach(domains, k, domain) {
			if (!strcmp(owner, json_string_value(json_object_get(
						   domain, "name"))))
				break;
		}
		if (!have || k == json_array_size(domains))
			return conf_bad(config_setting_get_member(s, "owner"),
					err,
					"owner \"%s\": expected a domain that "
					"has a node",
					owner);
	}
	return 0;
}

int config_nodes_check(const config_setting_t *cluster, json_t *json,
		       struct err *err)
{
	const config_setting_t *at = config_setting_get_member(cluster, "node");
	json_t *node = json_object_get(json, "node"), *domain;
	json_t *domains = json_object_get(json, "domains");
	bool have = false;
	size_t i;
	int r = at ? check_node(at, node, err) : 0;

	json_array_foreach(domains, i, domain) {
		have |= json_object_get(domain, "node") != NULL;
	}
	if (!r)
		r = check_owners(config_setting_get_member(cluster, "vdisks"),
				 domains, have, err);
	if (r || (!at && !have))
		return r;
	if (!have)
		return config_there(node)
			       ? 0
			       : conf_bad(at, err, "expected host here");
	if (json_object_get(node, "host") || json_object_get(node, "address"))
		return conf_bad(at, err,
				"node: expected no host and no address here, "
				"as each domain has a node of its own");
	return check_domains(config_setting_get_member(cluster, "domains"),
			     node, domains, err);
}

void config_nodes_take(json_t *cluster, json_t **node, json_t **nodes)
{
	json_t *list = json_array(), *domain;
	size_t i;

	json_array_foreach(json_object_get(cluster, "domains"), i, domain) {
		json_t *own = json_object_get(domain, "node");

		if (own)
			json_array_append(list, own);
		json_object_del(domain, "node");
	}
	*node = *nodes = NULL;
	if (json_array_size(list))
		*nodes = json_incref(list);
	else
		*node = json_incref(json_object_get(cluster, "node"));
	json_decref(list);
	json_object_del(cluster, "node");
}
