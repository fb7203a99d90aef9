/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of a link test: whoever sent them. */
#include <string.h>

#include "backend/agent/link_test.h"

void link_hello(uint8_t hello[LINK_HELLO_BYTES], const char *token)
{
	const size_t len = strnlen(token, LINK_TOKEN_MAX);

	memset(hello, 0, LINK_HELLO_BYTES);
	memcpy(hello, LINK_MAGIC, 8);
	memcpy(hello + 8, token, len);
}

bool link_hello_right(const uint8_t hello[LINK_HELLO_BYTES], const char *token)
{
	uint8_t right[LINK_HELLO_BYTES];
	unsigned differs = 0;

	link_hello(right, token);
	for (size_t k = 0; k < sizeof(right); k++)
		differs |= hello[k] ^ right[k];
	return !differs;
}

static bool head_right(struct link_frames *f)
{
	f->len = (uint32_t)f->head[1] << 24 | (uint32_t)f->head[2] << 16 |
		 (uint32_t)f->head[3] << 8 | f->head[4];
	switch (f->head[0]) {
	case LINK_DATA:
		f->data_left = f->len;
		return f->len <= LINK_FRAME_MAX;
	case LINK_PING:
	case LINK_END:
	case LINK_REPORT:
	case LINK_SEND:
		return f->len <= LINK_SMALL_MAX;
	default:
		return false;
	}
}

/* What is lacking of `want` bytes, into head or body. */
static size_t take(uint8_t *to, size_t have, size_t want, const uint8_t *from,
		   size_t len)
{
	const size_t n = want - have < len ? want - have : len;

	memcpy(to + have, from, n);
	return n;
}

ssize_t link_frames_feed(struct link_frames *f, const void *bytes, size_t len,
			 bool (*frame)(enum link_type type, const uint8_t *body,
				       uint32_t len, void *arg),
			 void *arg)
{
	const uint8_t *at = bytes, *end = at + len;
	bool on = true;

	while (on && at < end) {
		size_t left = (size_t)(end - at), n;

		if (f->data_left) {
			n = f->data_left < left ? f->data_left : left;
			f->data_left -= (uint32_t)n;
			f->have = f->data_left ? f->have : 0;
			at += n;
			on = frame(LINK_DATA, NULL, (uint32_t)n, arg);
			continue;
		}
		if (f->have < LINK_HEAD_BYTES) {
			n = take(f->head, f->have, LINK_HEAD_BYTES, at, left);
			f->have += n;
			at += n;
			if (f->have < LINK_HEAD_BYTES)
				break;
			if (!head_right(f))
				return -EPROTO;
			if (f->head[0] == LINK_DATA) {
				f->have = f->len ? f->have : 0;
				continue;
			}
			left = (size_t)(end - at);
		}
		n = take(f->body, f->have - LINK_HEAD_BYTES, f->len, at, left);
		f->have += n;
		at += n;
		if (f->have < LINK_HEAD_BYTES + f->len)
			break;
		f->have = 0;
		on = frame((enum link_type)f->head[0], f->body, f->len, arg);
	}
	return at - (const uint8_t *)bytes;
}
