/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * iodeck: one command from the command line, or the console. Only here and in
 * headless.c is anything printed.
 *
 * Exit status: 0 done, 1 the work failed, 2 usage or bad input.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/command.h"
#include "tui/headless.h"
#include "tui/tui.h"

#define SETS_MAX 64

struct args {
	const char *config;
	const char *set[SETS_MAX];
	int sets;
	bool json, help, version;
	int argc; /* the command and its words */
	char **argv;
};

static const char usage[] =
	"usage: iodeck [--config FILE] [--set NAME=VALUE] [--json] [COMMAND "
	"...]\n";

static const char help_head[] =
	"\n"
	"Without a command: the console. --help behind a command explains it.\n"
	"\n"
	"Options\n"
	"  --config FILE    read FILE, not "
	"$XDG_CONFIG_HOME/iodeck/iodeck.conf\n"
	"  --set NAME=VALUE set an option of iodeck.conf(5)\n"
	"  --json           print one JSON document and nothing else\n"
	"  --help           this\n"
	"  --version        name and version\n"
	"\n";

static const char help_tail[] =
	"\nExit status: 0 done, 1 the work failed, 2 usage or bad input.\n"
	"See iodeck(1), iodeck-tutorial(7).\n";

static int fail(const char *what, const char *about)
{
	fprintf(stderr, "iodeck: %s%s%s\n%s", what, *about ? ": " : "", about,
		usage);
	return 2;
}

/* ---- the program's own options ----------------------------------------------
 */

/* "--name VALUE" or "--name=VALUE"; NULL when it is another option. */
static const char *valued(const char *name, int argc, char *const argv[],
			  int *at)
{
	size_t n = strlen(name);

	if (strncmp(argv[*at], name, n) != 0)
		return NULL;
	if (argv[*at][n] == '=')
		return argv[*at] + n + 1;
	if (argv[*at][n])
		return NULL;
	return *at + 1 < argc ? argv[++*at] : "";
}

static bool parse_one(struct args *a, int argc, char *const argv[], int *at)
{
	const char *value, *word = argv[*at];

	if (!strcmp(word, "--json"))
		a->json = true;
	else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		a->help = true;
	else if (!strcmp(word, "--version") || !strcmp(word, "-V"))
		a->version = true;
	else if ((value = valued("--config", argc, argv, at)))
		a->config = value;
	else if ((value = valued("--set", argc, argv, at)) &&
		 a->sets < SETS_MAX)
		a->set[a->sets++] = value;
	else
		return false;
	return true;
}

/* Takes them out wherever they stand before "--". */
static int parse(struct args *a, int argc, char *argv[])
{
	int i;

	memset(a, 0, sizeof(*a));
	a->argv = argv + 1;
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			break;
		if (parse_one(a, argc, argv, &i))
			continue;
		if (argv[i][0] == '-' && argv[i][1] && !a->argc)
			return fail("unknown option", argv[i]);
		a->argv[a->argc++] = argv[i];
	}
	for (; i < argc; i++)
		a->argv[a->argc++] = argv[i];
	a->argv[a->argc] = NULL;
	if (a->config && !*a->config)
		return fail("--config needs a file", "");
	return 0;
}

/* ---- printing
 * ------------------------------------------------------------------ */

static void print_lines(FILE *to, const char *text)
{
	size_t n = strlen(text);

	if (!n)
		return;
	fputs(text, to);
	if (text[n - 1] != '\n')
		fputc('\n', to);
}

static void print_json(json_t *document)
{
	json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputc('\n', stdout);
}

/* One document whatever happened. */
static void print_outcome_json(const struct outcome *outcome)
{
	json_t *document;

	if (outcome->json) {
		print_json(outcome->json);
		if (outcome->status && outcome->text)
			fprintf(stderr, "iodeck: %s\n", outcome->text);
		return;
	}
	document = json_pack("{s:i,s:s*}", "status", outcome->status,
			     outcome->status ? "error" : "text", outcome->text);
	print_json(document);
	json_decref(document);
}

