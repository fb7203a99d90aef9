/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/transport.h"

#include "backend/transport/child.h"
#include "backend/transport/remote.h"

int transport_hurry = 1;

int transport_open(const struct transport_opts *opts, struct transport **t,
		   struct err *err)
{
	if (opts->host)
		return remote_open(opts, t, err);
	return child_open(opts->argv, t, err);
}

void transport_shut(struct transport *t)
{
	if (t && t->ops->shut)
		t->ops->shut(t);
}

void transport_close(struct transport *t)
{
	if (t)
		t->ops->close(t);
}
