/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/provider/lend.h"

#include <stdlib.h>
#include <string.h>

#include "backend/agent/export.h"
#include "backend/provider/provider_priv.h"

#define HEARDS_MAX 4096           /* vDisks; the oldest is forgotten */
#define GRACE_NS (1500 * MSEC_NS) /* for others to close what they have */
#define PORT_FIRST 20000
#define PORT_LAST 20999

struct wait {
	struct wait *next;
	void (*done)(void *arg);
	void *arg;
};

struct lend {
	struct lend *next;
	struct provider *p;
	struct p_drive *drive;
	char component[64];
	char to[PLACE_NAME];
	uint64_t term;
	struct export *export; /* NULL: it is ending */
	struct wait *waits;
};

/* The latest term in which a vDisk was asked for, and by whom. */
struct heard {
	uint8_t uuid[16];
	uint64_t term;
	char owner[PLACE_NAME];
};

struct lending {
	struct exports *exports;
	char address[64];
	uint16_t port_first, port_last;
	struct lend *list;
	struct heard *heard;
	size_t heards;
	unsigned chores;
	struct timer grace;
	struct provider *p;
	bool stopping;
};

/* ---- its life ----------------------------------------------------------- */

static int ports_read(struct lending *l, const json_t *ports, struct err *err)
{
	const json_int_t first = json_integer_value(json_array_get(ports, 0));
	const json_int_t last = json_integer_value(json_array_get(ports, 1));

	if (!ports)
		return 0;
	if (json_array_size(ports) != 2 || first < 1 || last < first ||
	    last > UINT16_MAX)
		return err_set(err, -EINVAL,
			       "export: \"ports\" must be [first, last]");
	l->port_first = (uint16_t)first;
	l->port_last = (uint16_t)last;
	return 0;
}

static void grace_over(struct timer *timer);

int lend_read(struct provider *p, const json_t *doc, struct err *err)
{
	const json_t *where = json_object_get(doc, "export");
	const char *address =
		json_string_value(json_object_get(where, "address"));
	struct lending *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(err, -ENOMEM, "out of memory");
	p->lending = l;
	l->p = p;
	l->grace.fn = grace_over;
	l->port_first = PORT_FIRST;
	l->port_last = PORT_LAST;
	snprintf(l->address, sizeof(l->address), "%s",
		 address ? address : "127.0.0.1");
	return ports_read(l, json_object_get(where, "ports"), err);
}

static void say(const char *level, const char *text, void *arg)
{
	tell_log(arg, level, "%s", text);
}

void lend_start(struct provider *p)
{
	const struct exports_opts opts = { .reactor = p->reactor,
					   .dirfd = p->host.dirfd,
					   .say = say,
					   .arg = p };
	struct err err = { 0 };

	if (exports_new(&opts, &p->lending->exports, &err))
		tell_log(p, "warn",
			 "drives of this node cannot be lent to others: %s",
			 err.text);
}

bool lend_busy(const struct provider *p)
{
	return p->lending->list || p->lending->chores;
}

void lend_free(struct provider *p)
{
	if (!p->lending)
		return;
	id_assert(!lend_busy(p));
	timer_cancel(p->reactor, &p->lending->grace);
	exports_free(p->lending->exports);
	free(p->lending->heard);
	free(p->lending);
}

unsigned *lend_chores(struct provider *p)
{
	return &p->lending->chores;
}

/* ---- terms -------------------------------------------------------------- */

static struct heard *heard_of(const struct lending *l, const uint8_t uuid[16])
{
	for (size_t k = 0; k < l->heards; k++)
		if (!memcmp(l->heard[k].uuid, uuid, 16))
			return &l->heard[k];
	return NULL;
}

static int heard_put(struct lending *l, const uint8_t uuid[16], uint64_t term,
		     const char *owner)
{
	struct heard *h = heard_of(l, uuid);

	if (!l->heard)
		l->heard = calloc(HEARDS_MAX, sizeof(*l->heard));
	if (!l->heard)
		return -ENOMEM;
	if (!h && l->heards == HEARDS_MAX)
		memmove(l->heard, l->heard + 1,
			--l->heards * sizeof(*l->heard));
	if (!h)
		h = &l->heard[l->heards++];
	memcpy(h->uuid, uuid, 16);
	h->term = term;
	snprintf(h->owner, sizeof(h->owner), "%s", owner);
	return 0;
}

int lend_heard(struct provider *p, const uint8_t uuid[16], uint64_t term,
	       const char *owner)
{
	return heard_put(p->lending, uuid, term, owner);
}

