/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of the console: which screen, where the cursors stand, what is
 * open over it. Drawing takes (ui, scene, canvas); a key gives a command line.
 * No clock, no terminal, no deck in here.
 */
#ifndef TUI_UI_H
#define TUI_UI_H

#include "tui/chart/axis.h"
#include "tui/chart/canvas.h"
#include "tui/layout.h"
#include "tui/scene.h"

#define UI_LINE 512
#define UI_LIST_MAX 64 /* candidates of completion shown */

enum screen_id {
	SCREEN_CLUSTER,
	SCREEN_VDISKS,
	SCREEN_WORKLOADS,
	SCREEN_RUN,
	SCREEN_COMPARE,
	SCREEN_SESSIONS,
	SCREEN_LOG,
	SCREENS
};

/* A list's cursor; top is where it was scrolled to. */
struct cursor {
	int at, top, count, rows;
};

/* The policy editor. */
struct form {
	bool open, fresh; /* fresh: a new vDisk */
	int field;
	char name[MODEL_NAME];
	char policy[MODEL_NAME]; /* "" none: as the fields say */
	bool log;                /* the layout; else in place */
	int codec, raid, ftt;
	int64_t unit_bytes, size_bytes;
};

/* Text over the screen: help, and answers of more than a line. */
struct pager {
	bool open;
	char title[MODEL_NAME];
	char page[MODEL_NAME]; /* of help; "" else */
	char *text;            /* with PAGE_* style bytes */
	int top, lines, rows, width;
};

struct prompt_view {
	bool open;
	char label[64]; /* ":" or what readline shows while searching */
	char line[UI_LINE];
	int cursor;   /* bytes into line */
	int cursor_x; /* out: column it was drawn at */
	char *list[UI_LIST_MAX];
	int lists, lists_all;
};

struct stat_entry;

struct ui {
	enum screen_id screen;
	bool chosen; /* a key chose the screen: the guide stays off */
	bool guide;
	bool guide_step;   /* the run holds at each note until Enter */
	int64_t note_t_us; /* of the last note it held at */
	/* run */
	struct axis x, y;
	enum { SCALE_AUTO, SCALE_LINEAR, SCALE_LOG } scale;
	bool log_y; /* how it was drawn last */
	bool response, marks;
	bool figures;   /* Run: the vDisk's over time, in the strip's place */
	bool intervals; /* Compare: beside each reading */
	bool share;     /* across: percent of each series' maximum */
	bool share_was; /* as the axis was fitted */
	int zoom;       /* halves the latency axis so often */
	int run_at;     /* -1 the newest */
	struct stat_entry *stat;
	size_t stats, stat_cap;
	/* lists */
	struct cursor node, vdisk, workload, session, log, compare;
	struct form form;
	struct pager pager;
	struct prompt_view prompt;
	/* yes or no before a command that cannot be undone */
	bool ask;
	char ask_text[256], ask_line[UI_LINE];
	/* answer of the last command */
	char message[256];
	int message_status; /* as outcome.status; -1 waiting */
	int64_t message_t_us;
	bool mouse;
	/* wishes to the loop */
	bool want_redraw, want_suspend, want_refresh;
};

void ui_init(struct ui *ui);
void ui_fini(struct ui *ui);

void ui_draw(struct ui *ui, const struct scene *scene, struct canvas *c);

/*
 * A key while no prompt is open. True when there is a command line in `line`
 * (UI_LINE bytes) to run; ':' gives ":".
 */
bool ui_key(struct ui *ui, const struct scene *scene, int key, char *line);
/* A click or wheel at a cell. */
bool ui_mouse(struct ui *ui, const struct scene *scene, struct canvas *c, int x,
	      int y, int wheel, char *line);
/* Commands of the screen itself. 0 done, -ENOENT not one of them, -EINVAL with
 * its usage in ui->message. */
int ui_command(struct ui *ui, const struct scene *scene, const char *line);
/* Step by step: whether a new note wants the run to hold now. */
bool ui_guide_holds(struct ui *ui, const struct scene *scene);
/* "screen:run", "help:iodeck(1)" as outcomes ask for. */
void ui_view(struct ui *ui, const struct scene *scene, const char *view);
void ui_say(struct ui *ui, const struct scene *scene, int status,
	    const char *text);
void ui_page(struct ui *ui, const char *title, const char *text);
void ui_confirm(struct ui *ui, const char *line, const char *fmt, ...)
	ID_PRINTF(3, 4);

/* Figures of a point, kept while it does not change. */
const struct point_stats *ui_stats(struct ui *ui, const struct m_run *run,
				   const struct m_point *point);
/* The run that is shown, or NULL. */
const struct m_run *ui_run(const struct ui *ui, const struct scene *scene);

/* The commands above, for help, completion and the checks of man pages. */
struct ui_command_row {
	const char *name, *args, *help;
};
extern const struct ui_command_row ui_command_table[]; /* ends with NULL */

#endif
