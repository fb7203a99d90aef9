/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An sshd of a test's own: on loopback, on a free port, with host keys, user
 * keys, known_hosts and ssh_config in a directory of its own. It reads and
 * changes nothing of the user's.
 */
#ifndef TESTS_BACKEND_SSHLAB_H
#define TESTS_BACKEND_SSHLAB_H

#include <sys/types.h>

#include "backend/transport/transport.h"

struct sshlab {
	char dir[64], config[96], known[96], user[64];
	unsigned port;
	pid_t pid; /* of sshd; 0: none runs */
};

/* False, with the reason printed: there is no sshd to be had. */
bool sshlab_open(struct sshlab *lab);
void sshlab_close(struct sshlab *lab);
/* Starts sshd anew; `more` goes into its configuration, first. */
void sshlab_sshd(struct sshlab *lab, const char *more);
void sshlab_stop(struct sshlab *lab);
/* Writes ssh_config: `more` first, then the lab's own files. */
void sshlab_config(struct sshlab *lab, const char *more);
/* The usual: one line, [127.0.0.1]:PORT with the host's ed25519 key. */
void sshlab_known(struct sshlab *lab);
/* Writes a file of the lab. */
void sshlab_write(struct sshlab *lab, const char *name, const char *fmt, ...)
	ID_PRINTF(3, 4);
/* A command that has to end with 0. */
void sshlab_shell(const char *fmt, ...) ID_PRINTF(1, 2);
/* Writes an ssh_config that has these key files alone. */
void sshlab_identities(struct sshlab *lab, const char *one, const char *two);
/* "TYPE BASE64" of a public key of the lab: host_ed25519, host_ecdsa, host_rsa,
 * id, id_ecdsa, id_rsa, other; one's own static buffer each of eight calls. */
const char *sshlab_key(struct sshlab *lab, const char *name);
/* What sshd has logged: does it have these words? */
bool sshlab_logged(struct sshlab *lab, const char *words);

/* A way, and all that came over it. */
struct way {
	struct transport *t;
	ssize_t rc; /* of the last read; -EAGAIN while it goes */
	struct err err;
	char via[240];
	char *out;
	size_t out_len, out_room;
	size_t said_len;
	char said[512]; /* the last of it */
	const char *in; /* what is still to be written */
	size_t in_len;
	int longest_ms; /* the longest turn */
};

void way_open(struct way *w, struct sshlab *lab, enum transport_way way,
	      const char *const argv[]);
void way_open_host(struct way *w, const struct transport_host *host,
		   const char *const argv[]);
/* Turns until it ends, or so many bytes came; false after limit_ms. */
bool way_turn(struct way *w, size_t bytes, int limit_ms);
void way_close(struct way *w);
/* The whole: runs a command of the far shell, expects it to end with 0 and
 * this on stdout. */
void way_expect(struct sshlab *lab, enum transport_way way, const char *script,
		const char *out);
/* It fails within limit_ms, with these words. */
void way_refused(struct sshlab *lab, enum transport_way way, int limit_ms,
		 const char *words);

#endif
