/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/chart/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int canvas_resize(struct canvas *c, int w, int h)
{
	struct cell *cell;

	w = w < 1 ? 1 : w;
	h = h < 1 ? 1 : h;
	if (w != c->w || h != c->h || !c->cell) {
		cell = calloc((size_t)w * (size_t)h, sizeof(*cell));
		if (!cell)
			return -ENOMEM;
		free(c->cell);
		c->cell = cell;
		c->w = w;
		c->h = h;
	}
	canvas_clear(c);
	return 0;
}

void canvas_fini(struct canvas *c)
{
	free(c->cell);
	c->cell = NULL;
	c->w = c->h = 0;
}

void canvas_clear(struct canvas *c)
{
	memset(c->cell, 0, (size_t)c->w * (size_t)c->h * sizeof(*c->cell));
	c->clip = (struct rect) { 0, 0, c->w, c->h };
}

static struct rect rect_and(struct rect a, struct rect b)
{
	int x = a.x > b.x ? a.x : b.x, y = a.y > b.y ? a.y : b.y;
	int ax = a.x + a.w, bx = b.x + b.w, ay = a.y + a.h, by = b.y + b.h;
	int right = ax < bx ? ax : bx, low = ay < by ? ay : by;

	return (struct rect) { x, y, right > x ? right - x : 0,
			       low > y ? low - y : 0 };
}

struct rect canvas_clip(struct canvas *c, struct rect r)
{
	struct rect old = c->clip;

	c->clip = rect_and(old, r);
	return old;
}

static struct cell *cell_at(const struct canvas *c, int x, int y)
{
	const struct rect *r = &c->clip;

	if (x < r->x || y < r->y || x >= r->x + r->w || y >= r->y + r->h)
		return NULL;
	return &c->cell[(size_t)y * (size_t)c->w + (size_t)x];
}

/* ---- glyphs -------------------------------------------------------------- */

/* What stands in for a character where only ASCII shows. */
static const struct {
	uint32_t from;
	char to;
} plain[] = {
	{ 0x2500, '-' }, { 0x2502, '|' }, { 0x250c, '+' },  { 0x2510, '+' },
	{ 0x2514, '+' }, { 0x2518, '+' }, { 0x251c, '+' },  { 0x2524, '+' },
	{ 0x252c, '+' }, { 0x2534, '+' }, { 0x253c, '+' },  { 0x254c, '-' },
	{ 0x2501, '#' }, { 0x2578, '=' }, { 0x2504, '-' },  { 0x250a, ':' },
	{ 0x2581, '_' }, { 0x2582, '.' }, { 0x2583, '-' },  { 0x2584, '-' },
	{ 0x2585, '=' }, { 0x2586, '+' }, { 0x2587, '*' },  { 0x2588, '#' },
	{ 0x2591, '.' }, { 0x2592, ':' }, { 0x2593, '+' },  { 0x258c, '|' },
	{ 0x25cf, 'o' }, { 0x25cb, 'O' }, { 0x25a0, '#' },  { 0x25a1, '@' },
	{ 0x25b2, '^' }, { 0x25b3, 'A' }, { 0x25c6, '+' },  { 0x25c7, 'X' },
	{ 0x25bc, 'v' }, { 0x25bd, 'V' }, { 0x25b8, '>' },  { 0x25b6, '>' },
	{ 0x25c0, '<' }, { 0x25b4, '^' }, { 0x25be, 'v' },  { 0x25ae, '#' },
	{ 0x2026, '~' }, { 0x00b1, '~' }, { 0x00b7, '.' },  { 0x2022, '*' },
	{ 0x2192, '>' }, { 0x2190, '<' }, { 0x2191, '^' },  { 0x2193, 'v' },
	{ 0x2013, '-' }, { 0x2014, '-' }, { 0x2018, '\'' }, { 0x2019, '\'' },
	{ 0x201c, '"' }, { 0x201d, '"' }, { 0x2264, '<' },  { 0x2265, '>' },
	{ 0x00d7, 'x' }, { 0x2715, 'x' }, { 0x00b5, 'u' },  { 0x2588, '#' },
	{ 0x2713, 'y' }, { 0x2717, 'x' }, { 0x23f8, '=' },  { 0x203a, '>' },
	{ 0x2502, '|' }, { 0x2503, '|' }, { 0x2620, '!' },  { 0x00a0, ' ' },
};

