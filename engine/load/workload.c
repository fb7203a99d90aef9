/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a workload may ask, by itself and of a target. Comparisons are written
 * so that not-a-number fails them.
 */
#include <math.h>

#include "engine/load/content.h"
#include "engine/load/pattern.h"

#define SIZE_MIN 512u
#define SIZE_MAX_BYTES (8u * 1024 * 1024)
#define STREAMS_MAX 4096u

static bool is_share(double x)
{
	return x >= 0.0 && x <= 1.0;
}

const struct load_size *workload_sizes(const struct workload *w,
				       enum bdev_op op, unsigned *count)
{
	const bool own = op == BDEV_WRITE && w->write_size_count;

	*count = own ? w->write_size_count : w->read_size_count;
	return own ? w->write_sizes : w->read_sizes;
}

static bool has_op(const struct workload *w, enum bdev_op op)
{
	return op == BDEV_READ ? w->read_share > 0.0 : w->read_share < 1.0;
}

uint32_t workload_longest(const struct workload *w, enum bdev_op op)
{
	unsigned count;
	const struct load_size *size = workload_sizes(w, op, &count);
	uint32_t longest = 0;

	for (unsigned i = 0; has_op(w, op) && i < count; i++)
		if (size[i].bytes > longest)
			longest = size[i].bytes;
	return longest;
}

static int sizes_check(const struct load_size *size, unsigned count,
		       const char *list, struct err *err)
{
	if (count > LOAD_SIZES_MAX)
		return err_set(err, -EINVAL,
			       "workload: %s: %u sizes, at most %d fit", list,
			       count, LOAD_SIZES_MAX);
	for (unsigned i = 0; i < count; i++) {
		if (size[i].bytes < SIZE_MIN || size[i].bytes > SIZE_MAX_BYTES)
			return err_set(err, -EINVAL,
				       "workload: %s[%u]: %u bytes, expected "
				       "512 bytes to 8 MiB",
				       list, i, size[i].bytes);
		if (!(size[i].weight > 0.0 && isfinite(size[i].weight)))
			return err_set(
				err, -EINVAL,
				"workload: %s[%u]: weight %g, expected a "
				"positive number",
				list, i, size[i].weight);
	}
	return 0;
}

static int shares_check(const struct workload *w, struct err *err)
{
	if (!is_share(w->read_share))
		return err_set(err, -EINVAL,
			       "workload: read_share: %g, expected 0 to 1",
			       w->read_share);
	if (!is_share(w->random_share))
		return err_set(err, -EINVAL,
			       "workload: random_share: %g, expected 0 to 1",
			       w->random_share);
	if (!is_share(w->footprint_share))
		return err_set(err, -EINVAL,
			       "workload: footprint_share: %g, expected 0 to 1",
			       w->footprint_share);
	return 0;
}

int workload_check(const struct workload *w, struct err *err)
{
	int rc = shares_check(w, err);

	if (!rc)
		rc = sizes_check(w->read_sizes, w->read_size_count,
				 "read_sizes", err);
	if (!rc)
		rc = sizes_check(w->write_sizes, w->write_size_count,
				 "write_sizes", err);
	if (rc)
		return rc;
	if (has_op(w, BDEV_READ) && !w->read_size_count)
		return err_set(err, -EINVAL,
			       "workload: read_sizes: empty, expected at least "
			       "one size");
	if (!w->read_size_count && !w->write_size_count)
		return err_set(
			err, -EINVAL,
			"workload: write_sizes: empty, expected at least "
			"one size");
	if (!(w->compress_ratio >= 1.0 &&
	      w->compress_ratio <= CONTENT_RATIO_MAX))
		return err_set(err, -EINVAL,
			       "workload: compress_ratio: %g, expected 1 (not "
			       "compressible) to %g",
			       w->compress_ratio, CONTENT_RATIO_MAX);
	if (w->streams > STREAMS_MAX)
		return err_set(err, -EINVAL,
			       "workload: streams: %u, at most %u", w->streams,
			       STREAMS_MAX);
	return 0;
}

