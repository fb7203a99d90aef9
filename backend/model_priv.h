/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files of the model share: its hidden state, the reader of an
 * event's members, and the handlers of each type.
 */
#ifndef BACKEND_MODEL_PRIV_H
#define BACKEND_MODEL_PRIV_H

#include "backend/event.h"
#include "backend/model.h"

/* Bounds on what a file from others can make us keep. */
#define MODEL_HOSTS_MAX 256
#define MODEL_DOMAINS_MAX 256
#define MODEL_DRIVES_MAX 64
#define MODEL_POLICIES_MAX 256
#define MODEL_VDISKS_MAX 1024
#define MODEL_RUNS_MAX 1024
#define MODEL_SERIES_MAX 64
#define MODEL_PHASES_MAX 4096
#define MODEL_POINTS_MAX 2048          /* of all runs; 139 KB each */
#define MODEL_INTERVALS_MAX 4000000    /* of all points */
#define MODEL_VDISK_STRIPS_MAX 1000000 /* of all vDisks; 120 bytes each */
#define MODEL_MARKS_MAX 4096

/* What a run needs beside what others see of it. */
struct run_own {
	int64_t *spent_us;  /* by phase; -1 not ended */
	int64_t before_us;  /* of the phases before the newest */
	int64_t after_us;   /* guessed for those behind it */
	int64_t elapsed_us; /* of the newest, by its samples; -1 none */
	/* over nodes: intervals that not all have told of yet */
	struct pending_interval **pending;
	size_t pendings;
	bool active;       /* a phase began since it was begun or resumed */
	int64_t go_err_us; /* of clocks, at the newest barrier; -1 */
};

/* What a sample says, but for its histograms, which are in scratch. */
struct m_sample {
	char run[MODEL_NAME];
	int64_t phase, series, from_us, len_us, scheduled, backlog, inflight;
	bool warm, generator_bound;
	double cpu_wait;
	int64_t ops[2], bytes[2], errors[2]; /* read, write */
};

struct mark {
	char a[64];
	int64_t i, n;
};

struct m_state {
	struct model pub; /* first, so that one points to the other */
	struct mark *mark;
	size_t marks, mark_last;
	struct run_own *own;
	/* twice as long as what is kept, so that moving is rare */
	struct m_strip *strip_room;
	struct m_line *line_room;
	/* the newest strip, to add another series' sample of its interval */
	struct hist strip_hist;
	size_t strip_run;
	int64_t strip_phase, strip_end_us;
	/* read svc, write svc, read rsp, write rsp of the sample at hand, and
	 * both svc together */
	struct hist scratch[4], both;
	size_t points, intervals, vdisk_strips;
};

/* ---- model.c ------------------------------------------------------------ */

/*
 * Makes room for one more behind `count` elements of `size` bytes; capacity is
 * the next power of two, so it needs no storing. *array may move.
 */
int model_grow(void *array, size_t count, size_t size);
void model_log(struct m_state *s, int64_t t_us, const char *level,
	       const char *fmt, ...) ID_PRINTF(4, 5);

/* ---- model_in.c: members of an event ------------------------------------ */

/* The first wrong member sets rc; later reads do nothing. */
struct m_in {
	const json_t *o;
	struct err *err;
	int rc;
};
enum in_must { IN_MAY, IN_MUST };
#define IN_TEXT(in, key, out, must) in_text(in, key, out, sizeof(out), must)
/* "" when absent. */
void in_text(struct m_in *in, const char *key, char *out, size_t size,
	     enum in_must must);
/* -1 when absent; so MUST is no promise that it is not. */
int64_t in_int(struct m_in *in, const char *key, int64_t max,
	       enum in_must must);
/* NAN when absent; never negative. */
double in_num(struct m_in *in, const char *key);
bool in_bool(struct m_in *in, const char *key);
/* NULL when absent. */
const json_t *in_object(struct m_in *in, const char *key, enum in_must must);
const json_t *in_array(struct m_in *in, const char *key, size_t max,
		       enum in_must must);
/* Reading `o`, a part of what `in` reads, with the same err. */
struct m_in in_part(struct m_in *in, const json_t *o);
int in_bad(struct m_in *in, const char *fmt, ...) ID_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* as in engine/base.h */
#define in_bad(in, ...) (err_seen((in)->err, __VA_ARGS__), (in)->rc = -EINVAL)
#endif

/* ---- handlers ----------------------------------------------------------- */

typedef int (*model_handler)(struct m_state *s, const struct event_head *head,
			     struct m_in *in);

int model_on_node(struct m_state *, const struct event_head *, struct m_in *);
int model_on_host(struct m_state *, const struct event_head *, struct m_in *);
/* What a usage event says of its host. */
void model_host_usage(struct m_state *, const struct event_head *,
		      struct m_in *);
