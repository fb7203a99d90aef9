/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "engine/rng.h"

static const struct {
	const char *name, *vdisk, *policy;
	int raid, ftt, k, m, members;
	double max_iops, base_us;
	int depth;
} kinds[] = {
	{ "RAID-1", "db1", "fast", 1, 1, 1, 1, 3, 48000, 350, 64 },
	{ "RAID-5", "db2", "thin", 5, 1, 4, 1, 5, 36000, 480, 64 },
	{ "RAID-6", "db3", "gold", 6, 2, 4, 2, 6, 28000, 560, 64 },
};

struct synth {
	const struct synth_opts *o;
	struct rng rng;
	struct event_stamp agent, console;
	int64_t t_us;
	int (*emit)(const json_t *event, void *arg);
	void *arg;
	int rc, events, phase;
	bool pulled;
	/* of the vDisk that is measured: bytes and blocks since it was opened
	 */
	double user, stored, log, destage, clean, rebuild, checkpoint, mapped;
};

#define LIMIT_REACHED 1 /* as rc: enough, not wrong */
#define RUN_ID "20260302-084003"

double synth_max_iops(int series)
{
	return kinds[series].max_iops;
}

/* Flat, then steep: a queue that fills. */
double synth_latency_us(int series, double share)
{
	return kinds[series].base_us *
	       (1 + 0.4 * pow(share, 3) + 2.4 * pow(share, 14));
}

void synth_defaults(struct synth_opts *opts)
{
	*opts = (struct synth_opts) {
		.seed = 1,
		.begin_t_us = 1772440800000000,
		.series = 3,
		.points = 10,
		.warm = 2,
		.secs = 6,
		.fault = true,
		.close = true,
	};
}

/* Takes the body. */
static void emit(struct synth *s, struct event_stamp *who, const char *e,
		 json_t *body)
{
	id_assert(body);
	if (!s->rc && (!s->o->limit || s->events < s->o->limit)) {
		s->rc = event_stamp(who, e, s->t_us, body);
		if (!s->rc)
			s->rc = s->emit(body, s->arg);
		s->events++;
		if (!s->rc && s->events == s->o->limit)
			s->rc = LIMIT_REACHED;
	}
	json_decref(body);
}

/* ---- cluster ------------------------------------------------------------ */

static void emit_cluster(struct synth *s)
{
	json_t *domains = json_array();

	for (int d = 1; d <= 6; d++) {
		json_t *drives = json_array();

		for (int k = 0; k < 2; k++) {
			bool gone = s->pulled && d == 4 && k == 1;
			char name[16], path[64];
			json_t *j;

			snprintf(name, sizeof(name), "d%d", k);
			snprintf(path, sizeof(path),
				 "/var/lib/iodeck/demo/n%d/d%d", d, k);
			j = json_pack("{s:s,s:s,s:s,s:I,s:I,s:s,s:{s:f,s:f,"
				      "s:f}}",
				      "name", name, "path", path, "kind",
				      "directory", "size_bytes",
				      (json_int_t)(4ull * GIB), "free_bytes",
				      (json_int_t)(2ull * GIB), "state",
				      gone ? "offline" : "ok", "shape",
				      "rate_bytes_s", 1.6e9, "rate_iops", 36e3,
				      "latency_us", 90.0);
			if (gone)
				json_object_set_new(
					j, "reason",
					json_string("pulled by the operator"));
			json_array_append_new(drives, j);
		}
		{
			char name[16];

			snprintf(name, sizeof(name), "n%d", d);
			json_array_append_new(
				domains,
				json_pack("{s:s,s:{s:f,s:n,s:f},s:o}", "name",
					  name, "link", "rate_bytes_s", 3.125e9,
					  "rate_iops", "latency_us", 20.0,
					  "drives", drives));
		}
	}
	emit(s, &s->agent, "cluster",
	     json_pack("{s:s,s:s,s:b,s:o}", "name", "demo", "title",
		       "embedded demo cluster", "virtual", 1, "domains",
		       domains));
}

