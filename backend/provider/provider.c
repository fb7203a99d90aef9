/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Life of the provider:
 *
 *   new --> open: scan drives --> open drives --> open vDisks found, one after
 *           another --> make those the document names --> tend
 *   close:  tend no more --> close vDisks --> close drives --> gone
 */
#include "backend/provider/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

#define SHUT_POLL_NS (20 * MSEC_NS)

static void provider_free(struct provider *p)
{
	for (size_t k = 0; p->domain && k < p->domains; k++) {
		struct p_domain *dom = &p->domain[k];

		for (size_t d = 0; d < dom->drives; d++)
			free(dom->drive[d].path);
		free(dom->drive);
	}
	while (p->vdisks)
		vdisk_remove(p->vdisks);
	lend_free(p);
	free(p->domain);
	free(p->policy);
	free(p->undone);
	free(p->grave);
	free(p->own);
	json_decref(p->doc_vdisks);
	free(p);
}

int provider_new(struct reactor *r, const json_t *cluster,
		 const struct provider_host *host, struct provider **provider,
		 struct err *err)
{
	struct provider *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->reactor = r;
	p->host = *host;
	p->usage_every_ns = SEC_NS;
	rc = doc_read(p, cluster, err);
	if (rc) {
		provider_free(p);
		return rc;
	}
	*provider = p;
	return 0;
}

const char *provider_name(const struct provider *p)
{
	return p->name;
}

/* ---- open --------------------------------------------------------------- */

static void open_end(struct provider *p, int rc, const struct err *err)
{
	void (*done)(int, const struct err *, void *) = p->opened;

	p->opening = false;
	if (!rc && !p->closing) {
		provider_snapshot(p);
		p->usage.fn = tell_usage;
		p->usage_ns = reactor_now(p->reactor);
		timer_arm(p->reactor, &p->usage,
			  p->usage_ns + p->usage_every_ns);
		tend_start(p);
	}
	done(rc, err, p->opened_arg);
}

static void create_next(struct provider *p);

static void made(int rc, const struct err *err, void *arg)
{
	if (rc)
		tell_log(arg, "error", "a vDisk could not be made: %s",
			 err->text);
	create_next(arg);
}

/* Makes the next one of the document that is not there. */
static void create_next(struct provider *p)
{
	while (p->create && !p->closing &&
	       p->doc_next < json_array_size(p->doc_vdisks)) {
		const json_t *spec =
			json_array_get(p->doc_vdisks, p->doc_next++);
		const char *name =
			json_string_value(json_object_get(spec, "name"));

		if (name && vdisk_find(p, name))
			continue;
		life_create(p, spec, made, p);
		return;
	}
	open_end(p, 0, NULL);
}

static void open_next(struct provider *p);

static void vdisk_was_opened(int rc, const struct err *err, void *arg)
{
	(void)rc; /* it is shown with its reason */
	(void)err;
	open_next(arg);
}

static void open_next(struct provider *p)
{
	struct p_vdisk *v = p->vdisks;

	while (v && (v->phase != PV_SHUT || v->shut_serial || !v->owned))
		v = v->next;
	if (v && !p->closing)
		life_open(v, vdisk_was_opened, p);
	else
		create_next(p);
}

static int drive_start(struct provider *p, struct p_drive *d, struct err *err)
{
	struct err why = { 0 };
	char name[72];
	int rc;

	snprintf(name, sizeof(name), "%s:%s", d->domain->name, d->name);
	hub_init(&d->hub, p->reactor);
	rc = link_new(p->reactor, name, &d->shape, &d->link, err);
	if (!rc && d->domain->far) {
		d->state = P_DRIVE_FAILED;
		snprintf(d->reason, sizeof(d->reason),
			 "node %s has not listed it yet", d->domain->name);
		return store_far_open(p, d, &d->store, err);
	}
	if (rc || d->state != P_DRIVE_OK)
		return rc;
	if (store_here_open(p->reactor, d->path, name, &d->store, &why)) {
		d->state = P_DRIVE_FAILED;
		snprintf(d->reason, sizeof(d->reason), "%.*s",
			 (int)sizeof(d->reason) - 1, why.text);
	}
	return 0;
}

