/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/provider/port.h"

#include <stdio.h>
#include <string.h>

#include "engine/bdev/layer.h"

struct port {
	struct layer layer;
	struct hub *hub;
	struct port *next;
	struct bdev *top; /* lives as long as the port is in the hub */
	char component[64];
};

static struct port *port_of(struct layer *layer)
{
	return container_of(layer, struct port, layer);
}

/* ---- the hub ------------------------------------------------------------ */

static void held_release(struct hub *hub);

static void stall_over(struct timer *timer)
{
	held_release(container_of(timer, struct hub, stall));
}

void hub_init(struct hub *hub, struct reactor *r)
{
	*hub = (struct hub) { .reactor = r, .stall.fn = stall_over };
	hub->held_end = &hub->held;
}

void hub_fini(struct hub *hub)
{
	id_assert(!hub->ports && !hub->held);
	if (hub->reactor)
		timer_cancel(hub->reactor, &hub->stall);
}

/* The time since the last change counts for as many io as were in flight. */
static void hub_turn(struct hub *hub)
{
	uint64_t now = reactor_now(hub->reactor);

	if (hub->inflight && now > hub->turned_ns) {
		hub->busy_ns += now - hub->turned_ns;
		hub->queue_ns += (now - hub->turned_ns) * hub->inflight;
	}
	hub->turned_ns = now;
}

void hub_offline_set(struct hub *hub, bool offline)
{
	hub->offline = offline;
	if (offline) {
		hub->stall_until_ns = 0;
		timer_cancel(hub->reactor, &hub->stall);
		held_release(hub);
	}
}

void hub_stall(struct hub *hub, uint64_t ns)
{
	hub->stall_until_ns = reactor_now(hub->reactor) + ns;
	timer_arm(hub->reactor, &hub->stall, hub->stall_until_ns);
}

static void stats_add(struct hub_stats *to, const struct bdev_stats *from)
{
	for (unsigned k = 0; k < 2; k++) {
		to->ops[k] += from->ops[k];
		to->bytes[k] += from->bytes[k];
		to->latency_ns += from->latency_sum_ns[k];
	}
}

void hub_stats(struct hub *hub, struct hub_stats *stats)
{
	struct bdev_stats one;

	hub_turn(hub);
	*stats = (struct hub_stats) { .busy_ns = hub->busy_ns,
				      .queue_ns = hub->queue_ns };
	stats_add(stats, &hub->gone);
	for (struct port *p = hub->ports; p; p = p->next) {
		bdev_stats(&p->layer.bdev, &one);
		stats_add(stats, &one);
	}
}

bool hub_has(const struct hub *hub, const char *component)
{
	for (const struct port *p = hub->ports; p; p = p->next)
		if (!strcmp(p->component, component))
			return true;
	return false;
}

struct bdev *hub_top(const struct hub *hub, const char *component)
{
	for (const struct port *p = hub->ports; p; p = p->next)
		if (!strcmp(p->component, component))
			return p->top->closing ? NULL : p->top;
	return NULL;
}

void port_top_set(struct bdev *port, struct bdev *top)
{
	port_of(layer_of(port))->top = top;
}

/* ---- io ----------------------------------------------------------------- */

static void port_done(struct io *io)
{
	struct layer_io *lio = layer_io_of(io);
	struct hub *hub = port_of(lio->layer)->hub;

	hub_turn(hub);
	hub->inflight--;
	layer_io_complete(lio, hub->offline ? -ENODEV : io->result);
}

/* Later, as the callback may not run from inside what released it. */
static void held_fail(struct layer_io *lio)
{
	struct hub *hub = port_of(lio->layer)->hub;
	struct io *parent = lio->parent;

	hub_turn(hub);
	hub->inflight--;
	lio->next_free = lio->layer->free;
	lio->layer->free = lio;
	bdev_complete_later(parent, -ENODEV);
}

static void held_release(struct hub *hub)
{
	struct layer_io *lio = hub->held;

	hub->held = NULL;
	hub->held_end = &hub->held;
	while (lio) {
		struct layer_io *next = lio->next_free;

		if (hub->offline)
			held_fail(lio);
		else
			layer_io_pass(lio);
		lio = next;
	}
}

static void port_submit(struct bdev *bdev, struct io *io)
{
	struct port *p = port_of(layer_of(bdev));
	struct hub *hub = p->hub;
	struct layer_io *lio;

	if (id_unlikely(hub->offline)) {
		bdev_complete_later(io, -ENODEV);
		return;
	}
	lio = layer_io_get(&p->layer, io, port_done);
	if (!lio)
		return;
	hub_turn(hub);
	hub->inflight++;
	if (id_likely(!timer_armed(&hub->stall))) {
		layer_io_pass(lio);
		return;
	}
	lio->next_free = NULL;
	*hub->held_end = lio;
	hub->held_end = &lio->next_free;
}

/* ---- life --------------------------------------------------------------- */

/* Stays in the hub until the component is closed, so that an empty hub means
 * a drive nobody uses. */
static void child_closed(void *arg)
{
	struct port *p = arg, **at = &p->hub->ports;
	struct bdev_stats *gone = &p->hub->gone, last;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	bdev_stats(&p->layer.bdev, &last);
	for (unsigned k = 0; k < array_len(last.ops); k++) {
		gone->ops[k] += last.ops[k];
		gone->bytes[k] += last.bytes[k];
		gone->latency_sum_ns[k] += last.latency_sum_ns[k];
	}
	p->layer.child = NULL;
	layer_close(&p->layer.bdev);
}

static void port_close(struct bdev *bdev)
{
	struct port *p = port_of(layer_of(bdev));

	bdev_close(p->layer.child, child_closed, p);
}

static void port_describe(struct bdev *bdev, char *buf, size_t len)
{
	const struct port *p = port_of(layer_of(bdev));
	int n = snprintf(buf, len, "%s",
			 p->hub->offline ? "offline" : "online");

	if (n > 0 && (size_t)n < len)
		layer_describe_child(&p->layer, buf + n, len - (size_t)n);
}

static const struct bdev_ops port_ops = {
	.kind = "port",
	.submit = port_submit,
	.close = port_close,
	.grow = layer_grow,
	.describe = port_describe,
};

int port_open(struct bdev *child, struct hub *hub, const char *component,
	      struct bdev **bdev, struct err *err)
{
	struct layer *layer =
		layer_new(sizeof(struct port), &port_ops, child, NULL, err);
	struct port *p;

	if (!layer)
		return -ENOMEM;
	p = port_of(layer);
	p->hub = hub;
	snprintf(p->component, sizeof(p->component), "%s", component);
	p->next = hub->ports;
	hub->ports = p;
	p->top = &layer->bdev;
	layer->bdev.timed = true;
	*bdev = &layer->bdev;
	return 0;
}
