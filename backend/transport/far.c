/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/far.h"

#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/text.h"

/* In single quotes sh, csh and fish agree on all but these. */
static bool passes(const char *word)
{
	for (; *word; word++)
		if ((unsigned char)*word < ' ' || strchr("\\!\177", *word))
			return false;
	return true;
}

static void word_add(struct text *text, const char *word)
{
	text_add(text, " ");
	if (!strncmp(word, "~/", 2)) {
		text_add(text, "\"$HOME\"/");
		word += 2;
	}
	text_add(text, "'");
	for (; *word; word++)
		if (*word == '\'')
			text_add(text, "'\\''");
		else
			text_add(text, "%c", *word);
	text_add(text, "'");
}

int far_command(const char *const argv[], const char *mark, char **command,
		struct err *err)
{
	struct text text = { 0 };
	char clean[200];

	text_add(&text, "exec sh -c 'echo; echo %s; exec \"$0\" \"$@\"'", mark);
	for (; *argv; argv++) {
		if (!passes(*argv)) {
			event_text(clean, sizeof(clean), *argv);
			free(text_take(&text));
			return err_set(err, -EINVAL,
				       "\"%s\": expected no backslash, '!' or "
				       "control character for a program of "
				       "another host",
				       clean);
		}
		word_add(&text, *argv);
	}
	*command = text_take(&text);
	return *command ? 0 : err_set(err, -ENOMEM, "command: out of memory");
}

void far_ended(const struct far *far, int status, const char *signal,
	       const struct said *said, struct err *err)
{
	char last[300];

	said_last(said, last, sizeof(last));
	if (!status && !*signal)
		return;
	if (*signal)
		err_set(err, -ECHILD, "%s: %s was killed there by SIG%s",
			far->place, far->program, signal);
	else if (status == 126 || status == 127)
		err_set(err, -ENOENT,
			"%s: %s does not start there (%s): install it on that "
			"host, or say where it is",
			far->place, far->program, *last ? last : "not found");
	else if (*last)
		err_set(err, -ECHILD, "%s: %s", far->place, last);
	else
		err_set(err, -ECHILD,
			"%s: %s has ended there with status %d and said "
			"nothing",
			far->place, far->program, status);
}
