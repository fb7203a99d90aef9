/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion from the table of commands: for the prompt and for shells. */
#ifndef BACKEND_COMPLETE_H
#define BACKEND_COMPLETE_H

#include "backend/deck.h"

/*
 * Words that may stand where the last word of the line begins, sorted as they
 * come; NULL-terminated, for deck_words_free(). At a file's place the answer
 * is files.
 */
char **complete_line(struct deck *deck, const char *line);
/* The same for the command line, the program's own options with it; no
 * agent is asked: what the configuration names is what it knows. */
char **complete_shell(struct deck *deck, const char *line);
/* A script for "bash" or "zsh"; the caller's to free(). */
char *complete_script(const char *shell);

#endif
