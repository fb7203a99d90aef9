/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A small mdoc reader. It knows sections, paragraphs, lists, displays and the
 * usual words of mdoc; of an unknown macro the arguments are shown as they are,
 * so nothing of a page is lost.
 *
 * Output is filled word by word. A word carries its style; whether a blank
 * goes before it is decided by the macro (Ns, punctuation, Pf).
 */
#include "tui/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/chart/canvas.h"
#include "tui/keys.h"

#define WORDS 64
#define DEPTH 8
#define COLUMNS 12

struct list {
	char kind[12]; /* tag, bullet, enum, column, item */
	int indent, number;
	int stop[COLUMNS]; /* of a column list, from its indent */
	size_t stops;
	bool compact;
};

struct out {
	char *text;
	size_t len, cap;
	bool failed;
	int width, indent, column, pending_tag;
	bool literal, no_space, blank; /* blank: a line stands empty above */
	char style;
	struct list list[DEPTH];
	int depth;
	char name[64]; /* of .Nm */
	bool synopsis; /* each .Nm begins a line there */
};

static void put(struct out *o, const char *s, size_t n)
{
	if (o->len + n + 1 > o->cap) {
		size_t cap = (o->len + n + 1) * 2;
		char *more = realloc(o->text, cap);

		if (!more) {
			o->failed = true;
			return;
		}
		o->text = more;
		o->cap = cap;
	}
	memcpy(o->text + o->len, s, n);
	o->len += n;
	o->text[o->len] = '\0';
}

static void style(struct out *o, char s)
{
	if (o->style != s)
		put(o, &s, 1);
	o->style = s;
}

static void line_end(struct out *o)
{
	if (o->column > 0 || o->pending_tag) {
		style(o, PAGE_PLAIN);
		put(o, "\n", 1);
		o->blank = false;
	}
	o->column = 0;
	o->pending_tag = 0;
	o->no_space = false;
}

static void paragraph(struct out *o)
{
	line_end(o);
	if (!o->blank)
		put(o, "\n", 1);
	o->blank = true;
}

static void indent_to(struct out *o, int column)
{
	while (o->column < column) {
		put(o, " ", 1);
		o->column++;
	}
}

static void word(struct out *o, const char *text, char how)
{
	int w = text_columns(text);

	if (!*text)
		return;
	if (o->column > o->indent && !o->no_space) {
		if (o->column + 1 + w > o->width)
			line_end(o);
		else
			style(o, PAGE_PLAIN), put(o, " ", 1), o->column++;
	} else if (o->column + w > o->width && o->column > o->indent && w > 1) {
		line_end(o);
	}
	if (o->column < o->indent)
		indent_to(o, o->indent);
	style(o, how);
	put(o, text, strlen(text));
	style(o, PAGE_PLAIN);
	o->column += w;
	o->blank = false;
	o->no_space = false;
}

/* Resolves the escapes that pages use. */
static void unescape(const char *in, char *out, size_t len)
{
	static const struct {
		const char *from, *to;
	} known[] = {
		{ "\\(em", "\xe2\x80\x94" },
		{ "\\(en", "\xe2\x80\x93" },
		{ "\\(bu", "\xe2\x80\xa2" },
		{ "\\(aq", "'" },
		{ "\\(dq", "\"" },
		{ "\\(mu", "\xc3\x97" },
		{ "\\(+-", "\xc2\xb1" },
		{ "\\(<=", "\xe2\x89\xa4" },
		{ "\\(>=", "\xe2\x89\xa5" },
		{ "\\(ti", "~" },
		{ "\\(ha", "^" },
		{ "\\(rs", "\\" },
		{ "\\-", "-" },
		{ "\\&", "" },
		{ "\\e", "\\" },
		{ "\\~", " " },
		{ "\\ ", " " },
		{ "\\(->", "\xe2\x86\x92" },
		{ "\\fB", "" },
		{ "\\fR", "" },
		{ "\\fI", "" },
		{ "\\fP", "" },
	};
	size_t n = 0;

	while (*in && n + 4 < len) {
		size_t i, took = 0;

		for (i = 0; *in == '\\' && i < array_len(known); i++) {
			took = strlen(known[i].from);
			if (!strncmp(in, known[i].from, took))
				break;
			took = 0;
		}
		if (took) {
			memcpy(out + n, known[i].to, strlen(known[i].to));
			n += strlen(known[i].to);
			in += took;
		} else {
			out[n++] = *in++;
		}
	}
	out[n] = '\0';
}

