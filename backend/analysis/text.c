/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same figures as tables for people, within 80 columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"
#include "backend/units.h"

/* ---- figures ------------------------------------------------------------ */

const char *figure_count(double v, char *out, size_t size)
{
	char plain[32];
	size_t len, o = 0;

	if (!isfinite(v) || fabs(v) >= 1e15) {
		snprintf(out, size, "-");
		return out;
	}
	snprintf(plain, sizeof(plain), "%.0f", v);
	len = strlen(plain);
	for (size_t i = 0; i < len && o + 2 < size; i++) {
		if (i && (len - i) % 3 == 0 && plain[i - 1] != '-')
			out[o++] = ',';
		out[o++] = plain[i];
	}
	out[o] = '\0';
	return out;
}

const char *figure_three(double v, char *out, size_t size)
{
	return units_three_text(v, out, size);
}

/* A share as percent, with one digit behind the point below ten. */
static const char *figure_percent(double share, char *out, size_t size)
{
	double v = share * 100;

	if (!isfinite(v))
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%.*f", fabs(v) < 9.95 ? 1 : 0, v);
	return out;
}

/* ---- what a series runs on ----------------------------------------------
 */

/* ", log, lz4"; ", in place"; "" where it was not told. */
static void layout_words(const struct m_series *se, char *out, size_t size)
{
	const bool packs =
		*se->compression && strcmp(se->compression, "none") != 0;

	snprintf(out, size, "%s%s%s%s", *se->layout ? ", " : "",
		 strcmp(se->layout, "inplace") ? se->layout : "in place",
		 packs ? ", " : "", packs ? se->compression : "");
}

const char *series_layout_text(const struct m_series *se, char *out,
			       size_t size)
{
	char what[48] = "", of[24] = "", how[32];

	if (se->raid == 1 && se->drives > 0)
		snprintf(what, sizeof(what), "RAID-1, %d copies",
			 se->m >= 0 ? se->m + 1 : se->drives);
	else if (se->raid >= 0 && se->m > 0)
		snprintf(what, sizeof(what), "RAID-%d %d+%d", se->raid, se->k,
			 se->m);
	else if (se->raid >= 0)
		snprintf(what, sizeof(what), "RAID-%d", se->raid);
	if (se->drives_all > 0)
		snprintf(of, sizeof(of), " of %d", se->drives_all);
	layout_words(se, how, sizeof(how));
	if (se->drives > 0)
		snprintf(out, size, "%s on %d%s drive%s%s", what, se->drives,
			 of, se->drives == 1 && !*of ? "" : "s", how);
	else
		snprintf(out, size, "%s%s", what, how);
	return out;
}

/* ---- what it writes ------------------------------------------------------ */

double written_ratio(const struct m_written *w)
{
	return w->user > 0 && w->stored > 0
		       ? (double)w->user / (double)w->stored
		       : NAN;
}

static size_t cause(char *out, size_t size, size_t at, const char *name,
		    double amp)
{
	if (at < size && amp >= 0.005)
		at += (size_t)snprintf(out + at, size - at, "%s %s %.2f",
				       out[at - 1] == ':' ? "" : ",", name,
				       amp);
	return at;
}

const char *written_text(const struct m_written *w, char *out, size_t size)
{
	const double ratio = written_ratio(w);
	struct m_amp amp;
	size_t at;

	out[0] = '\0';
	model_amp(w, &amp);
	if (isnan(amp.all))
		return out;
	at = (size_t)snprintf(out, size, "write amplification %.2f:", amp.all);
	at = cause(out, size, at, "log", amp.log);
	at = cause(out, size, at, "stripes", amp.destage + amp.bypass);
	at = cause(out, size, at, "cleaning", amp.clean);
	at = cause(out, size, at, "rebuild", amp.rebuild);
	at = cause(out, size, at, "checkpoints", amp.checkpoint);
	if (at < size && !isnan(ratio))
		snprintf(out + at, size - at, "; compression %.2f:1", ratio);
	return out;
}

/* ---- a run -------------------------------------------------------------- */

static void points_head(FILE *f)
{
	fprintf(f, "%5s %10s %10s %5s %8s %7s %7s %7s %7s\n", "load", "asked",
		"IOPS", "+-%", "MB/s", "mean ms", "p50", "p99", "p99.9");
}

#define FLAGS 12 /* letters behind a point, and their end */

