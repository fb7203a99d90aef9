/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A block device given to the processes of this machine that hold one end of
 * a socket: to nbdkit's plugin (vdisk_wire.h), and through it to whoever
 * speaks NBD.
 *
 *   control  a byte --> a new connection's end, by SCM_RIGHTS
 *   each     READ request [--> data] --> bdev --> SEND answer --> READ ..
 *
 * One request a connection and so many connections: that bounds what is in
 * flight, and memory; a client that does not read its answers holds its own
 * connection up and nobody else. Data is received into and sent from the
 * buffer that the device works on. Writes that overlap wait for each other,
 * as a bdev leaves their order to who submits them.
 *
 * Threads: the reactor's.
 */
#ifndef BACKEND_AGENT_SERVE_H
#define BACKEND_AGENT_SERVE_H

#include "engine/bdev/bdev.h"

struct serve;

struct serve_stats {
	uint64_t reads, writes, read_bytes, write_bytes, errors;
	unsigned conns;
};

/* The bdev stays the caller's, and open until serve_close() is done. */
int serve_new(struct bdev *bdev, struct serve **serve);
/* The other end of a new control socket, for a process to be started: the
 * caller's to close. What holds an older one has lost it, and all that it
 * was given. Or a negative errno. */
int serve_control(struct serve *s);
/* A connection as control hands them out; also for tests. */
int serve_connect(struct serve *s);
/* Takes all connections away: what they have in flight is taken to its end,
 * and closed(arg) runs, later: nothing of theirs can land then. */
void serve_close(struct serve *s, void (*closed)(void *arg), void *arg);
void serve_stats(const struct serve *s, struct serve_stats *stats);

#endif
