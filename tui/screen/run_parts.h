/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The panels of the Run screen; run.c puts them where layout_run() says.
 */
#ifndef TUI_SCREEN_RUN_PARTS_H
#define TUI_SCREEN_RUN_PARTS_H

#include "tui/screen/screen.h"

/* The newest point of a run and its series; NULL none. */
const struct m_point *run_point(const struct m_run *run, size_t *series);

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