static void emit_vdisk(struct synth *s, int i, const char *state,
		       double progress)
{
	bool hurt = strcmp(state, "healthy") != 0;
	json_t *members = json_array(), *j;

	for (int k = 0; k < kinds[i].members; k++) {
		bool gone = hurt && k == 3;
		char domain[16];

		snprintf(domain, sizeof(domain), "n%d", k + 1);
		json_array_append_new(
			members,
			json_pack("{s:i,s:s,s:s,s:s,s:s}", "slot", k, "domain",
				  domain, "drive", k == 3 ? "d1" : "d0", "role",
				  s->o->log || k < kinds[i].k + kinds[i].m
					  ? "data"
					  : "witness",
				  "state",
				  !gone           ? "ok"
				  : progress >= 0 ? "rebuilding"
						  : "missing"));
	}
	j = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:I,s:s,s:s,s:I,s:I,s:s,"
		      "s:i,s:o}",
		      "name", kinds[i].vdisk, "uuid",
		      "9b2f41d0-0000-4000-8000-000000000001", "policy",
		      kinds[i].policy, "raid", kinds[i].raid, "ftt",
		      kinds[i].ftt, "k", kinds[i].k, "m", kinds[i].m,
		      "stripe_unit_bytes",
		      (json_int_t)((s->o->log ? 128 : 64) * KIB), "layout",
		      s->o->log ? "log" : "inplace", "compression",
		      s->o->log ? "lz4" : "none", "size_bytes", (json_int_t)GIB,
		      "epoch", (json_int_t)(hurt ? 2 : 1), "state", state,
		      "failures_left", kinds[i].ftt - (hurt ? 1 : 0), "members",
		      members);
	if (hurt)
		json_object_set_new(j, "reason",
				    json_string("n4:d1 is offline"));
	if (s->o->log)
		json_object_set_new(j, "memory_bytes",
				    json_integer(110 * (json_int_t)MIB));
	if (progress >= 0) {
		json_object_set_new(j, "progress", json_real(progress));
		json_object_set_new(j, "rate_bytes_s", json_real(64e6));
		json_object_set_new(
			j, "left_bytes",
			json_integer((json_int_t)((1 - progress) * 268435456)));
	}
	emit(s, &s->agent, "vdisk", j);
}

/* ---- figures of the log layout ------------------------------------------ */

static void figures_clear(struct synth *s)
{
	s->user = s->stored = s->log = s->destage = s->clean = s->rebuild =
		s->checkpoint = s->mapped = 0;
}

static void add_bytes(json_t *j, const char *name, double value)
{
	json_object_set_new(j, name, json_integer((json_int_t)value));
}

/* A second in which users wrote so many bytes: ratio 1.6, 16 blocks a record,
 * and more cleaning the fuller it is. */
static void emit_figures(struct synth *s, int i, double user, double rebuild)
{
	const double copies = kinds[i].m + 1, c = 1 / 1.6;
	const double stripe = (double)(kinds[i].k + kinds[i].m) / kinds[i].k;
	const double full = fmin(s->mapped * 4096 / (double)GIB, 1);
	json_t *j;

	if (!s->o->log)
		return;
	s->user += user;
	s->stored += user * c;
	s->log += user * copies * (c + 1.0 / 16);
	s->destage += user * (c + 0.004) * stripe;
	s->clean += user * c * stripe * full * full;
	s->rebuild += rebuild;
	s->checkpoint += user * copies * 0.1;
	s->mapped = fmin(s->mapped + user / 4096, (double)GIB / 4096);
	j = json_pack("{s:s,s:f,s:f,s:f,s:f}", "name", kinds[i].vdisk,
		      "free_share", 1 - 0.5 * full, "log_fill",
		      0.1 + fmod(s->log / 2e9, 0.5), "victim_live", 0.4 * full,
		      "compliance", 1.0);
	add_bytes(j, "opened_t_us", (double)s->o->begin_t_us);
	add_bytes(j, "user_bytes", s->user);
	add_bytes(j, "user_stored_bytes", s->stored);
	add_bytes(j, "log_bytes", s->log);
	add_bytes(j, "destage_bytes", s->destage);
	add_bytes(j, "bypass_bytes", 0);
	add_bytes(j, "clean_bytes", s->clean);
	add_bytes(j, "rebuild_bytes", s->rebuild);
	add_bytes(j, "checkpoint_bytes", s->checkpoint);
	add_bytes(j, "blocks_mapped", s->mapped);
	add_bytes(j, "stored_bytes", s->mapped * 4096 * c);
	add_bytes(j, "space_bytes", 1.25 * (double)GIB);
	add_bytes(j, "buffer_bytes", 16.0 * MIB);
	add_bytes(j, "buffer_max_bytes", 64.0 * MIB);
	add_bytes(j, "zero_blocks", 0);
	add_bytes(j, "checkpoints", s->log / 1e9);
	add_bytes(j, "segments_cleaned", s->clean / 16e6);
	add_bytes(j, "reads_degraded", s->rebuild / 1e6);
	add_bytes(j, "reads_repaired", 0);
	add_bytes(j, "reads_hedged", 0);
	add_bytes(j, "blocks_lost", 0);
	add_bytes(j, "replayed", 118);
	add_bytes(j, "opening_us", 41300);
	emit(s, &s->agent, "vdisk_usage", j);
}

