/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backend/cluster/board.h"
#include "backend/event.h"

#define RETRY_MIN_US 1000000
#define RETRY_MAX_US 30000000
#define RETRY_ALL_US 900000000 /* a run's lease: then it has ended */
#define HOLD_US 3000000        /* from the first hello until one must choose */
#define SETTLE_US                                                         \
	10000000       /* of an agent that has not answered, one is there \
			*/
#define READY_US 80000 /* from the cluster's event to all the rest */
#define PINGS_FIRST 8
#define PING_FIRST_US 50000
#define PING_US 2000000
#define STEP_MAX 64

static int64_t now_us(const struct fleet *f)
{
	return f->opts.clock();
}

static void changed(struct fleet_node *n)
{
	n->fleet->opts.changed(n, n->fleet->opts.arg);
}

static void text_set(struct fleet_node *n, const char *text)
{
	snprintf(n->text, sizeof(n->text), "%s", text);
}

/* ---- asking ------------------------------------------------------------- */

int64_t fleet_ask(struct fleet_node *n, const char *what, json_t *body,
		  void (*reply)(const json_t *reply, void *arg), void *arg)
{
	if (n->state != FLEET_UP || !n->link) {
		json_decref(body);
		return -ENOTCONN;
	}
	if (!strcmp(what, "quit"))
		n->ending = true;
	return link_conn_ask(n->link, what, body, reply, arg);
}

struct ping {
	struct fleet_node *node;
	int64_t sent_us, sent_at_us;
};

static void on_ping(const json_t *reply, void *arg)
{
	struct ping *p = arg;
	const json_t *there = json_object_get(reply, "t_us");
	int64_t now = now_us(p->node->fleet);

	if (json_is_integer(there))
		offset_add(&p->node->offset, p->sent_us, now - p->sent_at_us,
			   now, json_integer_value(there));
	free(p);
}

/* Before it is attached to, so that no time of it is told that cannot be told
 * by our clock. */
static void on_first_ping(const json_t *reply, void *arg)
{
	struct fleet_node *n = ((struct ping *)arg)->node;

	on_ping(reply, arg);
	n->held = reply != NULL;
}

static void ping(struct fleet_node *n,
		 void (*reply)(const json_t *reply, void *arg))
{
	struct ping *p = malloc(sizeof(*p));

	if (!p)
		return;
	*p = (struct ping) { n, event_now_us(), now_us(n->fleet) };
	if (link_conn_ask(n->link, "ping", NULL, reply, p) < 0)
		free(p);
}

static void ping_step(struct fleet_node *n, int64_t now)
{
	if (n->state != FLEET_UP || now < n->ping_at_us)
		return;
	n->ping_at_us =
		now + (n->offset.count < PINGS_FIRST ? PING_FIRST_US : PING_US);
	ping(n, on_ping);
}

/* ---- the cluster -------------------------------------------------------- */

static void ready_soon(struct fleet_node *n)
{
	if (n->open && n->seen && !n->ready_at_us)
		n->ready_at_us = now_us(n->fleet) + READY_US;
}

static void on_open(const json_t *reply, void *arg)
{
	struct fleet_node *n = arg;
	json_int_t code = json_integer_value(json_object_get(reply, "code"));
	const char *error = json_string_value(json_object_get(reply, "error"));

	n->open_asked = false;
	if (!reply)
		return;
	if (!json_is_true(json_object_get(reply, "ok")) && code != -EEXIST) {
		n->open_failed = true;
		text_set(n, error ? error : "the cluster does not open");
	} else {
		n->open = true;
		text_set(n, "");
		ready_soon(n);
	}
	changed(n);
}

/* To all of them before what any of them asks of another is passed on. */
static void open_ask(struct fleet_node *n)
{
	struct fleet *f = n->fleet;

	if (!n->doc || n->open || n->open_asked || n->open_failed ||
	    f->watching || n->state != FLEET_UP || !f->settled)
		return;
	n->open_asked = true;
	fleet_ask(n, "cluster_open", json_pack("{s:O}", "cluster", n->doc),
		  on_open, n);
}

