/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The most a series can come to on its drives and links: iodeck-vdisk(5) has
 * the formulas. Times that one I/O of the workload takes of all drives (or
 * links) together are added up; its members share them evenly.
 *
 * Drives serve one I/O at a time, reads and writes alike (the modelled ones
 * do); a link has a way each. An I/O takes its bytes at the rate, or a turn of
 * the IOPS, whichever is longer: so a log record of few blocks costs a turn on
 * each of m + 1 drives.
 */
#include <math.h>
#include <string.h>

#include "backend/analysis/analysis.h"
#include "engine/vdisk/limit.h"

#define BLOCK 4096.0
#define COUNTED_S 2.0 /* less says little */
#define GROUP 32.0    /* blocks a log record, with many in flight */
#define SUMMARY 16.0  /* bytes a block in its stripe */
#define UNIT (128 * 1024.0)
#define PIECE (256 * 1024.0) /* of a checkpoint */
#define LOG_SHARE 0.02
#define LOG_MIN (128.0 * 1024 * 1024)
#define LOG_MAX (8192.0 * 1024 * 1024)

/* One I/O of the workload, on average. */
struct mix {
	double read_share, read_bytes, write_bytes;
};

/* What it takes of all drives: bytes and I/Os, a row for each kind of I/O. */
struct work {
	struct {
		double ios, bytes;
		bool read;
	} row[8];
	unsigned rows;
};

static void add(struct work *w, bool read, double ios, double bytes)
{
	w->row[w->rows].ios = ios;
	w->row[w->rows].bytes = bytes;
	w->row[w->rows++].read = read;
}

/* ---- what is known of the workload --------------------------------------- */

static bool mix_of(const struct m_point *p, struct mix *mix)
{
	const double r = (double)p->read.ops, w = (double)p->write.ops;

	if (!(r + w > 0))
		return false;
	*mix = (struct mix) {
		.read_share = r / (r + w),
		.read_bytes = r > 0 ? (double)p->read.bytes / r : 0,
		.write_bytes = w > 0 ? (double)p->write.bytes / w : 0,
	};
	return true;
}

/* The newest point from which both can be told; else the newest at all. */
static const struct m_point *point_of(const struct m_series *s, struct mix *mix)
{
	const struct m_point *any = NULL;
	struct mix m;

	for (size_t i = s->points; i-- > 0;) {
		const struct m_point *p = &s->point[i];

		if (!mix_of(p, &m))
			continue;
		if (!any) {
			any = p;
			*mix = m;
		}
		if (p->written_s >= COUNTED_S && p->written.user > 0) {
			*mix = m;
			return p;
		}
	}
	return any;
}

/* ---- the log layout ------------------------------------------------------ */

static double share_live(const struct model *model, const struct m_series *s)
{
	const struct m_vdisk *v = model_vdisk(model, s->vdisk);
	const double u = v ? v->log.victim_live : NAN;

	return u > 0.05 && u <= 1 ? u : 1;
}

static double log_share(const struct m_series *s)
{
	const double size = (double)s->size_bytes;

	if (s->size_bytes <= 0)
		return LOG_SHARE;
	return fmin(fmax(LOG_SHARE * size, LOG_MIN), LOG_MAX) / size;
}

/* records: log records a byte of users'. */
static void bytes_counted(const struct model *model, const struct m_series *s,
			  const struct m_point *p, struct limit_bytes *w,
			  double *records)
{
	const double user = (double)p->written.user;
	const double data = (double)s->k / (s->k + s->m);
	double small;
	struct m_amp a;

	model_amp(&p->written, &a);
	*w = (struct limit_bytes) {
		.log = a.log,
		.destage = a.destage,
		.bypass = a.bypass,
		.clean = a.clean,
		.snap = a.checkpoint,
		.clean_read = a.clean * data / share_live(model, s),
	};
	/* Stored bytes that went through the log; the rest of it is heads. */
	small = (double)p->written.stored / user -
		a.bypass * data / (1 + SUMMARY / BLOCK);
	*records = fmax(0, a.log / (s->m + 1) - fmax(0, small)) / BLOCK;
}

static void bytes_expected(const struct m_series *s, const struct m_point *p,
			   const struct mix *mix, struct limit_bytes *w,
			   double *records)
{
	const struct limit_layout l = {
		.k = (unsigned)s->k,
		.m = (unsigned)s->m,
		.stored = p->ratio >= 1 ? 1 / p->ratio : 1,
		.group = GROUP,
		.cleaning = 1,
		.log_share = log_share(s),
	};

	*records = 0;
	if (mix->write_bytes >= s->k * UNIT * 7 / 8) {
		limit_sequential(&l, w);
		return;
	}
	limit_random(&l, w);
	*records = 1 / (GROUP * BLOCK);
}

static void work_log(const struct model *model, const struct m_series *s,
		     const struct m_point *p, const struct mix *mix,
		     struct work *work, struct series_limit *limit)
{
	const double write = (1 - mix->read_share) * mix->write_bytes;
	const double copies = s->m + 1;
	struct limit_bytes w = { 0 };
	double records, striped;

