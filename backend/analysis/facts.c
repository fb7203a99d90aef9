/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a series was measured on, as a flat list of texts, and in what two of
 * them differ: a change of IOPS means little while a second thing changed too.
 *
 * All comes from the session: the hosts, the cluster and the vDisk as they were
 * when the series ran, and the plan. What was not recorded is no fact.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"

#define NAME_MAX_FACT 64
#define FACT_MAX 200

static void say(json_t *facts, const char *name, const char *fmt, ...)
	ID_PRINTF(3, 4);

static void say(json_t *facts, const char *name, const char *fmt, ...)
{
	char text[FACT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (*text)
		json_object_set_new(facts, name,
				    json_stringn_nocheck(text, strlen(text)));
}

static void say_count(json_t *facts, const char *name, int64_t v)
{
	if (v >= 0)
		say(facts, name, "%lld", (long long)v);
}

/* Exactly: two that differ by a byte do differ. */
static void say_bytes(json_t *facts, const char *name, int64_t v)
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB",
					    "TiB" };
	size_t i = 0;

	if (v < 0)
		return;
	for (; i + 1 < array_len(unit) && v && v % 1024 == 0; i++)
		v /= 1024;
	say(facts, name, "%lld %s", (long long)v, unit[i]);
}

/* ---- machine and cluster ------------------------------------------------- */

/* What its network can carry, where that is known. */
static void say_nics(json_t *facts, const struct m_host *h, const char *number)
{
	char name[NAME_MAX_FACT];

	for (size_t i = 0; i < h->nics; i++) {
		const struct m_nic *n = &h->nic[i];

		if (isnan(n->line_bytes_s))
			continue;
		snprintf(name, sizeof(name), "host%s %.15s", number, n->name);
		say(facts, name, "%.10g Mbit/s", n->line_bytes_s * 8 / 1e6);
	}
}

static void say_hosts(json_t *facts, const struct model *m)
{
	char name[NAME_MAX_FACT];

	say(facts, "iodeck version", "%s", m->version);
	say_count(facts, "hosts", (int64_t)m->hosts);
	for (size_t i = 0; i < m->hosts && i < 16; i++) {
		const struct m_host *h = &m->host[i];
		const struct {
			const char *what, *text;
		} of[] = {
			{ "name", h->name },
			{ "kernel", h->kernel },
			{ "cpu", h->cpu },
			{ "I/O", h->io },
			{ "agent", h->version },
			{ "distribution", h->distribution },
		};
		char number[16] = "";

		if (m->hosts > 1)
			snprintf(number, sizeof(number), " %zu", i + 1);
		for (size_t k = 0; k < array_len(of); k++) {
			snprintf(name, sizeof(name), "host%s %s", number,
				 of[k].what);
			say(facts, name, "%s", of[k].text);
		}
		snprintf(name, sizeof(name), "host%s cores", number);
		say_count(facts, name, h->cores);
		snprintf(name, sizeof(name), "host%s memory", number);
		say_bytes(facts, name, h->mem_bytes);
		say_nics(facts, h, number);
	}
}

static void say_limit(json_t *facts, const char *of, const char *what,
		      const char *unit, double v, double by)
{
	char name[NAME_MAX_FACT];

	snprintf(name, sizeof(name), "%s %s", of, what);
	if (isnan(v))
		say(facts, name, "no limit");
	else
		say(facts, name, "%.10g%s", v / by, unit);
}

static void say_shape(json_t *facts, const char *of, const struct m_shape *s,
		      bool differ)
{
	if (differ || !s->set) {
		say(facts, of, "%s", differ ? "not all alike" : "as it is");
		return;
	}
	say(facts, of, "modelled");
	say_limit(facts, of, "rate", " MB/s", s->rate_bytes_s, 1e6);
	say_limit(facts, of, "IOPS", "", s->rate_iops, 1);
	say_limit(facts, of, "latency", " us", s->latency_us, 1);
}