/* What the Linux console's font lacks, by what it has. */
static const struct {
	uint32_t from, to;
} console[] = {
	{ 0x254c, 0x2500 }, { 0x2501, 0x2588 }, { 0x2578, 0x258c },
	{ 0x2504, 0x00b7 }, { 0x250a, 0x2502 }, { 0x2581, '_' },
	{ 0x2582, 0x2584 }, { 0x2583, 0x2584 }, { 0x2585, 0x2584 },
	{ 0x2586, 0x2588 }, { 0x2587, 0x2588 }, { 0x25cf, 0x2022 },
	{ 0x25cb, 'o' },    { 0x25a0, 0x25a0 }, { 0x25a1, '#' },
	{ 0x25b3, 'A' },    { 0x25c6, 0x2666 }, { 0x25c7, 'X' },
	{ 0x25bd, 'V' },    { 0x25b8, 0x25ba }, { 0x25b6, 0x25ba },
	{ 0x25c0, 0x25c4 }, { 0x25b4, 0x25b2 }, { 0x25be, 0x25bc },
	{ 0x2026, '~' },    { 0x25ae, 0x2588 }, { 0x2713, 'y' },
	{ 0x2717, 'x' },
};

static uint32_t glyph_plain(uint32_t ch)
{
	if (ch < 0x7f)
		return ch;
	for (size_t i = 0; i < array_len(plain); i++)
		if (plain[i].from == ch)
			return (uint32_t)plain[i].to;
	return '?';
}

static uint32_t glyph_console(uint32_t ch)
{
	for (size_t i = 0; i < array_len(console); i++)
		if (console[i].from == ch)
			return console[i].to;
	return ch;
}

/* Bit y*2+x of ours to the bits of U+2800. */
static uint32_t dots_braille(uint8_t dots)
{
	static const uint8_t bit[8] = { 0x01, 0x08, 0x02, 0x10,
					0x04, 0x20, 0x40, 0x80 };
	uint32_t ch = 0x2800;

	for (unsigned i = 0; i < 8; i++)
		if (dots & (1u << i))
			ch |= bit[i];
	return ch;
}

static uint32_t dots_blocks(uint8_t dots)
{
	bool up = dots & 0x0f, low = dots & 0xf0;

	return up && low ? 0x2588 : up ? 0x2580 : 0x2584;
}

/* A stroke that goes the way the dots do. */
static uint32_t dots_ascii(uint8_t dots)
{
	unsigned left = 0, right = 0, rows = 0, nl = 0, nr = 0;

	for (unsigned y = 0; y < 4; y++) {
		bool l = dots & (1u << (y * 2)), r = dots & (2u << (y * 2));

		left += l ? y : 0;
		right += r ? y : 0;
		nl += l;
		nr += r;
		rows += l || r;
	}
	if (rows >= 3) {
		if (nl && nr && left * nr > right * nl)
			return '/';
		if (nl && nr && left * nr < right * nl)
			return '\\';
		return '|';
	}
	if (dots & 0x0f && !(dots & 0xf0))
		return dots & 0x03 && !(dots & 0x0c) ? '\'' : '-';
	if (dots & 0xf0 && !(dots & 0x0f))
		return dots & 0x30 ? '-' : '.';
	return '-';
}

uint32_t canvas_glyph(const struct canvas *c, const struct cell *cell)
{
	if (!cell->ch && !cell->dots)
		return ' ';
	if (!cell->ch) {
		if (c->glyphs == GLYPHS_UTF8)
			return dots_braille(cell->dots);
		return c->glyphs == GLYPHS_BLOCKS ? dots_blocks(cell->dots)
						  : dots_ascii(cell->dots);
	}
	if (c->glyphs == GLYPHS_ASCII)
		return glyph_plain(cell->ch);
	return c->glyphs == GLYPHS_BLOCKS ? glyph_console(cell->ch) : cell->ch;
}

/* ---- text ---------------------------------------------------------------- */

static uint32_t text_tail(const unsigned char **p, uint32_t ch, unsigned more,
			  uint32_t least)
{
	for (unsigned i = 0; i < more; i++) {
		if ((**p & 0xc0) != 0x80)
			return '?';
		ch = ch << 6 | (*(*p)++ & 0x3f);
	}
	if (ch < least || ch > 0x10ffff || (ch >= 0xd800 && ch < 0xe000))
		return '?';
	/* C1 controls would reach the terminal as commands. */
	return ch < 0xa0 ? '?' : ch;
}

