/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run over the nodes of the cluster: lends run_nodes.h the links. What the
 * model says of the run is all that is kept, so it is the same whether this
 * console began the run or came to it.
 */
#include "backend/deck_impl.h"

#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/run/plan.h"
#include "backend/run_nodes.h"

#define RETRY_US 2000000
#define ADOPT_US 3000000 /* so long all are given to say that they begin */

struct runs {
	struct deck *deck;
	struct run_nodes *r;
	char run[MODEL_NAME];
	int64_t retry_at_us;
	size_t nodes;
	struct runs_node {
		struct fleet_node *at;
		bool up;
		unsigned ups;
	} node[PLAN_NODES_MAX];
};

/* ---- hands -------------------------------------------------------------- */

struct asked {
	struct deck *deck;
	size_t node;
	char what[16], run[MODEL_NAME];
};

static void on_reply(const json_t *reply, void *arg)
{
	struct asked *a = arg;
	struct runs *runs = a->deck->runs;

	if (runs && !strcmp(runs->run, a->run))
		run_nodes_answer(runs->r, a->node, a->what, reply);
	free(a);
}

static void hand_ask(void *arg, size_t n, const char *what, json_t *body)
{
	struct runs *runs = arg;
	struct asked *a = calloc(1, sizeof(*a));

	if (!a) {
		json_decref(body);
		return;
	}
	a->deck = runs->deck;
	a->node = n;
	snprintf(a->what, sizeof(a->what), "%s", what);
	memcpy(a->run, runs->run, sizeof(a->run));
	if (fleet_ask(runs->node[n].at, what, body, on_reply, a) < 0)
		free(a);
}

static int64_t hand_now(void *arg)
{
	(void)arg;
	return deck_clock();
}

static int64_t hand_wall(void *arg)
{
	(void)arg;
	return event_now_us();
}

static bool hand_offset(void *arg, size_t n, int64_t *offset_us,
			int64_t *err_us, int64_t *rtt_us)
{
	struct runs *runs = arg;

	*rtt_us = 0;
	if (!fleet_offset(runs->node[n].at, offset_us, err_us))
		return false;
	*rtt_us = 2 * *err_us;
	return true;
}

static void hand_emit(void *arg, const char *e, json_t *body)
{
	record_own(((struct runs *)arg)->deck, e, body);
}

json_t *runs_known(const struct m_run *run, const char *agent)
{
	json_t *known = json_object();
	char key[24];

	for (size_t n = 0; n < run->nodes; n++) {
		if (strcmp(run->node[n].agent, agent) != 0)
			continue;
		for (size_t i = 0; i < run->series_count; i++) {
			const struct m_series *se = &run->series[i];
			const struct m_point_node *part = NULL;

			for (size_t k = 0; k < se->points; k++)
				if (!strcmp(se->point[k].kind, "max") &&
				    se->point[k].node[n].max_iops > 0)
					part = &se->point[k].node[n];
			if (!part)
				continue;
			snprintf(key, sizeof(key), "%zu", i);
			json_object_set_new(
				known, key,
				json_pack("{s:f, s:I}", "max_iops",
					  part->max_iops, "outstanding",
					  (json_int_t)part->outstanding));
		}
	}
	return known;
}

static json_t *hand_known(void *arg, size_t n)
{
	struct runs *runs = arg;

	return runs_known(model_run(runs->deck->model),
			  runs->node[n].at->agent);
}

/* ---- the plan ----------------------------------------------------------- */

static int owner_of(const char *vdisk, void *arg)
{
	const struct deck *deck = arg;
	const struct m_vdisk *v = model_vdisk(deck->model, vdisk);
	int at = -1;

	for (size_t k = 0, n = 0; v && k < deck->fleet->nodes; k++) {
		if (!fleet_node_ready(&deck->fleet->node[k]))
			continue;
		if (!strcmp(deck->fleet->node[k].agent, v->agent))
			at = (int)n;
		n++;
	}
	return at;
}

int runs_assign(struct deck *deck, json_t *plan, struct err *err)
{
	struct run_nodes_who who[FLEET_MAX];
	size_t n = 0;

	if (!deck->fleet || deck->fleet->nodes < 2)
		return 0;
	for (size_t k = 0; k < deck->fleet->nodes; k++)
		if (fleet_node_ready(&deck->fleet->node[k]))
			who[n++] = (struct run_nodes_who) {
				deck->fleet->node[k].name,
				deck->fleet->node[k].agent
			};
	return run_nodes_assign(plan, who, n, owner_of, deck, err);
}

/* ---- coming to a run ---------------------------------------------------- */

static void node_say(struct runs *runs, const struct m_run *run, size_t n)
{
	const struct m_run_node *node = &run->node[n];
	json_t *event;

	if (!*node->state)
		return;
	event = json_pack("{s:s, s:s, s:i}", "state", node->state, "reason",
			  node->reason, "phase",
			  node->waits_at < 0 ? 0 : node->waits_at);
	run_nodes_event(runs->r, n, event);
	json_decref(event);
}