void fleet_open_again(struct fleet *f)
{
	for (size_t k = 0; k < f->nodes; k++)
		f->node[k].open_failed = false;
}

/* ---- a link's callbacks ------------------------------------------------- */

static void on_event(const json_t *event, void *arg)
{
	const char *e = json_string_value(json_object_get(event, "e"));
	struct fleet_node *n = arg;

	n->fleet->opts.event(n, event, n->fleet->opts.arg);
	if (e && !strcmp(e, "cluster")) {
		n->seen = true;
		ready_soon(n);
	}
}

static void on_hello(struct fleet_node *n, const json_t *hello)
{
	const char *state = json_string_value(json_object_get(hello, "state"));

	event_text(n->version, sizeof(n->version),
		   json_string_value(json_object_get(hello, "version")));
	n->running = state && !strcmp(state, "running");
	n->open = n->running;
	json_decref(n->hello);
	n->hello = json_incref((json_t *)hello);
	ping(n, on_first_ping);
	if (!n->fleet->hello_at_us)
		n->fleet->hello_at_us = now_us(n->fleet);
}

static void on_up(struct fleet_node *n)
{
	struct fleet *f = n->fleet;

	n->state = FLEET_UP;
	n->up_at_us = now_us(f);
	n->up_after_us = n->up_at_us - n->began_at_us;
	n->lost_at_us = n->retry_at_us = n->ping_at_us = 0;
	n->retries = 0;
	n->ups++;
	n->ending = false;
	f->ever_up = true;
	text_set(n, "");
	if (f->watching)
		n->open = true;
	ready_soon(n);
	changed(n);
}

/*
 * A link to a node that was up comes back by itself: its run goes on there, and
 * its spool keeps what happens. It is tried from one second on, and twice as
 * long each time; in the end, or when it was refused, it is lost. So is one of
 * several that could not be reached while others could.
 */
static bool retry_later(struct fleet_node *n, bool was_up)
{
	struct fleet *f = n->fleet;
	int64_t now = now_us(f), wait = RETRY_MIN_US;
	size_t len;

	if (!n->at->host.host || f->drop || n->ending || !n->link ||
	    !node_may_heal(link_conn_code(n->link)))
		return false;
	if (was_up || (!n->lost_at_us && f->nodes > 1)) {
		n->lost_at_us = now;
		n->retries = 0;
	}
	if (!n->lost_at_us ||
	    (f->nodes == 1 && now > n->lost_at_us + RETRY_ALL_US))
		return false;
	for (unsigned k = 0; k < n->retries && wait < RETRY_MAX_US; k++)
		wait *= 2;
	if (wait > RETRY_MAX_US)
		wait = RETRY_MAX_US;
	n->retries++;
	n->retry_at_us = now + wait;
	len = strlen(n->text);
	snprintf(n->text + len, sizeof(n->text) - len, "; trying again in %d s",
		 (int)(wait / 1000000));
	return true;
}

/* Another console owns it. When this is at the beginning, or it is all there
 * is, then that is to be watched. */
static bool owned_elsewhere(const struct fleet_node *n)
{
	const struct fleet *f = n->fleet;

	return !f->watching && !f->drop &&
	       link_conn_refused(n->link) == -EBUSY &&
	       (!f->begun || !fleet_count(f, FLEET_UP));
}

