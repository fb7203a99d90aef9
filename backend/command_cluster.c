/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hosts, domains, drives, links, faults, the agent. */
#include "backend/command_impl.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/paths.h"
#include "backend/units.h"

/* ---- shapes -------------------------------------------------------------
 */

json_t *shape_json(const struct m_shape *s)
{
	if (!s->set)
		return json_null();
	return json_pack("{s:o,s:o,s:o}", "rate_bytes_s",
			 number_or_null(s->rate_bytes_s), "rate_iops",
			 number_or_null(s->rate_iops), "latency_us",
			 number_or_null(s->latency_us));
}

/* ---- drives
 * ------------------------------------------------------------------- */

static json_t *drive_json(const struct m_domain *dom, const struct m_drive *d)
{
	json_t *j;

	j = json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:s,s:o}", "domain", dom->name,
		      "name", d->name, "path", d->path, "kind", d->kind,
		      "size_bytes", number_or_null((double)d->size_bytes),
		      "free_bytes", number_or_null((double)d->free_bytes),
		      "state", d->state, "shape", shape_json(&d->shape));
	if (j && *d->reason)
		json_object_set_new(j, "reason", json_string(d->reason));
	return j;
}

static void drive_line(struct text *text, const struct m_domain *dom,
		       const struct m_drive *d)
{
	char name[140], size[24], left[24];

	snprintf(name, sizeof(name), "%s:%s", dom->name, d->name);
	text_add(text, "%-12s %-8s %10s %10s  %-8s %s%s%s\n", name, d->kind,
		 units_bytes_text(d->size_bytes < 0 ? NAN
						    : (double)d->size_bytes,
				  size, sizeof(size)),
		 units_bytes_text(d->free_bytes < 0 ? NAN
						    : (double)d->free_bytes,
				  left, sizeof(left)),
		 d->state, d->path, *d->reason ? ": " : "", d->reason);
}

static void show_drives(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *list = json_array();
	struct text text = { 0 };
	size_t i, k;

	(void)reply;
	text_add(&text, "%-12s %-8s %10s %10s  %-8s %s\n", "drive", "kind",
		 "size", "free", "state", "path");
	for (i = 0; i < m->domains; i++)
		for (k = 0; k < m->domain[i].drives; k++) {
			drive_line(&text, &m->domain[i],
				   &m->domain[i].drive[k]);
			json_array_append_new(
				list, drive_json(&m->domain[i],
						 &m->domain[i].drive[k]));
		}
	p->outcome.text = text_take(&text);
	p->outcome.json = json_pack("{s:o}", "drives", list);
}

COMMAND(do_drive_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_drives, NULL);
	return 0;
}

/* The agent's folder is not ours: paths go out absolute. */
static void absolute(const char *given, char *buf, size_t len)
{
	char cwd[PATH_MAX];

	if (path_expand(given, buf, len) || buf[0] == '/')
		return;
	if (getcwd(cwd, sizeof(cwd)))
		snprintf(buf, len, "%s/%s", cwd, given);
}

static json_t *drive_body(const char *path, const char *node)
{
	return json_pack("{s:s,s:s*}", "path", path, "node", node);
}

static void probed(struct pending *p, const json_t *reply)
{
	const char *verdict =
		json_string_value(json_object_get(reply, "verdict"));
	const char *reason =
		json_string_value(json_object_get(reply, "reason"));
	const char *kind = json_string_value(json_object_get(reply, "kind"));
	char size[24];

	if (reply_failed(p, reply))
		return;
	p->outcome.json = json_copy((json_t *)reply);
	json_object_del(p->outcome.json, "re");
	json_object_del(p->outcome.json, "ok");
	outcome_say(&p->outcome, "%s, %s: %s%s%s", kind ? kind : "drive",
		    units_bytes_text(json_number_value(json_object_get(
					     reply, "size_bytes")),
				     size, sizeof(size)),
		    verdict ? verdict : "?", reason ? ", " : "",
		    reason ? reason : "");
}

COMMAND(do_drive_probe)
{
	char path[PATH_MAX * 2];

	absolute(ARG("PATH"), path, sizeof(path));
	live_ask_any(deck, outcome, "drive_probe",
		     drive_body(path, ARG("node")), probed);
	return 0;
}

