/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The terminal. ncurses knows it but does not touch it: it writes into a memfd,
 * and we pass the bytes on, through a description of the terminal of our own
 * that never blocks.
 *
 *   canvas -> ncurses (what differs) -> memfd -> pending bytes -> terminal
 *
 * While bytes are pending frames are skipped, so a terminal that stands still
 * costs nothing and keys still answer. Whatever ends the program, the terminal
 * is given back as it was found.
 *
 * Threads: one, and one terminal at a time.
 */
#ifndef TUI_TERM_H
#define TUI_TERM_H

#include "tui/chart/canvas.h"
#include "tui/theme.h"

struct term;

/* Keys beyond the characters; those stand for themselves. */
enum {
	K_ENTER = '\r',
	K_TAB = '\t',
	K_ESC = 27,
	K_BACKSPACE = 127,
	K_NONE = 0x200000,
	K_UP,
	K_DOWN,
	K_LEFT,
	K_RIGHT,
	K_HOME,
	K_END,
	K_PGUP,
	K_PGDN,
	K_DELETE,
	K_BTAB,
	K_F1,
	K_MOUSE,
	K_PASTE, /* what follows until K_PASTE_END was pasted */
	K_PASTE_END,
};
#define K_CTRL(ch) ((ch)&0x1f)

struct term_mouse {
	int x, y;
	int wheel; /* -1 up, 1 down, 0 a click */
};

struct term_opts {
	int tty_fd;          /* -1: /dev/tty; borrowed and duplicated */
	const char *name;    /* NULL: $TERM */
	const char *charset; /* "utf8", "blocks", "ascii"; NULL: by locale */
	bool plain;          /* no colour */
	/* For tests: no terminal. Keys from input_fd, bytes by term_take(). */
	bool headless;
	int input_fd, w, h;
};

/* -ENOTTY with a sentence when there is no terminal, or not one to draw on. */
int term_open(const struct term_opts *opts, struct term **term,
	      struct err *err);
/* Gives the terminal back. Takes NULL. */
void term_close(struct term *term);

enum glyphs term_glyphs(const struct term *term);
enum theme_depth term_depth(const struct term *term);
void term_size(const struct term *term, int *w, int *h);

/* For poll(): POLLIN for keys, POLLOUT while term_pending(). */
int term_fd(const struct term *term);
/* Readable after a signal: call term_signals(). */
int term_signal_fd(const struct term *term);
enum {
	TERM_RESIZED = 1,
	TERM_RESUMED = 2, /* all has to be drawn again */
	TERM_END = 4,     /* asked to end */
};
unsigned term_signals(struct term *term);

/* Draws what differs from the last frame. False: skipped, bytes are pending. */
bool term_draw(struct term *term, const struct canvas *c);
/* Forgets what is on the screen: the next frame is whole. */
void term_redraw(struct term *term);
/* Puts the cursor (shown) into the next frame; x < 0 hides it. */
void term_cursor(struct term *term, int x, int y);
/* Writes what the terminal takes now. 0; -EIO when it is gone. */
int term_flush(struct term *term);
bool term_pending(const struct term *term);
/* Bytes written by the last frame, for tests and benches. */
size_t term_frame_bytes(const struct term *term);
/* Headless: takes the pending bytes; caller frees. */
char *term_take(struct term *term, size_t *len);

/* The next key or K_NONE. */
int term_key(struct term *term);
/* Of the last K_MOUSE. */
struct term_mouse term_mouse(const struct term *term);
void term_mouse_set(struct term *term, bool on);
/* As ^Z: stops the process group; returns when it goes on. */
void term_suspend(struct term *term);

#endif
