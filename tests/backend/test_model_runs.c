/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fold of a run that several agents tell of: sums, and what is missing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/analysis/analysis.h"
#include "backend/event.h"

#define START 1800000000000000
#define SEC 1000000

struct writer {
	struct model *m;
	int64_t n[4];
};

static void tell(struct writer *w, int node, int64_t t_us, const char *e,
		 json_t *body)
{
	char agent[16];
	struct err err;

	snprintf(agent, sizeof(agent), "lab.n%d", node);
	json_object_set_new(body, "run", json_string("r1"));
	json_object_set_new(body, "e", json_string(e));
	json_object_set_new(body, "a", json_string(node ? agent : "console"));
	json_object_set_new(body, "i", json_integer(1));
	json_object_set_new(body, "n", json_integer(++w->n[node]));
	json_object_set_new(body, "t", json_integer(START + t_us));
	if (model_apply(w->m, body, &err))
		fail_msg("%s", err.text);
	json_decref(body);
}

static json_t *plan(void)
{
	static const char text[] =
		"{'title':'t','interval_ms':1000,'series':[{'name':'all',"
		"'vdisks':['a','b','c'],'workload':{'name':'w'}}],'nodes':["
		"{'name':'n1','agent':'lab.n1','vdisks':['a']},"
		"{'name':'n2','agent':'lab.n2','vdisks':['b']},"
		"{'name':'n3','agent':'lab.n3','vdisks':['c']}],'phases':["
		"{'kind':'max','series':0},{'kind':'point','series':0},"
		"{'kind':'point','series':0}]}";
	char copy[sizeof(text)], *p;
	json_t *j;

	memcpy(copy, text, sizeof(text));
	for (p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	j = json_loads(copy, 0, NULL);
	assert_non_null(j);
	return j;
}

static void begin(struct writer *w)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(model_new(&w->m), 0);
	for (int n = 1; n <= 3; n++) {
		tell(w, n, 0, "run", json_pack("{s:o}", "plan", plan()));
		tell(w, n, 0, "run_state",
		     json_pack("{s:s, s:i}", "state", "waiting", "phase", 0));
	}
	tell(w, 0, 1, "run_go",
	     json_pack("{s:i, s:i}", "phase", 0, "err_us", 80));
}

static void phase(struct writer *w, int node, int index, int64_t t_us,
		  int64_t late_us)
{
	tell(w, node, t_us + late_us, "phase",
	     json_pack("{s:i, s:s, s:i, s:f, s:i, s:I, s:i}", "phase", index,
		       "kind", index ? "point" : "max", "series", 0,
		       "asked_iops", 100.0 * node, "outstanding", node,
		       "asked_t_us", (json_int_t)(START + t_us), "warmup_us",
		       0));
}

static void phase_end(struct writer *w, int node, int index, int64_t t_us,
		      const char *status)
{
	json_t *body =
		json_pack("{s:i, s:s}", "phase", index, "status", status);

	if (!index) {
		json_object_set_new(body, "max_iops", json_real(1000.0 * node));
		json_object_set_new(body, "outstanding", json_integer(4));
	}
	tell(w, node, t_us, "phase_end", body);
}

/* 100 reads of `node` ms a node and interval. */
static void sample(struct writer *w, int node, int index, int second)
{
	struct hist *h = malloc(sizeof(*h));

	assert_non_null(h);
	hist_reset(h);
	for (int i = 0; i < 100; i++)
		hist_add(h, (uint64_t)node * 1000000);
	tell(w, node, 0, "sample",
	     json_pack("{s:i, s:i, s:I, s:i, s:b, s:i, s:{s:i, s:i, s:o}}",
		       "phase", index, "series", 0, "from_us",
		       (json_int_t)second * SEC, "len_us", SEC, "warm",
		       second == 0, "inflight", 2, "read", "ops", 100, "bytes",
		       409600, "svc", event_hist_encode(h)));
	free(h);
}

static struct m_point *point(struct writer *w, size_t i)
{
	return &model_run(w->m)->series[0].point[i];
}

