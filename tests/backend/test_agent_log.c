/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vDisks of the log layout under the real daemon, beside one in place: where
 * they are placed, what is refused before they are made, what they tell of
 * themselves, drives that are pulled and come back, ends and beginnings.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/base.h"
#include "lab.h"

static void attach(struct hears *h, struct lab *lab, int domains)
{
	hears_attach(h, lab);
	hears_ask_ok(h, "cluster_open", lab_cluster(lab, domains, 1024));
}

static json_t *vdisk(const char *name, int raid, const char *layout,
		     const char *compression)
{
	return json_pack("{s:s, s:i, s:i, s:s, s:s}", "name", name,
			 "size_bytes", 16 << 20, "raid", raid, "layout", layout,
			 "compression", compression);
}

static const json_t *told(struct hears *h, const char *e, const char *name,
			  const char *member)
{
	return json_object_get(hears_find(h, e, "name", name), member);
}

static const char *word(struct hears *h, const char *name, const char *member)
{
	return hears_vdisk_text(h, name, member);
}

static bool both_healthy(struct hears *h)
{
	return !strcmp(word(h, "log1", "state"), "healthy") &&
	       !strcmp(word(h, "old1", "state"), "healthy");
}

static bool log_hurt(struct hears *h)
{
	return !strcmp(word(h, "log1", "state"), "degraded") ||
	       !strcmp(word(h, "log1", "state"), "rebuilding");
}

static bool log_failed(struct hears *h)
{
	return !strcmp(word(h, "log1", "state"), "failed");
}

static void quit(struct hears *h)
{
	hears_ask_ok(h, "quit", NULL);
	assert_true(hears_until(h, link_is_down, 30));
	hears_close(h);
}

static void run(struct hears *h, const char *name, const char *id)
{
	hears_ask_ok(h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan(name, 2, 1500),
			       "run", id));
	assert_true(hears_until(h, run_is_over, 60));
	assert_non_null(hears_find(h, "run_state", "state", "done"));
}

/* Components of a vDisk in all of the lab. */
static unsigned components(const struct lab *lab, const char *vdisk)
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
			count += !strncmp(de->d_name, vdisk, strlen(vdisk)) &&
				 strstr(de->d_name, ".component");
		if (dir)
			closedir(dir);
	}
	return count;
}

/* ---- both layouts in one cluster ------------------------------------------
 */

static void says_its_layout(struct hears *h)
{
	assert_string_equal(word(h, "log1", "layout"), "log");
	assert_string_equal(word(h, "log1", "compression"), "lz4");
	assert_true(json_integer_value(
			    told(h, "vdisk", "log1", "memory_bytes")) > 0);
	assert_string_equal(word(h, "old1", "layout"), "inplace");
	assert_string_equal(word(h, "old1", "compression"), "none");
	assert_null(told(h, "vdisk", "old1", "memory_bytes"));
}

/* Spread over all domains, though its policy needs three of them. */
static void stands_everywhere(struct hears *h, const struct lab *lab)
{
	assert_int_equal(json_array_size(told(h, "vdisk", "log1", "members")),
			 6);
	assert_int_equal(components(lab, "log1"), 6);
	assert_int_equal(components(lab, "old1"), 3);
}

static json_int_t figure(struct hears *h, const char *member)
{
	return json_integer_value(told(h, "vdisk_usage", "log1", member));
}

static void test_both(void **state)
{
	struct lab *lab = *state;
	json_int_t user;
	struct hears h;

	attach(&h, lab, 6);
	hears_ask_ok(&h, "vdisk_create", vdisk("log1", 1, "log", "lz4"));
	hears_ask_ok(&h, "vdisk_create", vdisk("old1", 1, "inplace", "none"));
	assert_true(hears_until(&h, both_healthy, 20));
	says_its_layout(&h);
	stands_everywhere(&h, lab);
	run(&h, "log1", "one");
	user = figure(&h, "user_bytes");
	assert_true(user >= 16 << 20);
	assert_true(figure(&h, "log_bytes") + figure(&h, "bypass_bytes") >=
		    16 << 20);
	assert_int_equal(figure(&h, "blocks_mapped"), (16 << 20) / 4096);
	assert_null(hears_find(&h, "vdisk_usage", "name", "old1"));
	quit(&h);
	/* each is opened as its labels say */
	attach(&h, lab, 6);
	assert_true(hears_until(&h, both_healthy, 20));
	says_its_layout(&h);
	assert_int_equal(figure(&h, "blocks_mapped"), (16 << 20) / 4096);
	assert_true(figure(&h, "user_bytes") < user);
	run(&h, "old1", "two");
	hears_ask_ok(&h, "vdisk_delete", json_pack("{s:s}", "name", "log1"));
	assert_int_equal(components(lab, "log1"), 0);
	assert_int_equal(components(lab, "old1"), 3);
	hears_close(&h);
}

/* ---- what is refused -------------------------------------------------------
 */

static json_t *sized(const char *name, int64_t bytes)
{
	json_t *j = vdisk(name, 6, "log", "none");

	json_object_set_new(j, "size_bytes", json_integer(bytes));
	return j;
}

