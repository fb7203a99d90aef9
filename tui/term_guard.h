/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Guards the terminal: raw while we draw, as it was found on every way out,
 * fatal signals and exit() included. Signals become bytes in a pipe. What
 * libraries write to a standard error that is the terminal is kept and shown
 * when the terminal is given back.
 */
#ifndef TUI_TERM_GUARD_H
#define TUI_TERM_GUARD_H

#include <termios.h>

#include "engine/base.h"

enum {
	TERM_GUARD_WINCH = 1,
	TERM_GUARD_CONT = 2,
	TERM_GUARD_END = 4, /* SIGHUP, SIGINT, SIGTERM */
};

int term_guard_open(int tty_fd, const struct termios *found,
		    const struct termios *raw, struct err *err);
void term_guard_close(void);
/* Readable when term_guard_take() has something; -1 when not open. */
int term_guard_fd(void);
unsigned term_guard_take(void);
/* Stops the process group as ^Z does; returns in raw mode. */
void term_guard_stop(void);

#endif
