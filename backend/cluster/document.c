/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/document.h"

#include <string.h>

static const char *text(const json_t *json, const char *key)
{
	const char *is = json_string_value(json_object_get(json, key));

	return is ? is : "";
}

size_t node_find(const struct node *node, size_t nodes, const char *name)
{
	size_t k = 0;

	while (k < nodes && (!node[k].name || strcmp(node[k].name, name) != 0))
		k++;
	return k;
}

static void mark_far(json_t *domains, const char *name)
{
	json_t *domain;
	size_t i;

	json_array_foreach(domains, i, domain) {
		if (strcmp(text(domain, "name"), name) != 0)
			json_object_set_new(domain, "far", json_true());
	}
}

/* Whoever is named, or by turns. */
static json_t *own_vdisks(const json_t *vdisks, const struct node *node,
			  size_t nodes, size_t k)
{
	json_t *own = json_array(), *vdisk;
	size_t i;

	json_array_foreach((json_t *)vdisks, i, vdisk) {
		const char *owner = text(vdisk, "owner");
		json_t *copy;

		if (*owner ? strcmp(owner, node[k].name) != 0 : i % nodes != k)
			continue;
		copy = json_copy(vdisk);
		json_object_del(copy, "owner");
		json_array_append_new(own, copy);
	}
	return own;
}

json_t *document_for(const json_t *cluster, const struct node *node,
		     size_t nodes, size_t k)
{
	const json_t *vdisks = json_object_get(cluster, "vdisks");
	const struct node *at = &node[k];
	json_t *doc;

	if (!at->name)
		return json_incref((json_t *)cluster);
	doc = json_deep_copy(cluster);
	if (!doc)
		return NULL;
	mark_far(json_object_get(doc, "domains"), at->name);
	json_object_set_new(doc, "node", json_string(at->name));
	json_object_set_new(doc, "export",
			    json_pack("{s:s*, s:[i, i]}", "address",
				      at->address, "ports", (int)at->ports[0],
				      (int)at->ports[1]));
	if (vdisks)
		json_object_set_new(doc, "vdisks",
				    own_vdisks(vdisks, node, nodes, k));
	return doc;
}
