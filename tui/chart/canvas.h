/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A canvas of styled cells. Everything on screen is drawn here first, so one
 * drawing serves the terminal, tests and pictures. A cell holds a character or
 * a pattern of 2x4 dots; which glyphs show them is decided when it is read.
 *
 * All coordinates are cells from the top left, and everything is clipped:
 * drawing outside is allowed and does nothing.
 */
#ifndef TUI_CHART_CANVAS_H
#define TUI_CHART_CANVAS_H

#include <stdint.h>

#include "engine/base.h"

/* Colours have roles, not names; theme.c gives them colours. */
enum role {
	ROLE_TEXT,
	ROLE_DIM,
	ROLE_TITLE,
	ROLE_KEY,
	ROLE_OK,
	ROLE_WARN,
	ROLE_BAD,
	ROLE_AXIS,
	ROLE_FOCUS,
	ROLE_BAR,
	ROLE_S1,
	ROLE_S2,
	ROLE_S3,
	ROLE_S4,
	ROLE_S5,
	ROLE_S6,
	ROLE_HEAT0, /* eight steps, from few to many */
	ROLE_HEAT7 = ROLE_HEAT0 + 7,
	ROLE_COUNT
};

/* A style is a role with these on top. */
enum { STYLE_BOLD = 0x100, STYLE_REV = 0x200, STYLE_UNDER = 0x400 };
#define STYLE_ROLE(style) ((style)&0xff)

enum glyphs {
	GLYPHS_UTF8,   /* braille, eighths, box drawing */
	GLYPHS_BLOCKS, /* no braille: the Linux console's font */
	GLYPHS_ASCII
};

struct cell {
	uint32_t ch; /* code point; 0: nothing, or the right half of wide */
	uint16_t style;
	uint8_t dots;  /* pattern, when ch is 0: bit y*2+x */
	uint8_t width; /* 1, 2, or 0 for the right half of a wide one */
};

struct rect {
	int x, y, w, h;
};

struct canvas {
	int w, h;
	enum glyphs glyphs;
	struct rect clip;
	struct cell *cell; /* h rows of w */
};

/* Keeps nothing of what was drawn. -ENOMEM. */
int canvas_resize(struct canvas *c, int w, int h);
void canvas_fini(struct canvas *c);
void canvas_clear(struct canvas *c);

/* Narrows drawing to `r` within the present clip; returns the old one. */
struct rect canvas_clip(struct canvas *c, struct rect r);

/* One character; a text's plain twin stands in where glyphs ask for it. */
void canvas_put(struct canvas *c, int x, int y, unsigned style, uint32_t ch);
/* UTF-8; malformed bytes and control characters show as '?'. Returns the
 * columns it takes, clipped or not. */
int canvas_text(struct canvas *c, int x, int y, unsigned style,
		const char *text);
int canvas_printf(struct canvas *c, int x, int y, unsigned style,
		  const char *fmt, ...) ID_PRINTF(5, 6);
/* Ends before column `right`. */
void canvas_right(struct canvas *c, int right, int y, unsigned style,
		  const char *text);
/* At most w columns, an ellipsis where it is cut. */
int canvas_fit(struct canvas *c, int x, int y, int w, unsigned style,
	       const char *text);
/* Fills words over lines of w columns; returns the lines used, at most h. */
int canvas_wrap(struct canvas *c, struct rect r, unsigned style,
		const char *text);
void canvas_fill(struct canvas *c, struct rect r, unsigned style, uint32_t ch);
/* Changes the style of what is there. */
void canvas_restyle(struct canvas *c, struct rect r, unsigned style);

/* Lines of box drawing that join what they meet is more than is needed: */
void canvas_hline(struct canvas *c, int x, int y, int w, unsigned style);
void canvas_vline(struct canvas *c, int x, int y, int h, unsigned style);
void canvas_box(struct canvas *c, struct rect r, unsigned style,
		const char *title);
/* "─ title ─────": a heading as wide as r, on its first row; returns the rest
 */
struct rect canvas_head(struct canvas *c, struct rect r, const char *title);

/* A dot: x in [0, 2w), y in [0, 4h). Text is never covered. */
void canvas_dot(struct canvas *c, int x, int y, unsigned style);
/* Whether anything is drawn in this cell; outside counts as drawn. */
bool canvas_used(const struct canvas *c, int x, int y);
const struct cell *canvas_cell(const struct canvas *c, int x, int y);

/* The character to show for a cell: ' ' for nothing. */
uint32_t canvas_glyph(const struct canvas *c, const struct cell *cell);
/* Columns a UTF-8 text takes. */
int text_columns(const char *text);
/* Next code point; advances *text; '?' for what is malformed or a control. */
uint32_t text_next(const char **text);
/* Its inverse: puts a code point as 1 to 4 bytes, no NUL; returns how many. */
size_t text_put(char *out, uint32_t ch);

/* The whole as UTF-8 lines without trailing blanks; caller frees. */
char *canvas_dump(const struct canvas *c);

#endif
