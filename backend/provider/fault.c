/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is done to drives, domains and links on purpose:
 *
 *   drive n2:d1 offline | online      pulled, and put back
 *   drive n2:d1 slow 20ms | normal    answers later by that much
 *   drive n2:d1 stall 200ms           holds everything back for a while
 *   domain n2 offline | online | stall 200ms     all of its drives
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/provider/provider_priv.h"

#define STALL_MS_MAX 600000.0

struct order {
	char kind[16], target[72], action[16], value[16];
};

/* ---- being there -------------------------------------------------------- */

/* The vDisks hear of it as of any drive that is unplugged, not only by their
 * next I/O. Where a vDisk cannot do without, it finds out by I/O. */
static void members_fail(struct provider *p, const struct p_drive *d)
{
	for (struct p_vdisk *v = p->vdisks; v; v = v->next) {
		if (v->phase != PV_OPEN)
			continue;
		vdisk_info(v->bdev, &v->info);
		for (unsigned k = 0; k < v->info.slots; k++)
			if (!strcmp(v->info.slot[k].domain, d->domain->name) &&
			    !strcmp(v->info.slot[k].drive, d->name))
				vdisk_member_fail(v->bdev, k, NULL);
	}
}

/* Found out while it is open. Its other parts go on elsewhere. */
void drive_lost(struct provider *p, struct p_drive *d, const char *reason)
{
	hub_offline_set(&d->hub, true);
	d->state = P_DRIVE_FAILED;
	snprintf(d->reason, sizeof(d->reason), "%s", reason);
	tell_log(p, "error", "drive %s:%s, %s: %s", d->domain->name, d->name,
		 d->path, reason);
	members_fail(p, d);
	p->cluster_told = true;
}

static void drive_update(struct provider *p, struct p_drive *d)
{
	bool away = d->pulled || d->domain->offline;

	if (d->state == P_DRIVE_FAILED || away == d->hub.offline)
		return;
	hub_offline_set(&d->hub, away);
	d->state = away ? P_DRIVE_OFFLINE : P_DRIVE_OK;
	snprintf(d->reason, sizeof(d->reason), "%s",
		 !away       ? ""
		 : d->pulled ? "pulled"
			     : "its domain is offline");
	if (away)
		members_fail(p, d);
	else
		p->drive_serial++;
}

static int set_offline(struct provider *p, struct p_domain *dom,
		       struct p_drive *d, bool offline, struct err *err)
{
	if (d && d->state == P_DRIVE_FAILED)
		return err_set(err, -ENODEV, "drive %s:%s has failed: %s",
			       dom->name, d->name, d->reason);
	if (d)
		d->pulled = offline;
	else
		dom->offline = offline;
	for (size_t k = 0; k < dom->drives; k++)
		drive_update(p, &dom->drive[k]);
	p->tidy = true;
	return 0;
}

/* ---- times -------------------------------------------------------------- */

/* "200ms", "1.5s", "300us", or a number of milliseconds. */
static int time_read(const char *text, double *ms, struct err *err)
{
	char *end;

	*ms = strtod(text, &end);
	if (!strcmp(end, "s"))
		*ms *= 1e3;
	else if (!strcmp(end, "us"))
		*ms /= 1e3;
	else if (*end && strcmp(end, "ms") != 0)
		end = (char *)text;
	if (end == text || !(*ms >= 0.0 && *ms <= STALL_MS_MAX))
		return err_set(
			err, -EINVAL,
			"fault: \"%s\" is no time up to 10 minutes, such "
			"as 200ms",
			text);
	return 0;
}

static int set_stall(struct p_domain *dom, struct p_drive *d, const char *value,
		     struct err *err)
{
	double ms;
	int rc = time_read(value, &ms, err);

	for (size_t k = 0; k < dom->drives && !rc; k++)
		if (!d || d == &dom->drive[k])
			hub_stall(&dom->drive[k].hub, (uint64_t)(ms * 1e6));
	return rc;
}

/* ---- shapes ------------------------------------------------------------- */

static void shape_use(struct p_drive *d)
{
	struct link_opts opts = d->shape;

	opts.latency_ns += d->slow_ns;
	if (d->link)
		link_set(d->link, &opts);
}

static int set_slow(struct p_domain *dom, struct p_drive *d, const char *value,
		    struct err *err)
{
	double ms = 0.0;
	int rc = value ? time_read(value, &ms, err) : 0;

	for (size_t k = 0; k < dom->drives && !rc; k++) {
		if (d && d != &dom->drive[k])
			continue;
		dom->drive[k].slow_ns = (uint64_t)(ms * 1e6);
		shape_use(&dom->drive[k]);
	}
	return rc;
}

/* What is held back or slowed on purpose holds up no end. */
void faults_end(struct provider *p)
{
	for (size_t k = 0; k < p->domains; k++)
		for (size_t n = 0; n < p->domain[k].drives; n++) {
			struct p_drive *d = &p->domain[k].drive[n];

			if (!d->link)
				continue;
			hub_stall(&d->hub, 0);
			d->slow_ns = 0;
			shape_use(d);
		}
}

/* ---- orders ------------------------------------------------------------- */

static int target_find(struct provider *p, const struct order *o,
		       struct p_domain **dom, struct p_drive **d,
		       struct err *err)
{
	*d = NULL;
	if (!strcmp(o->kind, "drive")) {
		*d = drive_named(p, o->target);
		*dom = *d ? (*d)->domain : NULL;
	} else if (!strcmp(o->kind, "domain") || !strcmp(o->kind, "node")) {
		*dom = domain_find(p, o->target);
	} else {
		return err_set(err, -EINVAL,
			       "fault: \"%s\" is neither drive nor domain",
			       o->kind);
	}
	if (!*dom)
		return err_set(err, -ENOENT, "there is no %s %s in %s", o->kind,
			       o->target, p->name);
	return 0;
}

