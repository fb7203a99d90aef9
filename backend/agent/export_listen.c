/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where an exporter listens. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/agent/export_priv.h"

#define BACKLOG 16

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* 0: it is no address in digits. */
static socklen_t address_read(const char *text, union address *at)
{
	*at = (union address) { 0 };
	if (inet_pton(AF_INET, text, &at->v4.sin_addr) == 1) {
		at->v4.sin_family = AF_INET;
		return sizeof(at->v4);
	}
	*at = (union address) { 0 };
	if (inet_pton(AF_INET6, text, &at->v6.sin6_addr) == 1) {
		at->v6.sin6_family = AF_INET6;
		return sizeof(at->v6);
	}
	return 0;
}

static int listen_at(const union address *at, socklen_t len)
{
	const int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;
	int rc;

	if (fd < 0)
		return -errno;
	if (at->any.sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, &at->any, len) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int listen_tcp(const char *address, uint16_t first, uint16_t last,
	       uint16_t *port, struct err *err)
{
	const unsigned ports = last >= first ? last - first + 1u : 0;
	const unsigned begin =
		*port >= first && *port <= last ? *port - first : 0;
	int fd = -EADDRINUSE;
	union address at;
	socklen_t len = address_read(address, &at);

	if (!len || !first || !ports)
		return err_set(
			err, -EINVAL,
			"NBD: cannot listen at %.64s, ports %u to %u: an "
			"address in digits and a range from 1 on are "
			"needed",
			address, first, last);
	for (unsigned k = 0; k < ports && fd == -EADDRINUSE; k++) {
		*port = (uint16_t)(first + (begin + k) % ports);
		if (at.any.sa_family == AF_INET)
			at.v4.sin_port = htons(*port);
		else
			at.v6.sin6_port = htons(*port);
		fd = listen_at(&at, len);
	}
	if (fd >= 0)
		return fd;
	if (fd == -EADDRINUSE)
		return err_set(err, fd,
			       "NBD: no port from %u to %u is free at %.64s",
			       first, last, address);
	return err_set(err, fd, "NBD: cannot listen at %.64s: %s", address,
		       strerror(-fd));
}

/* The short way to a directory of any depth. */
int listen_unix(int dirfd, const char *name, struct err *err)
{
	union address at = { .un.sun_family = AF_UNIX };
	int fd;

	unlinkat(dirfd, name, 0);
	snprintf(at.un.sun_path, sizeof(at.un.sun_path), "/proc/self/fd/%d/%s",
		 dirfd, name);
	fd = listen_at(&at, sizeof(at.un));
	if (fd >= 0 && !fchmodat(dirfd, name, 0600, 0))
		return fd;
	return err_set(err, fd < 0 ? fd : -errno,
		       "NBD: cannot listen in the agent's directory: %s",
		       strerror(fd < 0 ? -fd : errno));
}
