/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keys stand for command lines, in one table: a key does nothing that a
 * command cannot. The bottom line and the help are made of the same rows.
 */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include "tui/ui.h"

enum key_when {
	KEY_LIVE = 1,   /* not in a replay */
	KEY_REPLAY = 2, /* only in one */
	KEY_LOST = 4,   /* only while the agent is lost */
};

struct key_row {
	int key;
	const char *screen; /* NULL: everywhere */
	unsigned when;      /* 0 always */
	const char *line;   /* %s: what is under the cursor; %- and %+: half
			       and twice the replay's speed; begins with ':'
			       it only opens the prompt with the rest typed */
	const char *shown;  /* "space"; NULL: not in the bottom line */
	const char *label;  /* "pause" */
};

extern const struct key_row key_table[]; /* ends with key 0 */

/* The row of a key here, or NULL. now: of enum key_when. */
const struct key_row *key_find(int key, const char *screen, unsigned now);
/* What holds now. */
unsigned key_now(const struct scene *scene);
/* Fills in what is under the cursor, quoted. False: nothing is. */
bool key_line(const struct key_row *row, const char *selected, char *line);

/* "space", "PageUp", "^L". */
char *key_name(int key, char *buf, size_t len);

#endif
