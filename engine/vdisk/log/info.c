/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What can be seen from outside, and what must hold inside.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

/* Healthy is one of whom as many members may go as its policy says. */
static enum vdisk_state state_of(const struct vlog *v,
				 const struct vlog_info *info, bool rebuilding)
{
	if (v->state == VLOG_STOPPED)
		return VDISK_FAILED;
	if (rebuilding || meta_mute(v))
		return VDISK_REBUILDING;
	if (member_alive_count(v) < v->n)
		return VDISK_DEGRADED;
	if (policy_changing(v))
		return VDISK_MIGRATING;
	return info->failures_left < v->m ? VDISK_DEGRADED : VDISK_HEALTHY;
}

static void slots_fill(const struct vlog *v, struct vlog_info *info)
{
	const uint32_t mute = meta_mute(v);

	for (unsigned i = 0; i < v->n; i++) {
		const struct fmt_seat *seat = &v->conf.seat[i];
		struct vdisk_slot *s = &info->slot[i];

		memcpy(s->domain, seat->domain, sizeof(s->domain));
		memcpy(s->drive, seat->drive, sizeof(s->drive));
		memcpy(s->component, seat->component, sizeof(s->component));
		info->slot[i].bdev = v->member[i].bdev;
		info->slot[i].state = !v->member[i].alive ? MEMBER_MISSING
				      : mute & 1u << i    ? MEMBER_REBUILDING
							  : MEMBER_OK;
	}
}

/* Members that may go before metadata, the log, or the next opening would miss
 * one too many. */
static unsigned left_without_data(const struct vlog *v)
{
	/* One without a vote is as good as away to the next opening. */
	const unsigned away = v->n - member_alive_count(v) +
			      (unsigned)__builtin_popcount(meta_mute(v));
	const struct fmt_content *c = &v->conf;
	unsigned m = v->m;

	if (c->group_m < m)
		m = c->group_m;
	if (c->group_was < m)
		m = c->group_was;
	return away < m ? m - away : 0;
}

static void segs_count(const struct vlog *v, struct vlog_info *info)
{
	uint64_t live = 0, as_policy = 0;

	info->failures_left = left_without_data(v);
	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];
		unsigned away = 0, left;

		if (s->state == SEG_FREE)
			continue;
		info->segs++;
		live += s->live;
		if (seg_as_policy(v, s))
			as_policy += s->live;
		for (unsigned u = 0; u < seg_width(s) && s->live; u++) {
			if (seg_unit_there(v, s, u))
				continue;
			away++;
			/* It has taken another's place since. */
			if (v->member[s->comp[u]].alive)
				info->slot[s->comp[u]].state =
					MEMBER_REBUILDING;
		}
		info->segs_exposed += away != 0;
		info->segs_bare += away >= s->m && s->live;
		left = away < s->m ? s->m - away : 0;
		if (s->live && left < info->failures_left)
			info->failures_left = left;
	}
	info->compliance = live ? (double)as_policy / (double)live : 1;
}

static void text_add(char *buf, size_t len, const char *fmt, ...)
	ID_PRINTF(3, 4);

static void text_add(char *buf, size_t len, const char *fmt, ...)
{
	const size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, len - at, fmt, ap);
	va_end(ap);
}

/* "n1:d0 (Input/output error), n3:d0 (No such device)" */
void info_members_away(const struct vlog *v, char *buf, size_t len)
{
	const char *comma = "";

	buf[0] = '\0';
	for (unsigned i = 0; i < v->n; i++) {
		const struct member *m = &v->member[i];
		const struct fmt_seat *seat = &v->conf.seat[i];

		if (m->alive)
			continue;
		text_add(buf, len, "%s%.31s", comma, seat->domain);
		if (seat->drive[0])
			text_add(buf, len, ":%.31s", seat->drive);
		text_add(buf, len, " (%s)",
			 m->note ? m->note
				 : strerror(m->why ? -m->why : ENODEV));
		comma = ", ";
	}
}

