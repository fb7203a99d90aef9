/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures of the machine: read right, and left out where unknown. */
#include "backend/agent/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void test_cpu(void **state)
{
	struct host_cpu cpu;

	(void)state;
	assert_int_equal(
		host_cpu_parse("cpu  10 2 30 400 50 6 7 8 9 1\ncpu0 1 2 3 4\n",
			       &cpu),
		0);
	assert_int_equal(cpu.busy, 10 + 2 + 30 + 6 + 7);
	assert_int_equal(cpu.steal, 8);
	assert_true(cpu.steal_known);
	assert_int_equal(cpu.total, 10 + 2 + 30 + 400 + 50 + 6 + 7 + 8);
	/* old kernels have four columns */
	assert_int_equal(host_cpu_parse("cpu 1 2 3 4\n", &cpu), 0);
	assert_int_equal(cpu.total, 10);
	assert_false(cpu.steal_known);
	assert_int_equal(host_cpu_parse("", &cpu), -EINVAL);
	assert_int_equal(host_cpu_parse("intr 1 2 3 4", &cpu), -EINVAL);
}

static void test_mem(void **state)
{
	static const char text[] = "MemTotal:       24684096 kB\n"
				   "MemFree:        20000000 kB\n"
				   "MemAvailable:   23000000 kB\n";

	(void)state;
	assert_true(host_mem_parse(text, "MemTotal") == 24684096LL * 1024);
	assert_true(host_mem_parse(text, "MemAvailable") == 23000000LL * 1024);
	assert_true(host_mem_parse(text, "Mem") == -1);
	assert_true(host_mem_parse(text, "SwapTotal") == -1);
	assert_true(host_mem_parse("MemTotal: x kB\n", "MemTotal") == -1);
	assert_true(host_mem_parse("", "MemTotal") == -1);
	assert_true(host_mem_parse("MemTotal: 9223372036854775807 kB",
				   "MemTotal") == -1);
}

static void file_write(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The tightest of a group and those above it. */
static void test_cgroup(void **state)
{
	char root[] = "/tmp/deck-cgroup.XXXXXX", a[64], ab[80], command[96];
	const uint64_t gib = 1ull << 30;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(a, sizeof(a), "%s/a", root);
	snprintf(ab, sizeof(ab), "%s/b", a);
	assert_int_equal(mkdir(a, 0700) | mkdir(ab, 0700), 0);
	assert_int_equal(host_cgroup_limit(root, "0::/a/b\n", 8 * gib),
			 8 * gib);
	file_write(ab, "memory.max", "max\n");
	file_write(a, "memory.max", "2147483648\n");
	assert_int_equal(host_cgroup_limit(root, "1:cpu:/\n0::/a/b\n", 8 * gib),
			 2 * gib);
	assert_int_equal(host_cgroup_limit(root, "0::/a/b\n", gib), gib);
	file_write(ab, "memory.max", "1048576\n");
	assert_int_equal(host_cgroup_limit(root, "0::/a/b\n", 8 * gib),
			 1048576);
	assert_int_equal(host_cgroup_limit(root, "", 8 * gib), 8 * gib);
	assert_true(host_mem_bytes() > 0);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void test_usage(void **state)
{
	struct host_cpu last = { 0 };
	json_t *first = json_object(), *second = json_object();
	double busy;

	(void)state;
	host_usage_add("", &last, first);
	assert_null(json_object_get(first, "cpu_busy"));
	assert_true(json_is_integer(json_object_get(first, "mem_used_bytes")));
	/* as if a second of one core had been half busy */
	last.busy -= last.busy > 50 ? 50 : 0;
	last.total -= last.total > 100 ? 100 : 0;
	host_usage_add("", &last, second);
	busy = json_real_value(json_object_get(second, "cpu_busy"));
	assert_true(busy > 0.0 && busy <= 1.0);
	json_decref(first);
	json_decref(second);
}

static void test_distribution(void **state)
{
	char name[16];

	(void)state;
	host_distribution_parse("ID=x\nNAME='A'\nPRETTY_NAME=\"A B 12\"\n",
				name, sizeof(name));
	assert_string_equal(name, "A B 12");
	host_distribution_parse("MY_NAME=x\nNAME=Plain\n", name, sizeof(name));
	assert_string_equal(name, "Plain");
	host_distribution_parse("PRETTY_NAME=\"\nNAME=\"\033[1m", name,
				sizeof(name));
	assert_string_equal(name, "[1m");
	host_distribution_parse("", name, sizeof(name));
	assert_string_equal(name, "");
	host_distribution_parse("NAME=0123456789abcdefghij", name,
				sizeof(name));
	assert_string_equal(name, "0123456789abcde");
}

static void test_facts(void **state)
{
	json_t *facts = host_facts("");

	(void)state;
	assert_non_null(facts);
	assert_true(json_is_string(json_object_get(facts, "kernel")));
	assert_true(json_integer_value(json_object_get(facts, "cores")) > 0);
	assert_true(json_integer_value(json_object_get(facts, "mem_bytes")) >
		    0);
	json_decref(facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_mem),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_distribution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
