/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Apart from term.c because curses' <term.h> has a struct term of its own.
 */
#include "tui/term_known.h"

#include <curses.h>
#include <term.h>

bool term_known(const char *name)
{
	int how = 0;

	if (setupterm(name, 1, &how) != OK)
		return false;
	del_curterm(cur_term);
	return true;
}
