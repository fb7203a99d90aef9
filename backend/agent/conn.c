/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The daemon's sockets. Events are read back from the spool as a socket takes
 * them, so a console that reads slowly, or not at all, costs OUT_MAX bytes of
 * memory and nobody's time. One that does not read its answers is not read
 * from any more.
 */
#include "backend/agent/daemon_priv.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_MAX (256 * 1024)
#define IN_BYTES (64 * 1024)

static struct conn *conn_of(struct peer *peer)
{
	return container_of(peer, struct conn, peer);
}

static void conn_free(struct conn *c)
{
	struct daemon *d = c->daemon;
	struct conn **at = &d->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	d->conn_count--;
	watch_remove(d->control, &c->watch);
	close(c->watch.fd);
	spool_cursor_free(c->cursor);
	peer_fini(&c->peer);
	if (d->owner == c)
		d->owner = NULL;
	free(c);
	daemon_lease_update(d);
}

/* ---- out ---------------------------------------------------------------- */

/* Events from the spool into what waits for the socket. */
static int events_fill(struct conn *c)
{
	const char *line;
	size_t len, waiting;
	int rc = 1;

	if (!c->cursor || c->peer.state == PEER_BROKEN)
		return 0;
	for (;;) {
		wire_out(&c->peer.wire, &waiting);
		if (waiting >= OUT_MAX)
			return 0;
		rc = spool_next(c->cursor, &line, &len);
		if (rc <= 0)
			return rc;
		rc = wire_put_bytes(&c->peer.wire, line, len);
		if (rc)
			return rc;
	}
}

/* What the socket takes now. 0, or a negative errno: it is gone. */
static int bytes_send(struct conn *c)
{
	size_t len;
	const char *bytes = wire_out(&c->peer.wire, &len);

	while (len) {
		ssize_t n = send(c->watch.fd, bytes, len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return -errno;
		wire_sent(&c->peer.wire, (size_t)n);
		bytes = wire_out(&c->peer.wire, &len);
	}
	return 0;
}

/* Fills and sends until the socket is full or there is no more; false: the
 * connection is over and gone. */
static bool conn_send(struct conn *c)
{
	uint32_t events = 0;
	size_t before, left = 0;
	int rc;

	do {
		rc = events_fill(c);
		wire_out(&c->peer.wire, &before);
		if (!rc)
			rc = bytes_send(c);
		wire_out(&c->peer.wire, &left);
	} while (!rc && before && !left);
	if (rc || (c->peer.state == PEER_BROKEN && !left)) {
		conn_free(c);
		return false;
	}
	if (left)
		events |= EPOLLOUT;
	if (left <= OUT_MAX + EVENT_LINE_MAX)
		events |= EPOLLIN;
	if (events != c->watch.events)
		watch_modify(c->daemon->control, &c->watch, events);
	return true;
}

static void push_run(struct task *task)
{
	struct daemon *d = container_of(task, struct daemon, push);
	struct conn *c, *next;

	d->push_posted = false;
	for (c = d->conns; c; c = next) {
		next = c->next;
		conn_send(c);
	}
}

void conns_push(struct daemon *d)
{
	if (d->push_posted)
		return;
	d->push_posted = true;
	d->push.fn = push_run;
	reactor_post(d->control, &d->push);
}

bool conns_attached(const struct daemon *d)
{
	const struct conn *c = d->conns;

	while (c && !c->cursor)
		c = c->next;
	return c != NULL;
}

void conns_answer(struct daemon *d, uint64_t serial, int64_t id, json_t *reply)
{
	struct conn *c = d->conns;

	while (c && c->serial != serial)
		c = c->next;
	if (!c) {
		json_decref(reply);
		return;
	}
	peer_answer(&c->peer, id, reply);
	conns_push(d);
}

void conns_ask(struct daemon *d, json_t *line)
{
	if (!d->owner) {
		json_decref(line);
		return;
	}
	peer_ask(&d->owner->peer, line);
	conns_push(d);
}

/* ---- in ----------------------------------------------------------------- */

static bool conn_is_dead(const struct conn *c)
{
	struct pollfd p = { .fd = c->watch.fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP));
}

