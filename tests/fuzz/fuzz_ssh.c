/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What other programs print for the ways over ssh: the first byte says whose
 * words the rest is: g ssh -G, k ssh-keygen -F, b a key's base64. */
#include <stdlib.h>
#include <string.h>

#include "backend/transport/base64.h"
#include "backend/transport/hostkey.h"
#include "backend/transport/keyfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void config(char *text)
{
	struct sshconf conf;
	struct err err;
	char name[280];

	if (!sshconf_parse(text, &conf, &err))
		hostkey_name(&conf, name, sizeof(name));
	sshconf_fini(&conf);
}

static void known(char *text)
{
	static const char *const offered[] = { "ssh-ed25519", "rsa-sha2-256" };
	struct sshconf conf = { .host = "h", .port = 22 };
	struct hostkeys keys = { 0 };
	char methods[64];
	struct err err;

	hostkey_take(&keys, text, "file");
	hostkey_methods(&keys, offered, array_len(offered),
			"ssh-ed25519,,rsa-sha2-256,", methods, sizeof(methods));
	hostkey_any(&keys, &conf, &err);
	hostkey_check(&keys, &conf, "blob", 4, "SHA256:x", &err);
	hostkey_fini(&keys);
}

static void key(const char *text, size_t len)
{
	uint8_t *bytes;
	size_t n;

	if (base64_decode(text, len, &bytes, &n))
		return;
	key_use_of(bytes, n);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 'g')
		config(text);
	else if (data[0] == 'k')
		known(text);
	else
		key(text, size - 1);
	free(text);
	return 0;
}
