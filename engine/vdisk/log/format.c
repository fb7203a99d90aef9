/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Checks before trust: nothing here looks at a field before the lengths that
 * lead to it have been held against what there is.
 */
#include "engine/vdisk/log/format.h"

#include <string.h>

#include "engine/vdisk/log/codec.h"
#include "engine/vdisk/log/mut.h"

static uint32_t head_crc(const uint8_t *block, uint32_t len)
{
	const size_t at = offsetof(struct fmt_head, crc);
	const uint32_t zero = 0;
	uint32_t crc;

	crc = codec_crc_start();
	crc = codec_crc_add(crc, block, at);
	crc = codec_crc_add(crc, &zero, sizeof(zero));
	crc = codec_crc_add(crc, block + at + 4, len - at - 4);
	return codec_crc_end(crc);
}

void fmt_seal(void *block, enum fmt_magic magic, const uint8_t vdisk[16],
	      unsigned comp, uint64_t self, uint64_t epoch, uint32_t len)
{
	struct fmt_head *h = block;

	id_assert(len >= sizeof(*h));
	h->magic = magic;
	memcpy(h->vdisk, vdisk, 16);
	h->version = FMT_VERSION;
	h->comp = (uint16_t)comp;
	h->len = len;
	h->self = self;
	h->epoch = epoch;
	h->crc = head_crc(block, len);
}

int fmt_check(const void *block, enum fmt_magic magic, const uint8_t *vdisk,
	      unsigned comp, uint64_t self, uint32_t min, uint32_t max)
{
	struct fmt_head h;

	memcpy(&h, block, sizeof(h));
	if (h.magic != (uint32_t)magic && !MUT(NO_MAGIC))
		return -ENOENT;
	if (h.version > FMT_VERSION)
		return -ENOTSUP;
	if (h.len < min || h.len > max || h.len < sizeof(h))
		return -EBADMSG;
	if (h.crc != head_crc(block, h.len))
		return -EBADMSG;
	if (vdisk && memcmp(h.vdisk, vdisk, 16))
		return -EBADMSG;
	if ((h.comp != comp || h.self != self) && !MUT(NO_MAGIC))
		return -EBADMSG;
	return 0;
}

static bool power_of_two(uint64_t x)
{
	return x && !(x & (x - 1));
}

static bool label_sane(const struct fmt_label *l)
{
	const unsigned labels = 2u * l->m + 1;
	const uint64_t chunk = (uint64_t)l->unit_bytes * l->stripes;

	if (l->comps < 1 || l->comps > FMT_COMPS_MAX || l->k < 1 ||
	    l->m + 1u > FMT_COPIES_MAX || l->k + l->m > (int)l->comps ||
	    labels > l->comps || l->codec >= CODEC_COUNT)
		return false;
	if (!power_of_two(l->unit_bytes) || l->unit_bytes < 2 * FMT_BLOCK ||
	    l->unit_bytes > 256 * FMT_GRAN || l->stripes < 1 ||
	    l->stripes > 32 || l->zone_bytes % FMT_BLOCK ||
	    l->zone_bytes < FMT_RECORD_MAX + FMT_BLOCK || l->zone_bytes > GIB)
		return false;
	if (!l->size_blocks || l->size_blocks > 1ull << 36 || l->zones < 2 ||
	    l->zones > 1u << 20 || !l->slots || l->slots > 1u << 24 ||
	    !l->segs || l->segs > 1u << 28 || l->buffer_bytes % FMT_BLOCK ||
	    !l->buffer_bytes || l->buffer_bytes > GIB)
		return false;
	return l->snap_bytes % FMT_PIECE == 0 && l->snap_bytes &&
	       l->snap_bytes < 1ull << 40 &&
	       l->off_snap[0] ==
		       FMT_LOG_OFF + (uint64_t)l->zones * l->zone_bytes &&
	       l->off_snap[1] == l->off_snap[0] + l->snap_bytes &&
	       l->off_data == l->off_snap[1] + l->snap_bytes && chunk;
}

int fmt_label_check(const void *block, unsigned comp, uint64_t self)
{
	struct fmt_label l;
	int rc;

	memcpy(&l, block, sizeof(l));
	if (comp == FMT_COMP_ANY)
		comp = l.head.comp;
	rc = fmt_check(block, FMT_LABEL, NULL, comp, self, sizeof(l),
		       FMT_BLOCK);
	if (rc)
		return rc;
	if (!label_sane(&l) || comp >= l.comps)
		return -EBADMSG;
	return 0;
}

static bool content_sane(const struct fmt_content *c)
{
	const unsigned group =
		2u * (c->group_m > c->group_was ? c->group_m : c->group_was) +
		1;

	if (!c->seq)
		return c->area < 2;
	return c->area < 2 && c->snap_len % FMT_PIECE == 0 &&
	       c->lsn < 1ull << 44 && c->k && c->m < FMT_COPIES_MAX &&
	       c->codec < CODEC_COUNT && c->comps <= FMT_COMPS_MAX &&
	       c->k + c->m <= c->comps && group <= c->comps &&
	       group <= 2 * FMT_COPIES_MAX - 1 && c->tolerates <= c->m;
}

