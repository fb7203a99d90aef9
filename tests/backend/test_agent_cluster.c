/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The embedded provider in the real daemon, vDisks in place: documents with
 * mistakes, named policies, drives that are lost, migrations that are cut
 * short.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab.h"

/* ---- what the newest event of db1 says -------------------------------------
 */

static const char *word(struct hears *h, const char *member)
{
	return hears_vdisk_text(h, "db1", member);
}

static bool is_healthy(struct hears *h)
{
	return !strcmp(word(h, "state"), "healthy");
}

static bool is_degraded(struct hears *h)
{
	return !strcmp(word(h, "state"), "degraded");
}

static bool is_failed(struct hears *h)
{
	return !strcmp(word(h, "state"), "failed");
}

static bool is_migrating(struct hears *h)
{
	return !strcmp(word(h, "state"), "migrating");
}

static json_int_t raid(struct hears *h)
{
	return hears_vdisk_int(h, "db1", "raid");
}

static bool is_raid5(struct hears *h)
{
	return is_healthy(h) && raid(h) == 5;
}

static bool is_raid6(struct hears *h)
{
	return is_healthy(h) && raid(h) == 6;
}

static void verify(struct hears *h)
{
	const json_t *answer =
		hears_ask(h, "vdisk_verify", json_pack("{s:s}", "name", "db1"));

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(
		json_integer_value(json_object_get(answer, "mismatches")), 0);
}

/* Component files in all of the lab. */
static unsigned components(const struct lab *lab)
{
	unsigned count = 0;
	char path[128];

	for (int k = 0; k < 12; k++) {
		const struct dirent *de;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/n%d/d%d", lab->dir, k / 2 + 1,
			 k % 2);
		dir = opendir(path);
		while (dir && (de = readdir(dir)))
			count += strstr(de->d_name, ".component") != NULL;
		if (dir)
			closedir(dir);
	}
	return count;
}

static const struct lab *counted_lab;
static unsigned counted_want;

static bool is_tidy(struct hears *h)
{
	(void)h;
	return components(counted_lab) == counted_want;
}

static void wait_tidy(struct hears *h, struct lab *lab, unsigned want)
{
	counted_lab = lab;
	/* the log layout has one on each of the domains */
	counted_want = lab_is_log() ? 6 : want;
	assert_true(hears_until(h, is_tidy, 20));
}

/* ---- documents with mistakes ----------------------------------------------
 */

static void test_documents(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "1", "must be an object" },
		{ "{}", "\"name\"" },
		{ "{'name':'../x'}", "\"name\"" },
		{ "{'name':'a'}", "\"domains\"" },
		{ "{'name':'a','domains':[]}", "\"domains\"" },
		{ "{'name':'a','domains':[{}]}", "domains[0]" },
		{ "{'name':'a','domains':[{'name':'n1'},{'name':'n1'}]}",
		  "two domains are named n1" },
		{ "{'name':'a','domains':[{'name':'n1','drives':[{'name':"
		  "'d0','path':'rel'}]}]}",
		  "domains[0].drives[0]: \"path\"" },
		{ "{'name':'a','domains':[{'name':'n1','drives':[{'name':"
		  "'d0','path':'/x'},{'name':'d0','path':'/y'}]}]}",
		  "two drives are named d0" },
		{ "{'name':'a','domains':[{'name':'n1','link':7}]}",
		  "domains[0]" },
		{ "{'name':'a','domains':[{'name':'n1','link':{'latency_us':"
		  "-1}}]}",
		  "latency_us" },
		{ "{'name':'a','domains':[{'name':'n1'}],'policies':[{'name':"
		  "'g','raid':4}]}",
		  "policies[0]: \"raid\"" },
		{ "{'name':'a','domains':[{'name':'n1'}],'absent_delay_s':"
		  "'x'}",
		  "absent_delay_s" },
		{ "{'name':'a','domains':[{'name':'n1','drives':[{'name':"
		  "'d0','path':'/nowhere/at/all'}]}]}",
		  "no drive of cluster a can be used" },
	};
	struct hears h;

	hears_attach(&h, *state);
	for (size_t k = 0; k < array_len(bad); k++) {
		char text[256];
		json_t *doc;

		snprintf(text, sizeof(text), "%s", bad[k].text);
		for (char *at = text; *at; at++)
			if (*at == '\'')
				*at = '"';
		doc = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_non_null(doc);
		hears_ask_refused(
			&h, "cluster_open", json_pack("{s:o}", "cluster", doc),
			k + 1 < array_len(bad) ? -EINVAL : -ENODEV, bad[k].why);
	}
	hears_close(&h);
}

/* ---- named policies ---------------------------------------------------------
 */

static json_t *policy(const char *name, int level, int unit)
{
	json_t *j = json_pack("{s:s, s:i, s:s}", "name", name, "raid", level,
			      "layout", lab_layout);

	if (!lab_is_log() || unit != 65536) /* that of the log is fixed */
		json_object_set_new(j, "stripe_unit_bytes", json_integer(unit));
	return j;
}

