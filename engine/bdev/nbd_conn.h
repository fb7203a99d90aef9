/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection of the nbd bdev: a handle of libnbd, which is good for one
 * connection, watched by the reactor. nbd_conn.c alone
 * knows libnbd; nbd_none.c is there instead where it is not to be had.
 *
 * Nothing of the owner's runs from inside these calls: event() is called from
 * the reactor, and the owner looks then at what has become of it.
 */
#ifndef ENGINE_BDEV_NBD_CONN_H
#define ENGINE_BDEV_NBD_CONN_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/bdev/nbd.h"

struct nbd_conn;

enum nbd_conn_state {
	NBD_CONN_SHAKING, /* connecting, TLS, options */
	NBD_CONN_READY,
	NBD_CONN_OVER,
};

enum nbd_conn_op {
	NBD_CONN_READ,
	NBD_CONN_WRITE,
	NBD_CONN_FLUSH,
	NBD_CONN_TRIM,
	NBD_CONN_ZERO,
};

/* The owner's, from sending until it was given back or the connection freed. */
struct nbd_conn_cmd {
	uint8_t op; /* enum nbd_conn_op */
	bool fua;
	bool given; /* private: back */
	int error;  /* out: 0, a positive errno; ENOTCONN: no answer came */
	uint32_t len;
	uint64_t off;
	void *buf;
	struct nbd_conn *conn; /* private */
	struct nbd_conn_cmd *next;
};

struct nbd_conn_facts {
	uint64_t size_bytes;
	uint32_t block_min, request_max; /* request_max: never 0 */
	bool read_only, can_flush, can_fua, can_trim, can_zero;
	bool tls;
};

/* Whether there is a libnbd. */
bool nbd_conn_can(void);

union nbd_conn_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};
int nbd_conn_address(const struct bdev_nbd_target *target,
		     union nbd_conn_address *at, socklen_t *len,
		     struct err *err);
const char *nbd_conn_identity(const struct bdev_nbd_target *target);
/* A target that can be connected to; -EINVAL, -ENAMETOOLONG. */
int nbd_conn_check(const struct bdev_nbd_target *target, struct err *err);

/*
 * Begins to connect. event(arg) runs later whenever something has changed; it
 * may free the connection. 0, or why not even that could be done.
 */
int nbd_conn_new(struct reactor *r, const struct bdev_nbd_target *target,
		 void (*event)(void *arg), void *arg, struct nbd_conn **conn,
		 struct err *err);
/* Cuts it off; what was sent is not given back any more. Takes NULL. */
void nbd_conn_free(struct nbd_conn *conn);

enum nbd_conn_state nbd_conn_state(const struct nbd_conn *conn);
/* OVER: a sentence of what libnbd said. */
const char *nbd_conn_why(const struct nbd_conn *conn);
/* READY. */
void nbd_conn_facts(const struct nbd_conn *conn, struct nbd_conn_facts *facts);

/* READY. What cannot be sent is given back, with ENOTCONN, by an event. */
void nbd_conn_send(struct nbd_conn *conn, struct nbd_conn_cmd *cmd);
/* What was answered since, in that order; NULL: nothing. */
struct nbd_conn_cmd *nbd_conn_answered(struct nbd_conn *conn);
/* READY with nothing in flight: asks the server to end it; OVER follows. */
void nbd_conn_bye(struct nbd_conn *conn);

#endif
