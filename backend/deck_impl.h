/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The deck's own: one struct, and who of its files does what.
 *
 *   deck.c         opening, turning, commands and their outcomes
 *   deck_live.c    the links to the agents
 *   deck_ask.c     requests and their replies
 *   deck_route.c   which nodes a request goes to
 *   deck_node.c    what is told of the nodes
 *   deck_record.c  the session file and what is on disk
 *   deck_replay.c  a session file under a virtual clock
 *   demo.c         the demo's lab
 */
#ifndef BACKEND_DECK_IMPL_H
#define BACKEND_DECK_IMPL_H

#include <limits.h>

#include "backend/cluster/fleet.h"
#include "backend/command.h"
#include "backend/config.h"
#include "backend/deck.h"
#include "backend/event.h"
#include "backend/session/session.h"

/* A command that waits for the agent. */
struct pending {
	struct pending *next;
	struct deck *deck;
	char what[32]; /* the request; "" none: only for things to be known */
	json_t *body;  /* until it is sent */
	bool any_time; /* needs no open cluster */
	bool always;   /* nor any agent */
	/* not NULL once it is sent: turned until it sets done */
	void (*turn)(struct pending *pending);
	bool sent, done;
	size_t waits;         /* replies that are still to come */
	json_t *merged;       /* those that came, as one */
	char lost[DECK_TEXT]; /* "" or who was, before it answered */
	bool partial;         /* it should go to all, and not all are there */
	bool until_down;      /* asked, it is done when the links are down */
	struct outcome outcome;
	/* reply NULL: the link went. Fills outcome. */
	void (*reply)(struct pending *pending, const json_t *reply);
	char name[MODEL_NAME]; /* of what it is about */
	void *order;           /* what was asked for; freed by order_free */
	void (*order_free)(void *order);
};

struct mark {
	char a[64];
	int64_t i, n;
};

struct deck {
	struct config *config;
	bool watch, none;            /* none: nothing is to be recorded */
	char session_want[PATH_MAX]; /* "" choose */
	bool want_run;               /* it is for a run, and none without one */
	struct model *model;
	int epfd;
	struct event_stamp console;
	struct pending *pending; /* in order of asking */
	struct deck_overlay *overlay;
	size_t overlays;
	char *command; /* what was typed, for `open` */

	/* live */
	json_t *cluster;        /* the document; NULL: none is configured */
	char agent[MODEL_NAME]; /* its agent's name, or of all the first half */
	char state_dir[PATH_MAX]; /* "": the usual one */
	struct node *node;        /* where its agents are */
	size_t nodes;
	struct fleet *fleet;    /* NULL: not attached */
	char program[PATH_MAX]; /* of agents of this machine */
	bool only_look;         /* attached to without opening the cluster */
	struct told *told;      /* of each node; deck_node.c's */
	struct runs *runs;      /* a run over nodes; NULL: none of ours */
	bool runs_began;        /* this console started it */
	int64_t runs_at_us;     /* since when it is looked at; 0 */
	int64_t look_at_us;
	unsigned applied;

	/* record */
	struct session_writer *writer;
	char session_path[PATH_MAX];
	bool keep;          /* there is something worth keeping */
	struct mark *acked; /* of the agents, by incarnation */
	size_t acked_count;
	char disk_text[DECK_TEXT]; /* "" or why nothing is written */

	/* replay */
	struct session_reader *reader;
	char replay_text[DECK_TEXT]; /* "" or what is wrong with the file */
	json_t *next_event;          /* read and not yet due */
	bool playing;
	bool stepped; /* events at at_us itself are still to come */
	double speed;
	int64_t from_us, to_us, at_us, target_us, clock_us;
	int steps;  /* events still to step over */
	int folded; /* events of the session that the model has */

	/* demo */
	char demo_dir[PATH_MAX];
	int demo_lock;
};

/* Monotonic microseconds; tests of replay turn it by hand. */
extern int64_t (*deck_clock)(void);

/* ---- outcomes ----------------------------------------------------------- */
int outcome_say(struct outcome *outcome, const char *fmt, ...) ID_PRINTF(2, 3);
/* With status 1 (or 2 for bad input); returns 0. */
int outcome_fail(struct outcome *outcome, int status, const char *fmt, ...)
	ID_PRINTF(3, 4);
void outcome_view(struct outcome *outcome, const char *view);

/* ---- deck_live.c --------------------------------------------------------- */
void live_step(struct deck *deck);
int live_timeout_ms(const struct deck *deck);
void live_close(struct deck *deck);
enum deck_link live_state(const struct deck *deck);
void live_text(const struct deck *deck, char *buf, size_t len);
bool live_ready(const struct deck *deck);
bool live_watching(const struct deck *deck);
/* A run was going somewhere when it was attached. */
bool live_running(const struct deck *deck);
/* What is not attached is, or is tried at once. */
int live_attach(struct deck *deck, bool need_cluster, struct err *err);
int live_retry(struct deck *deck, struct err *err);
/* Whether `resume` has links to bring back. */
bool live_lost(const struct deck *deck);
/* A console that watches: the next thing asked attaches it anew, as owner
 * where nobody is; else it watches on. */
