/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vterm.h>

#include <cmocka.h>

#include "synth.h"

/* Folding the session takes a while; what only reads a model may share it. */
#define KEPT 6
static struct {
	struct model *model;
	int limit;
	bool log;
} kept[KEPT];

static struct model *model_fold(int limit, bool log)
{
	struct synth_opts opts;
	struct model *m;

	synth_defaults(&opts);
	opts.limit = limit;
	opts.log = log;
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(synth_model(&opts, m), 0);
	return m;
}

static void kept_free(void)
{
	for (int i = 0; i < KEPT; i++)
		model_free(kept[i].model);
}

static struct model *model_kept(int limit, bool log)
{
	int at = 0;

	while (at < KEPT && kept[at].model &&
	       (kept[at].limit != limit || kept[at].log != log))
		at++;
	if (at == KEPT) {
		at = KEPT - 1;
		model_free(kept[at].model);
		kept[at].model = NULL;
	}
	if (!kept[0].model)
		atexit(kept_free);
	if (!kept[at].model)
		kept[at].model = model_fold(limit, log);
	kept[at].limit = limit;
	kept[at].log = log;
	return kept[at].model;
}

static void open_as(struct fixture *f, int limit, bool log)
{
	memset(f, 0, sizeof(*f));
	f->model = model_kept(limit, log);
	f->status =
		(struct deck_status) { .link = LINK_LIVE, .recording = true };
	f->scene = (struct scene) { .model = f->model,
				    .status = &f->status,
				    .library = &f->library,
				    .now_us = f->model->t_us };
	ui_init(&f->ui);
}

void fixture_open(struct fixture *f, int limit)
{
	open_as(f, limit, false);
}

void fixture_open_log(struct fixture *f, int limit)
{
	open_as(f, limit, true);
}

void fixture_close(struct fixture *f)
{
	free(f->library.workload);
	free(f->library.suite);
	free(f->library.session);
	ui_fini(&f->ui);
	canvas_fini(&f->canvas);
}

static void workloads(struct library *lib)
{
	static const struct {
		const char *name, *title, *sizes;
		double read, random;
	} row[] = {
		{ "oltp4k", "OLTP 4K 70/30", "4 KiB", 0.7, 1 },
		{ "oltp8k", "OLTP 8K 70/30", "8 KiB", 0.7, 1 },
		{ "oltp16k", "OLTP 16K 70/30", "16 KiB", 0.7, 1 },
		{ "oltp32k", "OLTP 32K 70/30", "32 KiB", 0.7, 1 },
		{ "rdbms22k", "RDBMS 22K 60/40", "4-64 KiB", 0.6, 1 },
		{ "seq1m", "Sequential 1M read", "1 MiB", 1, 0 },
	};

	lib->workloads = array_len(row);
	lib->workload = calloc(array_len(row), sizeof(*lib->workload));
	for (size_t i = 0; i < array_len(row); i++) {
		struct lib_workload *w = &lib->workload[i];

		snprintf(w->name, sizeof(w->name), "%s", row[i].name);
		snprintf(w->title, sizeof(w->title), "%s", row[i].title);
		snprintf(w->sizes, sizeof(w->sizes), "%s", row[i].sizes);
		snprintf(w->text, sizeof(w->text),
			 "Random I/O of one size over the whole vDisk, data "
			 "that does not compress.");
		w->read_share = row[i].read;
		w->random_share = row[i].random;
	}
	lib->suites = 2;
	lib->suite = calloc(2, sizeof(*lib->suite));
	snprintf(lib->suite[0].name, MODEL_NAME, "curves");
	snprintf(lib->suite[1].name, MODEL_NAME, "peak");
}

static void sessions(struct library *lib)
{
	lib->sessions = 3;
	lib->session = calloc(3, sizeof(*lib->session));
	for (int i = 0; i < 3; i++) {
		struct lib_session *s = &lib->session[i];

		snprintf(s->name, sizeof(s->name), "2026-03-0%d-demo", i + 1);
		snprintf(s->path, sizeof(s->path),
			 "/home/op/.local/share/iodeck/2026-03-0%d-demo"
			 ".jsonl.zst",
			 i + 1);
		snprintf(s->title, sizeof(s->title),
			 "OLTP 32K 70/30, three policies");
		snprintf(s->what, sizeof(s->what),
			 "RAID-1, RAID-5, RAID-6; 30 points; done");
		s->from_us = 1772440800000000 + i * 86400000000;
		s->to_us = s->from_us + 252000000;
		s->bytes = 1843200 + i * 40000;
		/* the last is not read yet */
		if (i < 2) {
			snprintf(s->where, sizeof(s->where), "demo");
			snprintf(s->verdict, sizeof(s->verdict),
				 i ? "stopped" : "done");
			s->peak_iops = 47862 - i * 20000;
		}
	}
}

void fixture_library(struct fixture *f)
{
	workloads(&f->library);
	sessions(&f->library);
}

const char *fixture_keys(struct fixture *f, const int *key, size_t keys)
{
	static char last[UI_LINE];
	char line[UI_LINE];

	last[0] = '\0';
	for (size_t i = 0; i < keys; i++)
		if (ui_key(&f->ui, &f->scene, key[i], line) &&
		    ui_command(&f->ui, &f->scene, line) == -ENOENT)
			memcpy(last, line, sizeof(last));
	return last;
}

