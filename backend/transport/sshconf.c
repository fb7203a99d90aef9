/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/sshconf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/event.h"
#include "backend/paths.h"

#define LETTERS                      \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* ---- names -------------------------------------------------------------- */

static int name_check(const char *what, const char *name, const char *more,
		      size_t max, struct err *err)
{
	size_t len = strlen(name);
	char letters[80], clean[80];

	snprintf(letters, sizeof(letters), LETTERS "%s", more);
	if (len && len < max && *name != '-' && strspn(name, letters) == len)
		return 0;
	event_text(clean, sizeof(clean), name);
	return err_set(err, -EINVAL,
		       "%s \"%s\": expected 1 to %zu letters, digits or any of "
		       "%s, not beginning with '-'",
		       what, clean, max - 1, more);
}

static int path_check(const char *what, const char *path, struct err *err)
{
	char clean[200];

	if (*path && *path != '-' && strlen(path) < PATH_MAX &&
	    !strpbrk(path, "\"\n\r"))
		return 0;
	event_text(clean, sizeof(clean), path);
	return err_set(err, -EINVAL,
		       "%s \"%s\": expected the path of a file, not beginning "
		       "with '-'",
		       what, clean);
}

int sshconf_check(const struct transport_host *host, struct err *err)
{
	int rc = name_check("host", host->host, "._-:%", 256, err);

	if (!rc && host->user)
		rc = name_check("user", host->user, "._-@", 64, err);
	if (!rc && host->port > 65535)
		rc = err_set(err, -EINVAL, "port %u: expected 1 to 65535",
			     host->port);
	if (!rc && host->identity)
		rc = path_check("identity", host->identity, err);
	if (!rc && host->config)
		rc = path_check("ssh_config", host->config, err);
	return rc;
}

void sshconf_place(const struct transport_host *host, char *buf, size_t len)
{
	bool six = strchr(host->host, ':') != NULL;
	char port[16] = "";

	if (host->port)
		snprintf(port, sizeof(port), ":%u", host->port);
	snprintf(buf, len, "%s%s%s%s%s%s", host->user ? host->user : "",
		 host->user ? "@" : "", six ? "[" : "", host->host,
		 six ? "]" : "", port);
}

int sshconf_words(const struct transport_host *host, const char **argv, int at,
		  char port[16])
{
	if (host->config) {
		argv[at++] = "-F";
		argv[at++] = host->config;
	}
	if (host->port) {
		snprintf(port, 16, "%u", host->port);
		argv[at++] = "-p";
		argv[at++] = port;
	}
	if (host->user) {
		argv[at++] = "-l";
		argv[at++] = host->user;
	}
	if (host->identity) {
		argv[at++] = "-i";
		argv[at++] = host->identity;
		argv[at++] = "-oIdentitiesOnly=yes";
	}
	argv[at++] = "--";
	argv[at++] = host->host;
	return at;
}

/* ---- values ------------------------------------------------------------- */

static void only_ssh(struct sshconf *c, const char *why, const char *value)
{
	if (!*c->only_ssh)
		snprintf(c->only_ssh, sizeof(c->only_ssh), "%s %.100s", why,
			 value);
}

/* Tokens and variables are expanded by ssh alone. */
static bool has_tokens(const char *value)
{
	return strchr(value, '%') || strstr(value, "${");
}

static void file_add(char **list, size_t *count, const char *path)
{
	char full[PATH_MAX];

	if (*count < SSHCONF_FILES && !path_expand(path, full, sizeof(full)))
		list[*count] = strdup(full);
	if (*count < SSHCONF_FILES && list[*count])
		++*count;
}

static void identity_take(struct sshconf *c, const char *value)
{
	char full[PATH_MAX], cert[PATH_MAX + 16];

	if (has_tokens(value)) {
		only_ssh(c, "IdentityFile", value);
		return;
	}
	file_add(c->identity, &c->identities, value);
	if (path_expand(value, full, sizeof(full)))
		return;
	snprintf(cert, sizeof(cert), "%s-cert.pub", full);
	if (path_exists(cert))
		only_ssh(c, "the certificate", cert);
}

static void known_take(struct sshconf *c, char *value)
{
	char *save, *word = strtok_r(value, " ", &save);

	for (; word; word = strtok_r(NULL, " ", &save))
		if (has_tokens(word))
			only_ssh(c, "known_hosts file", word);
		else if (strcmp(word, "none") != 0)
			file_add(c->known, &c->knowns, word);
}

