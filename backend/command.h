/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Everything you can do is a command. One table serves the prompt, key
 * bindings, the command line, scripts, completion, the shells' completion
 * files and the check of the man pages.
 */
#ifndef BACKEND_COMMAND_H
#define BACKEND_COMMAND_H

#include "backend/deck.h"

enum command_where {
	CMD_SHELL = 1,  /* iodeck NAME ... */
	CMD_PROMPT = 2, /* :NAME ... */
	CMD_ACTS = 4,   /* changes something: recorded as a `cmd` event */
};

struct command_arg {
	const char *name; /* "size" for size=V, "FILE" for a positional */
	const char *kind; /* "vdisk", "policy", "drive", "domain", "suite",
			     "workload", "file", "bytes", "rate", "seconds",
			     "number", "int", "steps", "flag", "word", "option":
			     completion and checks */
	bool required, positional, repeat;
	const char *values; /* "0|1|5|6", or NULL */
	const char *unset;  /* the default in words, or NULL */
	const char *help;   /* one sentence */
};

struct command {
	const char *name; /* "vdisk create" */
	unsigned where;
	const char *group; /* heading in help: "Cluster and vDisks" */
	const char *help;  /* one sentence */
	const char *page;  /* "iodeck(1)" */
	const struct command_arg *arg; /* ends with name NULL */
	int (*run)(struct deck *deck, const struct command *command, int argc,
		   char *const argv[], struct outcome *outcome);
};

/* In the order of help; ends with name NULL. */
extern const struct command command_table[];

/* The longest name that argv begins with; *used words. NULL none. */
const struct command *command_find(int argc, char *const argv[], int *used);
/*
 * argc and argv, here and below: the words behind the command's name.
 * The value of name=V, --name V, --name=V, or of a positional; NULL unset. A
 * flag's value is "".
 */
const char *command_arg(const struct command *command, int argc,
			char *const argv[], const char *name);
/* The nth value of an argument that may be repeated. */
const char *command_arg_nth(const struct command *command, int argc,
			    char *const argv[], const char *name, int nth);
/* Unknown, missing, repeated or bad arguments: status 2 with the usage. */
int command_check(const struct command *command, int argc, char *const argv[],
		  struct outcome *outcome);
/* "vdisk create NAME size=BYTES [policy=POLICY] ..."; the caller's to free(),
 * with_args: a line for each argument below. */
char *command_usage(const struct command *command, bool with_args);
/* All commands of a place, under their headings; the caller's to free(). */
char *command_help(unsigned where);
/* The commands whose names begin with these words and go on: what `vdisk
 * --help` lists; the caller's to free(). NULL: there are none. */
char *command_group_help(int argc, char *const argv[], unsigned where);
/* The sentence for words that are no command: the group when they begin one. */
void command_unknown(int argc, char *const argv[], unsigned where,
		     struct err *err);
/* Splits a prompt line by blanks, with quotes as in sh. command_split_free()
 * frees all. */
int command_split(const char *line, int *argc, char ***argv, struct err *err);
void command_split_free(char **argv);

#endif
