/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Scrub, one stripe:
 *
 *   READ all k + m units -> BLOCKS: the summary's crc, then each block's, dead
 *   ones too; one that is wrong is FETCHed from the others and repaired -> all
 *   data being good, parity is compared -> WRITE units that are wrong as a
 *   whole: parity, a summary, what could not be read -> CHECK by reading back
 *
 * Data is verified before parity is touched, or a wrong block would be made the
 * truth. Parity covers dead blocks as well, so they are verified by the
 * summary, which keeps their crcs; what is wrong and cannot be had from the
 * others, but is dead, is of no interest, and parity is made to agree with it.
 */
#include "engine/vdisk/log/scrub.h"

#include <string.h>

void scrub_bufs_put(struct scrub *sc)
{
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		lbuf_put(sc->buf[i]);
		lbuf_put(sc->extra[i]);
		sc->buf[i] = sc->extra[i] = NULL;
	}
}

/* ---- reading ------------------------------------------------------- */

bool scrub_stripe_read(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	if (sc->units.count - sc->units.used < 2 * FMT_COMPS_MAX)
		return false;
	sc->have = sc->asked = sc->write = 0;
	sc->wrong = sc->lost = false;
	batch_begin(&sc->batch, NULL);
	for (unsigned i = 0; i < seg_width(s); i++) {
		sc->buf[i] = lbuf_get(&sc->units);
		sc->extra[i] = lbuf_get(&sc->units);
		if (!seg_unit_there(v, s, i))
			continue;
		sc->have |= 1u << i;
		sc->asked |= 1u << i;
		batch_io(v, &sc->batch, s->comp[i], BDEV_READ, 0,
			 seg_unit_off(v, s, i, sc->stripe), sc->buf[i], 0,
			 v->label.unit_bytes);
		v->stat.scrub_bytes += v->label.unit_bytes;
	}
	batch_end(v, &sc->batch);
	sc->phase = SCRUB_READ;
	return true;
}

/* What it holds is a rebuild's affair from now on, also if it comes back. What
 * was read of it may be wrong, and nobody would tell: parity must not be made
 * of it. */
void scrub_member_lost(struct vlog *v, unsigned member)
{
	struct scrub *sc = v->scrub;

	if (sc->seg == SEG_NONE)
		return;
	for (unsigned i = 0; i < seg_width(&v->seg[sc->seg]); i++)
		if (v->seg[sc->seg].comp[i] == member) {
			sc->have &= ~(1u << i);
			sc->asked &= ~(1u << i);
		}
}

static void wrong(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (!sc->wrong)
		scrub_wrong(v);
	sc->wrong = true;
}

static uint32_t data_units(const struct seg *s)
{
	return (1u << s->k) - 1;
}

/* A unit from k of the others, into extra[]; false: too few. */
static bool unit_decode(struct vlog *v, unsigned unit)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];
	uint32_t from = sc->have & ~(1u << unit);
	uint8_t *chunk[FMT_COMPS_MAX];

	if (!s->m || (unsigned)__builtin_popcount(from) < s->k ||
	    sc->extra[unit]->refs > 1)
		return false;
	while ((unsigned)__builtin_popcount(from) > s->k)
		from &= from - 1;
	for (unsigned i = 0; i < seg_width(s); i++)
		chunk[i] = sc->buf[i]->data;
	ec_decode(seg_ec(v, s->k, s->m), v->label.unit_bytes, from, unit, chunk,
		  sc->extra[unit]->data);
	return true;
}

/* ---- what is in it ------------------------------------------------- */

static const struct fmt_sum *sum_at(const struct vlog *v, const uint8_t *unit)
{
	const struct scrub *sc = v->scrub;
	const struct fmt_sum *sum =
		fmt_sum_find(unit, v->label.unit_bytes, v->uuid);

	return sum && sum->seg_id == v->seg[sc->seg].id &&
			       sum->stripe == sc->stripe
		       ? sum
		       : NULL;
}

static void entries_take(struct vlog *v, const struct fmt_sum *sum)
{
	struct scrub *sc = v->scrub;
	const size_t bytes = sum->entries * sizeof(*sc->entry);

	sc->entries = sum->entries;
	memcpy(sc->entry, (const uint8_t *)sum - bytes, bytes);
}

/* From the unit as it stands, else as the others say it should; then it is
 * written again. */
static bool entries_find(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];
	const unsigned last = s->k - 1u;
	const struct fmt_sum *sum = NULL;

	sc->entries = sc->at = 0;
	if (sc->have & 1u << last)
		sum = sum_at(v, sc->buf[last]->data);
	if (sum) {
		entries_take(v, sum);
		return true;
	}
	if (unit_decode(v, last))
		sum = sum_at(v, sc->extra[last]->data);
	if (!sum)
		return false;
	entries_take(v, sum);
	if (sc->have & 1u << last) {
		const size_t len = sizeof(*sum) +
				   sum->entries * sizeof(struct fmt_sum_entry);

		memcpy(sc->buf[last]->data + v->label.unit_bytes - len,
		       sc->extra[last]->data + v->label.unit_bytes - len, len);
		sc->write |= 1u << last;
	}
	return true;
}

