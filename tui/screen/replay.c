/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The time line of a replay: where it is, and marks for points, faults, notes.
 */
#include <stdio.h>
#include <string.h>

#include "tui/fmt.h"
#include "tui/screen/screen.h"

static int column_of(const struct deck_status *s, struct rect line, int64_t t)
{
	double share = s->to_us > s->from_us
			       ? (double)(t - s->from_us) /
					 (double)(s->to_us - s->from_us)
			       : 0;

	share = share < 0 ? 0 : share > 1 ? 1 : share;
	return line.x + (int)(share * (line.w - 1) + 0.5);
}

static void mark(const struct deck_status *s, struct canvas *c,
		 struct rect line, int64_t t, unsigned style, uint32_t ch)
{
	if (t >= s->from_us && t <= s->to_us)
		canvas_put(c, column_of(s, line, t), line.y, style, ch);
}

/* Only what has been read so far is known: the future has no marks yet. */
static void marks_draw(const struct scene *scene, struct canvas *c,
		       struct rect line)
{
	const struct model *m = scene->model;
	const struct deck_status *s = scene->status;

	for (size_t i = 0; i < m->runs; i++)
		for (size_t j = 0; j < m->run[i].series_count; j++)
			for (size_t k = 0; k < m->run[i].series[j].points; k++)
				mark(s, c, line,
				     m->run[i].series[j].point[k].begun_t_us,
				     ROLE_BAR, 0x2502);
	for (size_t i = 0; i < m->lines; i++) {
		if (!strcmp(m->line[i].level, "note"))
			mark(s, c, line, m->line[i].t_us, ROLE_KEY, 0x25c6);
		if (!strcmp(m->line[i].level, "fault"))
			mark(s, c, line, m->line[i].t_us, ROLE_BAD, '!');
	}
}

void replay_draw(const struct scene *scene, struct canvas *c, struct rect r)
{
	const struct deck_status *s = scene->status;
	struct rect line = { r.x + 12, r.y, r.w - 22, 1 };
	char a[FMT_MAX], b[FMT_MAX];

	if (r.h < 1)
		return;
	canvas_text(c, r.x + 1, r.y, s->playing ? ROLE_OK : ROLE_WARN,
		    s->playing ? "\xe2\x96\xb6" : "=");
	canvas_right(c, r.x + 10, r.y, ROLE_TEXT,
		     fmt_span(a, (double)(s->at_us - s->from_us) / 1e6));
	canvas_right(c, r.x + r.w - 1, r.y, ROLE_DIM,
		     fmt_span(b, (double)(s->to_us - s->from_us) / 1e6));
	canvas_hline(c, line.x, line.y, line.w, ROLE_AXIS);
	marks_draw(scene, c, line);
	canvas_put(c, column_of(s, line, s->at_us), line.y,
		   ROLE_TITLE | STYLE_REV, 0x25b4);
	if (r.h > 1)
		canvas_printf(c, line.x, r.y + 1, ROLE_DIM,
			      "%s   | a point   ! a fault   \xe2\x97\x86 a "
			      "note",
			      fmt_date(a, s->at_us));
}
