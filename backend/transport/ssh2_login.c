/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Handshake, host key, login. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/transport/base64.h"
#include "backend/transport/ssh2_priv.h"

#define HANDSHAKE_MS 8000
#define AUTH_MS 10000
#define SIGN_MS 20000 /* the agent may ask its user */
#define CHANNEL_MS 8000
#define TRIES 4

/* ---- handshake ---------------------------------------------------------- */

static void list_add(char *buf, size_t size, const char *word, size_t len)
{
	size_t at = strlen(buf);

	if (at + len + 2 < size)
		snprintf(buf + at, size - at, "%s%.*s", at ? "," : "", (int)len,
			 word);
}

/* Of a comma-separated list, those that the library has. It would leave out
 * the others itself, by memcpy() onto an overlapping place (1.10). */
static int methods_set(struct ssh2 *s, int which, const char *list)
{
	const char **offered = NULL;
	char both[1024] = "";
	size_t len;
	int n = libssh2_session_supported_algs(s->session, which, &offered);

	for (; list && *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		for (int k = 0; k < n; k++)
			if (strlen(offered[k]) == len &&
			    !strncmp(offered[k], list, len))
				list_add(both, sizeof(both), list, len);
	}
	if (offered)
		libssh2_free(s->session, offered);
	return *both ? libssh2_session_method_pref(s->session, which, both)
		     : LIBSSH2_ERROR_METHOD_NOT_SUPPORTED;
}

static void methods_known(LIBSSH2_SESSION *session,
			  const struct hostkeys *known,
			  const struct sshconf *conf, char *buf, size_t len)
{
	const char **offered = NULL;
	int n = libssh2_session_supported_algs(session, LIBSSH2_METHOD_HOSTKEY,
					       &offered);

	*buf = '\0';
	if (n > 0)
		hostkey_methods(known, offered, (size_t)n, conf->hostkeys, buf,
				len);
	if (offered)
		libssh2_free(session, offered);
}

bool ssh2_knows(const struct hostkeys *known, const struct sshconf *conf)
{
	LIBSSH2_SESSION *session = libssh2_session_init();
	char methods[512] = "";

	if (session) {
		methods_known(session, known, conf, methods, sizeof(methods));
		libssh2_session_free(session);
	}
	return *methods;
}

/* What ssh_config allows counts here too; the host key's method is of a key
 * that is known, whatever else the server would rather show. */
static int session_new(struct ssh2 *s, struct err *err)
{
	const struct sshconf *c = s->o.conf;
	char hostkeys[512];

	s->session = libssh2_session_init();
	if (!s->session)
		return err_set(err, -ENOMEM, "libssh2: out of memory");
	libssh2_session_set_blocking(s->session, 0);
	methods_known(s->session, s->o.known, c, hostkeys, sizeof(hostkeys));
	if (!methods_set(s, LIBSSH2_METHOD_HOSTKEY, hostkeys) &&
	    !methods_set(s, LIBSSH2_METHOD_KEX, c->kex) &&
	    !methods_set(s, LIBSSH2_METHOD_CRYPT_CS, c->ciphers) &&
	    !methods_set(s, LIBSSH2_METHOD_CRYPT_SC, c->ciphers) &&
	    !methods_set(s, LIBSSH2_METHOD_MAC_CS, c->macs) &&
	    !methods_set(s, LIBSSH2_METHOD_MAC_SC, c->macs))
		return 0;
	return err_set(err, -EPROTONOSUPPORT,
		       "%s: of the algorithms that ssh_config allows libssh2 "
		       "has none",
		       s->o.far->place);
}

int ssh2_gate(struct ssh2 *s, struct err *err)
{
	char to[80];
	int rc;

	snprintf(to, sizeof(to), "%.60s:%u", s->o.conf->host, s->o.conf->port);
	if (!gate_enter(&s->gate, to, transport_now_ms()))
		return -EAGAIN;
	rc = session_new(s, err);
	if (!rc)
		ssh2_next(s, SSH2_HANDSHAKE, HANDSHAKE_MS);
	return rc;
}

static int key_check(struct ssh2 *s, struct err *err)
{
	const char *hash =
		libssh2_hostkey_hash(s->session, LIBSSH2_HOSTKEY_HASH_SHA256);
	char *text = hash ? base64_encode(hash, 32) : NULL, shown[64];
	const char *blob;
	size_t len;
	int type;

	if (text) /* unpadded, as ssh prints it */
		text[strcspn(text, "=")] = '\0';
	snprintf(shown, sizeof(shown), "SHA256:%s", text ? text : "?");
	free(text);
	blob = libssh2_session_hostkey(s->session, &len, &type);
	if (!blob)
		return err_set(err, -EPROTO, "%s: it shows no host key",
			       s->o.far->place);
	return hostkey_check(s->o.known, s->o.conf, blob, len, shown, err);
}

