/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the model knows of hosts, domains and drives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

/* ---- hosts -------------------------------------------------------------- */

static struct m_host *host_find(struct model *m, const char *agent)
{
	for (size_t i = 0; i < m->hosts; i++)
		if (!strcmp(m->host[i].agent, agent))
			return &m->host[i];
	return NULL;
}

int model_on_host(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	struct model *m = &s->pub;
	struct m_host h = { .usage_t_us = -1 }, *at;
	const json_t *agent;

	memcpy(h.agent, head->a, strlen(head->a) + 1);
	IN_TEXT(in, "name", h.name, IN_MUST);
	IN_TEXT(in, "kernel", h.kernel, IN_MAY);
	IN_TEXT(in, "cpu", h.cpu, IN_MAY);
	h.cores = in_int(in, "cores", 1 << 20, IN_MAY);
	h.mem_bytes = in_int(in, "mem_bytes", EVENT_INT_MAX, IN_MAY);
	agent = in_object(in, "agent", IN_MAY);
	h.pid = -1;
	if (agent) {
		struct m_in part = in_part(in, agent);

		IN_TEXT(&part, "version", h.version, IN_MAY);
		IN_TEXT(&part, "io", h.io, IN_MAY);
		h.pid = in_int(&part, "pid", INT32_MAX, IN_MAY);
		in->rc = part.rc;
	}
	if (in->rc)
		return in->rc;
	h.cpu_busy = h.cpu_steal = NAN;
	h.mem_used_bytes = -1;
	at = host_find(m, head->a);
	if (!at) {
		if (m->hosts == MODEL_HOSTS_MAX)
			return in_bad(in, "more than %d hosts",
				      MODEL_HOSTS_MAX);
		if (model_grow(&m->host, m->hosts, sizeof(h)))
			return -ENOMEM;
		at = &m->host[m->hosts++];
	}
	*at = h;
	return 0;
}

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

/*
 * A host whose CPUs are all taken makes whatever runs on it wait: layers,
 * drives that are files, the load itself. That is no figure of the target.
 */
#define HOST_FULL 0.95

static void usage_host(struct m_state *s, int64_t len_us, double busy,
		       double steal)
{
	struct m_run *run = model_run(&s->pub);
	struct m_point *p;

	if (!run || run->phase.ended || len_us < 1 || isnan(busy))
		return;
	p = model_point_find(run, run->phase.phase);
	if (!p || (p->state != POINT_RUN && strcmp(p->kind, "max") != 0))
		return;
	p->host_s += (double)len_us / 1e6;
	if (busy + (isnan(steal) ? 0 : steal) >= HOST_FULL)
		p->host_full_s += (double)len_us / 1e6;
}

int model_on_usage(struct m_state *s, const struct event_head *head,
		   struct m_in *in)
{
	int64_t len_us = in_int(in, "len_us", EVENT_INT_MAX, IN_MAY);
	struct m_host *h = host_find(&s->pub, head->a);
	double busy = in_num(in, "cpu_busy"), steal = in_num(in, "cpu_steal");
	int64_t mem = in_int(in, "mem_used_bytes", EVENT_INT_MAX, IN_MAY);

	if (!in->rc && h) {
		h->cpu_busy = busy;
		h->cpu_steal = steal;
		h->mem_used_bytes = mem;
		h->usage_t_us = head->t_us;
	}
	usage_links(in, &s->pub);
	usage_drives(in, &s->pub);
	if (!in->rc)
		usage_host(s, len_us, busy, steal);
	return in->rc;
}
