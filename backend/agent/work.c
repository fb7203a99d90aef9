/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/agent/asks.h"
#include "backend/agent/chores.h"
#include "backend/agent/drive_ask.h"
#include "backend/agent/host.h"
#include "backend/agent/run.h"
#include "backend/agent/work_priv.h"
#include "backend/event.h"
#include "backend/provider/provider.h"

/* ---- engine to control -------------------------------------------------- */

enum news_kind {
	NEWS_EVENT,
	NEWS_ANSWER,
	NEWS_QUESTION,
	NEWS_STATUS,
	NEWS_EXPORTED,
	NEWS_CLOSED
};

struct news {
	struct task task;
	struct work *work;
	enum news_kind kind;
	char text[64]; /* event's type, run's id */
	int64_t t_us, id;
	uint64_t peer;
	json_t *body;
};

static void news_run(struct task *task)
{
	struct news *n = container_of(task, struct news, task);
	const struct work_opts *o = &n->work->opts;

	switch (n->kind) {
	case NEWS_EVENT:
		o->event(n->text, n->t_us, n->body, o->arg);
		break;
	case NEWS_ANSWER:
		o->answer(n->peer, n->id, n->body, o->arg);
		break;
	case NEWS_QUESTION:
		o->question(n->body, o->arg);
		break;
	case NEWS_STATUS:
		o->status(n->text, o->arg);
		break;
	case NEWS_EXPORTED:
		o->exported((unsigned)n->id, o->arg);
		break;
	case NEWS_CLOSED:
		o->closed(o->arg);
		break;
	}
	free(n);
}

/* Without memory for a message there is no honest way on: the spool is whole
 * up to here and the next incarnation goes on from it. */
static void news_send(struct work *w, const struct news *news)
{
	struct news *n = malloc(sizeof(*n));

	id_assert(n);
	*n = *news;
	n->work = w;
	n->task.fn = news_run;
	reactor_send(w->opts.control, &n->task);
}

void work_emit(struct work *w, const char *e, json_t *body)
{
	struct news n = { .kind = NEWS_EVENT,
			  .t_us = event_now_us(),
			  .body = body };

	if (!body)
		return;
	snprintf(n.text, sizeof(n.text), "%s", e);
	news_send(w, &n);
}

void work_status(struct work *w, const char *run)
{
	struct news n = { .kind = NEWS_STATUS };

	snprintf(n.text, sizeof(n.text), "%s", run);
	news_send(w, &n);
}

/* ---- requests ----------------------------------------------------------- */

struct answer {
	struct reply reply;
	struct work *work;
	uint64_t peer;
	int64_t id;
};

static void answer_send(struct reply *reply, json_t *body)
{
	struct answer *a = container_of(reply, struct answer, reply);

	news_send(a->work, &(struct news) { .kind = NEWS_ANSWER,
					    .peer = a->peer,
					    .id = a->id,
					    .body = body });
	free(a);
}

static void on_provider_emit(const char *e, json_t *body, void *arg)
{
	work_emit(arg, e, body);
}

static void question_send(json_t *line, void *arg)
{
	news_send(arg, &(struct news) { .kind = NEWS_QUESTION, .body = line });
}

static void on_exported(unsigned count, void *arg)
{
	news_send(arg, &(struct news) { .kind = NEWS_EXPORTED, .id = count });
}

static void all_closed(void *arg)
{
	news_send(arg, &(struct news) { .kind = NEWS_CLOSED });
}

static void cluster_gone(void *arg)
{
	struct work *w = arg;
	struct reply *reply = w->closing_reply;

	w->provider = NULL;
	w->closing_reply = NULL;
	w->cluster_closing = false;
	if (reply)
		reply_ok(reply);
	if (w->ending)
		chores_drain(w->chores, all_closed, w);
}

static void cluster_close(struct work *w)
{
	if (w->cluster_closing)
		return;
	w->cluster_closing = true;
	if (w->provider)
		provider_close(w->provider, cluster_gone, w);
	else
		cluster_gone(w);
}

