/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inside of the embedded provider.
 *
 *   doc.c      reads the cluster document
 *   scan.c     looks at drives and labels, on another thread
 *   store.h    where the components of a drive are kept: here, or far.c
 *   stack.c    opens and closes a component with its layers
 *   place.c    chooses drives for components
 *   life.c     a vDisk is opened, created, deleted, closed
 *   tend.c     what is done by itself: rebuild, migration, reopening, tidying
 *   lend.h     what other nodes have of this one's drives
 *   own.c      which vDisks are this node's, where there are several
 *   policy.c   named policies
 *   memory.c   what is remembered beside the labels
 *   fault.c    what is done to drives, domains and links
 *   tell.c     events
 *   ask.c      requests
 *   export.h   a vDisk given to others by NBD
 *
 *   provider -- domain -- drive (hub, link of its shape)
 *            -- vdisk                                    by names
 *            -- policy
 */
#ifndef BACKEND_PROVIDER_PROVIDER_PRIV_H
#define BACKEND_PROVIDER_PROVIDER_PRIV_H

#include "backend/provider/export.h"
#include "backend/provider/port.h"
#include "backend/provider/provider.h"
#include "backend/provider/store.h"
#include "engine/bdev/layers.h"
#include "engine/vdisk/vdisk.h"

#define PLACE_NAME 32 /* of domains and drives, as labels hold them */
#define VDISK_NAME 64
#define PARTS_MAX (2 * VDISK_MEMBERS_MAX)

struct p_domain;
struct lending;

enum p_drive_state { P_DRIVE_OK, P_DRIVE_OFFLINE, P_DRIVE_FAILED };

struct p_drive {
	char name[PLACE_NAME];
	char *path;
	uint64_t most_bytes; /* a directory: what it may use; 0: all */
	struct p_domain *domain;
	struct store *store; /* NULL: not open */
	enum p_drive_state state;
	bool pulled; /* by a fault of its own, not its domain's */
	bool silent; /* of another node, which does not answer */
	char reason[512];
	enum drive_kind kind;
	uint64_t size_bytes, used_bytes;
	struct link_opts shape;
	uint64_t slow_ns; /* a fault's, on top of the shape's latency */
	struct link *link;
	struct hub hub;
	struct hub_stats told; /* at the last usage event */
	uint64_t told_link_busy_ns;
};

struct p_domain {
	char name[PLACE_NAME];
	struct link_opts shape;
	struct link *link;
	struct link_stats told;
	struct p_drive *drive;
	size_t drives;
	bool offline;
	bool far; /* another node's */
};

struct p_policy {
	char name[64];
	struct vdisk_policy policy; /* k 0: by the number of domains */
};

/* A component that may belong to a vDisk: found by its label. */
struct p_part {
	struct p_drive *drive;
	char component[64];
	uint64_t epoch;
};

/* A component that nobody needs, to be deleted once it is closed and its drive
 * is there: made for nothing, or of a vDisk that was deleted. */
struct p_undone {
	struct p_drive *drive;
	char component[64];
	char of[VDISK_NAME]; /* deleted; "": none */
};

/* A vDisk that was deleted. */
struct p_grave {
	uint8_t uuid[16];
	char name[VDISK_NAME];
};

/* A vDisk that this node owns, where there are several. */
struct p_own {
	uint8_t uuid[16];
	uint64_t term; /* grows each time it moves to another node */
};

enum p_phase {
	PV_SHUT, /* not open: `reason` says why */
	PV_BUSY, /* being opened, made, closed, deleted */
	PV_OPEN,
};

/* Who waits until a vDisk has come to rest. */
struct p_wait {
	struct p_wait *next;
	struct reply *reply;
};

