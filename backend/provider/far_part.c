/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A component of a far drive that is open: its bdev, and its export. */
#include "backend/provider/far_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part *part_find(const struct far *f, const char *id)
{
	struct part *part = f->parts;

	while (part && (part->closing || strcmp(part->id, id) != 0))
		part = part->next;
	return part;
}

void part_give_up(struct part *part, const char *why)
{
	if (!part->bdev || part->closing)
		return;
	part->closing = true;
	bdev_nbd_give_up(part->bdev, why);
}

static void drive_away(struct far *f, const char *why)
{
	if (f->drive->state == P_DRIVE_FAILED)
		return;
	drive_lost(f->provider, f->drive, why);
	f->listed_ns = reactor_now(f->provider->reactor);
	far_soon(f, FAR_AGAIN_NS);
	tend_soon(f->provider);
}

/* While a connection is lost the drive is not there, though it may be again
 * before anything has failed. */
static void silence_update(struct far *f)
{
	const bool was = f->drive->silent;

	f->drive->silent = false;
	for (const struct part *part = f->parts; part; part = part->next)
		if (!part->closing &&
		    bdev_nbd_state(part->bdev) == BDEV_NBD_LOST)
			f->drive->silent = true;
	if (was && !f->drive->silent)
		f->provider->drive_serial++;
	if (was != f->drive->silent)
		tend_soon(f->provider);
}

static void part_free(struct part *part)
{
	struct part **at = &part->far->parts;

	asks_forget(part->far->provider->host.asks, part);
	while (*at != part)
		at = &(*at)->next;
	*at = part->next;
	free(part);
}

static int target_take(struct part *part, const json_t *reply, struct err *err)
{
	const json_int_t port =
		json_integer_value(json_object_get(reply, "port"));
	const struct bdev_nbd_target target = {
		.address = json_string_value(json_object_get(reply, "address")),
		.port = (uint16_t)port,
		.export_name =
			json_string_value(json_object_get(reply, "export")),
		.key = json_string_value(json_object_get(reply, "key")),
		.boot = json_string_value(json_object_get(reply, "boot")),
	};

	if (!target.address || port < 1 || port > UINT16_MAX || !target.key)
		return err_set(err, -EPROTO,
			       "node %s says of an export neither address and "
			       "port nor key",
			       far_node(part->far));
	return bdev_nbd_target(part->bdev, &target, err);
}

static struct p_vdisk *owner_of(const struct provider *p, const char *id)
{
	struct p_vdisk *v = p->vdisks;

	while (v && !component_of(id, v->name))
		v = v->next;
	return v;
}

static void on_export(const json_t *reply, void *arg)
{
	struct part *part = arg;
	struct err err = { 0 };
	int rc = (int)json_integer_value(json_object_get(reply, "code"));

	part->asking = false;
	if (part->closing)
		return;
	if (far_ok(reply))
		rc = target_take(part, reply, &err);
	else
		err_set(&err, rc, "%s", far_error(reply));
	if (!rc) {
		part->target = true;
		return;
	}
	if (rc == -ESTALE && owner_of(part->far->provider, part->id))
		own_lost(owner_of(part->far->provider, part->id));
	/* what another owner has, or who speaks otherwise, stays so */
	if (rc == -ESTALE || rc == -ENOENT || rc == -EPROTO || rc == -EINVAL)
		part_give_up(part, err.text);
	else
		far_soon(part->far, FAR_AGAIN_NS);
}

static json_t *export_body(const struct part *part)
{
	const struct p_vdisk *v = owner_of(part->far->provider, part->id);
	static const uint8_t unset[16];
	json_t *body = far_about(part->far, part->id);
	char uuid[33];

	json_object_set_new(body, "term",
			    json_integer(v ? (json_int_t)v->term : 1));
	if (v && memcmp(v->info.uuid, unset, sizeof(unset)) != 0) {
		uuid_hex(v->info.uuid, uuid);
		json_object_set_new(body, "uuid", json_string(uuid));
	}
	return body;
}

static void export_ask(struct part *part)
{
	struct far *f = part->far;

	part->asking = true;
	part->asked_ns = reactor_now(f->provider->reactor);
	asks_ask(f->provider->host.asks, far_node(f), "export_open",
		 export_body(part), FAR_ASK_NS, on_export, part);
}

static void nothing(const json_t *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* Its exporter may end. Where nobody hears this it stays until the component
 * is opened anew, by whomever. */
static void part_ended(const struct part *part)
{
	struct far *f = part->far;

	if (part->target && !f->provider->closing)
		asks_ask(f->provider->host.asks, far_node(f), "export_close",
			 export_body(part), FAR_ASK_NS, nothing, f);
}

static void on_state(enum bdev_nbd_state state, const char *why, void *arg)
{
	struct part *part = arg;
	struct far *f = part->far;

	switch (state) {
	case BDEV_NBD_LOST:
		part->asked_ns = 0; /* it may be elsewhere by now */
		far_soon(f, 0);
		break;
	case BDEV_NBD_DEAD:
		if (!part->closing)
			drive_away(f, why);
		part->closing = true;
		break;
	case BDEV_NBD_CLOSED:
	case BDEV_NBD_UNFENCED:
		part_ended(part);
		part_free(part);
		break;
	default:
		break;
	}
	silence_update(f);
}

int part_open(struct far *f, const char *id, struct bdev **bdev,
	      struct err *err)
{
	const struct drive_component *c = far_listed(f, id);
	struct bdev_nbd_opts opts = { .block_bytes = 4096,
				      .trim_zeroes = f->kind == DRIVE_DIR,
				      .state = on_state };
	struct part *part;
	char name[72];
	int rc;

	if (!c)
		return err_set(err, -ENOENT, "%s:%s has no component %s",
			       far_node(f), f->drive->name, id);
	if (part_find(f, id))
		return err_set(err, -EBUSY, "component %s is open", id);
	part = calloc(1, sizeof(*part));
	if (!part)
		return err_set(err, -ENOMEM, "out of memory");
	snprintf(name, sizeof(name), "%s:%s", far_node(f), f->drive->name);
	opts.name = name;
	opts.size_bytes = c->size_bytes;
	opts.arg = part;
	part->far = f;
	snprintf(part->id, sizeof(part->id), "%s", id);
	rc = bdev_nbd_open(f->provider->reactor, &opts, &part->bdev, err);
	if (rc) {
		free(part);
		return rc;
	}
	part->next = f->parts;
	f->parts = part;
	*bdev = part->bdev;
	far_soon(f, 0); /* once its vDisk is listed, and it is made */
	return 0;
}
void part_tend(struct part *part, uint64_t now)
{
	struct far *f = part->far;
	const enum bdev_nbd_state state = bdev_nbd_state(part->bdev);

	if (part->closing || part->asking || far_making(f, part->id) ||
	    (part->target && state != BDEV_NBD_LOST))
		return;
	if (now >= part->asked_ns + FAR_AGAIN_NS)
		export_ask(part);
	else
		far_soon(f, part->asked_ns + FAR_AGAIN_NS - now);
}
