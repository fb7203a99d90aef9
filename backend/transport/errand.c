/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/errand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int errand_start(struct errand *e, const char *const argv[], int limit_ms,
		 struct err *err)
{
	int rc;

	errand_fini(e);
	snprintf(e->name, sizeof(e->name), "%s", argv[0]);
	rc = process_start(&e->process, argv, err);
	if (rc)
		return rc;
	process_write_end(&e->process);
	e->limit_ms = limit_ms;
	e->due_ms = transport_now_ms() + limit_ms;
	e->going = true;
	return 0;
}

static int room(struct errand *e)
{
	size_t want = e->room ? 2 * e->room : 8192;
	char *grown;

	if (e->room - e->len > 1)
		return 0;
	if (want > ERRAND_MAX)
		return -E2BIG;
	grown = realloc(e->out, want);
	if (!grown)
		return -ENOMEM;
	e->out = grown;
	e->room = want;
	return 0;
}

static int errand_read(struct errand *e)
{
	ssize_t n = 1;
	int rc = 0;

	while (!rc && n > 0) {
		rc = room(e);
		if (rc)
			break;
		n = process_read(&e->process, e->out + e->len,
				 e->room - e->len - 1);
		if (n > 0)
			e->len += (size_t)n;
		else
			rc = (int)n;
	}
	if (e->out)
		e->out[e->len] = '\0';
	if (rc == -EAGAIN && transport_now_ms() >= e->due_ms)
		rc = -ETIMEDOUT;
	return rc;
}

int errand_step(struct errand *e, int *status, struct err *err)
{
	int rc = errand_read(e);

	if (rc == -EAGAIN)
		return rc;
	*status = e->process.status;
	process_end(&e->process, 0);
	e->going = false;
	if (rc == -ETIMEDOUT)
		err_set(err, rc, "%s has not ended within %g s", e->name,
			e->limit_ms / 1000.0);
	else if (rc)
		err_set(err, rc, "%s: %s", e->name, strerror(-rc));
	return rc;
}

int errand_poll(const struct errand *e, struct pollfd *fd, int *timeout_ms)
{
	if (!e->going)
		return 0;
	transport_wake(e->due_ms, timeout_ms);
	return process_poll(&e->process, false, fd, timeout_ms);
}

void errand_fini(struct errand *e)
{
	if (e->going)
		process_end(&e->process, 0);
	free(e->out);
	*e = (struct errand) { 0 };
}
