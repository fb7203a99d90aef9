/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDisks and their policies: made, changed, deleted. */
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

static void add_word(json_t *body, const char *name, const char *value)
{
	if (value)
		json_object_set_new(body, name, json_string(value));
}

void arg_policy(const struct command *command, int argc, char *const argv[],
		json_t *body)
{
	add_word(body, "policy", ARG("policy"));
	add_number(body, "raid", ARG("raid"), "int");
	add_number(body, "ftt", ARG("ftt"), "int");
	add_number(body, "k", ARG("k"), "int");
	add_number(body, "stripe_unit_bytes", ARG("stripe_unit"), "bytes");
	add_word(body, "layout", ARG("layout"));
	add_word(body, "compression", ARG("compression"));
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
	const json_t *away = json_object_get(reply, "away");
	const char *drive = json_string_value(json_array_get(away, 0));
	size_t more = json_array_size(away);

	if (reply_failed(p, reply))
		return;
	if (!drive)
		outcome_say(&p->outcome, "%s deleted", p->name);
	else if (more == 1)
		outcome_say(&p->outcome,
			    "%s deleted; what is on %s goes when that is back",
			    p->name, drive);
	else
		outcome_say(&p->outcome,
			    "%s deleted; what is on %s and %zu more drive%s "
			    "goes when they are back",
			    p->name, drive, more - 1, more > 2 ? "s" : "");
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
	if (ARG("owner"))
		json_object_set_new(body, "owner", json_string(ARG("owner")));
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
				    "vdisk set: say policy=, raid=, ftt=, "
				    "stripe_unit= or compression=");
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

static void exported(struct pending *p, const json_t *reply)
{
	const json_t *export = json_object_get(reply, "export");
	const char *uri = json_string_value(json_object_get(export, "uri"));

	if (reply_failed(p, reply))
		return;
	p->outcome.json = json_pack("{s:s,s:O}", "vdisk", p->name, "export",
				    export ? export : json_null());
	outcome_say(&p->outcome, "%s is exported: %s", p->name,
		    uri ? uri : "-");
}

COMMAND(do_vdisk_export)
{
	json_t *body = body_named(ARG("NAME"));

	add_word(body, "socket", ARG("socket"));
	add_word(body, "address", ARG("address"));
	add_number(body, "port", ARG("port"), "int");
	if (ARG("no-tls"))
		json_object_set_new(body, "tls", json_false());
	if (ARG("read-only"))
		json_object_set_new(body, "read_only", json_true());
	name_it(live_ask(deck, outcome, "vdisk_export", body, exported),
		ARG("NAME"));
	return 0;
}

static void unexported(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "%s is not exported any more",
			    p->name);
}

COMMAND(do_vdisk_unexport)
{
	name_it(live_ask(deck, outcome, "vdisk_unexport",
			 body_named(ARG("NAME")), unexported),
		ARG("NAME"));
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
