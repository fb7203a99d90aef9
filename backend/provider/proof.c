/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What tests of crash safety ask of an agent by its environment; see
 * iodeck-agent(8). Layers of the engine in the stack, nothing else is
 * different from what users run.
 *
 *   load --> [journal: verify] --> vDisk --> ... --> [volatile] --> component
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/provider/provider_priv.h"
#include "engine/bdev/verify.h"

int proof_component(struct bdev **bdev, struct err *err)
{
	const char *seed = getenv("IODECK_VOLATILE");
	struct bdev *child = *bdev;

	if (!seed || !*seed)
		return 0;
	return bdev_volatile_open(child,
				  strtoull(seed, NULL, 10) +
					  rng_u64(reactor_rng(child->reactor)),
				  bdev, err);
}

static bool journal_path(const struct p_vdisk *v, char *path, size_t len)
{
	const char *dir = getenv("IODECK_JOURNAL");

	return dir && *dir &&
	       (size_t)snprintf(path, len, "%s/%s.journal", dir, v->name) < len;
}

static void swept(void *arg)
{
	struct p_vdisk *v = arg;
	const struct verify_head *h = bdev_verify_head(v->top);

	if (h->wrong)
		tell_log(v->provider, "error", "%s: %llu blocks are wrong: %s",
			 v->name, (unsigned long long)h->wrong, h->first);
	else
		tell_log(v->provider, "info",
			 "%s: all of it reads as its journal says", v->name);
}

void proof_vdisk_open(struct p_vdisk *v, bool made)
{
	char path[512];
	struct err err = { 0 };

	v->top = v->bdev;
	if (!journal_path(v, path, sizeof(path)))
		return;
	if (made)
		unlink(path);
	if (bdev_verify_open(v->bdev, path, &v->top, &err))
		tell_log(v->provider, "error", "%s: no journal: %s", v->name,
			 err.text);
	else
		bdev_verify_sweep(v->top, swept, v);
}
