/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/term.h"

#include <curses.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "tui/term_guard.h"
#include "tui/term_known.h"

#define KEY_PASTE (KEY_MAX + 1)
#define KEY_PASTE_END (KEY_MAX + 2)

struct term {
	SCREEN *screen;
	WINDOW *keys; /* a pad: reading keys from it draws nothing */
	FILE *out, *in;
	int out_fd, tty_fd; /* memfd; the terminal or -1 */
	bool headless;
	struct termios found, raw;
	enum glyphs glyphs;
	enum theme_depth depth;
	attr_t attr[ROLE_COUNT];
	short pair[ROLE_COUNT];
	int w, h;
	struct cell *shown; /* the last frame, h rows of w */
	cchar_t *row;
	bool whole;
	int cursor_x, cursor_y;
	char *pending;
	size_t pending_len, pending_at, pending_cap, frame_bytes;
	struct term_mouse mouse;
	bool extras; /* mouse and bracketed paste are on */
};

static const char extras_on[] = "\033[?2004h";
static const char extras_off[] = "\033[?2004l";

/* ---- bytes --------------------------------------------------------------- */

static void pending_add(struct term *t, const char *bytes, size_t len)
{
	if (t->pending_at) {
		memmove(t->pending, t->pending + t->pending_at,
			t->pending_len - t->pending_at);
		t->pending_len -= t->pending_at;
		t->pending_at = 0;
	}
	if (t->pending_len + len > t->pending_cap) {
		size_t cap = (t->pending_len + len) * 2;
		char *more = realloc(t->pending, cap);

		if (!more)
			return;
		t->pending = more;
		t->pending_cap = cap;
	}
	memcpy(t->pending + t->pending_len, bytes, len);
	t->pending_len += len;
}

/* Moves what ncurses wrote from the memfd to the pending bytes. */
static void collect(struct term *t)
{
	char buf[16384];
	off_t end;
	ssize_t n;

	fflush(t->out);
	end = lseek(t->out_fd, 0, SEEK_CUR);
	t->frame_bytes = end > 0 ? (size_t)end : 0;
	for (off_t at = 0; at < end; at += n) {
		n = pread(t->out_fd, buf, sizeof(buf), at);
		if (n <= 0)
			break;
		pending_add(t, buf, (size_t)n);
	}
	if (ftruncate(t->out_fd, 0) == 0)
		lseek(t->out_fd, 0, SEEK_SET);
}

int term_flush(struct term *t)
{
	if (t->headless)
		return 0;
	while (t->pending_at < t->pending_len) {
		ssize_t n = write(t->tty_fd, t->pending + t->pending_at,
				  t->pending_len - t->pending_at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -EIO;
		t->pending_at += (size_t)n;
	}
	t->pending_at = t->pending_len = 0;
	return 0;
}

bool term_pending(const struct term *t)
{
	return t->pending_at < t->pending_len;
}

size_t term_frame_bytes(const struct term *t)
{
	return t->frame_bytes;
}

char *term_take(struct term *t, size_t *len)
{
	char *bytes = malloc(t->pending_len + 1);

	if (!bytes)
		return NULL;
	*len = t->pending_len - t->pending_at;
	if (*len)
		memcpy(bytes, t->pending + t->pending_at, *len);
	t->pending_at = t->pending_len = 0;
	return bytes;
}

/* ---- opening ------------------------------------------------------------- */

/* Terminals that understand xterm's language though terminfo lacks them. */
static bool name_is_kin(const char *name)
{
	static const char *const kin[] = {
		"xterm",   "foot",    "alacritty", "kitty",   "wezterm",
		"ghostty", "contour", "rio",       "rxvt",    "st",
		"tmux",    "screen",  "vte",       "konsole",
	};

	for (size_t i = 0; i < array_len(kin); i++)
		if (!strncmp(name, kin[i], strlen(kin[i])))
			return true;
	return getenv("COLORTERM") != NULL;
}

static int screen_open(struct term *t, const char *name, struct err *err)
{
	const char *cup;

	if (!name || !*name || !strcmp(name, "dumb"))
		return err_set(err, -ENOTTY,
			       "this terminal (TERM=%s) cannot place its "
			       "cursor; set TERM to what it is, or use the "
			       "commands without a screen: iodeck run SUITE "
			       "--headless, iodeck show FILE",
			       name && *name ? name : "unset");
	if (!term_known(name) && name_is_kin(name))
		name = "xterm-256color";
	if (term_known(name))
		t->screen = newterm(name, t->out, t->in);
	if (!t->screen)
		return err_set(err, -ENOTTY,
			       "no description of the terminal %s: install "
			       "ncurses-term, or set TERM=xterm-256color or "
			       "vt100",
			       name);
	set_term(t->screen);
	cup = tigetstr("cup");
	if (!cup || cup == (char *)-1)
		return err_set(err, -ENOTTY,
			       "the terminal %s cannot place its cursor; use "
			       "iodeck run SUITE --headless, iodeck show FILE",
			       name);
	return 0;
}

static int files_open(struct term *t, int input, struct err *err)
{
	int fd = dup(input);

	t->in = fd < 0 ? NULL : fdopen(fd, "r");
	t->out_fd = memfd_create("iodeck-screen", MFD_CLOEXEC);
	fd = t->out_fd < 0 ? -1 : dup(t->out_fd);
	t->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!t->in || !t->out)
		return err_set(err, -errno, "cannot open a screen: %s",
			       strerror(errno));
	return 0;
}