/* Its member is there, or it should come of the others. If not, the stripe has
 * lost more members than it stands, and nothing says that anything is wrong. */
static bool sum_in_reach(const struct vlog *v)
{
	const struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	return sc->asked & 1u << (s->k - 1u) ||
	       (unsigned)__builtin_popcount(sc->have) >= s->k;
}

/* Without a summary the map itself says what is live there. */
static void entries_from_map(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->entries = sc->at = 0;
	for (uint64_t i = 0; i < v->map.leaves; i++) {
		const struct leaf *l = v->map.leaf[i];

		for (unsigned j = 0; l && j < FMT_LEAF; j++) {
			const uint64_t loc = l->loc[j];

			if (loc_kind(loc) != LOC_SEG ||
			    loc_seg_index(loc) != sc->seg ||
			    loc_stripe(loc) != sc->stripe)
				continue;
			sc->entry[sc->entries++] = (struct fmt_sum_entry) {
				.lba = i * FMT_LEAF + j,
				.crc = l->crc[j],
				.gran = (uint8_t)loc_gran(loc),
				.unit = (uint8_t)loc_unit(loc),
				.grans = (uint8_t)loc_grans(loc),
				.flags = (uint8_t)(loc_codec(loc)
						   << ENT_CODEC_SHIFT),
			};
		}
	}
}

static uint64_t entry_loc(const struct scrub *sc, const struct fmt_sum_entry *e)
{
	return loc_seg(sc->seg, sc->stripe, e->unit, e->gran, e->grans,
		       e->flags >> ENT_CODEC_SHIFT & 3);
}

static bool entry_sane(const struct vlog *v, const struct seg *s,
		       const struct fmt_sum_entry *e)
{
	return !(e->flags & ENT_BAD) && e->unit < s->k && e->grans >= 1 &&
	       e->grans <= FMT_BLOCK_GRANS &&
	       (unsigned)e->gran + e->grans <= unit_grans(v) &&
	       e->lba < v->label.size_blocks;
}

static bool entry_live(const struct vlog *v, const struct fmt_sum_entry *e)
{
	uint32_t crc;

	return map_loc(v, e->lba, &crc) == entry_loc(v->scrub, e);
}

static void read_over(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	for (unsigned i = 0; i < seg_width(s); i++)
		if (sc->have & 1u << i && !(sc->batch.ok & 1u << s->comp[i]))
			sc->have &= ~(1u << i);
	sc->phase = SCRUB_BLOCKS;
	if (entries_find(v)) {
		if (sc->write)
			wrong(v);
		return;
	}
	entries_from_map(v);
	if (sc->entries && sum_in_reach(v))
		wrong(v);
}

/* ---- blocks -------------------------------------------------------- */

static void block_fetched(struct fetch *f, int result)
{
	struct scrub *sc = container_of(f, struct scrub, fetch);

	sc->fetched = result;
	sc->fetched_over = true;
	vlog_kick(f->v);
}

/* True: on to the next; false: it is fetched. */
static bool block_check(struct vlog *v, const struct fmt_sum_entry *e)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];
	const uint64_t loc = entry_loc(sc, e);
	const uint8_t *p;

	if (!entry_sane(v, s, e))
		return true;
	p = sc->buf[e->unit]->data + (size_t)e->gran * FMT_GRAN;
	if (sc->have & 1u << e->unit && block_fits(v, e->lba, loc, e->crc, p))
		return true;
	if (!(sc->asked & 1u << e->unit))
		return true;
	sc->fetch = (struct fetch) { .lba = e->lba,
				     .loc = loc,
				     .crc = e->crc,
				     .bad = true,
				     .stored = sc->stored,
				     .done = block_fetched };
	sc->fetched_over = false;
	sc->phase = SCRUB_FETCH;
	fetch_submit(v, &sc->fetch);
	return false;
}

/* The cleaner is to say whether it is lost for good. */
static void block_lost(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	v->stat.scrub_lost++;
	sc->lost = true;
	v->seg[sc->seg].bad = UINT8_MAX;
	resync_look(v);
}

static void fetch_take(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct fmt_sum_entry *e = &sc->entry[sc->at++];

	sc->phase = SCRUB_BLOCKS;
	wrong(v);
	if (!sc->fetched) {
		memcpy(sc->buf[e->unit]->data + (size_t)e->gran * FMT_GRAN,
		       sc->stored, (size_t)e->grans * FMT_GRAN);
		v->stat.scrub_repaired++;
	} else if (entry_live(v, e)) {
		block_lost(v);
	}
}

