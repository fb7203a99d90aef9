/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The format is OpenSSH's PROTOCOL.key: after the magic, cipher, kdf and its
 * options as strings, a count, and the public key as a string.
 */
#include "backend/transport/keyfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/transport/base64.h"

#define KEY_MAX (64 * 1024)
#define BEGIN "-----BEGIN "
#define MAGIC "openssh-key-v1" /* with its zero */

static bool begins(const uint8_t *bytes, size_t len, const char *text)
{
	return len >= strlen(text) && !memcmp(bytes, text, strlen(text));
}

enum key_use key_use_of(const uint8_t *blob, size_t len)
{
	const uint8_t *at = blob, *type;
	size_t n;

	if (blob_string(&at, blob + len, &type, &n))
		return KEY_OTHER;
	if (blob_is(type, n, "ssh-ed25519") ||
	    blob_is(type, n, "ecdsa-sha2-nistp256") ||
	    blob_is(type, n, "ecdsa-sha2-nistp384") ||
	    blob_is(type, n, "ecdsa-sha2-nistp521"))
		return KEY_PLAIN;
	if (blob_is(type, n, "ssh-rsa"))
		return KEY_RSA;
	return begins(type, n, "sk-") ? KEY_HARDWARE : KEY_OTHER;
}

const char *key_use_text(enum key_use use)
{
	switch (use) {
	case KEY_RSA:
		return "is RSA";
	case KEY_HARDWARE:
		return "is a hardware key";
	case KEY_ENCRYPTED:
		return "is encrypted: ssh-add it";
	case KEY_OPEN:
		return "can be read by others: chmod 600";
	case KEY_OTHER:
		return "is of no kind known here";
	default:
		return NULL;
	}
}

/* What is decoded of an OpenSSH key's body. */
static void body_look(const uint8_t *body, size_t len, struct keyfile *key)
{
	const uint8_t *at = body + sizeof(MAGIC), *end = body + len, *s;
	bool encrypted;
	size_t n;

	if (len < sizeof(MAGIC) || memcmp(body, MAGIC, sizeof(MAGIC)) != 0 ||
	    blob_string(&at, end, &s, &n))
		return;
	encrypted = !blob_is(s, n, "none");
	if (blob_string(&at, end, &s, &n) || blob_string(&at, end, &s, &n) ||
	    end - at < 4)
		return;
	at += 4;
	if (blob_string(&at, end, &s, &n))
		return;
	key->blob = malloc(n ? n : 1);
	if (!key->blob)
		return;
	memcpy(key->blob, s, n);
	key->blob_len = n;
	key->use = key_use_of(s, n);
	if (encrypted && key->use != KEY_HARDWARE)
		key->use = KEY_ENCRYPTED;
}

static void text_look(const char *text, struct keyfile *key)
{
	const char *body = strstr(text, "KEY-----\n"), *end;
	uint8_t *bytes;
	size_t len;

	key->use = KEY_OTHER;
	if (strncmp(text, BEGIN, strlen(BEGIN)) != 0 || !body)
		return;
	text += strlen(BEGIN);
	body += strlen("KEY-----\n");
	end = strstr(body, "-----END");
	if (!strncmp(text, "OPENSSH PRIVATE", 15) && end) {
		if (base64_decode(body, (size_t)(end - body), &bytes, &len))
			return;
		body_look(bytes, len, key);
		/* the private half was in there, too */
		explicit_bzero(bytes, len);
		free(bytes);
	} else if (!strncmp(text, "ENCRYPTED", 9) ||
		   strstr(body, "ENCRYPTED")) {
		key->use = KEY_ENCRYPTED;
	} else if (!strncmp(text, "RSA", 3)) {
		key->use = KEY_RSA;
	} else if (!strncmp(text, "EC ", 3)) {
		key->use = KEY_PLAIN;
	}
}

/* Of a key whose private half tells nothing, or is the agent's alone. */
static void public_look(const char *path, struct keyfile *key)
{
	char name[PATH_MAX], line[16 * 1024], *blob, *save;
	FILE *f = NULL;

	if (snprintf(name, sizeof(name), "%s.pub", path) < (int)sizeof(name))
		f = fopen(name, "re");
	if (!f)
		return;
	if (fgets(line, sizeof(line), f) && strtok_r(line, " \t", &save)) {
		blob = strtok_r(NULL, " \t\r\n", &save);
		if (blob && base64_decode(blob, strlen(blob), &key->blob,
					  &key->blob_len))
			key->blob = NULL;
	}
	fclose(f);
}

static void private_look(const char *path, struct keyfile *key)
{
	static char text[KEY_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return;
	n = fstat(fd, &st) || !S_ISREG(st.st_mode)
		    ? -1
		    : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return;
	text[n] = '\0';
	text_look(text, key);
	explicit_bzero(text, sizeof(text));
	if (st.st_uid == geteuid() && (st.st_mode & 077))
		key->use = KEY_OPEN;
}

void keyfile_look(const char *path, struct keyfile *key)
{
	*key = (struct keyfile) { .use = KEY_ABSENT };
	private_look(path, key);
	if (!key->blob)
		public_look(path, key);
}

void keyfile_fini(struct keyfile *key)
{
	free(key->blob);
	*key = (struct keyfile) { 0 };
}