/* A description of our own: O_NONBLOCK on the shell's would outlive us. */
static int tty_open(struct term *t, int given, struct err *err)
{
	char path[64] = "/dev/tty";

	if (given >= 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", given);
	t->tty_fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (t->tty_fd < 0 || !isatty(t->tty_fd))
		return err_set(err, -ENOTTY,
			       "no terminal to draw on; without one use iodeck "
			       "run SUITE --headless, iodeck show FILE");
	if (tcgetattr(t->tty_fd, &t->found))
		return err_set(err, -ENOTTY,
			       "cannot read the terminal's "
			       "settings: %s",
			       strerror(errno));
	t->raw = t->found;
	t->raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | ISTRIP);
	t->raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	t->raw.c_oflag &= ~(tcflag_t)(OPOST);
	t->raw.c_cc[VMIN] = 1;
	t->raw.c_cc[VTIME] = 0;
	return 0;
}

static void size_read(struct term *t)
{
	struct winsize ws;

	if (t->headless || ioctl(t->tty_fd, TIOCGWINSZ, &ws) || !ws.ws_col ||
	    !ws.ws_row)
		return;
	t->w = ws.ws_col > 1000 ? 1000 : ws.ws_col;
	t->h = ws.ws_row > 500 ? 500 : ws.ws_row;
}

static int size_apply(struct term *t)
{
	size_t cells = (size_t)t->w * (size_t)t->h;

	free(t->shown);
	free(t->row);
	t->shown = calloc(cells, sizeof(*t->shown));
	t->row = calloc((size_t)t->w + 1, sizeof(*t->row));
	t->whole = true;
	if (!t->shown || !t->row)
		return -ENOMEM;
	resizeterm(t->h, t->w);
	return 0;
}

static void colours_open(struct term *t, bool plain)
{
	int colours = 0;

	if (has_colors() && !plain) {
		start_color();
		use_default_colors();
		colours = COLORS;
	}
	t->depth = theme_depth(colours, plain);
	for (unsigned role = 0; role < ROLE_COUNT; role++) {
		struct theme_look look = theme_look(t->depth, (enum role)role);

		t->attr[role] = (look.flags & THEME_BOLD ? A_BOLD : 0) |
				(look.flags & THEME_DIM ? A_DIM : 0) |
				(look.flags & THEME_REV ? A_REVERSE : 0);
		if (t->depth == THEME_MONO || look.fg < 0)
			continue;
		t->pair[role] = (short)(role + 1);
		init_pair(t->pair[role], look.fg, -1);
	}
}

static enum glyphs glyphs_choose(const char *charset, const char *name)
{
	if (charset && !strcmp(charset, "ascii"))
		return GLYPHS_ASCII;
	if (charset && !strcmp(charset, "blocks"))
		return GLYPHS_BLOCKS;
	/* Whoever asks for utf8 in another locale gets blanks from ncurses. */
	if (strcmp(nl_langinfo(CODESET), "UTF-8"))
		return GLYPHS_ASCII;
	if (!charset && name && !strcmp(name, "linux"))
		return GLYPHS_BLOCKS;
	return GLYPHS_UTF8;
}

