/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/provider/export.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/agent/nbdkit.h"
#include "backend/agent/serve.h"
#include "backend/agent/tools.h"
#include "backend/provider/provider_priv.h"

#define NBD_PORT 10809
#define KEY_BYTES 32
#define STOPS_MAX 4

struct p_export {
	struct p_vdisk *vdisk;
	struct serve *serve;
	struct nbdkit *nbdkit;
	char socket[PATH_MAX]; /* "": TCP */
	char address[INET6_ADDRSTRLEN];
	int port;
	bool tls, read_only;
	char key[PATH_MAX], pidfile[PATH_MAX], plugin[PATH_MAX];
	char uri[PATH_MAX + 128];
	struct reply *reply; /* until it is up, or has been given up */
	struct err why;      /* that it was */
	bool up, stopping;
	struct serve_stats told; /* at the last usage event */
	struct {
		void (*done)(void *arg);
		void *arg;
	} stop[STOPS_MAX];
	int stops;
};

/* ---- what is asked ------------------------------------------------------ */

/* STATE_DIR/AGENT/export.VDISK.suffix */
static int place_path(const struct p_vdisk *v, const char *suffix,
		      char path[PATH_MAX], struct err *err)
{
	char link[32], dir[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d",
		 v->provider->host.dirfd);
	n = readlink(link, dir, sizeof(dir) - 1);
	dir[n > 0 ? n : 0] = '\0';
	if (n <= 0 || snprintf(path, PATH_MAX, "%s/export.%s.%s", dir, v->name,
			       suffix) >= PATH_MAX)
		return err_set(err, -ENAMETOOLONG,
			       "the agent's state directory has too long a "
			       "path");
	return 0;
}

