/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the vDisks screen and the Run screen show of a vDisk.
 */
#ifndef TUI_SCREEN_VDISK_PARTS_H
#define TUI_SCREEN_VDISK_PARTS_H

#include "tui/screen/run_parts.h"

/* What it wrote lately, or where users were quiet, since it was opened. */
struct vdisk_now {
	struct m_amp amp;
	bool since_open;           /* amp: not of the last seconds */
	bool unasked;              /* drives are written to for no user: a
				      rebuild, cleaning; there is no ratio */
	double clean_s, rebuild_s; /* bytes a second, of the last seconds;
				      NAN not known */
};
void vdisk_now(const struct m_vdisk *v, int64_t now_us, struct vdisk_now *now);
/* Write amplification; "inf" where drives are written to for no user. */
char *vdisk_amp_text(char *buf, const struct vdisk_now *now);
bool vdisk_is_log(const struct m_vdisk *v);
/* Rebuilding or migrating. */
bool vdisk_moving(const struct m_vdisk *v);

/* All of one vDisk, as far as there is room; returns the rows used. */
int vdisk_detail_draw(const struct scene *scene, struct canvas *c,
		      struct rect r, const struct m_vdisk *v);

/* ---- over time (vdisk_time.c) -------------------------------------------- */

/* Its figures below each other, the most telling first, as many as there are
 * rows; and when it was not healthy. */
int vdisk_time_rows(const struct m_vdisk *v);
void vdisk_time_draw(const struct scene *scene, struct canvas *c, struct rect r,
		     const struct m_vdisk *v);
/* The same in one row. */
void vdisk_time_line(const struct scene *scene, struct canvas *c, struct rect r,
		     const struct m_vdisk *v);

#endif
