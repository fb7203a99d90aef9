/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console without a screen: configuration, the attached agent, the session
 * being recorded or replayed, and the model they feed. Screens, the command
 * line and scripts all stand on it; they do things by deck_do() alone.
 *
 * Never blocks: deck_step() does what is at hand. Threads: one.
 */
#ifndef BACKEND_DECK_H
#define BACKEND_DECK_H

#include "backend/analysis/analysis.h"
#include "backend/model.h"
#include "engine/base.h"

struct deck;

struct deck_opts {
	const char *config_path;  /* NULL: $XDG_CONFIG_HOME/iodeck/iodeck.conf
				     when it is there */
	const char *session_path; /* record to; NULL: a new one in the data
				     directory when there is something to
				     record; "" none */
	bool watch;               /* attach without owning */
	const char *command;      /* what was typed, for the record; NULL */
};

/* Reads the configuration; attaches to nothing yet. */
int deck_open(const struct deck_opts *opts, struct deck **deck,
	      struct err *err);
/* Begins to attach to the configured cluster's agent; commands that need it do
 * so themselves. -ENOENT: none is configured. */
int deck_attach(struct deck *deck, struct err *err);
/* Closes the session in order, detaches. The agent's run goes on unless it was
 * stopped. Takes NULL. */
void deck_close(struct deck *deck);

/* Readable (poll) when deck_step() has something to do. */
int deck_fd(const struct deck *deck);
/* The longest a caller may sleep before the next deck_step(); -1 any. */
int deck_timeout_ms(const struct deck *deck);
/* Returns the number of events applied to the model. */
unsigned deck_step(struct deck *deck);

const struct model *deck_model(const struct deck *deck);
/* Laid over the charts by `overlay`: other sessions' or CSV series. */
struct deck_overlay {
	struct curve curve;
};
size_t deck_overlays(const struct deck *deck,
		     const struct deck_overlay **overlay);

enum deck_link {
	LINK_NONE, /* nothing to attach to */
	LINK_CONNECTING,
	LINK_LIVE,
	LINK_LOST, /* reason in text; `resume` goes on */
	LINK_REPLAY,
};
#define DECK_TEXT 512
struct deck_status {
	enum deck_link link;
	char text[DECK_TEXT]; /* why, for people */
	bool recording;
	char session_path[256];
	int64_t recorded_bytes;
	/* replay */
	bool playing;
	double speed;
	int64_t from_us, to_us, at_us;
};
void deck_status(const struct deck *deck, struct deck_status *status);

/* An option of option.h, as configured or set; borrowed. */
const char *deck_option(const struct deck *deck, const char *name);
int deck_option_set(struct deck *deck, const char *name, const char *value,
		    struct err *err);
int deck_overlay_add(struct deck *deck, const struct curve *curve);
void deck_overlay_clear(struct deck *deck);

/* What a command gave back. */
struct outcome {
	int status;   /* 0 done, 1 the work failed, 2 usage or bad input */
	char *text;   /* for people, lines; may be NULL */
	json_t *json; /* the document for --json; may be NULL */
	bool quit;    /* the console should end */
	bool pending; /* goes on; deck_outcome_take() has the rest later */
	/* a wish to the screen; "" none: "screen:run", "help:iodeck-policy" */
	char view[MODEL_NAME];
};
void outcome_free(struct outcome *outcome);

/* Runs one command line as typed at the prompt. Never blocks: what needs the
 * agent's answer sets pending. */
int deck_do(struct deck *deck, const char *line, struct outcome *outcome);
/* The same, turning deck_step() until the outcome is whole; for the command
 * line and scripts. timeout_ms -1: none. */
int deck_do_wait(struct deck *deck, int argc, char *const argv[],
		 int timeout_ms, struct outcome *outcome);
/* Sleeps until deck_step() has something to do, at most until until_us of the
 * monotonic clock; INT64_MAX: no limit. */
void deck_wait(struct deck *deck, int64_t until_us);
/* A pending command's end: true and *outcome once it is there. */
bool deck_outcome_take(struct deck *deck, struct outcome *outcome);

/* Replies of completion for the prompt: words that may follow `line`'s last
 * word start. *words NULL-terminated, the caller's to free with
 * deck_words_free(). */
char **deck_complete(struct deck *deck, const char *line);
void deck_words_free(char **words);

#endif
