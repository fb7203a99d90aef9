/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where an NBD server is said to be: checked before anything is sent. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bdev/nbd_impl.h"

/* ---- addresses ---------------------------------------------------------- */

static int unix_address(const char *path, union nbd_conn_address *at,
			socklen_t *len, struct err *err)
{
	const size_t n = strlen(path);

	if (!n || n >= sizeof(at->un.sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "NBD: the path of a socket has 1 to %zu bytes: "
			       "%.64s",
			       sizeof(at->un.sun_path) - 1, path);
	at->un = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(at->un.sun_path, path, n + 1);
	*len = sizeof(at->un);
	return 0;
}

int nbd_conn_address(const struct bdev_nbd_target *target,
		     union nbd_conn_address *at, socklen_t *len,
		     struct err *err)
{
	memset(at, 0, sizeof(*at));
	if (target->unix_path)
		return unix_address(target->unix_path, at, len, err);
	if (target->address && target->port &&
	    inet_pton(AF_INET, target->address, &at->v4.sin_addr) == 1) {
		at->v4.sin_family = AF_INET;
		at->v4.sin_port = htons(target->port);
		*len = sizeof(at->v4);
		return 0;
	}
	memset(at, 0, sizeof(*at));
	if (target->address && target->port &&
	    inet_pton(AF_INET6, target->address, &at->v6.sin6_addr) == 1) {
		at->v6.sin6_family = AF_INET6;
		at->v6.sin6_port = htons(target->port);
		*len = sizeof(at->v6);
		return 0;
	}
	return err_set(err, -EINVAL,
		       "NBD: %.64s port %u is no address in digits with a port",
		       target->address ? target->address : "nothing",
		       target->port);
}

/* ---- keys --------------------------------------------------------------- */

#define KEY_DIGITS_MIN 32u
#define KEY_DIGITS_MAX 512u

const char *nbd_conn_identity(const struct bdev_nbd_target *target)
{
	return target->identity ? target->identity : "iodeck";
}

/* The text of a line for GnuTLS: no message says more of it than this. */
static int key_check(const struct bdev_nbd_target *target, struct err *err)
{
	const char *key = target->key, *who = nbd_conn_identity(target);
	const size_t len = strlen(key);

	if (len < KEY_DIGITS_MIN || len > KEY_DIGITS_MAX || len % 2 ||
	    strspn(key, "0123456789abcdefABCDEF") != len)
		return err_set(err, -EINVAL,
			       "NBD: a key has %u to %u hexadecimal digits",
			       KEY_DIGITS_MIN, KEY_DIGITS_MAX);
	if (!*who || strlen(who) > 64 || strpbrk(who, ": \t\n\\#"))
		return err_set(err, -EINVAL,
			       "NBD: an identity has 1 to 64 letters and "
			       "digits");
	return 0;
}

int nbd_conn_check(const struct bdev_nbd_target *target, struct err *err)
{
	union nbd_conn_address at;
	socklen_t len;
	const int rc = nbd_conn_address(target, &at, &len, err);

	return rc || !target->key ? rc : key_check(target, err);
}

/* ---- kept ---------------------------------------------------------------- */

void nbd_where_free(struct nbd_where *w)
{
	free(w->unix_path);
	free(w->address);
	free(w->export_name);
	if (w->key)
		explicit_bzero(w->key, strlen(w->key));
	free(w->key);
	free(w->identity);
	free(w->priority);
	free(w->boot);
	*w = (struct nbd_where) { 0 };
}

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

int nbd_where_take(struct nbd_where *w, const struct bdev_nbd_target *t)
{
	w->port = t->port;
	if (copy(&w->unix_path, t->unix_path) &&
	    copy(&w->address, t->address) &&
	    copy(&w->export_name, t->export_name) && copy(&w->key, t->key) &&
	    copy(&w->identity, t->identity) &&
	    copy(&w->priority, t->priority) && copy(&w->boot, t->boot))
		return 0;
	nbd_where_free(w);
	return -ENOMEM;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool nbd_where_same(const struct nbd_where *a, const struct nbd_where *b)
{
	return a->port == b->port && same(a->unix_path, b->unix_path) &&
	       same(a->address, b->address) &&
	       same(a->export_name, b->export_name) && same(a->key, b->key) &&
	       same(a->identity, b->identity) &&
	       same(a->priority, b->priority) && same(a->boot, b->boot);
}

struct bdev_nbd_target nbd_where_target(const struct nbd_where *w)
{
	return (struct bdev_nbd_target) {
		.unix_path = w->unix_path,
		.address = w->address,
		.port = w->port,
		.export_name = w->export_name,
		.key = w->key,
		.identity = w->identity,
		.priority = w->priority,
		.boot = w->boot,
	};
}

void nbd_where_say(const struct nbd_where *w, char *buf, size_t len)
{
	if (w->unix_path)
		snprintf(buf, len, "%s", w->unix_path);
	else if (w->address)
		snprintf(buf, len, "%s port %u", w->address, w->port);
	else
		snprintf(buf, len, "nowhere yet");
}
