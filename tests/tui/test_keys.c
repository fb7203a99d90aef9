/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keys become command lines, and only command lines; the view's own commands;
 * the policy editor.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/command.h"
#include "fixture.h"
#include "tui/keys.h"
#include "tui/page.h"
#include "tui/screen/form.h"
#include "tui/screen/screen.h"

static void test_table_is_sound(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 0);
	for (const struct key_row *r = key_table; r->key; r++) {
		bool known = !r->screen;

		for (unsigned i = 0; i < SCREENS; i++)
			known |= r->screen &&
				 !strcmp(screen_of((enum screen_id)i)->name,
					 r->screen);
		assert_true(known);
		assert_true((r->shown == NULL) == (r->label == NULL));
		assert_ptr_equal(key_find(r->key, r->screen ? r->screen : "log",
					  r->when ? r->when : KEY_LIVE),
				 r);
	}
	fixture_close(&f);
}

static void test_quoting(void **state)
{
	static const struct {
		const char *selected, *line;
	} row[] = {
		{ "db1", "open db1" },
		{ "/a b/c", "open '/a b/c'" },
		{ "it's", "open 'it'\\''s'" },
	};
	const struct key_row key = { .line = "open %s" };
	char line[UI_LINE];

	(void)state;
	for (size_t i = 0; i < array_len(row); i++) {
		assert_true(key_line(&key, row[i].selected, line));
		assert_string_equal(line, row[i].line);
	}
	assert_false(key_line(&key, NULL, line));
	assert_false(key_line(&key, "", line));
}

static void test_lines(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	fixture_key(&f, '4');
	assert_int_equal(f.ui.screen, SCREEN_RUN);
	assert_true(f.ui.chosen);
	assert_string_equal(fixture_key(&f, 's'), "");
	assert_true(f.ui.ask);
	assert_string_equal(fixture_key(&f, 'y'), "stop");
	fixture_key(&f, 'l');
	assert_int_equal(f.ui.scale, SCALE_LOG);
	fixture_key(&f, 'r');
	assert_true(f.ui.response);
	assert_string_equal(fixture_key(&f, ':'), ":");
	fixture_key(&f, '2');
	assert_int_equal(f.ui.screen, SCREEN_VDISKS);
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_key(&f, K_DOWN);
	assert_int_equal(f.ui.vdisk.at, 1);
	fixture_keys(&f, (const int[]) { K_DOWN, K_DOWN, K_DOWN, K_UP }, 4);
	assert_int_equal(f.ui.vdisk.at, 1);
	fixture_close(&f);
}

/* Nothing that cannot be undone happens by one key. */
static void test_ask(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	assert_string_equal(fixture_key(&f, 'd'), "");
	assert_true(f.ui.ask);
	assert_string_equal(fixture_key(&f, 'n'), "");
	assert_false(f.ui.ask);
	fixture_key(&f, 'd');
	assert_string_equal(fixture_key(&f, 'y'), "vdisk delete db1");
	fixture_key(&f, 'q');
	assert_true(f.ui.ask);
	assert_string_equal(fixture_key(&f, 'x'), "");
	assert_string_equal(fixture_key(&f, 'y'), "quit");
	fixture_close(&f);
}

static void test_replay_keys(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	f.ui.screen = SCREEN_RUN;
	f.status.link = LINK_REPLAY;
	assert_string_equal(fixture_key(&f, ' '), "play");
	assert_string_equal(fixture_key(&f, K_RIGHT), "seek +10");
	f.status.speed = 8;
	assert_string_equal(fixture_key(&f, '>'), "speed 16");
	f.status.speed = 0.25;
	assert_string_equal(fixture_key(&f, '<'), "speed 0.25");
	assert_string_equal(fixture_key(&f, 's'), "");
	assert_false(f.ui.ask);
	fixture_close(&f);
}

static void test_lost(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	assert_string_equal(fixture_key(&f, 'R'), "");
	f.status.link = LINK_LOST;
	assert_string_equal(fixture_key(&f, 'R'), "resume");
	fixture_close(&f);
}

