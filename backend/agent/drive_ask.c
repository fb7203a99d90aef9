/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/drive_ask.h"

#include <stdlib.h>
#include <string.h>

#include "backend/agent/chores.h"
#include "backend/agent/host_read.h"
#include "engine/drive.h"

struct drive_chore {
	int (*work)(struct drive_chore *c);
	struct drive_ask_host host;
	struct reply *reply;
	char *path, *cluster, *destroy;
	bool force;
	int rc;
	struct err err;
	struct drive_facts facts;
	bool probed;
};

static int work_probe(struct drive_chore *c)
{
	c->probed = true;
	return drive_probe(c->path, &c->facts, &c->err);
}

static int work_claim(struct drive_chore *c)
{
	return drive_claim(c->path, c->cluster, c->destroy, &c->err);
}

static int work_release(struct drive_chore *c)
{
	return drive_release(c->path, c->force, &c->err);
}

json_t *drive_facts_json(const struct drive_facts *f)
{
	static const char *const verdict[] = { "empty", "ours", "data", "busy",
					       "unfit" };
	json_t *j = json_object();

	if (!j)
		return NULL;
	host_add_text(j, "kind", f->kind == DRIVE_DIR ? "directory" : "device");
	host_add_text(j, "verdict", verdict[f->verdict]);
	host_add_int(j, "size_bytes", (int64_t)f->size_bytes);
	host_add_int(j, "free_bytes", (int64_t)f->free_bytes);
	host_add_int(j, "block_bytes", f->block_bytes);
	host_add_text(j, "model", f->model);
	host_add_text(j, "fstype", f->fstype);
	host_add_text(j, "reason", f->reason);
	host_add_text(j, "cluster", f->cluster);
	return j;
}

static void chore_work(void *arg)
{
	struct drive_chore *c = arg;

	c->rc = c->work(c);
}

static void chore_done(void *arg)
{
	struct drive_chore *c = arg;

	if (c->rc) {
		c->err.code = c->rc;
		reply_err(c->reply, &c->err);
	} else {
		if (c->work == work_claim)
			c->host.claimed(c->path, c->cluster, c->host.arg);
		reply_ok_with(c->reply,
			      c->probed ? drive_facts_json(&c->facts) : NULL);
	}
	free(c->path);
	free(c->cluster);
	free(c->destroy);
	free(c);
}

static char *text_copy(const json_t *request, const char *name)
{
	const char *text = json_string_value(json_object_get(request, name));

	return text ? strdup(text) : NULL;
}

static const struct {
	const char *what;
	int (*work)(struct drive_chore *c);
} kinds[] = {
	{ "drive_probe", work_probe },
	{ "drive_claim", work_claim },
	{ "drive_release", work_release },
};

bool drive_ask(const struct drive_ask_host *host, const char *what,
	       const json_t *request, struct reply *reply)
{
	struct drive_chore *c;
	size_t k = 0;

	while (k < array_len(kinds) && strcmp(what, kinds[k].what) != 0)
		k++;
	if (k == array_len(kinds))
		return false;
	c = calloc(1, sizeof(*c));
	id_assert(c);
	c->work = kinds[k].work;
	c->host = *host;
	c->reply = reply;
	c->path = text_copy(request, "path");
	c->cluster = text_copy(request, "cluster");
	c->destroy = text_copy(request, "destroy");
	c->force = json_is_true(json_object_get(request, "force"));
	if (c->path && c->path[0] == '/' &&
	    (c->cluster || c->work != work_claim)) {
		chores_start(host->chores, chore_work, chore_done, c);
		return true;
	}
	c->rc = err_set(&c->err, -EINVAL, "%s: needs an absolute \"path\"%s",
			what,
			c->work == work_claim ? " and a \"cluster\"" : "");
	chore_done(c);
	return true;
}
