/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/sshagent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/transport/base64.h"

#define ANSWER_MAX (256 * 1024)

enum { LIST = 11, LIST_ANSWER = 12, SIGN = 13, SIGN_ANSWER = 14 };

int sshagent_open(struct sshagent *a, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int rc = 0;

	*a = (struct sshagent) { .fd = -1 };
	if (!path || strlen(path) >= sizeof(to.sun_path))
		return -ENOENT;
	memcpy(to.sun_path, path, strlen(path) + 1);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&to, sizeof(to)))
		rc = -errno;
	if (rc)
		sshagent_close(a);
	return rc;
}

void sshagent_close(struct sshagent *a)
{
	if (a->fd >= 0)
		close(a->fd);
	free(a->out);
	free(a->in);
	*a = (struct sshagent) { .fd = -1 };
}

struct pollfd sshagent_poll(const struct sshagent *a)
{
	const short out = a->out_at < a->out_len ? POLLOUT : POLLIN;

	return (struct pollfd) { .fd = a->fd, .events = out };
}

/* ---- asking ------------------------------------------------------------- */

static uint8_t *put_u32(uint8_t *to, size_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		*to++ = (uint8_t)(n >> shift);
	return to;
}

static uint8_t *put_string(uint8_t *to, const void *bytes, size_t len)
{
	to = put_u32(to, len);
	memcpy(to, bytes, len);
	return to + len;
}

/* A frame with room for its payload of `len` bytes, type included. */
static uint8_t *ask(struct sshagent *a, size_t len, uint8_t type)
{
	uint8_t *to = malloc(4 + len);

	free(a->out);
	a->out = to;
	a->out_at = a->in_len = 0;
	a->out_len = to ? 4 + len : 0;
	if (!to)
		return NULL;
	to = put_u32(to, len);
	*to++ = type;
	return to;
}

int sshagent_list(struct sshagent *a)
{
	return ask(a, 1, LIST) ? 0 : -ENOMEM;
}

int sshagent_sign(struct sshagent *a, const void *blob, size_t blob_len,
		  const void *data, size_t len)
{
	uint8_t *to = ask(a, 1 + 4 + blob_len + 4 + len + 4, SIGN);

	if (!to)
		return -ENOMEM;
	to = put_string(to, blob, blob_len);
	to = put_string(to, data, len);
	put_u32(to, 0); /* flags: only RSA has any */
	return 0;
}

/* ---- answers ------------------------------------------------------------ */

static int send_rest(struct sshagent *a)
{
	ssize_t n;

	while (a->out_at < a->out_len) {
		n = send(a->fd, a->out + a->out_at, a->out_len - a->out_at,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return -errno;
		a->out_at += (size_t)n;
	}
	return 0;
}

static int room(struct sshagent *a)
{
	size_t want = a->in_room ? 2 * a->in_room : 4096;
	uint8_t *grown;

	if (a->in_len < a->in_room)
		return 0;
	if (want > ANSWER_MAX)
		return -EPROTO;
	grown = realloc(a->in, want);
	if (!grown)
		return -ENOMEM;
	a->in = grown;
	a->in_room = want;
	return 0;
}

/* One whole frame; *at to *end is what follows its type. */
static int answer(struct sshagent *a, uint8_t type, const uint8_t **at,
		  const uint8_t **end)
{
	const uint8_t *frame, *body;
	size_t len;
	ssize_t n;
	int rc = send_rest(a);

	*at = *end = NULL;
	while (!rc) {
		frame = a->in;
		if (a->in_len &&
		    !blob_string(&frame, a->in + a->in_len, &body, &len))
			break;
		rc = room(a);
		if (rc)
			break;
		n = recv(a->fd, a->in + a->in_len, a->in_room - a->in_len,
			 MSG_DONTWAIT);
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		a->in_len += (size_t)n;
	}
	if (rc)
		return rc == -EINTR ? -EAGAIN : rc;
	if (!len || body[0] != type)
		return -EPERM;
	*at = body + 1;
	*end = body + len;
	return 0;
}

int sshagent_listed(struct sshagent *a, struct agent_key *keys, size_t max,
		    size_t *count)
{
	const uint8_t *at, *end, *blob, *comment;
	size_t len, comment_len;
	int rc = answer(a, LIST_ANSWER, &at, &end);

	*count = 0;
	if (rc)
		return rc;
	if (end - at < 4)
		return -EPROTO;
	for (at += 4; at < end && *count < max; ++*count) {
		struct agent_key *k = &keys[*count];

		if (blob_string(&at, end, &blob, &len) ||
		    blob_string(&at, end, &comment, &comment_len))
			return -EPROTO;
		k->blob = malloc(len ? len : 1);
		if (!k->blob)
			return -ENOMEM;
		memcpy(k->blob, blob, len);
		k->len = len;
		k->use = key_use_of(blob, len);
	}
	return 0;
}

int sshagent_signed(struct sshagent *a, uint8_t **signature, size_t *len)
{
	const uint8_t *at, *end, *all, *s;
	size_t n;
	int rc = answer(a, SIGN_ANSWER, &at, &end);

	if (rc)
		return rc;
	if (blob_string(&at, end, &all, &n))
		return -EPROTO;
	at = all;
	end = all + n;
	if (blob_string(&at, end, &s, &n) || blob_string(&at, end, &s, &n))
		return -EPROTO;
	*signature = malloc(n ? n : 1);
	if (!*signature)
		return -ENOMEM;
	memcpy(*signature, s, n);
	*len = n;
	return 0;
}
