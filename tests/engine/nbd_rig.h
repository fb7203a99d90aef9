/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An nbdkit of a test's own, in a directory of its own. */
#ifndef TESTS_ENGINE_NBD_RIG_H
#define TESTS_ENGINE_NBD_RIG_H

#include <sys/types.h>

#include "engine/bdev/nbd.h"

#define RIG_KEY "000102030405060708090a0b0c0d0e0f10111213141516171819"

struct nbd_server_opts {
	uint64_t size_bytes; /* of the file, made when it is not there */
	bool tcp;            /* on 127.0.0.1 and a free port */
	const char *key;     /* TLS */
	const char *more[8]; /* further words: filters first, then parameters */
	bool read_only;
};

struct nbd_server {
	struct nbd_server_opts opts;
	char dir[64], file[96], sock[96], psk[96], log[96];
	uint16_t port;
	pid_t pid; /* 0: not running */
};

/* Makes the directory and the file, and starts it. */
void nbd_server_start(struct nbd_server *s, const struct nbd_server_opts *opts);
/* Once more, on the same port or path, after nbd_server_kill(). */
void nbd_server_again(struct nbd_server *s);
/* SIGSTOP, and all its threads stand still. */
void nbd_server_halt(const struct nbd_server *s);
/* kill -9, and reaped. */
void nbd_server_kill(struct nbd_server *s);
/* Killed, and all of it removed. */
void nbd_server_end(struct nbd_server *s);
struct bdev_nbd_target nbd_server_target(const struct nbd_server *s);
/* How often a word stands in what it said. */
unsigned nbd_server_said(const struct nbd_server *s, const char *word);
bool nbd_server_can(void);

#endif
