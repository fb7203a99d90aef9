/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   ASK ---- any other byte ----------------------------> THROUGH
 *    |                                                       ^
 *    +- "absent" -> SEND -- all is sent --> SETTLE - "placed" +
 *
 * and from each of the three "failed" or "other", or a limit in time, to OVER.
 * What is said is untrusted: a line has a length, and an order.
 */
#include "backend/bundle/deploy.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/event.h"
#include "backend/transport/process.h"
#include "backend/transport/sshconf.h"
#include "backend/units.h"

#define STALL_MS 30000        /* nothing more of it is taken */
#define SETTLE_MS 120000      /* the rest is on its way; checked, unpacked */
#define WHOLE_MS 600000       /* 80 kbit/s */
#define STEP_BYTES (1u << 20) /* sent at most in one step */
#define SAYS_LEN (sizeof(BUNDLE_SAYS) - 1)

enum stage { ASK, SEND, SETTLE, THROUGH, OVER };

struct deploy {
	struct transport t;
	struct transport *way;
	struct bundle bundle;
	char place[360], via[360], dir[512];
	enum stage stage;
	int fd; /* of the file that is sent; -1: not open */
	uint64_t sent;
	int64_t begun_ms, due_ms, took_ms;
	bool brought; /* it was not in place */
	char out[64 * 1024];
	size_t out_at, out_len;
	/* read and not given out: until THROUGH, one line */
	char in[4096];
	size_t in_at, in_len;
	int rc; /* with OVER */
	struct err err;
};

static struct deploy *deploy_of(const struct transport *t)
{
	return container_of(t, struct deploy, t);
}

static int over(struct deploy *d, int rc, const char *fmt, ...) ID_PRINTF(3, 4);
static int over(struct deploy *d, int rc, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->rc = err_set(&d->err, rc, "%s: %s", d->place, text);
	d->stage = OVER;
	return rc;
}

/* ---- what the node says ------------------------------------------------- */

static const char *amount(uint64_t bytes, char buf[24])
{
	return units_bytes_text((double)bytes, buf, 24);
}

/* need, make, run, write, hash: what of it, and what to do. */
static int failed(struct deploy *d, const char *step, const char *words)
{
	static const char elsewhere[] =
		"set the node's state_dir to another directory";
	uint64_t all = d->bundle.bytes + d->bundle.unpacked_bytes;
	char clean[200], size[24];

	event_text(clean, sizeof(clean), words);
	if (!strcmp(step, "need"))
		return over(d, -ENOENT,
			    "there is no %s, which unpacking iodeck needs: "
			    "install it there, or install iodeck-agent there "
			    "and set the node's program",
			    clean);
	if (!strcmp(step, "make"))
		return over(d, -EACCES,
			    "no directory for iodeck can be made (%s): let it "
			    "be writable, or %s",
			    clean, elsewhere);
	if (!strcmp(step, "run"))
		return over(d, -EACCES,
			    "nothing can be run from where iodeck would be "
			    "(%s); is it mounted noexec? %s",
			    clean, elsewhere);
	if (!strcmp(step, "write"))
		return over(d, -ENOSPC,
			    "iodeck cannot be written to %s (%s): make room "
			    "for %s, or %s",
			    d->dir, clean, amount(all, size), elsewhere);
	if (!strcmp(step, "hash"))
		return over(d, -EBADMSG,
			    "of iodeck's %llu bytes %s came, and they are not "
			    "what was to be sent: try again; if it stays, "
			    "install iodeck anew on this machine",
			    (unsigned long long)d->bundle.bytes, clean);
	return over(d, -EPROTO, "iodeck was not brought over: %s", clean);
}

static int absent(struct deploy *d, const char *dir)
{
	event_text(d->dir, sizeof(d->dir), dir);
	d->fd = open(d->bundle.path, O_RDONLY | O_CLOEXEC);
	if (d->fd < 0)
		return over(d, -errno, "%s here: %s", d->bundle.path,
			    strerror(errno));
	d->brought = true;
	d->begun_ms = transport_now_ms();
	d->due_ms = d->begun_ms + STALL_MS / transport_hurry;
	d->stage = SEND;
	return 0;
}

