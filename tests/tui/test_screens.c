/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Screens as golden text, at 80x24 and 200x60, from the made-up session at
 * moments that matter, as a terminal shows them (libvterm). Why: the screens
 * are the product, and a change to any of them is to be looked at. To make the
 * files again: UPDATE_GOLDEN=1 test_screens, then look at the difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "synth.h"
#include "tui/screen/screen.h"

/* Shares of the session: a curve growing, all healthy; a drive just pulled. */
#define GROWING 60
#define PULLED 95

/* Making the session up takes a while. */
static int events_of(bool log)
{
	static int events[2];
	struct synth_opts opts;

	synth_defaults(&opts);
	opts.log = log;
	if (!events[log])
		events[log] = synth_events(&opts);
	return events[log];
}

static int part_of(int percent)
{
	return events_of(false) * percent / 100;
}

static void shown(struct fixture *f, int w, int h, const char *name)
{
	char file[80], *text, *dumped;
	size_t colours;

	dumped = fixture_draw(f, w, h, GLYPHS_UTF8);
	text = fixture_shown(&f->canvas, "xterm-256color", false, &colours);
	snprintf(file, sizeof(file), "%s-%dx%d", name, w, h);
	golden_check(file, text);
	assert_in_range(colours, 2, 30);
	/* ncurses and the terminal add and lose nothing */
	assert_string_equal(text, dumped);
	free(text);
	free(dumped);
}

static void both(struct fixture *f, const char *name)
{
	shown(f, 80, 24, name);
	f->ui.x.hi = f->ui.y.hi = 0;
	shown(f, 200, 60, name);
}

static void screen(int percent, enum screen_id id, const char *name)
{
	struct fixture f;

	fixture_open(&f, percent == 100 ? 0 : part_of(percent));
	fixture_library(&f);
	f.ui.screen = id;
	both(&f, name);
	fixture_close(&f);
}

static void test_cluster(void **state)
{
	(void)state;
	screen(GROWING, SCREEN_CLUSTER, "cluster");
}

static void test_vdisks(void **state)
{
	(void)state;
	screen(GROWING, SCREEN_VDISKS, "vdisks");
}

static void test_vdisks_degraded(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(PULLED));
	f.ui.screen = SCREEN_VDISKS;
	f.ui.vdisk.at = 2;
	both(&f, "vdisks-degraded");
	fixture_close(&f);
}

static void test_vdisks_form(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(GROWING));
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_keys(&f, (const int[]) { 'e', K_RIGHT }, 2);
	both(&f, "vdisks-form");
	fixture_close(&f);
}

/* ---- the log layout ------------------------------------------------------ */

static int log_part_of(int percent)
{
	return events_of(true) * percent / 100;
}

static void test_log_vdisks(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open_log(&f, log_part_of(GROWING));
	f.ui.screen = SCREEN_VDISKS;
	f.ui.vdisk.at = 1;
	both(&f, "log-vdisks");
	f.ui.vdisk.at = 2;
	f.ui.x.hi = f.ui.y.hi = 0;
	shown(&f, 120, 36, "log-vdisks-idle");
	fixture_close(&f);
}

struct sought {
	int seen, at;
};

static int on_event(const json_t *event, void *arg)
{
	struct sought *s = arg;
	const json_t *left = json_object_get(event, "left_bytes");

	s->seen++;
	/* of the second second of the rebuild, with its figures */
	if (left && json_number_value(json_object_get(event, "progress")) > 0.4)
		s->at = s->at ? s->at : s->seen + 2;
	return 0;
}

static int rebuilding_events(void)
{
	struct synth_opts opts;
	struct sought s = { 0 };

	synth_defaults(&opts);
	opts.log = true;
	assert_int_equal(synth_session(&opts, on_event, &s), 0);
	return s.at;
}

/* A rebuild is under way: progress, what it writes, the span it lasts. */
static void test_log_rebuilding(void **state)
{
	struct fixture f;
	struct m_vdisk *v;

	(void)state;
	fixture_open_log(&f, 0);
	v = model_vdisk(f.model, "db3");
	assert_int_equal(v->spans, 2);
	assert_string_equal(v->span[1].state, "rebuilding");
	assert_int_equal(v->span[1].to_us - v->span[1].from_us, 3000000);
	f.ui.screen = SCREEN_VDISKS;
	f.ui.vdisk.at = 2;
	shown(&f, 120, 36, "log-vdisks-rebuilt");
	fixture_close(&f);
	fixture_open_log(&f, rebuilding_events());
	assert_string_equal(model_vdisk(f.model, "db3")->state, "rebuilding");
	f.ui.screen = SCREEN_VDISKS;
	f.ui.vdisk.at = 2;
	both(&f, "log-vdisks-rebuilding");
	fixture_close(&f);
}

