/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of this machine: the engine's drive, called through. */
#include "backend/provider/store.h"

#include <stdlib.h>

struct here {
	struct store store;
	struct drive *drive;
};

static struct drive *drive_of(const struct store *store)
{
	return container_of(store, struct here, store)->drive;
}

static int here_list(struct store *store, struct drive_component **list,
		     size_t *count, struct err *err)
{
	return drive_list(drive_of(store), list, count, err);
}

static int here_make(struct store *store, const char *id, uint64_t bytes,
		     struct err *err)
{
	return drive_component_create(drive_of(store), id, bytes, err);
}

static int here_remove(struct store *store, const char *id, struct err *err)
{
	return drive_component_delete(drive_of(store), id, err);
}

static int here_open(struct store *store, const char *id, struct bdev **bdev,
		     struct err *err)
{
	return drive_component_open(drive_of(store), id, bdev, err);
}

static void here_facts(struct store *store, struct drive_facts *facts)
{
	drive_facts(drive_of(store), facts);
}

static bool here_gone(const struct store *store)
{
	return drive_gone(drive_of(store));
}

static void here_close(struct store *store)
{
	drive_close(drive_of(store));
	free(container_of(store, struct here, store));
}

static const struct store_ops here_ops = {
	.list = here_list,
	.make = here_make,
	.remove = here_remove,
	.open = here_open,
	.facts = here_facts,
	.gone = here_gone,
	.close = here_close,
};

int store_here_open(struct reactor *r, const char *path, const char *name,
		    struct store **store, struct err *err)
{
	struct here *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_set(err, -ENOMEM, "out of memory");
	rc = drive_open(r, path, name, &h->drive, err);
	if (rc) {
		free(h);
		return rc;
	}
	h->store.ops = &here_ops;
	*store = &h->store;
	return 0;
}

struct drive *store_drive(const struct store *store)
{
	return store->ops == &here_ops ? drive_of(store) : NULL;
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}
