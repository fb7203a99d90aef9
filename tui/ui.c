/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/keys.h"
#include "tui/page.h"
#include "tui/screen/form.h"
#include "tui/screen/screen.h"
#include "tui/term.h"

struct stat_entry {
	const struct m_run *run;
	int phase;
	enum m_point_state state;
	size_t intervals;
	int64_t begun_t_us, ops;
	struct point_stats stats;
};

static const struct screen *const screens[SCREENS] = {
	[SCREEN_CLUSTER] = &screen_cluster,
	[SCREEN_VDISKS] = &screen_vdisks,
	[SCREEN_WORKLOADS] = &screen_workloads,
	[SCREEN_RUN] = &screen_run,
	[SCREEN_COMPARE] = &screen_compare,
	[SCREEN_SESSIONS] = &screen_sessions,
	[SCREEN_LOG] = &screen_log,
};

const struct screen *screen_of(enum screen_id id)
{
	id_assert(id < SCREENS);
	return screens[id];
}

void ui_init(struct ui *ui)
{
	memset(ui, 0, sizeof(*ui));
	ui->run_at = -1;
	ui->mouse = true;
	ui->message_t_us = -1;
}

void ui_fini(struct ui *ui)
{
	free(ui->stat);
	free(ui->pager.text);
	for (int i = 0; i < ui->prompt.lists; i++)
		free(ui->prompt.list[i]);
}

const struct m_run *ui_run(const struct ui *ui, const struct scene *scene)
{
	const struct model *m = scene->model;

	if (ui->run_at >= 0 && (size_t)ui->run_at < m->runs)
		return &m->run[ui->run_at];
	return model_run(m);
}

/* ---- figures ------------------------------------------------------------- */

static bool stat_fresh(const struct stat_entry *e, const struct m_point *p)
{
	return e->state == p->state && e->intervals == p->intervals &&
	       e->begun_t_us == p->begun_t_us &&
	       e->ops == p->read.ops + p->write.ops;
}

static struct stat_entry *stat_entry(struct ui *ui, const struct m_run *run,
				     int phase)
{
	struct stat_entry *more;

	for (size_t i = 0; i < ui->stats; i++)
		if (ui->stat[i].run == run && ui->stat[i].phase == phase)
			return &ui->stat[i];
	if (ui->stats == ui->stat_cap) {
		size_t cap = ui->stat_cap ? ui->stat_cap * 2 : 64;

		more = realloc(ui->stat, cap * sizeof(*more));
		if (!more)
			return NULL;
		ui->stat = more;
		ui->stat_cap = cap;
	}
	more = &ui->stat[ui->stats++];
	*more = (struct stat_entry) { .run = run,
				      .phase = phase,
				      .begun_t_us = -1 };
	return more;
}

const struct point_stats *ui_stats(struct ui *ui, const struct m_run *run,
				   const struct m_point *point)
{
	struct stat_entry *e = stat_entry(ui, run, point->phase);

	if (!e)
		return NULL;
	if (!stat_fresh(e, point)) {
		point_stats(point, &e->stats);
		e->state = point->state;
		e->intervals = point->intervals;
		e->begun_t_us = point->begun_t_us;
		e->ops = point->read.ops + point->write.ops;
	}
	return &e->stats;
}

/* ---- what is said -------------------------------------------------------- */

void ui_say(struct ui *ui, const struct scene *scene, int status,
	    const char *text)
{
	size_t n = strcspn(text, "\n");

	n = n < sizeof(ui->message) ? n : sizeof(ui->message) - 1;
	memcpy(ui->message, text, n);
	ui->message[n] = '\0';
	ui->message_status = status;
	ui->message_t_us = scene->now_us;
}

void ui_page(struct ui *ui, const char *title, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return;
	free(ui->pager.text);
	ui->pager = (struct pager) { .open = true, .text = copy };
	snprintf(ui->pager.title, sizeof(ui->pager.title), "%s", title);
}

void ui_confirm(struct ui *ui, const char *line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ui->ask_text, sizeof(ui->ask_text), fmt, ap);
	va_end(ap);
	/* "quit" and the like may point into ask_line itself. */
	memmove(ui->ask_line, line, strnlen(line, UI_LINE - 1) + 1);
	ui->ask_line[UI_LINE - 1] = '\0';
	ui->ask = true;
}

static void help_open(struct ui *ui, const char *page)
{
	ui_page(ui, page, "");
	snprintf(ui->pager.page, sizeof(ui->pager.page), "%s", page);
}

