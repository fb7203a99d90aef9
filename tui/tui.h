/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console: screens over a deck. Everything it does goes through deck_do();
 * everything it shows comes from the deck's model.
 *
 * Threads: one.
 */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include "backend/deck.h"

struct tui_opts {
	const char *screen;  /* first screen: "cluster", "run"...; NULL: by
				what there is to see */
	const char *charset; /* "utf8", "blocks", "ascii"; NULL: by locale */
	const char *start;   /* the command line that was run, or NULL */
	const struct outcome *begun; /* what it gave, to be shown first */
	bool guide;                  /* the demo: captions, and screens turn by
					themselves until a key chooses one */
	int tty_fd;                  /* the terminal; -1: /dev/tty */
};

/*
 * Runs until the operator leaves (0) or the terminal is gone (-EIO, run and
 * session untouched). -ENOTTY: no terminal, or one that cannot place its
 * cursor; err says so and what to use instead.
 */
int tui_run(struct deck *deck, const struct tui_opts *opts, struct err *err);

#endif
