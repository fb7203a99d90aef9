/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an operator does to storage under the real daemon: names and policies
 * that are taken, drives that go while others come back, labels that are
 * spoilt, ends while something is held up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base.h"
#include "lab.h"

static void nap_ms(long ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000 };

	nanosleep(&nap, NULL);
}

static json_t *vdisk(const char *name, int mib, int raid)
{
	return json_pack("{s:s, s:i, s:i, s:s}", "name", name, "size_bytes",
			 mib << 20, "raid", raid, "layout", lab_layout);
}

static json_t *policy(const char *name, int raid, bool create)
{
	return json_pack("{s:s, s:i, s:b, s:s}", "name", name, "raid", raid,
			 "create", create, "layout", lab_layout);
}

/* ---- what the newest event of db1 says ----------------------------------- */

static const char *word(struct hears *h, const char *member)
{
	return hears_vdisk_text(h, "db1", member);
}

static json_int_t number(struct hears *h, const char *member)
{
	return hears_vdisk_int(h, "db1", member);
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

static bool says_what_to_do(struct hears *h)
{
	return is_failed(h) && strstr(word(h, "reason"), "bring back");
}

static bool is_raid5(struct hears *h)
{
	return is_healthy(h) && number(h, "raid") == 5;
}

/* Domain of a member; a text of the event's. */
static const char *member_at(struct hears *h, size_t k, const char *what)
{
	const json_t *members = json_object_get(
		hears_find(h, "vdisk", "name", "db1"), "members");

	return json_string_value(
		json_object_get(json_array_get(members, k), what));
}

static void verify(struct hears *h)
{
	const json_t *answer =
		hears_ask(h, "vdisk_verify", json_pack("{s:s}", "name", "db1"));

	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(
		json_integer_value(json_object_get(answer, "mismatches")), 0);
}

/* ---- names and policies ---------------------------------------------------
 */

static void test_names(void **state)
{
	static const char *const bad[] = { "",
					   ".a",
					   "-a",
					   "a b",
					   "a/b",
					   "a\nb",
					   "abcdefghijklmnopqrstuvwxyz012345" };
	struct hears h;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 5, 64));
	for (size_t k = 0; k < array_len(bad); k++) {
		hears_ask_refused(&h, "vdisk_create", vdisk(bad[k], 8, 1),
				  -EINVAL, "1 to 31 letters");
		hears_ask_refused(&h, "policy_set", policy(bad[k], 1, true),
				  -EINVAL, "1 to 31 letters");
	}
	hears_ask_refused(&h, "vdisk_create", vdisk("db1", 0, 1), -EINVAL,
			  "1 MiB");
	hears_ask_refused(&h, "vdisk_create", vdisk("db1", 8, 6), -ENOSPC,
			  "needs 6 fault domains, there are 5");
	hears_ask_ok(&h, "vdisk_create",
		     vdisk("abcdefghijklmnopqrstuvwxyz01234", 1, 1));
	hears_ask_refused(
		&h, "drive_claim",
		json_pack("{s:s, s:s}", "path", "/nowhere", "cluster", "a\nb"),
		-EINVAL, "the name of a cluster");
	hears_ask_ok(&h, "vdisk_create", vdisk("a.b.1.2", 1, 1));
	hears_ask_refused(&h, "vdisk_create", vdisk("a.b.1.2", 1, 1), -EEXIST,
			  "already");
	hears_close(&h);
}

/* A policy is made once and changed by name; what a change leaves out stays. */
static void test_policy_change(void **state)
{
	const json_t *event;
	struct hears h;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 5, 64));
	hears_ask_ok(&h, "policy_set", policy("gold", 1, true));
	hears_ask_refused(&h, "policy_set", policy("gold", 5, true), -EEXIST,
			  "already");
	hears_ask_refused(&h, "policy_set", policy("silver", 5, false), -ENOENT,
			  "policy list");
	hears_ask_refused(&h, "policy_delete",
			  json_pack("{s:s}", "name", "silver"), -ENOENT,
			  "policy list");
	hears_ask_ok(&h, "policy_set",
		     json_pack("{s:s, s:i, s:b}", "name", "gold", "ftt", 2,
			       "create", 0));
	hears_ask_ok(&h, "policy_set",
		     json_pack("{s:s, s:i, s:b}", "name", "gold",
			       "stripe_unit_bytes", 131072, "create", 0));
	event = hears_find(&h, "policy", "name", "gold");
	assert_int_equal(json_integer_value(json_object_get(event, "raid")), 1);
	assert_int_equal(json_integer_value(json_object_get(event, "ftt")), 2);
	assert_int_equal(
		json_integer_value(json_object_get(event, "stripe_unit_bytes")),
		131072);
	hears_close(&h);
}

