/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Looks at every drive of the document, claims what may be claimed, and reads
 * the labels of what stands on them, with a reactor of its own on a thread of
 * its own. The provider touches nothing of this until it is over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/agent/chores.h"
#include "backend/provider/provider_priv.h"

struct scan {
	struct provider *provider;
	struct reactor *reactor;
	void (*done)(void *arg);
	void *arg;
	unsigned waited_ms;
	json_t *said; /* what the log shall say of components: texts */
};

/* An agent that was killed is gone before the kernel has ended what it had in
 * flight, and lets go of its files. In all, not for each. */
#define BUSY_MAX_MS 5000u
#define BUSY_STEP_MS 10u

/* ---- one drive ---------------------------------------------------------- */

static void drive_fails(struct p_drive *d, const char *reason)
{
	const size_t path = strlen(d->path);

	/* the path is told beside it */
	if (!strncmp(reason, d->path, path))
		reason += path + strspn(reason + path, ": ");
	d->state = P_DRIVE_FAILED;
	snprintf(d->reason, sizeof(d->reason), "%s",
		 *reason ? reason : "cannot be opened");
}

/* mkdir -p, for a lab that makes itself. */
static void dirs_make(const char *path)
{
	char *copy = strdup(path);

	for (char *at = copy ? copy + 1 : NULL; at && *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(copy, 0700);
		*at = '/';
	}
	if (copy)
		mkdir(copy, 0700);
	free(copy);
}

/* Ours, or made ours if it is empty and the document says create. */
static bool drive_take(struct scan *s, struct p_drive *d,
		       struct drive_facts *facts)
{
	const struct provider *p = s->provider;
	struct err err = { 0 };
	struct stat st;
	int rc;

	if (p->create && stat(d->path, &st) && errno == ENOENT)
		dirs_make(d->path);
	rc = drive_probe(d->path, facts, &err);
	if (!rc && facts->verdict == DRIVE_EMPTY && p->create)
		rc = drive_claim(d->path, p->name, NULL, &err);
	if (!rc)
		rc = drive_probe(d->path, facts, &err);
	d->kind = facts->kind;
	if (rc)
		drive_fails(d, err.text);
	else if (facts->verdict == DRIVE_EMPTY)
		drive_fails(d, "is not claimed: drive claim makes it a drive");
	else if (facts->verdict != DRIVE_OURS)
		drive_fails(d, facts->reason);
	else if (strcmp(facts->cluster, p->name) != 0)
		snprintf(err.text, sizeof(err.text),
			 "belongs to cluster %s: release it there first",
			 facts->cluster);
	else
		return true;
	if (d->state != P_DRIVE_FAILED)
		drive_fails(d, err.text);
	return false;
}

/* ---- components --------------------------------------------------------- */

static struct p_vdisk *vdisk_of(struct provider *p,
				const struct vdisk_label_facts *facts)
{
	struct p_vdisk *v;

	for (v = p->vdisks; v; v = v->next)
		if (!memcmp(v->info.uuid, facts->uuid, sizeof(facts->uuid)))
			return v;
	v = vdisk_add(p, facts->name);
	if (v) {
		memcpy(v->info.uuid, facts->uuid, sizeof(facts->uuid));
		own_find(v);
	}
	return v;
}

/* What the newest label says is shown until it is open, or if it never is. */
static void facts_keep(struct p_vdisk *v, const struct vdisk_label_facts *facts)
{
	struct vdisk_info *info = &v->info;

	if (v->parts && facts->epoch <= info->epoch)
		return;
	snprintf(info->name, sizeof(info->name), "%s", facts->name);
	info->epoch = facts->epoch;
	info->policy = facts->policy;
	info->size_bytes = facts->size_bytes;
	info->slots = facts->slots;
	memcpy(info->slot, facts->slot, sizeof(info->slot));
}

static bool component_listed(const struct drive_component *list, size_t count,
			     const char *id)
{
	for (size_t k = 0; k < count; k++)
		if (!strcmp(list[k].id, id))
			return true;
	return false;
}

