/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   signals, consoles, lease  ---> daemon_quit() ---> work_close()
 *                                                        |
 *   exit <--- engine's thread joined, spool synced <--- closed()
 */
#include "backend/agent/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "backend/agent/daemon_priv.h"

#define TICK_NS SEC_NS
#define SYNC_NS (5 * SEC_NS)
#define CHORES_NS (2 * SEC_NS) /* the node's may take to end */

/* ---- events ------------------------------------------------------------- */

void daemon_event(struct daemon *d, const char *e, int64_t t_us, json_t *body)
{
	int rc;

	if (!strcmp(e, "usage") && body) {
		d->usage_ns = reactor_turn_now(d->control);
		host_watch_usage(d->watch, body);
	}
	rc = journal_add(&d->journal, e, t_us, body);
	if (rc && !d->journal.warned) {
		d->journal.warned = true;
		fprintf(stderr, "spool: %s; keeping events in memory\n",
			strerror(-spool_error(d->journal.spool)));
	}
	conns_push(d);
}

void daemon_log(struct daemon *d, const char *level, const char *text)
{
	fprintf(stderr, "%s: %s\n", level, text);
	journal_log(&d->journal, level, "%s", text);
	conns_push(d);
}

/* With what the last look found; `again`: only if it says something new. */
static void host_event(struct daemon *d, bool again)
{
	json_t *facts = host_watch_facts(d->watch);

	if (!facts)
		return;
	json_object_set_new(
		facts, "agent",
		json_pack("{s:s, s:I, s:s}", "version", IODECK_VERSION, "pid",
			  (json_int_t)getpid(), "io",
			  reactor_kind_name(reactor_kind(d->engine))));
	if (again && d->host && json_equal(d->host, facts)) {
		json_decref(facts);
		return;
	}
	json_decref(d->host);
	d->host = json_deep_copy(facts);
	daemon_event(d, "host", event_now_us(), facts);
}

static void on_looked(void *arg)
{
	struct daemon *d = arg;

	if (!d->quitting)
		host_event(d, true);
	node_ask_looked(d->node);
}

void daemon_snapshot(struct daemon *d)
{
	host_event(d, false);
	host_watch_look(d->watch);
	work_snapshot(d->work);
}

/* ---- the node's half ---------------------------------------------------- */

struct node_reply {
	struct reply reply;
	struct daemon *daemon;
	uint64_t serial;
	int64_t id;
};

static void node_reply_send(struct reply *reply, json_t *body)
{
	struct node_reply *r = container_of(reply, struct node_reply, reply);

	conns_answer(r->daemon, r->serial, r->id, body);
	free(r);
}

void daemon_node_ask(struct daemon *d, uint64_t serial, int64_t id,
		     json_t *request)
{
	const char *what = json_string_value(json_object_get(request, "do"));
	struct node_reply *r = calloc(1, sizeof(*r));

	id_assert(r);
	*r = (struct node_reply) { .reply.send = node_reply_send,
				   .daemon = d,
				   .serial = serial,
				   .id = id };
	node_ask(d->node, what, request, &r->reply);
	json_decref(request);
}

static int node_start(struct daemon *d, struct err *err)
{
	const struct host_watch_opts wopts = { .root = "",
					       .looked = on_looked,
					       .arg = d };
	struct host_watch_opts w = wopts;
	struct node_ask_opts n = { .reactor = d->control,
				   .dirfd = d->place.dirfd };
	int rc = chores_new(d->control, &d->chores);

	w.reactor = d->control;
	w.chores = n.chores = d->chores;
	n.io = reactor_kind_name(reactor_kind(d->engine));
	if (!rc)
		rc = host_watch_new(&w, &d->watch);
	n.watch = d->watch;
	if (!rc)
		rc = node_ask_new(&n, &d->node);
	return rc ? err_set(err, rc, "agent: out of memory") : 0;
}

/* ---- lease: the dead man's handle --------------------------------------- */

void daemon_lease_update(struct daemon *d)
{
	unsigned lease_s =
		*d->run ? d->opts->lease_run_s : d->opts->lease_idle_s;
	uint64_t now = reactor_now(d->control);

	if (d->quitting || conns_attached(d)) {
		d->left_ns = 0;
		timer_cancel(d->control, &d->lease);
		return;
	}
	if (!d->left_ns)
		d->left_ns = now;
	if (d->exports)
		timer_cancel(d->control, &d->lease);
	else
		timer_arm(d->control, &d->lease, d->left_ns + lease_s * SEC_NS);
}

static void lease_over(struct timer *timer)
{
	struct daemon *d = container_of(timer, struct daemon, lease);

	daemon_quit(d, *d->run ? "no console came back before the lease of a "
				 "run was over"
			       : "no console is attached");
}