static void modes_open(struct term *t)
{
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	set_escdelay(25);
	t->keys = newpad(1, 1);
	keypad(t->keys, TRUE);
	nodelay(t->keys, TRUE);
	curs_set(0);
	mouseinterval(0);
	define_key("\033[200~", KEY_PASTE);
	define_key("\033[201~", KEY_PASTE_END);
	t->extras = t->depth != THEME_MONO || COLORS >= 8;
}

static int term_open_in(struct term *t, const struct term_opts *opts,
			struct err *err)
{
	const char *name = opts->name ? opts->name : getenv("TERM");
	const char *no_color = getenv("NO_COLOR");
	int rc;

	setlocale(LC_CTYPE, "");
	unsetenv("LINES");
	unsetenv("COLUMNS");
	if (!t->headless) {
		rc = tty_open(t, opts->tty_fd, err);
		if (rc)
			return rc;
	}
	rc = files_open(t, t->headless ? opts->input_fd : t->tty_fd, err);
	if (rc)
		return rc;
	rc = screen_open(t, name, err);
	if (rc)
		return rc;
	t->glyphs = glyphs_choose(opts->charset, name);
	colours_open(t, opts->plain || (no_color && *no_color));
	modes_open(t);
	size_read(t);
	if (size_apply(t))
		return err_set(err, -ENOMEM, "no memory for the screen");
	return t->headless
		       ? 0
		       : term_guard_open(t->tty_fd, &t->found, &t->raw, err);
}

int term_open(const struct term_opts *opts, struct term **term, struct err *err)
{
	struct term *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, -ENOMEM, "no memory for the screen");
	t->tty_fd = t->out_fd = -1;
	t->headless = opts->headless;
	t->w = opts->w > 0 ? opts->w : 80;
	t->h = opts->h > 0 ? opts->h : 24;
	t->cursor_x = -1;
	rc = term_open_in(t, opts, err);
	if (rc) {
		term_close(t);
		return rc;
	}
	if (t->extras)
		pending_add(t, extras_on, sizeof(extras_on) - 1);
	term_mouse_set(t, true);
	*term = t;
	return 0;
}

/* Leaves the screen to the shell; what does not fit at once is waited for a
 * little, a terminal that stands still does not hold us. */
static void screen_leave(struct term *t)
{
	if (!t->screen)
		return;
	mousemask(0, NULL);
	if (t->extras)
		pending_add(t, extras_off, sizeof(extras_off) - 1);
	curs_set(1);
	endwin();
	collect(t);
	for (int tries = 0; tries < 50 && !t->headless; tries++) {
		if (term_flush(t) || !term_pending(t))
			break;
		usleep(10000);
	}
}

void term_close(struct term *t)
{
	if (!t)
		return;
	screen_leave(t);
	if (!t->headless)
		term_guard_close();
	if (t->keys)
		delwin(t->keys);
	if (t->screen)
		delscreen(t->screen);
	if (t->in)
		fclose(t->in);
	if (t->out)
		fclose(t->out);
	if (t->out_fd >= 0)
		close(t->out_fd);
	if (t->tty_fd >= 0)
		close(t->tty_fd);
	free(t->pending);
	free(t->shown);
	free(t->row);
	free(t);
}

/* ---- facts --------------------------------------------------------------- */

enum glyphs term_glyphs(const struct term *t)
{
	return t->glyphs;
}

enum theme_depth term_depth(const struct term *t)
{
	return t->depth;
}

void term_size(const struct term *t, int *w, int *h)
{
	*w = t->w;
	*h = t->h;
}

int term_fd(const struct term *t)
{
	return t->headless ? fileno(t->in) : t->tty_fd;
}

int term_signal_fd(const struct term *t)
{
	return t->headless ? -1 : term_guard_fd();
}

unsigned term_signals(struct term *t)
{
	unsigned seen = term_guard_take(), what = 0;

	if (seen & TERM_GUARD_WINCH) {
		size_read(t);
		if (size_apply(t) == 0)
			what |= TERM_RESIZED;
	}
	if (seen & TERM_GUARD_CONT) {
		tcsetattr(t->tty_fd, TCSANOW, &t->raw);
		term_redraw(t);
		what |= TERM_RESUMED;
	}
	if (seen & TERM_GUARD_END)
		what |= TERM_END;
	return what;
}

/* ---- drawing ------------------------------------------------------------- */

