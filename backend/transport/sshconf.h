/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What ssh_config(5) says of a host, as `ssh -G` resolves it: Include, Match
 * and defaults are ssh's business. Only what a way of our own needs is kept,
 * and the first thing that only ssh itself can do.
 */
#ifndef BACKEND_TRANSPORT_SSHCONF_H
#define BACKEND_TRANSPORT_SSHCONF_H

#include "backend/transport/transport.h"

#define SSHCONF_FILES 8
#define SSHCONF_WORDS 24 /* room for sshconf_words(), NULL included */

struct sshconf {
	char host[256]; /* HostName: where it is */
	char user[64];
	char alias[256]; /* HostKeyAlias; "" none */
	unsigned port;
	char family; /* '4', '6'; 0: any */
	char *identity[SSHCONF_FILES];
	size_t identities;
	bool identities_only;
	char *agent; /* the socket; NULL: none */
	char *known[SSHCONF_FILES];
	size_t knowns;
	char *kex, *ciphers, *macs, *hostkeys; /* comma-separated */
	char only_ssh[160];                    /* why; "" nothing */
};

/* Names go into argv, the far shell and messages: a host, user or file whose
 * name is none, or is an option, is refused. */
int sshconf_check(const struct transport_host *host, struct err *err);
/* "USER@HOST:PORT" as far as it is said; for messages. */
void sshconf_place(const struct transport_host *host, char *buf, size_t len);
/* The words of ssh's command line that name the host, from `at` on: options,
 * "--", host. `port` is the caller's 16 bytes. Returns the number so far. */
int sshconf_words(const struct transport_host *host, const char **argv, int at,
		  char port[16]);
/* Reads what ssh -G printed; changes it. The caller's to sshconf_fini() in any
 * case. */
int sshconf_parse(char *text, struct sshconf *conf, struct err *err);
void sshconf_fini(struct sshconf *conf);

#endif