static void on_status(const char *run, void *arg)
{
	struct daemon *d = arg;

	/* a run that ends leaves its result time to be fetched */
	if (!*run && *d->run && d->left_ns)
		d->left_ns = reactor_now(d->control);
	snprintf(d->run, sizeof(d->run), "%s", run);
	daemon_lease_update(d);
}

/* What others keep on an exported vDisk shall not end with a closed terminal:
 * it does by `vdisk unexport` or `agent stop`. */
static void on_exported(unsigned count, void *arg)
{
	struct daemon *d = arg;

	if (!count && d->exports && d->left_ns)
		d->left_ns = reactor_now(d->control);
	d->exports = count;
	daemon_lease_update(d);
}

/* ---- once a second ------------------------------------------------------ */

static void sync_done(struct kio *kio)
{
	struct daemon *d = container_of(kio, struct daemon, sync);

	close(kio->fd);
	d->syncing = false;
}

/* By the pool: a disk under test may take seconds for it. */
static void sync_start(struct daemon *d)
{
	int fd = d->syncing ? -1 : spool_sync_fd(d->journal.spool);

	if (fd < 0)
		return;
	d->syncing = true;
	d->sync = (struct kio) { .op = KIO_FSYNC, .fd = fd, .fn = sync_done };
	reactor_kio(d->control, &d->sync);
}

static void on_tick(struct timer *timer)
{
	struct daemon *d = container_of(timer, struct daemon, tick);
	uint64_t now = reactor_turn_now(d->control);

	if (!spool_flush(d->journal.spool))
		d->journal.warned = false;
	if (now >= d->sync_ns + SYNC_NS) {
		d->sync_ns = now;
		sync_start(d);
	}
	/* while no cluster is open the engine has no figures to send */
	if (!d->left_ns && now >= d->usage_ns + 2 * TICK_NS)
		daemon_event(
			d, "usage", event_now_us(),
			json_pack("{s:I}", "len_us",
				  (json_int_t)((now - d->usage_ns) / USEC_NS)));
	timer_arm(d->control, &d->tick, now + TICK_NS);
}

/* ---- the engine's half -------------------------------------------------- */

static void on_event(const char *e, int64_t t_us, json_t *body, void *arg)
{
	daemon_event(arg, e, t_us, body);
}

static void on_answer(uint64_t peer, int64_t id, json_t *reply, void *arg)
{
	conns_answer(arg, peer, id, reply);
}

static void on_question(json_t *line, void *arg)
{
	conns_ask(arg, line);
}

static void on_closed(void *arg)
{
	struct daemon *d = arg;

	reactor_stop(d->control);
}

static int engine_start(struct daemon *d, struct err *err)
{
	const struct reactor_opts ropts = {
		.kind = REACTOR_AUTO,
		.arena_bytes = 16 * MIB,
		.seed = (uint64_t)event_now_us(),
		.name = "engine",
	};
	const struct work_opts wopts = {
		.agent = d->opts->name,
		.dirfd = d->place.dirfd,
		.event = on_event,
		.answer = on_answer,
		.question = on_question,
		.status = on_status,
		.exported = on_exported,
		.closed = on_closed,
		.control = d->control,
		.arg = d,
	};
	struct work_opts w = wopts;
	int rc = reactor_new(&ropts, &d->engine, err);

	if (rc)
		return rc;
	w.engine = d->engine;
	rc = work_new(&w, &d->work, err);
	if (!rc)
		rc = reactor_thread_start(d->engine, err);
	d->engine_runs = !rc;
	return rc;
}

/* ---- the end ------------------------------------------------------------ */

void daemon_quit(struct daemon *d, const char *reason)
{
	char text[160];

	if (d->quitting)
		return;
	d->quitting = true;
	snprintf(text, sizeof(text), "agent %s ends: %s", d->opts->name,
		 reason);
	daemon_log(d, "info", text);
	daemon_lease_update(d);
	node_ask_stop(d->node);
	work_close(d->work, reason);
}