/* All that are there have said that they begin; or they had the time to. */
static bool all_spoke(struct deck *deck, const struct m_run *run)
{
	const struct fleet_node *at;

	if (!deck->runs_at_us)
		deck->runs_at_us = deck_clock();
	if (deck_clock() - deck->runs_at_us > ADOPT_US)
		return true;
	for (size_t n = 0; n < run->nodes; n++) {
		at = fleet_by_agent(deck->fleet, run->node[n].agent);
		if (at && fleet_node_ready(at) && !*run->node[n].state)
			return false;
	}
	return true;
}

static bool is_ours(struct deck *deck, const struct m_run *run)
{
	return run && run->nodes && !model_run_over(run) &&
	       !live_watching(deck) && live_ready(deck) &&
	       (deck->runs_began || live_running(deck));
}

static void adopt(struct deck *deck, const struct m_run *run)
{
	struct runs *runs = calloc(1, sizeof(*runs));
	const struct run_nodes_host host = {
		.arg = runs,
		.now_us = hand_now,
		.wall_us = hand_wall,
		.ask = hand_ask,
		.offset = hand_offset,
		.known = hand_known,
		.emit = hand_emit,
	};
	json_t *go;

	if (!runs ||
	    run_nodes_new(run->plan, run->id, 0, true, &host, &runs->r, NULL)) {
		free(runs);
		return;
	}
	runs->deck = deck;
	runs->nodes = run->nodes;
	memcpy(runs->run, run->id, sizeof(runs->run));
	deck->runs = runs;
	if (run->go_phase >= 0) {
		go = json_pack("{s:i, s:I}", "phase", run->go_phase, "at_us",
			       (json_int_t)run->go_at_us);
		run_nodes_went(runs->r, go);
		json_decref(go);
	}
	for (size_t n = 0; n < run->nodes; n++) {
		struct runs_node *node = &runs->node[n];

		node->at = fleet_by_agent(deck->fleet, run->node[n].agent);
		node->up = node->at && fleet_node_ready(node->at);
		node->ups = node->at ? node->at->ups : 0;
		if (!node->up)
			run_nodes_down(runs->r, n);
		else if (deck->runs_began ? *run->node[n].state != '\0'
					  : node->at->running)
			node_say(runs, run, n);
		else
			run_nodes_up(runs->r, n, false);
	}
}

void runs_end(struct deck *deck)
{
	if (!deck->runs)
		return;
	run_nodes_free(deck->runs->r);
	free(deck->runs);
	deck->runs = NULL;
	deck->runs_began = false;
	deck->runs_at_us = 0;
}

/* ---- turning ------------------------------------------------------------ */

static void links_look(struct runs *runs, const struct m_run *run)
{
	for (size_t n = 0; n < runs->nodes; n++) {
		struct runs_node *node = &runs->node[n];
		bool up = node->at && fleet_node_ready(node->at);

		if (!node->at || (up == node->up && node->at->ups == node->ups))
			continue;
		if (node->up)
			run_nodes_down(runs->r, n);
		node->up = up;
		if (!up)
			continue;
		node->ups = node->at->ups;
		run_nodes_up(runs->r, n, node->at->running);
		if (node->at->running)
			node_say(runs, run, n);
	}
}

/* An agent that was killed, with its machine there, is started anew. Who was
 * refused, and what cannot be reached, is the fleet's to know. */
static void killed_retry(struct runs *runs)
{
	const int64_t now = deck_clock();
	bool any = false;

	for (size_t n = 0; n < runs->nodes; n++) {
		const struct fleet_node *at = runs->node[n].at;

		if (!at || at->state != FLEET_LOST || at->ending)
			continue;
		if (!at->link || link_conn_code(at->link))
			return;
		any = true;
	}
	if (!any || now < runs->retry_at_us)
		return;
	runs->retry_at_us = now + RETRY_US;
	fleet_retry(runs->deck->fleet);
}

void runs_step(struct deck *deck)
{
	const struct m_run *run = deck->fleet ? model_run(deck->model) : NULL;

	if (!deck->runs && is_ours(deck, run) && all_spoke(deck, run))
		adopt(deck, run);
	if (!deck->runs)
		return;
	if (!run || strcmp(run->id, deck->runs->run) != 0 ||
	    model_run_over(run)) {
		runs_end(deck);
		return;
	}
	killed_retry(deck->runs);
	links_look(deck->runs, run);
	run_nodes_tick(deck->runs->r);
}

void runs_event(struct deck *deck, const struct fleet_node *node,
		const json_t *event)
{
	const char *e = json_string_value(json_object_get(event, "e"));
	const char *id = json_string_value(json_object_get(event, "run"));

	if (!deck->runs || !e || strcmp(e, "run_state") != 0 || !id ||
	    strcmp(id, deck->runs->run) != 0)
		return;
	for (size_t n = 0; n < deck->runs->nodes; n++)
		if (deck->runs->node[n].at == node)
			run_nodes_event(deck->runs->r, n, event);
}

bool runs_pause(struct deck *deck, bool pause)
{
	if (deck->runs)
		run_nodes_pause(deck->runs->r, pause);
	return deck->runs != NULL;
}

bool runs_stop(struct deck *deck)
{
	if (deck->runs)
		run_nodes_stop(deck->runs->r, "stopped by the operator");
	return deck->runs != NULL;
}