COMMAND(do_drive_claim)
{
	const char *cluster = ARG("cluster"), *destroy = ARG("destroy");
	char path[PATH_MAX * 2], again[PATH_MAX * 2];
	json_t *body;

	absolute(ARG("PATH"), path, sizeof(path));
	if (!cluster)
		cluster = json_string_value(
			json_object_get(deck->cluster, "name"));
	if (!cluster)
		return outcome_fail(outcome, 2,
				    "drive claim: no cluster is configured; "
				    "say cluster=NAME");
	body = drive_body(path, ARG("node"));
	json_object_set_new(body, "cluster", json_string(cluster));
	if (destroy) {
		absolute(destroy, again, sizeof(again));
		json_object_set_new(body, "destroy", json_string(again));
	}
	live_ask_any(deck, outcome, "drive_claim", body, NULL);
	return 0;
}

COMMAND(do_drive_release)
{
	char path[PATH_MAX * 2];
	json_t *body;

	absolute(ARG("PATH"), path, sizeof(path));
	body = drive_body(path, ARG("node"));
	json_object_set_new(body, "force", json_boolean(ARG("force") != NULL));
	live_ask_any(deck, outcome, "drive_release", body, NULL);
	return 0;
}

/* ---- shapes, set
 * ---------------------------------------------------------- */

static json_t *shape_body(const struct command *command, int argc,
			  char *const argv[])
{
	json_t *body = json_object();

	if (ARG("rate"))
		json_object_set_new(
			body, "rate_bytes_s",
			number_or_null(arg_number(ARG("rate"), "rate", 0)));
	if (ARG("iops"))
		json_object_set_new(
			body, "rate_iops",
			number_or_null(arg_number(ARG("iops"), "number", 0)));
	if (ARG("latency_us"))
		json_object_set_new(body, "latency_us",
				    number_or_null(arg_number(ARG("latency_us"),
							      "number", 0)));
	return body;
}

COMMAND(do_drive_set)
{
	const char *target = ARG("DRIVE"), *colon = strchr(target, ':');
	json_t *body = shape_body(command, argc, argv);

	if (!colon && strcmp(target, "*") != 0) {
		json_decref(body);
		return outcome_fail(outcome, 2,
				    "drive set: expected DOMAIN:DRIVE or *");
	}
	json_object_set_new(
		body, "domain",
		colon ? json_stringn(target, (size_t)(colon - target))
		      : json_string("*"));
	json_object_set_new(body, "drive",
			    json_string(colon ? colon + 1 : "*"));
	live_ask(deck, outcome, "drive_set", body, NULL);
	return 0;
}

COMMAND(do_link_set)
{
	json_t *body = shape_body(command, argc, argv);

	json_object_set_new(body, "domain", json_string(ARG("DOMAIN")));
	live_ask(deck, outcome, "link_set", body, NULL);
	return 0;
}

/* ---- the agent
 * -------------------------------------------------------------------- */

static void agent_line(const struct fleet_node *n, struct text *text,
		       json_t *list)
{
	const char *via = n->link ? link_conn_via(n->link) : NULL;
	bool up = n->state == FLEET_UP;

	text_add(text, "agent %s: %s%s%s\n", n->agent,
		 up ? "attached" : n->text, up && via ? ", by " : "",
		 up && via ? via : "");
	json_array_append_new(list,
			      json_pack("{s:s,s:b,s:s*}", "agent", n->agent,
					"attached", up, "via", via));
}

static void show_agent(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	const struct fleet *f = p->deck->fleet;
	const struct m_run *run = model_run(m);
	const char *via =
		f && f->node->link ? link_conn_via(f->node->link) : NULL;
	json_t *list = json_array();
	struct text text = { 0 };

	(void)reply;
	for (size_t k = 0; f && f->nodes > 1 && k < f->nodes; k++)
		agent_line(&f->node[k], &text, list);
	if (f && f->nodes > 1)
		via = NULL;
	p->outcome.json = json_pack(
		"{s:s,s:s,s:s*,s:s*,s:s*,s:o*}", "agent", p->deck->agent,
		"cluster", m->cluster, "run", run ? run->id : NULL, "run_state",
		run ? run->state : NULL, "via", via, "agents",
		json_array_size(list) ? json_incref(list) : NULL);
	json_decref(list);
	text_add(&text, "%s %s: cluster %s, %s%s%s%s",
		 f && f->nodes > 1 ? "agents of" : "agent", p->deck->agent,
		 *m->cluster ? m->cluster : "-",
		 run ? "run " : "no run in this session", run ? run->state : "",
		 via ? ", by " : "", via ? via : "");
	p->partial = false;
	p->outcome.text = text_take(&text);
}

COMMAND(do_agent_status)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_agent, NULL);
	return 0;
}

static void stopped(struct pending *p, const json_t *reply)
{
	p->until_down = !reply_failed(p, reply);
}

COMMAND(do_agent_stop)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_ask_any(deck, outcome, "quit", NULL, stopped);
	return 0;
}
