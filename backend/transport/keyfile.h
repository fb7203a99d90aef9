/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a private key file is, by what stands in it in the clear. */
#ifndef BACKEND_TRANSPORT_KEYFILE_H
#define BACKEND_TRANSPORT_KEYFILE_H

#include "engine/base.h"

enum key_use {
	KEY_ABSENT,
	KEY_PLAIN,     /* ed25519 or ecdsa: libssh2 can */
	KEY_RSA,       /* only with SHA-1 in libssh2 1.10 */
	KEY_HARDWARE,  /* FIDO, by ssh-sk-helper */
	KEY_ENCRYPTED, /* a passphrase is the agent's business */
	KEY_OPEN,      /* others may read it: ssh refuses it as well */
	KEY_OTHER,     /* nothing we know */
};

struct keyfile {
	enum key_use use;
	uint8_t *blob; /* the public half; NULL: not known */
	size_t blob_len;
};

/* keyfile_fini() in any case. Never an error: what cannot be read is absent. */
void keyfile_look(const char *path, struct keyfile *key);
void keyfile_fini(struct keyfile *key);
/* By the type that a public blob begins with. */
enum key_use key_use_of(const uint8_t *blob, size_t len);
/* Why a key of this use was not tried, with what to do; NULL: it was. */
const char *key_use_text(enum key_use use);

#endif