/* Makes room for a new owner. */
static int owner_replace(struct daemon *d, bool take, struct err *err)
{
	struct conn *was = d->owner;

	if (!was)
		return 0;
	if (!conn_is_dead(was)) {
		if (!take)
			return err_set(err, -EBUSY,
				       "agent %s has a console already; watch "
				       "it, or take it over",
				       d->opts->name);
		peer_break(&was->peer, -ECANCELED,
			   "another console has taken over");
		bytes_send(was);
	}
	conn_free(was);
	return 0;
}

static int on_attach(struct peer *peer, const struct peer_attach *attach,
		     struct err *err)
{
	struct conn *c = conn_of(peer);
	struct daemon *d = c->daemon;
	int rc;

	if (!attach->watch) {
		rc = owner_replace(d, attach->take, err);
		if (rc)
			return rc;
	}
	rc = spool_cursor_new(d->journal.spool, attach->from,
			      attach->from_count, &c->cursor);
	if (rc)
		return err_set(err, rc, "attach: %s", strerror(-rc));
	if (!attach->watch)
		d->owner = c;
	daemon_lease_update(d);
	if (!attach->watch && attach->session) {
		free(d->session);
		d->session = strdup(attach->session);
	}
	daemon_snapshot(d);
	if (!attach->watch)
		work_owned(d->work);
	return 0;
}

static void on_ack(struct peer *peer, int64_t i, int64_t n)
{
	struct daemon *d = conn_of(peer)->daemon;

	/* nobody has on disk what was not written yet */
	if (i == d->journal.stamp.i && n > d->journal.stamp.n)
		n = d->journal.stamp.n;
	spool_ack(d->journal.spool, i, n);
}

/* As it would be typed. */
static void watcher_text(const char *what, const json_t *request, char *text,
			 size_t len)
{
	const char *of = json_string_value(json_object_get(request, "text"));
	const char *domain =
		json_string_value(json_object_get(request, "domain"));

	if (!strcmp(what, "run_stop"))
		snprintf(text, len, "stop");
	else if (!strcmp(what, "run_pause"))
		snprintf(text, len, "%s",
			 json_is_false(json_object_get(request, "pause"))
				 ? "resume"
				 : "pause");
	else
		snprintf(text, len, "%.*s %.120s", (int)strcspn(what, "_"),
			 what,
			 of       ? of
			 : domain ? domain
				  : "*");
}

/* The owner's session shall say who did it. */
static void watcher_record(struct daemon *d, const char *what,
			   const json_t *request)
{
	char text[160], clean[160];

	watcher_text(what, request, text, sizeof(text));
	event_text(clean, sizeof(clean), text);
	journal_add(&d->journal, "cmd", event_now_us(),
		    json_pack("{s:s,s:b,s:s}", "text", clean, "ok", 1, "reply",
			      "asked by a console that watches"));
}

static void on_ask(struct peer *peer, int64_t id, json_t *request)
{
	struct conn *c = conn_of(peer);
	struct daemon *d = c->daemon;
	const char *what = json_string_value(json_object_get(request, "do"));

	if (!strcmp(what, "quit")) {
		json_decref(request);
		peer_answer(peer, id, peer_ok());
		daemon_quit(d, "a console asked it to");
	} else if (d->quitting) {
		json_decref(request);
		peer_answer(peer, id,
			    peer_refusal(-ESHUTDOWN, "the agent is ending"));
	} else {
		if (peer->state == PEER_WATCHER)
			watcher_record(d, what, request);
		if (node_ask_knows(what))
			daemon_node_ask(d, c->serial, id, request);
		else
			work_ask(d->work, c->serial, id, request);
	}
}

