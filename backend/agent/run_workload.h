/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan's workload, as the engine wants it. */
#ifndef BACKEND_AGENT_RUN_WORKLOAD_H
#define BACKEND_AGENT_RUN_WORKLOAD_H

#include <jansson.h>

#include "engine/load/load.h"

/* -EINVAL with the member that is wrong. */
int run_workload_read(const json_t *j, struct workload *w, struct err *err);
/* Whether a vDisk takes I/Os of such sizes; -EINVAL with the remedy. */
int run_workload_suits(const struct workload *w, const char *vdisk,
		       uint32_t block_bytes, struct err *err);

#endif