void lend_terms_read(struct provider *p, const json_t *list)
{
	const json_t *one;
	size_t k;

	json_array_foreach(list, k, one) {
		const json_int_t term =
			json_integer_value(json_object_get(one, "term"));
		const char *owner =
			json_string_value(json_object_get(one, "owner"));
		uint8_t uuid[16];

		if (uuid_read(json_string_value(json_object_get(one, "uuid")),
			      uuid) &&
		    owner && term > 0)
			heard_put(p->lending, uuid, (uint64_t)term, owner);
	}
}

json_t *lend_terms_json(const struct provider *p)
{
	const struct lending *l = p->lending;
	json_t *list = json_array();

	for (size_t k = 0; k < l->heards; k++) {
		const struct heard *h = &l->heard[k];
		char uuid[33];

		uuid_hex(h->uuid, uuid);
		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:s}", "uuid", uuid,
						"term", (json_int_t)h->term,
						"owner", h->owner));
	}
	return list;
}

/* ---- what a request says ------------------------------------------------ */

struct asked {
	struct provider *p;
	struct reply *reply;
	struct p_drive *drive;
	char component[64];
	char to[PLACE_NAME];
	uint8_t uuid[16];
	bool has_uuid, unix_socket;
	uint64_t term;
};

static bool asked_words(struct asked *a, const json_t *request,
			struct reply *reply)
{
	const char *uuid = json_string_value(json_object_get(request, "uuid"));
	const json_t *term = json_object_get(request, "term");
	const char *listen =
		json_string_value(json_object_get(request, "listen"));
	const char *component, *to = "";
	struct err err = { 0 };
	int rc = doc_name(request, "component", sizeof(a->component) - 1,
			  &component, "component", &err);

	if (!rc && json_object_get(request, "for"))
		rc = doc_name(request, "for", sizeof(a->to) - 1, &to, "for",
			      &err);
	if (!rc && uuid && !uuid_read(uuid, a->uuid))
		rc = err_set(&err, -EINVAL, "\"uuid\" has 32 digits");
	if (!rc && term && json_integer_value(term) < 1)
		rc = err_set(&err, -EINVAL, "\"term\" is 1 or more");
	if (rc) {
		reply_err(reply, &err);
		return false;
	}
	snprintf(a->component, sizeof(a->component), "%s", component);
	snprintf(a->to, sizeof(a->to), "%s", to);
	a->has_uuid = uuid != NULL;
	a->term = term ? (uint64_t)json_integer_value(term) : 1;
	a->unix_socket = listen && !strcmp(listen, "unix");
	return true;
}

/* The caller's to free; NULL: answered. */
static struct asked *asked_read(struct provider *p, const json_t *request,
				struct reply *reply)
{
	struct asked *a = calloc(1, sizeof(*a));

	id_assert(a);
	a->p = p;
	a->reply = reply;
	a->drive = lend_drive(p, request, reply);
	if (a->drive && asked_words(a, request, reply))
		return a;
	free(a);
	return NULL;
}

/* ---- what is lent ------------------------------------------------------- */

static struct lend *lend_find(const struct provider *p, const struct p_drive *d,
			      const char *component)
{
	struct lend *x = p->lending->list;

	while (x && (x->drive != d || strcmp(x->component, component) != 0))
		x = x->next;
	return x;
}

bool lend_has(const struct provider *p, const struct p_drive *d,
	      const char *component)
{
	return lend_find(p, d, component) != NULL;
}

uint64_t lend_owner(const struct provider *p, const struct p_drive *d,
		    const char *component, const uint8_t *uuid, char *node,
		    size_t len)
{
	const struct heard *h = uuid ? heard_of(p->lending, uuid) : NULL;
	const struct lend *x = lend_find(p, d, component);

	snprintf(node, len, "%s", h ? h->owner : x ? x->to : "");
	return h ? h->term : x ? x->term : 0;
}

static void ended(void *arg)
{
	struct lend *x = arg, **at = &x->p->lending->list;
	struct wait *waits = x->waits;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	free(x);
	while (waits) {
		struct wait *w = waits;

		waits = w->next;
		w->done(w->arg);
		free(w);
	}
}

static void lend_end(struct lend *x)
{
	struct export *e = x->export;

	x->export = NULL;
	if (e)
		export_close(e, ended, x);
}