static bool part_has(const struct p_vdisk *v, const struct p_drive *d,
		     const char *id)
{
	for (size_t k = 0; k < v->parts; k++)
		if (v->part[k].drive == d && !strcmp(v->part[k].component, id))
			return true;
	return false;
}

void part_found(struct provider *p, struct p_drive *d, const char *id,
		const struct vdisk_label_facts *facts)
{
	struct p_vdisk *v;
	struct p_part *part;

	if (strcmp(facts->cluster, p->name) != 0 || grave_has(p, facts->uuid))
		return;
	v = vdisk_of(p, facts);
	if (!v || v->phase != PV_SHUT || v->parts == PARTS_MAX ||
	    part_has(v, d, id))
		return;
	facts_keep(v, facts);
	part = &v->part[v->parts++];
	*part = (struct p_part) { .drive = d, .epoch = facts->epoch };
	snprintf(part->component, sizeof(part->component), "%s", id);
}

void parts_prune(struct provider *p, const struct p_drive *d)
{
	struct drive_component *list = NULL;
	size_t count = 0, left;
	struct p_vdisk *v, *next;

	if (d->store->ops->list(d->store, &list, &count, NULL))
		return;
	for (v = p->vdisks; v; v = next) {
		next = v->next;
		if (v->phase != PV_SHUT || !v->parts)
			continue;
		left = 0;
		for (size_t k = 0; k < v->parts; k++)
			if (v->part[k].drive != d ||
			    component_listed(list, count, v->part[k].component))
				v->part[left++] = v->part[k];
		v->parts = left;
		if (!left && !v->owned)
			vdisk_remove(v);
	}
	free(list);
}

static int component_open(struct scan *s, struct store *store, const char *id,
			  struct bdev **bdev)
{
	const struct timespec step = { .tv_nsec = BUSY_STEP_MS * 1000000 };
	int rc;

	while ((rc = store->ops->open(store, id, bdev, NULL)) == -EBUSY &&
	       s->waited_ms < BUSY_MAX_MS) {
		nanosleep(&step, NULL);
		s->waited_ms += BUSY_STEP_MS;
	}
	return rc;
}

/* The tale is told when the thread is over. */
static void component_bury(struct scan *s, const struct p_drive *d,
			   struct store *store, const char *id,
			   const char *vdisk)
{
	struct err err = { 0 };
	const int rc = store->ops->remove(store, id, &err);

	json_array_append_new(
		s->said,
		json_sprintf(
			"%s:%s: a component of %s, which was deleted, %s%s",
			d->domain->name, d->name, vdisk,
			rc ? "cannot be removed: " : "is removed",
			rc ? err.text : ""));
}

static void component_look(struct scan *s, struct p_drive *d,
			   struct store *store,
			   const struct drive_component *component)
{
	const char *id = component->id;
	struct vdisk_label_facts facts;
	struct err err = { 0 };
	struct bdev *bdev;
	int rc;

	if (component_open(s, store, id, &bdev))
		return;
	rc = vdisk_label_probe(bdev, &facts, &err);
	bdev_close_sync(bdev);
	if (rc == -ENOENT) /* its making was cut short: nothing is on it */
		store->ops->remove(store, id, NULL);
	else if (rc)
		json_array_append_new(
			s->said,
			json_sprintf("%s:%s: component %s is of no use: %s",
				     d->domain->name, d->name, id, err.text));
	if (rc)
		return;
	if (!strcmp(facts.cluster, s->provider->name) &&
	    grave_has(s->provider, facts.uuid))
		component_bury(s, d, store, id, facts.name);
	else
		part_found(s->provider, d, id, &facts);
}

/* Its room, and what is used of it. */
static int drive_measure(struct p_drive *d, struct store *store,
			 struct err *err)
{
	struct drive_component *list = NULL;
	struct drive_facts facts = { 0 };
	size_t count = 0;
	int rc = store->ops->list(store, &list, &count, err);

	if (rc)
		return rc;
	d->used_bytes = 0;
	for (size_t k = 0; k < count; k++)
		d->used_bytes += list[k].size_bytes;
	free(list);
	store->ops->facts(store, &facts);
	d->kind = facts.kind;
	d->size_bytes = d->kind == DRIVE_DIR ? d->used_bytes + facts.free_bytes
					     : facts.size_bytes;
	if (d->most_bytes && d->most_bytes < d->size_bytes)
		d->size_bytes = d->most_bytes;
	return 0;
}

