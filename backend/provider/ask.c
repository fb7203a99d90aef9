/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests, one row each. */
#include <stdlib.h>
#include <string.h>

#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

/* ---- shared ------------------------------------------------------------- */

static struct p_vdisk *asked_vdisk(struct provider *p, const json_t *request,
				   struct reply *reply)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	struct p_vdisk *v = name ? vdisk_find(p, name) : NULL;

	if (!v)
		reply_fail(reply, -ENOENT,
			   "there is no vDisk %.63s; `vdisk list` names them",
			   name ? name : "without a name");
	else if (!v->owned)
		reply_fail(reply, -ENODEV, "vDisk %s is another node's",
			   v->name);
	else if (v->phase == PV_BUSY)
		reply_fail(reply, -EBUSY, "vDisk %s is busy, try again",
			   v->name);
	else
		return v;
	return NULL;
}

static void life_answer(int rc, const struct err *err, void *arg)
{
	if (rc)
		reply_err(arg, err);
	else
		reply_ok(arg);
}

static bool refuse_in_run(const struct provider *p, const char *what,
			  struct reply *reply)
{
	if (p->running)
		reply_fail(reply, -EBUSY, "%s waits until the run is over",
			   what);
	return p->running;
}

/* ---- vDisks ------------------------------------------------------------- */

static void ask_vdisk_create(struct provider *p, const json_t *request,
			     struct reply *reply)
{
	life_create(p, request, life_answer, reply);
}

/* Drives that have a component of it and are not there. */
static json_t *drives_away(const struct p_vdisk *v)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < v->info.slots; k++) {
		const struct vdisk_slot *slot = &v->info.slot[k];
		const struct p_drive *d =
			drive_find(v->provider, slot->domain, slot->drive);

		if (!d || !drive_is_there(d))
			json_array_append_new(list, json_sprintf("%s:%s",
								 slot->domain,
								 slot->drive));
	}
	return list;
}

struct deleting {
	struct reply *reply;
	json_t *away;
};

static void delete_answer(int rc, const struct err *err, void *arg)
{
	struct deleting *x = arg;

	if (rc)
		reply_err(x->reply, err);
	else
		reply_ok_with(x->reply, json_pack("{s:O}", "away", x->away));
	json_decref(x->away);
	free(x);
}

static void ask_vdisk_delete(struct provider *p, const json_t *request,
			     struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);
	struct deleting *x;

	if (!v || refuse_in_run(p, "deleting a vDisk", reply))
		return;
	if (v->moving || v->replacing || v->verifying) {
		reply_fail(reply, -EBUSY, "vDisk %s is being worked on",
			   v->name);
		return;
	}
	x = malloc(sizeof(*x));
	id_assert(x);
	*x = (struct deleting) { .reply = reply, .away = drives_away(v) };
	life_delete(v, delete_answer, x);
}

static int no_policy(const char *name, struct err *err)
{
	return err_set(err, -ENOENT,
		       "there is no policy %.63s; `policy list` names them",
		       name);
}

/* Fills what a request leaves out from what is. */
static int policy_change(const struct vdisk_policy *is, const json_t *request,
			 struct vdisk_policy *policy, struct err *err)
{
	json_t *whole = json_copy((json_t *)request);
	const char *layout = vdisk_layout_name(is->layout);
	const char *said;
	bool same;
	int rc;

	if (!json_object_get(whole, "raid")) {
		json_object_set_new(whole, "raid", json_integer(is->raid));
		if (!json_object_get(whole, "ftt"))
			json_object_set_new(
				whole, "ftt",
				json_integer((json_int_t)policy_ftt(is)));
	}
	if (!json_object_get(whole, "layout"))
		json_object_set_new(whole, "layout", json_string(layout));
	said = json_string_value(json_object_get(whole, "layout"));
	same = said && !strcmp(said, layout);
	if (same && !json_object_get(whole, "compression"))
		json_object_set_new(whole, "compression",
				    json_string(vdisk_codec_name(is->codec)));
	/* each layout has its own */
	if (same && !json_object_get(whole, "stripe_unit_bytes"))
		json_object_set_new(whole, "stripe_unit_bytes",
				    json_integer(is->stripe_unit_bytes));
	rc = doc_policy(whole, policy, "policy", err);
	json_decref(whole);
	return rc;
}