uint64_t workload_footprint(const struct workload *w,
			    const struct bdev_limits *limits)
{
	uint64_t bytes = w->footprint_bytes;

	if (!bytes && w->footprint_share > 0.0 && w->footprint_share < 1.0)
		bytes = (uint64_t)(w->footprint_share *
				   (double)limits->size_bytes);
	else if (!bytes)
		bytes = limits->size_bytes;
	return bytes - bytes % limits->block_bytes;
}

static int size_fits(const struct load_size *size, const char *list, unsigned i,
		     const struct bdev *b, struct err *err)
{
	const struct bdev_limits *l = &b->limits;

	if (size->bytes % l->block_bytes)
		return err_set(
			err, -EINVAL,
			"workload: %s[%u]: %u bytes is not a multiple of "
			"%s's block of %u bytes",
			list, i, size->bytes, b->name, l->block_bytes);
	if (size->bytes > l->io_max_bytes)
		return err_set(
			err, -EINVAL,
			"workload: %s[%u]: %u bytes, %s takes at most %u "
			"at once",
			list, i, size->bytes, b->name, l->io_max_bytes);
	return 0;
}

static int dir_fits(const struct workload *w, enum bdev_op op,
		    const struct bdev *b, struct err *err)
{
	unsigned count;
	const struct load_size *size = workload_sizes(w, op, &count);
	const char *list =
		size == w->write_sizes ? "write_sizes" : "read_sizes";
	int rc = 0;

	for (unsigned i = 0; !rc && has_op(w, op) && i < count; i++)
		rc = size_fits(&size[i], list, i, b, err);
	return rc;
}

/* Each stream's part, and the whole, must hold the longest I/O. */
static int footprint_fits(const struct workload *w, const struct bdev *b,
			  struct err *err)
{
	const uint64_t footprint = workload_footprint(w, &b->limits);
	const uint32_t read = workload_longest(w, BDEV_READ);
	const uint32_t write = workload_longest(w, BDEV_WRITE);
	const uint32_t longest = read > write ? read : write;
	const unsigned streams = w->streams ? w->streams : 1;

	if (footprint > b->limits.size_bytes)
		return err_set(err, -EINVAL,
			       "workload: footprint of %llu bytes, %s has %llu",
			       (unsigned long long)footprint, b->name,
			       (unsigned long long)b->limits.size_bytes);
	if (footprint < longest)
		return err_set(err, -EINVAL,
			       "workload: footprint of %llu bytes on %s does "
			       "not hold one I/O of %u bytes",
			       (unsigned long long)footprint, b->name, longest);
	/* One I/O of room beyond, for parts that begin at whole lengths. */
	if (streams > 1 && w->random_share < 1.0 &&
	    footprint / streams < 2ull * longest)
		return err_set(err, -EINVAL,
			       "workload: streams: %u streams on %s leave each "
			       "%llu bytes, expected at least two I/Os of %u "
			       "bytes",
			       streams, b->name,
			       (unsigned long long)(footprint / streams),
			       longest);
	return 0;
}

int workload_fits(const struct workload *w, const struct bdev *b,
		  struct err *err)
{
	int rc = workload_check(w, err);

	if (!rc)
		rc = dir_fits(w, BDEV_READ, b, err);
	if (!rc)
		rc = dir_fits(w, BDEV_WRITE, b, err);
	if (!rc)
		rc = footprint_fits(w, b, err);
	if (rc)
		return rc;
	if (w->fua && has_op(w, BDEV_WRITE) && !b->limits.can_fua)
		return err_set(err, -EINVAL,
			       "workload: fua: %s cannot do it, turn it off",
			       b->name);
	if (w->flush_every && has_op(w, BDEV_WRITE) && !b->limits.can_flush)
		return err_set(err, -EINVAL,
			       "workload: flush_every: %s has no flush, set it "
			       "to 0",
			       b->name);
	return 0;
}
