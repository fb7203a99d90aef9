/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console's side of the agent protocol: attaches, asks, takes events in
 * order without gap or double, acknowledges, and attaches again when the way
 * was lost. A local agent is reached as a remote one is: iodeck-agent attach
 * joins a byte stream to the daemon's socket, and transport/ carries it.
 *
 * Threads: one. Never blocks.
 */
#ifndef BACKEND_CLUSTER_LINK_H
#define BACKEND_CLUSTER_LINK_H

#include <jansson.h>

#include "backend/cluster/node.h"

struct link_conn;

enum link_state { LINK_OFF, LINK_OPENING, LINK_UP, LINK_DOWN };

struct link_conn_opts {
	const char *agent;     /* its name: one daemon a name */
	const char *program;   /* iodeck-agent's path; NULL: beside our own
				  binary, then libexec, then PATH */
	const char *state_dir; /* sockets, spool; NULL: XDG_STATE_HOME */
	bool watch;
	bool take;           /* take over from an owner that is alive */
	bool hold;           /* after hello, wait for link_conn_attach() */
	const char *session; /* path, told to the agent */
	/* marks to attach from: (i, n) pairs of this agent */
	const int64_t (*from)[2];
	size_t from_count;
	bool spawn; /* start the daemon when there is none */
	/* Where it is; NULL: this machine. program and state_dir are the
	 * node's then. Its texts are copied. */
	const struct node *node;
	/* each event, in order; a borrowed reference */
	void (*event)(const json_t *event, void *arg);
	/*
	 * OPENING with hello: the agent's first line is there and nothing was
	 * asked for yet: the moment to choose another session and marks with
	 * link_conn_from(). UP with hello: attached. DOWN with the reason.
	 */
	void (*state)(enum link_state state, const json_t *hello,
		      const char *reason, void *arg);
	/* The agent asks its console; link_conn_tell() answers. NULL: it may
	 * not. */
	void (*ask)(const json_t *ask, void *arg);
	void *arg;
};

int link_conn_open(const struct link_conn_opts *opts, struct link_conn **conn,
		   struct err *err);
/* Of several to be closed: begins it, so that they end together. */
void link_conn_shut(struct link_conn *conn);
/* Detaches; the agent goes on. Takes NULL. */
void link_conn_close(struct link_conn *conn);
int link_conn_fd(const struct link_conn *conn); /* epoll fd */
int link_conn_timeout_ms(const struct link_conn *conn);
/* The way it takes, or took last, and why; for people. */
const char *link_conn_via(const struct link_conn *conn);
/* Why it is DOWN: a negative errno of the way; 0: other reasons, as an agent
 * that has ended. */
int link_conn_code(const struct link_conn *conn);
/* Why the agent refused to be attached to: -EBUSY, it has an owner; 0: it did
 * not. */
int link_conn_refused(const struct link_conn *conn);
/* Does what is at hand; callbacks run from here. */
void link_conn_step(struct link_conn *conn);
/*
 * Sets what opts.session and opts.from said, copied: before the attach, so
 * from the callback of OPENING or before link_conn_retry(). A mark (i,
 * INT64_MAX) leaves out all of that incarnation.
 */
int link_conn_from(struct link_conn *conn, const char *session,
		   const int64_t (*from)[2], size_t from_count);
/* Take over, or not, in the attach to come. */
void link_conn_take(struct link_conn *conn, bool take);
/* With opts.hold, once hello is there: goes on. */
void link_conn_attach(struct link_conn *conn);
/* Attach again after DOWN, with the marks as they are now. */
int link_conn_retry(struct link_conn *conn, struct err *err);

/* reply(reply or NULL when the link went, arg) runs once, from step. `body` is
 * given away. Before it is UP only a ping may be asked, once hello is there.
 * Returns the request's id or a negative errno. */
int64_t link_conn_ask(struct link_conn *conn, const char *what, json_t *body,
		      void (*reply)(const json_t *reply, void *arg), void *arg);
/* The answer to the agent's question n; reply is given away. */
void link_conn_tell(struct link_conn *conn, int64_t n, json_t *reply);
/* What is on disk: (i, n). */
void link_conn_ack(struct link_conn *conn, int64_t i, int64_t n);

#endif
