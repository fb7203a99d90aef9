/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console on a pseudo-terminal: one that stands still (^S) costs nothing
 * and keys still answer; whatever ends it, the terminal is as it was; a size
 * change is seen; a terminal that cannot be drawn on is refused.
 *
 * The program is tests/tui/console.c; what it drew is read with libvterm.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#include <cmocka.h>

#include "engine/base.h"

struct tty {
	int master, slave, out;
	pid_t pid;
	struct termios before;
	VTerm *vt;
	VTermScreen *screen;
	int w, h;
	size_t bytes;
};

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void child(struct tty *t, const char *term, char *const argv[], int out)
{
	const char *bin = getenv("BIN_DIR");
	char path[512];

	snprintf(path, sizeof(path), "%s/test_console", bin ? bin : ".");
	setsid();
	ioctl(t->slave, TIOCSCTTY, 0);
	dup2(t->slave, 0);
	dup2(out, 1);
	dup2(t->slave, 2);
	setenv("TERM", term, 1);
	setenv("HOME", "/nonexistent", 1);
	setenv("INPUTRC", "/dev/null", 1);
	unsetenv("XDG_STATE_HOME");
	execv(path, argv);
	_exit(127);
}

static void tty_open(struct tty *t, const char *term, int w, int h,
		     const char *begin, const char *every)
{
	char *argv[] = { "console", (char *)begin, (char *)every, NULL };
	struct winsize ws = { .ws_col = (unsigned short)w,
			      .ws_row = (unsigned short)h };
	int out[2];

	memset(t, 0, sizeof(*t));
	t->w = w;
	t->h = h;
	assert_int_equal(openpty(&t->master, &t->slave, NULL, NULL, &ws), 0);
	assert_int_equal(tcgetattr(t->slave, &t->before), 0);
	assert_int_equal(pipe(out), 0);
	fcntl(t->master, F_SETFL, O_NONBLOCK);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		close(t->master);
		child(t, term, argv, out[1]);
	}
	close(out[1]);
	t->out = out[0];
	t->vt = vterm_new(h, w);
	vterm_set_utf8(t->vt, 1);
	t->screen = vterm_obtain_screen(t->vt);
	vterm_screen_enable_altscreen(t->screen, 1);
	vterm_screen_reset(t->screen, 1);
}

static void tty_read(struct tty *t, int ms)
{
	struct pollfd fd = { .fd = t->master, .events = POLLIN };
	char buf[65536];
	ssize_t n;

	if (poll(&fd, 1, ms) <= 0)
		return;
	n = read(t->master, buf, sizeof(buf));
	if (n > 0) {
		vterm_input_write(t->vt, buf, (size_t)n);
		t->bytes += (size_t)n;
	}
}

static void tty_row(struct tty *t, int y, char *row, size_t len)
{
	size_t n = 0;

	for (int x = 0; x < t->w && n + 1 < len; x++) {
		VTermScreenCell cell;

		vterm_screen_get_cell(t->screen, (VTermPos) { y, x }, &cell);
		row[n++] = cell.chars[0] > 0 && cell.chars[0] < 0x7f
				   ? (char)cell.chars[0]
				   : ' ';
	}
	row[n] = '\0';
}

/* Reads until a row shows the text; fails after some seconds. */
static void tty_expect(struct tty *t, const char *text)
{
	long end = now_ms() + 20000;
	char row[512];

	while (now_ms() < end) {
		for (int y = 0; y < t->h; y++) {
			tty_row(t, y, row, sizeof(row));
			if (strstr(row, text))
				return;
		}
		tty_read(t, 100);
	}
	fail_msg("not shown within 20 s: %s", text);
}

static void tty_type(struct tty *t, const char *keys)
{
	assert_int_equal(write(t->master, keys, strlen(keys)),
			 (ssize_t)strlen(keys));
}

/* Waits for its end; what it printed goes into text. */
static int tty_wait(struct tty *t, char *text, size_t len)
{
	long end = now_ms() + 20000;
	int status = -1;
	ssize_t n = 0;

	while (waitpid(t->pid, &status, WNOHANG) == 0 && now_ms() < end)
		tty_read(t, 20);
	for (int i = 0; i < 5; i++)
		tty_read(t, 20);
	n = read(t->out, text, len - 1);
	text[n > 0 ? n : 0] = '\0';
	return status;
}

static void tty_close(struct tty *t)
{
	struct termios after;

	assert_int_equal(tcgetattr(t->slave, &after), 0);
	assert_int_equal(after.c_lflag, t->before.c_lflag);
	assert_int_equal(after.c_iflag, t->before.c_iflag);
	assert_int_equal(after.c_oflag, t->before.c_oflag);
	vterm_free(t->vt);
	close(t->master);
	close(t->slave);
	close(t->out);
}

static void test_lines_reach_the_deck(void **state)
{
	char text[512];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-256color", 80, 24, "120", "20");
	tty_expect(&t, "4Run");
	tty_type(&t, "1");
	tty_expect(&t, "drives of n1");
	tty_type(&t, ">:seek 4\r");
	/* A replay's bar shows that it went; that it was taken, what the deck
	 * has at the end. */
	tty_type(&t, "q");
	tty_expect(&t, "[y] yes");
	tty_type(&t, "y");
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	assert_string_equal(text, "speed 2\nseek 4\n");
	tty_close(&t);
}

/*
 * Nobody reads what it draws, which is what ^S does: it skips frames, takes
 * keys, and is right again afterwards. The speed keys and the quit were typed
 * while nothing was read; the deck has them.
 */