static void on_signal(struct watch *watch, uint32_t events)
{
	struct daemon *d = container_of(watch, struct daemon, signals);
	struct signalfd_siginfo info;

	(void)events;
	if (read(watch->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (d->quitting && info.ssi_signo != SIGHUP)
		_exit(1); /* asked twice: whatever hangs may hang */
	if (info.ssi_signo != SIGHUP)
		daemon_quit(d, info.ssi_signo == SIGTERM ? "terminated"
							 : "interrupted");
}

/* ---- the beginning ------------------------------------------------------ */

static int signals_take(struct daemon *d, struct err *err)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	/* before any thread is made: all inherit it */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	d->signals = (struct watch) {
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.events = EPOLLIN,
		.fn = on_signal,
	};
	rc = d->signals.fd < 0 ? -errno : watch_add(d->control, &d->signals);
	if (rc)
		return err_set(err, rc, "signals: %s", strerror(-rc));
	return 0;
}

static int spool_start(struct daemon *d, struct err *err)
{
	struct spool_opts opts = { .bytes_max = d->opts->spool_max_bytes };
	struct spool *spool;
	uint64_t torn_bytes;
	int rc;

	d->spool_dirfd = place_spool(&d->place, err);
	if (d->spool_dirfd < 0)
		return d->spool_dirfd;
	opts.dirfd = d->spool_dirfd;
	rc = spool_open(&opts, &spool, &torn_bytes, err);
	if (rc)
		return rc;
	journal_init(&d->journal, spool, d->opts->name);
	fprintf(stderr, "agent %s %s, incarnation %lld, pid %ld\n",
		d->opts->name, IODECK_VERSION, (long long)d->journal.stamp.i,
		(long)getpid());
	if (torn_bytes)
		journal_log(&d->journal, "warn",
			    "spool of agent %s was torn: %llu bytes dropped "
			    "from its end",
			    d->opts->name, (unsigned long long)torn_bytes);
	return 0;
}

/* What was written in memory stays out of core files. */
static void core_dumps_stop(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit) { 0 });
}

static int daemon_start(struct daemon *d, struct err *err)
{
	const struct reactor_opts control = {
		.kind = REACTOR_THREADS,
		.workers = 1,
		.name = "control",
	};
	int rc;

	core_dumps_stop();
	rc = place_open(d->opts->state_dir, d->opts->name, &d->place, err);
	if (!rc)
		rc = place_lock(&d->place, err);
	if (!rc)
		rc = reactor_new(&control, &d->control, err);
	if (!rc)
		rc = signals_take(d, err);
	if (!rc)
		rc = spool_start(d, err);
	if (!rc && chdir("/"))
		rc = err_set(err, -errno, "/: %s", strerror(errno));
	if (!rc)
		rc = conns_listen(d, err);
	if (!rc)
		rc = engine_start(d, err);
	if (!rc)
		rc = node_start(d, err);
	return rc;
}

static void daemon_fini(struct daemon *d)
{
	chores_leave(d->chores, CHORES_NS);
	if (d->engine_runs) {
		reactor_stop(d->engine);
		reactor_thread_join(d->engine);
	}
	node_ask_free(d->node);
	host_watch_free(d->watch);
	json_decref(d->host);
	work_free(d->work);
	reactor_free(d->engine);
	while (d->syncing)
		reactor_run_once(d->control, UINT64_MAX);
	if (d->control)
		conns_flush(d);
	journal_fini(&d->journal);
	if (d->signals.fd >= 0) { /* then control is there, too */
		watch_remove(d->control, &d->signals);
		close(d->signals.fd);
	}
	if (d->control) {
		timer_cancel(d->control, &d->tick);
		timer_cancel(d->control, &d->lease);
	}
	if (d->spool_dirfd >= 0)
		close(d->spool_dirfd);
	/* A console that sees its connection end may start another agent. */
	place_close(&d->place);
	if (d->control)
		conns_close(d);
	reactor_free(d->control);
	free(d->session);
}

/* "lab.n2:3600000000:100 lab.n3:-5000000:0": by agent, how far ahead its clock
 * is, in microseconds, and how much it gains, in parts of a million. */
static void clock_take(const char *name)
{
	const char *all = getenv("IODECK_CLOCK"), *at = all;
	const size_t len = strlen(name);
	char *end;

	while (at && (at = strstr(at, name))) {
		if ((at == all || at[-1] == ' ') && at[len] == ':') {
			const long long ahead = strtoll(at + len + 1, &end, 10);

			event_clock_set(
				ahead, *end == ':' ? strtod(end + 1, NULL) : 0);
			return;
		}
		at += len;
	}
}

int daemon_run(const struct daemon_opts *opts, struct err *err)
{
	struct daemon d = {
		.opts = opts,
		.place = { .dirfd = -1, .lockfd = -1 },
		.spool_dirfd = -1,
		.listen.fd = -1,
		.signals.fd = -1,
		.lease.fn = lease_over,
		.tick.fn = on_tick,
	};
	int rc;

	clock_take(opts->name);
	rc = daemon_start(&d, err);
	opts->ready(rc, err, opts->arg);
	if (!rc) {
		daemon_lease_update(&d);
		d.usage_ns = reactor_now(d.control);
		timer_arm(d.control, &d.tick, d.usage_ns);
		reactor_run(d.control);
	}
	daemon_fini(&d);
	return rc;
}
