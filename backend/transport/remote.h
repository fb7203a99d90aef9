/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A way over ssh, by whichever of the two can: `auto` and its reasons. */
#ifndef BACKEND_TRANSPORT_REMOTE_H
#define BACKEND_TRANSPORT_REMOTE_H

#include "backend/transport/transport.h"

int remote_open(const struct transport_opts *opts, struct transport **t,
		struct err *err);

#endif
