/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDisks and their policies. */
#include "backend/command_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/units.h"

/* ---- what the files of commands share --------------------------------------
 */

double arg_number(const char *value, const char *kind, double unset)
{
	double v = unset;

	if (!value)
		return unset;
	if (!strcmp(kind, "bytes"))
		units_bytes(value, &v);
	else if (!strcmp(kind, "rate"))
		units_rate(value, &v);
	else if (!strcmp(kind, "seconds"))
		units_seconds(value, &v);
	else
		units_signed(value, &v);
	return v;
}

json_t *number_or_null(double value)
{
	if (isnan(value) || isinf(value))
		return json_null();
	if (value == floor(value) && fabs(value) < 1e15)
		return json_integer((json_int_t)value);
	return json_real(value);
}

static void add_number(json_t *body, const char *name, const char *value,
		       const char *kind)
{
	if (value)
		json_object_set_new(
			body, name,
			number_or_null(arg_number(value, kind, NAN)));
}

void arg_policy(const struct command *command, int argc, char *const argv[],
		json_t *body)
{
	const char *policy = ARG("policy");

	if (policy)
		json_object_set_new(body, "policy", json_string(policy));
	add_number(body, "raid", ARG("raid"), "int");
	add_number(body, "ftt", ARG("ftt"), "int");
	add_number(body, "stripe_unit_bytes", ARG("stripe_unit"), "bytes");
}

/* ---- vdisk ------------------------------------------------------------------
 */

static json_t *body_named(const char *name)
{
	return json_pack("{s:s}", "name", name);
}

static void created(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "%s made", p->name);
}

static void deleted(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "%s deleted", p->name);
}

/* ---- changing a policy, and waiting for what it moves -------------------- */

/* The order of a pending command that was asked to wait. */
struct moves {
	json_t *names; /* of vDisks; NULL until the agent has said them */
	size_t at;
};

static void moves_free(void *order)
{
	struct moves *m = order;

	json_decref(m->names);
	free(m);
}

static void moves_wait(struct pending *p)
{
	struct moves *m = calloc(1, sizeof(*m));

	if (!p || !m) {
		free(m);
		return;
	}
	p->order = m;
	p->order_free = moves_free;
}

static void moved(struct pending *p, const json_t *reply);

static void moves_next(struct pending *p)
{
	struct moves *m = p->order;
	const char *name = json_string_value(json_array_get(m->names, m->at));
	size_t count = json_array_size(m->names);

	if (name) {
		m->at++;
		pending_again(p, "vdisk_wait", body_named(name), moved);
		return;
	}
	outcome_say(&p->outcome, "%s changed; %zu vDisk%s moved", p->name,
		    count, count == 1 ? "" : "s");
}

static void moved(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		moves_next(p);
}

static void moving(struct pending *p, const json_t *reply)
{
	struct moves *m = p->order;

	if (reply_failed(p, reply))
		return;
	if (json_is_false(json_object_get(reply, "moves"))) {
		outcome_say(&p->outcome, "%s is so already", p->name);
	} else if (m) {
		m->names = json_pack("[s]", p->name);
		moves_next(p);
	} else {
		outcome_say(&p->outcome,
			    "%s moves to its new policy; `vdisk list` shows "
			    "how far it is",
			    p->name);
	}
}

static void changed(struct pending *p, const json_t *reply)
{
	json_t *names = json_object_get(reply, "moves");
	size_t moves = json_array_size(names);
	struct moves *m = p->order;

	if (reply_failed(p, reply))
		return;
	if (moves && m) {
		m->names = json_incref(names);
		moves_next(p);
	} else if (moves) {
		outcome_say(&p->outcome, "%s changed; %zu vDisk%s move%s to it",
			    p->name, moves, moves == 1 ? "" : "s",
			    moves == 1 ? "s" : "");
	} else {
		outcome_say(&p->outcome, "%s changed; no vDisk has to move",
			    p->name);
	}
}

static void name_it(struct pending *p, const char *name)
{
	if (p)
		snprintf(p->name, sizeof(p->name), "%s", name);
}