static void test_log_lost(void **state)
{
	struct fixture f;
	struct m_vdisk *v;
	int64_t was;

	(void)state;
	fixture_open_log(&f, log_part_of(GROWING));
	v = model_vdisk(f.model, "db2");
	was = v->log.blocks_lost;
	v->log.blocks_lost = 3;
	v->log.compliance = 0.63;
	f.ui.screen = SCREEN_VDISKS;
	f.ui.vdisk.at = 1;
	shown(&f, 80, 24, "log-vdisks-lost");
	v->log.blocks_lost = was;
	v->log.compliance = 1;
	fixture_close(&f);
}

static void test_log_form(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open_log(&f, log_part_of(GROWING));
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_key(&f, 'n');
	shown(&f, 80, 24, "log-vdisks-new");
	fixture_key(&f, K_ESC);
	fixture_keys(&f, (const int[]) { 'e', K_RIGHT, K_RIGHT }, 3);
	both(&f, "log-vdisks-form");
	fixture_close(&f);
}

/* Figures over time: where there is room, or by a key. */
static void test_log_run(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open_log(&f, log_part_of(GROWING));
	f.ui.screen = SCREEN_RUN;
	both(&f, "log-run");
	fixture_key(&f, 'v');
	both(&f, "log-run-figures");
	f.ui.x.hi = f.ui.y.hi = 0;
	shown(&f, 120, 36, "log-run-figures");
	fixture_close(&f);
}

static void test_workloads(void **state)
{
	(void)state;
	screen(GROWING, SCREEN_WORKLOADS, "workloads");
}

static void test_run(void **state)
{
	(void)state;
	screen(GROWING, SCREEN_RUN, "run");
}

/* A search counts nothing, yet its level is seen. */
static void test_run_search(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 38);
	assert_string_equal(model_run(f.model)->phase.kind, "max");
	f.ui.screen = SCREEN_RUN;
	both(&f, "run-search");
	fixture_close(&f);
}

static void test_run_fault(void **state)
{
	(void)state;
	screen(PULLED, SCREEN_RUN, "run-fault");
}

static void test_run_over(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 0);
	f.ui.screen = SCREEN_RUN;
	f.ui.marks = true;
	f.ui.scale = SCALE_LOG;
	both(&f, "run-over-log-marks");
	fixture_close(&f);
}

static void test_compare(void **state)
{
	(void)state;
	screen(100, SCREEN_COMPARE, "compare");
}

static struct model *model_of(uint64_t seed)
{
	struct synth_opts opts;
	struct model *m;

	synth_defaults(&opts);
	opts.seed = seed;
	opts.series = 1;
	opts.fault = false;
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(synth_model(&opts, m), 0);
	return m;
}

/* A series of this session and one of another: verdicts in words, and in what
 * the two differ. */
static void test_compare_two(void **state)
{
	struct model *a = model_of(1), *b = model_of(2);
	struct m_series *other = &b->run[0].series[0];
	struct curve *curve;
	struct fixture f;

	(void)state;
	other->stripe_unit_bytes = 131072;
	other->link.rate_bytes_s = 1250e6;
	fixture_open(&f, 1);
	f.scene.model = a;
	f.scene.now_us = a->t_us;
	f.scene.overlay = f.overlay;
	f.scene.overlays = 1;
	curve = &f.overlay[0].curve;
	assert_int_equal(curve_of_series(other, curve), 0);
	for (size_t i = 0; i < curve->points; i++)
		curve->point[i].latency_us *= i > 4 ? 0.8 : 1;
	curve->facts = facts_of_series(b, &b->run[0], other);
	f.ui.screen = SCREEN_COMPARE;
	both(&f, "compare-two");
	fixture_key(&f, 'i');
	both(&f, "compare-two-intervals");
	curve_fini(curve);
	fixture_close(&f);
	model_free(a);
	model_free(b);
}

static void test_sessions(void **state)
{
	(void)state;
	screen(GROWING, SCREEN_SESSIONS, "sessions");
}

static void test_log(void **state)
{
	(void)state;
	screen(PULLED, SCREEN_LOG, "log");
}

static void test_welcome(void **state)
{
	struct fixture f;
	struct model *empty;

	(void)state;
	fixture_open(&f, 1);
	assert_int_equal(model_new(&empty), 0);
	f.scene.model = empty;
	f.status = (struct deck_status) { .link = LINK_NONE };
	both(&f, "welcome");
	model_free(empty);
	fixture_close(&f);
}

static void test_replay(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(PULLED));
	f.ui.screen = SCREEN_RUN;
	f.status = (struct deck_status) {
		.link = LINK_REPLAY,
		.playing = true,
		.speed = 8,
		.from_us = f.model->first_t_us,
		.to_us = f.model->first_t_us + 290000000,
		.at_us = f.model->t_us,
	};
	both(&f, "replay");
	fixture_close(&f);
}

static void test_guide(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(GROWING));
	f.ui.guide = true;
	both(&f, "guide");
	assert_int_equal(f.ui.screen, SCREEN_RUN);
	fixture_close(&f);
}

