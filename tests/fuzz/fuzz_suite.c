/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an operator writes: the same bytes as a suite, as iodeck.conf and as a
 * file of workloads. A plan that comes of it must be one that executes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/config.h"
#include "backend/paths.h"
#include "backend/run/conductor.h"
#include "backend/run/suite.h"
#include "backend/run/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig's scanner keeps a text that has no end. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

static char dir[64] = "/tmp/fuzz-suite.XXXXXX";
static char given[128], shelved[128];

static void away(void)
{
	path_remove(dir, NULL);
}

/* An operator's directory of our own; what was installed is found as ever. */
static void start(void)
{
	char shelf[128];

	if (!mkdtemp(dir))
		abort();
	atexit(away);
	snprintf(given, sizeof(given), "%s/given.conf", dir);
	snprintf(shelf, sizeof(shelf), "%s/iodeck/workloads", dir);
	if (path_make(shelf, NULL) || setenv("XDG_CONFIG_HOME", dir, 1))
		abort();
	snprintf(shelved, sizeof(shelved), "%s/iodeck/workloads/given.conf",
		 dir);
}

static void as_suite(void)
{
	static const char *const vdisk[] = { "a", "b" };
	const struct suite_params params = { .vdisk = vdisk,
					     .vdisks = 2,
					     .seconds = NAN,
					     .warmup_seconds = NAN,
					     .early_ci = NAN };
	json_t *plan = NULL;
	struct err err = { 0 };

	if (suite_load(given, &params, &plan, &err)) {
		id_assert(err.text[0]);
		return;
	}
	id_assert(!plan_check(plan, &err));
	json_decref(plan);
}

static void as_config(void)
{
	struct config *config = NULL;
	struct err err = { 0 };

	if (!config_load(given, &config, &err))
		config_free(config);
	else
		id_assert(err.text[0]);
}

static void as_workloads(void)
{
	struct workload_library library = { 0 };
	struct err err = { 0 };

	if (rename(given, shelved))
		abort();
	if (!workload_library_load(&library, &err))
		workload_library_free(&library);
	else
		id_assert(err.text[0]);
	if (remove(shelved))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f;

	/* libconfig reads any file that another one names */
	if (memmem(data, size, "@include", 8))
		return 0;
	if (!*given)
		start();
	f = fopen(given, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		abort();
	as_suite();
	as_config();
	as_workloads();
	return 0;
}
