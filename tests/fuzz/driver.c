/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Replays the files of its directories through a fuzz target, each whole, cut
 * at a few places, and with a few bytes changed, so that a compiler without
 * libFuzzer checks more than that the corpus passes. The same each time.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROUNDS 40

static void replay(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct rng rng;

	if (!copy)
		abort();
	rng_seed(&rng, size);
	LLVMFuzzerTestOneInput(data, size);
	for (int i = 0; i < ROUNDS && size; i++) {
		size_t cut = (size_t)rng_below(&rng, size);
		size_t changes = (size_t)rng_below(&rng, 4);

		/* An own block of each length: reading past it shows. */
		memcpy(copy, data, size);
		for (size_t k = 0; k <= changes; k++)
			copy[rng_below(&rng, size)] ^=
				(uint8_t)(1u << rng_below(&rng, 8));
		LLVMFuzzerTestOneInput(copy, i % 2 ? size : cut);
	}
	free(copy);
}

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "re");
	uint8_t *data = NULL;
	long size = -1;
	int ok = 0;

	if (f && !fseek(f, 0, SEEK_END))
		size = ftell(f);
	if (size >= 0) {
		rewind(f);
		data = malloc((size_t)size + 1);
		ok = data && fread(data, 1, (size_t)size, f) == (size_t)size;
	}
	if (ok)
		replay(data, (size_t)size);
	else
		fprintf(stderr, "%s: cannot be read\n", path);
	free(data);
	if (f)
		fclose(f);
	return ok;
}

int main(int argc, char **argv)
{
	int files = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *d;
		char path[4096];

		while (dir && (d = readdir(dir))) {
			if (d->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i],
				 d->d_name);
			failed += !replay_file(path);
			files++;
		}
		if (dir)
			closedir(dir);
	}
	printf("%d files\n", files);
	return !files || failed;
}