static int print_outcome(const struct outcome *outcome, bool json)
{
	if (json)
		print_outcome_json(outcome);
	else if (outcome->text && outcome->status && !outcome->json)
		fprintf(stderr, "iodeck: %s\n", outcome->text);
	else if (outcome->text)
		print_lines(stdout, outcome->text);
	if (fflush(stdout) || ferror(stdout)) {
		if (errno == EPIPE) /* head(1) has seen enough */
			return 1;
		perror("iodeck: standard output");
		return 1;
	}
	return outcome->status;
}

static int print_help(void)
{
	char *commands = command_help(CMD_SHELL);

	if (!commands)
		return 1;
	printf("%s%s%s%s", usage, help_head, commands, help_tail);
	free(commands);
	return 0;
}

static int print_command_help(const struct command *command)
{
	char *text = command_usage(command, true);

	if (!text)
		return 1;
	printf("usage: iodeck %s\nSee %s.\n", text, command->page);
	free(text);
	return 0;
}

/* ---- the console
 * ------------------------------------------------------------------ */

/* Nothing in it that the prompt would take for more than a letter? */
static bool is_plain(const char *word)
{
	return *word && !strpbrk(word, " \t\n'\"\\");
}

/* The words as one line for the prompt, those in quotes that need them. */
static char *line_of(int argc, char *const argv[])
{
	size_t len = 1;
	char *line, *p;
	const char *s;
	int i;

	for (i = 0; i < argc; i++)
		len += 4 * strlen(argv[i]) + 4;
	p = line = malloc(len);
	for (i = 0; line && i < argc; i++) {
		if (i)
			*p++ = ' ';
		if (is_plain(argv[i])) {
			p = stpcpy(p, argv[i]);
			continue;
		}
		*p++ = '\'';
		for (s = argv[i]; *s; s++) {
			if (*s == '\'') {
				memcpy(p, "'\\''", 4);
				p += 4;
			} else {
				*p++ = *s;
			}
		}
		*p++ = '\'';
	}
	if (line)
		*p = '\0';
	return line;
}

/* Where to find again what was seen. */
static void say_session(const struct deck *deck)
{
	struct deck_status status;

	deck_status(deck, &status);
	if (status.link != LINK_REPLAY && status.session_path[0])
		printf("Recorded. To see it again:\n  iodeck replay %s\n",
		       status.session_path);
}

/* begun: what `start` gave; both NULL without a command. */
static int console(struct deck *deck, const char *start,
		   const struct outcome *begun, bool guide)
{
	const char *charset = deck_option(deck, "charset");
	struct tui_opts opts = {
		.charset = strcmp(charset, "auto") != 0 ? charset : NULL,
		.start = start,
		.begun = begun,
		.guide = guide,
		.tty_fd = -1,
	};
	struct err err = { 0 };

	/* Without a cluster the console opens all the same and says so. */
	if (!start)
		deck_attach(deck, NULL);
	if (!tui_run(deck, &opts, &err)) {
		say_session(deck);
		return 0;
	}
	fprintf(stderr, "iodeck: %s\n", err.text);
	return 1;
}

/* What is refused is said where it was typed, not on a screen. */
static int console_command(struct deck *deck, const struct command *command,
			   int argc, char *argv[])
{
	struct outcome begun = { 0 };
	char *line;
	int r;

	/* At the prompt it is called open. */
	if (!strcmp(command->name, "replay"))
		argv[0] = (char *)"open";
	line = line_of(argc, argv);
	if (!line)
		return 1;
	deck_do(deck, line, &begun);
	r = begun.status && !begun.pending
		    ? print_outcome(&begun, false)
		    : console(deck, line, &begun,
			      !strcmp(command->name, "demo"));
	outcome_free(&begun);
	free(line);
	return r;
}

