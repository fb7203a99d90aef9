/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Named policies: what they are, how they fit to the domains there are, and
 * which vDisks have to move to them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
