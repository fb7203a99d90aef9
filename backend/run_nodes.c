/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/run/plan.h"

#define MARGIN_US 100000   /* to make a load ready, beside the way there */
#define AGAIN_US 2000000   /* after an agent refused */
#define AGAIN_MAX 15       /* and then it is given up */
#define RESYNC_US 10000000 /* how often drift is looked at */
#define DRIFT_US 500       /* and what of it is worth a word */
#define TICK_US 100000

enum at { AT_ASKED, AT_IN, AT_WAITING, AT_AWAY, AT_OVER };

struct node {
	enum at at;
	unsigned phase; /* WAITING: before it */
	bool out;       /* not waited for */
	bool start;     /* run_start is due */
	int64_t away_at_us;
	int64_t again_at_us; /* not before, after a refusal */
	unsigned refused;
	int64_t sent_offset_us; /* of the newest run_go */
};

struct run_nodes {
	struct run_nodes_host host;
	json_t *plan;
	char run[64];
	unsigned resume_from;
	const char *silent;
	struct node *node;
	size_t nodes;
	bool paused, stopping;
	int64_t paused_at_us, resync_at_us;
	/* the newest stretch; wall time */
	bool gone;
	unsigned go_phase;
	int64_t go_wall_us;
};

/* ---- the plan ----------------------------------------------------------- */

static int assign_one(json_t *plan, const char *vdisk,
		      int (*owner)(const char *vdisk, void *arg), void *arg,
		      struct err *err)
{
	json_t *list;
	int at = owner(vdisk, arg);

	if (at < 0 || (size_t)at >= plan_nodes(plan))
		return err_set(err, -ENODEV, "no node that is there owns %s",
			       vdisk);
	list = json_object_get(plan_node(plan, (size_t)at), "vdisks");
	if (!json_array_size(list) || !plan_owns(list, vdisk))
		json_array_append_new(list, json_string(vdisk));
	return 0;
}

int run_nodes_assign(json_t *plan, const struct run_nodes_who *who,
		     size_t nodes, int (*owner)(const char *vdisk, void *arg),
		     void *arg, struct err *err)
{
	json_t *list = json_array(), *o;
	const char *vdisk;
	size_t i, k;
	int rc = 0;

	for (i = 0; i < nodes; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:[]}", "name", who[i].name,
					"agent", who[i].agent, "vdisks"));
	json_object_set_new(plan, "nodes", list);
	json_array_foreach(json_object_get(plan, "series"), i, o) {
		for (k = 0; !rc && k < plan_vdisks(o); k++)
			rc = assign_one(plan, plan_vdisk(o, k), owner, arg,
					err);
	}
	json_array_foreach(json_object_get(plan, "phases"), i, o) {
		vdisk = json_string_value(json_object_get(o, "vdisk"));
		if (!rc && vdisk)
			rc = assign_one(plan, vdisk, owner, arg, err);
	}
	return rc;
}

/* ---- asking ------------------------------------------------------------- */

static const char *node_text(const struct run_nodes *r, size_t n,
			     const char *member)
{
	const char *s = json_string_value(
		json_object_get(plan_node(r->plan, n), member));

	return s ? s : "";
}

static void ask_go(struct run_nodes *r, size_t n)
{
	int64_t offset, err, rtt;

	if (!r->host.offset(r->host.arg, n, &offset, &err, &rtt))
		return;
	r->node[n].sent_offset_us = offset;
	r->host.ask(r->host.arg, n, "run_go",
		    json_pack("{s:s, s:i, s:I}", "run", r->run, "phase",
			      (int)r->go_phase, "at_us",
			      (json_int_t)(r->go_wall_us + offset)));
}

/* At first, again before anything has begun, or to fall in. */
static void ask_start(struct run_nodes *r, size_t n)
{
	json_t *body = json_pack("{s:O, s:s, s:i}", "plan", r->plan, "run",
				 r->run, "resume_from",
				 (int)(r->gone ? r->go_phase : r->resume_from));
	json_t *known = r->host.known ? r->host.known(r->host.arg, n) : NULL;
	int64_t offset = 0, err, rtt;

	if (known)
		json_object_set_new(body, "known", known);
	if (r->gone) {
		r->host.offset(r->host.arg, n, &offset, &err, &rtt);
		json_object_set_new(
			body, "join",
			json_pack("{s:i, s:I}", "phase", (int)r->go_phase,
				  "at_us",
				  (json_int_t)(r->go_wall_us + offset)));
	}
	r->node[n].sent_offset_us = offset;
	r->node[n].start = false;
	r->node[n].at = AT_ASKED;
	r->host.ask(r->host.arg, n, "run_start", body);
}

static bool is_there(const struct node *n)
{
	return n->at != AT_AWAY && n->at != AT_OVER;
}

static void ask_all(struct run_nodes *r, const char *what, const json_t *body)
{
	for (size_t n = 0; n < r->nodes; n++)
		if (is_there(&r->node[n]))
			r->host.ask(r->host.arg, n, what, json_deep_copy(body));
}

