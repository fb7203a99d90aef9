/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any 4 KiB of one member zeroed, flipped, unreadable, or replaced by another
 * valid 4 KiB of this or of another member: survived, repaired and reported, on
 * a running vDisk and before an opening. What is in use is known from the
 * vDisk's inside, so damage that nobody noticed shows.
 *   test_vdisk_log_damage [all|many|few [TEST]]   every block, one in 5, one in
 *                                                 61; else one in 23
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/log/impl.h"
#include "log_rig.h"

#define BLOCK 4096u
#define LBAS 160

enum damage { ZEROED, FLIPPED, SAME_MEMBER, OTHER_MEMBER, UNREADABLE, DAMAGES };
static const char *const damage_name[] = { "zeroed", "flipped",
					   "replaced by its own",
					   "replaced by another's",
					   "unreadable" };

static unsigned every = 23;
static unsigned done_count, used_count, found_count;

static const struct vlog *vlog_of(struct rig *rig)
{
	return container_of(rig->vd, struct vlog, bdev);
}

/* ---- what is in use ------------------------------------------------ */

static bool in(uint64_t off, uint64_t from, uint64_t len)
{
	return off >= from && off < from + len;
}

static bool zone_used(const struct vlog *v, unsigned c, uint64_t off)
{
	for (const struct zone *z = v->zones; z; z = z->next)
		for (unsigned i = 0; i < z->copies; i++)
			if (z->comp[i] == c &&
			    (z->last_lsn > v->lsn_snapshot ||
			     (z->state == ZONE_READY &&
			      off % v->label.zone_bytes ==
				      FMT_LOG_OFF % v->label.zone_bytes)) &&
			    in(off,
			       FMT_LOG_OFF + (uint64_t)z->slot[i] *
						     v->label.zone_bytes,
			       z->pos))
				return true;
	return false;
}

/* The first block of each piece; the others may hold nothing. */
static bool snap_used(const struct vlog *v, unsigned c, uint64_t off)
{
	const struct fmt_content *mine = &v->member[c].super.content;
	const uint64_t at = v->label.off_snap[mine->area];

	for (unsigned i = 0; i < meta_group(v); i++)
		if (v->member[i].super.content.seq > mine->seq)
			return false;
	return c < meta_group(v) && in(off, at, mine->snap_len) &&
	       (off - at) % FMT_PIECE == 0;
}

static bool unit_used(const struct vlog *v, unsigned c, uint64_t off)
{
	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];

		if (s->state == SEG_FREE || !s->live)
			continue;
		for (unsigned u = 0; u < seg_width(s); u++)
			for (unsigned t = 0; t < v->label.stripes; t++)
				if (s->comp[u] == c && s->stripes & 1u << t &&
				    in(off, seg_unit_off(v, s, u, t),
				       v->label.unit_bytes))
					return true;
	}
	return false;
}

static bool used(const struct vlog *v, unsigned c, uint64_t off)
{
	if (off == FMT_LABEL_A || off == FMT_LABEL_B)
		return true;
	if (off == FMT_SUPER(0) || off == FMT_SUPER(1))
		return c < meta_group(v) &&
		       (v->member[c].super.serial > 1 ||
			off == FMT_SUPER(v->member[c].super_slot));
	return zone_used(v, c, off) || snap_used(v, c, off) ||
	       unit_used(v, c, off);
}

/* ---- a vDisk with something of everything -------------------------- */

static void prepare(struct rig *rig, unsigned k, unsigned m, unsigned n)
{
	rig_init(rig, 5, k, m, n, 240);
	rig->spec.tune.unit_bytes = 16 << 10;
	rig->spec.tune.stripes = 2;
	rig->spec.tune.slots = 24;
	rig->spec.policy.codec = VDISK_LZ4;
	if (rig_create_sync(rig))
		fail_msg("%s", rig->err.text);
}

static void life(struct rig *rig)
{
	for (uint64_t lba = 0; lba < LBAS; lba += 16)
		assert_int_equal(rig_put(rig, lba, 1, 16), 0);
	for (uint64_t lba = 3; lba < LBAS; lba += 7)
		assert_int_equal(rig_put(rig, lba, 2, 1), 0);
	vlog_checkpoint(rig->vd);
	rig_run(rig, 50 * MSEC_NS);
	for (uint64_t lba = 5; lba < LBAS; lba += 13)
		assert_int_equal(rig_put(rig, lba, 3, 1), 0);
	rig_run(rig, 50 * MSEC_NS);
}

