/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Comparing: in what two series differ, and how often noise looks a change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/analysis/analysis_priv.h"
#include "synth.h"

static struct model *two_series(void)
{
	struct synth_opts opts;
	struct model *m;

	synth_defaults(&opts);
	opts.series = 2;
	opts.points = 2;
	opts.fault = false;
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(synth_model(&opts, m), 0);
	return m;
}

static const char *differs(const json_t *facts, const char *name,
			   const char *side)
{
	const json_t *list = json_object_get(facts, "differs"), *d;
	size_t i;

	json_array_foreach(list, i, d)
		if (!strcmp(json_string_value(json_object_get(d, "name")),
			    name))
			return json_string_value(json_object_get(d, side));
	return NULL;
}

/* In what two series differ is said whole, the rest is counted. */
static void facts(void **state)
{
	struct model *m = two_series();
	struct m_run *run = &m->run[0];
	json_t *a = facts_of_series(m, run, &run->series[0]), *b, *d;
	char text[512];

	(void)state;
	d = facts_compare(a, a);
	assert_int_equal(json_array_size(json_object_get(d, "differs")), 0);
	assert_true(json_integer_value(json_object_get(d, "same")) > 30);
	facts_text(d, 200, text, sizeof(text));
	assert_non_null(strstr(text, "differs in nothing known"));
	json_decref(d);
	run->series[1].link.rate_bytes_s = 1250e6;
	memset(run->series[1].policy, 'p', MODEL_NAME - 1);
	b = facts_of_series(m, run, &run->series[1]);
	d = facts_compare(a, b);
	assert_string_equal(differs(d, "RAID", "a"), "1");
	assert_string_equal(differs(d, "RAID", "b"), "5");
	assert_string_equal(differs(d, "link rate", "a"), "3125 MB/s");
	assert_string_equal(differs(d, "link rate", "b"), "1250 MB/s");
	assert_null(differs(d, "workload", "a"));
	assert_int_equal(
		json_array_size(json_object_get(d, "differs")) +
			(size_t)json_integer_value(json_object_get(d, "same")),
		json_integer_value(json_object_get(d, "of")));
	for (size_t width = 0; width < 400; width += 7) {
		facts_text(d, width, text, sizeof(text));
		assert_true(strlen(text) <= (width > 80 ? width : 80));
	}
	facts_text(d, SIZE_MAX, text, sizeof(text));
	assert_non_null(strstr(text, "RAID 1 | 5"));
	assert_null(facts_compare(a, NULL));
	json_decref(a);
	json_decref(b);
	json_decref(d);
	model_free(m);
}

/* Normal noise by Box and Muller from a fixed stream. */
static double noise(uint64_t *x)
{
	double u[2];

	for (int i = 0; i < 2; i++) {
		*x = *x * 6364136223846793005u + 1442695040888963407u;
		u[i] = ((double)(*x >> 11) + 0.5) / 9007199254740992.0;
	}
	return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

/* A curve of ten points of 20 intervals, with `gain` in IOPS. */
static void noisy_curve(struct curve_point *p, double gain, uint64_t *x)
{
	for (int k = 0; k < 10; k++) {
		double iops[20], us[20], one[20], mean = 0, lat = 0;

		for (int i = 0; i < 20; i++) {
			iops[i] = 1000 * gain * (k + 1) * (1 + 0.05 * noise(x));
			us[i] = (200 + 90 * k) * (1 + 0.08 * noise(x));
			one[i] = 1;
			mean += iops[i] / 20;
			lat += us[i] / 20;
		}
		p[k] = (struct curve_point) {
			.iops = mean,
			.latency_us = lat,
			.percent = 10 * (k + 1),
			.iops_ci = stats_batch_ci(iops, one, 20),
			.latency_ci = stats_batch_ci(us, one, 20),
		};
	}
}

/* Of 400 pairs of equal runs about one in twenty may show any change; a
 * change of 10 % is to be seen nearly always. */
static void false_alarms(void **state)
{
	struct curve_point pa[10], pb[10];
	struct curve a = { .point = pa, .points = 10, .max_iops = NAN };
	struct curve b = { .point = pb, .points = 10, .max_iops = NAN };
	struct compared c[READINGS];
	int alarms = 0, seen = 0;
	uint64_t x = 7;

	(void)state;
	for (int run = 0; run < 400; run++) {
		bool any = false;

		noisy_curve(pa, 1, &x);
		noisy_curve(pb, 1, &x);
		curves_compare(&a, &b, 700, c);
		for (int i = 0; i < READINGS; i++)
			any |= c[i].verdict &&
			       strcmp(c[i].verdict, "not distinguishable") != 0;
		alarms += any;
		noisy_curve(pb, 1.1, &x);
		curves_compare(&a, &b, 700, c);
		seen += c[0].verdict && !strcmp(c[0].verdict, "higher");
	}
	assert_in_range(alarms, 1, 32);
	assert_in_range(seen, 390, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts),
		cmocka_unit_test(false_alarms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