static const char *lacks(struct writer *w, size_t i)
{
	static char text[200];

	return model_silent_text(model_run(w->m), point(w, i), text,
				 sizeof(text));
}

/* All tell all, one much later than the others: as if it had been at once. */
static void test_merged(void **state)
{
	struct point_stats st;
	struct writer w;
	json_t *j;
	char *text;

	(void)state;
	begin(&w);
	assert_string_equal(model_run(w.m)->state, "waiting");
	for (int n = 1; n <= 3; n++)
		phase(&w, n, 0, SEC, 10 * n);
	assert_string_equal(model_run(w.m)->state, "waiting");
	for (int n = 1; n <= 3; n++)
		tell(&w, n, SEC, "run_state",
		     json_pack("{s:s}", "state", "running"));
	for (int n = 1; n <= 3; n++)
		phase_end(&w, n, 0, 2 * SEC, "done");
	assert_float_equal(model_run(w.m)->series[0].max_iops, 6000, 0);
	assert_int_equal(model_run(w.m)->series[0].max_outstanding, 12);
	for (int n = 1; n <= 2; n++) {
		phase(&w, n, 1, 3 * SEC, n);
		for (int s = 0; s <= 10; s++)
			sample(&w, n, 1, s);
		phase_end(&w, n, 1, 14 * SEC, "done");
		phase(&w, n, 2, 15 * SEC, n);
		sample(&w, n, 2, 0);
		sample(&w, n, 2, 1);
	}
	/* not zero, but not known */
	assert_int_equal(point(&w, 1)->intervals, 0);
	assert_true(point(&w, 1)->measured_s == 0);
	phase(&w, 3, 1, 3 * SEC, 250);
	for (int s = 0; s <= 10; s++)
		sample(&w, 3, 1, s);
	assert_int_equal(point(&w, 1)->intervals, 10);
	assert_int_equal(point(&w, 1)->state, POINT_RUN);
	phase_end(&w, 3, 1, 14 * SEC, "done");
	assert_int_equal(point(&w, 1)->state, POINT_DONE);
	assert_int_equal(point(&w, 2)->state, POINT_WARM);
	point_stats(point(&w, 1), &st);
	assert_float_equal(st.iops, 300, 1e-9);
	assert_float_equal(st.asked_iops, 600, 1e-9);
	assert_float_equal(st.latency.all.mean, 2000, 20);
	assert_float_equal(st.latency.all.max, 3000, 1);
	assert_int_equal(point(&w, 1)->read.svc.count, 3000);
	assert_int_equal(point(&w, 1)->outstanding, 6);
	assert_int_equal(point(&w, 1)->skew_us, 250);
	assert_int_equal(point(&w, 1)->skew_err_us, 80);
	assert_string_equal(lacks(&w, 1), "");
	j = analysis_run_json(model_run(w.m), 1000);
	assert_int_equal(json_array_size(json_object_get(j, "nodes")), 3);
	json_decref(j);
	assert_int_equal(analysis_run_text(model_run(w.m), 1000, &text), 0);
	assert_non_null(strstr(text, "on n1, n2, n3"));
	assert_non_null(strstr(text, "within 0.25 ms"));
	free(text);
	assert_int_equal(w.m->ignored, 0);
	model_free(w.m);
}