static void expect_life(struct rig *rig)
{
	uint8_t *buf = malloc(LBAS * BLOCK);

	assert_int_equal(
		bdev_io_sync(rig->vd, BDEV_READ, 0, 0, buf, LBAS * BLOCK), 0);
	for (uint64_t lba = 0; lba < LBAS; lba++) {
		uint32_t want = lba % 7 == 3 ? 2 : 1;

		if (lba % 13 == 5)
			want = 3;
		assert_int_equal(block_version(lba, buf + lba * BLOCK), want);
	}
	free(buf);
}

/* ---- damage -------------------------------------------------------- */

static struct {
	bool over;
	int result;
	uint64_t mismatches;
} verified;

static void on_verified(int result, const struct err *err, struct bdev *vd,
			void *arg)
{
	(void)err;
	(void)vd;
	(void)arg;
	verified.over = true;
	verified.result = result;
}

static void verify_begin(struct rig *rig)
{
	verified.over = false;
	assert_int_equal(
		vlog_verify(rig->vd, &verified.mismatches, on_verified, NULL),
		0);
}

static uint64_t verify_end(struct rig *rig)
{
	for (unsigned i = 0; !verified.over; i++) {
		assert_true(i < 1000000);
		rig_turn(rig);
	}
	assert_int_equal(verified.result, 0);
	return verified.mismatches;
}

static uint64_t verify(struct rig *rig)
{
	verify_begin(rig);
	return verify_end(rig);
}

static bool block_zero(const uint8_t *p)
{
	return !p[0] && !memcmp(p, p + 1, BLOCK - 1);
}

/* Another block that is not the same. */
static const uint8_t *other_block(struct rig *rig, unsigned c, uint64_t off,
				  const uint8_t *was)
{
	const struct disk *d = &rig->disk[c];

	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t at =
			rng_below(&rig->rng, d->bytes / BLOCK) * BLOCK;
		const uint8_t *p = d->seen + at;

		/* Mostly from the places that are read without a map. */
		if (i % 2 && at >= FMT_LOG_OFF + (1 << 20))
			continue;
		if (!block_zero(p) && memcmp(p, was, BLOCK) && at != off)
			return p;
	}
	return NULL;
}

/* False: it would be the same. */
static bool damage_do(struct rig *rig, unsigned c, uint64_t off,
		      enum damage damage)
{
	struct disk *d = &rig->disk[c];
	uint8_t *p = d->seen + off;
	const uint8_t *from = NULL;
	uint8_t was[BLOCK];

	memcpy(was, p, BLOCK);
	switch (damage) {
	case ZEROED:
		memset(p, 0, BLOCK);
		break;
	case FLIPPED:
		for (unsigned i = 0; i < BLOCK; i += 64)
			p[i + rng_below(&rig->rng, 64)] ^=
				(uint8_t)(1u << rng_below(&rig->rng, 8));
		break;
	case UNREADABLE:
		memset(d->bad + off / SECTOR, 1, BLOCK / SECTOR);
		return true;
	case SAME_MEMBER:
		from = other_block(rig, c, off, was);
		break;
	default:
		from = other_block(rig, (c + 1) % rig->n, off, was);
		break;
	}
	if (from)
		memcpy(p, from, BLOCK);
	memcpy(d->durable + off, p, BLOCK);
	return memcmp(was, p, BLOCK);
}

static uint64_t reported(struct rig *rig)
{
	struct vlog_info info;

	vlog_info(rig->vd, &info);
	assert_int_equal(info.scrub_lost, 0);
	assert_int_equal(info.reads_failed, 0);
	assert_int_equal(info.blocks_lost, 0);
	return info.scrub_found + info.reads_repaired;
}

/* ---- on a running vDisk -------------------------------------------- */

static void running_one(struct rig *rig, unsigned c, uint64_t off,
			enum damage damage)
{
	const bool is_used = used(vlog_of(rig), c, off);
	const char *what = zone_used(vlog_of(rig), c, off)   ? "log"
			   : snap_used(vlog_of(rig), c, off) ? "snapshot"
			   : unit_used(vlog_of(rig), c, off) ? "data"
							     : "front";
	const uint64_t before = reported(rig);

