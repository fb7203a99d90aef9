/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rng.h"

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9e3779b97f4a7c15ull);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		rng->s[i] = z ^ (z >> 31);
	}
}
