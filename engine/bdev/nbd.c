/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nbd: what state it is in, and why. What goes over a connection is in
 * nbd_flight.c.
 */
#include "engine/bdev/nbd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bdev/nbd_impl.h"

#define INFLIGHT 64u
#define BACKOFF_NS (20 * MSEC_NS)
#define BACKOFF_MAX_NS (500 * MSEC_NS)
#define BYE_NS (2 * SEC_NS)

/* ---- states ------------------------------------------------------------- */

const char *bdev_nbd_state_name(enum bdev_nbd_state state)
{
	static const char *const name[] = { "waiting", "connecting", "up",
					    "lost",    "dead",       "closed",
					    "unfenced" };

	return name[state];
}

struct bdev_nbd *nbd_of(const struct bdev *bdev)
{
	return container_of(bdev, struct bdev_nbd, bdev);
}

enum bdev_nbd_state bdev_nbd_state(const struct bdev *bdev)
{
	return nbd_of(bdev)->state;
}

static void state_set(struct bdev_nbd *n, enum bdev_nbd_state state,
		      const char *why)
{
	if (n->state == state)
		return;
	n->state = state;
	if (n->opts.state)
		n->opts.state(state, why, n->opts.arg);
}

/* ---- the end of a connection -------------------------------------------- */

static void cut(struct bdev_nbd *n)
{
	nbd_conn_free(n->conn);
	n->conn = NULL;
	nbd_flight_back(n);
}

static void die(struct bdev_nbd *n, const char *why)
{
	char text[sizeof(n->why)];

	if (n->state == BDEV_NBD_DEAD)
		return;
	snprintf(text, sizeof(text), "%s", why);
	cut(n);
	timer_cancel(nbd_reactor(n), &n->limit);
	timer_cancel(nbd_reactor(n), &n->retry);
	n->bdev.failed = true;
	memcpy(n->why, text, sizeof(text));
	state_set(n, BDEV_NBD_DEAD, n->why);
	nbd_flight_fail(n, -ENODEV);
}

static void again_later(struct bdev_nbd *n)
{
	timer_arm(nbd_reactor(n), &n->retry,
		  reactor_now(nbd_reactor(n)) + n->backoff_ns);
	n->backoff_ns *= 2;
	if (n->backoff_ns > BACKOFF_MAX_NS)
		n->backoff_ns = BACKOFF_MAX_NS;
}

/* It was one, or was to be. */
static void lose(struct bdev_nbd *n, const char *why)
{
	char where[160], text[sizeof(n->why)];

	nbd_where_say(&n->where, where, sizeof(where));
	snprintf(text, sizeof(text), "%s: NBD, %s: %s", n->bdev.name, where,
		 why);
	cut(n);
	if (n->bdev.closing) {
		die(n, text);
		return;
	}
	snprintf(n->why, sizeof(n->why), "%s", text);
	memcpy(n->lost_why, n->why, sizeof(n->why));
	if (!timer_armed(&n->limit))
		timer_arm_lived(nbd_reactor(n), &n->limit, n->opts.lost_ns);
	again_later(n);
	state_set(n, BDEV_NBD_LOST, n->why);
}

/* ---- the beginning ------------------------------------------------------ */

/* Why it is not what was stated; false: it is. */
static bool unlike(const struct bdev_nbd *n, char *why, size_t len)
{
	const struct nbd_conn_facts *f = &n->facts;
	const struct bdev_limits *l = &n->bdev.limits;

	if (f->size_bytes != l->size_bytes)
		snprintf(why, len, "it has %llu bytes, not %llu",
			 (unsigned long long)f->size_bytes,
			 (unsigned long long)l->size_bytes);
	else if (f->read_only)
		snprintf(why, len, "it is read-only");
	else if (!f->can_flush)
		snprintf(why, len,
			 "it cannot flush: nothing on it would be durable");
	else if (f->block_min > l->block_bytes ||
		 f->request_max < l->block_bytes)
		snprintf(why, len, "its block is %u bytes, not %u",
			 f->block_min, l->block_bytes);
	else
		return false;
	return true;
}

/* Whether it may have forgotten what it answered: nbd.h, 3. */
static bool forgetful(const struct bdev_nbd *n)
{
	if (!n->been_up || n->written == n->covered)
		return false;
	return n->boot && n->where.boot ? strcmp(n->boot, n->where.boot) != 0
					: n->moved;
}

/* It answers, or nothing is asked of it: one that only ever connects, and ends
 * when it is asked, is given no more time than one that is not there. */
static void settled(struct bdev_nbd *n)
{
	n->backoff_ns = BACKOFF_NS;
	timer_cancel(nbd_reactor(n), &n->limit);
}