COMMAND(do_vdisk_create)
{
	json_t *body = body_named(ARG("NAME"));

	add_number(body, "size_bytes", ARG("size"), "bytes");
	arg_policy(command, argc, argv, body);
	if (!ARG("policy") && !ARG("raid")) {
		json_decref(body);
		return outcome_fail(outcome, 2,
				    "vdisk create: say policy=NAME or "
				    "raid=0|1|5|6");
	}
	name_it(live_ask(deck, outcome, "vdisk_create", body, created),
		ARG("NAME"));
	return 0;
}

COMMAND(do_vdisk_set)
{
	json_t *body = body_named(ARG("NAME"));
	struct pending *p;

	arg_policy(command, argc, argv, body);
	if (json_object_size(body) < 2) {
		json_decref(body);
		return outcome_fail(outcome, 2,
				    "vdisk set: say policy=, raid=, ftt= or "
				    "stripe_unit=");
	}
	p = live_ask(deck, outcome, "vdisk_set", body, moving);
	name_it(p, ARG("NAME"));
	if (ARG("wait"))
		moves_wait(p);
	return 0;
}

COMMAND(do_vdisk_delete)
{
	name_it(live_ask(deck, outcome, "vdisk_delete", body_named(ARG("NAME")),
			 deleted),
		ARG("NAME"));
	return 0;
}

static void verified(struct pending *p, const json_t *reply)
{
	json_int_t bad =
		json_integer_value(json_object_get(reply, "mismatches"));

	if (reply_failed(p, reply))
		return;
	p->outcome.json =
		json_pack("{s:s,s:I}", "vdisk", p->name, "mismatches", bad);
	if (bad)
		outcome_fail(&p->outcome, 1,
			     "%s: %lld stripes do not agree with their parity "
			     "or copies",
			     p->name, (long long)bad);
	else
		outcome_say(&p->outcome,
			    "%s: every stripe agrees with its parity or copies",
			    p->name);
}

COMMAND(do_vdisk_verify)
{
	name_it(live_ask(deck, outcome, "vdisk_verify", body_named(ARG("NAME")),
			 verified),
		ARG("NAME"));
	return 0;
}

/* ---- showing vDisks ---------------------------------------------------------
 */

static json_t *member_json(const struct m_member *m)
{
	return json_pack("{s:i,s:s,s:s,s:s,s:s}", "slot", m->slot, "domain",
			 m->domain, "drive", m->drive, "role", m->role, "state",
			 m->state);
}

static json_t *vdisk_json(const struct m_vdisk *v)
{
	json_t *members = json_array(), *j;
	size_t i;

	for (i = 0; i < v->members; i++)
		json_array_append_new(members, member_json(&v->member[i]));
	j = json_pack("{s:s,s:s,s:o,s:i,s:i,s:i,s:i,s:I,s:I,s:s,s:i,s:o}",
		      "name", v->name, "uuid", v->uuid, "policy",
		      *v->policy ? json_string(v->policy) : json_null(), "raid",
		      v->raid, "ftt", v->ftt, "k", v->k, "m", v->m,
		      "stripe_unit_bytes", (json_int_t)v->stripe_unit_bytes,
		      "size_bytes", (json_int_t)v->size_bytes, "state",
		      v->state, "failures_left", v->failures_left, "members",
		      members);
	if (j && *v->reason)
		json_object_set_new(j, "reason", json_string(v->reason));
	if (j)
		json_object_set_new(j, "progress", number_or_null(v->progress));
	return j;
}

static void policy_text(const struct m_vdisk *v, char *buf, size_t len)
{
	if (v->raid == 1)
		snprintf(buf, len, "RAID-1 x%d", v->m + 1);
	else if (v->raid == 0)
		snprintf(buf, len, "RAID-0 x%d", v->k);
	else
		snprintf(buf, len, "RAID-%d %d+%d", v->raid, v->k, v->m);
}

static void state_text(const struct m_vdisk *v, char *buf, size_t len)
{
	if (!isnan(v->progress) &&
	    (!strcmp(v->state, "rebuilding") || !strcmp(v->state, "migrating")))
		snprintf(buf, len, "%s %.0f %%", v->state, v->progress * 100);
	else
		snprintf(buf, len, "%s", v->state);
}

