/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans: what is wrong with one is said with its place; what one costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/run/conductor.h"

static json_t *plan_with(const char *phases)
{
	static const char base[] =
		"{'title':'t','interval_ms':200,'seed':1,'series':[{'name':"
		"'RAID-1','vdisk':'db1','workload':{'name':'w','read_share':"
		"0.7,'random_share':1,'read_sizes':[[4096,1]]}},{'name':"
		"'again','vdisk':'db1','max_from':0,'workload':{'name':'w',"
		"'read_share':0.7,'random_share':1,'read_sizes':[[4096,1]]}}"
		"],'phases':[%s]}";
	char text[4096], *p;
	json_t *plan;

	snprintf(text, sizeof(text), base, phases);
	for (p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	plan = json_loads(text, 0, NULL);
	assert_non_null(plan);
	return plan;
}

#define MAX0                                                             \
	"{'kind':'max','series':0,'step_us':1000000,'warmup_us':200000," \
	"'outstanding_max':256,'gain':0.03}"
#define POINT(percent)                                                       \
	"{'kind':'point','series':0,'point':0,'points':2,'percent':" percent \
	",'length_us':2000000,'warmup_us':500000}"

static void test_plan_check(void **state)
{
	static const struct {
		const char *phases, *text;
	} bad[] = {
		{ "", "phases: expected" },
		{ "{'kind':'dance'}", "phases[0].kind: expected prefill" },
		{ POINT("50"), "phases[0].series: expected a series whose" },
		{ MAX0 "," POINT("-1"), "phases[1].percent: expected a" },
		{ MAX0 "," POINT("'x'"), "phases[1].percent" },
		{ "{'kind':'max','series':7,'step_us':5000}",
		  "phases[0].series" },
		{ "{'kind':'max','series':0}", "phases[0].step_us" },
		{ "{'kind':'fault'}", "phases[0].text: expected a text" },
		{ "{'kind':'wait','vdisk':'a','state':'b'}",
		  "phases[0].length_us" },
		{ "{'kind':'ramp','series':0,'length_us':5000,"
		  "'outstanding':0}",
		  "phases[0].outstanding" },
		{ "{'kind':'ramp','series':0,'length_us':5000,'outstanding':1,"
		  "'during':[{'kind':'max','at_us':0}]}",
		  "phases[0].during[0].kind" },
		{ "{'kind':'ramp','series':0,'length_us':5000,'outstanding':1,"
		  "'during':[{'kind':'note','text':'a','at_us':9},"
		  "{'kind':'note','text':'a','at_us':5}]}",
		  "phases[0].during[1].at_us" },
		{ "3", "phases[0]: expected an object" },
	};
	struct err err;
	json_t *plan;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(bad); i++) {
		plan = plan_with(bad[i].phases);
		assert_int_equal(plan_check(plan, &err), -EINVAL);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%s: %s", bad[i].text, err.text);
		json_decref(plan);
	}
	assert_int_equal(plan_check(NULL, &err), -EINVAL);
}

static void test_plan_cost(void **state)
{
	json_t *plan = plan_with("{'kind':'prefill','vdisk':'db1'},"
				 "{'kind':'rest','length_us':3000000}," MAX0
				 "," POINT("50") "," POINT("100"));
	json_t *sizes = json_pack("{s:i}", "db1", 1000);
	struct plan_cost cost;
	struct err err;

	(void)state;
	assert_int_equal(plan_cost(plan, sizes, &cost, &err), 0);
	assert_float_equal(cost.seconds, 3 + 2.4 + 5, 1e-9);
	/* 1, 2, 4 to 256 are nine levels, and one is tried again. */
	assert_float_equal(cost.most_seconds, 3 + 10 * 1.2 + 5, 1e-9);
	assert_float_equal(cost.prefill_bytes, 1000, 0);
	assert_float_equal(cost.write_share, 0.3, 1e-9);
	assert_int_equal(cost.phases, 5);
	assert_int_equal(cost.points, 2);
	assert_int_equal(plan_cost(plan, NULL, &cost, &err), 0);
	assert_true(isnan(cost.prefill_bytes));
	json_decref(plan);
	json_decref(sizes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan_check),
		cmocka_unit_test(test_plan_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
