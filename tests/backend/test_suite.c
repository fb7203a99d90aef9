/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suites and workloads: all that come with the program, and what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/paths.h"
#include "backend/run/conductor.h"
#include "backend/run/plan.h"
#include "backend/run/suite.h"
#include "backend/run/workload.h"

static char folder[] = "/tmp/deck-suite.XXXXXX";

static const char *const two[] = { "db1", "db2" };

static struct suite_params params_of_two(void)
{
	return (struct suite_params) { .vdisk = two,
				       .vdisks = 2,
				       .seconds = NAN,
				       .warmup_seconds = NAN,
				       .early_ci = NAN };
}

static size_t count(const json_t *plan, const char *kind)
{
	const json_t *phase;
	size_t i, n = 0;

	json_array_foreach(json_object_get(plan, "phases"), i, phase)
		if (!strcmp(kind,
			    json_string_value(json_object_get(phase, "kind"))))
			n++;
	return n;
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static const json_t *nth(const json_t *plan, const char *kind, size_t n)
{
	const json_t *phase;
	size_t i;

	json_array_foreach(json_object_get(plan, "phases"), i, phase)
		if (!strcmp(kind, json_string_value(
					  json_object_get(phase, "kind"))) &&
		    !n--)
			return phase;
	fail_msg("no %s", kind);
	return NULL;
}

static json_t *load(const char *name, const struct suite_params *params)
{
	json_t *plan = NULL;
	struct err err;

	if (suite_load(name, params, &plan, &err))
		fail_msg("%s", err.text);
	return plan;
}

static void test_shipped(void **state)
{
	struct suite_params p = params_of_two();
	struct plan_cost cost;
	struct err err;
	char **names;
	json_t *plan, *about;
	size_t i;

	(void)state;
	assert_int_equal(path_list("suites", &names), 0);
	for (i = 0; names[i]; i++) {
		plan = load(names[i], &p);
		assert_int_equal(plan_cost(plan, NULL, &cost, &err), 0);
		assert_true(cost.points > 0);
		assert_int_equal(suite_describe(names[i], &about, &err), 0);
		json_decref(about);
		json_decref(plan);
	}
	assert_true(i >= 7);
	path_list_free(names);
}

static void test_workloads(void **state)
{
	static const char *const needed[] = {
		"oltp4k", "oltp8k", "oltp16k", "oltp32k", "rdbms22k", "rr4k",
		"rw512k", "sr64k",  "sw8k",    "sr1m",    "sw1m",
	};
	struct workload_library library;
	json_t *w;
	struct err err;
	size_t i;

	(void)state;
	assert_int_equal(workload_library_load(&library, &err), 0);
	for (i = 0; i < array_len(needed); i++)
		assert_non_null(workload_find(&library, needed[i]));
	w = workload_find(&library, "rdbms22k");
	assert_float_equal(workload_mean_bytes(w), 22 * 1024, 0.5);
	assert_float_equal(number(w, "read_share"), 0.6, 1e-9);
	w = workload_find(&library, "rw512k");
	assert_float_equal(number(w, "read_share"), 0, 0);
	assert_float_equal(number(w, "random_share"), 1, 0);
	assert_string_equal(json_string_value(json_object_get(w, "title")),
			    "512K random write");
	assert_null(workload_find(&library, "nothing"));
	workload_library_free(&library);
}

static void test_curve(void **state)
{
	struct suite_params p = params_of_two();
	json_t *plan = load("oltp32k-curve", &p);
	const json_t *point;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(plan, "series")), 2);
	assert_int_equal(count(plan, "prefill"), 2);
	assert_int_equal(count(plan, "max"), 2);
	assert_int_equal(count(plan, "point"), 20);
	point = nth(plan, "point", 12);
	assert_float_equal(number(point, "percent"), 30, 0);
	assert_float_equal(number(point, "series"), 1, 0);
	assert_float_equal(number(point, "point"), 2, 0);
	assert_float_equal(number(point, "length_us"), 60e6, 0);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(json_object_get(plan, "series"), 1),
			"name")),
		"OLTP 32K db2");
	json_decref(plan);
}

