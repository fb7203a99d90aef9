/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/plan_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/run/conductor.h"
#include "backend/run/plan.h"
#include "backend/text.h"
#include "backend/units.h"

static double number(const json_t *object, const char *name, double unset)
{
	const json_t *j = json_object_get(object, name);

	return json_is_number(j) ? json_number_value(j) : unset;
}

static const char *string(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

static const json_t *named(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		if (!strcmp(string(item, "name"), name))
			return item;
	}
	return NULL;
}

/* ---- what is known of a vDisk
 * ------------------------------------------------- */

/* Bytes on drives for a byte of the vDisk; NAN unknown. */
static double amplification(int raid, double ftt, size_t domains)
{
	switch (raid) {
	case 0:
		return 1.0;
	case 1:
		return 1.0 + (isnan(ftt) ? 1.0 : ftt);
	case 5:
		return domains >= 6 ? 5.0 / 4.0 : 3.0 / 2.0;
	case 6:
		return 6.0 / 4.0;
	default:
		return NAN;
	}
}

static double doc_amplification(const json_t *cluster, const json_t *vdisk)
{
	const json_t *policy = vdisk;

	if (json_object_get(vdisk, "policy"))
		policy = named(json_object_get(cluster, "policies"),
			       string(vdisk, "policy"));
	return amplification(
		(int)number(policy, "raid", -1), number(policy, "ftt", NAN),
		json_array_size(json_object_get(cluster, "domains")));
}

struct sizes {
	json_t *bytes;       /* of vDisks, by name */
	json_t *drive_bytes; /* that filling them writes */
	double capacity;     /* of all drives; NAN unknown */
};

static void sizes_of_model(struct sizes *s, const struct model *m)
{
	size_t i, k;

	for (i = 0; i < m->vdisks; i++) {
		const struct m_vdisk *v = &m->vdisk[i];
		double bytes = (double)v->size_bytes, width = v->k + v->m;

		json_object_set_new(s->bytes, v->name, json_real(bytes));
		if (v->k > 0)
			json_object_set_new(s->drive_bytes, v->name,
					    json_real(bytes * width / v->k));
	}
	s->capacity = m->domains ? 0.0 : NAN;
	for (i = 0; i < m->domains; i++)
		for (k = 0; k < m->domain[i].drives; k++)
			s->capacity += m->domain[i].drive[k].size_bytes < 0
					       ? NAN
					       : (double)m->domain[i]
							 .drive[k]
							 .size_bytes;
}

static void sizes_of_cluster(struct sizes *s, const json_t *cluster)
{
	const json_t *v, *domain, *drive;
	double bytes;
	size_t i, k;

	json_array_foreach(json_object_get(cluster, "vdisks"), i, v) {
		bytes = number(v, "size_bytes", NAN);
		json_object_set_new(s->bytes, string(v, "name"),
				    json_real(bytes));
		bytes *= doc_amplification(cluster, v);
		if (!isnan(bytes))
			json_object_set_new(s->drive_bytes, string(v, "name"),
					    json_real(bytes));
	}
	s->capacity = cluster ? 0.0 : NAN;
	json_array_foreach(json_object_get(cluster, "domains"), i, domain) {
		json_array_foreach(json_object_get(domain, "drives"), k,
				   drive) {
			s->capacity += number(drive, "size_bytes", NAN);
		}
	}
}

static void sizes_fill(struct sizes *s, const struct model *model,
		       const json_t *cluster)
{
	s->bytes = json_object();
	s->drive_bytes = json_object();
	if (model->vdisks)
		sizes_of_model(s, model);
	else
		sizes_of_cluster(s, cluster);
}

static double drive_bytes(const json_t *plan, const struct sizes *s)
{
	const json_t *phase;
	double sum = 0.0;
	size_t i;

	json_array_foreach(json_object_get(plan, "phases"), i, phase) {
		if (!strcmp(string(phase, "kind"), "prefill"))
			sum += number(s->drive_bytes, string(phase, "vdisk"),
				      NAN);
	}
	return sum;
}

/* ---- figures
 * --------------------------------------------------------------------- */

struct figures {
	struct plan_cost cost;
	double drive_bytes, drive_share;
};

static void figures_fill(struct figures *f, const json_t *plan,
			 const struct model *model, const json_t *cluster)
{
	struct sizes s;

	sizes_fill(&s, model, cluster);
	plan_cost(plan, s.bytes, &f->cost, NULL);
	f->drive_bytes = drive_bytes(plan, &s);
	f->drive_share = f->drive_bytes / s.capacity;
	json_decref(s.bytes);
	json_decref(s.drive_bytes);
}

static json_t *number_json(double v)
{
	return isnan(v) || isinf(v) ? json_null() : json_real(v);
}

json_t *plan_cost_json(const json_t *plan, const struct model *model,
		       const json_t *cluster)
{
	struct figures f;

	figures_fill(&f, plan, model, cluster);
	return json_pack(
		"{s:i,s:i,s:f,s:f,s:o,s:o,s:o,s:f}", "phases", f.cost.phases,
		"points", f.cost.points, "seconds_at_least", f.cost.seconds,
		"seconds_at_most", f.cost.most_seconds, "prefill_bytes",
		number_json(f.cost.prefill_bytes), "drive_bytes",
		number_json(f.drive_bytes), "drive_share",
		number_json(f.drive_share), "write_share", f.cost.write_share);
}

