/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Another policy, another codec, more components, while the vDisk serves.
 *
 *   ASKED    may it be, is there room; components that come in are made
 *   SAY      a content with the policy, the members and their slots
 *   TAKE     once that is committed, and there are members enough, what is
 *            written follows it; what is open in the old shape is closed
 *   SETTLE   what the log holds in fewer copies is durable, so that the next
 *            content does without it
 *   GROUP    a content that moves the metadata group to 2m + 1 members: on a
 *            quorum of both groups; and one that names the new group alone
 *   CONVERT  the cleaner moves what is left in older segments; other changes
 *            may be made meanwhile
 *   LAST     a content that says that all of it tolerates m now
 *
 * The configuration is in contents, so an owner that dies in the middle leaves
 * a vDisk that is whole, and whoever opens it goes on from there (resume).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/change.h"

/* ---- what was asked for -------------------------------------------- */

static int members_there(const struct vlog *v, struct err *err)
{
	char away[160];

	if (member_alive_count(v) == v->n)
		return 0;
	info_members_away(v, away, sizeof(away));
	return err_set(err, -EAGAIN,
		       "%s: bring back or replace what is missing first: %s",
		       v->bdev.name, away);
}

static int shape_check(const struct vlog *v, const struct change *c,
		       struct err *err)
{
	const unsigned k = c->target.k, m = c->target.m;
	const unsigned need = k + m > 2 * m + 1 ? k + m : 2 * m + 1;

	if (c->target.layout != VDISK_LOG)
		return err_set(err, -ENOTSUP,
			       "%s: a vDisk keeps its layout; make another in "
			       "the layout %s and copy to it",
			       v->bdev.name,
			       vdisk_layout_name(c->target.layout));
	if (!k || m >= FMT_COPIES_MAX || k + m > FMT_COMPS_MAX ||
	    c->target.codec >= CODEC_COUNT)
		return err_set(err, -EINVAL, "%s: no such policy: %u+%u",
			       v->bdev.name, k, m);
	if (c->comps > FMT_COMPS_MAX || c->comps < need)
		return err_set(err, -ENOSPC,
			       "%u+%u needs %u to %u components, %s has %u", k,
			       m, need, FMT_COMPS_MAX, v->bdev.name, c->comps);
	if (v->label.buffer_bytes / 4 < (uint64_t)v->label.unit_bytes * k)
		return err_set(err, -EINVAL,
			       "%s was made with a buffer for stripes of %u "
			       "units at most, not of %u",
			       v->bdev.name,
			       v->label.buffer_bytes / 4 / v->label.unit_bytes,
			       k);
	return 0;
}

static bool domain_taken(const struct vlog *v, const struct change *c,
			 unsigned part)
{
	const char *domain = c->part[part].slot.domain;

	for (unsigned i = 0; i < v->n; i++)
		if (!strncmp(domain, v->conf.seat[i].domain, 32))
			return true;
	for (unsigned i = 0; i < part; i++)
		if (!strncmp(domain, c->part[i].slot.domain, 32))
			return true;
	return false;
}

static int parts_check(const struct vlog *v, const struct change *c,
		       struct err *err)
{
	for (unsigned i = 0; i < c->parts; i++) {
		const struct vdisk_slot *s = &c->part[i].slot;

		if (!s->bdev)
			return err_set(err, -EINVAL,
				       "%s: component %u is not there",
				       v->bdev.name, c->part[i].index);
		if (s->domain[0] && domain_taken(v, c, i))
			return err_set(err, -EINVAL,
				       "%.31s holds a component already: each "
				       "stands in a fault domain of its own",
				       s->domain);
	}
	return 0;
}

static struct bdev *comp_bdev(const struct vlog *v, const struct change *c,
			      unsigned i)
{
	return i < v->n ? v->member[i].bdev : c->part[i - v->n].slot.bdev;
}

/* How many slots each gets: as many as the policy wants of it, or as many as
 * there is room for, if that is enough in all. */
