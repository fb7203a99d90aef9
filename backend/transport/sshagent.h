/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ssh-agent's client side, without waiting: libssh2's own blocks while an
 * agent asks its user, or hangs.
 * Source: draft-miller-ssh-agent, messages 11 to 14.
 */
#ifndef BACKEND_TRANSPORT_SSHAGENT_H
#define BACKEND_TRANSPORT_SSHAGENT_H

#include <poll.h>

#include "backend/transport/keyfile.h"

struct sshagent {
	int fd; /* -1: not there */
	uint8_t *out, *in;
	size_t out_len, out_at, in_len, in_room;
};

struct agent_key {
	uint8_t *blob;
	size_t len;
	enum key_use use;
};

/* A negative errno: there is none behind this path. */
int sshagent_open(struct sshagent *a, const char *path);
void sshagent_close(struct sshagent *a);
/* One request at a time; its answer comes by the call of the same name:
 * -EAGAIN until it is there, -EPROTO for one that makes no sense, -EPERM for a
 * refusal. */
int sshagent_list(struct sshagent *a);
int sshagent_listed(struct sshagent *a, struct agent_key *keys, size_t max,
		    size_t *count);
int sshagent_sign(struct sshagent *a, const void *blob, size_t blob_len,
		  const void *data, size_t len);
/* *signature without its method's name: the caller's to free(). */
int sshagent_signed(struct sshagent *a, uint8_t **signature, size_t *len);
/* What poll(2) shall look for. */
struct pollfd sshagent_poll(const struct sshagent *a);

#endif