static void cluster_opened(int rc, const struct err *err, void *arg)
{
	struct work *w = arg;
	struct reply *reply = w->opening_reply;

	w->opening_reply = NULL;
	if (rc) {
		reply_err(reply, err);
		cluster_close(w);
	} else {
		reply_ok(reply);
	}
}

static void do_cluster_open(struct work *w, const json_t *request,
			    struct reply *reply)
{
	const struct provider_host host = {
		.emit = on_provider_emit,
		.exported = on_exported,
		.chores = w->chores,
		.asks = w->asks,
		.dirfd = w->opts.dirfd,
		.mem_bytes = host_mem_bytes(),
		.arg = w,
	};
	struct err err = { 0 };

	if (w->provider) {
		reply_fail(reply, -EEXIST,
			   "cluster %s is open here already: close it first",
			   provider_name(w->provider));
	} else if (provider_new(w->opts.engine,
				json_object_get(request, "cluster"), &host,
				&w->provider, &err)) {
		reply_err(reply, &err);
	} else {
		w->opening_reply = reply;
		provider_open(w->provider, cluster_opened, w);
	}
}

static void do_cluster_close(struct work *w, const json_t *request,
			     struct reply *reply)
{
	(void)request;
	if (w->run)
		reply_fail(reply, -EBUSY, "a run is using the cluster");
	else if (w->cluster_closing)
		reply_fail(reply, -EALREADY, "the cluster is closing already");
	else {
		w->closing_reply = reply;
		cluster_close(w);
	}
}

static void do_run_start(struct work *w, const json_t *request,
			 struct reply *reply)
{
	struct err err = { 0 };

	if (w->run)
		reply_fail(reply, -EBUSY, "a run is going on already: %s",
			   run_id(w->run));
	else if (!w->provider || w->cluster_closing)
		reply_fail(reply, -ENODEV, "no cluster is open");
	else if (run_new(w, request, &w->run, &err))
		reply_err(reply, &err);
	else {
		reply_ok(reply);
		run_start(w->run, json_object_get(request, "plan"));
	}
}

static void do_run_go(struct work *w, const json_t *request,
		      struct reply *reply)
{
	struct err err = { 0 };

	if (!w->run)
		reply_fail(reply, -ESRCH, "there is no run to go on");
	else if (run_go(w->run, request, &err))
		reply_err(reply, &err);
	else
		reply_ok(reply);
}

static void do_run_pause(struct work *w, const json_t *request,
			 struct reply *reply)
{
	if (!w->run) {
		reply_fail(reply, -ESRCH, "there is no run to pause");
		return;
	}
	run_pause(w->run, request);
	reply_ok(reply);
}

static void do_run_stop(struct work *w, const json_t *request,
			struct reply *reply)
{
	const char *reason =
		json_string_value(json_object_get(request, "reason"));

	if (!w->run) {
		reply_fail(reply, -ESRCH, "there is no run to stop");
		return;
	}
	run_stop(w->run, reason ? reason : "stopped by the operator");
	reply_ok(reply);
}

/* The open cluster would miss a drive, or claim it again. */
static bool refuse_release(const struct work *w, const char *what,
			   const json_t *request, struct reply *reply)
{
	const char *path = json_string_value(json_object_get(request, "path"));
	struct err err = { 0 };

	if (strcmp(what, "drive_release") != 0 || !w->provider || !path ||
	    !provider_path_free(w->provider, path, &err))
		return false;
	reply_err(reply, &err);
	return true;
}

static const struct {
	const char *what;
	void (*fn)(struct work *w, const json_t *request, struct reply *reply);
} requests[] = {
	{ "cluster_open", do_cluster_open },
	{ "cluster_close", do_cluster_close },
	{ "run_start", do_run_start },
	{ "run_go", do_run_go },
	{ "run_pause", do_run_pause },
	{ "run_stop", do_run_stop },
};

static void drive_claimed(const char *path, const char *cluster, void *arg)
{
	struct work *w = arg;

	if (w->provider && !w->cluster_closing)
		provider_drive_claimed(w->provider, path, cluster);
}

