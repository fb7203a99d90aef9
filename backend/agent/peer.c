/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/peer.h"

#include <stdlib.h>
#include <string.h>

#include "backend/event.h"

void peer_init(struct peer *p, const struct peer_host *host)
{
	*p = (struct peer) { .host = host };
	wire_init(&p->wire);
}

void peer_fini(struct peer *p)
{
	wire_fini(&p->wire);
}

/* ---- out ---------------------------------------------------------------- */

json_t *peer_ok(void)
{
	return json_pack("{s:b}", "ok", 1);
}

json_t *peer_refusal(int code, const char *text)
{
	json_t *reply = json_pack("{s:b, s:i}", "ok", 0, "code", code);

	/* apart, as json_pack() refuses the whole for text that is no UTF-8 */
	if (reply && json_object_set_new(reply, "error", json_string(text)))
		json_object_set_new(reply, "error", json_string("?"));
	return reply;
}

int peer_hello(struct peer *p, const json_t *hello)
{
	return wire_put(&p->wire, hello);
}

void peer_break(struct peer *p, int code, const char *text)
{
	json_t *reply;

	if (p->state == PEER_BROKEN)
		return;
	reply = peer_refusal(code, text);
	if (reply)
		wire_put(&p->wire, reply);
	json_decref(reply);
	p->state = PEER_BROKEN;
}

void peer_answer(struct peer *p, int64_t id, json_t *reply)
{
	if (p->asked)
		p->asked--;
	if (!reply || json_object_set_new(reply, "re", json_integer(id)) ||
	    wire_put(&p->wire, reply))
		peer_break(p, -ENOMEM, "the agent is out of memory");
	json_decref(reply);
}

void peer_ask(struct peer *p, json_t *line)
{
	if (wire_put(&p->wire, line))
		peer_break(p, -ENOMEM, "the agent is out of memory");
	json_decref(line);
}

static void refuse(struct peer *p, int64_t id, int code, const char *text)
{
	p->asked++;
	peer_answer(p, id, peer_refusal(code, text));
}

/* ---- in ----------------------------------------------------------------- */

static bool is_count(const json_t *j)
{
	return json_is_integer(j) && json_integer_value(j) >= 0;
}

static int marks_read(const json_t *from, struct spool_mark *mark,
		      size_t *count)
{
	const json_t *pair;
	size_t k;

	*count = 0;
	if (!from || json_is_null(from))
		return 0;
	if (!json_is_array(from) || json_array_size(from) > PEER_MARKS_MAX)
		return -EINVAL;
	json_array_foreach(from, k, pair) {
		const json_t *i = json_array_get(pair, 0);
		const json_t *n = json_array_get(pair, 1);

		if (json_array_size(pair) != 2 || !is_count(i) || !is_count(n))
			return -EINVAL;
		mark[k].i = json_integer_value(i);
		mark[k].n = json_integer_value(n);
	}
	*count = json_array_size(from);
	return 0;
}

static void on_attach(struct peer *p, int64_t id, const json_t *request)
{
	struct spool_mark mark[PEER_MARKS_MAX];
	struct peer_attach attach = { .from = mark };
	struct err err = { 0 };
	int rc;

	if (p->state != PEER_NEW) {
		refuse(p, id, -EALREADY, "this connection is attached already");
		return;
	}
	if (marks_read(json_object_get(request, "from"), mark,
		       &attach.from_count)) {
		refuse(p, id, -EINVAL,
		       "attach: \"from\" must be pairs [incarnation, number]");
		return;
	}
	attach.session = json_string_value(json_object_get(request, "session"));
	attach.watch = json_is_true(json_object_get(request, "watch"));
	attach.take = json_is_true(json_object_get(request, "take"));
	rc = p->host->attach(p, &attach, &err);
	if (rc) {
		refuse(p, id, rc, err.text);
		return;
	}
	p->state = attach.watch ? PEER_WATCHER : PEER_OWNER;
	p->asked++;
	peer_answer(p, id, peer_ok());
}

static void on_ack(struct peer *p, const json_t *request)
{
	const json_t *i = json_object_get(request, "i");
	const json_t *n = json_object_get(request, "n");

	if (!is_count(i) || !is_count(n))
		peer_break(p, -EINVAL, "ack: i and n must be whole numbers");
	else if (p->state == PEER_OWNER)
		p->host->ack(p, json_integer_value(i), json_integer_value(n));
}

/* The clock that stamps events: who asks knows how far it is off. */
static json_t *ping_reply(void)
{
	return json_pack("{s:b, s:I}", "ok", 1, "t_us",
			 (json_int_t)event_now_us());
}

/* True: the request was given away, with its only reference, as it may cross
 * to another thread. */
static bool on_request(struct peer *p, const char *what, int64_t id,
		       json_t *request)
{
	if (!strcmp(what, "ping")) {
		p->asked++;
		peer_answer(p, id, ping_reply());
	} else if (!strcmp(what, "attach")) {
		on_attach(p, id, request);
	} else if (p->state == PEER_NEW) {
		refuse(p, id, -ENOTCONN, "attach first");
	} else if (p->state == PEER_WATCHER && !wire_watcher_may(what)) {
		refuse(p, id, -EPERM, "this console only watches");
	} else if (p->asked >= PEER_ASKED_MAX) {
		refuse(p, id, -EBUSY, "too many requests without an answer");
	} else {
		p->asked++;
		p->host->ask(p, id, request);
		return true;
	}
	return false;
}

/* From anybody but the owner it was not asked for. */
static bool on_told(struct peer *p, json_t *line)
{
	if (p->state != PEER_OWNER)
		return false;
	p->host->told(p, line);
	return true;
}

static bool on_line(struct peer *p, json_t *request)
{
	const char *what = json_string_value(json_object_get(request, "do"));
	const json_t *id = json_object_get(request, "id");

	if (!json_is_object(request))
		peer_break(p, -EINVAL, "a request is a JSON object");
	else if (json_is_integer(json_object_get(request, "told")))
		return on_told(p, request);
	else if (!what)
		peer_break(p, -EINVAL, "a request says what to \"do\"");
	else if (!strcmp(what, "ack"))
		on_ack(p, request);
	else if (!is_count(id) || !json_integer_value(id))
		peer_break(p, -EINVAL, "a request has an \"id\" from 1 on");
	else
		return on_request(p, what, json_integer_value(id), request);
	return false;
}

void peer_feed(struct peer *p, const void *bytes, size_t len)
{
	struct err err = { 0 };
	json_t *request;
	int rc = 0;

	if (p->state == PEER_BROKEN)
		return;
	if (wire_feed(&p->wire, bytes, len)) {
		peer_break(p, -ENOMEM, "the agent is out of memory");
		return;
	}
	while (p->state != PEER_BROKEN) {
		rc = wire_next(&p->wire, &request, &err);
		if (rc)
			break;
		if (!on_line(p, request))
			json_decref(request);
	}
	if (rc && rc != -EAGAIN)
		peer_break(p, rc, err.text);
}
