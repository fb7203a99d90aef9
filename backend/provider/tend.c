/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is done without being asked. Several times a second, and soon after
 * anything changed, each vDisk is looked at as it is, never at how it came to
 * be so:
 *
 *   a member is gone, its drive is back      its component is rebuilt into
 *   it failed while its drive was there      a spare drive takes its place
 *   its drive is away for absent_delay       a spare drive takes its place
 *   it came back from an earlier time        it is admitted again
 *   its policy is not the one wanted         it migrates, one at a time
 *   it is shut or failed and a drive is back it is opened again
 *   nobody needs a component                 it is deleted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

#define TEND_NS (250 * MSEC_NS)
#define SOON_NS (10 * MSEC_NS)
#define AGAIN_NS (5 * SEC_NS) /* between attempts that failed */
#define TELL_NS (250 * MSEC_NS)

/* ---- a member that is gone ---------------------------------------------- */

/* Its bdev, like those of a migration's target, is the vDisk's from the call
 * on: also when it comes to nothing, it is not ours to close. */
struct replace {
	struct p_vdisk *vdisk;
	struct vdisk_slot slot;
	unsigned index;
};

/* What it held is elsewhere by now, or still whole on it: in the log layout
 * nothing is copied to a member. */
static const char *replaced_word(const struct p_vdisk *v,
				 const struct replace *rp)
{
	if (v->info.policy.layout != VDISK_LOG)
		return "rebuilt";
	return strcmp(v->info.slot[rp->index].component, rp->slot.component)
		       ? "taken over"
		       : "back";
}

static void replaced(int rc, const struct err *err, struct bdev *bdev,
		     void *arg)
{
	struct replace *rp = arg;
	struct p_vdisk *v = rp->vdisk;
	struct provider *p = v->provider;

	(void)bdev;
	v->replacing = false;
	v->told = true;
	if (rc)
		tell_log(p, "warn", "%s: member %u could not be replaced: %s",
			 v->name, rp->index, err->text);
	else
		tell_log(p, "info", "%s: member %u is %s on %s:%s", v->name,
			 rp->index, replaced_word(v, rp), rp->slot.domain,
			 rp->slot.drive);
	p->tidy = true;
	free(rp);
	tend_soon(p);
}

static void replace(struct p_vdisk *v, unsigned index,
		    const struct vdisk_slot *slot)
{
	struct replace *rp = malloc(sizeof(*rp));

	id_assert(rp);
	*rp = (struct replace) { .vdisk = v, .slot = *slot, .index = index };
	v->replacing = true;
	vdisk_replace(v->bdev, index, &rp->slot, replaced, rp);
}

static void fenced(void *arg)
{
	(void)arg;
}

/* Its own component, on a drive that came back. */
static bool replace_own(struct p_vdisk *v, unsigned index, struct p_drive *d)
{
	struct vdisk_slot slot = v->info.slot[index];

	if (lend_has(v->provider, d, slot.component)) {
		lend_fence(v->provider, d, slot.component, fenced, NULL);
		return false; /* it is tried again */
	}
	if (hub_has(&d->hub, slot.component) ||
	    stack_open(d, slot.component, &slot.bdev, NULL))
		return false;
	replace(v, index, &slot);
	return true;
}

static bool replace_spare(struct p_vdisk *v, unsigned index)
{
	struct vdisk_slot slot;
	struct err err = { 0 };

	if (place_spare(v->provider, &v->info, index, &slot, &err)) {
		snprintf(v->reason, sizeof(v->reason), "%s", err.text);
		return false;
	}
	v->provider->cluster_told = true;
	replace(v, index, &slot);
	return true;
}

