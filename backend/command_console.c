/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help, screens, options, completion. */
#include "backend/command_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/complete.h"

/* ---- the tables, for programs: help --json ------------------------------- */

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *arg_json(const struct command_arg *a)
{
	return json_pack("{s:s,s:s,s:b,s:b,s:b,s:o,s:o,s:s}", "name", a->name,
			 "kind", a->kind, "required", a->required, "positional",
			 a->positional, "repeat", a->repeat, "values",
			 text_or_null(a->values), "default",
			 text_or_null(a->unset), "help", a->help);
}

static json_t *command_json(const struct command *c)
{
	json_t *args = json_array();
	const struct command_arg *a;

	for (a = c->arg; a->name; a++)
		json_array_append_new(args, arg_json(a));
	return json_pack("{s:s,s:b,s:b,s:s,s:s,s:o}", "name", c->name, "shell",
			 (c->where & CMD_SHELL) != 0, "prompt",
			 (c->where & CMD_PROMPT) != 0, "help", c->help, "page",
			 c->page, "args", args);
}

static json_t *option_json(const struct option *o)
{
	return json_pack("{s:s,s:o,s:o,s:o,s:s}", "name", o->name, "values",
			 text_or_null(o->values), "default",
			 text_or_null(o->unset), "unit", text_or_null(o->unit),
			 "help", o->help);
}

static json_t *tables_json(void)
{
	json_t *commands = json_array(), *options = json_array();
	const struct command *c;
	const struct option *o;

	for (c = command_table; c->name; c++)
		json_array_append_new(commands, command_json(c));
	for (o = option_table; o->name; o++)
		json_array_append_new(options, option_json(o));
	return json_pack("{s:o,s:o}", "commands", commands, "options", options);
}

/* ---- help ---------------------------------------------------------------- */

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
		outcome->json = tables_json();
		outcome_view(outcome, "help:iodeck");
		return 0;
	}
	topic = command_find(n, words, &used);
	if (topic) {
		outcome->text = command_usage(topic, true);
		snprintf(view, sizeof(view), "help:%.*s",
			 (int)strcspn(topic->page, "("), topic->page);
	} else if ((outcome->text = command_group_help(
			    n, words, CMD_SHELL | CMD_PROMPT))) {
		snprintf(view, sizeof(view), "help:iodeck");
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
