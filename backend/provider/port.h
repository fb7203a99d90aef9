/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A drive's port: the layer of each component through which the drive as a
 * whole can be pulled, stalled and measured. All ports of a drive share one
 * hub, so components that are opened or closed meanwhile need no telling.
 *
 *   vDisk --> link of the domain --> port --> link of the drive's shape
 *                                     |         --> component
 *                                    hub
 */
#ifndef BACKEND_PROVIDER_PORT_H
#define BACKEND_PROVIDER_PORT_H

#include "engine/bdev/bdev.h"

struct port;
struct layer_io;

struct hub {
	struct reactor *reactor;
	struct port *ports; /* open ones */
	bool offline;
	uint64_t stall_until_ns;
	struct timer stall;
	struct layer_io *held, **held_end;
	unsigned inflight;
	uint64_t turned_ns, busy_ns, queue_ns;
	struct bdev_stats gone; /* of ports that are closed */
};

struct hub_stats {
	uint64_t ops[2], bytes[2]; /* read, write */
	uint64_t latency_ns;       /* sum over both */
	uint64_t busy_ns, queue_ns;
};

void hub_init(struct hub *hub, struct reactor *r);
/* Only with no port open. */
void hub_fini(struct hub *hub);
/* Everything fails with -ENODEV, also what is in flight. */
void hub_offline_set(struct hub *hub, bool offline);
/* Holds what comes for `ns` from now on. */
void hub_stall(struct hub *hub, uint64_t ns);
void hub_stats(struct hub *hub, struct hub_stats *stats);
/* Whether a component is open through it. */
bool hub_has(const struct hub *hub, const char *component);

/*
 * The uppermost layer over a component that is open and not being closed;
 * NULL: none. Whoever opened it and does not know who has it since asks here.
 */
struct bdev *hub_top(const struct hub *hub, const char *component);
/* Says what was put above a port that port_open() gave. */
void port_top_set(struct bdev *port, struct bdev *top);

/* Owns child once it is open. */
int port_open(struct bdev *child, struct hub *hub, const char *component,
	      struct bdev **bdev, struct err *err);

#endif
