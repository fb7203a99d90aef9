/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The loop: waits for the deck, the terminal and signals; lets the deck take
 * its events, the terminal its keys; draws when something changed, ten times a
 * second at most. It owns the clock; all below gets the time as an argument.
 *
 *   deck_fd ─┐                     ┌─ ui_key() ── line ── deck_do()
 *   tty     ─┼─ poll ─ step, keys ─┤
 *   signals ─┘                     └─ ui_draw() ─ term_draw() ─ term_flush()
 */
#include "tui/tui.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/event.h"
#include "tui/library.h"
#include "tui/prompt.h"
#include "tui/screen/screen.h"
#include "tui/term.h"
#include "tui/ui.h"
#include "tui/verdict.h"

#define FRAME_MS 100
#define READ_US 15000 /* of sessions in one turn */
#define IDLE_MS 1000  /* clocks and countdowns go on without events */

struct app {
	struct deck *deck;
	struct term *term;
	struct ui ui;
	struct library library;
	struct deck_status status;
	struct scene scene;
	struct canvas canvas;
	uint64_t revision;
	int64_t drawn_ms;
	bool dirty, quit, waiting, mouse;
	struct verdicts *verdicts;
	bool reading; /* sessions, for the list that is shown */
	enum deck_link link;
	enum screen_id seen;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void scene_update(struct app *app)
{
	struct scene *s = &app->scene;

	deck_status(app->deck, &app->status);
	s->model = deck_model(app->deck);
	s->status = &app->status;
	s->overlays = deck_overlays(app->deck, &s->overlay);
	s->library = &app->library;
	s->now_us = app->status.link == LINK_REPLAY ? app->status.at_us
						    : event_now_us();
}

/* ---- commands ------------------------------------------------------------ */

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n' && text[1];
	return n + 1;
}

static void outcome_show(struct app *app, const struct outcome *o,
			 const char *line)
{
	if (o->text && *o->text) {
		if (count_lines(o->text) > 1)
			ui_page(&app->ui, line, o->text);
		else
			ui_say(&app->ui, &app->scene, o->status, o->text);
	} else if (o->pending) {
		ui_say(&app->ui, &app->scene, -1, line);
	} else if (o->status ||
		   (!o->view[0] && app->status.link != LINK_REPLAY)) {
		/* In a replay its bar shows that it went; the line is for what
		 * happened there. */
		ui_say(&app->ui, &app->scene, o->status,
		       o->status ? "failed" : line);
	}
	if (o->view[0])
		ui_view(&app->ui, &app->scene, o->view);
	app->quit |= o->quit;
	app->waiting = o->pending;
}

static void library_look(struct app *app)
{
	library_load(&app->library, app->status.link == LINK_REPLAY
					    ? ""
					    : app->status.session_path);
}

static void run_line(struct app *app, const char *line)
{
	struct outcome outcome = { 0 };

	if (line[0] == ':') {
		prompt_open(&app->ui, line + 1);
		return;
	}
	if (ui_command(&app->ui, &app->scene, line) != -ENOENT)
		return;
	if (!strcmp(line, "quit")) {
		app->quit = true;
		return;
	}
	deck_do(app->deck, line, &outcome);
	if (!outcome.status &&
	    (!strcmp(line, "demo") || !strncmp(line, "demo ", 5))) {
		app->ui.guide = true;
		app->ui.chosen = false;
	}
	scene_update(app);
	outcome_show(app, &outcome, line);
	outcome_free(&outcome);
}

static void outcomes_take(struct app *app)
{
	struct outcome outcome = { 0 };

	while (app->waiting && deck_outcome_take(app->deck, &outcome)) {
		app->waiting = false;
		app->dirty = true;
		outcome.pending = false;
		outcome_show(app, &outcome, "done");
		outcome_free(&outcome);
		memset(&outcome, 0, sizeof(outcome));
	}
}

/* ---- completion: the deck's words and ours ------------------------------- */