static uint64_t room_bytes(const struct vlog *v)
{
	uint64_t slots = 0;

	for (unsigned i = 0; i < v->n; i++)
		slots += v->member[i].alive ? v->member[i].slots_free : 0;
	return slots * v->label.unit_bytes * v->label.stripes;
}

static bool any_held(const struct vlog *v)
{
	for (uint32_t i = 0; i < v->segs; i++)
		if (v->seg[i].held && v->seg[i].live)
			return true;
	return false;
}

/* What is the matter, what becomes of it, and what would help. */
static void reason_fill(const struct vlog *v, struct vlog_info *info)
{
	char *buf = info->reason;
	const size_t len = sizeof(info->reason);

	snprintf(buf, len, "%s", v->reason);
	if (v->state == VLOG_STOPPED)
		return;
	if (v->map.bad) {
		snprintf(
			buf, len,
			"%llu blocks were lost to damage beyond the policy and "
			"read as errors: write or discard them, or restore "
			"them",
			(unsigned long long)v->map.bad);
		return;
	}
	if (member_alive_count(v) == v->n) {
		if (info->segs_exposed)
			text_add(buf, len,
				 "what stood on a component that was replaced "
				 "is being rebuilt");
		else if (meta_mute(v))
			text_add(buf, len,
				 "a component does not hold the metadata yet; "
				 "the next checkpoint writes it");
		else if (policy_changing(v) && resync_starved(v))
			text_add(buf, len,
				 "its new policy waits for room: %llu MiB are "
				 "free, all of it for the cleaner; discard "
				 "data",
				 (unsigned long long)(room_bytes(v) / MIB));
		return;
	}
	info_members_away(v, buf, len);
	if (!info->segs_exposed)
		text_add(buf, len,
			 ": the others hold all data in full redundancy; bring "
			 "it back or replace it");
	else if (info->state == VDISK_REBUILDING)
		text_add(buf, len, ": rewritten on the others");
	else if (resync_wait_ns(v))
		text_add(buf, len, ": rebuild in %llu s unless it is back",
			 (unsigned long long)(resync_wait_ns(v) / SEC_NS + 1));
	else if (any_held(v))
		text_add(buf, len,
			 ": the others alone do not give all that is to be "
			 "rebuilt; bring it back");
	else
		text_add(buf, len,
			 ": no room to rebuild on the others; discard data, or "
			 "bring it back");
}

void vlog_info(struct bdev *bdev, struct vlog_info *info)
{
	const struct vlog *v = container_of(bdev, struct vlog, bdev);
	*info = v->stat;
	snprintf(info->name, sizeof(info->name), "%s", bdev->name);
	memcpy(info->uuid, v->uuid, 16);
	info->size_bytes = bdev->limits.size_bytes;
	info->policy = (struct vdisk_policy) {
		.raid = v->raid,
		.k = (uint8_t)v->k,
		.m = (uint8_t)v->m,
		.stripe_unit_bytes = v->label.unit_bytes,
		.layout = VDISK_LOG,
		.codec = (uint8_t)v->codec,
	};
	info->slots = v->n;
	slots_fill(v, info);
	info->epoch = v->epoch;
	info->lsn = v->durable;
	info->lsn_snapshot = v->lsn_snapshot;
	info->blocks_mapped = v->map.mapped;
	info->blocks_lost = v->map.bad;
	info->live_bytes = v->live_grans * FMT_GRAN;
	info->buffer_bytes =
		(uint64_t)(v->map.grans - v->map.grans_left) * FMT_GRAN;
	info->linked_bytes = v->map.linked_grans * FMT_GRAN;
	info->space_bytes = seg_ordinary_grans(v) * FMT_GRAN;
	info->free = seg_free_share(v);
	info->free = info->free > 0 ? info->free : 0;
	info->log_fill = log_fill(v);
	cleaner_info(v, info);
	segs_count(v, info);
	info->state = state_of(v, info, resync_info(v, info));
	info->scrub_progress = scrub_progress(v);
	reason_fill(v, info);
}

