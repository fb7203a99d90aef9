/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/complete.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/analysis/analysis.h"
#include "backend/command_impl.h"
#include "backend/paths.h"
#include "backend/run/workload.h"

struct words {
	char **word;
	size_t count;
	const char *prefix; /* what is typed of the last word */
};

static void add(struct words *w, const char *before, const char *word,
		const char *behind)
{
	char **more, *text;
	size_t i;

	if (asprintf(&text, "%s%s%s", before, word, behind) < 0)
		return;
	if (strncmp(text, w->prefix, strlen(w->prefix)) != 0) {
		free(text);
		return;
	}
	for (i = 0; i < w->count; i++)
		if (!strcmp(w->word[i], text)) {
			free(text);
			return;
		}
	more = realloc(w->word, (w->count + 2) * sizeof(*more));
	if (!more) {
		free(text);
		return;
	}
	w->word = more;
	more[w->count++] = text;
	more[w->count] = NULL;
}

/* ---- values by kind --------------------------------------------------------
 */

/* Names in the configured cluster, for when the model has none. */
static void add_configured(struct words *w, const char *before,
			   const struct deck *deck, const char *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(deck->cluster, list), i, item) {
		add(w, before, json_string_value(json_object_get(item, "name")),
		    "");
	}
}

static void add_vdisks(struct words *w, const char *before, struct deck *deck)
{
	size_t i;

	for (i = 0; i < deck->model->vdisks; i++)
		add(w, before, deck->model->vdisk[i].name, "");
	add_configured(w, before, deck, "vdisks");
}

static void add_policies(struct words *w, const char *before, struct deck *deck)
{
	size_t i;

	for (i = 0; i < deck->model->policies; i++)
		add(w, before, deck->model->policy[i].name, "");
	add_configured(w, before, deck, "policies");
}

static void add_domains(struct words *w, const char *before, struct deck *deck)
{
	size_t i;

	for (i = 0; i < deck->model->domains; i++)
		add(w, before, deck->model->domain[i].name, "");
	add_configured(w, before, deck, "domains");
}

static void add_drives(struct words *w, const char *before, struct deck *deck)
{
	const json_t *domain, *drive;
	char name[2 * MODEL_NAME + 2];
	size_t i, k;

	for (i = 0; i < deck->model->domains; i++)
		for (k = 0; k < deck->model->domain[i].drives; k++) {
			snprintf(name, sizeof(name), "%s:%s",
				 deck->model->domain[i].name,
				 deck->model->domain[i].drive[k].name);
			add(w, before, name, "");
		}
	json_array_foreach(json_object_get(deck->cluster, "domains"), i,
			   domain) {
		json_array_foreach(json_object_get(domain, "drives"), k,
				   drive) {
			snprintf(name, sizeof(name), "%s:%s",
				 json_string_value(
					 json_object_get(domain, "name")),
				 json_string_value(
					 json_object_get(drive, "name")));
			add(w, before, name, "");
		}
	}
}

static void add_workloads(struct words *w, const char *before,
			  struct deck *deck)
{
	struct workload_library library;
	const json_t *workload;
	size_t i;

	(void)deck;
	if (workload_library_load(&library, NULL))
		return;
	json_array_foreach(library.list, i, workload) {
		add(w, before,
		    json_string_value(json_object_get(workload, "name")), "");
	}
	workload_library_free(&library);
}

static void add_suites(struct words *w, const char *before, struct deck *deck)
{
	char **names;
	size_t i;

	if (path_list("suites", &names))
		return;
	for (i = 0; names[i]; i++)
		add(w, before, names[i], "");
	path_list_free(names);
	/* a workload's name stands for a curve of it */
	add_workloads(w, before, deck);
}

static void add_options(struct words *w, const char *before, struct deck *deck)
{
	const struct option *o;

	(void)deck;
	for (o = option_table; o->name; o++)
		add(w, before, o->name, "=");
}

/* FILE.csv#SERIES: the names in the file. */
static bool add_csv_series(struct words *w, const char *before,
			   const char *typed)
{
	const char *hash = strchr(typed, '#');
	char path[PATH_MAX], head[PATH_MAX], **names;

	if (!hash)
		return false;
	snprintf(head, sizeof(head), "%s%.*s", before, (int)(hash - typed + 1),
		 typed);
	snprintf(path, sizeof(path), "%.*s", (int)(hash - typed), typed);
	if (curve_csv_series(path, &names, NULL))
		return true;
	for (size_t i = 0; names[i]; i++) {
		add(w, head, names[i], "");
		free(names[i]);
	}
	free(names);
	return true;
}

static void add_files(struct words *w, const char *before, struct deck *deck)
{
	const char *typed = w->prefix + strlen(before), *slash;
	char dir[PATH_MAX], path[PATH_MAX + 300], shown[PATH_MAX + 300];
	struct dirent *entry;
	struct stat st;
	DIR *d;

	(void)deck;
	if (add_csv_series(w, before, typed))
		return;
	slash = strrchr(typed, '/');
	snprintf(shown, sizeof(shown), "%.*s",
		 slash ? (int)(slash - typed + 1) : 0, typed);
	if (path_expand(*shown ? shown : ".", dir, sizeof(dir)))
		return;
	d = opendir(dir);
	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		snprintf(path + strlen(path), 1, "%s", "");
		{
			char word[sizeof(path) * 2];

			snprintf(word, sizeof(word), "%s%s", shown,
				 entry->d_name);
			add(w, before, word,
			    !stat(path, &st) && S_ISDIR(st.st_mode) ? "/" : "");
		}
	}
	if (d)
		closedir(d);
}

