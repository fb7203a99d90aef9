/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Replay of a made-up session under a clock turned by hand: whatever way leads
 * to a moment, the model is what the events up to it make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/analysis/analysis.h"
#include "backend/deck_impl.h"
#include "backend/paths.h"
#include "synth.h"

static char folder[] = "/tmp/deck-replay.XXXXXX";
static char path[64];
static int64_t now_us = 1000000;
static struct synth_opts synth;

static int64_t clock_by_hand(void)
{
	return now_us;
}

/* Lets `seconds` of the wall pass in frames of 50 ms. */
static void pass(struct deck *deck, double seconds)
{
	int64_t until = now_us + (int64_t)(seconds * 1e6);

	while (now_us < until) {
		now_us += 50000;
		deck_step(deck);
	}
	while (deck_timeout_ms(deck) == 0)
		deck_step(deck);
}

static void run(struct deck *deck, const char *line)
{
	struct outcome o;

	deck_do(deck, line, &o);
	if (o.status)
		fail_msg("%s: %s", line, o.text);
	outcome_free(&o);
}

static struct deck *open_replay(void)
{
	struct deck_opts opts = { 0 };
	struct deck *deck;
	char line[256];

	assert_int_equal(deck_open(&opts, &deck, NULL), 0);
	snprintf(line, sizeof(line), "open %s", path);
	run(deck, line);
	return deck;
}

struct upto {
	struct model *model;
	int64_t t_us;
	unsigned events;
};

static int upto_one(const json_t *event, void *arg)
{
	struct upto *u = arg;

	if (json_integer_value(json_object_get(event, "t")) > u->t_us)
		return 1;
	model_apply(u->model, event, NULL);
	u->events++;
	return 0;
}

/* Its figures, over time and as limits, and when it was not healthy. */
static void assert_vdisks(const struct model *m, const struct model *live)
{
	assert_int_equal(m->vdisks, live->vdisks);
	for (size_t i = 0; i < m->vdisks; i++) {
		const struct m_vdisk *v = &m->vdisk[i], *w = &live->vdisk[i];

		assert_string_equal(v->state, w->state);
		assert_int_equal(v->strips, w->strips);
		assert_int_equal(v->spans, w->spans);
		assert_memory_equal(&v->log.written, &w->log.written,
				    sizeof(v->log.written));
		assert_memory_equal(v->span, w->span, sizeof(v->span));
	}
}

static void assert_limits(const struct model *m, const struct model *live)
{
	const struct m_run *run = model_run(m), *was = model_run(live);

	for (size_t i = 0; i < run->series_count; i++) {
		struct series_limit a, b;

		series_limit(m, &run->series[i], &a);
		series_limit(live, &was->series[i], &b);
		assert_memory_equal(&a.iops, &b.iops, sizeof(a.iops));
		assert_memory_equal(&a.amp, &b.amp, sizeof(a.amp));
	}
}

/* The model is what a fold of the events up to its moment gives. */
static void assert_at(const struct deck *deck, double seconds)
{
	const struct model *m = deck_model(deck);
	struct upto u = { .t_us = synth.begin_t_us + (int64_t)(seconds * 1e6) };
	struct deck_status s;

	assert_int_equal(model_new(&u.model), 0);
	synth_session(&synth, upto_one, &u);
	assert_int_equal(m->revision, u.model->revision);
	assert_int_equal(m->t_us, u.model->t_us);
	assert_int_equal(m->runs, u.model->runs);
	assert_int_equal(m->strips, u.model->strips);
	assert_int_equal(m->lines, u.model->lines);
	assert_vdisks(m, u.model);
	if (m->runs) {
		assert_int_equal(model_run(m)->phase.phase,
				 model_run(u.model)->phase.phase);
		assert_limits(m, u.model);
	}
	deck_status(deck, &s);
	assert_int_equal(s.link, LINK_REPLAY);
	assert_int_equal(s.at_us, u.t_us);
	model_free(u.model);
}

static void test_play(void **state)
{
	struct deck *deck = open_replay();
	struct deck_status s;

	(void)state;
	deck_step(deck);
	assert_at(deck, 0);
	pass(deck, 5); /* held: nothing moves */
	assert_at(deck, 0);
	run(deck, "play");
	pass(deck, 10);
	assert_at(deck, 10);
	run(deck, "speed 8");
	pass(deck, 5);
	assert_at(deck, 50);
	run(deck, "speed 0.25");
	pass(deck, 4);
	assert_at(deck, 51);
	run(deck, "pause");
	pass(deck, 30);
	assert_at(deck, 51);
	run(deck, "play");
	run(deck, "speed 64");
	pass(deck, 60);
	deck_status(deck, &s);
	assert_false(s.playing);
	assert_int_equal(s.at_us, s.to_us);
	assert_true(deck_model(deck)->closed);
	run(deck, "play"); /* from the start again */
	pass(deck, 1);
	assert_at(deck, 64);
	deck_close(deck);
}

