/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans: what is wrong with one is said with its place; what one costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/plan_text.h"
#include "backend/run/conductor.h"
#include "backend/run/plan.h"

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

/* ---- several vDisks, several nodes -------------------------------------- */

/* Four vDisks of three nodes, one of which has none of the series'. */
static json_t *plan_of_nodes(const char *nodes, const char *more)
{
	static const char base[] =
		"{'title':'t','interval_ms':200,'seed':1,%s'series':[{'name':"
		"'all','vdisks':['a','b','c','d'],'workload':{'name':'w',"
		"'read_share':0.7,'random_share':1,'read_sizes':[[4096,1]]}}],"
		"'nodes':[%s],'phases':[{'kind':'prefill','vdisk':'a'},"
		"{'kind':'prefill','vdisk':'b'},"
		"{'kind':'rest','length_us':3000000}," MAX0
		"," POINT("50") ","
				"{'kind':'note','text':'n'},{'kind':'fault','"
				"text':'f'},"
				"{'kind':'wait','vdisk':'a','state':'healthy','"
				"length_us':"
				"5000000}," POINT("100") "]}";
	char text[4096], *p;
	json_t *plan;

	snprintf(text, sizeof(text), base, more, nodes);
	for (p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	plan = json_loads(text, 0, NULL);
	assert_non_null(plan);
	return plan;
}

#define NODES                                                \
	"{'name':'n1','agent':'lab.n1','vdisks':['a','c']}," \
	"{'name':'n2','agent':'lab.n2','vdisks':['b']},"     \
	"{'name':'n3','agent':'lab.n3','vdisks':['d']},"     \
	"{'name':'n4','agent':'lab.n4','vdisks':[]}"

static void test_nodes_check(void **state)
{
	static const struct {
		const char *nodes, *more, *text;
	} bad[] = {
		{ "{'name':'n1','agent':'x','vdisks':['a','b','c']}", "",
		  "series[0]: expected one node that has d" },
		{ NODES ",{'name':'n5','agent':'x','vdisks':['a']}", "",
		  "series[0]: expected one node that has a" },
		{ "{'name':'n1','vdisks':[]}", "", "nodes[0].agent" },
		{ "{'name':'n1','agent':'x','vdisks':['a','a']}", "",
		  "nodes[0].vdisks: expected each name once" },
		{ "3", "", "nodes[0]: expected an object" },
		{ "", "", "nodes: expected a list" },
		{ NODES, "'silent':'panic',", "silent: expected wait" },
	};
	struct err err;
	json_t *plan;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(bad); i++) {
		plan = plan_of_nodes(bad[i].nodes, bad[i].more);
		assert_int_equal(plan_check(plan, &err), -EINVAL);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%s: %s", bad[i].text, err.text);
		json_decref(plan);
	}
}

static void test_nodes(void **state)
{
	json_t *plan = plan_of_nodes(NODES, "'silent':'wait',");
	const json_t *phases = json_object_get(plan, "phases");
	const json_t *series =
		json_array_get(json_object_get(plan, "series"), 0);
	const json_t *n1 = json_object_get(plan_node(plan, 0), "vdisks");
	struct plan_load load;
	char text[160], *long_text;
	struct model *model;
	struct plan_cost cost;
	struct err err;
	uint64_t us;
	size_t i;

	(void)state;
	if (plan_check(plan, &err))
		fail_msg("%s", err.text);
	assert_true(plan_timed(plan));
	assert_int_equal(plan_node_index(plan, "lab.n2"), 1);
	assert_int_equal(plan_node_index(plan, "n2"), -1);
	assert_true(plan_node_runs(plan, 2, 0));
	assert_false(plan_node_runs(plan, 3, 0));
	/* 10 over four: 3, 3, 2, 2; n1 has the first and the third */
	assert_int_equal(plan_share(series, n1, 10), 5);
	assert_int_equal(plan_share(series, NULL, 10), 10);
	assert_int_equal(plan_share(series, n1, 1), 2);
	assert_int_equal(plan_owned(series, n1), 2);
	assert_string_equal(plan_vdisks_text(series, text, sizeof(text)),
			    "a, b and 2 more");
	/* met before all, behind the prefill and behind the wait */
	for (i = 0; i < json_array_size(phases); i++)
		assert_int_equal(plan_barrier(plan, i, 0),
				 i == 0 || i == 2 || i == 8);
	assert_true(plan_barrier(plan, 4, 4));
	assert_false(plan_slot_us(plan, json_array_get(phases, 0), &us));
	assert_false(plan_slot_us(plan, json_array_get(phases, 7), &us));
	assert_true(plan_slot_us(plan, json_array_get(phases, 2), &us));
	assert_int_equal(us, 3000000);
	/* nine depths, one twice, one together: warm-up, step and a gap each */
	plan_load(plan, json_array_get(phases, 3), &load);
	assert_int_equal(load.levels, 11);
	assert_true(plan_slot_us(plan, json_array_get(phases, 3), &us));
	assert_int_equal(us, 11 * (200000 + 1000000 + 200000));
	assert_true(plan_slot_us(plan, json_array_get(phases, 4), &us));
	assert_int_equal(us, 600000 + 2000000 + 200000);
	assert_int_equal(plan_cost(plan, NULL, &cost, &err), 0);
	assert_float_equal(cost.seconds, 3 + 15.4 + 2.8 + 0.2 + 2.8, 1e-9);
	assert_float_equal(cost.most_seconds, cost.seconds + 5, 1e-9);
	assert_int_equal(model_new(&model), 0);
	long_text = plan_text(plan, model, NULL);
	assert_non_null(strstr(long_text, "node n1        a and c\n"));
	assert_non_null(strstr(long_text, "silent node      is waited for"));
	assert_non_null(strstr(long_text, "all on a, b and 2 more: 50 %"));
	free(long_text);
	model_free(model);
	json_decref(plan);
}

/* Shares of another series' maximum: of what each node found on its own. */
static void test_nodes_max_from(void **state)
{
	json_t *plan = plan_of_nodes(NODES, ""), *series, *more;
	struct err err;

	(void)state;
	series = json_object_get(plan, "series");
	more = json_deep_copy(json_array_get(series, 0));
	json_object_set_new(more, "max_from", json_integer(0));
	json_array_append_new(series, more);
	assert_int_equal(plan_check(plan, &err), 0);
	json_array_remove(json_object_get(more, "vdisks"), 3);
	assert_int_equal(plan_check(plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "series[1].max_from"));
	json_decref(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan_check),
		cmocka_unit_test(test_plan_cost),
		cmocka_unit_test(test_nodes_check),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_nodes_max_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
