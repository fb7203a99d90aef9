/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help, screens, options, completion. */
#include "backend/command_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/complete.h"

COMMAND(do_help)
{
	const struct command *topic;
	char view[MODEL_NAME], *words[4] = { NULL };
	const char *word;
	int used, n;

	(void)deck;
	for (n = 0; n < 3; n++) {
		word = command_arg_nth(command, argc, argv, "TOPIC", n);
		if (!word)
			break;
		words[n] = (char *)word;
	}
	if (!n) {
		outcome->text = command_help(CMD_SHELL | CMD_PROMPT);
		outcome_view(outcome, "help:iodeck");
		return 0;
	}
	topic = command_find(n, words, &used);
	if (topic) {
		outcome->text = command_usage(topic, true);
		snprintf(view, sizeof(view), "help:%.*s",
			 (int)strcspn(topic->page, "("), topic->page);
	} else {
		snprintf(view, sizeof(view), "help:%.50s", words[0]);
	}
	outcome_view(outcome, view);
	return 0;
}

COMMAND(do_screen)
{
	char view[MODEL_NAME];

	(void)deck;
	snprintf(view, sizeof(view), "screen:%.40s", ARG("NAME"));
	outcome_view(outcome, view);
	return 0;
}

static int set_list(struct deck *deck, struct outcome *outcome)
{
	const struct option *o;
	struct text text = { 0 };

	outcome->json = json_object();
	for (o = option_table; o->name; o++) {
		text_add(&text, "%-16s %-12s %s\n", o->name,
			 deck_option(deck, o->name), o->help);
		json_object_set_new(outcome->json, o->name,
				    json_string(deck_option(deck, o->name)));
	}
	outcome->text = text_take(&text);
	return 0;
}

COMMAND(do_set)
{
	char name[64];
	const char *word, *value;
	struct err err;
	int n;

	for (n = 0;
	     (word = command_arg_nth(command, argc, argv, "NAME=VALUE", n));
	     n++) {
		value = strchr(word, '=');
		if (!value || (size_t)(value - word) >= sizeof(name))
			return outcome_fail(outcome, 2,
					    "set: \"%.60s\": expected "
					    "NAME=VALUE",
					    word);
		snprintf(name, sizeof(name), "%.*s", (int)(value - word), word);
		if (deck_option_set(deck, name, value + 1, &err))
			return outcome_fail(outcome, 2, "%s", err.text);
	}
	return n ? 0 : set_list(deck, outcome);
}

COMMAND(do_quit)
{
	(void)deck;
	(void)command;
	(void)argc;
	(void)argv;
	outcome->quit = true;
	return 0;
}

/* What has been typed is one line, in as many words as the shell made of it. */
static int words_reply(struct deck *deck, const struct command *command,
		       int argc, char *const argv[], struct outcome *outcome)
{
	const char *line = ARG("LINE");
	struct text text = { 0 };
	char **words = complete_shell(deck, line ? line : "");
	size_t i;

	for (i = 0; words && words[i]; i++)
		text_add(&text, "%s\n", words[i]);
	deck_words_free(words);
	outcome->text = text_take(&text);
	return 0;
}

COMMAND(do_completion)
{
	const char *shell = ARG("SHELL");

	if (!strcmp(shell, "words"))
		return words_reply(deck, command, argc, argv, outcome);
	outcome->text = complete_script(shell);
	return 0;
}
