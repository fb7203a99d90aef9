/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The manual pages, compiled in, and a reader for the part of mdoc that they
 * use, so that help is there where man is not.
 */
#ifndef TUI_PAGE_H
#define TUI_PAGE_H

#include "engine/base.h"

/* Bytes in rendered text that change the style of what follows. */
enum { PAGE_PLAIN = 1, PAGE_BOLD = 2, PAGE_UNDER = 3 };

struct page_row {
	const char *name;   /* "iodeck(1)" */
	const char *source; /* mdoc */
};
/* Made at build time from man/; ends with name NULL. */
extern const struct page_row page_table[];

/* "iodeck(1)", "iodeck-policy" or "iodeck-policy.7"; NULL none. */
const struct page_row *page_find(const char *name);
/* mdoc to lines of at most `width` columns; caller frees; NULL: no memory. */
char *page_render(const char *mdoc, int width);
/* The keys of a screen and of everywhere, from the table; caller frees. */
char *page_keys(const char *screen);

#endif
