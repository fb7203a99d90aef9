/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Run: the curve is the screen. One look says whether it runs, where it is,
 * whether it is steady, what limits it, and how long still.
 */
#include "tui/screen/vdisk_parts.h"

#include <string.h>

static void part(struct ui *ui, const struct scene *scene, struct canvas *c,
		 struct rect r,
		 void (*draw)(struct ui *, const struct scene *,
			      struct canvas *, struct rect))
{
	struct rect old;

	if (r.w < 1 || r.h < 1)
		return;
	old = canvas_clip(c, r);
	draw(ui, scene, c, r);
	c->clip = old;
}

static void run_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		     struct rect body)
{
	const struct m_run *run = ui_run(ui, scene);
	const struct m_vdisk *v = run_figures(scene, run);
	struct layout_run_of of = {
		.domains = scene->model->domains,
		.series = run ? run->series_count : 0,
		.figures = v ? vdisk_time_rows(v) : 0,
		.figures_first = ui->figures,
	};
	struct layout_run l;

	for (size_t i = 0; i < scene->model->domains; i++)
		of.drives += scene->model->domain[i].drives;
	layout_run(body, &of, &l);
	part(ui, scene, c, l.chart, run_chart_draw);
	part(ui, scene, c, l.point, run_point_draw);
	part(ui, scene, c, l.strip, run_strip_draw);
	part(ui, scene, c, l.figures, run_figures_draw);
	part(ui, scene, c, l.table, run_table_draw);
	part(ui, scene, c, l.heat, run_heat_draw);
	part(ui, scene, c, l.nodes, run_nodes_draw);
	part(ui, scene, c, l.drives, run_drives_draw);
	part(ui, scene, c, l.bound, run_bound_draw);
}

const struct screen screen_run = {
	.name = "run",
	.title = "Run",
	.page = "iodeck(1)",
	.draw = run_draw,
};