struct p_vdisk {
	struct provider *provider;
	struct p_vdisk *next;
	char name[VDISK_NAME];
	char policy[64]; /* "" : of its own */
	enum p_phase phase;
	struct bdev *bdev;    /* PV_OPEN */
	struct bdev *top;     /* for load, and to close: over it, or it */
	bool owned;           /* by this node: nobody else's are opened */
	uint64_t term;        /* its owner's, 1 at first */
	bool lost;            /* another node has it by now */
	struct reply *disown; /* to be answered when it is closed for good */
	bool failed;          /* not open for want of members, not on purpose */
	struct vdisk_info info; /* the newest known */
	char reason[512];
	bool told; /* an event is due */
	uint64_t told_ns;
	enum vdisk_state tended; /* its state when it was tended last */
	bool replacing;          /* vdisk_replace() has not answered */
	bool moving;             /* vdisk_migrate() has not answered */
	bool verifying;
	bool wanted; /* `want` is to be reached by migration */
	struct vdisk_policy want;
	struct p_wait *waits; /* for the end of what moves it */
	struct err move_err;  /* of the last move; code 0: it got there */
	uint64_t gone_ns[VDISK_MEMBERS_MAX];  /* when a member went; 0: there */
	bool away[VDISK_MEMBERS_MAX];         /* its drive was not there then */
	uint64_t tried_ns[VDISK_MEMBERS_MAX]; /* the last attempt to replace */
	unsigned shut_serial; /* provider's, at the last attempt to open */
	uint64_t shut_ns;
	struct p_part part[PARTS_MAX]; /* known while it is not open */
	size_t parts;
	uint64_t mismatches;
	int64_t opened_t_us;          /* PV_OPEN: since when */
	uint64_t opening_ns, took_ns; /* to open it; 0 it was just made */
	json_t *figures;              /* as told last */
	uint64_t figures_ns;          /* when; 0: at once */
	uint64_t lost_told;           /* blocks of it that are lost */
	struct p_export *export;      /* NULL: it has none */
};

struct provider {
	struct reactor *reactor;
	struct provider_host host;
	char name[64], title[128];
	bool is_virtual, create;
	char node[PLACE_NAME]; /* the domain that is this node; "": all are */
	uint64_t absent_ns;
	struct p_domain *domain;
	size_t domains;
	struct p_policy *policy;
	size_t policies;
	struct p_vdisk *vdisks;
	json_t *doc_vdisks; /* to be made */
	size_t doc_next;

	void (*opened)(int rc, const struct err *err, void *arg);
	void *opened_arg;
	void (*closed)(void *arg);
	void *closed_arg;
	bool opening, closing, running;
	bool cluster_told; /* an event is due */
	bool tidy;         /* components may be left over */
	struct p_undone *undone;
	size_t undones;
	struct p_grave *grave;
	size_t graves;
	unsigned drive_serial; /* grows when a drive comes back */
	unsigned naming;       /* of new components */
	struct p_own *own;     /* vDisks of this node */
	size_t owns;
	bool scanned;       /* what is on this node is known */
	unsigned far_waits; /* drives of others that are not listed yet */
	uint64_t far_until_ns;
	void (*far_scanned)(void *arg);
	void *far_arg;
	struct lending *lending;
	struct timer tend, usage, shut;
	uint64_t usage_ns, usage_every_ns;
};

/* ---- doc.c -------------------------------------------------------------- */
int doc_read(struct provider *p, const json_t *doc, struct err *err);
/* {rate_bytes_s, rate_iops, latency_us} or null */
int doc_shape(const json_t *j, struct link_opts *shape, const char *where,
	      struct err *err);
/* raid, ftt, k, stripe_unit_bytes, layout, compression */
int doc_policy(const json_t *j, struct vdisk_policy *policy, const char *where,
	       struct err *err);
/* A name of 1 to max [A-Za-z0-9._-]; -EINVAL. */
int doc_name(const json_t *j, const char *key, size_t max, const char **name,
	     const char *where, struct err *err);
/* A whole number of bytes; unset when it is not there. */
int doc_bytes(const json_t *j, const char *key, uint64_t unset, uint64_t *bytes,
	      const char *where, struct err *err);

/* ---- scan.c ------------------------------------------------------------- */
/* Claims drives where the document says create, finds components; drives and
 * vDisks (phase SHUT, with parts) stand in p when done(arg) runs. */
void scan_start(struct provider *p, void (*done)(void *arg), void *arg);

/* A component that stands on d, by its label, which may come from its node: it
 * may be a part of a vDisk that is not open. */
