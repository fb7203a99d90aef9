/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A vDisk is given to another node: closed where it is, then opened there
 * under its next term. From an owner that is not there it is taken: what is
 * exported to it is torn down as the new one opens, so it can write no more.
 */
#include "backend/command_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void opened(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		outcome_say(&p->outcome, "%s is open on node %s now", p->name,
			    (const char *)p->order);
}

static json_t *own_body(const struct pending *p, int64_t term)
{
	return json_pack("{s:s, s:s, s:I}", "name", p->name, "node",
			 (const char *)p->order, "term", (json_int_t)term);
}

static void given(struct pending *p, const json_t *reply)
{
	if (!reply_failed(p, reply))
		pending_again(p, "vdisk_own",
			      own_body(p, json_integer_value(json_object_get(
						  reply, "term")) +
						  1),
			      opened);
}

/* Its owner is a node, and not this one. */
static bool may_move(struct pending *p, const struct m_vdisk *v)
{
	if (p->deck->fleet->nodes < 2)
		outcome_fail(&p->outcome, 1,
			     "the cluster has one agent: there is no other "
			     "node to move %s to",
			     p->name);
	else if (!v)
		outcome_fail(&p->outcome, 1,
			     "there is no vDisk %s; `vdisk list` names them",
			     p->name);
	else if (!strcmp(v->owner, p->order))
		outcome_fail(&p->outcome, 1, "node %s has %s already", v->owner,
			     p->name);
	else
		return true;
	return false;
}

static void move(struct pending *p, bool force)
{
	const struct m_vdisk *v = model_vdisk(p->deck->model, p->name);
	struct fleet_node *from;

	if (!may_move(p, v))
		return;
	from = fleet_find(p->deck->fleet, v->owner);
	if (from && fleet_node_ready(from))
		pending_again(p, "vdisk_disown",
			      json_pack("{s:s}", "name", p->name), given);
	else if (force)
		pending_again(p, "vdisk_own", own_body(p, v->term + 1), opened);
	else
		outcome_fail(&p->outcome, 1,
			     "node %s, which has %s open, cannot be asked to "
			     "close it: `vdisk move %s %s --force` takes it "
			     "away, and what that node has not written is lost",
			     v->owner, p->name, p->name,
			     (const char *)p->order);
}

static void known(struct pending *p, const json_t *reply)
{
	(void)reply;
	move(p, false);
}

static void known_forced(struct pending *p, const json_t *reply)
{
	(void)reply;
	move(p, true);
}

COMMAND(do_vdisk_move)
{
	struct pending *p = live_ask(deck, outcome, "", NULL,
				     ARG("force") ? known_forced : known);

	if (!p)
		return 0;
	snprintf(p->name, sizeof(p->name), "%s", ARG("NAME"));
	p->order = strdup(ARG("NODE"));
	p->order_free = free;
	return 0;
}
