/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the frames of a session file lie, from their headers alone: nothing is
 * unpacked, and no length a file claims is believed beyond the file's end.
 * Source: RFC 8878, section 3.1.
 *
 *	magic 4 | descriptor 1 | window 0-1 | dictionary 0-4 | size 0-8
 *	block header 3 | block ... | checksum 0 or 4
 */
#include <string.h>
#include <unistd.h>

#include "backend/session/session_priv.h"

#define FRAME_MAGIC 0xfd2fb528u
#define SKIP_MAGIC 0x184d2a50u
#define BLOCK_MAX (128u * 1024)
/* Places that look like a frame but are none, in one search: a hostile file
 * may be made of them. */
#define RESYNC_TRIES 1000

void session_bytes_init(struct session_bytes *b, int fd)
{
	b->fd = fd;
	b->at = 0;
	b->len = 0;
}

const unsigned char *session_bytes_get(struct session_bytes *b, uint64_t at,
				       size_t want)
{
	id_assert(want <= 64);
	if (at < b->at || at + want > b->at + b->len) {
		b->at = at;
		b->len = 0;
		while (b->len < want) {
			ssize_t n = pread(b->fd, b->buf + b->len,
					  sizeof(b->buf) - b->len,
					  (off_t)(at + b->len));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			b->len += (size_t)n;
		}
	}
	if (at + want > b->at + b->len)
		return NULL;
	return b->buf + (at - b->at);
}

static uint32_t le32(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static size_t header_size(unsigned char descriptor)
{
	static const size_t dictionary[] = { 0, 1, 2, 4 };
	static const size_t content[] = { 0, 2, 4, 8 };
	bool single = descriptor & 0x20;
	size_t size = 4 + 1 + !single + dictionary[descriptor & 3] +
		      content[descriptor >> 6];

	if (single && !(descriptor >> 6))
		size++;
	return size;
}

/* Length of the frame at `at`; 0 when it is none or ends behind `end`. */
static uint64_t frame_length(struct session_bytes *b, uint64_t at, uint64_t end,
			     bool *skippable)
{
	const unsigned char *p = session_bytes_get(b, at, 4);
	uint64_t pos = at;
	bool last = false, checksum;

	if (!p)
		return 0;
	*skippable = (le32(p) & 0xfffffff0u) == SKIP_MAGIC;
	if (*skippable) {
		p = session_bytes_get(b, at, 8);
		pos = p ? at + 8 + le32(p + 4) : end + 1;
		return pos <= end ? pos - at : 0;
	}
	p = le32(p) == FRAME_MAGIC ? session_bytes_get(b, at, 5) : NULL;
	if (!p || (p[4] & 0x08))
		return 0;
	checksum = p[4] & 0x04;
	pos = at + header_size(p[4]);
	while (!last && pos + 3 <= end) {
		uint32_t h, size, type;

		p = session_bytes_get(b, pos, 3);
		if (!p)
			return 0;
		h = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
		last = h & 1;
		type = h >> 1 & 3;
		size = h >> 3;
		if (type == 3 || (type != 1 && size > BLOCK_MAX))
			return 0;
		pos += 3 + (type == 1 ? 1 : size);
	}
	if (!last)
		return 0;
	pos += checksum ? 4 : 0;
	return pos <= end ? pos - at : 0;
}

/* Next place at or behind `at` that begins as a frame does, or `end`. */
static uint64_t magic_find(struct session_bytes *b, uint64_t at, uint64_t end)
{
	static const unsigned char magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	const unsigned char *p;

	while (at + 4 <= end && (p = session_bytes_get(b, at, 4))) {
		size_t held = (size_t)(b->at + b->len - at);
		const unsigned char *hit = memmem(p, held, magic, 4);

		if (hit)
			return at + (uint64_t)(hit - p);
		at += held - 3;
	}
	return end;
}

int session_frame_find(struct session_bytes *b, uint64_t from, uint64_t end,
		       struct session_frame *frame)
{
	for (int tries = 0; tries < RESYNC_TRIES && from < end; tries++) {
		frame->at = from;
		frame->len = frame_length(b, from, end, &frame->skippable);
		if (frame->len)
			return 0;
		from = magic_find(b, from + 1, end);
	}
	return -ENODATA;
}

int session_kind(struct session_bytes *b, uint64_t size, const char *path,
		 enum session_kind *kind, struct err *err)
{
	static const unsigned char magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	size_t n = size < 4 ? (size_t)size : 4;
	const unsigned char *p = session_bytes_get(b, 0, n);

	if (!n)
		return err_set(err, -ENODATA,
			       "%s: is empty: nothing was recorded in it",
			       path);
	if (!p)
		return err_set(err, -EIO, "%s: cannot be read", path);
	*kind = p[0] == SESSION_PLAIN_FIRST ? SESSION_PLAIN : SESSION_ZSTD;
	if (*kind == SESSION_PLAIN || !memcmp(p, magic, n) ||
	    (n == 4 && (le32(p) & 0xfffffff0u) == SKIP_MAGIC))
		return 0;
	if (p[0] == 0x1f && n > 1 && p[1] == 0x8b)
		return err_set(err, -EINVAL,
			       "%s: is packed by gzip: unpack it with gunzip "
			       "first",
			       path);
	return err_set(err, -EINVAL,
		       "%s: is no session: it begins neither as a zstd frame "
		       "nor as a line of JSON",
		       path);
}

static uint64_t lines_end(struct session_bytes *b, uint64_t size)
{
	uint64_t end = 0, at = 0;
	const unsigned char *p;

	while (at < size && (p = session_bytes_get(b, at, 1))) {
		size_t held = (size_t)(b->at + b->len - at);
		const unsigned char *nl;

		if (held > size - at)
			held = (size_t)(size - at);
		nl = memrchr(p, '\n', held);
		if (nl)
			end = at + (uint64_t)(nl - p) + 1;
		at += held;
	}
	return end;
}

uint64_t session_sound_end(struct session_bytes *b, uint64_t size,
			   enum session_kind kind)
{
	struct session_frame frame;
	uint64_t end = 0;

	if (kind == SESSION_PLAIN)
		return lines_end(b, size);
	while (!session_frame_find(b, end, size, &frame))
		end = frame.at + frame.len;
	return end;
}