static void on_down(struct fleet_node *n, const char *reason)
{
	bool was_up = n->state == FLEET_UP;

	n->open = n->open_asked = n->open_failed = false;
	n->seen = n->held = n->attached = false;
	n->ready_at_us = 0;
	json_decref(n->hello);
	n->hello = NULL;
	if (n->fleet->rewatch || owned_elsewhere(n)) {
		n->state = FLEET_CONNECTING;
		n->fleet->rewatch = true;
		return;
	}
	text_set(n, reason ? reason : "the agent is gone");
	n->state = FLEET_LOST; /* for retry_later() to see the others alone */
	if (retry_later(n, was_up))
		n->state = FLEET_WAITING;
	else
		n->lost_at_us = 0;
	changed(n);
}

static void on_state(enum link_state state, const json_t *hello,
		     const char *reason, void *arg)
{
	struct fleet_node *n = arg;

	if (state == LINK_OPENING && hello)
		on_hello(n, hello);
	else if (state == LINK_UP)
		on_up(n);
	else if (state == LINK_DOWN)
		on_down(n, reason);
}

static void on_ask(const json_t *ask, void *arg)
{
	board_ask(arg, ask);
}

/* ---- attaching ---------------------------------------------------------- */

static void node_close(struct fleet_node *n)
{
	if (n->link) {
		epoll_ctl(n->fleet->epfd, EPOLL_CTL_DEL, link_conn_fd(n->link),
			  NULL);
		link_conn_close(n->link);
	}
	n->link = NULL;
	n->open = n->open_asked = n->open_failed = false;
	n->seen = n->held = n->attached = false;
	n->ready_at_us = n->retry_at_us = n->lost_at_us = 0;
	json_decref(n->hello);
	n->hello = NULL;
}

static void all_close(struct fleet *f)
{
	for (size_t k = 0; k < f->nodes; k++) {
		f->node[k].state = FLEET_LOST;
		if (f->node[k].link)
			link_conn_shut(f->node[k].link);
	}
	for (size_t k = 0; k < f->nodes; k++)
		node_close(&f->node[k]);
}

static int link_new(struct fleet_node *n, struct err *err)
{
	const struct fleet_opts *o = &n->fleet->opts;
	bool there = n->at->host.host != NULL;
	struct link_conn_opts opts = {
		.agent = n->agent,
		.program = n->at->program ? n->at->program : o->program,
		.state_dir = n->at->state_dir ? n->at->state_dir : o->state_dir,
		.watch = n->fleet->watching,
		.hold = true,
		.spawn = true,
		.node = there ? n->at : NULL,
		.event = on_event,
		.state = on_state,
		.ask = on_ask,
		.arg = n,
	};
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = n };
	int rc = link_conn_open(&opts, &n->link, err);

	if (!rc)
		epoll_ctl(n->fleet->epfd, EPOLL_CTL_ADD, link_conn_fd(n->link),
			  &ev);
	return rc;
}

static int attach(struct fleet_node *n, struct err *err)
{
	int rc;

	n->state = FLEET_CONNECTING;
	n->began_at_us = now_us(n->fleet);
	n->retry_at_us = 0;
	rc = n->link ? link_conn_retry(n->link, err) : link_new(n, err);
	if (rc) {
		n->state = FLEET_LOST;
		text_set(n, err->text);
	}
	return rc;
}

static int attach_all(struct fleet *f, struct err *err)
{
	size_t ok = 0;
	int rc = 0;

	f->chosen = f->settled = f->begun = f->ever_up = f->rewatch = f->drop =
		false;
	f->began_at_us = now_us(f);
	f->hello_at_us = 0;
	for (size_t k = 0; k < f->nodes; k++) {
		struct err why = { 0 };
		int r = attach(&f->node[k], &why);

		ok += !r;
		if (r && !rc) {
			rc = r;
			*err = why;
		}
	}
	return ok ? 0 : rc;
}

void fleet_retry(struct fleet *f)
{
	struct err err = { 0 };

	f->drop = false;
	for (size_t k = 0; k < f->nodes; k++) {
		struct fleet_node *n = &f->node[k];

		if (n->state != FLEET_LOST && n->state != FLEET_WAITING)
			continue;
		attach(n, &err);
		changed(n);
	}
	/* commands wait for them as for those of the beginning */
	f->began_at_us = now_us(f);
	f->settled = false;
	f->hello_at_us = 0;
	if (!fleet_count(f, FLEET_UP))
		f->chosen = f->begun = false;
}

