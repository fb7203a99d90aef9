/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the buffer to segments: the oldest blocks, in full stripes, once the
 * buffer holds more than a quarter of its cap, so that what is written again
 * soon never reaches the capacity leg. What does not fill a stripe stays.
 */
#include "engine/vdisk/log/impl.h"

#define START_PERCENT 25

static uint64_t still_grans(const struct vlog *v)
{
	return v->map.linked_grans - v->map.moving_grans;
}

static bool due(const struct vlog *v)
{
	const struct map *m = &v->map;
	const uint64_t stripe = (uint64_t)seg_k_now(v) * unit_grans(v);

	return stripe && still_grans(v) >= stripe &&
	       (m->grans - m->grans_left) * 100ull >=
		       m->grans * (uint64_t)START_PERCENT;
}

/* As it is to be stored: it may be from before the codec changed. */
static const uint8_t *block_bytes(struct vlog *v, const struct block *b,
				  uint8_t *room, unsigned *grans,
				  unsigned *codec, uint32_t *crc)
{
	const uint8_t *bytes = block_stored(v, b, v->scratch);

	*grans = b->grans;
	*codec = b->codec;
	*crc = b->crc;
	if (loc_lsn(b->loc) < v->codec_lsn)
		stored_recode(v, b->lba, &bytes, grans, codec, crc, room);
	return bytes;
}

static bool add(struct vlog *v, struct stripe *s, struct block *b)
{
	uint8_t room[FMT_BLOCK];
	unsigned grans, codec;
	uint32_t crc;
	const uint8_t *bytes = block_bytes(v, b, room, &grans, &codec, &crc);
	struct stripe_entry *e;
	uint8_t *p = stripe_add(v, s, grans, &e);

	if (!p)
		return false;
	memcpy(p, bytes, (size_t)grans * FMT_GRAN);
	e->lba = b->lba;
	e->old = b->loc;
	e->crc = crc;
	e->flags = (uint8_t)(codec << ENT_CODEC_SHIFT);
	e->block = b;
	b->refs++;
	b->moving = true;
	v->map.moving_grans += b->grans;
	return true;
}

/* Replayed, and the content that says so is not committed yet: what the tail
 * of the log freed may not be free for whoever opens next. */
static bool recovering(const struct vlog *v)
{
	return v->state == VLOG_OPENING && v->log_epoch == v->epoch;
}

bool destage_step(struct vlog *v)
{
	const bool left =
		MUT(RECOVER_DESTAGE) && recovering(v) && still_grans(v);
	struct stripe *s;

	if (!left && (v->state != VLOG_SERVING || !due(v)))
		return false;
	s = stripe_begin(v, STREAM_HOT);
	if (!s)
		return false;
	for (struct block *b = v->map.oldest; b; b = b->next) {
		if (b->next)
			block_prefetch(v, b->next);
		if (!b->moving && !add(v, s, b))
			break;
	}
	clean_credit(v, s->grans);
	stripe_write(v, s);
	return true;
}