static json_t *small_blocks(void)
{
	json_t *plan = lab_plan("log1", 1, 500);
	json_t *workload = json_object_get(
		json_array_get(json_object_get(plan, "series"), 0), "workload");

	json_object_set_new(workload, "write_sizes",
			    json_pack("[[i, f]]", 512, 1.0));
	json_array_remove(json_object_get(plan, "phases"), 0);
	return plan;
}

static void test_refused(void **state)
{
	struct lab *lab = *state;
	struct hears h;
	json_t *j;

	attach(&h, lab, 6);
	hears_ask_refused(&h, "vdisk_create", vdisk("a", 1, "sideways", "none"),
			  -EINVAL, "\"layout\" must be inplace or log");
	hears_ask_refused(&h, "vdisk_create", vdisk("a", 1, "log", "zip"),
			  -EINVAL,
			  "\"compression\" must be none or lz4 or zstd");
	hears_ask_refused(&h, "vdisk_create", vdisk("a", 1, "inplace", "lz4"),
			  -EINVAL, "cannot compress");
	j = vdisk("a", 1, "log", "none");
	json_object_set_new(j, "stripe_unit_bytes", json_integer(65536));
	hears_ask_refused(&h, "vdisk_create", j, -EINVAL,
			  "stripe unit of the log");
	/* more memory than any machine that runs this has; more room than is
	 * there */
	hears_ask_refused(&h, "vdisk_create", sized("a", 32ull << 40), -ENOMEM,
			  "MiB of memory once all of it is written");
	hears_ask_refused(&h, "vdisk_create", sized("a", 4ll << 30), -ENOSPC,
			  "and 0 have that much left");
	assert_int_equal(components(lab, "a"), 0);
	hears_ask_ok(&h, "vdisk_create", vdisk("log1", 6, "log", "none"));
	hears_ask_refused(
		&h, "vdisk_set",
		json_pack("{s:s, s:s}", "name", "log1", "layout", "inplace"),
		-EOPNOTSUPP, "keeps the layout");
	/* at once, with the remedy */
	hears_ask_refused(
		&h, "run_start",
		json_pack("{s:o, s:s}", "plan", small_blocks(), "run", "small"),
		-EINVAL, "made with layout=inplace");
	hears_close(&h);
}

/* ---- drives ----------------------------------------------------------------
 */

static void fault(struct hears *h, const char *text)
{
	hears_ask_ok(h, "fault", json_pack("{s:s}", "text", text));
}

static void member_fault(struct hears *h, size_t k, const char *action)
{
	const json_t *m =
		json_array_get(told(h, "vdisk", "log1", "members"), k);
	char text[96];

	snprintf(text, sizeof(text), "drive %s:%s %s",
		 json_string_value(json_object_get(m, "domain")),
		 json_string_value(json_object_get(m, "drive")), action);
	fault(h, text);
}

static void test_drives(void **state)
{
	struct lab *lab = *state;
	struct hears h;

	attach(&h, lab, 6);
	hears_ask_ok(&h, "vdisk_create", vdisk("log1", 6, "log", "lz4"));
	hears_ask_ok(&h, "vdisk_create", vdisk("old1", 5, "inplace", "none"));
	fault(&h, "drive n2:d0 offline");
	fault(&h, "drive n2:d1 offline");
	run(&h, "log1", "one");
	assert_true(hears_until(&h, log_hurt, 10));
	/* back: it, or an empty component where a spare was wanted by then */
	fault(&h, "drive n2:d0 online");
	fault(&h, "drive n2:d1 online");
	assert_true(hears_until(&h, both_healthy, 60));
	/* more than it may lose, and an agent that ends meanwhile */
	for (size_t k = 0; k < 3; k++)
		member_fault(&h, k, "offline");
	assert_true(hears_until(&h, log_failed, 20));
	for (size_t k = 0; k < 3; k++)
		member_fault(&h, k, "online");
	assert_true(hears_until(&h, both_healthy, 30));
	quit(&h);
	attach(&h, lab, 6);
	assert_true(hears_until(&h, both_healthy, 20));
	run(&h, "log1", "two");
	hears_close(&h);
}

static bool point_begun(struct hears *h)
{
	return hears_count(h, "sample") > 2;
}

/* Stopped in the middle of a run for longer than a drive is waited for. */
static void test_stopped(void **state)
{
	const struct timespec six = { .tv_sec = 6 };
	struct lab *lab = *state;
	struct hears h;

	attach(&h, lab, 6);
	hears_ask_ok(&h, "vdisk_create", vdisk("log1", 6, "log", "lz4"));
	lab_fill(&h, "log1");
	json_array_clear(h.event);
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan("log1", 2, 1000),
			       "run", "one"));
	assert_true(hears_until(&h, point_begun, 20));
	assert_int_equal(kill(lab_pid(lab), SIGSTOP), 0);
	nanosleep(&six, NULL);
	assert_int_equal(kill(lab_pid(lab), SIGCONT), 0);
	assert_true(hears_until(&h, run_is_over, 30));
	assert_non_null(hears_find(&h, "run_state", "state", "done"));
	assert_null(hears_find(&h, "vdisk", "state", "degraded"));
	assert_null(hears_find(&h, "vdisk", "state", "rebuilding"));
	hears_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(test_refused, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(test_drives, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, lab_setup,
						lab_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