uint32_t text_next(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	uint32_t ch = *p++;

	if (ch < 0x80)
		ch = ch < 0x20 || ch == 0x7f ? '?' : ch;
	else if ((ch & 0xe0) == 0xc0)
		ch = text_tail(&p, ch & 0x1f, 1, 0x80);
	else if ((ch & 0xf0) == 0xe0)
		ch = text_tail(&p, ch & 0x0f, 2, 0x800);
	else if ((ch & 0xf8) == 0xf0)
		ch = text_tail(&p, ch & 0x07, 3, 0x10000);
	else
		ch = '?';
	*text = (const char *)p;
	return ch;
}

/* Columns of one code point. What we draw ourselves is one column wide
 * whatever the C library's locale says. */
static int ch_columns(uint32_t ch)
{
	int w;

	if (ch < 0x300 || (ch >= 0x2010 && ch < 0x2900))
		return 1;
	w = wcwidth((wchar_t)ch);
	return w < 0 ? 1 : w;
}

int text_columns(const char *text)
{
	int n = 0;

	while (*text)
		n += ch_columns(text_next(&text));
	return n;
}

void canvas_put(struct canvas *c, int x, int y, unsigned style, uint32_t ch)
{
	struct cell *cell = cell_at(c, x, y), *next;
	int w = ch_columns(ch);

	if (!cell || w == 0)
		return;
	next = w == 2 ? cell_at(c, x + 1, y) : NULL;
	if (w == 2 && (!next || c->glyphs == GLYPHS_ASCII))
		ch = '?', w = 1;
	*cell = (struct cell) { ch, (uint16_t)style, 0, (uint8_t)w };
	if (w == 2)
		*next = (struct cell) { 0, (uint16_t)style, 0, 0 };
}

int canvas_text(struct canvas *c, int x, int y, unsigned style,
		const char *text)
{
	int at = x;

	while (*text) {
		uint32_t ch = text_next(&text);

		canvas_put(c, at, y, style, ch);
		at += ch_columns(ch);
	}
	return at - x;
}

int canvas_printf(struct canvas *c, int x, int y, unsigned style,
		  const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return canvas_text(c, x, y, style, text);
}

void canvas_right(struct canvas *c, int right, int y, unsigned style,
		  const char *text)
{
	canvas_text(c, right - text_columns(text), y, style, text);
}

int canvas_fit(struct canvas *c, int x, int y, int w, unsigned style,
	       const char *text)
{
	int at = 0;

	if (w <= 0)
		return 0;
	if (text_columns(text) <= w)
		return canvas_text(c, x, y, style, text);
	while (*text) {
		const char *from = text;
		uint32_t ch = text_next(&text);

		if (at + ch_columns(ch) > w - 1) {
			text = from;
			break;
		}
		canvas_put(c, x + at, y, style, ch);
		at += ch_columns(ch);
	}
	canvas_put(c, x + at, y, style, 0x2026);
	return at + 1;
}

/* Bytes of `text` that fit w columns, broken at a blank where there is one. */
static size_t wrap_take(const char *text, int w)
{
	const char *p = text, *space = NULL;
	int at = 0;

	while (*p && *p != '\n') {
		const char *from = p;
		int cols = ch_columns(text_next(&p));

		if (at + cols > w)
			return (size_t)((space && space > text ? space : from) -
					text);
		if (*from == ' ')
			space = from;
		at += cols;
	}
	return (size_t)(p - text);
}

int canvas_wrap(struct canvas *c, struct rect r, unsigned style,
		const char *text)
{
	char line[512];
	int n = 0;

	while (*text && n < r.h && r.w > 0) {
		size_t take = wrap_take(text, r.w);

		if (!take && *text != '\n')
			break;
		snprintf(line, sizeof(line), "%.*s", (int)take, text);
		text += take;
		while (*text == ' ')
			text++;
		if (*text == '\n')
			text++;
		canvas_text(c, r.x, r.y + n, style, line);
		if (*text && n == r.h - 1) {
			int end = text_columns(line);

			end = end < r.w ? end : r.w - 1;
			canvas_put(c, r.x + end, r.y + n, style, 0x2026);
		}
		n++;
	}
	return n;
}

void canvas_fill(struct canvas *c, struct rect r, unsigned style, uint32_t ch)
{
	for (int y = r.y; y < r.y + r.h; y++)
		for (int x = r.x; x < r.x + r.w; x++)
			canvas_put(c, x, y, style, ch);
}

void canvas_restyle(struct canvas *c, struct rect r, unsigned style)
{
	for (int y = r.y; y < r.y + r.h; y++)
		for (int x = r.x; x < r.x + r.w; x++) {
			struct cell *cell = cell_at(c, x, y);

			if (cell)
				cell->style = (uint16_t)style;
		}
}

/* ---- lines and dots ------------------------------------------------------ */

