/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libssh2's way, between its files:
 *
 *   RESOLVE -> CONNECT -> GATE -> HANDSHAKE -> AUTH -> CHANNEL -> EXEC -> OPEN
 *   ssh2_connect.c     |  ssh2_login.c             |  ssh2.c
 *          ^           |
 *          +-- again --+ when sshd hung up before its banner (MaxStartups)
 *
 * A stage returns 0 when it is done, -EAGAIN, or its error with err set.
 */
#ifndef BACKEND_TRANSPORT_SSH2_PRIV_H
#define BACKEND_TRANSPORT_SSH2_PRIV_H

#include <libssh2.h>
#include <sys/socket.h>

#include "backend/transport/errand.h"
#include "backend/transport/gate.h"
#include "backend/transport/ssh2.h"

#define SSH2_ADDRS 4
#define SSH2_OUT 32768 /* one packet's worth */

enum ssh2_stage {
	SSH2_RESOLVE,
	SSH2_CONNECT,
	SSH2_GATE,
	SSH2_HANDSHAKE,
	SSH2_AUTH,
	SSH2_CHANNEL,
	SSH2_EXEC,
	SSH2_OPEN,
	SSH2_OVER,
};

struct ssh2 {
	struct transport t;
	struct ssh2_opts o;
	enum ssh2_stage stage;
	int64_t due_ms; /* of the stage; 0: not set yet */

	struct errand errand;
	struct sockaddr_storage addr[SSH2_ADDRS];
	socklen_t addr_len[SSH2_ADDRS];
	size_t addrs, addr_at;
	int sock;
	unsigned tries;
	int64_t again_ms; /* not before; 0: now */
	struct gate_ticket gate;

	LIBSSH2_SESSION *session;
	LIBSSH2_CHANNEL *channel;
	size_t key_at;
	struct sshagent agent; /* while it signs */
	bool signing;

	/*
	 * What is being written never moves and never changes its length: a
	 * packet half sent is finished by the same call again, and before any
	 * other on this session.
	 */
	char out[SSH2_OUT];
	size_t out_at, out_len;
	bool half_read; /* a read has half sent that the window grows */
	bool more;      /* the session may hold what poll cannot see */
	bool closing;
	struct said said;
	int rc; /* with OVER */
	struct err err;
};

/* One stage is over: sets the limit of the next. */
void ssh2_next(struct ssh2 *s, enum ssh2_stage stage, int limit_ms);
bool ssh2_late(const struct ssh2 *s);
/* Of the session, for people. */
const char *ssh2_text(struct ssh2 *s);

int ssh2_resolve(struct ssh2 *s, struct err *err);
int ssh2_connect(struct ssh2 *s, struct err *err);
/* Drops the connection and begins anew a moment later. */
void ssh2_again(struct ssh2 *s);
void ssh2_disconnect(struct ssh2 *s);

int ssh2_gate(struct ssh2 *s, struct err *err);
int ssh2_handshake(struct ssh2 *s, struct err *err);
int ssh2_auth(struct ssh2 *s, struct err *err);

#endif
