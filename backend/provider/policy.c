/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Named policies. Labels know what a vDisk is, not what its policy is called,
 * so names live in a small file beside the spool:
 *
 *   {"policies": [{name, raid, ftt, ...}], "vdisks": {"db1": "gold"}}
 *
 * It is rewritten whole, by renaming. Without it the document's policies
 * stand and vDisks have policies of their own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/provider/provider_priv.h"

#define POLICIES_MAX 256

struct p_policy *policy_find(const struct provider *p, const char *name)
{
	for (size_t k = 0; k < p->policies; k++)
		if (!strcmp(p->policy[k].name, name))
			return &p->policy[k];
	return NULL;
}

int policy_put(struct provider *p, const char *name,
	       const struct vdisk_policy *policy)
{
	struct p_policy *has = policy_find(p, name);

	if (!has) {
		if (p->policies >= POLICIES_MAX)
			return -ENOSPC;
		if (!p->policy)
			p->policy = calloc(POLICIES_MAX, sizeof(*p->policy));
		if (!p->policy)
			return -ENOMEM;
		has = &p->policy[p->policies++];
		snprintf(has->name, sizeof(has->name), "%s", name);
	}
	has->policy = *policy;
	return 0;
}

unsigned policy_ftt(const struct vdisk_policy *policy)
{
	return policy->raid == RAID_5   ? 1
	       : policy->raid == RAID_6 ? 2
					: policy->m;
}

int policy_fit(const struct provider *p, const struct vdisk_policy *policy,
	       struct vdisk_policy *fit, struct err *err)
{
	unsigned needed;

	*fit = *policy;
	return vdisk_policy_fit(fit, (unsigned)p->domains, &needed, err);
}

bool policy_same(const struct vdisk_policy *a, const struct vdisk_policy *b)
{
	return a->layout == b->layout && a->codec == b->codec &&
	       a->raid == b->raid && a->k == b->k && a->m == b->m &&
	       (a->stripe_unit_bytes == b->stripe_unit_bytes ||
		a->raid == RAID_1);
}

/* ---- memory ------------------------------------------------------------- */

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

/* Cut short before its migration began: what its policy says is still to be.
 * More fault domains than there were are no reason to move, and no layout
 * becomes another. */
void policy_intend(struct p_vdisk *v)
{
	const struct p_policy *has = policy_find(v->provider, v->policy);
	struct vdisk_policy fit, is = v->info.policy;

	if (!has || has->policy.layout != is.layout ||
	    policy_fit(v->provider, &has->policy, &fit, NULL))
		return;
	if (!has->policy.k && is.raid == fit.raid)
		is.k = fit.k;
	if (policy_same(&fit, &is))
		return;
	v->wanted = true;
	v->want = fit;
}

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
	return json_pack("{s:o, s:o}", "policies", policies, "vdisks", vdisks);
}

void memory_write(struct provider *p)
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
	}
	json_decref(j);
	if (rc)
		tell_log(p, "warn",
			 "the names of policies could not be kept: %s",
			 strerror(-rc));
}