static void row_draw(struct term *t, const struct canvas *c, int y)
{
	int n = 0;

	for (int x = 0; x < c->w && x < t->w; x++) {
		const struct cell *cell = canvas_cell(c, x, y);
		unsigned role = STYLE_ROLE(cell->style);
		wchar_t wide[2] = { (wchar_t)canvas_glyph(c, cell), 0 };
		attr_t attr = t->attr[role];

		if (x && !cell->width && canvas_cell(c, x - 1, y)->width == 2)
			continue;
		attr |= cell->style & STYLE_BOLD ? A_BOLD : 0;
		attr ^= cell->style & STYLE_REV ? A_REVERSE : 0;
		attr |= cell->style & STYLE_UNDER ? A_UNDERLINE : 0;
		setcchar(&t->row[n++], wide, attr, t->pair[role], NULL);
	}
	mvadd_wchnstr(y, 0, t->row, n);
}

bool term_draw(struct term *t, const struct canvas *c)
{
	size_t bytes = (size_t)t->w * sizeof(struct cell);

	if (term_pending(t) && !t->headless)
		return false;
	if (t->whole) {
		erase();
		clearok(stdscr, TRUE);
	}
	for (int y = 0; y < c->h && y < t->h; y++) {
		struct cell *was = &t->shown[(size_t)y * (size_t)t->w];
		const struct cell *now = canvas_cell(c, 0, y);

		if (c->w == t->w && !t->whole && !memcmp(was, now, bytes))
			continue;
		row_draw(t, c, y);
		if (c->w == t->w)
			memcpy(was, now, bytes);
	}
	t->whole = false;
	curs_set(t->cursor_x >= 0);
	if (t->cursor_x >= 0)
		move(t->cursor_y, t->cursor_x);
	refresh();
	collect(t);
	return true;
}

void term_redraw(struct term *t)
{
	t->whole = true;
}

void term_cursor(struct term *t, int x, int y)
{
	t->cursor_x = x < t->w ? x : t->w - 1;
	t->cursor_y = y < t->h ? y : t->h - 1;
}

/* ---- keys ---------------------------------------------------------------- */

static const struct {
	wint_t curses;
	int key;
} key_map[] = {
	{ KEY_UP, K_UP },
	{ KEY_DOWN, K_DOWN },
	{ KEY_LEFT, K_LEFT },
	{ KEY_RIGHT, K_RIGHT },
	{ KEY_HOME, K_HOME },
	{ KEY_END, K_END },
	{ KEY_PPAGE, K_PGUP },
	{ KEY_NPAGE, K_PGDN },
	{ KEY_DC, K_DELETE },
	{ KEY_BTAB, K_BTAB },
	{ KEY_F(1), K_F1 },
	{ KEY_BACKSPACE, K_BACKSPACE },
	{ KEY_ENTER, K_ENTER },
	{ KEY_PASTE, K_PASTE },
	{ KEY_PASTE_END, K_PASTE_END },
};

static int key_mouse(struct term *t)
{
	MEVENT event;

	if (getmouse(&event) != OK)
		return K_NONE;
	t->mouse = (struct term_mouse) { event.x, event.y, 0 };
	if (event.bstate & BUTTON4_PRESSED)
		t->mouse.wheel = -1;
	else if (event.bstate & BUTTON5_PRESSED)
		t->mouse.wheel = 1;
	else if (!(event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)))
		return K_NONE;
	return K_MOUSE;
}

int term_key(struct term *t)
{
	for (;;) {
		wint_t ch = 0;
		int rc = wget_wch(t->keys, &ch);

		if (rc == ERR)
			return K_NONE;
		if (rc != KEY_CODE_YES)
			return ch == '\n' ? K_ENTER
			       : ch == 8  ? K_BACKSPACE
					  : (int)ch;
		if (ch == KEY_MOUSE) {
			int key = key_mouse(t);

			if (key != K_NONE)
				return key;
			continue;
		}
		for (size_t i = 0; i < array_len(key_map); i++)
			if (key_map[i].curses == ch)
				return key_map[i].key;
	}
}

struct term_mouse term_mouse(const struct term *t)
{
	return t->mouse;
}

void term_mouse_set(struct term *t, bool on)
{
	mousemask(on ? BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED |
				  BUTTON5_PRESSED
		     : 0,
		  NULL);
	collect(t);
}

void term_suspend(struct term *t)
{
	if (t->headless)
		return;
	screen_leave(t);
	term_guard_stop();
	size_read(t);
	size_apply(t);
	if (t->extras)
		pending_add(t, extras_on, sizeof(extras_on) - 1);
	term_mouse_set(t, true);
	term_redraw(t);
}
