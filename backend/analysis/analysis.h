/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a model to figures. All latencies in microseconds. Unknown is NAN.
 */
#ifndef BACKEND_ANALYSIS_ANALYSIS_H
#define BACKEND_ANALYSIS_ANALYSIS_H

#include "backend/model.h"

struct lat_stats {
	double mean, p50, p95, p99, p99_9, max;
};
struct lat_set {
	struct lat_stats all, read, write;
};

#define STEADY_CI 0.05 /* a steady point's intervals are narrower */

struct point_stats {
	double asked_iops; /* NAN closed loop */
	double percent;
	double iops, read_iops, write_iops, mb_s; /* MB = 10^6 bytes */
	int64_t errors, outstanding;
	bool saturated; /* achieved < 98 % of what was due */
	bool generator_bound;
	bool host_bound;  /* its CPUs were full and made the load wait */
	bool net_bound;   /* an interface was at its line rate (model.h) */
	double net_share; /* the busiest one's, on average */
	bool partial;     /* running, or cut short */
	/* half-widths of the 95 % interval of iops and of mean latency, as a
	 * share of the mean, by batch means over the intervals; NAN below 6 */
	double iops_ci, latency_ci;
	bool steady; /* no trend, CI below 5 % (see stats.c) */
	double measured_s;
	struct lat_set latency;  /* service time */
	struct lat_set response; /* open loop; closed loop: as service */
};
void point_stats(const struct m_point *point, struct point_stats *stats);

/* The search for its maximum was held by the host or the generator: it may do
 * more. */
bool series_max_bound(const struct m_series *series);

struct reading {
	double iops, latency_us;
	double iops_ci, latency_ci; /* as point_stats'; the wider neighbour's */
	bool interpolated;
};
struct series_summary {
	double peak_iops, peak_latency_us;
	double peak_iops_ci, peak_latency_ci;
	bool peak_open; /* never driven to its maximum: it is "at least" */
	/* What shares are of: the peak; where that is open, the maximum that a
	 * search found, or NAN. */
	double full_iops;
	struct reading at_70, at_80; /* of full_iops */
	double bound_us;             /* asked for */
	struct reading under;        /* highest IOPS with latency <= bound */
	bool under_open;             /* every point is under the bound */
	double drop_off; /* share lost behind the peak; 0 none; NAN when open */
};

/* What both a recorded series and a published one come down to: IOPS against
 * mean service latency. */
struct curve_point {
	double iops, latency_us, percent; /* percent NAN when not given */
	double iops_ci, latency_ci;       /* NAN when not known */
	bool saturated;
};
struct curve {
	char name[MODEL_NAME];
	char layout[96];           /* series_layout_text(), or "" */
	double max_iops;           /* what a search found; else NAN */
	struct curve_point *point; /* in order of measuring */
	size_t points;
	json_t *facts;            /* facts_of_series(); NULL: none are known */
	struct m_written written; /* over all points; user 0: not known */
};
void curve_summary(const struct curve *curve, double bound_us,
		   struct series_summary *summary);
/* The finished points of kind point or ramp. Caller curve_fini()s. */
int curve_of_series(const struct m_series *series, struct curve *curve);
/* FILE.csv#SERIES, columns as in conf/published/curves.csv. */
int curve_of_csv(const char *path, const char *series, struct curve *curve,
		 struct err *err);
/* Names of the series in a CSV, NULL-terminated, caller frees all. */
int curve_csv_series(const char *path, char ***names, struct err *err);
void curve_fini(struct curve *curve);

/*
 * What a series was measured on, flat: {"policy": "gold", "link rate":
 * 3125000000, ..}. The model, its plan and its state when the series ran are
 * all there is: no names of sessions, no times. New reference or NULL.
 */
json_t *facts_of_series(const struct model *model, const struct m_run *run,
			const struct m_series *series);
/* {"differs": [{"name", "a", "b"}], "same": N, "of": N}; null where a side does
 * not say. NULL when either is NULL. New reference. */
json_t *facts_compare(const json_t *a, const json_t *b);
/* "differs in: stripe unit 64 KiB | 128 KiB, seed 1 | 2. Same: 41 of 41 other
 * facts." of that document, in at most width columns: as many as fit, the rest
 * counted. Returns out. */
const char *facts_text(const json_t *facts, size_t width, char *out,
		       size_t size);

/*
 * The most a series can come to on its drives and links, at the mix of reads
 * and writes that was measured: what it takes of them is counted where it can
 * be, else from the formulas of iodeck-vdisk(5).
 */
struct series_limit {
	double iops;   /* reads and writes; NAN not known */
	bool by_links; /* else by drives */
	bool counted;  /* amp; else from the formula */
	double amp;    /* log layout: bytes to drives for a byte; NAN else */
	double ios;    /* in place: drive I/Os a write; NAN else */
};
void series_limit(const struct model *model, const struct m_series *series,
		  struct series_limit *limit);
/* The same of a policy, of small random writes of what does not compress:
 * amp or ios. */
void policy_limit(const char *layout, int k, int m, struct series_limit *limit);

/* What a vDisk wrote in the span before now; returns the seconds of it that
 * are known, 0 none. */
double vdisk_written(const struct m_vdisk *vdisk, int64_t now_us,
		     int64_t span_us, struct m_written *written);

/* Reading by reading. */
#define READINGS 7
struct compared {
	char name[32];
	double a, b;           /* in the unit the name says */
	double a_ci, b_ci;     /* half-widths, as a share; NAN not known */
	double change_percent; /* NAN unknown */
	bool a_interpolated, b_interpolated;
	bool a_least, b_least; /* "at least" so much: there may be more */
	const char *verdict;   /* higher, lower, not distinguishable; NULL when
				  the intervals are not known */
};
void curves_compare(const struct curve *a, const struct curve *b,
		    double bound_us, struct compared list[READINGS]);

/* The documents of --json: iodeck(1) lists the names. New references. */
json_t *analysis_run_json(const struct m_run *run, double bound_us);
json_t *analysis_compare_json(const struct curve *a, const struct curve *b,
			      double bound_us);
/* "RAID-5 4+1 on 5 of 12 drives, log, lz4", as far as known; "" else. Returns
 * out. */
const char *series_layout_text(const struct m_series *series, char *out,
			       size_t size);
/* "write amplification 3.81: log 2.12, stripes 1.27, cleaning 0.31, checkpoints
 * 0.11; compression 1.62:1"; "" where nothing is known. Returns out. */
const char *written_text(const struct m_written *written, char *out,
			 size_t size);
/* Users' bytes before by after compression; NAN where nobody wrote. */
double written_ratio(const struct m_written *written);
/* Over the points of a series that count, kind point and ramp. */
void series_written(const struct m_series *series, struct m_written *sum);
/* The same for people; *text the caller's to free(). */
int analysis_run_text(const struct m_run *run, double bound_us, char **text);
int analysis_compare_text(const struct curve *a, const struct curve *b,
			  double bound_us, char **text);

#endif
