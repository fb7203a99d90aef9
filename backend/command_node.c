/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes: what there is, and whether it is fit. */
#include "backend/command_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cluster/check.h"
#include "backend/units.h"

/* ---- what there is ------------------------------------------------------ */

static json_t *host_json(const struct m_host *h)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:I,s:o,s:s,s:I,s:s}", "name",
			 h->name, "agent", h->agent, "kernel", h->kernel, "cpu",
			 h->cpu, "cores", (json_int_t)h->cores, "mem_bytes",
			 number_or_null((double)h->mem_bytes), "version",
			 h->version, "pid", (json_int_t)h->pid, "io", h->io);
}

static json_t *node_json(const struct m_node *n)
{
	json_t *j = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "name", n->name,
			      "agent", n->agent, "state", n->state, "why",
			      n->why, "via", n->via, "version", n->version);

	if (j && n->offset_known) {
		json_object_set_new(j, "offset_us", json_integer(n->offset_us));
		json_object_set_new(j, "offset_err_us",
				    json_integer(n->offset_err_us));
		json_object_set_new(j, "rtt_us", json_integer(n->rtt_us));
	}
	return j;
}

static json_t *nodes_show(const struct model *m, struct text *text)
{
	json_t *list = json_array();

	if (m->nodes)
		text_add(text, "%-8s %-10s %-8s %10s %9s  %s\n", "node",
			 "state", "agent", "clock ms", "rtt ms", "reached by");
	for (size_t i = 0; i < m->nodes; i++) {
		const struct m_node *n = &m->node[i];
		char off[24] = "-", rtt[24] = "-";

		if (n->offset_known) {
			snprintf(off, sizeof(off), "%+.2f",
				 (double)n->offset_us / 1e3);
			snprintf(rtt, sizeof(rtt), "%.2f",
				 (double)n->rtt_us / 1e3);
		}
		text_add(text, "%-8s %-10s %-8s %10s %9s  %s\n", n->name,
			 n->state, *n->version ? n->version : "-", off, rtt,
			 *n->why ? n->why : n->via);
		json_array_append_new(list, node_json(n));
	}
	return list;
}

static json_t *hosts_show(const struct model *m, struct text *text)
{
	json_t *list = json_array();
	char mem[24];

	for (size_t i = 0; i < m->hosts; i++) {
		const struct m_host *h = &m->host[i];

		text_add(text, "%s: %lld cores, %s, %s, agent %s\n", h->name,
			 (long long)h->cores,
			 units_bytes_text((double)h->mem_bytes, mem,
					  sizeof(mem)),
			 h->kernel, h->agent);
		json_array_append_new(list, host_json(h));
	}
	return list;
}

static json_t *domains_show(const struct model *m, struct text *text)
{
	json_t *list = json_array();
	char rate[24];

	text_add(text, "%-12s %-7s %s\n", "domain", "drives", "link");
	for (size_t i = 0; i < m->domains; i++) {
		const struct m_domain *d = &m->domain[i];
		size_t ok = 0;

		for (size_t k = 0; k < d->drives; k++)
			ok += !strcmp(d->drive[k].state, "ok");
		snprintf(rate, sizeof(rate), "no limit");
		if (d->link.set && !isnan(d->link.rate_bytes_s))
			snprintf(rate, sizeof(rate), "%.4g MB/s",
				 d->link.rate_bytes_s / 1e6);
		text_add(text, "%-12s %zu of %zu  %s\n", d->name, ok, d->drives,
			 rate);
		json_array_append_new(
			list, json_pack("{s:s,s:I,s:I,s:o}", "name", d->name,
					"drives", (json_int_t)d->drives,
					"drives_ok", (json_int_t)ok, "link",
					shape_json(&d->link)));
	}
	return list;
}

static void show_nodes(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *nodes, *hosts, *domains;
	struct text text = { 0 };

	(void)reply;
	nodes = nodes_show(m, &text);
	hosts = hosts_show(m, &text);
	domains = domains_show(m, &text);
	p->outcome.text = text_take(&text);
	p->outcome.json =
		json_pack("{s:s,s:o,s:o,s:o}", "cluster", m->cluster, "nodes",
			  nodes, "hosts", hosts, "domains", domains);
}

COMMAND(do_node_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_nodes, NULL);
	return 0;
}

/* ---- whether it is fit -------------------------------------------------- */

static const char *const verdicts[] = { "ok", "warn", "BAD" };

static json_t *line_json(const struct check_line *l)
{
	json_t *j = json_pack("{s:s,s:s,s:s,s:s}", "node", l->node, "check",
			      l->what, "verdict",
			      l->verdict == CHECK_BAD ? "bad"
						      : verdicts[l->verdict],
			      "text", l->text);

	if (j && !isnan(l->rtt_us)) {
		json_object_set_new(j, "out_bytes_s",
				    number_or_null(l->bytes_s[0]));
		json_object_set_new(j, "in_bytes_s",
				    number_or_null(l->bytes_s[1]));
		json_object_set_new(j, "rtt_us", number_or_null(l->rtt_us));
	}
	return j;
}

static int by_node(const void *a, const void *b)
{
	const struct check_line *const *x = a, *const *y = b;
	int r = strverscmp((*x)->node, (*y)->node);

	return r ? r : *x < *y ? -1 : *x > *y;
}

/* By node, links behind; what is good of a link or a drive, too. */
static void lines_show(const struct check *c, struct outcome *o)
{
	const struct check_line *line, **at;
	size_t n = check_lines(c, &line), bad = 0, warn = 0;
	json_t *list = json_array();
	struct text text = { 0 };

	at = calloc(n + 1, sizeof(*at));
	for (size_t k = 0; at && k < n; k++)
		at[k] = &line[k];
	if (at)
		qsort(at, n, sizeof(*at), by_node);
	for (size_t k = 0; at && k < n; k++) {
		const struct check_line *l = at[k];

		bad += l->verdict == CHECK_BAD;
		warn += l->verdict == CHECK_WARN;
		text_add(&text, "%-7s %-8s %-4s %s\n", l->node, l->what,
			 verdicts[l->verdict], l->text);
		json_array_append_new(list, line_json(l));
	}
	text_add(&text, "%zu checks, %zu bad, %zu to look at", n, bad, warn);
	free(at);
	o->text = text_take(&text);
	o->json = json_pack("{s:b,s:o}", "ok", !bad, "checks", list);
	o->status = bad ? 1 : 0;
}

static void check_turn(struct pending *p)
{
	if (!check_step(p->order))
		return;
	lines_show(p->order, &p->outcome);
	p->done = true;
}

static void check_order_free(void *order)
{
	check_free(order);
}

static void check_start(struct pending *p, const json_t *reply)
{
	(void)reply;
	p->partial = false;
	p->order = check_new(p->deck->fleet, p->deck->cluster);
	p->order_free = check_order_free;
	if (!p->order) {
		outcome_fail(&p->outcome, 1, "out of memory");
		return;
	}
	p->turn = check_turn;
	p->sent = true;
	p->done = false;
}

COMMAND(do_node_check)
{
	(void)command;
	(void)argc;
	(void)argv;
	if (live_watching(deck))
		return outcome_fail(outcome, 1,
				    "another console owns the agents: ask "
				    "there");
	live_ask_always(deck, outcome, check_start);
	return 0;
}