static void member_tend(struct p_vdisk *v, unsigned index, uint64_t now)
{
	const struct vdisk_slot *slot = &v->info.slot[index];
	struct p_drive *d = drive_find(v->provider, slot->domain, slot->drive);
	bool there = d && drive_is_there(d), done = false;

	if (slot->state == MEMBER_OK || slot->state == MEMBER_REBUILDING) {
		v->gone_ns[index] = v->tried_ns[index] = 0;
		return;
	}
	if (!v->gone_ns[index]) {
		v->gone_ns[index] = now;
		v->away[index] = !there;
	}
	if (v->tried_ns[index] && now < v->tried_ns[index] + AGAIN_NS)
		return;
	if (slot->state == MEMBER_STALE) {
		struct vdisk_slot same = *slot;

		same.bdev = NULL;
		replace(v, index, &same);
		done = true;
	} else if (there && v->away[index]) {
		done = replace_own(v, index, d);
	} else if (there || now >= v->gone_ns[index] + v->provider->absent_ns) {
		done = replace_spare(v, index) ||
		       (there && replace_own(v, index, d));
	} else {
		return;
	}
	(void)done;
	v->tried_ns[index] = now;
}

/* ---- policies ----------------------------------------------------------- */

struct move {
	struct p_vdisk *vdisk;
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	unsigned slots;
	struct vdisk_policy policy;
};

static void moved(int rc, const struct err *err, struct bdev *bdev, void *arg)
{
	struct move *m = arg;
	struct p_vdisk *v = m->vdisk;
	struct provider *p = v->provider;
	char name[32];

	(void)bdev;
	v->moving = false;
	v->told = true;
	v->move_err = rc ? *err : (struct err) { 0 };
	v->move_err.code = rc;
	vdisk_policy_name(&m->policy, name, sizeof(name));
	if (!rc)
		tell_log(p, "info", "%s is %s now", v->name, name);
	else if (rc != -ECANCELED) /* closed: goes on when it is opened */
		tell_log(p, "error",
			 "%s stays as it is, the change to %s "
			 "failed: %s",
			 v->name, name, err->text);
	p->tidy = p->cluster_told = true;
	free(m);
	tend_soon(p);
}

static void move_start(struct p_vdisk *v)
{
	struct provider *p = v->provider;
	struct move *m = calloc(1, sizeof(*m));
	struct err err = { 0 };
	struct vdisk_spec spec;
	int rc;

	id_assert(m);
	v->wanted = false;
	v->move_err.code = 0;
	m->vdisk = v;
	m->policy = v->want;
	rc = m->policy.layout == VDISK_LOG
		     ? place_more(p, &v->info, &m->policy, m->slot, &m->slots,
				  &err)
		     : place_slots(p, v->name, &m->policy, v->info.size_bytes,
				   m->slot, &m->slots, &err);
	if (rc) {
		tell_log(p, "error", "%s stays as it is: %s", v->name,
			 err.text);
		v->move_err = err;
		v->move_err.code = rc;
		free(m);
		return;
	}
	spec = (struct vdisk_spec) { .cluster = p->name,
				     .name = v->name,
				     .size_bytes = v->info.size_bytes,
				     .policy = m->policy,
				     .slot = m->slot,
				     .slots = m->slots };
	v->moving = true;
	p->cluster_told = true;
	vdisk_migrate(v->bdev, &spec, moved, m);
}

static bool any_moves(const struct provider *p)
{
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->moving ||
		    (v->phase == PV_OPEN && v->info.state == VDISK_MIGRATING))
			return true;
	return false;
}

/* ---- opening again ------------------------------------------------------ */

static void reopened(int rc, const struct err *err, void *arg)
{
	struct p_vdisk *v = arg;

	(void)err;
	if (!rc)
		tell_log(v->provider, "info", "%s is open again", v->name);
}

/* More drives were pulled than it can lose, and nobody asks it anything that
 * would show it. */
static bool is_cut_off(const struct p_vdisk *v)
{
	for (unsigned k = 0; k < v->info.slots; k++) {
		const struct vdisk_slot *slot = &v->info.slot[k];
		const struct p_drive *d =
			drive_find(v->provider, slot->domain, slot->drive);

		if (slot->state == MEMBER_OK && slot->bdev && d &&
		    d->hub.offline)
			return true;
	}
	return false;
}

static void shut_again(int rc, const struct err *err, void *arg)
{
	(void)rc;
	(void)err;
	(void)arg;
}

/* Closed to be opened again, for a reason that is told meanwhile. */
static void shut_failed(struct p_vdisk *v, const char *reason)
{
	v->failed = true;
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
	life_close(v, shut_again, v);
}