static void connected(struct bdev_nbd *n)
{
	char why[160], text[sizeof(n->why)], where[160];

	nbd_conn_facts(n->conn, &n->facts);
	n->unfenced = 0;
	nbd_where_say(&n->where, where, sizeof(where));
	if (unlike(n, why, sizeof(why))) {
		snprintf(text, sizeof(text), "%s: NBD, %s: %s", n->bdev.name,
			 where, why);
		die(n, text);
		return;
	}
	if (forgetful(n)) {
		snprintf(text, sizeof(text),
			 "%s: NBD, %s: that machine was started anew, and what "
			 "it had not flushed may be lost",
			 n->bdev.name, where);
		die(n, text);
		return;
	}
	n->been_up = true;
	n->moved = false;
	free(n->boot);
	n->boot = n->where.boot ? strdup(n->where.boot) : NULL;
	*n->why = '\0';
	if (TAILQ_EMPTY(&n->queue))
		settled(n);
	timer_cancel(nbd_reactor(n), &n->watchdog);
	state_set(n, BDEV_NBD_UP, "");
}

static void closed_now(struct bdev_nbd *n);

static void on_event(void *arg)
{
	struct bdev_nbd *n = arg;

	if (nbd_flight_answers(n))
		settled(n);
	if (n->closing) {
		if (nbd_conn_state(n->conn) == NBD_CONN_OVER)
			closed_now(n);
		return;
	}
	switch (nbd_conn_state(n->conn)) {
	case NBD_CONN_SHAKING:
		return;
	case NBD_CONN_OVER:
		lose(n, *n->why ? n->why : nbd_conn_why(n->conn));
		return;
	case NBD_CONN_READY:
		if (n->state != BDEV_NBD_UP)
			connected(n);
		nbd_flight_pump(n);
		return;
	}
}

static void attempt(struct bdev_nbd *n)
{
	struct bdev_nbd_target target;
	struct err err = { 0 };

	if (!timer_armed(&n->limit))
		timer_arm_lived(nbd_reactor(n), &n->limit, n->opts.lost_ns);
	*n->why = '\0';
	if (n->state != BDEV_NBD_LOST)
		state_set(n, BDEV_NBD_CONNECTING, "");
	timer_arm_lived(nbd_reactor(n), &n->watchdog, n->opts.answer_ns);
	target = nbd_where_target(&n->where); /* as it is by now */
	if (nbd_conn_new(nbd_reactor(n), &target, on_event, n, &n->conn, &err))
		lose(n, err.text);
}

/* ---- time --------------------------------------------------------------- */

static void on_retry(struct timer *timer)
{
	struct bdev_nbd *n = container_of(timer, struct bdev_nbd, retry);

	if (n->doom) {
		die(n, n->doom);
	} else if (n->bdev.closing) {
		die(n, n->why);
	} else {
		cut(n);
		attempt(n);
	}
}

static void on_limit(struct timer *timer)
{
	struct bdev_nbd *n = container_of(timer, struct bdev_nbd, limit);
	char text[sizeof(n->why)];

	if (!n->told)
		snprintf(text, sizeof(text),
			 "%s: NBD: nobody said where it is to be found",
			 n->bdev.name);
	else if (*n->lost_why)
		snprintf(text, sizeof(text), "%s", n->lost_why);
	else
		snprintf(text, sizeof(text),
			 "%s: NBD: no connection came to be", n->bdev.name);
	die(n, text);
}

static void no_answer(struct bdev_nbd *n, const char *what)
{
	char why[96];

	snprintf(why, sizeof(why), "%s for %.1f s", what,
		 (double)n->opts.answer_ns / SEC_NS);
	lose(n, why);
}

static void on_watchdog(struct timer *timer)
{
	struct bdev_nbd *n = container_of(timer, struct bdev_nbd, watchdog);
	const struct nbd_request *rq = TAILQ_FIRST(&n->sent);
	const uint64_t now = reactor_lived(nbd_reactor(n));

	if (n->closing) {
		closed_now(n);
	} else if (n->state != BDEV_NBD_UP) {
		no_answer(n, "it does not take part in the handshake");
	} else if (rq && now - rq->sent_ns >= n->opts.answer_ns) {
		no_answer(n, "it has not answered");
	} else if (rq) {
		timer_arm_lived(nbd_reactor(n), timer, n->opts.answer_ns / 4);
	}
}

/* ---- the bdev ----------------------------------------------------------- */

static void closed_now(struct bdev_nbd *n)
{
	struct reactor *r = nbd_reactor(n);

	nbd_conn_free(n->conn);
	timer_cancel(r, &n->limit);
	timer_cancel(r, &n->retry);
	timer_cancel(r, &n->watchdog);
	nbd_flight_fini(n);
	nbd_where_free(&n->where);
	free(n->boot);
	free(n->doom);
	if (n->unfenced)
		state_set(n, BDEV_NBD_UNFENCED, n->why);
	else
		state_set(n, BDEV_NBD_CLOSED, "");
	bdev_closed(&n->bdev);
}

