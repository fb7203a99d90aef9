/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * iodeck-vdisk(5) against the engine: each row of its tables of bytes is held
 * against the struct, its magics, its memory, its write amplification against
 * what computes them. Why: a format's reference that is wrong by a byte is
 * worse than none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/label.h"
#include "engine/vdisk/limit.h"
#include "engine/vdisk/log/format.h"

#define TABLE ".Bl -column \"0000\""
#define CELLS 8

struct cells {
	char *at[CELLS];
	unsigned count;
};

static char *page;

static int page_load(void **state)
{
	const char *source = getenv("SOURCE_DIR");
	char path[512];
	size_t size = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/man/iodeck-vdisk.5",
		 source ? source : ".");
	f = fopen(path, "r");
	if (!f || getdelim(&page, &size, '\0', f) <= 0)
		return -1;
	return fclose(f);
}

static int page_drop(void **state)
{
	(void)state;
	free(page);
	return 0;
}

/* The row at *at, its cells cut apart; false at the list's end. */
static bool row_next(const char **at, char line[256], struct cells *c)
{
	const size_t len = strcspn(*at, "\n");
	char *cell;

	if (!strncmp(*at, ".El", 3))
		return false;
	assert_true(len < 256);
	assert_true(!strncmp(*at, ".It ", 4));
	memcpy(line, *at + 4, len - 4);
	line[len - 4] = '\0';
	*at += len + 1;
	c->count = 0;
	for (cell = line; cell; c->count++) {
		char *ta = strstr(cell, " Ta");

		assert_true(c->count < CELLS);
		c->at[c->count] = cell;
		cell = ta ? ta + 3 + (ta[3] == ' ') : NULL;
		if (ta)
			*ta = '\0';
	}
	return true;
}

/* ---- bytes --------------------------------------------------------------- */

struct field {
	const char *name;
	size_t off, size;
};
#define F(type, name)                                       \
	{                                                   \
#name, offsetof(struct type, name),         \
			sizeof(((struct type *)NULL)->name) \
	}
#define END       \
	{         \
		0 \
	}

