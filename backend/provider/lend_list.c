/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What stands on a drive of this node, for other nodes. Labels are read as they
 * lie, also of components that are open here or lent, by another thread.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/agent/chores.h"
#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

struct found {
	char id[64];
	struct drive_where where;
	bool there, labelled;
	struct vdisk_label_facts label;
};

struct listing {
	struct provider *p;
	struct p_drive *drive;
	struct reply *reply;
	struct found *found;
	size_t count;
};

struct p_drive *lend_drive(struct provider *p, const json_t *request,
			   struct reply *reply)
{
	const char *name = json_string_value(json_object_get(request, "drive"));
	struct p_drive *d = name ? drive_named(p, name) : NULL;

	if (!d || d->domain->far)
		reply_fail(reply, -ENOENT, "this node has no drive %.63s",
			   name ? name : "without a name");
	else if (!d->store || !drive_is_there(d))
		reply_fail(reply, -ENODEV, "drive %s is not there%s%s", name,
			   *d->reason ? ": " : "", d->reason);
	else
		return d;
	return NULL;
}

static void label_look(struct reactor *r, struct found *f)
{
	struct bdev *bdev = NULL;

	if (drive_where_peek(r, &f->where, &bdev, NULL))
		return;
	f->labelled = !vdisk_label_probe(bdev, &f->label, NULL);
	bdev_close_sync(bdev);
}

/* On another thread. */
static void list_work(void *arg)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS,
					   .workers = 1,
					   .name = "list" };
	struct listing *x = arg;
	struct reactor *r = NULL;

	if (reactor_new(&opts, &r, NULL))
		return;
	for (size_t k = 0; k < x->count; k++)
		if (x->found[k].there)
			label_look(r, &x->found[k]);
	reactor_free(r);
}

static json_t *found_json(const struct listing *x, const struct found *f)
{
	const bool busy = hub_has(&x->drive->hub, f->id) ||
			  lend_has(x->p, x->drive, f->id);

	return json_pack("{s:s, s:I, s:b, s:o}", "component", f->id,
			 "size_bytes", (json_int_t)f->where.size_bytes, "busy",
			 busy, "label",
			 f->labelled ? label_json(&f->label) : json_null());
}

static void list_done(void *arg)
{
	struct listing *x = arg;
	const struct p_drive *d = x->drive;
	json_t *list = json_array();

	--*lend_chores(x->p);
	for (size_t k = 0; k < x->count; k++)
		if (x->found[k].there)
			json_array_append_new(list,
					      found_json(x, &x->found[k]));
	reply_ok_with(x->reply,
		      json_pack("{s:s, s:I, s:I, s:o}", "kind",
				d->kind == DRIVE_DIR ? "directory" : "device",
				"size_bytes", (json_int_t)d->size_bytes,
				"free_bytes", (json_int_t)drive_free(d),
				"components", list));
	free(x->found);
	free(x);
}

void lend_list(struct provider *p, const json_t *request, struct reply *reply)
{
	struct p_drive *d = lend_drive(p, request, reply);
	struct drive_component *list = NULL;
	struct err err = { 0 };
	struct listing *x;
	size_t count = 0;

	if (!d)
		return;
	if (d->store->ops->list(d->store, &list, &count, &err)) {
		reply_err(reply, &err);
		return;
	}
	x = calloc(1, sizeof(*x));
	id_assert(x);
	*x = (struct listing) { .p = p, .drive = d, .reply = reply };
	x->found = calloc(count + 1, sizeof(*x->found));
	id_assert(x->found);
	for (; x->count < count; x->count++) {
		struct found *f = &x->found[x->count];

		snprintf(f->id, sizeof(f->id), "%s", list[x->count].id);
		f->there = !drive_component_where(store_drive(d->store), f->id,
						  &f->where, NULL);
	}
	free(list);
	++*lend_chores(p);
	chores_start(p->host.chores, list_work, list_done, x);
}
