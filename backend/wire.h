/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON lines over a byte stream, both ways, without the stream: bytes go in
 * as they come and lines come out; lines go in and bytes wait until the
 * stream takes them. Both ends of the agent protocol stand on it.
 *
 * Threads: one at a time.
 */
#ifndef BACKEND_WIRE_H
#define BACKEND_WIRE_H

#include <jansson.h>

#include "engine/base.h"

struct wire {
	char *in; /* bytes not yet taken as lines */
	size_t in_at, in_len, in_room;
	size_t looked; /* of in, from in_at: no newline there */
	char *out;     /* bytes not yet taken by the stream */
	size_t out_at, out_len, out_room;
	uint64_t lines; /* taken */
};

void wire_init(struct wire *w);
void wire_fini(struct wire *w);

/* Takes bytes in. -ENOMEM. */
int wire_feed(struct wire *w, const void *bytes, size_t len);
/*
 * The next whole line as JSON: 0 and *json, the caller's to json_decref();
 * -EAGAIN: none yet; -EINVAL: not JSON, too long or too deep, err says which
 * line and where; nothing that follows can be trusted.
 */
int wire_next(struct wire *w, json_t **json, struct err *err);

/* Queues one line. -ENOMEM; -EMSGSIZE over EVENT_LINE_MAX. */
int wire_put(struct wire *w, const json_t *json);
int wire_put_bytes(struct wire *w, const char *bytes, size_t len);
/* What waits; wire_sent() forgets its first `len` bytes. */
const char *wire_out(const struct wire *w, size_t *len);
void wire_sent(struct wire *w, size_t len);

/*
 * What a console that watches may ask beside ping: to hold a run and to end
 * it, as who sees it go wrong shall not have to find the console that owns it
 * first; and what is done to drives and links, as who shows a run that goes on
 * without a terminal shows this beside it. All of it is recorded.
 */
bool wire_watcher_may(const char *what);

#endif
