/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What stands on components of the log layout, as it is read: the input's
 * first byte says what the rest is taken for. Magic and checksum are put
 * right, so that what is behind them is reached.
 *   label, superblock, zone header, record, summary: their checks
 *   records: applied one after another, as a replay does
 *   pieces of a snapshot: loaded
 * Whatever it says, it is refused, or the state it makes is sound.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOCKS 2048
#define SLOTS 4

static const uint8_t vdisk[16] = "a vdisk to fuzz";

enum what { LABEL, SUPER, ZONE, RECORD, SUMMARY, REPLAY, SNAPSHOT, WHATS };

static uint8_t *block_of(const uint8_t *data, size_t size, size_t bytes)
{
	uint8_t *p = calloc(1, bytes);

	id_assert(p);
	memcpy(p, data, size < bytes ? size : bytes);
	return p;
}

static uint32_t len_of(const uint8_t *p, uint32_t min, uint32_t max)
{
	struct fmt_head h;

	memcpy(&h, p, sizeof(h));
	return h.len < min ? min : h.len > max ? max : h.len;
}

static void check_label(uint8_t *p)
{
	fmt_seal(p, FMT_LABEL, vdisk, 0, FMT_LABEL_A, 0,
		 sizeof(struct fmt_label));
	fmt_label_check(p, FMT_COMP_ANY, FMT_LABEL_A);
}

static void check_super(uint8_t *p)
{
	const void *block[2] = { p, p };
	struct fmt_super s;
	unsigned slot;

	fmt_seal(p, FMT_SUPERBLOCK, vdisk, 0, FMT_SUPER(0), 1,
		 sizeof(struct fmt_super));
	if (!fmt_super_newest(block, vdisk, 0, &s, &slot) && s.content.seq)
		fmt_group_quorum(&s.content, 7);
}

static void check_zone(uint8_t *p)
{
	fmt_seal(p, FMT_ZONE, vdisk, FMT_COMP_ANY, 0, 1,
		 len_of(p, sizeof(struct fmt_zone), FMT_BLOCK));
	fmt_check(p, FMT_ZONE, vdisk, FMT_COMP_ANY, 0, sizeof(struct fmt_zone),
		  FMT_BLOCK);
}

/* True: it would be replayed. */
static bool record_ok(uint8_t *p)
{
	struct fmt_record *r = (void *)p;

	fmt_seal(p, FMT_RECORD, vdisk, FMT_COMP_ANY, FMT_BLOCK, 1,
		 len_of(p, sizeof(*r), FMT_RECORD_MAX));
	if (fmt_record_check(p, vdisk, FMT_BLOCK, FMT_RECORD_MAX,
			     FMT_RECORD_MAX))
		return false;
	fmt_payload_ok(r);
	return true;
}

static void check_summary(uint8_t *p)
{
	struct fmt_sum sum;

	memcpy(&sum, p + FMT_BLOCK - sizeof(sum), sizeof(sum));
	memcpy(sum.vdisk, vdisk, 16);
	sum.entries %= FMT_BLOCK / sizeof(struct fmt_sum_entry);
	memcpy(p + FMT_BLOCK - sizeof(sum), &sum, sizeof(sum));
	fmt_sum_find(p, FMT_BLOCK, vdisk);
}

/* ---- a vDisk to apply it to ---------------------------------------- */

static struct vlog *vlog_make(struct reactor *r)
{
	struct vdisk_slot slot[SLOTS];
	const struct vlog_spec spec = {
		.name = "v",
		.size_bytes = (uint64_t)BLOCKS * FMT_BLOCK,
		.policy = { .raid = RAID_5, .k = 2, .m = 1 },
		.tune = { .zone_bytes = 272 << 10,
			  .zones = 4,
			  .unit_bytes = 16 << 10,
			  .stripes = 3,
			  .buffer_bytes = 128 << 10,
			  .slots = 14 },
		.slot = slot,
		.slots = SLOTS,
	};
	struct fmt_content conf = {
		.epoch = 1,
		.raid = 5,
		.k = 2,
		.m = 1,
		.comps = SLOTS,
		.group_m = 1,
		.group_was = 1,
		.tolerates = 1,
	};
	struct fmt_label label;
	struct vlog *v = NULL;

	memset(slot, 0, sizeof(slot));
	for (unsigned i = 0; i < SLOTS; i++) {
		slot[i].domain[0] = (char)('a' + i);
		conf.seat[i].slots = 14;
	}
	id_assert(!geo_label(&spec, &label, NULL));
	memcpy(label.head.vdisk, vdisk, 16);
	id_assert(!vlog_new(r, &label, &conf, &v, NULL));
	return v;
}

static void replay(struct vlog *v, const uint8_t *data, size_t size)
{
	const size_t piece = 512;
	uint64_t lsn = 1;

	for (size_t at = 0; at < size; at += piece, lsn++) {
		const size_t left = size - at;
		uint8_t *p = block_of(data + at, left < piece ? left : piece,
				      FMT_RECORD_MAX);
		struct fmt_record *r = (void *)p;
		int rc = -EBADMSG;

		r->lsn = lsn;
		if (record_ok(p))
			rc = apply_record(v, r, NULL);
		free(p);
		if (rc)
			return; /* an opening ends here */
	}
	id_assert(!vlog_check(&v->bdev, NULL));
}

static void snapshot(struct vlog *v, const uint8_t *data, size_t size)
{
	uint8_t *p = block_of(data, size, size ? size : 1);
	bool over = false;

	if (!snap_load(v, p, (uint32_t)size, &over) && over)
		id_assert(!vlog_check(&v->bdev, NULL));
	free(p);
}

static void with_vlog(enum what what, const uint8_t *data, size_t size)
{
	static const struct reactor_opts opts = { .kind = REACTOR_SIM };
	struct reactor *r;
	struct vlog *v;

	if (reactor_new(&opts, &r, NULL))
		return;
	v = vlog_make(r);
	if (what == REPLAY)
		replay(v, data, size);
	else
		snapshot(v, data, size);
	while (reactor_run_once(r, 0))
		;
	vlog_free(v);
	reactor_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const check[])(uint8_t * p) = { check_label, check_super,
						      check_zone, NULL,
						      check_summary };
	enum what what;
	uint8_t *p;

	if (size < 1 || size > FMT_PIECE)
		return 0;
	what = (enum what)(*data++ % WHATS);
	size--;
	if (what >= REPLAY) {
		with_vlog(what, data, size);
		return 0;
	}
	p = block_of(data, size, what == RECORD ? FMT_RECORD_MAX : FMT_BLOCK);
	if (what == RECORD)
		record_ok(p);
	else
		check[what](p);
	free(p);
	return 0;
}
