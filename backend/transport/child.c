/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/child.h"

#include <stdlib.h>

#include "backend/transport/process.h"

#define CLOSE_MS 300

struct child {
	struct transport t;
	struct process process;
};

static struct child *child_of(const struct transport *t)
{
	return container_of(t, struct child, t);
}

static int child_poll(struct transport *t, bool out, struct pollfd *fd,
		      int *timeout_ms)
{
	return process_poll(&child_of(t)->process, out, fd, timeout_ms);
}

static ssize_t child_read(struct transport *t, void *buf, size_t len,
			  struct err *err)
{
	struct child *c = child_of(t);
	ssize_t n = process_read(&c->process, buf, len);
	char last[400];

	if (n)
		return n;
	said_last(&c->process.said, last, sizeof(last));
	if (*last && (!c->process.over || c->process.status))
		err_set(err, -ECHILD, "%s", last);
	return 0;
}

static ssize_t child_read_err(struct transport *t, void *buf, size_t len)
{
	return said_take(&child_of(t)->process.said, buf, len);
}

static ssize_t child_write(struct transport *t, const void *buf, size_t len)
{
	return process_write(&child_of(t)->process, buf, len);
}

static const char *child_via(const struct transport *t)
{
	return t->ops->kind;
}

/*
 * The end of our half is the child's stdin's: it passes on what it has and
 * ends, and its end of the stream closes. It owns nothing, so it may be killed
 * when that takes long.
 */
static void child_close(struct transport *t)
{
	struct child *c = child_of(t);

	process_end(&c->process, CLOSE_MS);
	free(c);
}

static void child_shut(struct transport *t)
{
	process_shut(&child_of(t)->process);
}

static const struct transport_ops child_ops = {
	.kind = "child",
	.poll = child_poll,
	.read = child_read,
	.read_err = child_read_err,
	.write = child_write,
	.via = child_via,
	.shut = child_shut,
	.close = child_close,
};

int child_open(const char *const argv[], struct transport **t, struct err *err)
{
	struct child *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, -ENOMEM, "%s: out of memory", argv[0]);
	c->t.ops = &child_ops;
	rc = process_start(&c->process, argv, err);
	if (rc)
		free(c);
	else
		*t = &c->t;
	return rc;
}