static void agent_take(struct sshconf *c, const char *value)
{
	char path[PATH_MAX];

	free(c->agent);
	c->agent = NULL;
	if (!strcmp(value, "none"))
		return;
	if (!strcmp(value, "SSH_AUTH_SOCK"))
		value = getenv("SSH_AUTH_SOCK");
	else if (*value == '$')
		value = getenv(value + 1);
	else if (has_tokens(value))
		only_ssh(c, "IdentityAgent", value);
	if (value && *value && !path_expand(value, path, sizeof(path)))
		c->agent = strdup(path);
}

/* Settings that change what ssh does in ways this program does not; their
 * values when they do not. */
static const struct {
	const char *key, *idle, *why;
} only[] = {
	{ "proxyjump", "none", "it is behind the jump host" },
	{ "proxycommand", "none", "it is reached by the ProxyCommand" },
	{ "certificatefile", "none", "the certificate" },
	{ "pkcs11provider", "none", "the key is held by PKCS#11" },
	{ "revokedhostkeys", "none", "RevokedHostKeys" },
	{ "knownhostscommand", "none", "KnownHostsCommand" },
	{ "bindaddress", "none", "BindAddress" },
	{ "bindinterface", "none", "BindInterface" },
	{ "pubkeyauthentication", "true", "PubkeyAuthentication" },
};

static bool only_take(struct sshconf *c, const char *key, const char *value)
{
	for (size_t k = 0; k < array_len(only); k++) {
		if (strcmp(key, only[k].key) != 0)
			continue;
		if (strcmp(value, only[k].idle) != 0 &&
		    strcmp(value, "yes") != 0)
			only_ssh(c, only[k].why, value);
		return true;
	}
	return false;
}

static void list_take(char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
}

static void line_take(struct sshconf *c, const char *key, char *value)
{
	if (only_take(c, key, value))
		return;
	if (!strcmp(key, "hostname"))
		snprintf(c->host, sizeof(c->host), "%s", value);
	else if (!strcmp(key, "user"))
		snprintf(c->user, sizeof(c->user), "%s", value);
	else if (!strcmp(key, "port"))
		c->port = (unsigned)strtoul(value, NULL, 10);
	else if (!strcmp(key, "hostkeyalias"))
		snprintf(c->alias, sizeof(c->alias), "%s", value);
	else if (!strcmp(key, "addressfamily"))
		c->family = !strcmp(value, "inet")    ? '4'
			    : !strcmp(value, "inet6") ? '6'
						      : 0;
	else if (!strcmp(key, "identityfile"))
		identity_take(c, value);
	else if (!strcmp(key, "identitiesonly"))
		c->identities_only = !strcmp(value, "yes");
	else if (!strcmp(key, "identityagent"))
		agent_take(c, value);
	else if (!strcmp(key, "userknownhostsfile") ||
		 !strcmp(key, "globalknownhostsfile"))
		known_take(c, value);
	else if (!strcmp(key, "kexalgorithms"))
		list_take(&c->kex, value);
	else if (!strcmp(key, "ciphers"))
		list_take(&c->ciphers, value);
	else if (!strcmp(key, "macs"))
		list_take(&c->macs, value);
	else if (!strcmp(key, "hostkeyalgorithms"))
		list_take(&c->hostkeys, value);
}

int sshconf_parse(char *text, struct sshconf *c, struct err *err)
{
	struct transport_host found;
	char *save, *line = strtok_r(text, "\n", &save), *value;
	int rc;

	*c = (struct sshconf) { .port = 22 };
	agent_take(c, "SSH_AUTH_SOCK");
	for (; line; line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, "\r")] = '\0';
		value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		line_take(c, line, value);
	}
	if (!c->port || !*c->host || !*c->user)
		return err_set(err, -EPROTO,
			       "ssh -G names no host, user and port: expected "
			       "OpenSSH's ssh");
	/* what a configuration file says may be an option as well */
	found = (struct transport_host) { .host = c->host,
					  .user = c->user,
					  .port = c->port };
	rc = sshconf_check(&found, err);
	if (!rc && *c->alias)
		rc = name_check("HostKeyAlias", c->alias, "._-:%", 256, err);
	return rc;
}

void sshconf_fini(struct sshconf *c)
{
	for (size_t k = 0; k < c->identities; k++)
		free(c->identity[k]);
	for (size_t k = 0; k < c->knowns; k++)
		free(c->known[k]);
	free(c->agent);
	free(c->kex);
	free(c->ciphers);
	free(c->macs);
	free(c->hostkeys);
	*c = (struct sshconf) { 0 };
}
