/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A deck without agents: it plays the made-up session, an event every few
 * milliseconds, and remembers the command lines it was given. For tests of the
 * loop; linked in place of backend/deck.c.
 */
#ifndef TESTS_TUI_FAKE_DECK_H
#define TESTS_TUI_FAKE_DECK_H

#include "backend/deck.h"

struct fake_deck_opts {
	int begin;    /* events applied at once */
	int every_ms; /* then one so often; 0 none */
};
int fake_deck_open(const struct fake_deck_opts *opts, struct deck **deck);
/* Command lines so far, a line each; borrowed. */
const char *fake_deck_lines(const struct deck *deck);

#endif
