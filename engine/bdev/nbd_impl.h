/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inside of the nbd bdev.
 *
 *   nbd.c         its states, from WAITING to CLOSED
 *   nbd_flight.c  what is submitted, sent, answered, and sent again
 *   nbd_target.c  where it is
 *   nbd_conn.c    one connection
 */
#ifndef ENGINE_BDEV_NBD_IMPL_H
#define ENGINE_BDEV_NBD_IMPL_H

#include <sys/queue.h>

#include "engine/bdev/nbd_conn.h"

struct nbd_request {
	struct nbd_conn_cmd cmd;
	struct io *io;
	uint32_t did;     /* bytes of the io */
	bool flushing;    /* in the place of FUA */
	uint64_t sent_ns; /* reactor_lived() */
	uint64_t covers;  /* FLUSH: writes answered when it was submitted */
	TAILQ_ENTRY(nbd_request) link;
};
TAILQ_HEAD(nbd_requests, nbd_request);

struct nbd_where {
	char *unix_path, *address, *export_name, *key, *identity, *priority;
	char *boot;
	uint16_t port;
};

struct bdev_nbd {
	struct bdev bdev;
	struct bdev_nbd_opts opts;
	enum bdev_nbd_state state;
	struct nbd_where where;
	bool told;    /* where it is */
	bool been_up; /* with `boot`, and until `moved` with this target */
	bool moved;
	char *boot;
	struct nbd_conn *conn;
	struct nbd_conn_facts facts;
	struct nbd_requests queue, sent, stock;
	unsigned inflight;
	uint64_t inflight_bytes;
	unsigned unfenced; /* writes of ended connections, not answered */
	uint64_t written, covered; /* answered, and of those flushed */
	struct timer limit, retry, watchdog;
	uint64_t backoff_ns;
	bool closing;
	char *doom;         /* why it is to die */
	char why[400];      /* of this attempt */
	char lost_why[400]; /* of the last that failed */
};

struct bdev_nbd *nbd_of(const struct bdev *bdev);

static inline struct reactor *nbd_reactor(const struct bdev_nbd *n)
{
	return n->bdev.reactor;
}

/* ---- nbd_flight.c ------------------------------------------------------- */

void nbd_flight_init(struct bdev_nbd *n);
/* With nothing in flight. */
void nbd_flight_fini(struct bdev_nbd *n);
/* As bdev_ops.submit. */
void nbd_flight_submit(struct bdev *bdev, struct io *io);
/* Sends what there is room for. From the reactor's turn, never inside submit */
void nbd_flight_pump(struct bdev_nbd *n);
/* Takes the connection's answers; true: there was one. */
bool nbd_flight_answers(struct bdev_nbd *n);
/* The connection has ended: what was sent is to be sent again. */
void nbd_flight_back(struct bdev_nbd *n);
/* All that waits fails. Those who are called back may ask for more: the front
 * has to refuse it by then. */
void nbd_flight_fail(struct bdev_nbd *n, int result);

/* ---- nbd_target.c ------------------------------------------------------- */

void nbd_where_free(struct nbd_where *w);
/* A copy; -ENOMEM. */
int nbd_where_take(struct nbd_where *w, const struct bdev_nbd_target *target);
bool nbd_where_same(const struct nbd_where *a, const struct nbd_where *b);
/* Borrows from w. */
struct bdev_nbd_target nbd_where_target(const struct nbd_where *w);
/* For people: a path, or an address and a port. */
void nbd_where_say(const struct nbd_where *w, char *buf, size_t len);

#endif
