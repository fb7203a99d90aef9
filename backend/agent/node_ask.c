/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A request that is waited for stands in a list until it is answered: by its
 * chore, or by the timer, whichever comes first. Its chore may hang; then it
 * holds its own memory, and its answer is dropped.
 */
#include "backend/agent/node_ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/agent/link_test.h"
#include "backend/agent/node_check.h"

#define FACTS_NS (5 * SEC_NS)
#define CHECK_NS (10 * SEC_NS)
#define LINKS_MAX 16
#define TOKEN_CHARS                  \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

struct wait {
	struct timer timer;
	struct node_ask *node;
	struct wait *next;
	struct wait **job; /* who would answer; told NULL at the end */
	struct reply *reply;
};

struct node_ask {
	struct node_ask_opts opts;
	struct wait *waits;
	unsigned links;
	atomic_bool stop;
};

/* ---- waiting ------------------------------------------------------------ */

/* Ends the wait: the reply is the caller's to send. */
static struct reply *wait_end(struct wait *w)
{
	struct reply *reply = w->reply;
	struct wait **at = &w->node->waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (w->job)
		*w->job = NULL;
	timer_cancel(w->node->opts.reactor, &w->timer);
	free(w);
	return reply;
}

static void facts_tell(struct wait *w)
{
	struct node_ask *n = w->node;
	json_t *facts = host_watch_facts(n->opts.watch);

	/* disks that do not answer: what is known without them */
	if (facts && host_watch_looking(n->opts.watch))
		json_object_set_new(facts, "late", json_true());
	reply_ok_with(wait_end(w), facts);
}

static void wait_over(struct timer *timer)
{
	struct wait *w = container_of(timer, struct wait, timer);

	if (w->job)
		reply_fail(wait_end(w), -ETIMEDOUT,
			   "the node has not answered in time: a device or a "
			   "program on it may hang");
	else
		facts_tell(w);
}

static struct wait *wait_new(struct node_ask *n, struct reply *reply,
			     uint64_t ns, struct wait **job)
{
	struct wait *w = calloc(1, sizeof(*w));

	id_assert(w);
	*w = (struct wait) { .timer.fn = wait_over,
			     .node = n,
			     .next = n->waits,
			     .job = job,
			     .reply = reply };
	n->waits = w;
	if (job)
		*job = w;
	timer_arm(n->opts.reactor, &w->timer,
		  reactor_now(n->opts.reactor) + ns);
	return w;
}

/* ---- facts -------------------------------------------------------------- */

static void do_facts(struct node_ask *n, const json_t *request,
		     struct reply *reply)
{
	(void)request;
	wait_new(n, reply, FACTS_NS, NULL);
	host_watch_look(n->opts.watch);
}

void node_ask_looked(struct node_ask *n)
{
	struct wait *w, *next;

	for (w = n->waits; w; w = next) {
		next = w->next;
		if (!w->job)
			facts_tell(w);
	}
}

/* ---- check -------------------------------------------------------------- */

struct check {
	struct wait *wait; /* NULL: it was answered without us */
	struct node_check *check;
};

static void check_work(void *arg)
{
	node_check_work(((struct check *)arg)->check);
}

static void check_done(void *arg)
{
	struct check *c = arg;

	if (c->wait)
		reply_ok_with(wait_end(c->wait), json_incref(c->check->result));
	node_check_free(c->check);
	free(c);
}

static void do_check(struct node_ask *n, const json_t *request,
		     struct reply *reply)
{
	struct check *c = calloc(1, sizeof(*c));
	struct err err = { 0 };

	id_assert(c);
	if (node_check_new(request, n->opts.dirfd, n->opts.io, &c->check,
			   &err)) {
		reply_err(reply, &err);
		free(c);
		return;
	}
	wait_new(n, reply, CHECK_NS, &c->wait);
	chores_start(n->opts.chores, check_work, check_done, c);
}

/* ---- links -------------------------------------------------------------- */

struct link_job {
	struct node_ask *node;
	struct wait *wait;
	char token[LINK_TOKEN_MAX + 1], address[64];
	double seconds;
	int fd, port, rc;
	struct link_figures figures;
	struct err err;
};

static void serve_work(void *arg)
{
	struct link_job *j = arg;

	link_serve(j->fd, j->token, j->seconds, &j->node->stop);
}

static void serve_done(void *arg)
{
	struct link_job *j = arg;

	j->node->links--;
	free(j);
}

static void measure_work(void *arg)
{
	struct link_job *j = arg;

	j->rc = link_measure(j->address, j->port, j->token, j->seconds,
			     &j->node->stop, &j->figures, &j->err);
}

static json_t *figures_json(const struct link_figures *f)
{
	return json_pack("{s:f,s:f,s:{s:f,s:f,s:i}}", "out_bytes_s",
			 f->out_bytes_s, "in_bytes_s", f->in_bytes_s, "rtt_us",
			 "min", f->rtt_min_us, "median", f->rtt_median_us,
			 "count", f->round_trips);
}

static void measure_done(void *arg)
{
	struct link_job *j = arg;

	j->node->links--;
	if (j->wait && j->rc)
		reply_err(wait_end(j->wait), &j->err);
	else if (j->wait)
		reply_ok_with(wait_end(j->wait), figures_json(&j->figures));
	free(j);
}