/* Splits a macro line: blanks, "quoted words". */
static int split(char *line, char *w[WORDS])
{
	int n = 0;

	while (*line && n < WORDS) {
		line += strspn(line, " \t");
		if (!*line)
			break;
		if (*line == '"') {
			w[n++] = ++line;
			line += strcspn(line, "\"");
		} else {
			w[n++] = line;
			line += strcspn(line, " \t");
		}
		if (*line)
			*line++ = '\0';
	}
	return n;
}

static bool is_punct(const char *s)
{
	return s[0] && !s[1] && strchr(".,:;)]?!", s[0]);
}

static void emit(struct out *o, const char *raw, char how)
{
	char text[512];

	unescape(raw, text, sizeof(text));
	if (is_punct(text))
		o->no_space = true, how = PAGE_PLAIN;
	word(o, text, how);
	if (!strcmp(text, "(") || !strcmp(text, "["))
		o->no_space = true;
}

/* ---- macros inside a line ------------------------------------------------ */

static const struct {
	const char *macro, *before, *after;
	char how;
} inline_macro[] = {
	{ "Fl", "-", "", PAGE_BOLD },  { "Cm", "", "", PAGE_BOLD },
	{ "Ic", "", "", PAGE_BOLD },   { "Sy", "", "", PAGE_BOLD },
	{ "Nm", "", "", PAGE_BOLD },   { "Ar", "", "", PAGE_UNDER },
	{ "Pa", "", "", PAGE_UNDER },  { "Em", "", "", PAGE_UNDER },
	{ "Va", "", "", PAGE_UNDER },  { "Ev", "", "", PAGE_BOLD },
	{ "Li", "", "", PAGE_BOLD },   { "Ql", "", "", PAGE_BOLD },
	{ "Dv", "", "", PAGE_PLAIN },  { "Er", "", "", PAGE_PLAIN },
	{ "An", "", "", PAGE_PLAIN },  { "Lk", "", "", PAGE_UNDER },
	{ "No", "", "", PAGE_PLAIN },  { "Vt", "", "", PAGE_UNDER },
	{ "Fn", "", "()", PAGE_BOLD }, { "Mt", "", "", PAGE_UNDER },
	{ "St", "", "", PAGE_PLAIN },  { "Sx", "", "", PAGE_BOLD },
};

static const struct {
	const char *macro, *open, *close;
} quote_macro[] = {
	{ "Op", "[", "]" },   { "Dq", "\xe2\x80\x9c", "\xe2\x80\x9d" },
	{ "Qq", "\"", "\"" }, { "Sq", "\xe2\x80\x98", "\xe2\x80\x99" },
	{ "Pq", "(", ")" },   { "Bq", "[", "]" },
	{ "Aq", "<", ">" },   { "Brq", "{", "}" },
};

static int find_inline(const char *w)
{
	for (size_t i = 0; i < array_len(inline_macro); i++)
		if (!strcmp(inline_macro[i].macro, w))
			return (int)i;
	return -1;
}

static int find_quote(const char *w)
{
	for (size_t i = 0; i < array_len(quote_macro); i++)
		if (!strcmp(quote_macro[i].macro, w))
			return (int)i;
	return -1;
}

static bool is_macro(const char *w)
{
	return find_inline(w) >= 0 || find_quote(w) >= 0 || !strcmp(w, "Ns") ||
	       !strcmp(w, "Pf") || !strcmp(w, "Xr") || !strcmp(w, "Xc") ||
	       !strcmp(w, "Xo") || !strcmp(w, "Ap");
}

static void run_words(struct out *o, char **w, int n);