static void test_params(void **state)
{
	struct suite_params p = params_of_two();
	json_t *plan;

	(void)state;
	p.vdisks = 1;
	p.seconds = 1;
	p.percent = "50,120";
	plan = load("oltp32k-curve", &p);
	assert_int_equal(count(plan, "point"), 2);
	assert_float_equal(number(nth(plan, "point", 1), "percent"), 120, 0);
	assert_float_equal(number(nth(plan, "point", 0), "length_us"), 1e6, 0);
	assert_float_equal(number(nth(plan, "point", 0), "warmup_us"), 5e5, 0);
	assert_float_equal(number(plan, "interval_ms"), 100, 0);
	/* a rest is not a point */
	assert_float_equal(number(nth(plan, "rest", 0), "length_us"), 1e7, 0);
	json_decref(plan);

	p.mode = "ramp";
	p.percent = NULL;
	p.outstanding = "1,4,16";
	p.no_prefill = true;
	p.early_ci = 0.02;
	plan = load("oltp32k-curve", &p);
	assert_int_equal(count(plan, "point") + count(plan, "max"), 0);
	assert_int_equal(count(plan, "prefill"), 0);
	assert_int_equal(count(plan, "ramp"), 3);
	assert_float_equal(number(nth(plan, "ramp", 2), "outstanding"), 16, 0);
	assert_float_equal(number(nth(plan, "ramp", 0), "early_ci"), 0.02, 0);
	json_decref(plan);
}

static void test_demo(void **state)
{
	struct suite_params p = params_of_two();
	json_t *plan, *during;

	(void)state;
	p.seconds = 1;
	plan = load("demo", &p);
	assert_int_equal(count(plan, "prefill"), 4);
	assert_int_equal(count(plan, "max"), 5);
	assert_int_equal(count(plan, "point"), 39);
	assert_int_equal(count(plan, "link"), 2);
	during = json_object_get(nth(plan, "point", 35), "during");
	assert_int_equal(json_array_size(during), 1);
	assert_float_equal(number(json_array_get(during, 0), "at_us"),
			   0.4 * 1.4e6, 1);
	json_decref(plan);
}

static void test_peak(void **state)
{
	struct suite_params p = params_of_two();
	json_t *plan = load("peak", &p);

	(void)state;
	assert_int_equal(count(plan, "ramp"), 2 * 4 * 8);
	assert_int_equal(count(plan, "prefill"), 2);
	assert_int_equal(json_array_size(json_object_get(plan, "series")), 64);
	json_decref(plan);
}

/* ---- what is wrong --------------------------------------------------------
 */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Whatever is in the library runs by its own name. */
