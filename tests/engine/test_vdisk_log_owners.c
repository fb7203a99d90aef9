/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Two owners of one vDisk at a time: the first is cut off from drives that the
 * second takes, and does not know it; the second dies, at each step of its way.
 * Whatever the first acknowledges after that is not lost, and neither is what
 * it had acknowledged before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/vdisk/log/impl.h"
#include "log_rig.h"

#define LBAS 40
#define FIRST 1 /* versions: what each of them writes */
#define SECOND 2
#define LATER 3

struct seen { /* how often the second came so far */
	unsigned claimed, accepted, served;
	unsigned took;           /* turns, the last time */
	unsigned split;          /* with a content that not all had accepted */
	unsigned stopped, taken; /* and the first stopped, or went on */
};

/* What a drive's superblocks say. */
static struct fmt_super super_of(struct rig *rig, unsigned i)
{
	const uint8_t *at = rig->disk[i].seen;
	const void *const block[2] = { at + FMT_SUPER(0), at + FMT_SUPER(1) };
	const struct fmt_label *l = (const void *)(at + FMT_LABEL_A);
	struct fmt_super super = { 0 };
	unsigned slot;

	fmt_super_newest(block, l->head.vdisk, i, &super, &slot);
	return super;
}

static void disk_copy(struct disk *to, const struct disk *from)
{
	id_assert(to->bytes == from->bytes);
	memcpy(to->seen, from->seen, from->bytes);
	memcpy(to->durable, from->durable, from->bytes);
	memcpy(to->dirty, from->dirty, from->bytes / SECTOR);
}

static void fill(struct rig *rig, uint32_t version)
{
	for (uint64_t lba = 0; lba < LBAS; lba += 20)
		assert_int_equal(rig_put(rig, lba, version, 20), 0);
}

/* A first owner that serves on drives 0 to m; the others are away. */
static void first_begin(struct rig *rig, unsigned m)
{
	rig_init(rig, 5, 1, m, 2 * m + 1, 100);
	rig->spec.tune.slots = 40;
	assert_int_equal(rig_create_sync(rig), 0);
	for (unsigned i = m + 1; i < rig->n; i++)
		disk_leave(&rig->disk[i]);
	fill(rig, FIRST);
	rig_run(rig, SEC_NS);
}

/*
 * Another one opens with all but the first m drives, lives for so many turns
 * and dies; one of the drives is slower, so that the others are ahead of it.
 * False: it was through before.
 */
static bool second_lives(struct rig *first, unsigned m, unsigned slow,
			 unsigned turns, struct seen *seen)
{
	const uint64_t epoch = super_of(first, 0).content.epoch;
	struct rig rig;
	bool more;

	rig_init(&rig, 6, 1, m, first->n, 100);
	rig.spec.tune.slots = 40;
	for (unsigned i = 0; i < first->n; i++) {
		rig_disk_add(&rig, first->disk[i].bytes);
		disk_copy(&rig.disk[i], &first->disk[i]);
	}
	for (unsigned i = 0; i < m; i++)
		disk_leave(&rig.disk[i]);
	rig.disk[slow].slow = 100;
	rig_open(&rig);
	for (seen->took = 0; seen->took < turns && !rig.over; seen->took++)
		rig_turn(&rig);
	more = !rig.over;
	if (rig.over) {
		assert_int_equal(rig.result, 0);
		fill(&rig, SECOND);
		seen->served++;
	}
	for (unsigned i = m; i < rig.n; i++)
		disk_leave(&rig.disk[i]); /* nothing in flight lands */
	rig_crash(&rig, true);
	for (unsigned i = m; i < rig.n; i++) {
		seen->claimed += super_of(&rig, i).promised > epoch;
		seen->accepted += super_of(&rig, i).content.epoch > epoch;
		disk_copy(&first->disk[i], &rig.disk[i]);
	}
	seen->split += super_of(&rig, m).content.epoch > epoch &&
		       super_of(&rig, 2 * m).content.epoch <= epoch;
	rig_fini(&rig);
	return more;
}

/* What is there in the end: one version, of those that may be. */
static void expect_one_of(struct rig *rig, uint32_t a, uint32_t b)
{
	const bool is_a = !rig_expect(rig, 0, a, LBAS);

	if (!is_a && rig_expect(rig, 0, b, LBAS))
		fail_msg("neither %u nor %u", a, b);
}

static bool handed_over(unsigned m, unsigned slow, unsigned turns,
			struct seen *seen)
{
	struct rig rig;
	bool more;
	int rc;

	first_begin(&rig, m);
	/* The last of its drives is another's by now. */
	disk_leave(&rig.disk[m]);
	more = second_lives(&rig, m, slow, turns, seen);
	disk_return(&rig.disk[2 * m]);
	rc = rig_give_back(&rig, 2 * m);
	if (!rc)
		rc = rig_put(&rig, 0, LATER, 20);
	if (!rc)
		fill(&rig, LATER);
	assert_true(rc || more); /* never both */
	seen->taken += !rc;
	seen->stopped += rc != 0;
	rig_crash(&rig, true);
	for (unsigned i = m; i < rig.n; i++)
		disk_return(&rig.disk[i]);
	assert_int_equal(rig_open_sync(&rig), 0);
	if (!rc)
		expect_one_of(&rig, LATER, LATER);
	else
		expect_one_of(&rig, more ? FIRST : SECOND, SECOND);
	rig_check(&rig);
	rig_close_sync(&rig);
	rig_fini(&rig);
	return more;
}

static void test_handed_over(void **state)
{
	/* slow: the one given back, or another that both want */
	static const struct {
		unsigned m, slow;
	} way[] = { { 1, 2 }, { 1, 1 }, { 2, 4 } };

	(void)state;
	for (size_t i = 0; i < array_len(way); i++) {
		const unsigned m = way[i].m, slow = way[i].slow;
		struct seen s = { 0 };
		unsigned all;

		assert_false(handed_over(m, slow, 1000, &s));
		all = s.took;
		/* Its last turns are those in which a content comes about. */
		for (unsigned t = 0; t < all; t += t + 5 < all ? 6 : 1)
			assert_true(handed_over(m, slow, t, &s));
		print_message("m %u, slow %u: %u turns, %u claimed, "
			      "%u accepted, %u split, %u went on, %u stopped\n",
			      m, slow, all, s.claimed, s.accepted, s.split,
			      s.taken, s.stopped);
		assert_true(s.claimed && s.served && s.taken && s.stopped);
		assert_true(s.split || slow != 2 * m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
