/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/keys.h"

#include <stdio.h>
#include <string.h>

#include "tui/term.h"

const struct key_row key_table[] = {
	{ 'R', NULL, KEY_LOST, "resume", "R", "go on" },
	/* replay */
	{ ' ', NULL, KEY_REPLAY, "play", "space", "play" },
	{ K_LEFT, NULL, KEY_REPLAY, "seek -10", "\xe2\x86\x90\xe2\x86\x92",
	  "10 s" },
	{ K_RIGHT, NULL, KEY_REPLAY, "seek +10", NULL, NULL },
	{ ',', NULL, KEY_REPLAY, "step -1", ",.", "event" },
	{ '.', NULL, KEY_REPLAY, "step 1", NULL, NULL },
	{ '<', NULL, KEY_REPLAY, "speed %-", "<>", "speed" },
	{ '>', NULL, KEY_REPLAY, "speed %+", NULL, NULL },
	/* run */
	{ ' ', "run", KEY_LIVE, "pause", "space", "pause" },
	{ 's', "run", KEY_LIVE, "ask stop", "s", "stop" },
	{ 'l', "run", 0, "axis toggle", "l", "log axis" },
	{ 'r', "run", 0, "latency toggle", "r", "response" },
	{ 'x', "run", 0, "across toggle", "x", "%" },
	{ 'x', "compare", 0, "across toggle", "x", "% of max" },
	{ 'l', "compare", 0, "axis toggle", "l", "log axis" },
	{ 'm', "run", 0, "marks toggle", "m", "marks" },
	{ 'v', "run", 0, "figures toggle", "v", "vDisk" },
	{ 'o', "run", 0, ":overlay ", "o", "overlay" },
	{ '+', "run", 0, "zoom in", "+/-", "zoom" },
	{ '=', "run", 0, "zoom in", NULL, NULL },
	{ '-', "run", 0, "zoom out", NULL, NULL },
	{ '[', "run", 0, "show run previous", NULL, NULL },
	{ ']', "run", 0, "show run next", NULL, NULL },
	/* cluster */
	{ 'o', "cluster", KEY_LIVE, ":fault domain %s offline", NULL, NULL },
	/* vDisks */
	{ 'n', "vdisks", KEY_LIVE, "edit new", "n", "new" },
	{ 'e', "vdisks", KEY_LIVE, "edit", "e", "change" },
	{ K_ENTER, "vdisks", KEY_LIVE, "edit", NULL, NULL },
	{ 'd', "vdisks", KEY_LIVE, "ask vdisk delete %s", "d", "delete" },
	{ 'v', "vdisks", KEY_LIVE, "vdisk verify %s", "v", "verify" },
	/* workloads */
	{ K_ENTER, "workloads", KEY_LIVE, ":run %s vdisk=", "Enter", "run on" },
	/* compare */
	{ 'o', "compare", 0, ":overlay ", "o", "lay over" },
	{ 'b', "compare", 0, "cursor next", "b", "base" },
	{ 'i', "compare", 0, "intervals toggle", "i", "intervals" },
	/* sessions */
	{ K_ENTER, "sessions", 0, "open %s", "Enter", "replay" },
	{ 'o', "sessions", 0, ":overlay %s#", "o", "lay over" },
	{ 'u', "sessions", 0, "refresh", "u", "look again" },
	/* everywhere */
	{ '1', NULL, 0, "screen cluster", NULL, NULL },
	{ '2', NULL, 0, "screen vdisks", NULL, NULL },
	{ '3', NULL, 0, "screen workloads", NULL, NULL },
	{ '4', NULL, 0, "screen run", NULL, NULL },
	{ '5', NULL, 0, "screen compare", NULL, NULL },
	{ '6', NULL, 0, "screen sessions", NULL, NULL },
	{ '7', NULL, 0, "screen log", NULL, NULL },
	{ K_TAB, NULL, 0, "screen next", NULL, NULL },
	{ K_BTAB, NULL, 0, "screen previous", NULL, NULL },
	{ K_UP, NULL, 0, "cursor up", NULL, NULL },
	{ K_DOWN, NULL, 0, "cursor down", NULL, NULL },
	{ 'k', NULL, 0, "cursor up", NULL, NULL },
	{ 'j', NULL, 0, "cursor down", NULL, NULL },
	{ K_PGUP, NULL, 0, "cursor pageup", NULL, NULL },
	{ K_PGDN, NULL, 0, "cursor pagedown", NULL, NULL },
	{ K_HOME, NULL, 0, "cursor top", NULL, NULL },
	{ K_END, NULL, 0, "cursor end", NULL, NULL },
	{ 'g', NULL, 0, "guide toggle", NULL, NULL },
	{ 'G', NULL, 0, "guide step", NULL, NULL },
	{ 'M', NULL, 0, "mouse toggle", NULL, NULL },
	{ 'N', NULL, KEY_LIVE, ":note ", NULL, NULL },
	{ 'L', NULL, KEY_REPLAY, "live", NULL, NULL },
	{ K_F1, NULL, 0, "help", NULL, NULL },
	{ '?', NULL, 0, "help keys", "?", "keys" },
	{ ':', NULL, 0, ":", ":", "command" },
	{ 'q', NULL, 0, "ask quit", "q", "quit" },
	{ K_CTRL('c'), NULL, 0, "ask quit", NULL, NULL },
	{ K_CTRL('l'), NULL, 0, "redraw", NULL, NULL },
	{ K_CTRL('z'), NULL, 0, "suspend", NULL, NULL },
	{ 0, NULL, 0, NULL, NULL, NULL },
};

