/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ssh reads its own configuration; the options below come first and so win.
 * They see to it that nothing asks, nothing is trusted unseen, and a dead peer
 * is noticed.
 */
#include "backend/transport/openssh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "backend/transport/process.h"
#include "backend/transport/sshconf.h"

#define CLOSE_MS 300
#define SSH_FAILED 255

static const char *const options[] = {
	"-T",
	/* never at the terminal, which the console draws on */
	"-oBatchMode=yes",
	"-oRequestTTY=no",
	"-oLogLevel=ERROR",
	"-oVisualHostKey=no",
	/* no key that is not known, whatever is configured */
	"-oStrictHostKeyChecking=yes",
	"-oUpdateHostKeys=no",
	"-oVerifyHostKeyDNS=no",
	"-oNoHostAuthenticationForLocalhost=no",
	/* a connection of its own, for this alone */
	"-oControlMaster=no",
	"-oControlPath=none",
	"-oClearAllForwardings=yes",
	"-oForwardAgent=no",
	"-oForwardX11=no",
	"-oPermitLocalCommand=no",
	"-oRemoteCommand=none",
	"-oSessionType=default",
	"-oStdinNull=no",
	"-oForkAfterAuthentication=no",
	/* an end in time */
	"-oConnectTimeout=10",
	"-oConnectionAttempts=1",
	"-oServerAliveInterval=5",
	"-oServerAliveCountMax=3",
};

struct openssh {
	struct transport t;
	const struct far *far;
	struct process process;
};

static struct openssh *openssh_of(const struct transport *t)
{
	return container_of(t, struct openssh, t);
}

/* ---- ssh's own failures ------------------------------------------------- */

#define KNOWN_REMEDY                                                         \
	"compare its key with the host's own, then make it known: see what " \
	"`ssh` says of it by hand"

/* What ssh says, in any of its lines, and what to do about it. */
static const struct {
	const char *word;
	int code;
	const char *remedy;
} failures[] = {
	{ "REVOKED", EKEYREJECTED,
	  "its host key is revoked: give the host a new key" },
	{ "IDENTIFICATION HAS CHANGED", EKEYREJECTED,
	  "its host key has changed, or somebody stands in between: if you "
	  "know that the host was installed anew, take its old key out with "
	  "ssh-keygen -R and make the new one known" },
	{ "host key is known", ENOKEY,
	  "no host key of it is known: " KNOWN_REMEDY },
	{ "Host key verification failed", ENOKEY,
	  "its host key is not trusted: " KNOWN_REMEDY },
	{ "Too many authentication failures", EACCES,
	  "name the one key to use by `identity`" },
	{ "Permission denied", EACCES,
	  "the login is refused: put the public key into authorized_keys "
	  "there, or name another by `identity`; one with a passphrase needs "
	  "ssh-add" },
	{ "Could not resolve hostname", EHOSTUNREACH,
	  "the name is not known: mind its spelling, or /etc/hosts" },
	{ "Connection refused", ECONNREFUSED,
	  "does sshd run there, on this port?" },
	{ "timed out", ETIMEDOUT,
	  "is the host up, is the way free (firewall)?" },
	{ "not responding", ETIMEDOUT, "the host or its network is down" },
	{ "No route to host", EHOSTUNREACH, "is the host up?" },
	{ "no matching", EPROTO,
	  "it and this ssh have no algorithm in common: allow one in "
	  "ssh_config or sshd_config" },
};

static void ssh_failed(const struct openssh *o, struct err *err)
{
	const struct said *said = &o->process.said;
	char last[200];

	said_last(said, last, sizeof(last));
	for (size_t k = 0; k < array_len(failures); k++)
		if (said_has(said, failures[k].word)) {
			err_set(err, -failures[k].code, "%s: %s (ssh: %s)",
				o->far->place, failures[k].remedy, last);
			return;
		}
	err_set(err, -EPROTO, "%s: ssh: %s", o->far->place,
		*last ? last : "it has ended with status 255");
}

static void ended(const struct openssh *o, struct err *err)
{
	int status = o->process.status;

	if (!o->process.over)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SSH_FAILED)
		ssh_failed(o, err);
	else if (WIFEXITED(status))
		far_ended(o->far, WEXITSTATUS(status), "", &o->process.said,
			  err);
	else
		err_set(err, -ECHILD, "%s: ssh was killed by signal %d",
			o->far->place, WTERMSIG(status));
}

/* ---- the table ---------------------------------------------------------- */

static int openssh_poll(struct transport *t, bool out, struct pollfd *fd,
			int *timeout_ms)
{
	return process_poll(&openssh_of(t)->process, out, fd, timeout_ms);
}

static ssize_t openssh_read(struct transport *t, void *buf, size_t len,
			    struct err *err)
{
	struct openssh *o = openssh_of(t);
	ssize_t n = process_read(&o->process, buf, len);

	if (!n)
		ended(o, err);
	return n;
}

static ssize_t openssh_read_err(struct transport *t, void *buf, size_t len)
{
	return said_take(&openssh_of(t)->process.said, buf, len);
}

static ssize_t openssh_write(struct transport *t, const void *buf, size_t len)
{
	return process_write(&openssh_of(t)->process, buf, len);
}

static const char *openssh_via(const struct transport *t)
{
	return t->ops->kind;
}

static void openssh_close(struct transport *t)
{
	struct openssh *o = openssh_of(t);

	process_end(&o->process, CLOSE_MS);
	free(o);
}

static void openssh_shut(struct transport *t)
{
	process_shut(&openssh_of(t)->process);
}

static const struct transport_ops openssh_ops = {
	.kind = "ssh",
	.poll = openssh_poll,
	.read = openssh_read,
	.read_err = openssh_read_err,
	.write = openssh_write,
	.via = openssh_via,
	.shut = openssh_shut,
	.close = openssh_close,
};

int openssh_open(const struct transport_host *host, const struct far *far,
		 struct transport **t, struct err *err)
{
	const char *argv[array_len(options) + SSHCONF_WORDS + 2];
	struct openssh *o = calloc(1, sizeof(*o));
	char port[16];
	int n = 0, rc;

	if (!o)
		return err_set(err, -ENOMEM, "ssh: out of memory");
	o->t.ops = &openssh_ops;
	o->far = far;
	argv[n++] = "ssh";
	for (size_t k = 0; k < array_len(options); k++)
		argv[n++] = options[k];
	n = sshconf_words(host, argv, n, port);
	argv[n++] = far->command;
	argv[n] = NULL;
	rc = process_start(&o->process, argv, err);
	if (rc == -ENOENT)
		err_set(err, rc,
			"%s: there is no ssh on this machine: install "
			"OpenSSH's client (openssh-client)",
			far->place);
	if (rc)
		free(o);
	else
		*t = &o->t;
	return rc;
}