	limit->counted = p->written_s >= COUNTED_S && p->written.user > 0;
	if (limit->counted)
		bytes_counted(model, s, p, &w, &records);
	else
		bytes_expected(s, p, mix, &w, &records);
	if (write > 0)
		limit->amp = limit_written(&w);
	striped = w.destage + w.bypass + w.clean;
	add(work, false, copies * records * write, w.log * write);
	add(work, false, striped * write / UNIT, striped * write);
	add(work, false, w.snap * write / PIECE, w.snap * write);
	add(work, true, w.clean_read * write / UNIT, w.clean_read * write);
	add(work, true, mix->read_share,
	    mix->read_share * mix->read_bytes / (p->ratio >= 1 ? p->ratio : 1));
}

/* ---- in place ------------------------------------------------------------ */

static void work_inplace(const struct m_series *s, const struct mix *mix,
			 struct work *work, struct series_limit *limit)
{
	const double unit = s->k > 1 && s->stripe_unit_bytes > 0
				    ? (double)s->stripe_unit_bytes
				    : INFINITY;
	const double share = 1 - mix->read_share;
	const double chunks = fmax(1, ceil(mix->write_bytes / unit));
	const double parts = fmax(1, ceil(mix->read_bytes / unit));
	struct limit_ios ios =
		limit_inplace_ios((unsigned)s->k, (unsigned)s->m, false);
	double reads = ios.reads, writes = ios.writes;

	if (chunks >= s->k && s->k > 1) { /* whole stripes */
		reads = 0;
		writes = chunks * (s->k + s->m) / s->k;
	} else if (chunks > 1) {
		reads = s->m ? fmin(s->k - chunks, chunks + s->m) : 0;
		writes = chunks + s->m;
	}
	if (share > 0)
		limit->ios = reads + writes;
	add(work, true, share * reads,
	    share * reads * mix->write_bytes / chunks);
	add(work, false, share * writes,
	    share * writes * mix->write_bytes / chunks);
	add(work, true, mix->read_share * parts,
	    mix->read_share * mix->read_bytes);
}

/* ---- drives and links ---------------------------------------------------- */

static double at_rate(double amount, double a_second)
{
	return a_second > 0 ? amount / a_second : 0;
}

/* Seconds of one that did all of it; [0] reads, [1] writes. */
static void seconds(const struct work *w, const struct m_shape *shape,
		    double s[2])
{
	s[0] = s[1] = 0;
	for (unsigned i = 0; i < w->rows && shape->set; i++)
		s[!w->row[i].read] +=
			fmax(at_rate(w->row[i].bytes, shape->rate_bytes_s),
			     at_rate(w->row[i].ios, shape->rate_iops));
}

static void bound(const struct m_series *s, const struct work *w,
		  struct series_limit *limit)
{
	double drive[2], link[2], by_drives, by_links;

	seconds(w, &s->drive_shape, drive);
	seconds(w, &s->link, link);
	by_drives = drive[0] + drive[1];
	by_links = fmax(link[0], link[1]);
	/* What differs from drive to drive says nothing of all. */
	if (s->drives_differ)
		by_drives = 0;
	if (s->links_differ)
		by_links = 0;
	if (!(fmax(by_drives, by_links) > 0))
		return;
	limit->by_links = by_links > by_drives;
	limit->iops = s->drives / fmax(by_drives, by_links);
}

void series_limit(const struct model *model, const struct m_series *series,
		  struct series_limit *limit)
{
	const struct m_point *p;
	struct work work = { .rows = 0 };
	struct mix mix;

	*limit = (struct series_limit) { .iops = NAN, .amp = NAN, .ios = NAN };
	p = point_of(series, &mix);
	if (!p || series->drives < 1 || series->k < 1 || series->m < 0)
		return;
	if (!strcmp(series->layout, "log"))
		work_log(model, series, p, &mix, &work, limit);
	else if (!strcmp(series->layout, "inplace"))
		work_inplace(series, &mix, &work, limit);
	else
		return;
	bound(series, &work, limit);
}

void policy_limit(const char *layout, int k, int m, struct series_limit *limit)
{
	const struct limit_layout l = { .k = (unsigned)k,
					.m = (unsigned)m,
					.stored = 1,
					.group = GROUP,
					.cleaning = 1,
					.log_share = LOG_SHARE };
	struct limit_bytes w;
	struct limit_ios ios;

	*limit = (struct series_limit) { .iops = NAN, .amp = NAN, .ios = NAN };
	if (k < 1 || m < 0)
		return;
	if (!strcmp(layout, "log")) {
		limit_random(&l, &w);
		limit->amp = limit_written(&w);
	} else {
		ios = limit_inplace_ios((unsigned)k, (unsigned)m, false);
		limit->ios = ios.reads + ios.writes;
	}
}

/* ---- what was written lately --------------------------------------------- */

static void written_add(struct m_written *to, const struct m_written *w)
{
	to->user += w->user;
	to->stored += w->stored;
	to->log += w->log;
	to->destage += w->destage;
	to->bypass += w->bypass;
	to->clean += w->clean;
	to->rebuild += w->rebuild;
	to->checkpoint += w->checkpoint;
}

double vdisk_written(const struct m_vdisk *v, int64_t now_us, int64_t span_us,
		     struct m_written *written)
{
	int64_t known_us = 0;

	*written = (struct m_written) { 0 };
	for (size_t i = v->strips; i-- > 0;) {
		const struct m_vdisk_strip *s = &v->strip[i];

		if (s->t_us <= now_us - span_us)
			break;
		written_add(written, &s->written);
		known_us += s->len_us;
	}
	/* It tells nothing while nothing changes. */
	if (known_us && now_us - v->strip[v->strips - 1].t_us > span_us / 2)
		known_us = span_us;
	return (double)known_us / 1e6;
}
