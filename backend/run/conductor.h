/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Executes a plan: a state machine that owns no thread, clock or device. Its
 * host (the agent) lends it hands and tells it what happened; the events it
 * emits are the run's record. So it runs under a virtual clock in tests, and
 * later over many agents.
 *
 * Threads: one.
 */
#ifndef BACKEND_RUN_CONDUCTOR_H
#define BACKEND_RUN_CONDUCTOR_H

#include <jansson.h>

#include "engine/base.h"

struct conductor;

/* What a load job is to do. The series is the plan's object, borrowed: what is
 * loaded are those of its vDisks that this agent owns. */
struct conductor_job {
	const json_t *series, *workload;
	const json_t *owned; /* an array of names; NULL: all */
	double iops;         /* 0: closed loop */
	bool poisson;
	unsigned outstanding; /* over all of them, at least one each */
	uint64_t seed;
	uint64_t interval_us;
	/* of now_us()'s clock: the first I/O, and where intervals begin; 0: as
	 * soon as can be */
	uint64_t start_us;
};

/* One interval of a running job, as the conductor needs it to decide; the host
 * emits the `sample` event itself (conductor_stamp() fills run, phase, series,
 * from_us, warm). */
struct conductor_sample {
	uint64_t from_us, len_us; /* since the job began */
	uint64_t ops, errors;
	double mean_us; /* service time of all */
	unsigned bound; /* LOAD_BOUND_*: closed loop stops doubling */
	int last_error;
	const char *why; /* what the host knows of it; NULL: nothing */
};

struct conductor_host {
	void *arg;
	/* microseconds of a monotonic clock */
	uint64_t (*now_us)(void *arg);
	/* conductor_tick() at or after this time; the newest wish counts */
	void (*wake_at)(void *arg, uint64_t at_us);
	/* body is given away (a reference); the host stamps and keeps it */
	void (*emit)(void *arg, const char *e, json_t *body);
	/* later conductor_job_began() or conductor_job_ended() */
	void (*job_start)(void *arg, const struct conductor_job *job);
	void (*job_stop)(void *arg); /* conductor_job_ended() follows */
	void (*job_pause)(void *arg, bool pause);
	/* conductor_step_done() follows each prefill() and act() once; act()
	 * also comes while a job runs (`during`), several may be under way */
	void (*prefill)(void *arg, const char *vdisk, const json_t *phase);
	void (*prefill_stop)(void *arg);
	void (*act)(void *arg, const json_t *phase); /* fault, link, drive */
	/* whether a `wait` is over: "healthy"... of a vDisk */
	bool (*vdisk_is)(void *arg, const char *vdisk, const char *state);
	/* what the clock that stamps events said, or will say, at a time of
	 * now_us()'s; of timed plans alone */
	int64_t (*stamp_us)(void *arg, uint64_t at_us);
};

/* What is to be run, by whom. All borrowed while conductor_new() runs. */
struct conductor_order {
	const json_t *plan;
	const char *run;      /* its id */
	unsigned resume_from; /* the first phase to run, 0 the start */
	/* of the earlier attempt, {"0": {"max_iops":..,"outstanding":..}} by
	 * series, or NULL; in a timed plan this agent's own */
	const json_t *known;
	/* who this agent is among the plan's nodes; needed where there are any
	 */
	const char *agent;
	/* The others are under way: from `phase` on, which began at at_us of
	 * now_us()'s clock (0: they are not), it falls in with them. */
	unsigned join_phase;
	uint64_t join_at_us;
};

/*
 * Checks the plan wholly (-EINVAL with the place: "phases[3].percent").
 */
int conductor_new(const struct conductor_order *order,
		  const struct conductor_host *host,
		  struct conductor **conductor, struct err *err);
void conductor_free(struct conductor *c);
/* Emits `run` and goes. */
void conductor_start(struct conductor *c);
/* held_us: going on, how long all agents agree to have paused; 0: as long as
 * it was. */
void conductor_pause(struct conductor *c, bool pause, uint64_t held_us);
/*
 * Of a timed plan: all meet before this phase, which begins at at_us of
 * now_us()'s clock. Said of a phase that has begun it moves those that follow
 * in the stretch: clocks drift. What is late falls in with the others.
 */
void conductor_go(struct conductor *c, unsigned phase, uint64_t at_us);
void conductor_stop(struct conductor *c, const char *reason);
/* running, waiting (for conductor_go()), paused, stopping, done, failed,
 * stopped */
const char *conductor_state(const struct conductor *c);
bool conductor_over(const struct conductor *c);

void conductor_tick(struct conductor *c);
void conductor_job_began(struct conductor *c);
void conductor_job_sample(struct conductor *c,
			  const struct conductor_sample *sample);
/* result 0 or why it could not start or failed */
void conductor_job_ended(struct conductor *c, int result, const char *reason);
void conductor_step_done(struct conductor *c, int result, const char *reason);
void conductor_progress(struct conductor *c, uint64_t done, uint64_t total);
/* Adds run, phase, series, warm to the body of a sample of the current job,
 * whose from_us is set. */
void conductor_stamp(const struct conductor *c, json_t *sample_body);

/* Checks a plan alone. */
int plan_check(const json_t *plan, struct err *err);
/* How long a plan takes at least, and what it writes: for --plan. NAN where it
 * is not known before it runs. sizes: {"db1": bytes} of the vDisks. */
struct plan_cost {
	double seconds, most_seconds; /* without prefill; at least, at most */
	double prefill_bytes;
	double write_share; /* of the I/O of its measured phases */
	unsigned phases, points;
};
int plan_cost(const json_t *plan, const json_t *sizes, struct plan_cost *cost,
	      struct err *err);

#endif
