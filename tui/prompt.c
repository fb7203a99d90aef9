/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * readline through its callbacks. It never touches the terminal: input comes
 * from a queue, output goes nowhere, and redisplay copies its state. Pasted
 * text is inserted, not run: a line end in it becomes a blank.
 */
#include "tui/prompt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "tui/term.h"

#define QUEUE 256
#define HISTORY_MAX 1000

static struct {
	char **(*complete)(void *arg, const char *line);
	void *complete_arg;
	char history[512];
	struct ui *ui; /* while open */
	char queue[QUEUE];
	size_t head, tail;
	char *entered;
	bool ended, begun, pasting;
	FILE *nowhere;
} prompt;

/* ---- what readline calls ------------------------------------------------- */

static int on_getc(FILE *stream)
{
	(void)stream;
	return prompt.head < prompt.tail
		       ? (unsigned char)prompt.queue[prompt.head++]
		       : EOF;
}

static int on_input(void)
{
	return prompt.head < prompt.tail;
}

static void list_clear(struct ui *ui)
{
	for (int i = 0; i < ui->prompt.lists; i++)
		free(ui->prompt.list[i]);
	ui->prompt.lists = ui->prompt.lists_all = 0;
}

static void on_redisplay(void)
{
	struct prompt_view *p = &prompt.ui->prompt;

	/* While it searches, readline's own prompt says for what. */
	snprintf(p->label, sizeof(p->label), "%s",
		 rl_display_prompt ? rl_display_prompt : ":");
	snprintf(p->line, sizeof(p->line), "%s", rl_line_buffer);
	p->cursor = rl_point < (int)sizeof(p->line) ? rl_point
						    : (int)sizeof(p->line) - 1;
}

static void on_line(char *line)
{
	prompt.ended = true;
	prompt.entered = line; /* NULL: ^D on an empty line */
	rl_callback_handler_remove();
}

static void on_matches(char **matches, int count, int longest)
{
	struct prompt_view *p = &prompt.ui->prompt;

	(void)longest;
	list_clear(prompt.ui);
	p->lists_all = count;
	for (int i = 1; i <= count && p->lists < UI_LIST_MAX; i++) {
		p->list[p->lists] = strdup(matches[i]);
		p->lists += p->list[p->lists] != NULL;
	}
}

/* The word as it has to be typed: blanks and quotes behind a backslash. */
static char *word_escaped(const char *word)
{
	char *text = malloc(strlen(word) * 2 + 1), *p = text;

	for (; text && *word; word++) {
		if (strchr(" \t'\"\\", *word))
			*p++ = '\\';
		*p++ = *word;
	}
	if (text)
		*p = '\0';
	return text;
}

static int on_quoted(char *line, int at)
{
	return at > 0 && line[at - 1] == '\\';
}

/* readline wants the common beginning first, then the words. */
static char **words_matches(char **words, const char *text)
{
	size_t n = 0, len = strlen(text), common;
	char **matches, *word;

	while (words[n])
		n++;
	matches = calloc(n + 2, sizeof(*matches));
	if (!matches)
		return NULL;
	n = 0;
	for (size_t i = 0; words[i]; i++) {
		word = word_escaped(words[i]);
		if (word && !strncmp(word, text, len))
			matches[++n] = word;
		else
			free(word);
	}
	if (!n) {
		free(matches);
		return NULL;
	}
	common = strlen(matches[1]);
	for (size_t i = 2; i <= n; i++)
		while (strncmp(matches[1], matches[i], common) != 0)
			common--;
	matches[0] = strndup(matches[1], common);
	if (n == 1) {
		free(matches[1]);
		matches[1] = NULL;
	}
	return matches;
}

static char **on_complete(const char *text, int start, int end)
{
	char before[UI_LINE], **words, **matches;

	(void)start;
	rl_attempted_completion_over = 1;
	rl_completion_suppress_append = 0;
	snprintf(before, sizeof(before), "%.*s", end, rl_line_buffer);
	words = prompt.complete ? prompt.complete(prompt.complete_arg, before)
				: NULL;
	if (!words)
		return NULL;
	matches = words_matches(words, text);
	/* "size=" waits for its value, a blank would end the word. */
	if (matches && matches[0][0] &&
	    matches[0][strlen(matches[0]) - 1] == '=')
		rl_completion_suppress_append = 1;
	for (size_t i = 0; words[i]; i++)
		free(words[i]);
	free(words);
	return matches;
}

/* ---- setting up ---------------------------------------------------------- */