static int link_read(const json_t *request, struct link_job *j, struct err *err)
{
	const char *token =
		json_string_value(json_object_get(request, "token"));
	const char *address =
		json_string_value(json_object_get(request, "address"));
	const json_t *seconds = json_object_get(request, "seconds");
	const size_t len = token ? strlen(token) : 0;

	j->seconds = seconds ? json_number_value(seconds) : 1;
	if (len < LINK_TOKEN_MIN || len > LINK_TOKEN_MAX ||
	    strspn(token, TOKEN_CHARS) != len)
		return err_set(
			err, -EINVAL,
			"a link test has a \"token\" of %d to %d letters "
			"and digits",
			LINK_TOKEN_MIN, LINK_TOKEN_MAX);
	if (!(j->seconds >= LINK_SECONDS_MIN) || j->seconds > LINK_SECONDS_MAX)
		return err_set(err, -EINVAL,
			       "a link test takes %g to %g \"seconds\"",
			       LINK_SECONDS_MIN, LINK_SECONDS_MAX);
	if (address && strlen(address) >= sizeof(j->address))
		return err_set(err, -EINVAL, "\"address\" is too long");
	memcpy(j->token, token, len);
	memcpy(j->address, address ? address : "",
	       address ? strlen(address) : 0);
	return 0;
}

/* A port of 0 when it is not given; -1 when it is none. */
static int port_read(const json_t *request, const char *name)
{
	const json_t *port = json_object_get(request, name);
	const json_int_t v = json_integer_value(port);

	if (!port)
		return 0;
	return json_is_integer(port) && v >= 0 && v <= UINT16_MAX ? (int)v : -1;
}

static struct link_job *link_job_new(struct node_ask *n, const json_t *request,
				     struct err *err)
{
	struct link_job *j;

	if (n->links >= LINKS_MAX) {
		err_set(err, -EBUSY, "too many link tests at once");
		return NULL;
	}
	j = calloc(1, sizeof(*j));
	id_assert(j);
	j->node = n;
	if (link_read(request, j, err)) {
		free(j);
		return NULL;
	}
	n->links++;
	return j;
}

static void do_listen(struct node_ask *n, const json_t *request,
		      struct reply *reply)
{
	const int from = port_read(request, "port");
	const json_t *last = json_object_get(request, "port_last");
	const int to = last ? port_read(request, "port_last") : from;
	struct err err = { 0 };
	struct link_job *j = link_job_new(n, request, &err);

	if (j) {
		j->fd = from < 0 || to < from
				? err_set(&err, -EINVAL,
					  "\"port\" is 0 to 65535, and "
					  "\"port_last\" not below it")
				: link_open(j->address, from, to, &j->port,
					    &err);
		if (j->fd < 0)
			serve_done(j);
	}
	if (!j || j->fd < 0) {
		reply_err(reply, &err);
		return;
	}
	reply_ok_with(reply, json_pack("{s:i}", "port", j->port));
	chores_start(n->opts.chores, serve_work, serve_done, j);
}

static void do_measure(struct node_ask *n, const json_t *request,
		       struct reply *reply)
{
	struct err err = { 0 };
	struct link_job *j = link_job_new(n, request, &err);

	if (j) {
		j->port = port_read(request, "port");
		if (j->port < 1 || !*j->address) {
			err_set(&err, -EINVAL,
				"link_measure needs \"address\" and "
				"\"port\"");
			serve_done(j);
			j = NULL;
		}
	}
	if (!j) {
		reply_err(reply, &err);
		return;
	}
	wait_new(n, reply, (uint64_t)((j->seconds + 10) * 1e9), &j->wait);
	chores_start(n->opts.chores, measure_work, measure_done, j);
}

/* ---- all of them -------------------------------------------------------- */

static const struct {
	const char *what;
	void (*fn)(struct node_ask *n, const json_t *request,
		   struct reply *reply);
} requests[] = {
	{ "node_facts", do_facts },
	{ "node_check", do_check },
	{ "link_listen", do_listen },
	{ "link_measure", do_measure },
};

bool node_ask_knows(const char *what)
{
	for (size_t k = 0; k < array_len(requests); k++)
		if (!strcmp(what, requests[k].what))
			return true;
	return false;
}

void node_ask(struct node_ask *n, const char *what, const json_t *request,
	      struct reply *reply)
{
	for (size_t k = 0; k < array_len(requests); k++)
		if (!strcmp(what, requests[k].what)) {
			requests[k].fn(n, request, reply);
			return;
		}
	reply_fail(reply, -ENOSYS, "this agent does not know \"%.32s\"", what);
}

void node_ask_stop(struct node_ask *n)
{
	atomic_store(&n->stop, true);
	while (n->waits)
		reply_fail(wait_end(n->waits), -ESHUTDOWN,
			   "the agent is ending");
}

int node_ask_new(const struct node_ask_opts *opts, struct node_ask **node)
{
	*node = calloc(1, sizeof(**node));
	if (!*node)
		return -ENOMEM;
	(*node)->opts = *opts;
	return 0;
}

void node_ask_free(struct node_ask *n)
{
	id_assert(!n || !n->waits);
	free(n);
}
