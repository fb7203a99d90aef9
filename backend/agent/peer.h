/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One console as the agent sees it: the protocol without sockets. Bytes come
 * in, requests go to the host, answers and events go out as bytes.
 *
 *   NEW --attach--> OWNER or WATCHER --garbage, take over--> BROKEN
 *
 * What it reads is untrusted: a line that is no request gets one answer and
 * makes the peer BROKEN: its host sends what is left and closes.
 *
 * Threads: one.
 */
#ifndef BACKEND_AGENT_PEER_H
#define BACKEND_AGENT_PEER_H

#include "backend/agent/spool.h"
#include "backend/wire.h"

#define PEER_MARKS_MAX 1024
/* Requests without an answer yet: of a console, and of all other nodes. */
#define PEER_ASKED_MAX 1024

enum peer_state { PEER_NEW, PEER_OWNER, PEER_WATCHER, PEER_BROKEN };

struct peer;

struct peer_attach {
	const struct spool_mark *from;
	size_t from_count;
	const char *session; /* NULL: none */
	bool watch, take;
};

struct peer_host {
	/* 0: attached; negative errno with err: not */
	int (*attach)(struct peer *peer, const struct peer_attach *attach,
		      struct err *err);
	void (*ack)(struct peer *peer, int64_t i, int64_t n);
	/* request is given away; peer_answer() follows once, now or later */
	void (*ask)(struct peer *peer, int64_t id, json_t *request);
	/* the owner's answer to peer_ask(); line is given away */
	void (*told)(struct peer *peer, json_t *line);
};

struct peer {
	const struct peer_host *host;
	enum peer_state state;
	struct wire wire;
	unsigned asked;
};

void peer_init(struct peer *p, const struct peer_host *host);
void peer_fini(struct peer *p);
/* Says the first line; hello stays the caller's. */
int peer_hello(struct peer *p, const json_t *hello);
/* Takes bytes and does what they ask. Nothing once BROKEN. */
void peer_feed(struct peer *p, const void *bytes, size_t len);
/* `reply` is given away: an object to which re is added, with ok. NULL: lack
 * of memory. */
void peer_answer(struct peer *p, int64_t id, json_t *reply);
/* Asks the console: {"ask":ID,..}, given away. */
void peer_ask(struct peer *p, json_t *line);
/* {"ok":true} and {"ok":false,...}, for peer_answer(). */
json_t *peer_ok(void);
json_t *peer_refusal(int code, const char *text);
/* Says why, without `re`, and makes it BROKEN. */
void peer_break(struct peer *p, int code, const char *text);

#endif