static void run_quote(struct out *o, int q, char **w, int n)
{
	int end = n;

	while (end > 0 && is_punct(w[end - 1]))
		end--;
	word(o, quote_macro[q].open, PAGE_PLAIN);
	o->no_space = true;
	run_words(o, w, end);
	o->no_space = true;
	word(o, quote_macro[q].close, PAGE_PLAIN);
	run_words(o, w + end, n - end);
}

/* One inline macro with its arguments; returns words used. */
static int run_inline(struct out *o, int m, char **w, int n)
{
	int i = 0;
	char text[600];

	if (!strcmp(inline_macro[m].macro, "Nm") &&
	    (n == 0 || is_macro(w[0]) || is_punct(w[0]))) {
		word(o, o->name, PAGE_BOLD);
		return 0;
	}
	if (!strcmp(inline_macro[m].macro, "Ar") &&
	    (n == 0 || is_macro(w[0]) || is_punct(w[0]))) {
		word(o, "file ...", PAGE_UNDER);
		return 0;
	}
	for (; i < n && !is_macro(w[i]); i++) {
		bool bar = !strcmp(w[i], "|");

		if (is_punct(w[i]) || bar) {
			emit(o, w[i], PAGE_PLAIN);
			continue;
		}
		snprintf(text, sizeof(text), "%s%s%s", inline_macro[m].before,
			 w[i], inline_macro[m].after);
		emit(o, text, inline_macro[m].how);
	}
	if (i == 0 && *inline_macro[m].before) /* .Fl Fl is "--" */
		emit(o, inline_macro[m].before, inline_macro[m].how),
			o->no_space = true;
	return i;
}

static int run_other(struct out *o, char **w, int n)
{
	char text[160];

	if (!strcmp(w[0], "Ns") || !strcmp(w[0], "Ap")) {
		o->no_space = true;
		if (w[0][0] == 'A')
			word(o, "'", PAGE_PLAIN), o->no_space = true;
		return 1;
	}
	if (!strcmp(w[0], "Pf") && n > 1) {
		emit(o, w[1], PAGE_PLAIN);
		o->no_space = true;
		return 2;
	}
	if (!strcmp(w[0], "Xr") && n > 1) {
		bool section = n > 2 && !is_punct(w[2]);

		snprintf(text, sizeof(text), section ? "%s(%s)" : "%s", w[1],
			 section ? w[2] : "");
		word(o, text, PAGE_BOLD);
		return section ? 3 : 2;
	}
	if (!strcmp(w[0], "Xo") || !strcmp(w[0], "Xc"))
		return 1;
	emit(o, w[0], PAGE_PLAIN);
	return 1;
}

static void run_words(struct out *o, char **w, int n)
{
	for (int i = 0; i < n;) {
		int m = find_inline(w[i]), q = find_quote(w[i]);

		if (q >= 0) {
			run_quote(o, q, w + i + 1, n - i - 1);
			return;
		}
		i += m >= 0 ? 1 + run_inline(o, m, w + i + 1, n - i - 1)
			    : run_other(o, w + i, n - i);
	}
}

/* ---- blocks -------------------------------------------------------------- */

static void heading(struct out *o, char **w, int n, int indent)
{
	paragraph(o);
	o->indent = indent;
	o->depth = 0;
	o->synopsis = n == 1 && !strcmp(w[0], "SYNOPSIS");
	for (int i = 0; i < n; i++)
		emit(o, w[i], PAGE_BOLD);
	line_end(o);
	o->blank = true; /* text follows at once */
	o->indent = 4;
}

/* The next column begins behind what is as wide as `sample`. */
static void column_stop(struct list *l, const char *sample)
{
	int from = l->stops ? l->stop[l->stops - 1] : 0;

	if (l->stops < COLUMNS)
		l->stop[l->stops++] = from + text_columns(sample) + 2;
}

/* A row: cells stand between Ta; what is too wide pushes the rest on, and the
 * last cell goes on below itself. */