int fleet_from(struct fleet_node *n, const char *session,
	       const int64_t (*from)[2], size_t from_count, bool take)
{
	link_conn_take(n->link, take);
	return link_conn_from(n->link, session, from, from_count);
}

void fleet_rewatch(struct fleet *f)
{
	f->rewatch = true;
}

void fleet_drop(struct fleet *f, const char *why)
{
	f->drop = true;
	snprintf(f->drop_text, sizeof(f->drop_text), "%s", why);
}

/* ---- turning ------------------------------------------------------------ */

static void links_step(struct fleet *f)
{
	struct epoll_event ev[STEP_MAX];
	int n = epoll_wait(f->epfd, ev, STEP_MAX, 0);

	for (int k = 0; k < n; k++)
		link_conn_step(((struct fleet_node *)ev[k].data.ptr)->link);
	for (size_t k = 0; k < f->nodes; k++)
		if (f->node[k].link && !link_conn_timeout_ms(f->node[k].link))
			link_conn_step(f->node[k].link);
}

static void timers_step(struct fleet *f)
{
	struct err err = { 0 };
	int64_t now = now_us(f);

	for (size_t k = 0; k < f->nodes; k++) {
		struct fleet_node *n = &f->node[k];

		if (n->retry_at_us && now >= n->retry_at_us && attach(n, &err))
			changed(n);
		ping_step(n, now);
	}
}

/* Whether all that may still say hello have, or have had their time. */
static bool may_choose(const struct fleet *f)
{
	if (f->chosen || now_us(f) >= f->hello_at_us + HOLD_US)
		return true;
	for (size_t k = 0; k < f->nodes; k++)
		if (f->node[k].state == FLEET_CONNECTING && !f->node[k].held)
			return false;
	return true;
}

static void choose_step(struct fleet *f)
{
	struct fleet_node **held;
	size_t n = 0;

	if (!f->hello_at_us || !may_choose(f))
		return;
	held = calloc(f->nodes, sizeof(struct fleet_node *));
	for (size_t k = 0; held && k < f->nodes; k++)
		if (f->node[k].held)
			held[n++] = &f->node[k];
	if (n) {
		f->chosen = true;
		f->opts.choose(held, n, f->opts.arg);
	}
	for (size_t k = 0; k < n; k++) {
		held[k]->held = false;
		json_decref(held[k]->hello);
		held[k]->hello = NULL;
		if (!f->rewatch && !f->drop)
			link_conn_attach(held[k]->link);
	}
	free(held);
}

/* Nobody is waited for who has not answered in time while others have. */
static void settle_step(struct fleet *f)
{
	bool late = fleet_count(f, FLEET_UP) &&
		    now_us(f) >= f->began_at_us + SETTLE_US;

	if (!f->ever_up && !fleet_count(f, FLEET_CONNECTING))
		for (size_t k = 0; k < f->nodes; k++)
			if (f->node[k].state == FLEET_WAITING) {
				f->node[k].state = FLEET_LOST;
				f->node[k].retry_at_us = 0;
				changed(&f->node[k]);
			}
	if (!f->settled && (late || !fleet_count(f, FLEET_CONNECTING)))
		f->settled = f->begun = true;
	for (size_t k = 0; k < f->nodes; k++)
		open_ask(&f->node[k]);
}

static void rewatch_step(struct fleet *f)
{
	struct err err = { 0 };

	all_close(f);
	f->watching = true;
	if (attach_all(f, &err))
		for (size_t k = 0; k < f->nodes; k++)
			changed(&f->node[k]);
}

