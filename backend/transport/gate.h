/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How many handshakes run at once: GATE_MAX, as each costs this thread
 * milliseconds of arithmetic at a time (8 were measured to be as fast as 64,
 * with steps of at most 8 ms), and GATE_SAME to one address, as sshd drops
 * more at random (MaxStartups 10:30:100).
 *
 * One that hangs costs no arithmetic: after GATE_HOLD_MS it does not count
 * any more, so that dead hosts hold nobody up.
 */
#ifndef BACKEND_TRANSPORT_GATE_H
#define BACKEND_TRANSPORT_GATE_H

#include "engine/base.h"

#define GATE_MAX 8
#define GATE_SAME 4
#define GATE_HOLD_MS 1000
#define GATE_LOOK_MS 5 /* when to ask again */

struct gate_ticket {
	struct gate_ticket *next;
	int64_t since_ms;
	char to[80];
	bool in;
};

/* True: it may begin; gate_leave() when it is through, or given up. */
bool gate_enter(struct gate_ticket *ticket, const char *to, int64_t now_ms);
void gate_leave(struct gate_ticket *ticket);
/* Handshakes that count, for tests. */
unsigned gate_count(int64_t now_ms);

#endif
