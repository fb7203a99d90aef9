/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a policy and a size to the places on a component, and what all of it
 * takes in memory. Sizes are worst cases: a snapshot always fits its area, the
 * segment table always has room, whatever k' has shrunk to.
 */
#include "engine/vdisk/log/impl.h"

#include <stdio.h>
#include <string.h>

#define OP_PERCENT 25
#define FULL_PERCENT 5 /* beyond the content, with members away */
#define LOG_PERCENT 2
#define SPARE_SLOTS 6    /* open segments, the cleaner's reserve */
#define SLOTS_WANTED 64u /* of data on a component, so that few is not all */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint32_t or_default(uint32_t x, uint32_t otherwise)
{
	return x ? x : otherwise;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t power_of_two_below(uint64_t x)
{
	return x ? 1ull << (63 - __builtin_clzll(x)) : 0;
}

/* ---- sizes, as log.h states them ----------------------------------- */

static uint64_t log_bytes(uint64_t size)
{
	uint64_t r = size * LOG_PERCENT / 100;

	if (r < 128 * MIB)
		r = 128 * MIB;
	return least(least(r, 8 * GIB), size / 8);
}

static uint32_t stripes_of(uint64_t size, unsigned k, uint32_t unit_bytes)
{
	const uint64_t fit =
		power_of_two_below(size / k / SLOTS_WANTED / unit_bytes);

	return (uint32_t)least(fit > 4 ? fit : 4, 32);
}

/* Several zones are open at once and half full: they must be few of all. */
static uint32_t zone_bytes(uint64_t log)
{
	const uint64_t z = log / 64 / MIB * MIB;

	return (uint32_t)(z < MIB ? MIB : least(z, 16 * MIB));
}

/* A checkpoint carries what is in it, so it is small against the log that one
 * checkpoint frees. */
static uint32_t buffer_bytes(uint64_t log, uint64_t stripe)
{
	const uint64_t b = log / 8 / MIB * MIB;
	const uint64_t floor = 4 * (stripe > MIB ? stripe : MIB);

	return (uint32_t)(b < floor ? floor : least(b, 64 * MIB));
}

/* Granules a byte: all blocks of one granule, each with its item's head. */
static uint64_t snap_area_bytes(const struct fmt_label *l)
{
	const uint64_t leaves = ceil_div(l->size_blocks, FMT_LEAF);
	const uint64_t item = sizeof(struct fmt_item);
	const uint64_t bytes =
		leaves * (item + sizeof(struct fmt_item_leaf)) +
		(uint64_t)l->segs * (item + sizeof(struct fmt_item_seg)) +
		(uint64_t)l->buffer_bytes / FMT_GRAN *
			(item + sizeof(struct fmt_item_block) + FMT_GRAN);
	/* A piece may stay short of full by less than the longest item. */
	const uint64_t piece = FMT_PIECE - sizeof(struct fmt_piece) - item -
			       sizeof(struct fmt_item_leaf);

	return (ceil_div(bytes, piece) + 4) * FMT_PIECE;
}

static int tune_check(const struct fmt_label *l, struct err *err)
{
	if (l->zone_bytes % FMT_BLOCK ||
	    l->zone_bytes < FMT_RECORD_MAX + FMT_BLOCK || l->zones < 2)
		return err_set(err, -EINVAL,
			       "the log needs 2 zones or more of %u KiB or "
			       "more",
			       (FMT_RECORD_MAX + FMT_BLOCK) / 1024);
	if (l->unit_bytes & (l->unit_bytes - 1) ||
	    l->unit_bytes < 2 * FMT_BLOCK || l->unit_bytes > 128 * KIB ||
	    l->stripes < 1 || l->stripes > 32)
		return err_set(err, -EINVAL,
			       "a unit is 8 to 128 KiB, a power of two; a "
			       "segment 1 to 32 stripes");
	if (l->buffer_bytes % FMT_BLOCK || l->buffer_bytes < 64 * KIB ||
	    l->buffer_bytes > GIB)
		return err_set(err, -EINVAL,
			       "the buffer is 64 KiB to 1 GiB, whole blocks");
	if (l->buffer_bytes / 4 < (uint64_t)l->unit_bytes * l->k)
		return err_set(err, -EINVAL,
			       "the buffer must hold four stripes");
	return 0;
}

static int spec_check(const struct vlog_spec *spec, struct err *err)
{
	const unsigned k = spec->policy.k, m = spec->policy.m;
	const unsigned labels = 2 * m + 1;
	const unsigned need = k + m > labels ? k + m : labels;

	if (!k || m > 3 || (m && k + m > EC_CODED_MAX) || k + m > FMT_COMPS_MAX)
		return err_set(err, -EINVAL, "no such policy: %u+%u", k, m);
	if (spec->slots < need || spec->slots > FMT_COMPS_MAX)
		return err_set(err, -ENOSPC,
			       "%u+%u needs %u to %u components, there are %u",
			       k, m, need, FMT_COMPS_MAX, spec->slots);
	if (!spec->size_bytes || spec->size_bytes % FMT_BLOCK ||
	    spec->size_bytes > 64ull << 40)
		return err_set(err, -EINVAL,
			       "the size must be a multiple of 4 KiB");
	for (unsigned i = 0; spec->slot && i < spec->slots; i++)
		for (unsigned j = 0; j < i; j++)
			if (spec->slot[i].domain[0] &&
			    !strcmp(spec->slot[i].domain, spec->slot[j].domain))
				return err_set(err, -EINVAL,
					       "two components in the fault "
					       "domain %s",
					       spec->slot[i].domain);
	return 0;
}

static void names_fill(const struct vlog_spec *spec, struct fmt_label *l)
{
	snprintf(l->cluster, sizeof(l->cluster), "%s",
		 spec->cluster ? spec->cluster : "");
	snprintf(l->name, sizeof(l->name), "%s", spec->name ? spec->name : "");
	for (unsigned i = 0; spec->slot && i < spec->slots; i++) {
		struct fmt_member *m = &l->member[i];

		memcpy(m->domain, spec->slot[i].domain, sizeof(m->domain));
		memcpy(m->drive, spec->slot[i].drive, sizeof(m->drive));
		memcpy(m->component, spec->slot[i].component,
		       sizeof(m->component));
	}
}

/* What a stripe holds at least: the summary may cost a block's room, and 3 %
 * are for blocks that do not fill a unit. */
uint64_t geo_stripe_grans(const struct fmt_label *l, unsigned k)
{
	return ((uint64_t)k * l->unit_bytes / FMT_GRAN - FMT_BLOCK_GRANS) * 97 /
	       100;
}

static unsigned narrowed(unsigned k, unsigned m, unsigned alive)
{
	return alive - m < k ? alive - m : k;
}

/* All of it and a little more, in stripes of k' + m. */
static uint64_t slots_full(const struct fmt_label *l, unsigned k, unsigned m,
			   unsigned alive)
{
	const unsigned now = narrowed(k, m, alive);
	const uint64_t grans =
		l->size_blocks * FMT_BLOCK_GRANS / 100 * (100 + FULL_PERCENT) +
		l->buffer_bytes / FMT_GRAN;

	return ceil_div(grans, l->stripes * geo_stripe_grans(l, now)) *
	       (now + m);
}

uint32_t geo_slots_ordinary(const struct fmt_label *l, unsigned k, unsigned m,
			    unsigned alive)
{
	const uint64_t chunk = (uint64_t)l->unit_bytes * l->stripes;
	const uint64_t size = l->size_blocks * FMT_BLOCK;
	const unsigned now = narrowed(k, m, alive);

	return (uint32_t)ceil_div(size / 100 * (100 + OP_PERCENT) * (now + m),
				  chunk * now * alive) +
	       SPARE_SLOTS;
}

uint32_t geo_slots(const struct fmt_label *l, unsigned k, unsigned m,
		   unsigned comps)
{
	uint64_t most = geo_slots_ordinary(l, k, m, comps);

	for (unsigned alive = comps; alive > m && alive + m >= comps; alive--) {
		const uint64_t full =
			ceil_div(slots_full(l, k, m, alive), alive) +
			SPARE_SLOTS;

		most = full > most ? full : most;
	}
	return (uint32_t)most;
}

bool geo_slots_enough(const struct fmt_label *l, unsigned k, unsigned m,
		      unsigned comps, const uint32_t *slots)
{
	uint32_t out = 0; /* the largest are away */

	for (unsigned alive = comps; alive > m && alive + m >= comps; alive--) {
		uint64_t all = 0;
		unsigned most = 0;

		for (unsigned i = 0; i < comps; i++) {
			if (out & 1u << i)
				continue;
			all += slots[i];
			if (out & 1u << most || slots[i] > slots[most])
				most = i;
		}
		if (all <
		    slots_full(l, k, m, alive) + (uint64_t)SPARE_SLOTS * alive)
			return false;
		out |= 1u << most;
	}
	return true;
}

/*
 * As many as all slots can hold at their narrowest, m + 1; and, as the policy
 * may change later, as many as the data fills in segments of one unit each at
 * 1 / 1.5: with more than that, cleaning gains.
 */
static uint32_t segs_needed(const struct fmt_label *l)
{
	const uint64_t chunk = (uint64_t)l->unit_bytes * l->stripes;
	const uint64_t narrow = l->slots * l->comps / (l->m + 1u) + STREAMS;
	const uint64_t data =
		ceil_div(l->size_blocks * FMT_BLOCK * 3 / 2, chunk) + 64;

	return (uint32_t)(narrow > data ? narrow : data);
}

int geo_label(const struct vlog_spec *spec, struct fmt_label *l,
	      struct err *err)
{
	const struct vlog_tune *t = &spec->tune;
	const unsigned k = spec->policy.k, m = spec->policy.m;
	const uint64_t log = log_bytes(spec->size_bytes);
	int rc;

	memset(l, 0, sizeof(*l));
	rc = spec_check(spec, err);
	if (rc)
		return rc;
	names_fill(spec, l);
	l->size_blocks = spec->size_bytes / FMT_BLOCK;
	l->comps = spec->slots;
	l->raid = (uint8_t)spec->policy.raid;
	l->k = (uint8_t)k;
	l->m = (uint8_t)m;
	l->codec = spec->policy.codec;
	l->zone_bytes = or_default(t->zone_bytes, zone_bytes(log));
	l->zones = or_default(
		t->zones,
		(uint32_t)ceil_div(log * (m + 1),
				   (uint64_t)l->zone_bytes * spec->slots) +
			2);
	l->unit_bytes = or_default(t->unit_bytes, 128 * KIB);
	l->stripes = or_default(t->stripes,
				stripes_of(spec->size_bytes, k, l->unit_bytes));
	l->buffer_bytes =
		or_default(t->buffer_bytes,
			   buffer_bytes(log, (uint64_t)k * l->unit_bytes));
	rc = tune_check(l, err);
	if (rc)
		return rc;
	l->slots = or_default(t->slots, geo_slots(l, k, m, spec->slots));
	l->segs = segs_needed(l);
	l->snap_bytes = snap_area_bytes(l);
	l->off_snap[0] = FMT_LOG_OFF + (uint64_t)l->zones * l->zone_bytes;
	l->off_snap[1] = l->off_snap[0] + l->snap_bytes;
	l->off_data = l->off_snap[1] + l->snap_bytes;
	return 0;
}

uint64_t geo_member_bytes(const struct fmt_label *l)
{
	return l->off_data + (uint64_t)l->slots * l->unit_bytes * l->stripes;
}

uint64_t geo_memory_bytes(const struct fmt_label *l)
{
	const uint64_t leaves = ceil_div(l->size_blocks, FMT_LEAF);
	uint64_t bytes;

	bytes = leaves * (sizeof(struct leaf) + 2 * sizeof(void *));
	bytes += leaves / 8 * sizeof(struct leaf);
	bytes += (uint64_t)l->segs * 2 * sizeof(struct seg);
	bytes += l->buffer_bytes;
	bytes += (uint64_t)l->buffer_bytes / FMT_GRAN *
		 (sizeof(struct block) + 3 * sizeof(void *));
	bytes += 2ull * RECS * (FMT_RECORD_MAX + sizeof(struct rec));
	bytes += (uint64_t)units_wanted(l->k + l->m) * l->unit_bytes;
	return bytes + 16 * MIB;
}

uint64_t vlog_member_bytes(const struct vlog_spec *spec)
{
	struct fmt_label l;

	return geo_label(spec, &l, NULL) ? 0 : geo_member_bytes(&l);
}

uint64_t vlog_memory_bytes(const struct vlog_spec *spec)
{
	struct fmt_label l;

	return geo_label(spec, &l, NULL) ? 0 : geo_memory_bytes(&l);
}
