/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backend/cluster/check_impl.h"

#define ANSWER_US 15000000 /* an agent takes 10 s at most */
#define LINK_S 1           /* that a link is measured for */
#define LINK_US 12000000

enum stage { STAGE_NODES, STAGE_LINKS, STAGE_OVER };

struct pair {
	size_t from, to;
	unsigned round;
	char token[33];
	bool over;
};

struct check {
	struct fleet *fleet;
	const json_t *cluster;
	struct check_line *line;
	size_t lines;
	enum stage stage;
	int64_t until_us;
	bool *told; /* by node: it has been judged */
	struct pair *pair;
	size_t pairs;
	unsigned round;
	size_t calls; /* whose replies are to come */
	bool freed;
};

/* ---- lines -------------------------------------------------------------- */

struct check_line *check_say(struct check *c, const char *node,
			     const char *what, enum check_verdict verdict,
			     const char *fmt, ...)
{
	struct check_line *l;
	va_list ap;

	l = realloc(c->line, (c->lines + 1) * sizeof(*l));
	if (!l)
		return NULL;
	c->line = l;
	l += c->lines++;
	*l = (struct check_line) { .what = what,
				   .verdict = verdict,
				   .bytes_s = { NAN, NAN },
				   .rtt_us = NAN };
	snprintf(l->node, sizeof(l->node), "%s", node);
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	return l;
}

const json_t *check_cluster(const struct check *c)
{
	return c->cluster;
}

size_t check_lines(const struct check *c, const struct check_line **line)
{
	*line = c->line;
	return c->lines;
}

/* ---- calls -------------------------------------------------------------- */

struct call {
	struct check *check;
	size_t k; /* of a node or a pair */
	void (*reply)(struct check *c, size_t k, const json_t *reply);
};

static void check_end(struct check *c)
{
	free(c->line);
	free(c->told);
	free(c->pair);
	free(c);
}

static void on_reply(const json_t *reply, void *arg)
{
	struct call call = *(struct call *)arg;

	free(arg);
	call.check->calls--;
	if (!call.check->freed)
		call.reply(call.check, call.k, reply);
	else if (!call.check->calls)
		check_end(call.check);
}

static void call(struct check *c, struct fleet_node *n, const char *what,
		 json_t *body, size_t k,
		 void (*reply)(struct check *c, size_t k, const json_t *reply))
{
	struct call *to = malloc(sizeof(*to));

	if (to) {
		*to = (struct call) { c, k, reply };
		c->calls++;
		if (fleet_ask(n, what, body, on_reply, to) >= 0)
			return;
		c->calls--;
	} else {
		json_decref(body);
	}
	free(to);
	reply(c, k, NULL);
}

void check_free(struct check *c)
{
	if (!c)
		return;
	c->freed = true;
	if (!c->calls)
		check_end(c);
}

/* ---- nodes -------------------------------------------------------------- */

static void on_node(struct check *c, size_t k, const json_t *reply)
{
	if (c->told[k])
		return;
	c->told[k] = true;
	check_judge(c, &c->fleet->node[k], reply);
}

static json_t *paths_of(const struct check *c, const struct fleet_node *n)
{
	json_t *domain, *drive, *paths = json_array();
	size_t i, j;

	json_array_foreach(json_object_get(c->cluster, "domains"), i, domain) {
		const char *name =
			json_string_value(json_object_get(domain, "name"));

		if (*n->name && name && strcmp(name, n->name) != 0)
			continue;
		json_array_foreach(json_object_get(domain, "drives"), j, drive)
			if (json_array_size(paths) < CHECK_PATHS_MAX)
				json_array_append(
					paths, json_object_get(drive, "path"));
	}
	return paths;
}

static void nodes_ask(struct check *c)
{
	c->until_us = c->fleet->opts.clock() + ANSWER_US;
	for (size_t k = 0; k < c->fleet->nodes; k++) {
		struct fleet_node *n = &c->fleet->node[k];

		if (n->state == FLEET_UP)
			call(c, n, "node_check",
			     json_pack("{s:o}", "paths", paths_of(c, n)), k,
			     on_node);
		else
			on_node(c, k, NULL);
	}
}

static bool nodes_over(struct check *c)
{
	bool late = c->fleet->opts.clock() >= c->until_us;

	for (size_t k = 0; k < c->fleet->nodes; k++) {
		if (c->told[k])
			continue;
		if (!late)
			return false;
		c->told[k] = true;
		check_say(c, c->fleet->node[k].name, "answer", CHECK_BAD,
			  "no answer within %d s: a device may hang there",
			  ANSWER_US / 1000000);
	}
	return true;
}

/* ---- links -------------------------------------------------------------- */

static void pair_name(const struct check *c, const struct pair *p, char *buf,
		      size_t len)
{
	snprintf(buf, len, "%.60s-%.60s", c->fleet->node[p->from].name,
		 c->fleet->node[p->to].name);
}

static void pair_bad(struct check *c, struct pair *p, const char *why)
{
	char name[136];

	p->over = true;
	pair_name(c, p, name, sizeof(name));
	check_say(c, name, "link", CHECK_BAD, "%s", why);
}