static void test_form(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_key(&f, 'e');
	assert_true(f.ui.form.open);
	/* RAID-1 to 5, then 6 */
	fixture_keys(&f, (const int[]) { K_RIGHT, K_RIGHT }, 2);
	assert_int_equal(f.ui.form.raid, 6);
	assert_int_equal(f.ui.form.ftt, 2);
	fixture_key(&f, K_ENTER);
	assert_true(f.ui.ask);
	assert_string_equal(fixture_key(&f, 'y'),
			    "vdisk set db1 layout=inplace raid=6 ftt=2 "
			    "stripe_unit=64K");
	fixture_key(&f, 'n');
	assert_true(f.ui.form.fresh);
	assert_string_equal(f.ui.form.name, "db4");
	fixture_keys(&f, (const int[]) { K_BACKSPACE, 'x', ' ' }, 3);
	assert_string_equal(f.ui.form.name, "dbx");
	/* a named policy brings its fields; changing one leaves it */
	fixture_keys(&f, (const int[]) { K_DOWN, K_RIGHT }, 2);
	assert_string_not_equal(f.ui.form.policy, "");
	fixture_key(&f, K_ENTER);
	assert_non_null(strstr(f.ui.ask_line, "policy="));
	fixture_keys(&f, (const int[]) { 'n', 'e', K_RIGHT, K_ESC }, 4);
	assert_false(f.ui.form.open);
	assert_string_equal(f.ui.form.policy, "");
	fixture_close(&f);
}

/* The log layout has compression in the stripe's place; a vDisk keeps its
 * layout, a new one has the choice. */
static void test_form_log(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open_log(&f, 200);
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_keys(
		&f, (const int[]) { 'e', K_DOWN, K_DOWN, K_RIGHT, K_ENTER }, 5);
	assert_string_equal(fixture_key(&f, 'y'),
			    "vdisk set db1 layout=log raid=1 ftt=1 "
			    "compression=zstd");
	fixture_keys(&f, (const int[]) { 'e', K_UP }, 2);
	assert_int_equal(f.ui.form.field, 1); /* policy, not layout */
	fixture_keys(&f, (const int[]) { K_ESC, 'n', K_ENTER }, 3);
	assert_string_equal(fixture_key(&f, 'y'),
			    "vdisk create db4 size=1024M layout=log raid=1 "
			    "ftt=1 compression=lz4");
	fixture_keys(
		&f, (const int[]) { 'n', K_DOWN, K_DOWN, K_RIGHT, K_ENTER }, 5);
	assert_string_equal(fixture_key(&f, 'y'),
			    "vdisk create db4 size=1024M layout=inplace "
			    "raid=1 ftt=1 stripe_unit=64K");
	fixture_close(&f);
}

/* Step by step: a new note holds the run once, Enter lets it go on. */
static void test_guide_steps(void **state)
{
	struct fixture f;
	struct model *m;

	(void)state;
	fixture_open(&f, 0);
	m = f.model;
	assert_false(ui_guide_holds(&f.ui, &f.scene));
	f.ui.note_t_us = 0;
	fixture_key(&f, 'G');
	assert_true(f.ui.guide && f.ui.guide_step);
	/* what was said before is not waited for */
	assert_false(ui_guide_holds(&f.ui, &f.scene));
	assert_true(m->lines > 0);
	f.ui.note_t_us = 1;
	assert_true(ui_guide_holds(&f.ui, &f.scene));
	assert_false(ui_guide_holds(&f.ui, &f.scene));
	fixture_key(&f, 'G');
	f.ui.note_t_us = 1;
	assert_false(ui_guide_holds(&f.ui, &f.scene));
	fixture_close(&f);
}

/* What cannot be placed is refused before it is asked for. */
static void test_form_refuses(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 200);
	f.ui.screen = SCREEN_VDISKS;
	free(fixture_draw(&f, 80, 24, GLYPHS_UTF8));
	fixture_key(&f, 'e');
	fixture_keys(
		&f,
		(const int[]) { K_DOWN, K_RIGHT, K_RIGHT, K_RIGHT, K_ENTER },
		5);
	assert_int_equal(f.ui.form.ftt, 3);
	assert_false(f.ui.ask);
	assert_non_null(strstr(f.ui.message, "7 fault domains"));
	fixture_close(&f);
}