/* In the page's order; `size` 0: its end is not the last field's. */
static const struct {
	size_t size;
	struct field field[32];
} tables[] = {
	{ sizeof(struct fmt_head),
	  { F(fmt_head, magic), F(fmt_head, crc), F(fmt_head, vdisk),
	    F(fmt_head, version), F(fmt_head, comp), F(fmt_head, len),
	    F(fmt_head, self), F(fmt_head, epoch), END } },
	{ sizeof(struct fmt_label),
	  { F(fmt_label, head),
	    F(fmt_label, comp_uuid),
	    F(fmt_label, cluster),
	    F(fmt_label, name),
	    F(fmt_label, size_blocks),
	    F(fmt_label, off_snap),
	    F(fmt_label, off_data),
	    F(fmt_label, snap_bytes),
	    F(fmt_label, zone_bytes),
	    F(fmt_label, zones),
	    F(fmt_label, unit_bytes),
	    F(fmt_label, stripes),
	    F(fmt_label, slots),
	    F(fmt_label, segs),
	    F(fmt_label, buffer_bytes),
	    F(fmt_label, raid),
	    F(fmt_label, k),
	    F(fmt_label, m),
	    F(fmt_label, codec),
	    F(fmt_label, comps),
	    F(fmt_label, pad),
	    F(fmt_label, member),
	    END } },
	{ sizeof(struct fmt_member),
	  { F(fmt_member, uuid), F(fmt_member, domain), F(fmt_member, drive),
	    F(fmt_member, component), END } },
	{ sizeof(struct fmt_super),
	  { F(fmt_super, head), F(fmt_super, promised), F(fmt_super, serial),
	    F(fmt_super, content), END } },
	{ sizeof(struct fmt_content),
	  { F(fmt_content, epoch),     F(fmt_content, seq),
	    F(fmt_content, log_epoch), F(fmt_content, log_zone),
	    F(fmt_content, lsn),       F(fmt_content, snap_len),
	    F(fmt_content, snap_crc),  F(fmt_content, area),
	    F(fmt_content, clean),     F(fmt_content, raid),
	    F(fmt_content, k),         F(fmt_content, m),
	    F(fmt_content, codec),     F(fmt_content, comps),
	    F(fmt_content, group_m),   F(fmt_content, group_was),
	    F(fmt_content, tolerates), F(fmt_content, pad),
	    F(fmt_content, seg_next),  F(fmt_content, codec_since),
	    F(fmt_content, seat),      END } },
	{ sizeof(struct fmt_seat),
	  { F(fmt_seat, uuid), F(fmt_seat, since), F(fmt_seat, slots),
	    F(fmt_seat, pad), F(fmt_seat, domain), F(fmt_seat, drive),
	    F(fmt_seat, component), END } },
	{ sizeof(struct fmt_zone),
	  { F(fmt_zone, head), F(fmt_zone, zseq), F(fmt_zone, first_lsn),
	    F(fmt_zone, durable_lsn), F(fmt_zone, copies), F(fmt_zone, pad),
	    F(fmt_zone, comp), F(fmt_zone, slot), END } },
	{ sizeof(struct fmt_record),
	  { F(fmt_record, head), F(fmt_record, zseq), F(fmt_record, lsn),
	    F(fmt_record, durable_lsn), F(fmt_record, hdr_len),
	    F(fmt_record, pay_len), F(fmt_record, pay_crc),
	    F(fmt_record, entries), F(fmt_record, type), F(fmt_record, pad),
	    END } },
	{ sizeof(struct fmt_write),
	  { F(fmt_write, lba), F(fmt_write, crc), F(fmt_write, gran),
	    F(fmt_write, grans), F(fmt_write, flags), END } },
	{ sizeof(struct fmt_discard),
	  { F(fmt_discard, lba), F(fmt_discard, blocks), END } },
	{ sizeof(struct fmt_commit),
	  { F(fmt_commit, seg_id), F(fmt_commit, seg), F(fmt_commit, stripe),
	    F(fmt_commit, k), F(fmt_commit, m), F(fmt_commit, comp),
	    F(fmt_commit, slot), END } },
	{ sizeof(struct fmt_move),
	  { F(fmt_move, lba), F(fmt_move, old), F(fmt_move, crc),
	    F(fmt_move, gran), F(fmt_move, unit), F(fmt_move, grans),
	    F(fmt_move, flags), END } },
	{ sizeof(struct fmt_sum_entry),
	  { F(fmt_sum_entry, lba), F(fmt_sum_entry, crc),
	    F(fmt_sum_entry, gran), F(fmt_sum_entry, unit),
	    F(fmt_sum_entry, grans), F(fmt_sum_entry, flags), END } },
	{ sizeof(struct fmt_sum),
	  { F(fmt_sum, vdisk), F(fmt_sum, seg_id), F(fmt_sum, epoch),
	    F(fmt_sum, crc), F(fmt_sum, magic), F(fmt_sum, stripe),
	    F(fmt_sum, entries), F(fmt_sum, k), F(fmt_sum, m), F(fmt_sum, pad),
	    END } },
	{ sizeof(struct fmt_piece),
	  { F(fmt_piece, head), F(fmt_piece, seq), F(fmt_piece, index),
	    F(fmt_piece, used), END } },
	{ sizeof(struct fmt_item_seg),
	  { F(fmt_item_seg, where), F(fmt_item_seg, lsn), F(fmt_item_seg, live),
	    F(fmt_item_seg, sealed), F(fmt_item_seg, stripes),
	    F(fmt_item_seg, pad), END } },
	{ sizeof(struct fmt_item_leaf),
	  { F(fmt_item_leaf, index), F(fmt_item_leaf, loc),
	    F(fmt_item_leaf, crc), END } },
	{ sizeof(struct fmt_item_block),
	  { F(fmt_item_block, lba), F(fmt_item_block, loc), END } },
	{ sizeof(struct fmt_item_end),
	  { F(fmt_item_end, segs), F(fmt_item_end, leaves),
	    F(fmt_item_end, blocks), END } },
};

static size_t number(const char *text)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	assert_true(end != text && !*end);
	return value;
}

static void table_check(const char **at, const struct field *f, size_t size)
{
	size_t next = 0;
	char line[256];
	struct cells c;

	for (; row_next(at, line, &c); f++) {
		assert_int_equal(c.count, 4);
		if (!f->name)
			fail_msg("%s: a row too many", c.at[2]);
		if (strcmp(f->name, c.at[2]) != 0 ||
		    number(c.at[0]) != f->off || number(c.at[1]) != f->size)
			fail_msg("%s %s %s is %s at %zu, %zu bytes", c.at[0],
				 c.at[1], c.at[2], f->name, f->off, f->size);
		assert_int_equal(f->off, next); /* nothing is left out */
		next = f->off + f->size;
	}
	if (f->name)
		fail_msg("no row of %s", f->name);
	assert_int_equal(next, size);
}

