/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   conductor --job_start, prefill, act--> run --> load, prefill, provider
 *             <--began, sample, ended-----     <-- callbacks
 *
 * What the engine tells comes back to the conductor from tasks of the run's
 * own, never from inside the call that caused it.
 */
#include "backend/agent/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/agent/run_workload.h"
#include "backend/agent/work_priv.h"
#include "backend/event.h"
#include "backend/provider/provider.h"
#include "backend/run/conductor.h"
#include "backend/run/plan.h"
#include "engine/load/load.h"

struct run {
	struct work *work;
	struct reactor *reactor;
	struct provider *provider;
	struct conductor *conductor;
	char id[64];
	struct timer wake;
	struct workload workload;
	struct load *load;
	uint64_t job_ns; /* when the job began */
	struct prefill *prefill;
	char vdisk[64]; /* of the job or prefill */
	char why[512];
	uint64_t prefill_bytes;
	unsigned targets; /* how many vDisks the job loads */
	bool open_loop, over_posted;
	struct task over;
};

/* ---- coming back -------------------------------------------------------- */

enum back_kind { BACK_BEGAN, BACK_ENDED, BACK_STEP };

struct back {
	struct task task;
	struct run *run;
	enum back_kind kind;
	bool filled; /* the prefill is over */
	int result;
	char reason[512];
};

static void over_run(struct task *task)
{
	struct run *run = container_of(task, struct run, over);

	work_run_over(run->work);
}

/* After anything that may have ended the run. */
static void run_settle(struct run *run)
{
	if (run->over_posted || !conductor_over(run->conductor) || run->load ||
	    run->prefill)
		return;
	run->over_posted = true;
	timer_cancel(run->reactor, &run->wake);
	provider_interval_set(run->provider, 1000000);
	provider_run_set(run->provider, false, NULL);
	run->over.fn = over_run;
	reactor_post(run->reactor, &run->over);
}

static void back_run(struct task *task)
{
	struct back *b = container_of(task, struct back, task);
	struct conductor *c = b->run->conductor;

	if (b->kind == BACK_BEGAN) {
		conductor_job_began(c);
	} else if (b->kind == BACK_ENDED) {
		load_free(b->run->load);
		b->run->load = NULL;
		conductor_job_ended(c, b->result, b->reason);
	} else {
		if (b->filled) {
			prefill_free(b->run->prefill);
			b->run->prefill = NULL;
		}
		conductor_step_done(c, b->result, b->reason);
	}
	run_settle(b->run);
	free(b);
}

static struct back *back(struct run *run, enum back_kind kind, int result,
			 const char *reason)
{
	struct back *b = calloc(1, sizeof(*b));

	id_assert(b);
	b->run = run;
	b->kind = kind;
	b->result = result;
	snprintf(b->reason, sizeof(b->reason), "%s", reason ? reason : "");
	b->task.fn = back_run;
	reactor_post(run->reactor, &b->task);
	return b;
}

/* ---- samples ------------------------------------------------------------ */

static json_t *dir_json(const struct load_dir *dir, bool open_loop)
{
	json_t *j = json_pack(
		"{s:I, s:I, s:I, s:o}", "ops", (json_int_t)dir->ops, "bytes",
		(json_int_t)dir->bytes, "errors", (json_int_t)dir->errors,
		"svc", event_hist_encode(&dir->service));

	if (j && open_loop)
		json_object_set_new(j, "rsp",
				    event_hist_encode(&dir->response));
	return j;
}

static uint64_t us_since(const struct run *run, uint64_t ns)
{
	return ns > run->job_ns ? (ns - run->job_ns) / USEC_NS : 0;
}

static json_t *sample_json(const struct run *run, const struct load_sample *s)
{
	uint64_t from_us = us_since(run, s->from_ns);
	json_t *j;

	j = json_pack("{s:I, s:I, s:i, s:o, s:o}", "from_us",
		      (json_int_t)from_us, "len_us",
		      (json_int_t)(us_since(run, s->to_ns) - from_us),
		      "inflight", (int)s->inflight, "read",
		      dir_json(&s->read, run->open_loop), "write",
		      dir_json(&s->write, run->open_loop));
	if (!j)
		return NULL;
	if (run->open_loop) {
		json_object_set_new(j, "scheduled",
				    json_integer((json_int_t)s->scheduled));
		json_object_set_new(j, "backlog",
				    json_integer((json_int_t)s->backlog));
	}
	if (!isnan(s->cpu_wait))
		json_object_set_new(j, "cpu_wait", json_real(s->cpu_wait));
	if (s->bound & LOAD_BOUND_CPU)
		json_object_set_new(j, "bound", json_pack("[s]", "generator"));
	return j;
}