const char *fixture_key(struct fixture *f, int key)
{
	return fixture_keys(f, &key, 1);
}

char *fixture_draw(struct fixture *f, int w, int h, enum glyphs glyphs)
{
	char *text;

	assert_int_equal(canvas_resize(&f->canvas, w, h), 0);
	f->canvas.glyphs = glyphs;
	ui_draw(&f->ui, &f->scene, &f->canvas);
	text = canvas_dump(&f->canvas);
	assert_non_null(text);
	return text;
}

/* ---- what a terminal shows ----------------------------------------------- */

static size_t put_utf8(char *out, uint32_t ch)
{
	if (ch < 0x80) {
		out[0] = (char)ch;
		return 1;
	}
	if (ch < 0x800) {
		out[0] = (char)(0xc0 | ch >> 6);
		out[1] = (char)(0x80 | (ch & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | ch >> 12);
	out[1] = (char)(0x80 | (ch >> 6 & 0x3f));
	out[2] = (char)(0x80 | (ch & 0x3f));
	return 3;
}

static char *vterm_text(VTermScreen *screen, int w, int h)
{
	char *text = malloc((size_t)h * ((size_t)w * 4 + 1) + 1);
	size_t n = 0;

	assert_non_null(text);
	for (int y = 0; y < h; y++) {
		size_t end = n;

		for (int x = 0; x < w; x++) {
			VTermScreenCell cell;
			uint32_t ch;

			vterm_screen_get_cell(screen, (VTermPos) { y, x },
					      &cell);
			/* the second half of a wide character */
			if (cell.chars[0] == (uint32_t)-1)
				continue;
			ch = cell.chars[0] ? cell.chars[0] : ' ';
			n += put_utf8(text + n, ch);
			end = ch == ' ' ? end : n;
		}
		n = end;
		text[n++] = '\n';
	}
	text[n] = '\0';
	return text;
}

static size_t vterm_colours(VTermScreen *screen, int w, int h)
{
	uint32_t seen[64];
	size_t n = 0;

	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++) {
			VTermScreenCell cell;
			uint32_t rgb;
			size_t i = 0;

			vterm_screen_get_cell(screen, (VTermPos) { y, x },
					      &cell);
			if (VTERM_COLOR_IS_DEFAULT_FG(&cell.fg) ||
			    !cell.chars[0] || cell.chars[0] == ' ')
				continue;
			vterm_screen_convert_color_to_rgb(screen, &cell.fg);
			rgb = (uint32_t)(cell.fg.rgb.red << 16 |
					 cell.fg.rgb.green << 8 |
					 cell.fg.rgb.blue);
			while (i < n && seen[i] != rgb)
				i++;
			if (i == n && n < array_len(seen))
				seen[n++] = rgb;
		}
	return n;
}

char *fixture_shown(const struct canvas *c, const char *name, bool plain,
		    size_t *colours)
{
	struct term_opts opts = { .headless = true,
				  .name = name,
				  .plain = plain,
				  .w = c->w,
				  .h = c->h };
	struct err err = { 0 };
	struct term *term = NULL;
	VTermScreen *screen;
	VTerm *vt;
	char *out, *text;
	int keys[2];
	size_t len;

	assert_int_equal(pipe(keys), 0);
	opts.input_fd = keys[0];
	if (term_open(&opts, &term, &err))
		fail_msg("%s", err.text);
	assert_true(term_draw(term, c));
	out = term_take(term, &len);
	vt = vterm_new(c->h, c->w);
	vterm_set_utf8(vt, 1);
	screen = vterm_obtain_screen(vt);
	vterm_screen_enable_altscreen(screen, 1);
	vterm_screen_reset(screen, 1);
	vterm_input_write(vt, out, len);
	text = vterm_text(screen, c->w, c->h);
	*colours = vterm_colours(screen, c->w, c->h);
	vterm_free(vt);
	free(out);
	term_close(term);
	close(keys[0]);
	close(keys[1]);
	return text;
}

/* ---- golden files -------------------------------------------------------- */

static char *file_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &cap, '\0', f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

static void show_difference(const char *want, const char *got)
{
	for (int line = 1; *want || *got; line++) {
		size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");

		if (w != g || strncmp(want, got, w) != 0) {
			print_error("line %d\n want: %.*s\n got:  %.*s\n", line,
				    (int)w, want, (int)g, got);
			return;
		}
		want += w + (want[w] == '\n');
		got += g + (got[g] == '\n');
	}
}

void golden_check(const char *name, const char *text)
{
	const char *source = getenv("SOURCE_DIR");
	char path[512], *want;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/tui/golden/%s.txt",
		 source ? source : ".", name);
	if (getenv("UPDATE_GOLDEN")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
		return;
	}
	want = file_read(path);
	if (!want)
		fail_msg("%s is not there: UPDATE_GOLDEN=1 writes it", path);
	if (strcmp(want, text) != 0) {
		show_difference(want, text);
		fail_msg("%s differs; if the new screen is right: "
			 "UPDATE_GOLDEN=1",
			 path);
	}
	free(want);
}