static bool is_going(struct hears *h)
{
	return h->state == LINK_DOWN;
}

static void test_policies(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_refused(&h, "policy_set", policy("gold", 7, 65536), -EINVAL,
			  "raid");
	hears_ask_refused(&h, "policy_set", policy("gold", 5, 5000), -EINVAL,
			  "");
	hears_ask_ok(&h, "policy_set", policy("gold", 1, 65536));
	hears_ask_refused(&h, "vdisk_create",
			  json_pack("{s:s, s:i, s:s}", "name", "db1",
				    "size_bytes", 8 << 20, "policy", "none"),
			  -ENOENT, "no policy none");
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:s}", "name", "db1", "size_bytes",
			       8 << 20, "policy", "gold"));
	hears_ask_refused(&h, "policy_delete",
			  json_pack("{s:s}", "name", "gold"), -EBUSY,
			  "vDisk db1 has policy gold");
	/* changing the policy changes the vDisk */
	hears_ask_ok(&h, "policy_set", policy("gold", 5, 65536));
	assert_true(hears_until(&h, is_raid5, 30));
	wait_tidy(&h, lab, 5);
	verify(&h);
	/* names are remembered over the daemon's lives */
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, is_going, 20));
	hears_close(&h);
	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	assert_true(hears_until(&h, is_raid5, 20));
	assert_string_equal(word(&h, "policy"), "gold");
	/* a policy of its own again */
	hears_ask_ok(&h, "vdisk_set",
		     json_pack("{s:s, s:i}", "name", "db1", "raid", 6));
	assert_true(hears_until(&h, is_raid6, 30));
	assert_string_equal(word(&h, "policy"), "");
	hears_ask_ok(&h, "policy_delete", json_pack("{s:s}", "name", "gold"));
	assert_non_null(hears_find(&h, "policy_gone", "name", "gold"));
	hears_close(&h);
}

/* ---- drives that are lost
 * ---------------------------------------------------- */

static json_t *db1(int level)
{
	return json_pack("{s:s, s:i, s:i, s:s}", "name", "db1", "size_bytes",
			 8 << 20, "raid", level, "layout", lab_layout);
}

/* Pulls the drives of db1's members, all but `leave` of them. */
static void pull_members(struct hears *h, size_t leave, const char *action)
{
	const json_t *members = json_object_get(
		hears_find(h, "vdisk", "name", "db1"), "members");
	char text[4][80];
	size_t count = 0;

	for (size_t k = 0; k + leave < json_array_size(members) && k < 4; k++) {
		const json_t *m = json_array_get(members, k);

		snprintf(text[count++], sizeof(text[0]), "drive %s:%s %s",
			 json_string_value(json_object_get(m, "domain")),
			 json_string_value(json_object_get(m, "drive")),
			 action);
	}
	for (size_t k = 0; k < count; k++)
		hears_fault(h, text[k]);
}

static void test_cut_off(void **state)
{
	struct hears h;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 3, 64));
	hears_ask_ok(&h, "vdisk_create", db1(1));
	assert_true(hears_until(&h, is_healthy, 10));
	pull_members(&h, 1, "offline");
	/* nobody reads or writes, and yet it is known */
	assert_true(hears_until(&h, is_failed, 10));
	assert_true(strlen(word(&h, "reason")) > 5);
	hears_ask_refused(&h, "run_start",
			  json_pack("{s:o, s:s}", "plan", lab_plan("db1", 0, 0),
				    "run", ""),
			  -EINVAL, "run");
	pull_members(&h, 1, "online");
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h);
	hears_close(&h);
}

static void rename_drive(const struct lab *lab, const json_t *member,
			 const char *from, const char *to)
{
	char a[160], b[160];

	snprintf(a, sizeof(a), "%s/%s/%s%s", lab->dir,
		 json_string_value(json_object_get(member, "domain")),
		 json_string_value(json_object_get(member, "drive")), from);
	snprintf(b, sizeof(b), "%s/%s/%s%s", lab->dir,
		 json_string_value(json_object_get(member, "domain")),
		 json_string_value(json_object_get(member, "drive")), to);
	assert_int_equal(rename(a, b), 0);
}

/* Not made, only found. */
static json_t *found_cluster(struct lab *lab)
{
	json_t *body = lab_cluster(lab, 6, 64);

	json_object_set_new(json_object_get(body, "cluster"), "create",
			    json_false());
	return body;
}