static int line_take(struct deploy *d, char *line)
{
	char *words = line + strcspn(line, " "), *step;
	char clean[100];

	if (*words)
		*words++ = '\0';
	if (!strcmp(line, "absent") && d->stage == ASK)
		return absent(d, words);
	if (!strcmp(line, "placed") && d->stage == SETTLE) {
		d->took_ms = transport_now_ms() - d->begun_ms;
		d->stage = THROUGH;
		return 0;
	}
	if (!strcmp(line, "other")) {
		event_text(clean, sizeof(clean), words);
		return over(d, -ENOEXEC,
			    "it is %s, and what iodeck brings to nodes is for "
			    "Linux x86_64: build and install iodeck-agent "
			    "there, and set the node's program",
			    clean);
	}
	step = words;
	words += strcspn(words, " ");
	if (*words)
		*words++ = '\0';
	if (!strcmp(line, "failed"))
		return failed(d, step, words);
	return over(d, -EPROTO, "what is said of iodeck there makes no sense");
}

/* Lines of the script until the first byte of somebody else's. */
static int in_take(struct deploy *d)
{
	int rc = 0;

	while (!rc && d->stage < THROUGH && d->in_len) {
		size_t len = d->in_len < SAYS_LEN ? d->in_len : SAYS_LEN;
		char *end = memchr(d->in, '\n', d->in_len);

		if (memcmp(d->in, BUNDLE_SAYS, len) != 0) {
			if (d->stage == ASK)
				d->stage = THROUGH;
			else
				rc = over(d, -EPROTO,
					  "something else speaks while iodeck "
					  "is brought over");
			break;
		}
		if (!end && d->in_len < sizeof(d->in))
			return -EAGAIN;
		if (!end)
			return over(d, -EPROTO, "an endless line came of it");
		*end++ = '\0';
		len = (size_t)(end - d->in);
		rc = len > SAYS_LEN ? line_take(d, d->in + SAYS_LEN)
				    : over(d, -EPROTO, "a bare line came");
		memmove(d->in, end, d->in_len - len);
		d->in_len -= len;
	}
	return rc;
}

/* ---- sending ------------------------------------------------------------ */

static int out_fill(struct deploy *d)
{
	ssize_t n = read(d->fd, d->out, sizeof(d->out));

	if (n <= 0)
		return over(d, -EIO, "%s here: %s", d->bundle.path,
			    n ? strerror(errno) : "it has become shorter");
	d->out_at = 0;
	d->out_len = (size_t)n;
	return 0;
}

static int send_some(struct deploy *d)
{
	uint64_t end = d->sent + STEP_BYTES;
	ssize_t n;

	while (d->sent < d->bundle.bytes && d->sent < end) {
		if (!d->out_len && out_fill(d))
			return d->rc;
		n = d->way->ops->write(d->way, d->out + d->out_at, d->out_len);
		if (n <= 0) /* an error shows itself to the reader */
			break;
		d->out_at += (size_t)n;
		d->out_len -= (size_t)n;
		d->sent += (uint64_t)n;
		d->due_ms = transport_now_ms() + STALL_MS / transport_hurry;
	}
	if (d->sent < d->bundle.bytes)
		return 0;
	d->due_ms = transport_now_ms() + SETTLE_MS / transport_hurry;
	d->stage = SETTLE;
	return 0;
}

static int late(struct deploy *d)
{
	int64_t now = transport_now_ms();
	bool slow = now >= d->begun_ms + WHOLE_MS / transport_hurry;

	if (!d->due_ms || (now < d->due_ms && !slow))
		return -EAGAIN;
	return over(d, -ETIMEDOUT,
		    "%llu of iodeck's %llu bytes were brought over in %d s, "
		    "and it %s: look at the link, and at the disk there",
		    (unsigned long long)d->sent,
		    (unsigned long long)d->bundle.bytes,
		    (int)((now - d->begun_ms) / 1000),
		    slow ? "takes too long" : "stands still");
}

/* ---- turning ------------------------------------------------------------ */

static int ended(struct deploy *d, int rc, const struct err *why)
{
	if (why->code) {
		d->err = *why;
		d->rc = rc < 0 ? rc : why->code;
		d->stage = OVER;
		return d->rc;
	}
	if (d->stage != ASK)
		return over(d, rc < 0 ? rc : -ECONNRESET,
			    "the connection ended while iodeck was brought "
			    "over");
	d->stage = OVER;
	return d->rc = rc;
}

