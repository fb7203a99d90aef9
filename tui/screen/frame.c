/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lines around every screen: what cluster, what runs, which screen, the
 * newest word, the keys that work here and now; and the prompt over them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/fmt.h"
#include "tui/keys.h"
#include "tui/screen/screen.h"

#define MESSAGE_US 15000000

unsigned state_role(const char *state)
{
	static const struct {
		const char *state;
		unsigned role;
	} known[] = {
		{ "healthy", ROLE_OK },     { "ok", ROLE_OK },
		{ "running", ROLE_OK },     { "done", ROLE_OK },
		{ "degraded", ROLE_WARN },  { "rebuilding", ROLE_WARN },
		{ "migrating", ROLE_WARN }, { "stale", ROLE_WARN },
		{ "missing", ROLE_BAD },    { "failed", ROLE_BAD },
		{ "offline", ROLE_BAD },
	};

	for (size_t i = 0; i < array_len(known); i++)
		if (!strcmp(state, known[i].state))
			return known[i].role;
	return ROLE_TEXT;
}

char *raid_text(char *buf, int raid, int k, int m)
{
	if (raid == 1)
		snprintf(buf, FMT_MAX, "RAID-1 x%d", m + 1);
	else if (raid == 5 || raid == 6)
		snprintf(buf, FMT_MAX, "RAID-%d %d+%d", raid, k, m);
	else if (raid == 0)
		snprintf(buf, FMT_MAX, "RAID-0");
	else
		snprintf(buf, FMT_MAX, "-");
	return buf;
}

void row_mark(struct canvas *c, struct rect row, bool at)
{
	if (!at)
		return;
	canvas_put(c, row.x, row.y, ROLE_KEY | STYLE_BOLD, 0x25b8);
	for (int x = row.x; x < row.x + row.w; x++) {
		const struct cell *cell = canvas_cell(c, x, row.y);

		canvas_restyle(c, (struct rect) { x, row.y, 1, 1 },
			       cell->style | STYLE_BOLD);
	}
}

void cursor_fit(struct cursor *cur, int count, int rows)
{
	cur->count = count;
	cur->rows = rows;
	if (cur->at >= count)
		cur->at = count - 1;
	if (cur->at < 0)
		cur->at = 0;
	cur->top = layout_scroll(count, cur->at, rows, cur->top);
}

/* ---- the head ------------------------------------------------------------ */

struct health {
	unsigned role;
	char text[48];
};

static void health_of(const struct model *m, struct health *h)
{
	size_t drives = 0, vdisks = 0, nodes = 0;
	const char *word = "";

	for (size_t i = 0; i < m->nodes; i++)
		nodes += strcmp(m->node[i].state, "up") != 0;

	for (size_t i = 0; i < m->domains; i++)
		for (size_t j = 0; j < m->domain[i].drives; j++)
			drives += state_role(m->domain[i].drive[j].state) ==
				  ROLE_BAD;
	h->role = drives || nodes ? ROLE_WARN : ROLE_OK;
	for (size_t i = 0; i < m->vdisks; i++) {
		unsigned role = state_role(m->vdisk[i].state);

		if (role == ROLE_OK || role == ROLE_TEXT)
			continue;
		vdisks++;
		word = m->vdisk[i].state;
		if (role == ROLE_BAD)
			h->role = ROLE_BAD;
		else if (h->role == ROLE_OK)
			h->role = ROLE_WARN;
	}
	h->text[0] = '\0';
	if (nodes)
		snprintf(h->text, sizeof(h->text), "%zu node%s out", nodes,
			 nodes == 1 ? "" : "s");
	else if (drives)
		snprintf(h->text, sizeof(h->text), "%zu drive%s out", drives,
			 drives == 1 ? "" : "s");
	else if (vdisks)
		snprintf(h->text, sizeof(h->text), "%zu %.16s", vdisks, word);
}

/* The right end: is it recorded, replayed, lost. Returns its left edge. */
static int head_right(const struct scene *scene, struct canvas *c,
		      struct rect r)
{
	const struct deck_status *s = scene->status;
	const struct model *m = scene->model;
	char text[64] = "", a[FMT_MAX];
	unsigned role = ROLE_DIM;
	double age = m->first_t_us >= 0
			     ? (double)(scene->now_us - m->first_t_us) / 1e6
			     : NAN;
	int x;

	if (s->link == LINK_REPLAY) {
		role = ROLE_KEY;
		snprintf(text, sizeof(text), "REPLAY %s %gx",
			 s->playing ? "\xe2\x96\xb6" : "paused", s->speed);
	} else if (s->link == LINK_LOST) {
		role = ROLE_BAD;
		snprintf(text, sizeof(text), "AGENT LOST  [R] go on");
	} else if (s->link == LINK_CONNECTING) {
		role = ROLE_WARN;
		snprintf(text, sizeof(text), "attaching \xe2\x80\xa6");
	} else if (s->recording) {
		role = ROLE_BAD;
		snprintf(text, sizeof(text), "\xe2\x97\x8f REC %s",
			 fmt_span(a, age));
	}
	x = r.x + r.w - 1 - text_columns(text);
	canvas_text(c, x, r.y, role | STYLE_BOLD, text);
	return x;
}