static void test_lost_at_open(void **state)
{
	struct lab *lab = *state;
	json_t *members;
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create", db1(1));
	assert_true(hears_until(&h, is_healthy, 10));
	members = json_deep_copy(json_object_get(
		hears_find(&h, "vdisk", "name", "db1"), "members"));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);

	/* one drive gone: degraded, then on a spare */
	rename_drive(lab, json_array_get(members, 0), "", ".away");
	hears_ask_ok(&h, "cluster_open", found_cluster(lab));
	assert_true(hears_until(&h, is_degraded, 10));
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h);
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);

	/* back with its old member: never read, and deleted */
	rename_drive(lab, json_array_get(members, 0), ".away", "");
	hears_ask_ok(&h, "cluster_open", found_cluster(lab));
	assert_true(hears_until(&h, is_healthy, 10));
	wait_tidy(&h, lab, 3);
	json_decref(members);
	members = json_deep_copy(json_object_get(
		hears_find(&h, "vdisk", "name", "db1"), "members"));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);

	/* two of three: no quorum, said so, and not deleted by mistake */
	rename_drive(lab, json_array_get(members, 0), "", ".away");
	rename_drive(lab, json_array_get(members, 1), "", ".away");
	hears_ask_ok(&h, "cluster_open", found_cluster(lab));
	assert_true(hears_until(&h, is_failed, 10));
	assert_non_null(strstr(word(&h, "reason"), "n"));
	hears_ask_ok(&h, "cluster_close", NULL);
	rename_drive(lab, json_array_get(members, 0), ".away", "");
	rename_drive(lab, json_array_get(members, 1), ".away", "");
	hears_ask_ok(&h, "cluster_open", found_cluster(lab));
	assert_true(hears_until(&h, is_healthy, 10));
	verify(&h);
	json_decref(members);
	hears_close(&h);
}

/* ---- cut short
 * ---------------------------------------------------------------- */

static void test_migration_cut(void **state)
{
	struct lab *lab = *state;
	struct err err;
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "db1",
			       "size_bytes", 32 << 20, "raid", 1, "layout",
			       lab_layout));
	lab_fill(&h, "db1");
	hears_ask_ok(&h, "drive_set",
		     json_pack("{s:s, s:s, s:i}", "domain", "*", "drive", "*",
			       "rate_bytes_s", 10 << 20));
	hears_ask_ok(&h, "vdisk_set",
		     json_pack("{s:s, s:i}", "name", "db1", "raid", 6));
	assert_true(hears_until(&h, is_migrating, 10));
	hears_ask_refused(&h, "vdisk_set",
			  json_pack("{s:s, s:i}", "name", "db1", "raid", 5),
			  -EBUSY, "changing already");
	hears_ask_refused(&h, "run_start",
			  json_pack("{s:o, s:s}", "plan",
				    lab_plan("db1", 1, 500), "run", "r"),
			  -EBUSY, "changing its policy");
	kill(lab_pid(lab), SIGKILL);
	assert_true(hears_until(&h, link_is_down, 10));
	json_array_clear(h.event);
	assert_int_equal(link_conn_retry(h.link, &err), 0);
	h.state = LINK_OPENING;
	while (h.state == LINK_OPENING)
		hears_turn(&h);
	json_array_clear(h.event);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	assert_true(hears_until(&h, is_raid6, 60));
	verify(&h);
	wait_tidy(&h, lab, 6);
	/* and an orderly close in the middle of one */
	hears_ask_ok(&h, "drive_set",
		     json_pack("{s:s, s:s, s:i}", "domain", "*", "drive", "*",
			       "rate_bytes_s", 10 << 20));
	hears_ask_ok(&h, "vdisk_set",
		     json_pack("{s:s, s:i}", "name", "db1", "raid", 5));
	assert_true(hears_until(&h, is_migrating, 10));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 6, 64));
	assert_true(hears_until(&h, is_raid5, 60));
	verify(&h);
	wait_tidy(&h, lab, 5);
	hears_close(&h);
}

/* ---- drives by themselves
 * ------------------------------------------------------ */

static void test_drives(void **state)
{
	struct lab *lab = *state;
	const json_t *answer;
	char path[128];
	struct hears h;

	snprintf(path, sizeof(path), "%s/alone", lab->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	hears_attach(&h, lab);
	hears_ask_refused(&h, "drive_probe",
			  json_pack("{s:s}", "path", "alone"), -EINVAL,
			  "absolute");
	hears_ask_refused(&h, "drive_claim", json_pack("{s:s}", "path", path),
			  -EINVAL, "cluster");
	answer = hears_ask(&h, "drive_probe", json_pack("{s:s}", "path", path));
	assert_string_equal(
		json_string_value(json_object_get(answer, "verdict")), "empty");
	hears_ask_ok(&h, "drive_claim",
		     json_pack("{s:s, s:s}", "path", path, "cluster", "lab"));
	answer = hears_ask(&h, "drive_probe", json_pack("{s:s}", "path", path));
	assert_string_equal(
		json_string_value(json_object_get(answer, "verdict")), "ours");
	hears_ask_ok(&h, "drive_release", json_pack("{s:s}", "path", path));
	assert_int_equal(rmdir(path), 0);
	hears_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST_BOTH(test_documents),
		LAB_TEST_BOTH(test_policies),
		LAB_TEST_BOTH(test_cut_off),
		LAB_TEST_BOTH(test_lost_at_open),
		LAB_TEST_BOTH(test_migration_cut),
		LAB_TEST_BOTH(test_drives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
