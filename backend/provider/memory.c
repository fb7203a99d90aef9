/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What labels do not know: what a vDisk's policy is called, and which vDisks
 * were deleted while a drive with a component of theirs was away, so that none
 * comes back with it. It lives in a small file beside the spool:
 *
 *   {"policies": [{name, raid, ftt, ...}], "vdisks": {"db1": "gold"},
 *    "deleted": [{"uuid": "0102..", "name": "db2"}],
 *    "owned": [{"uuid": "0304..", "term": 1}],
 *    "terms": [{"uuid": "0506..", "term": 2, "owner": "n1"}]}
 *
 * It is rewritten whole, by renaming. Without it the document's policies
 * stand and vDisks have policies of their own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

#define GRAVES_MAX 1024 /* the oldest is forgotten */

/* ---- the file, read ------------------------------------------------------ */

static void memory_name(const struct provider *p, char *name, size_t size)
{
	snprintf(name, size, "cluster-%s.json", p->name);
}

static json_t *memory_load(const struct provider *p)
{
	char name[96];
	json_t *j;
	int fd;

	memory_name(p, name, sizeof(name));
	fd = openat(p->host.dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	j = json_loadfd(fd, 0, NULL);
	close(fd);
	return j;
}

void memory_read(struct provider *p)
{
	json_t *memory = memory_load(p);
	const json_t *one;
	size_t k;

	json_array_foreach(json_object_get(memory, "policies"), k, one) {
		struct vdisk_policy policy;
		const char *name;

		/* remembered before there were two layouts */
		if (!json_object_get(one, "layout"))
			json_object_set_new((json_t *)one, "layout",
					    json_string("inplace"));
		if (!doc_name(one, "name", 63, &name, "", NULL) &&
		    !doc_policy(one, &policy, "", NULL))
			policy_put(p, name, &policy);
	}
	json_decref(memory);
}

/* Gives found vDisks their policies' names back, where these still say what
 * the vDisk is. */
void memory_vdisks(struct provider *p)
{
	json_t *memory = memory_load(p);
	const json_t *names = json_object_get(memory, "vdisks");

	for (struct p_vdisk *v = p->vdisks; v; v = v->next) {
		const char *name =
			json_string_value(json_object_get(names, v->name));

		if (name && policy_find(p, name))
			snprintf(v->policy, sizeof(v->policy), "%s", name);
	}
	json_decref(memory);
}

/* ---- what was deleted ---------------------------------------------------- */

bool grave_has(const struct provider *p, const uint8_t uuid[16])
{
	for (size_t k = 0; k < p->graves; k++)
		if (!memcmp(p->grave[k].uuid, uuid, 16))
			return true;
	return false;
}

int grave_dig(struct provider *p, const uint8_t uuid[16], const char *name)
{
	if (!p->grave)
		p->grave = calloc(GRAVES_MAX, sizeof(*p->grave));
	if (!p->grave)
		return -ENOMEM;
	if (p->graves == GRAVES_MAX)
		memmove(p->grave, p->grave + 1,
			--p->graves * sizeof(*p->grave));
	memcpy(p->grave[p->graves].uuid, uuid, 16);
	snprintf(p->grave[p->graves].name, sizeof(p->grave[0].name), "%s",
		 name);
	p->graves++;
	return 0;
}

static json_t *graves_json(const struct provider *p)
{
	json_t *list = json_array();

	for (size_t k = 0; k < p->graves; k++) {
		const struct p_grave *g = &p->grave[k];
		char text[33];

		uuid_hex(g->uuid, text);
		json_array_append_new(list, json_pack("{s:s, s:s}", "uuid",
						      text, "name", g->name));
	}
	return list;
}

void memory_graves(struct provider *p)
{
	json_t *memory = memory_load(p);
	const json_t *one;
	size_t k;

	json_array_foreach(json_object_get(memory, "deleted"), k, one) {
		const char *text =
			json_string_value(json_object_get(one, "uuid"));
		const char *name =
			json_string_value(json_object_get(one, "name"));
		uint8_t uuid[16];

		if (text && name && uuid_read(text, uuid))
			grave_dig(p, uuid, name);
	}
	json_decref(memory);
}

void memory_owns(struct provider *p)
{
	json_t *memory = memory_load(p);

	own_read(p, json_object_get(memory, "owned"));
	lend_terms_read(p, json_object_get(memory, "terms"));
	json_decref(memory);
}

/* ---- the file, written -------------------------------------------------- */

static json_t *memory_json(const struct provider *p)
{
	json_t *policies = json_array(), *vdisks = json_object();

	for (size_t k = 0; k < p->policies; k++) {
		const struct p_policy *x = &p->policy[k];

		json_array_append_new(
			policies,
			json_pack("{s:s, s:i, s:i, s:i, s:I, s:s, s:s}", "name",
				  x->name, "raid", (int)x->policy.raid, "ftt",
				  (int)policy_ftt(&x->policy), "k",
				  (int)x->policy.k, "stripe_unit_bytes",
				  (json_int_t)x->policy.stripe_unit_bytes,
				  "layout", vdisk_layout_name(x->policy.layout),
				  "compression",
				  vdisk_codec_name(x->policy.codec)));
	}
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (*v->policy)
			json_object_set_new(vdisks, v->name,
					    json_string(v->policy));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "policies", policies,
			 "vdisks", vdisks, "deleted", graves_json(p), "owned",
			 own_json(p), "terms", lend_terms_json(p));
}

int memory_write(struct provider *p)
{
	json_t *j = memory_json(p);
	char name[96], tmp[104];
	int fd, rc = -ENOMEM;

	memory_name(p, name, sizeof(name));
	snprintf(tmp, sizeof(tmp), "%s.new", name);
	fd = openat(p->host.dirfd, tmp,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd >= 0) {
		rc = j && !json_dumpfd(j, fd, JSON_INDENT(1)) && !fsync(fd)
			     ? 0
			     : -EIO;
		close(fd);
		if (!rc && renameat(p->host.dirfd, tmp, p->host.dirfd, name))
			rc = -errno;
		if (!rc && fsync(p->host.dirfd))
			rc = -errno;
	}
	json_decref(j);
	if (rc)
		tell_log(p, "warn",
			 "names of policies and of deleted vDisks could not be "
			 "kept: %s",
			 strerror(-rc));
	return rc;
}