static const char *table_after(const char *at)
{
	at = strstr(at, TABLE);
	return at ? strchr(at, '\n') + 1 : NULL;
}

static void test_bytes(void **state)
{
	const char *at = page;

	(void)state;
	for (size_t i = 0; i < array_len(tables); i++) {
		at = table_after(at);
		assert_non_null(at);
		table_check(&at, tables[i].field, tables[i].size);
	}
}

/* The in-place label is put together by hand, so the page's offsets are read
 * out of one that was encoded with a mark in each field. */
static void test_bytes_inplace(void **state)
{
	static uint8_t record[LABEL_BYTES], other[LABEL_BYTES];
	static struct label label;
	const char *at = strstr(page, ".Ss On a component");
	size_t next = 0;
	char line[256];
	struct cells c;

	(void)state;
	assert_non_null(at);
	at = table_after(at);
	while (row_next(&at, line, &c)) {
		assert_int_equal(number(c.at[0]), next);
		next += number(c.at[1]);
	}
	/* The first member begins where the rows end. */
	label.slots = 1;
	label_encode(&label, record);
	label.member[0].uuid[0] = 1;
	label_encode(&label, other);
	assert_int_equal(record[next], 0);
	assert_int_equal(other[next], 1);
	assert_memory_equal(record + 16, other + 16, next - 16);
}

static void test_magics(void **state)
{
	static const struct {
		const char *name;
		uint32_t magic;
	} of[] = {
		{ "label", FMT_LABEL },
		{ "superblock", FMT_SUPERBLOCK },
		{ "zone", FMT_ZONE },
		{ "record", FMT_RECORD },
		{ "snapshot piece", FMT_SNAP },
		{ "stripe summary", FMT_STRIPE },
	};
	const char *at = strstr(page, "Magics, as");
	char line[256];
	struct cells c;

	(void)state;
	assert_non_null(at);
	at = strchr(strstr(at, ".Bl"), '\n') + 1;
	for (size_t i = 0; i < array_len(of); i++) {
		assert_true(row_next(&at, line, &c));
		assert_string_equal(c.at[0], of[i].name);
		assert_memory_equal(c.at[1], &of[i].magic, 4);
	}
	assert_false(row_next(&at, line, &c));
}

/* ---- figures ------------------------------------------------------------- */

static struct vdisk_policy policy(enum raid_level raid, unsigned k, unsigned m)
{
	return (struct vdisk_policy) { .raid = raid,
				       .k = (uint8_t)k,
				       .m = (uint8_t)m,
				       .layout = VDISK_LOG,
				       .codec = VDISK_LZ4,
				       .stripe_unit_bytes = 128 * KIB };
}

static double mib(const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	assert_string_equal(end, " MiB");
	return value;
}

static void near(const char *what, double says, double is, double share)
{
	if (says < is * (1 - share) || says > is * (1 + share))
		fail_msg("%s: the page says %.2f, it is %.2f", what, says, is);
}

static void test_memory(void **state)
{
	static const uint64_t size_gib[] = { 1, 10, 100, 1024 };
	const struct vdisk_policy of[] = { policy(RAID_1, 1, 1),
					   policy(RAID_5, 4, 1),
					   policy(RAID_6, 4, 2) };
	const char *at = strstr(page, ".Ss Memory");
	char line[256];
	struct cells c;

	(void)state;
	assert_non_null(at);
	at = strchr(strstr(at, ".Bl"), '\n') + 1;
	assert_true(row_next(&at, line, &c)); /* heads */
	for (size_t i = 0; i < array_len(size_gib); i++) {
		assert_true(row_next(&at, line, &c));
		assert_int_equal(c.count, 1 + array_len(of));
		for (size_t p = 0; p < array_len(of); p++)
			near(c.at[0], mib(c.at[1 + p]),
			     (double)vdisk_memory_bytes(&of[p],
							size_gib[i] * GIB, 6) /
				     (double)MIB,
			     0.01);
	}
	assert_false(row_next(&at, line, &c));
}

struct amp {
	double idle, cleaning, sequential;
};

