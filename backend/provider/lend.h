/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this node keeps for others: components on its drives, and their
 * exports. Each is lent to one owner at a time, who says whose vDisk it is of
 * (a uuid) and in which term he owns it. Terms are remembered, durably: what
 * was once asked for in a later term is given in no earlier one.
 *
 *   component_list {drive}                   what there is, with its labels
 *   component_make {drive, component, size_bytes, for}
 *   component_remove {drive, component, for}
 *   export_open {drive, component, uuid?, term?, for, listen?: "unix"}
 *   export_close {drive, component, uuid?, term?, for}
 *
 * A reply of export_open has the key. It goes to who asked, and nowhere else.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_PROVIDER_LEND_H
#define BACKEND_PROVIDER_LEND_H

#include <jansson.h>

#include "backend/agent/reply.h"

struct lending;
struct provider;
struct p_drive;

/* "export":{"address","ports":[first,last]} of the document: where to listen.
 * -EINVAL. */
int lend_read(struct provider *p, const json_t *doc, struct err *err);
/* Ends what a killed agent has left. */
void lend_start(struct provider *p);
/* The exports end: at once, or after a moment in which other nodes, which end
 * with this one, may still close their vDisks. */
void lend_stop(struct provider *p);
/* Whether anything of it is still at work. */
bool lend_busy(const struct provider *p);
void lend_free(struct provider *p);

/* Whether a component is lent. */
bool lend_has(const struct provider *p, const struct p_drive *d,
	      const char *component);
/*
 * done(arg), now or later, once no write of whoever has borrowed it can still
 * land and it may be opened here; at once if it is not lent.
 */
void lend_fence(struct provider *p, struct p_drive *d, const char *component,
		void (*done)(void *arg), void *arg);

/* In which term a vDisk is owned, and by whom: from now on. -ENOMEM. */
int lend_heard(struct provider *p, const uint8_t uuid[16], uint64_t term,
	       const char *owner);
/* Who has a component on a drive of this node, and in which term, as far as is
 * known: else "" and 0. uuid may be NULL. */
uint64_t lend_owner(const struct provider *p, const struct p_drive *d,
		    const char *component, const uint8_t *uuid, char *node,
		    size_t len);
/* Of the memory's file: [{uuid, term, owner}] */
void lend_terms_read(struct provider *p, const json_t *list);
json_t *lend_terms_json(const struct provider *p);

void lend_list(struct provider *p, const json_t *request, struct reply *reply);
void lend_make(struct provider *p, const json_t *request, struct reply *reply);
void lend_remove(struct provider *p, const json_t *request,
		 struct reply *reply);
void lend_open(struct provider *p, const json_t *request, struct reply *reply);
void lend_close(struct provider *p, const json_t *request, struct reply *reply);
/* export_list {}: what is lent, to whom, without keys */
void lend_show(struct provider *p, const json_t *request, struct reply *reply);

/* ---- lend_list.c, for lend.c -------------------------------------------- */

/* A drive of this node that is there; NULL: answered. */
struct p_drive *lend_drive(struct provider *p, const json_t *request,
			   struct reply *reply);
/* How much is at work on other threads. */
unsigned *lend_chores(struct provider *p);

#endif
