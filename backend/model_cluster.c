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
static void usage_keep(const struct model *m, struct m_domain *d)
{
	const struct m_domain *old = model_domain(m, d->name);

	d->link_read_bytes_s = d->link_write_bytes_s = d->link_busy = NAN;
	if (!old)
		return;
	d->link_read_bytes_s = old->link_read_bytes_s;
	d->link_write_bytes_s = old->link_write_bytes_s;
	d->link_busy = old->link_busy;
	for (size_t i = 0; i < d->drives; i++) {
		const struct m_drive *was = drive_find(old, d->drive[i].name);
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

static void domains_free(struct m_domain *domain, size_t n)
{
	for (size_t i = 0; i < n && domain; i++)
		free(domain[i].drive);
	free(domain);
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

	(void)head;
	IN_TEXT(in, "name", name, IN_MUST);
	IN_TEXT(in, "title", title, IN_MAY);
	list = in_array(in, "domains", MODEL_DOMAINS_MAX, IN_MUST);
	if (in->rc)
		return in->rc;
	n = json_array_size(list);
	domain = calloc(n ? n : 1, sizeof(*domain));
	if (!domain)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));

		rc = part.rc ? part.rc : in_domain(&part, &domain[i]);
		if (rc) {
			domains_free(domain, n);
			return rc;
		}
		usage_keep(m, &domain[i]);
	}
	domains_free(m->domain, m->domains);
	m->domain = domain;
	m->domains = n;
	memcpy(m->cluster, name, sizeof(name));
	memcpy(m->cluster_title, title, sizeof(title));
	m->cluster_virtual = is_virtual;
	return 0;
}

/* ---- usage -------------------------------------------------------------- */

static void usage_links(struct m_in *in, struct model *m)
{
	const json_t *list = in_array(in, "links", MODEL_DOMAINS_MAX, IN_MAY);

	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		char name[MODEL_NAME];
		struct m_domain *d;

		IN_TEXT(&part, "domain", name, IN_MUST);
		d = model_domain(m, name);
		if (d) {
			d->link_read_bytes_s = in_num(&part, "read_bytes_s");
			d->link_write_bytes_s = in_num(&part, "write_bytes_s");
			d->link_busy = in_num(&part, "busy");
		}
		in->rc = part.rc;
	}
}

static void usage_drives(struct m_in *in, struct model *m)
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
		if (d) {
			d->read_iops = in_num(&part, "read_iops");
			d->write_iops = in_num(&part, "write_iops");
			d->read_bytes_s = in_num(&part, "read_bytes_s");
			d->write_bytes_s = in_num(&part, "write_bytes_s");
			d->busy = in_num(&part, "busy");
			d->queue = in_num(&part, "queue");
			d->latency_us = in_num(&part, "latency_us");
		}
		in->rc = part.rc;
	}
}

int model_on_usage(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	model_host_usage(s, head, in);
	usage_links(in, &s->pub);
	usage_drives(in, &s->pub);
	return in->rc;
}
