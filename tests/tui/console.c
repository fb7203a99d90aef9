/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The console over the made-up session, for tests on a real terminal and the
 * bench. console [begin [every_ms [charset]]]: events applied at once, then
 * one so often. Prints the command lines it was given when it ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake_deck.h"
#include "tui/tui.h"

int main(int argc, char **argv)
{
	struct fake_deck_opts fake = {
		.begin = argc > 1 ? atoi(argv[1]) : 100,
		.every_ms = argc > 2 ? atoi(argv[2]) : 100,
	};
	struct tui_opts opts = { .tty_fd = -1,
				 .charset = argc > 3 ? argv[3] : NULL,
				 .screen = "run" };
	struct deck *deck = NULL;
	struct err err = { 0 };
	int rc;

	if (fake_deck_open(&fake, &deck))
		return 1;
	rc = tui_run(deck, &opts, &err);
	if (rc)
		fprintf(stderr, "console: %s\n", err.text);
	fputs(fake_deck_lines(deck), stdout);
	deck_close(deck);
	return rc ? 1 : 0;
}
