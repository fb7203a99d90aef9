/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   SHUT --life_open--> BUSY --> OPEN --life_close--> BUSY --> SHUT
 *                        ^         |
 *   (life_create) -------+         +--life_delete--> BUSY --> gone
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

struct life {
	struct p_vdisk *vdisk;
	struct vdisk_slot slot[PARTS_MAX];
	unsigned slots;
	struct vdisk_policy policy;
	uint64_t size_bytes;
	struct bdev *top;          /* to be closed */
	void (*closed)(void *arg); /* then */
	unsigned fences; /* components that others have, and one for us */
	life_done_fn *done;
	void *arg;
};

/* ---- the list ----------------------------------------------------------- */

struct p_vdisk *vdisk_find(const struct provider *p, const char *name)
{
	struct p_vdisk *v = p->vdisks;

	while (v && strcmp(v->name, name) != 0)
		v = v->next;
	return v;
}

/* By name, so that they stand in the same order after each opening. */
struct p_vdisk *vdisk_add(struct provider *p, const char *name)
{
	struct p_vdisk **at = &p->vdisks, *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->provider = p;
	snprintf(v->name, sizeof(v->name), "%s", name);
	while (*at && strverscmp((*at)->name, name) <= 0)
		at = &(*at)->next;
	v->next = *at;
	*at = v;
	return v;
}

void vdisk_wait(struct p_vdisk *v, struct reply *reply)
{
	struct p_wait *w = malloc(sizeof(*w));

	id_assert(w);
	*w = (struct p_wait) { .next = v->waits, .reply = reply };
	v->waits = w;
	tend_soon(v->provider);
}

void vdisk_waits_end(struct p_vdisk *v, int rc, const struct err *err)
{
	struct p_wait *w;

	while ((w = v->waits)) {
		v->waits = w->next;
		if (rc)
			reply_err(w->reply, err);
		else
			reply_ok(w->reply);
		free(w);
	}
}

void vdisk_waits_tend(struct p_vdisk *v)
{
	if (v->waits && !v->wanted && !v->moving && v->phase == PV_OPEN &&
	    v->info.state != VDISK_MIGRATING)
		vdisk_waits_end(v, v->move_err.code, &v->move_err);
}

/* One that is closed goes on when it is opened again. */
static void waits_leave(struct p_vdisk *v, const char *why)
{
	struct err err;

	err_set(&err, -ECANCELED, "%s %s before its change was done", v->name,
		why);
	vdisk_waits_end(v, err.code, &err);
}

void vdisk_remove(struct p_vdisk *v)
{
	struct p_vdisk **at = &v->provider->vdisks;

	waits_leave(v, "was deleted");
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	tell_figures_whole(v);
	free(v);
}

static struct life *life_new(struct p_vdisk *v, life_done_fn *done, void *arg)
{
	struct life *l = calloc(1, sizeof(*l));

	id_assert(l);
	l->vdisk = v;
	l->done = done;
	l->arg = arg;
	return l;
}

static void life_end(struct life *l, int rc, const struct err *err)
{
	struct provider *p = l->vdisk->provider;
	life_done_fn *done = l->done;
	void *arg = l->arg;

	free(l);
	tend_soon(p);
	done(rc, err, arg);
}

/* ---- open --------------------------------------------------------------- */

static void on_changed(struct bdev *bdev, void *arg)
{
	struct p_vdisk *v = arg;

	(void)bdev;
	v->told = true;
	tend_soon(v->provider);
}

/* 0 would be the engine's own. */
static uint32_t absent_ms(const struct provider *p)
{
	return p->absent_ns < MSEC_NS ? 1 : (uint32_t)(p->absent_ns / MSEC_NS);
}

static struct vdisk_spec spec_of(struct life *l)
{
	return (struct vdisk_spec) {
		.cluster = l->vdisk->provider->name,
		.name = l->vdisk->name,
		.size_bytes = l->size_bytes,
		.policy = l->policy,
		.absent_ms = absent_ms(l->vdisk->provider),
		.slot = l->slot,
		.slots = l->slots,
		.changed = on_changed,
		.changed_arg = l->vdisk,
	};
}