static int drives_start(struct provider *p, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; k < p->domains && !rc; k++) {
		struct p_domain *dom = &p->domain[k];

		rc = link_new(p->reactor, dom->name, &dom->shape, &dom->link,
			      err);
		for (size_t d = 0; d < dom->drives && !rc; d++)
			rc = drive_start(p, &dom->drive[d], err);
	}
	return rc;
}

static unsigned drives_there(const struct provider *p)
{
	unsigned count = 0;

	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++)
			count += drive_is_there(&p->domain[k].drive[d]);
	return count;
}

static int no_drives(const struct provider *p, struct err *err)
{
	const struct p_domain *dom = p->domain;

	while (dom < p->domain + p->domains && !dom->drives)
		dom++;
	if (dom == p->domain + p->domains)
		return err_set(err, -ENODEV, "cluster %s has no drive",
			       p->name);
	return err_set(err, -ENODEV,
		       "no drive of cluster %s can be used; %s:%s, %s: %s",
		       p->name, dom->name, dom->drive->name, dom->drive->path,
		       dom->drive->reason);
}

/* What there is everywhere is known. */
static void all_scanned(void *arg)
{
	struct provider *p = arg;
	struct err err = { 0 };

	if (!drives_there(p)) {
		open_end(p, no_drives(p, &err), &err);
		return;
	}
	twins_drop(p);
	memory_vdisks(p);
	p->drive_serial = 1;
	open_next(p);
}

static void scanned(void *arg)
{
	struct provider *p = arg;
	struct err err = { 0 };
	int rc = drives_start(p, &err);

	if (rc) {
		open_end(p, rc, &err);
		return;
	}
	p->scanned = true;
	far_scan(p, all_scanned, p);
}

/* The same node under another name is the same. */
static bool path_same(const char *a, const char *b)
{
	struct stat sa, sb;

	if (!strcmp(a, b))
		return true;
	if (stat(a, &sa) || stat(b, &sb))
		return false;
	if (S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode))
		return sa.st_rdev == sb.st_rdev;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

int provider_path_free(const struct provider *p, const char *path,
		       struct err *err)
{
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++) {
			const struct p_drive *drive = &p->domain[k].drive[d];

			/* one that is not ours to use is nobody's here */
			if ((!p->opening && !drive->store) ||
			    !path_same(drive->path, path))
				continue;
			return err_set(err, -EBUSY,
				       "%s is drive %s:%s of cluster %s, which "
				       "is open: take it out of the "
				       "configuration, `agent stop`, then "
				       "release it",
				       path, drive->domain->name, drive->name,
				       p->name);
		}
	return 0;
}

void provider_open(struct provider *p,
		   void (*done)(int rc, const struct err *err, void *arg),
		   void *arg)
{
	p->opening = true;
	p->opened = done;
	p->opened_arg = arg;
	memory_read(p);
	memory_graves(p);
	memory_owns(p);
	lend_start(p);
	scan_start(p, scanned, p);
}

/* ---- close -------------------------------------------------------------- */

static bool vdisks_busy(const struct provider *p)
{
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->phase != PV_SHUT || v->moving || v->replacing ||
		    v->verifying)
			return true;
	return false;
}

static bool drives_busy(const struct provider *p)
{
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++)
			if (p->domain[k].drive[d].hub.ports)
				return true;
	return false;
}

static void drives_stop(struct provider *p)
{
	for (size_t k = 0; k < p->domains; k++) {
		struct p_domain *dom = &p->domain[k];

		for (size_t d = 0; d < dom->drives; d++) {
			if (dom->drive[d].link)
				hub_fini(&dom->drive[d].hub);
			link_free(dom->drive[d].link);
			store_close(dom->drive[d].store);
		}
		link_free(dom->link);
	}
}

static void vdisk_shut(int rc, const struct err *err, void *arg)
{
	(void)rc;
	(void)err;
	(void)arg;
}

