/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   vDisk --> domain's link --> port --> drive's link --> component
 *
 * and over the component a volatile cache where a test asks for one (proof.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/provider/provider_priv.h"

struct p_domain *domain_find(const struct provider *p, const char *name)
{
	for (size_t k = 0; k < p->domains; k++)
		if (!strcmp(p->domain[k].name, name))
			return &p->domain[k];
	return NULL;
}

struct p_drive *drive_find(const struct provider *p, const char *domain,
			   const char *drive)
{
	struct p_domain *dom = domain_find(p, domain);

	for (size_t k = 0; dom && k < dom->drives; k++)
		if (!strcmp(dom->drive[k].name, drive))
			return &dom->drive[k];
	return NULL;
}

struct p_drive *drive_named(const struct provider *p, const char *target)
{
	const char *colon = strchr(target, ':');
	char domain[PLACE_NAME];

	if (!colon || (size_t)(colon - target) >= sizeof(domain))
		return NULL;
	memcpy(domain, target, (size_t)(colon - target));
	domain[colon - target] = '\0';
	return drive_find(p, domain, colon + 1);
}

bool drive_is_there(const struct p_drive *d)
{
	return d->store && d->state == P_DRIVE_OK && !d->silent;
}

uint64_t drive_free(const struct p_drive *d)
{
	return d->size_bytes > d->used_bytes ? d->size_bytes - d->used_bytes
					     : 0;
}

unsigned domains_there(const struct provider *p)
{
	unsigned count = 0;

	for (size_t k = 0; k < p->domains; k++) {
		const struct p_domain *dom = &p->domain[k];
		size_t d = 0;

		while (d < dom->drives && !drive_is_there(&dom->drive[d]))
			d++;
		count += d < dom->drives;
	}
	return count;
}

static void dropped(void *arg)
{
	(void)arg;
}

static void bdev_drop(struct bdev *bdev)
{
	if (bdev)
		bdev_close(bdev, dropped, NULL);
}

void stack_drop(struct p_drive *d, const char *component)
{
	bdev_drop(hub_top(&d->hub, component));
}

/* A layer that opened owns what is below it. */
int stack_open(struct p_drive *d, const char *component, struct bdev **bdev,
	       struct err *err)
{
	struct bdev *at = NULL, *up = NULL;
	int rc;

	if (!drive_is_there(d))
		return err_set(err, -ENODEV, "drive %s:%s is not there",
			       d->domain->name, d->name);
	rc = d->store->ops->open(d->store, component, &at, err);
	if (!rc)
		rc = proof_component(&at, err);
	if (!rc)
		rc = bdev_link_open(at, d->link, &up, err);
	if (!rc) {
		at = up;
		rc = port_open(at, &d->hub, component, &up, err);
	}
	if (!rc) {
		at = up;
		rc = bdev_link_open(at, d->domain->link, &up, err);
	}
	if (!rc)
		port_top_set(at, up);
	if (rc) {
		bdev_drop(at);
		return rc;
	}
	snprintf(up->name, sizeof(up->name), "%s:%s", d->domain->name, d->name);
	*bdev = up;
	return 0;
}

int component_make(struct p_drive *d, const char *component, uint64_t bytes,
		   struct err *err)
{
	int rc;

	if (drive_free(d) < bytes)
		return err_set(err, -ENOSPC,
			       "drive %s:%s has %llu MiB left, %llu MiB are "
			       "needed",
			       d->domain->name, d->name,
			       (unsigned long long)(drive_free(d) / MIB),
			       (unsigned long long)((bytes + MIB - 1) / MIB));
	rc = d->store->ops->make(d->store, component, bytes, err);
	if (!rc)
		d->used_bytes += bytes;
	return rc;
}

/* As large as the drive says: a policy that has changed says something else. */
void component_remove(struct p_drive *d, const char *component)
{
	struct drive_component *list = NULL;
	uint64_t bytes = 0;
	size_t count = 0;

	if (!d->store || d->store->ops->list(d->store, &list, &count, NULL))
		return;
	for (size_t k = 0; k < count; k++)
		if (!strcmp(list[k].id, component))
			bytes = list[k].size_bytes;
	free(list);
	if (d->store->ops->remove(d->store, component, NULL))
		return;
	d->used_bytes -= bytes < d->used_bytes ? bytes : d->used_bytes;
}
