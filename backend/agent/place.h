/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where an agent lives: STATE_DIR/NAME, of this user alone (0700), with
 *
 *   lock      held by the daemon, has its process id
 *   sock      the Unix socket (0600)
 *   log       what the daemon says that no console hears
 *   spool/    its events
 *
 * The socket is reached relative to its directory, so the 108 bytes of
 * sun_path bound no path. That goes by way of the working directory: call
 * before there are threads.
 */
#ifndef BACKEND_AGENT_PLACE_H
#define BACKEND_AGENT_PLACE_H

#include "engine/base.h"

struct place {
	char name[64];
	int dirfd, lockfd;
};

/* NULL for lack of memory or of a home directory; the caller's to free(). */
char *place_state_dir(void);
/* A name: 1 to 63 of [A-Za-z0-9._-], not a dot first. */
int place_name_check(const char *name, struct err *err);

/* Makes what is not there. -EACCES when it is another user's. */
int place_open(const char *state_dir, const char *name, struct place *place,
	       struct err *err);
void place_close(struct place *place);
/* -EBUSY: a daemon has this name. */
int place_lock(struct place *place, struct err *err);
/* A listening socket, non-blocking, or a negative errno. */
int place_listen(struct place *place, struct err *err);
void place_unlisten(struct place *place);
/* A connected socket; -ENOENT, -ECONNREFUSED: there is no daemon. */
int place_connect(struct place *place);
/* The spool's directory: an fd, the caller's. */
int place_spool(struct place *place, struct err *err);
/* The log, opened to append; begun anew over 1 MiB. */
int place_log(struct place *place);
/* Whether the other end of a socket is this user. */
bool place_peer_is_us(int fd);

#endif