static int slots_plan(struct vlog *v, struct change *c, struct err *err)
{
	const uint64_t chunk = (uint64_t)v->label.unit_bytes * v->label.stripes;
	const uint32_t want =
		geo_slots(&v->label, c->target.k, c->target.m, c->comps);
	uint64_t all = 0;

	for (unsigned i = 0; i < c->comps; i++) {
		struct bdev *bdev = comp_bdev(v, c, i);
		const uint32_t has = i < v->n ? v->member[i].slots : 0;
		const uint64_t bytes = v->label.off_data + want * chunk;
		uint64_t room;

		c->slots[i] = has > want ? has : want;
		if (bdev->limits.size_bytes < bytes && want > has)
			bdev_grow(bdev, bytes);
		room = bdev->limits.size_bytes < v->label.off_data
			       ? 0
			       : bdev->limits.size_bytes - v->label.off_data;
		if (c->slots[i] > room / chunk)
			c->slots[i] = (uint32_t)(room / chunk);
		all += c->slots[i];
	}
	if (geo_slots_enough(&v->label, c->target.k, c->target.m, c->comps,
			     c->slots))
		return 0;
	return err_set(
		err, -ENOSPC,
		"%s needs %llu MiB on each of %u components for %u+%u, "
		"and they have %llu on average",
		v->bdev.name,
		(unsigned long long)((v->label.off_data + want * chunk) / MIB),
		c->comps, c->target.k, c->target.m,
		(unsigned long long)((v->label.off_data +
				      all / c->comps * chunk) /
				     MIB));
}

static int policy_check(struct vlog *v, struct change *c, struct err *err)
{
	int rc;

	c->comps = v->n + c->parts;
	for (unsigned i = 0; i < c->parts; i++)
		c->part[i].index = v->n + i;
	rc = shape_check(v, c, err);
	if (!rc)
		rc = parts_check(v, c, err);
	if (!rc)
		rc = members_there(v, err);
	if (!rc)
		rc = slots_plan(v, c, err);
	for (unsigned i = 0; i < c->parts && !rc; i++) {
		c->part[i].seat.slots = c->slots[v->n + i];
		rc = part_check(v, c->part[i].slot.bdev, c->part[i].seat.slots,
				err);
	}
	if (!rc && vlog_policy_room(v, c->target.k, c->target.m))
		rc = err_set(err, -ENOMEM, "%s: no memory", v->bdev.name);
	return rc;
}

/* ---- saying it ----------------------------------------------------- */

static void policy_say(struct vlog *v, struct change *c)
{
	struct fmt_content *conf = &v->conf;

	conf->raid = (uint8_t)c->target.raid;
	conf->k = c->target.k;
	conf->m = c->target.m;
	if (conf->codec != c->target.codec) {
		/* At once: what is there says of each block how to read it. */
		conf->codec = c->target.codec;
		seg_streams_close(v);
		conf->codec_since = seg_id_next(v);
		v->codec_lsn = v->next_lsn + 1;
		v->codec = conf->codec;
	}
	conf->comps = (uint8_t)c->comps;
	for (unsigned i = 0; i < v->n; i++)
		conf->seat[i].slots = c->slots[i];
	for (unsigned i = 0; i < c->parts; i++)
		conf->seat[c->part[i].index] = c->part[i].seat;
	change_named(c);
}

/* It counts. */
static int policy_take(struct vlog *v, struct change *c)
{
	int rc = 0;

	for (unsigned i = 0; i < v->n && !rc; i++)
		rc = member_slots_grow(&v->member[i], c->slots[i]);
	for (unsigned i = v->n; i < c->comps && !rc; i++)
		rc = member_space_init(v, &v->member[i], c->slots[i]);
	for (unsigned i = 0; i < c->comps && !rc; i++)
		rc = punch_fit(v, i);
	if (rc)
		return rc;
	v->n = c->comps;
	for (unsigned i = 0; i < c->parts; i++)
		part_usable(c, &c->part[i]);
	vlog_policy_take(v);
	seg_streams_close(v);
	c->seg_since = seg_id_next(v);
	resync_policy_taken(v);
	vlog_changed(v);
	return 0;
}

/* Not while nothing could be written by it, nor amid what others say. */
static bool take_ready(const struct vlog *v, const struct change *c)
{
	return member_alive_count(v) + c->parts > v->conf.m &&
	       (c->step != CHANGE_APART || !change_saying(v));
}

/* Who is missing may be replaced meanwhile. */
static bool take_later(struct change *c)
{
	const bool moved = c->step != CHANGE_APART;

	c->step = CHANGE_APART;
	return moved;
}

/* ---- the metadata group -------------------------------------------- */

/* Of the group there would be: enough to commit on. */
static bool group_ready(const struct vlog *v)
{
	struct fmt_content next = v->conf;
	uint32_t alive = 0;

	for (unsigned i = 0; i < v->n; i++)
		if (v->member[i].alive)
			alive |= 1u << i;
	next.group_m = (uint8_t)v->m;
	return fmt_group_quorum(&next, alive);
}

/* ---- older segments ------------------------------------------------ */

/*
 * One that was there when the policy changed and does not follow it. Nothing
 * may live in it yet: until it is sealed stripes may be on their way.
 */