static void test_costs(void **state)
{
	static const struct {
		int raid, ftt, domains;
		double space, writes;
		bool refused;
	} row[] = {
		{ 0, 0, 1, 1, 1, false },   { 1, 1, 3, 2, 2, false },
		{ 1, 2, 5, 3, 3, false },   { 1, 3, 7, 4, 4, false },
		{ 5, 1, 3, 1.5, 3, false }, { 5, 1, 6, 1.25, 4, false },
		{ 6, 2, 6, 1.5, 6, false }, { 1, 1, 2, 2, 2, true },
		{ 6, 2, 5, 1.5, 6, true },
	};

	(void)state;
	for (size_t i = 0; i < array_len(row); i++) {
		struct policy_cost c;

		policy_cost("inplace", row[i].raid, row[i].ftt,
			    (size_t)row[i].domains, &c);
		assert_float_equal(c.space, row[i].space, 1e-9);
		assert_float_equal(c.write_ios, row[i].writes, 1e-9);
		assert_int_equal(c.refused != NULL, row[i].refused);
	}
}

static void test_usage(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 10);
	assert_int_equal(ui_command(&f.ui, &f.scene, "axis sideways"), -EINVAL);
	assert_non_null(
		strstr(f.ui.message, "usage: axis linear|log|auto|toggle"));
	assert_int_equal(ui_command(&f.ui, &f.scene, "vdisk list"), -ENOENT);
	assert_int_equal(ui_command(&f.ui, &f.scene, ""), -ENOENT);
	assert_int_equal(ui_command(&f.ui, &f.scene, "screen"), -EINVAL);
	fixture_close(&f);
}

static void test_page_reader(void **state)
{
	static const char mdoc[] =
		".Dd Nov 30, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n"
		".Nd does things\n.Sh OPTIONS\nWords that fill\nlines.\n"
		".Bl -tag -width Ds\n.It Fl a Ar file , Fl Fl all\nAll of "
		"it.\n.El\n.Pp\nSee\n.Xr iodeck 1 .\n"
		".Bd -literal\nkeep   this\n.Ed\n";
	char *text = page_render(mdoc, 60), *plain, *out;

	(void)state;
	assert_non_null(text);
	plain = out = text;
	for (char *p = text; *p; p++)
		if (*p != PAGE_PLAIN && *p != PAGE_BOLD && *p != PAGE_UNDER)
			*out++ = *p;
	*out = '\0';
	assert_string_equal(plain,
			    "NAME\n    x \xe2\x80\x94 does things\n\nOPTIONS\n"
			    "    Words that fill lines.\n\n"
			    "    -a file, --all\n            All of it.\n\n"
			    "    See iodeck(1).\n\n        keep   this\n");
	free(text);
}

/* The manual names each command of the view. */
static void test_commands_in_manual(void **state)
{
	const struct page_row *page = page_find("iodeck(1)");
	char item[80];

	(void)state;
	if (!page)
		skip();
	for (const struct ui_command_row *r = ui_command_table; r->name; r++) {
		snprintf(item, sizeof(item), "\n.It Ic %s", r->name);
		if (!strstr(page->source, item))
			fail_msg("iodeck(1) does not name %s", r->name);
	}
}

/* Every page there is renders at any width, and no screen's help is missing
 * while its page is there. */
static void test_pages(void **state)
{
	(void)state;
	for (const struct page_row *p = page_table; p->name; p++)
		for (int w = 10; w < 130; w += 17) {
			char *text = page_render(p->source, w);

			assert_non_null(text);
			assert_true(strlen(text) > 100);
			free(text);
		}
	assert_null(page_find("no-such-page"));
	if (page_table[0].name)
		assert_ptr_equal(page_find(page_table[0].name), &page_table[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_replay_keys),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_form_log),
		cmocka_unit_test(test_form_refuses),
		cmocka_unit_test(test_guide_steps),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_page_reader),
		cmocka_unit_test(test_commands_in_manual),
		cmocka_unit_test(test_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
