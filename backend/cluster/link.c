/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   open --> OPENING --hello--> (choose) --attach ok--> UP
 *               |                                       |
 *               +-------- any failure ----> DOWN <------+
 *                                            |
 *              OPENING <--- retry -----------+
 *
 * What the agent says is untrusted: lines are bounded, events checked, and the
 * first thing that makes no sense ends the connection with a reason.
 */
#include "backend/cluster/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "backend/cluster/agent_way.h"
#include "backend/event.h"
#include "backend/wire.h"

#define PROTOCOL 1
#define OPEN_MS 20000 /* a daemon may have to be started first */
/* Of a node; what takes long on the way ends sooner, and says what it was. */
#define OPEN_NODE_MS 90000
#define PING_MS 5000
#define ANSWER_MS 15000
#define STEP_BYTES (1u << 20) /* read at most in one step */

struct asked {
	struct asked *next;
	int64_t id;
	void (*reply)(const json_t *reply, void *arg);
	void *arg;
};

struct link_conn {
	struct link_conn_opts opts;  /* strings are copies */
	struct transport *transport; /* NULL: none */
	enum link_state state;
	int epfd;
	json_t *node; /* what opts.node's texts are copies in; NULL: here */
	struct node at;
	char via[400];
	int code, refused;
	bool attaching;                       /* asked to, since hello */
	struct pollfd watched[TRANSPORT_FDS]; /* what epoll looks for */
	int watches;
	uint64_t way_due_ms; /* when the transport wants a turn; 0: any time */
	struct wire wire;
	struct asked *asked;
	int64_t id; /* the last given out */
	json_t *hello;
	int64_t (*mark)[2];
	size_t marks, marks_room;
	uint64_t since_ms, heard_ms, pinged_ms;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- marks -------------------------------------------------------------- */

static int64_t *mark_find(struct link_conn *c, int64_t i)
{
	for (size_t k = c->marks; k-- > 0;)
		if (c->mark[k][0] == i)
			return c->mark[k];
	return NULL;
}

static int mark_set(struct link_conn *c, int64_t i, int64_t n)
{
	int64_t *mark = mark_find(c, i);
	size_t room = c->marks_room ? 2 * c->marks_room : 8;

	if (mark) {
		mark[1] = n;
		return 0;
	}
	if (c->marks == c->marks_room) {
		int64_t(*grown)[2] = realloc(c->mark, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		c->mark = grown;
		c->marks_room = room;
	}
	c->mark[c->marks][0] = i;
	c->mark[c->marks++][1] = n;
	return 0;
}

static int text_set(const char **to, const char *from)
{
	char *copy = from ? strdup(from) : NULL;

	if (from && !copy)
		return -ENOMEM;
	free((char *)*to);
	*to = copy;
	return 0;
}

int link_conn_from(struct link_conn *c, const char *session,
		   const int64_t (*from)[2], size_t from_count)
{
	int rc = text_set(&c->opts.session, session);

	c->marks = 0;
	for (size_t k = 0; k < from_count && !rc; k++)
		rc = mark_set(c, from[k][0], from[k][1]);
	return rc;
}

/* ---- down --------------------------------------------------------------- */

static void asked_drop(struct link_conn *c)
{
	while (c->asked) {
		struct asked *a = c->asked;

		c->asked = a->next;
		if (a->reply)
			a->reply(NULL, a->arg);
		free(a);
	}
}

static void transport_drop(struct link_conn *c)
{
	transport_close(c->transport);
	c->transport = NULL;
	c->watches = 0;
	wire_fini(&c->wire);
	json_decref(c->hello);
	c->hello = NULL;
}

static void link_down(struct link_conn *c, const char *fmt, ...)
	ID_PRINTF(2, 3);
static void link_down(struct link_conn *c, const char *fmt, ...)
{
	char text[512], clean[512];
	va_list ap;

	if (c->state == LINK_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	event_text(clean, sizeof(clean), text);
	transport_drop(c);
	c->state = LINK_DOWN;
	asked_drop(c);
	c->opts.state(LINK_DOWN, NULL, clean, c->opts.arg);
}

/* ---- lines -------------------------------------------------------------- */

static void on_attached(const json_t *reply, void *arg)
{
	struct link_conn *c = arg;
	const char *why;

	if (!reply)
		return; /* the link went, and has said so */
	if (json_is_true(json_object_get(reply, "ok"))) {
		c->state = LINK_UP;
		c->opts.state(LINK_UP, c->hello, NULL, c->opts.arg);
		return;
	}
	why = json_string_value(json_object_get(reply, "error"));
	c->refused = (int)json_integer_value(json_object_get(reply, "code"));
	link_down(c, "%s", why ? why : "the agent refuses without a reason");
}

static void attach_ask(struct link_conn *c)
{
	json_t *from = json_array(), *body;

	c->attaching = true;
	for (size_t k = 0; k < c->marks; k++)
		json_array_append_new(
			from, json_pack("[II]", (json_int_t)c->mark[k][0],
					(json_int_t)c->mark[k][1]));
	body = json_pack("{s:o, s:s*, s:b, s:b}", "from", from, "session",
			 c->opts.session, "watch", c->opts.watch, "take",
			 c->opts.take);
	if (link_conn_ask(c, "attach", body, on_attached, c) < 0)
		link_down(c, "agent %s: out of memory", c->opts.agent);
}

static void on_hello(struct link_conn *c, const json_t *line)
{
	const char *kind = json_string_value(json_object_get(line, "iodeck"));
	const char *name = json_string_value(json_object_get(line, "a"));
	const char *version =
		json_string_value(json_object_get(line, "version"));
	json_int_t v = json_integer_value(json_object_get(line, "v"));

	if (!kind || strcmp(kind, "agent") != 0 || !name) {
		link_down(c, "what answers as agent %s is no iodeck-agent",
			  c->opts.agent);
	} else if (v != PROTOCOL) {
		link_down(c,
			  "agent %s is iodeck %s and speaks protocol %lld, "
			  "this console %s speaks %d: use the same version "
			  "on both sides",
			  c->opts.agent, version ? version : "?", (long long)v,
			  IODECK_VERSION, PROTOCOL);
	} else if (strcmp(name, c->opts.agent) != 0) {
		link_down(c, "asked for agent %s, got %s", c->opts.agent, name);
	} else {
		c->hello = json_incref((json_t *)line);
		c->opts.state(LINK_OPENING, c->hello, NULL, c->opts.arg);
		if (!c->opts.hold)
			attach_ask(c);
	}
}

static void on_reply(struct link_conn *c, const json_t *line)
{
	json_int_t id = json_integer_value(json_object_get(line, "re"));
	struct asked **at = &c->asked, *a;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	a = *at;
	if (!a)
		return;
	*at = a->next;
	if (a->reply)
		a->reply(line, a->arg);
	free(a);
}

static void on_event(struct link_conn *c, const json_t *line)
{
	struct event_head head;
	struct err err = { 0 };
	const int64_t *mark;

	if (event_head(line, &head, &err)) {
		link_down(c, "agent %s sends what is no event: %s",
			  c->opts.agent, err.text);
		return;
	}
	if (strcmp(head.a, c->opts.agent) != 0)
		return;
	mark = mark_find(c, head.i);
	if (mark && head.n <= mark[1])
		return;
	if (mark_set(c, head.i, head.n))
		link_down(c, "agent %s: out of memory", c->opts.agent);
	else
		c->opts.event(line, c->opts.arg);
}

static void on_ask(struct link_conn *c, const json_t *line)
{
	const json_t *n = json_object_get(line, "ask");

	if (!json_is_integer(n) || c->state != LINK_UP || !c->opts.ask)
		link_down(c, "agent %s asks what it may not", c->opts.agent);
	else
		c->opts.ask(line, c->opts.arg);
}

static void on_line(struct link_conn *c, const json_t *line)
{
	const char *why;

	if (!c->hello) {
		on_hello(c, line);
	} else if (json_object_get(line, "re")) {
		on_reply(c, line);
	} else if (json_object_get(line, "e")) {
		on_event(c, line);
	} else if (json_object_get(line, "ask")) {
		on_ask(c, line);
	} else {
		why = json_string_value(json_object_get(line, "error"));
		link_down(c, "agent %s has ended the connection: %s",
			  c->opts.agent, why ? why : "no reason given");
	}
}

static void lines_take(struct link_conn *c)
{
	struct err err = { 0 };
	json_t *line;
	int rc = 0;

	while (c->state != LINK_DOWN) {
		rc = wire_next(&c->wire, &line, &err);
		if (rc)
			break;
		on_line(c, line);
		json_decref(line);
	}
	if (c->state != LINK_DOWN && rc != -EAGAIN)
		link_down(c, "agent %s sends what is no protocol: %s",
			  c->opts.agent, err.text);
}

/* ---- the stream --------------------------------------------------------- */

static void stream_over(struct link_conn *c, ssize_t why, const struct err *err)
{
	const char *agent = c->opts.agent;

	c->code = err->code ? err->code : (int)why;
	if (err->code)
		link_down(c, "%s", err->text);
	else if (why < 0 && why != -ECONNRESET && why != -EPIPE)
		link_down(c, "agent %s: %s", agent, strerror((int)-why));
	else if (c->state == LINK_UP)
		link_down(c, "agent %s is gone: its connection ended", agent);
	else
		link_down(c, "agent %s went away before it answered", agent);
}

static void stream_read(struct link_conn *c)
{
	static const size_t chunk = 64 * 1024;
	struct err err = { 0 };
	char buf[64 * 1024];
	size_t total = 0;
	ssize_t n = 0;

	while (c->state != LINK_DOWN && total < STEP_BYTES) {
		n = c->transport->ops->read(c->transport, buf, chunk, &err);
		if (n <= 0)
			break;
		total += (size_t)n;
		c->heard_ms = now_ms();
		if (wire_feed(&c->wire, buf, (size_t)n))
			link_down(c, "agent %s: out of memory", c->opts.agent);
		else
			lines_take(c);
	}
	if (c->state != LINK_DOWN && n <= 0 && n != -EAGAIN)
		stream_over(c, n, &err);
}

static void stream_write(struct link_conn *c)
{
	const char *out;
	size_t len;
	ssize_t n = 1;

	if (c->state == LINK_DOWN)
		return;
	/* an error shows itself to the reader, with what came before it */
	while ((out = wire_out(&c->wire, &len)), len && n > 0) {
		n = c->transport->ops->write(c->transport, out, len);
		if (n > 0)
			wire_sent(&c->wire, (size_t)n);
	}
}

/* A way that has something new to say is given time anew: what it does has
 * limits of its own. */
static void via_set(struct link_conn *c, const char *via)
{
	if (!strncmp(c->via, via, sizeof(c->via) - 1))
		return;
	snprintf(c->via, sizeof(c->via), "%s", via);
	if (c->state == LINK_OPENING)
		c->since_ms = now_ms();
}

/* What the transport waits for now. An fd that was closed has left epoll by
 * itself, and its number may be another's by now: so each is set anew. */
static void stream_watch(struct link_conn *c)
{
	struct pollfd fd[TRANSPORT_FDS];
	size_t waiting = 0;
	int n = 0, ms = -1, k;

	if (c->transport) {
		wire_out(&c->wire, &waiting);
		n = c->transport->ops->poll(c->transport, waiting > 0, fd, &ms);
		via_set(c, c->transport->ops->via(c->transport));
	}
	c->way_due_ms = ms < 0 ? 0 : now_ms() + (uint64_t)ms;
	for (k = 0; k < c->watches; k++)
		epoll_ctl(c->epfd, EPOLL_CTL_DEL, c->watched[k].fd, NULL);
	for (k = 0; k < n; k++) {
		struct epoll_event ev = { .events = (uint32_t)fd[k].events };

		epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd[k].fd, &ev);
		c->watched[k] = fd[k];
	}
	c->watches = n;
}

static uint64_t open_ms(const struct link_conn *c)
{
	return c->node ? OPEN_NODE_MS : OPEN_MS;
}

static void link_watch(struct link_conn *c)
{
	uint64_t now = now_ms();

	if (c->state == LINK_OPENING && now >= c->since_ms + open_ms(c)) {
		c->code = -ETIMEDOUT;
		link_down(c, "agent %s does not answer", c->opts.agent);
		return;
	}
	if (c->state != LINK_UP)
		return;
	/* silence counts from a ping: a console may have been suspended */
	if (c->pinged_ms > c->heard_ms && now >= c->pinged_ms + ANSWER_MS) {
		c->code = -ETIMEDOUT;
		link_down(c, "agent %s has not answered for %d s",
			  c->opts.agent, ANSWER_MS / 1000);
	} else if (c->pinged_ms <= c->heard_ms &&
		   now >= c->heard_ms + PING_MS) {
		c->pinged_ms = now;
		link_conn_ask(c, "ping", NULL, NULL, NULL);
	}
}

/* ---- the public half ---------------------------------------------------- */

static int transport_start(struct link_conn *c, struct err *err)
{
	const struct agent_way_opts way = {
		.verb = "attach",
		.agent = c->opts.agent,
		.program = c->opts.program,
		.state_dir = c->opts.state_dir,
		.become = c->at.become,
		.more = c->opts.spawn ? "--spawn" : NULL,
		.host = c->node ? &c->at.host : NULL,
	};
	int rc;

	c->code = c->refused = 0;
	c->attaching = false;
	rc = agent_way_open(&way, &c->transport, err);
	if (rc)
		return rc;
	wire_init(&c->wire);
	c->since_ms = c->heard_ms = now_ms();
	c->pinged_ms = 0;
	c->state = LINK_OPENING;
	stream_watch(c);
	return 0;
}

/* Of a node, through JSON, which owns the texts from then on. */
static int node_copy(struct link_conn *c, const struct link_conn_opts *opts)
{
	static const char *const ways[] = { "auto", "libssh2", "ssh" };
	const struct node *n = opts->node;

	if (!n)
		return text_set(&c->opts.program, opts->program) ||
				       text_set(&c->opts.state_dir,
						opts->state_dir)
			       ? -ENOMEM
			       : 0;
	c->node = json_pack("{s:s, s:s*, s:s*, s:s*, s:i, s:s, s:s*}", "host",
			    n->host.host, "user", n->host.user, "identity",
			    n->host.identity, "ssh_config", n->host.config,
			    "port", (int)n->host.port, "transport",
			    ways[n->host.way], "become", n->become);
	if (!c->node || node_read(c->node, &c->at, NULL) ||
	    text_set(&c->opts.program, n->program) ||
	    text_set(&c->opts.state_dir, n->state_dir))
		return -ENOMEM;
	return 0;
}

int link_conn_open(const struct link_conn_opts *opts, struct link_conn **conn,
		   struct err *err)
{
	struct link_conn *c = calloc(1, sizeof(*c));
	int rc = -ENOMEM;

	if (!c)
		return err_set(err, rc, "link: out of memory");
	c->opts = *opts;
	c->opts.agent = c->opts.program = NULL;
	c->opts.state_dir = c->opts.session = NULL;
	c->opts.from = NULL;
	c->opts.node = NULL;
	c->state = LINK_OFF;
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epfd < 0 || text_set(&c->opts.agent, opts->agent) ||
	    node_copy(c, opts) ||
	    link_conn_from(c, opts->session, opts->from, opts->from_count))
		err_set(err, rc, "link: out of memory");
	else
		rc = transport_start(c, err);
	if (rc)
		link_conn_close(c);
	else
		*conn = c;
	return rc;
}

void link_conn_shut(struct link_conn *c)
{
	if (!c->transport)
		return;
	stream_write(c);
	transport_shut(c->transport);
}

void link_conn_close(struct link_conn *c)
{
	if (!c)
		return;
	if (c->transport) {
		stream_write(c);
		transport_drop(c);
	}
	c->state = LINK_DOWN;
	asked_drop(c);
	if (c->epfd >= 0)
		close(c->epfd);
	free((char *)c->opts.agent);
	free((char *)c->opts.program);
	free((char *)c->opts.state_dir);
	free((char *)c->opts.session);
	json_decref(c->node);
	free(c->mark);
	free(c);
}

const char *link_conn_via(const struct link_conn *c)
{
	return c->via;
}

int link_conn_code(const struct link_conn *c)
{
	return c->code;
}

int link_conn_refused(const struct link_conn *c)
{
	return c->refused;
}

void link_conn_take(struct link_conn *c, bool take)
{
	c->opts.take = take;
}

void link_conn_attach(struct link_conn *c)
{
	if (!c->hello || c->attaching || c->state != LINK_OPENING)
		return;
	attach_ask(c);
	stream_watch(c);
}

int link_conn_fd(const struct link_conn *c)
{
	return c->epfd;
}

int link_conn_timeout_ms(const struct link_conn *c)
{
	uint64_t now = now_ms(), due;

	if (c->state == LINK_OPENING)
		due = c->since_ms + open_ms(c);
	else if (c->state == LINK_UP)
		due = c->pinged_ms > c->heard_ms ? c->pinged_ms + ANSWER_MS
						 : c->heard_ms + PING_MS;
	else
		return -1;
	if (c->way_due_ms && c->way_due_ms < due)
		due = c->way_due_ms;
	return due > now ? (int)(due - now) : 0;
}

void link_conn_step(struct link_conn *c)
{
	if (!c->transport)
		return;
	stream_read(c);
	link_watch(c);
	stream_write(c);
	stream_watch(c);
}

int link_conn_retry(struct link_conn *c, struct err *err)
{
	if (c->transport)
		return 0;
	return transport_start(c, err);
}

int64_t link_conn_ask(struct link_conn *c, const char *what, json_t *body,
		      void (*reply)(const json_t *reply, void *arg), void *arg)
{
	struct asked *a = NULL, **at = &c->asked;
	int rc = -ENOMEM;

	if (!body)
		body = json_object();
	if (!c->transport || (c->state != LINK_UP && reply != on_attached &&
			      !(c->hello && !strcmp(what, "ping")))) {
		rc = -ENOTCONN;
		goto out;
	}
	a = calloc(1, sizeof(*a));
	if (!a || !body ||
	    json_object_set_new(body, "id", json_integer(c->id + 1)) ||
	    json_object_set_new(body, "do", json_string(what)))
		goto out;
	rc = wire_put(&c->wire, body);
	if (rc)
		goto out;
	*a = (struct asked) { .id = ++c->id, .reply = reply, .arg = arg };
	while (*at)
		at = &(*at)->next;
	*at = a;
	a = NULL;
	stream_write(c);
	stream_watch(c);
out:
	free(a);
	json_decref(body);
	return rc ? rc : c->id;
}

static void line_send(struct link_conn *c, json_t *line)
{
	if (line && !wire_put(&c->wire, line)) {
		stream_write(c);
		stream_watch(c);
	}
	json_decref(line);
}

void link_conn_tell(struct link_conn *c, int64_t n, json_t *reply)
{
	if (c->state == LINK_UP)
		line_send(c, json_pack("{s:I, s:o}", "told", (json_int_t)n,
				       "reply", reply));
	else
		json_decref(reply);
}

void link_conn_ack(struct link_conn *c, int64_t i, int64_t n)
{
	if (c->state == LINK_UP && !c->opts.watch)
		line_send(c, json_pack("{s:s, s:I, s:I}", "do", "ack", "i",
				       (json_int_t)i, "n", (json_int_t)n));
}
