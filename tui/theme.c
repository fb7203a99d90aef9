/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/theme.h"

/*
 * Foregrounds by depth 256, 16 and 8, then flags for mono and for 8 colours.
 * The six series keep apart for colour-blind eyes (after Okabe and Ito), and
 * none of them is the colour of ok, warn or bad at 256.
 */
static const struct {
	short c256, c16, c8;
	uint8_t mono, on8;
} look[ROLE_COUNT] = {
	[ROLE_TEXT] = { -1, -1, -1, 0, 0 },
	[ROLE_DIM] = { 245, 8, -1, 0, 0 },
	[ROLE_TITLE] = { -1, -1, -1, THEME_BOLD, THEME_BOLD },
	[ROLE_KEY] = { 110, 14, 6, THEME_BOLD, 0 },
	[ROLE_OK] = { 71, 10, 2, 0, 0 },
	[ROLE_WARN] = { 220, 11, 3, THEME_BOLD, THEME_BOLD },
	[ROLE_BAD] = { 203, 9, 1, THEME_BOLD, THEME_BOLD },
	[ROLE_AXIS] = { 242, 8, -1, 0, 0 },
	[ROLE_FOCUS] = { -1, -1, -1, THEME_REV, THEME_REV },
	[ROLE_BAR] = { 67, 12, 4, 0, 0 },
	[ROLE_S1] = { 75, 12, 6, 0, 0 },
	[ROLE_S2] = { 215, 11, 3, 0, 0 },
	[ROLE_S3] = { 43, 10, 2, 0, 0 },
	[ROLE_S4] = { 176, 13, 5, 0, 0 },
	[ROLE_S5] = { 229, 15, 7, 0, THEME_BOLD },
	[ROLE_S6] = { 167, 9, 1, 0, 0 },
	[ROLE_HEAT0] = { 236, 8, 4, 0, 0 },
	[ROLE_HEAT0 + 1] = { 54, 4, 4, 0, 0 },
	[ROLE_HEAT0 + 2] = { 91, 4, 4, 0, 0 },
	[ROLE_HEAT0 + 3] = { 127, 5, 5, 0, 0 },
	[ROLE_HEAT0 + 4] = { 168, 5, 5, 0, 0 },
	[ROLE_HEAT0 + 5] = { 209, 9, 1, 0, 0 },
	[ROLE_HEAT0 + 6] = { 215, 11, 3, 0, 0 },
	[ROLE_HEAT7] = { 229, 15, 3, 0, THEME_BOLD },
};

enum theme_depth theme_depth(int colours, bool plain)
{
	if (plain || colours < 8)
		return THEME_MONO;
	return colours >= 256 ? THEME_256 : colours >= 16 ? THEME_16 : THEME_8;
}

struct theme_look theme_look(enum theme_depth depth, enum role role)
{
	uint8_t on = role == ROLE_TITLE   ? THEME_BOLD
		     : role == ROLE_FOCUS ? THEME_REV
					  : 0;

	id_assert(role < ROLE_COUNT);
	switch (depth) {
	case THEME_MONO:
		return (struct theme_look) { -1, look[role].mono };
	case THEME_8:
		return (struct theme_look) { look[role].c8, look[role].on8 };
	case THEME_16:
		return (struct theme_look) { look[role].c16, on };
	case THEME_256:
		break;
	}
	return (struct theme_look) { look[role].c256, on };
}