void part_found(struct provider *p, struct p_drive *d, const char *id,
		const struct vdisk_label_facts *facts);
/* What has been listed of d is all there is of it. */
void parts_prune(struct provider *p, const struct p_drive *d);
/* Names that two vDisks have, once all is found. */
void twins_drop(struct provider *p);

/* ---- far.c -------------------------------------------------------------- */
/* Asks for what is on other nodes' drives; done(arg) runs when all have said
 * it, or cannot: one at a time. */
/* seen.c: of vDisks of other nodes. */
void seen_tell(struct provider *p);
void far_scan(struct provider *p, void (*done)(void *arg), void *arg);
/* Whether components of other nodes are still open. */
bool far_busy(const struct provider *p);

/* ---- own.c -------------------------------------------------------------- */
/* Whether v is this node's, as remembered: where there is one node, it is. */
void own_find(struct p_vdisk *v);
/* It is, durably. */
int own_take(struct p_vdisk *v, uint64_t term);
/* It is not: to be followed by memory_write(). */
void own_drop(struct p_vdisk *v);
void own_read(struct provider *p, const json_t *list);
json_t *own_json(const struct provider *p);
/* An exporter says so: it is to be closed here. */
void own_lost(struct p_vdisk *v);
/* Of a vDisk of ours: another has it in a later term. */
void own_outdated(struct provider *p, const uint8_t uuid[16], uint64_t term);
void own_tend(struct p_vdisk *v);
/* vdisk_own {name, term}, vdisk_disown {name} */
void own_ask(struct provider *p, const json_t *request, struct reply *reply);
void disown_ask(struct provider *p, const json_t *request, struct reply *reply);

/* ---- label_json.c ------------------------------------------------------- */
void uuid_hex(const uint8_t uuid[16], char text[33]);
bool uuid_read(const char *text, uint8_t uuid[16]);
json_t *label_json(const struct vdisk_label_facts *facts);
bool label_read(const json_t *j, struct vdisk_label_facts *facts);

/* ---- proof.c ------------------------------------------------------------ */
/* Layers that the environment asks for: over a component, over a vDisk that
 * has been opened or made. */
int proof_component(struct bdev **bdev, struct err *err);
void proof_vdisk_open(struct p_vdisk *v, bool made);

/* ---- stack.c ------------------------------------------------------------ */
int stack_open(struct p_drive *d, const char *component, struct bdev **bdev,
	       struct err *err);
/* Closes it if it is open and nobody has closed it yet: for what was offered
 * to a vDisk that did not take it. */
void stack_drop(struct p_drive *d, const char *component);
struct p_drive *drive_find(const struct provider *p, const char *domain,
			   const char *drive);
/* "n2:d1"; NULL: no such drive */
struct p_drive *drive_named(const struct provider *p, const char *target);
struct p_domain *domain_find(const struct provider *p, const char *name);
bool drive_is_there(const struct p_drive *d);
uint64_t drive_free(const struct p_drive *d);
int component_make(struct p_drive *d, const char *component, uint64_t bytes,
		   struct err *err);
void component_remove(struct p_drive *d, const char *component);

/* ---- place.c ------------------------------------------------------------ */
/*
 * Makes and opens a new component for each slot of a policy, on distinct
 * domains, by free space. On failure nothing is left. slots: how many.
 * -ENOSPC, -ENOMEM with the numbers.
 */
int place_slots(struct provider *p, const char *vdisk,
		const struct vdisk_policy *policy, uint64_t size_bytes,
		struct vdisk_slot *slot, unsigned *slots, struct err *err);
/* For a change of policy in the log layout: components on further domains, as
 * many as the new one needs; mostly none. */
int place_more(struct provider *p, const struct vdisk_info *info,
	       const struct vdisk_policy *policy, struct vdisk_slot *slot,
	       unsigned *slots, struct err *err);
/* Closes what no vDisk took. */
void place_drop(struct provider *p, const struct vdisk_slot *slot,
		unsigned slots);
/* And has the components deleted, soon. */
void place_undo(struct provider *p, const struct vdisk_slot *slot,
		unsigned slots);
/* Has a component deleted once that can be; of: the vDisk that was. */
void undone_add(struct provider *p, struct p_drive *d, const char *component,
		const char *of);