static void test_workload_by_name(void **state)
{
	struct suite_params p = params_of_two();
	json_t *plan = load("oltp8k", &p);

	(void)state;
	assert_int_equal(count(plan, "prefill"), 2);
	assert_int_equal(count(plan, "point"), 20);
	assert_int_equal(json_array_size(json_object_get(plan, "series")), 2);
	json_decref(plan);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "phases = ();\n", ":1: expected title here" },
		{ "title = \"t\";\n", "expected phases here" },
		{ "title = \"t\";\nphases = ( { kind = \"dance\"; } );\n",
		  ":2: kind \"dance\": expected prefill, rest, curve" },
		{ "title = \"t\";\nphases = (\n  { kind = \"rest\"; }\n);\n",
		  ":3: rest: expected seconds here" },
		{ "title = \"t\";\nspeed = 3;\nphases = ();\n",
		  ":2: unknown setting \"speed\": expected title" },
		{ "title = \"t\"\nphases = (;\n", "syntax error" },
		{ "title = \"t\";\nseries = ( { name = \"a\";\nworkload = "
		  "\"oltp3k\"; } );\nphases = ( { kind = \"curve\"; } );\n",
		  ":3: workload \"oltp3k\" is not in the library" },
		{ "title = \"t\";\nseries = ( { name = \"a\"; workload = "
		  "\"oltp4k\"; } );\nphases = ( { kind = \"curve\"; series = "
		  "\"b\"; } );\n",
		  ":3: series \"b\": expected one of" },
		{ "title = \"t\";\nseries = ( { name = \"a\"; workload = "
		  "\"oltp4k\"; } );\nphases = ( { kind = \"curve\"; percent = "
		  "[ -5 ]; } );\n",
		  ":3: percent: expected a number" },
		{ "title = \"t\";\nphases = ( { kind = \"peak\"; patterns = "
		  "\"XX\"; sizes = \"4K\"; } );\n",
		  ":2: pattern \"XX\": expected RR, RW, SR or SW" },
		{ "title = \"t\";\nphases = ( { kind = \"rest\"; seconds = "
		  "\"soon\"; } );\n",
		  ":2: seconds: expected a time such as" },
		{ "title = \"t\";\nphases = ( { kind = \"curve\"; } );\n",
		  ":2: expected a series for this phase" },
		{ "title = \"t\";\nphases = ();\n", "phases: expected" },
	};
	struct suite_params p = params_of_two();
	char path[64];
	json_t *plan;
	struct err err;
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/bad.conf", folder);
	for (i = 0; i < array_len(bad); i++) {
		write_file(path, bad[i].text);
		assert_int_equal(suite_load(path, &p, &plan, &err), -EINVAL);
		if (!strstr(err.text, bad[i].want))
			fail_msg("wanted \"%s\", got \"%s\"", bad[i].want,
				 err.text);
	}
	assert_int_equal(suite_load("nothing", &p, &plan, &err), -ENOENT);
	p.percent = "10,,20";
	assert_int_equal(suite_load("smoke", &p, &plan, &err), -EINVAL);
	p.percent = NULL;
	p.vdisks = 0;
	assert_int_equal(suite_load("smoke", &p, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "vdisk=NAME"));
}

/* A workload of the operator's own, and a suite beside it. */
static void test_own(void **state)
{
	struct suite_params p = params_of_two();
	char path[128];
	json_t *plan;

	(void)state;
	snprintf(path, sizeof(path), "%s/iodeck/workloads", folder);
	assert_int_equal(path_make(path, NULL), 0);
	snprintf(path, sizeof(path), "%s/iodeck/suites", folder);
	assert_int_equal(path_make(path, NULL), 0);
	snprintf(path, sizeof(path), "%s/iodeck/workloads/mine.conf", folder);
	write_file(path, "workloads = ( { name = \"mine\"; read_share = 0.5; "
			 "sizes = ( (\"8K\", 1), (\"64K\", 3) ); } );\n");
	snprintf(path, sizeof(path), "%s/iodeck/suites/smoke.conf", folder);
	write_file(path, "title = \"My smoke\"; series = ( { name = \"a\"; "
			 "vdisk = \"x\"; workload = \"mine\"; } ); phases = "
			 "( { kind = \"ramp\"; outstanding = 3; } );\n");
	setenv("XDG_CONFIG_HOME", folder, 1);
	plan = load("smoke", &p);
	unsetenv("XDG_CONFIG_HOME");
	assert_string_equal(json_string_value(json_object_get(plan, "title")),
			    "My smoke");
	assert_int_equal(json_array_size(json_object_get(plan, "phases")), 1);
	json_decref(plan);
}

/* Whole intervals in the plan already, so that what it says is what runs; what
 * is filled in looks like what is written. */
