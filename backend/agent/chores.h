/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Work that blocks (making directories, looking at devices, reading labels)
 * on a thread of its own, so the reactor never waits for it.
 */
#ifndef BACKEND_AGENT_CHORES_H
#define BACKEND_AGENT_CHORES_H

#include "engine/reactor.h"

struct chores;

int chores_new(struct reactor *r, struct chores **chores);
/* Only with no chore left. Takes NULL. */
void chores_free(struct chores *c);
/*
 * work(arg) runs on another thread, then done(arg) on the reactor: once, never
 * from inside this call. Where no thread can be had, work runs on the reactor.
 */
void chores_start(struct chores *c, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg);
/*
 * Frees them, after turning the reactor until none is left, at most ns: what
 * hangs longer (on a device that does not answer) is left to itself, and is
 * never heard of again. Not from a callback. Takes NULL.
 */
void chores_leave(struct chores *c, uint64_t ns);
/* idle(arg) once none is left, at once if there is none. One at a time. */
void chores_drain(struct chores *c, void (*idle)(void *arg), void *arg);

#endif
