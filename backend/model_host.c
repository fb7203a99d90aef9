/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the model knows of hosts: what they are, and how busy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

#define NICS_MAX 64
#define DISKS_MAX 128
#define WORDS_MAX 16

static struct m_nic *nic_find(const struct m_host *h, const char *name)
{
	for (size_t i = 0; h && i < h->nics; i++)
		if (!strcmp(h->nic[i].name, name))
			return &h->nic[i];
	return NULL;
}

static struct m_disk *disk_find(const struct m_host *h, const char *name)
{
	for (size_t i = 0; h && i < h->disks; i++)
		if (!strcmp(h->disk[i].name, name))
			return &h->disk[i];
	return NULL;
}

static void host_clear(struct m_host *h)
{
	free(h->nic);
	free(h->disk);
	h->nic = NULL;
	h->disk = NULL;
	h->nics = h->disks = 0;
}

void model_hosts_free(struct model *model)
{
	for (size_t i = 0; i < model->hosts; i++)
		host_clear(&model->host[i]);
	free(model->host);
}

/* ---- interfaces --------------------------------------------------------- */

static void nic_read(struct m_in *in, struct m_nic *n)
{
	IN_TEXT(in, "name", n->name, IN_MUST);
	IN_TEXT(in, "driver", n->driver, IN_MAY);
	IN_TEXT(in, "state", n->state, IN_MAY);
	IN_TEXT(in, "address", n->address, IN_MAY);
	IN_TEXT(in, "line_by", n->line_by, IN_MAY);
	n->is_virtual = in_bool(in, "virtual");
	n->mtu = in_int(in, "mtu", INT32_MAX, IN_MAY);
	n->line_bytes_s = in_num(in, "line_bytes_s");
	n->rx_bytes_s = n->tx_bytes_s = n->share = NAN;
	n->drops = n->errors = -1;
}

static int nics_read(struct m_in *in, struct m_host *h)
{
	const json_t *list = in_array(in, "nics", NICS_MAX, IN_MAY);
	const size_t n = json_array_size(list);

	if (in->rc || !n)
		return in->rc;
	h->nic = calloc(n, sizeof(*h->nic));
	if (!h->nic)
		return -ENOMEM;
	for (size_t i = 0; i < n && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));

		nic_read(&part, &h->nic[i]);
		in->rc = part.rc;
	}
	h->nics = n;
	return in->rc;
}

static void nics_usage(struct m_in *in, struct m_host *h)
{
	const json_t *list = in_array(in, "nics", NICS_MAX, IN_MAY);

	/* of one that is not spoken of nothing is known any more */
	for (size_t i = 0; h && i < h->nics; i++) {
		struct m_nic *n = &h->nic[i];

		n->rx_bytes_s = n->tx_bytes_s = n->share = NAN;
		n->drops = n->errors = -1;
	}
	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		char name[MODEL_NAME];
		struct m_nic *n;

		IN_TEXT(&part, "name", name, IN_MUST);
		n = nic_find(h, name);
		if (n) {
			n->rx_bytes_s = in_num(&part, "rx_bytes_s");
			n->tx_bytes_s = in_num(&part, "tx_bytes_s");
			n->share = in_num(&part, "share");
			n->drops =
				in_int(&part, "drops", EVENT_INT_MAX, IN_MAY);
			n->errors =
				in_int(&part, "errors", EVENT_INT_MAX, IN_MAY);
		}
		in->rc = part.rc;
	}
}

/* ---- disks -------------------------------------------------------------- */

/* "/ and 2 more", "dm-0, dm-1". */
static void words_read(struct m_in *in, const char *key, char *out, size_t size)
{
	const json_t *list = in_array(in, key, WORDS_MAX, IN_MAY);
	size_t at = 0, n = json_array_size(list);

	*out = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *raw = json_string_value(json_array_get(list, i));
		char word[MODEL_TEXT];
		size_t len;

		if (!raw) {
			in_bad(in, "\"%s\" must be a list of texts", key);
			return;
		}
		event_text(word, sizeof(word), raw);
		len = strlen(word);
		if (at + len + 2 + (i + 1 < n ? 16 : 0) >= size) {
			snprintf(out + at, size - at, "%s%zu more",
				 i ? " and " : "", n - i);
			return;
		}
		at += (size_t)snprintf(out + at, size - at, "%s%s",
				       i ? ", " : "", word);
	}
}

static void disk_usage_clear(struct m_disk *d)
{
	d->read_iops = d->write_iops = NAN;
	d->read_bytes_s = d->write_bytes_s = NAN;
	d->busy = d->queue = d->latency_us = NAN;
}

static void disk_usage_read(struct m_in *in, struct m_disk *d)
{
	d->read_iops = in_num(in, "read_iops");
	d->write_iops = in_num(in, "write_iops");
	d->read_bytes_s = in_num(in, "read_bytes_s");
	d->write_bytes_s = in_num(in, "write_bytes_s");
	d->busy = in_num(in, "busy");
	d->queue = in_num(in, "queue");
	d->latency_us = in_num(in, "latency_us");
}

