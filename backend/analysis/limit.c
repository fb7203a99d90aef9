/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The most a series can come to on its drives and links: iodeck-vdisk(5) has
 * the formulas. Times that one I/O of the workload takes of all drives (or
 * links) together are added up; its members share them evenly.
 *
 * Drives serve one I/O at a time, reads and writes alike (the modelled ones
 * do); a link has a way each. An I/O takes its bytes at the rate, or a turn of
 * the IOPS, whichever is longer.
 */
#include <math.h>
#include <string.h>

#include "backend/analysis/analysis.h"
#include "engine/vdisk/limit.h"

#define BLOCK 4096.0
#define GROUP 32.0   /* blocks a log record, with many in flight */
#define SUMMARY 16.0 /* bytes a block in its stripe */
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

/* ---- what was written --------------------------------------------------- */

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

/* ---- what is known of the workload --------------------------------------- */

/* Of all points, so that it does not turn with the chance of the newest. */
static bool mix_of(const struct m_series *s, struct mix *mix)
{
	double r = 0, w = 0, read_bytes = 0, write_bytes = 0;

	for (size_t i = 0; i < s->points; i++) {
		const struct m_point *p = &s->point[i];

		r += (double)p->read.ops;
		w += (double)p->write.ops;
		read_bytes += (double)p->read.bytes;
		write_bytes += (double)p->write.bytes;
	}
	if (!(r + w > 0))
		return false;
	*mix = (struct mix) {
		.read_share = r / (r + w),
		.read_bytes = r > 0 ? read_bytes / r : 0,
		.write_bytes = w > 0 ? write_bytes / w : 0,
	};
	return true;
}

/* Of what is stored, as the newest point knows it; 1 not known. */
static double ratio_of(const struct m_series *s)
{
	for (size_t i = s->points; i-- > 0;)
		if (s->point[i].ratio >= 1)
			return s->point[i].ratio;
	return 1;
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
	return fmin(fmax(LOG_SHARE * size, fmin(LOG_MIN, size / 8)), LOG_MAX) /
	       size;
}

/* All points of the series: what lies between two checkpoints belongs to both.
 */
static void written_sum(const struct m_series *s, struct m_written *sum)
{
	*sum = (struct m_written) { 0 };
	for (size_t i = 0; i < s->points; i++)
		if (s->point[i].written_s > 0)
			written_add(sum, &s->point[i].written);
}

static void bytes_expected(const struct m_series *s, const struct mix *mix,
			   struct limit_bytes *w, double *stored)
{
	const struct limit_layout l = {
		.k = (unsigned)s->k,
		.m = (unsigned)s->m,
		.stored = 1 / ratio_of(s),
		.group = GROUP,
		.cleaning = 1,
		.log_share = log_share(s),
	};

	*stored = l.stored;
	if (mix->write_bytes >= s->k * UNIT * 7 / 8)
		limit_sequential(&l, w);
	else
		limit_random(&l, w);
}

/*
 * What was counted, over what is expected of the first half log: destaging and
 * checkpoints come in lumps of about that, and shorter counts say anything.
 * The log itself is taken with full records, as they are where a limit is
 * reached, however few were in flight when it was counted.
 *
 * records: log records a byte of users'.
 */
static void bytes_of(const struct model *model, const struct m_series *s,
		     const struct mix *mix, struct limit_bytes *w,
		     double *records, bool *counted)
{
	const double data = (double)s->k / (s->k + s->m);
	const double before = log_share(s) * (double)s->size_bytes / 2;
	struct m_written sum;
	double stored, small, all;

	bytes_expected(s, mix, w, &stored);
	written_sum(s, &sum);
	all = (double)sum.user + before;
	*counted = (double)sum.user >= before && before > 0;
	if (all > 0) {
		stored = (stored * before + (double)sum.stored) / all;
		w->destage = (w->destage * before + (double)sum.destage) / all;
		w->bypass = (w->bypass * before + (double)sum.bypass) / all;
		w->clean = (w->clean * before + (double)sum.clean) / all;
		w->snap = (w->snap * before + (double)sum.checkpoint) / all;
	}
	w->clean_read = w->clean * data / share_live(model, s);
	/* Of what is stored, what went through the log. */
	small = fmax(0, stored - w->bypass * data / (1 + SUMMARY / BLOCK));
	*records = stored > 0 ? small / stored / (GROUP * BLOCK) : 0;
	w->log = (s->m + 1) * (small + *records * BLOCK);
}

static void work_log(const struct model *model, const struct m_series *s,
		     const struct mix *mix, struct work *work,
		     struct series_limit *limit)
{
	const double write = (1 - mix->read_share) * mix->write_bytes;
	const double copies = s->m + 1;
	struct limit_bytes w = { 0 };
	double records = 0, striped;

	if (write > 0) {
		bytes_of(model, s, mix, &w, &records, &limit->counted);
		limit->amp = limit_written(&w);
	}
	striped = w.destage + w.bypass + w.clean;
	add(work, false, copies * records * write, w.log * write);
	add(work, false, striped * write / UNIT, striped * write);
	add(work, false, w.snap * write / PIECE, w.snap * write);
	add(work, true, w.clean_read * write / UNIT, w.clean_read * write);
	add(work, true, mix->read_share,
	    mix->read_share * mix->read_bytes / ratio_of(s));
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
	struct work work = { .rows = 0 };
	struct mix mix;

	*limit = (struct series_limit) { .iops = NAN, .amp = NAN, .ios = NAN };
	/* Of several vDisks that share drives or do not, nothing is known. */
	if (!mix_of(series, &mix) || series->vdisks > 1 || series->drives < 1 ||
	    series->k < 1 || series->m < 0)
		return;
	if (!strcmp(series->layout, "log"))
		work_log(model, series, &mix, &work, limit);
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