/* Ended between the word and the deed: the policy a vDisk has by name is what
 * it moves to when it is opened. */
static void test_policy_intended(void **state)
{
	struct lab *lab = *state;
	char command[256];
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 5, 64));
	hears_ask_ok(&h, "policy_set", policy("gold", 1, true));
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:s}", "name", "db1", "size_bytes",
			       8 << 20, "policy", "gold"));
	hears_ask_ok(&h, "cluster_close", NULL);
	snprintf(command, sizeof(command),
		 "sed -i 's/\"raid\": 1/\"raid\": 5/' '%s'/t/cluster-*.json",
		 lab->state);
	assert_int_equal(system(command), 0);
	json_array_clear(h.event);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 5, 64));
	assert_true(hears_until(&h, is_raid5, 30));
	assert_string_equal(word(&h, "policy"), "gold");
	verify(&h);
	hears_close(&h);
}

/* ---- drives -------------------------------------------------------------- */

/*
 * A member's drive comes back slowly, and before it is admitted the others go:
 * the replacement fails in the middle, and so does the vDisk. It is whole again
 * when they return.
 */
static void test_gone_while_replacing(void **state)
{
	char back[80], stall[96], text[96];
	struct hears h;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
	assert_true(hears_until(&h, is_healthy, 10));
	snprintf(back, sizeof(back), "drive %s:%s", member_at(&h, 0, "domain"),
		 member_at(&h, 0, "drive"));
	snprintf(text, sizeof(text), "%s offline", back);
	hears_fault(&h, text);
	assert_true(hears_until(&h, is_degraded, 10));
	snprintf(stall, sizeof(stall), "%s stall 600ms", back);
	hears_fault(&h, stall);
	snprintf(text, sizeof(text), "%s online", back);
	hears_fault(&h, text);
	for (int k = 0; k < 6; k++) /* its label is being read by now */
		hears_turn(&h);
	for (int k = 1; k <= 3; k++) {
		snprintf(text, sizeof(text), "domain n%d offline", k);
		if (strncmp(back + 6, text + 7, 2) != 0)
			hears_fault(&h, text);
	}
	assert_true(hears_until(&h, says_what_to_do, 20));
	for (int k = 1; k <= 3; k++) {
		snprintf(text, sizeof(text), "domain n%d online", k);
		hears_fault(&h, text);
	}
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h);
	hears_close(&h);
}

/* Component files in a drive's directory. */
static unsigned components(const struct lab *lab, const char *drive)
{
	const struct dirent *de;
	unsigned count = 0;
	char path[128];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", lab->dir, drive);
	dir = opendir(path);
	assert_non_null(dir);
	while ((de = readdir(dir)))
		count += strstr(de->d_name, ".component") != NULL;
	closedir(dir);
	return count;
}

static struct lab *made_for_nothing;

static bool is_clean(struct hears *h)
{
	(void)h;
	return !components(made_for_nothing, "n1/d0") &&
	       !components(made_for_nothing, "n2/d0");
}

static bool has_drive(struct hears *h)
{
	const json_t *domains = json_object_get(
		hears_find(h, "cluster", "name", "lab"), "domains");
	const json_t *drives =
		json_object_get(json_array_get(domains, 2), "drives");

	return !strcmp(json_string_value(json_object_get(
			       json_array_get(drives, 0), "state")),
		       "ok");
}

/* What is made for a vDisk that comes to nothing is taken away again; a drive
 * that is claimed once the cluster is open is used. */
