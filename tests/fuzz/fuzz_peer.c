/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a console may say to the agent, in pieces of any size. The first byte
 * sizes the pieces. Every request is answered at most once, and a broken peer
 * says nothing more.
 */
#include <string.h>

#include "backend/agent/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned owed;

static int on_attach(struct peer *peer, const struct peer_attach *attach,
		     struct err *err)
{
	(void)peer;
	id_assert(attach->from_count <= PEER_MARKS_MAX);
	if (attach->take && attach->session)
		return err_set(err, -EBUSY, "%.100s", attach->session);
	return 0;
}

static void on_ack(struct peer *peer, int64_t i, int64_t n)
{
	id_assert(peer->state == PEER_OWNER && i >= 0 && n >= 0);
}

static void on_ask(struct peer *peer, int64_t id, json_t *request)
{
	id_assert(json_string_value(json_object_get(request, "do")));
	json_decref(request);
	if (id % 2)
		peer_answer(peer, id, peer_refusal(-EINVAL, "odd"));
	else
		owed++;
}

static void on_told(struct peer *peer, json_t *line)
{
	id_assert(peer->state == PEER_OWNER);
	id_assert(json_is_integer(json_object_get(line, "told")));
	json_decref(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct peer_host host = { on_attach, on_ack, on_ask,
					       on_told };
	size_t piece = size ? (size_t)data[0] + 1 : 1;
	struct peer p;
	size_t len, after;

	owed = 0;
	peer_init(&p, &host);
	for (size_t at = 1; at < size; at += piece)
		peer_feed(&p, data + at, size - at < piece ? size - at : piece);
	id_assert(owed <= PEER_ASKED_MAX);
	wire_out(&p.wire, &len);
	if (p.state == PEER_BROKEN) {
		peer_feed(&p, "{\"id\":1,\"do\":\"ping\"}\n", 21);
		wire_out(&p.wire, &after);
		id_assert(after == len);
	}
	peer_fini(&p);
	return 0;
}