static void drop_step(struct fleet *f)
{
	all_close(f);
	f->drop = false;
	for (size_t k = 0; k < f->nodes; k++) {
		f->node[k].state = FLEET_LOST;
		text_set(&f->node[k], f->drop_text);
		changed(&f->node[k]);
	}
}

void fleet_step(struct fleet *f)
{
	links_step(f);
	timers_step(f);
	choose_step(f);
	if (f->drop)
		drop_step(f);
	else if (f->rewatch)
		rewatch_step(f);
	settle_step(f);
}

static int sooner(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

static int left_ms(int64_t at_us, int64_t now)
{
	return at_us > now ? (int)((at_us - now) / 1000) + 1 : 0;
}

int fleet_timeout_ms(const struct fleet *f)
{
	int64_t now = now_us(f);
	int ms = -1;

	if (f->rewatch || f->drop)
		return 0;
	for (size_t k = 0; k < f->nodes; k++) {
		const struct fleet_node *n = &f->node[k];

		if (n->link)
			ms = sooner(ms, link_conn_timeout_ms(n->link));
		if (n->retry_at_us)
			ms = sooner(ms, left_ms(n->retry_at_us, now));
		if (n->state == FLEET_UP)
			ms = sooner(ms, left_ms(n->ping_at_us, now));
		if (n->ready_at_us > now)
			ms = sooner(ms, left_ms(n->ready_at_us, now));
	}
	if (f->hello_at_us && !f->chosen)
		ms = sooner(ms, left_ms(f->hello_at_us + HOLD_US, now));
	if (!f->settled && now < f->began_at_us + SETTLE_US)
		ms = sooner(ms, left_ms(f->began_at_us + SETTLE_US, now));
	return ms;
}

int fleet_fd(const struct fleet *f)
{
	return f->epfd;
}

/* ---- making ------------------------------------------------------------- */

static void node_init(struct fleet *f, size_t k)
{
	const struct fleet_opts *o = &f->opts;
	struct fleet_node *n = &f->node[k];

	n->fleet = f;
	n->at = &o->node[k];
	n->name = n->at->name ? n->at->name : "";
	n->state = FLEET_LOST;
	snprintf(n->agent, sizeof(n->agent), "%s%s%s", o->agent,
		 *n->name ? "." : "", n->name);
}

void fleet_cluster(struct fleet *f, const json_t *cluster)
{
	const struct fleet_opts *o = &f->opts;

	for (size_t k = 0; cluster && k < f->nodes; k++)
		if (!f->node[k].doc)
			f->node[k].doc =
				document_for(cluster, o->node, o->nodes, k);
}

int fleet_open(const struct fleet_opts *opts, struct fleet **fleet,
	       struct err *err)
{
	struct fleet *f;
	int rc;

	if (opts->nodes > FLEET_MAX)
		return err_set(err, -EINVAL,
			       "cluster: %zu nodes, of %d that it may have",
			       opts->nodes, FLEET_MAX);
	f = calloc(1, sizeof(*f));
	if (f)
		f->node = calloc(opts->nodes, sizeof(*f->node));
	if (!f || !f->node) {
		free(f);
		return err_set(err, -ENOMEM, "cluster: out of memory");
	}
	f->opts = *opts;
	f->nodes = opts->nodes;
	f->watching = opts->watch;
	f->epfd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t k = 0; k < f->nodes; k++)
		node_init(f, k);
	fleet_cluster(f, opts->cluster);
	rc = f->epfd < 0 ? err_set(err, -errno, "epoll: %s", strerror(errno))
			 : attach_all(f, err);
	if (rc)
		fleet_close(f);
	else
		*fleet = f;
	return rc;
}

void fleet_close(struct fleet *f)
{
	if (!f)
		return;
	all_close(f);
	for (size_t k = 0; k < f->nodes; k++)
		json_decref(f->node[k].doc);
	if (f->epfd >= 0)
		close(f->epfd);
	free(f->node);
	free(f);
}
