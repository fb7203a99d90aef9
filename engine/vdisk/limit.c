/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Limits: times of all drives for one I/O are added up where they share a
 * drive's time, else the longer counts.
 */
#include "engine/vdisk/limit.h"

#include <errno.h>

#define BLOCK_BYTES 4096.0
#define MAP_BYTES 12.0 /* of a block, in a checkpoint */
#define SUM_BYTES 24.0 /* of a block, in its stripe's summary */

int limit_counted(const struct limit_counts *from,
		  const struct limit_counts *to, struct limit_bytes *w)
{
	const double user = (double)(to->user - from->user);

	if (to->user <= from->user)
		return -EAGAIN;
	*w = (struct limit_bytes) {
		.log = (double)(to->log - from->log) / user,
		.destage = (double)(to->destage - from->destage) / user,
		.bypass = (double)(to->bypass - from->bypass) / user,
		.clean = (double)(to->clean - from->clean) / user,
		.snap = (double)(to->snap - from->snap) / user,
		.clean_read =
			(double)(to->clean_read - from->clean_read) / user,
	};
	return 0;
}

double limit_written(const struct limit_bytes *w)
{
	return w->log + w->destage + w->bypass + w->clean + w->snap;
}

/* c (1 + s) (k + m) / k: s is a share of what is stored. */
static double striped(const struct limit_layout *l)
{
	return (l->stored + SUM_BYTES / BLOCK_BYTES) * (l->k + l->m) / l->k;
}

void limit_random(const struct limit_layout *l, struct limit_bytes *w)
{
	const double logged = (l->m + 1) * (l->stored + 1 / l->group);

	*w = (struct limit_bytes) {
		.log = logged,
		.destage = striped(l),
		.clean = (l->cleaning - 1) * striped(l),
		.snap = logged * MAP_BYTES / BLOCK_BYTES / l->log_share,
		.clean_read = (l->cleaning - 1) * l->stored,
	};
}

void limit_sequential(const struct limit_layout *l, struct limit_bytes *w)
{
	*w = (struct limit_bytes) { .bypass = striped(l) };
}

/* ---- drives -------------------------------------------------------------- */

static double longer(double a, double b)
{
	return a > b ? a : b;
}

/* Seconds of all drives together. */
static double took(double amount, double a_second)
{
	return a_second > 0 ? amount / a_second : 0;
}

static double per_second(const struct limit_drives *d, double writing,
			 double reading)
{
	const double s =
		d->shared ? writing + reading : longer(writing, reading);

	return s > 0 ? 1 / s : 0;
}

double limit_write_iops(const struct limit_drives *d,
			const struct limit_bytes *w, uint32_t bytes)
{
	return per_second(d, took(limit_written(w) * bytes, d->write_bytes_s),
			  took(w->clean_read * bytes, d->read_bytes_s));
}

double limit_read_iops(const struct limit_drives *d, uint32_t bytes)
{
	return per_second(
		d, 0,
		longer(took(bytes, d->read_bytes_s), took(1, d->read_iops)));
}

struct limit_ios limit_inplace_ios(unsigned k, unsigned m, bool journal)
{
	const unsigned rmw = 1 + m, rcw = k - 1;
	struct limit_ios ios = { .writes = m + 1 };

	if (k > 1 && m)
		ios.reads = rcw < rmw ? rcw : rmw;
	if (journal)
		ios.writes *= 2;
	return ios;
}

double limit_inplace_iops(const struct limit_drives *d, unsigned k, unsigned m,
			  bool journal, uint32_t bytes)
{
	const struct limit_ios ios = limit_inplace_ios(k, m, journal);

	return per_second(d,
			  ios.writes * longer(took(bytes, d->write_bytes_s),
					      took(1, d->write_iops)),
			  ios.reads * longer(took(bytes, d->read_bytes_s),
					     took(1, d->read_iops)));
}
