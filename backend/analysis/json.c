/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The documents of --json. Names are stable: iodeck(1) lists them. */
#include <math.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"

json_t *json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* Of what is -1 when unknown. */
static json_t *count(int64_t v)
{
	return v < 0 ? json_null() : json_integer(v);
}

static json_t *text(const char *s)
{
	return *s ? json_string(s) : json_null();
}

static json_t *lat_json(const struct lat_stats *l)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "mean",
			 json_number(l->mean), "p50", json_number(l->p50),
			 "p95", json_number(l->p95), "p99", json_number(l->p99),
			 "p99_9", json_number(l->p99_9), "max",
			 json_number(l->max));
}

static json_t *set_json(const struct lat_set *s)
{
	return json_pack("{s:o,s:o,s:o}", "all", lat_json(&s->all), "read",
			 lat_json(&s->read), "write", lat_json(&s->write));
}

static json_t *written_json(const struct m_written *w)
{
	struct m_amp amp;

	model_amp(w, &amp);
	if (isnan(amp.all))
		return json_null();
	return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "all", amp.all, "log",
			 amp.log, "destage", amp.destage, "bypass", amp.bypass,
			 "clean", amp.clean, "rebuild", amp.rebuild,
			 "checkpoint", amp.checkpoint);
}

static json_t *point_figures(const struct m_point *p)
{
	struct point_stats st;

	point_stats(p, &st);
	return json_pack(
		"{s:s,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:b,s:b,s:b,s:I,"
		"s:o,"
		"s:o,s:o,s:o,s:f,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:b,s:o,s:o,s:o}",
		"kind", p->kind, "phase", p->phase, "point", p->point,
		"percent", json_number(st.percent), "asked_iops",
		json_number(st.asked_iops), "iops", json_number(st.iops),
		"read_iops", json_number(st.read_iops), "write_iops",
		json_number(st.write_iops), "mb_s", json_number(st.mb_s),
		"saturated", st.saturated, "generator_bound",
		st.generator_bound, "host_bound", st.host_bound, "partial",
		st.partial, "steady", st.steady, "errors",
		(json_int_t)st.errors, "outstanding", count(st.outstanding),
		"backlog", count(p->backlog), "iops_ci",
		json_number(st.iops_ci), "latency_ci",
		json_number(st.latency_ci), "measured_s", st.measured_s,
		"marks", text(p->marks), "latency_us", set_json(&st.latency),
		"response_us", set_json(&st.response), "degraded", p->degraded,
		"rebuilding", p->rebuilding, "write_amplification",
		written_json(&p->written), "compression_ratio",
		json_number(written_ratio(&p->written)), "net_bound",
		st.net_bound, "net_share", json_number(st.net_share), "net_nic",
		text(p->net_nic), "net_agent", text(p->net_agent));
}

/* Of a run over nodes what it lacks of them, and how exactly they began. */
static json_t *point_json(const struct m_run *run, const struct m_point *p)
{
	json_t *j = point_figures(p);
	char lacks[MODEL_TEXT];

	if (!j || !run->nodes)
		return j;
	model_silent_text(run, p, lacks, sizeof(lacks));
	json_object_set_new(j, "silent", text(lacks));
	json_object_set_new(j, "missing", json_integer(p->missing));
	json_object_set_new(j, "skew_us", count(p->skew_us));
	json_object_set_new(j, "skew_err_us", count(p->skew_err_us));
	return j;
}

static json_t *nodes_json(const struct m_run *run)
{
	json_t *list = json_array();

	for (size_t i = 0; i < run->nodes; i++)
		json_array_append_new(list, json_string(run->node[i].name));
	return list;
}

static json_t *reading_json(const struct reading *r, double full)
{
	return json_pack("{s:o,s:o,s:b,s:o}", "iops", json_number(r->iops),
			 "latency_us", json_number(r->latency_us),
			 "interpolated", r->interpolated, "share",
			 json_number(r->iops / full));
}

