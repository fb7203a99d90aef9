/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is in flight. An io waits in a queue, goes out as a command while there
 * is a connection, and goes back into the queue, in its order, when that ends
 * before it was answered. One that is longer than what the server takes goes
 * piece by piece; one that is durable, on a server without FUA, is followed by
 * a flush.
 *
 *	submit --> queue --> sent --> done
 *	             ^        |
 *	             '--lost--'
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/bdev/nbd_impl.h"

/* So that what is asked for on a slow link can be answered in time. */
#define INFLIGHT_BYTES (16u * 1024 * 1024)
#define PIECE_MAX (4u * 1024 * 1024)
#define ZERO_MAX (1024u * 1024 * 1024)
#define ZEROS_BYTES (64u * 1024)

/* Where a server has no command for them. */
static uint8_t zeros[ZEROS_BYTES];

/* ---- requests ----------------------------------------------------------- */

static void finish(struct bdev_nbd *n, struct nbd_request *rq, int result)
{
	struct io *io = rq->io;

	if (!result && io->op == BDEV_FLUSH && rq->covers > n->covered)
		n->covered = rq->covers;
	else if (!result && io->op != BDEV_READ && io->op != BDEV_FLUSH &&
		 !(io->flags & BDEV_FUA))
		n->written++;
	TAILQ_INSERT_HEAD(&n->stock, rq, link);
	bdev_complete(io, result);
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* A multiple of the block, as both sides have it. */
static uint32_t piece_max(const struct bdev_nbd *n, uint32_t most)
{
	const uint32_t block = n->bdev.limits.block_bytes;

	return least(most, n->facts.request_max) / block * block;
}

static void piece_trim(struct bdev_nbd *n, struct nbd_conn_cmd *cmd,
		       uint32_t left)
{
	if (!n->opts.trim_zeroes || n->facts.can_zero) {
		cmd->op = n->opts.trim_zeroes ? NBD_CONN_ZERO : NBD_CONN_TRIM;
		cmd->len = least(left, ZERO_MAX);
		return;
	}
	cmd->op = NBD_CONN_WRITE;
	cmd->buf = zeros;
	cmd->len = least(left, piece_max(n, ZEROS_BYTES));
}

/* The next command of a request. */
static void piece(struct bdev_nbd *n, struct nbd_request *rq)
{
	struct nbd_conn_cmd *cmd = &rq->cmd;
	const struct io *io = rq->io;
	const uint32_t left = io->len - rq->did;

	*cmd = (struct nbd_conn_cmd) { .off = io->off + rq->did };
	if (io->op == BDEV_FLUSH || rq->flushing) {
		cmd->op = NBD_CONN_FLUSH;
	} else if (io->op == BDEV_TRIM) {
		piece_trim(n, cmd, left);
	} else {
		cmd->op = io->op == BDEV_READ ? NBD_CONN_READ : NBD_CONN_WRITE;
		cmd->buf = (uint8_t *)io->buf + rq->did;
		cmd->len = least(left, piece_max(n, PIECE_MAX));
		cmd->fua = io->flags & BDEV_FUA && n->facts.can_fua;
	}
}

/* What moves data: a trim is short on the way. */
static uint32_t bytes_of(const struct nbd_request *rq)
{
	return rq->cmd.buf ? rq->cmd.len : 0;
}

static bool writes(const struct nbd_request *rq)
{
	return rq->cmd.op != NBD_CONN_READ && rq->cmd.op != NBD_CONN_FLUSH;
}

static void send_one(struct bdev_nbd *n, struct nbd_request *rq)
{
	rq->sent_ns = reactor_lived(nbd_reactor(n));
	TAILQ_INSERT_TAIL(&n->sent, rq, link);
	n->inflight++;
	n->inflight_bytes += bytes_of(rq);
	if (!timer_armed(&n->watchdog))
		timer_arm_lived(nbd_reactor(n), &n->watchdog,
				n->opts.answer_ns / 4);
	nbd_conn_send(n->conn, &rq->cmd);
}

/* True: nothing is to be sent for it. */
static bool needless(const struct bdev_nbd *n, const struct nbd_request *rq)
{
	return rq->io->op == BDEV_TRIM && !n->opts.trim_zeroes &&
	       !n->facts.can_trim;
}

static bool room(const struct bdev_nbd *n, const struct nbd_request *rq)
{
	return !n->inflight ||
	       (n->inflight < n->opts.inflight_max &&
		n->inflight_bytes + bytes_of(rq) <= INFLIGHT_BYTES);
}

/* From the reactor's turn, never inside submit. */
void nbd_flight_pump(struct bdev_nbd *n)
{
	struct nbd_request *rq;

	while (n->state == BDEV_NBD_UP && (rq = TAILQ_FIRST(&n->queue))) {
		piece(n, rq);
		if (!room(n, rq))
			break;
		TAILQ_REMOVE(&n->queue, rq, link);
		if (needless(n, rq))
			finish(n, rq, 0);
		else
			send_one(n, rq);
	}
}

/* ---- answers ------------------------------------------------------------ */

static int result_of(int error)
{
	return error > 0 && error < 4096 ? -error : error ? -EIO : 0;
}

static void answered(struct bdev_nbd *n, struct nbd_request *rq)
{
	const struct io *io = rq->io;
	const bool was_flush = rq->cmd.op == NBD_CONN_FLUSH;

	TAILQ_REMOVE(&n->sent, rq, link);
	n->inflight--;
	n->inflight_bytes -= bytes_of(rq);
	if (rq->cmd.error) {
		finish(n, rq, result_of(rq->cmd.error));
		return;
	}
	rq->did += was_flush ? 0 : rq->cmd.len;
	if (was_flush || rq->did == io->len) {
		if (was_flush || !(io->flags & BDEV_FUA) || n->facts.can_fua) {
			finish(n, rq, 0);
			return;
		}
		rq->flushing = true;
	}
	TAILQ_INSERT_HEAD(&n->queue, rq, link);
}

/* An answer that none came, or that the server is about to end, is no answer:
 * the request stays among those sent, for the end of the connection. */
static bool unanswered(const struct nbd_request *rq)
{
	return rq->cmd.error == ENOTCONN || rq->cmd.error == ESHUTDOWN;
}

bool nbd_flight_answers(struct bdev_nbd *n)
{
	bool any = false;
	struct nbd_conn_cmd *cmd = nbd_conn_answered(n->conn), *next;

	for (; cmd; cmd = next) {
		struct nbd_request *rq =
			container_of(cmd, struct nbd_request, cmd);

		next = cmd->next;
		if (!unanswered(rq)) {
			any = true;
			answered(n, rq);
		} else if (rq->cmd.error == ESHUTDOWN && !*n->why)
			snprintf(n->why, sizeof(n->why),
				 "the server is shutting down");
	}
	return any;
}

/* ---- the end of a connection -------------------------------------------- */

/* In the order in which they were sent, before what has not been, and from
 * their beginning. */
void nbd_flight_back(struct bdev_nbd *n)
{
	struct nbd_request *rq;

	while ((rq = TAILQ_LAST(&n->sent, nbd_requests))) {
		TAILQ_REMOVE(&n->sent, rq, link);
		n->unfenced += writes(rq);
		TAILQ_INSERT_HEAD(&n->queue, rq, link);
	}
	TAILQ_FOREACH(rq, &n->queue, link)
	{
		rq->did = 0;
		rq->flushing = false;
	}
	n->inflight = 0;
	n->inflight_bytes = 0;
	timer_cancel(nbd_reactor(n), &n->watchdog);
}

void nbd_flight_fail(struct bdev_nbd *n, int result)
{
	struct nbd_requests all = TAILQ_HEAD_INITIALIZER(all);
	struct nbd_request *rq;

	TAILQ_CONCAT(&all, &n->queue, link);
	while ((rq = TAILQ_FIRST(&all))) {
		TAILQ_REMOVE(&all, rq, link);
		finish(n, rq, result);
	}
}

/* ---- ios ---------------------------------------------------------------- */

static struct nbd_request *request_new(struct bdev_nbd *n)
{
	struct nbd_request *rq = TAILQ_FIRST(&n->stock);

	if (rq)
		TAILQ_REMOVE(&n->stock, rq, link);
	else
		rq = malloc(sizeof(*rq));
	return rq;
}

void nbd_flight_submit(struct bdev *bdev, struct io *io)
{
	struct bdev_nbd *n = nbd_of(bdev);
	struct nbd_request *rq = request_new(n);

	if (!rq) {
		bdev_complete_later(io, -ENOMEM);
		return;
	}
	rq->io = io;
	rq->did = 0;
	rq->flushing = false;
	rq->covers = n->written;
	TAILQ_INSERT_TAIL(&n->queue, rq, link);
	if (n->state != BDEV_NBD_UP || TAILQ_FIRST(&n->queue) != rq)
		return;
	piece(n, rq);
	if (!room(n, rq))
		return;
	TAILQ_REMOVE(&n->queue, rq, link);
	if (!needless(n, rq)) {
		send_one(n, rq);
		return;
	}
	TAILQ_INSERT_HEAD(&n->stock, rq, link);
	bdev_complete_later(io, 0);
}

void nbd_flight_init(struct bdev_nbd *n)
{
	TAILQ_INIT(&n->queue);
	TAILQ_INIT(&n->sent);
	TAILQ_INIT(&n->stock);
}

void nbd_flight_fini(struct bdev_nbd *n)
{
	struct nbd_request *rq;

	id_assert(TAILQ_EMPTY(&n->queue) && TAILQ_EMPTY(&n->sent));
	while ((rq = TAILQ_FIRST(&n->stock))) {
		TAILQ_REMOVE(&n->stock, rq, link);
		free(rq);
	}
}