void model_hosts_free(struct model *);
int model_on_cluster(struct m_state *, const struct event_head *,
		     struct m_in *);
int model_on_policy(struct m_state *, const struct event_head *, struct m_in *);
int model_on_policy_gone(struct m_state *, const struct event_head *,
			 struct m_in *);
int model_on_vdisk(struct m_state *, const struct event_head *, struct m_in *);
int model_on_vdisk_seen(struct m_state *, const struct event_head *,
			struct m_in *);
int model_on_vdisk_gone(struct m_state *, const struct event_head *,
			struct m_in *);
int model_on_vdisk_usage(struct m_state *, const struct event_head *,
			 struct m_in *);
int model_on_usage(struct m_state *, const struct event_head *, struct m_in *);
int model_on_run(struct m_state *, const struct event_head *, struct m_in *);
int model_on_run_state(struct m_state *, const struct event_head *,
		       struct m_in *);
int model_on_phase(struct m_state *, const struct event_head *, struct m_in *);
int model_on_phase_end(struct m_state *, const struct event_head *,
		       struct m_in *);
int model_on_progress(struct m_state *, const struct event_head *,
		      struct m_in *);
int model_on_sample(struct m_state *, const struct event_head *, struct m_in *);
int model_on_run_go(struct m_state *, const struct event_head *, struct m_in *);
int model_on_run_out(struct m_state *, const struct event_head *,
		     struct m_in *);

/* ---- model_sample.c ------------------------------------------------------ */

/* One sample, or what several nodes told of one interval (scratch is theirs
 * together), into point (may be NULL), strip and time. */
int model_sample_count(struct m_state *s, struct m_run *run, struct m_point *p,
		       const struct m_sample *sa, int64_t end_t_us);
/* What a step has left when it ends. */
bool model_sample_is_slice(const struct m_run *run, const struct m_sample *sa);
bool model_hist_fits(const struct hist *into, const struct hist *from);

/* ---- model_series.c ------------------------------------------------------ */

int model_series_make(struct m_run *run);
/* As it is now that a phase of it begins. */
void model_series_layout(const struct model *m, struct m_series *se);

/* ---- model_nodes.c: a run that several nodes run ------------------------- */

/* From the plan. */
int nodes_make(struct m_run *run);
void nodes_free(struct m_run *run, struct run_own *own);
/* Of who wrote this; -1 none of them. */
int nodes_index(const struct m_run *run, const struct event_head *head);
int nodes_point_make(const struct m_run *run, struct m_point *p, int series);
/* The node begins again: from phase `from`, joined or resumed. */
void nodes_run(struct m_state *s, struct m_run *run, int node, int64_t from,
	       bool joined);
void nodes_run_state(struct m_state *s, struct m_run *run, int node,
		     const char *state, const char *reason, int64_t phase);
/* The point of it is there. true: the point's first. */
void nodes_phase(struct m_state *s, struct m_run *run, int node, int64_t phase,
		 int64_t late_us);
void nodes_phase_end(struct m_state *s, struct m_run *run, int node,
		     int64_t phase, const char *status);
int nodes_sample(struct m_state *s, struct m_run *run, struct m_point *p,
		 int node, const struct m_sample *sa);

/* A time of an agent's by the console's clock, as far as that is known. */
int64_t model_t_us(const struct model *model, const char *agent, int64_t t_us);

/* ---- model_usage.c ------------------------------------------------------- */
enum { U_READ, U_WRITE, U_READ_B, U_WRITE_B, U_BUSY, U_QUEUE, U_LATENCY, U_N };
/* An agent's figures, NAN where it knows none, and what is so of all agents
 * then. */
int model_parts_put(struct m_parts *parts, const char *agent, int64_t t_us,
		    const double v[U_N], double sum[U_N]);
void model_parts_free(struct m_parts *parts);

/* A fault is written beside the points it fell into. */
void model_run_mark(struct m_state *s, const char *text);
/* done_share and left_s of the newest run, after time went on. */
void model_run_time(struct m_state *s);
/* Sums what is spent and what is to come, when a phase begins. */
void model_run_sums(struct m_run *run, struct run_own *own);
void model_runs_free(struct m_state *s);
void model_domains_free(struct m_domain *domain, size_t count);
void model_vdisks_free(struct m_state *s);
/* A point that runs on this vDisk saw its state. */
void model_run_vdisk(struct m_state *s, const struct m_vdisk *vdisk);
/* What was written to a vDisk in an interval, for the point it fell into. */
void model_run_written(struct m_state *s, const char *vdisk,
		       const struct m_vdisk_strip *strip);
/* Run `id`, or NULL. */
struct m_run *model_run_find(struct m_state *s, const char *id);
struct run_own *model_run_own(struct m_state *s, const struct m_run *run);
/* The point that phase fills, or NULL. */
struct m_point *model_point_find(struct m_run *run, int64_t phase);

#endif
