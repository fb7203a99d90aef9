/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The commands of the screen itself: what is shown and how. They change
 * nothing but the view; everything else is the deck's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/page.h"
#include "tui/screen/form.h"
#include "tui/screen/screen.h"
#include "tui/screen/run_parts.h"

#define WORDS_MAX 6

const struct ui_command_row ui_command_table[] = {
	{ "screen",
	  "cluster|vdisks|workloads|run|compare|sessions|log|next|"
	  "previous",
	  "Shows a screen." },
	{ "axis", "linear|log|auto|toggle",
	  "How latency is drawn; auto: log where it spans a decade." },
	{ "latency", "service|response|toggle",
	  "Which latency is drawn: from the device's start, or from the "
	  "intended start." },
	{ "across", "iops|share|toggle",
	  "What stands across: IOPS, or percent of each curve's maximum, to "
	  "lay "
	  "curves of unlike systems over each other." },
	{ "intervals", "on|off|toggle",
	  "How sure each reading is, in place of how much it changed." },
	{ "figures", "on|off|toggle",
	  "The figures of a run's vDisk over time, in the place of other "
	  "strips where there is little room." },
	{ "marks", "on|off|toggle",
	  "Draws the readings at 70 %, 80 % and the peak on the curves." },
	{ "zoom", "in|out|off", "Halves or doubles the latency axis." },
	{ "show", "run previous|next|newest",
	  "Which run of the session is "
	  "shown." },
	{ "cursor", "up|down|next|top|end|pageup|pagedown",
	  "Moves in a list." },
	{ "edit", "[new]",
	  "Opens the policy editor of the vDisk under the "
	  "cursor, or of a new one." },
	{ "guide", "on|off|toggle|step|walk",
	  "The captions of the demo; step: the run holds at each until Enter; "
	  "walk: it goes on by itself." },
	{ "mouse", "on|off|toggle", "Off: the terminal selects text again." },
	{ "help", "[PAGE|keys]",
	  "The manual page of where you are, or of "
	  "PAGE." },
	{ "ask", "COMMAND", "Runs a command after a yes." },
	{ "refresh", "", "Reads workloads, suites and sessions again." },
	{ "redraw", "", "Draws the whole screen again." },
	{ "suspend", "", "Stops the console as ^Z does; fg goes on." },
	{ NULL, NULL, NULL },
};

static const struct ui_command_row *row_find(const char *name)
{
	for (const struct ui_command_row *row = ui_command_table; row->name;
	     row++)
		if (!strcmp(row->name, name))
			return row;
	return NULL;
}

static int usage(struct ui *ui, const struct scene *scene, const char *name)
{
	const struct ui_command_row *row = row_find(name);
	char text[200];

	snprintf(text, sizeof(text), "usage: %s %s", row->name, row->args);
	ui_say(ui, scene, 2, text);
	return -EINVAL;
}

/* "on", "off" or "toggle" into *value. */
static int switch_set(bool *value, const char *word, const char *on,
		      const char *off)
{
	if (!strcmp(word, on))
		*value = true;
	else if (!strcmp(word, off))
		*value = false;
	else if (!strcmp(word, "toggle"))
		*value = !*value;
	else
		return -EINVAL;
	return 0;
}

static int do_screen(struct ui *ui, const char *word)
{
	for (unsigned i = 0; i < SCREENS; i++)
		if (!strcmp(screen_of((enum screen_id)i)->name, word)) {
			ui->screen = (enum screen_id)i;
			return 0;
		}
	if (!strcmp(word, "next"))
		ui->screen = (enum screen_id)((ui->screen + 1) % SCREENS);
	else if (!strcmp(word, "previous"))
		ui->screen =
			(enum screen_id)((ui->screen + SCREENS - 1) % SCREENS);
	else
		return -EINVAL;
	return 0;
}

static int do_cursor(struct ui *ui, const char *word)
{
	struct cursor *(*of)(struct ui *) = screen_of(ui->screen)->cursor;
	struct cursor *cur = of ? of(ui) : NULL;
	int page;

	if (!cur)
		return 0;
	page = cur->rows > 2 ? cur->rows - 1 : 1;
	if (!strcmp(word, "up"))
		cur->at--;
	else if (!strcmp(word, "down"))
		cur->at++;
	else if (!strcmp(word, "next"))
		cur->at = cur->at + 1 < cur->count ? cur->at + 1 : 0;
	else if (!strcmp(word, "top"))
		cur->at = 0;
	else if (!strcmp(word, "end"))
		cur->at = cur->count - 1;
	else if (!strcmp(word, "pageup"))
		cur->at -= page;
	else if (!strcmp(word, "pagedown"))
		cur->at += page;
	else
		return -EINVAL;
	cursor_fit(cur, cur->count, cur->rows);
	return 0;
}

static int do_zoom(struct ui *ui, const char *word)
{
	if (!strcmp(word, "in"))
		ui->zoom += ui->zoom < 10;
	else if (!strcmp(word, "out"))
		ui->zoom -= ui->zoom > 0;
	else if (!strcmp(word, "off"))
		ui->zoom = 0;
	else
		return -EINVAL;
	ui->y.hi = 0;
	return 0;
}

static int do_show(struct ui *ui, const struct scene *scene, const char *what,
		   const char *word)
{
	int last = (int)scene->model->runs - 1;
	int at = ui->run_at < 0 ? last : ui->run_at;

	if (strcmp(what, "run") != 0)
		return -EINVAL;
	if (!strcmp(word, "previous"))
		at -= at > 0;
	else if (!strcmp(word, "next"))
		at++;
	else if (!strcmp(word, "newest"))
		at = last;
	else
		return -EINVAL;
	ui->run_at = at >= last ? -1 : at;
	ui->x.hi = ui->y.hi = 0;
	return 0;
}