static void words_add(char ***words, size_t *n, const char *word)
{
	char **more = realloc(*words, (*n + 2) * sizeof(*more));

	if (!more)
		return;
	*words = more;
	more[*n] = strdup(word);
	if (more[*n])
		more[++*n] = NULL;
	more[*n] = NULL;
}

/* Alternatives of "a|b|c" that begin with `text`. */
static void words_of_args(char ***words, size_t *n, const char *args)
{
	char copy[256], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", args);
	for (char *w = strtok_r(copy, "|[] ", &save); w;
	     w = strtok_r(NULL, "|[] ", &save))
		if (w[0] >= 'a')
			words_add(words, n, w);
}

static char **app_complete(void *arg, const char *line)
{
	struct app *app = arg;
	const char *last = strrchr(line, ' ');
	char **ours = NULL, **theirs;
	size_t n = 0;

	for (const struct ui_command_row *row = ui_command_table; row->name;
	     row++) {
		size_t len = strlen(row->name);

		if (!last)
			words_add(&ours, &n, row->name);
		else if (!strncmp(line, row->name, len) && line + len == last)
			words_of_args(&ours, &n, row->args);
	}
	theirs = deck_complete(app->deck, line);
	for (size_t i = 0; theirs && theirs[i]; i++)
		words_add(&ours, &n, theirs[i]);
	deck_words_free(theirs);
	return ours;
}

/* ---- keys ---------------------------------------------------------------- */

static void one_key(struct app *app, int key)
{
	char line[UI_LINE] = "";
	struct term_mouse m;

	if (app->ui.prompt.open) {
		if (prompt_key(&app->ui, key, line) == 1)
			run_line(app, line);
		return;
	}
	if (key == K_MOUSE) {
		m = term_mouse(app->term);
		if (ui_mouse(&app->ui, &app->scene, &app->canvas, m.x, m.y,
			     m.wheel, line))
			run_line(app, line);
		return;
	}
	if (welcome_shown(&app->scene) && !app->ui.guide &&
	    !app->ui.pager.open && !app->ui.ask &&
	    app->ui.screen == SCREEN_CLUSTER && welcome_key(key, line)) {
		run_line(app, line);
		return;
	}
	if (ui_key(&app->ui, &app->scene, key, line))
		run_line(app, line);
}

static void keys_take(struct app *app)
{
	int key;

	while (!app->quit && (key = term_key(app->term)) != K_NONE) {
		one_key(app, key);
		app->dirty = true;
	}
}

static void wishes(struct app *app)
{
	/* The list of sessions is read again when one goes to look at it. */
	if (app->ui.screen == SCREEN_SESSIONS && app->seen != SCREEN_SESSIONS)
		app->ui.want_refresh = true;
	app->seen = app->ui.screen;
	if (app->ui.want_redraw)
		term_redraw(app->term);
	if (app->ui.want_refresh)
		library_look(app);
	if (app->ui.want_suspend)
		term_suspend(app->term);
	if (app->ui.mouse != app->mouse) {
		app->mouse = app->ui.mouse;
		term_mouse_set(app->term, app->mouse);
	}
	app->ui.want_redraw = app->ui.want_suspend = false;
	app->ui.want_refresh = false;
}

/* ---- frames -------------------------------------------------------------- */

static void frame(struct app *app)
{
	struct canvas *c = &app->canvas;
	int w, h;

	term_size(app->term, &w, &h);
	if (canvas_resize(c, w, h))
		return;
	c->glyphs = term_glyphs(app->term);
	scene_update(app);
	ui_draw(&app->ui, &app->scene, c);
	term_cursor(app->term,
		    app->ui.prompt.open ? app->ui.prompt.cursor_x : -1, h - 1);
	app->dirty = !term_draw(app->term, c);
	app->drawn_ms = now_ms();
}