void lend_fence(struct provider *p, struct p_drive *d, const char *component,
		void (*done)(void *arg), void *arg)
{
	struct lend *x = lend_find(p, d, component);
	struct wait *w, **at;

	if (!x) {
		done(arg);
		return;
	}
	w = malloc(sizeof(*w));
	id_assert(w);
	*w = (struct wait) { .done = done, .arg = arg };
	at = &x->waits;
	while (*at)
		at = &(*at)->next;
	*at = w;
	lend_end(x);
}

static void all_end(struct lending *l)
{
	struct lend *x = l->list, *next;

	for (; x; x = next) {
		next = x->next;
		lend_end(x);
	}
}

static void grace_over(struct timer *timer)
{
	all_end(container_of(timer, struct lending, grace));
}

void lend_stop(struct provider *p)
{
	struct lending *l = p->lending;

	l->stopping = true;
	timer_arm(p->reactor, &l->grace, reactor_now(p->reactor) + GRACE_NS);
}

/* ---- export_open -------------------------------------------------------- */

static void answer(const struct lend *x, struct reply *reply)
{
	struct export_facts f;
	json_t *more;

	export_facts(x->export, &f);
	if (f.unix_path)
		more = json_pack("{s:s, s:s, s:s}", "unix", f.unix_path,
				 "export", f.name, "boot", f.boot);
	else
		more = json_pack("{s:s, s:i, s:s, s:s, s:s}", "address",
				 f.address, "port", (int)f.port, "export",
				 f.name, "key", f.key, "boot", f.boot);
	reply_ok_with(reply, more);
}

/* Who has lost it to a later owner may not have it back. */
static bool stale(const struct asked *a)
{
	const struct heard *h =
		a->has_uuid ? heard_of(a->p->lending, a->uuid) : NULL;
	const struct lend *x = lend_find(a->p, a->drive, a->component);
	const char *owner = h ? h->owner : x ? x->to : NULL;
	const uint64_t term = h ? h->term : x ? x->term : 0;

	if (!owner || a->term > term ||
	    (a->term == term && !strcmp(a->to, owner)))
		return false;
	reply_fail(a->reply, -ESTALE,
		   "%s of %s:%s is lent to node %s, in term %llu", a->component,
		   a->drive->domain->name, a->drive->name, owner,
		   (unsigned long long)term);
	return true;
}

static bool remembered(const struct asked *a)
{
	const struct heard *h =
		a->has_uuid ? heard_of(a->p->lending, a->uuid) : NULL;
	int rc;

	if (!a->has_uuid ||
	    (h && h->term == a->term && !strcmp(h->owner, a->to)))
		return true;
	rc = heard_put(a->p->lending, a->uuid, a->term, a->to);
	if (!rc)
		rc = memory_write(a->p);
	if (!rc) {
		own_outdated(a->p, a->uuid, a->term);
		return true;
	}
	reply_fail(a->reply, rc,
		   "who owns a vDisk cannot be kept in mind here: %s",
		   strerror(-rc));
	return false;
}

static struct lend *lend_new(const struct asked *a, struct err *err)
{
	struct lending *l = a->p->lending;
	struct export_opts opts = { .address =
					    a->unix_socket ? NULL : l->address,
				    .port_first = l->port_first,
				    .port_last = l->port_last };
	struct drive *drive = store_drive(a->drive->store);
	struct lend *x = calloc(1, sizeof(*x));
	char name[160];

	id_assert(x && drive);
	snprintf(name, sizeof(name), "%s:%s:%s", a->drive->domain->name,
		 a->drive->name, a->component);
	opts.name = name;
	*x = (struct lend) { .p = a->p, .drive = a->drive, .term = a->term };
	memcpy(x->component, a->component, sizeof(x->component));
	memcpy(x->to, a->to, sizeof(x->to));
	if (drive_component_hold(drive, a->component, &opts.where, &opts.fd,
				 err) ||
	    export_open(l->exports, &opts, &x->export, err)) {
		free(x);
		return NULL;
	}
	x->next = l->list;
	l->list = x;
	return x;
}

/* Nobody else has it any more. */
static void open_go(void *arg)
{
	struct asked *a = arg;
	struct lending *l = a->p->lending;
	struct err err = { 0 };
	struct lend *x;

	l->chores--;
	if (l->stopping || !l->exports)
		reply_fail(a->reply, -ESHUTDOWN,
			   l->stopping ? "this node is closing its drives"
				       : "this node cannot export drives");
	else if (lend_has(a->p, a->drive, a->component))
		reply_fail(a->reply, -EAGAIN, "it was just lent: ask again");
	else if ((x = lend_new(a, &err)))
		answer(x, a->reply);
	else
		reply_err(a->reply, &err);
	free(a);
}

