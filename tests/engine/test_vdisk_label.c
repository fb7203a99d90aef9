/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Policies, labels and who may open: the stale member, torn labels, foreign
 * and copied components, two owners, minorities.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/vdisk/label.h"
#include "tests/engine/vdisk_rig.h"

#define STORE_BYTES (2 * MIB)
#define SIZE (512 * KIB)

/* ---- policies ----------------------------------------------------------- */

static void fits(enum raid_level raid, unsigned m, unsigned domains, int result,
		 unsigned k, unsigned needed)
{
	struct vdisk_policy p = rig_policy(raid, 0, m, 0);
	unsigned n = 0;
	struct err err = { 0 };
	const int rc = vdisk_policy_fit(&p, domains, &n, &err);

	assert_int_equal(rc, result);
	if (rc)
		assert_true(strlen(err.text) > 10);
	if (needed)
		assert_int_equal(n, needed);
	if (!rc) {
		assert_int_equal(p.k, k);
		assert_int_equal(p.stripe_unit_bytes, 65536);
	}
}

static void test_policy(void **state)
{
	(void)state;
	fits(RAID_1, 1, 3, 0, 1, 3);
	fits(RAID_1, 1, 2, -ENOSPC, 1, 3);
	fits(RAID_1, 2, 5, 0, 1, 5);
	fits(RAID_1, 3, 6, -ENOSPC, 1, 7);
	fits(RAID_1, 0, 6, -EINVAL, 0, 0);
	fits(RAID_1, 4, 9, -EINVAL, 0, 0);
	fits(RAID_5, 1, 2, -ENOSPC, 2, 3);
	fits(RAID_5, 1, 3, 0, 2, 3);
	fits(RAID_5, 0, 5, 0, 2, 3);
	fits(RAID_5, 1, 6, 0, 4, 5);
	fits(RAID_5, 2, 6, -EINVAL, 0, 0);
	fits(RAID_6, 2, 5, -ENOSPC, 4, 6);
	fits(RAID_6, 2, 6, 0, 4, 6);
	fits(RAID_0, 0, 4, 0, 4, 4);
	fits((enum raid_level)7, 1, 6, -EINVAL, 0, 0);
}

static void test_unit(void **state)
{
	struct vdisk_policy p = rig_policy(RAID_5, 2, 1, 48 * KIB);

	(void)state;
	assert_int_equal(vdisk_policy_fit(&p, 6, NULL, NULL), -EINVAL);
	p.stripe_unit_bytes = 2048;
	assert_int_equal(vdisk_policy_fit(&p, 6, NULL, NULL), -EINVAL);
	p.stripe_unit_bytes = 2 * MIB;
	assert_int_equal(vdisk_policy_fit(&p, 6, NULL, NULL), -EINVAL);
	p.stripe_unit_bytes = MIB;
	assert_int_equal(vdisk_policy_fit(&p, 6, NULL, NULL), 0);
	assert_int_equal(vdisk_slot_bytes(&p, 2 * MIB + 4096, 6, 0),
			 VDISK_LABEL_BYTES + 2 * MIB);
}

/* ---- the record --------------------------------------------------------- */

static void label_any(struct label *l)
{
	memset(l, 0, sizeof(*l));
	strcpy(l->cluster, "lab");
	strcpy(l->name, "db1");
	memset(l->self, 2, 16);
	l->policy = rig_policy(RAID_1, 1, 1, 65536);
	l->size_bytes = SIZE;
	l->claim = 7;
	l->epoch = 9;
	l->promised = 8;
	l->slots = 3;
	for (unsigned i = 0; i < 3; i++) {
		memset(l->member[i].uuid, (int)(i + 1), 16);
		l->member[i].mark_rows = i * 1000;
		snprintf(l->member[i].domain, 32, "f%u", i);
	}
	l->member[2].role = MEMBER_WITNESS;
	l->member[1].state = MEMBER_REBUILDING;
}

static void test_record(void **state)
{
	uint8_t record[LABEL_BYTES], again[LABEL_BYTES];
	struct label a, b;

	(void)state;
	label_any(&a);
	label_encode(&a, record);
	assert_int_equal(label_decode(record, &b), 0);
	label_encode(&b, again);
	assert_memory_equal(record, again, sizeof(record));
	assert_int_equal(b.epoch, 9);
	assert_int_equal(b.member[2].mark_rows, 2000);
	for (unsigned at = 0; at < LABEL_BYTES; at += 61) {
		record[at] ^= 0x20;
		assert_int_not_equal(label_decode(record, &b), 0);
		record[at] ^= 0x20;
	}
	memset(record, 0, sizeof(record));
	assert_int_equal(label_decode(record, &b), -ENOENT);
	a.slots = 4; /* a right checksum is no proof of sense */
	label_encode(&a, record);
	assert_int_equal(label_decode(record, &b), -EBADMSG);
}