static void test_as_run(void **state)
{
	static const char text[] =
		"title = \"T\"; interval_ms = 300; seconds = 2; warmup = 0.4;\n"
		"series = ( { name = \"a\"; workload = \"zip\"; } );\n"
		"phases = ( { kind = \"prefill\"; },\n"
		"  { kind = \"ramp\"; outstanding = 1;\n"
		"    during = ( { at_share = 0.5; kind = \"fault\";\n"
		"      text = \"drive n1:d0 offline\"; } ); } );\n";
	struct suite_params p = params_of_two();
	const json_t *ramp;
	char path[300];
	json_t *plan;

	(void)state;
	snprintf(path, sizeof(path), "%s/iodeck/workloads", folder);
	assert_int_equal(path_make(path, NULL), 0);
	snprintf(path, sizeof(path), "%s/iodeck/workloads/zip.conf", folder);
	write_file(path, "workloads = ( { name = \"zip\"; read_share = 0.5; "
			 "sizes = \"4K\"; compress_ratio = 2.5; } );");
	snprintf(path, sizeof(path), "%s/as-run.conf", folder);
	write_file(path, text);
	p.vdisks = 1;
	setenv("XDG_CONFIG_HOME", folder, 1);
	plan = load(path, &p);
	unsetenv("XDG_CONFIG_HOME");
	ramp = nth(plan, "ramp", 0);
	assert_float_equal(number(ramp, "length_us"), 2100000, 0);
	assert_float_equal(number(ramp, "warmup_us"), 600000, 0);
	assert_float_equal(
		number(json_array_get(json_object_get(ramp, "during"), 0),
		       "at_us"),
		1350000, 0);
	assert_float_equal(number(nth(plan, "prefill", 0), "compress_ratio"),
			   2.5, 1e-9);
	json_decref(plan);
}

static const char *vdisk_of(const json_t *plan, size_t series, size_t i)
{
	const char *name = plan_vdisk(
		json_array_get(json_object_get(plan, "series"), series), i);

	return name ? name : "";
}

/* One series over several vDisks: named in the file, by a pattern, or asked
 * for. */
static void test_together(void **state)
{
	static const char *const there[] = { "db1", "db2", "web1" };
	struct suite_params p = params_of_two();
	char path[64];
	struct err err;
	json_t *plan;
	FILE *f;

	(void)state;
	p.there = there;
	p.there_count = 3;
	snprintf(path, sizeof(path), "%s/many.conf", folder);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("title = \"many\"; silent = \"stop\";\n"
	      "series = ( { name = \"a\"; workload = \"rr4k\";\n"
	      "  vdisks = \"db*\"; }, { name = \"b\"; workload = \"rr4k\";\n"
	      "  vdisks = [ \"web1\", \"*1\" ]; },\n"
	      "  { name = \"c\"; workload = \"rr4k\"; } );\n"
	      "phases = ( { kind = \"prefill\"; }, { kind = \"max\"; } );\n",
	      f);
	fclose(f);
	plan = load(path, &p);
	assert_string_equal(json_string_value(json_object_get(plan, "silent")),
			    "stop");
	assert_string_equal(vdisk_of(plan, 0, 0), "db1");
	assert_string_equal(vdisk_of(plan, 0, 1), "db2");
	assert_string_equal(vdisk_of(plan, 0, 2), "");
	assert_string_equal(vdisk_of(plan, 1, 0), "web1");
	assert_string_equal(vdisk_of(plan, 1, 1), "db1");
	/* the third is one for each that was given, and each filled once */
	assert_int_equal(json_array_size(json_object_get(plan, "series")), 4);
	assert_int_equal(count(plan, "prefill"), 3);
	json_decref(plan);
	p.together = true;
	p.silent = "wait";
	plan = load(path, &p);
	assert_int_equal(json_array_size(json_object_get(plan, "series")), 3);
	assert_string_equal(vdisk_of(plan, 2, 1), "db2");
	assert_string_equal(json_string_value(json_object_get(plan, "silent")),
			    "wait");
	json_decref(plan);
	p.there_count = 0;
	assert_int_equal(suite_load(path, &p, &plan, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no vDisk is named so"));
}

static int setup(void **state)
{
	(void)state;
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return path_remove(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_curve),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_demo),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_workload_by_name),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_as_run),
		cmocka_unit_test(test_together),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