static void now_open(struct p_vdisk *v, struct bdev *bdev, bool made)
{
	v->bdev = bdev;
	proof_vdisk_open(v, made);
	v->phase = PV_OPEN;
	v->failed = false;
	v->reason[0] = '\0';
	v->parts = 0;
	v->told = true;
	v->provider->tidy = true;
	v->opened_t_us = (int64_t)event_now_us();
	v->took_ns =
		made ? 0 : reactor_now(v->provider->reactor) - v->opening_ns;
	tell_figures_whole(v);
	v->lost_told = 0;
	memset(v->gone_ns, 0, sizeof(v->gone_ns));
	memset(v->tried_ns, 0, sizeof(v->tried_ns));
	vdisk_info(bdev, &v->info);
}

static void opened(int rc, const struct err *err, struct bdev *bdev, void *arg)
{
	struct life *l = arg;
	struct p_vdisk *v = l->vdisk;

	if (!rc) {
		now_open(v, bdev, false);
		policy_intend(v);
	} else {
		place_drop(v->provider, l->slot, l->slots);
		v->phase = PV_SHUT;
		v->told = v->failed = true;
		snprintf(v->reason, sizeof(v->reason), "%s", err->text);
	}
	life_end(l, rc, err);
}

static bool part_known(const struct p_vdisk *v, const char *component)
{
	for (size_t k = 0; k < v->parts; k++)
		if (!strcmp(v->part[k].component, component))
			return true;
	return false;
}

/* Those that its labels name. */
static void parts_of_slots(struct p_vdisk *v)
{
	for (unsigned k = 0; k < v->info.slots; k++) {
		const struct vdisk_slot *slot = &v->info.slot[k];
		struct p_drive *d =
			drive_find(v->provider, slot->domain, slot->drive);
		struct p_part *part = &v->part[v->parts];

		if (!d || v->parts == PARTS_MAX ||
		    part_known(v, slot->component))
			continue;
		part->drive = d;
		part->epoch = v->info.epoch;
		memcpy(part->component, slot->component,
		       sizeof(part->component));
		v->parts++;
	}
}

static void part_take(struct life *l, const struct p_part *part)
{
	struct vdisk_slot *slot = &l->slot[l->slots];
	struct p_drive *d = part->drive;

	if (stack_open(d, part->component, &slot->bdev, NULL))
		return;
	snprintf(slot->domain, sizeof(slot->domain), "%s", d->domain->name);
	snprintf(slot->drive, sizeof(slot->drive), "%s", d->name);
	snprintf(slot->component, sizeof(slot->component), "%s",
		 part->component);
	l->slots++;
}

/* Nobody else has any of its components here. */
static void fenced(void *arg)
{
	struct life *l = arg;
	struct p_vdisk *v = l->vdisk;
	struct provider *p = v->provider;
	struct vdisk_spec spec;

	if (--l->fences)
		return;
	for (size_t k = 0; k < v->parts; k++)
		part_take(l, &v->part[k]);
	l->policy = v->info.policy; /* its layout, as the labels say */
	spec = spec_of(l);
	v->opening_ns = reactor_now(p->reactor);
	vdisk_open(p->reactor, &spec, opened, l);
}

/* What is here and lent to whoever owned it before, he loses first. */
void life_open(struct p_vdisk *v, life_done_fn *done, void *arg)
{
	struct provider *p = v->provider;
	struct life *l = life_new(v, done, arg);

	v->phase = PV_BUSY;
	v->shut_serial = p->drive_serial;
	v->shut_ns = reactor_now(p->reactor);
	if (*p->node)
		parts_of_slots(v);
	l->fences = 1;
	for (size_t k = 0; k < v->parts; k++) {
		if (!lend_has(p, v->part[k].drive, v->part[k].component))
			continue;
		l->fences++;
		lend_fence(p, v->part[k].drive, v->part[k].component, fenced,
			   l);
	}
	fenced(l);
}

