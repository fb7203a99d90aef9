/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a role looks like, by how many colours there are. Colour adds speed,
 * never meaning: the mono theme shows the same screens.
 */
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include "tui/chart/canvas.h"

enum theme_depth { THEME_MONO, THEME_8, THEME_16, THEME_256 };

struct theme_look {
	short fg;      /* palette index; -1 the terminal's own */
	uint8_t flags; /* THEME_BOLD and so on */
};
enum { THEME_BOLD = 1, THEME_DIM = 2, THEME_REV = 4 };

/* colours: the terminal's; `plain` as by NO_COLOR. */
enum theme_depth theme_depth(int colours, bool plain);
struct theme_look theme_look(enum theme_depth depth, enum role role);

#endif
