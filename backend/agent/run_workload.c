/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/run_workload.h"

#include <math.h>
#include <string.h>

static int number(const json_t *j, const char *key, double min, double max,
		  double unset, double *value, struct err *err)
{
	const json_t *v = json_object_get(j, key);

	*value = unset;
	if (!v || json_is_null(v))
		return 0;
	*value = json_number_value(v);
	if (!json_is_number(v) || !(*value >= min && *value <= max))
		return err_set(err, -EINVAL,
			       "workload: \"%s\" must be a number from %g to "
			       "%g",
			       key, min, max);
	return 0;
}

static int sizes(const json_t *j, const char *key, struct load_size *size,
		 unsigned *count, struct err *err)
{
	const json_t *list = json_object_get(j, key), *pair;
	size_t k;

	*count = 0;
	if (json_array_size(list) > LOAD_SIZES_MAX)
		return err_set(err, -EINVAL, "workload: \"%s\": at most %d",
			       key, LOAD_SIZES_MAX);
	json_array_foreach(list, k, pair) {
		json_int_t bytes = json_integer_value(json_array_get(pair, 0));
		double weight = json_number_value(json_array_get(pair, 1));

		if (bytes < 512 || bytes > (json_int_t)(8 * MIB) ||
		    !(weight > 0.0) || !isfinite(weight))
			return err_set(err, -EINVAL,
				       "workload: \"%s\"[%zu] must be [bytes, "
				       "weight], 512 bytes to 8 MiB",
				       key, k);
		size[k].bytes = (uint32_t)bytes;
		size[k].weight = weight;
		++*count;
	}
	return 0;
}

int run_workload_read(const json_t *j, struct workload *w, struct err *err)
{
	double footprint, flush, streams;
	int rc;

	memset(w, 0, sizeof(*w));
	rc = number(j, "read_share", 0, 1, 1, &w->read_share, err);
	if (!rc)
		rc = number(j, "random_share", 0, 1, 1, &w->random_share, err);
	if (!rc)
		rc = sizes(j, "read_sizes", w->read_sizes, &w->read_size_count,
			   err);
	if (!rc)
		rc = sizes(j, "write_sizes", w->write_sizes,
			   &w->write_size_count, err);
	if (!rc)
		rc = number(j, "footprint_bytes", 0, 1e18, 0, &footprint, err);
	if (!rc)
		rc = number(j, "footprint_share", 0, 1, 1, &w->footprint_share,
			    err);
	if (!rc)
		rc = number(j, "compress_ratio", 1, 16, 1, &w->compress_ratio,
			    err);
	if (!rc)
		rc = number(j, "flush_every", 0, 1e9, 0, &flush, err);
	if (!rc)
		rc = number(j, "streams", 0, 4096, 1, &streams, err);
	if (rc)
		return rc;
	if (!w->read_size_count && !w->write_size_count)
		return err_set(err, -EINVAL, "workload: no sizes");
	w->footprint_bytes = (uint64_t)footprint;
	w->flush_every = (unsigned)flush;
	w->streams = (unsigned)streams;
	w->fua = json_is_true(json_object_get(j, "fua"));
	return 0;
}

static int sizes_suit(const struct load_size *size, unsigned count,
		      const char *vdisk, uint32_t block_bytes, struct err *err)
{
	for (unsigned k = 0; k < count; k++)
		if (size[k].bytes % block_bytes)
			return err_set(err, -EINVAL,
				       "vDisk %s takes I/Os of whole blocks of "
				       "%u bytes, the workload has some of %u: "
				       "run it on a vDisk made with "
				       "layout=inplace",
				       vdisk, block_bytes, size[k].bytes);
	return 0;
}

int run_workload_suits(const struct workload *w, const char *vdisk,
		       uint32_t block_bytes, struct err *err)
{
	int rc = 0;

	if (w->read_share > 0.0 || !w->write_size_count)
		rc = sizes_suit(w->read_sizes, w->read_size_count, vdisk,
				block_bytes, err);
	if (!rc && w->read_share < 1.0)
		rc = sizes_suit(w->write_sizes, w->write_size_count, vdisk,
				block_bytes, err);
	return rc;
}