/* The front has waited for every io to be answered. */
static void nbd_close(struct bdev *bdev)
{
	struct bdev_nbd *n = nbd_of(bdev);

	n->closing = true;
	timer_cancel(nbd_reactor(n), &n->retry);
	if (n->state != BDEV_NBD_UP) {
		closed_now(n);
		return;
	}
	timer_arm_lived(nbd_reactor(n), &n->watchdog, BYE_NS);
	nbd_conn_bye(n->conn);
}

static void nbd_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct bdev_nbd *n = nbd_of(bdev);
	char where[160];

	nbd_where_say(&n->where, where, sizeof(where));
	snprintf(buf, len, "%s, %s%s", where, bdev_nbd_state_name(n->state),
		 n->where.key ? ", TLS" : "");
}

static const struct bdev_ops nbd_ops = {
	.kind = "nbd",
	.submit = nbd_flight_submit,
	.close = nbd_close,
	.describe = nbd_describe,
};

static void limits_set(struct bdev_nbd *n, const struct bdev_nbd_opts *opts)
{
	const uint32_t block = opts->block_bytes ? opts->block_bytes : 512;

	n->bdev.limits = (struct bdev_limits) {
		.size_bytes = opts->size_bytes,
		.block_bytes = block,
		.phys_bytes = block > 4096 ? block : 4096,
		.align_bytes = 1,
		.io_max_bytes = 32 * MIB,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.trim_zeroes = opts->trim_zeroes,
	};
}

static void opts_set(struct bdev_nbd *n, const struct bdev_nbd_opts *opts)
{
	n->opts = *opts;
	n->opts.name = NULL;
	if (!opts->inflight_max)
		n->opts.inflight_max = INFLIGHT;
	if (!opts->wait_ns)
		n->opts.wait_ns = 30 * SEC_NS;
	if (!opts->lost_ns)
		n->opts.lost_ns = 4 * SEC_NS;
	if (!opts->answer_ns)
		n->opts.answer_ns = 5 * SEC_NS;
}

static int opts_check(struct reactor *r, const struct bdev_nbd_opts *opts,
		      struct err *err)
{
	const uint32_t block = opts->block_bytes ? opts->block_bytes : 512;

	if (!nbd_conn_can())
		return err_set(err, -ENOTSUP,
			       "%s: this iodeck was built without libnbd: "
			       "drives of other nodes cannot be used",
			       opts->name ? opts->name : "NBD");
	if (reactor_kind(r) == REACTOR_SIM)
		return err_set(err, -ENOTSUP,
			       "NBD is not to be had in a simulation");
	if (block & (block - 1) || block < 512 || !opts->size_bytes ||
	    opts->size_bytes % block)
		return err_set(err, -EINVAL,
			       "%s: %llu bytes are no blocks of %u",
			       opts->name ? opts->name : "NBD",
			       (unsigned long long)opts->size_bytes, block);
	return 0;
}

int bdev_nbd_open(struct reactor *r, const struct bdev_nbd_opts *opts,
		  struct bdev **bdev, struct err *err)
{
	struct bdev_nbd *n;
	const int rc = opts_check(r, opts, err);

	if (rc)
		return rc;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_set(err, -ENOMEM, "%s: no memory",
			       opts->name ? opts->name : "NBD");
	bdev_init(&n->bdev, &nbd_ops, r, opts->name);
	limits_set(n, opts);
	opts_set(n, opts);
	nbd_flight_init(n);
	n->backoff_ns = BACKOFF_NS;
	n->limit.fn = on_limit;
	n->retry.fn = on_retry;
	n->watchdog.fn = on_watchdog;
	timer_arm_lived(r, &n->limit, n->opts.wait_ns);
	*bdev = &n->bdev;
	return 0;
}

/* ---- told from outside -------------------------------------------------- */

int bdev_nbd_target(struct bdev *bdev, const struct bdev_nbd_target *target,
		    struct err *err)
{
	struct bdev_nbd *n = nbd_of(bdev);
	struct nbd_where where = { 0 };
	int rc = nbd_conn_check(target, err);

	if (rc)
		return rc;
	if (n->state == BDEV_NBD_DEAD || n->closing)
		return err_set(err, -ENODEV, "%s: NBD: it is given up: %s",
			       n->bdev.name, n->why);
	if (nbd_where_take(&where, target))
		return err_set(err, -ENOMEM, "%s: no memory", n->bdev.name);
	if (n->told && nbd_where_same(&n->where, &where) &&
	    n->state == BDEV_NBD_UP) {
		nbd_where_free(&where);
		return 0;
	}
	n->moved |= n->told && !nbd_where_same(&n->where, &where);
	nbd_where_free(&n->where);
	n->where = where;
	n->told = true;
	n->backoff_ns = BACKOFF_NS;
	timer_arm(nbd_reactor(n), &n->retry, 0);
	return 0;
}

void bdev_nbd_give_up(struct bdev *bdev, const char *why)
{
	struct bdev_nbd *n = nbd_of(bdev);

	if (n->doom || n->closing)
		return;
	n->doom = strdup(why);
	id_assert(n->doom);
	timer_arm(nbd_reactor(n), &n->retry, 0);
}
