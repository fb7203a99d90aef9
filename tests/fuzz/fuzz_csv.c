/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A CSV from anywhere: its series, each as a curve, against the first. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/analysis/analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct curve *a, const struct curve *b)
{
	json_t *j = analysis_compare_json(a, b, 1000);
	char *text;

	id_assert(j);
	json_decref(j);
	if (!analysis_compare_text(a, b, 1000, &text))
		free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct curve first = { 0 }, curve;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64], **names = NULL;
	struct err err;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!curve_csv_series(path, &names, &err))
		for (size_t i = 0; names[i]; i++) {
			if (!curve_of_csv(path, names[i], &curve, &err)) {
				if (!first.points)
					first = curve;
				compare(&first, &curve);
				if (curve.point != first.point)
					curve_fini(&curve);
			}
			free(names[i]);
		}
	curve_fini(&first);
	free(names);
	close(fd);
	return 0;
}
