/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stream: channel, command, bytes both ways. */
#include "backend/transport/ssh2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/transport/ssh2_priv.h"

#define EXEC_MS 8000
#define DRAIN_TURNS 64

static struct ssh2 *ssh2_of(const struct transport *t)
{
	return container_of(t, struct ssh2, t);
}

void ssh2_next(struct ssh2 *s, enum ssh2_stage stage, int limit_ms)
{
	s->stage = stage;
	s->due_ms = 0;
	if (limit_ms)
		s->due_ms = transport_now_ms() + limit_ms / transport_hurry;
}

bool ssh2_late(const struct ssh2 *s)
{
	return s->due_ms && transport_now_ms() >= s->due_ms;
}

const char *ssh2_text(struct ssh2 *s)
{
	char *text = NULL;

	libssh2_session_last_error(s->session, &text, NULL, 0);
	return text && *text ? text : "libssh2 gives no reason";
}

bool ssh2_ready(const struct transport *t)
{
	return ssh2_of(t)->stage >= SSH2_OPEN;
}

/* ---- the last stages of opening ----------------------------------------- */

static int session_failed(struct ssh2 *s, const char *what, struct err *err)
{
	return err_set(err, -EPROTO, "%s: %s: %s", s->o.far->place, what,
		       ssh2_text(s));
}

static int late(struct ssh2 *s, const char *what, struct err *err)
{
	if (!ssh2_late(s))
		return -EAGAIN;
	return err_set(err, -ETIMEDOUT, "%s: sshd does not %s within %d s",
		       s->o.far->place, what, EXEC_MS / 1000);
}

static int channel_open(struct ssh2 *s, struct err *err)
{
	s->channel = libssh2_channel_open_session(s->session);
	if (s->channel)
		ssh2_next(s, SSH2_EXEC, EXEC_MS);
	else if (libssh2_session_last_errno(s->session) == LIBSSH2_ERROR_EAGAIN)
		return late(s, "open a session", err);
	else
		return session_failed(s, "sshd opens no session", err);
	return 0;
}

static int command_run(struct ssh2 *s, struct err *err)
{
	int rc = libssh2_channel_exec(s->channel, s->o.far->command);

	if (rc == LIBSSH2_ERROR_EAGAIN)
		return late(s, "start a command", err);
	if (rc)
		return session_failed(s, "sshd starts no command", err);
	ssh2_next(s, SSH2_OPEN, 0);
	return 0;
}

static int stage_step(struct ssh2 *s, struct err *err)
{
	switch (s->stage) {
	case SSH2_RESOLVE:
		return ssh2_resolve(s, err);
	case SSH2_CONNECT:
		return ssh2_connect(s, err);
	case SSH2_GATE:
		return ssh2_gate(s, err);
	case SSH2_HANDSHAKE:
		return ssh2_handshake(s, err);
	case SSH2_AUTH:
		return ssh2_auth(s, err);
	case SSH2_CHANNEL:
		return channel_open(s, err);
	default:
		return command_run(s, err);
	}
}

static int over(struct ssh2 *s, int rc, const struct err *err)
{
	s->rc = rc;
	s->err = *err;
	s->stage = SSH2_OVER;
	gate_leave(&s->gate);
	return rc;
}

/* ---- bytes -------------------------------------------------------------- */

static bool outbound(const struct ssh2 *s)
{
	return libssh2_session_block_directions(s->session) &
	       LIBSSH2_SESSION_BLOCK_OUTBOUND;
}

/* A deferred adjustment of the window looks like a lost socket and is none. */
static bool deferred(const struct ssh2 *s, ssize_t rc)
{
	struct pollfd p = { .fd = s->sock };

	return rc == LIBSSH2_ERROR_SOCKET_SEND && poll(&p, 1, 0) == 0;
}

/* What was written before. -EAGAIN: a packet is half sent, and nothing else
 * may be done until it is through. */
static int out_flush(struct ssh2 *s)
{
	ssize_t n;

	if (s->half_read)
		return -EAGAIN;
	while (s->out_at < s->out_len) {
		n = libssh2_channel_write(s->channel, s->out + s->out_at,
					  s->out_len - s->out_at);
		if (n == LIBSSH2_ERROR_EAGAIN)
			return outbound(s) ? -EAGAIN : 0;
		if (n < 0 || (size_t)n > s->out_len - s->out_at) {
			s->out_at = s->out_len = 0;
			return -EPIPE;
		}
		s->out_at += (size_t)n;
	}
	s->out_at = s->out_len = 0;
	return 0;
}

/* stdout and stderr share a window: what is left on one stops the other. */
static void err_drain(struct ssh2 *s)
{
	char buf[SAID_MAX];
	ssize_t n;

	for (int turns = 0; turns < DRAIN_TURNS; turns++) {
		n = libssh2_channel_read_stderr(s->channel, buf, sizeof(buf));
		if (n <= 0)
			return;
		said_add(&s->said, buf, (size_t)n);
	}
	s->more = true;
}

static ssize_t stream_lost(struct ssh2 *s, struct err *err)
{
	int rc = err_set(err, -ECONNRESET, "%s: the connection is lost: %s",
			 s->o.far->place, ssh2_text(s));

	return over(s, rc, err);
}

