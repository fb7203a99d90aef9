/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The prompt: readline edits, completes and remembers; we give it keys and draw
 * what it says. readline has one state a process, and so has the prompt.
 */
#ifndef TUI_PROMPT_H
#define TUI_PROMPT_H

#include "tui/ui.h"

/*
 * complete gives the words that may follow the line's last word start, as
 * deck_complete() does; NULL-terminated, words and list malloc'ed.
 * history: the file to keep (0600), NULL none.
 */
void prompt_init(char **(*complete)(void *arg, const char *line), void *arg,
		 const char *history);
/* Writes the history. */
void prompt_fini(void);

/* Opens it with `text` typed. */
void prompt_open(struct ui *ui, const char *text);
/*
 * One key as term.h names it. Returns 1 when a line was entered (into line,
 * UI_LINE bytes), 0 while it goes on, -ECANCELED when it was left.
 */
int prompt_key(struct ui *ui, int key, char *line);

/* $XDG_STATE_HOME/iodeck/history; makes the folder; false: nowhere. */
bool prompt_history_path(char *buf, size_t len);

#endif
