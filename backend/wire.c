/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/wire.h"

#include <stdlib.h>
#include <string.h>

#include "backend/event.h"

void wire_init(struct wire *w)
{
	*w = (struct wire) { 0 };
}

void wire_fini(struct wire *w)
{
	free(w->in);
	free(w->out);
	*w = (struct wire) { 0 };
}

/* Room for `more` bytes behind a queue that begins at *at: moves what is left
 * to the front before it grows. */
static int queue_room(char **buf, size_t *at, size_t *len, size_t *room,
		      size_t more)
{
	size_t want;
	char *grown;

	if (*at) {
		memmove(*buf, *buf + *at, *len);
		*at = 0;
	}
	if (*len + more <= *room)
		return 0;
	want = *room ? *room : 4096;
	while (want < *len + more)
		want *= 2;
	grown = realloc(*buf, want);
	if (!grown)
		return -ENOMEM;
	*buf = grown;
	*room = want;
	return 0;
}

int wire_feed(struct wire *w, const void *bytes, size_t len)
{
	int rc;

	if (w->in_at + w->in_len + len > w->in_room) {
		rc = queue_room(&w->in, &w->in_at, &w->in_len, &w->in_room,
				len);
		if (rc)
			return rc;
	}
	if (len)
		memcpy(w->in + w->in_at + w->in_len, bytes, len);
	w->in_len += len;
	return 0;
}

int wire_next(struct wire *w, json_t **json, struct err *err)
{
	char *line = w->in ? w->in + w->in_at : NULL, *end = NULL;
	struct err why = { 0 };
	size_t len;
	int rc;

	if (w->in_len > w->looked)
		end = memchr(line + w->looked, '\n', w->in_len - w->looked);
	if (!end) {
		w->looked = w->in_len;
		if (w->in_len < EVENT_LINE_MAX)
			return -EAGAIN;
		return err_set(
			err, -EINVAL, "line %llu is longer than %u bytes",
			(unsigned long long)w->lines + 1, EVENT_LINE_MAX);
	}
	len = (size_t)(end - line) + 1;
	w->lines++;
	w->in_at += len;
	w->in_len -= len;
	w->looked = 0;
	rc = event_line_decode(line, len, json, &why);
	if (rc)
		return err_set(err, rc, "line %llu: %s",
			       (unsigned long long)w->lines, why.text);
	return 0;
}

int wire_put_bytes(struct wire *w, const char *bytes, size_t len)
{
	int rc;

	if (w->out_at + w->out_len + len > w->out_room) {
		rc = queue_room(&w->out, &w->out_at, &w->out_len, &w->out_room,
				len);
		if (rc)
			return rc;
	}
	memcpy(w->out + w->out_at + w->out_len, bytes, len);
	w->out_len += len;
	return 0;
}

int wire_put(struct wire *w, const json_t *json)
{
	size_t len;
	char *line;
	int rc;

	rc = event_encode(json, &line, &len);
	if (rc)
		return rc;
	rc = wire_put_bytes(w, line, len);
	free(line);
	return rc;
}

const char *wire_out(const struct wire *w, size_t *len)
{
	*len = w->out_len;
	return w->out ? w->out + w->out_at : "";
}

void wire_sent(struct wire *w, size_t len)
{
	id_assert(len <= w->out_len);
	w->out_at += len;
	w->out_len -= len;
	if (!w->out_len)
		w->out_at = 0;
}

bool wire_watcher_may(const char *what)
{
	static const char *const may[] = { "run_stop", "run_pause", "fault",
					   "link_set", "drive_set" };

	for (size_t k = 0; k < array_len(may); k++)
		if (!strcmp(what, may[k]))
			return true;
	return false;
}
