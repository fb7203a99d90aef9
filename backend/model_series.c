/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a series is: by the plan, and by what it ran on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"
#include "backend/run/plan.h"

/* ---- what a series runs on ----------------------------------------------
 */

static bool shape_same(const struct m_shape *a, const struct m_shape *b)
{
	const double x[] = { a->rate_bytes_s, a->rate_iops, a->latency_us };
	const double y[] = { b->rate_bytes_s, b->rate_iops, b->latency_us };

	for (int i = 0; i < 3 && a->set; i++)
		if (isnan(x[i]) != isnan(y[i]) ||
		    (!isnan(x[i]) && x[i] != y[i]))
			return false;
	return a->set == b->set;
}

static void series_shapes(const struct model *m, struct m_series *se)
{
	const struct m_shape *drive = NULL;

	se->domains = (int)m->domains;
	se->links_differ = se->drives_differ = false;
	se->link = se->drive_shape = (struct m_shape) { 0 };
	for (size_t i = 0; i < m->domains; i++) {
		const struct m_domain *d = &m->domain[i];

		se->links_differ |= !shape_same(&m->domain[0].link, &d->link);
		for (size_t k = 0; k < d->drives; k++) {
			drive = drive ? drive : &d->drive[k].shape;
			se->drives_differ |=
				!shape_same(drive, &d->drive[k].shape);
		}
	}
	if (m->domains && !se->links_differ)
		se->link = m->domain[0].link;
	if (drive && !se->drives_differ)
		se->drive_shape = *drive;
}

/*
 * Curves of vDisks on two and on six drives lie in one chart: each says on how
 * many it was measured.
 */
void model_series_layout(const struct model *m, struct m_series *se)
{
	const struct m_vdisk *v = model_vdisk(m, se->vdisk);
	int all = 0, used = 0;

	series_shapes(m, se);
	for (size_t i = 0; i < m->domains; i++)
		all += (int)m->domain[i].drives;
	if (!v)
		return;
	for (size_t i = 0; i < v->members; i++)
		used += !strcmp(v->member[i].role, "data");
	memcpy(se->policy, v->policy, sizeof(se->policy));
	memcpy(se->vdisk_state, v->state, sizeof(se->vdisk_state));
	memcpy(se->layout, v->layout, sizeof(se->layout));
	memcpy(se->compression, v->compression, sizeof(se->compression));
	se->stripe_unit_bytes = v->stripe_unit_bytes;
	se->size_bytes = v->size_bytes;
	se->raid = v->raid;
	se->k = v->k;
	se->m = v->m;
	se->drives = used ? used : -1;
	se->drives_all = all ? all : -1;
}

static void plan_text(const json_t *o, const char *key, char *out, size_t size)
{
	event_text(out, size, json_string_value(json_object_get(o, key)));
}

/* The first stands for all where one must: they are alike or should be. */
static void series_vdisks(struct m_series *se, const json_t *o)
{
	const char *first = plan_vdisk(o, 0);
	char text[sizeof(se->vdisks_text)];

	event_text(se->vdisk, sizeof(se->vdisk), first ? first : "");
	event_text(se->vdisks_text, sizeof(se->vdisks_text),
		   plan_vdisks_text(o, text, sizeof(text)));
	se->vdisks = (int)plan_vdisks(o);
}

int model_series_make(struct m_run *run)
{
	const json_t *list = json_object_get(run->plan, "series");
	size_t n = json_array_size(list);

	if (!n)
		return 0;
	run->series = calloc(n, sizeof(*run->series));
	if (!run->series)
		return -ENOMEM;
	run->series_count = n;
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		const json_t *w = json_object_get(o, "workload");
		struct m_series *se = &run->series[i];

		plan_text(o, "name", se->name, sizeof(se->name));
		series_vdisks(se, o);
		plan_text(o, "setup", se->setup, sizeof(se->setup));
		plan_text(w, "name", se->workload, sizeof(se->workload));
		plan_text(w, "title", se->workload_title,
			  sizeof(se->workload_title));
		se->max_iops = NAN;
		se->max_outstanding = -1;
		se->raid = se->k = se->m = se->drives = se->drives_all = -1;
		se->stripe_unit_bytes = se->size_bytes = -1;
	}
	return 0;
}