static void changes_see(struct app *app)
{
	unsigned what = term_signals(app->term);
	const struct model *m = deck_model(app->deck);

	if (what & TERM_END)
		app->quit = true;
	if (what || m->revision != app->revision)
		app->dirty = true;
	app->revision = m->revision;
	if (now_ms() - app->drawn_ms >= IDLE_MS)
		app->dirty = true;
	deck_status(app->deck, &app->status);
	if (app->status.link != app->link || app->status.playing)
		app->dirty = true;
	/* Who opens a session wants to see it, not its empty beginning. */
	if (app->status.link == LINK_REPLAY && app->link != LINK_REPLAY &&
	    !app->status.playing)
		run_line(app, "play");
	app->link = app->status.link;
}

/* Milliseconds until something has to be done without being woken. */
static int sleep_ms(const struct app *app)
{
	int deck = deck_timeout_ms(app->deck);
	int64_t gone = now_ms() - app->drawn_ms;
	int64_t frame_in = (app->dirty ? FRAME_MS : IDLE_MS) - gone;

	/* While bytes are pending the terminal wakes us, not the clock. */
	if (app->dirty && term_pending(app->term))
		frame_in = IDLE_MS;
	frame_in = frame_in < 0 || app->reading ? 0 : frame_in;
	return deck >= 0 && deck < frame_in ? deck : (int)frame_in;
}

/* The list of sessions fills while it is looked at. */
static void sessions_read(struct app *app)
{
	bool changed = false;

	app->reading =
		app->ui.screen == SCREEN_SESSIONS && app->verdicts &&
		verdicts_step(app->verdicts, &app->library, READ_US, &changed);
	app->dirty |= changed;
}

static int turn(struct app *app)
{
	struct pollfd fd[3] = {
		{ .fd = deck_fd(app->deck), .events = POLLIN },
		{ .fd = term_fd(app->term), .events = POLLIN },
		{ .fd = term_signal_fd(app->term), .events = POLLIN },
	};

	if (term_pending(app->term))
		fd[1].events |= POLLOUT;
	poll(fd, array_len(fd), sleep_ms(app));
	if (fd[1].revents & (POLLHUP | POLLERR | POLLNVAL))
		return -EIO;
	deck_step(app->deck);
	scene_update(app);
	outcomes_take(app);
	if (app->ui.guide && ui_guide_holds(&app->ui, &app->scene))
		run_line(app, "pause");
	if (fd[1].revents & POLLIN)
		keys_take(app);
	wishes(app);
	sessions_read(app);
	changes_see(app);
	if (app->dirty && !app->quit && !term_pending(app->term) &&
	    now_ms() - app->drawn_ms >= FRAME_MS)
		frame(app);
	return term_flush(app->term);
}

static void first_screen(struct app *app, const struct tui_opts *opts)
{
	char view[MODEL_NAME];

	scene_update(app);
	app->ui.screen =
		model_run(app->scene.model) ? SCREEN_RUN : SCREEN_CLUSTER;
	app->ui.guide = opts->guide;
	if (!opts->screen)
		return;
	snprintf(view, sizeof(view), "screen:%.50s", opts->screen);
	ui_view(&app->ui, &app->scene, view);
}

int tui_run(struct deck *deck, const struct tui_opts *opts, struct err *err)
{
	struct term_opts to = { .tty_fd = opts->tty_fd,
				.charset = opts->charset };
	struct app app = { .deck = deck, .mouse = true, .dirty = true };
	char history[512];
	int rc;

	rc = term_open(&to, &app.term, err);
	if (rc)
		return rc;
	ui_init(&app.ui);
	prompt_init(app_complete, &app,
		    prompt_history_path(history, sizeof(history)) ? history
								  : NULL);
	first_screen(&app, opts);
	verdicts_new(&app.verdicts);
	library_look(&app);
	if (opts->begun) {
		scene_update(&app);
		outcome_show(&app, opts->begun, opts->start);
	}
	do {
		rc = turn(&app);
	} while (!rc && !app.quit);
	prompt_fini();
	term_close(app.term);
	ui_fini(&app.ui);
	library_fini(&app.library);
	verdicts_free(app.verdicts);
	canvas_fini(&app.canvas);
	return rc ? err_set(err, rc,
			    "the terminal is gone; a run goes on in "
			    "its agent")
		  : 0;
}