static struct amp amp_of(unsigned k, unsigned m)
{
	struct limit_layout l = { .k = k,
				  .m = m,
				  .stored = 1,
				  .group = 32,
				  .cleaning = 1,
				  .log_share = 0.02 };
	struct limit_bytes w;
	struct amp a;

	limit_random(&l, &w);
	a.idle = limit_written(&w);
	l.cleaning = 2.75;
	limit_random(&l, &w);
	a.cleaning = limit_written(&w);
	limit_sequential(&l, &w);
	a.sequential = limit_written(&w);
	return a;
}

static void test_amplification(void **state)
{
	static const struct {
		const char *name;
		unsigned k, m;
	} of[] = {
		{ "RAID-1, FTT 1", 1, 1 }, { "RAID-1, FTT 2", 1, 2 },
		{ "RAID-1, FTT 3", 1, 3 }, { "RAID-5 2+1", 2, 1 },
		{ "RAID-5 4+1", 4, 1 },    { "RAID-6 4+2", 4, 2 },
	};
	const struct amp one = amp_of(1, 1);
	const char *at = strstr(page, ".It policy Ta empty ");
	char line[256];
	struct cells c;

	(void)state;
	assert_non_null(at);
	assert_true(row_next(&at, line, &c));
	for (size_t i = 0; i < array_len(of); i++) {
		const struct amp a = amp_of(of[i].k, of[i].m);
		const double is[] = { a.idle,
				      one.idle / a.idle,
				      a.cleaning,
				      one.cleaning / a.cleaning,
				      a.sequential,
				      one.sequential / a.sequential,
				      (double)(of[i].k + of[i].m) / of[i].k };

		assert_true(row_next(&at, line, &c));
		assert_string_equal(c.at[0], of[i].name);
		assert_int_equal(c.count, 1 + array_len(is));
		for (size_t j = 0; j < array_len(is); j++)
			near(of[i].name, strtod(c.at[1 + j], NULL), is[j],
			     0.006);
	}
	assert_false(row_next(&at, line, &c));
}

/* The worked example of the limit. */
static void test_limit_example(void **state)
{
	const struct limit_drives d = { .write_bytes_s = 6 * 150e6 };
	const struct limit_layout l = { .k = 4,
					.m = 2,
					.stored = 1,
					.group = 32,
					.cleaning = 1,
					.log_share = 0.02 };
	const char *at = strstr(page, "6 x 150,000,000 / (4096 x ");
	unsigned k, rest;
	struct limit_bytes w;
	double amp;

	(void)state;
	assert_non_null(at);
	assert_int_equal(sscanf(at,
				"6 x 150,000,000 / (4096 x %lf) = %u,%u IOPS",
				&amp, &k, &rest),
			 3);
	limit_random(&l, &w);
	near("W", amp, limit_written(&w), 0.001);
	near("limit", k * 1000.0 + rest, limit_write_iops(&d, &w, 4096), 0.001);
}

static void test_inplace_ios(void **state)
{
	static const struct {
		const char *name;
		unsigned k, m;
	} of[] = {
		{ "RAID-1, FTT 1", 1, 1 },
		{ "RAID-5 4+1", 4, 1 },
		{ "RAID-5 2+1", 2, 1 },
		{ "RAID-6 4+2", 4, 2 },
	};
	const char *at = strstr(page, ".Ss Device I/Os bind in place");
	char line[256], says[64];
	struct cells c;

	(void)state;
	assert_non_null(at);
	at = strchr(strstr(at, ".Bl"), '\n') + 1;
	for (size_t i = 0; i < array_len(of); i++) {
		const struct limit_ios ios =
			limit_inplace_ios(of[i].k, of[i].m, false);

		assert_true(row_next(&at, line, &c));
		assert_string_equal(c.at[0], of[i].name);
		if (ios.reads)
			snprintf(says, sizeof(says), "%u read%s, %u writes",
				 ios.reads, ios.reads > 1 ? "s" : "",
				 ios.writes);
		else
			snprintf(says, sizeof(says), "%u writes", ios.writes);
		assert_string_equal(c.at[1], says);
	}
	assert_false(row_next(&at, line, &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_bytes_inplace),
		cmocka_unit_test(test_magics),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_amplification),
		cmocka_unit_test(test_inplace_ios),
		cmocka_unit_test(test_limit_example),
	};

	return cmocka_run_group_tests(tests, page_load, page_drop);
}
