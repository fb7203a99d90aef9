/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a vDisk of the log layout tells of itself, folded: figures, intervals,
 * what was written while a point was measured, and how that is said.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/analysis/analysis.h"
#include "backend/event.h"

#define T0 1700000000000000ll
#define S 1000000ll

struct tape {
	struct model *model;
	struct event_stamp stamp;
};

static void tape_open(struct tape *t)
{
	*t = (struct tape) { .stamp = { .a = "lab", .i = 1 } };
	assert_int_equal(model_new(&t->model), 0);
}

static int say(struct tape *t, const char *e, int64_t t_us, json_t *body)
{
	int rc;

	assert_non_null(body);
	assert_int_equal(event_stamp(&t->stamp, e, t_us, body), 0);
	rc = model_apply(t->model, body, NULL);
	json_decref(body);
	return rc;
}

static json_t *vdisk(const char *state)
{
	return json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:s,s:s,s:I}", "name", "db1",
			 "state", state, "policy", "gold", "raid", 6, "k", 4,
			 "m", 2, "layout", "log", "compression", "lz4",
			 "memory_bytes", (json_int_t)(107 * MIB));
}

/* As if `user` bytes had been written in all: half of it left after
 * compression, three times that in the log, .75 in stripes. */
static json_t *usage(int64_t opened_t_us, int64_t user)
{
	return json_pack(
		"{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f}",
		"name", "db1", "opened_t_us", (json_int_t)opened_t_us,
		"user_bytes", (json_int_t)user, "user_stored_bytes",
		(json_int_t)user / 2, "log_bytes", (json_int_t)user / 2 * 3,
		"destage_bytes", (json_int_t)user / 4 * 3, "bypass_bytes",
		(json_int_t)0, "clean_bytes", (json_int_t)user / 4,
		"rebuild_bytes", (json_int_t)0, "checkpoint_bytes",
		(json_int_t)user / 8, "blocks_mapped", (json_int_t)user / 4096,
		"stored_bytes", (json_int_t)user / 2, "free_share", 0.5,
		"log_fill", 0.25, "compliance", 1.0);
}

/* ---- figures and intervals ----------------------------------------------- */

static void figures(void **state)
{
	const struct m_vdisk *v;
	struct m_amp amp;
	struct tape t;

	(void)state;
	tape_open(&t);
	say(&t, "vdisk", T0, vdisk("healthy"));
	v = model_vdisk(t.model, "db1");
	assert_string_equal(v->layout, "log");
	assert_string_equal(v->compression, "lz4");
	assert_int_equal(v->memory_bytes, 107 * MIB);
	assert_int_equal(v->log.t_us, -1);
	assert_int_equal(v->log.written.user, -1);
	assert_true(isnan(v->log.free_share));
	model_amp(&v->log.written, &amp);
	assert_true(isnan(amp.all));

	assert_int_equal(say(&t, "vdisk_usage", T0, usage(T0, 8 * MIB)), 0);
	v = model_vdisk(t.model, "db1");
	assert_int_equal(v->strips, 0); /* the first has nothing before it */
	assert_true(v->log.ratio == 2);
	assert_int_equal(v->log.blocks_lost, -1);
	model_amp(&v->log.written, &amp);
	assert_true(amp.all == 1.5 + .75 + .25 + .125);

	say(&t, "vdisk_usage", T0 + S, usage(T0, 12 * MIB));
	/* a new description of the same vDisk takes nothing away */
	say(&t, "vdisk", T0 + S, vdisk("degraded"));
	v = model_vdisk(t.model, "db1");
	assert_int_equal(v->strips, 1);
	assert_int_equal(v->strip[0].len_us, S);
	assert_int_equal(v->strip[0].written.user, 4 * MIB);
	assert_int_equal(v->strip[0].written.clean, MIB);
	/* opened anew it counts from 0: no interval lies between */
	say(&t, "vdisk_usage", T0 + 2 * S, usage(T0 + 2 * S, 0));
	say(&t, "vdisk_usage", T0 + 3 * S, usage(T0 + 2 * S, MIB));
	v = model_vdisk(t.model, "db1");
	assert_int_equal(v->strips, 2);
	assert_int_equal(v->strip[1].written.user, MIB);
	/* of a vDisk that nobody announced: no harm */
	assert_int_equal(say(&t, "vdisk_usage", T0 + 4 * S,
			     json_pack("{s:s}", "name", "db7")),
			 0);
	assert_int_equal(say(&t, "vdisk_usage", T0 + 4 * S,
			     json_pack("{s:s,s:s}", "name", "db1", "user_bytes",
				       "many")),
			 -EINVAL);
	assert_int_equal(say(&t, "vdisk_usage", T0 + 5 * S,
			     json_pack("{s:s}", "name", "db1")),
			 0);
	assert_int_equal(model_vdisk(t.model, "db1")->log.written.user, -1);
	say(&t, "vdisk_gone", T0 + 6 * S, json_pack("{s:s}", "name", "db1"));
	assert_null(model_vdisk(t.model, "db1"));
	model_free(t.model);
}