/* The conductor's events have parts of the plan in them, which stay with this
 * thread: what crosses to the other is a copy. */
static void host_emit(void *arg, const char *e, json_t *body)
{
	struct run *run = arg;

	work_emit(run->work, e, json_deep_copy(body));
	json_decref(body);
}

/* More than an errno: what the vDisk says of itself. Of several it is the one
 * that says so. */
static const char *run_why(struct run *run, int result)
{
	const char *said = provider_vdisk_why(run->provider, run->vdisk);

	snprintf(run->why, sizeof(run->why), "%s%s: %s%s%s", run->vdisk,
		 run->targets > 1 && !said ? " or another" : "",
		 said ? "has failed: " : strerror(abs(result)),
		 said ? said : "",
		 said ? "; bring its drives back, it opens again by itself"
		      : "");
	return run->why;
}

static void on_sample(const struct load_sample *s, void *arg)
{
	struct run *run = arg;
	uint64_t n = s->read.service.count + s->write.service.count;
	uint64_t sum = s->read.service.sum_ns + s->write.service.sum_ns;
	const struct conductor_sample told = {
		.from_us = us_since(run, s->from_ns),
		.len_us = us_since(run, s->to_ns) - us_since(run, s->from_ns),
		.ops = s->read.ops + s->write.ops,
		.errors = s->read.errors + s->write.errors,
		.mean_us = n ? (double)sum / 1e3 / (double)n : 0.0,
		.bound = s->bound,
		.last_error = s->last_error,
		.why = s->last_error ? run_why(run, s->last_error) : NULL,
	};
	json_t *body = sample_json(run, s);

	if (body) {
		conductor_stamp(run->conductor, body);
		host_emit(run, "sample", body);
	}
	conductor_job_sample(run->conductor, &told);
}

/* ---- jobs --------------------------------------------------------------- */

static void on_stopped(void *arg)
{
	struct run *run = arg;

	back(run, BACK_ENDED, 0, NULL);
}

/* Those of the series that are open here. */
static int job_targets(struct run *run, const struct conductor_job *job,
		       struct load_opts *opts, struct err *err)
{
	const char *name;
	size_t i;

	for (i = 0; i < plan_vdisks(job->series); i++) {
		name = plan_vdisk(job->series, i);
		if (!plan_owns(job->owned, name))
			continue;
		if (opts->targets == LOAD_TARGETS_MAX)
			return err_set(err, -E2BIG,
				       "a series loads more than %d vDisks of "
				       "one agent",
				       LOAD_TARGETS_MAX);
		snprintf(run->vdisk, sizeof(run->vdisk), "%s", name);
		opts->target[opts->targets] =
			provider_vdisk(run->provider, name, err);
		if (!opts->target[opts->targets++])
			return -ENODEV;
	}
	return 0;
}

static int job_begin(struct run *run, const struct conductor_job *job,
		     struct err *err)
{
	struct load_opts opts = {
		.workload = &run->workload,
		.rate = { .iops = job->iops,
			  .schedule =
				  job->poisson ? LOAD_POISSON : LOAD_UNIFORM,
			  .outstanding = job->outstanding },
		.seed = job->seed,
		.interval_ns = job->interval_us * USEC_NS,
		.sample = on_sample,
		.stopped = on_stopped,
		.arg = run,
	};
	int rc = run_workload_read(job->workload, &run->workload, err);

	if (!rc)
		rc = job_targets(run, job, &opts, err);
	if (rc)
		return rc;
	run->targets = opts.targets;
	run->open_loop = job->iops > 0.0;
	run->job_ns = job->start_us ? job->start_us * USEC_NS
				    : reactor_now(run->reactor);
	opts.start_ns = run->job_ns;
	return load_start(run->reactor, &opts, &run->load, err);
}

static void host_job_start(void *arg, const struct conductor_job *job)
{
	struct run *run = arg;
	struct err err = { 0 };
	int rc = job_begin(run, job, &err);

	if (rc)
		back(run, BACK_ENDED, rc, err.text);
	else
		back(run, BACK_BEGAN, 0, NULL);
}

static void host_job_stop(void *arg)
{
	struct run *run = arg;

	if (run->load)
		load_stop(run->load);
}

static void host_job_pause(void *arg, bool pause)
{
	struct run *run = arg;

	if (run->load)
		load_pause(run->load, pause);
}

/* ---- prefill ------------------------------------------------------------ */

