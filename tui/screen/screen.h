/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A screen is a table: what it is called, how it is drawn, which cursor it
 * moves, and keys that stand for command lines.
 */
#ifndef TUI_SCREEN_SCREEN_H
#define TUI_SCREEN_SCREEN_H

#include "tui/ui.h"

struct screen {
	const char *name;  /* "run" */
	const char *title; /* "Run" */
	const char *page;  /* help of this screen */
	void (*draw)(struct ui *ui, const struct scene *scene, struct canvas *c,
		     struct rect body);
	/* The list under the cursor keys, or NULL. */
	struct cursor *(*cursor)(struct ui *ui);
	/* Keys beyond the table (a form's); true when it took the key; line
	 * as in ui_key(), "" none. May be NULL. */
	bool (*key)(struct ui *ui, const struct scene *scene, int key,
		    char *line);
	/* The text for %s in a key's line: what is under the cursor. */
	const char *(*selected)(const struct ui *ui, const struct scene *scene);
};

extern const struct screen screen_cluster, screen_vdisks, screen_workloads,
	screen_run, screen_compare, screen_sessions, screen_log;
const struct screen *screen_of(enum screen_id id);

/* ---- what screens share -------------------------------------------------- */

/* ok, warn, bad, dim by a state's word. */
unsigned state_role(const char *state);
/* Of a log line's level. */
unsigned log_role(const char *level);
/* "RAID-5 2+1" */
char *raid_text(char *buf, int raid, int k, int m);
/* The cursor's row of a list: its mark, and reverse over the row. */
void row_mark(struct canvas *c, struct rect row, bool at);
/* Draws heading cells: text at columns, dim. */
void cursor_fit(struct cursor *cur, int count, int rows);

/* Run's parts that Compare and the guide draw too. */
void run_chart_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		    struct rect r);
/* What limits the run now, in a sentence; "-" when nothing is known. */
void run_bound_text(const struct model *model, const struct m_run *run,
		    char *buf, size_t len);

/* Lines around every screen. */
void frame_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
		const struct layout_frame *f);
void welcome_draw(const struct scene *scene, struct canvas *c, struct rect r);
bool welcome_key(int key, char *line);
bool welcome_shown(const struct scene *scene);
void replay_draw(const struct scene *scene, struct canvas *c, struct rect r);
void pager_draw(struct ui *ui, struct canvas *c, struct rect r);
/* The first vDisk that is not healthy, or NULL. */
const struct m_vdisk *guide_trouble(const struct model *model);
/* The caption of the demo and the screen it asks for (SCREENS: as it is). */
enum screen_id guide_caption(const struct model *model, int64_t now_us,
			     char *title, size_t title_len, char *text,
			     size_t text_len);

#endif
