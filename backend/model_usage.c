/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What several agents do to one drive or link: each measures its own I/O, and
 * what the thing bears is the sum. Who has not spoken for a while counts no
 * more.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/model_priv.h"

#define PART_OLD_US 5000000

struct m_part {
	char agent[MODEL_NAME];
	int64_t t_us;
	double v[U_N];
};

void model_parts_free(struct m_parts *parts)
{
	free(parts->at);
	*parts = (struct m_parts) { 0 };
}

static struct m_part *part_of(struct m_parts *parts, const char *agent)
{
	struct m_part *p;

	for (size_t i = 0; i < parts->count; i++)
		if (!strcmp(parts->at[i].agent, agent))
			return &parts->at[i];
	if (parts->count == MODEL_HOSTS_MAX ||
	    model_grow(&parts->at, parts->count, sizeof(*p)))
		return NULL;
	p = &parts->at[parts->count++];
	snprintf(p->agent, sizeof(p->agent), "%s", agent);
	return p;
}

static void add(double *sum, double v)
{
	if (!isnan(v))
		*sum = isnan(*sum) ? v : *sum + v;
}

/* Of what several say, by how many I/Os each says it. */
static void latency_add(double sum[U_N], double *ops, const double v[U_N])
{
	double n = (isnan(v[U_READ]) ? 0 : v[U_READ]) +
		   (isnan(v[U_WRITE]) ? 0 : v[U_WRITE]);

	if (isnan(v[U_LATENCY]))
		return;
	if (isnan(sum[U_LATENCY]) || *ops + n <= 0)
		sum[U_LATENCY] = v[U_LATENCY];
	else
		sum[U_LATENCY] =
			(sum[U_LATENCY] * *ops + v[U_LATENCY] * n) / (*ops + n);
	*ops += n;
}

int model_parts_put(struct m_parts *parts, const char *agent, int64_t t_us,
		    const double v[U_N], double sum[U_N])
{
	struct m_part *own = part_of(parts, agent);
	double ops = 0;

	memcpy(sum, v, U_N * sizeof(*sum));
	if (!own)
		return parts->count == MODEL_HOSTS_MAX ? 0 : -ENOMEM;
	own->t_us = t_us;
	memcpy(own->v, v, sizeof(own->v));
	for (size_t k = 0; k < U_N; k++)
		sum[k] = NAN;
	for (size_t i = 0; i < parts->count; i++) {
		const struct m_part *p = &parts->at[i];

		if (p->t_us < t_us - PART_OLD_US)
			continue;
		for (size_t k = 0; k < U_LATENCY; k++)
			add(&sum[k], p->v[k]);
		latency_add(sum, &ops, p->v);
	}
	if (sum[U_BUSY] > 1)
		sum[U_BUSY] = 1;
	return 0;
}