/* ---- one command
 * -------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* These show themselves on a terminal. */
static bool wants_console(const struct args *a, const struct command *command,
			  int argc, char *const argv[])
{
	static const char *const names[] = { "run", "demo", "resume", "replay",
					     NULL };

	return is_one_of(command->name, names) && !a->json &&
	       isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	       !command_arg(command, argc, argv, "headless") &&
	       !command_arg(command, argc, argv, "plan");
}

static int run_command(struct deck *deck, const struct args *a,
		       const struct command *command, int used)
{
	static const char *const runs[] = { "run", "demo", "resume", NULL };
	struct outcome outcome;
	int r;

	if (wants_console(a, command, a->argc - used, a->argv + used))
		return console_command(deck, command, a->argc, a->argv);
	/* Without a terminal a replay is what it comes to. */
	if (!strcmp(command->name, "replay"))
		a->argv[0] = (char *)"show";
	deck_do_wait(deck, a->argc, a->argv, -1, &outcome);
	/* A run that has begun is waited for. */
	if (!outcome.status && is_one_of(command->name, runs) &&
	    !strcmp(outcome.view, "screen:run"))
		headless_run(deck, !a->json && isatty(STDERR_FILENO), &outcome);
	r = print_outcome(&outcome, a->json);
	outcome_free(&outcome);
	return r;
}

static int sets_apply(struct deck *deck, const struct args *a)
{
	char name[64];
	const char *value;
	struct err err;
	int i;

	for (i = 0; i < a->sets; i++) {
		value = strchr(a->set[i], '=');
		if (!value || (size_t)(value - a->set[i]) >= sizeof(name))
			return fail("--set: expected NAME=VALUE", a->set[i]);
		snprintf(name, sizeof(name), "%.*s", (int)(value - a->set[i]),
			 a->set[i]);
		if (deck_option_set(deck, name, value + 1, &err)) {
			fprintf(stderr, "iodeck: --set %s\n", err.text);
			return 2;
		}
	}
	return 0;
}

static int with_deck(const struct args *a, const struct command *command,
		     int used)
{
	char *typed = line_of(a->argc, a->argv);
	struct deck_opts opts = { .config_path = a->config, .command = typed };
	struct deck *deck = NULL;
	struct err err;
	int r;

	if (deck_open(&opts, &deck, &err)) {
		fprintf(stderr, "iodeck: %s\n", err.text);
		free(typed);
		return 2;
	}
	r = sets_apply(deck, a);
	if (!r)
		r = command ? run_command(deck, a, command, used)
			    : console(deck, NULL, NULL, false);
	deck_close(deck);
	free(typed);
	return r;
}

/* The words name no command: a group of them, or nothing. */
static int no_command(const struct args *a)
{
	char *group = command_group_help(a->argc, a->argv, CMD_SHELL);
	struct err err;

	if (a->help && group) {
		printf("%s\nEach explains itself with --help.\n", group);
		free(group);
		return 0;
	}
	free(group);
	command_unknown(a->argc, a->argv, CMD_SHELL, &err);
	fprintf(stderr, "iodeck: %s\n", err.text);
	return 2;
}

int main(int argc, char *argv[])
{
	const struct command *command = NULL;
	struct args a;
	int used = 0, r;

	setlocale(LC_ALL, "");
	signal(SIGPIPE, SIG_IGN);
	r = parse(&a, argc, argv);
	if (r)
		return r;
	if (a.version) {
		printf("iodeck %s\n", IODECK_VERSION);
		return 0;
	}
	if (a.argc)
		command = command_find(a.argc, a.argv, &used);
	if (a.argc && (!command || !(command->where & CMD_SHELL)))
		return no_command(&a);
	if (a.help)
		return command ? print_command_help(command) : print_help();
	if (!command && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return fail("no command, and no terminal for the console", "");
	return with_deck(&a, command, used);
}