/* What is at work answers when its vDisk closes; then all is waited for. */
static void shut_run(struct timer *timer)
{
	struct provider *p = container_of(timer, struct provider, shut);
	void (*closed)(void *arg) = p->closed;
	void *arg = p->closed_arg;

	if (!p->opening)
		for (struct p_vdisk *v = p->vdisks; v; v = v->next)
			if (v->phase == PV_OPEN && !v->replacing)
				life_close(v, vdisk_shut, NULL);
	if (p->opening || vdisks_busy(p) || drives_busy(p) || far_busy(p) ||
	    lend_busy(p)) {
		timer_arm(p->reactor, timer,
			  reactor_now(p->reactor) + SHUT_POLL_NS);
		return;
	}
	drives_stop(p);
	provider_free(p);
	closed(arg);
}

void provider_close(struct provider *p, void (*closed)(void *arg), void *arg)
{
	id_assert(!p->closing);
	p->closing = true;
	p->closed = closed;
	p->closed_arg = arg;
	if (!p->opening)
		faults_end(p);
	tend_stop(p);
	lend_stop(p);
	timer_cancel(p->reactor, &p->usage);
	p->shut.fn = shut_run;
	timer_arm(p->reactor, &p->shut, reactor_now(p->reactor));
}

/* ---- for others --------------------------------------------------------- */

void provider_snapshot(struct provider *p)
{
	if (p->opening)
		return;
	tell_cluster(p);
	for (size_t k = 0; k < p->policies; k++)
		tell_policy(p, &p->policy[k]);
	for (struct p_vdisk *v = p->vdisks; v; v = v->next) {
		if (v->phase == PV_OPEN)
			vdisk_info(v->bdev, &v->info);
		tell_vdisk(v);
		tell_figures_whole(v);
		tell_figures(v, reactor_now(p->reactor));
	}
	seen_tell(p);
}

int provider_run_set(struct provider *p, bool running, struct err *err)
{
	if (running && p->opening)
		return err_set(err, -EBUSY, "cluster %s is being opened",
			       p->name);
	for (const struct p_vdisk *v = p->vdisks; running && v; v = v->next)
		if (v->moving || v->verifying ||
		    (v->wanted && v->info.state == VDISK_HEALTHY) ||
		    (v->phase == PV_OPEN && v->info.state == VDISK_MIGRATING))
			return err_set(err, -EBUSY,
				       "vDisk %s is %s: run when that is done",
				       v->name,
				       v->verifying ? "being verified"
						    : "changing its policy");
	p->running = running;
	tend_soon(p);
	return 0;
}

struct bdev *provider_vdisk(struct provider *p, const char *name,
			    struct err *err)
{
	struct p_vdisk *v = name ? vdisk_find(p, name) : NULL;

	if (v && v->export) {
		err_set(err, -EBUSY,
			"vDisk %s is exported, and a load would write over "
			"what others keep there: `vdisk unexport %s` first",
			v->name, v->name);
		return NULL;
	}
	if (v && v->phase == PV_OPEN && v->info.state != VDISK_FAILED)
		return v->top;
	err_set(err, v ? -ENODEV : -ENOENT, "%s%.63s%s%s",
		v ? "vDisk " : "there is no vDisk ", name ? name : "",
		v ? " is not open: " : "",
		v ? (v->phase == PV_OPEN ? v->info.reason : v->reason) : "");
	return NULL;
}

const char *provider_vdisk_state(struct provider *p, const char *name)
{
	struct p_vdisk *v = name ? vdisk_find(p, name) : NULL;

	if (!v)
		return "";
	if (v->phase == PV_OPEN)
		vdisk_info(v->bdev, &v->info);
	return vdisk_state_word(v);
}

const char *provider_vdisk_why(struct provider *p, const char *name)
{
	struct p_vdisk *v = vdisk_find(p, name);

	if (!v || v->phase != PV_OPEN)
		return NULL;
	vdisk_info(v->bdev, &v->info);
	return v->info.state == VDISK_FAILED ? v->info.reason : NULL;
}

void provider_interval_set(struct provider *p, uint64_t interval_us)
{
	if (interval_us < 100000)
		interval_us = 100000;
	if (interval_us > 60000000)
		interval_us = 60000000;
	p->usage_every_ns = interval_us * USEC_NS;
	if (p->opening || p->closing)
		return;
	timer_arm(p->reactor, &p->usage, p->usage_ns + p->usage_every_ns);
}
