/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program that is run for what it prints, without waiting for it: ssh -G,
 * ssh-keygen -F, getent. Bounded in bytes and in time.
 */
#ifndef BACKEND_TRANSPORT_ERRAND_H
#define BACKEND_TRANSPORT_ERRAND_H

#include "backend/transport/process.h"

#define ERRAND_MAX (1u << 20)

struct errand {
	struct process process;
	char *out; /* what it printed, with a zero behind it */
	size_t len, room;
	int64_t due_ms;
	int limit_ms;
	char name[32];
	bool going;
};

int errand_start(struct errand *e, const char *const argv[], int limit_ms,
		 struct err *err);
/* 0: it has ended, status is as waitpid()'s; -EAGAIN: not yet; -ETIMEDOUT,
 * -E2BIG, -ENOMEM with err: it was killed. */
int errand_step(struct errand *e, int *status, struct err *err);
int errand_poll(const struct errand *e, struct pollfd *fd, int *timeout_ms);
/* Kills what still goes, frees what it printed. Once zeroed, any time. */
void errand_fini(struct errand *e);

#endif