static int set_policy(struct provider *p, const struct p_vdisk *v,
		      const json_t *request, const char **name,
		      struct vdisk_policy *policy, struct err *err)
{
	const json_t *named = json_object_get(request, "policy");
	const struct p_policy *has;
	int rc;

	*name = "";
	if (json_is_string(named)) {
		*name = json_string_value(named);
		has = policy_find(p, *name);
		if (!has)
			return no_policy(*name, err);
		return policy_fit(p, &has->policy, policy, err);
	}
	rc = policy_change(&v->info.policy, request, policy, err);
	return rc ? rc : policy_fit(p, policy, policy, err);
}

/* Why a vDisk cannot move to a policy now; 0 when it can. */
static int move_check(const struct provider *p, const struct p_vdisk *v,
		      const struct vdisk_policy *policy, struct err *err)
{
	char name[32];
	unsigned needed = 0;
	struct vdisk_policy fit = *policy;

	vdisk_policy_name(policy, name, sizeof(name));
	if (policy->layout != v->info.policy.layout)
		return err_set(err, -EOPNOTSUPP,
			       "%s keeps the layout it was made with, %s: make "
			       "another vDisk",
			       v->name,
			       vdisk_layout_name(v->info.policy.layout));
	if (p->running)
		return err_set(err, -EBUSY,
			       "%s cannot change to %s while a run is going on",
			       v->name, name);
	if (v->phase != PV_OPEN || v->info.state == VDISK_FAILED)
		return err_set(err, -ENODEV, "%s is not open: %s", v->name,
			       v->phase == PV_OPEN ? v->info.reason
						   : v->reason);
	if (v->moving || v->info.state == VDISK_MIGRATING)
		return err_set(err, -EBUSY, "%s is changing already", v->name);
	if (v->info.state != VDISK_HEALTHY)
		return err_set(err, -EBUSY,
			       "%s is %s: it can change once it is healthy",
			       v->name, vdisk_state_name(v->info.state));
	if (vdisk_policy_fit(&fit, domains_there(p), &needed, err))
		return err->code;
	return 0;
}

static void want(struct p_vdisk *v, const struct vdisk_policy *policy)
{
	v->wanted = !policy_same(&v->info.policy, policy);
	v->move_err.code = 0;
	v->want = *policy;
	v->told = true;
	tend_soon(v->provider);
}

static void ask_vdisk_set(struct provider *p, const json_t *request,
			  struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);
	struct vdisk_policy policy;
	struct err err = { 0 };
	const char *name;
	int rc;

	if (!v)
		return;
	if (json_object_get(request, "size_bytes")) {
		reply_fail(reply, -EOPNOTSUPP,
			   "a vDisk keeps the size it was made with");
		return;
	}
	rc = set_policy(p, v, request, &name, &policy, &err);
	if (!rc && !policy_same(&policy, &v->info.policy))
		rc = move_check(p, v, &policy, &err);
	if (rc) {
		reply_err(reply, &err);
		return;
	}
	memcpy(v->policy, "", 1);
	if (*name)
		strcpy(v->policy, name);
	memory_write(p);
	want(v, &policy);
	reply_ok_with(reply, json_pack("{s:b}", "moves", v->wanted));
}

static void ask_vdisk_wait(struct provider *p, const json_t *request,
			   struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);

	if (v)
		vdisk_wait(v, reply);
}

/* A run writes over what others keep there, and orders no writes with theirs:
 * one or the other. */
static void ask_vdisk_export(struct provider *p, const json_t *request,
			     struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);

	if (!v || refuse_in_run(p, "an export", reply))
		return;
	if (v->phase != PV_OPEN)
		reply_fail(reply, -ENODEV, "vDisk %s is not open: %s", v->name,
			   v->reason);
	else if (v->export)
		reply_fail(reply, -EEXIST,
			   "%s is exported already: `vdisk unexport %s` ends "
			   "that",
			   v->name, v->name);
	else
		export_start(v, request, reply);
}

static void unexported(void *arg)
{
	reply_ok(arg);
}

