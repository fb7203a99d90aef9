/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The newest few KiB of what was said on a stderr. Who floods it loses his
 * own oldest words and holds nobody up.
 */
#ifndef BACKEND_TRANSPORT_SAID_H
#define BACKEND_TRANSPORT_SAID_H

#include <sys/types.h>

#include "engine/base.h"

#define SAID_MAX 8192

struct said {
	size_t len, taken; /* taken: of them, by said_take() */
	char text[SAID_MAX];
};

void said_add(struct said *said, const char *text, size_t len);
/* What was not taken yet; -EAGAIN: nothing. It stays for the two below. */
ssize_t said_take(struct said *said, void *buf, size_t len);
bool said_has(const struct said *said, const char *word);
/* The last line with anything on it, cleaned; "" none. */
void said_last(const struct said *said, char *buf, size_t len);

#endif
