/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the model knows of domains and drives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

/* ---- domains and drives ------------------------------------------------- */

static void in_shape(struct m_in *in, const char *key, struct m_shape *shape)
{
	const json_t *o = in_object(in, key, IN_MAY);
	struct m_in part;

	shape->set = false;
	shape->rate_bytes_s = shape->rate_iops = shape->latency_us = NAN;
	if (!o)
		return;
	part = in_part(in, o);
	shape->rate_bytes_s = in_num(&part, "rate_bytes_s");
	shape->rate_iops = in_num(&part, "rate_iops");
	shape->latency_us = in_num(&part, "latency_us");
	in->rc = part.rc;
	/* 0 is no limit to who sets a link; a rate of nothing is not one. */
	if (shape->rate_bytes_s == 0)
		shape->rate_bytes_s = NAN;
	if (shape->rate_iops == 0)
		shape->rate_iops = NAN;
	shape->set = !isnan(shape->rate_bytes_s) || !isnan(shape->rate_iops) ||
		     !isnan(shape->latency_us);
}

static void drive_usage_clear(struct m_drive *d)
{
	d->read_iops = d->write_iops = NAN;
	d->read_bytes_s = d->write_bytes_s = NAN;
	d->busy = d->queue = d->latency_us = NAN;
}

static void in_drive(struct m_in *in, struct m_drive *d)
{
	memset(d, 0, sizeof(*d));
	IN_TEXT(in, "name", d->name, IN_MUST);
	IN_TEXT(in, "path", d->path, IN_MAY);
	IN_TEXT(in, "kind", d->kind, IN_MAY);
	IN_TEXT(in, "state", d->state, IN_MUST);
	IN_TEXT(in, "reason", d->reason, IN_MAY);
	d->size_bytes = in_int(in, "size_bytes", INT64_MAX, IN_MAY);
	d->free_bytes = in_int(in, "free_bytes", INT64_MAX, IN_MAY);
	in_shape(in, "shape", &d->shape);
	drive_usage_clear(d);
}

static struct m_drive *drive_find(const struct m_domain *d, const char *name)
{
	for (size_t i = 0; d && i < d->drives; i++)
		if (!strcmp(d->drive[i].name, name))
			return &d->drive[i];
	return NULL;
}

/* The newest usage outlives a new description of the same thing. */
static void usage_keep(struct m_domain *d, struct m_domain *old)
{
	d->link_read_bytes_s = d->link_write_bytes_s = d->link_busy = NAN;
	if (!old)
		return;
	d->link_read_bytes_s = old->link_read_bytes_s;
	d->link_write_bytes_s = old->link_write_bytes_s;
	d->link_busy = old->link_busy;
	d->parts = old->parts;
	old->parts = (struct m_parts) { 0 };
	for (size_t i = 0; i < d->drives; i++) {
		struct m_drive *was = drive_find(old, d->drive[i].name);
		struct m_drive *is = &d->drive[i];

		if (!was)
			continue;
		is->read_iops = was->read_iops;
		is->write_iops = was->write_iops;
		is->read_bytes_s = was->read_bytes_s;
		is->write_bytes_s = was->write_bytes_s;
		is->busy = was->busy;
		is->queue = was->queue;
		is->latency_us = was->latency_us;
		is->parts = was->parts;
		was->parts = (struct m_parts) { 0 };
	}
}

static int in_domain(struct m_in *in, struct m_domain *d)
{
	const json_t *drives;
	size_t n;

	IN_TEXT(in, "name", d->name, IN_MUST);
	in_shape(in, "link", &d->link);
	drives = in_array(in, "drives", MODEL_DRIVES_MAX, IN_MAY);
	n = json_array_size(drives);
	if (in->rc || !n)
		return in->rc;
	d->drive = calloc(n, sizeof(*d->drive));
	if (!d->drive)
		return -ENOMEM;
	for (size_t i = 0; i < n && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(drives, i));

		in_drive(&part, &d->drive[i]);
		in->rc = part.rc;
	}
	d->drives = n;
	return in->rc;
}

static void domain_clear(struct m_domain *d)
{
	for (size_t i = 0; i < d->drives; i++)
		model_parts_free(&d->drive[i].parts);
	model_parts_free(&d->parts);
	free(d->drive);
	memset(d, 0, sizeof(*d));
}

void model_domains_free(struct m_domain *domain, size_t count)
{
	for (size_t i = 0; i < count && domain; i++)
		domain_clear(&domain[i]);
	free(domain);
}

/* ---- several agents ------------------------------------------------------ */

/* "lab.n1" of the cluster lab: n1; NULL: the agent of all of it. */
static const char *node_of(const char *agent, const char *cluster)
{
	size_t n = strlen(cluster);

	return !strncmp(agent, cluster, n) && agent[n] == '.' ? agent + n + 1
							      : NULL;
}

/* While a node is there, what it says of its own domain is so, and what others
 * believe is not. */
static bool stays(const struct model *m, const struct m_domain *old,
		  const char *node)
{
	const struct m_node *n = old ? model_node(m, old->name) : NULL;

	return old && node && old->own && strcmp(old->name, node) != 0 &&
	       (!n || !strcmp(n->state, "up"));
}