/* ---- create ------------------------------------------------------------- */

static void created(int rc, const struct err *err, struct bdev *bdev, void *arg)
{
	struct life *l = arg;
	struct p_vdisk *v = l->vdisk;
	struct provider *p = v->provider;

	if (!rc) {
		now_open(v, bdev, true);
		p->cluster_told = true;
		own_take(v, 1); /* memory_write() tells of a failure */
		life_end(l, 0, NULL);
		return;
	}
	place_undo(p, l->slot, l->slots);
	l->vdisk = NULL;
	tell_vdisk_gone(p, v->name); /* an attach may have told of it */
	vdisk_remove(v);
	l->done(rc, err, l->arg);
	free(l);
}

/* What the request says the vDisk shall be: a policy's name, or its own. */
static int create_policy(struct provider *p, const json_t *spec,
			 const char **name, struct vdisk_policy *policy,
			 struct err *err)
{
	const json_t *j = json_object_get(spec, "policy");
	const struct p_policy *named;
	int rc = 0;

	*name = "";
	if (json_is_string(j)) {
		*name = json_string_value(j);
		named = policy_find(p, *name);
		if (!named)
			return err_set(err, -ENOENT,
				       "there is no policy %.63s; `policy "
				       "list` names them",
				       *name);
		*policy = named->policy;
	} else {
		rc = doc_policy(spec, policy, "vdisk", err);
	}
	return rc ? rc : policy_fit(p, policy, policy, err);
}

static int create_check(struct life *l, struct provider *p, const json_t *spec,
			const char **name, const char **policy, struct err *err)
{
	int rc = doc_name(spec, "name", PLACE_NAME - 1, name, "vdisk", err);

	if (!rc && vdisk_find(p, *name))
		rc = err_set(err, -EEXIST, "there is a vDisk %s already",
			     *name);
	if (!rc)
		rc = doc_bytes(spec, "size_bytes", 0, &l->size_bytes, "vdisk",
			       err);
	if (!rc && (l->size_bytes < MIB || l->size_bytes % 4096))
		rc = err_set(err, -EINVAL,
			     "vdisk %s: the size must be 1 MiB or more and a "
			     "multiple of 4096 bytes, not %llu",
			     *name, (unsigned long long)l->size_bytes);
	if (!rc)
		rc = create_policy(p, spec, policy, &l->policy, err);
	return rc;
}

void life_create(struct provider *p, const json_t *spec, life_done_fn *done,
		 void *arg)
{
	struct life *l = life_new(NULL, done, arg);
	const char *name, *policy;
	struct vdisk_spec vspec;
	struct err err = { 0 };
	int rc = create_check(l, p, spec, &name, &policy, &err);

	if (!rc)
		rc = place_slots(p, name, &l->policy, l->size_bytes, l->slot,
				 &l->slots, &err);
	if (rc) {
		free(l);
		done(rc, &err, arg);
		return;
	}
	l->vdisk = vdisk_add(p, name);
	id_assert(l->vdisk);
	l->vdisk->phase = PV_BUSY;
	l->vdisk->owned = true;
	l->vdisk->term = 1;
	snprintf(l->vdisk->policy, sizeof(l->vdisk->policy), "%s", policy);
	vspec = spec_of(l);
	vdisk_create(p->reactor, &vspec, created, l);
}

/* ---- close, delete ------------------------------------------------------ */

/* Those of a migration's target are known by their names alone. */
static void parts_by_name(struct p_vdisk *v, struct p_drive *d)
{
	struct drive_component *list = NULL;
	size_t count = 0;

	if (!d->store || d->store->ops->list(d->store, &list, &count, NULL))
		return;
	for (size_t k = 0; k < count && v->parts < PARTS_MAX; k++) {
		struct p_part *part = &v->part[v->parts];

		if (!component_of(list[k].id, v->name) ||
		    part_known(v, list[k].id))
			continue;
		part->drive = d;
		part->epoch = 0;
		memcpy(part->component, list[k].id, sizeof(part->component));
		v->parts++;
	}
	free(list);
}

