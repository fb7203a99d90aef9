/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef BACKEND_EVENT_FAST_H
#define BACKEND_EVENT_FAST_H

#include <jansson.h>

/* An object of the plain kind, as jansson would read it; a new reference. NULL
 * for what is not plain, not JSON, or when memory lacks: ask jansson. */
json_t *event_fast_decode(const char *line, size_t len);

#endif
