/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who a host is. known_hosts files are read by `ssh-keygen -F` alone: hashed
 * names, wildcards, markers, [host]:port and files with garbage in them are its
 * business, and libssh2's own reader says yes to a revoked key and to the key
 * of another port. What it prints is compared here, byte by byte.
 */
#ifndef BACKEND_TRANSPORT_HOSTKEY_H
#define BACKEND_TRANSPORT_HOSTKEY_H

#include "backend/transport/sshconf.h"

#define HOSTKEYS_MAX 64

struct hostkey {
	char type[64];
	char *blob; /* base64 */
	bool revoked;
	const char *file; /* borrowed */
};

struct hostkeys {
	struct hostkey key[HOSTKEYS_MAX];
	size_t count;
	bool authority; /* a @cert-authority line names the host */
};

/* The name that known_hosts files have for it: [host]:port off port 22. */
void hostkey_name(const struct sshconf *conf, char *buf, size_t len);
/* Takes in what ssh-keygen -F printed of a file; changes it. */
int hostkey_take(struct hostkeys *keys, char *text, const char *file);
void hostkey_fini(struct hostkeys *keys);
/*
 * Which of the methods that the library offers may be asked for: those a key
 * is known for, in ssh_config's order, comma-separated. "" none.
 */
void hostkey_methods(const struct hostkeys *keys, const char *const *offered,
		     size_t count, const char *order, char *buf, size_t len);
/* Before anything is sent: is there a key to compare with at all? */
int hostkey_any(const struct hostkeys *keys, const struct sshconf *conf,
		struct err *err);
/* Is it one of them, and none that is revoked? fingerprint: of the key that
 * was shown, "SHA256:...", for the message. */
int hostkey_check(const struct hostkeys *keys, const struct sshconf *conf,
		  const void *blob, size_t len, const char *fingerprint,
		  struct err *err);

#endif