/* One is killed in a point and comes back in the next but one. */
static void test_missing(void **state)
{
	struct point_stats st;
	struct writer w;
	char *text;

	(void)state;
	begin(&w);
	for (int n = 1; n <= 3; n++)
		phase(&w, n, 1, SEC, 0);
	for (int s = 0; s <= 10; s++)
		for (int n = 1; n <= 3; n++)
			if (n != 2 || s < 5)
				sample(&w, n, 1, s);
	assert_int_equal(point(&w, 0)->intervals, 4);
	for (int n = 1; n <= 3; n += 2)
		phase_end(&w, n, 1, 12 * SEC, "done");
	assert_int_equal(point(&w, 0)->state, POINT_RUN);
	tell(&w, 2, 13 * SEC, "run",
	     json_pack("{s:o, s:i}", "plan", plan(), "joined", 2));
	assert_int_equal(point(&w, 0)->state, POINT_DONE);
	point_stats(point(&w, 0), &st);
	assert_float_equal(st.iops, 300, 1e-9);
	assert_int_equal(point(&w, 0)->intervals, 4);
	assert_int_equal(point(&w, 0)->missing, 6);
	assert_string_equal(lacks(&w, 0), "n2 missing in 6 of 10 intervals");
	assert_int_equal(analysis_run_text(model_run(w.m), 1000, &text), 0);
	assert_non_null(strstr(text, "n2 missing in 6 of 10 intervals"));
	free(text);
	for (int n = 1; n <= 3; n++) {
		phase(&w, n, 2, 14 * SEC, 0);
		for (int s = 0; s <= 3; s++)
			sample(&w, n, 2, s);
	}
	assert_int_equal(point(&w, 1)->intervals, 3);
	assert_string_equal(lacks(&w, 1), "");
	model_free(w.m);
}

/* One is given up: the others' figures count without it, marked; what it tells
 * later does not change them. */
static void test_out(void **state)
{
	struct point_stats st;
	struct writer w;

	(void)state;
	begin(&w);
	for (int n = 1; n <= 3; n++)
		if (n != 2)
			phase(&w, n, 1, SEC, 0);
	for (int s = 0; s <= 10; s++)
		for (int n = 1; n <= 3; n += 2)
			sample(&w, n, 1, s);
	assert_int_equal(point(&w, 0)->intervals, 0);
	tell(&w, 0, 12 * SEC, "run_out",
	     json_pack("{s:s, s:s}", "agent", "lab.n2", "why", "not heard of"));
	point_stats(point(&w, 0), &st);
	assert_float_equal(st.iops, 200, 1e-9);
	assert_int_equal(point(&w, 0)->intervals, 10);
	assert_string_equal(lacks(&w, 0), "without n2");
	for (int n = 1; n <= 3; n += 2)
		phase_end(&w, n, 1, 13 * SEC, "done");
	assert_int_equal(point(&w, 0)->state, POINT_DONE);
	phase(&w, 2, 1, SEC, 0);
	sample(&w, 2, 1, 4);
	point_stats(point(&w, 0), &st);
	assert_float_equal(st.iops, 200, 1e-9);
	for (int n = 1; n <= 3; n += 2)
		tell(&w, n, 14 * SEC, "run_state",
		     json_pack("{s:s}", "state", "done"));
	assert_false(model_run_over(model_run(w.m)));
	tell(&w, 2, 15 * SEC, "run_state",
	     json_pack("{s:s, s:s}", "state", "failed", "reason", "b: gone"));
	assert_true(model_run_over(model_run(w.m)));
	assert_string_equal(model_run(w.m)->state, "failed");
	assert_string_equal(model_run(w.m)->reason, "b: gone");
	model_free(w.m);
}

/* All begin again at a phase: what they told of it before is gone. */
static void test_resumed(void **state)
{
	struct writer w;

	(void)state;
	begin(&w);
	for (int n = 1; n <= 3; n++) {
		phase(&w, n, 1, SEC, 0);
		sample(&w, n, 1, 1);
		tell(&w, n, 3 * SEC, "run_state",
		     json_pack("{s:s}", "state", "stopped"));
	}
	assert_int_equal(point(&w, 0)->intervals, 1);
	for (int n = 1; n <= 3; n++)
		tell(&w, n, 4 * SEC, "run",
		     json_pack("{s:o, s:i}", "plan", plan(), "resumed_from",
			       1));
	assert_int_equal(model_run(w.m)->series[0].points, 0);
	for (int n = 1; n <= 3; n++)
		phase(&w, n, 1, 5 * SEC, 0);
	for (int n = 1; n <= 3; n++)
		sample(&w, n, 1, 1);
	assert_int_equal(point(&w, 0)->intervals, 1);
	assert_int_equal(point(&w, 0)->begun_t_us, START + 5 * SEC);
	model_free(w.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_out),
		cmocka_unit_test(test_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
