/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way to a program of this machine: a child. */
#ifndef BACKEND_TRANSPORT_CHILD_H
#define BACKEND_TRANSPORT_CHILD_H

#include "backend/transport/transport.h"

int child_open(const char *const argv[], struct transport **t, struct err *err);

#endif
