/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which keys to log in with, in ssh's order: those of the files that are
 * configured, by the ssh-agent where it has them, then what else it has.
 */
#ifndef BACKEND_TRANSPORT_KEYS_H
#define BACKEND_TRANSPORT_KEYS_H

#include "backend/transport/sshagent.h"
#include "backend/transport/sshconf.h"

#define KEYS_MAX 5 /* sshd's MaxAuthTries is 6 */
#define AGENT_KEYS_MAX 32

struct ssh_key {
	char *path; /* NULL: the agent signs with it */
	uint8_t *blob;
	size_t len;
};

struct ssh_keys {
	struct ssh_key key[KEYS_MAX];
	size_t count;
	bool ssh_can;   /* one was left out that ssh itself could use */
	char left[200]; /* what was left out, and why; "" nothing */
};

/* agent, count: what the agent listed. keys_fini() in any case. */
int keys_choose(const struct sshconf *conf, const struct agent_key *agent,
		size_t count, struct ssh_keys *keys);
void keys_fini(struct ssh_keys *keys);

#endif