static void domain_take(struct model *m, struct m_domain *d, const char *node)
{
	struct m_domain *old = model_domain(m, d->name);

	if (stays(m, old, node)) {
		domain_clear(d);
		*d = *old;
		memset(old, 0, sizeof(*old));
		return;
	}
	usage_keep(d, old);
	d->own = node && !strcmp(d->name, node);
}

static int domains_read(struct m_in *in, const json_t *list,
			struct m_domain *domain)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		int rc = part.rc ? part.rc : in_domain(&part, &domain[i]);

		if (rc)
			return rc;
	}
	return 0;
}

int model_on_cluster(struct m_state *s, const struct event_head *head,
		     struct m_in *in)
{
	struct model *m = &s->pub;
	char name[MODEL_NAME], title[MODEL_NAME];
	struct m_domain *domain = NULL;
	bool is_virtual = in_bool(in, "virtual");
	const json_t *list;
	size_t n;
	int rc;

	IN_TEXT(in, "name", name, IN_MUST);
	IN_TEXT(in, "title", title, IN_MAY);
	list = in_array(in, "domains", MODEL_DOMAINS_MAX, IN_MUST);
	if (in->rc)
		return in->rc;
	n = json_array_size(list);
	domain = calloc(n ? n : 1, sizeof(*domain));
	if (!domain)
		return -ENOMEM;
	rc = domains_read(in, list, domain);
	if (rc) {
		model_domains_free(domain, n);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		domain_take(m, &domain[i], node_of(head->a, name));
	model_domains_free(m->domain, m->domains);
	m->domain = domain;
	m->domains = n;
	memcpy(m->cluster, name, sizeof(name));
	memcpy(m->cluster_title, title, sizeof(title));
	m->cluster_virtual = is_virtual;
	return 0;
}

/* ---- usage -------------------------------------------------------------- */

static int usage_link(struct m_in *in, const struct event_head *head,
		      struct m_domain *d)
{
	double v[U_N], sum[U_N];
	int rc;

	for (size_t i = 0; i < U_N; i++)
		v[i] = NAN;
	v[U_READ_B] = in_num(in, "read_bytes_s");
	v[U_WRITE_B] = in_num(in, "write_bytes_s");
	v[U_BUSY] = in_num(in, "busy");
	if (in->rc)
		return in->rc;
	rc = model_parts_put(&d->parts, head->a, head->t_us, v, sum);
	d->link_read_bytes_s = sum[U_READ_B];
	d->link_write_bytes_s = sum[U_WRITE_B];
	d->link_busy = sum[U_BUSY];
	return rc;
}

static void usage_links(struct m_in *in, const struct event_head *head,
			struct model *m)
{
	const json_t *list = in_array(in, "links", MODEL_DOMAINS_MAX, IN_MAY);

	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		char name[MODEL_NAME];
		struct m_domain *d;

		IN_TEXT(&part, "domain", name, IN_MUST);
		d = model_domain(m, name);
		in->rc = d && !part.rc ? usage_link(&part, head, d) : part.rc;
	}
}

static int usage_drive(struct m_in *in, const struct event_head *head,
		       struct m_drive *d)
{
	double v[U_N] = {
		[U_READ] = in_num(in, "read_iops"),
		[U_WRITE] = in_num(in, "write_iops"),
		[U_READ_B] = in_num(in, "read_bytes_s"),
		[U_WRITE_B] = in_num(in, "write_bytes_s"),
		[U_BUSY] = in_num(in, "busy"),
		[U_QUEUE] = in_num(in, "queue"),
		[U_LATENCY] = in_num(in, "latency_us"),
	};
	double sum[U_N];
	int rc;

	if (in->rc)
		return in->rc;
	rc = model_parts_put(&d->parts, head->a, head->t_us, v, sum);
	d->read_iops = sum[U_READ];
	d->write_iops = sum[U_WRITE];
	d->read_bytes_s = sum[U_READ_B];
	d->write_bytes_s = sum[U_WRITE_B];
	d->busy = sum[U_BUSY];
	d->queue = sum[U_QUEUE];
	d->latency_us = sum[U_LATENCY];
	return rc;
}

static void usage_drives(struct m_in *in, const struct event_head *head,
			 struct model *m)
{
	const json_t *list =
		in_array(in, "drives",
			 (size_t)MODEL_DOMAINS_MAX * MODEL_DRIVES_MAX, IN_MAY);

	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		char domain[MODEL_NAME], drive[MODEL_NAME];
		struct m_drive *d;

		IN_TEXT(&part, "domain", domain, IN_MUST);
		IN_TEXT(&part, "drive", drive, IN_MUST);
		d = drive_find(model_domain(m, domain), drive);
		in->rc = d && !part.rc ? usage_drive(&part, head, d) : part.rc;
	}
}

int model_on_usage(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	model_host_usage(s, head, in);
	usage_links(in, head, &s->pub);
	usage_drives(in, head, &s->pub);
	return in->rc;
}