void canvas_hline(struct canvas *c, int x, int y, int w, unsigned style)
{
	for (int i = 0; i < w; i++)
		canvas_put(c, x + i, y, style, 0x2500);
}

void canvas_vline(struct canvas *c, int x, int y, int h, unsigned style)
{
	for (int i = 0; i < h; i++)
		canvas_put(c, x, y + i, style, 0x2502);
}

void canvas_box(struct canvas *c, struct rect r, unsigned style,
		const char *title)
{
	int right = r.x + r.w - 1, low = r.y + r.h - 1;

	if (r.w < 2 || r.h < 2)
		return;
	canvas_hline(c, r.x + 1, r.y, r.w - 2, style);
	canvas_hline(c, r.x + 1, low, r.w - 2, style);
	canvas_vline(c, r.x, r.y + 1, r.h - 2, style);
	canvas_vline(c, right, r.y + 1, r.h - 2, style);
	canvas_put(c, r.x, r.y, style, 0x250c);
	canvas_put(c, right, r.y, style, 0x2510);
	canvas_put(c, r.x, low, style, 0x2514);
	canvas_put(c, right, low, style, 0x2518);
	if (!title || !*title || r.w < 6)
		return;
	canvas_put(c, r.x + 2, r.y, style, ' ');
	canvas_put(
		c,
		r.x + 3 +
			canvas_fit(c, r.x + 3, r.y, r.w - 6, ROLE_TITLE, title),
		r.y, style, ' ');
}

struct rect canvas_head(struct canvas *c, struct rect r, const char *title)
{
	if (r.h < 1)
		return r;
	canvas_hline(c, r.x, r.y, r.w, ROLE_AXIS);
	if (title && *title && r.w > 6) {
		int n = canvas_fit(c, r.x + 2, r.y, r.w - 4, ROLE_TITLE, title);

		canvas_put(c, r.x + 1, r.y, ROLE_AXIS, ' ');
		canvas_put(c, r.x + 2 + n, r.y, ROLE_AXIS, ' ');
	}
	return (struct rect) { r.x, r.y + 1, r.w, r.h - 1 };
}

void canvas_dot(struct canvas *c, int x, int y, unsigned style)
{
	struct cell *cell;

	if (x < 0 || y < 0)
		return;
	cell = cell_at(c, x / 2, y / 4);
	if (!cell || cell->ch)
		return;
	cell->dots |= (uint8_t)(1u << ((y & 3) * 2 + (x & 1)));
	cell->style = (uint16_t)style;
	cell->width = 1;
}

bool canvas_used(const struct canvas *c, int x, int y)
{
	const struct cell *cell = cell_at(c, x, y);

	return !cell || cell->ch || cell->dots || (cell->style && !cell->width);
}

const struct cell *canvas_cell(const struct canvas *c, int x, int y)
{
	id_assert(x >= 0 && y >= 0 && x < c->w && y < c->h);
	return &c->cell[(size_t)y * (size_t)c->w + (size_t)x];
}

/* ---- reading ------------------------------------------------------------- */

size_t text_put(char *out, uint32_t ch)
{
	if (ch < 0x80) {
		out[0] = (char)ch;
		return 1;
	}
	if (ch < 0x800) {
		out[0] = (char)(0xc0 | ch >> 6);
		out[1] = (char)(0x80 | (ch & 0x3f));
		return 2;
	}
	if (ch < 0x10000) {
		out[0] = (char)(0xe0 | ch >> 12);
		out[1] = (char)(0x80 | (ch >> 6 & 0x3f));
		out[2] = (char)(0x80 | (ch & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | ch >> 18);
	out[1] = (char)(0x80 | (ch >> 12 & 0x3f));
	out[2] = (char)(0x80 | (ch >> 6 & 0x3f));
	out[3] = (char)(0x80 | (ch & 0x3f));
	return 4;
}

char *canvas_dump(const struct canvas *c)
{
	char *text = malloc((size_t)c->w * (size_t)c->h * 4 + (size_t)c->h + 1);
	size_t n = 0;

	if (!text)
		return NULL;
	for (int y = 0; y < c->h; y++) {
		size_t end = n;

		for (int x = 0; x < c->w; x++) {
			const struct cell *cell = canvas_cell(c, x, y);
			uint32_t ch = canvas_glyph(c, cell);

			if (x && !cell->width &&
			    canvas_cell(c, x - 1, y)->width == 2)
				continue;
			n += text_put(text + n, ch);
			end = ch == ' ' ? end : n;
		}
		n = end;
		text[n++] = '\n';
	}
	text[n] = '\0';
	return text;
}
