/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way through OpenSSH's ssh as a child: all that ssh_config(5) can say. */
#ifndef BACKEND_TRANSPORT_OPENSSH_H
#define BACKEND_TRANSPORT_OPENSSH_H

#include "backend/transport/far.h"
#include "backend/transport/transport.h"

int openssh_open(const struct transport_host *host, const struct far *far,
		 struct transport **t, struct err *err);

#endif
