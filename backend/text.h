/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A growing text. Lack of memory shows as NULL from text_take(). */
#ifndef BACKEND_TEXT_H
#define BACKEND_TEXT_H

#include "engine/base.h"

struct text {
	char *s;
	size_t len, cap;
	bool failed;
};

void text_add(struct text *text, const char *fmt, ...) ID_PRINTF(2, 3);
/* The text, the caller's to free(); the struct is empty again. */
char *text_take(struct text *text);

#endif
