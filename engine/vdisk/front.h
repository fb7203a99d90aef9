/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What vdisk.c, open.c and migrate.c share: the vDisk as a bdev.
 */
#ifndef ENGINE_VDISK_FRONT_H
#define ENGINE_VDISK_FRONT_H

#include "engine/vdisk/layout.h"
#include "engine/vdisk/priv.h"

struct vdisk;
struct migration;
struct replace;
struct verify;

struct vreq { /* one io of the vDisk's user */
	struct req req;
	struct vdisk *vd;
	struct io *io;
	struct vreq *next;
	struct req twin; /* migrating: the same for the other set */
	bool started;    /* else it waits */
	unsigned parts;  /* in flight */
	struct task task;
};

struct vdisk {
	struct bdev bdev;
	const struct vdisk_layout_ops *layout;
	struct vset *set;                     /* what the vDisk is */
	struct migration *migration;          /* running */
	struct migration *moving;             /* that, or one being prepared */
	struct vreq *tracked, **tracked_last; /* writes during one */
	unsigned writes_plain;                /* other writes in flight */
	unsigned retired; /* components free to be deleted */
	struct vdisk_slot retired_slot[VDISK_MEMBERS_MAX];
	struct replace *replace;
	struct verify *verify;
	struct vreq *vreq_free;
	struct vreq_chunk *chunks;
	vdisk_changed_fn *changed;
	void *changed_arg;
	struct task task;
	bool task_posted, close_asked, set_closed;
	unsigned calls; /* replace, verify: told before it closes */
};

VDISK_HEAD_CHECK(vdisk);

/* ---- the calls of vdisk.h ------------------------------------------------ */
void inplace_create(struct reactor *r, const struct vdisk_spec *spec,
		    vdisk_done_fn *done, void *arg);
void inplace_open(struct reactor *r, const struct vdisk_spec *spec,
		  vdisk_done_fn *done, void *arg);
void inplace_migrate(struct bdev *vdisk, const struct vdisk_spec *target,
		     vdisk_done_fn *done, void *arg);
int inplace_label_probe(struct bdev *component, struct vdisk_label_facts *facts,
			struct err *err);

/* ---- vdisk.c ------------------------------------------------------------- */
int vdisk_new(struct vset *vs, const struct vdisk_spec *spec, struct vdisk **vd,
	      struct err *err);
void vdisk_set_attach(struct vdisk *vd, struct vset *vs);
void vdisk_changed(struct vset *vs);
void vdisk_changed_post(struct vdisk *vd);
void vdisk_vreq_put(struct vreq *vreq);
void vdisk_replace_step(struct vdisk *vd);
void vdisk_call_ended(struct vdisk *vd);

/* ---- create.c ------------------------------------------------------------ */
/* A new set on the slots of spec: labels written on all. done(vs or NULL). */
typedef void vset_made_fn(struct vset *vs, const struct err *err, void *arg);
void vset_create(struct reactor *r, const struct label *label,
		 const struct vdisk_slot *slot, unsigned slots,
		 vset_made_fn *done, void *arg);
int label_from_spec(struct reactor *r, const struct vdisk_spec *spec,
		    struct label *label, struct err *err);

/* ---- migrate.c ----------------------------------------------------------- */
void vdisk_write_tracked(struct vdisk *vd, struct vreq *vreq);
void migrate_step(struct vdisk *vd); /* something changed */
void migrate_close(struct vdisk *vd);
bool migrate_switching(const struct vdisk *vd);
void migrate_limit(struct vdisk *vd, uint64_t bytes_s);
void migrate_info(const struct vdisk *vd, struct vdisk_info *info);
/* Goes on where a restart found it. The target is given over. */
void migrate_resume(struct vdisk *vd, struct vset *target, uint64_t mark);

#endif