/* Both ends of the stream are over: how did the command end? */
static ssize_t stream_ended(struct ssh2 *s, struct err *err)
{
	char *name = NULL;
	int rc, status;

	if (!s->closing) {
		s->closing = true;
		s->due_ms = transport_now_ms() + EXEC_MS;
	}
	rc = libssh2_channel_close(s->channel);
	if (!rc)
		rc = libssh2_channel_wait_closed(s->channel);
	if (rc == LIBSSH2_ERROR_EAGAIN && !ssh2_late(s))
		return -EAGAIN;
	libssh2_channel_get_exit_signal(s->channel, &name, NULL, NULL, NULL,
					NULL, NULL);
	status = libssh2_channel_get_exit_status(s->channel);
	far_ended(s->o.far, status, name ? name : "", &s->said, err);
	libssh2_free(s->session, name);
	return over(s, 0, err);
}

static ssize_t stream_read(struct ssh2 *s, void *buf, size_t len,
			   struct err *err)
{
	ssize_t n;

	s->more = false;
	if (s->closing)
		return stream_ended(s, err);
	if (!s->half_read && out_flush(s) == -EAGAIN)
		return -EAGAIN;
	n = libssh2_channel_read(s->channel, buf, len);
	s->half_read = n == LIBSSH2_ERROR_EAGAIN && outbound(s);
	if (n > 0) {
		s->more = true;
		return n;
	}
	if (n < 0 && n != LIBSSH2_ERROR_EAGAIN && !deferred(s, n))
		return stream_lost(s, err);
	if (!s->half_read)
		err_drain(s);
	if (n < 0 || !libssh2_channel_eof(s->channel))
		return -EAGAIN;
	return stream_ended(s, err);
}

/* ---- the table ---------------------------------------------------------- */

static ssize_t ssh2_read(struct transport *t, void *buf, size_t len,
			 struct err *err)
{
	struct ssh2 *s = ssh2_of(t);
	struct err why = { 0 };
	ssize_t n = 0;

	while (!n && s->stage < SSH2_OPEN)
		n = stage_step(s, &why);
	if (n == -EAGAIN)
		return n;
	if (n)
		over(s, (int)n, &why);
	if (s->stage == SSH2_OPEN)
		n = stream_read(s, buf, len, &why);
	if (s->stage != SSH2_OVER)
		return n;
	if (s->err.code && err)
		*err = s->err;
	return s->rc;
}

static ssize_t ssh2_read_err(struct transport *t, void *buf, size_t len)
{
	return said_take(&ssh2_of(t)->said, buf, len);
}

static ssize_t ssh2_write(struct transport *t, const void *buf, size_t len)
{
	struct ssh2 *s = ssh2_of(t);
	int rc;

	if (s->stage != SSH2_OPEN)
		return s->stage == SSH2_OVER ? -EPIPE : -EAGAIN;
	rc = out_flush(s);
	if (rc)
		return rc;
	if (s->out_len)
		return -EAGAIN;
	if (len > sizeof(s->out))
		len = sizeof(s->out);
	memcpy(s->out, buf, len);
	s->out_len = len;
	rc = out_flush(s);
	return rc && rc != -EAGAIN ? rc : (ssize_t)len;
}

static short sock_events(const struct ssh2 *s)
{
	short events = POLLIN;

	if (s->stage == SSH2_CONNECT)
		return POLLOUT;
	if (s->session && outbound(s))
		events |= POLLOUT;
	return events;
}

static int ssh2_poll(struct transport *t, bool out, struct pollfd *fd,
		     int *timeout_ms)
{
	struct ssh2 *s = ssh2_of(t);
	int n = 0;

	(void)out; /* the session says itself when it can send */
	if (s->stage == SSH2_OVER || s->more)
		*timeout_ms = 0;
	if (s->due_ms)
		transport_wake(s->due_ms, timeout_ms);
	if (s->again_ms)
		transport_wake(s->again_ms, timeout_ms);
	if (s->stage == SSH2_RESOLVE)
		return errand_poll(&s->errand, fd, timeout_ms);
	if (s->stage == SSH2_GATE)
		transport_wake(transport_now_ms() + GATE_LOOK_MS, timeout_ms);
	else if (s->sock >= 0)
		fd[n++] = (struct pollfd) { .fd = s->sock,
					    .events = sock_events(s) };
	if (s->signing)
		fd[n++] = sshagent_poll(&s->agent);
	return n;
}

static const char *ssh2_via(const struct transport *t)
{
	return t->ops->kind;
}

/* Says goodbye as far as that goes without waiting. */
static void ssh2_close(struct transport *t)
{
	struct ssh2 *s = ssh2_of(t);

	if (s->stage == SSH2_OPEN && !out_flush(s))
		libssh2_channel_send_eof(s->channel);
	if (s->stage == SSH2_OPEN)
		libssh2_session_disconnect(s->session, "done");
	ssh2_disconnect(s);
	errand_fini(&s->errand);
	sshagent_close(&s->agent);
	free(s);
}

static const struct transport_ops ssh2_ops = {
	.kind = "libssh2",
	.poll = ssh2_poll,
	.read = ssh2_read,
	.read_err = ssh2_read_err,
	.write = ssh2_write,
	.via = ssh2_via,
	.close = ssh2_close,
};

int ssh2_open(const struct ssh2_opts *opts, struct transport **t,
	      struct err *err)
{
	static bool ready;
	struct ssh2 *s = calloc(1, sizeof(*s));

	if (!s || (!ready && libssh2_init(0))) {
		free(s);
		return err_set(err, -ENOMEM, "libssh2 does not start");
	}
	ready = true;
	s->t.ops = &ssh2_ops;
	s->o = *opts;
	s->sock = s->agent.fd = -1;
	*t = &s->t;
	return 0;
}
