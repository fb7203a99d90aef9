/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/load/content.h"

#include <math.h>
#include <string.h>

#include "engine/rng.h"

#define STAMP_BYTES 8u
/*
 * What LZ4 and zstd spend to say "a run of zeros follows", a sector, rounded
 * up, so that the result comes out at or a little above the ratio asked.
 */
#define RUN_COST_BYTES 8u

void content_init(struct content *c, double ratio, uint64_t seed)
{
	struct rng rng;
	double bytes = CONTENT_SECTOR;

	id_assert(ratio >= 1.0 && ratio <= CONTENT_RATIO_MAX);
	if (ratio > 1.0)
		bytes = fmax(STAMP_BYTES,
			     CONTENT_SECTOR / ratio - RUN_COST_BYTES);
	rng_seed(&rng, seed);
	*c = (struct content) {
		.key = rng_u64(&rng),
		.random_bytes = (unsigned)lround(bytes),
	};
}

static void fill_random(struct rng *rng, unsigned char *to, size_t len)
{
	while (len) {
		const uint64_t word = rng_u64(rng);
		const size_t n = len < sizeof(word) ? len : sizeof(word);

		memcpy(to, &word, n);
		to += n;
		len -= n;
	}
}

void content_fill(const struct content *c, uint64_t salt, void *buf, size_t len)
{
	struct rng rng;

	rng_seed(&rng, c->key + salt * 0x9e3779b97f4a7c15ull);
	memset(buf, 0, len);
	for (size_t at = 0; at < len; at += CONTENT_SECTOR) {
		const size_t left = len - at;

		fill_random(&rng, (unsigned char *)buf + at,
			    left < c->random_bytes ? left : c->random_bytes);
	}
}

void content_stamp(struct content *c, void *buf, size_t len)
{
	/* An odd factor maps the count one to one: stamps never repeat. */
	uint64_t stamp = c->key + c->count * 0x9e3779b97f4a7c15ull;
	char *at = buf;
	char *const end = at + (len & ~(size_t)(STAMP_BYTES - 1));

	for (; at < end; at += CONTENT_SECTOR) {
		memcpy(at, &stamp, sizeof(stamp));
		stamp += 0x9e3779b97f4a7c15ull;
	}
	c->count += (len + CONTENT_SECTOR - 1) / CONTENT_SECTOR;
}