static void test_claimed_later(void **state)
{
	struct lab *lab = *state;
	json_t *body = lab_cluster(lab, 3, 64), *drives;
	char path[128];
	struct hears h;
	int fd;

	/* one drive a domain, the third one an image with something on it */
	for (size_t k = 0; k < 3; k++) {
		drives = json_object_get(
			json_array_get(json_object_get(
					       json_object_get(body, "cluster"),
					       "domains"),
				       k),
			"drives");
		json_array_remove(drives, 1);
	}
	snprintf(path, sizeof(path), "%s/image", lab->dir);
	json_object_set_new(json_array_get(drives, 0), "path",
			    json_string(path));
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 64 << 20), 0);
	assert_int_equal(pwrite(fd, "precious", 8, 0), 8);
	close(fd);
	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", body);
	hears_ask_refused(&h, "vdisk_create", vdisk("db1", 8, 1), -ENOSPC,
			  "2 of 3");
	made_for_nothing = lab;
	assert_true(hears_until(&h, is_clean, 10));
	hears_ask_refused(
		&h, "drive_claim",
		json_pack("{s:s, s:s}", "path", path, "cluster", "lab"),
		-EEXIST, "--destroy");
	hears_ask_ok(&h, "drive_claim",
		     json_pack("{s:s, s:s, s:s}", "path", path, "cluster",
			       "lab", "destroy", path));
	assert_true(hears_until(&h, has_drive, 10));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 5));
	verify(&h);
	hears_close(&h);
}

static json_t *quick_spare(struct lab *lab, int domains)
{
	json_t *body = lab_cluster(lab, domains, 64);

	json_object_set_new(json_object_get(body, "cluster"), "absent_delay_s",
			    json_integer(1));
	return body;
}

/* Somebody deletes a drive's directory under the agent: what is open of it
 * would go on answering, and be lost at the end. It is noticed. */
static void test_deleted_drive(void **state)
{
	struct lab *lab = *state;
	char command[200], domain[32], drive[32];
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", quick_spare(lab, 4));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
	assert_true(hears_until(&h, is_healthy, 10));
	snprintf(domain, sizeof(domain), "%s", member_at(&h, 0, "domain"));
	snprintf(drive, sizeof(drive), "%s", member_at(&h, 0, "drive"));
	/* the log layout has a member on every domain */
	snprintf(command, sizeof(command), "rm -r '%s/%s/%s'", lab->dir, domain,
		 lab_is_log() ? drive : "");
	assert_int_equal(system(command), 0);
	assert_true(hears_until(&h, is_degraded, 10));
	assert_true(hears_until(&h, is_healthy, 30));
	assert_true(strcmp(member_at(&h, 0, "domain"), domain) != 0 ||
		    strcmp(member_at(&h, 0, "drive"), drive) != 0);
	verify(&h);
	hears_close(&h);
}

static bool run_has_failed(struct hears *h)
{
	return hears_find(h, "run_state", "state", "failed") != NULL;
}

/* More is gone than it tolerates: the run ends and says of what, and the vDisk
 * is whole once the drives are. */
static void test_run_loses_vdisk(void **state)
{
	const json_t *plan;
	struct hears h;
	const char *why;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 5));
	assert_true(hears_until(&h, is_healthy, 10));
	plan = lab_plan("db1", 2, 20000);
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", plan, "run", "r1"));
	hears_fault(&h, "domain n1 offline");
	assert_true(hears_until(&h, is_degraded, 10));
	hears_ask_refused(&h, "vdisk_set",
			  json_pack("{s:s, s:i}", "name", "db1", "raid", 1),
			  -EBUSY, "while a run is going on");
	hears_fault(&h, "domain n2 offline");
	assert_true(hears_until(&h, run_has_failed, 30));
	why = json_string_value(json_object_get(
		hears_find(&h, "run_state", "state", "failed"), "reason"));
	assert_non_null(why);
	assert_non_null(strstr(why, "db1"));
	assert_true(hears_until(&h, says_what_to_do, 20));
	hears_fault(&h, "domain n1 online");
	hears_fault(&h, "domain n2 online");
	assert_true(hears_until(&h, is_healthy, 30));
	verify(&h);
	hears_close(&h);
}