static void head_draw(struct ui *ui, const struct scene *scene,
		      struct canvas *c, struct rect r)
{
	const struct model *m = scene->model;
	const struct m_run *run = ui_run(ui, scene);
	int right = head_right(scene, c, r), x = r.x + 1;
	struct health h;

	x += canvas_text(c, x, r.y, ROLE_TITLE, "iodeck") + 2;
	if (m->domains) {
		health_of(m, &h);
		x += canvas_fit(c, x, r.y, r.w >= 100 ? 40 : 16, ROLE_TEXT,
				m->cluster_title[0] && r.w >= 100
					? m->cluster_title
					: m->cluster);
		x += canvas_text(c, x, r.y, ROLE_DIM, " \xe2\x96\xb8 ");
		x += canvas_printf(c, x, r.y, ROLE_TEXT, "%zu node%s ",
				   m->domains, m->domains == 1 ? "" : "s");
		x += canvas_text(c, x, r.y, h.role, "\xe2\x97\x8f ");
		x += canvas_text(c, x, r.y, h.role, h.text);
		x += 2;
	}
	if (run && x < right - 8) {
		x += canvas_fit(c, x, r.y, right - x - 1, ROLE_TEXT,
				run->title);
		if (x < right - 12)
			canvas_printf(c, x + 1, r.y, state_role(run->state),
				      "%s", run->state);
	}
}

static void tabs_draw(const struct ui *ui, struct canvas *c, struct rect r)
{
	const char *gap = r.w >= 100 ? " " : "";
	int x = r.x;

	for (unsigned i = 0; i < SCREENS; i++) {
		const char *title = screen_of((enum screen_id)i)->title;
		unsigned style =
			ui->screen == i ? ROLE_FOCUS | STYLE_BOLD : ROLE_DIM;

		x += canvas_printf(c, x, r.y, style, " %u%s%s ", i + 1, gap,
				   title);
	}
	canvas_right(c, r.x + r.w - 1, r.y, ROLE_DIM, "F1 help");
}

/* ---- the lower lines ----------------------------------------------------- */

static unsigned line_role(const char *level)
{
	if (!strcmp(level, "error") || !strcmp(level, "fault"))
		return ROLE_BAD;
	return !strcmp(level, "warn") ? ROLE_WARN : ROLE_TEXT;
}

/* Did something go wrong since the answer was given? */
static bool message_is_old(const struct ui *ui, const struct scene *scene)
{
	const struct model *m = scene->model;

	if (scene->now_us - ui->message_t_us >= MESSAGE_US)
		return true;
	for (size_t i = m->lines; i-- > 0;) {
		if (m->line[i].t_us <= ui->message_t_us)
			return false;
		if (line_role(m->line[i].level) != ROLE_TEXT)
			return true;
	}
	return false;
}

static void message_draw(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect r)
{
	static const unsigned role[] = { ROLE_TEXT, ROLE_WARN, ROLE_WARN };
	const struct model *m = scene->model;
	char a[FMT_MAX];

	if (scene->status->link == LINK_LOST && scene->status->text[0]) {
		canvas_fit(c, r.x + 1, r.y, r.w - 2, ROLE_BAD,
			   scene->status->text);
		return;
	}
	if (ui->message_t_us >= 0 && !message_is_old(ui, scene)) {
		unsigned s = (unsigned)ui->message_status;

		canvas_fit(c, r.x + 1, r.y, r.w - 2,
			   s < array_len(role) ? role[s] : ROLE_DIM,
			   ui->message);
		return;
	}
	for (size_t i = m->lines; i-- > 0;) {
		const struct m_line *l = &m->line[i];

		if (!strcmp(l->level, "cmd"))
			continue;
		canvas_text(c, r.x + 1, r.y, ROLE_DIM, fmt_clock(a, l->t_us));
		canvas_fit(c, r.x + 10, r.y, r.w - 11, line_role(l->level),
			   l->text);
		return;
	}
}

static bool key_usable(const struct ui *ui, const struct scene *scene,
		       const struct key_row *row)
{
	const struct screen *s = screen_of(ui->screen);
	const struct m_run *run = model_run(scene->model);
	bool over = !run || run->ended_t_us >= 0;

	if (over &&
	    (!strcmp(row->line, "pause") || !strcmp(row->line, "ask stop")))
		return false;
	return row->shown && key_find(row->key, s->name, key_now(scene)) == row;
}