void lend_open(struct provider *p, const json_t *request, struct reply *reply)
{
	struct asked *a = asked_read(p, request, reply);
	const struct lend *x;

	if (!a)
		return;
	x = lend_find(p, a->drive, a->component);
	if (stale(a) || !remembered(a)) {
		free(a);
	} else if (x && x->export && x->term == a->term &&
		   !strcmp(x->to, a->to)) {
		answer(x, reply);
		free(a);
	} else {
		p->lending->chores++;
		lend_fence(p, a->drive, a->component, open_go, a);
	}
}

/* ---- the others --------------------------------------------------------- */

static void close_done(void *arg)
{
	struct asked *a = arg;

	a->p->lending->chores--;
	reply_ok(a->reply);
	free(a);
}

void lend_close(struct provider *p, const json_t *request, struct reply *reply)
{
	struct asked *a = asked_read(p, request, reply);

	if (!a)
		return;
	if (stale(a) || !remembered(a)) {
		free(a);
		return;
	}
	p->lending->chores++;
	lend_fence(p, a->drive, a->component, close_done, a);
}

static uint64_t bytes_there(struct p_drive *d, const char *component)
{
	struct drive_component *list = NULL;
	uint64_t bytes = 0;
	size_t count = 0;

	if (d->store->ops->list(d->store, &list, &count, NULL))
		return 0;
	for (size_t k = 0; k < count; k++)
		if (!strcmp(list[k].id, component))
			bytes = list[k].size_bytes;
	free(list);
	return bytes;
}

void lend_make(struct provider *p, const json_t *request, struct reply *reply)
{
	const json_int_t bytes =
		json_integer_value(json_object_get(request, "size_bytes"));
	struct asked *a = asked_read(p, request, reply);
	struct err err = { 0 };
	uint64_t there;
	int rc = 0;

	if (!a)
		return;
	there = bytes_there(a->drive, a->component);
	if (bytes < 1)
		rc = err_set(&err, -EINVAL,
			     "component_make: no \"size_bytes\"");
	else if (there && there != (uint64_t)bytes)
		rc = err_set(&err, -EEXIST,
			     "there is a component %s of %llu bytes",
			     a->component, (unsigned long long)there);
	else if (!there)
		rc = component_make(a->drive, a->component, (uint64_t)bytes,
				    &err);
	if (rc)
		reply_err(reply, &err);
	else
		reply_ok(reply);
	p->cluster_told |= !rc;
	free(a);
}

static void remove_go(void *arg)
{
	struct asked *a = arg;

	a->p->lending->chores--;
	component_remove(a->drive, a->component);
	a->p->cluster_told = true;
	if (bytes_there(a->drive, a->component))
		reply_fail(a->reply, -EBUSY,
			   "component %s of %s:%s cannot be removed: is it in "
			   "use?",
			   a->component, a->drive->domain->name,
			   a->drive->name);
	else
		reply_ok(a->reply);
	free(a);
}

void lend_remove(struct provider *p, const json_t *request, struct reply *reply)
{
	struct asked *a = asked_read(p, request, reply);
	const struct lend *x;

	if (!a)
		return;
	x = lend_find(p, a->drive, a->component);
	if (x && strcmp(x->to, a->to) != 0) {
		reply_fail(reply, -EBUSY, "%s is lent to node %s", a->component,
			   x->to);
		free(a);
		return;
	}
	p->lending->chores++;
	lend_fence(p, a->drive, a->component, remove_go, a);
}

void lend_show(struct provider *p, const json_t *request, struct reply *reply)
{
	json_t *list = json_array();

	(void)request;
	for (const struct lend *x = p->lending->list; x; x = x->next) {
		struct export_facts f = { 0 };

		if (x->export)
			export_facts(x->export, &f);
		json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:s, s:I, s:s*, s:i, s:i, s:i, "
				  "s:b}",
				  "drive",
				  json_sprintf("%s:%s", x->drive->domain->name,
					       x->drive->name),
				  "component", x->component, "for", x->to,
				  "term", (json_int_t)x->term, "address",
				  f.address, "port", (int)f.port, "pid", f.pid,
				  "deaths", (int)f.deaths, "ending",
				  !x->export));
	}
	reply_ok_with(reply, json_pack("{s:o}", "exports", list));
}