/* Nothing held up on purpose holds up the end. */
static void test_end_in_stall(void **state)
{
	struct hears h;

	hears_attach(&h, *state);
	hears_ask_ok(&h, "cluster_open", lab_cluster(*state, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
	hears_fault(&h, "domain n1 stall 300s");
	hears_fault(&h, "domain n2 stall 300s");
	hears_fault(&h, "domain n3 slow 300s");
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 20));
	for (int k = 0; k < 1000 && lab_pid(*state); k++)
		nap_ms(20);
	assert_int_equal(lab_pid(*state), 0);
	hears_close(&h);
}

/* ---- labels ---------------------------------------------------------------
 */

#define LABELS_BYTES 16384

/* The component's file on a drive that has one. */
static int component_file(const struct lab *lab, const char *domain,
			  const char *drive)
{
	char path[400], dir_path[128];
	const struct dirent *de;
	DIR *dir;
	int fd = -1;

	snprintf(dir_path, sizeof(dir_path), "%s/%s/%s", lab->dir, domain,
		 drive);
	dir = opendir(dir_path);
	assert_non_null(dir);
	while (fd < 0 && (de = readdir(dir))) {
		if (!strstr(de->d_name, ".component"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir_path, de->d_name);
		fd = open(path, O_RDWR);
	}
	closedir(dir);
	assert_true(fd >= 0); /* also: nobody has deleted it */
	return fd;
}

/* Those of a component, read or written whole. */
static void labels(const struct lab *lab, const char *domain, const char *drive,
		   uint8_t *buf, bool write)
{
	const int fd = component_file(lab, domain, drive);

	assert_int_equal(write ? pwrite(fd, buf, LABELS_BYTES, 0)
			       : pread(fd, buf, LABELS_BYTES, 0),
			 LABELS_BYTES);
	close(fd);
}

/* Spoilt where nothing can stand in for it: the vDisk stays closed and its
 * data stays; with the labels put right it is whole. */
static void test_spoilt_label(void **state)
{
	uint8_t good[LABELS_BYTES], bad[LABELS_BYTES];
	struct lab *lab = *state;
	char domain[32], drive[32];
	struct hears h;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 0));
	assert_true(hears_until(&h, is_healthy, 10));
	snprintf(domain, sizeof(domain), "%s", member_at(&h, 0, "domain"));
	snprintf(drive, sizeof(drive), "%s", member_at(&h, 0, "drive"));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);
	labels(lab, domain, drive, good, false);
	memset(bad, 0x5a, sizeof(bad));
	labels(lab, domain, drive, bad, true);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	assert_true(hears_until(&h, is_failed, 10));
	/* where all metadata of a log stands on it, only the log knows */
	if (!strstr(word(&h, "reason"), lab_is_log() ? "metadata" : domain))
		fail_msg("%s: %s", domain, word(&h, "reason"));
	assert_non_null(
		strstr(json_string_value(json_object_get(
			       hears_find(&h, "log", "level", "warn"), "text")),
		       domain));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);
	labels(lab, domain, drive, good, true);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	assert_true(hears_until(&h, is_healthy, 10));
	hears_close(&h);
}

/* An agent that was killed still holds a file or two: the next one waits. */
static void test_killed_but_not_gone(void **state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct lab *lab = *state;
	struct hears h;
	pid_t pid;
	int fd;

	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 0));
	assert_true(hears_until(&h, is_healthy, 10));
	fd = component_file(lab, member_at(&h, 0, "domain"),
			    member_at(&h, 0, "drive"));
	hears_ask_ok(&h, "cluster_close", NULL);
	json_array_clear(h.event);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	pid = fork();
	if (!pid) {
		nap_ms(700);
		_exit(0);
	}
	close(fd); /* the lock goes with the last who has it */
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	assert_true(hears_until(&h, is_healthy, 10));
	assert_null(hears_find(&h, "vdisk", "state", "degraded"));
	waitpid(pid, NULL, 0);
	hears_close(&h);
}

