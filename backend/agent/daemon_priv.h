/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the daemon's files share. */
#ifndef BACKEND_AGENT_DAEMON_PRIV_H
#define BACKEND_AGENT_DAEMON_PRIV_H

#include "backend/agent/daemon.h"
#include "backend/agent/host_watch.h"
#include "backend/agent/journal.h"
#include "backend/agent/node_ask.h"
#include "backend/agent/peer.h"
#include "backend/agent/place.h"
#include "backend/agent/work.h"
#include "engine/reactor.h"

#define CONNS_MAX 16

struct daemon;

/* A console's connection. */
struct conn {
	struct peer peer; /* first: the protocol's callbacks find us by it */
	struct daemon *daemon;
	struct conn *next;
	struct watch watch;
	struct spool_cursor *cursor; /* NULL: not attached */
	uint64_t serial;
};

struct daemon {
	const struct daemon_opts *opts;
	struct place place;
	struct reactor *control, *engine;
	bool engine_runs;
	struct work *work;
	struct journal journal;
	int spool_dirfd;

	struct watch listen, signals;
	struct conn *conns, *owner;
	unsigned conn_count;
	uint64_t conn_serial;
	struct task push; /* events wait to be sent */
	bool push_posted;

	char run[64];  /* "" none */
	char *session; /* of the newest owner; NULL */
	struct timer lease, tick;
	unsigned exports; /* vDisks that others use: no lease ends them */
	uint64_t left_ns; /* since when no console is attached; 0: one is */
	uint64_t usage_ns, sync_ns;
	struct kio sync;
	bool syncing, quitting;
	struct chores *chores; /* of control: the node's */
	struct host_watch *watch;
	struct node_ask *node;
	json_t *host; /* as the newest host event said */
};

/* ---- conn.c ------------------------------------------------------------- */
int conns_listen(struct daemon *d, struct err *err);
/* Whether any console is attached, be it to watch. */
bool conns_attached(const struct daemon *d);
/* Listens no more, and sends what is left to be sent. */
void conns_flush(struct daemon *d);
void conns_close(struct daemon *d);
/* Sends events to whoever has room for them, soon. */
void conns_push(struct daemon *d);
void conns_answer(struct daemon *d, uint64_t serial, int64_t id, json_t *reply);
/* To the owner, if there is one; given away. */
void conns_ask(struct daemon *d, json_t *line);

/* ---- daemon.c ----------------------------------------------------------- */
void daemon_event(struct daemon *d, const char *e, int64_t t_us, json_t *body);
void daemon_log(struct daemon *d, const char *level, const char *text);
void daemon_lease_update(struct daemon *d);
/* A request about the node; given away. */
void daemon_node_ask(struct daemon *d, uint64_t serial, int64_t id,
		     json_t *request);
void daemon_quit(struct daemon *d, const char *reason);
/* host, cluster, policies, vDisks: as they stand */
void daemon_snapshot(struct daemon *d);

#endif
