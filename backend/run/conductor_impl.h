/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the conductor's files share: its state, the search for the maximum and
 * the test for an early end. Both are pure: numbers in, a verdict out.
 */
#ifndef BACKEND_RUN_CONDUCTOR_IMPL_H
#define BACKEND_RUN_CONDUCTOR_IMPL_H

#include "backend/run/conductor.h"
#include "backend/run/plan.h"

/* ---- the search for the maximum -------------------------------------------
 */
/*
 * Outstanding I/O doubles until IOPS gain less than `gain`. A level that
 * gained less is measured once more before the search believes it, so one
 * hiccup at a low depth does not end it.
 */
struct max_search {
	unsigned outstanding, limit;
	double gain;
	unsigned kept; /* depth of the best level; 0 none yet */
	double kept_iops;
	bool again;        /* this level is being measured a second time */
	double first_iops; /* what its first measurement gave */
	bool bound;        /* the generator was the bound */
	uint64_t ops, len_us;
};

enum max_verdict { MAX_AGAIN, MAX_DEEPER, MAX_FOUND, MAX_NOTHING };

void max_search_init(struct max_search *s, unsigned from, unsigned limit,
		     double gain);
/* A counted sample of the current level. */
void max_search_sample(struct max_search *s,
		       const struct conductor_sample *sample);
/* At the end of a level: what to do next; outstanding is the next depth. */
enum max_verdict max_search_level(struct max_search *s, double *iops);

/* ---- early end ------------------------------------------------------------
 */
/* IOPS and mean latency of the intervals so far, in at most EARLY_CELLS cells:
 * when they are full, neighbours merge and each cell takes twice as many. */
#define EARLY_CELLS 64
struct early {
	double iops[EARLY_CELLS], mean_us[EARLY_CELLS];
	unsigned cells, per_cell, in_cell;
	double iops_sum, mean_sum;
};
void early_reset(struct early *e);
void early_add(struct early *e, double iops, double mean_us);
/* The wider 95 % half-width of the two, as a share of the mean; NAN while
 * there is too little to tell. */
double early_ci(const struct early *e);

/* ---- the conductor --------------------------------------------------------
 */
enum conductor_step {
	STEP_NONE,     /* between phases */
	STEP_BARRIER,  /* timed: until conductor_go() */
	STEP_SLOT,     /* timed: the next phase's time has not come */
	STEP_STARTING, /* job_start was asked */
	STEP_JOB,      /* a job runs */
	STEP_ENDING,   /* job_stop was asked */
	STEP_ACTS,     /* the job is over, actions during it are not */
	STEP_ASKED,    /* prefill or act was asked */
	STEP_REDO,     /* what earlier phases set is set again, on resuming */
	STEP_REST,
	STEP_WAIT,
};

struct conductor_known {
	double max_iops; /* of this agent's share; NAN unknown */
	unsigned outstanding;
};

struct conductor {
	json_t *plan;
	const json_t *phases, *series;
	const json_t *owned; /* vDisks of this agent; NULL: all */
	char *run;
	struct conductor_host host;
	struct conductor_known *known; /* by series */
	unsigned resume_from, phase, phase_count;
	const char *state;
	char reason[256]; /* why it stops or failed */
	bool advancing, paused, stopping, failed;
	bool silent; /* another node writes the notes */

	/* the phase */
	enum conductor_step step;
	bool phase_open; /* its `phase` event is out */
	uint64_t phase_at_us, deadline_us, paused_at_us, progress_at_us;
	uint64_t warm_us;     /* whole intervals */
	unsigned outstanding; /* of this agent */
	double asked_iops;
	const char *status; /* what phase_end will say */

	/* the job */
	uint64_t job_at_us, job_len_us; /* len: warm-up and measured time */
	uint64_t tainted_us;            /* job time up to which it was paused */
	uint64_t held_us;               /* how long it was paused in all */
	uint64_t interval_us;
	struct max_search search;
	struct early early;
	size_t during; /* next of the phase's `during` */
	unsigned acts; /* asked during the job, not done */

	/* timed plans; times of the host's clock */
	bool timed, joined;
	int passed;            /* the newest barrier's phase; -1 none */
	int go_phase;          /* of a conductor_go() before its barrier */
	uint64_t go_at_us;     /* the newest that was asked for */
	uint64_t slot_at_us;   /* when the phase is to begin */
	int64_t shift_us;      /* of slots to come */
	uint64_t slot_held_us; /* how long this one was paused */
	unsigned level;        /* of a search */
	bool found;            /* ... its depth; it is held */
	uint64_t late_us;      /* how much behind the job began */
	struct plan_load load; /* of the phase */

	json_t *redo; /* phases to act again; NULL */
	size_t redo_next;
};

/* conductor_emit.c */
const json_t *conductor_phase(const struct conductor *c);
bool conductor_phase_is(const struct conductor *c, const char *kind);
size_t conductor_series(const struct conductor *c);
uint64_t conductor_now_us(const struct conductor *c);
void conductor_wake_at(const struct conductor *c, uint64_t at_us);
void conductor_copy(json_t *to, const json_t *from, const char *name);
void conductor_emit(struct conductor *c, const char *e, json_t *body);
void conductor_emit_state(struct conductor *c, const char *state);
void conductor_emit_log(struct conductor *c, const char *text);
void conductor_emit_phase(struct conductor *c);
void conductor_emit_phase_end(struct conductor *c);

/* conductor.c: the phase is over; and why the run will fail (the caller ends
 * what runs) */
void conductor_phase_end(struct conductor *c);
void conductor_fail(struct conductor *c, const char *fmt, ...) ID_PRINTF(2, 3);

/* conductor.c */
void conductor_advance(struct conductor *c);

/* conductor_timed.c */
int timed_init(struct conductor *c, const struct conductor_order *order,
	       struct err *err);
/* False: the phase is not to begin (now): the step, or the phase, is another.
 */
bool timed_ready(struct conductor *c);
void timed_phase_end(struct conductor *c);
/* Before what follows is to be made ready. */
uint64_t timed_rest_end(const struct conductor *c);
void timed_held(struct conductor *c, uint64_t held_us);
/* When the job at hand is to begin; 0 at once. False: its time is over. */
bool timed_job(struct conductor *c, uint64_t *start_us);
/* A level of a search is over. */
void timed_level_end(struct conductor *c);
void timed_stamp(const struct conductor *c, json_t *phase_body);

/* conductor_job.c */
void conductor_job_start(struct conductor *c);
unsigned conductor_share(const struct conductor *c, unsigned outstanding);
void conductor_max_found(struct conductor *c, double iops);
void conductor_begin_max(struct conductor *c);
void conductor_begin_point(struct conductor *c);
void conductor_begin_ramp(struct conductor *c);
void conductor_act(struct conductor *c, const json_t *act);
void conductor_job_wake(struct conductor *c);
void conductor_job_tick(struct conductor *c);
void conductor_job_end(struct conductor *c);

/* plan_check.c */
/* The acts of phases before `resume_from` that still hold: a new array. */
json_t *plan_standing_acts(const json_t *plan, unsigned resume_from);

#endif
