/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The network interfaces of this machine (of the agent's network namespace),
 * loopback left out: what they are, and what passes through them.
 *
 * A line rate is the driver's where there is hardware below (or a bond of
 * such), a tbf's where one holds the interface; what a virtual interface says
 * of itself (veth: 10 Gbit/s) is made up, and so not known.
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_HOST_NIC_H
#define BACKEND_AGENT_HOST_NIC_H

#include <jansson.h>

#include "engine/base.h"

#define HOST_NICS_MAX 64
#define HOST_NIC_NAME 16

/* Line rates, of those that are known. */
struct host_rates {
	struct {
		char name[HOST_NIC_NAME];
		uint64_t bytes_s;
		bool tbf;
	} of[HOST_NICS_MAX];
	size_t count;
};

/* Counters since the interface is there. */
struct host_nic {
	char name[HOST_NIC_NAME];
	uint64_t rx_bytes, tx_bytes, drops, errors;
};

struct host_nics {
	struct host_nic nic[HOST_NICS_MAX];
	size_t count;
};

/* The text of /proc/net/dev; lines that are none are left out. */
void host_nics_parse(const char *text, struct host_nics *nics);
/* May wait for a driver. */
void host_rates_read(const char *root, struct host_rates *rates);
/* name, driver, mtu, state, address, line_bytes_s, line_by; a new array. May
 * wait for a driver. */
json_t *host_nics_facts(const char *root, const struct host_rates *rates);
/*
 * Adds nics [ {name, rx_bytes_s, tx_bytes_s, drops, errors, share} ] to
 * `usage`: of the time since the last call, which was len_s ago.
 */
void host_nics_usage(const char *root, const struct host_rates *rates,
		     double len_s, struct host_nics *last, json_t *usage);

#endif
