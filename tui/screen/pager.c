/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Text over the screen: manual pages, keys, long answers.
 */
#include <stdlib.h>
#include <string.h>

#include "tui/page.h"
#include "tui/screen/screen.h"

/* Pages are rendered for the width at hand, and again when it changes. */
static void page_fill(struct ui *ui, int width)
{
	struct pager *p = &ui->pager;
	const struct page_row *row;
	char *text;

	if (!p->page[0] || p->width == width)
		return;
	if (!strcmp(p->page, "keys")) {
		text = page_keys(screen_of(ui->screen)->name);
	} else {
		row = page_find(p->page);
		text = row ? page_render(row->source, width)
			   : strdup("There is no such page.");
	}
	if (!text)
		return;
	free(p->text);
	p->text = text;
	p->width = width;
}

static void line_draw(struct canvas *c, int x, int y, int right,
		      const char *text, size_t len)
{
	const char *end = text + len;
	unsigned style = ROLE_TEXT;

	while (text < end) {
		if (*text == PAGE_PLAIN || *text == PAGE_BOLD ||
		    *text == PAGE_UNDER) {
			style = *text == PAGE_BOLD    ? ROLE_TITLE
				: *text == PAGE_UNDER ? ROLE_KEY | STYLE_UNDER
						      : ROLE_TEXT;
			text++;
			continue;
		}
		if (*text == '\t') {
			text++;
			x += 8 - x % 8;
			continue;
		}
		if (x < right)
			canvas_put(c, x, y, style, text_next(&text));
		else
			text_next(&text);
		x++;
	}
}

static int count_lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n' || !text[1];
	return n;
}

void pager_draw(struct ui *ui, struct canvas *c, struct rect r)
{
	struct pager *p = &ui->pager;
	int width = r.w > 102 ? 100 : r.w - 2, y = 0;
	const char *at;

	page_fill(ui, width);
	r = canvas_head(c, r, p->title);
	p->lines = count_lines(p->text);
	p->rows = r.h;
	if (p->top > p->lines - p->rows)
		p->top = p->lines > p->rows ? p->lines - p->rows : 0;
	at = p->text;
	for (int i = 0; *at && y < r.h; i++) {
		size_t n = strcspn(at, "\n");

		if (i >= p->top)
			line_draw(c, r.x + 1, r.y + y++, r.x + r.w - 1, at, n);
		at += n + (at[n] == '\n');
	}
	if (p->lines > p->rows) {
		int share = (p->top + p->rows) * 100 / p->lines;
		canvas_printf(c, r.x + r.w - 7, r.y - 1, ROLE_DIM, " %3d %% ",
			      share > 100 ? 100 : share);
	}
}
