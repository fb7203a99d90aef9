/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A console without a terminal: the made-up session as scene, ncurses into a
 * memfd, libvterm as the screen that is read. A virtual clock: now is the time
 * of the newest event.
 */
#ifndef TESTS_TUI_FIXTURE_H
#define TESTS_TUI_FIXTURE_H

#include "tui/term.h"
#include "tui/ui.h"

struct fixture {
	struct model *model; /* shared: only read it */
	struct deck_status status;
	struct library library;
	struct deck_overlay overlay[1];
	struct scene scene;
	struct ui ui;
	struct canvas canvas;
};

/* The session up to `limit` events (0 all). */
void fixture_open(struct fixture *f, int limit);
/* The same on vDisks of the log layout. */
void fixture_open_log(struct fixture *f, int limit);
void fixture_close(struct fixture *f);
/* A library of workloads and sessions, as a deck would list. */
void fixture_library(struct fixture *f);
/* Types keys; command lines they give go to ui_command(), the last one that it
 * does not know is returned (static), "" none. */
const char *fixture_keys(struct fixture *f, const int *key, size_t keys);
const char *fixture_key(struct fixture *f, int key);
/* Draws at a size; the canvas as text, caller frees. */
char *fixture_draw(struct fixture *f, int w, int h, enum glyphs glyphs);

/* What a terminal shows of the canvas. name: TERM; caller frees. colours: out,
 * how many different foregrounds it shows, its own not counted. */
char *fixture_shown(const struct canvas *c, const char *name, bool plain,
		    size_t *colours);

/* Compares with tests/tui/golden/NAME.txt; UPDATE_GOLDEN=1 writes it. */
void golden_check(const char *name, const char *text);

#endif
