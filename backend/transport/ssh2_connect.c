/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a name to a connection. getaddrinfo() blocks, so getent calls it. */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/transport/ssh2_priv.h"
#include "engine/rng.h"

#define RESOLVE_MS 8000
#define CONNECT_MS 5000 /* an address */
#define LOST_MS 10000   /* what was sent must be acknowledged within */
#define AGAIN_MS 250    /* and as much again, by chance */

/* ---- the name ----------------------------------------------------------- */

static void addr_add(struct ssh2 *s, const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICHOST |
						    AI_NUMERICSERV };
	struct addrinfo *found;
	char port[16];

	snprintf(port, sizeof(port), "%u", s->o.conf->port);
	if (s->addrs == SSH2_ADDRS || getaddrinfo(text, port, &hints, &found))
		return;
	memcpy(&s->addr[s->addrs], found->ai_addr, found->ai_addrlen);
	s->addr_len[s->addrs++] = found->ai_addrlen;
	freeaddrinfo(found);
}

/* ADDRESS STREAM [NAME], among the same for other types of socket. */
static void addrs_take(struct ssh2 *s, char *text)
{
	char *save, *line = strtok_r(text, "\n", &save), *type;

	for (; line; line = strtok_r(NULL, "\n", &save)) {
		size_t len = strcspn(line, " \t");

		type = line + len + strspn(line + len, " \t");
		line[len] = '\0';
		if (!strncmp(type, "STREAM", 6))
			addr_add(s, line);
	}
}

int ssh2_resolve(struct ssh2 *s, struct err *err)
{
	const char *argv[] = { "getent", "ahosts", s->o.conf->host, NULL };
	int status, rc;

	if (!s->errand.going) {
		addr_add(s, s->o.conf->host);
		if (s->addrs)
			goto out;
		if (s->o.conf->family)
			argv[1] = s->o.conf->family == '4' ? "ahostsv4"
							   : "ahostsv6";
		rc = errand_start(&s->errand, argv, RESOLVE_MS, err);
		if (rc)
			return rc;
	}
	rc = errand_step(&s->errand, &status, err);
	if (rc == -ETIMEDOUT)
		return err_set(err, rc,
			       "%s: its name, %s, was not resolved within %d "
			       "s: is the name server there?",
			       s->o.far->place, s->o.conf->host,
			       RESOLVE_MS / 1000);
	if (rc)
		return rc;
	addrs_take(s, s->errand.out);
	errand_fini(&s->errand);
	if (!s->addrs)
		return err_set(err, -EHOSTUNREACH,
			       "%s: the name %s is not known: mind its "
			       "spelling, or /etc/hosts",
			       s->o.far->place, s->o.conf->host);
out:
	ssh2_next(s, SSH2_CONNECT, 0);
	return 0;
}

/* ---- the connection ----------------------------------------------------- */

static void option(int sock, int level, int name, int value)
{
	setsockopt(sock, level, name, &value, sizeof(value));
}

/*
 * NODELAY: without it a handshake takes 51 to 96 ms in place of 7 to 11. The
 * others end what is dead: with data on its way, and without.
 */
static int sock_new(int family)
{
	int sock =
		socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	option(sock, IPPROTO_TCP, TCP_NODELAY, 1);
	option(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, LOST_MS);
	option(sock, SOL_SOCKET, SO_KEEPALIVE, 1);
	option(sock, IPPROTO_TCP, TCP_KEEPIDLE, 5);
	option(sock, IPPROTO_TCP, TCP_KEEPINTVL, 3);
	option(sock, IPPROTO_TCP, TCP_KEEPCNT, 3);
	return sock;
}

static int connect_begin(struct ssh2 *s)
{
	const struct sockaddr_storage *to = &s->addr[s->addr_at];

	s->sock = sock_new(to->ss_family);
	if (s->sock < 0)
		return s->sock;
	s->due_ms = transport_now_ms() + CONNECT_MS / transport_hurry;
	if (!connect(s->sock, (const struct sockaddr *)to,
		     s->addr_len[s->addr_at]))
		return 0;
	return errno == EINPROGRESS ? -EAGAIN : -errno;
}

static int connect_look(struct ssh2 *s)
{
	struct pollfd p = { .fd = s->sock, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&p, 1, 0) <= 0)
		return ssh2_late(s) ? -ETIMEDOUT : -EAGAIN;
	getsockopt(s->sock, SOL_SOCKET, SO_ERROR, &error, &len);
	return -error;
}

static int connect_failed(const struct ssh2 *s, int rc, struct err *err)
{
	const char *place = s->o.far->place;
	unsigned port = s->o.conf->port;

	if (rc == -ECONNREFUSED)
		return err_set(err, rc,
			       "%s: connection refused: does sshd run there, "
			       "on port %u?",
			       place, port);
	if (rc == -ETIMEDOUT)
		return err_set(err, rc,
			       "%s: nothing answers on port %u within %d s: is "
			       "the host up, is the way free (firewall)?",
			       place, port, CONNECT_MS / 1000);
	return err_set(err, rc,
		       "%s: port %u: %s: is the host up, is the "
		       "network there?",
		       place, port, strerror(-rc));
}

int ssh2_connect(struct ssh2 *s, struct err *err)
{
	int rc;

	if (s->again_ms && transport_now_ms() < s->again_ms)
		return -EAGAIN;
	s->again_ms = 0;
	for (;;) {
		rc = s->sock < 0 ? connect_begin(s) : connect_look(s);
		if (rc == -EAGAIN)
			return rc;
		if (!rc)
			break;
		if (s->sock >= 0)
			close(s->sock);
		s->sock = -1;
		if (++s->addr_at == s->addrs)
			return connect_failed(s, rc, err);
	}
	ssh2_next(s, SSH2_GATE, 0);
	return 0;
}

void ssh2_disconnect(struct ssh2 *s)
{
	/* so that nothing below waits for room to send, and so leaks */
	if (s->sock >= 0)
		shutdown(s->sock, SHUT_RDWR);
	if (s->session)
		libssh2_session_free(s->session); /* with its channel */
	s->channel = NULL;
	s->session = NULL;
	if (s->sock >= 0)
		close(s->sock);
	s->sock = -1;
	gate_leave(&s->gate);
}

void ssh2_again(struct ssh2 *s)
{
	struct rng rng;

	ssh2_disconnect(s);
	rng_seed(&rng, (uint64_t)transport_now_ms() ^ (uintptr_t)s);
	s->tries++;
	s->addr_at = 0;
	s->again_ms = transport_now_ms() + AGAIN_MS * (int64_t)s->tries +
		      (int64_t)rng_below(&rng, AGAIN_MS);
	ssh2_next(s, SSH2_CONNECT, 0);
}