static void emit_start(struct synth *s)
{
	emit(s, &s->console, "open",
	     json_pack("{s:i,s:s,s:s,s:s,s:{s:s},s:s}", "v", 1, "iodeck",
		       "0.1.0", "session", "20260302-084000-demo", "title",
		       "three policies, one workload", "config", "theme",
		       "default", "command", "iodeck demo"));
	emit(s, &s->agent, "host",
	     json_pack("{s:s,s:s,s:s,s:i,s:I,s:{s:s,s:i,s:s}}", "name", "lab",
		       "kernel", "6.1.0-18-amd64", "cpu",
		       "Generic 2.4 GHz Processor", "cores", 8, "mem_bytes",
		       (json_int_t)(32ull * GIB), "agent", "version", "0.1.0",
		       "pid", 4242, "io", "io_uring"));
	emit_cluster(s);
	for (int i = 0; i < s->o->series; i++) {
		emit(s, &s->agent, "policy",
		     json_pack("{s:s,s:i,s:i,s:i}", "name", kinds[i].policy,
			       "raid", kinds[i].raid, "ftt", kinds[i].ftt,
			       "stripe_unit_bytes", 65536));
		emit_vdisk(s, i, "healthy", -1);
	}
	emit(s, &s->console, "cmd",
	     json_pack("{s:s,s:b,s:s}", "text", "run demo", "ok", 1, "reply",
		       "run " RUN_ID " begins"));
}

/* ---- plan --------------------------------------------------------------- */

static double point_percent(const struct synth_opts *o, int point)
{
	return 100.0 * (point + 1) / o->points;
}

static json_t *plan_series(const struct synth_opts *o)
{
	json_t *list = json_array();

	for (int i = 0; i < o->series; i++)
		json_array_append_new(
			list,
			json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:f,s:f,s:[[i,f]],"
				  "s:[[i,f]]}}",
				  "name", kinds[i].name, "vdisk",
				  kinds[i].vdisk, "setup", "25 GbE", "workload",
				  "name", "oltp32k", "title", "OLTP 32K 70/30",
				  "read_share", 0.7, "random_share", 1.0,
				  "read_sizes", 32768, 1.0, "write_sizes",
				  32768, 1.0));
	return list;
}

static json_t *plan_phases(const struct synth_opts *o)
{
	json_t *list = json_array();

	for (int i = 0; i < o->series; i++) {
		json_array_append_new(list,
				      json_pack("{s:s,s:s}", "kind", "prefill",
						"vdisk", kinds[i].vdisk));
		json_array_append_new(list, json_pack("{s:s,s:I}", "kind",
						      "rest", "length_us",
						      (json_int_t)3000000));
		json_array_append_new(
			list,
			json_pack("{s:s,s:i,s:I,s:I,s:i,s:i,s:f}", "kind",
				  "max", "series", i, "step_us",
				  (json_int_t)1000000, "warmup_us",
				  (json_int_t)1000000, "outstanding_min", 1,
				  "outstanding_max", 256, "gain", 0.03));
		for (int p = 0; p < o->points; p++)
			json_array_append_new(
				list,
				json_pack("{s:s,s:i,s:i,s:i,s:f,s:I,s:I,s:s,"
					  "s:f}",
					  "kind", "point", "series", i, "point",
					  p, "points", o->points, "percent",
					  point_percent(o, p), "length_us",
					  (json_int_t)o->secs * 1000000,
					  "warmup_us",
					  (json_int_t)o->warm * 1000000,
					  "schedule", "poisson", "early_ci",
					  0.0));
	}
	return list;
}