/* ---- for people
 * ------------------------------------------------------------------- */

static const char *seconds(const json_t *phase, const char *name, char *buf,
			   size_t len)
{
	return units_seconds_text(number(phase, name, 0) / 1e6, buf, len);
}

static void load_text(const json_t *plan, const json_t *phase, char *buf,
		      size_t len)
{
	const json_t *series =
		json_array_get(json_object_get(plan, "series"),
			       (size_t)number(phase, "series", 0));
	char length[24], how[48], on[160];

	if (!strcmp(string(phase, "kind"), "max"))
		snprintf(how, sizeof(how), "search, steps of %s",
			 seconds(phase, "step_us", length, sizeof(length)));
	else if (!strcmp(string(phase, "kind"), "ramp"))
		snprintf(how, sizeof(how), "%.0f outstanding, %s",
			 number(phase, "outstanding", 0),
			 seconds(phase, "length_us", length, sizeof(length)));
	else
		snprintf(how, sizeof(how), "%g %%, %s",
			 number(phase, "percent", 0),
			 seconds(phase, "length_us", length, sizeof(length)));
	snprintf(buf, len, "%s on %s: %s", string(series, "name"),
		 plan_vdisks_text(series, on, sizeof(on)), how);
}

static void phase_text(const json_t *plan, const json_t *phase, char *buf,
		       size_t len)
{
	const char *kind = string(phase, "kind");
	char length[24];

	if (!strcmp(kind, "max") || !strcmp(kind, "point") ||
	    !strcmp(kind, "ramp"))
		load_text(plan, phase, buf, len);
	else if (!strcmp(kind, "prefill"))
		snprintf(buf, len, "%s, all of it", string(phase, "vdisk"));
	else if (!strcmp(kind, "wait"))
		snprintf(buf, len, "%s %s, for %s at most",
			 string(phase, "vdisk"), string(phase, "state"),
			 seconds(phase, "length_us", length, sizeof(length)));
	else if (!strcmp(kind, "rest"))
		snprintf(buf, len, "%s",
			 seconds(phase, "length_us", length, sizeof(length)));
	else if (json_object_get(phase, "text"))
		snprintf(buf, len, "%s", string(phase, "text"));
	else
		snprintf(buf, len, "%s %.4g MB/s", string(phase, "domain"),
			 number(phase, "rate_bytes_s", 0) / 1e6);
}

/* Which node loads what, and what is done about one that falls silent. */
static void nodes_text(struct text *text, const json_t *plan)
{
	const char *silent = string(plan, "silent");
	const json_t *node;
	char on[160];
	size_t i;

	json_array_foreach(json_object_get(plan, "nodes"), i, node) {
		if (!plan_vdisks(node))
			continue;
		text_add(text, "%s %-9s %s\n", i ? "    " : "node",
			 string(node, "name"),
			 plan_vdisks_text(node, on, sizeof(on)));
	}
	if (!plan_timed(plan))
		return;
	text_add(text, "silent node      %s\n\n",
		 !strcmp(silent, "wait")   ? "is waited for"
		 : !strcmp(silent, "stop") ? "ends the run"
					   : "is gone on without");
}

static void totals_text(struct text *text, const struct figures *f)
{
	char a[24], b[24], most[32] = "";

	text_add(text, "\nphases           %u, %u of them points\n",
		 f->cost.phases, f->cost.points);
	if (f->cost.most_seconds > f->cost.seconds)
		snprintf(
			most, sizeof(most), " to %s",
			units_seconds_text(f->cost.most_seconds, b, sizeof(b)));
	text_add(text, "takes            %s%s%s\n",
		 units_seconds_text(f->cost.seconds, a, sizeof(a)), most,
		 f->cost.prefill_bytes > 0 || isnan(f->cost.prefill_bytes)
			 ? ", and the prefill"
			 : "");
	text_add(text, "prefill writes   %s to vDisks, %s to drives\n",
		 units_bytes_text(f->cost.prefill_bytes, a, sizeof(a)),
		 units_bytes_text(f->drive_bytes, b, sizeof(b)));
	if (!isnan(f->drive_share))
		text_add(text, "that is          %.1f %% of the drives\n",
			 100 * f->drive_share);
	text_add(text, "points write     %.0f %% of what they move\n",
		 100 * f->cost.write_share);
}

char *plan_text(const json_t *plan, const struct model *model,
		const json_t *cluster)
{
	struct text text = { 0 };
	const json_t *phase;
	struct figures f;
	char what[256];
	size_t i;

	text_add(&text, "%s\n\n", string(plan, "title"));
	nodes_text(&text, plan);
	json_array_foreach(json_object_get(plan, "phases"), i, phase) {
		phase_text(plan, phase, what, sizeof(what));
		text_add(&text, "%4zu  %-8s %s\n", i + 1, string(phase, "kind"),
			 what);
	}
	figures_fill(&f, plan, model, cluster);
	totals_text(&text, &f);
	return text_take(&text);
}
