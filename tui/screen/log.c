/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Log: what was said, done and broken, in order; stays at the end until the
 * cursor leaves it.
 */
#include <string.h>

#include "tui/fmt.h"
#include "tui/screen/screen.h"

unsigned log_role(const char *level)
{
	static const struct {
		const char *level;
		unsigned role;
	} known[] = {
		{ "error", ROLE_BAD }, { "fault", ROLE_BAD },
		{ "warn", ROLE_WARN }, { "note", ROLE_KEY },
		{ "cmd", ROLE_DIM },
	};

	for (size_t i = 0; i < array_len(known); i++)
		if (!strcmp(level, known[i].level))
			return known[i].role;
	return ROLE_TEXT;
}

static void log_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		     struct rect body)
{
	const struct model *m = scene->model;
	struct cursor *cur = &ui->log;
	bool at_end = cur->at >= cur->count - 1;
	char a[FMT_MAX];

	if (at_end)
		cur->at = (int)m->lines - 1;
	cursor_fit(cur, (int)m->lines, body.h - 1);
	canvas_text(c, body.x + 2, body.y, ROLE_DIM, "time      level");
	canvas_text(c, body.x + 19, body.y, ROLE_DIM, "what");
	for (int i = 0; i < cur->rows && cur->top + i < cur->count; i++) {
		const struct m_line *l = &m->line[cur->top + i];
		struct rect row = { body.x, body.y + 1 + i, body.w, 1 };

		canvas_text(c, row.x + 2, row.y, ROLE_DIM,
			    fmt_clock(a, l->t_us));
		canvas_fit(c, row.x + 12, row.y, 6, log_role(l->level),
			   l->level);
		canvas_fit(c, row.x + 19, row.y, row.w - 20,
			   !strcmp(l->level, "cmd") ? ROLE_TEXT
						    : log_role(l->level),
			   l->text);
		row_mark(c, row, cur->top + i == cur->at);
	}
}

static struct cursor *log_cursor(struct ui *ui)
{
	return &ui->log;
}

const struct screen screen_log = {
	.name = "log",
	.title = "Log",
	.page = "iodeck(1)",
	.draw = log_draw,
	.cursor = log_cursor,
};