static const struct {
	const char *kind;
	void (*add)(struct words *w, const char *before, struct deck *deck);
} kinds[] = {
	{ "vdisk", add_vdisks },   { "policy", add_policies },
	{ "domain", add_domains }, { "drive", add_drives },
	{ "suite", add_suites },   { "workload", add_workloads },
	{ "option", add_options }, { "file", add_files },
};

static void add_values(struct words *w, const char *before, const char *values)
{
	char word[64];
	size_t n;

	for (;; values += n + 1) {
		n = strcspn(values, "|");
		snprintf(word, sizeof(word), "%.*s", (int)n, values);
		add(w, before, word, "");
		if (!values[n])
			return;
	}
}

static void add_argument(struct words *w, const char *before,
			 const struct command_arg *arg, struct deck *deck)
{
	size_t i;

	if (arg->values) {
		add_values(w, before, arg->values);
		return;
	}
	for (i = 0; i < array_len(kinds); i++)
		if (!strcmp(kinds[i].kind, arg->kind))
			kinds[i].add(w, before, deck);
}

/* ---- where in the line ------------------------------------------------------
 */

/* The next words of names that begin as argv does. */
static void add_names(struct words *w, int argc, char *const argv[],
		      unsigned where)
{
	const struct command *c;
	const char *at;
	char word[32];
	int i;

	for (c = command_table; c->name; c++) {
		if (!(c->where & where))
			continue;
		at = c->name;
		for (i = 0; at && i < argc; i++) {
			size_t n = strcspn(at, " ");

			if (strlen(argv[i]) != n ||
			    strncmp(at, argv[i], n) != 0)
				at = NULL;
			else
				at += n + (at[n] == ' ');
		}
		if (!at || !*at)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " "), at);
		add(w, "", word, "");
	}
}

static bool is_flag(const struct command_arg *arg)
{
	return !strcmp(arg->kind, "flag");
}

static void add_arguments(struct words *w, const struct command *command,
			  int argc, char *const argv[], struct deck *deck)
{
	const char *equals = strchr(w->prefix, '=');
	const struct command_arg *a;
	char before[64];
	bool offered = false;

	for (a = command->arg; a && a->name; a++) {
		snprintf(before, sizeof(before), "%s=", a->name);
		if (a->positional) {
			if (!offered &&
			    (a->repeat ||
			     !command_arg(command, argc, argv, a->name))) {
				offered = true;
				add_argument(w, "", a, deck);
			}
		} else if (is_flag(a)) {
			if (!command_arg(command, argc, argv, a->name))
				add(w, "--", a->name, "");
		} else if (equals &&
			   !strncmp(w->prefix, before, strlen(before))) {
			add_argument(w, before, a, deck);
		} else if (a->repeat ||
			   !command_arg(command, argc, argv, a->name)) {
			add(w, "", before, "");
		}
	}
}

static char **complete(struct deck *deck, const char *line, unsigned where)
{
	size_t len = strlen(line);
	/* a blank behind a backslash goes on with its word */
	bool fresh = !len || (line[len - 1] == ' ' &&
			      (len < 2 || line[len - 2] != '\\'));
	const struct command *command;
	struct words w = { 0 };
	char **argv;
	int argc, used, known;

	if (command_split(line, &argc, &argv, NULL))
		return NULL;
	known = fresh ? argc : argc - 1;
	w.prefix = fresh ? "" : argv[argc - 1];
	command = command_find(known, argv, &used);
	add_names(&w, known, argv, where);
	if (command && (command->where & where))
		add_arguments(&w, command, known - used, argv + used, deck);
	command_split_free(argv);
	return w.word;
}

char **complete_line(struct deck *deck, const char *line)
{
	return complete(deck, line, CMD_PROMPT);
}

/* "iodeck run sm": the program's name is the first word. */
char **complete_shell(struct deck *deck, const char *line)
{
	line += strcspn(line, " ");
	return complete(deck, line, CMD_SHELL);
}

/* ---- scripts ----------------------------------------------------------------
 */

static const char bash_script[] =
	"# bash completion for iodeck; made by `iodeck completion bash`\n"
	"_iodeck()\n"
	"{\n"
	"\tlocal IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT}\n"
	"\tlocal last=${line##* } cur=${COMP_WORDS[COMP_CWORD]} skip\n"
	"\tCOMPREPLY=($(iodeck completion words -- \"$line\" 2>/dev/null))\n"
	"\t# bash takes '=' and ':' for ends of words: give what is behind\n"
	"\tskip=${last%\"$cur\"}\n"
	"\tCOMPREPLY=(\"${COMPREPLY[@]#\"$skip\"}\")\n"
	"\tcase ${COMPREPLY[0]-} in\n"
	"\t*= | */) compopt -o nospace ;;\n"
	"\tesac\n"
	"}\n"
	"complete -F _iodeck iodeck\n";

static const char zsh_script[] =
	"#compdef iodeck\n"
	"# zsh completion for iodeck; made by `iodeck completion zsh`\n"
	"_iodeck()\n"
	"{\n"
	"\tlocal -a open whole\n"
	"\tlocal word line=\"${words[1,CURRENT]}\"\n"
	"\tfor word in ${(f)\"$(iodeck completion words -- \"$line\" "
	"2>/dev/null)\"}; do\n"
	"\t\tcase $word in\n"
	"\t\t*=|*/) open+=(\"$word\") ;;\n"
	"\t\t*) whole+=(\"$word\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tcompadd -S '' -- $open\n"
	"\tcompadd -- $whole\n"
	"}\n"
	"_iodeck \"$@\"\n";

char *complete_script(const char *shell)
{
	return strdup(!strcmp(shell, "zsh") ? zsh_script : bash_script);
}
