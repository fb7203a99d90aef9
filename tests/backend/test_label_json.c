/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Labels told from agent to agent: the same there, and nothing else taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/provider/provider_priv.h"

static struct vdisk_label_facts facts_make(void)
{
	struct vdisk_label_facts f = {
		.cluster = "lab",
		.name = "db1",
		.epoch = 7,
		.policy = { RAID_5, 2, 1, 128 * KIB, VDISK_LOG, VDISK_ZSTD },
		.size_bytes = GIB,
		.slots = 3,
	};

	for (unsigned k = 0; k < sizeof(f.uuid); k++)
		f.uuid[k] = (uint8_t)(17 * k);
	for (unsigned k = 0; k < f.slots; k++) {
		snprintf(f.slot[k].domain, sizeof(f.slot[k].domain), "n%u", k);
		snprintf(f.slot[k].drive, sizeof(f.slot[k].drive), "d0");
		snprintf(f.slot[k].component, sizeof(f.slot[k].component),
			 "db1.18c7.%u", k);
		f.slot[k].role = MEMBER_DATA;
		f.slot[k].state = MEMBER_STALE;
	}
	return f;
}

static void test_same(void **state)
{
	const struct vdisk_label_facts f = facts_make();
	struct vdisk_label_facts g;
	json_t *j = label_json(&f);

	(void)state;
	assert_true(label_read(j, &g));
	assert_memory_equal(g.uuid, f.uuid, sizeof(f.uuid));
	assert_string_equal(g.cluster, "lab");
	assert_string_equal(g.name, "db1");
	assert_int_equal(g.epoch, 7);
	assert_int_equal(g.size_bytes, GIB);
	assert_true(policy_same(&f.policy, &g.policy));
	assert_int_equal(g.slots, 3);
	assert_string_equal(g.slot[2].component, "db1.18c7.2");
	assert_int_equal(g.slot[1].state, MEMBER_STALE);
	json_decref(j);
}

static void refused(const char *key, json_t *value)
{
	const struct vdisk_label_facts f = facts_make();
	struct vdisk_label_facts g;
	json_t *j = label_json(&f);

	if (value)
		json_object_set_new(j, key, value);
	else
		json_object_del(j, key);
	assert_false(label_read(j, &g));
	json_decref(j);
}

static void test_refused(void **state)
{
	static const char *const all[] = { "cluster", "name",       "uuid",
					   "epoch",   "size_bytes", "policy" };
	json_t *many = json_array();
	struct vdisk_label_facts g;

	(void)state;
	for (size_t k = 0; k < array_len(all); k++) {
		refused(all[k], NULL);
		refused(all[k], json_null());
		refused(all[k], json_integer(-1));
	}
	refused("name", json_string("../x"));
	refused("name", json_string(""));
	refused("uuid", json_string("00112233445566778899aabbccddeef"));
	refused("uuid", json_string("00112233445566778899aabbccddeeffa"));
	refused("uuid", json_string("0011223344556677 899aabbccddeeff"));
	refused("policy", json_pack("[i, i, i, i, i, i]", 5, 2, 1, 4096, 9, 0));
	refused("policy", json_pack("[i, i, i]", 5, 2, 1));
	refused("slots", json_pack("[s]", "n1"));
	refused("slots",
		json_pack("[[s, s, s, i, i]]", "n1", "d0", "a/b", 0, 0));
	refused("slots", json_pack("[[s, s, s, i, i]]", "n1", "d0", "a", 0, 9));
	for (unsigned k = 0; k <= VDISK_MEMBERS_MAX; k++)
		json_array_append_new(many, json_pack("[s, s, s, i, i]", "n1",
						      "d0", "a", 0, 0));
	refused("slots", many);
	assert_false(label_read(NULL, &g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