static void column_row(struct out *o, const struct list *l, char **w, int n)
{
	const int indent = o->indent;
	size_t cell = 0;
	int from = 0;

	for (int i = 0; i <= n; i++) {
		if (i < n && strcmp(w[i], "Ta") != 0)
			continue;
		if (i == n && cell)
			o->indent = l->indent + l->stop[cell - 1];
		run_words(o, w + from, i - from);
		from = i + 1;
		if (i < n && cell < l->stops) {
			indent_to(o, l->indent + l->stop[cell++]);
			o->no_space = true;
		}
	}
	line_end(o);
	o->indent = indent;
}

static void list_begin(struct out *o, char **w, int n)
{
	struct list *l;

	if (o->depth == DEPTH)
		return;
	l = &o->list[o->depth++];
	*l = (struct list) { .indent = o->indent };
	for (int i = 0; i < n; i++)
		if (!strcmp(w[i], "-compact"))
			l->compact = true;
		else if (w[i][0] == '-' && !l->kind[0])
			snprintf(l->kind, sizeof(l->kind), "%.11s", w[i] + 1);
		else if (!strcmp(l->kind, "column"))
			column_stop(l, w[i]);
	line_end(o);
}

static void list_end(struct out *o)
{
	line_end(o);
	if (o->depth)
		o->indent = o->list[--o->depth].indent;
}

static void list_item(struct out *o, char **w, int n)
{
	struct list *l = o->depth ? &o->list[o->depth - 1] : NULL;
	char mark[16];

	if (!l)
		return;
	if (l->compact || !strcmp(l->kind, "column"))
		line_end(o);
	else
		paragraph(o);
	o->indent = l->indent;
	if (!strcmp(l->kind, "tag") || !strcmp(l->kind, "hang") ||
	    !strcmp(l->kind, "diag") || !strcmp(l->kind, "ohang")) {
		run_words(o, w, n);
		if (o->column > l->indent + 7)
			line_end(o);
		else
			o->no_space = true;
		o->indent = l->indent + 8;
		if (o->column)
			indent_to(o, o->indent);
		o->pending_tag = o->column > 0;
		return;
	}
	if (!strcmp(l->kind, "column")) {
		column_row(o, l, w, n);
		return;
	}
	if (!strcmp(l->kind, "enum"))
		snprintf(mark, sizeof(mark), "%d.", ++l->number);
	else
		snprintf(mark, sizeof(mark), "%s",
			 !strcmp(l->kind, "dash") ? "-" : "\xe2\x80\xa2");
	if (strcmp(l->kind, "item") != 0) {
		word(o, mark, PAGE_PLAIN);
		o->indent = l->indent + 4;
		indent_to(o, o->indent);
		o->no_space = true;
	}
	run_words(o, w, n);
}

static void display_begin(struct out *o, char **w, int n)
{
	bool compact = false;

	for (int i = 0; i < n; i++) {
		o->literal |=
			!strcmp(w[i], "-literal") || !strcmp(w[i], "-unfilled");
		compact |= !strcmp(w[i], "-compact");
	}
	if (compact)
		line_end(o);
	else
		paragraph(o);
	o->indent += 4;
}

static bool block(struct out *o, char **w, int n)
{
	const char *m = w[0];

	if (!strcmp(m, "Sh"))
		heading(o, w + 1, n - 1, 0);
	else if (!strcmp(m, "Ss"))
		heading(o, w + 1, n - 1, 2);
	else if (!strcmp(m, "Pp"))
		paragraph(o);
	else if (!strcmp(m, "Bl"))
		list_begin(o, w + 1, n - 1);
	else if (!strcmp(m, "El"))
		list_end(o);
	else if (!strcmp(m, "It"))
		list_item(o, w + 1, n - 1);
	else if (!strcmp(m, "Bd"))
		display_begin(o, w + 1, n - 1);
	else if (!strcmp(m, "Ed")) {
		line_end(o);
		o->literal = false;
		o->indent -= 4;
	} else if (!strcmp(m, "Dl") || !strcmp(m, "D1")) {
		line_end(o);
		o->indent += 4;
		run_words(o, w + 1, n - 1);
		line_end(o);
		o->indent -= 4;
	} else if (!strcmp(m, "br") || !strcmp(m, "sp"))
		line_end(o);
	else
		return false;
	return true;
}