static int key_cell(struct canvas *c, int x, int y, int right,
		    const char *shown, const char *label)
{
	int w = text_columns(shown) + text_columns(label) + 3;

	if (x + w > right)
		return 0;
	canvas_text(c, x, y, ROLE_KEY, "[");
	x += 1 + canvas_text(c, x + 1, y, ROLE_KEY, shown);
	canvas_text(c, x, y, ROLE_KEY, "]");
	canvas_text(c, x + 2, y, ROLE_DIM, label);
	return w + 2;
}

static const char *key_label(const struct scene *scene,
			     const struct key_row *row)
{
	const struct m_run *run = model_run(scene->model);

	if (!strcmp(row->line, "play") && scene->status->playing)
		return "pause";
	if (!strcmp(row->line, "pause") && run && !strcmp(run->state, "paused"))
		return "go on";
	return row->label;
}

static void keys_draw(struct ui *ui, const struct scene *scene,
		      struct canvas *c, struct rect r)
{
	static const struct {
		const char *shown, *label;
	} pager[] = { { "\xe2\x86\x91\xe2\x86\x93", "scroll" },
		      { "space", "page" },
		      { "Esc", "close" } };
	int x = r.x + 1;

	if (ui->pager.open) {
		for (size_t i = 0; i < array_len(pager); i++)
			x += key_cell(c, x, r.y, r.x + r.w, pager[i].shown,
				      pager[i].label);
		return;
	}
	if (ui->screen == SCREEN_VDISKS && ui->form.open) {
		x += key_cell(c, x, r.y, r.x + r.w, "\xe2\x86\x91\xe2\x86\x93",
			      "field");
		x += key_cell(c, x, r.y, r.x + r.w, "\xe2\x86\x90\xe2\x86\x92",
			      "value");
		x += key_cell(c, x, r.y, r.x + r.w, "Enter", "apply");
		key_cell(c, x, r.y, r.x + r.w, "Esc", "leave");
		return;
	}
	for (const struct key_row *row = key_table; row->key; row++)
		if (key_usable(ui, scene, row))
			x += key_cell(c, x, r.y, r.x + r.w, row->shown,
				      key_label(scene, row));
}

static void ask_draw(struct ui *ui, struct canvas *c, struct rect r)
{
	int x = r.x + 1;

	canvas_fill(c, r, ROLE_TEXT, ' ');
	x += canvas_fit(c, x, r.y, r.w - 16, ROLE_WARN | STYLE_BOLD,
			ui->ask_text) +
	     1;
	x += key_cell(c, x, r.y, r.x + r.w, "y", "yes");
	key_cell(c, x, r.y, r.x + r.w, "n", "no");
}

static void prompt_list(const struct prompt_view *p, struct canvas *c, int low)
{
	int widest = 8, columns, rows;

	for (int i = 0; i < p->lists; i++) {
		int w = text_columns(p->list[i]) + 2;

		widest = w > widest ? w : widest;
	}
	columns = (c->w - 2) / widest;
	columns = columns < 1 ? 1 : columns;
	rows = (p->lists + columns - 1) / columns;
	rows = rows > c->h / 2 ? c->h / 2 : rows;
	for (int y = 0; y < rows; y++) {
		canvas_fill(c, (struct rect) { 0, low - rows + y, c->w, 1 },
			    ROLE_TEXT, ' ');
		for (int x = 0; x < columns; x++)
			if (y * columns + x < p->lists)
				canvas_fit(c, 1 + x * widest, low - rows + y,
					   widest - 1, ROLE_KEY,
					   p->list[y * columns + x]);
	}
}

static void prompt_draw(struct ui *ui, struct canvas *c, struct rect r)
{
	const struct prompt_view *p = &ui->prompt;
	const char *from = p->line, *cursor = p->line + p->cursor;
	char left[UI_LINE];
	int x = r.x, room;

	canvas_fill(c, r, ROLE_TEXT, ' ');
	x += canvas_text(c, x, r.y, ROLE_KEY | STYLE_BOLD, p->label);
	room = r.x + r.w - x - 1;
	/* The line slides so that the cursor stays in sight. */
	for (;;) {
		snprintf(left, sizeof(left), "%.*s", (int)(cursor - from),
			 from);
		if (from >= cursor || text_columns(left) <= room)
			break;
		text_next(&from);
	}
	canvas_text(c, x, r.y, ROLE_TEXT, from);
	ui->prompt.cursor_x = x + text_columns(left);
	if (p->lists)
		prompt_list(p, c, r.y);
}

void frame_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		const struct layout_frame *f)
{
	head_draw(ui, scene, c, f->head);
	tabs_draw(ui, c, f->tabs);
	message_draw(ui, scene, c, f->message);
	if (ui->prompt.open)
		prompt_draw(ui, c, f->keys);
	else if (ui->ask)
		ask_draw(ui, c, f->keys);
	else
		keys_draw(ui, scene, c, f->keys);
}
