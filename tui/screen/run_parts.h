/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The panels of the Run screen; run.c puts them where layout_run() says.
 */
#ifndef TUI_SCREEN_RUN_PARTS_H
#define TUI_SCREEN_RUN_PARTS_H

#include "tui/screen/screen.h"

/* The newest point of a run and its series; NULL none. */
const struct m_point *run_point(const struct m_run *run, size_t *series);

/* Columns over time, the newest last: alike in all that is drawn over time, so
 * that one stands under the other. */
struct time_axis {
	int64_t len_us, first; /* of a column; the first, in columns since 0 */
	int count;
};
void time_axis(const struct model *m, int64_t now_us, int columns,
	       struct time_axis *axis);

/* The vDisk of the newest series, where it is of the log layout; NULL. */
const struct m_vdisk *run_figures(const struct scene *scene,
				  const struct m_run *run);
void run_figures_draw(struct ui *ui, const struct scene *scene,
		      struct canvas *c, struct rect r);
void run_point_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);
void run_table_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);
void run_strip_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);
void run_heat_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		   struct rect r);
void run_nodes_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);
void run_drives_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		     struct rect r);
void run_bound_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);

#endif