static void emit_run(struct synth *s)
{
	emit(s, &s->agent, "run",
	     json_pack("{s:s,s:s,s:{s:s,s:i,s:i,s:o,s:o}}", "run", RUN_ID,
		       "title", "OLTP 32K on three policies", "plan", "title",
		       "OLTP 32K on three policies", "interval_ms", 1000,
		       "seed", 1, "series", plan_series(s->o), "phases",
		       plan_phases(s->o)));
	emit(s, &s->agent, "run_state",
	     json_pack("{s:s,s:s}", "run", RUN_ID, "state", "running"));
}

/* ---- samples ------------------------------------------------------------ */

static void hist_add_n(struct hist *h, uint64_t ns, uint64_t n)
{
	h->bucket[hist_index(ns)] += n;
	h->count += n;
	h->sum_ns += ns * n;
	if (ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

/*
 * `ops` latencies of a log-logistic distribution with this mean, at evenly
 * spaced quantiles: one closed form, and a tail that looks like a drive's.
 */
static void hist_spread(struct hist *h, double mean_us, uint64_t ops)
{
	const double shape = 0.22, turn = shape * 3.14159265358979;
	const double scale = mean_us * sin(turn) / turn;
	const uint64_t levels = 300;

	hist_reset(h);
	for (uint64_t i = 0; i < levels; i++) {
		double q = ((double)i + 0.5) / (double)levels;
		uint64_t n = (i + 1) * ops / levels - i * ops / levels;

		if (n)
			hist_add_n(h,
				   (uint64_t)(1000 * scale *
					      pow(q / (1 - q), shape)),
				   n);
	}
}

static json_t *sample_dir(double iops, double svc_us, double rsp_us)
{
	uint64_t ops = (uint64_t)llround(iops);
	json_t *j = json_pack("{s:I,s:I,s:i}", "ops", (json_int_t)ops, "bytes",
			      (json_int_t)(ops * 32768), "errors", 0);
	struct hist h;

	hist_spread(&h, svc_us, ops);
	json_object_set_new(j, "svc", event_hist_encode(&h));
	if (rsp_us > 0) {
		hist_spread(&h, rsp_us, ops);
		json_object_set_new(j, "rsp", event_hist_encode(&h));
	}
	return j;
}

static double jitter(struct synth *s, double share)
{
	return 1 + share * (2 * rng_unit(&s->rng) - 1);
}

static void emit_usage(struct synth *s, double load)
{
	json_t *links = json_array(), *drives = json_array();

	for (int d = 1; d <= 6; d++) {
		double l = load * jitter(s, 0.04);
		char name[16];

		snprintf(name, sizeof(name), "n%d", d);
		json_array_append_new(links,
				      json_pack("{s:s,s:f,s:f,s:f}", "domain",
						name, "read_bytes_s", 180e6 * l,
						"write_bytes_s", 110e6 * l,
						"busy", 0.93 * l / 1.04));
		for (int k = 0; k < 2; k++) {
			char drive[16];

			if (s->pulled && d == 4 && k == 1)
				continue;
			snprintf(drive, sizeof(drive), "d%d", k);
			json_array_append_new(
				drives,
				json_pack("{s:s,s:s,s:f,s:f,s:f,s:f,s:f,s:f,"
					  "s:f}",
					  "domain", name, "drive", drive,
					  "read_iops", 2800 * l, "write_iops",
					  1900 * l, "read_bytes_s", 90e6 * l,
					  "write_bytes_s", 55e6 * l, "busy",
					  0.9 * l / 1.04, "queue", 6 * l,
					  "latency_us", 180 + 900 * l * l));
		}
	}
	emit(s, &s->agent, "usage",
	     json_pack("{s:i,s:f,s:f,s:I,s:o,s:o}", "len_us", 1000000,
		       "cpu_busy", 0.08 + 0.5 * load, "cpu_steal", 0.0,
		       "mem_used_bytes", (json_int_t)(3ull * GIB), "links",
		       links, "drives", drives));
}

/* One second of series i at this share of its maximum. asked 0: closed loop. */
static void emit_sample(struct synth *s, int i, int second, bool warm,
			double share, double asked)
{
	double hurt = s->pulled ? 1.35 : 1;
	double iops = kinds[i].max_iops * share * jitter(s, 0.008) / hurt;
	double us = synth_latency_us(i, share) * jitter(s, 0.015) * hurt;
	bool open = asked > 0;
	json_t *j;

	if (open && !s->pulled)
		iops = fmin(iops, asked * jitter(s, 0.002));
	s->t_us += 1000000;
	j = json_pack("{s:s,s:i,s:i,s:I,s:i,s:b,s:i,s:o,s:o}", "run", RUN_ID,
		      "phase", s->phase, "series", i, "from_us",
		      (json_int_t)second * 1000000, "len_us", 1000000, "warm",
		      warm, "inflight", open ? 8 : kinds[i].depth, "read",
		      sample_dir(0.7 * iops, us, open ? us * 1.04 : 0), "write",
		      sample_dir(0.3 * iops, us * 1.2, open ? us * 1.25 : 0));
	if (open) {
		json_object_set_new(j, "scheduled",
				    json_integer((json_int_t)asked));
		json_object_set_new(
			j, "backlog",
			json_integer(iops < asked * 0.98 ? second * 200 : 3));
	}
	emit(s, &s->agent, "sample", j);
	emit_usage(s, share);
	emit_figures(s, i, 0.3 * iops * 32768, 0);
}

/* ---- phases ------------------------------------------------------------- */

static void emit_phase_end(struct synth *s, json_t *more)
{
	json_t *j = json_pack("{s:s,s:i,s:s}", "run", RUN_ID, "phase", s->phase,
			      "status", "done");

	if (more) {
		json_object_update(j, more);
		json_decref(more);
	}
	emit(s, &s->agent, "phase_end", j);
	s->phase++;
}

static void phase_prefill(struct synth *s, int i)
{
	figures_clear(s);
	emit(s, &s->agent, "phase",
	     json_pack("{s:s,s:i,s:s,s:i,s:i}", "run", RUN_ID, "phase",
		       s->phase, "kind", "prefill", "warmup_us", 0, "length_us",
		       0));
	for (int k = 1; k <= 4; k++) {
		s->t_us += 1000000;
		emit(s, &s->agent, "progress",
		     json_pack("{s:s,s:i,s:I,s:I}", "run", RUN_ID, "phase",
			       s->phase, "done_bytes",
			       (json_int_t)(k * (int64_t)GIB / 4),
			       "total_bytes", (json_int_t)GIB));
		emit_usage(s, 0.6);
		emit_figures(s, i, (double)GIB / 4, 0);
	}
	emit_phase_end(s, NULL);
}

static void phase_rest(struct synth *s)
{
	emit(s, &s->agent, "phase",
	     json_pack("{s:s,s:i,s:s,s:i,s:i}", "run", RUN_ID, "phase",
		       s->phase, "kind", "rest", "warmup_us", 0, "length_us",
		       3000000));
	for (int k = 0; k < 3; k++) {
		s->t_us += 1000000;
		emit_usage(s, 0.01);
	}
	emit_phase_end(s, NULL);
}

static void phase_max(struct synth *s, int i)
{
	emit(s, &s->agent, "phase",
	     json_pack("{s:s,s:i,s:s,s:i,s:i,s:i}", "run", RUN_ID, "phase",
		       s->phase, "kind", "max", "series", i, "warmup_us",
		       1000000, "length_us", 0));
	for (int k = 0; k < 7; k++)
		emit_sample(s, i, k, true, 1 - pow(0.45, k + 1), 0);
	emit_phase_end(s, json_pack("{s:f,s:i}", "max_iops", kinds[i].max_iops,
				    "outstanding", kinds[i].depth));
}

static void pull(struct synth *s, int i)
{
	s->pulled = true;
	emit(s, &s->agent, "fault",
	     json_pack("{s:s,s:s,s:s,s:s}", "text", "drive n4:d1 offline",
		       "kind", "drive_offline", "target", "n4:d1", "by",
		       "operator"));
	emit_cluster(s);
	emit_vdisk(s, i, "degraded", -1);
	emit(s, &s->agent, "log",
	     json_pack("{s:s,s:s}", "level", "warn", "text",
		       "db3 lost n4:d1: one more failure is tolerated"));
}

static void heal(struct synth *s, int i)
{
	emit(s, &s->agent, "fault",
	     json_pack("{s:s,s:s,s:s,s:s}", "text", "drive n4:d1 online",
		       "kind", "drive_online", "target", "n4:d1", "by",
		       "operator"));
	s->pulled = false;
	emit_cluster(s);
	for (int k = 0; k < 4; k++) {
		s->t_us += 1000000;
		emit_vdisk(s, i, "rebuilding", 0.25 * k);
		emit_usage(s, 0.3);
		emit_figures(s, i, 0, 64e6);
	}
	emit_vdisk(s, i, "healthy", -1);
	emit(s, &s->console, "note",
	     json_pack("{s:s}", "text", "rebuilt in 4 s"));
}

static void phase_point(struct synth *s, int i, int point)
{
	double percent = point_percent(s->o, point);
	double asked = kinds[i].max_iops * percent / 100;
	/* RAID-6 does not quite reach what its search found. */
	double share =
		i == 2 && point == s->o->points - 1 ? 0.96 : percent / 100;
	bool last = i == s->o->series - 1 && point == s->o->points - 2;

	emit(s, &s->agent, "phase",
	     json_pack("{s:s,s:i,s:s,s:i,s:i,s:f,s:f,s:i,s:I,s:I}", "run",
		       RUN_ID, "phase", s->phase, "kind", "point", "series", i,
		       "point", point, "percent", percent, "asked_iops", asked,
		       "outstanding", kinds[i].depth, "warmup_us",
		       (json_int_t)s->o->warm * 1000000, "length_us",
		       (json_int_t)s->o->secs * 1000000));
	for (int k = 0; k < s->o->warm + s->o->secs; k++) {
		if (s->o->fault && last && k == s->o->warm + s->o->secs / 2)
			pull(s, i);
		emit_sample(s, i, k, k < s->o->warm, share, asked);
	}
	emit_phase_end(s, NULL);
	if (s->pulled)
		heal(s, i);
}

int synth_session(const struct synth_opts *opts,
		  int (*emit_to)(const json_t *event, void *arg), void *arg)
{
	struct synth s = {
		.o = opts,
		.agent = { .a = "lab", .i = 1 },
		.console = { .a = "console", .i = 1 },
		.t_us = opts->begin_t_us,
		.emit = emit_to,
		.arg = arg,
	};

	id_assert(opts->series >= 1 && opts->series <= 3 && opts->points >= 1);
	rng_seed(&s.rng, opts->seed);
	emit_start(&s);
	s.t_us += 3000000;
	emit_run(&s);
	for (int i = 0; i < opts->series && !s.rc; i++) {
		phase_prefill(&s, i);
		phase_rest(&s);
		phase_max(&s, i);
		for (int p = 0; p < opts->points && !s.rc; p++)
			phase_point(&s, i, p);
	}
	emit(&s, &s.agent, "run_state",
	     json_pack("{s:s,s:s}", "run", RUN_ID, "state", "done"));
	if (opts->close)
		emit(&s, &s.console, "close",
		     json_pack("{s:s}", "reason", "quit"));
	return s.rc == LIMIT_REACHED ? 0 : s.rc;
}

/* ---- ways out ----------------------------------------------------------- */

static int count_one(const json_t *event, void *arg)
{
	(void)event;
	++*(int *)arg;
	return 0;
}

int synth_events(const struct synth_opts *opts)
{
	int n = 0;

	synth_session(opts, count_one, &n);
	return n;
}

static int apply_one(const json_t *event, void *arg)
{
	return model_apply(arg, event, NULL);
}

int synth_model(const struct synth_opts *opts, struct model *model)
{
	return synth_session(opts, apply_one, model);
}

static int line_one(const json_t *event, void *arg)
{
	char *line;
	size_t len;
	int rc = event_encode(event, &line, &len);

	if (rc)
		return rc;
	if (fwrite(line, 1, len, arg) != len)
		rc = -EIO;
	free(line);
	return rc;
}

int synth_lines(const struct synth_opts *opts, const char *path)
{
	FILE *f = fopen(path, "we");
	int rc;

	if (!f)
		return -errno;
	rc = synth_session(opts, line_one, f);
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}