int fmt_super_newest(const void *const block[2], const uint8_t vdisk[16],
		     unsigned comp, struct fmt_super *super, unsigned *slot)
{
	int rc = -ENOENT;

	for (unsigned i = 0; i < 2; i++) {
		struct fmt_super s;

		if (fmt_check(block[i], FMT_SUPERBLOCK, vdisk, comp,
			      FMT_SUPER(i), sizeof(s), FMT_BLOCK))
			continue;
		memcpy(&s, block[i], sizeof(s));
		if (!content_sane(&s.content) ||
		    (!rc && s.serial < super->serial))
			continue;
		*super = s;
		*slot = i;
		rc = 0;
	}
	return rc;
}

int fmt_content_compare(const struct fmt_content *a,
			const struct fmt_content *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return 0;
}

bool fmt_config_same(const struct fmt_content *a, const struct fmt_content *b)
{
	if (a->comps != b->comps || a->raid != b->raid || a->k != b->k ||
	    a->m != b->m || a->codec != b->codec || a->group_m != b->group_m ||
	    a->group_was != b->group_was)
		return false;
	for (unsigned i = 0; i < a->comps; i++)
		if (memcmp(a->seat[i].uuid, b->seat[i].uuid, 16) ||
		    a->seat[i].slots != b->seat[i].slots)
			return false;
	return true;
}

static bool quorum(unsigned m, uint32_t mask)
{
	const unsigned need = MUT(QUORUM_1) ? 1 : m + 1;

	mask &= (1u << (2 * m + 1)) - 1;
	return (unsigned)__builtin_popcount(mask) >= need;
}

bool fmt_group_quorum(const struct fmt_content *c, uint32_t mask)
{
	return quorum(c->group_m, mask) && quorum(c->group_was, mask);
}

bool fmt_group_fresh(const struct fmt_content *c, unsigned i,
		     const struct fmt_super *s)
{
	return i > 2u * c->group_was && i <= 2u * c->group_m &&
	       !c->seat[i].since && !s->content.seq && s->serial &&
	       s->serial < FMT_SERIAL_UNREAD;
}

static uint32_t record_entries_len(const struct fmt_record *r)
{
	switch (r->type) {
	case REC_WRITE:
		return r->entries * (uint32_t)sizeof(struct fmt_write);
	case REC_DISCARD:
		return r->entries * (uint32_t)sizeof(struct fmt_discard);
	case REC_COMMIT:
		return (uint32_t)sizeof(struct fmt_commit) +
		       r->entries * (uint32_t)sizeof(struct fmt_move);
	case REC_SEAL:
		return (uint32_t)sizeof(struct fmt_commit);
	default:
		return UINT32_MAX / 2;
	}
}

int fmt_record_check(const void *block, const uint8_t vdisk[16], uint64_t pos,
		     uint32_t avail, uint32_t room)
{
	struct fmt_record r;
	uint32_t max;
	int rc;

	if (avail < FMT_BLOCK)
		return -EBADMSG;
	memcpy(&r, block, sizeof(r));
	if (r.head.magic != FMT_RECORD && !MUT(NO_MAGIC))
		return -ENOENT;
	max = avail < FMT_RECORD_MAX ? avail : FMT_RECORD_MAX;
	rc = fmt_check(block, FMT_RECORD, vdisk, FMT_COMP_ANY, pos, sizeof(r),
		       max);
	if (rc)
		return rc;
	if (r.hdr_len % FMT_BLOCK || r.pay_len % FMT_BLOCK ||
	    r.hdr_len > FMT_RECORD_MAX || r.pay_len > FMT_PAYLOAD_MAX ||
	    r.hdr_len < r.head.len || r.hdr_len + r.pay_len > room ||
	    r.hdr_len + r.pay_len > FMT_RECORD_MAX ||
	    r.head.len != sizeof(r) + record_entries_len(&r))
		return -EBADMSG;
	return 0;
}

bool fmt_payload_ok(const struct fmt_record *rec)
{
	return codec_crc((const uint8_t *)rec + rec->hdr_len, rec->pay_len) ==
	       rec->pay_crc;
}

static uint32_t sum_crc(const uint8_t *entries, uint32_t len,
			const struct fmt_sum *sum)
{
	struct fmt_sum copy = *sum;
	uint32_t crc;

	copy.crc = 0;
	crc = codec_crc_start();
	crc = codec_crc_add(crc, entries, len);
	crc = codec_crc_add(crc, &copy, sizeof(copy));
	return codec_crc_end(crc);
}

const struct fmt_sum *fmt_sum_find(const uint8_t *unit, uint32_t unit_bytes,
				   const uint8_t vdisk[16])
{
	const struct fmt_sum *sum =
		(const void *)(unit + unit_bytes - sizeof(*sum));
	uint32_t len;

	if (sum->magic != FMT_STRIPE || memcmp(sum->vdisk, vdisk, 16))
		return NULL;
	len = sum->entries * (uint32_t)sizeof(struct fmt_sum_entry);
	if (len > unit_bytes - sizeof(*sum))
		return NULL;
	if (sum->crc != sum_crc((const uint8_t *)sum - len, len, sum))
		return NULL;
	return sum;
}

void fmt_sum_write(uint8_t *unit, uint32_t unit_bytes,
		   const struct fmt_sum *sum, const struct fmt_sum_entry *entry)
{
	struct fmt_sum *at = (void *)(unit + unit_bytes - sizeof(*at));
	const uint32_t len = sum->entries * (uint32_t)sizeof(*entry);

	memcpy((uint8_t *)at - len, entry, len);
	*at = *sum;
	at->magic = FMT_STRIPE;
	at->crc = sum_crc((uint8_t *)at - len, len, at);
}
