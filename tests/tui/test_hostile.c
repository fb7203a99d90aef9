/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sessions made to hurt, on every screen: names of escape sequences, of three
 * hundred characters, wide and combining ones; hundreds of series, vDisks,
 * domains and drives; numbers at their limits. Nothing but what ncurses makes
 * may reach the terminal, and lists scroll to their ends.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/event.h"
#include "fixture.h"
#include "tui/screen/screen.h"

static const char *const evil[] = {
	"\033]0;owned\a\033[2J\033[31m",
	"\x9b"
	"2J\x9d"
	"0;x\x9c",
	"\xc2\x9b"
	"31m\xc2\x9d",
	"a\nb\rc\td\be\x7f",
	"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87",
	"e\xcc\x81\xcc\x81\xcc\x81\xe2\x80\xae\xe2\x80\x8b\xef\xbb\xbf",
	"%s%n%s%n",
	"' ; quit # \"",
	"",
};

static const char *name_of(size_t i)
{
	static char name[400];

	if (i % 10 == 9) {
		int n = snprintf(name, sizeof(name), "%zu", i);

		memset(name + n, 'x', 300);
		name[n + 300] = '\0';
	} else {
		snprintf(name, sizeof(name), "%s%zu", evil[i % 9], i);
	}
	return name;
}

/* As it would come from a file: names as JSON escapes where not UTF-8. */
static json_t *evil_json(size_t i)
{
	char clean[512];
	json_t *s = json_string(name_of(i));

	if (s)
		return s;
	event_text(clean, sizeof(clean), name_of(i));
	return json_string(clean);
}

struct made {
	struct model *model;
	struct event_stamp stamp;
	int64_t t_us;
};

static void emit(struct made *m, const char *e, json_t *body)
{
	struct err err;

	assert_non_null(body);
	assert_int_equal(event_stamp(&m->stamp, e, m->t_us += 1000, body), 0);
	if (model_apply(m->model, body, &err))
		fail_msg("%s: %s", e, err.text);
	json_decref(body);
}

static void emit_cluster(struct made *m, size_t domains, size_t drives)
{
	json_t *list = json_array();

	for (size_t d = 0; d < domains; d++) {
		json_t *of = json_array();

		for (size_t k = 0; k < drives; k++)
			json_array_append_new(
				of,
				json_pack("{s:o,s:o,s:s,s:o,s:I,s:I,s:o}",
					  "name", evil_json(d * drives + k),
					  "path", evil_json(k), "kind", "file",
					  "state",
					  k % 7 ? json_string("ok")
						: evil_json(k),
					  "size_bytes", (json_int_t)INT64_MAX,
					  "free_bytes", (json_int_t)INT64_MAX,
					  "reason", evil_json(k + 1)));
		json_array_append_new(list, json_pack("{s:o,s:n,s:o}", "name",
						      evil_json(d), "link",
						      "drives", of));
	}
	emit(m, "cluster",
	     json_pack("{s:o,s:o,s:b,s:o}", "name", evil_json(0), "title",
		       evil_json(1), "virtual", 1, "domains", list));
}

static void emit_vdisks(struct made *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit(m, "vdisk",
		     json_pack("{s:o,s:s,s:o,s:i,s:i,s:i,s:i,s:I,s:o,s:I,s:I,"
			       "s:o,s:i,s:[],s:f,s:f}",
			       "name", evil_json(i), "uuid", "u", "policy",
			       evil_json(i + 3), "raid", 5, "ftt", 1, "k", 4,
			       "m", 1, "stripe_unit_bytes", (json_int_t)1,
			       "layout", evil_json(i), "size_bytes",
			       (json_int_t)INT64_MAX, "epoch", (json_int_t)1,
			       "state", evil_json(i), "failures_left", 1,
			       "members", "progress", 1e18, "rate_bytes_s",
			       1e18));
}