static int handshake_failed(struct ssh2 *s, int rc, struct err *err)
{
	const char *place = s->o.far->place;
	const char *banner = libssh2_session_banner_get(s->session);
	/* one that has too many says so instead of its banner */
	bool spoke = banner && !strncmp(banner, "SSH-", 4);

	switch (rc) {
	case LIBSSH2_ERROR_KEX_FAILURE:
	case LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE:
	case LIBSSH2_ERROR_METHOD_NONE:
	case LIBSSH2_ERROR_METHOD_NOT_SUPPORTED:
		return err_set(err, -EPROTONOSUPPORT,
			       "%s: it and libssh2 have no common algorithm",
			       place);
	default:
		break;
	}
	if (!spoke && s->tries + 1 < TRIES) {
		ssh2_again(s);
		return 0;
	}
	if (!spoke)
		return err_set(err, -ECONNRESET,
			       "%s: port %u has ended %d connections without "
			       "a word: is it an sshd, has it too many at once "
			       "(MaxStartups)?",
			       place, s->o.conf->port, TRIES);
	return err_set(err, -EPROTO, "%s: the handshake failed: %s", place,
		       ssh2_text(s));
}

int ssh2_handshake(struct ssh2 *s, struct err *err)
{
	int rc = libssh2_session_handshake(s->session, s->sock);

	if (rc == LIBSSH2_ERROR_EAGAIN && !ssh2_late(s))
		return -EAGAIN;
	if (rc == LIBSSH2_ERROR_EAGAIN)
		return err_set(err, -ETIMEDOUT,
			       "%s: port %u takes connections, and no sshd "
			       "answers there within %d s",
			       s->o.far->place, s->o.conf->port,
			       HANDSHAKE_MS / 1000);
	if (rc)
		return handshake_failed(s, rc, err);
	rc = key_check(s, err);
	if (!rc)
		ssh2_next(s, SSH2_AUTH, AUTH_MS);
	return rc;
}

/* ---- login -------------------------------------------------------------- */

static void agent_done(struct ssh2 *s)
{
	sshagent_close(&s->agent);
	s->signing = false;
}

/* Called until it no longer says EAGAIN, with the same data. */
static int agent_signs(LIBSSH2_SESSION *session, unsigned char **sig,
		       size_t *sig_len, const unsigned char *data,
		       size_t data_len, void **abstract)
{
	struct ssh2 *s = *abstract;
	const struct ssh_key *key = &s->o.keys->key[s->key_at];
	int rc = 0;

	(void)session;
	if (!s->signing) {
		s->signing = true;
		s->due_ms = transport_now_ms() + SIGN_MS;
		rc = sshagent_open(&s->agent, s->o.conf->agent);
		if (!rc)
			rc = sshagent_sign(&s->agent, key->blob, key->len, data,
					   data_len);
	}
	if (!rc)
		rc = sshagent_signed(&s->agent, sig, sig_len);
	if (rc == -EAGAIN)
		return LIBSSH2_ERROR_EAGAIN;
	agent_done(s);
	s->due_ms = transport_now_ms() + AUTH_MS;
	return rc ? LIBSSH2_ERROR_AGENT_PROTOCOL : 0;
}

static int key_try(struct ssh2 *s, const struct ssh_key *key)
{
	const char *user = s->o.conf->user;
	void *self = s;

	if (key->path)
		return libssh2_userauth_publickey_fromfile_ex(
			s->session, user, (unsigned)strlen(user), NULL,
			key->path, NULL);
	return libssh2_userauth_publickey(s->session, user, key->blob, key->len,
					  agent_signs, &self);
}

static bool lost(int rc)
{
	return rc == LIBSSH2_ERROR_SOCKET_SEND ||
	       rc == LIBSSH2_ERROR_SOCKET_RECV ||
	       rc == LIBSSH2_ERROR_SOCKET_DISCONNECT ||
	       rc == LIBSSH2_ERROR_SOCKET_NONE;
}

static int refused(const struct ssh2 *s, struct err *err)
{
	const struct ssh_keys *keys = s->o.keys;

	return err_set(err, keys->ssh_can ? -EPROTONOSUPPORT : -EACCES,
		       "%s: the login of %s is refused with %zu key%s%s%s%s: "
		       "put the public key into authorized_keys there, or name "
		       "another by `identity`",
		       s->o.far->place, s->o.conf->user, keys->count,
		       keys->count == 1 ? "" : "s",
		       *keys->left ? " (not tried: " : "", keys->left,
		       *keys->left ? ")" : "");
}

static int auth_late(const struct ssh2 *s, struct err *err)
{
	if (s->signing)
		return err_set(err, -ETIMEDOUT,
			       "%s: the ssh-agent does not sign within %d s: "
			       "does it wait for its user?",
			       s->o.far->place, SIGN_MS / 1000);
	return err_set(err, -ETIMEDOUT,
		       "%s: sshd does not answer the login within %d s",
		       s->o.far->place, AUTH_MS / 1000);
}

int ssh2_auth(struct ssh2 *s, struct err *err)
{
	int rc = LIBSSH2_ERROR_AUTHENTICATION_FAILED;

	for (; s->key_at < s->o.keys->count; s->key_at++) {
		rc = key_try(s, &s->o.keys->key[s->key_at]);
		if (rc == LIBSSH2_ERROR_EAGAIN)
			return ssh2_late(s) ? auth_late(s, err) : -EAGAIN;
		if (!rc || lost(rc))
			break;
	}
	agent_done(s);
	if (lost(rc))
		return err_set(err, -ECONNRESET,
			       "%s: sshd ended the connection during the "
			       "login: its log says why",
			       s->o.far->place);
	if (rc)
		return refused(s, err);
	gate_leave(&s->gate);
	ssh2_next(s, SSH2_CHANNEL, CHANNEL_MS);
	return 0;
}