static void test_seek(void **state)
{
	struct deck *deck = open_replay();

	(void)state;
	run(deck, "seek 100");
	pass(deck, 0.05);
	assert_at(deck, 100);
	run(deck, "seek -40");
	pass(deck, 0.05);
	assert_at(deck, 60);
	run(deck, "seek +15");
	pass(deck, 0.05);
	assert_at(deck, 75);
	run(deck, "seek 1m");
	pass(deck, 0.05);
	assert_at(deck, 60);
	run(deck, "seek -1h");
	pass(deck, 0.05);
	assert_at(deck, 0);
	run(deck, "seek end");
	pass(deck, 0.05);
	assert_true(deck_model(deck)->closed);
	deck_close(deck);
}

static void test_step(void **state)
{
	struct deck *deck = open_replay();
	uint64_t before;

	(void)state;
	run(deck, "seek 30");
	pass(deck, 0.05);
	before = deck_model(deck)->revision;
	run(deck, "step");
	pass(deck, 0.05);
	assert_int_equal(deck_model(deck)->revision, before + 1);
	run(deck, "step 20");
	pass(deck, 0.05);
	assert_int_equal(deck_model(deck)->revision, before + 21);
	pass(deck, 1);
	assert_int_equal(deck_model(deck)->revision, before + 21);
	run(deck, "step -5");
	pass(deck, 0.05);
	assert_int_equal(deck_model(deck)->revision, before + 16);
	deck_close(deck);
}

static void test_bad(void **state)
{
	struct deck *deck = open_replay();
	struct outcome o;

	(void)state;
	deck_do(deck, "speed 100", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	deck_do(deck, "seek soon", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	deck_do(deck, "note x", &o);
	assert_int_equal(o.status, 1);
	outcome_free(&o);
	deck_do(deck, "vdisk delete db1", &o);
	assert_int_equal(o.status, 1);
	assert_non_null(strstr(o.text, "replay"));
	outcome_free(&o);
	deck_do(deck, "open /nonexistent", &o);
	assert_int_equal(o.status, 2);
	outcome_free(&o);
	/* what was open stays open */
	run(deck, "seek 20");
	pass(deck, 0.05);
	assert_at(deck, 20);
	deck_close(deck);
}

/* A replay answers what the live cluster would have been asked. */
static void test_lists(void **state)
{
	struct deck *deck = open_replay();
	struct outcome o;

	(void)state;
	run(deck, "seek end");
	pass(deck, 0.05);
	deck_do(deck, "vdisk list", &o);
	assert_int_equal(json_array_size(json_object_get(o.json, "vdisks")), 3);
	outcome_free(&o);
	deck_do(deck, "drive list", &o);
	assert_int_equal(json_array_size(json_object_get(o.json, "drives")),
			 12);
	outcome_free(&o);
	deck_do(deck, "node list", &o);
	assert_int_equal(json_array_size(json_object_get(o.json, "domains")),
			 6);
	outcome_free(&o);
	deck_do(deck, "compare '#RAID-5' '#RAID-6'", &o);
	if (o.status)
		fail_msg("%s", o.text);
	assert_true(json_array_size(json_object_get(o.json, "readings")) >= 6);
	outcome_free(&o);
	deck_close(deck);
}

static void test_show(void **state)
{
	struct deck_opts opts = { 0 };
	struct deck *deck;
	struct outcome o;
	char line[256];

	(void)state;
	assert_int_equal(deck_open(&opts, &deck, NULL), 0);
	snprintf(line, sizeof(line), "show %s", path);
	deck_do(deck, line, &o);
	assert_int_equal(o.status, 0);
	assert_int_equal(json_array_size(json_object_get(o.json, "series")), 3);
	outcome_free(&o);
	snprintf(line, sizeof(line), "show %s run=none", path);
	deck_do(deck, line, &o);
	assert_int_equal(o.status, 1);
	outcome_free(&o);
	snprintf(line, sizeof(line), "compare %s %s", path, path);
	deck_do(deck, line, &o);
	assert_int_equal(o.status, 2);
	assert_non_null(strstr(o.text, "\"RAID-5\""));
	outcome_free(&o);
	deck_close(deck);
}

static int write_one(const json_t *event, void *arg)
{
	return session_append(arg, event, NULL);
}

static int setup(void **state)
{
	struct session_writer *w;

	(void)state;
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/s.jsonl.zst", folder);
	synth_defaults(&synth);
	synth.points = 4;
	synth.log = true;
	if (session_create(path, false, &w, NULL))
		return -1;
	if (synth_session(&synth, write_one, w))
		return -1;
	deck_clock = clock_by_hand;
	return session_close(w, NULL);
}

static int teardown(void **state)
{
	(void)state;
	return path_remove(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_play),  cmocka_unit_test(test_seek),
		cmocka_unit_test(test_step),  cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lists), cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