static void request_do(struct work *w, json_t *request, struct reply *reply)
{
	const struct drive_ask_host drives = { w->chores, drive_claimed, w };
	const char *what = json_string_value(json_object_get(request, "do"));

	for (size_t k = 0; k < array_len(requests); k++) {
		if (strcmp(what, requests[k].what) != 0)
			continue;
		requests[k].fn(w, request, reply);
		return;
	}
	if (refuse_release(w, what, request, reply) ||
	    drive_ask(&drives, what, request, reply))
		return;
	if (!w->provider || w->cluster_closing)
		reply_fail(reply, provider_knows(what) ? -ENODEV : -ENOSYS,
			   provider_knows(what)
				   ? "no cluster is open"
				   : "this agent does not know \"%.32s\"",
			   what);
	else
		provider_ask(w->provider, what, request, reply);
}

/* ---- the run's end ------------------------------------------------------ */

void work_run_over(struct work *w)
{
	run_free(w->run);
	w->run = NULL;
	work_status(w, "");
	if (w->ending)
		cluster_close(w);
}

/* ---- control to engine -------------------------------------------------- */

enum order_kind {
	ORDER_ASK,
	ORDER_TOLD,
	ORDER_OWNED,
	ORDER_SNAPSHOT,
	ORDER_CLOSE
};

struct order {
	struct task task;
	struct work *work;
	enum order_kind kind;
	struct answer *answer;
	json_t *request;
	char reason[160];
};

static void order_close(struct work *w, const char *reason)
{
	if (w->ending)
		return;
	w->ending = true;
	if (w->run)
		run_stop(w->run, reason);
	else
		cluster_close(w);
}

static void order_run(struct task *task)
{
	struct order *o = container_of(task, struct order, task);

	switch (o->kind) {
	case ORDER_ASK:
		request_do(o->work, o->request, &o->answer->reply);
		json_decref(o->request);
		break;
	case ORDER_TOLD:
		asks_told(o->work->asks, o->request);
		json_decref(o->request);
		break;
	case ORDER_OWNED:
		asks_again(o->work->asks);
		break;
	case ORDER_SNAPSHOT:
		if (o->work->provider)
			provider_snapshot(o->work->provider);
		break;
	case ORDER_CLOSE:
		order_close(o->work, o->reason);
		break;
	}
	free(o);
}

static struct order *order_new(struct work *w, enum order_kind kind)
{
	struct order *o = calloc(1, sizeof(*o));

	id_assert(o);
	o->work = w;
	o->kind = kind;
	o->task.fn = order_run;
	return o;
}

void work_ask(struct work *w, uint64_t peer, int64_t id, json_t *request)
{
	struct order *o = order_new(w, ORDER_ASK);

	o->answer = calloc(1, sizeof(*o->answer));
	id_assert(o->answer);
	*o->answer = (struct answer) {
		.reply.send = answer_send, .work = w, .peer = peer, .id = id
	};
	o->request = request;
	reactor_send(w->opts.engine, &o->task);
}

void work_owned(struct work *w)
{
	reactor_send(w->opts.engine, &order_new(w, ORDER_OWNED)->task);
}

void work_told(struct work *w, json_t *line)
{
	struct order *o = order_new(w, ORDER_TOLD);

	o->request = line;
	reactor_send(w->opts.engine, &o->task);
}

void work_snapshot(struct work *w)
{
	reactor_send(w->opts.engine, &order_new(w, ORDER_SNAPSHOT)->task);
}

void work_close(struct work *w, const char *reason)
{
	struct order *o = order_new(w, ORDER_CLOSE);

	snprintf(o->reason, sizeof(o->reason), "%s", reason);
	reactor_send(w->opts.engine, &o->task);
}

int work_new(const struct work_opts *opts, struct work **work, struct err *err)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(err, -ENOMEM, "agent: out of memory");
	w->opts = *opts;
	if (chores_new(opts->engine, &w->chores) ||
	    asks_new(opts->engine, question_send, w, &w->asks)) {
		chores_free(w->chores);
		free(w);
		return err_set(err, -ENOMEM, "agent: out of memory");
	}
	*work = w;
	return 0;
}

void work_free(struct work *w)
{
	if (!w)
		return;
	id_assert(!w->provider && !w->run);
	asks_free(w->asks);
	chores_free(w->chores);
	free(w);
}