static void on_progress(uint64_t done_bytes, void *arg)
{
	struct run *run = arg;

	conductor_progress(run->conductor, done_bytes, run->prefill_bytes);
}

static void on_filled(int result, void *arg)
{
	struct run *run = arg;

	back(run, BACK_STEP, result, result ? run_why(run, result) : NULL)
		->filled = true;
}

static void host_prefill(void *arg, const char *vdisk, const json_t *phase)
{
	struct run *run = arg;
	struct err err = { 0 };
	json_t *ratio = json_object_get(phase, "compress_ratio");
	struct prefill_opts opts = {
		.target = provider_vdisk(run->provider, vdisk, &err),
		.compress_ratio =
			json_is_number(ratio) ? json_number_value(ratio) : 1.0,
		.seed = 1,
		.progress = on_progress,
		.done = on_filled,
		.arg = run,
	};
	int rc = opts.target ? 0 : -ENODEV;

	snprintf(run->vdisk, sizeof(run->vdisk), "%s", vdisk ? vdisk : "");
	run->targets = 1;
	if (!rc) {
		run->prefill_bytes = opts.target->limits.size_bytes;
		rc = prefill_start(run->reactor, &opts, &run->prefill, &err);
	}
	if (rc)
		back(run, BACK_STEP, rc, err.text);
}

static void host_prefill_stop(void *arg)
{
	struct run *run = arg;

	if (run->prefill)
		prefill_stop(run->prefill);
}

/* ---- the rest of the host ----------------------------------------------- */

static uint64_t host_now_us(void *arg)
{
	struct run *run = arg;

	return reactor_now(run->reactor) / USEC_NS;
}

static void on_wake(struct timer *timer)
{
	struct run *run = container_of(timer, struct run, wake);

	conductor_tick(run->conductor);
	run_settle(run);
}

static void host_wake_at(void *arg, uint64_t at_us)
{
	struct run *run = arg;

	if (at_us > UINT64_MAX / USEC_NS)
		timer_cancel(run->reactor, &run->wake);
	else /* not before: round up */
		timer_arm(run->reactor, &run->wake, (at_us + 1) * USEC_NS - 1);
}

static void host_act(void *arg, const json_t *phase)
{
	struct run *run = arg;
	struct err err = { 0 };
	int rc = provider_act(run->provider, phase, "plan", &err);

	back(run, BACK_STEP, rc, err.text);
}

/* The clocks of events and of the engine at one moment. */
static int64_t clocks_apart_us(const struct run *run)
{
	return event_now_us() - (int64_t)(reactor_now(run->reactor) / USEC_NS);
}

static int64_t host_stamp_us(void *arg, uint64_t at_us)
{
	return (int64_t)at_us + clocks_apart_us(arg);
}

/* The engine's time of one of the agent's clock; 1 at least: 0 is none. */
static uint64_t engine_us(const struct run *run, const json_t *t_us)
{
	int64_t at = json_integer_value(t_us) - clocks_apart_us(run);

	return at > 1 ? (uint64_t)at : 1;
}

static bool host_vdisk_is(void *arg, const char *vdisk, const char *state)
{
	struct run *run = arg;

	return !strcmp(provider_vdisk_state(run->provider, vdisk), state);
}

/* ---- life --------------------------------------------------------------- */

static int id_take(struct run *run, const json_t *request, struct err *err)
{
	const char *id = json_string_value(json_object_get(request, "run"));
	size_t len = id ? strlen(id) : 0;

	if (!len || len > 63)
		return err_set(err, -EINVAL,
			       "run_start: \"run\" must be an id of 1 to 63 "
			       "bytes");
	event_text(run->id, sizeof(run->id), id);
	return 0;
}

/* A phase of the plan, or absent: 0. */
static int phase_take(const json_t *request, const char *name, unsigned *phase,
		      struct err *err)
{
	const json_t *j = json_object_get(request, name);

	*phase = 0;
	if (!j || json_is_null(j))
		return 0;
	if (!json_is_integer(j) || json_integer_value(j) < 0 ||
	    json_integer_value(j) > UINT16_MAX)
		return err_set(err, -EINVAL, "\"%s\" must be a phase", name);
	*phase = (unsigned)json_integer_value(j);
	return 0;
}

static int join_take(const struct run *run, const json_t *join,
		     struct conductor_order *order, struct err *err)
{
	const json_t *at = json_object_get(join, "at_us");

	if (!join || json_is_null(join))
		return 0;
	if (!json_is_integer(at))
		return err_set(err, -EINVAL,
			       "run_start: \"join\" has a phase and at_us");
	order->join_at_us = engine_us(run, at);
	return phase_take(join, "phase", &order->join_phase, err);
}