static void test_order(void **state)
{
	struct label a, b;

	(void)state;
	label_any(&a);
	b = a;
	assert_int_equal(label_compare(&a, &b), 0);
	b.epoch = 12;
	assert_true(label_compare(&a, &b) < 0);
	a.claim = 8; /* a later owner wins over a later epoch */
	assert_true(label_compare(&a, &b) > 0);
	b.promised = 99; /* a promise decides nothing */
	assert_true(label_compare(&a, &b) > 0);
}

/* ---- who may open ------------------------------------------------------- */

struct lab {
	struct rig rig;
	struct shadow sh;
	struct bdev *vdisk;
	struct rig_result res;
	struct vdisk_info info;
};

static void lab_init(struct lab *lab, enum raid_level raid, unsigned k,
		     unsigned m)
{
	const struct vdisk_policy p = rig_policy(raid, k, m, 16384);

	rig_init(&lab->rig, 42, STORE_BYTES);
	shadow_init(&lab->sh, &lab->rig, SIZE);
	lab->vdisk = rig_create(&lab->rig, &p, SIZE, 0);
}

static void lab_write(struct lab *lab)
{
	for (uint64_t b = 0; b < lab->sh.blocks; b += 16)
		shadow_write(&lab->sh, lab->vdisk, b, 16, false);
	shadow_drain(&lab->sh);
	assert_int_equal(lab->sh.errors, 0);
}

static void lab_fini(struct lab *lab)
{
	if (lab->vdisk)
		rig_close(&lab->rig, lab->vdisk);
	rig_run(&lab->rig, 100);
	shadow_fini(&lab->sh);
	rig_fini(&lab->rig);
}

static void lab_reopen(struct lab *lab, unsigned mask)
{
	if (lab->vdisk)
		rig_close(&lab->rig, lab->vdisk);
	lab->vdisk = rig_open(&lab->rig, mask, &lab->res);
}

static void lab_refused(struct lab *lab, unsigned mask, int code)
{
	lab->vdisk = rig_open(&lab->rig, mask, &lab->res);
	assert_null(lab->vdisk);
	assert_int_equal(lab->res.result, code);
}

/*
 * Fail A, go on with B, restart with A alone: refused. With A and the witness:
 * opened without A's data, hence refused too. With B and the witness: opened.
 */
static void test_stale_member(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_1, 1, 1);
	lab_write(&lab);
	lab.rig.store[0].offline = true;
	lab_write(&lab); /* only B has it */
	rig_close(&lab.rig, lab.vdisk);
	lab.rig.store[0].offline = false;
	lab_refused(&lab, 1u << 0, -EAGAIN);
	assert_non_null(strstr(lab.res.err.text, "f1"));
	lab_refused(&lab, 1u << 0 | 1u << 2, -EAGAIN);
	lab_reopen(&lab, 1u << 1 | 1u << 2);
	assert_non_null(lab.vdisk);
	shadow_check_all(&lab.sh, lab.vdisk);
	/* All three: A is seen as stale, B alone is read. */
	lab_reopen(&lab, 7);
	assert_non_null(lab.vdisk);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.slot[0].state, MEMBER_STALE);
	assert_int_equal(lab.info.state, VDISK_DEGRADED);
	assert_int_equal(lab.info.failures_left, 0);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

/* The same with a power cut at every moment around the failure of A. */
static void test_stale_cut(void **state)
{
	(void)state;
	for (unsigned turns = 0; turns < 60; turns++) {
		struct lab lab;

		lab_init(&lab, RAID_1, 1, 1);
		lab_write(&lab);
		lab.rig.store[0].offline = true;
		for (unsigned b = 0; b < 8; b++)
			shadow_write(&lab.sh, lab.vdisk, b * 3, 3, false);
		for (unsigned i = 0; i < turns; i++)
			reactor_run_once(lab.rig.r, 20 * USEC_NS);
		rig_power_cut(&lab.rig);
		shadow_crash(&lab.sh);
		rig_close(&lab.rig, lab.vdisk);
		lab.rig.store[0].offline = false;
		/* Without B: refused, or nothing had been acknowledged yet. */
		lab.vdisk = rig_open(&lab.rig, 1u << 0 | 1u << 2, &lab.res);
		if (lab.vdisk)
			shadow_check_all(&lab.sh, lab.vdisk);
		else
			assert_int_equal(lab.res.result, -EAGAIN);
		lab_reopen(&lab, 7);
		assert_non_null(lab.vdisk);
		shadow_check_all(&lab.sh, lab.vdisk);
		lab_fini(&lab);
	}
}