void ui_view(struct ui *ui, const struct scene *scene, const char *view)
{
	char line[UI_LINE];

	if (!strncmp(view, "screen:", 7)) {
		snprintf(line, sizeof(line), "screen %.60s", view + 7);
		ui_command(ui, scene, line);
	} else if (!strncmp(view, "help:", 5)) {
		help_open(ui, view[5] ? view + 5 : screen_of(ui->screen)->page);
	}
}

/* ---- keys ---------------------------------------------------------------- */

static bool guide_waits(const struct ui *ui, const struct scene *scene)
{
	const struct m_run *run = model_run(scene->model);

	return ui->guide && ui->guide_step && run &&
	       !strcmp(run->state, "paused");
}

static void pager_key(struct ui *ui, int key)
{
	struct pager *p = &ui->pager;
	int page = p->rows > 2 ? p->rows - 1 : 1;

	switch (key) {
	case K_UP:
	case 'k':
		p->top--;
		break;
	case K_DOWN:
	case 'j':
	case K_ENTER:
		p->top++;
		break;
	case K_PGUP:
	case 'b':
		p->top -= page;
		break;
	case K_PGDN:
	case ' ':
		p->top += page;
		break;
	case K_HOME:
	case 'g':
		p->top = 0;
		break;
	case K_END:
	case 'G':
		p->top = p->lines;
		break;
	default:
		p->open = key != K_ESC && key != 'q' && key != K_F1 &&
			  key != K_CTRL('c');
	}
	if (p->top > p->lines - p->rows)
		p->top = p->lines - p->rows;
	if (p->top < 0)
		p->top = 0;
}

static bool ask_key(struct ui *ui, int key, char *line)
{
	if (key == 'y' || key == 'Y') {
		ui->ask = false;
		snprintf(line, UI_LINE, "%s", ui->ask_line);
		return true;
	}
	if (key == 'n' || key == 'N' || key == K_ESC || key == 'q' ||
	    key == K_CTRL('c'))
		ui->ask = false;
	return false;
}

/* Keys whose line depends on more than the cursor. */
static bool line_by_state(const struct scene *scene, const char *row,
			  char *line)
{
	const struct m_run *run = model_run(scene->model);
	double speed = scene->status->speed;

	if (!strcmp(row, "pause") && run && !strcmp(run->state, "paused")) {
		snprintf(line, UI_LINE, "resume");
		return true;
	}
	if (strncmp(row, "speed %", 7) != 0)
		return false;
	speed = row[7] == '+' ? speed * 2 : speed / 2;
	speed = speed < 0.25 ? 0.25 : speed > 64 ? 64 : speed;
	snprintf(line, UI_LINE, "speed %g", speed);
	return true;
}

static bool table_key(struct ui *ui, const struct scene *scene, int key,
		      char *line)
{
	const struct screen *s = screen_of(ui->screen);
	const struct key_row *row = key_find(key, s->name, key_now(scene));

	if (!row)
		return false;
	if (line_by_state(scene, row->line, line))
		return true;
	return key_line(row, s->selected ? s->selected(ui, scene) : NULL, line);
}

bool ui_key(struct ui *ui, const struct scene *scene, int key, char *line)
{
	const struct screen *s = screen_of(ui->screen);
	bool found;

	line[0] = '\0';
	if (ui->ask)
		return ask_key(ui, key, line);
	if (ui->pager.open) {
		pager_key(ui, key);
		return false;
	}
	if (key == K_ENTER && guide_waits(ui, scene) && !ui->form.open) {
		snprintf(line, UI_LINE, "resume");
		return true;
	}
	if (s->key && s->key(ui, scene, key, line))
		return line[0] != '\0';
	found = table_key(ui, scene, key, line);
	if (found && !strncmp(line, "screen ", 7))
		ui->chosen = true;
	if (key == K_ESC && ui->message_t_us >= 0)
		ui->message_t_us = -1;
	return found;
}

/* Which tab a column of the tab line belongs to: as frame.c draws them. */
static bool mouse_tab(struct canvas *c, int x, char *line)
{
	int at = 0;

	for (unsigned i = 0; i < SCREENS; i++) {
		at += text_columns(screens[i]->title) + 3 + (c->w >= 100);
		if (x < at) {
			snprintf(line, UI_LINE, "screen %s", screens[i]->name);
			return true;
		}
	}
	return false;
}

