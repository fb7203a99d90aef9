/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Seeded random numbers: one small state a user, never a global. The same
 * seed gives the same run.
 * Source: Blackman and Vigna, xoshiro256** 1.0 (2018); seeding by splitmix64.
 */
#ifndef ENGINE_RNG_H
#define ENGINE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);

static inline uint64_t rng_rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static inline uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->s;
	const uint64_t result = rng_rotl(s[1] * 5, 7) * 9;
	const uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rng_rotl(s[3], 45);
	return result;
}

/* Uniform in [0, n), n > 0, bias below n / 2^64 (Lemire 2019, unrejected). */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)rng_u64(rng) * n) >> 64);
}

/* Uniform in (0, 1], never 0, so that log() of it is finite. */
static inline double rng_unit(struct rng *rng)
{
	return (double)((rng_u64(rng) >> 11) + 1) * 0x1.0p-53;
}

#endif