/* A label of a minority, written by an owner that was cut off, and the story
 * of two contents that would have the same epoch without claims. */
static void test_minority(void **state)
{
	(void)state;
	for (unsigned turns = 0; turns < 40; turns++) {
		struct lab lab;

		lab_init(&lab, RAID_1, 1, 1);
		lab_write(&lab);
		/* An owner begins to write "A is missing" and is cut. */
		assert_int_equal(vdisk_member_fail(lab.vdisk, 0, NULL), 0);
		for (unsigned i = 0; i < turns; i++)
			reactor_run_once(lab.rig.r, 10 * USEC_NS);
		rig_power_cut(&lab.rig);
		rig_close(&lab.rig, lab.vdisk);
		/* Another opens without B, goes on where it may, closes. */
		lab.vdisk = rig_open(&lab.rig, 1u << 0 | 1u << 2, &lab.res);
		if (lab.vdisk)
			lab_write(&lab);
		lab_reopen(&lab, 7);
		assert_non_null(lab.vdisk);
		shadow_check_all(&lab.sh, lab.vdisk);
		lab_fini(&lab);
	}
}

/* Either copy of any label may be torn: the other one is enough. */
static void test_torn(void **state)
{
	struct lab lab;

	(void)state;
	for (unsigned copy = 0; copy < LABEL_COPIES; copy++) {
		lab_init(&lab, RAID_5, 2, 1);
		lab_write(&lab);
		rig_close(&lab.rig, lab.vdisk);
		for (unsigned i = 0; i < 3; i++)
			memset(lab.rig.store[i].data + copy * LABEL_BYTES +
				       3000,
			       0x5a, 2000);
		lab.vdisk = NULL;
		lab_reopen(&lab, 7);
		assert_non_null(lab.vdisk);
		shadow_check_all(&lab.sh, lab.vdisk);
		lab_fini(&lab);
	}
}

static void test_no_quorum(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_6, 4, 2);
	lab_write(&lab);
	rig_close(&lab.rig, lab.vdisk);
	lab_refused(&lab, 0x7, -EAGAIN);
	lab_refused(&lab, 0x0, -ENOENT);
	lab_refused(&lab, 0xff00, -ENOENT); /* components without a label */
	lab.vdisk = rig_open(&lab.rig, 0x0f, &lab.res);
	assert_non_null(lab.vdisk);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

static void test_foreign(void **state)
{
	struct vdisk_slot slot[3];
	struct vdisk_spec spec = {
		.cluster = "other", .name = "db1", .slot = slot, .slots = 3
	};
	struct rig_result res = { 0 };
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_1, 1, 1);
	rig_close(&lab.rig, lab.vdisk);
	for (unsigned i = 0; i < 3; i++)
		rig_slot(&lab.rig, i, &slot[i]);
	vdisk_open(lab.rig.r, &spec, rig_done, &res);
	rig_until(&lab.rig, &res.done);
	assert_int_equal(res.result, -EINVAL);
	assert_non_null(strstr(res.err.text, "cluster lab"));
	/* Creating on labelled components is refused. */
	memset(&res, 0, sizeof(res));
	spec.size_bytes = SIZE;
	spec.policy = rig_policy(RAID_1, 1, 1, 65536);
	vdisk_create(lab.rig.r, &spec, rig_done, &res);
	rig_until(&lab.rig, &res.done);
	assert_int_equal(res.result, -EEXIST);
	for (unsigned i = 0; i < 3; i++)
		bdev_close_sync(slot[i].bdev);
	lab.vdisk = NULL;
	lab_fini(&lab);
}

/* A copy of a component counts once. */
static void test_copied(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_1, 1, 1);
	lab_write(&lab);
	rig_close(&lab.rig, lab.vdisk);
	memcpy(lab.rig.store[5].data, lab.rig.store[0].data, STORE_BYTES);
	lab_refused(&lab, 1u << 0 | 1u << 5, -EAGAIN);
	lab_fini(&lab);
}

/*
 * Two owners on components that nothing locks: the second takes it over, the
 * first finds out at its next label and stops; what it then writes fails.
 */