/* ---- the silent --------------------------------------------------------- */

static void give_up(struct run_nodes *r, size_t n, const char *why)
{
	if (r->node[n].out)
		return;
	r->node[n].out = true;
	r->host.emit(r->host.arg, "run_out",
		     json_pack("{s:s, s:s, s:s}", "run", r->run, "agent",
			       node_text(r, n, "agent"), "why", why));
}

static void silent_tick(struct run_nodes *r, size_t n, int64_t now)
{
	struct node *node = &r->node[n];
	char reason[160];

	if (node->at != AT_AWAY || node->out || r->stopping ||
	    now - node->away_at_us < RUN_NODES_SILENT_US ||
	    !strcmp(r->silent, "wait"))
		return;
	give_up(r, n, "it has not been heard of for a minute");
	if (strcmp(r->silent, "stop") != 0)
		return;
	snprintf(reason, sizeof(reason), "node %s has not been heard of",
		 node_text(r, n, "name"));
	run_nodes_stop(r, reason);
}

/* ---- barriers ----------------------------------------------------------- */

/* Whether all that are waited for wait; before which phase, by the last. */
static bool all_wait(const struct run_nodes *r, unsigned *phase)
{
	bool any = false;

	*phase = 0;
	for (size_t n = 0; n < r->nodes; n++) {
		const struct node *node = &r->node[n];

		if (node->out || node->at == AT_OVER)
			continue;
		if (node->at != AT_WAITING)
			return false;
		if (node->phase > *phase)
			*phase = node->phase;
		any = true;
	}
	return any;
}

static void barrier_tick(struct run_nodes *r)
{
	int64_t offset, err, rtt, err_most = 0, rtt_most = 0;
	unsigned phase;

	if (r->paused || r->stopping || !all_wait(r, &phase))
		return;
	for (size_t n = 0; n < r->nodes; n++) {
		if (!is_there(&r->node[n]))
			continue;
		if (!r->host.offset(r->host.arg, n, &offset, &err, &rtt))
			return; /* soon */
		err_most = err > err_most ? err : err_most;
		rtt_most = rtt > rtt_most ? rtt : rtt_most;
	}
	r->gone = true;
	r->go_phase = phase;
	r->go_wall_us = r->host.wall_us(r->host.arg) + MARGIN_US + 2 * rtt_most;
	for (size_t n = 0; n < r->nodes; n++) {
		if (!is_there(&r->node[n]))
			continue;
		ask_go(r, n);
		r->node[n].at = AT_IN;
	}
	r->host.emit(r->host.arg, "run_go",
		     json_pack("{s:s, s:i, s:I, s:I}", "run", r->run, "phase",
			       (int)phase, "at_us", (json_int_t)r->go_wall_us,
			       "err_us", (json_int_t)err_most));
}

/* Clocks drift: the phases to come are moved where it is worth it. */
static void drift_tick(struct run_nodes *r, int64_t now)
{
	int64_t offset, err, rtt, off;

	if (!r->gone || r->paused || now < r->resync_at_us)
		return;
	r->resync_at_us = now + RESYNC_US;
	for (size_t n = 0; n < r->nodes; n++) {
		if (r->node[n].at != AT_IN ||
		    !r->host.offset(r->host.arg, n, &offset, &err, &rtt))
			continue;
		off = llabs(offset - r->node[n].sent_offset_us);
		if (off > DRIFT_US && off > err)
			ask_go(r, n);
	}
}

static void start_tick(struct run_nodes *r, size_t n, int64_t now)
{
	int64_t offset, err, rtt;

	if (!r->node[n].start || r->stopping || now < r->node[n].again_at_us)
		return;
	if (r->gone && !r->host.offset(r->host.arg, n, &offset, &err, &rtt))
		return;
	ask_start(r, n);
}

int64_t run_nodes_tick(struct run_nodes *r)
{
	int64_t now = r->host.now_us(r->host.arg);

	for (size_t n = 0; n < r->nodes; n++) {
		start_tick(r, n, now);
		silent_tick(r, n, now);
	}
	barrier_tick(r);
	drift_tick(r, now);
	return now + TICK_US;
}

/* ---- what is heard ------------------------------------------------------ */

static void others_stop(struct run_nodes *r, size_t n, const char *why)
{
	char reason[256];

	snprintf(reason, sizeof(reason), "node %s: %s", node_text(r, n, "name"),
		 why && *why ? why : "it failed");
	run_nodes_stop(r, reason);
}

