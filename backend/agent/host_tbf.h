/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which interfaces are held to a rate by a token bucket (tbf) at their root,
 * as those of a lab for rehearsal are: a virtual interface has no speed of its
 * own, so that rate is its line rate. Asked of the kernel by rtnetlink.
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_HOST_TBF_H
#define BACKEND_AGENT_HOST_TBF_H

#include "engine/base.h"

struct host_tbf {
	int ifindex;
	uint64_t rate_bytes_s;
};

/* Those of this network namespace, at most `max`; may wait for the kernel, at
 * most half a second. 0 where it does not answer. */
size_t host_tbf_list(struct host_tbf *tbf, size_t max);
/* Adds what stands in a datagram of the kernel's answer; whether more is to
 * come. Bad lengths end it. */
bool host_tbf_parse(const void *bytes, size_t len, struct host_tbf *tbf,
		    size_t max, size_t *count);

#endif