static void on_told(struct peer *peer, json_t *line)
{
	work_told(conn_of(peer)->daemon->work, line);
}

static const struct peer_host conn_host = {
	.attach = on_attach,
	.ack = on_ack,
	.ask = on_ask,
	.told = on_told,
};

static void conn_ready(struct watch *watch, uint32_t events)
{
	struct conn *c = container_of(watch, struct conn, watch);
	char bytes[IN_BYTES];
	ssize_t n = -1;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			conn_free(c);
			return;
		}
	}
	if (n > 0)
		peer_feed(&c->peer, bytes, (size_t)n);
	conn_send(c);
}

/* ---- beginning ---------------------------------------------------------- */

static json_t *hello_make(struct daemon *d)
{
	struct spool_mark mark[64];
	size_t count = spool_oldest(d->journal.spool, mark, array_len(mark));
	json_t *oldest = json_array(), *hello;

	for (size_t k = 0; k < count; k++)
		json_array_append_new(oldest,
				      json_pack("[II]", (json_int_t)mark[k].i,
						(json_int_t)mark[k].n));
	hello = json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s, s:s?, s:s?, "
			  "s:o, s:I}",
			  "iodeck", "agent", "v", 1, "a", d->opts->name, "i",
			  (json_int_t)d->journal.stamp.i, "pid",
			  (json_int_t)getpid(), "version", IODECK_VERSION,
			  "state", *d->run ? "running" : "idle", "run",
			  *d->run ? d->run : NULL, "session", d->session,
			  "oldest", oldest, "next",
			  (json_int_t)d->journal.stamp.n + 1);
	return hello;
}

static void conn_new(struct daemon *d, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	json_t *hello = NULL;

	if (!c) {
		close(fd);
		return;
	}
	c->daemon = d;
	c->serial = ++d->conn_serial;
	c->watch.fd = fd;
	c->watch.events = EPOLLIN;
	c->watch.fn = conn_ready;
	peer_init(&c->peer, &conn_host);
	hello = hello_make(d);
	if (!hello || peer_hello(&c->peer, hello) ||
	    watch_add(d->control, &c->watch)) {
		json_decref(hello);
		peer_fini(&c->peer);
		close(fd);
		free(c);
		return;
	}
	json_decref(hello);
	c->next = d->conns;
	d->conns = c;
	d->conn_count++;
	conn_send(c);
}

static void listen_ready(struct watch *watch, uint32_t events)
{
	struct daemon *d = container_of(watch, struct daemon, listen);
	int fd;

	(void)events;
	fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (d->conn_count >= CONNS_MAX || !place_peer_is_us(fd))
		close(fd);
	else
		conn_new(d, fd);
}

int conns_listen(struct daemon *d, struct err *err)
{
	int fd = place_listen(&d->place, err), rc;

	if (fd < 0)
		return fd;
	d->listen = (struct watch) { .fd = fd,
				     .events = EPOLLIN,
				     .fn = listen_ready };
	rc = watch_add(d->control, &d->listen);
	if (rc) {
		close(fd);
		d->listen.fd = -1;
		return err_set(err, rc, "socket: %s", strerror(-rc));
	}
	return 0;
}

/* Gives the last events the chance a full socket leaves them. */
void conns_flush(struct daemon *d)
{
	struct conn *c, *next;

	if (d->listen.fd >= 0) {
		watch_remove(d->control, &d->listen);
		close(d->listen.fd);
		place_unlisten(&d->place);
		d->listen.fd = -1;
	}
	for (c = d->conns; c; c = next) {
		next = c->next;
		if (!conn_send(c))
			continue;
		spool_cursor_free(c->cursor); /* the spool ends before it */
		c->cursor = NULL;
	}
}

void conns_close(struct daemon *d)
{
	while (d->conns)
		conn_free(d->conns);
}