static void test_two_owners(void **state)
{
	struct bdev *first;
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_1, 1, 1);
	lab_write(&lab);
	first = lab.vdisk;
	lab.vdisk = rig_open(&lab.rig, 7, &lab.res);
	assert_non_null(lab.vdisk);
	assert_int_equal(vdisk_member_fail(first, 0, NULL), 0);
	rig_run(&lab.rig, 50);
	vdisk_info(first, &lab.info);
	assert_int_equal(lab.info.state, VDISK_FAILED);
	assert_non_null(strstr(lab.info.reason, "another owner"));
	vdisk_info(lab.vdisk, &lab.info);
	rig_healthy(&lab.rig, lab.vdisk);
	rig_close(&lab.rig, first);
	lab_write(&lab);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

static void test_probe(void **state)
{
	struct vdisk_label_facts facts;
	struct err err = { 0 };
	struct bdev *port;
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_5, 2, 1);
	rig_close(&lab.rig, lab.vdisk);
	lab.vdisk = NULL;
	port = rig_port(&lab.rig, 1);
	assert_int_equal(vdisk_label_probe(port, &facts, &err), 0);
	assert_string_equal(facts.name, "db1");
	assert_string_equal(facts.slot[2].component, "c2");
	assert_int_equal(facts.slots, 3);
	assert_int_equal(facts.size_bytes, SIZE);
	bdev_close_sync(port);
	port = rig_port(&lab.rig, 9);
	assert_int_equal(vdisk_label_probe(port, &facts, &err), -ENOENT);
	bdev_close_sync(port);
	/* what cannot be read is not empty */
	lab.rig.store[9].data[2 * LABEL_BYTES - 1] = 1;
	port = rig_port(&lab.rig, 9);
	assert_int_equal(vdisk_label_probe(port, &facts, &err), -EBADMSG);
	bdev_close_sync(port);
	lab_fini(&lab);
}

/* ---- a component put back as it was earlier ------------------------------ */

static uint8_t *store_save(struct lab *lab, unsigned store)
{
	uint8_t *saved = malloc(STORE_BYTES);

	assert_non_null(saved);
	memcpy(saved, lab->rig.store[store].data, STORE_BYTES);
	return saved;
}

static void store_put_back(struct lab *lab, unsigned store, uint8_t *saved)
{
	memcpy(lab->rig.store[store].data, saved, STORE_BYTES);
	free(saved);
}

/* Its label says that all is well, as it was then. It is not read: the others
 * know better. */
static void test_put_back(void **state)
{
	const struct {
		enum raid_level raid;
		unsigned k, m;
	} as[] = { { RAID_1, 1, 1 }, { RAID_5, 2, 1 }, { RAID_6, 4, 2 } };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned store = 0; store < 2; store++) {
			uint8_t *saved;
			struct lab lab;

			lab_init(&lab, as[i].raid, as[i].k, as[i].m);
			lab_write(&lab);
			rig_close(&lab.rig, lab.vdisk);
			saved = store_save(&lab, store);
			lab.vdisk = NULL;
			lab_reopen(&lab, 0x3f);
			assert_non_null(lab.vdisk);
			lab_write(&lab);
			rig_close(&lab.rig, lab.vdisk);
			store_put_back(&lab, store, saved);
			lab.vdisk = NULL;
			lab_reopen(&lab, 0x3f);
			assert_non_null(lab.vdisk);
			vdisk_info(lab.vdisk, &lab.info);
			assert_int_equal(lab.info.slot[store].state,
					 MEMBER_STALE);
			assert_non_null(strstr(lab.info.reason, "older copy"));
			shadow_check_all(&lab.sh, lab.vdisk);
			lab_fini(&lab);
		}
}

/* Nothing can stand in for it: refused, and the reason names it. */
static void test_put_back_raid0(void **state)
{
	uint8_t *saved;
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_0, 3, 0);
	lab_write(&lab);
	rig_close(&lab.rig, lab.vdisk);
	saved = store_save(&lab, 1);
	lab.vdisk = NULL;
	lab_reopen(&lab, 7);
	lab_write(&lab);
	rig_close(&lab.rig, lab.vdisk);
	store_put_back(&lab, 1, saved);
	lab_refused(&lab, 7, -EAGAIN);
	assert_non_null(strstr(lab.res.err.text, "f1"));
	lab_fini(&lab);
}

