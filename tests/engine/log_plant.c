/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plants the fault of the log layout that IODECK_PLANT names (log/mut.h) in a
 * test of its own: one that passes with it would not notice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/vdisk/log/mut.h"

__attribute__((constructor)) static void plant(void)
{
	const char *name = getenv("IODECK_PLANT");

	if (!name)
		return;
	for (unsigned i = 0; i < MUT_COUNT; i++)
		if (!strcmp(vlog_mut_name[i], name))
			vlog_mut = (enum vlog_mut)i;
	if (vlog_mut == MUT_NONE) {
		fprintf(stderr, "no such fault: %s\n", name);
		_exit(0); /* whoever expects a failure is told */
	}
}
