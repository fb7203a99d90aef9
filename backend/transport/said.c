/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/said.h"

#include <stdio.h>
#include <string.h>

#include "backend/event.h"

void said_add(struct said *s, const char *text, size_t len)
{
	size_t drop;

	if (len > sizeof(s->text)) {
		text += len - sizeof(s->text);
		len = sizeof(s->text);
	}
	if (s->len + len > sizeof(s->text)) {
		drop = s->len + len - sizeof(s->text);
		memmove(s->text, s->text + drop, s->len - drop);
		s->len -= drop;
		s->taken = s->taken > drop ? s->taken - drop : 0;
	}
	memcpy(s->text + s->len, text, len);
	s->len += len;
}

ssize_t said_take(struct said *s, void *buf, size_t len)
{
	size_t n = s->len - s->taken;

	if (!n)
		return -EAGAIN;
	if (n > len)
		n = len;
	memcpy(buf, s->text + s->taken, n);
	s->taken += n;
	return (ssize_t)n;
}

bool said_has(const struct said *s, const char *word)
{
	return memmem(s->text, s->len, word, strlen(word)) != NULL;
}

void said_last(const struct said *s, char *buf, size_t len)
{
	char line[400];
	size_t end = s->len, at;

	while (end && strchr(" \t\r\n", s->text[end - 1]))
		end--;
	for (at = end; at && s->text[at - 1] != '\n';)
		at--;
	snprintf(line, sizeof(line), "%.*s", (int)(end - at), s->text + at);
	event_text(buf, len, line);
}