	if ((!is_used && off / BLOCK % 16) || !damage_do(rig, c, off, damage))
		return;
	done_count++;
	if (damage % 2) /* found by a read, or by the scrubber alone */
		expect_life(rig);
	verify(rig);
	expect_life(rig);
	used_count += is_used;
	found_count += reported(rig) > before;
	/* Not if it was freed meanwhile: what was repaired often is moved. */
	if (is_used && used(vlog_of(rig), c, off) && reported(rig) == before)
		fail_msg("member %u, %s at %llu %s: not noticed", c, what,
			 (unsigned long long)off, damage_name[damage]);
	/* Superblocks may take two checkpoints to be whole. */
	if (verify(rig) && verify(rig))
		fail_msg("member %u, %s at %llu %s: not mended", c, what,
			 (unsigned long long)off, damage_name[damage]);
}

static void running(unsigned k, unsigned m, unsigned n, unsigned c)
{
	struct vlog_info info;
	struct rig rig;

	prepare(&rig, k, m, n);
	life(&rig);
	assert_int_equal(verify(&rig), 0);
	done_count = used_count = found_count = 0;
	for (uint64_t b = 0; b < rig.disk[c].bytes / BLOCK; b++)
		for (unsigned i = 0; i < DAMAGES; i++)
			if (b < 4 || (b * DAMAGES + i) % every == 0)
				running_one(&rig, c, b * BLOCK, (enum damage)i);
	vlog_info(rig.vd, &info);
	printf("%u+%u: %u damaged, %u in use, %u found; %llu repaired\n", k, m,
	       done_count, used_count, found_count,
	       (unsigned long long)(info.scrub_repaired + info.reads_repaired));
	assert_true(used_count > 10);
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

/* What is not of a snapshot or of the log may be unreadable beside it. */
static void test_beside(void **state)
{
	const struct fmt_label *l;
	struct rig rig;

	(void)state;
	prepare(&rig, 1, 1, 3);
	life(&rig);
	assert_int_equal(verify(&rig), 0);
	l = &vlog_of(&rig)->label;
	for (unsigned c = 0; c < rig.n; c++) {
		struct disk *d = &rig.disk[c];

		for (uint64_t off = FMT_LOG_OFF; off < l->off_data;
		     off += BLOCK)
			if (block_zero(d->seen + off))
				memset(d->bad + off / SECTOR, 1,
				       BLOCK / SECTOR);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(verify(&rig), 0);
		expect_life(&rig);
		vlog_checkpoint(rig.vd);
		rig_run(&rig, 50 * MSEC_NS);
	}
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

/* ---- before an opening --------------------------------------------- */

struct images {
	uint8_t *disk[DISKS_MAX];
};

static void images_take(struct rig *rig, struct images *im)
{
	for (unsigned i = 0; i < rig->n; i++) {
		im->disk[i] = malloc(rig->disk[i].bytes);
		memcpy(im->disk[i], rig->disk[i].seen, rig->disk[i].bytes);
	}
}

static void images_put(struct rig *rig, const struct images *im)
{
	for (unsigned i = 0; i < rig->n; i++) {
		struct disk *d = &rig->disk[i];

		memcpy(d->seen, im->disk[i], d->bytes);
		memcpy(d->durable, im->disk[i], d->bytes);
		memset(d->dirty, 0, d->bytes / SECTOR);
		memset(d->bad, 0, d->bytes / SECTOR);
	}
}

static void opening_one(struct rig *rig, const struct images *im, unsigned c,
			uint64_t off, enum damage damage)
{
	images_put(rig, im);
	if (!damage_do(rig, c, off, damage))
		return;
	done_count++;
	if (rig_open_sync(rig))
		fail_msg("member %u, %llu %s: %s", c, (unsigned long long)off,
			 damage_name[damage], rig->err.text);
	/* It takes more than 4 KiB to be away. */
	assert_non_null(rig->disk[c].open);
	expect_life(rig);
	verify(rig);
	if (verify(rig) && verify(rig))
		fail_msg("member %u, %llu %s: not mended", c,
			 (unsigned long long)off, damage_name[damage]);
	found_count += reported(rig) > 0;
	rig_check(rig);
	rig_crash(rig, true);
}

static void opening(unsigned k, unsigned m, unsigned n, unsigned c, bool clean)
{
	struct images im = { 0 };
	struct rig rig;
	uint8_t *is_used;
	uint64_t blocks;

	prepare(&rig, k, m, n);
	life(&rig);
	blocks = rig.disk[c].bytes / BLOCK;
	is_used = malloc(blocks);
	for (uint64_t b = 0; b < blocks; b++)
		is_used[b] = used(vlog_of(&rig), c, b * BLOCK);
	if (clean)
		rig_close_sync(&rig);
	else
		rig_crash(&rig, true);
	images_take(&rig, &im);
	done_count = found_count = 0;
	for (uint64_t b = 0; b < blocks; b++)
		for (unsigned i = 0; i < DAMAGES; i++)
			if (b < 4 || ((is_used[b] || b % 16 == 0) &&
				      (b * DAMAGES + i) % (3 * every) == 0))
				opening_one(&rig, &im, c, b * BLOCK,
					    (enum damage)i);
	printf("%u+%u: %u damaged before an opening, %u found after it\n", k, m,
	       done_count, found_count);
	for (unsigned i = 0; i < n; i++)
		free(im.disk[i]);
	free(is_used);
	rig_fini(&rig);
}

static void test_running(void **state)
{
	(void)state;
	running(1, 1, 3, 0);
	running(2, 1, 3, 1);
	running(4, 2, 6, 3);
}

static void test_opening(void **state)
{
	(void)state;
	opening(1, 1, 3, 1, false);
	opening(2, 1, 3, 0, false);
	opening(2, 1, 3, 2, true);
	opening(4, 2, 6, 2, false);
}

/* What stands behind the last piece of each snapshot cannot be read: a write
 * that was cut off, from when there was more of it. */
static void test_behind_snapshot(void **state)
{
	struct rig rig;

	(void)state;
	prepare(&rig, 2, 1, 3);
	life(&rig);
	rig_close_sync(&rig);
	for (unsigned i = 0; i < rig.n; i++) {
		struct disk *d = &rig.disk[i];

		for (uint64_t at = 0; at + FMT_PIECE <= d->bytes; at += BLOCK) {
			struct fmt_head h;
			uint64_t from;

			memcpy(&h, d->seen + at, sizeof(h));
			from = (h.len + BLOCK - 1) / BLOCK * BLOCK;
			if (h.magic == FMT_SNAP && h.self == at)
				memset(d->bad + (at + from) / SECTOR, 1,
				       (FMT_PIECE - from) / SECTOR);
		}
	}
	if (rig_open_sync(&rig))
		fail_msg("%s", rig.err.text);
	expect_life(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void units_damage(struct rig *rig, unsigned c)
{
	for (uint64_t b = 0; b < rig->disk[c].bytes / BLOCK; b++)
		if (unit_used(vlog_of(rig), c, b * BLOCK))
			damage_do(rig, c, b * BLOCK, FLIPPED);
}

/* What was read of a member that is lost since may be wrong: parity that were
 * made of it could not give back what it should. */
static void lost_while_verified(unsigned turns)
{
	struct rig rig;

	prepare(&rig, 2, 1, 4);
	life(&rig);
	units_damage(&rig, 1);
	verify_begin(&rig);
	for (unsigned i = 0; i < turns && !verified.over; i++)
		rig_turn(&rig);
	assert_int_equal(vlog_member_fail(rig.vd, 1, NULL), 0);
	rig_run(&rig, 20 * MSEC_NS);
	expect_life(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
}

static void test_lost_while_verified(void **state)
{
	(void)state;
	for (unsigned turns = 1; turns < 150; turns++)
		lost_while_verified(turns);
}

/*
 * A stripe that has lost more members than it stands may have lost its summary
 * with them. That is no damage; and what is there is verified all the same.
 * from  members from this one on go, so many turns into it
 */
static void beyond_while_verified(unsigned k, unsigned m, unsigned n,
				  unsigned from, unsigned turns)
{
	struct rig rig;

	prepare(&rig, k, m, n);
	life(&rig);
	verify_begin(&rig);
	rig_turns(&rig, turns);
	for (unsigned i = from; i < n; i++)
		disk_leave(&rig.disk[i]);
	assert_int_equal(verify_end(&rig), 0);
	assert_int_equal(verify(&rig), 0);
	units_damage(&rig, 0);
	assert_true(verify(&rig) > 0);
	rig_crash(&rig, true);
	rig_fini(&rig);
}

static void test_beyond_while_verified(void **state)
{
	(void)state;
	for (unsigned turns = 0; turns < 40; turns += 4) {
		beyond_while_verified(2, 0, 2, 1, turns);
		beyond_while_verified(4, 1, 6, 4, turns);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_behind_snapshot),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_lost_while_verified),
		cmocka_unit_test(test_beyond_while_verified),
	};

	if (argc > 1 && !strcmp(argv[1], "all"))
		every = 1;
	else if (argc > 1 && !strcmp(argv[1], "many"))
		every = 5;
	else if (argc > 1 && !strcmp(argv[1], "few"))
		every = 61;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
