/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/board.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cluster/fleet.h"

#define ASKS_MAX 1024 /* of one agent, without an answer yet */

/* Who asked, and in which of its connections. */
struct asker {
	struct fleet_node *node;
	unsigned ups;
	int64_t n;
	char to[64];
};

static void refuse(struct fleet_node *from, int64_t n, int code,
		   const char *fmt, ...) ID_PRINTF(4, 5);
static void refuse(struct fleet_node *from, int64_t n, int code,
		   const char *fmt, ...)
{
	char error[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
	link_conn_tell(from->link, n,
		       json_pack("{s:b, s:i, s:s}", "ok", 0, "code", code,
				 "error", error));
}

static void answered(const json_t *reply, void *arg)
{
	struct asker *a = arg;
	json_t *copy;

	a->node->asks--;
	if (a->node->ups != a->ups || a->node->state != FLEET_UP) {
		free(a); /* it asks again by itself, what is open then */
		return;
	}
	if (reply) {
		copy = json_copy((json_t *)reply);
		json_object_del(copy, "re");
		link_conn_tell(a->node->link, a->n, copy);
	} else {
		refuse(a->node, a->n, -ENOTCONN,
		       "node %s was lost before it answered", a->to);
	}
	free(a);
}

static bool may_pass(const char *what)
{
	static const char *const list[] = { "component_list", "component_make",
					    "component_remove", "export_open",
					    "export_close" };

	for (size_t k = 0; what && k < array_len(list); k++)
		if (!strcmp(list[k], what))
			return true;
	return false;
}

static void pass(struct fleet_node *from, struct fleet_node *to,
		 const json_t *ask, int64_t n, const char *what)
{
	json_t *body = json_copy((json_t *)ask);
	struct asker *a = malloc(sizeof(*a));

	if (!a || !body ||
	    json_object_set_new(body, "for", json_string(from->name))) {
		json_decref(body);
		free(a);
		refuse(from, n, -ENOMEM,
		       "node %s: the console is out of memory", to->name);
		return;
	}
	json_object_del(body, "ask");
	json_object_del(body, "node");
	*a = (struct asker) { .node = from, .ups = from->ups, .n = n };
	snprintf(a->to, sizeof(a->to), "%s", to->name);
	from->asks++;
	if (fleet_ask(to, what, body, answered, a) < 0)
		answered(NULL, a);
}

void board_ask(struct fleet_node *from, const json_t *ask)
{
	const char *what = json_string_value(json_object_get(ask, "do"));
	const char *name = json_string_value(json_object_get(ask, "node"));
	int64_t n = json_integer_value(json_object_get(ask, "ask"));
	struct fleet_node *to = name ? fleet_find(from->fleet, name) : NULL;

	if (!may_pass(what))
		refuse(from, n, -EPERM, "%s passes no switchboard",
		       what ? what : "what is no request");
	else if (!to || to == from)
		refuse(from, n, -EINVAL, "there is no other node %s",
		       name ? name : "without a name");
	else if (to->state != FLEET_UP)
		refuse(from, n, -ENOTCONN, "node %s is not connected",
		       to->name);
	else if (from->asks >= ASKS_MAX)
		refuse(from, n, -EBUSY, "too much is asked of node %s at once",
		       to->name);
	else
		pass(from, to, ask, n, what);
}
