/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The links of a cluster, one an agent; of a cluster with one agent, one. They
 * are attached to at once, opened when all that can be reached are there, tried
 * again when they were lost, each for itself.
 *
 *          hello of all that answer, then choose()
 *   CONNECTING ------------------------------------> UP (open, ready)
 *    ^      ^  |                                       |
 *    |      |  +------> LOST <-------------------------+
 *    |      |            | fleet_retry()               |
 *    |      +------------+                             |
 *    +---------------- WAITING <-----------------------+
 *
 * What a link asks of another goes through board.h. All callbacks run from
 * fleet_step(), or from fleet_close().
 *
 * Threads: one. Never blocks, but for a moment in closing.
 */
#ifndef BACKEND_CLUSTER_FLEET_H
#define BACKEND_CLUSTER_FLEET_H

#include "backend/cluster/document.h"
#include "backend/cluster/link.h"
#include "backend/cluster/offset.h"

#define FLEET_TEXT 512
#define FLEET_MAX 256                    /* nodes */
#define FLEET_AGAIN "; trying again in " /* in texts, with how long */

enum fleet_state {
	FLEET_CONNECTING, /* for the first time, or again */
	FLEET_UP,
	FLEET_WAITING, /* tried again when retry_at_us comes */
	FLEET_LOST,    /* until fleet_retry() */
};

struct fleet;

/* For all to read; only fleet.c writes it. Times are of opts.clock. */
struct fleet_node {
	struct fleet *fleet;
	char agent[64];
	const struct node *at;
	const char *name; /* of the node; "" the cluster's one agent */
	struct link_conn *link;
	enum fleet_state state;
	char text[FLEET_TEXT]; /* why it is not UP, or not open; "" */
	char version[32];      /* of the agent, once it said hello */
	json_t *hello;         /* while choose() runs; NULL else */
	bool running;          /* a run was going when it was attached */
	bool open, open_failed;
	bool ending;         /* it was told to quit */
	int64_t up_after_us; /* how long attaching took */
	int64_t lost_at_us;  /* 0: it is not */
	int64_t retry_at_us; /* 0: no retry is due */
	unsigned ups;        /* how often it came up */
	struct offset offset;
	/* its own */
	json_t *doc;
	bool held, attached, open_asked, seen;
	int64_t began_at_us, up_at_us, ready_at_us, ping_at_us;
	unsigned retries, asks;
};

struct fleet_opts {
	const char *agent; /* its name, or what all names begin with */
	const struct node *node;
	size_t nodes;
	const char *program;   /* of agents of this machine; NULL, see link.h */
	const char *state_dir; /* the same; NULL: the usual one */
	const json_t *cluster; /* to be opened; NULL: none */
	bool watch;
	int64_t (*clock)(void); /* monotonic, microseconds */
	/* These have said hello (node->hello): the moment for fleet_from(),
	 * fleet_rewatch() or fleet_drop(). */
	void (*choose)(struct fleet_node *const *node, size_t count, void *arg);
	void (*event)(struct fleet_node *node, const json_t *event, void *arg);
	/* Another state, or another text. */
	void (*changed)(struct fleet_node *node, void *arg);
	void *arg;
};

struct fleet {
	struct fleet_opts opts;
	struct fleet_node *node;
	size_t nodes;
	int epfd;
	bool watching;
	bool chosen;  /* choose() ran */
	bool settled; /* nobody is waited for */
	bool begun;   /* it was, once */
	bool ever_up; /* any of them */
	bool rewatch, drop;
	char drop_text[FLEET_TEXT];
	int64_t began_at_us, hello_at_us;
};

/* Everything in opts is borrowed for as long as the fleet is. An error: none
 * of them could even be tried. */
int fleet_open(const struct fleet_opts *opts, struct fleet **fleet,
	       struct err *err);
/* Detaches from all; the agents go on. Takes NULL. */
void fleet_close(struct fleet *fleet);
int fleet_fd(const struct fleet *fleet); /* epoll fd */
int fleet_timeout_ms(const struct fleet *fleet);
void fleet_step(struct fleet *fleet);

/* All of them: UP when any is, LOST when no more is to be expected. */
enum fleet_state fleet_state(const struct fleet *fleet);
/* Why those that are not up are not, for people; "" all are. */
void fleet_text(const struct fleet *fleet, char *buf, size_t len);
/* Its cluster is open, and the stream has said what is in it. */
bool fleet_node_ready(const struct fleet_node *node);
/* Nobody that may still come is waited for, and one is ready. */
bool fleet_ready(const struct fleet *fleet);
/* Nobody that is up can get ready: text says why. */
bool fleet_hopeless(const struct fleet *fleet);
/* How many are in a state. */
size_t fleet_count(const struct fleet *fleet, enum fleet_state state);
/* By its node's name; NULL. */
struct fleet_node *fleet_find(const struct fleet *fleet, const char *name);
struct fleet_node *fleet_by_agent(const struct fleet *fleet, const char *agent);

/* To be opened, of a fleet that was opened without. */
void fleet_cluster(struct fleet *fleet, const json_t *cluster);
/* Those that are waited for or lost are tried at once; an opening that failed
 * is asked for again. */
void fleet_retry(struct fleet *fleet);
void fleet_open_again(struct fleet *fleet);
/* From choose(): as link_conn_from(). take: it is this console's own agent, of
 * which it was cut off. */
int fleet_from(struct fleet_node *node, const char *session,
	       const int64_t (*from)[2], size_t from_count, bool take);
/* Soon: detaches from all and attaches anew to watch. */
void fleet_rewatch(struct fleet *fleet);
/* Soon: detaches from all, with a reason. */
void fleet_drop(struct fleet *fleet, const char *why);

/* As link_conn_ask(): -ENOTCONN. */
int64_t fleet_ask(struct fleet_node *node, const char *what, json_t *body,
		  void (*reply)(const json_t *reply, void *arg), void *arg);
/* How far the node's clock is before ours, off by err_us at most; false: not
 * known. */
bool fleet_offset(const struct fleet_node *node, int64_t *offset_us,
		  int64_t *err_us);

#endif
