/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/term_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int fatal[] = {
	SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT
};
static const int told[] = { SIGWINCH, SIGCONT, SIGTERM, SIGINT, SIGHUP };

/* One terminal a process: signal handlers have no argument to find it by. */
static struct {
	volatile sig_atomic_t open;
	int tty_fd, pipe[2];
	int err_was, err_kept; /* standard error: ours again; what was said */
	struct termios found, raw;
	struct sigaction fatal_was[array_len(fatal)];
	struct sigaction told_was[array_len(told)];
} guard = { .pipe = { -1, -1 }, .err_was = -1, .err_kept = -1 };

static void say(int fd, const char *bytes, size_t len)
{
	ssize_t n = write(fd, bytes, len);

	(void)n; /* there is nobody left to tell */
}

/* Only calls that signal handlers may make. */
static void give_back_err(void)
{
	char buf[4096];
	ssize_t n;

	if (guard.err_was < 0)
		return;
	dup2(guard.err_was, STDERR_FILENO);
	lseek(guard.err_kept, 0, SEEK_SET);
	while ((n = read(guard.err_kept, buf, sizeof(buf))) > 0)
		say(STDERR_FILENO, buf, (size_t)n);
	close(guard.err_was);
	close(guard.err_kept);
	guard.err_was = guard.err_kept = -1;
}

static void give_back(void)
{
	/* Paste and mouse off, attributes off, cursor on, keypad off, main
	 * screen. Terminals without these ignore them; VT100s too. */
	static const char out[] = "\033[?2004l\033[?1000l\033[?1006l\033[m"
				  "\033[?25h\033[?1l\033>\033[?1049l\r\n";

	if (!guard.open)
		return;
	guard.open = 0;
	say(guard.tty_fd, out, sizeof(out) - 1);
	tcsetattr(guard.tty_fd, TCSANOW, &guard.found);
	give_back_err();
}

static void on_fatal(int sig)
{
	give_back();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void on_told(int sig)
{
	unsigned char what = sig == SIGWINCH  ? TERM_GUARD_WINCH
			     : sig == SIGCONT ? TERM_GUARD_CONT
					      : TERM_GUARD_END;
	int saved = errno;

	say(guard.pipe[1], (const char *)&what, 1);
	errno = saved;
}

static void at_exit(void)
{
	give_back();
}

static void handlers_set(void)
{
	struct sigaction sa = { .sa_flags = SA_RESTART };

	sigemptyset(&sa.sa_mask);
	sa.sa_handler = on_told;
	for (size_t i = 0; i < array_len(told); i++)
		sigaction(told[i], &sa, &guard.told_was[i]);
	sa.sa_handler = on_fatal;
	sa.sa_flags = (int)SA_RESETHAND;
	for (size_t i = 0; i < array_len(fatal); i++)
		sigaction(fatal[i], &sa, &guard.fatal_was[i]);
}

static void handlers_reset(void)
{
	for (size_t i = 0; i < array_len(told); i++)
		sigaction(told[i], &guard.told_was[i], NULL);
	for (size_t i = 0; i < array_len(fatal); i++)
		sigaction(fatal[i], &guard.fatal_was[i], NULL);
}

static void keep_err(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	guard.err_kept = memfd_create("iodeck-stderr", MFD_CLOEXEC);
	guard.err_was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (guard.err_kept < 0 || guard.err_was < 0 ||
	    dup2(guard.err_kept, STDERR_FILENO) < 0) {
		if (guard.err_kept >= 0)
			close(guard.err_kept);
		if (guard.err_was >= 0)
			close(guard.err_was);
		guard.err_kept = guard.err_was = -1;
	}
}

int term_guard_open(int tty_fd, const struct termios *found,
		    const struct termios *raw, struct err *err)
{
	static bool at_exit_set;

	id_assert(!guard.open);
	if (pipe2(guard.pipe, O_CLOEXEC | O_NONBLOCK))
		return err_set(err, -errno, "cannot make a pipe: %s",
			       strerror(errno));
	guard.tty_fd = tty_fd;
	guard.found = *found;
	guard.raw = *raw;
	if (!at_exit_set)
		at_exit_set = atexit(at_exit) == 0;
	handlers_set();
	keep_err();
	guard.open = 1;
	tcsetattr(tty_fd, TCSADRAIN, raw);
	return 0;
}

void term_guard_close(void)
{
	if (guard.pipe[0] < 0)
		return;
	guard.open = 0;
	handlers_reset();
	tcsetattr(guard.tty_fd, TCSANOW, &guard.found);
	give_back_err();
	close(guard.pipe[0]);
	close(guard.pipe[1]);
	guard.pipe[0] = guard.pipe[1] = -1;
}

int term_guard_fd(void)
{
	return guard.pipe[0];
}

unsigned term_guard_take(void)
{
	unsigned char what[64];
	unsigned seen = 0;
	ssize_t n;

	if (guard.pipe[0] < 0)
		return 0;
	while ((n = read(guard.pipe[0], what, sizeof(what))) > 0)
		for (ssize_t i = 0; i < n; i++)
			seen |= what[i];
	return seen;
}

void term_guard_stop(void)
{
	tcsetattr(guard.tty_fd, TCSANOW, &guard.found);
	kill(0, SIGTSTP);
	tcsetattr(guard.tty_fd, TCSANOW, &guard.raw);
	term_guard_take();
}
