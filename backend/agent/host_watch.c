/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host_watch.h"

#include <stdlib.h>

#include "backend/agent/host.h"
#include "backend/agent/host_disk.h"
#include "backend/agent/host_nic.h"

/* What a thread finds: line rates and names each time, facts when asked. */
struct find {
	struct host_watch *watch;
	const char *root;
	bool whole;
	struct host_rates rates;
	struct host_disk_names names;
	json_t *nics, *disks;
};

struct host_watch {
	struct host_watch_opts opts;
	bool looking, peeking;
	struct host_rates rates;
	struct host_disk_names names;
	json_t *nics_facts, *disks_facts; /* NULL: not looked yet */
	/* as of the last usage */
	uint64_t usage_ns; /* 0: none yet */
	struct host_cpu cpu;
	struct host_nics nics;
	struct host_disks disks;
};

/* ---- a look ------------------------------------------------------------- */

static void find_work(void *arg)
{
	struct find *f = arg;

	host_rates_read(f->root, &f->rates);
	host_disk_names_read(f->root, &f->names);
	if (!f->whole)
		return;
	f->nics = host_nics_facts(f->root, &f->rates);
	f->disks = host_disks_facts(f->root, &f->names);
}

static void find_done(void *arg)
{
	struct find *f = arg;
	struct host_watch *w = f->watch;
	const bool whole = f->whole;

	w->rates = f->rates;
	w->names = f->names;
	if (whole) {
		json_decref(w->nics_facts);
		json_decref(w->disks_facts);
		w->nics_facts = f->nics;
		w->disks_facts = f->disks;
		w->looking = false;
	} else {
		w->peeking = false;
	}
	free(f);
	if (whole)
		w->opts.looked(w->opts.arg);
}

static bool find_start(struct host_watch *w, bool whole)
{
	struct find *f = calloc(1, sizeof(*f));

	if (!f)
		return false;
	f->watch = w;
	f->root = w->opts.root;
	f->whole = whole;
	chores_start(w->opts.chores, find_work, find_done, f);
	return true;
}

void host_watch_look(struct host_watch *w)
{
	if (!w->looking)
		w->looking = find_start(w, true);
}

bool host_watch_looking(const struct host_watch *w)
{
	return w->looking;
}

/* ---- what is known ------------------------------------------------------ */

json_t *host_watch_facts(struct host_watch *w)
{
	json_t *facts = host_facts(w->opts.root);

	if (facts && w->nics_facts)
		json_object_set_new(facts, "nics",
				    json_deep_copy(w->nics_facts));
	if (facts && w->disks_facts)
		json_object_set_new(facts, "disks",
				    json_deep_copy(w->disks_facts));
	return facts;
}

void host_watch_usage(struct host_watch *w, json_t *usage)
{
	const uint64_t now = reactor_now(w->opts.reactor);
	const double len_s =
		w->usage_ns ? (double)(now - w->usage_ns) / SEC_NS : 0;

	host_usage_add(w->opts.root, &w->cpu, usage);
	host_nics_usage(w->opts.root, &w->rates, len_s, &w->nics, usage);
	host_disks_usage(w->opts.root, &w->names, len_s, &w->disks, usage);
	w->usage_ns = now;
	/* a lab's rate may change, and disks come and go */
	if (!w->peeking)
		w->peeking = find_start(w, false);
}

int host_watch_new(const struct host_watch_opts *opts,
		   struct host_watch **watch)
{
	*watch = calloc(1, sizeof(**watch));
	if (!*watch)
		return -ENOMEM;
	(*watch)->opts = *opts;
	return 0;
}

void host_watch_free(struct host_watch *w)
{
	if (!w)
		return;
	json_decref(w->nics_facts);
	json_decref(w->disks_facts);
	free(w);
}