void vlog_info_counts(const struct vlog_info *info, struct limit_counts *c)
{
	*c = (struct limit_counts) {
		.user = info->user_bytes,
		.log = info->log_bytes,
		.destage = info->destage_bytes,
		.bypass = info->bypass_bytes,
		.clean = info->clean_bytes,
		.snap = info->snap_bytes,
		.clean_read = info->clean_read_bytes,
	};
}

/* ---- invariants ---------------------------------------------------- */

static int check_map(const struct vlog *v, uint64_t *live, struct err *err)
{
	uint64_t mapped = 0, grans = 0, bad = 0;

	for (uint64_t i = 0; i < v->map.leaves; i++) {
		const struct leaf *l = v->map.leaf[i];
		uint32_t used = 0;

		for (unsigned j = 0; l && j < FMT_LEAF; j++) {
			const uint64_t loc = l->loc[j];
			const uint64_t lba = i * FMT_LEAF + j;
			const struct block *b;

			used += loc != 0;
			bad += loc == LOC_BAD;
			if (loc_kind(loc) == LOC_SEG) {
				if (loc_seg_index(loc) >= v->segs)
					return err_set(err, -EINVAL,
						       "block %llu: no such "
						       "segment",
						       (unsigned long long)lba);
				live[loc_seg_index(loc)] += loc_grans(loc);
			}
			if (loc_kind(loc) != LOC_LOG)
				continue;
			b = block_find(v, loc);
			if (!b || b->lba != lba || !b->linked)
				return err_set(err, -EINVAL,
					       "block %llu is not in the "
					       "buffer",
					       (unsigned long long)lba);
			grans += b->grans;
		}
		if (l && (used != l->used || !used))
			return err_set(err, -EINVAL, "leaf %llu: count",
				       (unsigned long long)i);
		mapped += used;
	}
	if (mapped != v->map.mapped || grans != v->map.linked_grans ||
	    bad != v->map.bad)
		return err_set(err, -EINVAL, "mapped, buffered or lost: count");
	return 0;
}

static int check_segs(const struct vlog *v, const uint64_t *live,
		      struct err *err)
{
	uint64_t sum = 0, slots[FMT_COMPS_MAX] = { 0 };
	uint64_t data[FMT_COMPS_MAX] = { 0 };

	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];

		if (s->state == SEG_FREE) {
			if (live[i])
				return err_set(err, -EINVAL,
					       "segment %u is free and live",
					       i);
			continue;
		}
		if (live[i] != s->live)
			return err_set(err, -EINVAL,
				       "segment %u: %u live, counted %llu", i,
				       s->live, (unsigned long long)live[i]);
		if (s->state == SEG_SEALED && !s->live && !s->pins)
			return err_set(err, -EINVAL,
				       "segment %u should be free", i);
		sum += s->live;
		for (unsigned u = 0; u < seg_width(s); u++) {
			slots[s->comp[u]]++;
			data[s->comp[u]] += u < s->k;
			if (!bit_get(v->member[s->comp[u]].slot_used,
				     s->slot[u]))
				return err_set(err, -EINVAL,
					       "segment %u: slot not taken", i);
		}
	}
	for (unsigned c = 0; c < v->n; c++)
		if (slots[c] + punch_holds(v, c) + v->member[c].slots_free !=
			    v->member[c].slots ||
		    data[c] != v->member[c].slots_data)
			return err_set(err, -EINVAL, "member %u: slots", c);
	return sum == v->live_grans ? 0 : err_set(err, -EINVAL, "live: count");
}

int vlog_check(struct bdev *bdev, struct err *err)
{
	const struct vlog *v = container_of(bdev, struct vlog, bdev);
	uint64_t *live = calloc(v->segs, sizeof(*live));
	int rc;

	if (!live)
		return -ENOMEM;
	rc = check_map(v, live, err);
	if (!rc)
		rc = check_segs(v, live, err);
	free(live);
	return rc;
}
