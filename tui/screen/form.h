/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The policy editor: what a vDisk is to be, and what that costs, before
 * anything moves. It ends in a command line.
 */
#ifndef TUI_SCREEN_FORM_H
#define TUI_SCREEN_FORM_H

#include "tui/ui.h"

/* Of the vDisk under the cursor, or a new one. -EINVAL when there is none. */
int form_open(struct ui *ui, const struct scene *scene, bool fresh);
bool form_key(struct ui *ui, const struct scene *scene, int key, char *line);
void form_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
	       struct rect r);

/* What a policy costs. */
struct policy_cost {
	int k, m;            /* data and parity (or further copies) */
	double space;        /* bytes on drives a byte of data */
	double write_ios;    /* in place: drive I/Os a small random write */
	double amp;          /* log: bytes to drives a byte, of small writes */
	int domains;         /* fault domains needed */
	const char *refused; /* why it cannot be; NULL it can */
};
void policy_cost(const char *layout, int raid, int ftt, size_t domains,
		 struct policy_cost *cost);

#endif
