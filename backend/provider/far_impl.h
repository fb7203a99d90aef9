/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What far.c and far_part.c share. */
#ifndef BACKEND_PROVIDER_FAR_IMPL_H
#define BACKEND_PROVIDER_FAR_IMPL_H

#include "backend/agent/asks.h"
#include "backend/provider/provider_priv.h"
#include "engine/bdev/nbd.h"

#define FAR_ASK_NS (10 * SEC_NS)
#define FAR_AGAIN_NS (2 * SEC_NS) /* between attempts that failed */

/* A component that is open here. */
struct part {
	struct part *next;
	struct far *far;
	char id[64];
	struct bdev *bdev; /* till its last state */
	bool asking;       /* export_open is not answered yet */
	bool target;       /* it was told one */
	bool closing;      /* nothing more is asked for it */
	uint64_t asked_ns;
};

/* component_make or component_remove that is not answered yet. */
struct change {
	struct change *next;
	struct far *far;
	char id[64];
	bool make;
};

struct far {
	struct store store;
	struct provider *provider;
	struct p_drive *drive;
	struct drive_component *list;
	size_t count;
	struct part *parts;
	struct change *changing;
	unsigned changes; /* ever: a list asked for before one is old */
	bool scanning;    /* the provider waits for its first list */
	bool listing;
	unsigned listed_at; /* `changes` when it was asked for */
	uint64_t listed_ns; /* when that was */
	uint64_t size_bytes, free_bytes;
	enum drive_kind kind;
	struct timer timer; /* looks at parts and at the list */
};

/* ---- far.c -------------------------------------------------------------- */
static inline const char *far_node(const struct far *f)
{
	return f->drive->domain->name;
}
/* {"drive":.., "component":..}: how a question begins. */
json_t *far_about(const struct far *f, const char *component);
bool far_ok(const json_t *reply);
const char *far_error(const json_t *reply);
/* It is looked at again. */
void far_soon(struct far *f, uint64_t ns);
const struct drive_component *far_listed(const struct far *f, const char *id);
bool far_making(const struct far *f, const char *id);

/* ---- far_part.c --------------------------------------------------------- */
struct part *part_find(const struct far *f, const char *id);
int part_open(struct far *f, const char *id, struct bdev **bdev,
	      struct err *err);
/* Its bdev is DEAD. */
void part_give_up(struct part *part, const char *why);
/* Asks for its export, if it is time to. */
void part_tend(struct part *part, uint64_t now);

#endif