/* A drive for member `index` of a vDisk whose own is gone: in a domain no
 * other member is in. -ENOSPC with the reason. */
int place_spare(struct provider *p, const struct vdisk_info *info,
		unsigned index, struct vdisk_slot *slot, struct err *err);
unsigned domains_there(const struct provider *p);

/* ---- life.c ------------------------------------------------------------- */
struct p_vdisk *vdisk_find(const struct provider *p, const char *name);
struct p_vdisk *vdisk_add(struct provider *p, const char *name);
void vdisk_remove(struct p_vdisk *v);
/* Answers when it has the policy wanted, or will not get it. */
void vdisk_wait(struct p_vdisk *v, struct reply *reply);
/* Answers all who wait, if nothing moves it any more. */
void vdisk_waits_tend(struct p_vdisk *v);
void vdisk_waits_end(struct p_vdisk *v, int rc, const struct err *err);
/* done(rc, err, arg) once, later or now. */
typedef void life_done_fn(int rc, const struct err *err, void *arg);
void life_open(struct p_vdisk *v, life_done_fn *done, void *arg);
void life_create(struct provider *p, const json_t *spec, life_done_fn *done,
		 void *arg);
void life_delete(struct p_vdisk *v, life_done_fn *done, void *arg);
/* To SHUT, keeping in mind where its parts are. */
void life_close(struct p_vdisk *v, life_done_fn *done, void *arg);

/* ---- fault.c ------------------------------------------------------------ */
void faults_end(struct provider *p);
void drive_lost(struct provider *p, struct p_drive *d, const char *reason);

/* ---- tend.c ------------------------------------------------------------- */
void tend_start(struct provider *p);
void tend_stop(struct provider *p);
/* "db1.18c7f2a90b41d0.3" is a component of db1. */
bool component_of(const char *component, const char *vdisk);
/* Looks at everything soon. */
void tend_soon(struct provider *p);

/* ---- policy.c ----------------------------------------------------------- */
struct p_policy *policy_find(const struct provider *p, const char *name);
int policy_put(struct provider *p, const char *name,
	       const struct vdisk_policy *policy);
/* Fits to the domains there are; the caller's policy is unchanged. */
int policy_fit(const struct provider *p, const struct vdisk_policy *policy,
	       struct vdisk_policy *fit, struct err *err);
bool policy_same(const struct vdisk_policy *a, const struct vdisk_policy *b);
/* A vDisk just opened, whose policy is not the one it has by name, migrates. */
void policy_intend(struct p_vdisk *v);
unsigned policy_ftt(const struct vdisk_policy *policy);

/* ---- memory.c ----------------------------------------------------------- */
/* What was set, given and deleted in earlier lives of this cluster. */
void memory_read(struct provider *p);
void memory_vdisks(struct provider *p);
void memory_graves(struct provider *p);
void memory_owns(struct provider *p);
/* Durably; on failure the log says so, too. */
int memory_write(struct provider *p);
/* A vDisk that was deleted: its components are deleted where they turn up. */
int grave_dig(struct provider *p, const uint8_t uuid[16], const char *name);
bool grave_has(const struct provider *p, const uint8_t uuid[16]);

/* ---- tell.c ------------------------------------------------------------- */
void tell_cluster(struct provider *p);
void tell_policy(struct provider *p, const struct p_policy *policy);
void tell_vdisk(struct p_vdisk *v);
/* vdisk_usage of a vDisk of the log layout, once a second while it changes. */
void tell_figures(struct p_vdisk *v, uint64_t now);
/* The next time at once, changed or not: forgets what was told. */
void tell_figures_whole(struct p_vdisk *v);
void tell_seen(struct provider *p, json_t *body); /* given away */
void tell_vdisk_gone(struct provider *p, const char *name);
void tell_log(struct provider *p, const char *level, const char *fmt, ...)
	ID_PRINTF(3, 4);
void tell_fault(struct provider *p, const char *text, const char *kind,
		const char *target, const char *by);
void tell_usage(struct timer *timer);
const char *vdisk_state_word(const struct p_vdisk *v);

#endif
