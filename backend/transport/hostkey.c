/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/hostkey.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/transport/base64.h"

void hostkey_name(const struct sshconf *conf, char *buf, size_t len)
{
	if (*conf->alias)
		snprintf(buf, len, "%s", conf->alias);
	else if (conf->port == 22)
		snprintf(buf, len, "%s", conf->host);
	else
		snprintf(buf, len, "[%s]:%u", conf->host, conf->port);
	for (; *buf; buf++)
		*buf = (char)tolower((unsigned char)*buf);
}

/* ---- reading ------------------------------------------------------------ */

/* [@marker] names type base64 [comment] */
static int line_take(struct hostkeys *keys, char *line, const char *file)
{
	const char *blanks = " \t\r";
	char *save, *word = strtok_r(line, blanks, &save), *type, *blob;
	struct hostkey *k = &keys->key[keys->count];
	bool revoked = false;

	if (!word || *word == '#')
		return 0;
	if (*word == '@') {
		if (!strcmp(word, "@cert-authority"))
			keys->authority = true;
		revoked = !strcmp(word, "@revoked");
		if (!revoked)
			return 0;
		strtok_r(NULL, blanks, &save);
	}
	type = strtok_r(NULL, blanks, &save);
	blob = strtok_r(NULL, blanks, &save);
	if (!blob || strlen(type) >= sizeof(k->type))
		return 0;
	if (keys->count == HOSTKEYS_MAX)
		return -E2BIG;
	*k = (struct hostkey) { .revoked = revoked, .file = file };
	snprintf(k->type, sizeof(k->type), "%s", type);
	k->blob = strdup(blob);
	if (!k->blob)
		return -ENOMEM;
	keys->count++;
	return 0;
}

int hostkey_take(struct hostkeys *keys, char *text, const char *file)
{
	char *save, *line = strtok_r(text, "\n", &save);
	int rc = 0;

	for (; line && !rc; line = strtok_r(NULL, "\n", &save))
		rc = line_take(keys, line, file);
	return rc;
}

void hostkey_fini(struct hostkeys *keys)
{
	for (size_t k = 0; k < keys->count; k++)
		free(keys->key[k].blob);
	*keys = (struct hostkeys) { 0 };
}

/* ---- methods ------------------------------------------------------------ */

/* An RSA key is shown by other methods than its type is called. */
static bool method_of(const char *method, size_t len, const char *type)
{
	static const char *const rsa[] = { "rsa-sha2-512", "rsa-sha2-256" };

	if (!strcmp(type, "ssh-rsa")) {
		for (size_t k = 0; k < array_len(rsa); k++)
			if (len == strlen(rsa[k]) &&
			    !strncmp(method, rsa[k], len))
				return true;
		return false;
	}
	return len == strlen(type) && !strncmp(method, type, len);
}

static bool method_good(const struct hostkeys *keys, const char *const *offered,
			size_t count, const char *method, size_t len)
{
	bool known = false;

	for (size_t k = 0; k < keys->count; k++)
		known = known || (!keys->key[k].revoked &&
				  method_of(method, len, keys->key[k].type));
	for (size_t k = 0; known && k < count; k++)
		if (strlen(offered[k]) == len &&
		    !strncmp(offered[k], method, len))
			return true;
	return false;
}

void hostkey_methods(const struct hostkeys *keys, const char *const *offered,
		     size_t count, const char *order, char *buf, size_t len)
{
	size_t n, at = 0;

	for (*buf = '\0'; order && *order; order += n + (order[n] == ',')) {
		n = strcspn(order, ",");
		if (n && method_good(keys, offered, count, order, n) &&
		    at + n + 2 < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%.*s",
					       at ? "," : "", (int)n, order);
	}
}

/* ---- judging ------------------------------------------------------------ */

static const char *first_file(const struct sshconf *conf)
{
	return conf->knowns ? conf->known[0] : "~/.ssh/known_hosts";
}

int hostkey_any(const struct hostkeys *keys, const struct sshconf *conf,
		struct err *err)
{
	char name[280];
	bool revoked = false;

	hostkey_name(conf, name, sizeof(name));
	for (size_t k = 0; k < keys->count; k++) {
		if (!keys->key[k].revoked)
			return 0;
		revoked = true;
	}
	if (revoked)
		return err_set(err, -EKEYREJECTED,
			       "%s: the only host key known of it is revoked: "
			       "give the host a new key, then write that into "
			       "%s",
			       name, first_file(conf));
	return err_set(err, -ENOKEY,
		       "%s: no host key of it is known. Compare what this "
		       "prints with the host's own (ssh-keygen -lf "
		       "/etc/ssh/ssh_host_ed25519_key.pub there), then append "
		       "it to %s: ssh-keyscan -t ed25519 -p %u %s",
		       name, first_file(conf), conf->port, conf->host);
}

int hostkey_check(const struct hostkeys *keys, const struct sshconf *conf,
		  const void *blob, size_t len, const char *fingerprint,
		  struct err *err)
{
	char *shown = base64_encode(blob, len), name[280];
	const struct hostkey *k;
	const char *file = first_file(conf);
	bool known = false, revoked = false;

	if (!shown)
		return err_set(err, -ENOMEM, "host key: out of memory");
	for (k = keys->key; k < keys->key + keys->count; k++) {
		bool same = !strcmp(k->blob, shown);

		known = known || (same && !k->revoked);
		revoked = revoked || (same && k->revoked);
		if (!k->revoked && !known)
			file = k->file;
	}
	free(shown);
	if (known && !revoked)
		return 0;
	hostkey_name(conf, name, sizeof(name));
	if (revoked)
		return err_set(
			err, -EKEYREJECTED,
			"%s: the host key it shows, %s, is revoked: "
			"nothing was sent to it. Give the host a new key",
			name, fingerprint);
	return err_set(err, -EKEYREJECTED,
		       "%s: its host key has changed: it shows %s, which is "
		       "not in %s. Somebody may stand in between. If you know "
		       "that the host was installed anew: ssh-keygen -R '%s' "
		       "-f %s, then make the new key known",
		       name, fingerprint, file, name, file);
}
