/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Drives of other nodes. Their agents keep components for us and export them
 * by NBD; what we know of them is a list, asked for through the console
 * (agent/asks.h). So a component is there at once, and its bdev waits:
 *
 *   make   listed --> component_make --> answered
 *   open   bdev WAITING -----------------> export_open --> target --> UP
 *                                              ^                      |
 *                                              +--- every 2 s --- LOST
 *
 * What fails ends in a bdev that is DEAD: the vDisk loses a member, as of any
 * drive. The drive is then away until its node lists it again, and for all the
 * rest of the provider one that was pulled and put back.
 */
#include "backend/provider/far_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_NS (30 * SEC_NS)        /* so old may a list become */
#define SCAN_NS (5 * SEC_NS)          /* for nodes to be there at opening */
#define SCAN_AGAIN_NS (200 * MSEC_NS) /* while they are not */
#define LISTED_MAX 4096               /* components a drive */

static struct far *far_of(struct store *store)
{
	return container_of(store, struct far, store);
}

json_t *far_about(const struct far *f, const char *component)
{
	json_t *body = json_object();

	json_object_set_new(body, "drive",
			    json_sprintf("%s:%s", far_node(f), f->drive->name));
	if (component)
		json_object_set_new(body, "component", json_string(component));
	return body;
}

bool far_ok(const json_t *reply)
{
	return json_is_true(json_object_get(reply, "ok"));
}

const char *far_error(const json_t *reply)
{
	const char *error = json_string_value(json_object_get(reply, "error"));

	return error ? error : "refused without a reason";
}

static uint64_t bytes_of(const json_t *j, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(j, key));

	return n > 0 ? (uint64_t)n : 0;
}

void far_soon(struct far *f, uint64_t ns)
{
	const uint64_t at = reactor_now(f->provider->reactor) + ns;

	if (!timer_armed(&f->timer) || f->timer.deadline_ns > at)
		timer_arm(f->provider->reactor, &f->timer, at);
}
/* ---- what is listed ----------------------------------------------------- */

const struct drive_component *far_listed(const struct far *f, const char *id)
{
	for (size_t k = 0; k < f->count; k++)
		if (!strcmp(f->list[k].id, id))
			return &f->list[k];
	return NULL;
}