/* A vDisk that has failed is opened anew from its labels, once a drive is back
 * or after a while, as a full one may have room again; not under a run, which
 * still holds it. */
static void reopen_tend(struct p_vdisk *v, uint64_t now)
{
	struct provider *p = v->provider;

	bool held = p->running || v->lost || v->moving || v->replacing ||
		    v->verifying;

	if (v->phase == PV_OPEN && !held && is_cut_off(v)) {
		/* the attempt to open it says what it lacks */
		shut_failed(v, "more drives are away than it tolerates");
		v->shut_serial = 0;
	} else if (v->phase == PV_OPEN && !held &&
		   v->info.state == VDISK_FAILED &&
		   (v->shut_serial != p->drive_serial ||
		    now >= v->shut_ns + AGAIN_NS))
		shut_failed(v, v->info.reason);
	else if (v->phase == PV_SHUT && v->parts && v->owned && !v->lost &&
		 v->shut_serial != p->drive_serial)
		life_open(v, reopened, v);
}

/* ---- components nobody needs -------------------------------------------- */

static bool slots_have(const struct vdisk_slot *slot, unsigned slots,
		       const char *component)
{
	for (unsigned k = 0; k < slots; k++)
		if (!strcmp(slot[k].component, component))
			return true;
	return false;
}

bool component_of(const char *component, const char *vdisk)
{
	size_t len = strlen(component);
	unsigned dots = 0;

	while (len && dots < 2)
		dots += component[--len] == '.';
	return dots == 2 && len == strlen(vdisk) &&
	       !strncmp(component, vdisk, len);
}

/* Settled: its labels name all there is of it. */
static bool settled(const struct p_vdisk *v)
{
	return v->phase == PV_OPEN && !v->replacing && !v->moving &&
	       (v->info.state == VDISK_HEALTHY ||
		v->info.state == VDISK_DEGRADED ||
		v->info.state == VDISK_REBUILDING);
}

static const struct p_undone *undone_find(const struct provider *p,
					  const struct p_drive *d,
					  const char *component)
{
	for (size_t k = 0; k < p->undones; k++)
		if (p->undone[k].drive == d &&
		    !strcmp(p->undone[k].component, component))
			return &p->undone[k];
	return NULL;
}

/* What was to be undone of a drive is: it has no more of it. */
static void undone_forget(struct provider *p, const struct p_drive *d)
{
	size_t left = 0;

	for (size_t k = 0; k < p->undones; k++)
		if (p->undone[k].drive != d)
			p->undone[left++] = p->undone[k];
	p->undones = left;
}

static void left_over_remove(struct provider *p, struct p_drive *d,
			     const char *component)
{
	const struct p_undone *u = undone_find(p, d, component);

	component_remove(d, component);
	if (u && *u->of)
		tell_log(p, "info",
			 "%s:%s is back: a component of %s, which was deleted, "
			 "is removed",
			 d->domain->name, d->name, u->of);
}

static bool is_left_over(const struct provider *p, const struct p_drive *d,
			 const char *component)
{
	if (undone_find(p, d, component))
		return true;
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next) {
		if (!component_of(component, v->name))
			continue;
		return settled(v) &&
		       !slots_have(v->info.slot, v->info.slots, component);
	}
	return false;
}

static bool drive_tidy(struct provider *p, struct p_drive *d)
{
	struct drive_component *list = NULL;
	bool again = false;
	size_t count = 0;

	if (!drive_is_there(d) ||
	    d->store->ops->list(d->store, &list, &count, NULL))
		return false;
	for (size_t k = 0; k < count; k++) {
		if (!is_left_over(p, d, list[k].id))
			continue;
		if (hub_has(&d->hub, list[k].id))
			again = true;
		else
			left_over_remove(p, d, list[k].id);
	}
	free(list);
	if (!again)
		undone_forget(p, d);
	return again;
}

static void tidy(struct provider *p)
{
	bool again = false;

	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->phase == PV_BUSY || v->replacing || v->moving)
			return;
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++)
			if (drive_tidy(p, &p->domain[k].drive[d]))
				again = true;
	p->tidy = again;
	p->cluster_told = true;
}