static int socket_take(struct p_export *e, const char *path, struct err *err)
{
	struct stat st;
	int rc = 0;

	if (path)
		snprintf(e->socket, sizeof(e->socket), "%s", path);
	else
		rc = place_path(e->vdisk, "sock", e->socket, err);
	if (rc)
		return rc;
	if (e->socket[0] != '/' || strpbrk(e->socket, "?#&% \n"))
		return err_set(err, -EINVAL,
			       "socket: \"%.128s\" must be an absolute path "
			       "without blanks and ?#&%%",
			       e->socket);
	if (strlen(e->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%.128s is too long for a socket: give a "
			       "shorter path, socket=PATH",
			       e->socket);
	/* only our own, of an agent that was killed, is taken away */
	if (path && !lstat(path, &st))
		return err_set(err, -EEXIST, "%.128s is there already", path);
	return 0;
}

static int address_take(struct p_export *e, const json_t *request,
			struct err *err)
{
	const char *address =
		json_string_value(json_object_get(request, "address"));
	const json_t *port = json_object_get(request, "port");
	struct in6_addr any;

	if (inet_pton(AF_INET, address, &any) != 1 &&
	    inet_pton(AF_INET6, address, &any) != 1)
		return err_set(err, -EINVAL,
			       "address: \"%.64s\" must be a numeric address "
			       "of this node",
			       address);
	snprintf(e->address, sizeof(e->address), "%s", address);
	e->port = port ? (int)json_integer_value(port) : NBD_PORT;
	if (e->port < 1 || e->port > UINT16_MAX)
		return err_set(err, -EINVAL, "port: must be 1 to 65535");
	e->tls = !json_is_false(json_object_get(request, "tls"));
	return 0;
}

static int request_take(struct p_export *e, const json_t *request,
			struct err *err)
{
	const char *path =
		json_string_value(json_object_get(request, "socket"));
	const bool tcp = json_is_string(json_object_get(request, "address"));
	int rc;

	e->read_only = json_is_true(json_object_get(request, "read_only"));
	if (tcp && path)
		return err_set(err, -EINVAL,
			       "socket and address: give one of them");
	if (!tcp && json_object_get(request, "port"))
		return err_set(err, -EINVAL,
			       "port: needs an address to listen at");
	rc = tcp ? address_take(e, request, err) : socket_take(e, path, err);
	if (!rc)
		rc = place_path(e->vdisk, "pid", e->pidfile, err);
	if (!rc && e->tls)
		rc = place_path(e->vdisk, "psk", e->key, err);
	return rc ? rc : tool_own_plugin(e->plugin, err);
}

/* As GnuTLS wants it; made anew for each export, for the owner alone. */
static int key_make(struct p_export *e, struct err *err)
{
	uint8_t key[KEY_BYTES];
	char line[16 + 2 * KEY_BYTES] = "iodeck:";
	size_t at = strlen(line);
	int fd, rc;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return err_set(err, -EIO, "no random bytes for a key");
	for (size_t k = 0; k < sizeof(key); k++)
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%02x",
				       key[k]);
	line[at++] = '\n';
	unlink(e->key);
	fd = open(e->key, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : write(fd, line, at) == (ssize_t)at ? 0 : -EIO;
	if (fd >= 0)
		close(fd);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(line, sizeof(line));
	return rc ? err_set(err, rc, "%s: %s", e->key, strerror(-rc)) : 0;
}

static void uri_make(struct p_export *e)
{
	const bool six = strchr(e->address, ':') != NULL;

	if (*e->socket)
		snprintf(e->uri, sizeof(e->uri), "nbd+unix:///?socket=%s",
			 e->socket);
	else
		snprintf(e->uri, sizeof(e->uri), "nbd%s://%s%s%s%s:%d/%s%s",
			 e->tls ? "s" : "", e->tls ? "iodeck@" : "",
			 six ? "[" : "", e->address, six ? "]" : "", e->port,
			 e->tls ? "?tls-psk-file=" : "", e->key);
}

static void count_tell(struct provider *p)
{
	unsigned count = 0;

	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		count += v->export != NULL;
	p->host.exported(count, p->host.arg);
}

/* ---- its end ------------------------------------------------------------ */

static void told(struct p_vdisk *v)
{
	v->told = true;
	tend_soon(v->provider);
}

static void all_over(void *arg)
{
	struct p_export *e = arg;
	struct p_vdisk *v = e->vdisk;

	if (*e->key)
		unlink(e->key);
	v->export = NULL;
	told(v);
	count_tell(v->provider);
	if (e->reply)
		reply_err(e->reply, &e->why);
	for (int k = 0; k < e->stops; k++)
		e->stop[k].done(e->stop[k].arg);
	free(e);
}

static void nbdkit_over(void *arg)
{
	struct p_export *e = arg;

	e->nbdkit = NULL;
	if (*e->socket)
		unlink(e->socket);
	serve_close(e->serve, all_over, e);
}

static void stop(struct p_export *e)
{
	if (e->stopping)
		return;
	e->stopping = true;
	told(e->vdisk);
	nbdkit_stop(e->nbdkit, nbdkit_over, e);
}

void export_stop(struct p_vdisk *v, void (*done)(void *arg), void *arg)
{
	struct p_export *e = v->export;

	if (!e) {
		done(arg);
		return;
	}
	id_assert(e->stops < STOPS_MAX);
	e->stop[e->stops].done = done;
	e->stop[e->stops++].arg = arg;
	if (!e->why.code)
		err_set(&e->why, -ECANCELED, "the export of %s was ended",
			v->name);
	stop(e);
}

/* ---- its life ----------------------------------------------------------- */

static int control_give(void *arg)
{
	struct p_export *e = arg;
	struct stat st;

	/* what an nbdkit that was killed has left behind */
	if (*e->socket && !lstat(e->socket, &st) && S_ISSOCK(st.st_mode))
		unlink(e->socket);
	return serve_control(e->serve);
}

static void on_nbdkit(void *arg)
{
	struct p_export *e = arg;
	struct p_vdisk *v = e->vdisk;
	struct reply *reply = e->reply;
	const bool up = nbdkit_state(e->nbdkit) == NBDKIT_UP;

	if (!up && reply) {
		err_set(&e->why, -EIO, "%s cannot be exported: %s", v->name,
			nbdkit_said(e->nbdkit));
		stop(e);
		return;
	}
	if (!up && e->up)
		tell_log(v->provider, "warn",
			 "the export of %s is started again: %s", v->name,
			 nbdkit_said(e->nbdkit));
	e->up = up;
	e->reply = NULL;
	told(v);
	if (reply)
		reply_ok_with(reply,
			      json_pack("{s:o}", "export", export_json(v)));
}

static int nbdkit_begin(struct p_export *e, struct err *err)
{
	const struct bdev_limits *limits = &e->vdisk->top->limits;
	char block[32], port[16], psk[PATH_MAX + 16], filter[PATH_MAX];
	const char *words[NBDKIT_WORDS];
	const struct nbdkit_opts opts = {
		.reactor = e->vdisk->provider->reactor,
		.words = words,
		.pidfile = e->pidfile,
		.fd = control_give,
		.changed = on_nbdkit,
		.arg = e,
	};
	int n = 0;

	snprintf(block, sizeof(block), "minblock=%u", limits->block_bytes);
	snprintf(port, sizeof(port), "%d", e->port);
	snprintf(psk, sizeof(psk), "--tls-psk=%s", e->key);
	tool_filter("blocksize", filter);
	if (*e->socket) {
		words[n++] = "--unix";
		words[n++] = e->socket;
	} else {
		words[n++] = "--ipaddr";
		words[n++] = e->address;
		words[n++] = "--port";
		words[n++] = port;
		words[n++] = e->tls ? "--tls=require" : "--tls=off";
	}
	if (e->tls)
		words[n++] = psk;
	if (e->read_only)
		words[n++] = "--readonly";
	/* clients may ask for parts of a block */
	words[n++] = "--filter";
	words[n++] = filter;
	words[n++] = e->plugin;
	words[n++] = "fd=3";
	words[n++] = block;
	words[n] = NULL;
	return nbdkit_new(&opts, &e->nbdkit, err);
}

static void nothing(void *arg)
{
	(void)arg;
}

void export_start(struct p_vdisk *v, const json_t *request, struct reply *reply)
{
	struct p_export *e = calloc(1, sizeof(*e));
	struct err err = { 0 };
	int rc;

	id_assert(e && v->phase == PV_OPEN && !v->export);
	e->vdisk = v;
	rc = request_take(e, request, &err);
	if (!rc && e->tls)
		rc = key_make(e, &err);
	if (!rc)
		rc = serve_new(v->top, &e->serve)
			     ? err_set(&err, -ENOMEM, "out of memory")
			     : nbdkit_begin(e, &err);
	if (rc) {
		if (*e->key)
			unlink(e->key);
		if (e->serve)
			serve_close(e->serve, nothing, NULL);
		free(e);
		reply_err(reply, &err);
		return;
	}
	uri_make(e);
	e->reply = reply;
	v->export = e;
	count_tell(v->provider);
}

json_t *export_json(const struct p_vdisk *v)
{
	const struct p_export *e = v->export;
	json_t *j;

	if (!e)
		return NULL;
	j = json_pack("{s:s, s:s, s:i, s:b, s:b}", "uri", e->uri, "state",
		      e->stopping ? "ending"
		      : e->up     ? "up"
				  : "starting",
		      "restarts",
		      e->nbdkit ? (int)nbdkit_restarts(e->nbdkit) : 0,
		      "read_only", e->read_only, "tls", e->tls);
	if (j && e->tls)
		json_object_set_new(j, "key", json_string(e->key));
	return j;
}

json_t *export_usage(struct p_vdisk *v, double len_s)
{
	struct p_export *e = v->export;
	struct serve_stats is, was;

	if (!e)
		return NULL;
	was = e->told;
	serve_stats(e->serve, &is);
	e->told = is;
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:I}", "vdisk", v->name,
			 "read_iops", (double)(is.reads - was.reads) / len_s,
			 "write_iops", (double)(is.writes - was.writes) / len_s,
			 "read_bytes_s",
			 (double)(is.read_bytes - was.read_bytes) / len_s,
			 "write_bytes_s",
			 (double)(is.write_bytes - was.write_bytes) / len_s,
			 "errors", (json_int_t)(is.errors - was.errors));
}
