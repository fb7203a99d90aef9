/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/gate.h"

#include <stdio.h>
#include <string.h>

static struct gate_ticket *tickets; /* of those that are in */

unsigned gate_count(int64_t now_ms)
{
	unsigned n = 0;

	for (const struct gate_ticket *t = tickets; t; t = t->next)
		n += now_ms < t->since_ms + GATE_HOLD_MS;
	return n;
}

static unsigned same_count(const char *to)
{
	unsigned n = 0;

	for (const struct gate_ticket *t = tickets; t; t = t->next)
		n += !strcmp(t->to, to);
	return n;
}

bool gate_enter(struct gate_ticket *ticket, const char *to, int64_t now_ms)
{
	if (ticket->in)
		return true;
	if (gate_count(now_ms) >= GATE_MAX || same_count(to) >= GATE_SAME)
		return false;
	snprintf(ticket->to, sizeof(ticket->to), "%s", to);
	ticket->since_ms = now_ms;
	ticket->in = true;
	ticket->next = tickets;
	tickets = ticket;
	return true;
}

void gate_leave(struct gate_ticket *ticket)
{
	struct gate_ticket **at = &tickets;

	if (!ticket->in)
		return;
	while (*at != ticket)
		at = &(*at)->next;
	*at = ticket->next;
	ticket->in = false;
}
