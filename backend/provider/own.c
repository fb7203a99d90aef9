/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which vDisks are this node's, where a cluster has several. Every node sees
 * the components of all; the one that owns a vDisk opens and tends it. Who
 * makes a vDisk owns it, until it is moved: then its term grows, and exporters
 * that have heard of the new term give nothing to an owner of an old one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

static struct p_own *own_of(const struct provider *p, const uint8_t uuid[16])
{
	for (size_t k = 0; k < p->owns; k++)
		if (!memcmp(p->own[k].uuid, uuid, 16))
			return &p->own[k];
	return NULL;
}

void own_find(struct p_vdisk *v)
{
	const struct p_own *own = own_of(v->provider, v->info.uuid);

	v->owned = own || !*v->provider->node;
	v->term = own ? own->term : 1;
}

static int own_put(struct provider *p, const uint8_t uuid[16], uint64_t term)
{
	struct p_own *own = own_of(p, uuid);

	if (!own) {
		own = realloc(p->own, (p->owns + 1) * sizeof(*own));
		if (!own)
			return -ENOMEM;
		p->own = own;
		own += p->owns++;
		memcpy(own->uuid, uuid, 16);
	}
	own->term = term;
	return 0;
}

int own_take(struct p_vdisk *v, uint64_t term)
{
	struct provider *p = v->provider;
	int rc = 0;

	v->owned = true;
	v->term = term;
	if (*p->node)
		rc = own_put(p, v->info.uuid, term);
	if (*p->node && !rc)
		rc = lend_heard(p, v->info.uuid, term, p->node);
	return rc ? rc : memory_write(p);
}

void own_drop(struct p_vdisk *v)
{
	struct provider *p = v->provider;
	struct p_own *own = own_of(p, v->info.uuid);

	if (own)
		*own = p->own[--p->owns];
}

void own_read(struct provider *p, const json_t *list)
{
	const json_t *one;
	size_t k;

	json_array_foreach(list, k, one) {
		const json_int_t term =
			json_integer_value(json_object_get(one, "term"));
		uint8_t uuid[16];

		if (uuid_read(json_string_value(json_object_get(one, "uuid")),
			      uuid) &&
		    term > 0)
			own_put(p, uuid, (uint64_t)term);
	}
}

json_t *own_json(const struct provider *p)
{
	json_t *list = json_array();

	for (size_t k = 0; k < p->owns; k++) {
		char uuid[33];

		uuid_hex(p->own[k].uuid, uuid);
		json_array_append_new(
			list, json_pack("{s:s, s:I}", "uuid", uuid, "term",
					(json_int_t)p->own[k].term));
	}
	return list;
}

/* ---- given and taken ----------------------------------------------------- */

static void owned(int rc, const struct err *err, void *arg)
{
	if (rc)
		reply_err(arg, err);
	else
		reply_ok(arg);
}

static uint64_t term_of(const json_t *request)
{
	const json_int_t term =
		json_integer_value(json_object_get(request, "term"));

	return term > 0 ? (uint64_t)term : 0;
}

struct taking {
	struct provider *provider;
	struct reply *reply;
	char name[VDISK_NAME];
	uint64_t term;
};

static void take(struct provider *p, const char *name, uint64_t term,
		 struct reply *reply)
{
	struct p_vdisk *v = vdisk_find(p, name);
	int rc;

	if (p->closing)
		reply_fail(reply, -ESHUTDOWN, "node %s is ending", p->node);
	else if (!v)
		reply_fail(reply, -ENOENT,
			   "node %s finds nothing of a vDisk %s on the drives "
			   "that it can reach",
			   p->node, name);
	else if (v->phase != PV_SHUT)
		reply_fail(reply, -EBUSY, "node %s has vDisk %s already",
			   p->node, v->name);
	else if (term < v->term || (term == v->term && !v->owned))
		reply_fail(reply, -ESTALE, "vDisk %s has had term %llu", name,
			   (unsigned long long)v->term);
	else if ((rc = own_take(v, term)))
		reply_fail(reply, rc,
			   "node %s cannot keep in mind that vDisk %s is its "
			   "own: %s",
			   p->node, v->name, strerror(-rc));
	else
		life_open(v, owned, reply);
}

/* With what every node has listed: its members may have moved since. */
static void listed(void *arg)
{
	struct taking *x = arg;

	take(x->provider, x->name, x->term, x->reply);
	free(x);
}

void own_ask(struct provider *p, const json_t *request, struct reply *reply)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	struct taking *x;

	if (!*p->node || !term_of(request) || !name ||
	    strlen(name) >= sizeof(x->name)) {
		reply_fail(reply, -EINVAL,
			   "vdisk_own: for a cluster of nodes, with a name and "
			   "a term");
		return;
	}
	if (p->far_waits) {
		reply_fail(reply, -EBUSY,
			   "node %s is looking at drives: try "
			   "again",
			   p->node);
		return;
	}
	x = calloc(1, sizeof(*x));
	id_assert(x);
	x->provider = p;
	x->reply = reply;
	x->term = term_of(request);
	snprintf(x->name, sizeof(x->name), "%s", name);
	far_scan(p, listed, x);
}

void own_lost(struct p_vdisk *v)
{
	struct provider *p = v->provider;

	if (!v->owned || v->lost)
		return;
	v->lost = true;
	tell_log(p, "warn",
		 "vDisk %s has moved to another node: it is closed here",
		 v->name);
	tend_soon(p);
}

void own_outdated(struct provider *p, const uint8_t uuid[16], uint64_t term)
{
	for (struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->owned && v->term < term &&
		    !memcmp(v->info.uuid, uuid, 16))
			own_lost(v);
}

static void lost_closed(int rc, const struct err *err, void *arg)
{
	struct p_vdisk *v = arg;

	(void)rc;
	(void)err;
	own_drop(v);
	v->owned = v->lost = false;
	memory_write(v->provider);
}

void own_tend(struct p_vdisk *v)
{
	if (!v->lost || v->phase == PV_BUSY || v->moving || v->replacing ||
	    v->verifying)
		return;
	if (v->phase == PV_OPEN)
		life_close(v, lost_closed, v);
	else
		lost_closed(0, NULL, v);
}

static void disowned(int rc, const struct err *err, void *arg)
{
	struct p_vdisk *v = arg;
	struct reply *reply = v->disown;

	(void)rc;
	(void)err;
	v->disown = NULL;
	own_drop(v);
	v->owned = false;
	memory_write(v->provider);
	reply_ok_with(reply, json_pack("{s:I}", "term", (json_int_t)v->term));
}

void disown_ask(struct provider *p, const json_t *request, struct reply *reply)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	struct p_vdisk *v = name ? vdisk_find(p, name) : NULL;

	if (!v || !v->owned || !*p->node) {
		reply_fail(reply, -ENOENT, "vDisk %.63s is not of this node",
			   name ? name : "without a name");
	} else if (v->phase == PV_BUSY || v->moving || v->replacing ||
		   v->verifying || v->disown || p->running) {
		reply_fail(reply, -EBUSY, "vDisk %s is being worked on",
			   v->name);
	} else {
		v->disown = reply;
		if (v->phase == PV_OPEN)
			life_close(v, disowned, v);
		else
			disowned(0, NULL, v);
	}
}