static void vdisk_line(struct text *text, const struct m_vdisk *v)
{
	char size[24], policy[24], state[40];

	policy_text(v, policy, sizeof(policy));
	state_text(v, state, sizeof(state));
	text_add(text, "%-16s %10s  %-12s %-12s %s\n", v->name,
		 units_bytes_text((double)v->size_bytes, size, sizeof(size)),
		 *v->policy ? v->policy : "-", policy, state);
}

static void show_vdisks(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *list = json_array();
	struct text text = { 0 };
	size_t i;

	(void)reply;
	text_add(&text, "%-16s %10s  %-12s %-12s %s\n", "vDisk", "size",
		 "policy", "layout", "state");
	for (i = 0; i < m->vdisks; i++) {
		vdisk_line(&text, &m->vdisk[i]);
		json_array_append_new(list, vdisk_json(&m->vdisk[i]));
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = json_pack("{s:o}", "vdisks", list);
}

COMMAND(do_vdisk_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_vdisks, NULL);
	return 0;
}

static void show_vdisk(struct pending *p, const json_t *reply)
{
	const struct m_vdisk *v = model_vdisk(deck_model(p->deck), p->name);
	struct text text = { 0 };
	char buf[40];
	size_t i;

	(void)reply;
	if (!v) {
		outcome_fail(&p->outcome, 1,
			     "there is no vDisk %s; `vdisk list` names them",
			     p->name);
		return;
	}
	vdisk_line(&text, v);
	if (*v->reason)
		text_add(&text, "  %s\n", v->reason);
	text_add(&text, "  may lose %d more; stripe unit %s\n",
		 v->failures_left,
		 units_bytes_text((double)v->stripe_unit_bytes, buf,
				  sizeof(buf)));
	for (i = 0; i < v->members; i++) {
		snprintf(buf, sizeof(buf), "%.18s:%.18s", v->member[i].domain,
			 v->member[i].drive);
		text_add(&text, "  %2d  %-16s %-8s %s\n", v->member[i].slot,
			 buf, v->member[i].role, v->member[i].state);
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = vdisk_json(v);
}

COMMAND(do_vdisk_show)
{
	live_show(deck, outcome, show_vdisk, ARG("NAME"));
	return 0;
}

/* ---- policy
 * ------------------------------------------------------------------ */

static int policy_ask(struct deck *deck, const struct command *command,
		      int argc, char *const argv[], struct outcome *outcome,
		      bool create)
{
	json_t *body = body_named(ARG("NAME"));
	struct pending *p;

	arg_policy(command, argc, argv, body);
	json_object_set_new(body, "create", json_boolean(create));
	if (create && !ARG("raid")) {
		json_decref(body);
		return outcome_fail(outcome, 2,
				    "policy create: say raid=0|1|5|6");
	}
	p = live_ask(deck, outcome, "policy_set", body,
		     create ? created : changed);
	name_it(p, ARG("NAME"));
	if (!create && ARG("wait"))
		moves_wait(p);
	return 0;
}

COMMAND(do_policy_create)
{
	return policy_ask(deck, command, argc, argv, outcome, true);
}

COMMAND(do_policy_set)
{
	return policy_ask(deck, command, argc, argv, outcome, false);
}

COMMAND(do_policy_delete)
{
	name_it(live_ask(deck, outcome, "policy_delete",
			 body_named(ARG("NAME")), deleted),
		ARG("NAME"));
	return 0;
}

static void show_policies(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *list = json_array();
	struct text text = { 0 };
	char unit[24];
	size_t i;

	(void)reply;
	text_add(&text, "%-16s %-8s %-9s %s\n", "policy", "level", "failures",
		 "stripe unit");
	for (i = 0; i < m->policies; i++) {
		const struct m_policy *y = &m->policy[i];

		text_add(&text, "%-16s RAID-%-3d %-9d %s\n", y->name, y->raid,
			 y->ftt,
			 units_bytes_text((double)y->stripe_unit_bytes, unit,
					  sizeof(unit)));
		json_array_append_new(
			list,
			json_pack("{s:s,s:i,s:i,s:I}", "name", y->name, "raid",
				  y->raid, "ftt", y->ftt, "stripe_unit_bytes",
				  (json_int_t)y->stripe_unit_bytes));
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = json_pack("{s:o}", "policies", list);
}

COMMAND(do_policy_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_policies, NULL);
	return 0;
}