/* Where its members are, for opening it again. */
static void parts_keep(struct p_vdisk *v)
{
	struct provider *p = v->provider;

	v->parts = 0;
	parts_of_slots(v);
	if (!v->moving && v->info.state != VDISK_MIGRATING)
		return;
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++)
			parts_by_name(v, &p->domain[k].drive[d]);
}

static void unexported(void *arg)
{
	struct life *l = arg;

	bdev_close(l->top, l->closed, l);
}

/* Nobody from outside may be at it when it goes. */
static void top_close(struct life *l, void (*done)(void *arg))
{
	struct p_vdisk *v = l->vdisk;

	l->top = v->top;
	l->closed = done;
	v->bdev = v->top = NULL;
	export_stop(v, unexported, l);
}

static void closed(void *arg)
{
	struct life *l = arg;

	l->vdisk->phase = PV_SHUT;
	life_end(l, 0, NULL);
}

void life_close(struct p_vdisk *v, life_done_fn *done, void *arg)
{
	struct life *l = life_new(v, done, arg);

	id_assert(v->phase == PV_OPEN);
	vdisk_info(v->bdev, &v->info);
	parts_keep(v);
	v->phase = PV_BUSY;
	v->told = true;
	if (!v->failed)
		snprintf(v->reason, sizeof(v->reason), "closed");
	waits_leave(v, "was closed");
	top_close(l, closed);
}

static void deleted(void *arg)
{
	struct life *l = arg;
	struct p_vdisk *v = l->vdisk;
	struct provider *p = v->provider;

	for (size_t k = 0; k < v->parts; k++) {
		const struct p_part *part = &v->part[k];

		if (drive_is_there(part->drive)) {
			component_remove(part->drive, part->component);
			continue;
		}
		undone_add(p, part->drive, part->component, v->name);
		tell_log(p, "warn",
			 "%s:%s is not there: what is on it of %s, which was "
			 "deleted, is removed when it is back",
			 part->drive->domain->name, part->drive->name, v->name);
	}
	tell_vdisk_gone(p, v->name);
	p->cluster_told = true;
	own_drop(v);
	vdisk_remove(v);
	memory_write(p); /* without its policy's name */
	tend_soon(p);
	l->done(0, NULL, l->arg);
	free(l);
}

/* Before anything is gone, so that an end in the middle is no way back. What
 * cannot be remembered is no harm while all of it is there. */
static int delete_remember(struct p_vdisk *v, struct err *err)
{
	struct provider *p = v->provider;
	int rc = grave_dig(p, v->info.uuid, v->name);

	if (!rc)
		rc = memory_write(p);
	for (unsigned k = 0; rc && k < v->info.slots; k++) {
		const struct vdisk_slot *slot = &v->info.slot[k];
		const struct p_drive *d =
			drive_find(p, slot->domain, slot->drive);

		if (d && drive_is_there(d))
			continue;
		if (rc != -ENOMEM)
			p->graves--;
		memory_write(p); /* nor shall half of it be */
		return err_set(err, rc,
			       "%s stays: %s:%s is not there, and it cannot be "
			       "kept in mind to delete what is on it later: %s",
			       v->name, slot->domain, slot->drive,
			       strerror(-rc));
	}
	return 0;
}

void life_delete(struct p_vdisk *v, life_done_fn *done, void *arg)
{
	struct life *l;
	struct err err;
	int rc;

	if (v->phase == PV_OPEN)
		vdisk_info(v->bdev, &v->info);
	rc = delete_remember(v, &err);
	if (rc) {
		done(rc, &err, arg);
		return;
	}
	l = life_new(v, done, arg);
	if (v->phase == PV_OPEN) {
		parts_keep(v);
		v->phase = PV_BUSY;
		top_close(l, deleted);
		return;
	}
	parts_of_slots(v);
	v->phase = PV_BUSY;
	deleted(l);
}