static int order_do(struct provider *p, const struct order *o, struct err *err)
{
	struct p_domain *dom;
	struct p_drive *d;
	int rc = target_find(p, o, &dom, &d, err);

	if (rc)
		return rc;
	if (!strcmp(o->action, "offline"))
		return set_offline(p, dom, d, true, err);
	if (!strcmp(o->action, "online"))
		return set_offline(p, dom, d, false, err);
	if (!strcmp(o->action, "stall"))
		return set_stall(dom, d, o->value, err);
	if (!strcmp(o->action, "slow"))
		return set_slow(dom, d, o->value, err);
	if (!strcmp(o->action, "normal"))
		return set_slow(dom, d, NULL, err);
	return err_set(err, -EINVAL,
		       "fault: \"%s\" is none of offline, online, stall, slow "
		       "and normal",
		       o->action);
}

static void word(const json_t *act, const char *key, char *to, size_t size)
{
	const char *text = json_string_value(json_object_get(act, key));

	snprintf(to, size, "%s", text ? text : "");
}

/* From the text, as a plan has it, or from members, as a request may. */
static int order_read(const json_t *act, struct order *o, struct err *err)
{
	const char *text = json_string_value(json_object_get(act, "text"));
	int n;

	*o = (struct order) { 0 };
	if (text) {
		n = sscanf(text, "%15s %71s %15s %15s", o->kind, o->target,
			   o->action, o->value);
		if (n >= 3)
			return 0;
		return err_set(err, -EINVAL,
			       "fault: \"%.80s\" is not like \"drive n2:d1 "
			       "offline\"",
			       text);
	}
	word(act, "kind", o->kind, sizeof(o->kind));
	word(act, "target", o->target, sizeof(o->target));
	word(act, "action", o->action, sizeof(o->action));
	word(act, "value", o->value, sizeof(o->value));
	return 0;
}

/* Where there are several nodes all are told, as each that owns a vDisk has
 * its own way to the drive. One tells of it: whom the console has not told to
 * be quiet; of a plan's, which all have, the one that has the drive. */
static bool is_teller(struct provider *p, const struct order *o,
		      const json_t *act, const char *by)
{
	struct p_domain *dom;
	struct p_drive *d;

	if (!strcmp(by, "plan"))
		return !target_find(p, o, &dom, &d, NULL) && !dom->far;
	return !json_is_true(json_object_get(act, "quiet"));
}

static int act_fault(struct provider *p, const json_t *act, const char *by,
		     struct err *err)
{
	struct order o;
	char text[128];
	int rc = order_read(act, &o, err);

	if (!rc)
		rc = order_do(p, &o, err);
	if (rc)
		return rc;
	snprintf(text, sizeof(text), "%s %s %s%s%s", o.kind, o.target, o.action,
		 *o.value ? " " : "", o.value);
	if (is_teller(p, &o, act, by))
		tell_fault(p, text, o.kind, o.target, by);
	return 0;
}

static const char *target_of(const json_t *act, const char *key)
{
	const char *text = json_string_value(json_object_get(act, key));

	return text ? text : "*";
}

static bool matches(const char *pattern, const char *name)
{
	return !strcmp(pattern, "*") || !strcmp(pattern, name);
}

static int act_link(struct provider *p, const json_t *act, struct err *err)
{
	const char *domain = target_of(act, "domain");
	struct link_opts shape = { 0 };
	int rc = doc_shape(act, &shape, "link", err);
	unsigned count = 0;

	for (size_t k = 0; k < p->domains && !rc; k++) {
		struct p_domain *dom = &p->domain[k];

		if (!matches(domain, dom->name))
			continue;
		dom->shape = shape;
		link_set(dom->link, &shape);
		count++;
	}
	if (!rc && !count)
		rc = err_set(err, -ENOENT, "there is no domain %s in %s",
			     domain, p->name);
	return rc;
}

static int act_drive(struct provider *p, const json_t *act, struct err *err)
{
	const char *domain = target_of(act, "domain");
	const char *drive = target_of(act, "drive");
	struct link_opts shape = { .half_duplex = true };
	int rc = doc_shape(act, &shape, "drive", err);
	unsigned count = 0;

	for (size_t k = 0; k < p->domains && !rc; k++) {
		struct p_domain *dom = &p->domain[k];

		for (size_t n = 0; n < dom->drives; n++) {
			struct p_drive *d = &dom->drive[n];

			if (!matches(domain, dom->name) ||
			    !matches(drive, d->name))
				continue;
			d->shape = shape;
			shape_use(d);
			count++;
		}
	}
	if (!rc && !count)
		rc = err_set(err, -ENOENT, "there is no drive %s:%s in %s",
			     domain, drive, p->name);
	return rc;
}

int provider_act(struct provider *p, const json_t *act, const char *by,
		 struct err *err)
{
	const char *kind = json_string_value(json_object_get(act, "kind"));
	int rc;

	if (kind && !strcmp(kind, "link"))
		rc = act_link(p, act, err);
	else if (kind && !strcmp(kind, "drive") &&
		 !json_object_get(act, "action"))
		rc = act_drive(p, act, err);
	else
		rc = act_fault(p, act, by, err);
	if (!rc) {
		p->cluster_told = true;
		tend_soon(p);
	}
	return rc;
}