static int conductor_make(struct run *run, const json_t *request,
			  struct err *err)
{
	const struct conductor_host host = {
		.arg = run,
		.now_us = host_now_us,
		.wake_at = host_wake_at,
		.emit = host_emit,
		.job_start = host_job_start,
		.job_stop = host_job_stop,
		.job_pause = host_job_pause,
		.prefill = host_prefill,
		.prefill_stop = host_prefill_stop,
		.act = host_act,
		.vdisk_is = host_vdisk_is,
		.stamp_us = host_stamp_us,
	};
	struct conductor_order order = {
		.plan = json_object_get(request, "plan"),
		.run = run->id,
		.known = json_object_get(request, "known"),
		.agent = run->work->opts.agent,
	};
	int rc = phase_take(request, "resume_from", &order.resume_from, err);

	if (!rc)
		rc = join_take(run, json_object_get(request, "join"), &order,
			       err);
	return rc ? rc : conductor_new(&order, &host, &run->conductor, err);
}

static int series_suits(struct run *run, const json_t *series,
			const char *vdisk, struct err *err)
{
	struct err why = { 0 };
	const struct bdev *target = provider_vdisk(run->provider, vdisk, &why);
	int rc;

	if (!target && why.code != -EBUSY)
		return 0; /* it may open yet */
	if (!target) {
		*err = why;
		return why.code;
	}
	rc = run_workload_read(json_object_get(series, "workload"),
			       &run->workload, err);
	return rc ? rc
		  : run_workload_suits(&run->workload, vdisk,
				       target->limits.block_bytes, err);
}

/* Before anything is begun, and before a prefill that may take long. What else
 * there is to say of a vDisk is said where it is loaded. */
static int series_suit(struct run *run, const json_t *plan, struct err *err)
{
	const json_t *series;
	int rc = 0;
	size_t k;

	json_array_foreach(json_object_get(plan, "series"), k, series) {
		for (size_t i = 0; !rc && i < plan_vdisks(series); i++)
			rc = series_suits(run, series, plan_vdisk(series, i),
					  err);
	}
	return rc;
}

int run_new(struct work *work, const json_t *request, struct run **out,
	    struct err *err)
{
	struct run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		return err_set(err, -ENOMEM, "run_start: out of memory");
	run->work = work;
	run->reactor = work->opts.engine;
	run->provider = work->provider;
	run->wake.fn = on_wake;
	rc = id_take(run, request, err);
	if (!rc)
		rc = conductor_make(run, request, err);
	if (!rc)
		rc = series_suit(run, json_object_get(request, "plan"), err);
	if (!rc)
		rc = provider_run_set(run->provider, true, err);
	if (rc) {
		run_free(run);
		return rc;
	}
	*out = run;
	return 0;
}

static uint64_t interval_us(const json_t *plan)
{
	json_int_t ms =
		json_integer_value(json_object_get(plan, "interval_ms"));

	return ms > 0 ? (uint64_t)ms * 1000 : 1000000;
}

void run_start(struct run *run, const json_t *plan)
{
	work_status(run->work, run->id);
	provider_interval_set(run->provider, interval_us(plan));
	conductor_start(run->conductor);
	run_settle(run);
}

void run_pause(struct run *run, const json_t *request)
{
	json_int_t held =
		json_integer_value(json_object_get(request, "held_us"));

	conductor_pause(run->conductor,
			!json_is_false(json_object_get(request, "pause")),
			held > 0 ? (uint64_t)held : 0);
	run_settle(run);
}

int run_go(struct run *run, const json_t *request, struct err *err)
{
	const char *id = json_string_value(json_object_get(request, "run"));
	const json_t *at = json_object_get(request, "at_us");
	unsigned phase;
	int rc;

	if (!id || strcmp(id, run->id) != 0)
		return err_set(err, -ESRCH, "run_go: run %s is going on here",
			       run->id);
	if (!json_is_integer(at))
		return err_set(err, -EINVAL,
			       "run_go: \"at_us\" must be a time");
	rc = phase_take(request, "phase", &phase, err);
	if (rc)
		return rc;
	conductor_go(run->conductor, phase, engine_us(run, at));
	run_settle(run);
	return 0;
}

void run_stop(struct run *run, const char *reason)
{
	conductor_stop(run->conductor, reason);
	run_settle(run);
}

const char *run_id(const struct run *run)
{
	return run->id;
}

void run_free(struct run *run)
{
	if (!run)
		return;
	conductor_free(run->conductor);
	free(run);
}