static double number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool refused(struct check *c, struct pair *p, const json_t *reply)
{
	const char *error = json_string_value(json_object_get(reply, "error"));

	if (json_is_true(json_object_get(reply, "ok")))
		return false;
	pair_bad(c, p,
		 !reply  ? "the agent was lost meanwhile"
		 : error ? error
			 : "refused");
	return true;
}

static void on_measured(struct check *c, size_t k, const json_t *reply)
{
	struct pair *p = &c->pair[k];
	struct check_line *l;
	char name[136];
	double out = number(reply, "out_bytes_s");
	double in = number(reply, "in_bytes_s");
	double rtt = number(json_object_get(reply, "rtt_us"), "median");

	if (p->over || refused(c, p, reply))
		return;
	p->over = true;
	pair_name(c, p, name, sizeof(name));
	l = check_say(c, name, "link", CHECK_OK,
		      "%.4g Mbit/s there, %.4g back, round trip %.3g ms",
		      out * 8e-6, in * 8e-6, rtt / 1e3);
	if (!l)
		return;
	l->bytes_s[0] = out;
	l->bytes_s[1] = in;
	l->rtt_us = rtt;
}

static void on_listens(struct check *c, size_t k, const json_t *reply)
{
	struct pair *p = &c->pair[k];

	if (p->over || refused(c, p, reply))
		return;
	call(c, &c->fleet->node[p->from], "link_measure",
	     json_pack("{s:s, s:i, s:s, s:O}", "token", p->token, "seconds",
		       LINK_S, "address", c->fleet->node[p->to].at->address,
		       "port", json_object_get(reply, "port")),
	     k, on_measured);
}

static void pair_begin(struct check *c, size_t k)
{
	struct pair *p = &c->pair[k];
	const struct node *to = c->fleet->node[p->to].at;

	if (!check_is_numeric(to->address)) {
		pair_bad(c, p,
			 "not measured: that node's address is a name; say "
			 "address = \"...\" in its node group");
		c->line[c->lines - 1].verdict = CHECK_WARN;
		return;
	}
	call(c, &c->fleet->node[p->to], "link_listen",
	     json_pack("{s:s, s:i, s:s, s:i, s:i}", "token", p->token,
		       "seconds", LINK_S, "address", to->address, "port",
		       (int)to->ports[0], "port_last", (int)to->ports[1]),
	     k, on_listens);
}

static void token_make(char token[33])
{
	static uint64_t made;
	uint64_t chance[2] = { 0 };

	if (getrandom(chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance[0] = ++made;
	snprintf(token, 33, "%016llx%016llx", (unsigned long long)chance[0],
		 (unsigned long long)chance[1]);
}

/* A ring of those that are there; in a round no node is in two links. */
static void pairs_make(struct check *c)
{
	size_t up[FLEET_MAX], n = 0;

	for (size_t k = 0; k < c->fleet->nodes; k++)
		if (c->fleet->node[k].state == FLEET_UP)
			up[n++] = k;
	c->pairs = n < 2 ? 0 : n == 2 ? 1 : n;
	c->pair = calloc(c->pairs + 1, sizeof(*c->pair));
	if (!c->pair)
		c->pairs = 0;
	for (size_t k = 0; k < c->pairs; k++) {
		c->pair[k] = (struct pair) {
			.from = up[k],
			.to = up[(k + 1) % n],
			.round = k + 1 == n && n % 2 ? 2 : k % 2,
		};
		token_make(c->pair[k].token);
	}
}

static void round_begin(struct check *c)
{
	c->until_us = c->fleet->opts.clock() + LINK_US;
	for (size_t k = 0; k < c->pairs; k++)
		if (c->pair[k].round == c->round)
			pair_begin(c, k);
}

static bool round_over(struct check *c)
{
	bool late = c->fleet->opts.clock() >= c->until_us;

	for (size_t k = 0; k < c->pairs; k++) {
		if (c->pair[k].round != c->round || c->pair[k].over)
			continue;
		if (!late)
			return false;
		pair_bad(c, &c->pair[k], "it was not measured in time");
	}
	return true;
}

/* ---- all of it ---------------------------------------------------------- */

struct check *check_new(struct fleet *fleet, const json_t *cluster)
{
	struct check *c = calloc(1, sizeof(*c));

	if (c)
		c->told = calloc(fleet->nodes, sizeof(*c->told));
	if (!c || !c->told) {
		free(c);
		return NULL;
	}
	c->fleet = fleet;
	c->cluster = cluster;
	nodes_ask(c);
	return c;
}

bool check_step(struct check *c)
{
	if (c->stage == STAGE_NODES && nodes_over(c)) {
		c->stage = STAGE_LINKS;
		pairs_make(c);
		round_begin(c);
	}
	while (c->stage == STAGE_LINKS && round_over(c)) {
		if (++c->round > 2)
			c->stage = STAGE_OVER;
		else
			round_begin(c);
	}
	return c->stage == STAGE_OVER;
}