static void readline_begin(void)
{
	if (prompt.begun)
		return;
	prompt.begun = true;
	prompt.nowhere = fopen("/dev/null", "r+e");
	rl_readline_name = "iodeck";
	rl_catch_signals = 0;
	rl_catch_sigwinch = 0;
	rl_change_environment = 0;
	rl_prep_term_function = NULL;
	rl_deprep_term_function = NULL;
	rl_outstream = rl_instream = prompt.nowhere;
	rl_getc_function = on_getc;
	rl_input_available_hook = on_input;
	rl_redisplay_function = on_redisplay;
	rl_attempted_completion_function = on_complete;
	rl_completion_display_matches_hook = on_matches;
	rl_completer_word_break_characters = " \t";
	rl_completer_quote_characters = "'\"";
	rl_char_is_quoted_p = on_quoted;
	using_history();
	stifle_history(HISTORY_MAX);
	if (prompt.history[0])
		read_history(prompt.history);
}

void prompt_init(char **(*complete)(void *, const char *), void *arg,
		 const char *history)
{
	prompt.complete = complete;
	prompt.complete_arg = arg;
	snprintf(prompt.history, sizeof(prompt.history), "%s",
		 history ? history : "");
}

void prompt_fini(void)
{
	mode_t old;

	if (prompt.begun && prompt.history[0]) {
		old = umask(077);
		write_history(prompt.history);
		umask(old);
		chmod(prompt.history, 0600);
	}
	if (prompt.begun)
		clear_history();
	if (prompt.nowhere)
		fclose(prompt.nowhere);
	memset(&prompt, 0, sizeof(prompt));
}

static bool folder_make(char *path)
{
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			if (mkdir(path, 0700) && errno != EEXIST)
				return false;
			*p = '/';
		}
	return true;
}

bool prompt_history_path(char *buf, size_t len)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(buf, len, "%s/iodeck/history", state);
	else if (home && home[0] == '/')
		n = snprintf(buf, len, "%s/.local/state/iodeck/history", home);
	else
		return false;
	return n > 0 && (size_t)n < len && folder_make(buf);
}

/* ---- open, keys ---------------------------------------------------------- */

void prompt_open(struct ui *ui, const char *text)
{
	readline_begin();
	prompt.ui = ui;
	prompt.head = prompt.tail = 0;
	prompt.ended = prompt.pasting = false;
	ui->prompt.open = true;
	rl_callback_handler_install(":", on_line);
	rl_variable_bind("enable-bracketed-paste", "off");
	rl_variable_bind("bell-style", "none");
	rl_variable_bind("completion-query-items", "0");
	rl_insert_text(text);
	on_redisplay();
}

/* A key as the bytes a terminal would send, for readline's bindings. */
static size_t key_bytes(int key, char *out)
{
	static const struct {
		int key;
		const char *bytes;
	} special[] = {
		{ K_UP, "\033[A" },
		{ K_DOWN, "\033[B" },
		{ K_RIGHT, "\033[C" },
		{ K_LEFT, "\033[D" },
		{ K_HOME, "\033[H" },
		{ K_END, "\033[F" },
		{ K_DELETE, "\033[3~" },
		{ K_PGUP, "" },
		{ K_PGDN, "" },
		{ K_BTAB, "" },
		{ K_F1, "" },
		{ K_MOUSE, "" },
	};

	for (size_t i = 0; i < array_len(special); i++)
		if (special[i].key == key) {
			memcpy(out, special[i].bytes, strlen(special[i].bytes));
			return strlen(special[i].bytes);
		}
	return key < 0x110000 ? text_put(out, (unsigned)key) : 0;
}

static int leave(struct ui *ui)
{
	rl_callback_sigcleanup();
	rl_free_line_state();
	rl_replace_line("", 1);
	rl_callback_handler_remove();
	list_clear(ui);
	ui->prompt.open = false;
	return -ECANCELED;
}

static int entered(struct ui *ui, char *line)
{
	list_clear(ui);
	ui->prompt.open = false;
	if (!prompt.entered)
		return -ECANCELED;
	snprintf(line, UI_LINE, "%s", prompt.entered);
	if (prompt.entered[strspn(prompt.entered, " \t")])
		add_history(prompt.entered);
	free(prompt.entered);
	prompt.entered = NULL;
	return line[0] ? 1 : -ECANCELED;
}

static void paste(int key)
{
	char text[8] = { 0 };

	if (key == '\r' || key == '\n' || key == '\t')
		key = ' ';
	if (key < 32 || key == 127 || key >= 0x110000)
		return;
	text_put(text, (unsigned)key);
	rl_insert_text(text);
	on_redisplay();
}

int prompt_key(struct ui *ui, int key, char *line)
{
	if (key == K_PASTE || key == K_PASTE_END) {
		prompt.pasting = key == K_PASTE;
		return 0;
	}
	if (prompt.pasting) {
		paste(key);
		return 0;
	}
	if (key == K_CTRL('c') || key == K_ESC)
		return leave(ui);
	if (key == K_BACKSPACE && !rl_end &&
	    !RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH))
		return leave(ui);
	if (key != K_TAB)
		list_clear(ui);
	prompt.head = 0;
	prompt.tail = key_bytes(key, prompt.queue);
	while (prompt.head < prompt.tail && !prompt.ended)
		rl_callback_read_char();
	return prompt.ended ? entered(ui, line) : 0;
}
