/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/node_clean.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cluster/agent_way.h"
#include "backend/transport/process.h"

#define LINES_MAX 65536
#define SILENT_MS 120000 /* an agent that closes vDisks says nothing */

static void ended(struct node_clean *n)
{
	transport_close(n->t);
	n->t = NULL;
}

static void began(struct node_clean *n, bool force)
{
	const bool there = n->at && n->at->host.host;
	const struct agent_way_opts opts = {
		.verb = "clean",
		.agent = n->agent,
		.program = there ? n->at->program : n->program,
		.state_dir = n->at ? n->at->state_dir : NULL,
		.become = n->at ? n->at->become : NULL,
		.more = force ? "--force" : NULL,
		.host = there ? &n->at->host : NULL,
	};

	n->due_ms = transport_now_ms() + SILENT_MS;
	agent_way_open(&opts, &n->t, &n->err);
}

/* Whether anything is new: what it says, or how far its way is. */
static bool step(struct node_clean *n)
{
	const char *via;
	char buf[4096];
	ssize_t got;
	bool news = false;

	while ((got = n->t->ops->read(n->t, buf, sizeof(buf), &n->err)) > 0) {
		news = true;
		if (n->said.len + (size_t)got < LINES_MAX)
			text_add(&n->said, "%.*s", (int)got, buf);
	}
	while (n->t->ops->read_err(n->t, buf, sizeof(buf)) > 0)
		;
	if (got != -EAGAIN) {
		if (got < 0 && !n->err.code)
			err_set(&n->err, (int)got, "%s", strerror((int)-got));
		ended(n);
		return true;
	}
	via = n->t->ops->via(n->t);
	if (strncmp(n->via, via, sizeof(n->via) - 1) != 0) {
		snprintf(n->via, sizeof(n->via), "%s", via);
		news = true;
	}
	return news;
}

static void turn(struct node_clean *n)
{
	int64_t now = transport_now_ms();

	if (step(n)) {
		n->due_ms = now + SILENT_MS;
	} else if (now >= n->due_ms) {
		err_set(&n->err, -ETIMEDOUT,
			"nothing was heard for %d s: look what runs there",
			SILENT_MS / 1000);
		ended(n);
	}
}

/* Those that go on; waits until one of them has something to do. */
static size_t wait_all(struct node_clean *node, size_t count,
		       struct pollfd *fds)
{
	size_t k, going = 0;
	nfds_t n = 0;
	int ms = 1000;

	for (k = 0; k < count; k++)
		if (node[k].t) {
			going++;
			n += (nfds_t)node[k].t->ops->poll(node[k].t, false,
							  fds + n, &ms);
		}
	if (going)
		poll(fds, n, ms);
	return going;
}

void node_clean_run(struct node_clean *node, size_t count, bool force)
{
	struct pollfd *fds = calloc(count, TRANSPORT_FDS * sizeof(*fds));
	size_t k;

	for (k = 0; k < count; k++)
		if (fds)
			began(&node[k], force);
		else
			err_set(&node[k].err, -ENOMEM, "out of memory");
	while (fds && wait_all(node, count, fds))
		for (k = 0; k < count; k++)
			if (node[k].t)
				turn(&node[k]);
	free(fds);
}