/* Kind and size of the drives, where all are alike. */
static void say_drives(json_t *facts, const struct model *m)
{
	const struct m_drive *first = NULL;
	bool kinds = true, sizes = true;

	for (size_t i = 0; i < m->domains; i++)
		for (size_t k = 0; k < m->domain[i].drives; k++) {
			const struct m_drive *d = &m->domain[i].drive[k];

			first = first ? first : d;
			kinds &= !strcmp(first->kind, d->kind);
			sizes &= first->size_bytes == d->size_bytes;
		}
	if (!first)
		return;
	say(facts, "drive kind", "%s", kinds ? first->kind : "not all alike");
	if (sizes)
		say_bytes(facts, "drive size", first->size_bytes);
	else
		say(facts, "drive size", "not all alike");
}

static void say_layout(json_t *facts, const struct m_series *se)
{
	say_count(facts, "RAID", se->raid);
	if (se->k >= 0 && se->m >= 0)
		say(facts, "data + parity", "%d+%d", se->k, se->m);
	say(facts, "layout", "%s", se->layout);
	say(facts, "compression", "%s", se->compression);
	say(facts, "policy", "%s", se->policy);
	say(facts, "vDisk state", "%s", se->vdisk_state);
	say_bytes(facts, "stripe unit", se->stripe_unit_bytes);
	say_bytes(facts, "vDisk size", se->size_bytes);
	say_count(facts, "drives used", se->drives);
	say_count(facts, "drives", se->drives_all);
	say_count(facts, "fault domains", se->domains);
	say_shape(facts, "link", &se->link, se->links_differ);
	say_shape(facts, "drive", &se->drive_shape, se->drives_differ);
}

/* ---- plan ---------------------------------------------------------------- */

/* A value of the plan, whatever it is: "read_share" of "workload". */
static void say_value(json_t *facts, const char *of, const char *key,
		      const json_t *v)
{
	char name[NAME_MAX_FACT], *text;

	snprintf(name, sizeof(name), "%s%s%.40s", of, *of ? " " : "", key);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	if (json_is_string(v)) {
		say(facts, name, "%s", json_string_value(v));
	} else if (json_is_number(v)) {
		say(facts, name, "%.10g", json_number_value(v));
	} else if (v && !json_is_null(v)) {
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY |
					     JSON_REAL_PRECISION(10));
		if (text)
			say(facts, name, "%s", text);
		free(text);
	}
}

static void say_keys(json_t *facts, const char *of, const json_t *object,
		     const char *const *keys)
{
	for (; *keys; keys++)
		say_value(facts, of, *keys, json_object_get(object, *keys));
}

static bool phase_of(const json_t *phase, const char *kind, json_int_t series)
{
	const char *k = json_string_value(json_object_get(phase, "kind"));
	const json_t *s = json_object_get(phase, "series");

	return k && !strcmp(k, kind) &&
	       (series < 0 ||
		(json_is_integer(s) && json_integer_value(s) == series));
}

/* The steps it ran at, "10 20 30". */
static void say_steps(json_t *facts, const json_t *phases, json_int_t series)
{
	char text[FACT_MAX] = "";
	size_t i, n = 0;
	const json_t *p;

	json_array_foreach(phases, i, p) {
		const json_t *v = json_object_get(p, phase_of(p, "ramp", series)
							     ? "outstanding"
							     : "percent");

		if (!phase_of(p, "point", series) &&
		    !phase_of(p, "ramp", series))
			continue;
		if (n + 24 < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%.6g", n ? " " : "",
					      json_number_value(v));
	}
	say(facts, "points", "%s", text);
}

static void say_plan(json_t *facts, const struct m_run *run, json_int_t at)
{
	static const char *const of_run[] = { "seed", "interval_ms", NULL };
	static const char *const of_point[] = { "length_us", "warmup_us",
						"schedule", "early_ci", NULL };
	static const char *const of_max[] = {
		"step_us",         "warmup_us", "outstanding_min",
		"outstanding_max", "gain",      NULL
	};
	const json_t *phases = json_object_get(run->plan, "phases"), *p;
	bool prefill = false, point = false;
	size_t i;

	say_keys(facts, "", run->plan, of_run);
	json_array_foreach(phases, i, p) {
		prefill |= phase_of(p, "prefill", -1);
		if (phase_of(p, "max", at))
			say_keys(facts, "search", p, of_max);
		if (point ||
		    (!phase_of(p, "point", at) && !phase_of(p, "ramp", at)))
			continue;
		point = true;
		say_keys(facts, "point", p, of_point);
		say_value(facts, "", "mode", json_object_get(p, "kind"));
		say(facts, "prefilled", "%s", prefill ? "yes" : "no");
	}
	say_steps(facts, phases, at);
}