static void ask_vdisk_unexport(struct provider *p, const json_t *request,
			       struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);

	if (v && !v->export)
		reply_fail(reply, -ENOENT, "%s is not exported", v->name);
	else if (v)
		export_stop(v, unexported, reply);
}

static void verified(int rc, const struct err *err, struct bdev *bdev,
		     void *arg)
{
	struct {
		struct p_vdisk *v;
		struct reply *reply;
	} *ctx = arg;

	(void)bdev;
	ctx->v->verifying = false;
	if (rc)
		reply_err(ctx->reply, err);
	else
		reply_ok_with(ctx->reply,
			      json_pack("{s:I}", "mismatches",
					(json_int_t)ctx->v->mismatches));
	free(ctx);
}

static void ask_vdisk_verify(struct provider *p, const json_t *request,
			     struct reply *reply)
{
	struct p_vdisk *v = asked_vdisk(p, request, reply);
	struct {
		struct p_vdisk *v;
		struct reply *reply;
	} * ctx;

	if (!v || refuse_in_run(p, "verifying", reply))
		return;
	if (v->phase != PV_OPEN || v->verifying) {
		reply_fail(reply, -EBUSY, "%s is %s%s", v->name,
			   v->verifying ? "being verified already"
					: "not open: ",
			   v->verifying ? "" : v->reason);
		return;
	}
	ctx = malloc(sizeof(*ctx));
	id_assert(ctx);
	ctx->v = v;
	ctx->reply = reply;
	v->verifying = true;
	vdisk_verify(v->bdev, &v->mismatches, verified, ctx);
}

/* ---- policies ----------------------------------------------------------- */