static void disk_read(struct m_in *in, struct m_disk *d)
{
	const struct {
		const char *key;
		int64_t *to;
	} counts[] = {
		{ "size_bytes", &d->size_bytes },
		{ "used_percent", &d->used_percent },
		{ "spare_percent", &d->spare_percent },
		{ "temperature_c", &d->temperature_c },
		{ "warning", &d->warning },
		{ "written_bytes", &d->written_bytes },
		{ "power_on_hours", &d->power_on_hours },
		{ "media_errors", &d->media_errors },
	};

	IN_TEXT(in, "name", d->name, IN_MUST);
	IN_TEXT(in, "model", d->model, IN_MAY);
	IN_TEXT(in, "serial", d->serial, IN_MAY);
	IN_TEXT(in, "media", d->media, IN_MAY);
	IN_TEXT(in, "scheduler", d->scheduler, IN_MAY);
	IN_TEXT(in, "content", d->content, IN_MAY);
	IN_TEXT(in, "cluster", d->cluster, IN_MAY);
	words_read(in, "holders", d->holders, sizeof(d->holders));
	words_read(in, "mounts", d->mounts, sizeof(d->mounts));
	d->removable = in_bool(in, "removable");
	d->read_only = in_bool(in, "read_only");
	for (size_t k = 0; k < array_len(counts); k++)
		*counts[k].to =
			in_int(in, counts[k].key, EVENT_INT_MAX, IN_MAY);
	disk_usage_clear(d);
}

static int disks_read(struct m_in *in, struct m_host *h)
{
	const json_t *list = in_array(in, "disks", DISKS_MAX, IN_MAY);
	const size_t n = json_array_size(list);

	if (in->rc || !n)
		return in->rc;
	h->disk = calloc(n, sizeof(*h->disk));
	if (!h->disk)
		return -ENOMEM;
	for (size_t i = 0; i < n && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));

		disk_read(&part, &h->disk[i]);
		in->rc = part.rc;
	}
	h->disks = n;
	return in->rc;
}

static void disks_usage(struct m_in *in, struct m_host *h)
{
	const json_t *list = in_array(in, "disks", DISKS_MAX, IN_MAY);

	for (size_t i = 0; h && i < h->disks; i++)
		disk_usage_clear(&h->disk[i]);
	for (size_t i = 0; i < json_array_size(list) && !in->rc; i++) {
		struct m_in part = in_part(in, json_array_get(list, i));
		char name[MODEL_NAME];
		struct m_disk *d;

		IN_TEXT(&part, "name", name, IN_MUST);
		d = disk_find(h, name);
		if (d)
			disk_usage_read(&part, d);
		in->rc = part.rc;
	}
}

/* ---- host --------------------------------------------------------------- */

static void clock_read(struct m_in *in, struct m_host *h)
{
	const json_t *clock = in_object(in, "clock", IN_MAY);
	struct m_in part;

	h->clock_synced = -1;
	h->clock_error_us = -1;
	if (!clock)
		return;
	part = in_part(in, clock);
	IN_TEXT(&part, "source", h->clock_source, IN_MAY);
	if (json_is_boolean(json_object_get(clock, "synced")))
		h->clock_synced = in_bool(&part, "synced");
	h->clock_error_us = in_int(&part, "error_us", EVENT_INT_MAX, IN_MAY);
	in->rc = part.rc;
}

static void agent_read(struct m_in *in, struct m_host *h)
{
	const json_t *agent = in_object(in, "agent", IN_MAY);
	struct m_in part;

	h->pid = -1;
	if (!agent)
		return;
	part = in_part(in, agent);
	IN_TEXT(&part, "version", h->version, IN_MAY);
	IN_TEXT(&part, "io", h->io, IN_MAY);
	h->pid = in_int(&part, "pid", INT32_MAX, IN_MAY);
	in->rc = part.rc;
}

static int host_read(struct m_in *in, struct m_host *h)
{
	int rc;

	IN_TEXT(in, "name", h->name, IN_MUST);
	IN_TEXT(in, "kernel", h->kernel, IN_MAY);
	IN_TEXT(in, "distribution", h->distribution, IN_MAY);
	IN_TEXT(in, "cpu", h->cpu, IN_MAY);
	h->cores = in_int(in, "cores", 1 << 20, IN_MAY);
	h->sockets = in_int(in, "sockets", 1 << 20, IN_MAY);
	h->mem_bytes = in_int(in, "mem_bytes", EVENT_INT_MAX, IN_MAY);
	clock_read(in, h);
	agent_read(in, h);
	h->cpu_busy = h->cpu_steal = NAN;
	h->mem_used_bytes = -1;
	rc = in->rc ? in->rc : nics_read(in, h);
	return rc ? rc : disks_read(in, h);
}