/* 0: through, or over without an error. */
static int deploy_step(struct deploy *d)
{
	struct err why = { 0 };
	ssize_t n;
	int rc = 0;

	while (!rc && d->stage < THROUGH) {
		n = d->way->ops->read(d->way, d->in + d->in_len,
				      sizeof(d->in) - d->in_len, &why);
		if (n > 0) {
			d->in_len += (size_t)n;
			rc = in_take(d);
			rc = rc == -EAGAIN ? 0 : rc;
			continue;
		}
		if (n != -EAGAIN)
			return ended(d, (int)n, &why);
		rc = d->stage == SEND ? send_some(d) : 0;
		if (!rc)
			rc = late(d);
	}
	return rc;
}

static ssize_t deploy_read(struct transport *t, void *buf, size_t len,
			   struct err *err)
{
	struct deploy *d = deploy_of(t);
	int rc = deploy_step(d);

	if (d->stage == OVER) {
		if (d->err.code && err)
			*err = d->err;
		return d->rc;
	}
	if (rc)
		return rc;
	if (!d->in_len)
		return d->way->ops->read(d->way, buf, len, err);
	len = d->in_len < len ? d->in_len : len;
	memcpy(buf, d->in + d->in_at, len);
	d->in_at += len;
	d->in_len -= len;
	return (ssize_t)len;
}

static ssize_t deploy_read_err(struct transport *t, void *buf, size_t len)
{
	struct deploy *d = deploy_of(t);

	return d->way->ops->read_err(d->way, buf, len);
}

static ssize_t deploy_write(struct transport *t, const void *buf, size_t len)
{
	struct deploy *d = deploy_of(t);

	if (d->stage == THROUGH)
		return d->way->ops->write(d->way, buf, len);
	return d->stage == OVER ? -EPIPE : -EAGAIN;
}

static int deploy_poll(struct transport *t, bool out, struct pollfd *fd,
		       int *timeout_ms)
{
	struct deploy *d = deploy_of(t);

	if (d->stage == OVER || (d->stage == THROUGH && d->in_len))
		*timeout_ms = 0;
	else if (d->stage == SEND || d->stage == SETTLE)
		transport_wake(d->due_ms, timeout_ms);
	if (d->stage != THROUGH)
		out = d->stage == SEND;
	return d->way->ops->poll(d->way, out, fd, timeout_ms);
}

static const char *deploy_via(const struct transport *t)
{
	struct deploy *d = deploy_of(t);
	const char *way = d->way->ops->via(d->way);
	char size[24];

	if (!d->brought)
		return way;
	amount(d->bundle.bytes, size);
	if (d->stage == SEND)
		snprintf(d->via, sizeof(d->via),
			 "%s; bringing iodeck over, %d %% of %s", way,
			 (int)(10 * d->sent / d->bundle.bytes) * 10, size);
	else if (d->stage == SETTLE)
		snprintf(d->via, sizeof(d->via), "%s; unpacking iodeck there",
			 way);
	else if (d->stage == THROUGH)
		snprintf(d->via, sizeof(d->via),
			 "%s; brought iodeck over, %s in %.1f s", way, size,
			 (double)d->took_ms / 1e3);
	return d->via;
}

static void deploy_close(struct transport *t)
{
	struct deploy *d = deploy_of(t);

	transport_close(d->way);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static const struct transport_ops deploy_ops = {
	.kind = "deploy",
	.poll = deploy_poll,
	.read = deploy_read,
	.read_err = deploy_read_err,
	.write = deploy_write,
	.via = deploy_via,
	.close = deploy_close,
};

int deploy_open(const struct transport_opts *opts, const struct bundle *bundle,
		struct transport **t, struct err *err)
{
	struct deploy *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_set(err, -ENOMEM, "transport: out of memory");
	d->t.ops = &deploy_ops;
	d->bundle = *bundle;
	d->fd = -1;
	if (opts->host)
		sshconf_place(opts->host, d->place, sizeof(d->place));
	else
		snprintf(d->place, sizeof(d->place), "this machine");
	rc = transport_open(opts, &d->way, err);
	if (rc)
		free(d);
	else
		*t = &d->t;
	return rc;
}