static void say_workload(json_t *facts, const json_t *workload)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)workload, key, v)
		if (strcmp(key, "title") && strcmp(key, "summary"))
			say_value(facts, strcmp(key, "name") ? "workload" : "",
				  strcmp(key, "name") ? key : "workload", v);
}

static void say_faults(json_t *facts, const struct m_series *se)
{
	const char *seen = "none";

	for (size_t i = 0; i < se->points; i++)
		if (*se->point[i].marks)
			seen = se->point[i].marks;
	say(facts, "faults", "%s", seen);
}

json_t *facts_of_series(const struct model *model, const struct m_run *run,
			const struct m_series *series)
{
	json_int_t at = series - run->series;
	json_t *facts = json_object();
	const json_t *of = json_array_get(json_object_get(run->plan, "series"),
					  (size_t)at);

	if (!facts)
		return NULL;
	say(facts, "setup", "%s", series->setup);
	say_layout(facts, series);
	say_workload(facts, json_object_get(of, "workload"));
	say_plan(facts, run, at);
	say_faults(facts, series);
	say_drives(facts, model);
	say_hosts(facts, model);
	return facts;
}

/* ---- two of them --------------------------------------------------------- */

static json_t *known(const json_t *v)
{
	return v ? json_incref((json_t *)v) : json_null();
}

static void differ(json_t *list, const char *name, const json_t *a,
		   const json_t *b)
{
	json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "name", name,
					      "a", known(a), "b", known(b)));
}

json_t *facts_compare(const json_t *a, const json_t *b)
{
	json_t *list = json_array(), *v;
	json_int_t same = 0, of = 0;
	const char *key;

	if (!a || !b || !list) {
		json_decref(list);
		return NULL;
	}
	json_object_foreach((json_t *)a, key, v) {
		const json_t *other = json_object_get(b, key);

		of++;
		if (other && json_equal(v, other))
			same++;
		else
			differ(list, key, v, other);
	}
	json_object_foreach((json_t *)b, key, v)
		if (!json_object_get(a, key)) {
			of++;
			differ(list, key, NULL, v);
		}
	return json_pack("{s:o,s:I,s:I}", "differs", list, "same", same, "of",
			 of);
}

static const char *side(const json_t *d, const char *key)
{
	const char *text = json_string_value(json_object_get(d, key));

	return text ? text : "-";
}

/* As many as fit; returns how many. */
static size_t differ_text(const json_t *list, size_t width, char *out,
			  size_t size)
{
	size_t i, n = 0;
	const json_t *d;

	out[0] = '\0';
	json_array_foreach(list, i, d) {
		char one[3 * FACT_MAX];
		size_t len = (size_t)snprintf(one, sizeof(one), "%s%s %s | %s",
					      i ? ", " : "", side(d, "name"),
					      side(d, "a"), side(d, "b"));

		if (len >= sizeof(one) || n + len > width || n + len >= size)
			break;
		memcpy(out + n, one, len + 1);
		n += len;
	}
	return i;
}

const char *facts_text(const json_t *facts, size_t width, char *out,
		       size_t size)
{
	const json_t *list = json_object_get(facts, "differs");
	json_int_t same = json_integer_value(json_object_get(facts, "same"));
	json_int_t of = json_integer_value(json_object_get(facts, "of"));
	char some[1024], rest[32] = "";
	size_t all = json_array_size(list), named;

	if (!all) {
		snprintf(out, size,
			 "differs in nothing known. Same: %lld of "
			 "%lld facts.",
			 (long long)same, (long long)of);
		return out;
	}
	/* What stands around them takes the rest of the width. */
	named = differ_text(list, width > 54 ? width - 54 : 0, some,
			    sizeof(some));
	if (named < all)
		snprintf(rest, sizeof(rest), "%s%zu %s", named ? " and " : "",
			 all - named, named ? "more" : "facts");
	snprintf(out, size, "differs in: %s%s. Same: %lld of %lld other facts.",
		 some, rest, (long long)same,
		 (long long)(of - (json_int_t)named));
	return out;
}
