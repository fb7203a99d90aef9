/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Suites, the files in conf/suites, resolved to a plan before anything runs:
 * every workload by value, every curve as its search and its points.
 * iodeck-workload(5) is the files' reference.
 */
#ifndef BACKEND_RUN_SUITE_H
#define BACKEND_RUN_SUITE_H

#include <jansson.h>

#include "backend/option.h"

/* What the command line changes; NAN or NULL: as the suite says. */
struct suite_params {
	/* for series without a vDisk: one of each, named after it */
	const char *const *vdisk;
	size_t vdisks;
	bool together; /* ... or one over all of them */
	/* those there are, for patterns such as "db*" */
	const char *const *there;
	size_t there_count;
	double seconds, warmup_seconds; /* of points and ramp steps */
	double early_ci;                /* 0..1 */
	const char *mode;               /* "percent" or "ramp" of curves */
	const char *percent;            /* "10,50,100" */
	const char *outstanding;        /* "1,4,16" of ramps */
	const char *silent;             /* "wait", "continue", "stop" */
	bool no_prefill;
	const struct options *options; /* defaults; NULL: the table's */
};

/*
 * name: of a file in conf/suites, a path, or a workload's, which stands for a
 * curve of it. *plan passes plan_check(); the
 * caller's reference. -ENOENT unknown; -EINVAL with file, line and what was
 * expected; -ENODEV where no vDisk there is has the name of a pattern.
 */
int suite_load(const char *name, const struct suite_params *params,
	       json_t **plan, struct err *err);
/* Its title and summary alone, for lists: {"name","title","summary","path"}. */
int suite_describe(const char *name, json_t **about, struct err *err);

#endif
