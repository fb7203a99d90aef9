/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(struct text *t, size_t need)
{
	size_t cap = t->cap ? t->cap : 256;
	char *more;

	while (cap < need)
		cap *= 2;
	if (cap == t->cap)
		return true;
	more = realloc(t->s, cap);
	if (!more) {
		t->failed = true;
		return false;
	}
	t->s = more;
	t->cap = cap;
	return true;
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n < 0)
		t->failed = true;
	else if (grow(t, t->len + (size_t)n + 1)) {
		vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
		t->len += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

char *text_take(struct text *t)
{
	char *s = t->s;

	if (!s && !t->failed)
		s = strdup("");
	if (t->failed) {
		free(s);
		s = NULL;
	}
	memset(t, 0, sizeof(*t));
	return s;
}