/* The newest usage outlives a new description of the same host. */
static void usage_keep(struct m_host *h, const struct m_host *old)
{
	h->cpu_busy = old->cpu_busy;
	h->cpu_steal = old->cpu_steal;
	h->mem_used_bytes = old->mem_used_bytes;
	h->usage_t_us = old->usage_t_us;
	h->net = old->net;
	for (size_t i = 0; i < h->nics; i++) {
		const struct m_nic *was = nic_find(old, h->nic[i].name);
		struct m_nic *is = &h->nic[i];

		if (!was)
			continue;
		is->rx_bytes_s = was->rx_bytes_s;
		is->tx_bytes_s = was->tx_bytes_s;
		is->share = was->share;
		is->drops = was->drops;
		is->errors = was->errors;
	}
	for (size_t i = 0; i < h->disks; i++) {
		const struct m_disk *was = disk_find(old, h->disk[i].name);
		struct m_disk *is = &h->disk[i];

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

int model_on_host(struct m_state *s, const struct event_head *head,
		  struct m_in *in)
{
	struct model *m = &s->pub;
	struct m_host h = { .usage_t_us = -1, .net.point_t_us = -1 }, *at;
	int rc;

	memcpy(h.agent, head->a, strlen(head->a) + 1);
	rc = host_read(in, &h);
	at = model_host(m, head->a);
	if (!rc && !at && m->hosts == MODEL_HOSTS_MAX)
		rc = in_bad(in, "more than %d hosts", MODEL_HOSTS_MAX);
	if (!rc && !at)
		rc = model_grow(&m->host, m->hosts, sizeof(h)) ? -ENOMEM : 0;
	if (rc) {
		host_clear(&h);
		return rc;
	}
	if (at) {
		usage_keep(&h, at);
		host_clear(at);
	} else {
		at = &m->host[m->hosts++];
	}
	*at = h;
	return 0;
}

/* ---- usage -------------------------------------------------------------- */

/*
 * A host whose CPUs are all taken makes whatever runs on it wait: layers,
 * drives that are files, the load itself. That is no figure of the target.
 */
#define HOST_FULL 0.95
/* What of a line's rate is left to who sends more: frames have gaps and heads
 * that nobody counts, and a second is not full to its edge. */
#define NET_FULL 0.9

/* The point that is measured or sought now; NULL: there is none. */
static struct m_point *point_now(struct m_state *s)
{
	struct m_run *run = model_run(&s->pub);
	struct m_point *p;

	if (!run || run->phase.ended)
		return NULL;
	p = model_point_find(run, run->phase.phase);
	return p && (p->state == POINT_RUN || !strcmp(p->kind, "max")) ? p
								       : NULL;
}

static void point_cpu(struct m_point *p, double len_s, double busy,
		      double steal)
{
	if (isnan(busy))
		return;
	p->host_s += len_s;
	if (busy + (isnan(steal) ? 0 : steal) >= HOST_FULL)
		p->host_full_s += len_s;
}

static void point_net(struct m_point *p, double len_s, struct m_host *h)
{
	const struct m_nic *most = NULL;
	double share;

	for (size_t i = 0; i < h->nics; i++)
		if (!isnan(h->nic[i].share) &&
		    (!most || h->nic[i].share > most->share))
			most = &h->nic[i];
	if (!most)
		return;
	if (h->net.point_t_us != p->begun_t_us)
		memset(&h->net, 0, sizeof(h->net));
	h->net.point_t_us = p->begun_t_us;
	h->net.s += len_s;
	h->net.share_s += most->share * len_s;
	if (most->share >= NET_FULL)
		h->net.full_s += len_s;
	share = h->net.share_s / h->net.s;
	if (strcmp(p->net_agent, h->agent) != 0 && p->net_share >= share)
		return;
	p->net_share = share;
	p->net_full = h->net.full_s / h->net.s;
	snprintf(p->net_nic, sizeof(p->net_nic), "%.15s", most->name);
	memcpy(p->net_agent, h->agent, sizeof(p->net_agent));
}

void model_host_usage(struct m_state *s, const struct event_head *head,
		      struct m_in *in)
{
	const int64_t len_us = in_int(in, "len_us", EVENT_INT_MAX, IN_MAY);
	const double busy = in_num(in, "cpu_busy");
	const double steal = in_num(in, "cpu_steal");
	const int64_t mem = in_int(in, "mem_used_bytes", EVENT_INT_MAX, IN_MAY);
	struct m_host *h = model_host(&s->pub, head->a);
	struct m_point *p;

	if (!in->rc && h) {
		h->cpu_busy = busy;
		h->cpu_steal = steal;
		h->mem_used_bytes = mem;
		h->usage_t_us = head->t_us;
	}
	nics_usage(in, h);
	disks_usage(in, h);
	p = in->rc || len_us < 1 ? NULL : point_now(s);
	if (!p)
		return;
	point_cpu(p, (double)len_us / 1e6, busy, steal);
	if (h)
		point_net(p, (double)len_us / 1e6, h);
}