static void macro(struct out *o, char *line)
{
	char *w[WORDS];
	int n = split(line, w);

	if (!n || !strcmp(w[0], "Dd") || !strcmp(w[0], "Os") ||
	    !strcmp(w[0], "Bk") || !strcmp(w[0], "Ek") || w[0][0] == '\\')
		return;
	if (!strcmp(w[0], "Dt"))
		return;
	if (!strcmp(w[0], "Nd")) {
		word(o, "\xe2\x80\x94", PAGE_PLAIN);
		run_words(o, w + 1, n - 1);
		return;
	}
	if (!strcmp(w[0], "Nm") && n > 1 && !o->name[0])
		snprintf(o->name, sizeof(o->name), "%.63s", w[1]);
	if (o->synopsis && !strcmp(w[0], "Nm"))
		line_end(o);
	if (!block(o, w, n))
		run_words(o, w, n);
}

static void text_line(struct out *o, char *line)
{
	char *save = NULL, out[1024];

	if (o->literal) {
		unescape(line, out, sizeof(out));
		indent_to(o, o->indent);
		put(o, out, strlen(out));
		put(o, "\n", 1);
		o->column = 0;
		o->blank = !*out;
		return;
	}
	if (!*line) {
		paragraph(o);
		return;
	}
	for (char *w = strtok_r(line, " \t", &save); w;
	     w = strtok_r(NULL, " \t", &save))
		emit(o, w, PAGE_PLAIN);
}

char *page_render(const char *mdoc, int width)
{
	struct out o = { .width = width < 20 ? 20 : width,
			 .indent = 4,
			 .style = PAGE_PLAIN,
			 .blank = true };
	char line[1024];

	put(&o, "", 0);
	while (*mdoc && !o.failed) {
		size_t n = strcspn(mdoc, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)n, mdoc);
		mdoc += n + (mdoc[n] == '\n');
		if (line[0] == '.')
			macro(&o, line + 1);
		else
			text_line(&o, line);
	}
	line_end(&o);
	if (o.failed) {
		free(o.text);
		return NULL;
	}
	return o.text;
}

/* ---- finding ------------------------------------------------------------- */

const struct page_row *page_find(const char *name)
{
	size_t n = strcspn(name, "(");

	/* "iodeck-policy.7": the section after the last dot */
	if (!name[n] && n > 2 && name[n - 2] == '.' && name[n - 1] >= '1' &&
	    name[n - 1] <= '9')
		n -= 2;
	for (const struct page_row *p = page_table; p->name; p++)
		if (!strncmp(p->name, name, n) && p->name[n] == '(')
			return p;
	return NULL;
}

static void keys_of(struct out *o, const char *title, const char *screen,
		    unsigned when)
{
	char line[200], key[16];
	bool begun = false;

	for (const struct key_row *r = key_table; r->key; r++) {
		if ((screen ? !r->screen || strcmp(r->screen, screen) != 0
			    : r->screen != NULL) ||
		    (!screen &&
		     (r->when == KEY_REPLAY) != (when == KEY_REPLAY)))
			continue;
		if (!begun) {
			snprintf(line, sizeof(line), "%c%s%c\n", PAGE_BOLD,
				 title, PAGE_PLAIN);
			put(o, line, strlen(line));
			begun = true;
		}
		key_name(r->key, key, sizeof(key));
		snprintf(line, sizeof(line), "    %c%-10s%c %s\n", PAGE_BOLD,
			 key, PAGE_PLAIN, r->line);
		put(o, line, strlen(line));
	}
	if (begun)
		put(o, "\n", 1);
}

char *page_keys(const char *screen)
{
	static const char head[] = "A key stands for a command; each can be "
				   "typed after a colon.\n\n";
	struct out o = { 0 };

	put(&o, head, sizeof(head) - 1);
	keys_of(&o, "On this screen", screen, 0);
	keys_of(&o, "Everywhere", NULL, 0);
	keys_of(&o, "In a replay", NULL, KEY_REPLAY);
	if (o.failed) {
		free(o.text);
		return NULL;
	}
	return o.text;
}