/* All of its vDisks can move, or none does. */
static int policy_can(struct provider *p, const char *name,
		      const struct vdisk_policy *policy, struct err *err)
{
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next) {
		int rc;

		if (strcmp(v->policy, name) != 0 ||
		    policy_same(policy, &v->info.policy))
			continue;
		rc = move_check(p, v, policy, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* With "create": a new one, false: one that is there; without, either. */
static int policy_named(const struct provider *p, const json_t *request,
			const char **name, struct err *err)
{
	const json_t *create = json_object_get(request, "create");
	int rc = doc_name(request, "name", PLACE_NAME - 1, name, "policy", err);

	if (!rc && json_is_true(create) && policy_find(p, *name))
		return err_set(err, -EEXIST,
			       "there is a policy %s already; `policy set` "
			       "changes it",
			       *name);
	if (!rc && json_is_false(create) && !policy_find(p, *name))
		return no_policy(*name, err);
	return rc;
}

/* What is left out stays as it is; a new level has defaults of its own. */
static int policy_read(const struct provider *p, const char *name,
		       const json_t *request, struct vdisk_policy *policy,
		       struct err *err)
{
	const struct p_policy *has = policy_find(p, name);

	return has ? policy_change(&has->policy, request, policy, err)
		   : doc_policy(request, policy, "policy", err);
}

static void ask_policy_set(struct provider *p, const json_t *request,
			   struct reply *reply)
{
	struct vdisk_policy policy, fit;
	struct err err = { 0 };
	json_t *moves;
	const char *name;
	int rc;

	rc = policy_named(p, request, &name, &err);
	if (!rc)
		rc = policy_read(p, name, request, &policy, &err);
	if (!rc)
		rc = policy_fit(p, &policy, &fit, &err);
	if (!rc)
		rc = policy_can(p, name, &fit, &err);
	if (!rc && policy_put(p, name, &policy))
		rc = err_set(&err, -ENOSPC, "too many policies");
	if (rc) {
		reply_err(reply, &err);
		return;
	}
	moves = json_array();
	for (struct p_vdisk *v = p->vdisks; v; v = v->next) {
		if (strcmp(v->policy, name) != 0 || v->phase != PV_OPEN)
			continue;
		want(v, &fit);
		if (v->wanted)
			json_array_append_new(moves, json_string(v->name));
	}
	memory_write(p);
	tell_policy(p, policy_find(p, name));
	reply_ok_with(reply, json_pack("{s:o}", "moves", moves));
}

static void ask_policy_delete(struct provider *p, const json_t *request,
			      struct reply *reply)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	struct p_policy *has = name ? policy_find(p, name) : NULL;
	struct err err = { 0 };
	char gone[64];

	if (!has) {
		no_policy(name ? name : "without a name", &err);
		reply_err(reply, &err);
		return;
	}
	for (const struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (!strcmp(v->policy, name)) {
			reply_fail(reply, -EBUSY,
				   "vDisk %s has policy %s: give it another "
				   "first",
				   v->name, name);
			return;
		}
	memcpy(gone, has->name, sizeof(gone));
	p->policies--;
	memmove(has, has + 1,
		(size_t)(p->policy + p->policies - has) * sizeof(*has));
	memory_write(p);
	p->host.emit("policy_gone", json_pack("{s:s}", "name", gone),
		     p->host.arg);
	reply_ok(reply);
}

/* ---- faults and shapes -------------------------------------------------- */

static void act_answer(struct provider *p, const json_t *act,
		       struct reply *reply)
{
	struct err err = { 0 };

	if (provider_act(p, act, "operator", &err))
		reply_err(reply, &err);
	else
		reply_ok(reply);
}

static void ask_fault(struct provider *p, const json_t *request,
		      struct reply *reply)
{
	json_t *act = json_copy((json_t *)request);

	/* a plan's phase says kind fault, a request names the target's kind */
	if (!json_object_get(act, "text") && !json_object_get(act, "action"))
		json_object_set_new(act, "action", json_string(""));
	act_answer(p, act, reply);
	json_decref(act);
}

static void shape_answer(struct provider *p, const char *kind,
			 const json_t *request, struct reply *reply)
{
	json_t *act = json_copy((json_t *)request);

	json_object_set_new(act, "kind", json_string(kind));
	json_object_del(act, "action");
	act_answer(p, act, reply);
	json_decref(act);
}

static void ask_link_set(struct provider *p, const json_t *request,
			 struct reply *reply)
{
	shape_answer(p, "link", request, reply);
}

static void ask_drive_set(struct provider *p, const json_t *request,
			  struct reply *reply)
{
	shape_answer(p, "drive", request, reply);
}

/* ---- the table ---------------------------------------------------------- */

/* early: also while other vDisks are being opened, once it is known what there
 * is: two nodes that open each other's drives wait for nothing. */
static const struct row {
	const char *what;
	void (*fn)(struct provider *p, const json_t *request,
		   struct reply *reply);
	bool early;
} rows[] = {
	{ "policy_set", ask_policy_set, false },
	{ "policy_delete", ask_policy_delete, false },
	{ "vdisk_create", ask_vdisk_create, false },
	{ "vdisk_delete", ask_vdisk_delete, false },
	{ "vdisk_set", ask_vdisk_set, false },
	{ "vdisk_wait", ask_vdisk_wait, false },
	{ "vdisk_verify", ask_vdisk_verify, false },
	{ "vdisk_own", own_ask, false },
	{ "vdisk_disown", disown_ask, false },
	{ "vdisk_export", ask_vdisk_export, false },
	{ "vdisk_unexport", ask_vdisk_unexport, false },
	{ "fault", ask_fault, false },
	{ "link_set", ask_link_set, false },
	{ "drive_set", ask_drive_set, false },
	{ "component_list", lend_list, true },
	{ "component_make", lend_make, true },
	{ "component_remove", lend_remove, true },
	{ "export_open", lend_open, true },
	{ "export_close", lend_close, true },
	{ "export_list", lend_show, true },
};

static const struct row *row_of(const char *what)
{
	for (size_t k = 0; k < array_len(rows); k++)
		if (!strcmp(rows[k].what, what))
			return &rows[k];
	return NULL;
}

bool provider_knows(const char *what)
{
	return row_of(what) != NULL;
}

void provider_ask(struct provider *p, const char *what, const json_t *request,
		  struct reply *reply)
{
	const struct row *row = row_of(what);

	if (!row)
		reply_fail(reply, -ENOSYS, "this agent does not know \"%.32s\"",
			   what);
	else if (p->opening && !(row->early && p->scanned))
		reply_fail(reply, -EBUSY, "cluster %s is being opened",
			   p->name);
	else
		row->fn(p, request, reply);
}