/* ---- all of it ---------------------------------------------------------- */

/* Of what it does by itself not every end comes with a call of its own. */
static void vdisk_tell(struct p_vdisk *v, enum vdisk_state was, uint64_t now)
{
	bool goes_on =
		v->phase == PV_OPEN && (v->info.state == VDISK_REBUILDING ||
					v->info.state == VDISK_MIGRATING);
	bool changed = v->phase == PV_OPEN && v->info.state != was;

	if (!v->told && !goes_on && !changed)
		return;
	if (!changed && now < v->told_ns + TELL_NS)
		return;
	v->told = false;
	v->told_ns = now;
	tell_vdisk(v);
}

/* Loud: it stands in the log, beside the point it fell into, and on the
 * screens. */
static void lost_tend(struct p_vdisk *v)
{
	const uint64_t lost = v->info.log.blocks_lost;
	char text[160];

	if (v->phase != PV_OPEN || lost == v->lost_told)
		return;
	if (lost > v->lost_told) {
		snprintf(text, sizeof(text),
			 "vDisk %s has lost %llu block%s of 4 KiB: reads of "
			 "them fail",
			 v->name, (unsigned long long)lost,
			 lost == 1 ? "" : "s");
		tell_fault(v->provider, text, "lost", v->name, "engine");
	}
	v->lost_told = lost;
	v->told = true;
}

static void vdisk_tend(struct p_vdisk *v, uint64_t now)
{
	const enum vdisk_state was = v->tended;
	struct provider *p = v->provider;

	if (v->phase == PV_OPEN)
		vdisk_info(v->bdev, &v->info);
	own_tend(v);
	reopen_tend(v, now);
	if (v->phase == PV_OPEN) {
		if (v->info.state == VDISK_HEALTHY)
			v->reason[0] = '\0';
		for (unsigned k = 0; k < v->info.slots && !v->replacing &&
				     v->info.state != VDISK_FAILED;
		     k++)
			member_tend(v, k, now);
		if (policy_same(&v->want, &v->info.policy))
			v->wanted = false; /* a resumed migration got there */
		if (v->wanted && !p->running && !v->replacing &&
		    v->info.state == VDISK_HEALTHY && !any_moves(p))
			move_start(v);
	}
	if (was == VDISK_MIGRATING && v->info.state != was)
		p->tidy = true;
	lost_tend(v);
	vdisk_waits_tend(v);
	vdisk_tell(v, was, now);
	v->tended = v->info.state;
	tell_figures(v, now);
}

static void drives_tend(struct provider *p)
{
	for (size_t k = 0; k < p->domains; k++)
		for (size_t n = 0; n < p->domain[k].drives; n++) {
			struct p_drive *d = &p->domain[k].drive[n];

			if (drive_is_there(d) && d->store->ops->gone(d->store))
				drive_lost(p, d,
					   "was deleted under the agent: put "
					   "it back, then `agent stop`");
		}
}

static void tend_run(struct timer *timer)
{
	struct provider *p = container_of(timer, struct provider, tend);
	uint64_t now = reactor_turn_now(p->reactor);
	struct p_vdisk *v, *next;

	drives_tend(p);
	for (v = p->vdisks; v; v = next) {
		next = v->next;
		vdisk_tend(v, now);
	}
	if (p->tidy)
		tidy(p);
	if (p->cluster_told) {
		p->cluster_told = false;
		tell_cluster(p);
	}
	timer_arm(p->reactor, &p->tend, now + TEND_NS);
}

void tend_start(struct provider *p)
{
	p->tend.fn = tend_run;
	timer_arm(p->reactor, &p->tend, reactor_now(p->reactor));
}

void tend_stop(struct provider *p)
{
	timer_cancel(p->reactor, &p->tend);
}

void tend_soon(struct provider *p)
{
	if (!p->opening && !p->closing && p->tend.fn)
		timer_arm(p->reactor, &p->tend,
			  reactor_now(p->reactor) + SOON_NS);
}
