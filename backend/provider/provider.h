/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Embedded: the engine's own vDisks on drives of this machine, as a cluster
 * document describes them: fault domains behind links, drives in domains,
 * policies as named objects. See README.md for the document and the events.
 *
 * Threads: all on the engine's reactor.
 */
#ifndef BACKEND_PROVIDER_PROVIDER_H
#define BACKEND_PROVIDER_PROVIDER_H

#include <jansson.h>

#include "backend/agent/reply.h"
#include "engine/bdev/bdev.h"

struct provider;
struct asks;
struct chores;

struct provider_host {
	/* body is given away */
	void (*emit)(const char *e, json_t *body, void *arg);
	/* so many vDisks are exported now */
	void (*exported)(unsigned count, void *arg);
	struct chores *chores;
	struct asks *asks; /* for drives of other nodes; NULL: there are none */
	int dirfd;         /* where policies are remembered */
	uint64_t mem_bytes; /* of this machine; 0: not known */
	void *arg;
};

/* Checks the document wholly (-EINVAL with the place); opens nothing yet. */
int provider_new(struct reactor *r, const json_t *cluster,
		 const struct provider_host *host, struct provider **provider,
		 struct err *err);
/*
 * Opens drives and vDisks, makes what is to be made. done() runs once, later.
 * A drive or vDisk that does not open is no error: it is shown with its
 * reason. Whatever the result, provider_close() ends it.
 */
void provider_open(struct provider *p,
		   void (*done)(int rc, const struct err *err, void *arg),
		   void *arg);
/* Closes vDisks, then drives, in order; closed(arg) once all is freed. While
 * it opens, first lets it open. */
void provider_close(struct provider *p, void (*closed)(void *arg), void *arg);

const char *provider_name(const struct provider *p);
/* -EBUSY with the remedy when the path is one of its drives. */
int provider_path_free(const struct provider *p, const char *path,
		       struct err *err);
/* Emits cluster, policy and vdisk events, whole. */
void provider_snapshot(struct provider *p);

/* Whether provider_ask() takes this kind of request. */
bool provider_knows(const char *what);
void provider_ask(struct provider *p, const char *what, const json_t *request,
		  struct reply *reply);

/* A drive was given to this cluster: used, if it is one of ours that failed. */
void provider_drive_claimed(struct provider *p, const char *path,
			    const char *cluster);

/* ---- for a run ---------------------------------------------------------- */

/* During a run nothing migrates; while something does, -EBUSY. */
int provider_run_set(struct provider *p, bool running, struct err *err);
/* The vDisk to load; NULL with err when there is none that answers. */
struct bdev *provider_vdisk(struct provider *p, const char *name,
			    struct err *err);
/* "healthy", "degraded", ... ; "" when there is no such vDisk */
const char *provider_vdisk_state(struct provider *p, const char *name);
/* Why an open vDisk has failed; NULL: it has not. Until the next call. */
const char *provider_vdisk_why(struct provider *p, const char *name);
/*
 * A phase of kind fault, link or drive. Done when it returns.
 * by  operator or plan
 */
int provider_act(struct provider *p, const json_t *act, const char *by,
		 struct err *err);
/* How often `usage` is emitted: 100 ms to 60 s. */
void provider_interval_set(struct provider *p, uint64_t interval_us);

#endif
