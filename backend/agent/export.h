/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Exporters: for each component that is lent to another node an nbdkit, with
 * its file plugin, that serves this component to one client at a time.
 *
 *	export_open() --> listens, makes a key, starts nbdkit on the socket
 *	                        |                    ^
 *	                        v ends by itself     | after a while
 *	                     reaped -----------------'
 *	export_close() --> killed --> reaped --> done()
 *
 * It holds what nbd.h asks of an exporter. The limit filter counts a client
 * until its commands have ended; another nbdkit begins only after the one
 * before was reaped, so after its last write; key and socket die with the
 * agent. The socket is ours, and stays through the death of an nbdkit: who
 * connects meanwhile waits. Over TCP there is always TLS, by a key of the
 * component's own, which stands in a file (0600) in the agent's directory as
 * long as it is served, and in no message.
 *
 * The component's lock is handed to the child with the descriptor: it cannot be
 * opened here, or by another agent, until neither lives. A child is killed by
 * the kernel when this agent's engine thread ends, with a client or without;
 *what a killed agent could leave behind in spite of that is ended, by its pid
 *and start time, by the next one.
 *
 * Threads: the engine's.
 */
#ifndef BACKEND_AGENT_EXPORT_H
#define BACKEND_AGENT_EXPORT_H

#include "engine/drive.h"

struct exports;
struct export;

struct exports_opts {
	struct reactor *reactor;
	int dirfd; /* the agent's own directory: export/ is made in it */
	/* for the log */
	void (*say)(const char *level, const char *text, void *arg);
	void *arg;
};

/* Ends what a killed agent has left. -ENOTSUP: there is no nbdkit here. */
int exports_new(const struct exports_opts *opts, struct exports **exports,
		struct err *err);
/* With none open. Takes NULL. */
void exports_free(struct exports *x);
/* Whether any is open or not yet reaped. */
bool exports_any(const struct exports *x);

struct export_opts {
	const char *name;    /* "n2:d0:db1.18c7f.0": for people, and its NBD
				name */
	const char *address; /* to listen at, in digits; NULL: a Unix socket in
				the agent's directory, without TLS */
	uint16_t port_first, port_last;
	struct drive_where where;
	int fd; /* drive_component_hold()'s, given away whatever comes */
};

/*
 * Listens when it returns. -EADDRINUSE: no port of the range is free;
 * -EADDRNOTAVAIL, -EINVAL an address that is not ours; -ENOMEM and others.
 */
int export_open(struct exports *x, const struct export_opts *opts,
		struct export **e, struct err *err);
/*
 * done(arg) once no write of its client can still land and the component may
 * be opened. e is gone with this call, and its key with it; done may be NULL.
 */
void export_close(struct export *e, void (*done)(void *arg), void *arg);

/* Borrowed, until it is closed. */
struct export_facts {
	const char *name;
	const char *unix_path; /* or address and port */
	const char *address;
	uint16_t port;
	const char *key;  /* NULL without TLS; for the client alone */
	const char *boot; /* this machine's */
	int pid;          /* 0: it is down at the moment */
	unsigned deaths;  /* how often it ended by itself */
};
void export_facts(const struct export *e, struct export_facts *facts);

#endif
