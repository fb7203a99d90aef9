/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A run without the console: waits for its end, and prints what it found. */
#ifndef TUI_HEADLESS_H
#define TUI_HEADLESS_H

#include "backend/deck.h"

/*
 * Turns the deck until its newest run is over, or the agent is lost. progress:
 * a line a point on stderr. ^C stops the run in order, a second one leaves it
 * going. outcome, as the command left it, is replaced by the run's.
 */
void headless_run(struct deck *deck, bool progress, struct outcome *outcome);

#endif