/* The newest are kept, in order; memory stays bounded. */
static void long_strip(void **state)
{
	const int64_t many = 3 * MODEL_STRIP;
	const struct m_vdisk *v;
	struct tape t;

	(void)state;
	tape_open(&t);
	say(&t, "vdisk", T0, vdisk("healthy"));
	for (int64_t i = 0; i <= many; i++)
		say(&t, "vdisk_usage", T0 + i * S, usage(T0, i * 4096));
	v = model_vdisk(t.model, "db1");
	assert_true(v->strips >= MODEL_STRIP && v->strips <= 2 * MODEL_STRIP);
	assert_int_equal(v->strip[v->strips - 1].t_us, T0 + many * S);
	for (size_t i = 1; i < v->strips; i++)
		assert_int_equal(v->strip[i].t_us, v->strip[i - 1].t_us + S);
	model_free(t.model);
}

/* ---- a point ---------------------------------------------------------------
 */

static json_t *plan(void)
{
	return json_pack(
		"{s:[{s:s,s:s,s:{s:s}}],s:[{s:s,s:i,s:f},{s:s,s:i,s:f}]}",
		"series", "name", "RAID-6", "vdisk", "db1", "workload", "name",
		"w", "phases", "kind", "point", "series", 0, "percent", 50.0,
		"kind", "point", "series", 0, "percent", 100.0);
}

static json_t *sample(int phase, int64_t from_us, bool warm)
{
	return json_pack("{s:s,s:i,s:i,s:I,s:I,s:b,s:{s:I,s:I}}", "run", "r",
			 "phase", phase, "series", 0, "from_us",
			 (json_int_t)from_us, "len_us", (json_int_t)S, "warm",
			 warm, "write", "ops", (json_int_t)1000, "bytes",
			 (json_int_t)4096000);
}

/* A second of warm-up, three that count; vdisk_usage half a second later. */
static void point(struct tape *t, int phase, int64_t begun, int64_t user)
{
	say(t, "phase", begun,
	    json_pack("{s:s,s:i,s:s,s:i,s:i,s:f,s:I,s:I}", "run", "r", "phase",
		      phase, "kind", "point", "series", 0, "point", phase,
		      "percent", phase ? 100.0 : 50.0, "warmup_us",
		      (json_int_t)S, "length_us", (json_int_t)(3 * S)));
	for (int i = 0; i < 4; i++) {
		say(t, "sample", begun + (i + 1) * S,
		    sample(phase, i * S, i == 0));
		say(t, "vdisk_usage", begun + (i + 1) * S + S / 2,
		    usage(T0, user + (i + 1) * 8 * MIB));
	}
	say(t, "phase_end", begun + 5 * S,
	    json_pack("{s:s,s:i,s:s}", "run", "r", "phase", phase, "status",
		      "done"));
}

static void says(const struct model *m)
{
	const struct m_run *run = model_run(m);
	const struct m_series *se = &run->series[0];
	struct m_written sum;
	json_t *j, *of;
	char *text, line[160];

	assert_string_equal(series_layout_text(se, line, sizeof(line)),
			    "RAID-6 4+2, log, lz4");
	series_written(se, &sum);
	assert_string_equal(written_text(&sum, line, sizeof(line)),
			    "write amplification 2.62: log 1.50, stripes 0.75, "
			    "cleaning 0.25, checkpoints 0.12; compression "
			    "2.00:1");
	assert_int_equal(analysis_run_text(run, 1000, &text), 0);
	assert_non_null(strstr(text, "RAID-6 4+2, log, lz4\n"));
	assert_non_null(strstr(text, "bytes to drives for a byte written\n"));
	assert_non_null(strstr(text, "     mean     2.62     1.50     0.75"));
	assert_non_null(strstr(text, "d its vDisk was degraded"));
	free(text);
	j = analysis_run_json(run, 1000);
	of = json_array_get(json_object_get(j, "series"), 0);
	assert_string_equal(json_string_value(json_object_get(of, "layout")),
			    "log");
	of = json_array_get(json_object_get(of, "points"), 0);
	assert_true(json_real_value(json_object_get(of, "compression_ratio")) ==
		    2);
	of = json_object_get(of, "write_amplification");
	assert_true(json_real_value(json_object_get(of, "clean")) == .25);
	json_decref(j);
}

static void while_measured(void **state)
{
	const struct m_point *p;
	struct tape t;

	(void)state;
	tape_open(&t);
	say(&t, "vdisk", T0, vdisk("healthy"));
	say(&t, "vdisk_usage", T0 - S / 2, usage(T0, 0));
	say(&t, "run", T0, json_pack("{s:s,s:o}", "run", "r", "plan", plan()));
	point(&t, 0, T0, 0);
	/* between points it counts for none */
	say(&t, "vdisk_usage", T0 + 6 * S, usage(T0, GIB));
	say(&t, "vdisk", T0 + 6 * S, vdisk("degraded"));
	point(&t, 1, T0 + 10 * S, GIB);
	p = model_run(t.model)->series[0].point;
	/* two whole intervals and, of the first, the half behind the warm-up;
	 * what came after the last sample and before the end counts, too */
	assert_true(fabs(p[0].written_s - 3) < 1.01);
	assert_true(p[0].written.user >= (int64_t)(20 * MIB) &&
		    p[0].written.user <= (int64_t)(28 * MIB));
	assert_false(p[0].degraded);
	assert_true(p[1].degraded && !p[1].rebuilding);
	says(t.model);
	model_free(t.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures),
		cmocka_unit_test(long_strip),
		cmocka_unit_test(while_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
