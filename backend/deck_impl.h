/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The deck's own: one struct, and who of its files does what.
 *
 *   deck.c         opening, turning, commands and their outcomes
 *   deck_live.c    the link to an agent, requests
 *   deck_record.c  the session file and what is on disk
 *   deck_replay.c  a session file under a virtual clock
 *   demo.c         the demo's lab
 */
#ifndef BACKEND_DECK_IMPL_H
#define BACKEND_DECK_IMPL_H

#include <limits.h>

#include "backend/cluster/link.h"
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
	bool sent, done;
	bool until_down; /* asked, it is done when the link is down */
	struct outcome outcome;
	/* reply NULL: the link went. Fills outcome. */
	void (*reply)(struct pending *pending, const json_t *reply);
	char name[MODEL_NAME]; /* of what it is about */
	void *order;           /* what was asked for; freed by order_free */
	void (*order_free)(void *order);
};

struct mark {
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
	json_t *cluster; /* the document; NULL: none is configured */
	char agent[MODEL_NAME];
	char state_dir[PATH_MAX]; /* "": the usual one */
	struct link_conn *link;
	enum deck_link link_state;
	char link_text[DECK_TEXT];
	struct node node;
	bool remote;          /* the agent runs on node */
	int64_t opened_at_us; /* when attaching began */
	int64_t retry_at_us;  /* monotonic; 0: no retry is due */
	int64_t lost_at_us;   /* when a link that was up went; 0: it is up */
	unsigned retries;
	char agent_version[32];
	int64_t up_after_us; /* how long attaching took */
	bool watching;       /* attached as a watcher */
	bool rewatch, drop;  /* to be done once out of the callbacks */
	bool hello_running;  /* a run was going when it was attached */
	bool hello_seen, cluster_asked, cluster_open, cluster_seen;
	int64_t ready_at_us; /* monotonic; 0: not yet */
	unsigned applied;

	/* record */
	struct session_writer *writer;
	char session_path[PATH_MAX];
	bool keep;          /* there is something worth keeping */
	struct mark *acked; /* of the agent, by incarnation */
	size_t acked_count;
	char disk_text[DECK_TEXT]; /* "" or why nothing is written */

	/* replay */
	struct session_reader *reader;
	json_t *next_event; /* read and not yet due */
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
bool live_ready(const struct deck *deck);
/* Attach again after the link was lost. */
int live_retry(struct deck *deck, struct err *err);
/*
 * Queues a request for a command: outcome becomes pending, or says why not.
 * body may be NULL and is given away; reply NULL: "done" or the error.
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
/* A console that watches: the next thing asked attaches it anew, as owner
 * where nobody is; else it watches on. */
void live_own(struct deck *deck);
/* Fills outcome from a reply's error; false: there was none. */
bool reply_failed(struct pending *pending, const json_t *reply);

/* ---- deck_record.c ------------------------------------------------------- */
/* At the agent's hello: which session goes on, or a new one. */
int record_choose(struct deck *deck, const json_t *hello, struct err *err);
/* Opens a session file to go on with: folds it into the model. */
int record_resume(struct deck *deck, const char *path, struct err *err);
void record_event(struct deck *deck, const json_t *event);
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