bool ui_mouse(struct ui *ui, const struct scene *scene, struct canvas *c, int x,
	      int y, int wheel, char *line)
{
	struct cursor *cur = screen_of(ui->screen)->cursor
				     ? screen_of(ui->screen)->cursor(ui)
				     : NULL;
	struct layout_frame f;

	if (wheel)
		return ui_key(ui, scene, wheel < 0 ? K_UP : K_DOWN, line);
	if (ui->ask || ui->pager.open ||
	    !layout_frame(c->w, c->h, false, false, &f))
		return false;
	if (y == f.tabs.y && mouse_tab(c, x, line)) {
		ui->chosen = true;
		return true;
	}
	/* Lists begin under one line of headings. */
	if (cur && y > f.body.y && y <= f.body.y + cur->rows &&
	    cur->top + y - f.body.y - 1 < cur->count)
		cur->at = cur->top + y - f.body.y - 1;
	return false;
}

/* ---- drawing ------------------------------------------------------------- */

static void too_small(struct canvas *c)
{
	char text[80];

	snprintf(text, sizeof(text), "%dx%d is too small: %dx%d at least", c->w,
		 c->h, LAYOUT_W_MIN, LAYOUT_H_MIN);
	canvas_wrap(c, (struct rect) { 0, 0, c->w, c->h }, ROLE_WARN, text);
}

bool ui_guide_holds(struct ui *ui, const struct scene *scene)
{
	const struct model *m = scene->model;
	bool fresh = false;

	for (size_t i = m->lines; i-- > 0;)
		if (!strcmp(m->line[i].level, "note")) {
			fresh = m->line[i].t_us > ui->note_t_us;
			ui->note_t_us = m->line[i].t_us;
			break;
		}
	return fresh && ui->guide && ui->guide_step;
}

static void guide_draw(const struct ui *ui, const struct scene *scene,
		       struct canvas *c, struct rect r)
{
	char title[64], text[512];
	const struct m_run *run = model_run(scene->model);
	const char *how = guide_waits(ui, scene)        ? " [Enter] go on "
			  : run && run->ended_t_us >= 0 ? " [g] hide "
			  : ui->guide_step ? " step by step, [G] by itself "
					   : " [G] step by step ";

	guide_caption(scene->model, scene->now_us, title, sizeof(title), text,
		      sizeof(text));
	canvas_hline(c, r.x, r.y, r.w, ROLE_KEY);
	canvas_put(c, r.x + 1, r.y, ROLE_KEY, ' ');
	canvas_put(c,
		   r.x + 2 +
			   canvas_fit(c, r.x + 2, r.y, r.w - 4,
				      ROLE_KEY | STYLE_BOLD, title),
		   r.y, ROLE_KEY, ' ');
	canvas_right(c, r.x + r.w - 2, r.y,
		     ROLE_KEY | (guide_waits(ui, scene) ? STYLE_BOLD : 0), how);
	canvas_wrap(c, (struct rect) { r.x + 1, r.y + 1, r.w - 2, r.h - 1 },
		    ROLE_TEXT, text);
}

static void guide_turn(struct ui *ui, const struct scene *scene)
{
	char title[64], text[512];
	enum screen_id want;

	if (!ui->guide || ui->chosen || ui->form.open)
		return;
	want = guide_caption(scene->model, scene->now_us, title, sizeof(title),
			     text, sizeof(text));
	if (want != SCREENS)
		ui->screen = want;
	if (want == SCREEN_VDISKS && guide_trouble(scene->model))
		ui->vdisk.at = (int)(guide_trouble(scene->model) -
				     scene->model->vdisk);
}

void ui_draw(struct ui *ui, const struct scene *scene, struct canvas *c)
{
	bool replay = scene->status->link == LINK_REPLAY;
	struct layout_frame f;
	struct rect all = c->clip;

	guide_turn(ui, scene);
	if (!layout_frame(c->w, c->h, ui->guide, replay, &f)) {
		too_small(c);
		return;
	}
	canvas_clip(c, f.body);
	if (ui->pager.open)
		pager_draw(ui, c, f.body);
	else if (!ui->guide && welcome_shown(scene) &&
		 ui->screen == SCREEN_CLUSTER)
		welcome_draw(scene, c, f.body);
	else
		screen_of(ui->screen)->draw(ui, scene, c, f.body);
	c->clip = all;
	if (ui->guide)
		guide_draw(ui, scene, c, f.guide);
	if (replay)
		replay_draw(scene, c, f.replay);
	frame_draw(ui, scene, c, &f);
}