static json_t *summary_json(const struct series_summary *s)
{
	return json_pack(
		"{s:o,s:o,s:b,s:o,s:o,s:{s:f,s:o,s:b,s:b},s:o}", "peak_iops",
		json_number(s->peak_iops), "peak_latency_us",
		json_number(s->peak_latency_us), "peak_open", s->peak_open,
		"at_70", reading_json(&s->at_70, s->full_iops), "at_80",
		reading_json(&s->at_80, s->full_iops), "max_iops_under",
		"bound_us", s->bound_us, "iops", json_number(s->under.iops),
		"interpolated", s->under.interpolated, "open", s->under_open,
		"drop_off", json_number(s->drop_off));
}

static json_t *series_json(const struct m_run *run, const struct m_series *se,
			   double bound_us)
{
	json_t *points = json_array();
	struct series_summary sum;
	struct m_written written;
	struct curve curve;

	for (size_t i = 0; i < se->points; i++)
		if (strcmp(se->point[i].kind, "max"))
			json_array_append_new(points,
					      point_json(run, &se->point[i]));
	if (curve_of_series(se, &curve)) {
		json_decref(points);
		return NULL;
	}
	curve_summary(&curve, bound_us, &sum);
	written = curve.written;
	curve_fini(&curve);
	return json_pack(
		"{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,"
		"s:o,s:b,s:o,s:o,s:o,s:o}",
		"name", se->name, "vdisk", text(se->vdisk), "raid",
		count(se->raid), "data", count(se->k), "parity", count(se->m),
		"drives", count(se->drives), "drives_all",
		count(se->drives_all), "setup", text(se->setup), "workload",
		text(se->workload), "workload_title", text(se->workload_title),
		"max_iops", json_number(se->max_iops), "max_outstanding",
		count(se->max_outstanding), "points", points, "summary",
		summary_json(&sum), "max_bound", series_max_bound(se), "layout",
		text(se->layout), "compression", text(se->compression),
		"write_amplification", written_json(&written),
		"compression_ratio", json_number(written_ratio(&written)));
}

json_t *analysis_run_json(const struct m_run *run, double bound_us)
{
	json_t *series = json_array();

	for (size_t i = 0; i < run->series_count; i++)
		json_array_append_new(
			series, series_json(run, &run->series[i], bound_us));
	return json_pack("{s:s,s:o,s:o,s:s,s:b,s:o,s:o,s:o,s:o}", "run",
			 run->id, "nodes", nodes_json(run), "title",
			 text(run->title), "state", run->state, "unfinished",
			 !model_run_over(run), "reason", text(run->reason),
			 "begun_us", count(run->begun_t_us), "ended_us",
			 count(run->ended_t_us), "series", series);
}

json_t *analysis_compare_json(const struct curve *a, const struct curve *b,
			      double bound_us)
{
	struct compared list[READINGS];
	json_t *readings = json_array();
	json_t *facts = facts_compare(a->facts, b->facts);

	curves_compare(a, b, bound_us, list);
	for (int i = 0; i < READINGS; i++) {
		const struct compared *c = &list[i];

		json_array_append_new(
			readings,
			json_pack(
				"{s:s,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o}", "name",
				c->name, "a", json_number(c->a), "b",
				json_number(c->b), "a_ci", json_number(c->a_ci),
				"b_ci", json_number(c->b_ci), "change_percent",
				json_number(c->change_percent),
				"a_interpolated", c->a_interpolated,
				"b_interpolated", c->b_interpolated, "verdict",
				text(c->verdict ? c->verdict : "")));
	}
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:f,s:o,s:o}", "a", a->name,
			 "b", b->name, "a_layout", text(a->layout), "b_layout",
			 text(b->layout), "a_write_amplification",
			 written_json(&a->written), "b_write_amplification",
			 written_json(&b->written), "bound_us", bound_us,
			 "readings", readings, "facts",
			 facts ? facts : json_null());
}