static void test_stopped_terminal(void **state)
{
	char text[512];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-256color", 200, 60, "120", "10");
	tty_expect(&t, "4 Run");
	tty_type(&t, "1");
	tty_expect(&t, "capacity");
	tty_type(&t, "4");
	usleep(1500000); /* frames pile up in the terminal's buffer */
	tty_type(&t, ">");
	usleep(300000);
	tty_type(&t, "1");
	usleep(300000);
	tty_expect(&t, "capacity");
	tty_type(&t, "4");
	usleep(500000);
	tty_type(&t, "<qy");
	usleep(1000000);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	assert_string_equal(text, "speed 2\nspeed 0.5\n");
	tty_close(&t);
}

static void test_size(void **state)
{
	struct winsize ws = { .ws_col = 70, .ws_row = 20 };
	char text[64];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-256color", 80, 24, "120", "0");
	tty_expect(&t, "4Run");
	t.w = 70;
	t.h = 20;
	vterm_set_size(t.vt, 20, 70);
	assert_int_equal(ioctl(t.master, TIOCSWINSZ, &ws), 0);
	tty_type(&t, "2");
	tty_expect(&t, "may l");
	ws.ws_col = 30;
	t.w = 30;
	vterm_set_size(t.vt, 20, 30);
	assert_int_equal(ioctl(t.master, TIOCSWINSZ, &ws), 0);
	tty_expect(&t, "too small");
	kill(t.pid, SIGTERM);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	tty_close(&t);
}

/* Clicks on a tab and a row, and the wheel, as terminals send them. */
static void test_mouse(void **state)
{
	char text[64];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-256color", 80, 24, "120", "0");
	tty_expect(&t, "4Run");
	tty_type(&t, "\033[<0;3;2M\033[<0;3;2m");
	tty_expect(&t, "drives of n1");
	tty_type(&t, "\033[<0;10;6M\033[<0;10;6m");
	tty_expect(&t, "drives of n3");
	tty_type(&t, "\033[<65;10;6M");
	tty_expect(&t, "drives of n4");
	kill(t.pid, SIGTERM);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	tty_close(&t);
}

/* Sizes from nothing to large, faster than it can draw. */
static void test_resize_storm(void **state)
{
	char text[64];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-256color", 80, 24, "120", "20");
	tty_expect(&t, "4Run");
	for (unsigned i = 0; i < 60; i++) {
		struct winsize ws = {
			.ws_col = (unsigned short)(2 + i * 67 % 199),
			.ws_row = (unsigned short)(1 + i * 23 % 60)
		};

		assert_int_equal(ioctl(t.master, TIOCSWINSZ, &ws), 0);
		tty_read(&t, 10);
	}
	assert_int_equal(
		ioctl(t.master, TIOCSWINSZ,
		      &(struct winsize) { .ws_col = 80, .ws_row = 24 }),
		0);
	tty_type(&t, "1");
	tty_expect(&t, "drives of n1");
	kill(t.pid, SIGTERM);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	tty_close(&t);
}

/* A crash gives the terminal back, and its last words are not lost. */
static void test_fatal(void **state)
{
	static const int sig[] = { SIGSEGV, SIGABRT, SIGQUIT, SIGHUP };
	char text[64];
	int status;

	(void)state;
	for (size_t i = 0; i < array_len(sig); i++) {
		struct tty t;

		tty_open(&t, "xterm-256color", 80, 24, "120", "0");
		tty_expect(&t, "4Run");
		kill(t.pid, sig[i]);
		status = tty_wait(&t, text, sizeof(text));
		if (sig[i] == SIGHUP)
			assert_true(WIFEXITED(status));
		else
			assert_true(status != 0);
		tty_close(&t);
	}
}

/* ^Z gives the terminal back and stops; going on draws all again. */
static void test_suspend(void **state)
{
	struct termios now;
	char text[64];
	struct tty t;
	int status;

	(void)state;
	tty_open(&t, "xterm-256color", 80, 24, "120", "0");
	tty_expect(&t, "4Run");
	kill(t.pid, SIGSTOP);
	assert_int_equal(waitpid(t.pid, &status, WUNTRACED), t.pid);
	/* as a shell does when it takes the terminal */
	assert_int_equal(tcsetattr(t.slave, TCSANOW, &t.before), 0);
	kill(t.pid, SIGCONT);
	tty_type(&t, "2");
	tty_expect(&t, "may lose");
	assert_int_equal(tcgetattr(t.slave, &now), 0);
	assert_false(now.c_lflag & ICANON);
	kill(t.pid, SIGTERM);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	tty_close(&t);
}

static void test_refused(void **state)
{
	static const char *const term[] = { "dumb", "", "no-such-terminal" };
	char text[64];

	(void)state;
	for (size_t i = 0; i < array_len(term); i++) {
		struct tty t;
		char row[128];

		tty_open(&t, term[i], 80, 24, "10", "0");
		assert_true(WEXITSTATUS(tty_wait(&t, text, sizeof(text))));
		tty_row(&t, 0, row, sizeof(row));
		assert_non_null(strstr(row, "console: "));
		assert_non_null(strstr(row, "term"));
		tty_close(&t);
	}
}

/* What terminfo lacks but speaks xterm's language works. */
static void test_kin(void **state)
{
	char text[64];
	struct tty t;

	(void)state;
	tty_open(&t, "xterm-kitty", 80, 24, "120", "0");
	tty_expect(&t, "4Run");
	kill(t.pid, SIGTERM);
	assert_int_equal(tty_wait(&t, text, sizeof(text)), 0);
	tty_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_reach_the_deck),
		cmocka_unit_test(test_stopped_terminal),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_mouse),
		cmocka_unit_test(test_resize_storm),
		cmocka_unit_test(test_fatal),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_kin),
	};

	unsetenv("COLORTERM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