/* ---- whole units --------------------------------------------------- */

static bool unit_fits(const struct vlog *v, unsigned unit, const uint8_t *data)
{
	const struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	for (unsigned i = 0; i < sc->entries; i++) {
		const struct fmt_sum_entry *e = &sc->entry[i];

		if (e->unit == unit && entry_sane(v, s, e) &&
		    !block_fits(v, e->lba, entry_loc(sc, e), e->crc,
				data + (size_t)e->gran * FMT_GRAN))
			return false;
	}
	return true;
}

/* Data units that could not be read: from the others, held against all crcs. */
static void units_mend(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	for (unsigned i = 0; i < s->k; i++) {
		if (sc->have & 1u << i || !(sc->asked & 1u << i) ||
		    sc->buf[i]->refs > 1 || !unit_decode(v, i) ||
		    !unit_fits(v, i, sc->extra[i]->data))
			continue;
		memcpy(sc->buf[i]->data, sc->extra[i]->data,
		       v->label.unit_bytes);
		sc->have |= 1u << i;
		sc->write |= 1u << i;
		wrong(v);
	}
}

static void parity_check(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];
	uint8_t *data[FMT_COMPS_MAX], *parity[FMT_COMPS_MAX];

	if (!s->m || sc->lost || ~sc->have & data_units(s))
		return;
	for (unsigned i = 0; i < s->k; i++)
		data[i] = sc->buf[i]->data;
	for (unsigned i = 0; i < s->m; i++) {
		if (sc->extra[s->k + i]->refs > 1)
			return;
		parity[i] = sc->extra[s->k + i]->data;
	}
	ec_encode(seg_ec(v, s->k, s->m), v->label.unit_bytes, data, parity);
	for (unsigned i = s->k; i < seg_width(s); i++) {
		struct lbuf *was = sc->buf[i];

		if (!(sc->asked & 1u << i) ||
		    (sc->have & 1u << i &&
		     !memcmp(was->data, parity[i - s->k], v->label.unit_bytes)))
			continue;
		sc->buf[i] = sc->extra[i];
		sc->extra[i] = was;
		sc->write |= 1u << i;
		wrong(v);
	}
}

/* False: nothing is to be written. */
static bool units_io(struct vlog *v, enum bdev_op op)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	for (unsigned i = 0; i < seg_width(s); i++)
		if (!(sc->asked & 1u << i) || sc->extra[i]->refs > 1)
			sc->write &= ~(1u << i);
	batch_begin(&sc->batch, NULL);
	for (unsigned i = 0; i < seg_width(s); i++) {
		if (!(sc->write & 1u << i))
			continue;
		batch_io(v, &sc->batch, s->comp[i], op,
			 op == BDEV_WRITE ? BDEV_FUA : 0,
			 seg_unit_off(v, s, i, sc->stripe),
			 op == BDEV_WRITE ? sc->buf[i] : sc->extra[i], 0,
			 v->label.unit_bytes);
		v->stat.scrub_repaired += op == BDEV_WRITE;
	}
	batch_end(v, &sc->batch);
	return sc->write;
}

static void stripe_end(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	scrub_bufs_put(sc);
	sc->phase = SCRUB_SEG;
}

static void blocks_over(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	units_mend(v);
	if (sc->entries)
		parity_check(v);
	if (units_io(v, BDEV_WRITE))
		sc->phase = SCRUB_WRITE;
	else
		stripe_end(v);
}

static void check_over(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const struct seg *s = &v->seg[sc->seg];

	for (unsigned i = 0; i < seg_width(s); i++) {
		const unsigned member = s->comp[i];

		if (sc->write & 1u << i && member_dispensable(v, member) &&
		    (!(sc->batch.ok & 1u << member) ||
		     memcmp(sc->buf[i]->data, sc->extra[i]->data,
			    v->label.unit_bytes)))
			member_lost(v, member, -EIO);
	}
	stripe_end(v);
}

/* ---- steps --------------------------------------------------------- */

bool scrub_stripe_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	switch (sc->phase) {
	case SCRUB_READ:
		read_over(v);
		return true;
	case SCRUB_BLOCKS:
		while (sc->at < sc->entries) {
			if (!block_check(v, &sc->entry[sc->at]))
				return true;
			sc->at++;
		}
		blocks_over(v);
		return true;
	case SCRUB_FETCH:
		if (!sc->fetched_over)
			return false;
		fetch_take(v);
		return true;
	case SCRUB_WRITE:
		units_io(v, BDEV_READ);
		sc->phase = SCRUB_CHECK;
		return true;
	case SCRUB_CHECK:
		check_over(v);
		return true;
	default:
		return false;
	}
}