static bool seg_old(const struct vlog *v, const struct change *c, uint32_t i)
{
	const struct seg *s = &v->seg[i];

	return s->state != SEG_FREE && (s->live || s->state != SEG_SEALED) &&
	       s->id < c->seg_since && !seg_as_policy(v, s);
}

static bool converted(const struct vlog *v, struct change *c)
{
	for (uint32_t i = 0; i < v->segs; i++) {
		const uint32_t at = (c->seg_at + i) % v->segs;

		if (!seg_old(v, c, at))
			continue;
		c->seg_at = at; /* the first that is looked at next time */
		return false;
	}
	return true;
}

/* ---- the change ---------------------------------------------------- */

static bool asked(struct vlog *v, struct change *c)
{
	int rc = policy_check(v, c, &c->err);

	c->phase = POLICY_SAY;
	if (!rc && c->parts)
		rc = parts_make(c);
	else if (!rc)
		c->step = CHANGE_CONFIG;
	if (rc)
		change_refuse(c, rc);
	return true;
}

static bool settle(struct vlog *v, struct change *c)
{
	if (!log_settled(v))
		return false;
	if (v->conf.group_m == v->m) {
		c->step = CHANGE_APART;
		c->phase = POLICY_CONVERT;
		return true;
	}
	/* Not while it could not be committed; others may help. */
	if (!group_ready(v))
		return change_later(c);
	c->step = CHANGE_CONFIG;
	c->phase = POLICY_GROUP;
	return true;
}

static bool policy_turn(struct change *c)
{
	struct vlog *v = c->v;

	switch ((enum policy_phase)c->phase) {
	case POLICY_ASKED:
		return asked(v, c);
	case POLICY_SAY:
		policy_say(v, c);
		c->phase = POLICY_TAKE;
		return true;
	case POLICY_TAKE:
		if (!take_ready(v, c))
			return take_later(c);
		if (policy_take(v, c)) {
			vlog_stop(v, "no memory for its new policy");
			return true;
		}
		c->step = CHANGE_WAIT;
		c->phase = POLICY_SETTLE;
		log_renew(v);
		return true;
	case POLICY_SETTLE:
		return settle(v, c);
	case POLICY_GROUP:
		if (!group_ready(v)) { /* some have gone since */
			c->step = CHANGE_WAIT;
			c->phase = POLICY_SETTLE;
			return true;
		}
		v->conf.group_m = (uint8_t)v->m;
		change_named(c);
		c->phase = POLICY_ALONE;
		return true;
	case POLICY_ALONE: /* committed on both; meta.c has named it alone */
		c->config = v->conf_changes;
		c->phase = POLICY_GROUPED;
		return true;
	case POLICY_GROUPED:
		c->step = CHANGE_APART;
		c->phase = POLICY_CONVERT;
		return true;
	case POLICY_CONVERT:
		if (!converted(v, c))
			return false;
		c->config = ++v->conf_changes;
		c->phase = POLICY_LAST;
		meta_commit(v, v->meta.clean_wanted);
		return true;
	case POLICY_LAST:
		if (v->meta.config_committed < c->config)
			return false;
		change_end(c);
		return true;
	}
	return false;
}

bool policy_changing(const struct vlog *v)
{
	for (const struct change *c = v->changes; c; c = c->next)
		if (c->turn == policy_turn && c->step != CHANGE_LEAVING)
			return true;
	return false;
}

bool policy_beginning(const struct vlog *v)
{
	for (const struct change *c = v->changes; c; c = c->next)
		if (c->turn == policy_turn && c->step != CHANGE_LEAVING &&
		    c->phase <= POLICY_TAKE)
			return true;
	return false;
}

/* An owner before this one did not come to the end of it. */
void policy_resume(struct vlog *v)
{
	struct change *c;

	if (v->conf.tolerates >= v->m && v->conf.group_m == v->m)
		return;
	c = change_add(v, policy_turn, NULL, NULL);
	c->step = CHANGE_WAIT;
	c->phase = POLICY_SETTLE;
	c->seg_since = seg_id_next(v);
}

void vlog_policy_change(struct bdev *vdisk, const struct vdisk_spec *target,
			vdisk_done_fn *done, void *arg)
{
	struct vlog *v = container_of(vdisk, struct vlog, bdev);
	struct change *c = change_add(v, policy_turn, done, arg);
	const unsigned parts =
		target->slots < FMT_COMPS_MAX ? target->slots : FMT_COMPS_MAX;

	c->target = target->policy;
	c->parts = parts;
	for (unsigned i = 0; i < parts; i++)
		c->part[i].slot = target->slot[i];
}