static void emit_run(struct made *m, size_t series)
{
	json_t *list = json_array(), *phases = json_array();

	for (size_t i = 0; i < series; i++) {
		json_array_append_new(
			list,
			json_pack("{s:o,s:o,s:o,s:{s:o,s:o,s:o}}", "name",
				  evil_json(i), "vdisk", evil_json(i), "setup",
				  evil_json(i), "workload", "name",
				  evil_json(i), "title", evil_json(i),
				  "read_share", evil_json(i)));
		json_array_append_new(
			phases, json_pack("{s:s,s:i,s:f}", "kind", "point",
					  "series", (int)i, "percent", 1e9));
	}
	emit(m, "run",
	     json_pack("{s:s,s:o,s:{s:o,s:o,s:o}}", "run", "r", "title",
		       evil_json(3), "plan", "seed", evil_json(2), "series",
		       list, "phases", phases));
	for (size_t i = 0; i < series; i++)
		emit(m, "phase",
		     json_pack("{s:s,s:i,s:s,s:i,s:i,s:f,s:f,s:I,s:I}", "run",
			       "r", "phase", (int)i, "kind",
			       i % 3 ? "point" : "max", "series", (int)i,
			       "point", 0, "percent", 1e17, "asked_iops", 1e17,
			       "warmup_us", (json_int_t)0, "length_us",
			       (json_int_t)1));
}

static void made_open(struct made *m, size_t many)
{
	memset(m, 0, sizeof(*m));
	m->t_us = 1772440800000000;
	assert_int_equal(model_new(&m->model), 0);
	snprintf(m->stamp.a, sizeof(m->stamp.a), "evil");
	m->stamp.i = 1;
	emit(m, "open",
	     json_pack("{s:i,s:o,s:o,s:o,s:o}", "v", 1, "iodeck", evil_json(0),
		       "session", evil_json(1), "title", evil_json(3),
		       "command", evil_json(0)));
	emit(m, "host",
	     json_pack("{s:o,s:o,s:o,s:i,s:I}", "name", evil_json(0), "kernel",
		       evil_json(1), "cpu", evil_json(2), "cores", 1 << 20,
		       "mem_bytes", (json_int_t)1 << 52));
	emit_cluster(m, many < 64 ? many : 64, 24);
	emit_vdisks(m, many);
	emit_run(m, many < 64 ? many : 64);
	for (size_t i = 0; i < 40; i++) {
		emit(m, "note", json_pack("{s:o}", "text", evil_json(i)));
		emit(m, "log",
		     json_pack("{s:o,s:o}", "level", evil_json(i), "text",
			       evil_json(i)));
	}
}

static void check_clean(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if ((*c < 0x20 && *c != '\n') || *c == 0x7f ||
		    (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			fail_msg("a control character 0x%02x is drawn", *c);
}

/* What the terminal shows is what was drawn: no cell was moved by a width or a
 * sequence that slipped through. */
static void check_screen(struct fixture *f, int w, int h)
{
	char *drawn = fixture_draw(f, w, h, GLYPHS_UTF8), *shown;
	size_t colours;

	check_clean(drawn);
	shown = fixture_shown(&f->canvas, "xterm-256color", false, &colours);
	for (char *a = shown, *b = drawn; *a || *b;) {
		size_t n = strcspn(a, "\n"), k = strcspn(b, "\n");

		if (n != k || memcmp(a, b, n))
			fail_msg("screen %u %dx%d: shown\n%.*s\ndrawn\n%.*s",
				 f->ui.screen, w, h, (int)n, a, (int)k, b);
		a += n + (a[n] != '\0');
		b += k + (b[k] != '\0');
	}
	free(shown);
	free(drawn);
}

static void draw_all(struct made *m, bool replay)
{
	static const int ends[] = { K_END, K_PGUP, K_HOME, K_PGDN };
	struct fixture f;

	fixture_open(&f, 1);
	f.scene.model = m->model;
	f.scene.now_us = m->model->t_us;
	f.status.link = replay ? LINK_REPLAY : LINK_LIVE;
	event_text(f.status.text, sizeof(f.status.text), evil[0]);
	for (unsigned s = 0; s < SCREENS; s++) {
		f.ui.screen = (enum screen_id)s;
		check_screen(&f, 80, 24);
		for (size_t k = 0; k < array_len(ends); k++) {
			fixture_key(&f, ends[k]);
			check_screen(&f, 80, 24);
		}
		check_screen(&f, 200, 60);
		check_screen(&f, 60, 15);
	}
	fixture_close(&f);
}

static void test_names(void **state)
{
	struct made m;

	(void)state;
	made_open(&m, 12);
	draw_all(&m, false);
	draw_all(&m, true);
	model_free(m.model);
}

static void test_many(void **state)
{
	struct made m;

	(void)state;
	made_open(&m, 200);
	assert_int_equal(m.model->domains, 64);
	assert_int_equal(m.model->domain[63].drives, 24);
	draw_all(&m, true);
	model_free(m.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_many),
	};

	setlocale(LC_CTYPE, "C.UTF-8"); /* as the console does: widths */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
