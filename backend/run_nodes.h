/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console's part of a run over nodes: starts it on each agent, keeps the
 * barriers, brings back those that were away, and decides about the silent by
 * the plan's `silent`. Between barriers the agents need nobody (plan.h); so a
 * console that is gone costs time, and no result.
 *
 *	node:  ASKED --> IN <--> WAITING          over all: when none is awaited
 *	        ^        | ^        |             any more and all WAIT at a
 *phase, |   lost v | back   v             run_go with one moment, by each
 *	        +------ AWAY ----> OUT  (silent)  one's clock
 *	 no run there any more        OVER
 *
 * Owns no link and no clock: its host lends it hands.
 *
 * Threads: one.
 */
#ifndef BACKEND_RUN_NODES_H
#define BACKEND_RUN_NODES_H

#include <jansson.h>

#include "engine/base.h"

#define RUN_NODES_SILENT_US 60000000 /* away for so long is silent */

struct run_nodes;

struct run_nodes_host {
	void *arg;
	int64_t (*now_us)(void *arg);  /* monotonic */
	int64_t (*wall_us)(void *arg); /* what offsets are against */
	/* body is given away; run_nodes_answer() follows, NULL when the link
	 * went */
	void (*ask)(void *arg, size_t node, const char *what, json_t *body);
	/* its clock less ours, and how sure; false: not known yet */
	bool (*offset)(void *arg, size_t node, int64_t *offset_us,
		       int64_t *err_us, int64_t *rtt_us);
	/* the maxima it found itself: run_start's known; new, or NULL */
	json_t *(*known)(void *arg, size_t node);
	/* an event of the console's; body is given away */
	void (*emit)(void *arg, const char *e, json_t *body);
};

/*
 * Which node has which vDisk, written into a plan: `owner` says the index of a
 * vDisk's node. -ENODEV: nobody owns it. Nodes are as they will be asked.
 */
struct run_nodes_who {
	const char *name, *agent;
};
int run_nodes_assign(json_t *plan, const struct run_nodes_who *who,
		     size_t nodes, int (*owner)(const char *vdisk, void *arg),
		     void *arg, struct err *err);

/* Of a plan with nodes, in their order. adopt: the agents have it already. */
int run_nodes_new(const json_t *plan, const char *run, unsigned resume_from,
		  bool adopt, const struct run_nodes_host *host,
		  struct run_nodes **run_nodes, struct err *err);
void run_nodes_free(struct run_nodes *r);
/* An event of type run_state, of this run, by this node's agent. */
void run_nodes_event(struct run_nodes *r, size_t node, const json_t *event);
/* The console's own, of this run, when it adopts it: the newest stretch. */
void run_nodes_went(struct run_nodes *r, const json_t *run_go);
void run_nodes_answer(struct run_nodes *r, size_t node, const char *what,
		      const json_t *reply);
/* The link came up (runs: what its hello says of this run) or went. */
void run_nodes_up(struct run_nodes *r, size_t node, bool runs);
void run_nodes_down(struct run_nodes *r, size_t node);
/* Does what is due; again at the latest at the returned time of now_us(). */
int64_t run_nodes_tick(struct run_nodes *r);

void run_nodes_pause(struct run_nodes *r, bool pause);
void run_nodes_stop(struct run_nodes *r, const char *reason);
/* Nobody is in it any more. */
bool run_nodes_over(const struct run_nodes *r);

#endif
