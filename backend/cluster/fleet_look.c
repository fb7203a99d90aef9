/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the links of a cluster come to, for who waits for them. */
#include "backend/cluster/fleet.h"

#include <stdio.h>
#include <string.h>

#define OPEN_US 60000000 /* for a cluster to be opened */

struct fleet_node *fleet_find(const struct fleet *f, const char *name)
{
	for (size_t k = 0; k < f->nodes; k++)
		if (!strcmp(f->node[k].name, name))
			return &f->node[k];
	return NULL;
}

struct fleet_node *fleet_by_agent(const struct fleet *f, const char *agent)
{
	for (size_t k = 0; k < f->nodes; k++)
		if (!strcmp(f->node[k].agent, agent))
			return &f->node[k];
	return NULL;
}

size_t fleet_count(const struct fleet *f, enum fleet_state state)
{
	size_t n = 0;

	for (size_t k = 0; k < f->nodes; k++)
		n += f->node[k].state == state;
	return n;
}

enum fleet_state fleet_state(const struct fleet *f)
{
	if (fleet_count(f, FLEET_UP))
		return FLEET_UP;
	return fleet_count(f, FLEET_LOST) == f->nodes ? FLEET_LOST
						      : FLEET_CONNECTING;
}

void fleet_text(const struct fleet *f, char *buf, size_t len)
{
	const struct fleet_node *first = NULL;
	size_t more = 0;

	buf[0] = '\0';
	for (size_t k = 0; k < f->nodes; k++) {
		const struct fleet_node *n = &f->node[k];

		if (!*n->text)
			continue;
		if (first)
			more++;
		else
			first = n;
	}
	if (!first)
		return;
	if (more)
		snprintf(buf, len, "%s: %.300s (and %zu more)", first->name,
			 first->text, more);
	else
		snprintf(buf, len, "%s%s%.400s", first->name,
			 *first->name ? ": " : "", first->text);
}

bool fleet_node_ready(const struct fleet_node *n)
{
	return n->state == FLEET_UP && n->open && n->ready_at_us &&
	       n->fleet->opts.clock() >= n->ready_at_us;
}

bool fleet_ready(const struct fleet *f)
{
	size_t ready = 0;

	for (size_t k = 0; f->settled && k < f->nodes; k++) {
		const struct fleet_node *n = &f->node[k];

		if (fleet_node_ready(n))
			ready++;
		else if (n->state == FLEET_UP && !n->open_failed &&
			 (f->nodes == 1 ||
			  f->opts.clock() < n->up_at_us + OPEN_US))
			return false;
	}
	return ready > 0;
}

bool fleet_hopeless(const struct fleet *f)
{
	bool any = false;

	for (size_t k = 0; f->settled && k < f->nodes; k++) {
		const struct fleet_node *n = &f->node[k];

		if (n->state == FLEET_CONNECTING ||
		    (n->state == FLEET_UP && !n->open_failed))
			return false;
		any |= n->state == FLEET_UP;
	}
	return any;
}

bool fleet_offset(const struct fleet_node *n, int64_t *offset_us,
		  int64_t *err_us)
{
	return offset_best(&n->offset, n->fleet->opts.clock(), offset_us,
			   err_us, NULL);
}