static int do_axis(struct ui *ui, const char *word)
{
	if (!strcmp(word, "auto"))
		ui->scale = SCALE_AUTO;
	else if (!strcmp(word, "log"))
		ui->scale = SCALE_LOG;
	else if (!strcmp(word, "linear"))
		ui->scale = SCALE_LINEAR;
	else if (!strcmp(word, "toggle"))
		ui->scale = ui->log_y ? SCALE_LINEAR : SCALE_LOG;
	else
		return -EINVAL;
	return 0;
}

static int do_guide(struct ui *ui, const struct scene *scene, const char *word)
{
	if (!strcmp(word, "step")) {
		ui->guide = true;
		ui->guide_step = !ui->guide_step;
		/* What was said so far was heard. */
		ui_guide_holds(ui, scene);
		return 0;
	}
	if (!strcmp(word, "walk"))
		ui->guide_step = false;
	else if (switch_set(&ui->guide, word, "on", "off"))
		return -EINVAL;
	ui->chosen = !ui->guide;
	return 0;
}

/* On where there is nothing to show, it says so and stays off. */
static int do_figures(struct ui *ui, const struct scene *scene,
		      const char *word)
{
	if (switch_set(&ui->figures, word, "on", "off"))
		return -EINVAL;
	if (!ui->figures || run_figures(scene, ui_run(ui, scene)))
		return 0;
	ui->figures = false;
	ui_say(ui, scene, 1,
	       "no figures over time here: a vDisk of the log layout has them, "
	       "one in place has none");
	return 0;
}

static int do_switch(struct ui *ui, const char *name, const char *word)
{
	int rc = -ENOENT;

	if (!strcmp(name, "axis"))
		return do_axis(ui, word);
	if (!strcmp(name, "latency"))
		rc = switch_set(&ui->response, word, "response", "service");
	else if (!strcmp(name, "across"))
		rc = switch_set(&ui->share, word, "share", "iops");
	else if (!strcmp(name, "marks"))
		rc = switch_set(&ui->marks, word, "on", "off");
	else if (!strcmp(name, "intervals"))
		rc = switch_set(&ui->intervals, word, "on", "off");
	else if (!strcmp(name, "mouse"))
		rc = switch_set(&ui->mouse, word, "on", "off");
	return rc;
}

static const char *leave_words(const struct scene *scene)
{
	const struct m_run *run = model_run(scene->model);
	bool on = run && run->ended_t_us < 0 &&
		  scene->status->link != LINK_REPLAY;

	return on ? "Leave the console? A run goes on, and its record with it."
		  : "Leave the console?";
}

/* "ask" keeps its line whole, quotes and all. */
static int do_ask(struct ui *ui, const struct scene *scene, const char *line)
{
	line += strcspn(line, " ");
	line += strspn(line, " ");
	if (!*line)
		return -EINVAL;
	if (!strcmp(line, "quit"))
		ui_confirm(ui, line, "%s", leave_words(scene));
	else
		ui_confirm(ui, line, "%s: this cannot be undone. Do it?", line);
	return 0;
}

static int dispatch(struct ui *ui, const struct scene *scene, char **word,
		    const char *line)
{
	char view[MODEL_NAME];

	if (!strcmp(word[0], "screen"))
		return do_screen(ui, word[1]);
	if (!strcmp(word[0], "cursor"))
		return do_cursor(ui, word[1]);
	if (!strcmp(word[0], "guide"))
		return do_guide(ui, scene, word[1]);
	if (!strcmp(word[0], "zoom"))
		return do_zoom(ui, word[1]);
	if (!strcmp(word[0], "show"))
		return do_show(ui, scene, word[1], word[2]);
	if (!strcmp(word[0], "edit")) {
		ui->screen = SCREEN_VDISKS;
		return form_open(ui, scene, !strcmp(word[1], "new"));
	}
	if (!strcmp(word[0], "ask"))
		return do_ask(ui, scene, line);
	if (!strcmp(word[0], "help")) {
		/* Of commands the deck knows more. */
		if (word[1][0] && strcmp(word[1], "keys") != 0 &&
		    (word[2][0] || !page_find(word[1])))
			return -ENOENT;
		snprintf(view, sizeof(view), "help:%.50s", word[1]);
		ui_view(ui, scene, view);
		return 0;
	}
	if (!strcmp(word[0], "refresh")) {
		ui->want_refresh = true;
		return 0;
	}
	if (!strcmp(word[0], "redraw")) {
		ui->want_redraw = true;
		return 0;
	}
	if (!strcmp(word[0], "suspend")) {
		ui->want_suspend = true;
		return 0;
	}
	if (!strcmp(word[0], "figures"))
		return do_figures(ui, scene, word[1]);
	return do_switch(ui, word[0], word[1]);
}

int ui_command(struct ui *ui, const struct scene *scene, const char *line)
{
	char copy[UI_LINE], *word[WORDS_MAX] = { 0 }, *save = NULL, *w;
	size_t n = 0;
	int rc;

	snprintf(copy, sizeof(copy), "%s", line);
	for (w = strtok_r(copy, " \t", &save); w && n < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &save))
		word[n++] = w;
	while (n < WORDS_MAX)
		word[n++] = copy + strlen(copy); /* "" */
	if (!word[0][0] || !row_find(word[0]))
		return -ENOENT;
	rc = dispatch(ui, scene, word, line);
	return rc == -EINVAL ? usage(ui, scene, word[0]) : rc;
}