/* ---- deleted --------------------------------------------------------------
 */

static struct lab *deleted_lab;

static unsigned components_all(const struct lab *lab)
{
	unsigned count = 0;
	char drive[32];

	for (int k = 0; k < 6; k++) {
		snprintf(drive, sizeof(drive), "n%d/d%d", k / 2 + 1, k % 2);
		count += components(lab, drive);
	}
	return count;
}

static bool nothing_left(struct hears *h)
{
	(void)h;
	return !components_all(deleted_lab);
}

static bool removal_told(struct hears *h)
{
	const char *text = json_string_value(
		json_object_get(hears_find(h, "log", NULL, NULL), "text"));

	return text && strstr(text, "db1, which was deleted, is removed");
}

static bool db1_is_gone(struct hears *h)
{
	return hears_find(h, "vdisk_gone", "name", "db1") != NULL;
}

static void drive_pull(struct hears *h, char name[72])
{
	char text[96];

	snprintf(name, 72, "%s:%s", member_at(h, 0, "domain"),
		 member_at(h, 0, "drive"));
	snprintf(text, sizeof(text), "drive %s offline", name);
	hears_fault(h, text);
	assert_true(hears_until(h, is_degraded, 10));
}

/* Deleted while a drive with a part of it is away: the answer names it, and
 * what stands on it goes when it is back, at once or in another life of the
 * agent. */
static void test_deleted_and_back(void **state)
{
	struct lab *lab = *state;
	char drive[72], text[96];
	const json_t *answer;
	struct hears h;

	deleted_lab = lab;
	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	for (int life = 0; life < 2; life++) {
		hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 1));
		assert_true(hears_until(&h, is_healthy, 10));
		drive_pull(&h, drive);
		answer = hears_ask(&h, "vdisk_delete",
				   json_pack("{s:s}", "name", "db1"));
		assert_string_equal(
			json_string_value(json_array_get(
				json_object_get(answer, "away"), 0)),
			drive);
		assert_int_equal(components_all(lab), 1);
		json_array_clear(h.event);
		if (life) /* all faults end with it */
			hears_ask_ok(&h, "cluster_close", NULL);
		snprintf(text, sizeof(text), "drive %s online", drive);
		if (life)
			hears_ask_ok(&h, "cluster_open",
				     lab_cluster(lab, 3, 64));
		else
			hears_fault(&h, text);
		assert_true(hears_until(&h, nothing_left, 10));
		assert_null(hears_find(&h, "vdisk", "name", "db1"));
		assert_true(hears_until(&h, removal_told, 10));
	}
	/* all of it is away, and in the next life all is there again */
	hears_ask_ok(&h, "vdisk_create", vdisk("db1", 8, 0));
	assert_true(hears_until(&h, is_healthy, 10));
	for (int k = 1; k <= 3; k++) {
		snprintf(text, sizeof(text), "domain n%d offline", k);
		hears_fault(&h, text);
	}
	assert_true(hears_until(&h, is_failed, 10));
	hears_ask_ok(&h, "vdisk_delete", json_pack("{s:s}", "name", "db1"));
	assert_true(hears_until(&h, db1_is_gone, 10));
	assert_int_equal(components_all(lab), 3);
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 20));
	hears_close(&h);
	hears_attach(&h, lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(lab, 3, 64));
	assert_null(hears_find(&h, "vdisk", "name", "db1"));
	assert_int_equal(components_all(lab), 0);
	hears_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST_BOTH(test_names),
		LAB_TEST_BOTH(test_policy_change),
		LAB_TEST_BOTH(test_policy_intended),
		LAB_TEST_BOTH(test_gone_while_replacing),
		LAB_TEST_BOTH(test_claimed_later),
		LAB_TEST_BOTH(test_deleted_drive),
		LAB_TEST_BOTH(test_run_loses_vdisk),
		LAB_TEST_BOTH(test_end_in_stall),
		LAB_TEST_BOTH(test_spoilt_label),
		LAB_TEST_BOTH(test_killed_but_not_gone),
		LAB_TEST_BOTH(test_deleted_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
