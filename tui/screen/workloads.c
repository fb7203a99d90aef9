/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Workloads: the library, what is in the one under the cursor, and the suites
 * that run them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"
#include "tui/screen/screen.h"

static void line(struct canvas *c, struct rect r, const struct lib_workload *w)
{
	char a[FMT_MAX];
	int wide = r.w >= 110 ? 16 : 0;

	canvas_fit(c, r.x + 2, r.y, 15, ROLE_TEXT, w->name);
	canvas_fit(c, r.x + 18, r.y, 23 + wide, ROLE_TEXT, w->title);
	canvas_right(c, r.x + 48 + wide, r.y, ROLE_TEXT,
		     fmt_pct(a, w->read_share));
	bar_draw(c, r.x + 50 + wide, r.y, 6, w->read_share, ROLE_BAR);
	canvas_right(c, r.x + 64 + wide, r.y, ROLE_TEXT,
		     fmt_pct(a, w->random_share));
	canvas_fit(c, r.x + 67 + wide, r.y, r.w - 68 - wide, ROLE_TEXT,
		   w->sizes[0] ? w->sizes : "-");
}

static void heads(struct canvas *c, struct rect r)
{
	int wide = r.w >= 110 ? 16 : 0;

	canvas_text(c, r.x + 2, r.y, ROLE_DIM, "workload");
	canvas_text(c, r.x + 18, r.y, ROLE_DIM, "what it is");
	canvas_right(c, r.x + 48 + wide, r.y, ROLE_DIM, "read");
	canvas_right(c, r.x + 64 + wide, r.y, ROLE_DIM, "random");
	canvas_text(c, r.x + 67 + wide, r.y, ROLE_DIM, "sizes");
}

static void detail(struct canvas *c, struct rect r, const struct scene *scene,
		   const struct lib_workload *w)
{
	const struct library *lib = scene->library;
	int x, y;

	r = canvas_head(c, r, w->title[0] ? w->title : w->name);
	r.x++;
	r.w -= 2;
	y = r.y + canvas_wrap(c, (struct rect) { r.x, r.y, r.w, r.h - 3 },
			      ROLE_TEXT, w->text);
	if (w->path[0])
		canvas_fit(c, r.x, y++, r.w, ROLE_DIM, w->path);
	if (!lib->suites || y + 1 >= r.y + r.h)
		return;
	canvas_text(c, r.x, ++y, ROLE_DIM, "suites  ");
	x = r.x + 8;
	for (size_t i = 0; i < lib->suites; i++) {
		int n = text_columns(lib->suite[i].name);

		if (x + n > r.x + r.w) {
			x = r.x + 8;
			if (++y >= r.y + r.h)
				return;
		}
		x += canvas_text(c, x, y, ROLE_KEY, lib->suite[i].name) + 2;
	}
	canvas_fit(c, r.x, y + 1, r.w, ROLE_DIM,
		   ":run SUITE runs one; Enter runs this workload on a vDisk");
}

static void workloads_draw(struct ui *ui, const struct scene *scene,
			   struct canvas *c, struct rect body)
{
	const struct library *lib = scene->library;
	struct cursor *cur = &ui->workload;
	struct layout_list l;

	layout_list(body, lib->workloads, &l);
	if (body.h >= 30 && lib->workloads + 12 < (size_t)body.h) {
		l.list.h = (int)lib->workloads + 2;
		l.detail.y = l.list.y + l.list.h;
		l.detail.h = body.y + body.h - l.detail.y;
	} else if (l.detail.h > 8) {
		l.list.h = body.h - 7;
		l.detail.y = l.list.y + l.list.h;
		l.detail.h = 7;
	}
	cursor_fit(cur, (int)lib->workloads, l.list.h - 1);
	heads(c, l.list);
	for (int i = 0; i < cur->rows && cur->top + i < cur->count; i++) {
		struct rect row = { body.x, l.list.y + 1 + i, body.w, 1 };

		line(c, row, &lib->workload[cur->top + i]);
		row_mark(c, row, cur->top + i == cur->at);
	}
	if (cur->count)
		detail(c, l.detail, scene, &lib->workload[cur->at]);
	else
		canvas_text(c, body.x + 2, body.y + 2, ROLE_DIM,
			    "no workload was found: conf/workloads or "
			    "$XDG_CONFIG_HOME/iodeck/workloads");
}

static struct cursor *workloads_cursor(struct ui *ui)
{
	return &ui->workload;
}

static const char *workloads_selected(const struct ui *ui,
				      const struct scene *scene)
{
	return (size_t)ui->workload.at < scene->library->workloads
		       ? scene->library->workload[ui->workload.at].name
		       : NULL;
}

const struct screen screen_workloads = {
	.name = "workloads",
	.title = "Workloads",
	.page = "iodeck-workload(5)",
	.draw = workloads_draw,
	.cursor = workloads_cursor,
	.selected = workloads_selected,
};