/* "50 %" of a curve, "x16" of a ramp. */
static void load_text(const struct m_point *p, char *out, size_t size)
{
	if (isnan(p->percent))
		snprintf(out, size, "x%lld", (long long)p->outstanding);
	else
		snprintf(out, size, "%.0f %%", p->percent);
}

static bool point_lacks(const struct m_point *p)
{
	return p->node_out || p->missing;
}

static void point_row(FILE *f, const struct m_point *p, char *flags)
{
	char t[9][32];
	struct point_stats st;
	const struct lat_stats *l = &st.latency.all;

	point_stats(p, &st);
	load_text(p, t[0], sizeof(t[0]));
	flags[0] = st.saturated ? 's' : '\0';
	flags[1] = '\0';
	if (st.generator_bound)
		strcat(flags, "g");
	if (st.host_bound)
		strcat(flags, "h");
	if (st.net_bound)
		strcat(flags, "n");
	if (st.partial)
		strcat(flags, "c");
	if (*p->marks)
		strcat(flags, "f");
	if (p->degraded)
		strcat(flags, "d");
	if (p->rebuilding)
		strcat(flags, "r");
	if (st.errors)
		strcat(flags, "e");
	if (point_lacks(p))
		strcat(flags, "m");
	fprintf(f, "%5s %10s %10s %5s %8s %7s %7s %7s %7s%s%s\n", t[0],
		figure_count(st.asked_iops, t[1], sizeof(t[1])),
		figure_count(st.iops, t[2], sizeof(t[2])),
		figure_percent(st.iops_ci, t[3], sizeof(t[3])),
		figure_three(st.mb_s, t[4], sizeof(t[4])),
		figure_three(l->mean / 1000, t[5], sizeof(t[5])),
		figure_three(l->p50 / 1000, t[6], sizeof(t[6])),
		figure_three(l->p99 / 1000, t[7], sizeof(t[7])),
		figure_three(l->p99_9 / 1000, t[8], sizeof(t[8])),
		*flags ? " " : "", flags);
}

static void flags_explain(FILE *f, const char *seen)
{
	static const struct {
		char c;
		const char *what;
	} flag[] = {
		{ 's', "saturated: achieved less than 98 % of what was due" },
		{ 'g', "the load generator itself was the bound" },
		{ 'h', "this host's CPU was full: latencies hold the wait "
		       "for it" },
		{ 'n', "an interface of a node was at its line rate" },
		{ 'c', "cut short or still running" },
		{ 'f', "a fault fell into it" },
		{ 'd', "its vDisk was degraded" },
		{ 'r', "its vDisk was being rebuilt" },
		{ 'e', "I/O errors" },
		{ 'm', "a node is missing in it: below" },
	};

	for (size_t i = 0; i < array_len(flag); i++)
		if (strchr(seen, flag[i].c))
			fprintf(f, "      %c %s\n", flag[i].c, flag[i].what);
}

static void reading_row(FILE *f, const char *name, const struct reading *r,
			const char *note)
{
	char t[2][32];

	fprintf(f, "  %-18s %10s IOPS  %7s ms%s%s\n", name,
		figure_count(r->iops, t[0], sizeof(t[0])),
		figure_three(r->latency_us / 1000, t[1], sizeof(t[1])),
		r->interpolated ? "  interpolated" : "", note);
}

/* A measured point that stands for a share says where it really lies. */
static void share_row(FILE *f, const struct series_summary *s, int percent,
		      const struct reading *r)
{
	double share = r->iops / s->full_iops * 100;
	char name[40], note[32] = "";

	snprintf(name, sizeof(name), "at %d %% of %s", percent,
		 s->peak_open ? "maximum" : "peak");
	if (fabs(share - percent) >= 1)
		snprintf(note, sizeof(note), "  is at %.0f %%", share);
	reading_row(f, name, r, note);
}

static void summary_rows(FILE *f, const struct series_summary *s)
{
	const struct reading peak = { .iops = s->peak_iops,
				      .latency_us = s->peak_latency_us };
	char name[32], t[32];

	if (s->peak_open)
		reading_row(f, "most measured", &peak,
			    "  no peak: never asked for all");
	else
		reading_row(f, "peak", &peak, "");
	share_row(f, s, 80, &s->at_80);
	share_row(f, s, 70, &s->at_70);
	snprintf(name, sizeof(name), "under %g ms", s->bound_us / 1000);
	reading_row(f, name, &s->under,
		    s->under_open && !isnan(s->under.iops)
			    ? "  at least: no point is above"
			    : "");
	if (s->drop_off > 0)
		fprintf(f, "  drop-off behind the peak: %s %%\n",
			figure_percent(s->drop_off, t, sizeof(t)));
}