static bool row_applies(const struct key_row *row, const char *screen,
			unsigned now)
{
	if (row->screen && strcmp(row->screen, screen) != 0)
		return false;
	return !row->when || (row->when & now);
}

const struct key_row *key_find(int key, const char *screen, unsigned now)
{
	/* A screen's own rows stand before those of everywhere. */
	for (const struct key_row *row = key_table; row->key; row++)
		if (row->key == key && row_applies(row, screen, now))
			return row;
	return NULL;
}

unsigned key_now(const struct scene *scene)
{
	switch (scene->status->link) {
	case LINK_REPLAY:
		return KEY_REPLAY;
	case LINK_LOST:
		return KEY_LIVE | KEY_LOST;
	default:
		return KEY_LIVE;
	}
}

/* Appends `text` in single quotes where the shell's rules would split it. */
static size_t quote(char *out, size_t at, const char *text)
{
	bool plain = *text && !strpbrk(text, " \t'\"\\#;");

	if (!plain && at + 1 < UI_LINE)
		out[at++] = '\'';
	for (; *text && at + 6 < UI_LINE; text++) {
		if (*text == '\'') {
			memcpy(out + at, "'\\''", 4);
			at += 4;
		} else {
			out[at++] = *text;
		}
	}
	if (!plain && at + 1 < UI_LINE)
		out[at++] = '\'';
	return at;
}

bool key_line(const struct key_row *row, const char *selected, char *line)
{
	const char *p = strstr(row->line, "%s");
	size_t at;

	if (!p) {
		snprintf(line, UI_LINE, "%s", row->line);
		return true;
	}
	if (!selected || !*selected)
		return false;
	at = (size_t)(p - row->line);
	memcpy(line, row->line, at);
	at = quote(line, at, selected);
	snprintf(line + at, UI_LINE - at, "%s", p + 2);
	return true;
}

char *key_name(int key, char *buf, size_t len)
{
	static const struct {
		int key;
		const char *name;
	} named[] = {
		{ ' ', "space" },       { K_ENTER, "Enter" },
		{ K_TAB, "Tab" },       { K_ESC, "Esc" },
		{ K_UP, "Up" },         { K_DOWN, "Down" },
		{ K_LEFT, "Left" },     { K_RIGHT, "Right" },
		{ K_HOME, "Home" },     { K_END, "End" },
		{ K_PGUP, "PageUp" },   { K_F1, "F1" },
		{ K_PGDN, "PageDown" }, { K_BTAB, "Shift-Tab" },
	};

	for (size_t i = 0; i < array_len(named); i++)
		if (named[i].key == key) {
			snprintf(buf, len, "%s", named[i].name);
			return buf;
		}
	if (key < 32)
		snprintf(buf, len, "^%c", key + 64);
	else
		snprintf(buf, len, "%c", key < 127 ? key : '?');
	return buf;
}