static void test_keys_help(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(GROWING));
	f.ui.screen = SCREEN_RUN;
	fixture_key(&f, '?');
	both(&f, "help-keys");
	fixture_close(&f);
}

static void test_prompt_view(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(GROWING));
	f.ui.screen = SCREEN_RUN;
	f.ui.prompt = (struct prompt_view) { .open = true,
					     .label = ":",
					     .line = "vdisk s",
					     .cursor = 7,
					     .lists = 2 };
	f.ui.prompt.list[0] = strdup("set");
	f.ui.prompt.list[1] = strdup("show");
	both(&f, "prompt");
	fixture_close(&f);
}

/* ---- other terminals ----------------------------------------------------- */

/* most: colours it may show */
static void variant(const char *term, bool plain, enum glyphs glyphs,
		    size_t most, const char *name)
{
	struct fixture f;
	char *text, *dumped;
	size_t colours;

	fixture_open(&f, part_of(GROWING));
	f.ui.screen = SCREEN_RUN;
	dumped = fixture_draw(&f, 80, 24, glyphs);
	text = fixture_shown(&f.canvas, term, plain, &colours);
	golden_check(name, text);
	assert_in_range(colours, most ? 3 : 0, most);
	assert_string_equal(text, dumped);
	free(text);
	free(dumped);
	fixture_close(&f);
}

static void test_ascii(void **state)
{
	(void)state;
	variant("vt100", false, GLYPHS_ASCII, 0, "run-ascii-80x24");
}

static void test_blocks(void **state)
{
	(void)state;
	variant("linux", false, GLYPHS_BLOCKS, 8, "run-blocks-80x24");
}

static void test_mono(void **state)
{
	(void)state;
	variant("xterm-256color", true, GLYPHS_UTF8, 0, "run-mono-80x24");
}

/* Every screen at every size: no crash, and all within the canvas. */
static void test_sizes(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, part_of(PULLED));
	fixture_library(&f);
	for (int w = 20; w < 240; w += 37)
		for (int h = 5; h < 80; h += 11)
			for (unsigned s = 0; s < SCREENS; s++) {
				f.ui.screen = (enum screen_id)s;
				f.ui.form.open = s == SCREEN_VDISKS && h % 2;
				free(fixture_draw(&f, w, h, GLYPHS_UTF8));
			}
	fixture_close(&f);
}

/* Every moment of the session draws. */
static void test_moments(void **state)
{
	(void)state;
	for (int part = 1; part < 100; part += 14) {
		struct fixture f;

		fixture_open(&f, part_of(part));
		f.ui.guide = true;
		for (unsigned s = 0; s < SCREENS; s++) {
			f.ui.screen = (enum screen_id)s;
			f.ui.chosen = true;
			free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
			free(fixture_draw(&f, 200, 60, GLYPHS_UTF8));
		}
		fixture_close(&f);
	}
}

/* Bytes of a frame: whole ones, and ones in which a second went by. */
static void test_bytes(void **state)
{
	struct term_opts opts = {
		.headless = true, .w = 200, .h = 60, .name = "xterm-256color"
	};
	struct fixture f;
	struct term *term;
	struct err err;
	size_t len, whole;
	char *bytes;

	(void)state;
	fixture_open(&f, part_of(GROWING));
	f.ui.screen = SCREEN_RUN;
	assert_int_equal(term_open(&opts, &term, &err), 0);
	free(fixture_draw(&f, 200, 60, GLYPHS_UTF8));
	assert_true(term_draw(term, &f.canvas));
	free(term_take(term, &len));
	whole = term_frame_bytes(term);
	assert_in_range(whole, 2000, 40000);
	/* nothing changed: a handful of bytes at most */
	free(fixture_draw(&f, 200, 60, GLYPHS_UTF8));
	assert_true(term_draw(term, &f.canvas));
	bytes = term_take(term, &len);
	assert_in_range(len, 0, 16);
	free(bytes);
	/* a second on, no new sample: the clocks */
	f.scene.now_us += 1000000;
	free(fixture_draw(&f, 200, 60, GLYPHS_UTF8));
	assert_true(term_draw(term, &f.canvas));
	free(term_take(term, &len));
	assert_in_range(len, 1, 3000);
	term_close(term);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cluster),
		cmocka_unit_test(test_vdisks),
		cmocka_unit_test(test_vdisks_degraded),
		cmocka_unit_test(test_vdisks_form),
		cmocka_unit_test(test_log_vdisks),
		cmocka_unit_test(test_log_rebuilding),
		cmocka_unit_test(test_log_lost),
		cmocka_unit_test(test_log_form),
		cmocka_unit_test(test_log_run),
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_run_search),
		cmocka_unit_test(test_run_fault),
		cmocka_unit_test(test_run_over),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_compare_two),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_welcome),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_guide),
		cmocka_unit_test(test_keys_help),
		cmocka_unit_test(test_prompt_view),
		cmocka_unit_test(test_ascii),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_mono),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