/* Under an owner's feet: out at the next change of membership. */
static void test_put_back_open(void **state)
{
	uint8_t *saved;
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_6, 4, 2);
	lab_write(&lab);
	rig_close(&lab.rig, lab.vdisk);
	saved = store_save(&lab, 1);
	lab.vdisk = NULL;
	lab_reopen(&lab, 0x3f);
	store_put_back(&lab, 1, saved);
	assert_int_equal(vdisk_member_fail(lab.vdisk, 5, NULL), 0);
	rig_run(&lab.rig, 100);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.slot[1].state, MEMBER_MISSING);
	assert_int_equal(lab.info.state, VDISK_DEGRADED);
	shadow_check_all(&lab.sh, lab.vdisk);
	lab_fini(&lab);
}

/* Too many gone: errors, nothing written down; whole again after a restart. */
static void test_too_many(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_5, 2, 1);
	lab_write(&lab);
	lab.rig.store[0].offline = true;
	lab_write(&lab);
	lab.rig.store[1].offline = true;
	shadow_write(&lab.sh, lab.vdisk, 0, 8, false);
	shadow_drain(&lab.sh);
	assert_int_equal(lab.sh.errors, 1);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.state, VDISK_FAILED);
	rig_close(&lab.rig, lab.vdisk);
	lab.rig.store[0].offline = lab.rig.store[1].offline = false;
	lab.vdisk = rig_open(&lab.rig, 7, &lab.res);
	assert_non_null(lab.vdisk);
	vdisk_info(lab.vdisk, &lab.info);
	assert_int_equal(lab.info.slot[0].state, MEMBER_STALE);
	assert_int_equal(lab.info.slot[1].state, MEMBER_OK);
	lab_fini(&lab);
}

/* A rebuild goes on at its mark after a restart. */
static void test_rebuild_resumes(void **state)
{
	uint64_t reads;
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_5, 2, 1);
	lab_write(&lab);
	assert_int_equal(vdisk_member_fail(lab.vdisk, 1, NULL), 0);
	rig_run(&lab.rig, 30);
	vdisk_rebuild_limit(lab.vdisk, 100 * KIB); /* 2.5 s for the whole */
	assert_int_equal(rig_replace(&lab.rig, lab.vdisk, 1, 6), 0);
	for (unsigned i = 0; i < 100000; i++) {
		vdisk_info(lab.vdisk, &lab.info);
		if (lab.info.progress > 0.9)
			break;
		reactor_run_once(lab.rig.r, 10 * MSEC_NS);
	}
	assert_int_equal(lab.info.state, VDISK_REBUILDING);
	assert_true(lab.info.rebuild_left_bytes < 64 * KIB);
	rig_run(&lab.rig, 20);
	reads = lab.rig.store[0].reads;
	lab_reopen(&lab, 1u << 0 | 1u << 2 | 1u << 6);
	assert_non_null(lab.vdisk);
	vdisk_info(lab.vdisk, &lab.info);
	for (double was = 0.8; lab.info.state == VDISK_REBUILDING;
	     vdisk_info(lab.vdisk, &lab.info)) {
		assert_true(lab.info.progress >= was);
		assert_int_equal(lab.info.progress == 1,
				 !lab.info.rebuild_left_bytes);
		was = lab.info.progress;
		reactor_run_once(lab.rig.r, 10 * MSEC_NS);
	}
	rig_healthy(&lab.rig, lab.vdisk);
	assert_true(lab.rig.store[0].reads - reads < 24);
	shadow_check_all(&lab.sh, lab.vdisk);
	assert_int_equal(rig_verify(&lab.rig, lab.vdisk), 0);
	lab_fini(&lab);
}

/* What verify is for: a changed byte anywhere is found. */
static void test_verify_finds(void **state)
{
	struct lab lab;

	(void)state;
	lab_init(&lab, RAID_6, 4, 2);
	lab_write(&lab);
	for (unsigned i = 0; i < 6; i++) {
		uint8_t *at = lab.rig.store[i].data + VDISK_LABEL_BYTES +
			      i * 16384 + 77 * i;

		*at ^= 1;
		assert_int_equal(rig_verify(&lab.rig, lab.vdisk), 1);
		*at ^= 1;
	}
	assert_int_equal(rig_verify(&lab.rig, lab.vdisk), 0);
	lab_fini(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_unit),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_stale_member),
		cmocka_unit_test(test_stale_cut),
		cmocka_unit_test(test_minority),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_no_quorum),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_two_owners),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_put_back),
		cmocka_unit_test(test_put_back_raid0),
		cmocka_unit_test(test_put_back_open),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_rebuild_resumes),
		cmocka_unit_test(test_verify_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