static int list_add(struct far *f, const char *id, uint64_t bytes)
{
	struct drive_component *more;

	if (far_listed(f, id))
		return -EEXIST;
	more = realloc(f->list, (f->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->list = more;
	more += f->count++;
	snprintf(more->id, sizeof(more->id), "%s", id);
	more->size_bytes = bytes;
	return 0;
}

static void list_drop(struct far *f, const char *id)
{
	const struct drive_component *c = far_listed(f, id);

	if (c)
		f->list[c - f->list] = f->list[--f->count];
}

static int far_list(struct store *store, struct drive_component **list,
		    size_t *count, struct err *err)
{
	const struct far *f = far_of(store);

	*list = malloc((f->count + 1) * sizeof(**list));
	if (!*list)
		return err_set(err, -ENOMEM, "out of memory");
	if (f->count)
		memcpy(*list, f->list, f->count * sizeof(**list));
	*count = f->count;
	return 0;
}

static void far_facts(struct store *store, struct drive_facts *facts)
{
	const struct far *f = far_of(store);

	*facts = (struct drive_facts) { .kind = f->kind,
					.verdict = DRIVE_OURS,
					.size_bytes = f->size_bytes,
					.free_bytes = f->free_bytes };
}

static bool far_gone(const struct store *store)
{
	(void)store; /* it is away or there; only its node knows more */
	return false;
}
static int far_open(struct store *store, const char *id, struct bdev **bdev,
		    struct err *err)
{
	return part_open(far_of(store), id, bdev, err);
}

/* ---- made and removed ---------------------------------------------------- */

static void change_end(struct change *x)
{
	struct change **at = &x->far->changing;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	free(x);
}

bool far_making(const struct far *f, const char *id)
{
	const struct change *x = f->changing;

	while (x && (!x->make || strcmp(x->id, id) != 0))
		x = x->next;
	return x != NULL;
}

/* What was not made is not listed; and what there is, the node knows. */
static void change_failed(struct change *x, const char *why)
{
	struct far *f = x->far;
	struct part *part = part_find(f, x->id);

	tell_log(f->provider, "warn", "%s:%s: component %s could not be %s: %s",
		 far_node(f), f->drive->name, x->id,
		 x->make ? "made" : "removed", why);
	f->listed_ns = 0;
	if (!x->make)
		return;
	list_drop(f, x->id);
	if (part)
		part_give_up(part, why);
}

static void on_changed(const json_t *reply, void *arg)
{
	struct change *x = arg;
	struct far *f = x->far;

	if (!far_ok(reply))
		change_failed(x, far_error(reply));
	change_end(x);
	far_soon(f, 0);
}

static void change_ask(struct far *f, const char *what, json_t *body,
		       const char *id, bool make)
{
	struct change *x = malloc(sizeof(*x));

	id_assert(x);
	*x = (struct change) { .next = f->changing, .far = f, .make = make };
	snprintf(x->id, sizeof(x->id), "%s", id);
	f->changing = x;
	f->changes++;
	asks_ask(f->provider->host.asks, far_node(f), what, body, FAR_ASK_NS,
		 on_changed, x);
}

static int far_make(struct store *store, const char *id, uint64_t bytes,
		    struct err *err)
{
	struct far *f = far_of(store);
	json_t *body;
	int rc = list_add(f, id, bytes);

	if (rc)
		return err_set(err, rc, "%s:%s: component %s: %s", far_node(f),
			       f->drive->name, id, strerror(-rc));
	body = far_about(f, id);
	json_object_set_new(body, "size_bytes",
			    json_integer((json_int_t)bytes));
	change_ask(f, "component_make", body, id, true);
	return 0;
}

static int far_remove(struct store *store, const char *id, struct err *err)
{
	struct far *f = far_of(store);

	if (!far_listed(f, id))
		return err_set(err, -ENOENT, "%s:%s has no component %s",
			       far_node(f), f->drive->name, id);
	list_drop(f, id);
	change_ask(f, "component_remove", far_about(f, id), id, false);
	return 0;
}

/* ---- what the node says that there is ------------------------------------ */

static void found_take(struct far *f, const json_t *one)
{
	const json_t *label = json_object_get(one, "label");
	const char *id = json_string_value(json_object_get(one, "component"));
	struct vdisk_label_facts facts;

	if (!id || !*id || strlen(id) >= sizeof(f->list->id) ||
	    list_add(f, id, bytes_of(one, "size_bytes")))
		return;
	if (label_read(label, &facts))
		part_found(f->provider, f->drive, id, &facts);
}

static void list_take(struct far *f, const json_t *reply)
{
	const json_t *all = json_object_get(reply, "components"), *one;
	const char *kind = json_string_value(json_object_get(reply, "kind"));
	struct p_drive *d = f->drive;
	size_t k;

	f->count = 0;
	json_array_foreach(all, k, one)
		if (k < LISTED_MAX)
			found_take(f, one);
	parts_prune(f->provider, d);
	f->kind = kind && !strcmp(kind, "device") ? DRIVE_DEVICE : DRIVE_DIR;
	f->size_bytes = bytes_of(reply, "size_bytes");
	f->free_bytes = bytes_of(reply, "free_bytes");
	d->kind = f->kind;
	d->size_bytes = f->size_bytes;
	d->used_bytes = f->free_bytes < f->size_bytes
				? f->size_bytes - f->free_bytes
				: 0;
}

static void drive_back(struct far *f)
{
	struct p_drive *d = f->drive;
	const bool away = d->pulled || d->domain->offline;

	d->state = away ? P_DRIVE_OFFLINE : P_DRIVE_OK;
	hub_offline_set(&d->hub, away);
	d->reason[0] = '\0';
	f->provider->drive_serial++;
	f->provider->tidy = f->provider->cluster_told = true;
	if (!f->scanning)
		tell_log(f->provider, "info", "drive %s:%s is back",
			 far_node(f), d->name);
	tend_soon(f->provider);
}

static void scan_over(struct far *f)
{
	struct provider *p = f->provider;

	f->scanning = false;
	if (!--p->far_waits)
		p->far_scanned(p->far_arg);
}

static void not_listed(struct far *f, const char *why)
{
	struct p_drive *d = f->drive;

	if (d->state == P_DRIVE_FAILED)
		snprintf(d->reason, sizeof(d->reason), "%s", why);
	f->provider->cluster_told = true;
	if (f->scanning &&
	    reactor_now(f->provider->reactor) >= f->provider->far_until_ns)
		scan_over(f);
	else
		far_soon(f, f->scanning ? SCAN_AGAIN_NS : FAR_AGAIN_NS);
}

static void on_list(const json_t *reply, void *arg)
{
	struct far *f = arg;

	f->listing = false;
	if (!far_ok(reply)) {
		not_listed(f, far_error(reply));
		return;
	}
	if (f->listed_at == f->changes)
		list_take(f, reply);
	else
		f->listed_ns = 0;
	if (f->drive->state == P_DRIVE_FAILED)
		drive_back(f);
	far_soon(f, FRESH_NS);
	if (f->scanning)
		scan_over(f);
}

static void list_ask(struct far *f)
{
	f->listing = true;
	f->listed_at = f->changes;
	f->listed_ns = reactor_now(f->provider->reactor);
	asks_ask(f->provider->host.asks, far_node(f), "component_list",
		 far_about(f, NULL), f->scanning ? SCAN_NS : FAR_ASK_NS,
		 on_list, f);
}

/* ---- looking after it ---------------------------------------------------- */

static void list_tend(struct far *f, uint64_t now)
{
	const uint64_t every_ns = f->scanning ? SCAN_AGAIN_NS
				  : f->drive->state == P_DRIVE_FAILED
					  ? FAR_AGAIN_NS
					  : FRESH_NS;

	if (f->listing || f->changing)
		return;
	if (now >= f->listed_ns + every_ns)
		list_ask(f);
	else
		far_soon(f, f->listed_ns + every_ns - now);
}

static void on_timer(struct timer *timer)
{
	struct far *f = container_of(timer, struct far, timer);
	const uint64_t now = reactor_now(f->provider->reactor);

	if (f->provider->closing) {
		if (f->scanning)
			scan_over(f);
		return;
	}
	for (struct part *part = f->parts; part; part = part->next)
		part_tend(part, now);
	list_tend(f, now);
}

/* ---- its life ------------------------------------------------------------ */

static void far_close(struct store *store)
{
	struct far *f = far_of(store);
	struct asks *asks = f->provider->host.asks;

	id_assert(!f->parts);
	if (f->scanning)
		scan_over(f);
	timer_cancel(f->provider->reactor, &f->timer);
	asks_forget(asks, f);
	while (f->changing) {
		asks_forget(asks, f->changing);
		change_end(f->changing);
	}
	free(f->list);
	free(f);
}

static const struct store_ops far_ops = {
	.list = far_list,
	.make = far_make,
	.remove = far_remove,
	.open = far_open,
	.facts = far_facts,
	.gone = far_gone,
	.close = far_close,
};

int store_far_open(struct provider *p, struct p_drive *d, struct store **store,
		   struct err *err)
{
	struct far *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(err, -ENOMEM, "out of memory");
	f->store.ops = &far_ops;
	f->provider = p;
	f->drive = d;
	f->timer.fn = on_timer;
	*store = &f->store;
	return 0;
}

bool far_busy(const struct provider *p)
{
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++) {
			struct store *store = p->domain[k].drive[d].store;

			if (store && store->ops == &far_ops &&
			    far_of(store)->parts)
				return true;
		}
	return false;
}

void far_scan(struct provider *p, void (*done)(void *arg), void *arg)
{
	p->far_scanned = done;
	p->far_arg = arg;
	p->far_until_ns = reactor_now(p->reactor) + SCAN_NS;
	p->far_waits = 1; /* ourselves, until all are asked */
	for (size_t k = 0; k < p->domains; k++)
		for (size_t d = 0; d < p->domain[k].drives; d++) {
			struct store *store = p->domain[k].drive[d].store;

			if (!store || store->ops != &far_ops)
				continue;
			far_of(store)->scanning = true;
			p->far_waits++;
			if (!far_of(store)->listing)
				list_ask(far_of(store));
		}
	if (!--p->far_waits)
		done(arg);
}
