/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * First start: no configuration, no session. Not an empty table but three
 * lines, each a key.
 */
#include "tui/screen/screen.h"

#include <stdio.h>

bool welcome_shown(const struct scene *scene)
{
	const struct model *m = scene->model;

	return !m->domains && !m->hosts && !m->runs &&
	       (scene->status->link == LINK_NONE ||
		scene->status->link == LINK_CONNECTING);
}

void welcome_draw(const struct scene *scene, struct canvas *c, struct rect r)
{
	static const struct {
		const char *key, *what, *how;
	} way[] = {
		{ "d", "try the demo",
		  "six nodes in this machine, three policies, three minutes; "
		  "no root, nothing stays but its session" },
		{ "a", "point me at a disk or a file",
		  "a drive is a directory or a block device that you give "
		  "to iodeck; nothing else is ever written" },
		{ "n", "point me at nodes",
		  "iodeck.conf(5) names them and their drives" },
	};
	int y = r.y + (r.h > 16 ? r.h / 4 : 1), w = r.w > 90 ? 90 : r.w - 8;
	int x = r.x + (r.w - w) / 2;

	(void)scene;
	canvas_text(c, x, y, ROLE_TITLE, "Nothing is set up yet.");
	y += 2;
	for (size_t i = 0; i < array_len(way); i++) {
		canvas_printf(c, x, y, ROLE_KEY | STYLE_BOLD, "[%s]",
			      way[i].key);
		canvas_text(c, x + 5, y++, ROLE_TITLE, way[i].what);
		y += canvas_wrap(c, (struct rect) { x + 5, y, w - 5, 2 },
				 ROLE_DIM, way[i].how) +
		     1;
	}
}

/* The three keys, as command lines. */
bool welcome_key(int key, char *line)
{
	switch (key) {
	case 'd':
		snprintf(line, UI_LINE, "demo");
		return true;
	case 'a':
		snprintf(line, UI_LINE, ":drive claim ");
		return true;
	case 'n':
		snprintf(line, UI_LINE, "help iodeck.conf(5)");
		return true;
	default:
		return false;
	}
}