static const char *figure_amp(double v, char *out, size_t size)
{
	if (isnan(v))
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%.2f", v);
	return out;
}

static void written_row(FILE *f, const char *load, const struct m_written *w)
{
	struct m_amp amp;
	char t[7][16];

	model_amp(w, &amp);
	fprintf(f, "  %9s %8s %8s %8s %8s %8s %8s %8s\n", load,
		figure_amp(amp.all, t[0], sizeof(t[0])),
		figure_amp(amp.log, t[1], sizeof(t[1])),
		figure_amp(amp.destage + amp.bypass, t[2], sizeof(t[2])),
		figure_amp(amp.clean, t[3], sizeof(t[3])),
		figure_amp(amp.rebuild, t[4], sizeof(t[4])),
		figure_amp(amp.checkpoint, t[5], sizeof(t[5])),
		figure_amp(written_ratio(w), t[6], sizeof(t[6])));
}

/* Bytes to drives for a byte that the load wrote, by cause: a row a point, of
 * those in which something was written. */
static void written_rows(FILE *f, const struct m_series *se,
			 const struct m_written *mean)
{
	char load[24];

	if (mean->user <= 0)
		return;
	fprintf(f, "  bytes to drives for a byte written\n");
	fprintf(f, "  %9s %8s %8s %8s %8s %8s %8s %8s\n", "load", "all", "log",
		"stripes", "cleaning", "rebuild", "checkpt", "compr.");
	for (size_t i = 0; i < se->points; i++) {
		const struct m_point *p = &se->point[i];

		if (!strcmp(p->kind, "max") || p->written.user <= 0)
			continue;
		load_text(p, load, sizeof(load));
		written_row(f, load, &p->written);
	}
	written_row(f, "mean", mean);
}

/* What points lack of their nodes, and how exactly all began together. */
static void nodes_rows(FILE *f, const struct m_run *run,
		       const struct m_series *se)
{
	char load[24], lacks[MODEL_TEXT];
	int64_t skew = -1, err = -1;

	for (size_t i = 0; i < se->points; i++) {
		const struct m_point *p = &se->point[i];

		if (!strcmp(p->kind, "max"))
			continue;
		skew = p->skew_us > skew ? p->skew_us : skew;
		err = p->skew_err_us > err ? p->skew_err_us : err;
		load_text(p, load, sizeof(load));
		if (*model_silent_text(run, p, lacks, sizeof(lacks)))
			fprintf(f, "  %9s %s\n", load, lacks);
	}
	if (skew >= 0)
		fprintf(f, "  begun within %.2f ms of the agreed moments",
			(double)skew / 1000);
	if (skew >= 0 && err >= 0)
		fprintf(f, ", clocks known to %.2f ms", (double)err / 1000);
	if (skew >= 0)
		fprintf(f, "\n");
}

static int series_text(FILE *f, const struct m_run *run,
		       const struct m_series *se, double bound_us)
{
	struct series_summary sum;
	struct curve curve;
	char seen[FLAGS] = "", flags[FLAGS], layout[96];
	size_t kinds = 0;
	size_t rows = 0;

	fprintf(f, "%s", se->name);
	if (*se->workload_title)
		fprintf(f, ": %s", se->workload_title);
	if (*se->vdisk)
		fprintf(f, " on %s", se->vdisks_text);
	if (*se->setup)
		fprintf(f, ", %s", se->setup);
	fprintf(f, "; service time\n");
	if (*series_layout_text(se, layout, sizeof(layout)))
		fprintf(f, "  %s\n", layout);
	if (series_max_bound(se))
		fprintf(f, "  its maximum was sought on a full host: it may do "
			   "more\n");
	for (size_t i = 0; i < se->points; i++) {
		if (!strcmp(se->point[i].kind, "max"))
			continue;
		if (!rows++)
			points_head(f);
		point_row(f, &se->point[i], flags);
		for (const char *c = flags; *c; c++)
			if (!strchr(seen, *c) && kinds + 1 < sizeof(seen))
				seen[kinds++] = *c;
	}
	if (!rows) {
		fprintf(f, "  no point was measured\n");
		return 0;
	}
	flags_explain(f, seen);
	nodes_rows(f, run, se);
	if (curve_of_series(se, &curve))
		return -ENOMEM;
	curve_summary(&curve, bound_us, &sum);
	summary_rows(f, &sum);
	written_rows(f, se, &curve.written);
	curve_fini(&curve);
	return 0;
}