void live_own(struct deck *deck);

/* ---- deck_ask.c ---------------------------------------------------------- */
/*
 * Queues a request for a command: outcome becomes pending, or says why not.
 * body may be NULL and is given away; reply NULL: "done" or the error. It is
 * asked of the nodes that deck_route.c says; several replies are made one.
 * Returns the pending command or NULL.
 */
struct pending *live_ask(struct deck *deck, struct outcome *outcome,
			 const char *what, json_t *body,
			 void (*reply)(struct pending *pending,
				       const json_t *reply));
/* The same for what needs no cluster. */
struct pending *live_ask_any(struct deck *deck, struct outcome *outcome,
			     const char *what, json_t *body,
			     void (*reply)(struct pending *pending,
					   const json_t *reply));
/* The same for what is to be known of nodes that are not there, too: reply
 * runs once nobody is waited for any more. */
struct pending *live_ask_always(struct deck *deck, struct outcome *outcome,
				void (*reply)(struct pending *pending,
					      const json_t *reply));
/* Of what is waited for elsewhere: turn() runs until it sets done. order is
 * given away. */
void live_turn(struct deck *deck, struct outcome *outcome,
	       void (*turn)(struct pending *pending), void *order,
	       void (*order_free)(void *order));
/*
 * Runs show(deck, outcome) once the model knows the cluster: at once in a
 * replay or when attached, else after attaching.
 */
void live_show(struct deck *deck, struct outcome *outcome,
	       void (*show)(struct pending *pending, const json_t *reply),
	       const char *name);
/* From a reply(): asks for something further in the same command's name. */
void pending_again(struct pending *pending, const char *what, json_t *body,
		   void (*reply)(struct pending *pending, const json_t *reply));
/* Fills outcome from a reply's error; false: there was none. */
bool reply_failed(struct pending *pending, const json_t *reply);
/* Sends what can be sent, ends what cannot any more. */
void pending_step(struct deck *deck);
void pending_fail_all(struct deck *deck, const char *why, bool any_time);
bool pending_waits(const struct deck *deck);

/* ---- deck_route.c -------------------------------------------------------- */
/* Which nodes a request goes to: to[], an entry a node. partial: it is for all
 * of them, and some are not there. An error: none of those it is for is. */
int route_find(struct deck *deck, const char *what, const json_t *body,
	       bool *to, bool *partial, struct err *err);
/* As this node is asked it; a new reference. */
json_t *route_body(const struct deck *deck, const char *what,
		   const json_t *body, const struct fleet_node *node,
		   bool first);

/* ---- deck_node.c --------------------------------------------------------- */
/* An event, where there is news of it. */
void node_tell(struct deck *deck, const struct fleet_node *node);
/* The same of all, once a second. */
void nodes_look(struct deck *deck);
void nodes_forget(struct deck *deck);

/* ---- deck_runs.c --------------------------------------------------------- */
/* Which nodes run it, where the cluster has several. */
int runs_assign(struct deck *deck, json_t *plan, struct err *err);
void runs_step(struct deck *deck);
void runs_event(struct deck *deck, const struct fleet_node *node,
		const json_t *event);
void runs_end(struct deck *deck);
/* False: there is none of ours over nodes. */
bool runs_pause(struct deck *deck, bool pause);
bool runs_stop(struct deck *deck);
/* What an agent itself found to be the maxima: run_start's known. */
json_t *runs_known(const struct m_run *run, const char *agent);

/* ---- deck_record.c ------------------------------------------------------- */
/* At the agents' hello: which session goes on, or a new one. */
int record_choose(struct deck *deck, struct fleet_node *const *node,
		  size_t count, struct err *err);
/* Opens a session file to go on with: folds it into the model. */
int record_resume(struct deck *deck, const char *path, struct err *err);
void record_event(struct deck *deck, struct fleet_node *node,
		  const json_t *event);
/* An event of the console's own; body is given away. */
void record_own(struct deck *deck, const char *e, json_t *body);
void record_tick(struct deck *deck, bool force);
void record_close(struct deck *deck, const char *reason);
/* Where new sessions go, made if it is not there. */
int record_dir(const struct deck *deck, char *buf, size_t len, struct err *err);

/* ---- deck_replay.c ------------------------------------------------------- */
int replay_open(struct deck *deck, const char *path, struct err *err);
void replay_close(struct deck *deck);
void replay_step(struct deck *deck);
int replay_timeout_ms(const struct deck *deck);
void replay_play(struct deck *deck, bool play);
int replay_speed(struct deck *deck, double speed, struct err *err);
/* at_us: of the session, 0 its start. */
void replay_seek(struct deck *deck, int64_t at_us);
void replay_steps(struct deck *deck, int steps);

/* A session as a whole, for show, compare, overlay. */
int session_model(const char *path, struct model **model, uint64_t *torn_bytes,
		  struct err *err);

/* ---- demo.c -------------------------------------------------------------- */
/* Removes what killed demos left behind. */
void demo_sweep(void);
/* Makes the lab and sets the deck's cluster to it. */
int demo_open(struct deck *deck, struct err *err);
/* Ends its agent and removes its directory. */
void demo_close(struct deck *deck);

#endif
