/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The far end of a way over ssh: the command its login shell is given, and
 * what the end of that command means.
 */
#ifndef BACKEND_TRANSPORT_FAR_H
#define BACKEND_TRANSPORT_FAR_H

#include "backend/transport/said.h"

/* What a way over ssh is told beside the host; all borrowed. */
struct far {
	const char *place;   /* for messages */
	const char *command; /* for the login shell */
	const char *program; /* what it starts in the end */
};

/*
 * A command that prints a line of its own before the program's first byte, so
 * that what rc files print can be told from it, whatever shell it is that
 * takes it. *command is the caller's to free(). -EINVAL: an argument that not
 * all shells would pass on as it is.
 */
int far_command(const char *const argv[], const char *mark, char **command,
		struct err *err);
/* The sentence for an end with this status, or by this signal ("" none). */
void far_ended(const struct far *far, int status, const char *signal,
	       const struct said *said, struct err *err);

#endif
