/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A suite while it is being resolved. */
#ifndef BACKEND_RUN_SUITE_IMPL_H
#define BACKEND_RUN_SUITE_IMPL_H

#include "backend/run/suite.h"
#include "backend/run/workload.h"

struct suite {
	const struct suite_params *params;
	struct workload_library library;
	char name[64];
	json_t *root;   /* as read, with what the command line changed */
	json_t *series; /* of the plan; "template": the name in the file */
	json_t *phases; /* of the plan */
};

/* Of a suite's file; iodeck-workload(5) says what each is. */
extern const struct conf_member suite_members[];

/* Appends what one phase of the file becomes. `at` for errors. */
int suite_phase(struct suite *s, const config_setting_t *at,
		const json_t *given, struct err *err);

#endif
