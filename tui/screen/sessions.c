/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sessions: what was recorded; Enter replays it through the same screens.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/fmt.h"
#include "tui/screen/screen.h"

/* begun, length, where, verdict, peak, what; the file's size where there is
 * room. */
static int what_at(struct rect r)
{
	return r.x + (r.w >= 100 ? 68 : 57);
}

static void heads(struct canvas *c, struct rect r)
{
	canvas_text(c, r.x + 2, r.y, ROLE_DIM, "begun");
	canvas_right(c, r.x + 26, r.y, ROLE_DIM, "length");
	canvas_text(c, r.x + 28, r.y, ROLE_DIM, "where");
	canvas_text(c, r.x + 39, r.y, ROLE_DIM, "verdict");
	canvas_right(c, r.x + 55, r.y, ROLE_DIM, "peak");
	if (r.w >= 100)
		canvas_right(c, r.x + 66, r.y, ROLE_DIM, "file");
	canvas_text(c, what_at(r), r.y, ROLE_DIM, "what");
}

static unsigned verdict_role(const char *verdict)
{
	static const char *const bad[] = { "failed", "torn", "unreadable" };

	for (size_t i = 0; i < array_len(bad); i++)
		if (!strcmp(verdict, bad[i]))
			return ROLE_BAD;
	return !strcmp(verdict, "done") ? ROLE_OK : ROLE_TEXT;
}

static void line(struct canvas *c, struct rect r, const struct lib_session *s)
{
	char a[FMT_MAX];
	double length =
		s->from_us >= 0 ? (double)(s->to_us - s->from_us) / 1e6 : -1;

	canvas_text(c, r.x + 2, r.y, ROLE_TEXT, fmt_date(a, s->from_us));
	canvas_right(c, r.x + 26, r.y, ROLE_TEXT, fmt_span(a, length));
	canvas_fit(c, r.x + 28, r.y, 10, ROLE_TEXT, s->where);
	canvas_fit(c, r.x + 39, r.y, 10, verdict_role(s->verdict),
		   *s->verdict ? s->verdict : "...");
	canvas_right(c, r.x + 55, r.y, ROLE_TEXT,
		     fmt_k(a, *s->verdict ? s->peak_iops : NAN));
	if (r.w >= 100)
		canvas_right(c, r.x + 66, r.y, ROLE_TEXT,
			     fmt_bytes(a, (double)s->bytes));
	canvas_fit(c, what_at(r), r.y, r.x + r.w - what_at(r) - 1, ROLE_TEXT,
		   s->title[0] ? s->title : s->name);
}

static void sessions_draw(struct ui *ui, const struct scene *scene,
			  struct canvas *c, struct rect body)
{
	const struct library *lib = scene->library;
	struct cursor *cur = &ui->session;
	struct rect low = { body.x, body.y + body.h - 4, body.w, 4 };
	const struct lib_session *s;

	cursor_fit(cur, (int)lib->sessions, body.h - 5);
	heads(c, body);
	for (int i = 0; i < cur->rows && cur->top + i < cur->count; i++) {
		struct rect row = { body.x, body.y + 1 + i, body.w, 1 };

		line(c, row, &lib->session[cur->top + i]);
		row_mark(c, row, cur->top + i == cur->at);
	}
	if (!cur->count) {
		canvas_text(c, body.x + 2, body.y + 2, ROLE_DIM,
			    "nothing was recorded yet: every run makes a "
			    "session");
		return;
	}
	s = &lib->session[cur->at];
	low = canvas_head(c, low, s->name);
	canvas_fit(c, low.x + 1, low.y, low.w - 2, ROLE_TEXT, s->what);
	canvas_fit(c, low.x + 1, low.y + 1, low.w - 2, ROLE_DIM, s->path);
}

static struct cursor *sessions_cursor(struct ui *ui)
{
	return &ui->session;
}

static const char *sessions_selected(const struct ui *ui,
				     const struct scene *scene)
{
	return (size_t)ui->session.at < scene->library->sessions
		       ? scene->library->session[ui->session.at].path
		       : NULL;
}

const struct screen screen_sessions = {
	.name = "sessions",
	.title = "Sessions",
	.page = "iodeck-session(5)",
	.draw = sessions_draw,
	.cursor = sessions_cursor,
	.selected = sessions_selected,
};
