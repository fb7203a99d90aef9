/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/agent/peer.h"
#include "backend/event.h"

void reply_ok(struct reply *reply)
{
	reply->send(reply, peer_ok());
}

void reply_ok_with(struct reply *reply, json_t *more)
{
	json_t *body = peer_ok();

	if (body && more && json_object_update_missing(body, more)) {
		json_decref(body);
		body = NULL;
	}
	json_decref(more);
	reply->send(reply, body);
}

void reply_err(struct reply *reply, const struct err *err)
{
	char text[sizeof(err->text)];

	event_text(text, sizeof(text), err->text);
	reply->send(reply, peer_refusal(err->code,
					*text ? text : strerror(-err->code)));
}

void reply_fail(struct reply *reply, int code, const char *fmt, ...)
{
	struct err err = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	reply_err(reply, &err);
}
