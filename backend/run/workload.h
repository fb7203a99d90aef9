/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The workload library, the files in conf/workloads: the operator's own before
 * those that came with the program. iodeck-workload(5) is the files' reference.
 */
#ifndef BACKEND_RUN_WORKLOAD_H
#define BACKEND_RUN_WORKLOAD_H

#include <jansson.h>
#include <libconfig.h>

#include "backend/conf.h"

/* A workload's members as they may also stand in a suite. */
extern const struct conf_member workload_members[], matrix_members[];

struct workload_library {
	json_t *list; /* of workloads, in the order of files and in them */
};
/* A file of the operator's with a mistake is an error with file and line. */
int workload_library_load(struct workload_library *library, struct err *err);
void workload_library_free(struct workload_library *library);
/* Borrowed; NULL unknown. */
json_t *workload_find(const struct workload_library *library, const char *name);

/* Completes what a group left out: title, defaults, sizes. `at` for errors. */
int workload_complete(json_t *workload, const config_setting_t *at,
		      struct err *err);
/* One cell of the peak matrix: pattern RR, RW, SR or SW. A new reference, or
 * NULL for another pattern. */
json_t *workload_peak(const char *pattern, double bytes);
/* Mean bytes of one I/O, reads and writes as they are mixed. */
double workload_mean_bytes(const json_t *workload);

#endif
