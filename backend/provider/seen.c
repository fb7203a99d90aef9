/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisks of other nodes that have components on this one's drives, told to
 * every console that comes: where the owner is not there nobody else would say
 * that they exist, and they could not be taken from it.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

/* "db1.18c7f.0" is of db1; false: no component's name */
static bool vdisk_name(const char *component, char name[VDISK_NAME])
{
	for (const char *dot = component; (dot = strchr(dot, '.')); dot++) {
		const size_t len = (size_t)(dot - component);

		if (len >= VDISK_NAME)
			return false;
		memcpy(name, component, len);
		name[len] = '\0';
		if (component_of(component, name))
			return true;
	}
	return false;
}

static void seen_one(struct provider *p, const struct p_drive *d,
		     const char *component, json_t *seen)
{
	const struct p_vdisk *v;
	char name[VDISK_NAME], node[PLACE_NAME];
	uint64_t term;
	json_t *one;

	if (!vdisk_name(component, name))
		return;
	v = vdisk_find(p, name);
	if (v && v->owned)
		return;
	term = lend_owner(p, d, component, v ? v->info.uuid : NULL, node,
			  sizeof(node));
	one = json_object_get(seen, name);
	if (one &&
	    term <= (uint64_t)json_integer_value(json_object_get(one, "term")))
		return;
	one = json_pack("{s:s, s:s, s:s?, s:I, s:o}", "name", name, "state",
			"offline", "owner", *node ? node : NULL, "term",
			(json_int_t)term, "reason",
			json_sprintf("%s%s says nothing of it",
				     *node ? "node " : "its owner", node));
	json_object_set_new(seen, name, one);
}

static void seen_on(struct provider *p, const struct p_drive *d, json_t *seen)
{
	struct drive_component *list = NULL;
	size_t count = 0;

	if (!d->store || d->store->ops->list(d->store, &list, &count, NULL))
		return;
	for (size_t k = 0; k < count; k++)
		seen_one(p, d, list[k].id, seen);
	free(list);
}

void seen_tell(struct provider *p)
{
	json_t *seen = json_object(), *one;
	const char *name;

	for (size_t k = 0; k < p->domains && *p->node; k++)
		for (size_t i = 0; i < p->domain[k].drives; i++)
			if (!p->domain[k].far)
				seen_on(p, &p->domain[k].drive[i], seen);
	json_object_foreach(seen, name, one)
		tell_seen(p, json_incref(one));
	json_decref(seen);
}
