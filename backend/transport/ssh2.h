/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way by libssh2: all nodes in the caller's thread. It is told who the
 * host is, by which keys it is known and with which to log in; all of it
 * borrowed until it is closed.
 */
#ifndef BACKEND_TRANSPORT_SSH2_H
#define BACKEND_TRANSPORT_SSH2_H

#include "backend/transport/far.h"
#include "backend/transport/hostkey.h"
#include "backend/transport/keys.h"

struct ssh2_opts {
	const struct sshconf *conf;
	const struct hostkeys *known;
	const struct ssh_keys *keys;
	const struct far *far;
};

/* Reading fails with -EPROTONOSUPPORT where ssh itself may succeed. */
int ssh2_open(const struct ssh2_opts *opts, struct transport **t,
	      struct err *err);
/* Whether libssh2 can ask for any of the keys that are known. */
bool ssh2_knows(const struct hostkeys *known, const struct sshconf *conf);
/* The command was given to the far shell. */
bool ssh2_ready(const struct transport *t);

#endif