void run_nodes_event(struct run_nodes *r, size_t n, const json_t *event)
{
	const char *state = json_string_value(json_object_get(event, "state"));
	struct node *node = &r->node[n];

	if (!state || node->at == AT_AWAY)
		return;
	/* A word of its own: it is in it again. */
	node->out = false;
	node->refused = 0;
	if (!strcmp(state, "waiting")) {
		node->phase = (unsigned)json_integer_value(
			json_object_get(event, "phase"));
		node->at = AT_WAITING;
		/* The others have gone on: it falls in. */
		if (r->gone && r->go_phase >= node->phase) {
			ask_go(r, n);
			node->at = AT_IN;
		}
	} else if (!strcmp(state, "done") || !strcmp(state, "stopped") ||
		   !strcmp(state, "failed")) {
		node->at = AT_OVER;
		if (!strcmp(state, "failed") && !r->stopping)
			others_stop(r, n,
				    json_string_value(
					    json_object_get(event, "reason")));
	} else {
		node->at = AT_IN;
	}
}

void run_nodes_went(struct run_nodes *r, const json_t *run_go)
{
	r->gone = true;
	r->go_phase =
		(unsigned)json_integer_value(json_object_get(run_go, "phase"));
	r->go_wall_us = json_integer_value(json_object_get(run_go, "at_us"));
}

void run_nodes_answer(struct run_nodes *r, size_t n, const char *what,
		      const json_t *reply)
{
	struct node *node = &r->node[n];
	const char *why = json_string_value(json_object_get(reply, "error"));

	if (strcmp(what, "run_start") != 0 || !reply ||
	    json_is_true(json_object_get(reply, "ok")))
		return;
	if (!r->gone) { /* nothing has begun: nothing is to */
		node->at = AT_OVER;
		others_stop(r, n, why);
	} else if (++node->refused > AGAIN_MAX ||
		   json_integer_value(json_object_get(reply, "code")) ==
			   -ESTALE) {
		node->at = AT_OVER;
		give_up(r, n, why ? why : "it does not fall in");
	} else { /* its vDisks may be on their way */
		node->start = true;
		node->again_at_us = r->host.now_us(r->host.arg) + AGAIN_US;
	}
}

void run_nodes_up(struct run_nodes *r, size_t n, bool runs)
{
	struct node *node = &r->node[n];

	if (node->at == AT_OVER)
		return;
	if (runs) {
		node->at = AT_IN; /* until its events say otherwise */
		if (r->stopping)
			r->host.ask(r->host.arg, n, "run_stop", json_object());
		return;
	}
	node->at = r->stopping ? AT_OVER : AT_ASKED;
	node->start = !r->stopping;
	node->again_at_us = 0;
}

void run_nodes_down(struct run_nodes *r, size_t n)
{
	if (!is_there(&r->node[n]))
		return;
	r->node[n].at = AT_AWAY;
	r->node[n].start = false;
	r->node[n].away_at_us = r->host.now_us(r->host.arg);
}

/* ---- orders ------------------------------------------------------------- */

void run_nodes_pause(struct run_nodes *r, bool pause)
{
	int64_t now = r->host.now_us(r->host.arg), held;
	json_t *body;

	if (r->paused == pause || r->stopping)
		return;
	r->paused = pause;
	held = now - r->paused_at_us;
	body = json_pack("{s:b}", "pause", pause);
	if (pause) {
		r->paused_at_us = now;
	} else {
		/* One figure for all, whenever the word came to each. */
		json_object_set_new(body, "held_us",
				    json_integer((json_int_t)held));
		r->go_wall_us += held;
	}
	ask_all(r, "run_pause", body);
	json_decref(body);
}

void run_nodes_stop(struct run_nodes *r, const char *reason)
{
	json_t *body = json_object();

	if (!r->stopping) {
		r->stopping = true;
		if (reason)
			json_object_set_new(body, "reason",
					    json_string(reason));
		ask_all(r, "run_stop", body);
	}
	json_decref(body);
}

bool run_nodes_over(const struct run_nodes *r)
{
	for (size_t n = 0; n < r->nodes; n++)
		if (r->node[n].at != AT_OVER &&
		    !(r->node[n].at == AT_AWAY &&
		      (r->node[n].out || r->stopping)))
			return false;
	return true;
}

/* ---- life --------------------------------------------------------------- */

int run_nodes_new(const json_t *plan, const char *run, unsigned resume_from,
		  bool adopt, const struct run_nodes_host *host,
		  struct run_nodes **out, struct err *err)
{
	struct run_nodes *r = calloc(1, sizeof(*r));
	const char *silent = json_string_value(json_object_get(plan, "silent"));

	if (r)
		r->node = calloc(plan_nodes(plan) + 1, sizeof(*r->node));
	if (!r || !r->node) {
		free(r);
		return err_set(err, -ENOMEM, "out of memory for the run");
	}
	r->host = *host;
	r->plan = json_incref((json_t *)plan);
	r->nodes = plan_nodes(plan);
	r->resume_from = resume_from;
	r->silent = silent ? silent : "continue";
	snprintf(r->run, sizeof(r->run), "%s", run);
	for (size_t n = 0; n < r->nodes; n++) {
		r->node[n].at = adopt ? AT_IN : AT_ASKED;
		r->node[n].start = !adopt;
	}
	*out = r;
	return 0;
}

void run_nodes_free(struct run_nodes *r)
{
	if (!r)
		return;
	json_decref(r->plan);
	free(r->node);
	free(r);
}