/* One that could not be used when the cluster was opened, and now may. */
static void drive_admit(struct provider *p, struct p_drive *d)
{
	struct err err = { 0 };
	char name[72];
	int rc;

	snprintf(name, sizeof(name), "%s:%s", d->domain->name, d->name);
	rc = store_here_open(p->reactor, d->path, name, &d->store, &err);
	if (!rc)
		rc = drive_measure(d, d->store, &err);
	if (rc) {
		store_close(d->store);
		d->store = NULL;
		drive_fails(d, err.text);
		return;
	}
	d->state = P_DRIVE_OK;
	d->reason[0] = '\0';
	p->drive_serial++;
	tell_log(p, "info", "drive %s, %s, is in use now", name, d->path);
}

void provider_drive_claimed(struct provider *p, const char *path,
			    const char *cluster)
{
	if (p->opening || p->closing || strcmp(cluster, p->name) != 0)
		return;
	for (size_t k = 0; k < p->domains; k++)
		for (size_t n = 0; n < p->domain[k].drives; n++) {
			struct p_drive *d = &p->domain[k].drive[n];

			if (d->state == P_DRIVE_FAILED && !d->store &&
			    d->link && !strcmp(d->path, path))
				drive_admit(p, d);
		}
	p->cluster_told = true;
	tend_soon(p);
}

static void drive_look(struct scan *s, struct p_drive *d)
{
	struct drive_component *list = NULL;
	struct drive_facts facts = { 0 };
	struct store *store = NULL;
	struct err err = { 0 };
	size_t count = 0;
	int rc;

	if (!drive_take(s, d, &facts))
		return;
	rc = store_here_open(s->reactor, d->path, d->name, &store, &err);
	if (!rc)
		rc = store->ops->list(store, &list, &count, &err);
	for (size_t k = 0; k < count && !rc; k++)
		component_look(s, d, store, &list[k]);
	free(list);
	if (!rc)
		rc = drive_measure(d, store, &err);
	store_close(store);
	if (rc)
		drive_fails(d, err.text);
}

/* ---- names that two have ------------------------------------------------ */

/* A vDisk deleted and made anew while a drive was away leaves parts of the old
 * one: the one with more of them is meant. */
void twins_drop(struct provider *p)
{
	struct p_vdisk *v = p->vdisks, *next;

	for (; v; v = next) {
		bool lesser = false;

		next = v->next;
		for (struct p_vdisk *o = p->vdisks; o; o = o->next)
			if (o != v && !strcmp(o->name, v->name) &&
			    (o->parts > v->parts ||
			     (o->parts == v->parts &&
			      o->info.epoch > v->info.epoch)))
				lesser = true;
		if (lesser)
			vdisk_remove(v);
	}
}

/* ---- the chore ---------------------------------------------------------- */

static void scan_work(void *arg)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS,
					   .workers = 1,
					   .name = "scan" };
	struct scan *s = arg;
	struct provider *p = s->provider;
	struct err err = { 0 };
	int rc = reactor_new(&opts, &s->reactor, &err);

	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++) {
			if (p->domain[k].far)
				continue;
			if (rc)
				drive_fails(&p->domain[k].drive[d], err.text);
			else
				drive_look(s, &p->domain[k].drive[d]);
		}
	reactor_free(s->reactor);
}

static void scan_done(void *arg)
{
	struct scan *s = arg;
	const json_t *text;
	size_t k;

	json_array_foreach(s->said, k, text)
		tell_log(s->provider, "warn", "%s", json_string_value(text));
	json_decref(s->said);
	s->done(s->arg);
	free(s);
}

void scan_start(struct provider *p, void (*done)(void *arg), void *arg)
{
	struct scan *s = calloc(1, sizeof(*s));

	id_assert(s);
	*s = (struct scan) {
		.provider = p, .done = done, .arg = arg, .said = json_array()
	};
	chores_start(p->host.chores, scan_work, scan_done, s);
}
