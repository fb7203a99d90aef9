/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What came of each session of the list: how its run ended, and the best peak.
 * That is only known to who reads the whole file, so they are read in slices,
 * newest first, while the list is looked at, and what was found is kept.
 */
#ifndef TUI_VERDICT_H
#define TUI_VERDICT_H

#include "tui/scene.h"

struct verdicts;

int verdicts_new(struct verdicts **v);
void verdicts_free(struct verdicts *v);
/*
 * Fills in what is known and reads on for about budget_us. True: there is more
 * to read. *changed: a line of the list did.
 */
bool verdicts_step(struct verdicts *v, struct library *lib, int64_t budget_us,
		   bool *changed);

#endif