int analysis_run_text(const struct m_run *run, double bound_us, char **text)
{
	size_t len;
	FILE *f;
	int rc = 0;

	*text = NULL;
	f = open_memstream(text, &len);
	if (!f)
		return -ENOMEM;
	fprintf(f, "%s: %s%s%s\n", *run->title ? run->title : run->id,
		run->state, *run->reason ? ": " : "", run->reason);
	for (size_t i = 0; i < run->nodes; i++)
		fprintf(f, "%s%s%s", i ? ", " : "on ", run->node[i].name,
			i + 1 == run->nodes ? "\n" : "");
	for (size_t i = 0; i < run->series_count && !rc; i++) {
		fprintf(f, "\n");
		rc = series_text(f, run, &run->series[i], bound_us);
	}
	if (fclose(f) && !rc)
		rc = -ENOMEM;
	if (rc) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

/* ---- a comparison ------------------------------------------------------- */

static const char *value(const struct compared *c, double v, bool interpolated,
			 char *out, size_t size)
{
	char t[32];
	bool ms = strstr(c->name, "(ms)");

	snprintf(out, size, "%s%s%s",
		 ms ? figure_three(v, t, sizeof(t))
		    : figure_count(v, t, sizeof(t)),
		 ms && isfinite(v) ? " ms" : "", interpolated ? "*" : " ");
	return out;
}

static void compared_row(FILE *f, const struct compared *c)
{
	char t[3][48], name[32];
	char *unit;

	snprintf(name, sizeof(name), "%.31s", c->name);
	unit = strstr(name, " (ms)");
	if (unit)
		*unit = '\0';
	if (isfinite(c->change_percent) && fabs(c->change_percent) < 1e6)
		snprintf(t[2], sizeof(t[2]), "%+.0f %%", c->change_percent);
	else
		snprintf(t[2], sizeof(t[2]), "-");
	fprintf(f, " %-18s %14s %14s %9s   %s\n", name,
		value(c, c->a, c->a_interpolated, t[0], sizeof(t[0])),
		value(c, c->b, c->b_interpolated, t[1], sizeof(t[1])), t[2],
		c->verdict ? c->verdict : "-");
}

static void compared_head(FILE *f, char letter, const struct curve *c)
{
	char written[160];

	fprintf(f, " %c  %s\n", letter, c->name);
	if (*c->layout)
		fprintf(f, "    %s\n", c->layout);
	if (*written_text(&c->written, written, sizeof(written)))
		fprintf(f, "    %s\n", written);
}

static void compared_facts(FILE *f, const struct curve *a,
			   const struct curve *b)
{
	json_t *facts = facts_compare(a->facts, b->facts);
	char text[2048];

	if (facts)
		fprintf(f, "\n %s\n",
			facts_text(facts, SIZE_MAX, text, sizeof(text)));
	json_decref(facts);
}

int analysis_compare_text(const struct curve *a, const struct curve *b,
			  double bound_us, char **text)
{
	struct compared list[READINGS];
	bool any = false, blind = true;
	size_t len;
	FILE *f;

	*text = NULL;
	f = open_memstream(text, &len);
	if (!f)
		return -ENOMEM;
	curves_compare(a, b, bound_us, list);
	compared_head(f, 'a', a);
	compared_head(f, 'b', b);
	fprintf(f, "\n");
	fprintf(f, " %-18s %13s  %13s  %9s   %s\n", "", "a", "b", "change",
		"verdict");
	for (int i = 0; i < READINGS; i++) {
		compared_row(f, &list[i]);
		any |= list[i].a_interpolated || list[i].b_interpolated;
		blind &= !list[i].verdict;
	}
	if (any)
		fprintf(f, "\n * interpolated between measured points\n");
	if (blind)
		fprintf(f,
			"%s no verdict: the intervals of a or b are not "
			"known\n",
			any ? "" : "\n");
	compared_facts(f, a, b);
	if (fclose(f)) {
		free(*text);
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}
